//! The past of a world: publications rebuilt byte for byte from their sources.
//!
//! A simulated world follows from its seed and the time. A live one follows from its log: a stored book, and the
//! entries after it up to the publication. Books are rebuilt off the request threads, a few at a time, and kept within
//! a memory bound.

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
mod position;
mod simulated;
mod steps;
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
use logged::LoggedPast;
use passed::{KeptPassed, Looks};
pub use passed::{Passed, PassedEvent, PassedRecord, Stride};
pub use paths::{BookmakerKeys, EventPaths, PathError, PathRequest};
pub use place::{IsSought, Place};
use simulated::SimulatedPast;
use turns::{TurnWait, Turns, Work};
pub use walk::Walk;

/// Maximum time that a request waits for data of the past.
const REBUILD_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes per unit of a book's weight, including its snapshot (docs/operations/sizing.md).
const WEIGHT_BYTES: usize = 2200;

/// Maximum number of orders waiting for the archiver.
pub(crate) const ORDERS_MAX: usize = 8;

/// Requests that published entries be archived now, and that files be merged.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) compact: Compact,
    /// Receives whether the order was carried out.
    pub(crate) done: oneshot::Sender<bool>,
}

/// A publication of the past or the present, and the times of its neighbours.
#[derive(Clone, Debug)]
pub struct PastPublication {
    pub published: Arc<Published>,
    pub previous: Option<Timestamp>,
    pub next: Option<Timestamp>,
    /// True if no other publication has followed it yet.
    pub current: bool,
}

/// The extent of history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The first and the last publication that can be answered.
    pub from: Timestamp,
    pub to: Timestamp,
    pub publications: u64,
    pub retention: Duration,
    /// The last day whose files in the archive are final, such as `2026-11-14`.
    pub exported_to: Option<String>,
    /// Times whose publications are lost; the end is exclusive.
    pub gaps: Vec<(Timestamp, Timestamp)>,
    /// The content of the archive, whichever node writes it.
    pub archive: Option<ArchiveHeld>,
}

/// The content of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveHeld {
    /// The oldest publication that is not archived.
    pub waiting: Option<Timestamp>,
    pub bytes: u64,
    pub files: usize,
}

/// The reason why a past publication cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("history is off")]
    Off,
    /// History has no publication of that time.
    #[error("history reaches from {} to {}", .0.from, .0.to)]
    NotKept(Box<Reach>),
    #[error("too many publications of the past are being rebuilt")]
    Busy,
    #[error("it was published with another catalogue, which is not kept")]
    NoCatalogue,
    #[error("the changes since then are not known any more")]
    TooFar,
    #[error("more was quoted in between than there is memory for")]
    TooMuch,
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
    /// Commits of the archive by this process, and failed attempts.
    pub commits: AtomicU64,
    pub commit_failures: AtomicU64,
    /// Failed attempts to merge or remove files.
    pub compaction_failures: AtomicU64,
    pub archive_bytes: AtomicU64,
    pub archive_files: AtomicU64,
    /// Commits that merged files or removed those past retention.
    pub compactions: AtomicU64,
    /// Bytes of archive files sent to clients, and files that could not be sent completely.
    pub export_bytes: AtomicU64,
    pub export_failures: AtomicU64,
    /// Number of panics while writing the archive.
    pub archive_panics: AtomicU64,
    /// Entry of the last archived publication; 0 while unknown.
    pub(crate) archived_seq: AtomicU64,
}

/// The position of a publication that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) previous: Option<Timestamp>,
    pub(crate) next: Option<Timestamp>,
}

