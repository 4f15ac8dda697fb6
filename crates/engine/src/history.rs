//! The past of a world: publications made again from what they were made of, byte for byte.
//!
//! A simulated world follows from its seed and the time. A live one follows from its log: a book as of some entry, and
//! the entries from there up to the publication. Books are made again off the request threads, a few at a time, and are
//! kept within a bound.

mod backlog;
mod changes;
mod closings;
mod export;
mod index;
mod kept;
mod logged;
mod passed;
mod paths;
mod place;
mod rolled;
mod simulated;
mod tail;
mod turns;
mod walk;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use archive::{Compact, Location};
use domain::{Catalogue, Timestamp};
use market::Snapshot;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::error::{Chain, WorldError};
use crate::options::{HistoryOptions, WorldOptions};
use crate::publication::Published;
use backlog::Backlog;
pub use changes::{ChangeWalk, Reached, WalkedChange};
pub use closings::{ClosedRecord, ClosingPage, ClosingRequest};
use export::ExportSlots;
pub use export::{ExportError, ExportFile, ExportPieces, ExportRequest};
use kept::Kept;
pub(crate) use kept::{RECENT_SHARE, Recent, row_bytes};
use logged::{EntryFound, LoggedPast};
use passed::{KeptPassed, Looks};
pub use passed::{Passed, PassedEvent, PassedRecord};
pub use paths::{BookmakerKeys, EventPaths, PathError, PathRequest};
pub use place::Place;
use simulated::SimulatedPast;
use turns::{TurnWait, Turns, Work};
pub use walk::Walk;

/// How long a request waits for what it needs of the past.
const REBUILD_TIME_MAX: Duration = Duration::from_secs(20);
/// What a unit of a book's weight takes, with its snapshot (docs/operations/sizing.md).
const WEIGHT_BYTES: usize = 2200;
/// What a unit of it takes in a book that is held to be rolled forward, beside the publication that shares its records:
/// measured with 200,000 records.
const BOOK_BYTES: usize = 400;
/// What the answers made from a past publication may take.
const ANSWER_BYTES_MAX: usize = 2 << 20;

/// How many may wait for the archive at a time.
const ORDERS_MAX: usize = 8;

/// Asks for what was published to be archived now, and for files to be put together.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) compact: Compact,
    /// Gets whether it was done.
    pub(crate) done: oneshot::Sender<bool>,
}

/// A publication of the past or the present, and those next to it.
#[derive(Clone, Debug)]
pub struct PastPublication {
    pub published: Arc<Published>,
    pub previous: Option<Timestamp>,
    pub next: Option<Timestamp>,
    /// No other has followed it yet.
    pub current: bool,
}

/// How far history reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The first publication that is answerable, and the last.
    pub from: Timestamp,
    pub to: Timestamp,
    pub publications: u64,
    pub retention: Duration,
    /// The last day whose files in the archive are final, such as `2026-11-14`.
    pub exported_to: Option<String>,
    /// Publications of these times are lost; the end is not part of it.
    pub gaps: Vec<(Timestamp, Timestamp)>,
    /// What the archive has, whichever node writes it.
    pub archive: Option<ArchiveHeld>,
}

/// What an archive has of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveHeld {
    /// The oldest publication that it does not have.
    pub waiting: Option<Timestamp>,
    pub bytes: u64,
    pub files: usize,
}

/// Why a publication of the past cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("history is off")]
    Off,
    /// There is none of that time.
    #[error("history reaches from {} to {}", .0.from, .0.to)]
    NotKept(Box<Reach>),
    #[error("publications of the past are made again for others at the moment")]
    Busy,
    #[error("it was published with another catalogue, which is not kept")]
    NoCatalogue,
    #[error("more has happened since than is looked through, or it is not known any more")]
    TooFar,
    #[error("the past cannot be read at the moment")]
    Unreadable(#[source] Option<Arc<WorldError>>),
}

impl From<WorldError> for HistoryError {
    fn from(error: WorldError) -> Self {
        Self::Unreadable(Some(Arc::new(error)))
    }
}

