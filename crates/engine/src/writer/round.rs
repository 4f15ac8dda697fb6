//! Turns of feeds: the writer shares its time between the feeds, and makes their batches durable together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Timestamp;

use crate::batch::{Batch, WriterTurn};
use crate::entries::Entries;
use crate::queue::Line;
use crate::world::WorldHandle;
use crate::writer::Writer;

/// Time that the writer works for one feed before the next has its turn.
const TURN_TIME_MAX: Duration = Duration::from_millis(20);
/// Maximum time of a round of turns before its changes are made durable and acknowledged.
const ROUND_TIME_MAX: Duration = Duration::from_millis(100);

impl Writer {
    /// Gives every waiting feed its turn, with one write to the disk for all. A round ends early if a snapshot is due
    /// or an operator waits; a batch that is not finished continues in the next round.
    pub(crate) fn take_round(&mut self) {
        let begun = Instant::now();
        let now = self.worker.clock.now();
        self.round += 1;
        let mut entries = Entries::default();
        let mut done = Vec::new();
        // At least one turn, however late snapshots are.
        while let Some(mut line) = self.worker.queue.next_line() {
            let until = Instant::now() + TURN_TIME_MAX;
            while let Some(batch) = self.take_turn(&mut line, now, until, &mut entries) {
                done.push(batch);
            }
            self.worker.queue.put_back(line);
            if begun.elapsed() >= ROUND_TIME_MAX || self.is_called_off() {
                break;
            }
        }
        let durable = self.store(now, &entries);
        if durable {
            if !entries.ends.is_empty() {
                self.failure.note_success();
            }
            let joins = done.iter().map(Batch::joins).sum();
            WorldHandle::count(&self.worker.handle.stats.joins, joins);
            // Before the receipts: a client that has one and reads this node's status sees the result of its push.
            self.worker.handle.vitals.store(Arc::new(self.book.vitals()));
            self.worker.note_identities(&self.book);
        }
        for batch in done {
            if durable {
                batch.answer();
            } else {
                batch.refuse(self.refusal);
            }
        }
    }

    /// Works on a feed's first batch, and returns it if it is finished. `None`: the feed's turn is over, or it has no
    /// more batches.
    fn take_turn(
        &mut self,
        line: &mut Line,
        now: Timestamp,
        until: Instant,
        entries: &mut Entries,
    ) -> Option<Batch> {
        let mut batch = loop {
            let batch = line.batches.pop_front()?;
            match batch.refusal(now) {
                Some(why) => batch.refuse(why),
                None => break batch,
            }
        };
        batch.round = self.round;
        let (book, tracker) = (&mut self.book, self.tracker.as_mut());
        let mut turn = WriterTurn { book, tracker, entries, now };
        if batch.apply(line.feed(), &mut turn, || Instant::now() >= until) {
            return Some(batch);
        }
        line.batches.push_front(batch);
        None
    }

    /// True if something waits that precedes the next feed's turn.
    fn is_called_off(&self) -> bool {
        self.worker.clock.now() >= self.next_cut || self.worker.queue.is_urgent()
    }
}

#[cfg(test)]
mod hostile {
    use std::sync::atomic::{AtomicBool, Ordering};

    use change_log::{LogLocation, Options};
    use domain::{Catalogue, ManualClock, World};
    use feeds::push;
    use market::{Lifetimes, Limits};
    use tempfile::TempDir;
    use tokio::sync::oneshot::Receiver;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;
    use crate::batch::{Outcome, Terms};
    use crate::error::NotTaken;
    use crate::options::WorldOptions;
    use crate::worker::Next;

    const INTERVAL: Duration = Duration::from_secs(30);
    /// Far more than one round can process, in any build.
    const MANY: usize = 400_000;
    const MANY_MS: Duration = Duration::from_millis(400_000);

    /// A writer that works when the test tells it to.
    struct TestWriter {
        writer: Writer,
        handle: Arc<WorldHandle>,
        clock: Arc<ManualClock>,
        catalogue: Arc<Catalogue>,
        _dir: TempDir,
    }

