//! Parameters with exact types, bounds and defaults.

use market::analysis::Method;

use domain::{Catalogue, Format, Market, MarketAlias, Region, Sport, Status};
use engine::Table;
use serde::Serialize;
use serde_json::{Value, json};

use crate::openapi::{object, refer};
use crate::operation::Operation;
use crate::v1::export::tables;
use crate::v1::param::{
    BOOKMAKERS_MAX, CHANGES, CONSENSUS, EVENT_IDS_MAX, FORMAT_CSV, FORMAT_JSON, GROUP_BY_BOUT,
    HEARTBEAT_S_DEFAULT, HEARTBEAT_S_MAX, HEARTBEAT_S_MIN, LIMIT_DEFAULT, LIMIT_MAX, LINEAGE_MAX,
    MAX_AGE_S_MAX, MIN_BOOKS_MAX, NAME_CHARS_MAX, NAME_CHARS_MIN, POINTS_DEFAULT, POINTS_MAX,
    Param, REFERENCES_MAX, STAKE_DEFAULT, STAKE_MAX,
};
use crate::v1::query::stream::REPLAYS;
use crate::v1::wire::stream::{Channel, Freshness, Mode};

/// A cursor is a short text of this alphabet; clients send it back unchanged.
const CURSOR_PATTERN: &str = "^[A-Za-z0-9_-]+$";

/// The parameters of an operation, as references. `api_key` is a security scheme instead.
pub fn of(operation: Operation) -> Vec<Value> {
    let template = operation.row().path.unwrap_or_default();
    let in_path = ["sport_key", "event_id", "table", "date"].into_iter();
    let in_path = in_path.filter(|name| template.contains(&format!("{{{name}}}")));
    let in_query = operation.row().params().iter().filter(|param| **param != Param::ApiKey);
    let tagged = operation.is_kept() || operation.is_file();
    let conditional = tagged.then_some(IF_NONE_MATCH).into_iter();
    let ranged = [RANGE, IF_RANGE].into_iter().filter(|_| operation.is_file());
    let resumed = operation.is_stream().then_some(LAST_EVENT_ID);
    in_path
        .chain(in_query.map(|param| component(*param)))
        .chain(conditional.chain(ranged).chain(resumed))
        .map(|name| refer("parameters", name))
        .collect()
}

/// Component name of a parameter: two parameters can have one name in queries.
const fn component(param: Param) -> &'static str {
    if matches!(param, Param::PointLimit) { "limit_of_points" } else { param.name() }
}

/// Every parameter of every operation.
pub fn all(catalogue: &Catalogue) -> Value {
    let mut params: Vec<Param> =
        Operation::v1().flat_map(|operation| operation.row().params()).copied().collect();
    params.sort_by_key(|param| param.index());
    params.dedup();
    let in_query = params.into_iter().filter(|param| *param != Param::ApiKey);
    let in_query =
        in_query.map(|param| (component(param).to_owned(), in_query_of(param, catalogue)));
    object(in_path(catalogue).into_iter().chain(in_query).chain(in_header()))
}

fn in_path(catalogue: &Catalogue) -> [(String, Value); 4] {
    let sports: Vec<&str> = catalogue.sports().map(|(_, sport)| &*sport.key).collect();
    let sport_key = json!({
        "name": "sport_key",
        "in": "path",
        "required": true,
        "description": "The sport's key, as `/v1/sports` lists it.",
        "schema": { "type": "string", "enum": sports },
    });
    let event_id = json!({
        "name": "event_id",
        "in": "path",
        "required": true,
        "description": "The event's id, as in odds, scores and events.",
        "schema": { "type": "string" },
        "example": super::example::EVENT_ID,
    });
    let tables: Vec<&str> = tables().map(Table::key).collect();
    let table = json!({
        "name": "table",
        "in": "path",
        "required": true,
        "description": "The table of the archive. `epochs` is the same for every sport.",
        "schema": { "type": "string", "enum": tables },
    });
    let date = json!({
        "name": "date",
        "in": "path",
        "required": true,
        "description": "The day of the publications, in UTC.",
        "schema": { "type": "string", "format": "date" },
        "example": "2026-11-14",
    });
    let named =
        [("sport_key", sport_key), ("event_id", event_id), ("table", table), ("date", date)];
    named.map(|(name, value)| (name.to_owned(), value))
}

