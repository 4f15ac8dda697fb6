//! The settings of adapters, and the table of kinds.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::schedule::{Schedule, ScheduleRow};

/// Maximum size of a secret file, which is one line; a larger file is not a secret.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// A kind of upstream: a translator, a transport and these keys.
#[derive(Debug)]
pub struct KindRow {
    pub name: &'static str,
    pub variant: Variant,
    pub about: &'static str,
    /// Link to, or description of, the upstream's terms.
    pub terms: &'static str,
    /// Its keys in addition to the common ones.
    pub own_keys: &'static [&'static str],
    /// Groups of keys; one key of each group is required.
    pub needs: &'static [&'static [&'static str]],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Exec,
    Mapped,
    TheOddsApi,
    Betfair,
}

/// The keys common to all kinds.
pub const COMMON_KEYS: [&str; 20] = [
    "kind",
    "enabled",
    "terms_accepted_by",
    "bookmaker",
    "bookmakers",
    "sports",
    "markets_map",
    "schedule",
    "timeout",
    "rate_per_minute",
    "backoff_max",
    "stale_after",
    "remove_after",
    "in_play",
    "record",
    "tape",
    "speed",
    "tape_today",
    "base_url",
    "ca_file",
];

/// Every kind; a new kind needs a row here.
pub static KINDS: [KindRow; 4] = [
    KindRow {
        name: "exec",
        variant: Variant::Exec,
        about: "any program that prints messages, supervised",
        terms: "the terms of the source that the program reads",
        own_keys: &["command", "env", "every", "complete"],
        needs: &[&["command"]],
    },
    KindRow {
        name: "mapped",
        variant: Variant::Mapped,
        about: "JSON, NDJSON, XML or CSV by HTTP or file drop, with a mapping in TOML",
        terms: "the terms of the upstream; for recipes see docs/adapters/mapped.md",
        own_keys: &["mapping", "recipe", "vars", "urls", "files", "headers", "page"],
        needs: &[&["mapping", "recipe"], &["urls", "files", "recipe"]],
    },
    KindRow {
        name: "the_odds_api",
        variant: Variant::TheOddsApi,
        about: "The Odds API v4: one key for 40 bookmakers, with a budget of credits",
        terms: "https://the-odds-api.com/terms-and-conditions.html",
        own_keys: &[
            "api_key",
            "regions",
            "bookmakers_asked",
            "markets",
            "reserve",
            "scores",
            "scores_every",
        ],
        needs: &[&["api_key"], &["regions", "bookmakers_asked"]],
    },
    KindRow {
        name: "betfair",
        variant: Variant::Betfair,
        about: "Betfair Exchange: a stream of images and deltas",
        terms: "https://developer.betfair.com/exchange-api/",
        own_keys: &[
            "app_key",
            "username",
            "password",
            "cert",
            "cert_key",
            "login_url",
            "api_url",
            "stream",
            "min_size",
            "emit_every",
            "horizon",
        ],
        needs: &[&["app_key"], &["username"], &["password"]],
    },
];

impl KindRow {
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        COMMON_KEYS.into_iter().chain(self.own_keys.iter().copied())
    }

    pub fn takes(&self, key: &str) -> bool {
        self.keys().any(|own| own == key)
    }

    /// True if a tape replaces the input that these keys configure: a tape needs no address and no secrets.
    pub fn tape_replaces(&self, keys: &[&str]) -> bool {
        !keys.iter().any(|key| ["mapping", "regions"].contains(key))
    }
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The source of a secret. A file is read again whenever the secret is needed.
#[derive(Clone, Debug)]
pub enum SecretSource {
    /// From an environment variable.
    Given(Secret),
    File(PathBuf),
}

impl SecretSource {
    /// # Errors
    /// The file cannot be read or is empty; the message contains none of its content.
    pub fn read(&self) -> Result<Secret, String> {
        match self {
            Self::Given(secret) => Ok(secret.clone()),
            Self::File(path) => read_secret(path),
        }
    }
}

fn read_secret(path: &Path) -> Result<Secret, String> {
    let bytes =
        std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let text = String::from_utf8(bytes).ok().filter(|text| text.len() <= SECRET_BYTES_MAX);
    match text.as_deref().map(str::trim) {
        Some(text) if !text.is_empty() => Ok(Secret(text.to_owned())),
        _ => Err(format!("{} holds no secret: it must be one line of text", path.display())),
    }
}

