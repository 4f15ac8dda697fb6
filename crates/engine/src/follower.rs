//! A book that is kept in step with a log which somebody else writes.
//!
//! Everything that is served follows from the log: a snapshot is cut where the writer's [`Change::Cut`] stands, with
//! the instant that is written in it. So every node shows the same bytes for an epoch, whenever it came to read of
//! it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use change_log::{BatchLimit, Follower, LogError, Position, StreamLog};
use domain::Timestamp;
use market::{Book, Change, Ids};

use crate::error::WorldError;
use crate::identities::Tracker;
use crate::leadership::Leadership;
use crate::options::WorldOptions;
use crate::replay::{Base, Logged, Replay};
use crate::worker::Waiting;
use crate::worker::WorldWorker;

/// How long a reader waits for the next entry before it looks around.
const NAP: Duration = Duration::from_millis(50);
/// How often it is asked how far the log reaches, so that a reader that gets nothing is not taken for one with
/// nothing to get.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The same while a snapshot is overdue.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// Entries that are held decoded until it is known whether a snapshot follows them: two batches at most.
const BATCH: BatchLimit = BatchLimit { items: 25_000, bytes: 16 * 1024 * 1024 };

/// A book as of an entry of the log.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) book: Book,
    /// The last entry that is in it.
    pub(crate) seq: u64,
    /// When that entry was written; `None` where it was not read or written here.
    pub(crate) at: Option<Timestamp>,
    /// What that entry is known by; `None` where it was not read or written here.
    pub(crate) checksum: Option<u32>,
    /// The newest snapshot that the log tells of.
    pub(crate) last_cut: Option<Timestamp>,
    /// The latest instant of which a snapshot was read here: that of the newest, unless the clock was set back.
    pub(crate) furthest_cut: Option<Timestamp>,
    pub(crate) tracker: Tracker,
}

impl Held {
    /// From the newest checkpoint, or from the log's first entry. `None`: nothing was ever written.
    /// The position is for the time until the entries after it are read.
    fn begin(
        log: &mut StreamLog,
        options: &WorldOptions,
    ) -> Result<Option<(Self, Position)>, WorldError> {
        let Base { book, seq, missing, position } = Base::newest(log, &options.catalogue)?;
        if seq == 0 && log.last_seq() == 0 {
            return Ok(None);
        }
        // A book without its beginning would give out other ids for the same events, and nobody would be notified.
        if missing > 0 {
            return Err(WorldError::MissingPrefix { first: log.first_seq() });
        }
        let tracker = Tracker::of(&book);
        Ok(Some((Self::of(book, seq, tracker), position)))
    }

    fn of(book: Book, seq: u64, tracker: Tracker) -> Self {
        Self { book, seq, at: None, checksum: None, last_cut: None, furthest_cut: None, tracker }
    }

    fn absorb(&mut self, read: &Logged) {
        let Logged { seq, checksum, at, change, .. } = read;
        self.tracker.before_change(&self.book, change);
        self.book.absorb(change, *at);
        self.tracker.after(change);
        (self.seq, self.at, self.checksum) = (*seq, Some(*at), Some(*checksum));
        if let Change::Cut { at } = change {
            self.last_cut = Some(*at);
            self.furthest_cut = self.furthest_cut.max(self.last_cut);
        }
    }
}

/// Why a reader stopped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    Stop,
    /// It is this node's turn to write.
    Lead,
}

