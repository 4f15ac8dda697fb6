//! A running world: the handle that requests use, and what its writer publishes.
//!
//! One thread owns the book and the log ([`Writer`]); everybody else sees immutable values through atomic
//! pointers. A request never waits for the writer. Where several nodes share a log, each has a [`Node`] in that
//! thread's place: it follows the log, and writes while it is this node's turn.

mod alone;
mod batch;
mod error;
mod failure;
mod follower;
mod identities;
mod node;
mod pace;
mod piece;
mod queue;
mod relay;
mod replay;
mod round;
mod seat;
mod start;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use change_log::{Caller, Place};
use domain::{Catalogue, Clock, Timestamp, World};
use feeds::sandbox::Simulation;
use market::{Health, Lifetimes, Limits, Load, NotDone, Operation, Snapshot, Vitals, Wire};
use tokio::sync::{OwnedMutexGuard, watch};

use crate::answers::{Answers, Figures};
use crate::reply::Head;
pub use alone::{AloneError, operate_alone};
pub(crate) use batch::{Lines, Outcome, Receipt, Terms};
pub use error::WorldError;
pub use identities::{EventView, Identities, RefView};
pub use node::{Membership, Node};
pub(crate) use piece::Piece;
pub(crate) use queue::Reserved;
pub(crate) use relay::Sender;
pub use relay::{keep_desk, operate_from_afar};
pub use replay::{Base, Logged, Replay, replay_book};
pub use seat::Seat;
pub(crate) use start::{SANDBOX_IDS, play_back};
pub use writer::Writer;

/// What a world is run with.
#[derive(Debug)]
pub struct WorldOptions {
    pub world: World,
    /// Where its log is kept.
    pub log: Place,
    pub catalogue: Arc<Catalogue>,
    pub refresh_interval: Duration,
    pub stale_after: Duration,
    /// What snapshots are rendered for when they are cut.
    pub wires: &'static [&'static dyn Wire],
    pub lifetimes: Lifetimes,
    /// How much it may hold.
    pub limits: Limits,
    /// How long log entries are kept once a checkpoint covers them.
    pub log_retention: Duration,
    /// What plays in it, for the sandbox.
    pub simulation: Option<Simulation>,
    /// A folder for what is worth keeping over a restart and is no part of the world.
    pub notes: Option<PathBuf>,
}

/// A snapshot in force, with the answers made from it.
#[derive(Debug)]
pub struct Published {
    pub snapshot: Snapshot,
    pub(crate) answers: Answers,
    /// When the next one is due.
    pub(crate) until: Timestamp,
}

impl Published {
    /// For how long an answer may be kept: the whole seconds left in the epoch, rounded down (D14).
    pub(crate) fn put_cache_control(&self, head: &mut Head, now: Timestamp) {
        head.line("cache-control", |line| {
            line.text("private, max-age=");
            line.number(self.until.since(now).as_secs());
        });
    }
}

/// A batch was not made durable as a whole. Some of it may be stored; to send it again is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    LogFailed,
    Stopped,
    /// Another node writes now.
    Overtaken,
    /// No node that writes was reached, or it did not answer.
    NoWriter,
    /// It was handed over, and came too late.
    Overdue,
    /// The feed may not push any more.
    Withdrawn,
}

/// An operator's word could not be carried out; nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperateError {
    #[error(transparent)]
    NotDone(#[from] NotDone),
    #[error("it could not be made durable; try again")]
    LogFailed,
    #[error("the service is busy or stopping; try again shortly")]
    Busy,
    /// Another node has written since; it is tried elsewhere.
    #[error("another node writes now; try again")]
    Overtaken,
    #[error(
        "no node that writes was reached, so it is not known whether it was done; look, and try again shortly"
    )]
    NoWriter,
}

/// Figures the writer keeps for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct WorldStats {
    pub(crate) snapshots: AtomicU64,
    pub(crate) cut_us_last: AtomicU64,
    pub(crate) log_entries: AtomicU64,
    pub(crate) log_seq: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    pub(crate) log_failures: AtomicU64,
    pub(crate) read_backs: AtomicU64,
    /// Entries that damage has taken, as far back as the log is kept.
    pub(crate) log_lost: AtomicU64,
    pub(crate) append_us: AtomicU64,
    pub(crate) appends: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    pub(crate) answers: Arc<Figures>,
    pub(crate) joins: AtomicU64,
    pub(crate) merged_ids: AtomicU64,
    pub(crate) unsure_pairs: AtomicU64,
    pub(crate) aliases: AtomicU64,
    /// How much the book holds, and each feed of it.
    pub(crate) load: ArcSwap<Load>,
}

