//! The OpenAPI 3.1 document, generated from the tables that the service runs on.
//!
//! New operations, parameters, error codes, markets and catalogue entries appear in the document without further work.
//! The prose is `openapi/guide.md`, the examples are responses of the real service (`openapi/examples`), and `/docs`
//! is rendered from the same value.

mod caller;
mod example;
mod header;
mod operation;
mod other;
pub mod parameter;
mod push;
mod response;
mod schema;
pub mod v4;

#[cfg(test)]
mod tests;

use domain::Catalogue;
use serde_json::{Map, Value, json};

use crate::asset::Asset;
use crate::context::Api;
use crate::openapi::response::Responses;
use crate::v1::param::{LIMIT_DEFAULT, LIMIT_MAX, REGION_DEFAULT};
use http::{HEAD_BYTES_MAX, HEADERS_MAX, Reply, Request, TARGET_BYTES_MAX};

/// Introduction for API users, in Markdown.
const GUIDE: &str = include_str!("openapi/guide.md");

/// The document for the embedded catalogue, as JSON text.
pub fn document() -> String {
    // The embedded catalogue is valid: a test loads it.
    Catalogue::load(None).map(|catalogue| text(&catalogue)).unwrap_or_default()
}

/// `/openapi.json`: the document for the catalogue in use, including the operator's own sports and bookmakers.
pub fn reply(api: &Api, request: &Request<'_>) -> Reply {
    let make = || Asset::new("application/json", text(&api.catalogue));
    api.openapi.get_or_init(make).reply(request)
}

/// The document for a catalogue, as JSON text.
pub fn text(catalogue: &Catalogue) -> String {
    format!("{:#}\n", value(catalogue))
}

/// The document as a value.
pub fn value(catalogue: &Catalogue) -> Value {
    let mut responses = Responses::default();
    let mut paths = operation::paths(&mut responses);
    paths.extend(other::paths(&mut responses));
    paths.extend([push::path(&mut responses)]);
    json!({
        "openapi": "3.1.1",
        "info": info(),
        "servers": [{ "url": "/", "description": "The service that serves this document." }],
        "security": [{ "ApiKeyHeader": [] }, { "ApiKeyQuery": [] }],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": schema::all(push::schemas()),
            "parameters": parameter::all(catalogue),
            "headers": header::headers(),
            "responses": responses.into_components(),
            "securitySchemes": security_schemes(),
        },
    })
}

fn info() -> Value {
    json!({
        "title": "Linesman",
        "version": env!("CARGO_PKG_VERSION"),
        "summary": "Sports odds, events and scores over HTTP.",
        "description": guide(),
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    })
}

/// The guide with its numbers inserted from the code.
fn guide() -> String {
    let numbers = [
        ("{limit_default}", LIMIT_DEFAULT.to_string()),
        ("{limit_max}", LIMIT_MAX.to_string()),
        ("{region_default}", REGION_DEFAULT.key().to_owned()),
        ("{target_kib}", (TARGET_BYTES_MAX >> 10).to_string()),
        ("{head_kib}", (HEAD_BYTES_MAX >> 10).to_string()),
        ("{headers_max}", HEADERS_MAX.to_string()),
    ];
    numbers.iter().fold(GUIDE.to_owned(), |text, (name, number)| text.replace(name, number))
}

fn tags() -> Value {
    json!([
        { "name": "Odds and events", "description": "Current odds, events and scores." },
        { "name": "Analytics", "description": "Best and fair prices, arbitrage, expected value, middles." },
        { "name": "History", "description": "The history of prices." },
        { "name": "Catalogue", "description": "Supported sports and bookmakers." },
        { "name": "Service", "description": "Service status." },
        { "name": "Feeds", "description": "Pushing odds, for operators." },
    ])
}

fn security_schemes() -> Value {
    json!({
        "ApiKeyHeader": {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "A sandbox (`sk_test_…`) or production key (`sk_live_…`).",
        },
        "ApiKeyQuery": {
            "type": "apiKey",
            "in": "query",
            "name": crate::v1::param::Param::ApiKey.name(),
            "description": format!("Deprecated. {}", crate::v1::param::Param::ApiKey.meaning()),
        },
        "FeedToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "A feed token (`fk_…`), made by the operator with `linesman feeds create NAME`.",
        },
    })
}

/// A reference to a component.
fn refer(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// An object from names and values.
fn object(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(Map::from_iter(entries))
}
