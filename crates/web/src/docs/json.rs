//! Formats JSON in lines, split into tokens that the page colours.

use serde_json::Value;

/// Maximum length of a value on one line.
const ONE_LINE_MAX: usize = 62;

/// A token with its class: `k`ey, `s`tring, `n`umber, `b`oolean or null; none for punctuation.
pub(crate) type Piece = (&'static str, String);

/// Formats a value in lines.
pub(crate) fn pieces(value: &Value) -> Vec<Piece> {
    let mut out = Vec::new();
    push(value, 0, &mut out);
    out
}

fn push(value: &Value, depth: usize, out: &mut Vec<Piece>) {
    let class = match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| (None, item)).collect();
            return push_many(items, ["[", "", "]"], depth, out);
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, item)| (Some(name), item)).collect();
            return push_many(fields, ["{", " ", "}"], depth, out);
        }
        Value::String(_) => "s",
        Value::Number(_) => "n",
        Value::Bool(_) | Value::Null => "b",
    };
    out.push((class, value.to_string()));
}

fn push_many(
    items: Vec<(Option<&String>, &Value)>,
    [open, pad, close]: [&str; 3],
    depth: usize,
    out: &mut Vec<Piece>,
) {
    let lengths = items.iter().map(|(name, item)| {
        let is_flat = !item.is_array() && !item.is_object();
        is_flat.then(|| name.map_or(0, |name| name.len() + 3) + item.to_string().len() + 1)
    });
    // Flat values that fit share a line; brackets count too.
    let is_short = lengths.sum::<Option<usize>>().is_some_and(|sum| sum < ONE_LINE_MAX);
    let (first, between, last) = if is_short {
        (pad.to_owned(), ", ".to_owned(), pad.to_owned())
    } else {
        let line = format!("\n{}", "  ".repeat(depth + 1));
        (line.clone(), format!(",{line}"), format!("\n{}", "  ".repeat(depth)))
    };
    out.push(("", open.to_owned()));
    for (i, (name, item)) in items.into_iter().enumerate() {
        out.push(("", if i == 0 { first.clone() } else { between.clone() }));
        if let Some(name) = name {
            out.push(("k", Value::from(name.as_str()).to_string()));
            out.push(("", ": ".to_owned()));
        }
        push(item, depth + 1, out);
    }
    out.push(("", format!("{last}{close}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_without_its_colours_is_json_again() {
        let value =
            serde_json::json!([{ "a": [1, 2], "b": { "c": null } }, "x".repeat(80), {}, []]);
        let plain: String = pieces(&value).into_iter().map(|(_, text)| text).collect();
        assert_eq!(serde_json::from_str::<Value>(&plain).unwrap(), value);
        assert!(plain.contains("\"a\": [1, 2],\n    \"b\": { \"c\": null }\n  },"), "{plain}");
    }
}
