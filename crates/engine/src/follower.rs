//! A book that follows a log which another process writes.
//!
//! Everything that is served follows from the log: a snapshot is cut at the writer's [`Change::Cut`], with the instant
//! that is written in it. So every node shows the same bytes for an epoch, whenever it reads them.

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

/// Maximum time that a reader waits for the next entry before it checks for other work.
const NAP: Duration = Duration::from_millis(50);
/// Interval of queries for the end of the log, which distinguish a reader that receives nothing from one that has
/// nothing to receive.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The same interval while a snapshot is overdue.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// Maximum entries held decoded until it is known whether a snapshot follows them: two batches at most.
const BATCH: BatchLimit = BatchLimit { items: 25_000, bytes: 16 * 1024 * 1024 };

/// A book as of an entry of the log.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) book: Book,
    /// The last entry that is in it.
    pub(crate) seq: u64,
    /// Time of that entry; `None` if it was not read or written here.
    pub(crate) at: Option<Timestamp>,
    /// Checksum of that entry; `None` if it was not read or written here.
    pub(crate) checksum: Option<u32>,
    /// The newest snapshot that the log has a cut of.
    pub(crate) last_cut: Option<Timestamp>,
    /// The latest instant of all snapshots read here: that of the newest, unless the clock was set back.
    pub(crate) furthest_cut: Option<Timestamp>,
    /// The last entry that was in it from the beginning: snapshots up to there were not read.
    pub(crate) base_seq: u64,
    /// The first snapshot read since the one that is shown.
    pub(crate) first_unshown: Option<Timestamp>,
    pub(crate) tracker: Tracker,
}

impl Held {
    /// From the newest checkpoint, or from the log's first entry. `None`: nothing was ever written. The returned
    /// position is held until the entries after it are read.
    fn begin(
        log: &mut StreamLog,
        options: &WorldOptions,
    ) -> Result<Option<(Self, Position)>, WorldError> {
        let Base { book, seq, missing, position } = Base::newest(log, &options.catalogue)?;
        if seq == 0 && log.last_seq() == 0 {
            return Ok(None);
        }
        // A book without its beginning would give other ids to the same events, and nobody would notice.
        if missing > 0 {
            return Err(WorldError::MissingPrefix { first: log.first_seq() });
        }
        let tracker = Tracker::of(&book);
        Ok(Some((Self::of(book, seq, tracker), position)))
    }

    fn of(book: Book, seq: u64, tracker: Tracker) -> Self {
        Self {
            book,
            seq,
            at: None,
            checksum: None,
            last_cut: None,
            furthest_cut: None,
            base_seq: seq,
            first_unshown: None,
            tracker,
        }
    }

    /// `shown`: the entry of the snapshot that is shown.
    fn absorb(&mut self, read: &Logged, shown: u64) {
        let Logged { seq, checksum, at, change, .. } = read;
        self.tracker.before_change(&self.book, change);
        self.book.absorb(change, *at);
        self.tracker.after(change);
        (self.seq, self.at, self.checksum) = (*seq, Some(*at), Some(*checksum));
        if let Change::Cut { at } = change {
            self.last_cut = Some(*at);
            self.furthest_cut = self.furthest_cut.max(self.last_cut);
            if *seq > shown {
                self.first_unshown = self.first_unshown.or(self.last_cut);
            }
        }
    }
}

/// The reason why a reader stopped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    Stop,
    /// This node became the leader.
    Lead,
}