/// Figures for `/metrics`.
#[derive(Debug, Default)]
pub struct HistoryStats {
    pub rebuilds: AtomicU64,
    pub rebuild_failures: AtomicU64,
    pub rebuild_us: AtomicU64,
    pub waiting: AtomicU64,
    pub kept_bytes: AtomicU64,
    /// Commits of the archive that this process made, and attempts that failed.
    pub commits: AtomicU64,
    pub commit_failures: AtomicU64,
    pub archive_bytes: AtomicU64,
    pub archive_files: AtomicU64,
    /// Commits that put files together or took out what was past retention.
    pub compactions: AtomicU64,
    /// Bytes of the archive's files that were sent to clients, and files that could not be sent to their end.
    pub export_bytes: AtomicU64,
    pub export_failures: AtomicU64,
    /// Times that writing it panicked.
    pub archive_panics: AtomicU64,
    /// The entry of the last publication that it holds; 0 as long as that is not known.
    pub(crate) archived_seq: AtomicU64,
}

/// Where a publication is found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) previous: Option<Timestamp>,
    pub(crate) next: Option<Timestamp>,
}

/// What a world's past is made again from.
enum Source {
    Simulated(Box<SimulatedPast>),
    Logged(Box<LoggedPast>),
    Nothing,
}

/// The past of one world.
pub struct History {
    source: Source,
    options: HistoryOptions,
    kept: Mutex<Kept>,
    recent: Mutex<Recent>,
    turns: Turns,
    backlog: Backlog,
    exports: ExportSlots,
    passed: KeptPassed,
    looks: Looks,
    order: mpsc::Sender<Order>,
    pub(crate) orders: tokio::sync::Mutex<mpsc::Receiver<Order>>,
    pub stats: HistoryStats,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("options", &self.options).finish_non_exhaustive()
    }
}

impl History {
    pub(crate) fn new(options: &WorldOptions) -> Arc<Self> {
        let source = match (&options.simulation, &options.log) {
            (Some(simulation), _) => {
                Source::Simulated(Box::new(SimulatedPast::new(simulation.clone(), options.clone())))
            }
            (None, change_log::LogLocation::Nowhere) => Source::Nothing,
            (None, _) => Source::Logged(Box::new(LoggedPast::new(options.clone()))),
        };
        let (order, orders) = mpsc::channel(ORDERS_MAX);
        Arc::new(Self {
            order,
            orders: tokio::sync::Mutex::new(orders),
            source,
            options: options.history.clone(),
            kept: Mutex::default(),
            recent: Mutex::default(),
            turns: Turns::default(),
            backlog: Backlog::default(),
            exports: ExportSlots::default(),
            passed: passed::none_kept(),
            looks: Looks::default(),
            stats: HistoryStats::default(),
        })
    }

    /// Where its archive is, where it has one.
    pub fn archive(&self) -> Option<Location> {
        self.options.archive().filter(|_| matches!(self.source, Source::Logged(_)))
    }

    /// The first entry that the log has to keep: the last that the archive holds, by which the archive is continued.
    pub fn keep_from(&self) -> u64 {
        match self.archive() {
            Some(_) => self.stats.archived_seq.load(Ordering::Acquire),
            None => u64::MAX,
        }
    }

    /// How old the oldest publication is that this process made and the archive does not have; zero without an archive,
    /// and where another node writes it.
    pub fn archive_lag(&self, now: Timestamp) -> Duration {
        self.backlog.age(now)
    }

    /// Notes a publication. `leads`: this node writes the log, and so the archive.
    pub(crate) fn note_published(&self, published: &Published, leads: bool) {
        if !leads {
            self.backlog.clear();
        } else if self.archive().is_some() {
            self.backlog.note_published(published.snapshot.seq, published.snapshot.cut_at);
        }
    }

    /// Notes that the archive has changed, and has all up to an entry.
    pub(crate) fn note_archived(&self, last_seq: u64) {
        self.stats.archived_seq.store(last_seq, Ordering::Release);
        self.backlog.note_archived(last_seq);
        if let Source::Logged(past) = &self.source {
            past.note_news();
        }
    }