const IF_NONE_MATCH: &str = "If-None-Match";
const RANGE: &str = "Range";
const IF_RANGE: &str = "If-Range";
const LAST_EVENT_ID: &str = "Last-Event-ID";

fn in_header() -> [(String, Value); 4] {
    let held = "The `ETag` of an earlier answer: 304 if the answer has not changed.";
    let range = "The requested bytes of the file, such as `bytes=0-1023`; a request for several ranges returns the \
                whole file.";
    let same = "The `ETag` of the file to which `Range` applies; if the file has changed, the whole file is sent.";
    let last = "The `id` of the last `cut` received, to resume from there: the same as a cursor in `since`, over \
                which it takes precedence. A value that cannot be used gives `reset` and a snapshot.";
    let all = [(IF_NONE_MATCH, held), (RANGE, range), (IF_RANGE, same), (LAST_EVENT_ID, last)];
    all.map(|(name, meaning)| {
        let value = json!({
            "name": name,
            "in": "header",
            "description": meaning,
            "schema": { "type": "string" },
        });
        (name.to_owned(), value)
    })
}

fn in_query_of(param: Param, catalogue: &Catalogue) -> Value {
    let mut parameter = json!({
        "name": param.name(),
        "in": "query",
        "description": param.meaning(),
    });
    if let Some(fields) = parameter.as_object_mut() {
        if param == Param::Region {
            fields.insert("deprecated".to_owned(), true.into());
        }
        fields.insert("schema".to_owned(), schema(param, catalogue));
    }
    parameter
}

fn schema(param: Param, catalogue: &Catalogue) -> Value {
    match param {
        Param::Market => market(catalogue),
        Param::Bookmaker => {
            let keys: Vec<&str> = catalogue.bookmakers().map(|(_, held)| &*held.key).collect();
            json!({ "type": "string", "enum": keys })
        }
        Param::Regions | Param::Region => regions(),
        Param::OddsFormat => choice(&Format::ALL.map(Format::key), Format::American.key()),
        Param::EventIds => json!({
            "type": "string",
            "pattern": format!("^[^,]+(,[^,]+){{0,{}}}$", EVENT_IDS_MAX - 1),
            "examples": [super::example::EVENT_ID],
        }),
        Param::GroupBy => json!({ "type": "string", "enum": [GROUP_BY_BOUT] }),
        Param::Status => json!({ "type": "string", "enum": Status::ALL.map(Status::key) }),
        Param::CommenceFrom
        | Param::CommenceTo
        | Param::AsOf
        | Param::Until
        | Param::From
        | Param::To => {
            json!({ "type": "string", "format": "date-time", "examples": ["2026-11-14T23:38:00Z"] })
        }
        Param::Name => json!({
            "type": "string",
            "minLength": NAME_CHARS_MIN,
            "maxLength": NAME_CHARS_MAX,
            "examples": ["open"],
        }),
        Param::Bookmakers => bookmakers(catalogue, BOOKMAKERS_MAX, None),
        Param::Reference => bookmakers(catalogue, REFERENCES_MAX, Some(CONSENSUS)),
        Param::Method => choice(&Method::ALL.map(Method::key), Method::Power.key()),
        Param::MaxAge => json!({ "type": "integer", "minimum": 1, "maximum": MAX_AGE_S_MAX }),
        Param::MinBooks => json!({ "type": "integer", "minimum": 1, "maximum": MIN_BOOKS_MAX }),
        Param::MinEv | Param::MinProfit => share("0"),
        Param::MaxCost => share("0.05"),
        Param::Stake => whole(1, STAKE_MAX, STAKE_DEFAULT),
        Param::Limit => whole(1, LIMIT_MAX, LIMIT_DEFAULT),
        Param::PointLimit => whole(1, POINTS_MAX, POINTS_DEFAULT),
        Param::Lineage => json!({ "type": "integer", "minimum": 0, "maximum": LINEAGE_MAX }),
        Param::Changes => first_of(&CHANGES),
        Param::Since => json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "pattern": "^[A-Za-z0-9_:.+-]+$",
        }),
        Param::Sports => sports(catalogue),
        Param::Channels => channels(),
        Param::Mode => choice(&Mode::KEYS, Mode::Publication.key()),
        Param::Replay => first_of(&REPLAYS),
        Param::Freshness => first_of(&Freshness::KEYS),
        Param::Heartbeat => whole(HEARTBEAT_S_MIN, HEARTBEAT_S_MAX, HEARTBEAT_S_DEFAULT),
        Param::Cursor => json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "pattern": CURSOR_PATTERN,
        }),
        Param::Format => choice(&[FORMAT_JSON, FORMAT_CSV], FORMAT_JSON),
        Param::ApiKey => json!({ "type": "string" }),
    }
}

