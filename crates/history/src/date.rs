//! The days by which files are grouped.

use domain::Timestamp;

/// The day of an instant in UTC, such as `2026-11-14`.
pub(crate) fn date_of(at: Timestamp) -> String {
    at.millis_text().iter().take(10).map(|byte| char::from(*byte)).collect()
}
