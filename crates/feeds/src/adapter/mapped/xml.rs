//! XML to a [`Document`]: elements by local name, attributes as `@name`, an element's own text. There is no DTD, so
//! the only entities are the five of XML, `&nbsp;` and character numbers; namespaces are not resolved.

use super::document::{DEPTH_MAX, Document, Kind, NO_KEY, NodeId, ROOT, position};
use super::key::{name_len, read_name};
use crate::adapter::Drift;

/// Reads one XML text.
///
/// # Errors
/// It is not well-formed, has a DTD, nests too deeply or has too many values.
pub(super) fn parse_xml(document: &mut Document<'_>) -> Result<(), Drift> {
    let text = document.take_source();
    let mut reader = Reader { text: &text, at: 0, open: Vec::new(), done: false };
    let read = reader.document(document);
    document.put_source(text);
    read
}

/// An element whose end has not been read yet.
struct Open {
    id: NodeId,
    name: (usize, usize),
    text: Text,
}

/// The text of an element so far.
enum Text {
    None,
    /// One part of the input.
    Piece(usize, usize),
    /// Several parts, or one with entities.
    Joined(String),
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    open: Vec<Open>,
    done: bool,
}

impl<'t> Reader<'t> {
    fn document(&mut self, document: &mut Document<'_>) -> Result<(), Drift> {
        while let Some(found) = memchr::memchr(b'<', self.rest().as_bytes()) {
            if found > 0 {
                self.characters(found)?;
            }
            let rest = self.rest();
            if let Some(after) = rest.strip_prefix("<!--") {
                let end = after.find("-->").ok_or_else(|| self.fault("a comment without end"))?;
                self.at += 4 + end + 3;
            } else if let Some(after) = rest.strip_prefix("<![CDATA[") {
                let end = after.find("]]>").ok_or_else(|| self.fault("CDATA without end"))?;
                self.at += 9;
                self.raw_characters(end)?;
                self.at += end + 3;
            } else if rest.starts_with("<?") {
                let end = rest.find("?>").ok_or_else(|| self.fault("`<?` without `?>`"))?;
                self.at += end + 2;
            } else if rest.starts_with("<!") {
                return Err(self.fault("a document type (DTD) is not read"));
            } else if rest.starts_with("</") {
                self.end_tag(document)?;
            } else {
                self.start_tag(document)?;
            }
        }
        let left = self.rest().len();
        self.characters(left)?;
        if !self.open.is_empty() {
            return Err(self.fault("the document ends inside an element"));
        }
        if !self.done {
            return Err(self.fault("there is no element"));
        }
        Ok(())
    }

    /// Reads the next `len` bytes as character data.
    fn characters(&mut self, len: usize) -> Result<(), Drift> {
        let piece = self.rest().get(..len).unwrap_or_default();
        if piece.contains('&') {
            let text = self.unescape(piece)?;
            self.join(&text)?;
        } else {
            self.raw_characters(len)?;
        }
        self.at += len;
        Ok(())
    }

    /// Adds the next `len` bytes unchanged.
    fn raw_characters(&mut self, len: usize) -> Result<(), Drift> {
        let piece = self.rest().get(..len).unwrap_or_default();
        if piece.bytes().all(|byte| byte.is_ascii_whitespace()) {
            return Ok(());
        }
        let at = self.at;
        let blank = self.open.last().is_some_and(|open| matches!(open.text, Text::None));
        match self.open.last_mut() {
            Some(open) if blank => open.text = Text::Piece(at, len),
            _ => self.join(piece)?,
        }
        Ok(())
    }

    fn join(&mut self, piece: &str) -> Result<(), Drift> {
        let fault = self.fault("text outside of an element");
        let whole = self.text;
        let Some(open) = self.open.last_mut() else {
            // Whitespace or a byte order mark outside of elements is harmless, text is not.
            return if piece.trim().is_empty() { Ok(()) } else { Err(fault) };
        };
        let joined = match std::mem::replace(&mut open.text, Text::None) {
            Text::None => piece.to_owned(),
            Text::Piece(at, len) => whole.get(at..at + len).unwrap_or_default().to_owned() + piece,
            Text::Joined(text) => text + piece,
        };
        open.text = Text::Joined(joined);
        Ok(())
    }

