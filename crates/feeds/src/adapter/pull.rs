//! A pull parser of JSON for formats with known fields: the caller asks for the type it expects next. Texts are
//! borrowed, and numbers are converted directly from their text to scaled integers. Skipped values must have balanced
//! brackets, and are not checked further.

use std::borrow::Cow;

/// Numbers are in millionths.
pub(super) const UNIT: u64 = 1_000_000;
const PLACES: usize = 6;
const POWERS: [u64; PLACES + 1] = [1, 10, 100, 1_000, 10_000, 100_000, UNIT];
/// Maximum nesting of skipped values.
const DEPTH_MAX: u32 = 128;

/// The position of the reader in a text. Methods return `None` if the text has something other than what was asked
/// for.
#[derive(Clone, Debug)]
pub(super) struct Pull<'l> {
    text: &'l str,
    at: usize,
}

/// Start and end of a text, without its quotes.
struct Quoted {
    start: usize,
    end: usize,
    escaped: bool,
}

impl<'l> Pull<'l> {
    pub(super) fn new(text: &'l str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Whether only whitespace is left.
    pub(super) fn is_done(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Calls `field` with the key of each field; it must read the value.
    #[inline]
    pub(super) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &'l [u8]) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let Quoted { start, end, .. } = self.quoted()?;
            let key = self.text.as_bytes().get(start..end)?;
            self.expect(b':')?;
            field(self, key)?;
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Calls `item` for each item; it must read the value.
    #[inline]
    pub(super) fn list(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self)?;
            match self.next()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    pub(super) fn text(&mut self) -> Option<Cow<'l, str>> {
        let Quoted { start, end, escaped } = self.quoted()?;
        let text = self.text.get(start..end)?;
        if escaped {
            return serde_json::from_str(&format!("\"{text}\"")).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(text))
    }

    /// Start and end of a text, which must have no escapes.
    pub(super) fn plain_text(&mut self) -> Option<(usize, usize)> {
        let Quoted { start, end, escaped } = self.quoted()?;
        (!escaped).then_some((start, end))
    }

    /// A text, or an inner `None` if it is null.
    pub(super) fn text_or_null(&mut self) -> Option<Option<Cow<'l, str>>> {
        if self.is_null() {
            self.skip()?;
            return Some(None);
        }
        self.text().map(Some)
    }

    pub(super) fn is_null(&mut self) -> bool {
        self.peek() == Some(b'n')
    }

    /// A whole number; an inner `None` if the value is something else, such as a text.
    pub(super) fn text_or_integer(&mut self) -> Option<Option<u64>> {
        if self.peek()?.is_ascii_digit() {
            return self.integer().map(Some);
        }
        self.skip()?;
        Some(None)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.word()? {
            "true" => Some(true),
            "false" | "null" => Some(false),
            _ => None,
        }
    }

    /// A whole number.
    pub(super) fn integer(&mut self) -> Option<u64> {
        let word = self.word().filter(|word| word.len() < 20)?;
        let number =
            |n: u64, byte: u8| byte.is_ascii_digit().then(|| n * 10 + u64::from(byte - b'0'));
        word.bytes().try_fold(0, number)
    }

    /// The text of a number.
    pub(super) fn number(&mut self) -> Option<&'l str> {
        self.word()
    }

    /// A non-negative number in millionths; further places of a size are cut off, and prices have none.
    pub(super) fn scaled(&mut self) -> Option<u64> {
        self.peek()?;
        let rest = self.text.as_bytes().get(self.at..)?;
        let (mut number, mut places, mut len) = (0_u64, None::<usize>, 0);
        for byte in rest {
            match byte {
                b'0'..=b'9' if places.is_none_or(|places| places < PLACES) => {
                    number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                    places = places.map(|places| places + 1);
                }
                b'0'..=b'9' => {}
                b'.' if places.is_none() => places = Some(0),
                b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n' => break,
                _ => return scaled_with_exponent(self.word()?),
            }
            len += 1;
        }
        (len > 0).then_some(())?;
        self.at += len;
        number.checked_mul(*POWERS.get(PLACES - places.unwrap_or(0))?)
    }

    /// Any value, as written.
    pub(super) fn raw(&mut self) -> Option<&'l str> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at)
    }

    /// Skips any value.
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.quoted().map(drop),
            b'{' | b'[' => self.skip_nested(),
            _ => self.word().map(drop),
        }
    }

    fn skip_nested(&mut self) -> Option<()> {
        // The open brackets, innermost last: a set bit is an object.
        let (mut open, mut depth) = (0_u128, 0_u32);
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            let found =
                rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))?;
            self.at += found;
            match rest.get(found)? {
                b'"' => {
                    self.quoted()?;
                    continue;
                }
                bracket @ (b'{' | b'[') => {
                    (depth < DEPTH_MAX).then_some(())?;
                    (open, depth) = (open << 1 | u128::from(*bracket == b'{'), depth + 1);
                }
                bracket => {
                    (open & 1 == u128::from(*bracket == b'}')).then_some(())?;
                    (open, depth) = (open >> 1, depth - 1);
                }
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    #[inline]
    fn quoted(&mut self) -> Option<Quoted> {
        self.expect(b'"')?;
        let start = self.at;
        let (end, escaped) = find_quote(self.text.as_bytes(), start)?;
        self.at = end + 1;
        Some(Quoted { start, end, escaped })
    }

    /// A number, true, false or null, as written.
    fn word(&mut self) -> Option<&'l str> {
        self.peek()?;
        let start = self.at;
        let rest = self.text.as_bytes().get(start..)?;
        let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
        self.at += rest.iter().take_while(part).count();
        self.text.get(start..self.at).filter(|word| !word.is_empty())
    }
}

