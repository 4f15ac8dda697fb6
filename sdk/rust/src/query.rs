//! Paths and queries.

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that are not escaped in a path or a query; a comma joins lists.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b',');

/// A part of a path or a query.
pub(crate) fn encode(text: &str) -> impl Display {
    utf8_percent_encode(text, PLAIN)
}

/// Adds a parameter to a query.
pub(crate) fn add(query: &mut String, name: &str, value: &dyn Display) {
    let mark = if query.is_empty() { '?' } else { '&' };
    query.push_str(&format!("{mark}{name}={}", encode(&value.to_string())));
}

/// Joins the items of a list parameter.
pub(crate) fn joined(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(",")
}
