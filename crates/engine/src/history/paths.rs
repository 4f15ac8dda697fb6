//! What became of the prices of an event (H10 to H12).

use std::sync::Arc;

use archive::{EventPast, RecordPath, Wanted};
use domain::{BookmakerSet, Catalogue, EventId, Market, SportId, Timestamp};

use super::turns::Work;
use super::{History, HistoryError, Source};
use crate::publication::Published;

/// Which changes of prices of an event are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathRequest {
    pub sport: SportId,
    pub event: EventId,
    pub bookmakers: BookmakerSet,
    pub market: Option<Market>,
    /// Bounds of the time of publication; the end is not part of it.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// Also changes that were replaced before they were published.
    pub all: bool,
}

/// What became of them.
#[derive(Debug)]
pub struct EventPaths {
    /// In the order of answers.
    pub paths: Vec<RecordPath>,
    /// Prices that were first published at this time or before may have been there before history began.
    pub exact_after: Timestamp,
}

/// Why there is no path.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("history has no such event")]
    Unknown,
    #[error("the event has too many changes for one answer")]
    TooMuch,
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// Before all times.
pub(super) const EVER: Timestamp = Timestamp::from_millis(i64::MIN);
/// After all times.
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

impl PathRequest {
    /// Calls with what the archive is to look for.
    pub(super) fn wanted<T>(
        &self,
        catalogue: &Catalogue,
        then: impl FnOnce(&Wanted<'_>) -> T,
    ) -> T {
        let Self { event, bookmakers, market, from, to, all, .. } = *self;
        let bookmaker =
            |key: &str| catalogue.bookmaker_id(key).is_some_and(|id| bookmakers.contains(id));
        then(&Wanted { event, bookmaker: &bookmaker, market, from, to, all })
    }
}

impl EventPaths {
    /// `begin`: the first publication of history, where there was something before it.
    pub(super) fn new(past: EventPast, begin: Option<Timestamp>) -> Result<Self, PathError> {
        if past.is_unknown() {
            return Err(PathError::Unknown);
        }
        if past.is_too_much() {
            return Err(PathError::TooMuch);
        }
        // Of an event that was there before, nobody knows when its prices came.
        let exact_after = match past.new_at() {
            Some(_) => begin.unwrap_or(EVER),
            None => NEVER,
        };
        Ok(Self { paths: past.into_paths(), exact_after })
    }
}

impl History {
    /// What became of the prices of an event up to the present publication. `key`: for whom.
    pub(crate) async fn event_paths(
        self: &Arc<Self>,
        request: PathRequest,
        current: &Published,
        key: u64,
    ) -> Result<EventPaths, PathError> {
        let (seq, at) = (current.snapshot.seq, current.snapshot.cut_at);
        if !self.is_on() {
            return Err(HistoryError::Off.into());
        }
        let look = move |source: &Source| {
            Ok(match source {
                Source::Simulated(past) => past.event_paths(&request, at),
                Source::Logged(past) => past.event_paths(&request, seq),
                Source::Nothing => Err(HistoryError::Off.into()),
            })
        };
        self.on_source_in_time(Work::Read, Some(key), look).await?
    }
}
