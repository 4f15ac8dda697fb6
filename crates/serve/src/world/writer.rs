//! The one writer of a world: takes batches, makes them durable, cuts snapshots on time.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use change_log::{Log, Place};
use domain::message::Body;
use domain::{Clock, Timestamp};
use market::book::IMAGE_VERSION;
use market::{Book, Change, Operation, Snapshot, Verdict};
use tokio::sync::{oneshot, watch};

use crate::answers::Answers;
use crate::ledger::Odd;
use crate::world::identities::{Identities, Tracker};
use crate::world::start::{Entries, SANDBOX_IDS, Start, WorldError, epoch_start, play};
use crate::world::{
    Batch, Command, NotTaken, OperateError, Past, Published, QUEUE_BATCHES_MAX, Receipt,
    WorldHandle, WorldOptions, WorldStats,
};

/// A checkpoint is due after so many entries: replaying these takes a fraction of a second.
const CHECKPOINT_ENTRIES: u64 = 100_000;
/// And after so long, or old entries of a quiet world would never go.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(3600);
/// A sandbox that was asleep for longer, or whose clock was set back, is made anew for the instant.
const REFOUND_AFTER: Duration = Duration::from_secs(3600);
/// Lines that share one write to the disk at the most; bounds how late a snapshot can be.
const GROUP_LINES_MAX: usize = 20_000;
/// The longest the writer sleeps, so that a clock set forward is noticed soon.
const NAP_MAX: Duration = Duration::from_millis(500);

/// Owner of a world's book and log.
#[derive(Debug)]
pub struct Writer {
    options: WorldOptions,
    clock: Arc<dyn Clock>,
    handle: Arc<WorldHandle>,
    queue: Receiver<Command>,
    book: Book,
    log: Log,
    /// The book holds what the log may not: a batch failed, and the log could not be read back.
    ahead: bool,
    checkpoint_seq: u64,
    checkpoint_at: Timestamp,
    next_cut: Timestamp,
    /// The snapshot before the one in force: dropped here rather than by whichever request is the last.
    retired: Option<Arc<Published>>,
    /// None in the sandbox: nobody says there which events are one.
    tracker: Option<Tracker>,
}

impl WorldHandle {
    /// Brings a world back from its log and publishes its first snapshot.
    ///
    /// # Errors
    /// The log cannot be read or written, or a newer program wrote it.
    pub fn open(
        options: WorldOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Arc<Self>, Writer), WorldError> {
        let mut log = Log::open(&options.log)?;
        let (queue, commands) = sync_channel(QUEUE_BATCHES_MAX);
        let mut start = if options.simulation.is_some() {
            Start::afresh(&options, SANDBOX_IDS)
        } else {
            Start::recover(&mut log, &options)?
        };
        let checkpoint_seq = start.checkpoint_seq;
        let mut entries = mem::take(&mut start.entries);
        let (published, at) = start.first_snapshot(&options, clock.now(), &mut entries);
        if !entries.ends.is_empty() {
            log.append(at.as_millis(), entries.iter())?;
        }
        let next_cut = published.until;
        let tracker = options.simulation.is_none().then(|| Tracker::of(&start.book));
        let handle = Arc::new(Self::new(&options, published, &start.book, queue));
        if let Some(tracker) = &tracker {
            handle.identities.store(Arc::new(tracker.held().clone()));
        }
        let writer = Writer {
            options,
            clock,
            handle: Arc::clone(&handle),
            queue: commands,
            book: start.book,
            log,
            ahead: false,
            checkpoint_seq,
            checkpoint_at: at,
            next_cut,
            retired: None,
            tracker,
        };
        writer.note_log(0);
        writer.note_identities();
        Ok((handle, writer))
    }

    fn new(
        options: &WorldOptions,
        published: Published,
        book: &Book,
        queue: SyncSender<Command>,
    ) -> Self {
        let answers = Arc::clone(published.answers.figures());
        Self {
            published: ArcSwap::from_pointee(published),
            vitals: ArcSwap::from_pointee(book.vitals()),
            identities: ArcSwap::from_pointee(Identities::default()),
            queue,
            stale_after: options.stale_after,
            refresh_interval: options.refresh_interval,
            news: watch::Sender::new(()),
            past: Past {
                folder: match &options.log {
                    Place::Folder { dir, .. } => Some(dir.clone()),
                    Place::Stream { .. } => None,
                },
                simulation: options.simulation.clone(),
            },
            stats: WorldStats { answers, ..WorldStats::default() },
        }
    }
}

impl Writer {
    /// Runs until told to stop or until nobody could tell it any more.
    pub fn run(mut self) {
        loop {
            let now = self.clock.now();
            // A clock set back would otherwise leave this snapshot in force, and in caches, until it has caught up.
            let set_back = self.next_cut.since(now) > self.options.refresh_interval;
            if now >= self.next_cut || set_back {
                self.cut(epoch_start(now, self.options.refresh_interval));
                continue;
            }
            match self.queue.recv_timeout(self.next_cut.since(now).min(NAP_MAX)) {
                Ok(Command::Batch(batch)) => {
                    if self.take(batch) == Next::Stop {
                        break;
                    }
                }
                Ok(Command::Operate(operation, answer)) => self.answer(&operation, answer),
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                // Nobody waits: operators need not wait for the next snapshot either.
                Err(RecvTimeoutError::Timeout) => self.publish_identities(),
            }
        }
        tracing::info!(world = %self.options.world, seq = self.log.last_seq(), "writer stopped");
    }

