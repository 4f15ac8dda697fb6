//! Compiles a mapping's TOML to rules: reports every fault at once, and the nearest known name for an unknown one.

use std::collections::BTreeMap;
use std::fmt;

use domain::market::{Market, MarketAlias};
use domain::price::Format;
use domain::suggest::did_you_mean;
use jiff::tz::TimeZone;

use super::document::Symbols;
use super::names::Names;
use super::path::Path;
use super::rule::{EventRule, MarketRule, OutcomeRule, PriceFormat, ScoreRule};
use super::time;
use super::value::{Condition, Table, Value};

/// All faults of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for Faults {}

/// The form of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputFormat {
    Json,
    Ndjson,
    Xml,
    Csv,
}

/// The way to request further pages of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The query parameter.
    pub param: String,
    /// Increment from page to page; `None` if the previous page contains the value ([`super::Mapped::next_page`]).
    pub step: Option<u64>,
}

/// A compiled mapping.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub(super) symbols: Symbols,
    pub(super) tables: Vec<Table>,
    pub(super) zone: TimeZone,
    pub(super) format: InputFormat,
    pub(super) complete: bool,
    pub(super) event: EventRule,
    pub(super) markets: Vec<MarketRule>,
    pub(super) score: Option<ScoreRule>,
    pub(super) next: Option<Value>,
    page: Option<Page>,
    urls: Vec<String>,
    headers: BTreeMap<String, String>,
}

impl Mapping {
    /// Compiles a mapping.
    ///
    /// # Errors
    /// All faults of the mapping.
    pub fn compile(text: &str) -> Result<Self, Faults> {
        let top: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            Faults(vec![format!("not TOML: {}", error.to_string().trim_end().replace('\n', " "))])
        })?;
        Compiler::default().mapping(&top)
    }

    /// True if a read contains everything that its unit offers (`complete`, true unless set).
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// True if the configuration must name the bookmaker, because a market of the mapping does not.
    pub fn needs_bookmaker(&self) -> bool {
        self.markets.iter().any(|market| market.bookmaker.is_none())
    }

    /// The addresses of a recipe; empty if the configuration provides them.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Headers of a recipe's requests.
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }

    /// The paging of a recipe.
    pub fn page(&self) -> Option<&Page> {
        self.page.as_ref()
    }

    /// Sets the paging from the configuration: `{ param, next }` or `{ param, step }`.
    ///
    /// # Errors
    /// The faults of the setting.
    pub fn set_page(&mut self, page: &toml::Table) -> Result<(), Faults> {
        let mut compiler = Compiler::default();
        let tables = Vec::new();
        let zone = self.zone.clone();
        let mut names = Names { symbols: &mut self.symbols, zone: &zone, tables: &tables };
        let (page, next) = compiler.page(page, &mut names);
        (self.page, self.next) = (page, next);
        compiler.finish(())
    }
}

#[derive(Default)]
struct Compiler {
    faults: Vec<String>,
}

const TOP: [&str; 11] = [
    "format", "zone", "complete", "event", "market", "score", "tables", "urls", "headers", "page",
    "vars",
];
const EVENT: [&str; 11] = [
    "each",
    "group",
    "when",
    "list",
    "ref",
    "sport",
    "competition",
    "commence_time",
    "home",
    "away",
    "title",
];
const MARKET: [&str; 10] =
    ["each", "join", "when", "bookmaker", "key", "group", "format", "suspended", "ts", "outcome"];
const OUTCOME: [&str; 5] = ["each", "when", "name", "price", "point"];
const SCORE: [&str; 5] = ["when", "status", "home_score", "away_score", "winner"];
const FORMATS: [&str; 4] = ["json", "ndjson", "xml", "csv"];

/// One table of the mapping, with its path.
struct At<'t> {
    table: &'t toml::Table,
    path: String,
}

impl Compiler {
    fn fault(&mut self, path: &str, reason: impl fmt::Display) {
        self.faults.push(format!("{path}: {reason}"));
    }

    fn finish<T>(self, value: T) -> Result<T, Faults> {
        if self.faults.is_empty() { Ok(value) } else { Err(Faults(self.faults)) }
    }

