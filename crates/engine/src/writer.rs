//! The only writer of a world: accepts batches, makes them durable, cuts snapshots on time.

mod failure;
mod round;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use change_log::Log;
use domain::{Clock, Timestamp};
use feeds::sandbox::Simulation;
use market::book::IMAGE_VERSION;
use market::{Book, Change, Configured, Operation};
use tokio::sync::watch;

use crate::checkpoint_schedule::CheckpointSchedule;
use crate::entries::Entries;
use crate::error::Chain;
use crate::error::{NotTaken, OperateError, WorldError};
use crate::gap_note::{GapNote, LogGap};
use crate::history::History;
use crate::identities::{Identities, Tracker};
use crate::leadership::ANSWER_TIME_MAX;
use crate::leadership::Term;
use crate::live::Live;
use crate::options::{WorldOptions, epoch_start};
use crate::publication::Published;
use crate::queue::{Intake, Queue, QueuedOperation, Waiting};
use crate::simulator::{SANDBOX_IDS, play};
use crate::start::{Start, check_older};
use crate::worker::{Next, WorldWorker};
use crate::world::{Past, Shared, WorldHandle, WorldStats};
pub(crate) use crate::writer::failure::Failure;

/// A sandbox that was asleep for longer, or whose clock was set back, is founded again at the present instant.
const REFOUND_AFTER: Duration = Duration::from_secs(3600);
/// Maximum sleep of the writer, so that a clock set forward, or a log that is not reached, is noticed soon.
const NAP_MAX: Duration = Duration::from_millis(250);

/// Owner of a world's book and log.
#[derive(Debug)]
pub struct Writer {
    pub(crate) worker: WorldWorker,
    pub(crate) book: Book,
    pub(crate) log: Log,
    /// The book may have changes that the log does not have: some were applied and not made durable, and the log was
    /// not read back yet.
    pub(crate) ahead: bool,
    /// State of failed log writes, if no other node can write.
    pub(crate) failure: Failure,
    /// Number of rounds in which feeds had their turns.
    pub(crate) round: u64,
    /// The reason for refusing batches after a failure, if other nodes may write.
    pub(crate) refusal: NotTaken,
    pub(crate) checkpoint_schedule: CheckpointSchedule,
    pub(crate) next_cut: Timestamp,
    /// The configuration of this writer for the log; `None` in a simulated world.
    pub(crate) configured: Option<Configured>,
    /// `None` in the sandbox: its events are not merged or split there.
    pub(crate) tracker: Option<Tracker>,
    /// Some of a simulated world's changes were not logged: it will be founded again in the log.
    pub(crate) unlogged: bool,
    /// Time since which publications are not in the log.
    pub(crate) unlogged_since: Option<Timestamp>,
    /// The same, stored for a process that starts later.
    pub(crate) gap_note: GapNote,
    /// Time of the log's last entry, if known.
    pub(crate) last_at: Option<Timestamp>,
    /// Time up to which a simulated world was played since its last publication, for clients that follow it live.
    pub(crate) played: Option<Timestamp>,
    /// Set if other nodes may write.
    pub(crate) term: Option<Term>,
}

impl WorldHandle {
    /// Restores a world from its log and publishes its first snapshot.
    ///
    /// # Errors
    /// The log cannot be read or written, or a newer program wrote it.
    pub fn open(
        options: WorldOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Arc<Self>, Writer), WorldError> {
        let mut log = Log::open(&options.log)?;
        let mut start = if options.simulation.is_some() {
            Start::afresh(&options, SANDBOX_IDS)
        } else {
            Start::recover(&mut log, &options)?
        };
        let mut gap_note = GapNote::open(&options);
        start.note_gap(gap_note.gap());
        let mut entries = mem::take(&mut start.entries);
        let (published, at) =
            start.first_snapshot(&options, clock.now(), log.last_seq(), &mut entries);
        let mut last_at = start.last_at;
        if !entries.ends.is_empty() {
            log.append(at.as_millis(), entries.iter())?;
            last_at = Some(at);
        }
        gap_note.set(None);
        let next_cut = published.until;
        let tracker = options.simulation.is_none().then(|| Tracker::of(&start.book));
        let queue = Arc::<Queue>::default();
        let handle =
            Arc::new(Self::new(&options, published, &start.book, Arc::clone(&queue), None));
        if let Some(tracker) = &tracker {
            handle.identities.store(Arc::new(tracker.held().clone()));
        }
        if options.simulation.is_none() {
            handle.stats.log_lost.store(start.lost, Ordering::Relaxed);
            check_older(&handle, start.checkpoint_seq);
        }
        let queue = Intake(queue);
        let worker = WorldWorker::new(options, clock, &handle, queue);
        let writer = Writer {
            worker,
            book: start.book,
            log,
            ahead: false,
            failure: Failure::default(),
            round: 0,
            refusal: NotTaken::LogFailed,
            checkpoint_schedule: CheckpointSchedule::of_folder(start.checkpoint_seq, at),
            next_cut,
            configured: start.configured,
            tracker,
            unlogged: false,
            unlogged_since: None,
            gap_note,
            last_at,
            played: None,
            term: None,
        };
        writer.note_log(0);
        writer.worker.note_identities(&writer.book);
        Ok((handle, writer))
    }