impl WorldWorker {
    /// Reads the log to its present end and publishes the last snapshot in it.
    pub(crate) fn catch_up(
        &mut self,
        log: &mut StreamLog,
        held: &mut Option<Held>,
    ) -> Result<(), WorldError> {
        let last = log.last_seq();
        // A log that is empty now does not replace what was shown.
        if last == 0 && held.is_some() {
            return Err(WorldError::LogEmptied);
        }
        let taken_back = match held {
            // An entry that is no longer there cannot be compared.
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
        // A checkpoint may have been written past an entry that cannot be read.
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
        // Also if it could not be read to the end: what precedes that is as it was shown. But a reader that started
        // again and did not get as far as before shows nothing older.
        let shown = self.handle.published().snapshot.cut_at;
        if read.is_ok() || held.last_cut > Some(shown) {
            self.show(held);
        }
        let shown = self.handle.published().seq();
        waiting.iter().for_each(|read| held.absorb(read, shown));
        self.refresh(held);
        read
    }

    /// Reads entries into the book, up to the last snapshot among them. The entries after it wait until it is known to
    /// be the last. If they are too many to wait, the snapshot is published although another may follow.
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
                // The book moves on: a snapshot that is not published now cannot be published later.
                let shown = self.handle.published().snapshot.cut_at;
                held.last_cut = held.last_cut.filter(|at| *at == shown);
            }
            let shown = self.handle.published().seq();
            for read in waiting.drain(..).chain(batch) {
                if let Change::Cut { at } = read.change {
                    self.handle.history.note_cut(at);
                }
                // What precedes a cut was not shown live: replays of every change read it from the log.
                if matches!(read.change, Change::Cut { .. }) && read.seq > shown {
                    self.handle.live.forget();
                }
                held.absorb(&read, shown);
            }
            *waiting = rest;
        }
        Ok(())
    }

    /// Publishes the last snapshot that was read, unless it is current. If the clock was set back, its instant is
    /// earlier than that of the previous one.
    fn show(&mut self, held: &mut Held) {
        let shown = Arc::clone(&self.handle.published().snapshot);
        let is_new = |at: &Timestamp| *at != shown.cut_at || !self.handle.has_begun();
        if let Some(at) = held.last_cut.filter(is_new) {
            // A checkpoint may have passed others.
            let next = held.first_unshown.take().filter(|_| held.base_seq <= shown.seq);
            self.publish_identities(&held.book, Some(&mut held.tracker));
            self.publish(&mut held.book, held.seq, at, next);
        }
    }

    /// Updates what readers see between two snapshots.
    fn refresh(&self, held: &mut Held) {
        let handle = &self.handle;
        handle.vitals.store(Arc::new(held.book.vitals()));
        self.publish_identities(&held.book, Some(&mut held.tracker));
        self.note_identities(&held.book);
        handle.stats.log_seq.store(held.seq, Ordering::Relaxed);
    }

    /// Follows the log from the position of the book, until this thread has to stop or to lead.
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
        held.absorb(read, self.handle.published().seq());
        self.handle.stats.log_seq.store(read.seq, Ordering::Relaxed);
        if matches!(read.change, Change::Cut { .. }) {
            self.show(held);
        }
        Ok(())
    }

    /// Queries the end of the log, and notes how far behind this node is. Returns `false` if it does not even have the
    /// entries that existed at the previous query.
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
        shared.looked_ms.store(self.clock.now().as_millis(), Ordering::Relaxed);
        // Entries that existed at the previous query and have not arrived since are not on their way.
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
        // Servers that have just elected a leader may report an older end for a moment.
        let short = last_seq < seq;
        let rewritten = match reader.is_unchanged() {
            Ok(still) => !still,
            // The next query repeats this.
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

/// The result of the last query.
struct Tips {
    /// The end of the log.
    known: u64,
    /// The position of this node.
    seen: u64,
    /// True if the log ended before the position of this node.
    short: bool,
    looked: Instant,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use change_log::LogLocation;
    use domain::ManualClock;

    use super::*;
    use crate::history::Place;
    use crate::worker::Next;
    use crate::world::WorldHandle;
    use crate::writer::{Writer, test_options};

    fn location(dir: &Path) -> LogLocation {
        LogLocation::Folder { dir: dir.to_owned(), options: change_log::Options::default() }
    }

    fn open(dir: &Path, clock: &Arc<ManualClock>) -> (Arc<WorldHandle>, Writer) {
        let options = test_options(location(dir));
        WorldHandle::open(options, Arc::<ManualClock>::clone(clock)).unwrap()
    }

    fn shown(handle: &WorldHandle) -> (u64, Timestamp) {
        let published = handle.published();
        (published.seq(), published.snapshot.cut_at)
    }

    /// S2, S4: a node that reads several publications at once shows only the last, but the first of them is the next.
    #[tokio::test]
    async fn the_next_publication_is_the_next_of_the_log_even_if_it_was_not_shown() {
        let [dir, other_dir] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_794_000_001)));
        let (written, mut writer) = open(dir.path(), &clock);
        let (handle, follower) = open(other_dir.path(), &clock);
        let mut worker = follower.worker;
        let _follows = handle.live_changes();
        let mut cuts = vec![shown(&written)];
        assert_eq!(cuts, [shown(&handle)], "both have begun with the same");
        for _ in 0..4 {
            clock.advance(written.refresh_interval());
            assert_eq!(writer.work(), Next::GoOn);
            cuts.push(shown(&written));
        }
        drop(writer);
        let log = location(dir.path()).view().unwrap().unwrap();
        let mut held = None;
        // The first two arrive one after the other, the rest at once.
        for logged in Replay::from(&*log, 1).unwrap().map(Result::unwrap) {
            if logged.seq <= cuts[1].0 {
                worker.take_entry(&logged, &mut held).unwrap();
            }
        }
        assert_eq!(shown(&handle), cuts[1]);
        let (mut held, mut waiting) = (held.unwrap(), Vec::new());
        let rest = Replay::from(&*log, held.seq + 1).unwrap();
        worker.read_on(rest, &mut held, &mut waiting).unwrap();
        worker.show(&mut held);
        assert_eq!((shown(&handle), waiting.len()), (cuts[4], 0));
        let mut next = Vec::new();
        for (seq, _) in &cuts[..2] {
            let found = handle.publication_at(Place::Entry(*seq), 0).await.unwrap();
            next.push(found.and_then(|(_, next)| next));
        }
        assert_eq!(next, [Some(cuts[1].1), Some(cuts[2].1)]);
        let after = handle.shown_after(Place::Entry(cuts[1].0), false);
        assert!(after.is_none(), "live states do not continue over the gap");
    }
}