/// The reading side of a world.
#[derive(Debug)]
pub struct WorldHandle {
    published: ArcSwap<Published>,
    vitals: ArcSwap<Vitals>,
    identities: ArcSwap<Identities>,
    queue: Arc<queue::Queue>,
    stale_after: Duration,
    refresh_interval: Duration,
    pub(crate) limits: Limits,
    /// Told of every publication.
    news: watch::Sender<()>,
    /// Where its past can be looked up.
    pub(crate) past: Past,
    pub(crate) stats: WorldStats,
    /// The disk of its log is full. Only what the service needs to go on is written: pushes are refused at once.
    disk_full: AtomicBool,
    /// Set where other nodes may write its log.
    pub(crate) shared: Option<Shared>,
}

/// What the time before this process can be told from.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) log: Place,
    pub(crate) simulation: Option<Simulation>,
    pub(crate) notes: Option<PathBuf>,
}

/// How a world stands whose log several nodes share.
#[derive(Debug)]
pub(crate) struct Shared {
    catalogue: Arc<Catalogue>,
    /// The clock that all nodes share.
    clock: Arc<dyn Clock>,
    /// The way to the node that writes.
    caller: Caller,
    /// Whether this node writes.
    leading: watch::Sender<bool>,
    pub(crate) term: AtomicI64,
    /// Whether a snapshot has come from the log yet.
    begun: AtomicBool,
    /// What the log holds cannot be read on: it is damaged, or a newer program wrote it.
    pub(crate) stuck: AtomicBool,
    /// It was a newer program.
    outdated: AtomicBool,
    /// Entries that the log has and this node has not, when it last looked.
    pub(crate) lag_entries: AtomicU64,
    /// Since when entries that are known to be there have not come; 0 where none are.
    behind_since_ms: AtomicI64,
    /// Why the log is not followed, in words that anybody may read; `None` where entries come, as far as is known.
    trouble: ArcSwapOption<String>,
    /// When the database last said that nobody writes; 0 where it says otherwise, or nothing.
    unled_at_ms: AtomicI64,
    pub(crate) connects: AtomicU64,
    /// How long it took, when this node last began, to connect and read the log to its end.
    pub(crate) catch_up_us: AtomicU64,
    pub(crate) forwarded: AtomicU64,
    pub(crate) forward_failures: AtomicU64,
}

/// How long a node may be without entries that are known to be in the log, and still count as current.
/// The same for a snapshot that should have come from a log that cannot be followed.
const BEHIND_MAX: Duration = Duration::from_secs(10);
/// For how long the word counts that nobody writes: it is asked for every half second.
const UNLED_MAX: Duration = Duration::from_secs(5);
/// How late a snapshot is before it is asked whether anybody writes: a cut takes a moment to get everywhere.
const LATE_MIN: Duration = Duration::from_secs(2);

impl WorldHandle {
    pub fn published(&self) -> arc_swap::Guard<Arc<Published>> {
        self.published.load()
    }

    /// Says when a snapshot was published since this was last asked.
    pub(crate) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// How the world is doing at this moment, not at the last cut.
    pub fn health(&self, now: Timestamp) -> Health {
        let mut health = self.vitals.load().health(now, self.stale_after);
        // What others may have taken meanwhile is not known here.
        health.degraded |= self.shared.is_some() && (!self.is_current(now) || self.is_ahead(now));
        health
    }

