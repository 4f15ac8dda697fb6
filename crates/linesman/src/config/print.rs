//! Settings as text: the effective configuration as a valid file with the source of each value, and the meaning of
//! one setting. Only this file prints values that may contain a password; it masks them.

use adapters::KINDS;

use crate::config::{
    Config,
    adapter::AdapterSection,
    form::items,
    schema::{About, Field, Reader, Setting},
    settings::Sections,
    source::{Kind, Node},
};

const MASK: &str = "***";
/// A placeholder for the name of any adapter, for the keys of `[adapters.NAME]`.
const ANY_ADAPTER: &str = "NAME";

impl Config {
    /// The effective configuration as TOML, with secrets masked. Reading it as a file gives this configuration again.
    pub(crate) fn to_toml(&self) -> String {
        to_file(&self.reader.settings, |name, setting| {
            let Some((origin, text)) = &setting.value else {
                return format!("# {name} is not set\n");
            };
            let text = if setting.kind == Kind::Key {
                MASK.to_owned()
            } else if setting.kind == Kind::Secret {
                mask_url(text.reveal())
            } else {
                text.reveal().to_owned()
            };
            format!("{name} = {} # {origin}\n", to_toml(setting.kind, &text))
        })
    }
}

/// A TOML file in which `line` writes each setting.
pub(super) fn to_file(settings: &[Setting], line: impl Fn(&str, &Setting) -> String) -> String {
    let (mut text, mut table) = (String::new(), "");
    for setting in settings {
        let (own_table, name) = setting.path.rsplit_once('.').unwrap_or(("", &setting.path));
        if own_table != table {
            table = own_table;
            text.push_str(&format!("\n[{table}]\n"));
        }
        text.push_str(&line(name, setting));
    }
    text.trim_start().to_owned()
}

/// Every declared setting; those of adapters under the given name.
fn declared(adapter: &str) -> Reader {
    let (_, mut reader) = Reader::read::<Sections>(&Node::default());
    let path = format!("adapters.{adapter}");
    drop(AdapterSection::read(&mut reader, &path, &Node::default(), About::default()));
    reader
}

/// The meaning of a setting such as `server.listen`, or of all settings in a section, and their valid values. A key
/// of adapters may be under any name (`adapters.toa.reserve`) or none (`adapters.reserve`); the name of a kind
/// selects the keys of that kind.
///
/// # Errors
/// There is no such setting. The message names the nearest.
pub(crate) fn explain(path: &str) -> Result<String, String> {
    let is_key = |name: &str| KINDS.iter().any(|kind| kind.takes(name));
    let (adapter, path) = match path.strip_prefix("adapters.") {
        Some(key) if is_key(key) => (ANY_ADAPTER, format!("adapters.{ANY_ADAPTER}.{key}")),
        Some(rest) => (rest.split('.').next().unwrap_or(rest), path.to_owned()),
        None => (ANY_ADAPTER, path.to_owned()),
    };
    let reader = declared(adapter);
    let (section, kind) = (format!("{path}."), format!("adapters.{adapter}"));
    let kind = KINDS.iter().find(|kind_of| kind_of.name == adapter).filter(|_| path == kind);
    let is_asked = |own: &str| {
        let below = own.strip_prefix(&section);
        own == path || below.is_some_and(|key| kind.is_none_or(|kind| kind.takes(key)))
    };
    let asked = reader.settings.iter().filter(|setting| is_asked(&setting.path));
    let texts: Vec<String> = asked.map(Setting::explain).collect();
    if texts.is_empty() {
        let near = reader.nearest_path(&path, false);
        return Err(format!("there is no setting `{path}`; did you mean `{near}`?"));
    }
    Ok(texts.join("\n\n"))
}

/// Every setting with its meaning, as the Markdown page `docs/operations/configuration.md`.
#[cfg(test)]
pub(super) fn reference_page() -> String {
    let reader = declared(ANY_ADAPTER);
    let (mut text, mut section) = (REFERENCE_INTRODUCTION.to_owned(), "");
    for setting in &reader.settings {
        let own = setting.path.rsplit_once('.').map_or("", |(section, _)| section);
        if own != section {
            section = own;
            text.push_str(&format!("\n## {section}\n"));
        }
        text.push_str(&setting.as_markdown());
    }
    text
}

#[cfg(test)]
const REFERENCE_INTRODUCTION: &str = "\
# Configuration reference

Every setting with its meaning, made from the same declarations as the defaults. Settings come from the defaults, then
`linesman.toml`, then the environment, then flags. `linesman config` prints the values in use and where each came from,
`linesman config --explain KEY` one of the entries below, `linesman config --check` what is wrong.
";

