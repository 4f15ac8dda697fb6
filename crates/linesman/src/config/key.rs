//! The keys the configuration knows: their names, what their values look like, and how a value is read.
//!
//! This table and `config.default.toml` name the same keys; a test holds them together. What several keys
//! must satisfy together is not decided here but in [`crate::config`].

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use accounts::SignUp;
use domain::{Timestamp, World};
use serve::{Network, ProxyHeader};
use toml::de::DeValue;

use crate::config::duration::parse_duration;

/// Every key, in the order in which they are printed.
pub(super) const KEYS: [Key; 44] = [
    Key::new("server", "listen", Kind::Address),
    Key::new("server", "ingest_listen", Kind::Address),
    Key::new("server", "ops_listen", Kind::Address),
    Key::new("server", "tls_cert", Kind::Path),
    Key::new("server", "tls_key", Kind::Path),
    Key::new("server", "connections_max", Kind::Count { min: 1, max: 1_000_000 }),
    Key::new("server", "connections_per_source_max", Kind::Count { min: 1, max: 1_000_000 }),
    // All of a stop has to end within 25 s.
    Key::new("server", "drain", Kind::Duration { min_ms: 0, max_ms: 15_000 }),
    Key::new("server", "shed_after", Kind::Duration { min_ms: 10, max_ms: 60_000 }),
    Key::new("server", "push_memory_max_mib", Kind::Count { min: 16, max: 1_000_000 }),
    Key::new("server", "push_memory_per_feed_max_mib", Kind::Count { min: 16, max: 1_000_000 }),
    Key::new("server", "workers", Kind::Count { min: 1, max: 1024 }),
    Key::new("server", "trusted_proxies", Kind::Networks),
    Key::new("server", "proxy_header", Kind::ProxyHeader),
    // Below 100 ms an epoch would be over before its snapshot is published.
    Key::new("market", "refresh_interval", Kind::Duration { min_ms: 100, max_ms: HOUR_MS }),
    Key::new("market", "stale_after", Kind::Duration { min_ms: 100, max_ms: u64::MAX }),
    Key::new("market", "final_retention", Kind::Duration { min_ms: 0, max_ms: u64::MAX }),
    Key::new("market", "forget_after", Kind::Duration { min_ms: 1000, max_ms: u64::MAX }),
    Key::new("market", "log_retention", Kind::Duration { min_ms: 1000, max_ms: u64::MAX }),
    Key::new("market", "records_max", Kind::Count { min: 1, max: 1_000_000_000 }),
    Key::new("market", "records_per_feed_max", Kind::Count { min: 1, max: 1_000_000_000 }),
    Key::new("sandbox", "enabled", Kind::Switch),
    Key::new("sandbox", "seed", Kind::Count { min: 0, max: u64::MAX }),
    Key::new("api", "query_key_enabled", Kind::Switch),
    Key::new("api", "query_key_sunset", Kind::Date),
    Key::new("dashboard", "enabled", Kind::Switch),
    Key::new("dashboard", "public_url", Kind::Origin),
    Key::new("dashboard", "sign_up", Kind::SignUp),
    Key::new("dashboard", "session_idle", Kind::Duration { min_ms: MINUTE_MS, max_ms: YEAR_MS }),
    Key::new("dashboard", "session_max", Kind::Duration { min_ms: MINUTE_MS, max_ms: YEAR_MS }),
    Key::new("dashboard", "status_page", Kind::Switch),
    Key::new("dashboard", "board", Kind::Board),
    Key::new("dashboard", "board_watchers_max", Kind::Count { min: 1, max: 1_000_000 }),
    Key::new("dashboard", "board_watchers_per_source_max", Kind::Count { min: 1, max: 1_000_000 }),
    Key::new("dashboard", "docs", Kind::Switch),
    Key::new("mail", "url", Kind::Url),
    Key::new("mail", "from", Kind::Sender),
    Key::new("database", "url", Kind::Url),
    Key::new("cluster", "nats_url", Kind::Url),
    // JetStream takes no more.
    Key::new("cluster", "replicas", Kind::Count { min: 1, max: 5 }),
    // A node asks every second; with less than two, one late answer would refuse everybody.
    Key::new("cluster", "key_trust", Kind::Duration { min_ms: 2000, max_ms: HOUR_MS }),
    Key::new("catalogue", "file", Kind::Path),
    Key::new("log", "filter", Kind::Filter),
    Key::new("log", "format", Kind::Format),
];

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
const YEAR_MS: u64 = 365 * 24 * HOUR_MS;

