//! Scheduled faults, against which clients can be tested.
//!
//! The faults occur at fixed minutes of every hour:
//!
//! | Minute (UTC) | Fault |
//! |---|---|
//! | always | [`STALE`]'s feed is a quarter of an hour behind: all its sources are stale |
//! | :10 | a bout of mixed martial arts is cancelled: removed, 404 from then on |
//! | :20 | a boxing bout is postponed by two hours |
//! | :30 to :35 | [`DARK`] is silent; its sources are stale from :31:30 until it is back at :35 |
//! | :40 | a fighter of a mixed martial arts bout is replaced; its odds are withdrawn and come back |
//! | :56:30 to :00 | [`SILENT_SPORT`] is not read; all its sources are stale from :58 to the hour |

use super::discipline::Discipline;

/// The bookmaker whose feed is always late.
pub(crate) const STALE: &str = "barstool";
/// Its delay.
pub(crate) const STALE_BY_S: i64 = 900;
/// The bookmaker that is silent for a part of each hour.
pub(crate) const DARK: &str = "bovada";
/// The sport that is silent at the end of each hour.
pub(crate) const SILENT_SPORT: Discipline = Discipline::Boxing;

pub(crate) const HOUR_S: i64 = 3600;
/// Second of the hour at which a bout is cancelled.
pub(crate) const CANCELLED_AT_S: i64 = 10 * 60;
/// Second of the hour at which a bout is postponed.
pub(crate) const POSTPONED_AT_S: i64 = 20 * 60;
/// Time by which it is postponed.
pub(crate) const POSTPONED_BY_S: i64 = 2 * HOUR_S;
/// Second of the hour at which a fighter is replaced.
pub(crate) const REPLACED_AT_S: i64 = 40 * 60;

const DARK_FROM_S: i64 = 30 * 60;
const DARK_UNTIL_S: i64 = 35 * 60;
/// Ninety seconds (D22) before the last two minutes of the hour, so that all sources are stale throughout them.
const SILENT_FROM_S: i64 = 56 * 60 + 30;

/// True if a bookmaker's feed for a sport is silent at an instant.
pub(crate) fn is_silent(bookmaker: &str, sport: Discipline, at: i64) -> bool {
    let second = at.rem_euclid(HOUR_S);
    let dark = bookmaker == DARK && (DARK_FROM_S..DARK_UNTIL_S).contains(&second);
    let silent = sport == SILENT_SPORT && second >= SILENT_FROM_S;
    dark || silent
}
