//! A node of several that share a world: it follows the log, and writes it while it is the leader.
//!
//! One thread does both, one after the other, with one book. [`Leadership`] says which node is the leader; the log
//! itself ensures that a node which wrongly believes so writes nothing. Failures of the log's servers end nothing
//! here: the last publication stays current, and the node retries for as long as the service runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use change_log::{LeaderClient, Log, LogError, LogLocation, StreamLog};
use domain::{Clock, Timestamp};
use market::{Book, CHANGE_VERSION, Change, Ids, Snapshot};

use crate::checkpoint_schedule::CheckpointSchedule;
use crate::error::Chain;
use crate::error::{NotTaken, WorldError};
use crate::follower::{Followed, Held};
use crate::gap_note::GapNote;
use crate::leadership::Term;
use crate::leadership::{ANSWER_TIME_MAX, Leadership};
use crate::options::{WorldOptions, epoch_start, new_salt};
use crate::publication::Published;
use crate::queue::{Intake, Queue};
use crate::start::new_ids;
use crate::worker::Next;
use crate::worker::Waiting;
use crate::worker::WorldWorker;
use crate::world::{Shared, WorldHandle};
use crate::writer::{Failure, Writer};

/// Pause before the next attempt to reach the log: the first, and the maximum.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The same if the content of the log cannot be read.
const STUCK_PAUSE: Duration = Duration::from_secs(10);
/// Interval at which an idle leader checks that it still reaches the log and is the only writer. So it notices a loss
/// as soon as a busy one.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Number of successive failed checks after which the leader steps down by itself. The keeper of the lead withdraws
/// the leadership after two seconds ([`Leadership::is_healthy`]) and grants it again if the servers were only slow;
/// this limit is for the case that the keeper does not. Stepping down because of servers that are slow for all nodes
/// helps nobody.
const MISSES_MAX: u32 = 10;
/// Maximum number of attempts to read to the end of a log that another node keeps writing.
const TAKE_OVER_TRIES: usize = 20;

/// Settings of a node in addition to the world's options.
#[derive(Debug)]
pub struct Membership {
    /// The connection to the present leader.
    pub leader_client: LeaderClient,
    /// `None`: this node never writes.
    pub leadership: Option<Arc<Leadership>>,
}

/// The thread's side of a world that several nodes share.
#[derive(Debug)]
pub struct Node {
    worker: WorldWorker,
    leadership: Option<Arc<Leadership>>,
}

impl WorldHandle {
    /// Joins a world whose log is on servers. Nothing is reached yet, and nothing is served before the log was read:
    /// the servers may start later.
    pub fn join(
        options: WorldOptions,
        clock: Arc<dyn Clock>,
        membership: Membership,
    ) -> (Arc<Self>, Node) {
        let queue = Arc::<Queue>::default();
        let book = Book::new(Arc::clone(&options.catalogue), Ids::Minted { salt: 0 });
        let snapshot = Snapshot::cut(&book, 0, Timestamp::from_millis(0), options.stale_after, &[]);
        let published = Published::new(snapshot, clock.now());
        let Membership { leader_client, leadership } = membership;
        let shared = Shared::new(Arc::clone(&options.catalogue), Arc::clone(&clock), leader_client);
        let handle =
            Arc::new(Self::new(&options, published, &book, Arc::clone(&queue), Some(shared)));
        let queue = Intake(queue);
        let worker = WorldWorker::new(options, clock, &handle, queue);
        (handle, Node { worker, leadership })
    }
}

impl Node {
    /// Runs until it has to stop.
    pub fn run(self) {
        let Self { mut worker, leadership } = self;
        let world = worker.options.world;
        let mut held = None;
        let mut pause = PAUSE_MIN;
        loop {
            let followed = follow(&mut worker, &mut held, leadership.as_deref());
            if let Some(leadership) = &leadership {
                // A node that writes is healthy; a node with an error is not.
                leadership.set_healthy(matches!(followed, Ok((_, Followed::Lead))));
            }
            let led = match (followed, &leadership) {
                (Ok((_, Followed::Stop)), _) => break,
                (Ok((log, Followed::Lead)), Some(leadership)) => {
                    pause = PAUSE_MIN;
                    let led;
                    (worker, led) = lead(worker, log, &mut held, leadership);
                    led
                }
                (Ok((_, Followed::Lead)), None) => Ok(Next::GoOn),
                (Err(error), _) => Err(error),
            };
            match led {
                Ok(Next::Stop) => break,
                Ok(Next::GoOn | Next::StepDown) => {}
                Err(error) => {
                    if let WorldError::LogRewritten { last, read } = error {
                        tracing::error!(event = "log.rewritten", %world, last, read, "the log's servers have lost entries that were read; what is shown follows the log");
                        held = None;
                    }
                    pause = worker.note_problem(&error, pause);
                    if worker.wait(pause) == Waiting::Stop {
                        break;
                    }
                }
            }
        }
        tracing::info!(event = "node.stopped", %world, "node stopped");
    }
}

