//! A log that cannot be written: the refusals meanwhile, and the retries.
//!
//! If a single process has the log, the writer continues: batches are refused at once, snapshots are shown as they are
//! due, and from time to time the writer tries to log a snapshot. The book has to be read back only if something was
//! applied that is not in the log. If other nodes may write, the writer steps down instead.

use std::sync::Arc;
use std::time::{Duration, Instant};

use change_log::{Log, LogError};
use domain::Timestamp;

use crate::entries::Entries;
use crate::error::Chain;
use crate::error::{NotTaken, WorldError};
use crate::identities::Tracker;
use crate::leadership::ANSWER_TIME_MAX;
use crate::start::Start;
use crate::world::WorldHandle;
use crate::writer::Writer;

/// Time after a failure in which nothing is accepted: the first, and the maximum after repeated failures.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Pause after reading the book back, as a multiple of the time that it took.
const READ_BACK_REST: u32 = 4;

/// Successive failures of the log.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    /// Time of the next attempt; `None` while the log can be written.
    retry_at: Option<Instant>,
    /// Length of the pause after the last failure; zero if a batch was stored since.
    pause: Duration,
    /// The book was read back since, or could not be.
    tried: bool,
    /// Time that the last read-back took.
    read_back: Duration,
}

impl Failure {
    /// True if nothing is accepted at present.
    pub(crate) fn is_open(&self) -> bool {
        self.retry_at.is_some()
    }

    /// Notes that a batch was stored.
    pub(crate) fn note_success(&mut self) {
        self.pause = Duration::ZERO;
    }

    fn note(&mut self) {
        self.tried = false;
        self.postpone();
    }

    fn postpone(&mut self) {
        self.pause = (2 * self.pause).clamp(PAUSE_MIN, PAUSE_MAX);
        self.retry_at = Some(Instant::now() + self.pause.max(READ_BACK_REST * self.read_back));
    }

    fn is_due(&self) -> bool {
        self.retry_at.is_some_and(|retry_at| Instant::now() >= retry_at)
    }
}

impl Writer {
    /// Makes entries durable that the book has already. If that fails, the waiting batches are refused, and the book
    /// returns to the content of the log with [`Self::recover`].
    pub(crate) fn store(&mut self, now: Timestamp, entries: &Entries) -> bool {
        if self.append(now, entries) {
            return true;
        }
        self.ahead = true;
        let queue = &self.worker.queue;
        queue.refuse_begun(self.round, self.refusal);
        // If other nodes may write, the thread that follows the log does this.
        if self.term.is_none() {
            queue.refuse_batches(self.refusal);
        }
        false
    }

    /// Makes entries durable.
    pub(crate) fn append(&mut self, now: Timestamp, entries: &Entries) -> bool {
        if self.worker.options.simulation.is_some() && self.worker.handle.is_disk_full() {
            // Data that can be rebuilt from nothing must not take the last space on a disk.
            self.unlogged = true;
            return true;
        }
        let begun = Instant::now();
        let (log, at_ms) = (&mut self.log, now.as_millis());
        let written = match &mut self.term {
            None if entries.ends.is_empty() => return true,
            // It would not follow the content of the log.
            None if self.ahead => return false,
            None => log.append(at_ms, entries.iter()).map(drop),
            Some(term) => {
                let written =
                    term.leadership.asking(ANSWER_TIME_MAX, || match entries.ends.is_empty() {
                        // A node that was replaced may not even report that nothing changed, because its book is
                        // outdated.
                        true => log.fence(at_ms),
                        false => log.append(at_ms, entries.iter()).map(drop),
                    });
                term.looked = Instant::now();
                written
            }
        };
        match written {
            Ok(()) => {
                self.unlogged = false;
                if !entries.ends.is_empty() {
                    self.last_at = Some(now);
                }
                let stats = &self.worker.handle.stats;
                let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                WorldHandle::count(&stats.append_us, took);
                WorldHandle::count(&stats.appends, 1);
                self.note_log(entries.ends.len());
                true
            }
            Err(error) => {
                self.note_failure(&error);
                false
            }
        }
    }

    fn note_failure(&mut self, error: &LogError) {
        let overtaken = matches!(error, LogError::Overtaken);
        self.refusal = if overtaken { NotTaken::Overtaken } else { NotTaken::LogFailed };
        let world = self.worker.options.world;
        if self.term.is_some() && overtaken {
            tracing::warn!(event = "leader.overtaken", %world, "another node is the leader now; this one follows");
        } else {
            WorldHandle::count(&self.worker.handle.stats.log_failures, 1);
            tracing::error!(event = "log.write_failed", %world, error = %Chain(error), "the change log cannot be written; pushes are refused until it can");
        }
        if self.term.is_some() {
            self.ahead = true;
        } else if self.worker.options.simulation.is_some() {
            // A simulated world follows from the seed and the clock, whatever its log holds.
            self.reopen();
        } else {
            // The log may or may not hold entries that were not acknowledged.
            self.ahead |= matches!(error, LogError::Poisoned);
            self.worker.queue.set_log_failed(true);
            self.failure.note();
        }
    }

    /// After a failure, reads the book back if necessary. After a pause, checks that the log can be written, with a
    /// snapshot that changes nothing.
    pub(crate) fn recover(&mut self) {
        let due = self.failure.is_due();
        if self.ahead && (due || !self.failure.tried) {
            self.read_back();
        }
        if !due {
            return;
        }
        let now = self.worker.clock.now();
        if self.ahead {
            self.failure.postpone();
        } else if self.store_cut(now) {
            self.failure.retry_at = None;
            self.worker.queue.set_log_failed(false);
            tracing::info!(event = "log.writable", world = %self.worker.options.world, "the change log can be written again");
            self.show(now, true);
        }
    }

    fn reopen(&mut self) {
        match Log::open(&self.worker.options.log) {
            Ok(log) => self.log = log,
            Err(error) => {
                tracing::error!(event = "log.open_failed", world = %self.worker.options.world, error = %Chain(&error), "the change log cannot be opened");
            }
        }
    }

    /// Rebuilds the book from the log.
    fn read_back(&mut self) {
        let begun = Instant::now();
        WorldHandle::count(&self.worker.handle.stats.read_backs, 1);
        let reopened = Log::open(&self.worker.options.log);
        let recovered = reopened.map_err(WorldError::from).and_then(|mut log| {
            let start = Start::recover(&mut log, &self.worker.options)?;
            Ok((log, start.book, start.last_at))
        });
        match recovered {
            Ok((log, book, last_at)) => {
                self.last_at = last_at;
                self.log = log;
                self.book = book;
                self.ahead = false;
                if let Some(tracker) = &mut self.tracker {
                    *tracker = Tracker::of(&self.book);
                    self.worker.handle.identities.store(Arc::new(tracker.held().clone()));
                }
                self.worker.handle.vitals.store(Arc::new(self.book.vitals()));
                self.worker.note_identities(&self.book);
            }
            Err(error) => {
                tracing::error!(event = "log.read_back_failed", world = %self.worker.options.world, error = %Chain(&error), "the book cannot be read back; nothing is taken until it can");
            }
        }
        (self.failure.tried, self.failure.read_back) = (true, begun.elapsed());
    }
}