    /// Takes a batch and whatever else is waiting, with one write to the disk for all.
    fn take(&mut self, first: Batch) -> Next {
        let now = self.clock.now();
        let mut next = Next::GoOn;
        let mut operations = Vec::new();
        let mut lines = first.lines.len();
        let mut group = vec![first];
        while lines < GROUP_LINES_MAX {
            match self.queue.try_recv() {
                Ok(Command::Batch(batch)) => {
                    lines += batch.lines.len();
                    group.push(batch);
                }
                // After what was sent before it.
                Ok(Command::Operate(operation, answer)) => {
                    operations.push((operation, answer));
                    break;
                }
                Ok(Command::Stop) => {
                    next = Next::Stop;
                    break;
                }
                Err(_) => break,
            }
        }
        let mut entries = Entries::default();
        let receipts: Vec<Receipt> = group
            .iter_mut()
            .map(|batch| {
                apply_batch(&mut self.book, batch, now, &mut entries, self.tracker.as_mut())
            })
            .collect();
        let joins = receipts.iter().map(|receipt| receipt.joins).sum();
        WorldHandle::count(&self.handle.stats.joins, joins);
        let durable = self.append(now, &entries);
        for (batch, receipt) in group.into_iter().zip(receipts) {
            let outcome = if durable { Ok(receipt) } else { Err(NotTaken::LogFailed) };
            if batch.receipt.send(outcome).is_err() {
                tracing::debug!("a feed hung up before its receipt");
            }
        }
        self.handle.vitals.store(Arc::new(self.book.vitals()));
        self.note_identities();
        for (operation, answer) in operations {
            self.answer(&operation, answer);
        }
        next
    }

    fn answer(
        &mut self,
        operation: &Operation,
        answer: oneshot::Sender<Result<usize, OperateError>>,
    ) {
        let done = self.operate(operation);
        if answer.send(done).is_err() {
            tracing::debug!("an operator did not wait for the answer");
        }
    }

    /// Carries out an operator's word, durably, and says how many changes it made.
    ///
    /// # Errors
    /// It cannot be done, or not be made durable; nothing changed then.
    pub fn operate(&mut self, operation: &Operation) -> Result<usize, OperateError> {
        let now = self.clock.now();
        let changes = self.book.operate(operation, now)?;
        let mut entries = Entries::default();
        for change in &changes {
            entries.push(change);
            self.note_change(change);
        }
        if !self.append(now, &entries) {
            return Err(OperateError::LogFailed);
        }
        self.note_identities();
        self.publish_identities();
        tracing::info!(world = %self.options.world, ?operation, changes = changes.len(), "an operator's word");
        Ok(changes.len())
    }

