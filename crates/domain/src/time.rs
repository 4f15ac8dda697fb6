//! Instants (milliseconds since the Unix epoch) and clocks.
//!
//! One type from the wire to the log. Nothing in this crate reads a clock: code that needs the time takes a
//! [`Clock`], so that tests and replays decide what "now" is.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The earliest and latest instants accepted from outside: four-digit years, so that every printed
/// timestamp has the same width and records can be stamped in place.
const EARLIEST_MS: i64 = -2_208_988_800_000; // 1900-01-01T00:00:00Z
// The calendar library's upper limit: the last instant that is in the year 9999 in every time zone.
const LATEST_MS: i64 = 253_402_207_200_999; // 9999-12-30T22:00:00.999Z

/// An instant with millisecond precision.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(i64);

/// The text is not an RFC 3339 instant between the years 1900 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 timestamp such as 2026-11-14T23:38:00Z")]
pub struct TimestampError;

impl Timestamp {
    /// Clamps to the years 1900 to 9999.
    pub const fn from_millis(ms: i64) -> Self {
        if ms < EARLIEST_MS {
            Self(EARLIEST_MS)
        } else if ms > LATEST_MS {
            Self(LATEST_MS)
        } else {
            Self(ms)
        }
    }

    /// Clamps to the years 1900 to 9999.
    pub const fn from_secs(secs: i64) -> Self {
        Self::from_millis(secs.saturating_mul(1000))
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Reads an RFC 3339 instant; any offset is accepted and converted to UTC.
    ///
    /// # Errors
    /// The text is not such an instant, or lies outside the years 1900 to 9999.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        // The longest useful form is "2026-11-14T23:38:00.123456789+00:00"; the bound keeps the parser cheap.
        if text.len() > 40 {
            return Err(TimestampError);
        }
        if let Some(plain) = parse_plain(text.as_bytes()) {
            return Ok(plain);
        }
        let instant: jiff::Timestamp = text.parse().map_err(|_| TimestampError)?;
        let ms = instant.as_millisecond();
        if (EARLIEST_MS..=LATEST_MS).contains(&ms) { Ok(Self(ms)) } else { Err(TimestampError) }
    }

    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(ms))
    }

    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(ms))
    }

    /// Time from `earlier` to this instant; zero if this one is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The wire form with seconds: `2026-11-14T23:38:00Z`.
    pub fn seconds_text(self) -> [u8; 20] {
        let [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, n1, n2, s1, s2, ..] = self.digits();
        [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2, b'Z']
    }

    /// The wire form with milliseconds: `2026-11-14T23:38:00.250Z`.
    pub fn millis_text(self) -> [u8; 24] {
        let [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, n1, n2, s1, s2, t1, t2, t3] = self.digits();
        [
            y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2,
            b'.', t1, t2, t3, b'Z',
        ]
    }

    /// Year, month, day, hour, minute, second and millisecond as ASCII digits (4, 2, 2, 2, 2, 2, 3).
    fn digits(self) -> [u8; 17] {
        let ms_of_day = self.0.rem_euclid(86_400_000);
        let (year, month, day) = civil_from_days(self.0.div_euclid(86_400_000));
        let (secs, millis) = (ms_of_day / 1000, ms_of_day % 1000);
        let (hour, minute, second) = (secs / 3600, secs / 60 % 60, secs % 60);
        let mut digits = [b'0'; 17];
        let (pairs, thousandths) = digits.split_at_mut(14);
        let numbers = [year / 100, year, month, day, hour, minute, second];
        for (pair, n) in pairs.as_chunks_mut().0.iter_mut().zip(numbers) {
            *pair = [digit(n / 10), digit(n)];
        }
        thousandths.copy_from_slice(&[digit(millis / 100), digit(millis / 10), digit(millis)]);
        digits
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seconds_text().iter().try_for_each(|&b| fmt::Write::write_char(f, char::from(b)))
    }
}

/// The source of the current time.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
}

/// A clock that stands still until it is set.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_millis()))
    }

    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// Reads the form of nearly every feed, `2026-11-14T23:38:00Z`, without the cost of the general parser.
fn parse_plain(text: &[u8]) -> Option<Timestamp> {
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
    if text.len() != 20 || separators.iter().any(|(at, byte)| text.get(*at) != Some(byte)) {
        return None;
    }
    let two_digits = |at: usize| number(text.get(at..at + 2)?);
    let (year, month, day) = (number(text.get(..4)?)?, two_digits(5)?, two_digits(8)?);
    let (hour, minute, second) = (two_digits(11)?, two_digits(14)?, two_digits(17)?);
    // Days 29 to 31 and leap seconds are left to the general parser, which knows the calendar.
    let plain = (1900..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=28).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    plain.then(|| {
        Timestamp::from_secs(
            days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second,
        )
    })
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |n, &d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
}

fn digit(n: i64) -> u8 {
    b'0' + u8::try_from(n.rem_euclid(10)).unwrap_or(0)
}

/// Days since 1970-01-01 to (year, month, day) in the proleptic Gregorian calendar, by counting whole
/// 400-year eras from a March-based year, so that leap days fall at the end.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_instant_agree_with_the_calendar_library() {
        for secs in (EARLIEST_MS / 1000..LATEST_MS / 1000).step_by(86_399 * 37) {
            let ours = Timestamp::from_secs(secs);
            let theirs = jiff::Timestamp::from_second(secs).unwrap();
            assert_eq!(ours.to_string(), theirs.to_string());
            assert_eq!(Timestamp::parse(&ours.to_string()), Ok(ours));
        }
    }

    #[test]
    fn offsets_and_fractions_are_read_and_turned_into_utc() {
        let parsed = Timestamp::parse("2026-11-15T01:38:00.25+02:00").unwrap();
        assert_eq!(parsed.to_string(), "2026-11-14T23:38:00Z");
        assert_eq!(parsed.millis_text(), *b"2026-11-14T23:38:00.250Z");
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for bad in [
            "",
            "now",
            "2026-11-14",
            "2026-02-30T00:00:00Z",
            "1776-07-04T00:00:00Z",
            "12026-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(bad), Err(TimestampError), "{bad}");
        }
    }
}
