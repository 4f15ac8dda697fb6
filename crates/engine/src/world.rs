//! The handle that readers use.

mod health;
mod shown;

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
    ChangeWalk, ClosingPage, ClosingRequest, EventPaths, History, HistoryError, IsSought, Passed,
    PastPublication, PathError, PathRequest, Place, Stride, Walk,
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
    /// Number of entries lost to damage, as far back as the log is kept.
    pub log_lost: AtomicU64,
    pub append_us: AtomicU64,
    pub appends: AtomicU64,
    pub checkpoints: AtomicU64,
    pub joins: AtomicU64,
    pub merged_ids: AtomicU64,
    pub unsure_pairs: AtomicU64,
    pub aliases: AtomicU64,
    /// Sizes of the book, in total and by feed.
    pub load: ArcSwap<Load>,
}

/// The read side of a world.
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
    /// Notified of each publication.
    pub(crate) publications: watch::Sender<()>,
    pub(crate) live: Arc<Live>,
    /// Sources for looking up its past.
    pub past: Past,
    pub history: Arc<History>,
    pub stats: WorldStats,
    /// True if the disk of its log is full. Only writes that the service needs are made; pushes are refused at once.
    pub(crate) disk_full: AtomicBool,
    /// Set if other nodes may write its log.
    pub shared: Option<Shared>,
}

/// Sources of the time before this process started.
#[derive(Debug)]
pub struct Past {
    pub log: LogLocation,
    pub simulation: Option<Simulation>,
    pub notes: Option<PathBuf>,
}

/// State of a world whose log is shared by several nodes.
#[derive(Debug)]
pub struct Shared {
    pub(crate) catalogue: Arc<Catalogue>,
    /// The clock that all nodes share.
    pub(crate) clock: Arc<dyn Clock>,
    /// Client of the node that writes.
    pub(crate) leader_client: LeaderClient,
    /// True if this node writes.
    pub(crate) leading: watch::Sender<bool>,
    pub term: AtomicI64,
    /// True once a snapshot was read from the log.
    pub(crate) begun: AtomicBool,
    /// True if the log cannot be read any further: it is damaged, or a newer program wrote it.
    pub stuck: AtomicBool,
    /// True if a newer program wrote it.
    pub(crate) outdated: AtomicBool,
    /// Entries of the log that this node lacked at its last check.
    pub lag_entries: AtomicU64,
    /// Time of that check, if it was successful.
    pub(crate) looked_ms: AtomicI64,
    /// Time since when entries known to exist are missing; 0 if none are.
    pub(crate) behind_since_ms: AtomicI64,
    /// Public description of why the log is not followed; `None` if entries arrive, as far as known.
    pub(crate) problem: ArcSwapOption<String>,
    /// Time at which the database last reported that no node writes; 0 if it reports otherwise or is unreachable.
    pub(crate) unled_at_ms: AtomicI64,
    pub connects: AtomicU64,
    /// Time that this node last needed to connect and read the log to its end.
    pub catch_up_us: AtomicU64,
    pub forwarded: AtomicU64,
    pub forward_failures: AtomicU64,
}

/// Maximum time that a node may lack entries known to exist, or snapshots due from a log that cannot be followed, and
/// still count as current.
const BEHIND_MAX: Duration = Duration::from_secs(10);
/// Maximum age of a check after which a node has everything in the log, as far as it knows: whoever waits for a
/// position waits as long, so that the check was later than the position.
const LOOKED_MAX: Duration = Duration::from_secs(10);
/// Time for which a report that no node writes is valid: the database is asked every half second.
const UNLED_MAX: Duration = Duration::from_secs(5);
/// Delay of a snapshot after which the database is asked whether a node writes: a cut needs a moment to reach all
/// nodes.
const LATE_MIN: Duration = Duration::from_secs(2);
/// Maximum time to wait for a publication that is due.
const DUE_WAIT_MAX: Duration = Duration::from_secs(5);
/// Delay of the next publication after which it is not waited for: no node publishes, or this node lags behind.
const OVERDUE_MAX: Duration = Duration::from_secs(30);

