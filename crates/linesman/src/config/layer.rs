//! The layers a configuration is made of: the embedded defaults, a file, the environment.
//!
//! Each layer is read whole and every fault in it is kept: a value that a later layer overrides must still
//! be right where it stands. Nothing is read from disk or environment here; the texts are handed in.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use crate::config::key::{KEYS, Key, Value};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
    Flag(&'static str),
}

/// A value that was given for a key. `Debug` does not show it: it may be an address with a password.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) key: &'static Key,
    pub(super) value: Value,
    /// The value as it was written.
    pub(super) text: String,
    pub(super) origin: Origin,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Something wrong with the configuration: where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// `None` when several values together are at fault.
    pub(super) origin: Option<Origin>,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn at(origin: &Origin, message: String) -> Self {
        Self { origin: Some(origin.clone()), message }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            // Line 0 is the file as a whole.
            Self::File { path, line: 0 } => one_line(f, path),
            Self::File { path, line } => {
                one_line(f, path)?;
                write!(f, " line {line}")
            }
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Reads a configuration file; `origin` makes the origin of a value from its line.
pub(super) fn read_toml(
    text: &str,
    origin: impl Fn(usize) -> Origin,
    settings: &mut Vec<Setting>,
    faults: &mut Vec<Fault>,
) {
    let (table, mut errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
        // After a slip in the syntax the names can not be trusted, so only the slips are told.
        for error in errors {
            let line = error.span().map_or(0, |span| line_at(text, span.start));
            let message = error.message().replace('\n', ", ");
            faults.push(Fault::at(&origin(line), format!("not TOML: {message}")));
        }
        return;
    }
    // The table is in alphabetical order; people read their file from the top.
    let mut sections: Vec<_> = table.get_ref().iter().collect();
    sections.sort_by_key(|(name, _)| name.span().start);
    for (section, content) in sections {
        let line = line_at(text, section.span().start);
        let section = section.get_ref();
        let DeValue::Table(entries) = content.get_ref() else {
            faults.push(Fault::at(&origin(line), unknown_at_top(section)));
            continue;
        };
        if !KEYS.iter().any(|key| key.section == section) {
            faults.push(Fault::at(&origin(line), unknown_section(section)));
            continue;
        }
        let mut entries: Vec<_> = entries.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let place = origin(line_at(text, name.span().start));
            let name = name.get_ref();
            let Some(key) = KEYS.iter().find(|key| key.section == section && key.name == name)
            else {
                faults.push(Fault::at(&place, unknown_key(section, name)));
                continue;
            };
            match key.kind.text_of(value.get_ref()) {
                Ok(text) => take(key, text, place, settings, faults),
                Err(why) => faults.push(Fault::at(&place, format!("`{}` {why}", key.path()))),
            }
        }
    }
}

/// Reads the environment: `LINESMAN_<SECTION>__<KEY>`. Variables without `LINESMAN_` and a double
/// underscore are somebody else's.
pub(super) fn read_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    settings: &mut Vec<Setting>,
    faults: &mut Vec<Fault>,
) {
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| is_ours(name)) else {
            continue;
        };
        let origin = Origin::Environment(name.to_owned());
        let Some(key) = KEYS.iter().find(|key| key.variable() == name) else {
            faults.push(Fault::at(&origin, unknown_variable(name)));
            continue;
        };
        match value.to_str() {
            Some(text) => take(key, text.to_owned(), origin, settings, faults),
            None => faults.push(Fault::at(&origin, "the value is not UTF-8 text".to_owned())),
        }
    }
}

/// Reads one value into a setting or a fault.
pub(super) fn take(
    key: &'static Key,
    text: String,
    origin: Origin,
    settings: &mut Vec<Setting>,
    faults: &mut Vec<Fault>,
) {
    match key.kind.read(&text) {
        Ok(value) => {
            // The short forms of an address are printed in full.
            let text =
                if let Value::Address(address) = &value { address.to_string() } else { text };
            settings.push(Setting { key, value, text, origin });
        }
        Err(why) => faults.push(Fault::at(&origin, format!("`{}`: {why}", key.path()))),
    }
}

fn is_ours(name: &str) -> bool {
    name.strip_prefix("LINESMAN_").is_some_and(|rest| rest.contains("__"))
}

fn unknown_section(section: &str) -> String {
    let near = nearest(section, KEYS.iter().map(|key| (key.section, key.section.to_owned())));
    format!("unknown section `[{section}]`; the nearest known name is `[{near}]`")
}

fn unknown_at_top(name: &str) -> String {
    if KEYS.iter().any(|key| key.section == name) {
        return format!("`{name}` is a section: write `[{name}]` and its keys below");
    }
    let near = nearest(name, KEYS.iter().map(|key| (key.name, key.path())));
    format!("unknown key `{name}` outside a section; the nearest known name is `{near}`")
}

fn unknown_key(section: &str, name: &str) -> String {
    // The right name in the wrong section is likelier than a similar name in the right one.
    let elsewhere = KEYS.iter().any(|key| key.name == name);
    let candidates = KEYS.iter().filter(|key| elsewhere || key.section == section);
    let near = nearest(name, candidates.map(|key| (key.name, key.path())));
    format!("unknown key `{section}.{name}`; the nearest known name is `{near}`")
}

fn unknown_variable(name: &str) -> String {
    let variables: Vec<String> = KEYS.iter().map(Key::variable).collect();
    let near = nearest(name, variables.iter().map(|name| (name.as_str(), name.clone())));
    format!("unknown variable; the nearest known name is `{near}`")
}

/// The label of the candidate most like `name`; one that goes on from it is meant rather than another of its length.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut best = (-1.0, String::new());
    for (candidate, label) in candidates {
        let goes_on = f64::from(u8::from(candidate.starts_with(name)));
        let likeness = strsim::normalized_damerau_levenshtein(name, candidate) + goes_on;
        if likeness > best.0 {
            best = (likeness, label);
        }
    }
    best.1
}

/// The line, counted from 1, of a byte offset.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// A path in a message or a comment must not begin a new line.
fn one_line(f: &mut fmt::Formatter<'_>, path: &Path) -> fmt::Result {
    let text: &OsStr = path.as_os_str();
    text.to_string_lossy().chars().try_for_each(|c| {
        if c.is_control() { write!(f, "{}", c.escape_debug()) } else { write!(f, "{c}") }
    })
}
