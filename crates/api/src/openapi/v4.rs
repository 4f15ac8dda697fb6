//! The OpenAPI 3.1 document of `/v4`, generated from the tables that the service runs on.

use domain::Catalogue;
use domain::v4::Region;
use serde_json::{Map, Value, json};

use crate::asset::Asset;
use crate::context::Api;
use crate::openapi::{object, refer};
use crate::operation::{Operation, Schema};
use crate::v4::Code;
use crate::v4::param::{EVENT_IDS_MAX, Param};
use crate::v4::wire;
use http::{Reply, Request};

/// Further historical paths besides the one in the operation's row, with the operations on current data they
/// correspond to.
const MORE_PATHS: [(&str, &str, Operation); 3] = [
    ("/v4/sports/{sport}/odds-history", "v4_historical_alias", Operation::V4Odds),
    ("/v4/historical/sports/{sport}/events", "v4_historical_events", Operation::V4Events),
    (
        "/v4/historical/sports/{sport}/events/{eventId}/odds",
        "v4_historical_event_odds",
        Operation::V4EventOdds,
    ),
];

/// The document for the embedded catalogue, as JSON text.
pub fn document() -> String {
    // The embedded catalogue is valid: a test loads it.
    Catalogue::load(None).map(|catalogue| text(&catalogue)).unwrap_or_default()
}

/// `/openapi/v4.json`: the document for the catalogue in use.
pub fn reply(api: &Api, request: &Request<'_>) -> Reply {
    let make = || Asset::new("application/json", text(&api.catalogue));
    api.openapi_v4.get_or_init(make).reply(request)
}

/// The document for a catalogue, as JSON text.
pub fn text(catalogue: &Catalogue) -> String {
    format!("{:#}\n", value(catalogue))
}

/// The document as a value.
pub fn value(catalogue: &Catalogue) -> Value {
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Linesman /v4",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "The prior interface over the same data, for programs written for it.",
            "description": "A program written for The Odds API v4 works with this base URL and a key of this \
                            service. The page `/docs/v4` has the migration, the costs and the differences.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The service that serves this document." }],
        "security": [{ "ApiKeyQuery": [] }, { "ApiKeyQuerySnake": [] }, { "ApiKeyHeader": [] }],
        "paths": paths(),
        "components": {
            "schemas": schemas(catalogue),
            "parameters": parameters(),
            "headers": headers(),
            "responses": responses(),
            "securitySchemes": {
                "ApiKeyQuery": { "type": "apiKey", "in": "query", "name": "apiKey" },
                "ApiKeyQuerySnake": { "type": "apiKey", "in": "query", "name": "api_key" },
                "ApiKeyHeader": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            },
        },
    })
}

fn paths() -> Value {
    let named = Operation::v4().map(|operation| {
        let row = operation.row();
        let of = if operation == Operation::V4Historical { Operation::V4Odds } else { operation };
        (row.path.unwrap_or_default(), row.name, operation, of)
    });
    let more = MORE_PATHS.map(|(path, name, of)| (path, name, Operation::V4Historical, of));
    let mut paths = Map::new();
    for (path, name, operation, of) in named.chain(more) {
        paths.insert(path.to_owned(), path_item(path, name, operation, of));
    }
    Value::Object(paths)
}

/// `of`: the operation on current data.
fn path_item(path: &str, name: &str, operation: Operation, of: Operation) -> Value {
    let row = operation.row();
    let in_path = [("{sport}", "sport"), ("{eventId}", "eventId")];
    let in_path = in_path.into_iter().filter(|(part, _)| path.contains(part));
    let names = in_path.map(|(_, name)| name);
    let names = names.chain(operation.v4_params(of).map(Param::name));
    let parameters: Vec<Value> = names.map(|name| refer("parameters", name)).collect();
    let responses = |body: bool| {
        let mut responses = Map::new();
        if let Some(schema) = of.row().schemas.first() {
            let schema = schema_of(*schema);
            let schema = if operation == of { schema } else { historical(&schema) };
            let mut ok = json!({ "description": row.answer, "headers": header_refs(&OK_HEADERS) });
            if let (true, Some(fields)) = (body, ok.as_object_mut()) {
                let content = json!({ "application/json": { "schema": schema } });
                fields.insert("content".to_owned(), content);
            }
            responses.insert("200".to_owned(), ok);
            responses.insert("304".to_owned(), refer("responses", "NotModified"));
        }
        for status in statuses() {
            if status != 422 || !parameters.is_empty() {
                let name = response_name(status);
                responses.insert(status.to_string(), refer("responses", &name));
            }
        }
        Value::Object(responses)
    };
    let operation = |name: String, summary: String, body: bool| {
        json!({
            "tags": [row.tag],
            "operationId": name,
            "summary": summary,
            "description": row.meaning,
            "responses": responses(body),
        })
    };
    json!({
        "parameters": parameters,
        "get": operation(name.to_owned(), row.title.to_owned(), true),
        "head": operation(format!("{name}_head"), format!("{} (headers only)", row.title), false),
    })
}