/// The most of a bad value that a message repeats, in characters.
const ECHO_MAX: usize = 60;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A known key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// What a key's value looks like, and its bounds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Address,
    Path,
    /// May carry a password: its text never appears in a message.
    Url,
    Count {
        min: u64,
        max: u64,
    },
    Duration {
        min_ms: u64,
        max_ms: u64,
    },
    Switch,
    Date,
    Filter,
    Format,
    /// Who may make an account.
    SignUp,
    /// Which market everybody may see on the board.
    Board,
    /// Scheme and host, as a browser shows them: no path, no password.
    Origin,
    /// A mail address, with or without a name before it.
    Sender,
    /// Addresses and networks: a list, or in one text with commas.
    Networks,
    /// Where proxies write whom they have a request from.
    ProxyHeader,
}

/// A value that has been read and lies within its key's bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Address(SocketAddr),
    Path(PathBuf),
    Count(u64),
    Duration(Duration),
    Switch(bool),
    Date(Timestamp),
    Format(LogFormat),
    SignUp(SignUp),
    Board(Board),
    Networks(Vec<Network>),
    ProxyHeader(ProxyHeader),
    Text(String),
}

/// The market on the board, if there is a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Board(pub(crate) Option<World>);

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Human on a terminal, JSON otherwise.
    Auto,
    Human,
    Json,
}

impl Key {
    const fn new(section: &'static str, name: &'static str, kind: Kind) -> Self {
        Self { section, name, kind }
    }

    /// `section.name`
    pub(super) fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The environment variable that sets this key.
    pub(super) fn variable(&self) -> String {
        format!("LINESMAN_{}__{}", self.section.to_uppercase(), self.name.to_uppercase())
    }
}

impl Kind {
    /// Reads a value written as text, as the environment and the command line give it.
    ///
    /// # Errors
    /// The text is no such value or out of bounds; the message says what would be right.
    pub(super) fn read(self, text: &str) -> Result<Value, String> {
        let refusal = |why: String| format!("`{}` is {why}", shorten(text));
        if text.is_empty() && !matches!(self, Self::Networks) {
            return Err(format!("is empty; it takes {}", self.form()));
        }
        match self {
            Self::Address => parse_address(text).map(Value::Address).map_err(refusal),
            Self::Path => Ok(Value::Path(PathBuf::from(text))),
            Self::Url => Ok(Value::Text(text.to_owned())),
            Self::Count { min, max } => match text.parse() {
                Ok(n) if (min..=max).contains(&n) => Ok(Value::Count(n)),
                Ok(_) | Err(_) => Err(refusal(format!("not a whole number from {min} to {max}"))),
            },
            Self::Duration { min_ms, max_ms } => {
                let value = parse_duration(text).map_err(refusal)?;
                if value < Duration::from_millis(min_ms) {
                    Err(refusal(format!("too short; the least is {min_ms}ms")))
                } else if value > Duration::from_millis(max_ms) {
                    Err(refusal(format!("too long; the most is {}m", max_ms / 60_000)))
                } else {
                    Ok(Value::Duration(value))
                }
            }
            Self::Switch => {
                let value =
                    text.parse().map_err(|_| refusal("neither true nor false".to_owned()))?;
                Ok(Value::Switch(value))
            }
            Self::Date => Timestamp::parse(&format!("{text}T00:00:00Z"))
                .map(Value::Date)
                .map_err(|_| refusal("not a date such as 2027-12-31".to_owned())),
            Self::Filter => {
                check_filter(text).map(|()| Value::Text(text.to_owned())).map_err(refusal)
            }
            Self::Format => match text {
                "auto" => Ok(Value::Format(LogFormat::Auto)),
                "human" => Ok(Value::Format(LogFormat::Human)),
                "json" => Ok(Value::Format(LogFormat::Json)),
                _ => Err(refusal("not one of auto, human, json".to_owned())),
            },
            Self::SignUp => match text {
                "open" => Ok(Value::SignUp(SignUp::Open)),
                "invitation" => Ok(Value::SignUp(SignUp::Invitation)),
                "closed" => Ok(Value::SignUp(SignUp::Closed)),
                _ => Err(refusal("not one of open, invitation, closed".to_owned())),
            },
            Self::Board => match text {
                "off" => Ok(Value::Board(Board(None))),
                "sandbox" => Ok(Value::Board(Board(Some(World::Sandbox)))),
                "live" => Ok(Value::Board(Board(Some(World::Live)))),
                _ => Err(refusal("not one of off, sandbox, live".to_owned())),
            },
            Self::Sender => match text.parse::<lettre::message::Mailbox>() {
                Ok(_) => Ok(Value::Text(text.to_owned())),
                Err(_) => Err(refusal(
                    "not a mail address such as Linesman <odds@example.com>".to_owned(),
                )),
            },
            Self::Networks => read_networks(text).map(Value::Networks),
            Self::ProxyHeader => match text {
                "x-forwarded-for" => Ok(Value::ProxyHeader(ProxyHeader::XForwardedFor)),
                "forwarded" => Ok(Value::ProxyHeader(ProxyHeader::Forwarded)),
                _ => Err(refusal("neither x-forwarded-for nor forwarded".to_owned())),
            },
            Self::Origin if is_origin(text) => Ok(Value::Text(text.to_owned())),
            Self::Origin => {
                Err(refusal("not a scheme and host such as https://odds.example.com".to_owned()))
            }
        }
    }

