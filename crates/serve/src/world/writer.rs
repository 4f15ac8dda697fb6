//! The one writer of a world: takes batches, makes them durable, cuts snapshots on time.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use change_log::{ChangeLog, Entry, LogError, Options};
use domain::message::{Body, FeedMessage};
use domain::{Clock, Timestamp};
use market::book::{IMAGE_VERSION, ImageError};
use market::{Book, CHANGE_VERSION, Change, ChangeError, Ids, Snapshot, Verdict};

use crate::answers::Answers;
use crate::world::{
    Batch, Command, NotTaken, Published, QUEUE_BATCHES_MAX, Receipt, WorldHandle, WorldOptions,
    WorldStats,
};

/// The feed name of the simulator; feeds of the push door live in the other world.
const SANDBOX_FEED: &str = "sandbox";
/// A checkpoint is due after so many entries: replaying these takes a fraction of a second.
const CHECKPOINT_ENTRIES: u64 = 100_000;
/// And after so long, or old entries of a quiet world would never go.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(3600);
/// Lines that share one write to the disk at the most; bounds how late a snapshot can be.
const GROUP_LINES_MAX: usize = 20_000;
/// The longest the writer sleeps, so that a clock set forward is noticed soon.
const NAP_MAX: Duration = Duration::from_millis(500);

/// A world could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    #[error("the change log cannot be used")]
    Log(#[from] LogError),
    #[error("the change log was written by a newer program")]
    Change(#[from] ChangeError),
    #[error("the checkpoint was written by a newer program")]
    Image(#[from] ImageError),
}

/// Owner of a world's book and log.
#[derive(Debug)]
pub struct Writer {
    options: WorldOptions,
    clock: Arc<dyn Clock>,
    handle: Arc<WorldHandle>,
    queue: Receiver<Command>,
    book: Book,
    log: ChangeLog,
    checkpoint_seq: u64,
    checkpoint_at: Timestamp,
    next_cut: Timestamp,
    /// The snapshot before the one in force: dropped here rather than by whichever request is the last.
    retired: Option<Arc<Published>>,
}

/// A batch of changes as the log takes them.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Entries {
    fn push(&mut self, change: &Change) {
        change.encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(from, to)| (CHANGE_VERSION, self.bytes.get(from..*to).unwrap_or_default()))
    }
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
        let (mut log, _) = ChangeLog::open(&options.folder, Options::default())?;
        let (queue, commands) = sync_channel(QUEUE_BATCHES_MAX);
        let mut start = if options.simulation.is_some() {
            Start::afresh(&options, Ids::Derived { salt: SANDBOX_ID_SALT })
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
        let handle = Arc::new(Self::new(&options, published, &start.book, queue));
        let writer = Writer {
            options,
            clock,
            handle: Arc::clone(&handle),
            queue: commands,
            book: start.book,
            log,
            checkpoint_seq,
            checkpoint_at: at,
            next_cut,
            retired: None,
        };
        writer.note_log(0);
        Ok((handle, writer))
    }

    fn new(
        options: &WorldOptions,
        published: Published,
        book: &Book,
        queue: SyncSender<Command>,
    ) -> Self {
        Self {
            published: ArcSwap::from_pointee(published),
            vitals: ArcSwap::from_pointee(book.vitals()),
            queue,
            stale_after: options.stale_after,
            refresh_interval: options.refresh_interval,
            stats: WorldStats::default(),
        }
    }
}

/// The sandbox's ids come from the refs of the seed's schedule alone, so that they are the same everywhere.
const SANDBOX_ID_SALT: u64 = 0x5a4d_b0c5;

/// A book on its way to its first snapshot.
struct Start {
    book: Book,
    checkpoint_seq: u64,
    /// The snapshot in force when the process ended, if the log says when that was.
    last_cut: Option<Timestamp>,
    last_published: Option<Snapshot>,
    entries: Entries,
}

impl Start {
    fn afresh(options: &WorldOptions, ids: Ids) -> Self {
        let mut entries = Entries::default();
        entries.push(&Change::Founded { ids });
        Self {
            book: Book::new(Arc::clone(&options.catalogue), ids),
            checkpoint_seq: 0,
            last_cut: None,
            last_published: None,
            entries,
        }
    }