    fn mapping(mut self, top: &toml::Table) -> Result<Mapping, Faults> {
        self.unknown("", top, &TOP);
        let format = self.input_format(top);
        let zone = match top.get("zone").map(|zone| zone.as_str().ok_or(())) {
            None => TimeZone::UTC,
            Some(Ok(name)) => time::parse_zone(name).unwrap_or_else(|reason| {
                self.fault("zone", reason);
                TimeZone::UTC
            }),
            Some(Err(())) => {
                self.fault("zone", "must be a text");
                TimeZone::UTC
            }
        };
        let complete = self.flag(top, "complete").unwrap_or(true);
        let (table_names, tables) = self.tables(top);
        let mut symbols = Symbols::default();
        let mut names = Names { symbols: &mut symbols, zone: &zone, tables: &table_names };
        let event = self.event(top, &mut names);
        let markets = self.list(top, "market", "").into_iter();
        let markets: Vec<_> =
            markets.filter_map(|market| self.market(&market, &mut names)).collect();
        let score = self.sub(top, "score").and_then(|at| self.score(&at, &mut names));
        let (page, next) = match top.get("page").map(toml::Value::as_table) {
            Some(Some(page)) => self.page(page, &mut names),
            Some(None) => {
                self.fault("page", "must be `{ param, next }` or `{ param, step }`");
                (None, None)
            }
            None => (None, None),
        };
        let urls = self.texts(top, "urls");
        let headers = self.headers(top);
        let Some(event) = event else {
            self.faults.extend((self.faults.is_empty()).then(|| "[event] is missing".to_owned()));
            return Err(Faults(self.faults));
        };
        self.finish(Mapping {
            symbols,
            tables,
            zone,
            format,
            complete,
            event,
            markets,
            score,
            next,
            page,
            urls,
            headers,
        })
    }

    fn input_format(&mut self, top: &toml::Table) -> InputFormat {
        let named = top.get("format").and_then(toml::Value::as_str);
        match named {
            Some("json") => InputFormat::Json,
            Some("ndjson") => InputFormat::Ndjson,
            Some("xml") => InputFormat::Xml,
            Some("csv") => InputFormat::Csv,
            Some(other) => {
                let near = did_you_mean(other, FORMATS.into_iter());
                self.fault("format", format!("`{other}` is not json, ndjson, xml or csv{near}"));
                InputFormat::Json
            }
            None => {
                self.fault("format", "is missing: json, ndjson, xml or csv");
                InputFormat::Json
            }
        }
    }

    fn tables(&mut self, top: &toml::Table) -> (Vec<String>, Vec<Table>) {
        let mut names = Vec::new();
        let mut tables = Vec::new();
        let all = top.get("tables").and_then(toml::Value::as_table);
        for (name, entries) in all.into_iter().flatten() {
            let path = format!("tables.{name}");
            let mut table = Table::default();
            let Some(entries) = entries.as_table() else {
                self.fault(&path, "must be a table of texts");
                continue;
            };
            for (from, to) in entries {
                match literal(to) {
                    Some(to) if from == "*" => table.otherwise = Some(to.into()),
                    Some(to) => drop(table.entries.insert(from.as_str().into(), to.into())),
                    None => self.fault(&path, format!("`{from}` must be a text")),
                }
            }
            names.push(name.clone());
            tables.push(table);
        }
        (names, tables)
    }

    fn event(&mut self, top: &toml::Table, names: &mut Names<'_>) -> Option<EventRule> {
        let at = self.sub(top, "event")?;
        self.unknown("event", at.table, &EVENT);
        let list = self.conditions(&at, "list", names);
        let prices_only = at.table.get("list").and_then(toml::Value::as_bool) == Some(false);
        if !prices_only {
            for key in ["competition", "commence_time"] {
                if !at.table.contains_key(key) {
                    self.fault("event", format!("`{key}` is missing"));
                }
            }
            let sides = ["home", "away"].map(|key| at.table.contains_key(key));
            if !at.table.contains_key("title") && sides != [true, true] {
                self.fault("event", "`home` and `away`, or `title`, are missing");
            }
        }
        let each = self.path(&at, "each", names);
        let group = self.value(&at, "group", names);
        let when = self.conditions(&at, "when", names);
        let reference = self.needed(&at, "ref", names);
        let sport = self.needed(&at, "sport", names);
        Some(EventRule {
            each,
            group,
            when,
            list,
            competition: self.value(&at, "competition", names),
            commence_time: self.value(&at, "commence_time", names),
            home: self.value(&at, "home", names),
            away: self.value(&at, "away", names),
            title: self.value(&at, "title", names),
            reference: reference?,
            sport: sport?,
        })
    }