/// Opens the log, catches up, and follows it.
fn follow(
    worker: &mut WorldWorker,
    held: &mut Option<Held>,
    leadership: Option<&Leadership>,
) -> Result<(StreamLog, Followed), WorldError> {
    let LogLocation::Stream { runtime, location } = &worker.options.log else {
        return Err(WorldError::NotShared);
    };
    let begun = Instant::now();
    let can_create_log = leadership.is_some_and(Leadership::can_create_log);
    let mut log = match StreamLog::find(runtime, location) {
        Err(LogError::Missing { .. }) if can_create_log => {
            tracing::info!(event = "log.created", world = %worker.options.world, "no log exists yet; this node creates it");
            StreamLog::open(runtime, location)?
        }
        found => found?,
    };
    worker.catch_up(&mut log, held)?;
    worker.note_reached(&log, held.as_ref(), begun.elapsed());
    if let Some(leadership) = leadership {
        leadership.set_healthy(true);
    }
    let log_seen = |held: &Option<Held>| {
        leadership.filter(|_| held.is_some()).inspect(|leadership| leadership.note_log());
    };
    log_seen(held);
    let followed = worker.follow(&log, held, leadership);
    log_seen(held);
    Ok((log, followed?))
}

/// Writes the log while this node is the leader.
fn lead(
    mut worker: WorldWorker,
    mut log: StreamLog,
    held: &mut Option<Held>,
    leadership: &Arc<Leadership>,
) -> (WorldWorker, Result<Next, WorldError>) {
    let last = match take_over(&mut worker, &mut log, held, leadership) {
        Ok(last) => last,
        Err(error) => {
            leadership.set_healthy(false);
            leadership.withdraw();
            return (worker, Err(error));
        }
    };
    leadership.note_log();
    let term = leadership.term().unwrap_or_default();
    let (world, handle) = (worker.options.world, Arc::clone(&worker.handle));
    let mut writer = Writer::taking_over(worker, log, last, leadership);
    tracing::info!(event = "leader.acquired", %world, term, seq = writer.log.last_seq(), "this node became the leader");
    handle.set_leading(term);
    let mut next = Next::GoOn;
    while next == Next::GoOn {
        next = writer.work();
    }
    // In this order: the keeper of the lead may grant the next term once it sees that this one ended, and that grant
    // must not be withdrawn.
    leadership.set_healthy(false);
    leadership.withdraw();
    handle.set_leading(0);
    tracing::info!(event = "leader.lost", %world, term, "this node is no longer the leader");
    let (worker, kept) = writer.step_down();
    *held = kept;
    (worker, Ok(next))
}

/// Reads to the end of the log and ensures that no other node continues from there.
fn take_over(
    worker: &mut WorldWorker,
    log: &mut StreamLog,
    held: &mut Option<Held>,
    leadership: &Leadership,
) -> Result<Held, WorldError> {
    for _ in 0..TAKE_OVER_TRIES {
        log.refresh()?;
        worker.catch_up(log, held)?;
        // Servers that do not know yet that one of them is no longer their leader may answer the second query with
        // less.
        if held.as_ref().is_some_and(|held| held.seq != log.last_seq()) {
            continue;
        }
        let now_ms = worker.clock.now().as_millis();
        let fenced = if held.is_some() {
            log.fence(now_ms)
        } else if !leadership.can_create_log() {
            return Err(WorldError::LogEmptied);
        } else {
            let mut founded = Vec::new();
            Change::Founded { ids: new_ids(&worker.options) }.encode(&mut founded);
            log.append(now_ms, [(CHANGE_VERSION, founded.as_slice())]).map(drop)
        };
        match (fenced, held.take()) {
            (Ok(()), Some(last)) => return Ok(last),
            // A world that was just founded is read back like any other; a log that another node writes is read
            // further.
            (Ok(()) | Err(LogError::Overtaken), kept) => *held = kept,
            (Err(error), kept) => {
                *held = kept;
                return Err(error.into());
            }
        }
    }
    Err(WorldError::CannotCatchUp)
}

impl WorldHandle {
    /// `0`: this node does not write.
    fn set_leading(&self, term: i64) {
        if let Some(shared) = &self.shared {
            shared.term.store(term, Ordering::Relaxed);
            shared.leading.send_replace(term != 0);
            if term != 0 {
                shared.lag_entries.store(0, Ordering::Relaxed);
                shared.behind_since_ms.store(0, Ordering::Relaxed);
            }
        }
    }
}