    /// Takes the text out of a value of a TOML file, when it has this kind's TOML type.
    ///
    /// # Errors
    /// It has another type; the message says which would be right.
    pub(super) fn text_of(self, value: &DeValue<'_>) -> Result<String, String> {
        match (self, value) {
            // Hexadecimal and the like are TOML's, so they are turned here.
            (Self::Count { .. }, DeValue::Integer(n)) => {
                Ok(u64::from_str_radix(n.as_str(), n.radix())
                    .map_or_else(|_| n.to_string(), |n| n.to_string()))
            }
            (Self::Switch, DeValue::Boolean(on)) => Ok(on.to_string()),
            (Self::Date, DeValue::Datetime(date)) => Ok(date.to_string()),
            (Self::Networks, DeValue::Array(items)) => {
                let texts = items.iter().map(|item| item.get_ref().as_str());
                let texts: Option<Vec<&str>> = texts.collect();
                texts.map(|texts| texts.join(",")).ok_or_else(|| format!("must be {}", self.form()))
            }
            (Self::Count { .. } | Self::Switch, _) => Err(format!("must be {}", self.form())),
            (_, DeValue::String(text)) => Ok(text.clone().into_owned()),
            (_, _) => Err(format!("must be {}", self.form())),
        }
    }

    /// The value's text as TOML.
    pub(super) fn to_toml(self, text: &str) -> String {
        match self {
            Self::Count { .. } | Self::Switch | Self::Date => text.to_owned(),
            Self::Networks => {
                let items = networks(text).map(|item| toml::Value::String(item.to_owned()));
                toml::Value::Array(items.collect()).to_string()
            }
            Self::Address
            | Self::Path
            | Self::Url
            | Self::Duration { .. }
            | Self::Filter
            | Self::Format
            | Self::SignUp
            | Self::Board
            | Self::Origin
            | Self::ProxyHeader
            | Self::Sender => toml::Value::String(text.to_owned()).to_string(),
        }
    }

    fn form(self) -> &'static str {
        match self {
            Self::Address => "an address in quotes such as \"127.0.0.1:8080\"",
            Self::Path => "a path in quotes",
            Self::Url => "an address in quotes",
            Self::Count { .. } => "a whole number without quotes",
            Self::Duration { .. } => "a duration in quotes such as \"30s\"",
            Self::Switch => "true or false without quotes",
            Self::Date => "a date such as 2027-12-31",
            Self::Filter => "a level in quotes such as \"info\"",
            Self::Format => "one of \"auto\", \"human\", \"json\"",
            Self::SignUp => "one of \"open\", \"invitation\", \"closed\"",
            Self::Board => "one of \"off\", \"sandbox\", \"live\"",
            Self::Sender => "a mail address in quotes such as \"Linesman <odds@example.com>\"",
            Self::Origin => "an address in quotes such as \"https://odds.example.com\"",
            Self::Networks => "a list such as [\"127.0.0.1\", \"10.0.0.0/8\"]",
            Self::ProxyHeader => "one of \"x-forwarded-for\", \"forwarded\"",
        }
    }
}