    fn market(&mut self, at: &At<'_>, names: &mut Names<'_>) -> Option<MarketRule> {
        self.unknown(&at.path, at.table, &MARKET);
        let outcomes = self.list(at.table, "outcome", &at.path);
        if outcomes.is_empty() {
            self.fault(&at.path, "there is no [[market.outcome]]");
        }
        let outcomes = outcomes.into_iter();
        let outcomes = outcomes.filter_map(|outcome| self.outcome(&outcome, names)).collect();
        let key = match at.table.get("key").and_then(toml::Value::as_str) {
            // A literal market key: it cannot be meant as a path.
            Some(key) if Market::parse(key).is_some() || MarketAlias::parse(key).is_some() => {
                Some(Value::constant(key))
            }
            _ => self.needed(at, "key", names),
        };
        let each = self.path(at, "each", names);
        if at.table.contains_key("join") && each.is_none() {
            self.fault(&at.path, "`join` needs `each`: the items that are joined");
        }
        Some(MarketRule {
            each,
            join: self.value(at, "join", names),
            when: self.conditions(at, "when", names),
            bookmaker: self.value(at, "bookmaker", names),
            group: self.value(at, "group", names),
            format: self.price_format(at, names),
            suspended: self.conditions(at, "suspended", names),
            ts: self.value(at, "ts", names),
            key: key?,
            outcomes,
        })
    }

    fn price_format(&mut self, at: &At<'_>, names: &mut Names<'_>) -> PriceFormat {
        match at.table.get("format").and_then(toml::Value::as_str) {
            Some("auto") => PriceFormat::Auto,
            Some(known) if Format::parse(known).is_some() => {
                Format::parse(known).map_or(PriceFormat::Auto, PriceFormat::Is)
            }
            _ => match self.needed(at, "format", names) {
                Some(value) => PriceFormat::Named(value),
                None => PriceFormat::Auto,
            },
        }
    }

    fn outcome(&mut self, at: &At<'_>, names: &mut Names<'_>) -> Option<OutcomeRule> {
        self.unknown(&at.path, at.table, &OUTCOME);
        let each = self.path(at, "each", names);
        let when = self.conditions(at, "when", names);
        let name = side(at, "name").or_else(|| self.needed(at, "name", names));
        let price = self.needed(at, "price", names);
        let point = self.value(at, "point", names);
        Some(OutcomeRule { each, when, name: name?, price: price?, point })
    }

    fn score(&mut self, at: &At<'_>, names: &mut Names<'_>) -> Option<ScoreRule> {
        self.unknown(&at.path, at.table, &SCORE);
        let status = self.needed(at, "status", names);
        Some(ScoreRule {
            when: self.conditions(at, "when", names),
            home_score: self.value(at, "home_score", names),
            away_score: self.value(at, "away_score", names),
            winner: side(at, "winner").or_else(|| self.value(at, "winner", names)),
            status: status?,
        })
    }

    fn page(&mut self, page: &toml::Table, names: &mut Names<'_>) -> (Option<Page>, Option<Value>) {
        self.unknown("page", page, &["param", "next", "step"]);
        let at = At { table: page, path: "page".to_owned() };
        let next = self.value(&at, "next", names);
        let step = page.get("step").map(|step| {
            let step = step.as_integer().and_then(|step| u64::try_from(step).ok());
            step.filter(|step| *step > 0)
        });
        if step == Some(None) {
            self.fault("page.step", "must be a whole number above 0");
        }
        if next.is_some() == step.is_some() {
            self.fault("page", "needs either `next` or `step`");
        }
        match page.get("param").and_then(toml::Value::as_str) {
            Some(param) => (Some(Page { param: param.to_owned(), step: step.flatten() }), next),
            None => {
                self.fault("page", "`param` is missing: the query parameter");
                (None, None)
            }
        }
    }

    fn headers(&mut self, top: &toml::Table) -> BTreeMap<String, String> {
        let headers = top.get("headers").and_then(toml::Value::as_table);
        let mut texts = BTreeMap::new();
        for (name, value) in headers.into_iter().flatten() {
            match value.as_str() {
                Some(value) => drop(texts.insert(name.clone(), value.to_owned())),
                None => self.fault("headers", format!("`{name}` must be a text")),
            }
        }
        texts
    }