/// A plain text, or the source of a secret.
#[derive(Clone, Debug)]
pub enum Value {
    Plain(String),
    Secret(SecretSource),
}

impl Value {
    /// # Errors
    /// As [`SecretSource::read`].
    pub fn read(&self) -> Result<Secret, String> {
        match self {
            Self::Plain(text) => Ok(Secret(text.clone())),
            Self::Secret(secret) => secret.read(),
        }
    }
}

/// The speed at which a tape is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    Times(u32),
    Max,
}

/// The settings for requests to upstream.
#[derive(Clone, Debug)]
pub struct Access {
    pub timeout: Duration,
    pub rate_per_minute: u32,
    pub backoff_max: Duration,
    pub base_url: Option<String>,
    pub ca_file: Option<PathBuf>,
}

/// One section `[adapters.NAME]`.
#[derive(Clone, Debug)]
pub struct AdapterSettings {
    pub name: String,
    pub enabled: bool,
    pub accepted_by: Option<String>,
    pub bookmaker: Option<String>,
    pub bookmakers: BTreeMap<String, String>,
    pub sports: BTreeMap<String, String>,
    pub markets_map: BTreeMap<String, String>,
    pub schedule: Schedule,
    pub access: Access,
    pub stale_after: Option<Duration>,
    pub remove_after: Duration,
    pub in_play: bool,
    pub record: Option<PathBuf>,
    pub tape: Option<PathBuf>,
    pub speed: Speed,
    /// Shifts a tape's times by whole days, so that its first record is of the last 24 hours.
    pub tape_today: bool,
    pub kind: KindSettings,
}

#[derive(Clone, Debug)]
pub enum KindSettings {
    Exec(ExecSettings),
    Mapped(MappedSettings),
    TheOddsApi(TheOddsApiSettings),
    Betfair(BetfairSettings),
}

#[derive(Clone, Debug)]
pub struct ExecSettings {
    pub command: Vec<String>,
    pub env: BTreeMap<String, Value>,
    /// The service's own PATH, the only other variable passed to the program.
    pub path: String,
    pub every: Option<Duration>,
    pub complete: bool,
}

#[derive(Clone, Debug)]
pub struct MappedSettings {
    pub mapping: Option<PathBuf>,
    pub recipe: Option<String>,
    pub vars: BTreeMap<String, String>,
    pub urls: Vec<String>,
    pub files: Vec<String>,
    pub headers: BTreeMap<String, Value>,
    pub page: Option<Page>,
}

/// The way to request further pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// The parameter's value comes from the previous page, at this path.
    Next { param: String, path: String },
    /// The parameter grows by this step while pages have events.
    Step { param: String, step: u64 },
}

impl Page {
    /// As written in the configuration.
    pub fn to_toml(&self) -> toml::Table {
        let text = |key: &str, text: &str| (key.to_owned(), toml::Value::String(text.to_owned()));
        match self {
            Self::Next { param, path } => {
                [text("param", param), text("next", path)].into_iter().collect()
            }
            Self::Step { param, step } => {
                let step = toml::Value::Integer(i64::try_from(*step).unwrap_or(i64::MAX));
                [text("param", param), ("step".to_owned(), step)].into_iter().collect()
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct TheOddsApiSettings {
    pub api_key: Option<SecretSource>,
    pub regions: Vec<String>,
    /// Requested instead of regions.
    pub bookmakers: Vec<String>,
    pub markets: Vec<String>,
    pub reserve: u64,
    pub scores: bool,
    pub scores_every: Duration,
}

#[derive(Clone, Debug)]
pub struct BetfairSettings {
    pub app_key: Option<SecretSource>,
    pub username: Option<SecretSource>,
    pub password: Option<SecretSource>,
    /// PEM files of a certificate and its key.
    pub cert: Option<(PathBuf, PathBuf)>,
    pub login_url: Option<String>,
    pub api_url: Option<String>,
    pub stream: Option<String>,
    pub min_size: u32,
    pub emit_every: Duration,
    pub horizon: Duration,
}

impl AdapterSettings {
    pub fn row(&self) -> &'static KindRow {
        let variant = match self.kind {
            KindSettings::Exec(_) => Variant::Exec,
            KindSettings::Mapped(_) => Variant::Mapped,
            KindSettings::TheOddsApi(_) => Variant::TheOddsApi,
            KindSettings::Betfair(_) => Variant::Betfair,
        };
        // Every variant has its row.
        KINDS.iter().find(|row| row.variant == variant).unwrap_or(&KINDS[0])
    }
}
