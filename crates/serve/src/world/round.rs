//! Feeds in turn: how the writer shares its time between those who push, and makes what they sent durable together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Timestamp;

use crate::world::WorldHandle;
use crate::world::batch::{Batch, Turn};
use crate::world::queue::Line;
use crate::world::start::Entries;
use crate::world::writer::Writer;

/// How long the writer works for one feed before the next has its turn.
const TURN_TIME_MAX: Duration = Duration::from_millis(20);
/// How long turns go on before what they brought is made durable and answered.
const ROUND_TIME_MAX: Duration = Duration::from_millis(100);

impl Writer {
    /// Gives every feed that waits its turn, with one write to the disk for all. A round ends early where a snapshot is due or
    /// an operator waits; a batch that is not finished goes on in the next.
    pub(super) fn take_round(&mut self) {
        let begun = Instant::now();
        let now = self.post.clock.now();
        self.round += 1;
        let mut entries = Entries::default();
        let mut done = Vec::new();
        // One turn at least, however late snapshots are.
        while let Some(mut line) = self.post.queue.next_line() {
            let until = Instant::now() + TURN_TIME_MAX;
            while let Some(batch) = self.take_turn(&mut line, now, until, &mut entries) {
                done.push(batch);
            }
            self.post.queue.put_back(line);
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
            WorldHandle::count(&self.post.handle.stats.joins, joins);
            // Before the receipts: whoever has one and looks at this node's status sees what it brought.
            self.post.handle.vitals.store(Arc::new(self.book.vitals()));
            self.post.note_identities(&self.book);
        }
        for batch in done {
            if durable {
                batch.answer();
            } else {
                batch.refuse(self.refusal);
            }
        }
    }

    /// Works on a feed's first batch, and gives it where it is finished. `None`: the feed's turn is over, or it has no more.
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
        let mut turn = Turn { book, tracker, entries, now };
        if batch.apply(line.feed(), &mut turn, || Instant::now() >= until) {
            return Some(batch);
        }
        line.batches.push_front(batch);
        None
    }

    /// Whether something waits that comes before the next feed's turn.
    fn is_called_off(&self) -> bool {
        self.post.clock.now() >= self.next_cut || self.post.queue.is_urgent()
    }
}