    /// Whether there is anything to be served: a node that follows a log has nothing before it was read.
    pub(crate) fn has_begun(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.begun.load(Ordering::Acquire))
    }

    /// Whether this node writes the log.
    pub fn leads(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| *shared.leading.borrow())
    }

    /// For how long the snapshot in force should have been followed by another.
    pub(crate) fn lag(&self, now: Timestamp) -> Duration {
        now.since(self.published.load().until)
    }

    pub(crate) fn vitals(&self) -> arc_swap::Guard<Arc<Vitals>> {
        self.vitals.load()
    }

    /// Which feeds list which event, and which pairs may be one. Empty for the sandbox, where nobody doubts.
    pub fn identities(&self) -> arc_swap::Guard<Arc<Identities>> {
        self.identities.load()
    }

    pub(crate) fn stale_after(&self) -> Duration {
        self.stale_after
    }

    /// Whether the snapshot in force is as young as it should be: a writer that died or hangs shows here.
    pub fn is_current(&self, now: Timestamp) -> bool {
        let published = self.published.load();
        // Three intervals and five seconds leave room for a long batch or a checkpoint.
        let late = 3 * self.refresh_interval + Duration::from_secs(5);
        let lag = now.since(published.until);
        let keeps_up = self.shared.as_ref().is_none_or(|shared| shared.keeps_up(now, lag));
        keeps_up && now.since(published.snapshot.cut_at) <= late
    }

    /// Whether the clock was set back behind the snapshot in force, and nobody has cut another since.
    pub(crate) fn is_ahead(&self, now: Timestamp) -> bool {
        self.published.load().snapshot.cut_at.since(now) > self.refresh_interval
    }

    /// Whether no other node can show anything newer: the snapshot in force is current, or the last one there is
    /// because nobody writes. Where all are equally late, to take them all away would leave nobody to serve it.
    pub fn is_abreast(&self, now: Timestamp) -> bool {
        self.is_current(now) || self.shared.as_ref().is_some_and(|shared| shared.is_last(now))
    }

    /// Whether a snapshot is due for so long that the reason matters: nobody writes, or this node does not hear of it.
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.shared.is_some() && self.lag(now) > LATE_MIN
    }

    /// Notes whether any node holds the lead, as the database says; `None`: it does not say.
    pub fn note_led(&self, led: Option<bool>, now: Timestamp) {
        if let Some(shared) = &self.shared {
            let unled_at_ms = if led == Some(false) { now.as_millis() } else { 0 };
            shared.unled_at_ms.store(unled_at_ms, Ordering::Relaxed);
        }
    }

    /// Why a node that follows a log is not current, in words.
    pub(crate) fn lateness(&self, now: Timestamp) -> Option<String> {
        let shared = self.shared.as_ref().filter(|_| !self.is_current(now))?;
        let entries = shared.lag_entries.load(Ordering::Relaxed);
        let lag_s = self.lag(now).as_secs();
        let trouble = shared.trouble.load();
        let why = trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let stuck = shared.stuck.load(Ordering::Relaxed);
        Some(if stuck && shared.outdated.load(Ordering::Relaxed) {
            "a newer program wrote the log: upgrade this node; it serves what it could read"
                .to_owned()
        } else if stuck {
            "what the log holds cannot be read: it is damaged".to_owned()
        } else if self.has_begun() && trouble.is_some() {
            format!(
                "this node is behind: it does not follow the log{why}, and its snapshot is {lag_s} s late"
            )
        } else if self.has_begun() {
            format!(
                "this node is behind: its snapshot is {lag_s} s late, and {entries} entries of the log were not read when it last looked"
            )
        } else {
            format!("the log was not read yet{why}")
        })
    }

    /// Waits for the turn of a feed's push, and for room for a piece of it.
    pub(crate) async fn reserve(&self, feed: &str, piece: &Piece) -> Result<Reserved, NotTaken> {
        if self.is_disk_full() {
            return Err(NotTaken::LogFailed);
        }
        self.queue.reserve(feed, piece.text.len(), piece.line_count).await
    }

    /// Waits for the turn of a feed's push to be worked on.
    pub(crate) async fn turn(&self, feed: &str) -> OwnedMutexGuard<()> {
        self.queue.turn(feed).await
    }

    /// Hands a piece of a push to another node that writes, and waits until it is durable.
    pub(crate) async fn hand_over(&self, from: Sender<'_>, piece: &Piece) -> Outcome {
        match &self.shared {
            Some(shared) => shared.hand_over(from, piece).await,
            None => Err(NotTaken::Stopped),
        }
    }

    /// Carries out an operator's word, and says how many changes it made once they are durable. They show with the
    /// next snapshot.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn operate(&self, operation: Operation) -> Result<usize, OperateError> {
        let done = if self.leads() {
            self.operate_here(operation.clone()).await
        } else {
            Err(OperateError::Overtaken)
        };
        match (&self.shared, done) {
            (Some(shared), Err(OperateError::Overtaken)) => {
                relay::operate(&shared.caller, &operation).await
            }
            (_, done) => done,
        }
    }

    async fn operate_here(&self, operation: Operation) -> Result<usize, OperateError> {
        if self.is_disk_full() {
            return Err(OperateError::LogFailed);
        }
        self.queue.operate(operation)?.await.unwrap_or(Err(OperateError::Busy))
    }

    /// Says whether the disk of the log is full: while it is, nothing new is taken, and what room is left is for
    /// snapshots and for counting requests.
    pub fn set_disk_full(&self, full: bool) {
        self.disk_full.store(full, Ordering::Relaxed);
    }

    pub(crate) fn is_disk_full(&self) -> bool {
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

    pub(crate) fn records(&self) -> (usize, usize) {
        let published = self.published.load();
        (published.snapshot.events(), published.snapshot.records())
    }

    fn count(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

impl Shared {
    fn new(catalogue: Arc<Catalogue>, clock: Arc<dyn Clock>, caller: Caller) -> Self {
        Self {
            catalogue,
            clock,
            caller,
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

    /// The snapshot in force is the last one, and nobody writes another.
    fn is_last(&self, now: Timestamp) -> bool {
        let said = self.unled_at_ms.load(Ordering::Relaxed);
        let unled = said != 0 && now.since(Timestamp::from_millis(said)) <= UNLED_MAX;
        unled && !self.stuck.load(Ordering::Relaxed) && self.begun.load(Ordering::Acquire)
    }

    /// `lag`: for how long another snapshot is due.
    fn keeps_up(&self, now: Timestamp, lag: Duration) -> bool {
        let since = self.behind_since_ms.load(Ordering::Relaxed);
        let lacks = since != 0 && now.since(Timestamp::from_millis(since)) > BEHIND_MAX;
        let behind = lacks || lag > BEHIND_MAX && self.trouble.load().is_some();
        !behind && !self.stuck.load(Ordering::Relaxed) && self.begun.load(Ordering::Acquire)
    }
}