impl WorldHandle {
    pub fn published(&self) -> arc_swap::Guard<Arc<Published>> {
        self.published.load()
    }

    /// Notifies of each snapshot published since the last check.
    pub fn publications(&self) -> watch::Receiver<()> {
        self.publications.subscribe()
    }

    /// Notifies of each state shown to live followers since the last check. States are shown while a receiver exists.
    pub fn live_changes(&self) -> watch::Receiver<()> {
        self.live.changes()
    }

    /// The world as last shown to live followers. Earlier publications are current.
    pub fn shown_live(&self) -> Option<Arc<Published>> {
        self.live.present()
    }

    /// The same, if it was cut as a whole because of [`WorldHandle::want_whole`].
    pub fn shown_whole(&self) -> Option<Arc<Published>> {
        self.live.whole_present()
    }

    /// The last log entry that this node has.
    pub fn last_entry(&self) -> u64 {
        self.stats.log_seq.load(Ordering::Relaxed).max(self.published.load().seq())
    }

    /// The health of the world at this moment, not at the last cut.
    pub fn health(&self, now: Timestamp) -> Health {
        let mut health = self.vitals.load().health(now, self.stale_after);
        // Changes that other nodes may have accepted meanwhile are unknown here.
        health.degraded |= self.shared.is_some() && (!self.is_current(now) || self.is_ahead(now));
        health
    }

