//! `[adapters.NAME]`: the keys of all kinds of adapters, declared once; the table [`adapters::KINDS`] lists the keys
//! of each kind. Rules for several keys together are checked in [`read_adapters`].

mod check;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use adapters::settings::{
    Access, AdapterSettings, BetfairSettings, ExecSettings, KindSettings, MappedSettings, Page,
    Schedule, ScheduleRow, SecretSource, Speed, TheOddsApiSettings, Value, Variant,
};
use adapters::{KINDS, KindRow};
use domain::suggest::did_you_mean;

pub(crate) use check::read_adapters;

use crate::config::{
    duration::parse_duration,
    form::{Choice, Count, File, List, OneOf, Secret, Span, Switch, Text, items},
    schema::{About, Field, InEnvironment, Reader, Setting, join, settings},
    source::{Fault, Kind, Node, Origin},
};

const SECOND: u64 = 1000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
/// Maximum length of an adapter's name: it is also the name of a feed.
const NAME_BYTES_MAX: usize = 40;

settings! {
    /// One upstream, with the keys of every kind.
    AdapterSection {
        /// What it reads: exec, mapped, `the_odds_api` or betfair (`linesman feeds kinds`).
        kind: OneOf<&'static KindRow>;
        /// Whether it runs. A disabled adapter is checked and not started.
        enabled: Switch = false;
        /// Who accepted the upstream's terms, and when. Needed to enable an adapter.
        terms_accepted_by: Option<Text>, such as "O. Operator, 2026-11";
        /// The bookmaker of these prices, if the input does not name one. No other adapter may have it.
        bookmaker: Option<Text>, such as "betfair";
        /// Upstream bookmakers and ours, over the kind's own table; "" ignores one.
        bookmakers: Map<Plain>;
        /// Upstream sports and ours; `*` in an upstream name stands for anything.
        sports: Map<Plain>;
        /// Upstream markets and ours.
        markets_map: Map<Plain>;
        /// How often events are read by their time to start; for several events in one read, the shortest interval
        /// applies. Unset: started events every 40s, within 1h every 1m, within 24h every 5m, others every 30m.
        schedule: Rows;
        /// Time limit of one request.
        timeout: Span<100, HOUR> = "10s";
        /// Maximum number of requests per minute.
        rate_per_minute: Count<u32, 1, 6_000> = 60;
        /// Maximum pause after failures.
        backoff_max: Span<SECOND, HOUR> = "5m";
        /// How long sources are fresh after a good read. Unset: three times the interval of the read.
        stale_after: Option<Span<SECOND, DAY>>, such as "10m";
        /// An event that is missing from good reads for this long is removed.
        remove_after: Span<0, DAY> = "15m";
        /// Whether prices are kept after an event has started.
        in_play: Switch = true;
        /// A folder for tapes of everything that upstream sends.
        record: Option<Text>, such as "tapes";
        /// A tape that is played instead of the network.
        tape: Option<File>, such as "saturday.tape.zst";
        /// The speed at which a tape is played: 1x, 10x, max.
        speed: OneOf<Speed> = "1x";
        /// Whether the times of a tape are shifted by whole days, so that its first record is within the last 24
        /// hours.
        tape_today: Switch = false;
        /// The address of upstream, if not its own.
        base_url: Option<Text>, such as "https://api.example.com";
        /// A PEM file with the certificates to verify upstream's with, instead of the system's.
        ca_file: Option<File>, such as "upstream.pem";
        /// The key of `the_odds_api`.
        api_key: SecretField;
        /// Regions of `the_odds_api`.
        regions: Option<List<Text>>, such as "us,eu";
        /// Bookmakers to request instead of regions.
        bookmakers_asked: Option<List<Text>>, such as "pinnacle";
        /// Markets of `the_odds_api`.
        markets: Option<List<Text>>, such as "h2h,spreads,totals,outrights";
        /// Credits that are never spent.
        reserve: Count<u64, 0, 1_000_000_000> = 500;
        /// Whether scores are read.
        scores: Switch = true;
        /// How often scores are read.
        scores_every: Span<{ 10 * SECOND }, DAY> = "1m";
        /// The application key of betfair.
        app_key: SecretField;
        /// The user for signing in to betfair.
        username: SecretField;
        /// The password of that user.
        password: SecretField;
        /// A PEM certificate for signing in, together with `cert_key`.
        cert: Option<File>, such as "betfair.crt";
        /// The private key of the certificate (PEM).
        cert_key: Option<File>, such as "betfair.key";
        /// The address at which betfair signs in.
        login_url: Option<Text>, such as "https://identitysso-cert.betfair.com";
        /// The address of betfair's market names.
        api_url: Option<Text>, such as "https://api.betfair.com";
        /// Host and port of the stream.
        stream: Option<Text>, such as "stream-api.betfair.com:443";
        /// The smallest available amount that counts as a price.
        min_size: Count<u32, 0, 1_000_000> = 10;
        /// Minimum time between two messages with a market's prices.
        emit_every: Span<0, { 60 * SECOND }> = "1s";
        /// How far ahead markets are read.
        horizon: Span<HOUR, { 90 * DAY }> = "14d";
        /// The mapping of a mapped adapter, in TOML.
        mapping: Option<File>, such as "betway.toml";
        /// A mapping that is built into the program.
        recipe: Option<Text>, such as "kambi";
        /// The variables that a recipe requires.
        vars: Map<Plain>;
        /// The addresses that are read.
        urls: Texts;
        /// Files that are read and then moved away: paths with `*` in the last part.
        files: Texts;
        /// Headers of requests.
        headers: Map<PlainOrSecret>;
        /// How further pages are requested.
        page: Paging;
        /// The program of an exec adapter and its arguments.
        command: Texts;
        /// Its environment variables, in addition to PATH.
        env: Map<PlainOrSecret>;
        /// How often it is started. Unset: it runs continuously.
        every: Option<Span<SECOND, DAY>>, such as "1m";
        /// Whether the output of one run is complete.
        complete: Switch = false;
    }
}