fn sports(catalogue: &Catalogue) -> Value {
    let keys: Vec<&str> = catalogue.sports().map(|(_, sport)| &*sport.key).collect();
    json!({
        "type": "string",
        "pattern": "^[a-z0-9_]+(,[a-z0-9_]+)*$",
        "examples": [keys.iter().take(2).copied().collect::<Vec<_>>().join(",")],
        "x-values": keys,
    })
}

fn choice(values: &[&str], default: &str) -> Value {
    json!({ "type": "string", "enum": values, "default": default })
}

/// An enumeration whose first value is the default.
fn first_of(values: &[&str]) -> Value {
    choice(values, values.first().copied().unwrap_or_default())
}

fn whole<T: Serialize>(least: T, most: T, default: T) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most, "default": default })
}

fn channels() -> Value {
    let one = Channel::KEYS.join("|");
    json!({
        "type": "string",
        "pattern": format!("^({one})(,({one}))*$"),
        "default": Channel::Odds.key(),
        "x-values": Channel::KEYS,
    })
}

/// A list is a string with commas: generated clients repeat the parameter for each item of an array, whatever
/// `explode` says. They also send every `default`, and with `bookmaker` there is no default, so the description has
/// it. `x-values` are the items, for the reference and the explorer.
fn regions() -> Value {
    let keys = Region::ALL.map(Region::key);
    let one = keys.join("|");
    json!({
        "type": "string",
        "pattern": format!("^({one})(,({one}))*$"),
        "examples": ["us,uk"],
        "x-values": keys,
    })
}

/// A list of bookmakers as a string with commas, or one other value. The pattern gives only the form: all keys would
/// make the document many times larger.
fn bookmakers(catalogue: &Catalogue, most: usize, other: Option<&str>) -> Value {
    let keys: Vec<&str> = catalogue.bookmakers().map(|(_, held)| &*held.key).collect();
    let values: Vec<&str> = other.into_iter().chain(keys.iter().copied()).collect();
    let example = other
        .map_or_else(|| keys.iter().take(2).copied().collect::<Vec<_>>().join(","), str::to_owned);
    json!({
        "type": "string",
        "pattern": format!("^[a-z0-9_]+(,[a-z0-9_]+){{0,{}}}$", most - 1),
        "examples": [example],
        "x-values": values,
    })
}

/// A number from 0 to 1 in a query. A string, so that clients do not reformat it.
fn share(default: &str) -> Value {
    json!({
        "type": "string",
        "pattern": "^(0(\\.[0-9]{1,6})?|1(\\.0{1,6})?)$",
        "default": default,
        "examples": ["0.02"],
    })
}

/// The market keys, and the prior interface's names with their meaning.
fn market(catalogue: &Catalogue) -> Value {
    let alias = |name: &'static str| {
        json!({
            "const": name,
            "deprecated": true,
            "description": format!("Prior name of {}.", meant(name, catalogue)),
        })
    };
    let keys = json!({ "enum": Market::ALL.map(Market::key) });
    let any_of: Vec<Value> = [keys].into_iter().chain(MarketAlias::KEYS.map(alias)).collect();
    json!({ "type": "string", "anyOf": any_of })
}

fn meant(alias: &str, catalogue: &Catalogue) -> String {
    match MarketAlias::parse(alias) {
        Some(MarketAlias::Is(market)) => format!("`{}`", market.key()),
        Some(MarketAlias::TheSportsTotals) => {
            let of = |(_, sport): (_, &Sport)| {
                Some(format!("`{}` ({})", sport.totals?.key(), sport.key))
            };
            catalogue.sports().filter_map(of).collect::<Vec<_>>().join(", ")
        }
        None => "nothing".to_owned(),
    }
}
