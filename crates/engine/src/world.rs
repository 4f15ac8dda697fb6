//! The handle that readers use.

mod health;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use change_log::{LeaderClient, LogLocation};
use domain::{Catalogue, Clock, Timestamp, World};
use feeds::sandbox::Simulation;
use market::{Book, Health, Limits, Load, Operation, Snapshot, Vitals};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::timeout;

use crate::error::{NotTaken, OperateError};
use crate::history::{
    ChangeWalk, ClosingPage, ClosingRequest, EventPaths, History, HistoryError, Passed,
    PastPublication, PathError, PathRequest, Place, Walk,
};
use crate::identities::Identities;
use crate::live::{Found, FoundLive, Live, LiveStep, WholeSnapshots};
use crate::piece::Piece;
use crate::publication::Published;
use crate::queue::{Look, Queue, Reserved};

/// Both worlds.
#[derive(Clone, Debug)]
pub struct Worlds {
    pub live: Arc<WorldHandle>,
    pub sandbox: Arc<WorldHandle>,
}

impl Worlds {
    pub fn get(&self, world: World) -> &Arc<WorldHandle> {
        match world {
            World::Live => &self.live,
            World::Sandbox => &self.sandbox,
        }
    }
}

/// Figures the writer keeps for `/metrics`.
#[derive(Debug, Default)]
pub struct WorldStats {
    pub snapshots: AtomicU64,
    pub cut_us_last: AtomicU64,
    pub log_entries: AtomicU64,
    pub log_seq: AtomicU64,
    pub log_bytes: AtomicU64,
    pub log_failures: AtomicU64,
    pub read_backs: AtomicU64,
    /// Entries that damage has taken, as far back as the log is kept.
    pub log_lost: AtomicU64,
    pub append_us: AtomicU64,
    pub appends: AtomicU64,
    pub checkpoints: AtomicU64,
    pub joins: AtomicU64,
    pub merged_ids: AtomicU64,
    pub unsure_pairs: AtomicU64,
    pub aliases: AtomicU64,
    /// How much the book holds, and each feed of it.
    pub load: ArcSwap<Load>,
}

/// The reading side of a world.
#[derive(Debug)]
pub struct WorldHandle {
    pub world: World,
    pub(crate) published: ArcSwap<Published>,
    pub(crate) vitals: ArcSwap<Vitals>,
    pub(crate) identities: ArcSwap<Identities>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) stale_after: Duration,
    pub(crate) refresh_interval: Duration,
    pub limits: Limits,
    /// Notified of every publication.
    pub(crate) publications: watch::Sender<()>,
    pub(crate) live: Arc<Live>,
    /// Where its past can be looked up.
    pub past: Past,
    pub history: Arc<History>,
    pub stats: WorldStats,
    /// The disk of its log is full. Only what the service needs to go on is written: pushes are refused at once.
    pub(crate) disk_full: AtomicBool,
    /// Set where other nodes may write its log.
    pub shared: Option<Shared>,
}

/// What the time before this process can be known from.
#[derive(Debug)]
pub struct Past {
    pub log: LogLocation,
    pub simulation: Option<Simulation>,
    pub notes: Option<PathBuf>,
}

/// How a world stands whose log several nodes share.
#[derive(Debug)]
pub struct Shared {
    pub(crate) catalogue: Arc<Catalogue>,
    /// The clock that all nodes share.
    pub(crate) clock: Arc<dyn Clock>,
    /// The way to the node that writes.
    pub(crate) leader_client: LeaderClient,
    /// Whether this node writes.
    pub(crate) leading: watch::Sender<bool>,
    pub term: AtomicI64,
    /// Whether a snapshot has come from the log yet.
    pub(crate) begun: AtomicBool,
    /// What the log holds cannot be read on: it is damaged, or a newer program wrote it.
    pub stuck: AtomicBool,
    /// It was a newer program.
    pub(crate) outdated: AtomicBool,
    /// Entries that the log has and this node has not, when it last looked.
    pub lag_entries: AtomicU64,
    /// Since when entries that are known to be there have not come; 0 where none are.
    pub(crate) behind_since_ms: AtomicI64,
    /// Why the log is not followed, in words that anybody may read; `None` where entries come, as far as is known.
    pub(crate) trouble: ArcSwapOption<String>,
    /// When the database last said that nobody writes; 0 where it says otherwise, or nothing.
    pub(crate) unled_at_ms: AtomicI64,
    pub connects: AtomicU64,
    /// How long it took, when this node last began, to connect and read the log to its end.
    pub catch_up_us: AtomicU64,
    pub forwarded: AtomicU64,
    pub forward_failures: AtomicU64,
}

