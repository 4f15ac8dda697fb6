//! Durations as people write them: a whole number and a unit, `100ms`, `30s`, `10m`, `72h`, `7d`.
//!
//! Used by the configuration and the command line. No sums (`1h30m`) and no fractions: each duration has one obvious
//! spelling, and a typing error does not become another duration.

use std::time::Duration;

/// The units and their length in milliseconds.
const UNITS_MS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Ten years: a longer one is a typing error, and this is far below any overflow.
pub(super) const LONGEST_MS: u64 = 3650 * 86_400_000;

/// Parses a duration.
///
/// # Errors
/// The text is not a whole number followed by a unit, or means more than ten years. The message completes
/// the sentence "`TEXT` is …".
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    const FORM: &str = "not a duration such as 100ms, 30s, 10m, 72h or 7d";
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).ok_or(FORM)?;
    let (digits, unit) = text.split_at(digits_end);
    if digits.is_empty() {
        return Err(FORM.to_owned());
    }
    let (_, unit_ms) = UNITS_MS.into_iter().find(|(name, _)| *name == unit).ok_or(FORM)?;
    // A number that overflows is no meaningful duration.
    let count: u64 = digits.parse().unwrap_or(u64::MAX);
    count
        .checked_mul(unit_ms)
        .filter(|ms| *ms <= LONGEST_MS)
        .map(Duration::from_millis)
        .ok_or_else(|| "longer than ten years (3650d)".to_owned())
}

/// A duration in the largest unit that it is a whole number of.
pub(super) fn show_ms(ms: u64) -> String {
    let fitting = UNITS_MS.into_iter().find(|(_, unit_ms)| ms > 0 && ms.is_multiple_of(*unit_ms));
    let (unit, unit_ms) = fitting.unwrap_or(("ms", 1));
    format!("{}{unit}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, ms) in [
            ("100ms", 100),
            ("30s", 30_000),
            ("10m", 600_000),
            ("72h", 259_200_000),
            ("7d", 604_800_000),
            ("0s", 0),
            ("3650d", LONGEST_MS),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(parse_duration(&show_ms(ms)), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!([0, 90_000, 3_600_000].map(show_ms), ["0ms", "90s", "1h"]);
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for bad in [
            "",
            "30",
            "s",
            "30 s",
            "-1s",
            "+1s",
            "1.5h",
            "1h30m",
            "30S",
            "30sec",
            "٣s",
            "3651d",
            "99999999999999999999s",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