impl Choice for &'static KindRow {
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("exec", &KINDS[0]),
        ("mapped", &KINDS[1]),
        ("the_odds_api", &KINDS[2]),
        ("betfair", &KINDS[3]),
    ];
}

impl Choice for Speed {
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("1x", Self::Times(1)),
        ("10x", Self::Times(10)),
        ("100x", Self::Times(100)),
        ("max", Self::Max),
    ];
}

/// Where a secret is stored, as given in the file.
#[derive(Clone, Debug)]
pub(crate) enum SecretRef {
    Env(String),
    File(PathBuf),
}

/// A text, or a reference to a secret.
#[derive(Clone, Debug)]
pub(crate) enum PlainOrSecretRef {
    Plain(String),
    Secret(SecretRef),
}

/// `{ env = "NAME" }` or `{ file = "PATH" }`.
pub(crate) struct SecretField;
/// A list of texts that may hold commas.
pub(crate) struct Texts;
/// `schedule`.
pub(crate) struct Rows;
/// `page`.
pub(crate) struct Paging;
/// A table of names and values.
pub(crate) struct Map<F>(std::marker::PhantomData<F>);
pub(crate) struct Plain;
pub(crate) struct PlainOrSecret;

/// A value of a [`Map`].
pub(crate) trait Entry {
    type Value;
    fn read(reader: &mut Reader, path: &str, node: &Node) -> Option<Self::Value>;
    fn show(value: &Self::Value) -> toml::Value;
}

fn text_of(reader: &mut Reader, path: &str, node: &Node) -> Option<String> {
    let given = node.given.last();
    match given {
        Some(given) if given.kind.is_none_or(|kind| kind == Kind::Text) => Some(given.text.clone()),
        _ => {
            reader.faults.push(Fault(node.origin(), format!("`{path}` must be a text, in quotes")));
            None
        }
    }
}

impl Entry for Plain {
    type Value = String;

    fn read(reader: &mut Reader, path: &str, node: &Node) -> Option<String> {
        text_of(reader, path, node)
    }

    fn show(value: &String) -> toml::Value {
        toml::Value::String(value.clone())
    }
}

