//! Percent-encoding that comes in. Unlike the libraries, this refuses what is not encoded well. What goes out is
//! written by `percent_encoding` and `form_urlencoded`.

use std::borrow::Cow;

/// Percent-decoding, with `+` for a space; `None` for what is not UTF-8 text then.
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

/// Whether decoding would change nothing.
fn is_plain(text: &str) -> bool {
    memchr::memchr2(b'%', b'+', text.as_bytes()).is_none()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