    /// The checkpoint and what the log holds after it.
    fn recover(log: &mut ChangeLog, options: &WorldOptions) -> Result<Self, WorldError> {
        let catalogue = &options.catalogue;
        let checkpoint = log.latest_checkpoint()?;
        let checkpoint_seq = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.seq);
        let book = match checkpoint {
            Some(held) => {
                Some(Book::from_image(held.version, &held.payload, Arc::clone(catalogue))?)
            }
            None => None,
        };
        let tail = read_tail(log, checkpoint_seq)?;
        if book.is_none() && tail.is_empty() {
            // The salt need not be secret, only different from one installation to the next.
            let salt = RandomState::new().hash_one(&options.folder);
            return Ok(Self::afresh(options, Ids::Minted { salt }));
        }
        let mut start = Self {
            book: book.unwrap_or_else(|| Book::new(Arc::clone(catalogue), Ids::Minted { salt: 0 })),
            checkpoint_seq,
            last_cut: None,
            last_published: None,
            entries: Entries::default(),
        };
        let is_cut = |(_, change): &&(Timestamp, Change)| matches!(change, Change::Cut { .. });
        let last_cut =
            tail.iter().rev().position(|entry| is_cut(&entry)).map(|back| tail.len() - 1 - back);
        for (position, (at, change)) in tail.iter().enumerate() {
            start.book.absorb(change, *at);
            if let (true, Change::Cut { at }) = (Some(position) == last_cut, change) {
                start.last_cut = Some(*at);
                start.last_published = Some(Snapshot::cut(&start.book, *at, options.stale_after));
            }
        }
        Ok(start)
    }

    /// The epoch's snapshot if it was cut already, so that a restart shows the same bytes; else a new one.
    fn first_snapshot(
        &mut self,
        options: &WorldOptions,
        now: Timestamp,
        entries: &mut Entries,
    ) -> (Published, Timestamp) {
        let epoch = epoch_start(now, options.refresh_interval);
        let until = epoch.plus(options.refresh_interval);
        if let (Some(cut), Some(snapshot)) = (self.last_cut, self.last_published.take())
            && cut >= epoch
            && cut < until
        {
            return (Published { snapshot, answers: Answers::default(), until }, now);
        }
        // The simulator is a function of the epoch; real data is as of now.
        let at = if options.simulation.is_some() { epoch } else { now };
        if let Some(simulation) = &options.simulation {
            for message in simulation.world_at(at) {
                play(&mut self.book, &message, at, entries);
            }
        }
        for change in self.book.overdue(at, options.lifetimes) {
            self.book.absorb(&change, at);
            entries.push(&change);
        }
        entries.push(&Change::Cut { at });
        let snapshot = Snapshot::cut(&self.book, at, options.stale_after);
        (Published { snapshot, answers: Answers::default(), until }, at)
    }
}