impl Setting {
    #[cfg(test)]
    fn as_markdown(&self) -> String {
        let About { meaning, default, example } = self.about;
        let default = match (default, example) {
            (Some(default), _) => format!("`{}`", to_toml(self.kind, default)),
            (None, Some(example)) => {
                format!("not set; for example `{}`", to_toml(self.kind, example))
            }
            (None, None) if self.kind == Kind::Inline => "not set".to_owned(),
            (None, None) => "none; it must be set".to_owned(),
        };
        let meaning: Vec<&str> = meaning.iter().map(|line| line.trim()).collect();
        let (path, meaning) = (&self.path, meaning.join("\n"));
        let variables: Vec<String> =
            self.variables().iter().map(|variable| format!("`{variable}`")).collect();
        let kinds = self.adapter_kinds().map(|kinds| format!("- Kind: {kinds}\n"));
        let (takes, kinds) = (&self.takes, kinds.unwrap_or_default());
        let environment = match &*variables {
            [] => String::new(),
            // Two fit on a line.
            [_] | [_, _] => format!("- Environment: {}\n", variables.join(", ")),
            variables => format!("- Environment: {}\n", variables.join(",\n  ")),
        };
        format!(
            "\n### `{path}`\n\n{meaning}\n\n{kinds}- Value: {takes}\n- Default: {default}\n{environment}"
        )
    }

    /// The kinds of adapters that have this key, unless all do.
    fn adapter_kinds(&self) -> Option<String> {
        let (_, key) = self.path.strip_prefix("adapters.")?.split_once('.')?;
        let kinds = KINDS.iter().filter(|kind| kind.takes(key)).map(|kind| kind.name);
        let kinds: Vec<&str> = kinds.collect();
        (kinds.len() < KINDS.len()).then(|| kinds.join(", "))
    }

    fn explain(&self) -> String {
        let About { meaning, default, example } = self.about;
        let meaning: String = meaning.iter().map(|line| format!(" {line}\n")).collect();
        let default = match (default, example) {
            (Some(default), _) => to_toml(self.kind, default),
            (None, Some(example)) => format!("unset; for example {}", to_toml(self.kind, example)),
            (None, None) if self.kind == Kind::Inline => "unset".to_owned(),
            (None, None) => "none; it must be set".to_owned(),
        };
        let kinds = self.adapter_kinds().map(|kinds| format!("  Kind: {kinds}\n"));
        let (path, takes, kinds) = (&self.path, &self.takes, kinds.unwrap_or_default());
        let environment = match &*self.variables() {
            [] => String::new(),
            variables => format!("\n  Environment: {}", variables.join(", ")),
        };
        format!("{path}\n{meaning}{kinds}  Value: {takes}\n  Default: {default}{environment}")
    }
}

/// A value's text as TOML.
pub(super) fn to_toml(kind: Kind, text: &str) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned());
    match kind {
        Kind::Number | Kind::Switch | Kind::Date | Kind::Inline => text.to_owned(),
        Kind::List => toml::Value::Array(items(text).map(quoted).collect()).to_string(),
        Kind::Text | Kind::File | Kind::Secret | Kind::Key | Kind::Other => {
            quoted(text).to_string()
        }
    }
}

/// Masks secrets in an address: everything between the user's name and the host, a name alone (it may be a token of
/// NATS), and parameters such as `?password=`.
fn mask_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let separator = if scheme.is_empty() { "" } else { "://" };
    // The last `@`, since an unescaped password may contain one: it is better to hide too much than too little.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => match user.split_once(':') {
            Some((name, _)) if !name.contains(['/', '?']) => (format!("{name}:{MASK}@"), rest),
            Some(_) | None => (format!("{MASK}@"), rest),
        },
        None => (String::new(), rest),
    };
    let rest = match rest.split_once('?') {
        Some((address, query)) => {
            let query: Vec<String> = query.split('&').map(mask_parameter).collect();
            format!("{address}?{}", query.join("&"))
        }
        None => rest.to_owned(),
    };
    format!("{scheme}{separator}{user}{rest}")
}

fn mask_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if ["pass", "token", "secret", "key"].iter().any(|s| name.contains(s)) => {
            format!("{name}={MASK}")
        }
        Some(_) | None => parameter.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_an_address_are_masked() {
        for (url, shown) in [
            ("postgres://linesman:hunter2@db/odds", "postgres://linesman:***@db/odds"),
            ("postgres://linesman:hun@ter/2@db/odds", "postgres://linesman:***@db/odds"),
            ("postgres://db/odds?password=hunter2&x=1", "postgres://db/odds?password=***&x=1"),
            ("postgres://db/odds?password=hun:t@er2", "postgres://***@er2"),
            ("postgres://db/odds", "postgres://db/odds"),
            ("nats://token@bus:4222", "nats://***@bus:4222"),
            ("linesman:hunter2@db", "linesman:***@db"),
            ("smtps://odds:hunter2@mail:465", "smtps://odds:***@mail:465"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }
}
