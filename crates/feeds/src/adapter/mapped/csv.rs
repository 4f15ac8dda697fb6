//! CSV with a header line to a [`Document`]: a list of rows, each an object with the header's names.

use super::document::{Document, Kind, NO_KEY, NodeId, ROOT, position};
use crate::adapter::Drift;

/// Maximum number of columns of a table.
const COLUMNS_MAX: usize = 1_000;

/// Reads a table. The separator is the most frequent one in the header: comma, semicolon, tab or `|`.
///
/// # Errors
/// There is no header, a quoted field does not end, or there are too many values.
pub(super) fn parse_csv(document: &mut Document<'_>) -> Result<(), Drift> {
    let text = document.take_source();
    let read = read(&text, document);
    document.put_source(text);
    read
}

fn read(text: &str, document: &mut Document<'_>) -> Result<(), Drift> {
    let header = text.lines().next().unwrap_or_default();
    let most = [b',', b';', b'\t', b'|'].into_iter().rev();
    let separator =
        most.max_by_key(|byte| header.bytes().filter(|b| b == byte).count()).unwrap_or(b',');
    let mut fields = Fields { text, separator, at: 0 };
    let mut columns: Vec<Box<str>> = Vec::new();
    loop {
        let field = fields.next_field()?;
        if columns.len() >= COLUMNS_MAX {
            return Err(Drift::new("line 1", format!("more than {COLUMNS_MAX} columns")));
        }
        columns.push(field.text(text).trim().into());
        if field.last {
            break;
        }
    }
    if columns.iter().all(|name| name.is_empty()) {
        return Err(Drift::new("line 1", "not CSV: there is no header line"));
    }
    let keys: Vec<u32> =
        columns.iter().enumerate().map(|(index, name)| document.key(name, index)).collect();
    document.set_columns(columns);
    let root = document.push(NO_KEY, ROOT, Kind::List)?;
    while fields.at < text.len() {
        row(&mut fields, &keys, document, root)?;
    }
    document.close(root);
    Ok(())
}

fn row(
    fields: &mut Fields<'_>,
    keys: &[u32],
    document: &mut Document<'_>,
    root: NodeId,
) -> Result<(), Drift> {
    let rest = fields.text.get(fields.at..).unwrap_or_default();
    if let Some(blank) = ["\r\n", "\n"].into_iter().find(|end| rest.starts_with(end)) {
        fields.at += blank.len();
        return Ok(());
    }
    let object = document.push(NO_KEY, root, Kind::Object)?;
    let mut keys = keys.iter();
    loop {
        let field = fields.next_field()?;
        // Fields beyond the header have no name.
        if let Some(key) = keys.next() {
            let id = document.push(*key, object, Kind::Text)?;
            if field.doubled {
                document.set_copied(id, &field.text(fields.text));
            } else {
                document.set_text(id, field.start, field.end - field.start);
            }
        }
        if field.last {
            break;
        }
    }
    document.close(object);
    Ok(())
}

/// One field of a line.
struct Field {
    start: usize,
    end: usize,
    /// True if it contains doubled quotes.
    doubled: bool,
    /// True if it is the last of its line.
    last: bool,
}

impl Field {
    fn text(&self, text: &str) -> String {
        let raw = text.get(self.start..self.end).unwrap_or_default();
        if self.doubled { raw.replace("\"\"", "\"") } else { raw.to_owned() }
    }
}

struct Fields<'t> {
    text: &'t str,
    separator: u8,
    at: usize,
}

impl Fields<'_> {
    fn next_field(&mut self) -> Result<Field, Drift> {
        let bytes = self.text.as_bytes();
        let rest = bytes.get(self.at..).unwrap_or_default();
        let mut field = Field { start: self.at, end: self.at, doubled: false, last: false };
        if rest.first() == Some(&b'"') {
            field.start += 1;
            let mut at = field.start;
            loop {
                let found = memchr::memchr(b'"', bytes.get(at..).unwrap_or_default());
                let Some(found) = found else {
                    let place = position(self.text, self.at);
                    return Err(Drift::new(place, "not CSV: a quoted field without end"));
                };
                at += found;
                if bytes.get(at + 1) != Some(&b'"') {
                    break;
                }
                field.doubled = true;
                at += 2;
            }
            field.end = at;
            self.at = at + 1;
        }
        let rest = bytes.get(self.at..).unwrap_or_default();
        let len = memchr::memchr2(self.separator, b'\n', rest).unwrap_or(rest.len());
        if field.start == self.at {
            let line_end = rest.get(len) != Some(&self.separator);
            let carriage = line_end && len > 0 && rest.get(len - 1) == Some(&b'\r');
            field.end = self.at + len - usize::from(carriage);
        }
        field.last = rest.get(len) != Some(&self.separator);
        self.at += len + 1;
        Ok(field)
    }
}