/// How long a node may be without entries that are known to be in the log, and still count as current.
/// The same for a snapshot that should have come from a log that cannot be followed.
const BEHIND_MAX: Duration = Duration::from_secs(10);
/// For how long the word counts that nobody writes: it is asked for every half second.
const UNLED_MAX: Duration = Duration::from_secs(5);
/// How late a snapshot is before it is asked whether anybody writes: a cut takes a moment to get everywhere.
const LATE_MIN: Duration = Duration::from_secs(2);
/// How long a publication that is due is waited for.
const DUE_WAIT_MAX: Duration = Duration::from_secs(5);
/// How late the next publication is before it is not waited for: nobody publishes, or this node lags behind.
const OVERDUE_MAX: Duration = Duration::from_secs(30);

impl WorldHandle {
    pub fn published(&self) -> arc_swap::Guard<Arc<Published>> {
        self.published.load()
    }

    /// Says when a snapshot was published since this was last asked.
    pub fn publications(&self) -> watch::Receiver<()> {
        self.publications.subscribe()
    }

    /// Says when something was shown to those who follow live since this was last asked. It is, while anybody has this.
    pub fn live_changes(&self) -> watch::Receiver<()> {
        self.live.changes()
    }

    /// The world as it was last shown to those who follow live. Publications that came before that are current.
    pub fn shown_live(&self) -> Option<Arc<Published>> {
        self.live.present()
    }

    /// The same where it was cut as a whole, for those who have that done ([`WorldHandle::want_whole`]).
    pub fn shown_whole(&self) -> Option<Arc<Published>> {
        self.live.whole_present()
    }

    /// The last entry of the log that this node has.
    pub fn last_entry(&self) -> u64 {
        self.stats.log_seq.load(Ordering::Relaxed).max(self.published.load().seq())
    }

    /// How the world is doing at this moment, not at the last cut.
    pub fn health(&self, now: Timestamp) -> Health {
        let mut health = self.vitals.load().health(now, self.stale_after);
        // What others may have taken meanwhile is not known here.
        health.degraded |= self.shared.is_some() && (!self.is_current(now) || self.is_ahead(now));
        health
    }