impl WorldWorker {
    /// Notes that the log was read, and logs it if it could not be read before.
    fn note_reached(&self, log: &StreamLog, held: Option<&Held>, took: Duration) {
        let Some(shared) = &self.handle.shared else { return };
        if shared.stuck.swap(false, Ordering::Relaxed) {
            tracing::info!(event = "log.readable", world = %self.options.world, "the log can be read again");
        }
        WorldHandle::count(&shared.connects, 1);
        shared.problem.store(None);
        shared.behind_since_ms.store(0, Ordering::Relaxed);
        let seq = held.map_or(0, |held| held.seq);
        shared.lag_entries.store(log.last_seq().saturating_sub(seq), Ordering::Relaxed);
        shared.looked_ms.store(self.clock.now().as_millis(), Ordering::Relaxed);
        self.handle.stats.log_bytes.store(log.bytes(), Ordering::Relaxed);
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        shared.catch_up_us.store(took_us, Ordering::Relaxed);
        tracing::info!(event = "log.followed", world = %self.options.world, seq, took_us, "the log is followed");
    }

    /// Logs an error, and returns the pause before the next attempt.
    fn note_problem(&self, error: &WorldError, pause: Duration) -> Duration {
        let world = self.options.world;
        if let Some(shared) = &self.handle.shared {
            // Without its causes, which name addresses.
            shared.problem.store(Some(Arc::new(error.to_string())));
        }
        if error.is_lasting() {
            if let Some(shared) = &self.handle.shared {
                shared.outdated.store(error.is_of_newer_program(), Ordering::Relaxed);
                shared.stuck.store(true, Ordering::Relaxed);
            }
            tracing::error!(event = "log.unreadable", %world, error = %Chain(error), "the content of the log cannot be read; this node is not ready until it can");
            return STUCK_PAUSE;
        }
        tracing::warn!(event = "log.follow_failed", %world, error = %Chain(error), "the log is not followed; what was last read is still served");
        (2 * pause).min(PAUSE_MAX)
    }
}

impl Writer {
    fn taking_over(
        worker: WorldWorker,
        mut log: StreamLog,
        mut held: Held,
        leadership: &Arc<Leadership>,
    ) -> Self {
        held.book.set_limits(worker.options.limits);
        // The servers may have lost entries, with ids that were shown, since another node wrote.
        held.book.renew_salt(new_salt(&worker.options));
        let answered = Arc::clone(leadership);
        log.on_answer(move || answered.note_answer());
        log.set_last_checksum(held.checksum);
        let now = worker.clock.now();
        let interval = worker.options.refresh_interval;
        let writer = Self {
            next_cut: held.last_cut.map_or(now, |cut| epoch_start(cut, interval).plus(interval)),
            configured: Some(worker.options.configured()),
            worker,
            book: held.book,
            checkpoint_schedule: CheckpointSchedule::of_servers(log.checkpoint_seq(), now),
            log: Log::Stream(Box::new(log)),
            ahead: false,
            failure: Failure::default(),
            round: 0,
            refusal: NotTaken::LogFailed,
            tracker: Some(held.tracker),
            unlogged: false,
            unlogged_since: None,
            gap_note: GapNote::default(),
            last_at: held.at,
            played: None,
            term: Some(Term {
                leadership: Arc::clone(leadership),
                looked: Instant::now(),
                misses: 0,
                furthest_cut: held.furthest_cut,
            }),
        };
        writer.note_log(0);
        writer
    }

    /// The next action after a step: a node that was overtaken, or is not to write any more, steps down.
    pub(crate) fn next(&mut self, next: Next) -> Next {
        let Some(term) = &mut self.term else { return next };
        term.leadership.note_progress();
        if next != Next::GoOn {
            return next;
        }
        if self.ahead || term.leadership.term().is_none() {
            return Next::StepDown;
        }
        if term.looked.elapsed() < LOOK_EVERY {
            return next;
        }
        let Log::Stream(log) = &self.log else { return next };
        match term.leadership.asking(ANSWER_TIME_MAX, || log.tip()) {
            Ok(tip) if tip.overtaken => {
                tracing::warn!(event = "leader.overtaken", world = %self.worker.options.world, "another node is the leader now; this one follows");
                return Next::StepDown;
            }
            Ok(_) => term.misses = 0,
            Err(error) => {
                term.misses += 1;
                tracing::warn!(event = "log.unreachable", world = %self.worker.options.world, error = %Chain(&error), misses = term.misses, "the log is not reached");
                if term.misses >= MISSES_MAX {
                    return Next::StepDown;
                }
            }
        }
        term.looked = Instant::now();
        next
    }

    /// Returns the thread's state, and the book if it equals the content of the log.
    fn step_down(self) -> (WorldWorker, Option<Held>) {
        let seq = self.log.last_seq();
        let handle = &self.worker.handle;
        let last_cut = handle.has_begun().then(|| handle.published().snapshot.cut_at);
        let furthest_cut = self.term.and_then(|term| term.furthest_cut).max(last_cut);
        let kept = self.tracker.filter(|_| !self.ahead).map(|tracker| Held {
            book: self.book,
            seq,
            at: self.last_at,
            checksum: self.log.last_checksum(),
            last_cut,
            furthest_cut,
            // Every publication so far was shown here.
            base_seq: 0,
            first_unshown: None,
            tracker,
        });
        (self.worker, kept)
    }
}