    /// Has what was published archived now and these files put together, and says whether they were.
    ///
    /// # Errors
    /// There is no archive, or nobody who writes it.
    pub async fn flush(&self, compact: Compact) -> Result<bool, HistoryError> {
        let (done, answer) = oneshot::channel();
        if self.archive().is_none() {
            return Err(HistoryError::Off);
        }
        self.order.try_send(Order { compact, done }).map_err(|_| HistoryError::Busy)?;
        answer.await.map_err(|_| HistoryError::Unreadable(None))
    }

    /// The last publication at or before an instant, where `published` is the present one. `key`: for whom it is made
    /// again, where it has to be.
    pub(crate) async fn as_of(
        self: &Arc<Self>,
        published: Arc<Published>,
        at: Timestamp,
        key: u64,
    ) -> Result<PastPublication, HistoryError> {
        if !self.is_on() {
            return Err(HistoryError::Off);
        }
        let current = published.snapshot.cut_at;
        if at < current {
            return self.publication(at, current, key).await;
        }
        let previous = self.before(&published.snapshot, &mut TurnWait::default()).await?;
        Ok(PastPublication { published, previous, next: None, current: true })
    }

    /// The catalogue of the publication at or before an instant, where that is another than the present one; no book is
    /// made for it.
    pub(crate) async fn other_catalogue(
        self: &Arc<Self>,
        at: Timestamp,
        current: Timestamp,
    ) -> Result<Option<Arc<Catalogue>>, HistoryError> {
        if !self.is_on() || at >= current || !matches!(self.source, Source::Logged(_)) {
            return Ok(None);
        }
        let mut wait = TurnWait::default();
        let found = self.find(at, current, &mut wait).await?;
        let version = self.look_up(&mut wait, move |past| Ok(past.other_version(found))).await?;
        let Some(version) = version else { return Ok(None) };
        let read = move |past: &LoggedPast| past.other_catalogue(&version);
        self.on_logged(Work::StoreRead, &mut wait, read).await
    }

    /// All names that publications may have had, with what they mean now or last meant, where that is known at once.
    pub fn known_at_once(&self, own: &Arc<Catalogue>) -> Option<Arc<Catalogue>> {
        match &self.source {
            Source::Logged(past) if self.is_on() => past.known_at_once(),
            Source::Logged(_) | Source::Simulated(_) | Source::Nothing => Some(Arc::clone(own)),
        }
    }

    /// The same from what is kept now, beside those of the present.
    ///
    /// # Errors
    /// That cannot be read.
    pub async fn known(
        self: &Arc<Self>,
        own: &Arc<Catalogue>,
    ) -> Result<Arc<Catalogue>, HistoryError> {
        match &self.source {
            Source::Logged(_) if self.is_on() => {
                self.on_logged(Work::StoreRead, &mut TurnWait::default(), LoggedPast::known).await
            }
            Source::Logged(_) | Source::Simulated(_) | Source::Nothing => Ok(Arc::clone(own)),
        }
    }

    /// The publication at or before an instant that is past, and not the one of the present.
    async fn publication(
        self: &Arc<Self>,
        at: Timestamp,
        current: Timestamp,
        key: u64,
    ) -> Result<PastPublication, HistoryError> {
        let mut wait = TurnWait::default();
        let found = self.find(at, current, &mut wait).await?;
        self.remake(found, key, wait).await
    }

    /// A publication that was found, from what is kept or made again.
    async fn remake(
        self: &Arc<Self>,
        found: Found,
        key: u64,
        mut wait: TurnWait,
    ) -> Result<PastPublication, HistoryError> {
        if let Some((recent, _)) = self.recent_at(found) {
            return Ok(found.with(recent));
        }
        let cell = self.kept().cell(found.seq, found.at);
        if let Some(published) = cell.get() {
            let published = Arc::clone(published);
            return Ok(found.with(published));
        }
        let turn = self.turn_of(key, &mut wait).await?;
        // It goes on where nobody waits for it any more, and has the key's turn until it is kept for the next request.
        let history = Arc::clone(self);
        let making = tokio::spawn(async move {
            let _turn = turn;
            cell.get_or_try_init(|| history.rebuild(found, wait)).await.map(Arc::clone)
        });
        let made = timeout(REBUILD_TIME_MAX, making).await.map_err(|_| HistoryError::Busy)?;
        let made = made.unwrap_or(Err(HistoryError::Unreadable(None)));
        Ok(found.with(made?))
    }