    /// Whether there is anything to be served: a node that follows a log has nothing before it was read.
    pub fn has_begun(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.begun.load(Ordering::Acquire))
    }

    /// Whether this node writes the log.
    pub fn leads(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| *shared.leading.borrow())
    }

    /// For how long the current snapshot should have been followed by another.
    pub fn lag(&self, now: Timestamp) -> Duration {
        now.since(self.published.load().until)
    }

    /// How old the oldest publication is that the archive does not have, where this node writes it.
    pub fn archive_lag(&self, now: Timestamp) -> Duration {
        if self.leads() { self.history.archive_lag(now) } else { Duration::ZERO }
    }

    /// The last publication at or before an instant. `key`: for whom it is made again, where it has to be.
    ///
    /// # Errors
    /// History does not have it, or it cannot be made again now.
    pub async fn as_of(&self, at: Timestamp, key: u64) -> Result<PastPublication, HistoryError> {
        if !self.history.is_on() {
            return Err(HistoryError::Off);
        }
        self.history.as_of(self.published_by(at).await?, at, key).await
    }

    /// The last instant that can be asked for: now or, where the clock of this node is behind that of the one which
    /// published, when the newest publication was made.
    pub fn latest(&self, now: Timestamp) -> Timestamp {
        now.max(self.published.load().snapshot.cut_at)
    }

    /// The current publication. One that is due at an instant and not out yet is waited for: asked again, that instant
    /// has it.
    async fn published_by(&self, at: Timestamp) -> Result<Arc<Published>, HistoryError> {
        if self.lag(at) > OVERDUE_MAX {
            return Err(HistoryError::Unreadable(None));
        }
        let mut publications = self.publications();
        let due = async {
            loop {
                let published = self.published.load_full();
                if at < published.until || publications.changed().await.is_err() {
                    return published;
                }
            }
        };
        timeout(DUE_WAIT_MAX, due).await.map_err(|_| HistoryError::Unreadable(None))
    }

    /// The catalogue of the last publication at or before an instant, where that is another than the present one.
    ///
    /// # Errors
    /// History does not have it, or it cannot be read now.
    pub async fn other_catalogue(
        &self,
        at: Timestamp,
    ) -> Result<Option<Arc<Catalogue>>, HistoryError> {
        self.history.other_catalogue(at, self.published.load().snapshot.cut_at).await
    }

    /// What became of the prices of an event. `key`: for whom.
    ///
    /// # Errors
    /// History has no such event, or it cannot be looked up now.
    pub async fn event_paths(
        &self,
        request: PathRequest,
        published: &Published,
        key: u64,
    ) -> Result<EventPaths, PathError> {
        self.history.event_paths(request, published, key).await
    }

    /// Closing lines. `key`: for whom.
    ///
    /// # Errors
    /// They cannot be looked up now.
    pub async fn closings(
        &self,
        request: ClosingRequest,
        published: &Published,
        key: u64,
    ) -> Result<ClosingPage, PathError> {
        self.history.closings(request, published, key).await
    }

    /// When the last publication at or before an instant was made; `None`: history does not have it.
    ///
    /// # Errors
    /// It cannot be looked up now.
    pub async fn published_before(&self, at: Timestamp) -> Result<Option<Timestamp>, HistoryError> {
        self.history.time_of(at, self.published.load().snapshot.cut_at).await
    }

    /// The publication at a position that clients hold, and when the one after it was made; `None`: there is none that
    /// can be shown.
    ///
    /// # Errors
    /// It cannot be made again now.
    pub async fn publication_at(
        &self,
        place: Place,
        key: u64,
    ) -> Result<Option<(Arc<Published>, Option<Timestamp>)>, HistoryError> {
        let current = self.published.load_full();
        match self.live.find_between(place) {
            Some(found) => self.completed(found).await.map(Some),
            None => self.history.publication_at(current, place, key).await,
        }
    }

    /// What may have been shown between two. `is_live`: not only what was published. `key`: for whom.
    ///
    /// # Errors
    /// It cannot be looked up now, or not any more.
    pub async fn passed(
        &self,
        from: &Arc<Snapshot>,
        to: &Arc<Snapshot>,
        is_live: bool,
        key: u64,
    ) -> Result<Arc<Passed>, HistoryError> {
        self.history.passed(from, to, is_live, key).await
    }

    /// Where a stream goes first that is to get from one place to another; `None`: to that at once.
    ///
    /// # Errors
    /// It cannot be looked up now.
    pub async fn step_from(
        &self,
        from: Place,
        to: &Snapshot,
    ) -> Result<Option<Place>, HistoryError> {
        self.history.step_from(from, to).await
    }

    /// Whether a position, or the publication of a time, is in the archive alone: making it again takes long.
    pub async fn is_archived(&self, place: Place) -> bool {
        let current = self.published.load_full();
        if self.live.find_between(place).is_some() {
            return false;
        }
        self.history.is_archived(&current, place).await
    }

    /// Begins to show every publication after a position that clients hold; `None`: there is none that can be shown.
    ///
    /// # Errors
    /// It cannot be made again now.
    pub async fn walk(&self, place: Place, key: u64) -> Result<Option<Walk>, HistoryError> {
        let current = self.published.load().snapshot.cut_at;
        self.history.walk(place, current, key).await
    }

    /// The same for who follows live: what followed need not be a publication.
    ///
    /// # Errors
    /// It cannot be made again now.
    pub async fn shown_at(
        &self,
        place: Place,
        key: u64,
    ) -> Result<Option<(Arc<Published>, Option<Timestamp>)>, HistoryError> {
        match self.live.find(place) {
            Some(found) => self.completed(found).await.map(Some),
            None => self.publication_at(place, key).await,
        }
    }

    /// What was shown live, as a whole snapshot, on another thread where it has to be put together.
    async fn completed(
        &self,
        (found, next): FoundLive,
    ) -> Result<(Arc<Published>, Option<Timestamp>), HistoryError> {
        let whole = match found {
            Found::Whole(whole) => Some(whole),
            parts @ Found::Parts(_) => {
                let live = Arc::clone(&self.live);
                let completing = tokio::task::spawn_blocking(move || live.complete(parts));
                completing.await.ok().flatten()
            }
        };
        whole.map(|whole| (whole, next)).ok_or(HistoryError::Unreadable(None))
    }

    /// What leads from a place to what is shown live, at the cost of what changed; `None`: whole snapshots have to be
    /// compared.
    pub fn live_step(&self, from: Place, to: &Published) -> Option<Arc<LiveStep>> {
        self.live.step(from, to)
    }

    /// What was shown at a place, and what was shown next; `None`: it is not kept. `exact`: what was cut as a whole.
    pub fn shown_after(
        &self,
        place: Place,
        exact: bool,
    ) -> Option<(Arc<Published>, Option<Arc<Published>>)> {
        self.live.after(place, exact)
    }

    /// What was shown last from one place to another, between which nothing changed.
    pub fn shown_between(&self, from: Place, to: Place) -> Option<Arc<Published>> {
        self.live.last_between(from.number(), to.number())
    }

    /// Begins to show every change after a position that clients hold, where `base` is what was shown there; `None`:
    /// there is none that can be shown. `whole`: whole snapshots are compared.
    ///
    /// # Errors
    /// It cannot be made again now.
    pub async fn walk_changes(
        &self,
        place: Place,
        base: &Published,
        whole: bool,
        key: u64,
    ) -> Result<Option<ChangeWalk>, HistoryError> {
        let walk = self.walk(place, key).await?;
        Ok(walk.map(|walk| ChangeWalk::new(walk, base, whole)))
    }

    /// What is shown live, as a whole snapshot; `None`: it is not kept any more.
    pub async fn whole(&self, shown: &Arc<Published>) -> Option<Arc<Published>> {
        if shown.is_whole() {
            return Some(Arc::clone(shown));
        }
        let place = match self.world {
            World::Live => Place::Entry(shown.seq()),
            World::Sandbox => Place::Time(shown.snapshot.cut_at),
        };
        let found = self.live.find_between(place)?;
        self.completed(found).await.ok().map(|(whole, _)| whole)
    }

    /// Has what is shown live shown as whole snapshots, too, for as long as this is held.
    pub fn want_whole(&self) -> WholeSnapshots {
        self.live.want_whole()
    }

    pub fn vitals(&self) -> arc_swap::Guard<Arc<Vitals>> {
        self.vitals.load()
    }

    /// Which feeds list which event, and which pairs may be one. Empty for the sandbox, where nobody doubts.
    pub fn identities(&self) -> arc_swap::Guard<Arc<Identities>> {
        self.identities.load()
    }

    /// How long a publication is the present one.
    pub fn refresh_interval(&self) -> Duration {
        self.refresh_interval
    }

    pub fn stale_after(&self) -> Duration {
        self.stale_after
    }

    /// Waits for the turn of a feed's push, and for room for a piece of it.
    pub async fn reserve(&self, feed: &str, piece: &Piece) -> Result<Reserved, NotTaken> {
        if self.is_disk_full() {
            return Err(NotTaken::LogFailed);
        }
        self.queue.reserve(feed, piece.text.len(), piece.line_count).await
    }

    /// Waits for the turn of a feed's push to be worked on.
    pub async fn turn(&self, feed: &str) -> OwnedMutexGuard<()> {
        self.queue.turn(feed).await
    }

    pub(crate) async fn operate_here(&self, operation: Operation) -> Result<usize, OperateError> {
        if self.is_disk_full() {
            return Err(OperateError::LogFailed);
        }
        self.queue.operate(operation)?.await.unwrap_or(Err(OperateError::Busy))
    }

    /// Looks something up in the book as it is now, on the thread that writes it: it must be quick.
    ///
    /// # Errors
    /// This node does not write, or too many ask.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Book) -> T + Send + 'static,
    ) -> Result<T, OperateError> {
        let (answer, found) = tokio::sync::oneshot::channel();
        let look = move |book: &Book| {
            if answer.send(look(book)).is_err() {
                tracing::debug!(event = "look.abandoned", "nobody waits for what was looked up");
            }
        };
        self.queue.look(Look(Box::new(look)))?;
        found.await.map_err(|_| OperateError::Overtaken)
    }

    /// Says whether the disk of the log is full: while it is, nothing new is taken, and what room is left is for
    /// snapshots and for counting requests.
    pub fn set_disk_full(&self, full: bool) {
        self.disk_full.store(full, Ordering::Relaxed);
    }

    pub fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Writes to the log that failed since the start.
    pub fn log_failures(&self) -> u64 {
        self.stats.log_failures.load(Ordering::Relaxed)
    }

    /// Takes no more pushes: what waits is refused, and what is under way ends with what is stored of it.
    pub fn end_pushes(&self) {
        self.queue.end();
    }

    /// Asks the writer to end. It finishes what it is at, and refuses what waits.
    pub fn stop(&self) {
        self.queue.stop();
    }

    pub fn records(&self) -> (usize, usize) {
        let published = self.published.load();
        (published.snapshot.events(), published.snapshot.records())
    }

    pub(crate) fn count(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

impl Shared {
    pub(crate) fn new(
        catalogue: Arc<Catalogue>,
        clock: Arc<dyn Clock>,
        leader_client: LeaderClient,
    ) -> Self {
        Self {
            catalogue,
            clock,
            leader_client,
            leading: watch::Sender::new(false),
            term: AtomicI64::new(0),
            begun: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
            outdated: AtomicBool::new(false),
            lag_entries: AtomicU64::new(0),
            behind_since_ms: AtomicI64::new(0),
            trouble: ArcSwapOption::empty(),
            unled_at_ms: AtomicI64::new(0),
            connects: AtomicU64::new(0),
            catch_up_us: AtomicU64::new(0),
            forwarded: AtomicU64::new(0),
            forward_failures: AtomicU64::new(0),
        }
    }
}