fn schema_of(schema: Schema) -> Value {
    match schema {
        Schema::One(name) => refer("schemas", name),
        Schema::ListOf(name) => json!({ "type": "array", "items": refer("schemas", name) }),
    }
}

/// Wraps a schema as historical data.
fn historical(data: &Value) -> Value {
    let time = refer("schemas", "Time");
    let time_or_null = json!({ "anyOf": [time, { "type": "null" }] });
    let [own, previous, next] = wire::HISTORICAL_TIMES;
    json!({
        "type": "object",
        "required": [own, previous, next, "data"],
        "properties": { own: time, previous: time_or_null, next: time_or_null, "data": data },
    })
}

fn schemas(catalogue: &Catalogue) -> Value {
    let keys = catalogue.v4().bookmakers().map(|(_, bookmaker)| &*bookmaker.key);
    let keys: Vec<&str> = keys.collect();
    object([
        ("Sport".to_owned(), wire::Sport::schema()),
        ("Event".to_owned(), wire::Event::schema()),
        ("OddsEvent".to_owned(), wire::OddsEvent::schema()),
        ("EventOdds".to_owned(), wire::EventOdds::schema()),
        ("EventMarkets".to_owned(), wire::EventMarkets::schema()),
        ("Bookmaker".to_owned(), wire::Bookmaker::schema()),
        ("EventBookmaker".to_owned(), wire::EventBookmaker::schema()),
        ("MarketsBookmaker".to_owned(), wire::MarketsBookmaker::schema()),
        ("Market".to_owned(), wire::Market::schema()),
        ("MarketName".to_owned(), wire::MarketName::schema()),
        ("Outcome".to_owned(), wire::Outcome::schema()),
        ("ScoreRecord".to_owned(), wire::ScoreRecord::schema()),
        ("Score".to_owned(), wire::Score::schema()),
        ("Participant".to_owned(), wire::Participant::schema()),
        (
            "Time".to_owned(),
            json!({
                "anyOf": [
                    { "type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$" },
                    { "type": "integer" },
                ],
                "description": "ISO 8601 in UTC; with `dateFormat=unix`, whole seconds since 1970.",
            }),
        ),
        (
            "BookmakerKey".to_owned(),
            json!({ "type": "string", "examples": keys, "description": "A bookmaker's key." }),
        ),
        ("Error".to_owned(), error_schema()),
    ])
}

fn error_schema() -> Value {
    let mut codes = Code::ALL.map(Code::slug).to_vec();
    codes.dedup();
    json!({
        "type": "object",
        "required": ["message", "error_code", "details_url"],
        "properties": {
            "message": { "type": "string", "description": "What was wrong and how to correct it." },
            "error_code": { "type": "string", "enum": codes },
            "details_url": { "type": "string", "description": "Link to the documentation of the code." },
        },
        "additionalProperties": false,
    })
}

fn parameters() -> Value {
    let path = |name: &str, example: &str, meaning: &str| {
        let schema = json!({ "type": "string", "minLength": 1 });
        let parameter = json!({
            "name": name, "in": "path", "required": true, "description": meaning, "schema": schema,
            "example": example,
        });
        (name.to_owned(), parameter)
    };
    let in_path = [
        path(
            "sport",
            "mma_mixed_martial_arts",
            "A sport key of `/v4/sports`, one of `/v1`, or `upcoming`.",
        ),
        path("eventId", "5c1e0f2a9b7744d1a3c09be2f6d81704", "An event ID."),
    ];
    let mut seen: Vec<Param> = Vec::new();
    for param in Operation::v4().flat_map(|operation| operation.row().v4_params()) {
        if !seen.contains(param) {
            seen.push(*param);
        }
    }
    let in_query = seen.into_iter().map(|param| {
        let mut value = json!({
            "name": param.name(),
            "in": "query",
            "description": param.meaning(),
            "schema": param_schema(param),
        });
        if let (Param::Date, Some(fields)) = (param, value.as_object_mut()) {
            fields.insert("required".to_owned(), true.into());
        }
        if let (true, Some(fields)) = (param.is_list(), value.as_object_mut()) {
            fields.insert("style".to_owned(), "form".into());
            fields.insert("explode".to_owned(), false.into());
        }
        (param.name().to_owned(), value)
    });
    object(in_path.into_iter().chain(in_query))
}

