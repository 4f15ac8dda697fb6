//! Parameters: each with its exact type, bounds and default.

use domain::{Catalogue, Format, Market, MarketAlias, Region, Sport, Status};
use serde_json::{Value, json};

use crate::openapi::{object, refer};
use crate::operation::Operation;
use crate::v1::param::{EVENT_IDS_MAX, GROUP_BY_BOUT, LIMIT_DEFAULT, LIMIT_MAX, Param};

/// A cursor is a short text of this alphabet, to be sent back as it came.
const CURSOR_PATTERN: &str = "^[A-Za-z0-9_-]+$";

/// The parameters of an operation, by reference. `api_key` is a security scheme instead.
pub fn of(operation: Operation) -> Vec<Value> {
    let template = operation.row().path.unwrap_or_default();
    let in_path = ["sport_key", "event_id"].into_iter().filter(|name| template.contains(name));
    let in_query = operation.row().params.iter().filter(|param| **param != Param::ApiKey);
    let conditional = (!operation.is_free()).then_some("If-None-Match");
    in_path
        .chain(in_query.map(|param| param.name()))
        .chain(conditional)
        .map(|name| refer("parameters", name))
        .collect()
}

/// Every parameter of every operation.
pub fn all(catalogue: &Catalogue) -> Value {
    let mut params: Vec<Param> =
        Operation::v1().flat_map(|operation| operation.row().params).copied().collect();
    params.sort_by_key(|param| param.index());
    params.dedup();
    let in_query = params.into_iter().filter(|param| *param != Param::ApiKey);
    let in_query = in_query.map(|param| (param.name().to_owned(), in_query_of(param, catalogue)));
    object(in_path(catalogue).into_iter().chain(in_query).chain([if_none_match()]))
}

fn in_path(catalogue: &Catalogue) -> [(String, Value); 2] {
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
        "description": "The event's id, as odds, scores and events give it.",
        "schema": { "type": "string" },
        "example": super::example::EVENT_ID,
    });
    [("sport_key".to_owned(), sport_key), ("event_id".to_owned(), event_id)]
}

fn if_none_match() -> (String, Value) {
    let name = "If-None-Match".to_owned();
    let value = json!({
        "name": name,
        "in": "header",
        "description": "The `ETag` of the answer you hold: 304 while it is still the answer.",
        "schema": { "type": "string" },
    });
    (name, value)
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
        Param::OddsFormat => json!({
            "type": "string",
            "enum": Format::ALL.map(Format::key),
            "default": Format::American.key(),
        }),
        Param::EventIds => json!({
            "type": "string",
            "pattern": format!("^[^,]+(,[^,]+){{0,{}}}$", EVENT_IDS_MAX - 1),
            "examples": [super::example::EVENT_ID],
        }),
        Param::GroupBy => json!({ "type": "string", "enum": [GROUP_BY_BOUT] }),
        Param::Status => json!({ "type": "string", "enum": Status::ALL.map(Status::key) }),
        Param::CommenceFrom | Param::CommenceTo => {
            json!({ "type": "string", "format": "date-time", "examples": ["2026-11-14T23:38:00Z"] })
        }
        Param::Limit => json!({
            "type": "integer",
            "minimum": 1,
            "maximum": LIMIT_MAX,
            "default": LIMIT_DEFAULT,
        }),
        Param::Cursor => json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "pattern": CURSOR_PATTERN,
        }),
        Param::ApiKey => json!({ "type": "string" }),
    }
}

/// A list is a string with commas: generated clients repeat the parameter for each item of an array, whatever `explode`
/// says. They also send every `default`, and with `bookmaker` there is none here, so the description has it. `x-values`
/// are the items, for the reference and the explorer.
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

/// The market keys, and the prior interface's names with what they stand for.
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