/// Whether a text is `http` or `https`, a host and perhaps a port, and nothing more.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    host.is_some_and(|host| !host.is_empty() && host.len() <= 255 && host.chars().all(plain))
}

fn networks(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn read_networks(text: &str) -> Result<Vec<Network>, String> {
    let read = |item: &str| {
        item.parse().map_err(|_| {
            format!("`{}` is not an address or network such as 10.0.0.0/8", shorten(item))
        })
    };
    networks(text).map(read).collect()
}

/// Reads `IP:PORT`, or `localhost:PORT` and `:PORT`, which mean 127.0.0.1.
///
/// # Errors
/// The text is something else. The message completes the sentence "`TEXT` is …".
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local_port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':'));
    let address = match local_port {
        // `u16::from_str` takes a leading plus sign; an address does not.
        Some(port) if !port.starts_with('+') => {
            port.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        }
        Some(_) => None,
        None => text.parse().ok(),
    };
    address.ok_or_else(|| "not an address such as 127.0.0.1:8080".to_owned())
}

/// A list of `level` and `module=level`; the first is the level of everything else.
fn check_filter(text: &str) -> Result<(), String> {
    for directive in text.split(',') {
        let (module, level) = directive.split_once('=').unwrap_or(("all", directive));
        let is_module = !module.is_empty()
            && module.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
        if !is_module || !LEVELS.contains(&level) {
            return Err(format!(
                "not a level ({}) or a list such as info,linesman_serve=debug",
                LEVELS.join(", ")
            ));
        }
    }
    Ok(())
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(ECHO_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(ECHO_MAX).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_reads_its_values_and_refuses_others() {
        let count = Kind::Count { min: 1, max: 9 };
        let duration = Kind::Duration { min_ms: 100, max_ms: HOUR_MS };
        for (kind, good, bad) in [
            (Kind::Address, "[::1]:0", "8080"),
            (Kind::Address, "localhost:80", "localhost:99999"),
            (Kind::Address, "0.0.0.0:80", ":+80"),
            (Kind::Path, "a b/c.pem", ""),
            (count, "9", "10"),
            (count, "1", "-1"),
            (duration, "100ms", "99ms"),
            (duration, "1h", "61m"),
            (Kind::Switch, "false", "no"),
            (Kind::Date, "2028-02-29", "2027-02-29"),
            (Kind::Date, "2027-12-31", "2027-12-31T00:00:00Z"),
            (Kind::Filter, "info,linesman_serve::v1=debug", "info,=debug"),
            (Kind::Filter, "off", "loud"),
            (Kind::Format, "json", "JSON"),
            (Kind::Board, "sandbox", "true"),
            (Kind::SignUp, "invitation", "invite"),
            (Kind::Networks, "127.0.0.1, 10.0.0.0/8,::1", "127.0.0.1 10.0.0.0/8"),
            (Kind::Networks, "", "10.0.0.0/8,proxy.example.com"),
            (Kind::ProxyHeader, "forwarded", "Forwarded"),
            (Kind::Sender, "Linesman <odds@example.com>", "odds"),
            (Kind::Sender, "odds@example.com", "a@b.c\r\nBcc: x@y.z"),
            (Kind::Origin, "https://odds.example.com:8443", "https://odds.example.com/"),
            (Kind::Origin, "http://[::1]:80", "https://user:password@example.com"),
        ] {
            assert!(kind.read(good).is_ok(), "{good}");
            assert!(kind.read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_port_means_this_machine() {
        assert_eq!(parse_address(":0"), Ok(SocketAddr::from(([127, 0, 0, 1], 0))));
        assert_eq!(parse_address("localhost:80"), Ok(SocketAddr::from(([127, 0, 0, 1], 80))));
    }

    #[test]
    fn a_long_bad_value_is_repeated_in_part_and_on_one_line() {
        let refusal = Kind::Switch.read(&"x\n".repeat(10_000)).unwrap_err();
        assert!(refusal.chars().count() < 200, "{refusal}");
        assert!(!refusal.contains('\n'));
    }
}