/// The source from which a world's past is rebuilt.
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

    /// Location of its archive, if it has one.
    pub fn archive(&self) -> Option<Location> {
        self.options.archive().filter(|_| matches!(self.source, Source::Logged(_)))
    }

    /// The first entry that the log has to keep: the last archived one, which the archiver needs to continue.
    pub fn keep_from(&self) -> u64 {
        match self.archive() {
            Some(_) => self.stats.archived_seq.load(Ordering::Acquire),
            None => u64::MAX,
        }
    }

    /// Age of the oldest publication that is known not to be archived; zero without an archive, and if another node
    /// writes it. Publications of an earlier process count once the end of the archive was read.
    pub fn archive_lag(&self, now: Timestamp) -> Duration {
        self.backlog.age(now)
    }

    /// Notes a publication. `leads`: this node writes the log and therefore the archive.
    pub(crate) fn note_published(&self, published: &Published, leads: bool) {
        self.note_cut(published.snapshot.cut_at);
        if !leads {
            self.backlog.clear();
        } else if self.archive().is_some() {
            self.backlog.note_published(published.snapshot.seq, published.snapshot.cut_at);
        }
    }

    /// Notes a publication in the log, whether it was shown here or not.
    pub(crate) fn note_cut(&self, at: Timestamp) {
        if let Source::Logged(past) = &self.source {
            past.note_cut(at);
        }
    }

    /// Notes the first publication in the log after the end of the archive.
    pub(crate) fn note_unarchived(&self, seq: u64, at: Timestamp) {
        self.backlog.note_first(seq, at);
    }

    /// Notes that the archive contains everything up to an entry.
    pub(crate) fn note_archived(&self, last_seq: u64) {
        self.stats.archived_seq.store(last_seq, Ordering::Release);
        self.backlog.note_archived(last_seq);
    }

    /// Notes that the archive has changed.
    pub(crate) fn note_archive_changed(&self) {
        if let Source::Logged(past) = &self.source {
            past.note_news();
        }
    }

    /// Archives everything published so far and merges these files; returns whether that succeeded.
    ///
    /// # Errors
    /// There is no archive, too many orders are waiting, or the archiver has ended.
    pub async fn flush(&self, compact: Compact) -> Result<bool, HistoryError> {
        let (done, answer) = oneshot::channel();
        if self.archive().is_none() {
            return Err(HistoryError::Off);
        }
        self.order.try_send(Order { compact, done }).map_err(|_| HistoryError::Busy)?;
        answer.await.map_err(|_| HistoryError::Unreadable(None))
    }

    /// The last publication at or before an instant; `published` is the present one. `key`: the requesting key, if the
    /// publication has to be rebuilt.
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

    /// The catalogue of the publication at or before an instant, if it differs from the present one. No book is built
    /// for it.
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

    /// All names that publications may have used, with their present or last meaning, if known without waiting.
    pub fn known_at_once(&self, own: &Arc<Catalogue>) -> Option<Arc<Catalogue>> {
        match &self.source {
            Source::Logged(past) if self.is_on() => past.known_at_once(),
            Source::Logged(_) | Source::Simulated(_) | Source::Nothing => Some(Arc::clone(own)),
        }
    }

    /// The same, read from the stored catalogues in addition to the present one.
    ///
    /// # Errors
    /// The catalogues cannot be read.
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

    /// The last publication at or before an instant of the past, never the present one.
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

    /// A publication that was found: a kept or recent one, or rebuilt.
    async fn remake(
        self: &Arc<Self>,
        found: Found,
        key: u64,
        mut wait: TurnWait,
    ) -> Result<PastPublication, HistoryError> {
        let cell = self.kept().cell(found.seq, found.at);
        if let Some(published) = cell.get() {
            let published = Arc::clone(published);
            return Ok(found.with(published));
        }
        if let Some((recent, _)) = self.recent_at(found) {
            let ready = cell.get_or_init(async || self.keep(found, &recent, true)).await;
            return Ok(found.with(Arc::clone(ready)));
        }
        let turn = self.turn_of(key, &mut wait).await?;
        // The rebuild continues if its request ends, and holds the key's turn until the result is kept for the next
        // request.
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
                // Publications since then could not be logged; they become known once they can be.
                let is_open_gap = found.next.is_none() && found.at < current && at < current;
                if is_open_gap { Err(HistoryError::Unreadable(None)) } else { Ok(found) }
            }
        }
    }

    /// The extent of history; `current` is the time of the present publication.
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

    /// True if times of the past can be requested.
    pub fn is_on(&self) -> bool {
        self.options.by_time && !matches!(self.source, Source::Nothing)
    }

    /// Time of the last publication at or before an instant; `None`: history does not have it.
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

    /// Time of the publication before the present one; `None`: history begins with the present one.
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
        let published = match made {
            Err(HistoryError::Busy) => return Err(HistoryError::Busy),
            Ok(made) => made,
            Err(error) => {
                self.stats.rebuild_failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(event = "history.rebuild_failed", at = %found.at, error = %Chain(&error), "a past publication could not be made again");
                return Err(error);
            }
        };
        self.stats.rebuilds.fetch_add(1, Ordering::Relaxed);
        Ok(self.keep(found, &published, false))
    }

    /// Keeps a publication that another has followed, for requests of the changes since. It gets no answers of its own:
    /// those to `as_of` belong to a copy in `kept`, which counts them. `next`: the time of the next one in the log, if
    /// known.
    pub(crate) fn note_recent(&self, published: &Published, next: Option<Timestamp>) {
        let max = self.options.memory_max / RECENT_SHARE;
        self.recent().push(published.of_the_past(0), next, max);
        self.looks.age();
        if let Source::Logged(past) = &self.source {
            past.tail.age();
            past.rolled.age();
        }
    }

    fn recent_at(&self, found: Found) -> Option<(Arc<Published>, Option<Timestamp>)> {
        // States between publications may have the same millisecond. A simulated world has no entry numbers.
        let same = |held: &Snapshot| match self.source {
            Source::Logged(_) => (held.seq, held.cut_at) == (found.seq, found.at),
            Source::Simulated(_) | Source::Nothing => held.cut_at == found.at,
        };
        self.recent().find(|held| same(&held.snapshot))
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