impl WorldWorker {
    /// Reads the log to the end of this moment, and publishes the last snapshot that it tells of.
    pub(crate) fn catch_up(
        &mut self,
        log: &mut StreamLog,
        held: &mut Option<Held>,
    ) -> Result<(), WorldError> {
        let last = log.last_seq();
        // What was shown is not given up for an empty log in its place.
        if last == 0 && held.is_some() {
            return Err(WorldError::LogEmptied);
        }
        let taken_back = match held {
            // Where the entry is not there any more, nothing can be said of it.
            Some(Held { seq, checksum: Some(checksum), .. })
                if (log.first_seq()..=last).contains(seq) =>
            {
                !log.holds(*seq, *checksum)?
            }
            Some(held) => held.seq > last,
            None => false,
        };
        if taken_back {
            let read = held.as_ref().map_or(0, |held| held.seq);
            return Err(WorldError::LogRewritten { last, read });
        }
        let gone = |held: &Held| held.seq + 1 < log.first_seq();
        // Past an entry that cannot be read there may be a checkpoint by now.
        let passed = |held: &Held| self.is_stuck() && held.seq < log.checkpoint_seq();
        let mut position = None;
        if held.as_ref().is_none_or(|held| gone(held) || passed(held)) {
            (*held, position) = Held::begin(log, &self.options)?.unzip();
        }
        let Some(held) = held else { return Ok(()) };
        let replay = Replay::from(log, held.seq + 1);
        drop(position);
        let mut waiting = Vec::new();
        let read = replay.and_then(|replay| self.read_on(replay, held, &mut waiting));
        // Also where it could not be read to the end: what stands before that is as it was shown. But who has begun
        // anew and did not come as far as before shows nothing older for it.
        let shown = self.handle.published().snapshot.cut_at;
        if read.is_ok() || held.last_cut > Some(shown) {
            self.show(held);
        }
        waiting.iter().for_each(|read| held.absorb(read));
        self.refresh(held);
        read
    }

    /// Reads entries into the book, up to the last snapshot among them. Those after it wait until it is known to be the
    /// last. Where they are too many to wait, the snapshot is published although another may follow.
    fn read_on(
        &mut self,
        replay: Replay,
        held: &mut Held,
        waiting: &mut Vec<Logged>,
    ) -> Result<(), WorldError> {
        for batch in replay.batches(BATCH) {
            let mut batch = batch?;
            let last_cut = batch.iter().rposition(|read| matches!(read.change, Change::Cut { .. }));
            let rest = match last_cut {
                Some(last_cut) => batch.split_off(last_cut + 1),
                None => std::mem::take(&mut batch),
            };
            if last_cut.is_none() && !waiting.is_empty() {
                let is_newer = held.last_cut > Some(self.handle.published().snapshot.cut_at);
                if is_newer || !self.handle.has_begun() {
                    self.show(held);
                }
                // The book goes on: a snapshot that is not published now cannot be published later.
                let shown = self.handle.published().snapshot.cut_at;
                held.last_cut = held.last_cut.filter(|at| *at == shown);
            }
            waiting.drain(..).chain(batch).for_each(|read| held.absorb(&read));
            *waiting = rest;
        }
        Ok(())
    }

    /// Publishes the last snapshot that was read of, unless it is current. It is of an earlier instant than the one
    /// before where the clock was set back.
    fn show(&mut self, held: &mut Held) {
        let shown = self.handle.published().snapshot.cut_at;
        if let Some(at) = held.last_cut.filter(|at| *at != shown || !self.handle.has_begun()) {
            self.publish_identities(&held.book, Some(&mut held.tracker));
            self.publish(&mut held.book, held.seq, at);
        }
    }

    /// What is looked at between two snapshots.
    fn refresh(&self, held: &mut Held) {
        let handle = &self.handle;
        handle.vitals.store(Arc::new(held.book.vitals()));
        self.publish_identities(&held.book, Some(&mut held.tracker));
        self.note_identities(&held.book);
        handle.stats.log_seq.store(held.seq, Ordering::Relaxed);
    }

