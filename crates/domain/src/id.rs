//! Identifiers: opaque, URL-safe, of fixed width, and ordered as text the way they are ordered as numbers.

use std::fmt;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::market::Market;

/// In ASCII order, so that texts sort as their numbers do.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62^11 is the first power of 62 above 2^64.
pub const DIGITS: usize = 11;

/// One event, across bookmakers, restarts and nodes. Created once and persisted; never derived from text that may be
/// corrected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId(u64);

/// One odds record: an event's market at a bookmaker (and one pairing, D30). Derived from those, so it stays the same
/// when price or line move (D13).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordId(u64);

impl EventId {
    pub const PREFIX: &'static str = "evt_";

    /// The `n`th event of a world whose ids are made with `salt`. Different `n` give different ids: both
    /// steps are permutations of the 64-bit numbers.
    pub fn minted(salt: u64, n: u64) -> Self {
        Self(scramble(n ^ salt))
    }

    /// The id of a source's `reference`, for worlds whose ids must be the same everywhere (the sandbox).
    pub fn derived(salt: u64, reference: &str) -> Self {
        Self(xxh3_64_with_seed(reference.as_bytes(), salt))
    }

    pub fn parse(text: &str) -> Option<Self> {
        parse_base62(text.strip_prefix(Self::PREFIX)?).map(Self)
    }

    /// Reads an id as [`EventId::push_hex`] writes it. `Ok(None)`: the form is right, but no event can have this id.
    ///
    /// # Errors
    /// The text is not 32 hexadecimal digits in lower case.
    pub fn parse_hex(text: &str) -> Result<Option<Self>, NotHex> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != HEX_DIGITS || !text.bytes().all(digit) {
            return Err(NotHex);
        }
        let both = u128::from_str_radix(text, 16).map_err(|_| NotHex)?;
        let (number, check) = (both >> 64, both & u128::from(u64::MAX));
        let id = u64::try_from(number).map(Self).map_err(|_| NotHex)?;
        Ok((u128::from(id.check()) == check).then_some(id))
    }

    /// Writes the prior interface's form: the number and its check value, as 32 hexadecimal digits.
    pub fn push_hex(self, out: &mut String) {
        use std::fmt::Write as _;
        let written = write!(out, "{:016x}{:016x}", self.0, self.check());
        debug_assert!(written.is_ok());
    }

    /// The second half of the prior interface's form.
    const fn check(self) -> u64 {
        // An arbitrary number that no other use of `scramble` has.
        scramble(self.0 ^ 0x7634_2f65_7665_6e74)
    }
}

/// A text that is not an id in the prior interface's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHex;

/// Number of digits of an id in the prior interface's form.
const HEX_DIGITS: usize = 32;

impl RecordId {
    pub const PREFIX: &'static str = "odd_";

    pub fn new(event: EventId, bookmaker: &str, market: Market, group: Option<&str>) -> Self {
        let mut text = String::with_capacity(64);
        for part in [bookmaker, market.key(), group.unwrap_or("")] {
            text.push_str(part);
            text.push('\u{1f}');
        }
        Self(xxh3_64_with_seed(text.as_bytes(), event.0))
    }

    pub fn parse(text: &str) -> Option<Self> {
        parse_base62(text.strip_prefix(Self::PREFIX)?).map(Self)
    }
}

macro_rules! number_with_prefix {
    ($($id:ident)*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = String::with_capacity(16);
                self.push_to(&mut text);
                f.write_str(&text)
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl $id {
            pub const fn from_number(number: u64) -> Self {
                Self(number)
            }

            pub const fn number(self) -> u64 {
                self.0
            }

            pub fn push_to(self, out: &mut String) {
                out.push_str(Self::PREFIX);
                push_base62(self.0, out);
            }
        }
    )*};
}

number_with_prefix! { EventId RecordId }

/// Fixed-width base 62 of a number, most significant digit first.
pub fn base62(mut number: u64) -> [u8; DIGITS] {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        let index = usize::try_from(number % 62).unwrap_or(0);
        *digit = BASE62.get(index).copied().unwrap_or(b'0');
        number /= 62;
    }
    digits
}

fn push_base62(number: u64, out: &mut String) {
    // The digits are ASCII: this appends all eleven in one copy.
    out.push_str(std::str::from_utf8(&base62(number)).unwrap_or_default());
}

fn parse_base62(text: &str) -> Option<u64> {
    if text.len() != DIGITS {
        return None;
    }
    let (last, others) = text.as_bytes().split_last()?;
    // Ten digits stay below 2^64; only the last can overflow.
    let number = others.iter().try_fold(0_u64, |number, byte| {
        Some(number.wrapping_mul(62).wrapping_add(digit(*byte)?))
    })?;
    number.checked_mul(62)?.checked_add(digit(*last)?)
}

fn digit(byte: u8) -> Option<u64> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'A'..=b'Z' => byte - b'A' + 10,
        b'a'..=b'z' => byte - b'a' + 36,
        _ => return None,
    };
    Some(u64::from(digit))
}

/// A permutation of the 64-bit numbers (the splitmix64 finaliser), so that ids do not reveal the number of events.
pub const fn scramble(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests;