    fn note_identities(&self) {
        let (merged, unsure, aliases) = self.book.remembered();
        let stats = &self.handle.stats;
        for (figure, count) in
            [(&stats.merged_ids, merged), (&stats.unsure_pairs, unsure), (&stats.aliases, aliases)]
        {
            figure.store(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    fn note_change(&mut self, change: &Change) {
        if let Some(tracker) = &mut self.tracker {
            tracker.after(change);
        }
    }

    /// Shows operators what has changed of identities since the last time.
    fn publish_identities(&mut self) {
        let refreshed = self.tracker.as_mut().and_then(|tracker| tracker.refresh(&self.book));
        if let Some(identities) = refreshed {
            self.handle.identities.store(identities);
        }
    }

    /// Makes entries durable. When that fails, the book goes back to what the log holds.
    fn append(&mut self, now: Timestamp, entries: &Entries) -> bool {
        if self.ahead {
            // Even "nothing changed" was said of a book that the log does not have.
            self.rebuild();
            return false;
        }
        if entries.ends.is_empty() {
            return true;
        }
        let begun = Instant::now();
        match self.log.append(now.as_millis(), entries.iter()) {
            Ok(_) => {
                let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                WorldHandle::count(&self.handle.stats.append_us, took);
                WorldHandle::count(&self.handle.stats.appends, 1);
                self.note_log(entries.ends.len());
                true
            }
            Err(error) => {
                WorldHandle::count(&self.handle.stats.log_failures, 1);
                tracing::error!(world = %self.options.world, error = %Chain(&error), "the change log cannot be written; nothing of the batch was taken");
                self.ahead = true;
                self.rebuild();
                false
            }
        }
    }

    fn rebuild(&mut self) {
        let reopened = Log::open(&self.options.log);
        let recovered = reopened.map_err(WorldError::from).and_then(|mut log| {
            let start = Start::recover(&mut log, &self.options)?;
            Ok((log, start.book))
        });
        match recovered {
            Ok((log, book)) => {
                self.log = log;
                self.book = book;
                self.ahead = false;
                if let Some(tracker) = &mut self.tracker {
                    *tracker = Tracker::of(&self.book);
                    self.handle.identities.store(Arc::new(tracker.held().clone()));
                }
            }
            Err(error) => {
                tracing::error!(world = %self.options.world, error = %Chain(&error), "the book cannot be read back; nothing is taken until it can");
            }
        }
    }

    /// Publishes the snapshot of the epoch that begins at `at`.
    fn cut(&mut self, at: Timestamp) {
        let begun = Instant::now();
        let from = self.next_cut.minus(self.options.refresh_interval);
        let mut entries = Entries::default();
        if let Some(simulation) = &self.options.simulation {
            // What happened in between is only worth playing when it is not much more than what there is.
            let messages = if at < from || at.since(from) > REFOUND_AFTER {
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
        for change in self.book.overdue(at, self.options.lifetimes) {
            self.book.absorb(&change, at);
            entries.push(&change);
            self.note_change(&change);
        }
        entries.push(&Change::Cut { at });
        // Without the log the service still shows what it has, with honest freshness.
        let durable = self.append(at, &entries);
        let snapshot = Snapshot::cut(&self.book, at, self.options.stale_after);
        self.next_cut = at.plus(self.options.refresh_interval);
        let answers = Answers::counted_in(&self.handle.stats.answers);
        let published = Published { snapshot, answers, until: self.next_cut };
        // Who sees an event in a snapshot finds it among the identities too.
        self.publish_identities();
        self.retired = Some(self.handle.published.swap(Arc::new(published)));
        self.handle.vitals.store(Arc::new(self.book.vitals()));
        self.handle.news.send_replace(());
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.handle.stats.cut_us_last.store(took, Ordering::Relaxed);
        WorldHandle::count(&self.handle.stats.snapshots, 1);
        // The cut is the newest entry and changes nothing: a checkpoint that stops short of it leaves it to be
        // read back, so that a restart in this epoch shows the same bytes (D14).
        let before_cut = self.log.last_seq().saturating_sub(1);
        let many = before_cut.saturating_sub(self.checkpoint_seq) >= CHECKPOINT_ENTRIES;
        let long = at.since(self.checkpoint_at) >= CHECKPOINT_EVERY;
        if durable && (many || long) {
            self.checkpoint(before_cut);
        }
    }

    /// Writes the whole book down, as it is after entry `seq`, and lets go of log entries nobody needs any more.
    fn checkpoint(&mut self, seq: u64) {
        let image = self.book.to_image();
        let written = self.log.write_checkpoint(seq, IMAGE_VERSION, &image).and_then(|()| {
            let before = self.clock.now().minus(self.options.log_retention);
            self.log.retain(before.as_millis(), seq)
        });
        match written {
            Ok(_) => {
                self.checkpoint_seq = seq;
                self.checkpoint_at = self.clock.now();
                WorldHandle::count(&self.handle.stats.checkpoints, 1);
            }
            Err(error) => {
                // The log still holds everything; the next start takes longer.
                tracing::error!(world = %self.options.world, error = %Chain(&error), "the checkpoint could not be written");
            }
        }
    }

    fn note_log(&self, entries: usize) {
        let stats = &self.handle.stats;
        WorldHandle::count(&stats.log_entries, u64::try_from(entries).unwrap_or(0));
        stats.log_seq.store(self.log.last_seq(), Ordering::Relaxed);
        stats.log_bytes.store(self.log.bytes(), Ordering::Relaxed);
    }
}

#[derive(PartialEq)]
enum Next {
    GoOn,
    Stop,
}

fn apply_batch(
    book: &mut Book,
    batch: &mut Batch,
    now: Timestamp,
    entries: &mut Entries,
    mut tracker: Option<&mut Tracker>,
) -> Receipt {
    let mut receipt = Receipt::default();
    for (line, message) in mem::take(&mut batch.lines) {
        let before = match (&tracker, &message) {
            (Some(_), Ok(message)) => Tracker::before(book, &batch.feed, message),
            _ => None,
        };
        let decided =
            message.and_then(|message| Ok((book.apply(&batch.feed, &message, now)?, message)));
        match decided {
            Ok((decision, message)) => {
                match decision.verdict {
                    Verdict::Accepted => receipt.accepted += 1,
                    Verdict::Unchanged => receipt.unchanged += 1,
                    Verdict::Superseded => receipt.superseded += 1,
                }
                for change in decision.change.iter().chain(&decision.follow) {
                    receipt.joins += u64::from(matches!(change, Change::Joined(_)));
                    entries.push(change);
                }
                if let Some(tracker) = &mut tracker {
                    tracker.after_message(before, &decision);
                }
                if let (Some(what), Body::Event { reference, listing }) =
                    (decision.oddity, &message.body)
                {
                    let text = format!("ref `{reference}`: {}", listing.fixture);
                    receipt.odd.push(Odd { line, what, text });
                }
            }
            Err(reject) => receipt.rejected.push((line, reject)),
        }
    }
    receipt
}

/// An error with its causes, for a log line.
struct Chain<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