    pub(crate) fn new(
        options: &WorldOptions,
        published: Published,
        book: &Book,
        queue: Arc<Queue>,
        shared: Option<Shared>,
    ) -> Self {
        Self {
            world: options.world,
            published: ArcSwap::from_pointee(published),
            vitals: ArcSwap::from_pointee(book.vitals()),
            identities: ArcSwap::from_pointee(Identities::default()),
            queue,
            stale_after: options.stale_after,
            refresh_interval: options.refresh_interval,
            limits: options.limits,
            publications: watch::Sender::new(()),
            past: Past {
                log: options.log.clone(),
                simulation: options.simulation.clone(),
                notes: options.notes.clone(),
            },
            history: History::new(options),
            live: Live::new(options),
            stats: WorldStats::default(),
            disk_full: AtomicBool::new(false),
            shared,
        }
    }
}

impl Writer {
    /// Runs until it is stopped.
    pub fn run(mut self) {
        while self.work() == Next::GoOn {}
        tracing::info!(event = "writer.stopped", world = %self.worker.options.world, seq = self.log.last_seq(), "writer stopped");
    }

    /// Does the next step: a snapshot if one is due, and then some of the waiting work, however late the snapshots
    /// are.
    pub(crate) fn work(&mut self) -> Next {
        if self.term.is_none() {
            self.recover();
        }
        let due = self.cut_when_due();
        if self.term.is_some() && self.ahead {
            return self.next(Next::GoOn);
        }
        let now = self.worker.clock.now();
        let live = self.show_live().unwrap_or(NAP_MAX);
        let nap =
            if due { Duration::ZERO } else { self.next_cut.since(now).min(NAP_MAX).min(live) };
        let next = match self.worker.queue.wait(nap) {
            Waiting::Stop => Next::Stop,
            Waiting::Operation(queued) => {
                self.answer(queued);
                Next::GoOn
            }
            Waiting::Look(look) => {
                (look.0)(&self.book);
                Next::GoOn
            }
            Waiting::Batches => {
                self.take_round();
                Next::GoOn
            }
            // Nothing waits, so operators need not wait for the next snapshot either.
            Waiting::Nothing => {
                self.worker.publish_identities(&self.book, self.tracker.as_mut());
                Next::GoOn
            }
        };
        self.next(next)
    }

    /// Cuts a snapshot if one is due.
    fn cut_when_due(&mut self) -> bool {
        let now = self.worker.clock.now();
        let interval = self.worker.options.refresh_interval;
        // A clock set back would otherwise leave this snapshot current, and in caches, until it has caught up. The
        // clock that nodes share is estimated, and may go back by some milliseconds.
        let set_back = match self.term {
            Some(_) => self.worker.handle.is_ahead(now),
            None => self.next_cut.since(now) > interval,
        };
        if now < self.next_cut && !set_back {
            return false;
        }
        let at = self.instant_of_cut(now);
        if set_back && self.term.is_some() {
            tracing::warn!(event = "clock.set_back", world = %self.worker.options.world, from = %self.next_cut, to = %now, "the database's clock was set back; snapshots continue from there");
        }
        self.cut(at);
        true
    }

    /// Shows the changes since the last publication to clients that follow live, if that is due. Otherwise returns the
    /// time until it is.
    fn show_live(&mut self) -> Option<Duration> {
        if self.ahead || !self.worker.handle.live.is_wanted() {
            return None;
        }
        if self.worker.options.simulation.is_some() {
            self.play_on();
        }
        let at = if self.worker.options.simulation.is_some() { self.played } else { self.last_at };
        self.worker.show_live(&mut self.book, self.log.last_seq(), at?)
    }

