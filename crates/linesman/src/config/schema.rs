//! The parts of a setting, declared once by [`settings!`]: name, form with its bounds, default and meaning.
//!
//! A declaration generates the struct that the program uses, and reading it returns a [`Setting`] for each of its
//! settings, from which printing, `--explain` and `config.default.toml` are generated. Serde is not used: it stops at
//! the first fault and sees only the effective value, while every fault of every layer is reported here.

use std::collections::BTreeMap;

use crate::config::{
    form::{Form, Secret},
    source::{Fault, Given, Kind, Node, Origin},
};

static NOTHING: Node =
    Node { given: Vec::new(), table: None, children: BTreeMap::new(), rows: Vec::new() };

/// The declaration of a setting.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct About {
    /// The lines of the doc comment.
    pub(crate) meaning: &'static [&'static str],
    pub(crate) default: Option<&'static str>,
    /// An example for the reference if there is no default.
    pub(crate) example: Option<&'static str>,
}

/// A setting that was read.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) path: String,
    pub(crate) about: About,
    pub(crate) kind: Kind,
    /// A description of the valid values; completes "must be …".
    pub(crate) takes: String,
    /// The source of the value, and its text; `None` if it is not set.
    pub(crate) value: Option<(Origin, Secret)>,
    pub(crate) environment: InEnvironment,
}

/// How the environment sets a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InEnvironment {
    /// One variable contains the whole value.
    Whole,
    /// One variable for each part, with these suffixes.
    Parts(&'static [&'static str]),
    /// Only a file can set it.
    Never,
}

impl Setting {
    /// The environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("LINESMAN_{}", self.path.to_uppercase().replace('.', "__"))
    }

    /// Every environment variable that sets it or a part of it.
    pub(crate) fn variables(&self) -> Vec<String> {
        let variable = self.variable();
        match self.environment {
            InEnvironment::Whole => vec![variable],
            InEnvironment::Parts(parts) => {
                parts.iter().map(|part| format!("{variable}__{part}")).collect()
            }
            InEnvironment::Never => Vec::new(),
        }
    }
}

/// A declared field: a value, an optional value, a table, or a map of tables.
pub(crate) trait Field {
    type Value;

    /// `None` if there is no valid value; the faults contain the reason.
    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<Self::Value>;
}

impl<F: Form> Field for F {
    type Value = F::Value;

    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<F::Value> {
        let value = reader.read_value::<F>(path, node, about);
        if reader.settings.last().is_some_and(|setting| setting.value.is_none()) {
            let message = format!("`{path}` is missing; it must be {}", F::takes());
            reader.faults.push(Fault(reader.table.clone(), message));
        }
        value
    }
}

impl<F: Form> Field for Option<F> {
    type Value = Option<F::Value>;

    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<Self::Value> {
        Some(reader.read_value::<F>(path, node, about))
    }
}

impl<T: Field> Field for BTreeMap<String, T> {
    type Value = BTreeMap<String, T::Value>;

    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<Self::Value> {
        reader.expect_table(path, node);
        let mut tables = BTreeMap::new();
        for (name, child) in &node.children {
            let (path, origin) = (join(path, name), child.origin());
            if !can_name_table(name) {
                let message = format!("`{}` {TABLE_NAME}", name.escape_debug());
                reader.faults.push(Fault(origin, message));
            } else if child.table.is_none() {
                reader.expect_table(&path, child);
            } else {
                reader.table = origin;
                let table = T::read(reader, &path, child, about);
                tables.extend(table.map(|table| (name.clone(), table)));
            }
        }
        Some(tables)
    }
}

/// Reads the tree of sources: collects all settings and all faults.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) settings: Vec<Setting>,
    pub(crate) faults: Vec<Fault>,
    /// Undeclared names, and whether they are tables.
    unknown: Vec<(String, Origin, bool)>,
    /// The source of the table being read.
    table: Origin,
}

impl Reader {
    /// Reads a whole tree. A value may be returned despite faults: the valid parts can be checked further.
    pub(crate) fn read<T: Field>(tree: &Node) -> (Option<T::Value>, Self) {
        let mut reader = Self::default();
        let value = T::read(&mut reader, "", tree, About::default());
        for (path, origin, is_table) in std::mem::take(&mut reader.unknown) {
            let message = reader.refuse_unknown(&path, &origin, is_table);
            reader.faults.push(Fault(origin, message));
        }
        (value, reader)
    }

    /// The source of a setting's value; `None` if it is not set.
    pub(crate) fn origin(&self, path: &str) -> Option<&Origin> {
        let setting = self.settings.iter().find(|setting| setting.path == path)?;
        setting.value.as_ref().map(|(origin, _)| origin)
    }

    /// Checks a declared table: no value in its place, and no undeclared names below it.
    pub(crate) fn read_names(&mut self, path: &str, node: &Node, names: &[&str]) {
        self.expect_table(path, node);
        let unknown = node.children.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        self.unknown.extend(
            unknown.map(|(name, child)| (join(path, name), child.origin(), child.table.is_some())),
        );
    }

    pub(crate) fn expect_table(&mut self, path: &str, node: &Node) {
        for origin in node.given.iter().map(|given| given.origin.clone()) {
            if matches!(origin, Origin::Environment(_)) {
                self.unknown.push((path.to_owned(), origin, true));
            } else {
                let message = format!("`{path}` is a section: write `[{path}]` and its keys below");
                self.faults.push(Fault(origin, message));
            }
        }
    }