fn param_schema(param: Param) -> Value {
    let time = json!({ "type": "string", "examples": ["2026-11-14T23:38:00Z"] });
    match param {
        Param::All
        | Param::IncludeLinks
        | Param::IncludeSids
        | Param::IncludeBetLimits
        | Param::IncludeRotationNumbers
        | Param::IncludeMultipliers => json!({ "type": "boolean", "default": false }),
        Param::Regions => {
            let keys = Region::ALL.map(Region::key).to_vec();
            json!({ "type": "array", "items": { "type": "string", "enum": keys } })
        }
        Param::Bookmakers => json!({ "type": "array", "items": refer("schemas", "BookmakerKey") }),
        Param::Markets => json!({
            "type": "array",
            "items": { "type": "string", "examples": ["h2h", "spreads", "totals", "outrights"] },
        }),
        Param::OddsFormat => json!({
            "type": "string", "enum": ["decimal", "american"], "default": "decimal",
        }),
        Param::DateFormat => json!({ "type": "string", "enum": ["iso", "unix"], "default": "iso" }),
        Param::EventIds => json!({
            "type": "array", "maxItems": EVENT_IDS_MAX, "items": { "type": "string" },
        }),
        Param::CommenceTimeFrom | Param::CommenceTimeTo | Param::Date => time,
        Param::DaysFrom => json!({ "type": "integer", "minimum": 1, "maximum": 3 }),
    }
}

const STANDING: [&str; 4] =
    ["x-request-id", "x-requests-remaining", "x-requests-used", "x-requests-last"];
const OK_HEADERS: [&str; 7] = [
    "x-request-id",
    "x-requests-remaining",
    "x-requests-used",
    "x-requests-last",
    "etag",
    "cache-control",
    "vary",
];

fn headers() -> Value {
    let header = |meaning: &str, schema: Value| json!({ "description": meaning, "schema": schema });
    let (text, count) = (json!({ "type": "string" }), json!({ "type": "integer", "minimum": 0 }));
    json!({
        "x-request-id": header("Id of the request in the service's log.", text.clone()),
        "x-requests-remaining": header("Credits left in the tightest quota window.", count.clone()),
        "x-requests-used": header("Credits used in the tightest quota window.", count.clone()),
        "x-requests-last": header("Credits charged for this response.", count.clone()),
        "retry-after": header("Seconds to wait before retrying.", count),
        "allow": header("The methods that the path accepts.", text.clone()),
        "etag": header("ETag of the content; send it back as `If-None-Match`.", text.clone()),
        "cache-control": header("How long the answer may be cached.", text.clone()),
        "vary": header("The request headers that the answer depends on.", text),
    })
}

fn header_refs(names: &[&str]) -> Value {
    object(names.iter().map(|name| ((*name).to_owned(), refer("headers", name))))
}

/// Every status of an error, once.
fn statuses() -> Vec<u16> {
    let mut statuses = Code::ALL.map(Code::status).to_vec();
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn response_name(status: u16) -> String {
    format!("Error{status}")
}

fn responses() -> Value {
    let mut responses = Map::new();
    let not_modified = json!({
        "description": "The client already has this content. Free.",
        "headers": header_refs(&OK_HEADERS),
    });
    responses.insert("NotModified".to_owned(), not_modified);
    for status in statuses() {
        let codes: Vec<Code> =
            Code::ALL.into_iter().filter(|code| code.status() == status).collect();
        let lines: Vec<String> =
            codes.iter().map(|code| format!("`{}`: {}", code.slug(), code.meaning())).collect();
        let mut names = STANDING.to_vec();
        match status {
            405 => names.push("allow"),
            401 | 429 | 503 => names.push("retry-after"),
            _ => {}
        }
        let examples = codes.iter().map(|code| {
            let body = json!({
                "message": code.begins(),
                "error_code": code.slug(),
                "details_url": format!("{}#{}", crate::v4::DOCS_PATH, code.anchor()),
            });
            (code.slug().to_owned(), json!({ "value": body }))
        });
        let response = json!({
            "description": lines.join("\n\n"),
            "headers": header_refs(&names),
            "content": { "application/json": {
                "schema": refer("schemas", "Error"),
                "examples": object(examples),
            } },
        });
        responses.insert(response_name(status), response);
    }
    Value::Object(responses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_parameter_and_code_is_in_the_document_and_every_reference_resolves() {
        let document = value(&Catalogue::load(None).unwrap());
        for operation in Operation::v4() {
            let item = &document["paths"][operation.row().path.unwrap()];
            assert_eq!(item["get"]["operationId"], operation.name());
            assert!(
                item["parameters"].as_array().unwrap().len() >= operation.row().v4_params().len()
            );
        }
        let text = document.to_string();
        for code in Code::ALL {
            assert!(text.contains(code.slug()), "{}", code.slug());
        }
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
