//! What became of the prices of an event (H10 to H12).

use std::sync::Arc;

use archive::{EventPast, Hold, PathPlace, RecordPath, Wanted};
use domain::{EventId, Market, Timestamp};

use super::turns::Work;
use super::{History, HistoryError, Source};
use crate::publication::Published;

/// Keys of bookmakers, in their order; `None`: all.
pub type BookmakerKeys = Option<Arc<[Box<str>]>>;

/// Which changes of prices of an event are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathRequest {
    /// The sport's key. Names of earlier catalogues are asked for like those of the present one.
    pub sport: Box<str>,
    pub event: EventId,
    pub bookmakers: BookmakerKeys,
    pub market: Option<Market>,
    /// Bounds of the time of publication; the end is not part of it.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// Also changes that were replaced before they were published.
    pub all: bool,
    /// Changes that there is room for.
    pub limit: usize,
    /// Where the page before ended.
    pub after: Option<PathPlace>,
}

/// What became of them.
#[derive(Debug)]
pub struct EventPaths {
    /// In the order of answers: the records that a page may be of, with one more change than there is room for.
    pub paths: Vec<RecordPath>,
    /// Where they end, where there is more after that.
    pub end: Option<PathPlace>,
    /// Prices that were first published at this time or before may have been there before history began.
    pub exact_after: Timestamp,
}

/// Why there is no path.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("history has no such event")]
    Unknown,
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// Before all times.
pub(super) const EVER: Timestamp = Timestamp::from_millis(i64::MIN);
/// After all times.
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

impl PathRequest {
    /// Whether a bookmaker is asked for.
    pub(super) fn has(&self, key: &str) -> bool {
        let keys = self.bookmakers.as_ref();
        keys.is_none_or(|keys| keys.binary_search_by(|held| (**held).cmp(key)).is_ok())
    }

    /// Calls with what the archive is to look for.
    pub(super) fn wanted<T>(&self, then: impl FnOnce(&Wanted<'_>) -> T) -> T {
        let Self { event, market, from, to, all, limit, .. } = *self;
        let hold = Hold::First { after: self.after.as_ref(), limit };
        let bookmaker = |key: &str| self.has(key);
        then(&Wanted { event, bookmaker: &bookmaker, market, from, to, all, hold })
    }
}

impl EventPaths {
    /// `begin`: the first publication of history, where there was something before it.
    pub(super) fn new(past: EventPast, begin: Option<Timestamp>) -> Result<Self, PathError> {
        if past.is_unknown() {
            return Err(PathError::Unknown);
        }
        // Of an event that was there before, nobody knows when its prices came.
        let exact_after = match past.new_at() {
            Some(_) => begin.unwrap_or(EVER),
            None => NEVER,
        };
        let end = past.end().cloned();
        Ok(Self { paths: past.into_paths(), end, exact_after })
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