    async fn find(
        self: &Arc<Self>,
        at: Timestamp,
        current: Timestamp,
        wait: &mut TurnWait,
    ) -> Result<Found, HistoryError> {
        match &self.source {
            Source::Nothing => Err(HistoryError::Off),
            Source::Simulated(past) => past.find(at, current),
            Source::Logged(past) => {
                if let Some(found) = past.find_at_once(at, current) {
                    return Ok(found);
                }
                let found = self.look_up(wait, move |past| past.find(at, current)).await?;
                // What was published since could not be logged, and is known again when it can.
                let is_open_gap = found.next.is_none() && found.at < current && at < current;
                if is_open_gap { Err(HistoryError::Unreadable(None)) } else { Ok(found) }
            }
        }
    }

    /// How far history reaches, where `current` is the publication of the present.
    ///
    /// # Errors
    /// It is off, or cannot be read.
    pub async fn reach(self: &Arc<Self>, current: Timestamp) -> Result<Reach, HistoryError> {
        match &self.source {
            _ if !self.is_on() => Err(HistoryError::Off),
            Source::Nothing => Err(HistoryError::Off),
            Source::Simulated(past) => Ok(past.reach(current)),
            Source::Logged(_) => self.look_up(&mut TurnWait::default(), LoggedPast::reach).await,
        }
    }

    /// Whether times of the past can be asked for.
    pub fn is_on(&self) -> bool {
        self.options.by_time && !matches!(self.source, Source::Nothing)
    }

