//! A handicap or total: a whole number of quarter points, so that it is exact and cheap to compare.

use serde::{Deserialize, Serialize};

use crate::price::{quarters, shorten};

/// A number of quarter points; -3.5 is -14.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Line(i32);

/// A text that is not a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a line: a number in quarter points between -10000 and 10000, such as -3.5 or 47.25"
)]
pub struct LineError(String);

/// Far above any handicap or total in our sports; the bound keeps nonsense out.
const QUARTERS_MAX: i32 = 40_000;

impl Line {
    /// Reads a number such as `-3.5`.
    ///
    /// # Errors
    /// The text is no number, no multiple of a quarter, or beyond ±10000.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        quarters(text)
            .filter(|quarters| quarters.abs() <= QUARTERS_MAX)
            .map(Self)
            .ok_or_else(|| LineError(shorten(text)))
    }

    pub const fn from_quarters(quarters: i32) -> Self {
        Self(quarters)
    }

    pub const fn quarters(self) -> i32 {
        self.0
    }

    /// Writes a JSON number without trailing zeros.
    pub fn write_json(self, out: &mut String) {
        if self.0 < 0 {
            out.push('-');
        }
        let size = self.0.unsigned_abs();
        out.push_str(&(size / 4).to_string());
        out.push_str(match size % 4 {
            0 => "",
            1 => ".25",
            2 => ".5",
            _ => ".75",
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip_and_what_is_none_is_refused() {
        for (text, written) in [
            ("-3.5", "-3.5"),
            ("47.25", "47.25"),
            ("0", "0"),
            ("-0.0", "0"),
            ("+7", "7"),
            ("2.750", "2.75"),
        ] {
            let mut out = String::new();
            Line::parse(text).unwrap().write_json(&mut out);
            assert_eq!(out, written);
        }
        for bad in ["", "3.33", "NaN", "10000.25", "1e9", "three"] {
            assert!(Line::parse(bad).is_err(), "{bad}");
        }
    }
}
