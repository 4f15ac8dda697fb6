//! The price history of an event (H10 to H12).

use std::sync::Arc;

use archive::{EventPast, Hold, PathPlace, RecordPath, Wanted};
use domain::{EventId, Market, Timestamp};

use super::turns::Work;
use super::{History, HistoryError, Source};
use crate::publication::Published;

/// Keys of bookmakers, sorted; `None`: all.
pub type BookmakerKeys = Option<Arc<[Box<str>]>>;

/// A selection of price changes of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathRequest {
    /// The sport's key. Names of earlier catalogues are accepted like those of the present one.
    pub sport: Box<str>,
    pub event: EventId,
    pub bookmakers: BookmakerKeys,
    pub market: Option<Market>,
    /// Bounds of the time of publication; the end is exclusive.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// True to include changes that were replaced before they were published.
    pub all: bool,
    /// Maximum number of changes.
    pub limit: usize,
    /// The end of the previous page.
    pub after: Option<PathPlace>,
}

/// The selected price paths of an event.
#[derive(Debug)]
pub struct EventPaths {
    /// In the order of answers: the records that a page may contain, with one change more than the limit.
    pub paths: Vec<RecordPath>,
    /// The end of this page, if there is more after it.
    pub end: Option<PathPlace>,
    /// Prices first published at this time or before may have existed before history began.
    pub exact_after: Timestamp,
}

/// The reason why there is no path.
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
    /// True if a bookmaker is selected.
    pub(super) fn has(&self, key: &str) -> bool {
        let keys = self.bookmakers.as_ref();
        keys.is_none_or(|keys| keys.binary_search_by(|held| (**held).cmp(key)).is_ok())
    }

    /// Calls with the selection for the archive.
    pub(super) fn wanted<T>(&self, then: impl FnOnce(&Wanted<'_>) -> T) -> T {
        let Self { event, market, from, to, all, limit, .. } = *self;
        let hold = Hold::First { after: self.after.as_ref(), limit };
        let bookmaker = |key: &str| self.has(key);
        then(&Wanted { event, bookmaker: &bookmaker, market, from, to, all, hold })
    }
}

impl EventPaths {
    /// `begin`: the first publication of history, if there was something before it.
    pub(super) fn new(past: EventPast, begin: Option<Timestamp>) -> Result<Self, PathError> {
        if past.is_unknown() {
            return Err(PathError::Unknown);
        }
        // If the event existed before history, the time of its first prices is unknown.
        let exact_after = match past.new_at() {
            Some(_) => begin.unwrap_or(EVER),
            None => NEVER,
        };
        let end = past.end().cloned();
        Ok(Self { paths: past.into_paths(), end, exact_after })
    }
}

impl History {
    /// Price paths of an event up to the present publication. `key`: the requesting key.
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