impl Entry for PlainOrSecret {
    type Value = PlainOrSecretRef;

    fn read(reader: &mut Reader, path: &str, node: &Node) -> Option<PlainOrSecretRef> {
        if node.table.is_some() {
            return secret_of(reader, path, node).map(PlainOrSecretRef::Secret);
        }
        text_of(reader, path, node).map(PlainOrSecretRef::Plain)
    }

    fn show(value: &PlainOrSecretRef) -> toml::Value {
        match value {
            PlainOrSecretRef::Plain(text) => toml::Value::String(text.clone()),
            PlainOrSecretRef::Secret(secret) => secret.show(),
        }
    }
}

impl SecretRef {
    fn show(&self) -> toml::Value {
        let (key, text) = match self {
            Self::Env(name) => ("env", name.clone()),
            Self::File(path) => ("file", path.display().to_string()),
        };
        toml::Value::Table([(key.to_owned(), toml::Value::String(text))].into_iter().collect())
    }
}

const SECRET_FORM: &str =
    "must be { env = \"NAME\" } or { file = \"PATH\" }, never the secret itself";

/// Reads the reference to a secret. An invalid value may be the secret itself, so no message repeats it.
fn secret_of(reader: &mut Reader, path: &str, node: &Node) -> Option<SecretRef> {
    let child = |name: &str| {
        let given = node.children.get(name)?.given.last()?;
        (given.kind.is_none_or(|kind| kind == Kind::Text) && !given.text.is_empty())
            .then(|| given.text.clone())
    };
    let found = match (child("env"), child("file")) {
        (Some(name), None) if node.children.len() == 1 => Some(SecretRef::Env(name)),
        (None, Some(file)) if node.children.len() == 1 => Some(SecretRef::File(file.into())),
        _ => None,
    };
    if found.is_none() || !node.given.is_empty() {
        reader.faults.push(Fault(node.origin(), format!("`{path}` {SECRET_FORM}")));
        return None;
    }
    found
}

/// Records a setting whose value is TOML.
fn note(
    reader: &mut Reader,
    path: &str,
    about: About,
    takes: &str,
    environment: InEnvironment,
    value: Option<(Origin, toml::Value)>,
) {
    reader.settings.push(Setting {
        path: path.to_owned(),
        about,
        kind: Kind::Inline,
        takes: takes.to_owned(),
        value: value.map(|(origin, value)| (origin, Secret::from(value.to_string()))),
        environment,
    });
}

fn is_absent(node: &Node) -> bool {
    node.given.is_empty()
        && node.table.is_none()
        && node.children.is_empty()
        && node.rows.is_empty()
}

impl Field for SecretField {
    type Value = Option<SecretRef>;

    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<Self::Value> {
        let found = if is_absent(node) { None } else { secret_of(reader, path, node) };
        let value = found.as_ref().map(|found| (node.origin(), found.show()));
        let (takes, parts) =
            ("{ env = \"NAME\" } or { file = \"PATH\" }", InEnvironment::Parts(&["ENV", "FILE"]));
        note(reader, path, about, takes, parts, value);
        Some(found)
    }
}

impl<F: Entry> Field for Map<F> {
    type Value = BTreeMap<String, F::Value>;

    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<Self::Value> {
        reader.expect_table(path, node);
        let mut entries = BTreeMap::new();
        for (name, child) in &node.children {
            let value = F::read(reader, &join(path, name), child);
            entries.extend(value.map(|value| (name.clone(), value)));
        }
        let table = entries.iter().map(|(name, value)| (name.clone(), F::show(value))).collect();
        let value = (!entries.is_empty()).then(|| (node.origin(), toml::Value::Table(table)));
        let takes = "a table of names and texts";
        note(reader, path, about, takes, InEnvironment::Parts(&["KEY"]), value);
        Some(entries)
    }
}