/// Position of the closing quote of the text that begins at `from`, and whether the text has escapes.
///
/// Most texts are shorter than the cost of calling a search function, so eight bytes are tested at a time.
#[inline]
pub(super) fn find_quote(bytes: &[u8], from: usize) -> Option<(usize, bool)> {
    const ONES: u64 = u64::MAX / 255;
    // Sets the top bit of the lowest byte of the word that equals `byte`; higher bits may be wrong.
    let equal = |word: u64, byte: u8| {
        let zero = word ^ (ONES * u64::from(byte));
        zero.wrapping_sub(ONES) & !zero & (ONES << 7)
    };
    let (mut at, mut escaped) = (from, false);
    loop {
        while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(*chunk);
            let found = equal(word, b'"') | equal(word, b'\\');
            if found != 0 {
                at += usize::try_from(found.trailing_zeros() / 8).ok()?;
                break;
            }
            at += 8;
        }
        match bytes.get(at)? {
            b'"' => return Some((at, escaped)),
            b'\\' => {
                escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
}

/// `1.25E7`, the form in which large sizes are written.
fn scaled_with_exponent(text: &str) -> Option<u64> {
    let (mantissa, exponent) = text.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.abs() < 20)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut number = 0_u128;
    for byte in whole.bytes().chain(fraction.bytes()) {
        number = byte
            .is_ascii_digit()
            .then(|| number.checked_mul(10)?.checked_add(u128::from(byte - b'0')))??;
    }
    let power = i32::try_from(PLACES).ok()? + exponent - i32::try_from(fraction.len()).ok()?;
    let scale = 10_u128.checked_pow(power.unsigned_abs())?;
    let scaled = if power < 0 { number / scale } else { number.checked_mul(scale)? };
    u64::try_from(scaled).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_and_what_is_none_is_refused() {
        let scaled = |text: &str| Pull::new(text).scaled();
        for (text, expected) in [
            ("2.78", Some(2_780_000)),
            ("1000", Some(1_000_000_000)),
            ("0", Some(0)),
            ("147.57", Some(147_570_000)),
            ("38.8141699", Some(38_814_169)),
            ("1.25E7", Some(12_500_000_000_000)),
            ("5e-3", Some(5_000)),
            ("-1", None),
            ("1.2.3", None),
            ("x", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(scaled(text), expected, "{text}");
        }
        let mut pull = Pull::new(r#" {"a" : [1, {"b\"}": "]"}], "c":null} x"#);
        assert_eq!(pull.skip(), Some(()));
        assert!(!pull.is_done());
        assert_eq!(Pull::new("{\"a\":[1,").skip(), None);
        assert_eq!(Pull::new(r#""\u00e9""#).text().as_deref(), Some("é"));
        for unbalanced in [r#"{"a":[1}]"#, "[[[", "]", &"[".repeat(200)] {
            assert_eq!(Pull::new(unbalanced).skip(), None, "{unbalanced}");
        }
        assert_eq!(Pull::new(r#" -1.50 ,"#).raw(), Some("-1.50"));
        assert_eq!(Pull::new(r#"{"a":[1,"]"]} x"#).raw(), Some(r#"{"a":[1,"]"]}"#));
    }

    #[test]
    fn a_closing_quote_is_found_wherever_it_is() {
        for before in 0..20 {
            for after in 0..20 {
                let (start, rest) = ("x".repeat(before), "\"".repeat(after));
                let text = format!("{start}\"{rest}");
                assert_eq!(find_quote(text.as_bytes(), 0), Some((before, false)), "{text}");
                let text = format!("{start}\\\"é\"{rest}");
                assert_eq!(find_quote(text.as_bytes(), 0), Some((before + 4, true)), "{text}");
            }
            let open = "x".repeat(before);
            assert_eq!(find_quote(open.as_bytes(), 0), None);
            assert_eq!(find_quote(format!("{open}\\\"").as_bytes(), 0), None);
        }
    }
}
