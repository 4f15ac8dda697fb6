//! The effective configuration as text: a valid configuration file that says where each value came from.
//!
//! The only place that prints values which may hold a password; they are masked here.

use std::fmt::Write as _;

use crate::config::{
    Config,
    key::{KEYS, Kind},
    layer::Setting,
};

const MASK: &str = "***";

impl Config {
    /// The effective configuration as TOML, secrets masked. Read as a file it gives this configuration
    /// again.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for key in &KEYS {
            if key.section != section {
                section = key.section;
                push(&mut text, format_args!("\n[{section}]\n"));
            }
            let set = self.settings.iter().find(|setting| setting.key.path() == key.path());
            match set {
                Some(setting) => {
                    let (value, origin) = (shown(setting), &setting.origin);
                    push(&mut text, format_args!("{} = {value} # {origin}\n", key.name));
                }
                None => push(&mut text, format_args!("# {} is not set\n", key.name)),
            }
        }
        text.trim_start().to_owned()
    }
}

fn shown(setting: &Setting) -> String {
    match setting.key.kind {
        Kind::Url => setting.key.kind.to_toml(&mask_url(&setting.text)),
        kind @ (Kind::Address
        | Kind::Path
        | Kind::Count { .. }
        | Kind::Duration { .. }
        | Kind::Switch
        | Kind::Date
        | Kind::Filter
        | Kind::Format
        | Kind::SignUp
        | Kind::Board
        | Kind::Origin
        | Kind::Networks
        | Kind::ProxyHeader
        | Kind::Sender) => kind.to_toml(&setting.text),
    }
}

/// Hides what may be a secret in an address: all between the user's name and the host, a name alone (NATS
/// takes a token there), and parameters such as `?password=`.
fn mask_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let separator = if scheme.is_empty() { "" } else { "://" };
    // The last `@`, since a password that was not escaped may hold one. Too much is hidden rather than
    // too little.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => match user.split_once(':') {
            Some((name, _)) => (format!("{name}:{MASK}@"), rest),
            None => (format!("{MASK}@"), rest),
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

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a `String` can not fail.
    text.write_fmt(line).unwrap_or_default();
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
            ("postgres://db/odds", "postgres://db/odds"),
            ("nats://token@bus:4222", "nats://***@bus:4222"),
            ("linesman:hunter2@db", "linesman:***@db"),
            ("smtps://odds:hunter2@mail:465", "smtps://odds:***@mail:465"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }
}
