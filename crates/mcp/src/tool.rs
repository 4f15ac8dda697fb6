//! The tools: read operations of the API, with the schemas of its OpenAPI document.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// The operations that are tools, most useful first.
const NAMES: [&str; 13] = [
    "list_sports",
    "list_events",
    "get_odds",
    "get_best",
    "get_scores",
    "list_books",
    "get_fair",
    "list_arbitrages",
    "list_ev",
    "list_middles",
    "get_coverage",
    "explain_event",
    "get_status",
];
/// Parameters that a tool does not take: they change the format of the answer, are aliases, or carry a key.
const LEFT_OUT: [&str; 5] = ["since", "format", "group_by", "region", "api_key"];
/// Parameters whose values come from the catalogue and would add thousands of characters to every list of tools;
/// `list_sports` returns them.
const CATALOGUE_KEYS: [&str; 2] = ["sport_key", "bookmaker"];
/// Default number of records in a list: models read a few well and many badly.
pub(crate) const LIMIT_DEFAULT: u64 = 20;
pub(crate) const LIMIT_MAX: u64 = 100;

/// An operation as a tool.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) tool: Tool,
    /// The path, with the names of parameters in braces.
    pub(crate) path: String,
    /// The parameters that are sent in the query.
    pub(crate) query: Vec<String>,
}

impl Operation {
    pub(crate) fn is_paged(&self) -> bool {
        self.query.iter().any(|name| name == "limit")
    }
}

/// All tools, built once.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) operations: Vec<Operation>,
}

impl Tools {
    /// The tools of the API that an OpenAPI document describes. Operations missing from the document are left out.
    pub(crate) fn of(document: &Value) -> Self {
        let paths = document.get("paths").and_then(Value::as_object);
        let found = paths.into_iter().flatten().filter_map(|(path, item)| {
            let name = item.pointer("/get/operationId")?.as_str()?;
            let name = NAMES.into_iter().find(|known| *known == name)?;
            Some((name, operation(document, name, path, item)))
        });
        let mut found: BTreeMap<&str, Operation> = found.collect();
        Self { operations: NAMES.iter().filter_map(|name| found.remove(name)).collect() }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.tool.name == name)
    }
}

fn operation(document: &Value, name: &'static str, path: &str, item: &Value) -> Operation {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (mut properties, mut required, mut query) = (Map::new(), Vec::new(), Vec::new());
    for parameter in item.get("parameters").and_then(Value::as_array).into_iter().flatten() {
        let Some((name, place, schema)) = parameter_of(document, parameter) else { continue };
        match place {
            "path" => required.push(Value::from(name)),
            _ if LEFT_OUT.contains(&name) => continue,
            _ => query.push(name.to_owned()),
        }
        properties.insert(name.to_owned(), schema);
    }
    let input = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let annotations =
        ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(true);
    let tool = Tool::new(name, text("/get/description").to_owned(), object(input))
        .with_title(text("/get/summary"))
        .with_annotations(annotations)
        .with_raw_output_schema(object(output_schema(document, item)));
    Operation { tool, path: path.to_owned(), query }
}

fn object(value: Value) -> Arc<Map<String, Value>> {
    Arc::new(match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    })
}

/// A parameter's name, location and schema, with its description.
fn parameter_of<'a>(
    document: &'a Value,
    parameter: &'a Value,
) -> Option<(&'a str, &'a str, Value)> {
    let parameter = resolved(document, parameter);
    let (name, place) = (parameter.get("name")?.as_str()?, parameter.get("in")?.as_str()?);
    let mut schema = parameter.get("schema")?.clone();
    if let Some(fields) = schema.as_object_mut() {
        if CATALOGUE_KEYS.contains(&name) {
            fields.retain(|field, _| field == "type");
        }
        if name == "limit" {
            fields.insert("default".to_owned(), LIMIT_DEFAULT.into());
            fields.insert("maximum".to_owned(), LIMIT_MAX.into());
        }
        let meaning = parameter.get("description").cloned();
        fields.extend(meaning.map(|meaning| ("description".to_owned(), meaning)));
    }
    Some((name, place, schema))
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    let pointer = reference.and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

/// The schema of a result: the unchanged answer of the API, and the number of records left out.
fn output_schema(document: &Value, item: &Value) -> Value {
    let schema = item.pointer("/get/responses/200/content/application~1json/schema");
    let mut schema = schema.cloned().unwrap_or_else(|| json!({}));
    // The first of several schemas is the one without the parameters that tools do not take.
    if let Some(first) = schema.pointer("/oneOf/0") {
        schema = first.clone();
    }
    let mut definitions = Map::new();
    collect(document, &mut schema, &mut definitions);
    json!({
        "type": "object",
        "properties": {
            "answer": schema,
            "left_out": {
                "type": "integer",
                "description": "Number of records left out at the end of the answer, which would have been too long.",
            },
            "next_cursor": {
                "type": "string",
                "description": "There are more records: call again with this `cursor`.",
            },
        },
        "required": ["answer", "left_out"],
        "$defs": definitions,
    })
}

/// Rewrites references to components as references to `$defs` and collects the referenced schemas recursively;
/// removes examples.
fn collect(document: &Value, schema: &mut Value, definitions: &mut Map<String, Value>) {
    match schema {
        Value::Array(items) => {
            items.iter_mut().for_each(|item| collect(document, item, definitions));
        }
        Value::Object(fields) => {
            fields.retain(|name, _| name != "examples" && name != "example");
            let reference = fields.get("$ref").and_then(Value::as_str);
            let name = reference
                .and_then(|text| text.strip_prefix("#/components/schemas/"))
                .map(str::to_owned);
            if let Some(name) = name {
                fields.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
                define(document, &name, definitions);
            }
            fields.values_mut().for_each(|value| collect(document, value, definitions));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn define(document: &Value, name: &str, definitions: &mut Map<String, Value>) {
    if definitions.contains_key(name) {
        return;
    }
    let schema = document.pointer(&format!("/components/schemas/{name}"));
    let mut schema = schema.cloned().unwrap_or_else(|| json!({}));
    // Inserted before its own references are collected: they may refer back to it.
    definitions.insert(name.to_owned(), Value::Null);
    collect(document, &mut schema, definitions);
    definitions.insert(name.to_owned(), schema);
}