impl Field for Texts {
    type Value = Option<Vec<String>>;

    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<Self::Value> {
        let takes = "a list of texts";
        let texts = node.given.last().and_then(|given| match (&given.items, given.kind) {
            (Some(items), _) => Some(items.clone()),
            (None, None) => Some(items(&given.text).map(ToOwned::to_owned).collect()),
            (None, Some(_)) => None,
        });
        if texts.is_none() && !is_absent(node) {
            reader.faults.push(Fault(node.origin(), format!("`{path}` must be {takes}")));
        }
        let show = |texts: &Vec<String>| {
            toml::Value::Array(texts.iter().map(|text| toml::Value::String(text.clone())).collect())
        };
        let value = texts.as_ref().map(|texts| (node.origin(), show(texts)));
        note(reader, path, about, takes, InEnvironment::Whole, value);
        Some(texts)
    }
}

impl Field for Rows {
    type Value = Option<Schedule>;

    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<Self::Value> {
        const TAKES: &str = "a list of { starts_within = \"1h\", every = \"1m\" }, the last without `starts_within`";
        let mut rows = Vec::new();
        let refuse = |reader: &mut Reader, why: String| {
            reader.faults.push(Fault(node.origin(), format!("`{path}` {why}")));
        };
        for (n, row) in node.rows.iter().enumerate() {
            let unknown: Vec<&String> = row
                .children
                .keys()
                .filter(|key| !["starts_within", "every"].contains(&key.as_str()))
                .collect();
            for key in unknown {
                let near = did_you_mean(key, ["starts_within", "every"].into_iter());
                refuse(reader, format!("has an unknown key `{key}` in row {}{near}", n + 1));
            }
            let span = |key: &str| {
                let given = row.children.get(key)?.given.last()?;
                parse_duration(&given.text).ok()
            };
            let every = span("every").filter(|every| *every >= Duration::from_secs(1));
            let within = span("starts_within");
            match (every, row.children.contains_key("starts_within"), within) {
                (Some(every), false, _) => rows.push(ScheduleRow { starts_within: None, every }),
                (Some(every), true, Some(within)) => {
                    rows.push(ScheduleRow { starts_within: Some(within), every });
                }
                _ => refuse(
                    reader,
                    format!(
                        "row {} must be like {{ starts_within = \"1h\", every = \"1m\" }}, `every` at least 1s",
                        n + 1
                    ),
                ),
            }
        }
        let is_whole = rows.last().is_some_and(|row| row.starts_within.is_none());
        if !is_absent(node) && !is_whole {
            refuse(reader, format!("must be {TAKES}"));
        }
        let show = |row: &ScheduleRow| {
            let text = |span: Duration| toml::Value::String(format!("{}s", span.as_secs()));
            let within = row.starts_within.map(|within| ("starts_within".to_owned(), text(within)));
            let every = ("every".to_owned(), text(row.every));
            toml::Value::Table(within.into_iter().chain([every]).collect())
        };
        let value = (!rows.is_empty())
            .then(|| (node.origin(), toml::Value::Array(rows.iter().map(show).collect())));
        note(reader, path, about, TAKES, InEnvironment::Never, value);
        Some(is_whole.then(|| Schedule::new(rows)))
    }
}

impl Field for Paging {
    type Value = Option<Page>;

    fn read(reader: &mut Reader, path: &str, node: &Node, about: About) -> Option<Self::Value> {
        const TAKES: &str =
            "{ param = \"cursor\", next = \"PATH\" } or { param = \"offset\", step = 100 }";
        let text = |name: &str| Some(node.children.get(name)?.given.last()?.text.clone());
        let page = match (text("param"), text("next"), text("step").map(|step| step.parse())) {
            (Some(param), Some(next), None) => Some(Page::Next { param, path: next }),
            (Some(param), None, Some(Ok(step))) if step > 0 => Some(Page::Step { param, step }),
            _ => None,
        };
        if page.is_none() && !is_absent(node) {
            reader.faults.push(Fault(node.origin(), format!("`{path}` must be {TAKES}")));
        }
        let value = page.as_ref().map(|page| (node.origin(), toml::Value::Table(page.to_toml())));
        let parts = InEnvironment::Parts(&["PARAM", "NEXT", "STEP"]);
        note(reader, path, about, TAKES, parts, value);
        Some(page)
    }
}
