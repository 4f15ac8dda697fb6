//! JSON and NDJSON to a [`Document`]: one pass, no recursion, numbers as written.

use super::document::{DEPTH_MAX, Document, Kind, NO_KEY, NodeId, ROOT, position};
use super::key::unescape;
use crate::adapter::Drift;
use crate::adapter::pull::find_quote;

/// Reads one JSON text.
///
/// # Errors
/// It is not JSON, nests too deeply or has too many values.
pub(super) fn parse_json(document: &mut Document<'_>) -> Result<(), Drift> {
    with_source(document, |text, document| {
        let mut reader = Reader { text, at: 0 };
        reader.value(document, NO_KEY, ROOT)?;
        reader.skip_space();
        if reader.at < text.len() {
            return Err(reader.fault("something follows the end of the JSON text"));
        }
        Ok(())
    })
}

/// Reads lines of JSON as one list.
///
/// # Errors
/// A line is not JSON.
pub(super) fn parse_ndjson(document: &mut Document<'_>) -> Result<(), Drift> {
    with_source(document, |text, document| {
        let root = document.push(NO_KEY, ROOT, Kind::List)?;
        let mut reader = Reader { text, at: 0 };
        loop {
            reader.skip_space();
            if reader.at >= text.len() {
                break;
            }
            reader.value(document, NO_KEY, root)?;
        }
        document.close(root);
        Ok(())
    })
}

fn with_source(
    document: &mut Document<'_>,
    read: impl FnOnce(&str, &mut Document<'_>) -> Result<(), Drift>,
) -> Result<(), Drift> {
    let text = document.take_source();
    let done = read(&text, document);
    document.put_source(text);
    done
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    /// Reads one value with its contents.
    fn value(
        &mut self,
        document: &mut Document<'_>,
        key: u32,
        parent: NodeId,
    ) -> Result<(), Drift> {
        let mut open: Vec<(NodeId, u8)> = Vec::new();
        let mut key = key;
        let mut parent = parent;
        loop {
            self.skip_space();
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    if open.len() >= DEPTH_MAX {
                        return Err(
                            self.fault(&format!("nested more than {DEPTH_MAX} levels deep"))
                        );
                    }
                    self.at += 1;
                    let kind = if bracket == b'{' { Kind::Object } else { Kind::List };
                    parent = document.push(key, parent, kind)?;
                    open.push((parent, bracket));
                    self.skip_space();
                    if self.peek() != Some(closing(bracket)) {
                        key = self.next_key(document, bracket)?;
                        continue;
                    }
                }
                _ => self.scalar(document, key, parent)?,
            }
            // After a value, or in an empty list or object: close the containers that end here.
            loop {
                let Some(&(id, bracket)) = open.last() else {
                    return Ok(());
                };
                self.skip_space();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        parent = id;
                        key = self.next_key(document, bracket)?;
                        break;
                    }
                    Some(end) if end == closing(bracket) => {
                        self.at += 1;
                        document.close(id);
                        open.pop();
                    }
                    _ if bracket == b'{' => return Err(self.fault("expected `,` or `}`")),
                    _ => return Err(self.fault("expected `,` or `]`")),
                }
            }
        }
    }

    /// Reads the key before a value of an object; items of a list have none.
    fn next_key(&mut self, document: &Document<'_>, bracket: u8) -> Result<u32, Drift> {
        if bracket == b'[' {
            return Ok(NO_KEY);
        }
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a key in quotes"));
        }
        let offset = self.at;
        let end = find_quote(self.text.as_bytes(), self.at + 1);
        let (end, escaped) = end.ok_or_else(|| self.fault("a text without end"))?;
        let raw = self.text.get(self.at + 1..end).unwrap_or_default();
        let key = if escaped {
            let name = unescape(raw).ok_or_else(|| self.fault("a key with a wrong escape"))?;
            document.key(&name, offset)
        } else {
            document.key(raw, offset)
        };
        self.at = end + 1;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.fault("expected `:`"));
        }
        self.at += 1;
        Ok(key)
    }

    fn scalar(
        &mut self,
        document: &mut Document<'_>,
        key: u32,
        parent: NodeId,
    ) -> Result<(), Drift> {
        match self.peek() {
            Some(b'"') => {
                let end = find_quote(self.text.as_bytes(), self.at + 1);
                let (end, escaped) = end.ok_or_else(|| self.fault("a text without end"))?;
                let raw = self.text.get(self.at + 1..end).unwrap_or_default();
                let id = document.push(key, parent, Kind::Text)?;
                if escaped {
                    let text = unescape(raw).ok_or_else(|| self.fault("a wrong escape"))?;
                    document.set_copied(id, &text);
                } else {
                    document.set_text(id, self.at + 1, raw.len());
                }
                self.at = end + 1;
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let len = number_len(rest.as_bytes()).ok_or_else(|| self.fault("not a number"))?;
                let id = document.push(key, parent, Kind::Text)?;
                document.set_text(id, self.at, len);
                self.at += len;
                Ok(())
            }
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                for (word, kind) in
                    [("true", Kind::Text), ("false", Kind::Text), ("null", Kind::Null)]
                {
                    if rest.starts_with(word) {
                        let id = document.push(key, parent, kind)?;
                        if kind == Kind::Text {
                            document.set_text(id, self.at, word.len());
                        }
                        self.at += word.len();
                        return Ok(());
                    }
                }
                Err(self.fault("expected a value"))
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn fault(&self, reason: &str) -> Drift {
        Drift::new(position(self.text, self.at), format!("not JSON: {reason}"))
    }
}

fn closing(bracket: u8) -> u8 {
    if bracket == b'{' { b'}' } else { b']' }
}

/// The length of the JSON number that the bytes begin with.
fn number_len(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let places = digits(at + 1);
        if places == 0 {
            return None;
        }
        at += 1 + places;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let power = digits(at + 1 + sign);
        if power == 0 {
            return None;
        }
        at += 1 + sign + power;
    }
    Some(at)
}
