//! A reader of JSON that is asked for what is expected next. The stream has thousands of small lines a second whose
//! fields are known; numbers go from their text to scaled integers at once.

use std::borrow::Cow;

/// Numbers are held in millionths.
pub(super) const UNIT: u64 = 1_000_000;
const PLACES: usize = 6;

/// Where the reader is in a line. Everything gives `None` where the line has something else.
#[derive(Clone, Debug)]
pub(super) struct Pull<'l> {
    bytes: &'l [u8],
    at: usize,
}

impl<'l> Pull<'l> {
    pub(super) fn new(bytes: &'l [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Whether only whitespace is left.
    pub(super) fn is_done(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Calls `field` with the key of each field; it must read the value.
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
            let key = self.raw_text()?;
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
        let raw = self.raw_text()?;
        let text = std::str::from_utf8(raw).ok()?;
        if raw.contains(&b'\\') {
            return serde_json::from_str(&format!("\"{text}\"")).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(text))
    }

    /// Where a text without escapes begins and ends.
    pub(super) fn plain_text(&mut self) -> Option<(usize, usize)> {
        let len = self.raw_text().filter(|raw| !raw.contains(&b'\\'))?.len();
        let end = self.at.checked_sub(1)?;
        Some((end.checked_sub(len)?, end))
    }

    /// A text, or nothing where it is null.
    pub(super) fn text_or_null(&mut self) -> Option<Option<Cow<'l, str>>> {
        if self.peek()? == b'n' {
            self.skip()?;
            return Some(None);
        }
        self.text().map(Some)
    }

    pub(super) fn is_null(&mut self) -> bool {
        self.peek() == Some(b'n')
    }

    /// A whole number, in quotes or not; nothing where it is something else.
    pub(super) fn text_or_integer(&mut self) -> Option<Option<u64>> {
        if self.peek()?.is_ascii_digit() {
            return self.integer().map(Some);
        }
        self.skip()?;
        Some(None)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        let word = self.word()?;
        match word {
            b"true" => Some(true),
            b"false" | b"null" => Some(false),
            _ => None,
        }
    }

    /// A whole number.
    pub(super) fn integer(&mut self) -> Option<u64> {
        let word = self.word()?;
        let digits = !word.is_empty() && word.len() < 20;
        let number =
            |n: u64, byte: &u8| byte.is_ascii_digit().then(|| n * 10 + u64::from(byte - b'0'));
        if digits { word.iter().try_fold(0, number) } else { None }
    }

    /// The text of a number.
    pub(super) fn number(&mut self) -> Option<&'l str> {
        let word = self.word()?;
        std::str::from_utf8(word).ok().filter(|word| !word.is_empty())
    }

    /// A number from zero in millionths; more places are cut off a size, and no price has them.
    pub(super) fn scaled(&mut self) -> Option<u64> {
        let word = self.word()?;
        let mut number = 0_u64;
        let mut places: Option<usize> = None;
        for byte in word {
            match byte {
                b'0'..=b'9' if places.is_none_or(|places| places < PLACES) => {
                    number = number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
                    places = places.map(|places| places + 1);
                }
                b'0'..=b'9' => {}
                b'.' if places.is_none() => places = Some(0),
                _ => return scaled_with_exponent(word),
            }
        }
        let power = u32::try_from(PLACES - places.unwrap_or(0)).ok()?;
        (!word.is_empty()).then_some(())?;
        number.checked_mul(10_u64.pow(power))
    }

    /// Passes over any value.
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.raw_text().map(drop),
            b'{' | b'[' => {
                let mut depth = 0_usize;
                loop {
                    let rest = self.bytes.get(self.at..)?;
                    let found = rest
                        .iter()
                        .position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))?;
                    self.at += found;
                    match self.bytes.get(self.at)? {
                        b'"' => self.raw_text().map(drop)?,
                        b'{' | b'[' => {
                            depth += 1;
                            self.at += 1;
                        }
                        _ => {
                            depth -= 1;
                            self.at += 1;
                            if depth == 0 {
                                return Some(());
                            }
                        }
                    }
                }
            }
            _ => self.word().map(drop),
        }
    }

    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// The bytes between quotes, as written.
    fn raw_text(&mut self) -> Option<&'l [u8]> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let rest = self.bytes.get(self.at..)?;
            self.at += memchr::memchr2(b'"', b'\\', rest)?;
            if self.bytes.get(self.at)? == &b'"' {
                self.at += 1;
                return self.bytes.get(start..self.at - 1);
            }
            self.at += 2;
        }
    }

    /// A number, true, false or null, as written.
    fn word(&mut self) -> Option<&'l [u8]> {
        self.peek()?;
        let rest = self.bytes.get(self.at..)?;
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
        let len = rest.iter().take_while(|byte| part(byte)).count();
        self.at += len;
        (len > 0).then_some(())?;
        rest.get(..len)
    }
}

/// `1.25E7`, as large sizes are written.
fn scaled_with_exponent(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
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
        let scaled = |text: &str| Pull::new(text.as_bytes()).scaled();
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
        let mut pull = Pull::new(br#" {"a" : [1, {"b\"}": "]"}], "c":null} x"#);
        assert_eq!(pull.skip(), Some(()));
        assert!(!pull.is_done());
        assert_eq!(Pull::new(b"{\"a\":[1,").skip(), None);
        assert_eq!(Pull::new(br#""\u00e9""#).text().as_deref(), Some("é"));
    }
}
