//! Keys of JSON and names of XML as an input writes them.

use std::borrow::Cow;

use crate::adapter::pull::find_quote;

/// Reads a key after its opening quote.
pub(super) fn read_key(rest: &str) -> Option<Cow<'_, str>> {
    let (end, escaped) = find_quote(rest.as_bytes(), 0)?;
    let raw = rest.get(..end)?;
    if escaped { unescape(raw).map(Cow::Owned) } else { Some(Cow::Borrowed(raw)) }
}

/// A text without its escapes.
pub(super) fn unescape(raw: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{raw}\"")).ok()
}

/// The local part of the name at the start of a text.
pub(super) fn read_name(rest: &str) -> &str {
    let name = rest.get(..name_len(rest)).unwrap_or_default();
    match memchr::memrchr(b':', name.as_bytes()) {
        Some(colon) => name.get(colon + 1..).unwrap_or_default(),
        None => name,
    }
}

/// Length in bytes of the name at the start of a text; every character beyond ASCII counts as a letter.
pub(super) fn name_len(rest: &str) -> usize {
    let part = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':') || *byte >= 0x80
    };
    rest.bytes().position(|byte| !part(&byte)).unwrap_or(rest.len())
}