    /// Checks every value, including those that a later layer overrides.
    fn read_value<F: Form>(&mut self, path: &str, node: &Node, about: About) -> Option<F::Value> {
        if let Some(origin) = node.table.clone() {
            self.faults.push(Fault(origin, format!("`{path}` must be {}", F::in_toml())));
        }
        let default = about.default.map(Given::default);
        let (mut value, mut shown) = (None, None);
        for Given { origin, kind, text, .. } in default.iter().chain(&node.given) {
            let checked = match kind {
                Some(kind) if !kind.can_be(F::KIND) => Err(format!("must be {}", F::in_toml())),
                _ => F::check(text),
            };
            let text = checked.as_ref().map_or_else(|_| text.clone(), |value| F::show(text, value));
            shown = Some((origin.clone(), Secret::from(text)));
            match checked {
                Ok(right) => value = Some(right),
                Err(why) => self.faults.push(Fault(origin.clone(), format!("`{path}` {why}"))),
            }
        }
        self.settings.push(Setting {
            path: path.to_owned(),
            about,
            kind: F::KIND,
            takes: F::takes(),
            value: shown,
            environment: InEnvironment::Whole,
        });
        value
    }

    fn refuse_unknown(&self, path: &str, origin: &Origin, is_table: bool) -> String {
        if let Origin::Environment(name) = origin {
            let known = self.settings.iter().map(Setting::variable);
            let near = nearest(&name.to_uppercase(), known.map(|name| (name.clone(), name)));
            return format!("unknown variable; did you mean `{near}`?");
        }
        let near = self.nearest_path(path, is_table);
        match (path.contains('.'), is_table) {
            (true, _) => format!("unknown key `{path}`; did you mean `{near}`?"),
            (false, true) => format!("unknown section `[{path}]`; did you mean `[{near}]`?"),
            (false, false) => {
                format!("unknown key `{path}` outside a section; did you mean `{near}`?")
            }
        }
    }

    /// The known path that is nearest to an unknown one.
    pub(crate) fn nearest_path(&self, path: &str, is_table: bool) -> String {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
        let paths = || self.settings.iter().map(|setting| setting.path.as_str());
        // The right name in the wrong section is more likely than a similar name in the right one.
        if !is_table && (parent.is_empty() || paths().any(|path| last(path) == name)) {
            return nearest(name, paths().map(|path| (last(path), path.to_owned())));
        }
        let below = paths().filter_map(|path| path.strip_prefix(parent));
        let parts = below.filter_map(|path| path.trim_start_matches('.').split('.').next());
        nearest(name, parts.map(|part| (part.to_owned(), join(parent, part))))
    }
}

impl Node {
    pub(crate) fn child(&self, name: &str) -> &Self {
        self.children.get(name).unwrap_or(&NOTHING)
    }

    pub(crate) fn origin(&self) -> Origin {
        let given = self.given.first().map(|given| &given.origin);
        self.table.as_ref().or(given).cloned().unwrap_or(Origin::Default)
    }
}

/// Declares tables of settings: `name: Form = default;` or `name: Option<Form>, such as example;`, each under a doc
/// comment that is the setting's meaning.
macro_rules! settings {
    ($($(#[$doc:meta])* $table:ident { $(
        $(#[doc = $meaning:literal])*
        $name:ident: $form:ty $(= $default:literal)? $(, such as $example:literal)?;
    )+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $table { $(
            $(#[doc = $meaning])*
            pub(crate) $name: <$form as $crate::config::schema::Field>::Value,
        )+ }

        impl $crate::config::schema::Field for $table {
            type Value = Self;

            fn read(
                reader: &mut $crate::config::schema::Reader,
                path: &str,
                node: &$crate::config::source::Node,
                _: $crate::config::schema::About,
            ) -> Option<Self> {
                let first = |given: &[&'static str]| given.first().copied();
                reader.read_names(path, node, &[$(stringify!($name)),+]);
                // All are read first, so that every fault is found.
                $(let $name = <$form as $crate::config::schema::Field>::read(
                    reader,
                    &$crate::config::schema::join(path, stringify!($name)),
                    node.child(stringify!($name)),
                    $crate::config::schema::About {
                        meaning: &[$($meaning),*],
                        default: first(&[$(concat!($default))?]),
                        example: first(&[$(concat!($example))?]),
                    },
                );)+
                Some(Self { $($name: $name?),+ })
            }
        }
    )+};
}
pub(crate) use settings;

const TABLE_NAME: &str = "cannot name a table: use lowercase letters, digits, `-` and single `_`";

/// Whether an environment variable can name it too.
fn can_name_table(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !name.is_empty() && !name.contains("__") && name.chars().all(plain)
}

pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The label of the candidate nearest to `name`; candidates that begin with it are preferred.
fn nearest(name: &str, candidates: impl Iterator<Item = (String, String)>) -> String {
    let mut best = (-1.0, String::new());
    for (candidate, label) in candidates {
        let begins = f64::from(u8::from(candidate.starts_with(name)));
        let likeness = strsim::normalized_damerau_levenshtein(name, &candidate) + begins;
        if likeness > best.0 {
            best = (likeness, label);
        }
    }
    best.1
}