    /// Plays the events of a simulated world up to now, and before its next publication.
    fn play_on(&mut self) {
        let Some(simulation) = &self.worker.options.simulation else { return };
        let (from, at) = (self.played_to(), Simulation::last_step(self.worker.clock.now()));
        if at <= from || at >= self.next_cut {
            return;
        }
        let mut entries = Entries::default();
        for message in simulation.between(from, at) {
            play(&mut self.book, &message, at, &mut entries);
        }
        self.played = Some(at);
        // If that fails, the world continues all the same, as with a publication.
        self.append(at, &entries);
    }

    /// Time up to which a simulated world was played.
    fn played_to(&self) -> Timestamp {
        let published = self.next_cut.minus(self.worker.options.refresh_interval);
        self.played.unwrap_or(published)
    }

    /// The beginning of the epoch. If several nodes show snapshots, one that was shown is never shown differently: in
    /// epochs that a clock reaches for the second time, it is the present instant, which is not the beginning of any.
    fn instant_of_cut(&self, now: Timestamp) -> Timestamp {
        let begins = epoch_start(now, self.worker.options.refresh_interval);
        match &self.term {
            Some(term) if term.furthest_cut >= Some(begins) => {
                now.max(begins.plus(Duration::from_millis(1)))
            }
            _ => begins,
        }
    }

    fn answer(&mut self, (operation, answer): QueuedOperation) {
        let done = self.operate(&operation);
        if answer.send(done).is_err() {
            tracing::debug!(
                event = "operator.abandoned",
                "an operator did not wait for the answer"
            );
        }
    }

    /// Carries out an operation durably, and returns the number of its changes.
    ///
    /// # Errors
    /// It cannot be done, or cannot be made durable; then nothing changed.
    pub fn operate(&mut self, operation: &Operation) -> Result<usize, OperateError> {
        if self.ahead && self.term.is_some() {
            return Err(OperateError::Overtaken);
        }
        if self.failure.is_open() {
            return Err(OperateError::LogFailed);
        }
        let now = self.worker.clock.now();
        if let (Operation::Drop { feed }, Some(tracker)) = (operation, &mut self.tracker) {
            tracker.before_change(&self.book, &Change::Dropped { feed: feed.clone() });
        }
        let changes = self.book.operate(operation, now)?;
        let mut entries = Entries::default();
        for change in &changes {
            entries.push(change);
            self.note_change(change);
        }
        if !self.store(now, &entries) {
            let overtaken = self.refusal == NotTaken::Overtaken;
            return Err(if overtaken { OperateError::Overtaken } else { OperateError::LogFailed });
        }
        self.worker.note_identities(&self.book);
        self.worker.publish_identities(&self.book, self.tracker.as_mut());
        tracing::info!(event = "operator.applied", world = %self.worker.options.world, %operation, changes = changes.len(), "operator change applied");
        Ok(changes.len())
    }

    fn note_change(&mut self, change: &Change) {
        if let Some(tracker) = &mut self.tracker {
            tracker.after(change);
        }
    }

    /// Publishes the snapshot of the epoch that `at` is in.
    fn cut(&mut self, at: Timestamp) {
        let durable = self.store_cut(at);
        if !durable && self.term.is_some() {
            // A node must not show what other nodes do not have.
            return;
        }
        if !durable && !self.ahead {
            let from = *self.unlogged_since.get_or_insert(at);
            // Before it is shown: after that it may be too late.
            self.gap_note.set(Some(LogGap { from, seq: self.log.last_seq() }));
        }
        // Without the log, a single service still shows its book, with true freshness.
        self.show(at, durable);
    }

    /// Logs a cut, and the changes that result from time alone. If that fails, none of it has happened.
    pub(crate) fn store_cut(&mut self, at: Timestamp) -> bool {
        let from = self.played_to();
        let mut entries = Entries::default();
        if let Some(simulation) = &self.worker.options.simulation {
            // Playing the time in between is only worthwhile if it takes not many more messages than founding the
            // world again.
            let gap = self.unlogged && !self.worker.handle.is_disk_full();
            let messages = if at < from || at.since(from) > REFOUND_AFTER || gap {
                let founded = Change::Founded { ids: SANDBOX_IDS };
                self.book.absorb(&founded, at);
                entries.push(&founded);
                simulation.world_at(at)
            } else {
                simulation.between(from, at)
            };
            for message in messages {
                play(&mut self.book, &message, at, &mut entries);
            }
        }
        self.played = None;
        let overdue = self.book.overdue(at, self.worker.options.lifetimes);
        overdue.iter().for_each(|change| entries.push(change));
        if let Some(from) = self.unlogged_since.filter(|from| *from < at) {
            entries.push(&Change::Unlogged { from, to: at });
        }
        let configured = self.unsaid_configuration();
        configured.iter().for_each(|change| entries.push(change));
        entries.push(&Change::Cut { at });
        let durable = self.append(at, &entries);
        if let Some(change) = configured.filter(|_| durable) {
            self.book.absorb(&change, at);
        }
        if durable {
            self.unlogged_since = None;
            self.gap_note.set(None);
        }
        if durable || self.worker.options.simulation.is_some() {
            for change in &overdue {
                self.book.absorb(change, at);
                self.note_change(change);
            }
        }
        if let Some(term) = self.term.as_mut().filter(|_| durable) {
            term.furthest_cut = term.furthest_cut.max(Some(at));
        }
        durable
    }

