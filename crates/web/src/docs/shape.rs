//! Schemas as Markdown: the values a parameter or a field can have.

use serde_json::Value;

/// The target of a JSON pointer; null if it does not exist.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    static NOTHING: Value = Value::Null;
    value.pointer(pointer).unwrap_or(&NOTHING)
}

/// A text field; empty if it does not exist.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// True if feeds send or receive this object.
pub(crate) fn is_ingest(name: &str) -> bool {
    ["Feed", "Push", "Rejected"].iter().any(|prefix| name.starts_with(prefix))
}

/// The type of a schema, with links to named objects.
pub(crate) fn kind(schema: &Value) -> String {
    if let Some(name) = referred(schema) {
        let page = if is_ingest(name) { "ingest" } else { "objects" };
        return format!("[{name}](/docs/reference/{page}#object-{name})");
    }
    if let Some(any) = alternatives(schema) {
        let mut kinds: Vec<String> = any.iter().map(kind).filter(|kind| !kind.is_empty()).collect();
        kinds.dedup();
        if !kinds.is_empty() {
            return kinds.join(" or ");
        }
    }
    match at(schema, "/type") {
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        Value::String(name) if name == "array" => {
            format!("array of {}", kind(at(schema, "/items")))
        }
        Value::String(_) if text(schema, "format") == "date-time" => "timestamp".to_owned(),
        Value::String(name) => name.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Deprecated values, bounds, default and examples of a schema, one line each.
pub(crate) fn rules(schema: &Value) -> Vec<String> {
    let mut rules = Vec::new();
    for alias in alternatives(schema).into_iter().flatten() {
        if let (Some(value), true) = (alias.get("const"), at(alias, "/deprecated") == true) {
            rules.push(format!("`{}` {}", plain(value), text(alias, "description")));
        }
    }
    if let (Some(least), Some(most)) = (schema.get("minimum"), schema.get("maximum")) {
        rules.push(format!("{} to {}", plain(least), plain(most)));
    }
    if let Some(most) = schema.get("maxItems") {
        rules.push(format!("at most {}", plain(most)));
    }
    if let Some(value) = schema.get("default") {
        rules.push(format!("default `{}`", plain(value)));
    }
    rules
}

/// The values allowed by a schema or by its items.
pub(crate) fn values(schema: &Value) -> Vec<String> {
    listed(schema).chain(listed(at(schema, "/items"))).map(plain).collect()
}

/// Name of the component that a schema refers to.
pub(crate) fn referred(schema: &Value) -> Option<&str> {
    at(schema, "/$ref").as_str().and_then(|target| target.rsplit('/').next())
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}

/// Values listed by a schema, without deprecated ones.
fn listed(schema: &Value) -> impl Iterator<Item = &Value> {
    let own = ["/enum", "/x-values"].into_iter().filter_map(|list| at(schema, list).as_array());
    let own = own.flatten().chain(schema.get("const"));
    let any = alternatives(schema).into_iter().flatten();
    let current = any.filter(|schema| at(schema, "/deprecated") != true);
    own.chain(current.filter_map(|schema| at(schema, "/enum").as_array()).flatten())
}

/// A value as written in a query.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim_end().to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// All operations of the document: path, method, path item, operation.
pub(crate) fn operations(
    document: &Value,
) -> impl Iterator<Item = (&str, &'static str, &Value, &Value)> {
    let paths = at(document, "/paths").as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = ["get", "post"].into_iter();
        methods.filter_map(move |method| Some((path.as_str(), method, item, item.get(method)?)))
    })
}
