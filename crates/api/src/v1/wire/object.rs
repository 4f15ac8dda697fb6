//! The objects of the interface: each field name occurs once, for the writer and for the schema.

use std::fmt::Write;

use domain::Timestamp;
use serde_json::{Map, Value, json};

/// A field's name, and the text before its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Text for the first field of an object.
    pub(crate) first: &'static str,
    pub(crate) next: &'static str,
}

/// Declares an object with its description and its fields: constant, name, `optional` if it is not always present, and
/// schema.
macro_rules! object {
    ($Object:ident: $meaning:literal {
        $($KEY:ident: $name:literal $($optional:ident)? = $schema:expr),+ $(,)?
    }) => {
        #[doc = $meaning]
        pub(crate) struct $Object;

        impl $Object {
            $(pub(super) const $KEY: $crate::v1::wire::object::Key = $crate::v1::wire::object::Key {
                name: $name,
                first: concat!("{\"", $name, "\":"),
                next: concat!(",\"", $name, "\":"),
            };)+
            /// All fields in order.
            pub(super) const FIELDS: &'static [$crate::v1::wire::object::Key] = &[$(Self::$KEY),+];

            pub(crate) fn schema() -> serde_json::Value {
                let optional: &[&str] = &[$($(object!(@name $optional $name),)?)+];
                let names = Self::FIELDS.iter().map(|key| key.name);
                $crate::v1::wire::object::closed(
                    $meaning,
                    names.zip([$($schema),+]).collect(),
                    optional,
                )
            }
        }
    };
    (@name optional $name:literal) => { $name };
}
pub(crate) use object;

/// The schema of a closed object; fields that are not optional are always present.
pub(crate) fn closed(meaning: &str, fields: Vec<(&str, Value)>, optional: &[&str]) -> Value {
    let required: Vec<&str> =
        fields.iter().map(|(name, _)| *name).filter(|name| !optional.contains(name)).collect();
    let properties: Map<String, Value> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    json!({
        "type": "object",
        "description": meaning,
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

pub(crate) fn text(meaning: &str) -> Value {
    json!({ "type": "string", "description": meaning })
}

pub(crate) fn flag(meaning: &str) -> Value {
    json!({ "type": "boolean", "description": meaning })
}

pub(crate) fn count(meaning: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": meaning })
}

/// A string enumeration.
pub(crate) fn one_of<const N: usize>(values: [&str; N], meaning: &str) -> Value {
    json!({ "type": "string", "enum": values.as_slice(), "description": meaning })
}

pub(crate) fn list(of: &str, meaning: &str) -> Value {
    json!({ "type": "array", "items": { "$ref": path(of) }, "description": meaning })
}

/// A reference to a schema, with its own description.
pub(crate) fn schema(to: &str, meaning: &str) -> Value {
    json!({ "$ref": path(to), "description": meaning })
}

fn path(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

pub(crate) fn id(prefix: &str, meaning: &str) -> Value {
    json!({
        "type": "string",
        "pattern": format!("^{prefix}[0-9A-Za-z]+$"),
        "description": meaning,
    })
}

pub(crate) fn event_id() -> Value {
    id("evt_", "The event's id: opaque, stable across restarts, nodes and bookmakers.")
}

/// Writes a JSON string that needs no escaping: a key of the catalogue, an id.
pub(crate) fn push_plain(text: &str, out: &mut String) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Writes a JSON string.
pub(crate) fn push_text(text: &str, out: &mut String) {
    // A loop without an early exit is vectorised. Nearly all texts need no escaping.
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().fold(true, |all, byte| all & plain(byte)) {
        push_plain(text, out);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let written = write!(out, "\\u{:04x}", u32::from(c));
                debug_assert!(written.is_ok());
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

pub(crate) fn push_number(number: Option<i32>, out: &mut String) {
    match number {
        Some(number) => {
            let written = write!(out, "{number}");
            debug_assert!(written.is_ok());
        }
        None => out.push_str("null"),
    }
}

/// Writes an instant, to the second.
pub(crate) fn push_time(time: Timestamp, out: &mut String) {
    out.push('"');
    out.extend(time.seconds_text().map(char::from));
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_as_json_wants_it() {
        for text in
            ["", "Tomas Veldt", "Søren \"Kjær\"", "back\\slash", "\u{1}\u{1f}\n\u{20}\u{7f}"]
        {
            let mut out = String::new();
            push_text(text, &mut out);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text, "{out}");
        }
        let mut out = String::new();
        push_text("Oren\u{1}\n", &mut out);
        assert_eq!(out, r#""Oren\u0001\u000a""#);
    }
}
