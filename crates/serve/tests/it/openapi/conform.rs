//! Validates a value against a schema: the part of JSON Schema that our document uses. Patterns and formats are left
//! to Schemathesis, which has a complete validator.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::Answer;

/// Headers of HTTP itself, which are not listed in the document.
const OF_HTTP: [&str; 5] = ["content-type", "content-length", "date", "connection", "upgrade"];

pub(crate) fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolve(document, schema);
    let told = |what: &str| Err(format!("{what}: {value} against {schema}"));
    if let Some(types) = schema.get("type") {
        let types = types.as_array().map_or_else(|| vec![types], |types| types.iter().collect());
        if !types.iter().any(|name| is(name.as_str().unwrap(), value)) {
            return told("type");
        }
    }
    if schema.get("enum").is_some_and(|values| !values.as_array().unwrap().contains(value)) {
        return told("enum");
    }
    if schema.get("const").is_some_and(|one| one != value) {
        return told("const");
    }
    let number = value.as_f64();
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64).zip(number);
    if bound("minimum").is_some_and(|(least, number)| number < least)
        || bound("maximum").is_some_and(|(most, number)| number > most)
        || bound("exclusiveMinimum").is_some_and(|(below, number)| number <= below)
        || bound("multipleOf").is_some_and(|(unit, number)| (number / unit).fract() != 0.0)
    {
        return told("bounds");
    }
    let matching = |name: &str| {
        let schemas = schema.get(name)?.as_array().unwrap();
        let fits = schemas.iter().filter(|schema| check(document, schema, value).is_ok());
        Some((fits.count(), schemas.len()))
    };
    if matching("anyOf").is_some_and(|(fits, _)| fits == 0)
        || matching("oneOf").is_some_and(|(fits, _)| fits != 1)
        || matching("allOf").is_some_and(|(fits, all)| fits != all)
    {
        return told("combination");
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().try_for_each(|value| check(document, items, value))?;
    }
    check_fields(document, schema, value)
}

fn check_fields(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Some(fields) = value.as_object() else { return Ok(()) };
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            return Err(format!("{name} is missing: {value}"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in fields {
        match properties.and_then(|properties| properties.get(name)) {
            Some(schema) => check(document, schema, value)?,
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                return Err(format!("{name} is not described"));
            }
            None => {}
        }
    }
    Ok(())
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(target) => document.pointer(target.strip_prefix('#').unwrap()).expect(target),
        None => schema,
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    }
}

/// Every required header is present, and every header present is described.
pub(super) fn check_headers(document: &Value, response: &Value, answer: &Answer) {
    let described = response["headers"].as_object().unwrap();
    for (name, header) in described {
        let required = resolve(document, header)["required"] == true;
        assert!(!required || answer.header(name).is_some(), "{name} is missing: {answer:?}");
    }
    let described: BTreeSet<String> = described.keys().map(|name| name.to_lowercase()).collect();
    for name in answer.headers.keys() {
        let known = described.contains(name.as_str()) || OF_HTTP.contains(&name.as_str());
        assert!(known, "{name} is not described: {answer:?}");
    }
}