    fn texts(&mut self, table: &toml::Table, key: &str) -> Vec<String> {
        let Some(value) = table.get(key) else {
            return Vec::new();
        };
        let items = value.as_array().map(|items| {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        items.flatten().unwrap_or_else(|| {
            self.fault(key, "must be a list of texts");
            Vec::new()
        })
    }

    fn unknown(&mut self, path: &str, table: &toml::Table, known: &[&'static str]) {
        for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
            let near = did_you_mean(key, known.iter().copied());
            let place =
                if path.is_empty() { "the mapping".to_owned() } else { format!("[{path}]") };
            self.faults.push(format!("{place} has no key `{key}`{near}"));
        }
    }

    fn flag(&mut self, table: &toml::Table, key: &str) -> Option<bool> {
        let value = table.get(key)?;
        if value.as_bool().is_none() {
            self.fault(key, "must be true or false");
        }
        value.as_bool()
    }

    fn sub<'t>(&mut self, top: &'t toml::Table, key: &str) -> Option<At<'t>> {
        let value = top.get(key)?;
        let Some(table) = value.as_table() else {
            self.fault(key, "must be a table");
            return None;
        };
        Some(At { table, path: key.to_owned() })
    }

    fn list<'t>(&mut self, table: &'t toml::Table, key: &str, within: &str) -> Vec<At<'t>> {
        let Some(value) = table.get(key) else {
            return Vec::new();
        };
        let dot = if within.is_empty() { "" } else { "." };
        let items = value.as_array().map(|items| {
            let items = items.iter().enumerate().map(|(index, item)| {
                let path = format!("{within}{dot}{key}[{index}]");
                item.as_table().map(|table| At { table, path })
            });
            items.collect::<Option<Vec<_>>>()
        });
        items.flatten().unwrap_or_else(|| {
            self.fault(key, format!("must be written as [[{key}]]"));
            Vec::new()
        })
    }

    fn path(&mut self, at: &At<'_>, key: &str, names: &mut Names<'_>) -> Option<Path> {
        let place = format!("{}.{key}", at.path);
        let Some(text) = at.table.get(key)?.as_str() else {
            self.fault(&place, "must be a path");
            return None;
        };
        Path::parse(text, names.symbols).map_err(|reason| self.fault(&place, reason)).ok()
    }

    fn needed(&mut self, at: &At<'_>, key: &str, names: &mut Names<'_>) -> Option<Value> {
        if !at.table.contains_key(key) {
            self.fault(&at.path, format!("`{key}` is missing"));
        }
        self.value(at, key, names)
    }

    fn value(&mut self, at: &At<'_>, key: &str, names: &mut Names<'_>) -> Option<Value> {
        let place = format!("{}.{key}", at.path);
        let parsed = match at.table.get(key)? {
            toml::Value::String(text) => Value::parse(&[text], names),
            toml::Value::Array(items) => {
                let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
                match texts.filter(|texts| !texts.is_empty()) {
                    Some(texts) => Value::parse(&texts, names),
                    None => Err("must be a text or a list of texts".to_owned()),
                }
            }
            other @ (toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Table(_)) => match literal(other) {
                Some(text) => Ok(Value::constant(&text)),
                None => Err("must be a text or a list of texts".to_owned()),
            },
        };
        parsed.map_err(|reason| self.fault(&place, reason)).ok()
    }

    fn conditions(&mut self, at: &At<'_>, key: &str, names: &mut Names<'_>) -> Vec<Condition> {
        let place = format!("{}.{key}", at.path);
        let texts: Vec<&str> = match at.table.get(key) {
            None => return Vec::new(),
            Some(toml::Value::Boolean(holds)) => return vec![Condition::constant(*holds)],
            Some(toml::Value::String(text)) => vec![text],
            Some(toml::Value::Array(items)) => {
                let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
                texts.unwrap_or_else(|| {
                    self.fault(&place, "must be conditions as texts");
                    Vec::new()
                })
            }
            Some(_) => {
                self.fault(&place, "must be a condition or a list of conditions");
                Vec::new()
            }
        };
        let parsed = texts.into_iter().map(|text| Condition::parse(text, names));
        let mut conditions = Vec::new();
        for condition in parsed {
            match condition {
                Ok(condition) => conditions.push(condition),
                Err(reason) => self.fault(&place, reason),
            }
        }
        conditions
    }
}

/// `@home` or `@away` as a constant: it means a participant, not an attribute.
fn side(at: &At<'_>, key: &str) -> Option<Value> {
    match at.table.get(key).and_then(toml::Value::as_str) {
        Some(side @ ("@home" | "@away")) => Some(Value::constant(side)),
        _ => None,
    }
}

/// The text of a scalar TOML value.
fn literal(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(instant) => Some(instant.to_string()),
        toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}