    /// When the last publication at or before an instant was made; `None`: history does not have it.
    pub(crate) async fn time_of(
        self: &Arc<Self>,
        at: Timestamp,
        current: Timestamp,
    ) -> Result<Option<Timestamp>, HistoryError> {
        match self.find(at, current, &mut TurnWait::default()).await {
            Ok(found) => Ok(Some(found.at)),
            Err(HistoryError::NotKept(_) | HistoryError::Off) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// When the publication before the one of the present was made; `None`: history begins with that.
    async fn before(
        self: &Arc<Self>,
        current: &Snapshot,
        wait: &mut TurnWait,
    ) -> Result<Option<Timestamp>, HistoryError> {
        let (seq, at) = (current.seq, current.cut_at);
        match &self.source {
            Source::Nothing => Ok(None),
            Source::Simulated(past) => Ok(past.before(at)),
            Source::Logged(past) => match past.before_at_once(seq, at) {
                Some(before) => Ok(Some(before)),
                None => self.look_up(wait, move |past| past.before(seq, at)).await,
            },
        }
    }

    /// The publication at a position that clients hold, where `current` is the present one, and when the one after it
    /// was made; `None`: there is none that can be shown. It may be of another catalogue.
    pub(crate) async fn publication_at(
        self: &Arc<Self>,
        current: Arc<Published>,
        place: Place,
        key: u64,
    ) -> Result<Option<(Arc<Published>, Option<Timestamp>)>, HistoryError> {
        if place.is_of(&current.snapshot) {
            return Ok(Some((current, None)));
        }
        let recent = self.recent().find(|held| place.is_of(&held.snapshot), |_| true);
        if let Some((recent, next)) = recent {
            return Ok(Some((recent, next.or(Some(current.snapshot.cut_at)))));
        }
        let mut wait = TurnWait::default();
        match self.find_place(place, current.snapshot.cut_at, &mut wait).await? {
            Some(found) => {
                let past = self.remake(found, key, wait).await?;
                Ok(Some((past.published, past.next)))
            }
            None => Ok(None),
        }
    }

    /// Whether what was published at a position or a time, or was shown between two publications, has to be read from
    /// the archive: it is not kept, and the log does not reach back to it any more.
    pub(crate) async fn is_archived(self: &Arc<Self>, current: &Published, past: Place) -> bool {
        let is_kept = past.is_of(&current.snapshot)
            || self.recent().find(|held| past.is_of(&held.snapshot), |_| true).is_some();
        if is_kept || self.archive().is_none() {
            return false;
        }
        // What cannot be read is refused where it is asked for.
        let wait = &mut TurnWait::default();
        self.look_up(wait, move |logged| logged.is_archived(past)).await.unwrap_or(false)
    }

    /// Where a position is that clients hold; `None`: history does not have it.
    async fn find_place(
        self: &Arc<Self>,
        place: Place,
        current: Timestamp,
        wait: &mut TurnWait,
    ) -> Result<Option<Found>, HistoryError> {
        let found = match (&self.source, place) {
            (Source::Simulated(past), Place::Time(at)) => past.find_place(at, current).map(Some),
            (Source::Logged(_), Place::Entry(seq)) => {
                match self.look_up(wait, move |past| past.find_entry(seq)).await {
                    Ok(EntryFound::Known(found)) => Ok(found),
                    Ok(EntryFound::Archived { next }) => {
                        let find = move |past: &LoggedPast| past.find_archived(seq, next);
                        self.on_logged(Work::StoreRead, wait, find).await
                    }
                    Err(error) => Err(error),
                }
            }
            (Source::Simulated(_) | Source::Logged(_) | Source::Nothing, _) => Ok(None),
        };
        match found {
            Ok(found) => Ok(found.filter(|found| place.is(found.seq, found.at))),
            Err(HistoryError::NotKept(_) | HistoryError::Off) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn rebuild(
        self: &Arc<Self>,
        found: Found,
        mut wait: TurnWait,
    ) -> Result<Arc<Published>, HistoryError> {
        let history = Arc::clone(self);
        let rebuild = move |source: &Source| {
            let begun = Instant::now();
            let made = match source {
                Source::Simulated(past) => Ok(past.rebuild(found.at)),
                Source::Logged(past) => past.rebuild(found),
                Source::Nothing => Err(HistoryError::Off),
            };
            let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            history.stats.rebuild_us.fetch_add(took, Ordering::Relaxed);
            made
        };
        let made = self.on_source(Work::Rebuild, None, &mut wait, rebuild).await;
        let (published, weight) = match made {
            Err(HistoryError::Busy) => return Err(HistoryError::Busy),
            Ok(made) => made,
            Err(error) => {
                self.stats.rebuild_failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(event = "history.rebuild_failed", at = %found.at, error = %Chain(&error), "a past publication could not be made again");
                return Err(error);
            }
        };
        self.stats.rebuilds.fetch_add(1, Ordering::Relaxed);
        let weight = usize::try_from(weight).unwrap_or(usize::MAX);
        let bytes = weight.saturating_mul(WEIGHT_BYTES).saturating_add(ANSWER_BYTES_MAX);
        let published = Arc::new(published.of_the_past(ANSWER_BYTES_MAX));
        let max = self.options.memory_max.saturating_sub(weight.saturating_mul(BOOK_BYTES));
        let (kept_bytes, gone) = self.kept().note((found.seq, found.at), bytes, max);
        drop(tokio::task::spawn_blocking(move || drop(gone)));
        self.stats
            .kept_bytes
            .store(u64::try_from(kept_bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(published)
    }

    /// Keeps a publication that another has followed, for those who ask what changed since.
    pub(crate) fn note_recent(&self, published: &Published) {
        let published = published.of_the_past(ANSWER_BYTES_MAX);
        self.recent().push(published, self.options.memory_max / RECENT_SHARE);
        self.looks.age();
        if let Source::Logged(past) = &self.source {
            past.tail.age();
            past.rolled.age();
        }
    }

    fn recent_at(&self, found: Found) -> Option<(Arc<Published>, Option<Timestamp>)> {
        // What is between publications may be of the same millisecond. A simulated world has no entries that count.
        let same = |held: &Snapshot| match self.source {
            Source::Logged(_) => (held.seq, held.cut_at) == (found.seq, found.at),
            Source::Simulated(_) | Source::Nothing => held.cut_at == found.at,
        };
        self.recent().find(|held| same(&held.snapshot), |_| true)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    fn with(self, published: Arc<Published>) -> PastPublication {
        let Self { previous, next, .. } = self;
        PastPublication { published, previous, next, current: false }
    }
}