    /// Follows the log from where the book is, until somebody has something else to do.
    pub(crate) fn follow(
        &mut self,
        log: &StreamLog,
        held: &mut Option<Held>,
        leadership: Option<&Leadership>,
    ) -> Result<Followed, WorldError> {
        let from = held.as_ref().map_or(1, |held| held.seq + 1);
        let mut reader = log.follow_from(from)?;
        let mut looks =
            Tips { known: log.last_seq(), seen: from - 1, short: false, looked: Instant::now() };
        let mut dirty = false;
        let mut nap = NAP;
        loop {
            if self.turn_away() == Waiting::Stop {
                return Ok(Followed::Stop);
            }
            leadership.inspect(|leadership| leadership.note_progress());
            if leadership.is_some_and(|leadership| leadership.term().is_some()) {
                return Ok(Followed::Lead);
            }
            match self.next(&mut reader, nap)? {
                Some(entry) => {
                    self.take_entry(&entry, held)?;
                    dirty = true;
                }
                None if dirty => {
                    held.iter_mut().for_each(|held| self.refresh(held));
                    dirty = false;
                }
                None => {}
            }
            let live = held.as_mut().and_then(|held| Some((held.at?, held)));
            let wait = live.and_then(|(at, held)| self.show_live(&mut held.book, held.seq, at));
            nap = wait.unwrap_or(NAP).min(NAP);
            let overdue = self.handle.lag(self.clock.now()) > LOOK_SOON;
            let every = if overdue { LOOK_SOON } else { LOOK_EVERY };
            if looks.looked.elapsed() >= every {
                let seq = held.as_ref().map_or(0, |held| held.seq);
                let keeps_up = self.look(log, &reader, seq, &mut looks)?;
                leadership.inspect(|leadership| leadership.set_healthy(keeps_up));
            }
        }
    }

    fn next(&self, reader: &mut Follower, nap: Duration) -> Result<Option<Logged>, WorldError> {
        reader.next(nap)?.map(|entry| Logged::decode(&entry)).transpose()
    }

    pub(crate) fn take_entry(
        &mut self,
        read: &Logged,
        held: &mut Option<Held>,
    ) -> Result<(), WorldError> {
        let held = match held {
            Some(held) => held,
            None => {
                let catalogue = Arc::clone(&self.options.catalogue);
                let book = Book::new(catalogue, Ids::Minted { salt: 0 });
                let tracker = Tracker::of(&book);
                let seq = read.seq - 1;
                held.insert(Held::of(book, seq, tracker))
            }
        };
        if read.seq != held.seq + 1 {
            return Err(LogError::NotKept { seq: held.seq + 1, follows: read.seq - 1 }.into());
        }
        held.absorb(read);
        self.handle.stats.log_seq.store(read.seq, Ordering::Relaxed);
        if matches!(read.change, Change::Cut { .. }) {
            self.show(held);
        }
        Ok(())
    }

    /// Asks how far the log reaches, and notes how far behind this node is. `false`: it has not even what was there
    /// at the look before.
    fn look(
        &self,
        log: &StreamLog,
        reader: &Follower,
        seq: u64,
        looks: &mut Tips,
    ) -> Result<bool, WorldError> {
        let Some(shared) = &self.handle.shared else { return Ok(true) };
        let last_seq = log.tip()?.last_seq;
        shared.lag_entries.store(last_seq.saturating_sub(seq), Ordering::Relaxed);
        // Entries that were there at the look before and have not come since are not on their way.
        let behind = seq < looks.known;
        let since = &shared.behind_since_ms;
        if !behind {
            since.store(0, Ordering::Relaxed);
        } else if since.load(Ordering::Relaxed) == 0 {
            since.store(self.clock.now().as_millis(), Ordering::Relaxed);
        }
        if behind && seq == looks.seen {
            return Err(WorldError::Stalled);
        }
        // Servers that have just chosen who leads may not know for a moment how far they are.
        let short = last_seq < seq;
        let rewritten = match reader.is_unchanged() {
            Ok(still) => !still,
            // It is asked again with the next look.
            Err(LogError::Unavailable(_)) => false,
            Err(error) => return Err(error.into()),
        };
        if (short && looks.short) || rewritten {
            return Err(WorldError::LogRewritten { last: last_seq, read: seq });
        }
        *looks = Tips { known: last_seq, seen: seq, short, looked: Instant::now() };
        Ok(!behind)
    }

    fn is_stuck(&self) -> bool {
        self.handle.shared.as_ref().is_some_and(|shared| shared.stuck.load(Ordering::Relaxed))
    }
}

/// What the last look at the log has shown.
struct Tips {
    /// How far it reached.
    known: u64,
    /// How far this node was.
    seen: u64,
    /// It did not reach as far as this node.
    short: bool,
    looked: Instant,
}