    /// True if there is something to serve: a node that follows a log has nothing before it has read it.
    pub fn has_begun(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.begun.load(Ordering::Acquire))
    }

    /// True if this node writes the log.
    pub fn leads(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| *shared.leading.borrow())
    }

    /// Time by which the successor of the current snapshot is overdue.
    pub fn lag(&self, now: Timestamp) -> Duration {
        now.since(self.published.load().until)
    }

    /// Age of the oldest publication that is not archived, if this node writes the archive.
    pub fn archive_lag(&self, now: Timestamp) -> Duration {
        if self.leads() { self.history.archive_lag(now) } else { Duration::ZERO }
    }

    /// The last publication at or before an instant. `key`: the requesting key, if the publication has to be rebuilt.
    ///
    /// # Errors
    /// History does not have it, or it cannot be rebuilt now.
    pub async fn as_of(&self, at: Timestamp, key: u64) -> Result<PastPublication, HistoryError> {
        if !self.history.is_on() {
            return Err(HistoryError::Off);
        }
        self.history.as_of(self.published_by(at).await?, at, key).await
    }

    /// The last instant that can be requested: now, or the time of the newest publication if the publisher's clock is
    /// ahead of this node's.
    pub fn latest(&self, now: Timestamp) -> Timestamp {
        now.max(self.published.load().snapshot.cut_at)
    }

    /// The current publication. Waits for one that is due at an instant and not out yet, so that repeated requests for
    /// that instant get the same.
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

    /// The catalogue of the last publication at or before an instant, if it differs from the present one.
    ///
    /// # Errors
    /// History does not have it, or it cannot be read now.
    pub async fn other_catalogue(
        &self,
        at: Timestamp,
    ) -> Result<Option<Arc<Catalogue>>, HistoryError> {
        self.history.other_catalogue(at, self.published.load().snapshot.cut_at).await
    }

    /// The price history of an event. `key`: the requesting key.
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

    /// Closing lines. `key`: the requesting key.
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

    /// Time of the last publication at or before an instant; `None`: history does not have it.
    ///
    /// # Errors
    /// It cannot be looked up now.
    pub async fn published_before(&self, at: Timestamp) -> Result<Option<Timestamp>, HistoryError> {
        self.history.time_of(at, self.published.load().snapshot.cut_at).await
    }

    /// The publication at a client's position, and the time of the next one; `None`: there is none that can be shown.
    ///
    /// # Errors
    /// It cannot be rebuilt now.
    pub async fn publication_at(
        &self,
        place: Place,
        key: u64,
    ) -> Result<Option<(Arc<Published>, Option<Timestamp>)>, HistoryError> {
        self.publication_of(place, &|_| true, key).await
    }

    /// The same, where what is in memory has to satisfy `is`. What was rebuilt may not.
    ///
    /// # Errors
    /// It cannot be rebuilt now.
    pub async fn publication_of(
        &self,
        place: Place,
        is: IsSought<'_>,
        key: u64,
    ) -> Result<Option<(Arc<Published>, Option<Timestamp>)>, HistoryError> {
        let current = self.published.load_full();
        match self.live.find_between(place, is) {
            Some(found) => self.completed(found).await.map(Some),
            None => self.history.publication_at(current, (place, is), key).await,
        }
    }

    /// Content that may have been shown between two snapshots. `is_live`: also between publications. `key`: the
    /// requesting key.
    ///
    /// # Errors
    /// It cannot be looked up now, or no longer.
    pub async fn passed(
        &self,
        from: &Arc<Snapshot>,
        to: &Arc<Snapshot>,
        is_live: bool,
        key: u64,
    ) -> Result<Arc<Passed>, HistoryError> {
        self.history.passed(from, to, is_live, key).await
    }

    /// The first intermediate position of a stream from one place to another; `None`: it goes to the other directly.
    ///
    /// # Errors
    /// It cannot be looked up now.
    pub async fn step_from(
        &self,
        from: Place,
        to: &Snapshot,
        stride: Stride,
    ) -> Result<Option<Place>, HistoryError> {
        self.history.step_from(from, to, stride).await
    }

    /// True if only the archive has a position or the publication of a time, so that a rebuild takes long.
    pub async fn is_archived(&self, place: Place) -> bool {
        let current = self.published.load_full();
        if self.live.find_between(place, &|_| true).is_some() {
            return false;
        }
        self.history.is_archived(&current, place).await
    }

    /// Starts to show every publication after a client's position; `None`: there is none that can be shown.
    ///
    /// # Errors
    /// It cannot be rebuilt now.
    pub async fn walk(&self, place: Place, key: u64) -> Result<Option<Walk>, HistoryError> {
        let current = self.published.load().snapshot.cut_at;
        self.history.walk(place, current, key).await
    }

    /// The same for live followers: the next state need not be a publication.
    ///
    /// # Errors
    /// It cannot be rebuilt now.
    pub async fn shown_at(
        &self,
        place: Place,
        is: IsSought<'_>,
        key: u64,
    ) -> Result<Option<(Arc<Published>, Option<Timestamp>)>, HistoryError> {
        match self.live.find(place, is) {
            Some(found) => self.completed(found).await.map(Some),
            None => self.publication_of(place, is, key).await,
        }
    }

    /// A state that was shown live, as a whole snapshot, assembled on another thread if necessary.
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

    /// The change from a place to what is shown live, at a cost proportional to the change; `None`: whole snapshots
    /// have to be compared.
    pub fn live_step(&self, from: Place, to: &Published) -> Option<Arc<LiveStep>> {
        self.live.step(from, to)
    }

    /// The state shown at a place, and the next one; `None`: it is not kept. `exact`: the state cut as a whole.
    pub fn shown_after(
        &self,
        place: Place,
        exact: bool,
    ) -> Option<(Arc<Published>, Option<Arc<Published>>)> {
        self.live.after(place, exact)
    }

    /// The last state shown between two places between which nothing changed.
    pub fn shown_between(&self, from: Place, to: Place) -> Option<Arc<Published>> {
        self.live.last_between(from.number(), to.number())
    }

    /// Starts to show every change after a client's position, where `base` was shown; `None`: there is none that can be
    /// shown. `whole`: whole snapshots are compared.
    ///
    /// # Errors
    /// It cannot be rebuilt now.
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

    /// The state shown live, as a whole snapshot; `None`: it is no longer kept.
    pub async fn whole(&self, shown: &Arc<Published>) -> Option<Arc<Published>> {
        if shown.is_whole() {
            return Some(Arc::clone(shown));
        }
        let place = match self.world {
            World::Live => Place::Entry(shown.seq()),
            World::Sandbox => Place::Time(shown.snapshot.cut_at),
        };
        let found = self.live.find_between(place, &|_| true)?;
        self.completed(found).await.ok().map(|(whole, _)| whole)
    }

    /// Shows live states as whole snapshots, too, for as long as the returned value is held.
    pub fn want_whole(&self) -> WholeSnapshots {
        self.live.want_whole()
    }

    pub fn vitals(&self) -> arc_swap::Guard<Arc<Vitals>> {
        self.vitals.load()
    }

    /// The feeds that list each event, and the pairs of events that may be one. Empty for the sandbox, which has no
    /// doubtful pairs.
    pub fn identities(&self) -> arc_swap::Guard<Arc<Identities>> {
        self.identities.load()
    }

    /// Time for which a publication is the present one.
    pub fn refresh_interval(&self) -> Duration {
        self.refresh_interval
    }

    pub fn stale_after(&self) -> Duration {
        self.stale_after
    }

    /// Waits for the turn of a feed's push, and for space for a piece of it.
    pub async fn reserve(&self, feed: &str, piece: &Piece) -> Result<Reserved, NotTaken> {
        if self.is_disk_full() {
            return Err(NotTaken::LogFailed);
        }
        self.queue.reserve(feed, piece.text.len(), piece.line_count).await
    }

    /// Waits for the turn to process a feed's push.
    pub async fn turn(&self, feed: &str) -> OwnedMutexGuard<()> {
        self.queue.turn(feed).await
    }

    pub(crate) async fn operate_here(&self, operation: Operation) -> Result<usize, OperateError> {
        if self.is_disk_full() {
            return Err(OperateError::LogFailed);
        }
        self.queue.operate(operation)?.await.unwrap_or(Err(OperateError::Busy))
    }

    /// Reads from the current book, on the thread that writes it: `look` must be quick.
    ///
    /// # Errors
    /// This node does not write, or there are too many requests.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Book) -> T + Send + 'static,
    ) -> Result<T, OperateError> {
        let (answer, found) = tokio::sync::oneshot::channel();
        let look = move |book: &Book| {
            if answer.send(look(book)).is_err() {
                tracing::debug!(
                    event = "look.abandoned",
                    "nobody waits for the result of a lookup any more"
                );
            }
        };
        self.queue.look(Look(Box::new(look)))?;
        found.await.map_err(|_| OperateError::Overtaken)
    }

    /// Sets whether the disk of the log is full: while it is, nothing new is accepted, and the remaining space is for
    /// snapshots and for counting requests.
    pub fn set_disk_full(&self, full: bool) {
        self.disk_full.store(full, Ordering::Relaxed);
    }

    pub fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Number of failed writes to the log since the start.
    pub fn log_failures(&self) -> u64 {
        self.stats.log_failures.load(Ordering::Relaxed)
    }

    /// Stops accepting pushes: waiting ones are refused, and current ones end with the part that is stored.
    pub fn end_pushes(&self) {
        self.queue.end();
    }

    /// Asks the writer to stop. It finishes its current work and refuses waiting requests.
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
            looked_ms: AtomicI64::new(0),
            behind_since_ms: AtomicI64::new(0),
            problem: ArcSwapOption::empty(),
            unled_at_ms: AtomicI64::new(0),
            connects: AtomicU64::new(0),
            catch_up_us: AtomicU64::new(0),
            forwarded: AtomicU64::new(0),
            forward_failures: AtomicU64::new(0),
        }
    }
}
