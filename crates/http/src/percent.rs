//! Decoding of percent-encoded input. Unlike the libraries, it refuses malformed input. Output is encoded by
//! `percent_encoding` and `form_urlencoded`.

use std::borrow::Cow;

/// Percent-decodes text, with `+` for a space; `None` if it is malformed or the result is not UTF-8.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    if is_plain(text) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (high, low) = (hex(rest.next()?)?, hex(rest.next()?)?);
                high << 4 | low
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// True if decoding would change nothing.
fn is_plain(text: &str) -> bool {
    memchr::memchr2(b'%', b'+', text.as_bytes()).is_none()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