    impl TestWriter {
        fn new() -> Self {
            let dir = TempDir::new().unwrap();
            let catalogue = Arc::new(Catalogue::load(None).unwrap());
            let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_800_000_000_000)));
            let options = WorldOptions {
                wires: &[],
                world: World::Live,
                log: LogLocation::Folder {
                    dir: dir.path().join("log"),
                    options: Options::default(),
                },
                catalogue: Arc::clone(&catalogue),
                refresh_interval: INTERVAL,
                stale_after: 3 * INTERVAL,
                lifetimes: Lifetimes {
                    final_retention: 100 * INTERVAL,
                    forget_after: 100 * INTERVAL,
                },
                limits: Limits::DEFAULT,
                log_retention: INTERVAL,
                simulation: None,
                notes: None,
                history: crate::HistoryOptions::default(),
                live_tick: Duration::ZERO,
            };
            let (handle, writer) = WorldHandle::open(options, Arc::clone(&clock) as _).unwrap();
            Self { writer, handle, clock, catalogue, _dir: dir }
        }

        /// Queues a batch of heartbeats that is valid while `stands` is true.
        fn put(&self, feed: &str, lines: usize, stands: &Arc<AtomicBool>) -> Receiver<Outcome> {
            let line = br#"{"type":"heartbeat","bookmaker":"caesars","sport":"mma"}"#;
            let message = push::parse_line(line, &self.catalogue, None).unwrap();
            // Each newer than the one before: every one is a change to be logged, which takes time.
            let first = domain::Clock::now(&*self.clock).minus(MANY_MS);
            let newer = |number: usize| {
                let ms = u64::try_from(number).unwrap();
                let ts = Some(first.plus(Duration::from_millis(ms)));
                (number, Ok(domain::message::FeedMessage { ts, ..message.clone() }))
            };
            let lines = (1..=lines).map(newer).collect();
            let stands = Arc::clone(stands);
            let stands = move || stands.load(Ordering::Relaxed);
            let terms = Terms { before: None, stands: Some(Arc::new(stands)) };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let reserved = runtime.block_on(self.handle.queue.reserve(feed, 1, 1)).unwrap();
            reserved.put(lines, terms).unwrap()
        }
    }

    fn is_waiting(taken: &mut Receiver<Outcome>) -> bool {
        matches!(taken.try_recv(), Err(TryRecvError::Empty))
    }

    #[test]
    fn a_batch_without_end_delays_another_feed_and_a_snapshot_by_one_round() {
        let mut test = TestWriter::new();
        let stands = Arc::new(AtomicBool::new(true));
        let mut large = test.put("large", MANY, &stands);
        let mut small = test.put("small", 1, &stands);
        let mut next = test.put("large", 1, &stands);
        // A round ends early if the thread did not run for a while.
        let mut rounds = 0;
        while is_waiting(&mut small) {
            assert!(rounds < 3, "the other feed waits");
            assert_eq!(test.writer.work(), Next::GoOn);
            rounds += 1;
        }
        assert!(is_waiting(&mut large) && is_waiting(&mut next));
        test.clock.advance(INTERVAL);
        let due = test.writer.next_cut;
        assert_eq!(test.writer.work(), Next::GoOn);
        assert!(test.handle.published().snapshot.cut_at >= due);
        assert!(is_waiting(&mut large));
        // Later pushes of its feed come after it.
        while is_waiting(&mut large) {
            assert!(is_waiting(&mut next));
            assert_eq!(test.writer.work(), Next::GoOn);
        }
    }

    #[test]
    fn a_batch_ends_between_two_messages_once_its_feed_may_not_push_any_more() {
        let mut test = TestWriter::new();
        let stands = Arc::new(AtomicBool::new(true));
        let mut taken = test.put("large", MANY, &stands);
        let mut waiting = test.put("large", 1, &stands);
        assert_eq!(test.writer.work(), Next::GoOn);
        assert!(is_waiting(&mut taken));
        stands.store(false, Ordering::Relaxed);
        assert_eq!(test.writer.work(), Next::GoOn);
        for taken in [&mut taken, &mut waiting] {
            assert_eq!(taken.try_recv().unwrap().unwrap_err(), NotTaken::Withdrawn);
        }
    }

    #[test]
    fn a_stop_comes_before_whatever_waits() {
        let mut test = TestWriter::new();
        let stands = Arc::new(AtomicBool::new(true));
        let mut taken = test.put("large", MANY, &stands);
        assert_eq!(test.writer.work(), Next::GoOn);
        test.handle.stop();
        assert_eq!(test.writer.work(), Next::Stop);
        assert!(is_waiting(&mut taken));
        drop(test.writer);
        assert_eq!(taken.try_recv().unwrap().unwrap_err(), NotTaken::Stopped);
    }
}
