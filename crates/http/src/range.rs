//! Range requests (RFC 9110, 14).

use std::ops::Range;

use crate::request::{Method, Request};

/// The part of a file to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranged {
    Whole,
    Part(Range<u64>),
    /// The range starts beyond the end.
    Unsatisfiable,
}

impl Request<'_> {
    /// The requested part of a file with a strong tag and a length. Several ranges, an invalid range, and a range of
    /// another version mean all of it.
    pub fn range_of(&self, etag: &str, length: u64) -> Ranged {
        let Some(range) = self.page.range.once().filter(|_| self.method == Method::Get) else {
            return Ranged::Whole;
        };
        let if_range = self.page.if_range;
        let same = if_range.once().is_none_or(|tag| tag.trim_ascii() == etag.as_bytes());
        match same && !if_range.is_repeated() {
            true => std::str::from_utf8(range).map_or(Ranged::Whole, |text| parse(text, length)),
            false => Ranged::Whole,
        }
    }
}

fn parse(text: &str, length: u64) -> Ranged {
    let whole = Ranged::Whole;
    let Some((unit, range)) = text.split_once('=') else { return whole };
    let Some((first, last)) = range.trim().split_once('-') else { return whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return whole;
    }
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(suffix)) if first.is_empty() => length.saturating_sub(suffix)..length,
        _ => return whole,
    };
    if part.is_empty() { Ranged::Unsatisfiable } else { Ranged::Part(part) }
}

/// A number of digits only. One that is too large is beyond every end.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::HeaderSet;

    #[test]
    fn a_part_is_understood_and_anything_else_is_the_whole() {
        for (text, expected) in [
            ("bytes=0-0", Ranged::Part(0..1)),
            ("bytes=0-99", Ranged::Part(0..100)),
            ("bytes=10-", Ranged::Part(10..100)),
            ("bytes=10-1000", Ranged::Part(10..100)),
            ("BYTES= 5-9", Ranged::Part(5..10)),
            ("bytes=-10", Ranged::Part(90..100)),
            ("bytes=-1000", Ranged::Part(0..100)),
            ("bytes=99-18446744073709551615", Ranged::Part(99..100)),
            ("bytes=99-99999999999999999999999", Ranged::Part(99..100)),
            ("bytes=100-", Ranged::Unsatisfiable),
            ("bytes=100-200", Ranged::Unsatisfiable),
            ("bytes=99999999999999999999999-", Ranged::Unsatisfiable),
            ("bytes=-0", Ranged::Unsatisfiable),
        ] {
            assert_eq!(parse(text, 100), expected, "{text}");
        }
        for text in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=1",
            "bytes=2-1",
            "bytes=0-1,5-6",
            "rows=0-1",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=--1",
            "bytes=1-2-3",
            "bytes=1 - 2",
        ] {
            assert_eq!(parse(text, 100), Ranged::Whole, "{text}");
        }
    }

    #[test]
    fn a_part_of_another_version_is_not_sent() {
        let asked = |method: &str, headers: &[(&str, &'static str)]| {
            let mut request = Request::new(method, "/file");
            request.traits.headers = HeaderSet::Ranges;
            headers.iter().for_each(|(name, value)| request.header(name, value.as_bytes()));
            request.range_of("\"a\"", 100)
        };
        let range = ("Range", "bytes=0-9");
        assert_eq!(asked("GET", &[range]), Ranged::Part(0..10));
        assert_eq!(asked("GET", &[range, ("If-Range", "\"a\"")]), Ranged::Part(0..10));
        assert_eq!(asked("GET", &[range, ("If-Range", "\"b\"")]), Ranged::Whole);
        assert_eq!(asked("GET", &[range, ("If-Range", "W/\"a\"")]), Ranged::Whole);
        assert_eq!(asked("GET", &[range, range]), Ranged::Whole);
        assert_eq!(asked("HEAD", &[range]), Ranged::Whole);
        assert_eq!(asked("GET", &[]), Ranged::Whole);
    }
}
