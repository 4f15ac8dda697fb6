//! The sources of values: a file, the environment, flags. All of them are merged into one tree by name.
//!
//! Nothing is interpreted here, and nothing is read from disk or environment; the caller passes the texts.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

/// Variables with our prefix that are not settings: a server and a key for clients.
const NOT_SETTINGS: [&str; 2] = ["LINESMAN_URL", "LINESMAN_KEY"];

/// The source of a value, in the order of the layers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    #[default]
    Default,
    /// Line 0 is the file as a whole.
    File {
        path: PathBuf,
        line: usize,
    },
    Environment(String),
    Flag(&'static str),
}

/// A fault in the configuration: its location, and the allowed values.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) Origin, pub(crate) String);

/// How a value is written in TOML, and how it is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// The path of a file that must exist.
    File,
    /// A text that may contain a password: no message contains it, and it is printed masked.
    Secret,
    /// A text that is secret as a whole: no message contains it, and no part of it is printed.
    Key,
    Number,
    Switch,
    Date,
    /// A list of texts; in the environment one text with commas.
    List,
    /// A table, a list of tables, or a list whose texts may contain commas; its text is TOML.
    Inline,
    /// A type that no setting has.
    Other,
}

impl Kind {
    /// Whether a value of this kind in a file can be read as another kind.
    pub(crate) fn can_be(self, kind: Self) -> bool {
        self == kind
            || (self == Self::Text
                && matches!(kind, Self::File | Self::Secret | Self::Key | Self::Date))
    }
}

/// A value as given.
pub(crate) struct Given {
    pub(crate) origin: Origin,
    /// `None`: in the environment and on the command line every value is text.
    pub(crate) kind: Option<Kind>,
    pub(crate) text: String,
    /// The texts of a list in a file.
    pub(crate) items: Option<Vec<String>>,
}

impl Given {
    pub(crate) fn default(text: &str) -> Self {
        Self { origin: Origin::Default, kind: None, text: text.to_owned(), items: None }
    }
}

/// The values given at one path, lowest layer first, and the nodes below it.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) given: Vec<Given>,
    /// The source that first made this a table.
    pub(crate) table: Option<Origin>,
    pub(crate) children: BTreeMap<String, Node>,
    /// The tables of a list of tables.
    pub(crate) rows: Vec<Node>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => {
                // A path in a message or a comment must not contain a line break.
                write!(f, "{}", path.to_string_lossy().escape_debug())?;
                if *line > 0 { write!(f, " line {line}") } else { Ok(()) }
            }
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}

impl Node {
    /// Adds a file on top of the layers so far.
    pub(crate) fn add_file(&mut self, path: &Path, text: &str, faults: &mut Vec<Fault>) {
        let origin = |offset: usize| Origin::File {
            path: path.to_owned(),
            line: text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1,
        };
        let (table, errors) = DeTable::parse_recoverable(text);
        // After a syntax error the names cannot be trusted, so only syntax errors are reported.
        if errors.is_empty() {
            self.add_table(table.get_ref(), &origin);
        }
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            let message = format!("not TOML: {}", error.message().replace('\n', ", "));
            faults.push(Fault(origin(at), message));
        }
    }

    fn add_table(&mut self, table: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) {
        for (name, value) in table {
            let origin_here = origin(name.span().start);
            let node = self.children.entry(name.get_ref().clone().into_owned()).or_default();
            if let DeValue::Table(table) = value.get_ref() {
                node.table = Some(origin_here);
                node.add_table(table, origin);
                continue;
            }
            let (kind, text) = to_text(value.get_ref());
            let items = match value.get_ref() {
                DeValue::Array(items) if kind == Kind::List => Some(
                    items.iter().filter_map(|i| i.get_ref().as_str()).map(Into::into).collect(),
                ),
                DeValue::Array(items) => {
                    let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                    node.rows.extend(tables.map(|table| {
                        let mut row = Self { table: Some(origin_here.clone()), ..Self::default() };
                        row.add_table(table, origin);
                        row
                    }));
                    None
                }
                DeValue::String(_)
                | DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Table(_) => None,
            };
            node.given.push(Given { origin: origin_here, kind: Some(kind), text, items });
        }
    }

    /// Adds the variables `LINESMAN_<SECTION>__<KEY>`: all with the prefix, so that a misspelt one is found.
    pub(crate) fn add_environment(
        &mut self,
        variables: &[(OsString, OsString)],
        faults: &mut Vec<Fault>,
    ) {
        let names: Vec<_> = variables.iter().map(|(name, _)| name.to_string_lossy()).collect();
        // Kubernetes sets LINESMAN_SERVICE_HOST, LINESMAN_PORT and more for a Service named linesman.
        let is_of_service = |name: &str| {
            let services = names.iter().filter_map(|name| name.strip_suffix("SERVICE_HOST"));
            let mut rests = services.filter_map(|service| name.strip_prefix(service));
            rests.any(|rest| rest.starts_with("SERVICE_") || rest.starts_with("PORT"))
        };
        for (name, (_, value)) in names.iter().zip(variables) {
            let Some(rest) = name.strip_prefix("LINESMAN_") else { continue };
            if NOT_SETTINGS.contains(&&**name) || is_of_service(name) {
                continue;
            }
            let origin = Origin::Environment(name.clone().into_owned());
            let Some(text) = value.to_str() else {
                faults.push(Fault(origin, "the value is not UTF-8 text".to_owned()));
                continue;
            };
            // A name that is not in capitals is unchanged, and therefore unknown.
            let is_plain = !rest.contains(char::is_lowercase);
            let path = if is_plain { rest.to_lowercase() } else { rest.to_owned() };
            self.add_text(&path.split("__").collect::<Vec<_>>(), text, origin);
        }
    }

    /// Adds one text.
    pub(crate) fn add_text(&mut self, path: &[&str], text: &str, origin: Origin) {
        match path {
            [name, rest @ ..] => {
                let node = self.children.entry((*name).to_owned()).or_default();
                if !rest.is_empty() {
                    node.table.get_or_insert_with(|| origin.clone());
                }
                node.add_text(rest, text, origin);
            }
            [] => self.given.push(Given { origin, kind: None, text: text.to_owned(), items: None }),
        }
    }
}

fn to_text(value: &DeValue<'_>) -> (Kind, String) {
    match value {
        DeValue::String(text) => (Kind::Text, text.clone().into_owned()),
        // Hexadecimal and other notations of TOML are converted here.
        DeValue::Integer(n) => {
            let decimal = u64::from_str_radix(n.as_str(), n.radix()).map(|n| n.to_string());
            (Kind::Number, decimal.unwrap_or_else(|_| n.to_string()))
        }
        DeValue::Boolean(on) => (Kind::Switch, on.to_string()),
        DeValue::Datetime(date) => (Kind::Date, date.to_string()),
        DeValue::Array(items) => {
            let texts: Option<Vec<&str>> =
                items.iter().map(|item| item.get_ref().as_str()).collect();
            texts.map_or((Kind::Other, String::new()), |texts| (Kind::List, texts.join(",")))
        }
        DeValue::Float(_) | DeValue::Table(_) => (Kind::Other, String::new()),
    }
}