    /// The configuration of this writer, if the log does not have it yet.
    fn unsaid_configuration(&self) -> Option<Change> {
        let unsaid = self.configured.as_ref().filter(|own| self.book.configured() != Some(*own));
        unsaid.cloned().map(Change::Configured)
    }

    /// Makes the snapshot of `at` current.
    pub(crate) fn show(&mut self, at: Timestamp, durable: bool) {
        let interval = self.worker.options.refresh_interval;
        self.next_cut = epoch_start(at, interval).plus(interval);
        if self.ahead {
            // The content of the book has no receipt: the last snapshot stays until the log can be read back.
            return;
        }
        // An event in a snapshot must be among the identities too.
        self.worker.publish_identities(&self.book, self.tracker.as_mut());
        self.worker.publish(&mut self.book, self.log.last_seq(), at, Some(at));
        // The cut is the newest entry and changes nothing: a checkpoint that stops short of it leaves it to be read
        // back, so that a restart in this epoch shows the same bytes (D14).
        let before_cut = self.log.last_seq().saturating_sub(1);
        if durable && self.checkpoint_schedule.is_due(before_cut, at) {
            match self.worker.handle.is_disk_full() {
                true => self.release(),
                false => self.checkpoint(before_cut),
            }
        }
    }

    /// Releases log entries of a full disk that are not needed any more: that makes room for the next checkpoint.
    fn release(&mut self) {
        let now = self.worker.clock.now();
        // With a term the log is not on this disk.
        if self.term.is_some() || !self.checkpoint_schedule.is_rested(now) {
            return;
        }
        self.checkpoint_schedule.note(None, now, Duration::ZERO);
        let before = now.minus(self.worker.options.log_retention);
        let keep_from = self.worker.handle.history.keep_from();
        if let Err(error) = self.log.retain(before.as_millis(), keep_from) {
            tracing::warn!(event = "log.not_released", world = %self.worker.options.world, error = %Chain(&error), "old log entries could not be removed from the full disk");
        }
    }

    /// Writes the whole book as it is after entry `seq`, and releases log entries that are not needed any more.
    fn checkpoint(&mut self, seq: u64) {
        let begun = Instant::now();
        let image = self.book.to_image();
        let before = self.worker.clock.now().minus(self.worker.options.log_retention);
        // Entries that the archive does not hold yet are not released.
        let keep_from = seq.min(self.worker.handle.history.keep_from());
        let log = &mut self.log;
        let mut write = || {
            let written = log.write_checkpoint(seq, IMAGE_VERSION, &image);
            // Older checkpoints may cover entries whose removal makes room for this one.
            let released = log.retain(before.as_millis(), keep_from);
            written.and(released)
        };
        let written = match &self.term {
            None => write(),
            Some(term) => term.leadership.asking(ANSWER_TIME_MAX, write),
        };
        let now = self.worker.clock.now();
        self.checkpoint_schedule.note(written.is_ok().then_some(seq), now, begun.elapsed());
        match written {
            Ok(_) => {
                WorldHandle::count(&self.worker.handle.stats.checkpoints, 1);
            }
            Err(error) => {
                // The log still holds everything; the next start takes longer.
                tracing::error!(event = "checkpoint.failed", world = %self.worker.options.world, error = %Chain(&error), "the checkpoint could not be written");
            }
        }
    }

    pub(crate) fn note_log(&self, entries: usize) {
        let stats = &self.worker.handle.stats;
        WorldHandle::count(&stats.log_entries, u64::try_from(entries).unwrap_or(0));
        stats.log_seq.store(self.log.last_seq(), Ordering::Relaxed);
        stats.log_bytes.store(self.log.bytes(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::test_options;
