//! Schemas in words: what a parameter or a field may be.

use serde_json::Value;

use crate::docs::html::{escape, inline};

/// A longer list of values is folded up.
const VALUES_SHOWN_MAX: usize = 16;

/// What a JSON pointer leads to; null where it leads nowhere.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    static NOTHING: Value = Value::Null;
    value.pointer(pointer).unwrap_or(&NOTHING)
}

/// The type of a schema, with links to the objects it names.
pub(crate) fn kind(schema: &Value) -> String {
    if let Some(name) = referred(schema) {
        return format!("<a href=\"#object-{0}\">{0}</a>", escape(name));
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
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            escape(&names.join(" or "))
        }
        Value::String(name) if name == "array" => {
            format!("array of {}", kind(at(schema, "/items")))
        }
        Value::String(name) => match at(schema, "/format").as_str() {
            Some("date-time") => "timestamp".to_owned(),
            Some(_) | None => escape(name),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Values, bounds and default of a schema, each in a line.
pub(crate) fn rules(schema: &Value) -> String {
    let mut rules = Vec::new();
    let mut current: Vec<&Value> = values(schema);
    current.extend(values(at(schema, "/items")));
    if !current.is_empty() {
        rules.push(value_list(&current));
    }
    for alias in alternatives(schema).into_iter().flatten() {
        if let (Some(value), true) = (alias.get("const"), at(alias, "/deprecated") == true) {
            let meaning = at(alias, "/description").as_str().unwrap_or_default();
            rules.push(format!("<code>{}</code> {}", plain(value), inline(meaning)));
        }
    }
    if let (Some(least), Some(most)) = (schema.get("minimum"), schema.get("maximum")) {
        rules.push(format!("{} to {}", plain(least), plain(most)));
    }
    if let Some(most) = schema.get("maxItems") {
        rules.push(format!("at most {}", plain(most)));
    }
    if let Some(value) = schema.get("default") {
        rules.push(format!("default <code>{}</code>", plain(value)));
    }
    rules.iter().map(|rule| format!("<div class=\"rule\">{rule}</div>")).collect()
}

/// The name of the component a schema refers to.
pub(crate) fn referred(schema: &Value) -> Option<&str> {
    at(schema, "/$ref").as_str().and_then(|target| target.rsplit('/').next())
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}

/// What a schema lists; deprecated values are told apart.
fn values(schema: &Value) -> Vec<&Value> {
    let own = at(schema, "/enum").as_array().into_iter().flatten().chain(schema.get("const"));
    let any = alternatives(schema).into_iter().flatten();
    let current = any.filter(|schema| at(schema, "/deprecated") != true);
    let listed = current.filter_map(|schema| at(schema, "/enum").as_array()).flatten();
    own.chain(listed).collect()
}

fn value_list(values: &[&Value]) -> String {
    let list: Vec<String> =
        values.iter().map(|value| format!("<code>{}</code>", plain(value))).collect();
    let list = list.join(" ");
    if values.len() > VALUES_SHOWN_MAX {
        format!("<details><summary>{} values</summary>{list}</details>", values.len())
    } else {
        list
    }
}

/// A value as it is typed into a query.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => escape(text.trim_end()),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            escape(&value.to_string())
        }
    }
}
