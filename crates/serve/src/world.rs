//! A running world: the handle that requests use, and what its writer publishes.
//!
//! One thread owns the book and the log ([`Writer`]); everybody else sees immutable values through atomic
//! pointers. A request never waits for the writer.

mod identities;
mod start;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use arc_swap::ArcSwap;
use change_log::Place;
use domain::message::{FeedMessage, Reject};
use domain::{Catalogue, Timestamp, World};
use feeds::sandbox::Simulation;
use market::{Health, Lifetimes, NotDone, Operation, Snapshot, Vitals};
use tokio::sync::{oneshot, watch};

use crate::answers::{Answers, Figures};
use crate::ledger::Odd;
use crate::reply::Head;
pub use identities::{EventView, Identities, RefView};
pub use start::WorldError;
pub(crate) use start::{SANDBOX_IDS, play_back};
pub use writer::Writer;

/// Batches waiting for the writer; further ones are refused so that memory stays bounded.
const QUEUE_BATCHES_MAX: usize = 32;

/// What a world is run with.
#[derive(Debug)]
pub struct WorldOptions {
    pub world: World,
    /// Where its log is kept.
    pub log: Place,
    pub catalogue: Arc<Catalogue>,
    pub refresh_interval: Duration,
    pub stale_after: Duration,
    pub lifetimes: Lifetimes,
    /// How long log entries are kept once a checkpoint covers them.
    pub log_retention: Duration,
    /// What plays in it, for the sandbox.
    pub simulation: Option<Simulation>,
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

/// A batch of parsed lines from one feed, on its way to the writer.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) feed: String,
    pub(crate) lines: Vec<(usize, Result<FeedMessage, Reject>)>,
    pub(crate) receipt: oneshot::Sender<Result<Receipt, NotTaken>>,
}

/// What became of a batch, durably.
#[derive(Debug, Default)]
pub(crate) struct Receipt {
    pub(crate) accepted: u64,
    pub(crate) unchanged: u64,
    pub(crate) superseded: u64,
    pub(crate) rejected: Vec<(usize, Reject)>,
    pub(crate) odd: Vec<Odd>,
    /// Refs that were taken for an event that another feed lists.
    pub(crate) joins: u64,
}

/// The batch could not be made durable, or there is no room for it; nothing of it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    Full,
    LogFailed,
    Stopped,
}

pub(crate) enum Command {
    Batch(Batch),
    /// An operator's word on identities.
    Operate(Operation, oneshot::Sender<Result<usize, OperateError>>),
    Stop,
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
    pub(crate) append_us: AtomicU64,
    pub(crate) appends: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    pub(crate) answers: Arc<Figures>,
    pub(crate) joins: AtomicU64,
    pub(crate) merged_ids: AtomicU64,
    pub(crate) unsure_pairs: AtomicU64,
    pub(crate) aliases: AtomicU64,
}

/// The reading side of a world.
#[derive(Debug)]
pub struct WorldHandle {
    published: ArcSwap<Published>,
    vitals: ArcSwap<Vitals>,
    identities: ArcSwap<Identities>,
    queue: SyncSender<Command>,
    stale_after: Duration,
    refresh_interval: Duration,
    /// Told of every publication.
    news: watch::Sender<()>,
    /// Where its past can be looked up.
    pub(crate) past: Past,
    pub(crate) stats: WorldStats,
}

/// What the time before this process can be told from.
#[derive(Debug)]
pub(crate) struct Past {
    /// The log's folder; a log on servers is not looked up.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) simulation: Option<Simulation>,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Batch(_) => "Batch",
            Self::Operate(..) => "Operate",
            Self::Stop => "Stop",
        })
    }
}

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
        self.vitals.load().health(now, self.stale_after)
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
        now.since(published.snapshot.cut_at) <= late
    }

    /// Hands a batch to the writer and waits until it is durable.
    pub(crate) async fn push(
        &self,
        feed: String,
        lines: Vec<(usize, Result<FeedMessage, Reject>)>,
    ) -> Result<Receipt, NotTaken> {
        let (receipt, taken) = oneshot::channel();
        match self.queue.try_send(Command::Batch(Batch { feed, lines, receipt })) {
            Ok(()) => taken.await.unwrap_or(Err(NotTaken::Stopped)),
            Err(TrySendError::Full(_)) => Err(NotTaken::Full),
            Err(TrySendError::Disconnected(_)) => Err(NotTaken::Stopped),
        }
    }

    /// Carries out an operator's word, and says how many changes it made once they are durable. They show with the
    /// next snapshot.
    ///
    /// # Errors
    /// It cannot be done, or not now.
    pub async fn operate(&self, operation: Operation) -> Result<usize, OperateError> {
        let (answer, done) = oneshot::channel();
        match self.queue.try_send(Command::Operate(operation, answer)) {
            Ok(()) => done.await.unwrap_or(Err(OperateError::Busy)),
            Err(_) => Err(OperateError::Busy),
        }
    }

    /// Asks the writer to finish what it has and end.
    pub fn stop(&self) {
        // A full queue empties; a writer that is gone needs no telling.
        let mut command = Command::Stop;
        while let Err(TrySendError::Full(back)) = self.queue.try_send(command) {
            command = back;
            std::thread::yield_now();
        }
    }

    pub(crate) fn records(&self) -> (usize, usize) {
        let published = self.published.load();
        (published.snapshot.events(), published.snapshot.records())
    }

    fn count(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}
