//! The OpenAPI document relaxed for clients: answers may grow, and catalogues differ.
//!
//! The document itself is exact, for tests and readers. Types generated from it would reject answers of later
//! versions.

use serde_json::{Map, Value, json};

/// Parameters whose values are keys of the catalogue, which operators change.
const CATALOGUE_KEYS: [&str; 2] = ["sport_key", "bookmaker"];

/// Relaxes the document, and adds a schema with the query parameters of each operation under `/v1`: `GetOddsParams` for
/// `get_odds`.
pub(super) fn relax(document: &mut Value) {
    for key in CATALOGUE_KEYS {
        let schema = format!("/components/parameters/{key}/schema");
        if let Some(schema) = document.pointer_mut(&schema) {
            *schema = json!({ "type": "string" });
        }
    }
    open(document);
    let params = all_params(document);
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        schemas.extend(params);
    }
}

/// Allows further fields in objects and further values of enumerations. Examples are omitted because they are no
/// schemas.
fn open(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // The clients' methods return JSON only.
            let left_out = ["example", "examples", "x-values", "text/csv"];
            fields.retain(|name, _| !left_out.contains(&name.as_str()));
            if fields.get("additionalProperties") == Some(&Value::Bool(false)) {
                fields.shift_remove("additionalProperties");
            }
            if let Some(known) = known_texts(fields) {
                fields.retain(|name, _| name != "type" && name != "enum");
                let alternatives =
                    json!([{ "type": "string", "enum": known }, { "type": "string" }]);
                fields.insert("anyOf".to_owned(), alternatives);
            } else {
                fields.values_mut().for_each(open);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The values of an enumeration, written as one list or as alternatives.
fn known_texts(schema: &Map<String, Value>) -> Option<Vec<Value>> {
    if schema.get("type")? != "string" {
        return None;
    }
    if let Some(Value::Array(known)) = schema.get("enum") {
        return Some(known.clone());
    }
    let alternatives = schema.get("anyOf")?.as_array()?;
    let of = |one: &Value| match (one.get("enum"), one.get("const")) {
        (Some(Value::Array(known)), _) => known.clone(),
        (_, constant) => constant.into_iter().cloned().collect(),
    };
    Some(alternatives.iter().flat_map(of).collect())
}

/// The query parameters of each operation as a schema. Deprecated ones are omitted: no client has used them yet.
fn all_params(document: &Value) -> Vec<(String, Value)> {
    let none = Map::new();
    let paths = document.get("paths").and_then(Value::as_object).unwrap_or(&none);
    let under_v1 = paths.iter().filter(|(path, _)| path.starts_with("/v1/"));
    let of = |item: &Value| {
        let operation = item.pointer("/get/operationId")?.as_str()?;
        let listed = item.get("parameters")?.as_array()?;
        let properties: Map<_, _> =
            listed.iter().filter_map(|one| query_param(document, operation, one)).collect();
        let schema = json!({
            "type": "object",
            "description": format!("Query parameters of `{operation}`."),
            "properties": properties,
        });
        Some((format!("{}Params", camel_case(operation)), schema))
    };
    under_v1.filter_map(|(_, item)| of(item)).collect()
}

/// A parameter's name and schema as callers pass it: lists as lists, decimal numbers as numbers.
fn query_param(document: &Value, operation: &str, reference: &Value) -> Option<(String, Value)> {
    let pointer = reference.get("$ref")?.as_str()?.strip_prefix('#')?;
    let param = document.pointer(pointer)?;
    let is_current = param.get("deprecated").is_none();
    // `since` and `format` change the shape or type of the answer; the clients have separate methods for changes and
    // return lists otherwise. A stream has one shape.
    let name = param.get("name")?.as_str()?;
    let changes_shape = name == "format" || (name == "since" && operation != "get_stream");
    if param.get("in")? != "query" || !is_current || changes_shape {
        return None;
    }
    let mut schema = param.get("schema")?.as_object()?.clone();
    let text = |field: &str| schema.get(field).and_then(Value::as_str).unwrap_or_default();
    // A list is a text whose pattern has commas; a decimal number is a text, so that clients do not reformat it.
    let (is_list, is_number) =
        (text("pattern").contains("(,"), text("default").parse::<f64>().is_ok());
    schema.shift_remove("default");
    if is_list {
        let list = json!({ "type": "array", "items": { "type": "string" } });
        schema = Map::from_iter([("anyOf".to_owned(), json!([{ "type": "string" }, list]))]);
    } else if is_number {
        schema = Map::from_iter([("type".to_owned(), json!(["number", "string"]))]);
    }
    schema.insert("description".to_owned(), param.get("description")?.clone());
    Some((param.get("name")?.as_str()?.to_owned(), Value::Object(schema)))
}

/// `get_odds` as `GetOdds`.
fn camel_case(name: &str) -> String {
    let mut is_first = true;
    let mut text = String::new();
    for letter in name.chars() {
        if letter == '_' {
            is_first = true;
        } else {
            text.push(if is_first { letter.to_ascii_uppercase() } else { letter });
            is_first = false;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relaxed(mut document: Value) -> Value {
        relax(&mut document);
        document
    }

    #[test]
    fn answers_are_json() {
        let content = json!({
            "application/json": { "schema": { "type": "array" } },
            "text/csv": { "schema": { "type": "string" } },
        });
        let document = json!({ "paths": { "/v1/books": { "get": { "responses": { "200": { "content": content } } } } } });
        let content = json!({ "application/json": { "schema": { "type": "array" } } });
        let shown = "/paths/~1v1~1books/get/responses/200/content";
        assert_eq!(relaxed(document).pointer(shown), Some(&content));
    }

    #[test]
    fn objects_may_have_more_fields_and_sets_more_values() {
        let document = json!({ "components": { "schemas": { "Event": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "status": { "type": "string", "enum": ["live"], "description": "How it stands." },
                "market": { "type": "string", "anyOf": [{ "enum": ["spread"] }, { "const": "h2h" }] },
            },
            "examples": [{ "status": "live" }],
        } } } });
        let any = |known: Value| json!([{ "type": "string", "enum": known }, { "type": "string" }]);
        let event = json!({
            "type": "object",
            "properties": {
                "status": { "description": "How it stands.", "anyOf": any(json!(["live"])) },
                "market": { "anyOf": any(json!(["spread", "h2h"])) },
            },
        });
        assert_eq!(relaxed(document).pointer("/components/schemas/Event"), Some(&event));
    }

    #[test]
    fn the_parameters_of_an_operation_become_one_schema() {
        let refer = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
        let param = |name: &str, schema: Value| json!({ "name": name, "in": "query", "description": name, "schema": schema });
        let mut prior = param("region", json!({ "type": "string" }));
        prior["deprecated"] = true.into();
        let names =
            ["sport_key", "bookmaker", "event_ids", "min_ev", "limit", "region", "since", "format"];
        let document = json!({
            "paths": { "/v1/sports/{sport_key}/ev": {
                "get": { "operationId": "list_ev" },
                "parameters": names.map(refer),
            } },
            "components": {
                "schemas": {},
                "parameters": {
                    "sport_key": { "name": "sport_key", "in": "path", "schema": { "type": "string", "enum": ["mma"] } },
                    "bookmaker": param("bookmaker", json!({ "type": "string", "enum": ["bet365"] })),
                    "event_ids": param("event_ids", json!({ "type": "string", "pattern": "^[^,]+(,[^,]+){0,199}$" })),
                    "min_ev": param("min_ev", json!({ "type": "string", "pattern": "^0$", "default": "0" })),
                    "limit": param("limit", json!({ "type": "integer", "maximum": 500, "default": 100 })),
                    "region": prior,
                    "since": param("since", json!({ "type": "string" })),
                    "format": param("format", json!({ "type": "string", "enum": ["json", "csv"] })),
                },
            },
        });
        let list = json!({ "type": "array", "items": { "type": "string" } });
        let params = json!({
            "type": "object",
            "description": "Query parameters of `list_ev`.",
            "properties": {
                "bookmaker": { "type": "string", "description": "bookmaker" },
                "event_ids": { "anyOf": [{ "type": "string" }, list], "description": "event_ids" },
                "min_ev": { "type": ["number", "string"], "description": "min_ev" },
                "limit": { "type": "integer", "maximum": 500, "description": "limit" },
            },
        });
        assert_eq!(relaxed(document).pointer("/components/schemas/ListEvParams"), Some(&params));
    }

    #[test]
    fn a_stream_begins_at_a_cursor() {
        let schema = json!({ "type": "string" });
        let document = json!({
            "paths": { "/v1/stream": {
                "get": { "operationId": "get_stream" },
                "parameters": [{ "$ref": "#/components/parameters/since" }],
            } },
            "components": {
                "schemas": {},
                "parameters": { "since": { "name": "since", "in": "query", "description": "since", "schema": schema } },
            },
        });
        let since = "/components/schemas/GetStreamParams/properties/since/type";
        assert_eq!(relaxed(document).pointer(since), Some(&json!("string")));
    }
}