    fn start_tag(&mut self, document: &mut Document<'_>) -> Result<(), Drift> {
        if self.open.is_empty() && self.done {
            return Err(self.fault("a second root element"));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(self.fault(&format!("nested more than {DEPTH_MAX} levels deep")));
        }
        self.at += 1;
        let name = self.name()?;
        let local = read_name(self.text.get(name.0..name.1).unwrap_or_default());
        let parent = self.open.last().map_or(ROOT, |open| open.id);
        let key =
            if self.open.is_empty() { NO_KEY } else { document.key(local, name.1 - local.len()) };
        let id = document.push(key, parent, Kind::Element)?;
        self.open.push(Open { id, name, text: Text::None });
        self.done = true;
        loop {
            self.skip_space();
            match self.rest().as_bytes() {
                [b'>', ..] => {
                    self.at += 1;
                    return Ok(());
                }
                [b'/', b'>', ..] => {
                    self.at += 2;
                    self.close(document);
                    return Ok(());
                }
                _ => self.attribute(document, id)?,
            }
        }
    }

    fn attribute(&mut self, document: &mut Document<'_>, element: NodeId) -> Result<(), Drift> {
        let (start, end) = self.name()?;
        let written = self.text.get(start..end).unwrap_or_default();
        self.skip_space();
        if !self.rest().starts_with('=') {
            return Err(self.fault("an attribute without a value"));
        }
        self.at += 1;
        self.skip_space();
        let quote = match self.rest().as_bytes().first() {
            Some(quote @ (b'"' | b'\'')) => *quote,
            _ => return Err(self.fault("an attribute's value is in quotes")),
        };
        self.at += 1;
        let len = memchr::memchr(quote, self.rest().as_bytes());
        let len = len.ok_or_else(|| self.fault("an attribute's value without end"))?;
        let value = self.rest().get(..len).unwrap_or_default();
        if !written.starts_with("xmlns") {
            let local = read_name(written);
            let key = document.attribute_key(local, end - local.len());
            let id = document.push(key, element, Kind::Text)?;
            if value.contains('&') {
                let text = self.unescape(value)?;
                document.set_copied(id, &text);
            } else {
                document.set_text(id, self.at, len);
            }
        }
        self.at += len + 1;
        Ok(())
    }

    fn end_tag(&mut self, document: &mut Document<'_>) -> Result<(), Drift> {
        self.at += 2;
        let (start, end) = self.name()?;
        self.skip_space();
        if !self.rest().starts_with('>') {
            return Err(self.fault("expected `>`"));
        }
        self.at += 1;
        let name = |(start, end): (usize, usize)| self.text.get(start..end);
        if self.open.last().and_then(|open| name(open.name)) != name((start, end)) {
            return Err(self.fault("an end tag that does not belong here"));
        }
        self.close(document);
        Ok(())
    }

    fn close(&mut self, document: &mut Document<'_>) {
        if let Some(open) = self.open.pop() {
            match open.text {
                Text::None => {}
                Text::Piece(at, len) => document.set_text(open.id, at, len),
                Text::Joined(text) => document.set_copied(open.id, &text),
            }
            document.close(open.id);
        }
    }

    fn name(&mut self) -> Result<(usize, usize), Drift> {
        let start = self.at;
        let len = name_len(self.rest());
        if len == 0 {
            return Err(self.fault("expected a name"));
        }
        self.at += len;
        Ok((start, self.at))
    }

    fn unescape(&self, piece: &str) -> Result<String, Drift> {
        let mut out = String::with_capacity(piece.len());
        let mut rest = piece;
        while let Some((before, after)) = rest.split_once('&') {
            out.push_str(before);
            let (entity, after) =
                after.split_once(';').ok_or_else(|| self.fault("`&` without `;`"))?;
            let character = match entity {
                "lt" => Some('<'),
                "gt" => Some('>'),
                "amp" => Some('&'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                "nbsp" => Some(' '),
                _ => character_number(entity),
            };
            out.push(character.ok_or_else(|| self.fault("an unknown entity"))?);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest().as_bytes();
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn fault(&self, reason: &str) -> Drift {
        Drift::new(position(self.text, self.at), format!("not XML: {reason}"))
    }
}

fn character_number(entity: &str) -> Option<char> {
    let digits = entity.strip_prefix('#')?;
    let number = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    char::from_u32(number)
}
