//! The days by which files are grouped.

use std::time::Duration;

use domain::Timestamp;

/// The day of an instant in UTC, such as `2026-11-14`.
pub(crate) fn date_of(at: Timestamp) -> String {
    at.millis_text().iter().take(10).map(|byte| char::from(*byte)).collect()
}

/// The beginning of the day after a day; `None` if it is not one.
pub(crate) fn end_of_day(date: &str) -> Option<Timestamp> {
    let begin = Timestamp::parse(&format!("{date}T00:00:00Z")).ok()?;
    Some(begin.plus(Duration::from_secs(24 * 3600)))
}