/// Entries after a checkpoint, decoded. What is damaged is cut off, loudly; the log goes on from there.
fn read_tail(log: &mut ChangeLog, after: u64) -> Result<Vec<(Timestamp, Change)>, WorldError> {
    let from = (after + 1).max(log.first_seq());
    if from > after + 1 && after > 0 {
        tracing::warn!(
            checkpoint = after,
            first = from,
            "the log no longer holds the entries after its checkpoint"
        );
    }
    let mut tail = Vec::new();
    let mut last = after;
    for entry in log.read_from(from)? {
        match entry {
            Ok(Entry { seq, at_ms, version, payload }) => {
                last = seq;
                tail.push((Timestamp::from_millis(at_ms), Change::decode(version, &payload)?));
            }
            Err(LogError::Corrupt { path, offset, reason }) => {
                tracing::error!(
                    path = %path.display(), offset, %reason, last_whole = last,
                    "the log is damaged; it goes on after the last whole entry"
                );
                log.cut_after(last)?;
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(tail)
}

/// One message of the simulator. What it refuses is a fault of ours, worth a line in the log.
fn play(book: &mut Book, message: &FeedMessage, at: Timestamp, entries: &mut Entries) {
    match book.apply(SANDBOX_FEED, message, arrival(message, at)) {
        Ok(decision) => {
            if let Some(change) = &decision.change {
                entries.push(change);
            }
        }
        Err(reject) => {
            tracing::warn!(code = reject.code.slug(), %reject, "sandbox message refused");
        }
    }
}

/// When a simulated message arrives: a function of the message, like everything in the sandbox. Each
/// bookmaker has a delay of its own.
fn arrival(message: &FeedMessage, at: Timestamp) -> Timestamp {
    let delay_ms = match &message.body {
        Body::Odds(odds) => 40 + 37 * odds.bookmaker.index() % 400,
        Body::Heartbeat { bookmaker, .. } => 40 + 37 * bookmaker.index() % 400,
        Body::Event { .. } | Body::Score(_) | Body::Remove { .. } => 0,
    };
    let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0));
    message.ts.map_or(at, |ts| ts.plus(delay))
}

fn epoch_start(now: Timestamp, interval: Duration) -> Timestamp {
    let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
    Timestamp::from_millis(now.as_millis().div_euclid(interval_ms) * interval_ms)
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
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        tracing::info!(world = %self.options.world, seq = self.log.last_seq(), "writer stopped");
    }

    /// Takes a batch and whatever else is waiting, with one write to the disk for all.
    fn take(&mut self, first: Batch) -> Next {
        let now = self.clock.now();
        let mut next = Next::GoOn;
        let mut lines = first.lines.len();
        let mut group = vec![first];
        while lines < GROUP_LINES_MAX {
            match self.queue.try_recv() {
                Ok(Command::Batch(batch)) => {
                    lines += batch.lines.len();
                    group.push(batch);
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
            .map(|batch| apply_batch(&mut self.book, batch, now, &mut entries))
            .collect();
        let durable = self.append(now, &entries);
        for (batch, receipt) in group.into_iter().zip(receipts) {
            let outcome = if durable { Ok(receipt) } else { Err(NotTaken::LogFailed) };
            if batch.receipt.send(outcome).is_err() {
                tracing::debug!("a feed hung up before its receipt");
            }
        }
        self.handle.vitals.store(Arc::new(self.book.vitals()));
        next
    }

    /// Makes entries durable. When that fails, the book goes back to what the log holds.
    fn append(&mut self, now: Timestamp, entries: &Entries) -> bool {
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
                self.rebuild();
                false
            }
        }
    }

    fn rebuild(&mut self) {
        let reopened = ChangeLog::open(&self.options.folder, Options::default());
        let recovered = reopened.map_err(WorldError::from).and_then(|(mut log, _)| {
            let start = Start::recover(&mut log, &self.options)?;
            Ok((log, start.book))
        });
        match recovered {
            Ok((log, book)) => {
                self.log = log;
                self.book = book;
            }
            Err(error) => {
                tracing::error!(world = %self.options.world, error = %Chain(&error), "the book cannot be read back; it stays as it was");
            }
        }
    }

    /// Publishes the snapshot of the epoch that begins at `at`.
    fn cut(&mut self, at: Timestamp) {
        let begun = Instant::now();
        let from = self.next_cut.minus(self.options.refresh_interval);
        let mut entries = Entries::default();
        if let Some(simulation) = &self.options.simulation {
            for message in simulation.between(from, at) {
                play(&mut self.book, &message, at, &mut entries);
            }
        }
        for change in self.book.overdue(at, self.options.lifetimes) {
            self.book.absorb(&change, at);
            entries.push(&change);
        }
        entries.push(&Change::Cut { at });
        // Without the log the service still shows what it has, with honest freshness.
        let durable = self.append(at, &entries);
        let snapshot = Snapshot::cut(&self.book, at, self.options.stale_after);
        self.next_cut = at.plus(self.options.refresh_interval);
        let published = Published { snapshot, answers: Answers::default(), until: self.next_cut };
        self.retired = Some(self.handle.published.swap(Arc::new(published)));
        self.handle.vitals.store(Arc::new(self.book.vitals()));
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
) -> Receipt {
    let mut receipt = Receipt::default();
    for (line, message) in mem::take(&mut batch.lines) {
        let decided = message.and_then(|message| book.apply(&batch.feed, &message, now));
        match decided {
            Ok(decision) => {
                match decision.verdict {
                    Verdict::Accepted => receipt.accepted += 1,
                    Verdict::Unchanged => receipt.unchanged += 1,
                    Verdict::Superseded => receipt.superseded += 1,
                }
                if let Some(change) = &decision.change {
                    entries.push(change);
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
