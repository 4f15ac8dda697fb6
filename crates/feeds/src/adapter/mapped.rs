//! `mapped`: any JSON, NDJSON, XML or CSV, read by a mapping in TOML (A27–A31).
//!
//! A [`Mapping`] is compiled once: paths, values and conditions are parsed, names become numbers, every fault is
//! reported. An input of any format becomes one tree, and the mapping is applied to it. The language is described in
//! `docs/adapters/mapped.md`.

use std::borrow::Cow;
use std::sync::Arc;

use domain::time::Timestamp;

use crate::adapter::{BODY_BYTES_MAX, Drift, Read, Settings, Translator};

mod compile;
mod csv;
mod document;
mod json;
mod key;
mod names;
mod number;
mod path;
mod place;
mod recipe;
mod rule;
mod run;
mod scan;
mod time;
mod value;
mod xml;

#[cfg(test)]
mod tests;

use compile::InputFormat;
use document::{Document, ROOT};
use path::{Item, Reading};
use value::Scope;

pub use compile::{Faults, Mapping, Page};
pub use recipe::{RECIPES, Recipe};

/// Reads inputs by a mapping.
#[derive(Debug)]
pub struct Mapped {
    mapping: Arc<Mapping>,
    settings: Settings,
    next_page: Option<String>,
}

impl Mapped {
    pub fn new(mapping: Arc<Mapping>, settings: Settings) -> Self {
        Self { mapping, settings, next_page: None }
    }

    /// The value that requests the page after the last one read, if there is one.
    pub fn next_page(&self) -> Option<&str> {
        self.next_page.as_deref()
    }
}

impl Translator for Mapped {
    fn translate(&mut self, _unit: &str, bytes: &[u8], _at: Timestamp) -> Result<Read, Drift> {
        self.next_page = None;
        let mapping = &*self.mapping;
        let text = decode(bytes, mapping.format)?;
        let mut document = Document::new(text, &mapping.symbols);
        match mapping.format {
            InputFormat::Json => json::parse_json(&mut document)?,
            InputFormat::Ndjson => json::parse_ndjson(&mut document)?,
            InputFormat::Xml => xml::parse_xml(&mut document)?,
            InputFormat::Csv => csv::parse_csv(&mut document)?,
        }
        let reading = Reading::new(&document);
        if let Some(next) = &mapping.next {
            let scope = Scope {
                reading: &reading,
                tables: &mapping.tables,
                symbols: &mapping.symbols,
                zone: &mapping.zone,
            };
            let root = Item { nodes: &[ROOT], list: false };
            let next = next.text(scope, root).map_err(|reason| Drift::new("page.next", reason))?;
            self.next_page = Some(next.into_owned()).filter(|next| !next.is_empty());
        }
        run::run(mapping, &self.settings, &reading)
    }
}

/// The input as text: UTF-8, or for XML the Western encodings that it may declare.
fn decode(bytes: &[u8], format: InputFormat) -> Result<Cow<'_, str>, Drift> {
    if bytes.len() > BODY_BYTES_MAX {
        let reason = format!("{} bytes; at most {BODY_BYTES_MAX} are taken", bytes.len());
        return Err(Drift::new("/", reason));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) if format == InputFormat::Xml && declares_western(bytes) => {
            let is_latin_9 = declares(bytes, &["iso-8859-15"]);
            Ok(Cow::Owned(bytes.iter().map(|byte| western(*byte, is_latin_9)).collect()))
        }
        Err(error) => {
            Err(Drift::new(format!("byte {}", error.valid_up_to()), "the input is not UTF-8"))
        }
    }
}

fn declares_western(bytes: &[u8]) -> bool {
    declares(bytes, &["iso-8859-1", "iso-8859-15", "windows-1252", "latin1"])
}

/// True if the beginning of a document names one of these encodings.
fn declares(bytes: &[u8], names: &[&str]) -> bool {
    let head = bytes.get(..bytes.len().min(200)).unwrap_or_default().to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    names.iter().any(|name| head.contains(name))
}

/// Characters of Windows-1252 at the control codes from 0x80 of ISO-8859-1, which documents that declare that encoding
/// use too. Unassigned codes stay control codes.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The character of a byte; `is_latin_9`: the document is ISO-8859-15, which differs in eight characters.
fn western(byte: u8, is_latin_9: bool) -> char {
    match (byte, is_latin_9) {
        (0xa4, true) => '€',
        (0xa6, true) => 'Š',
        (0xa8, true) => 'š',
        (0xb4, true) => 'Ž',
        (0xb8, true) => 'ž',
        (0xbc, true) => 'Œ',
        (0xbd, true) => 'œ',
        (0xbe, true) => 'Ÿ',
        (0x80..=0x9f, _) => {
            WINDOWS.get(usize::from(byte - 0x80)).copied().unwrap_or(char::from(byte))
        }
        _ => char::from(byte),
    }
}
