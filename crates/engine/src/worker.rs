//! What the thread of a world works with, whether it writes or follows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use domain::{Clock, Timestamp};
use market::{Book, Touched};

use crate::error::NotTaken;
use crate::identities::Tracker;
use crate::options::WorldOptions;
use crate::publication::Published;
use crate::queue::{self, Intake};
use crate::world::WorldHandle;

/// After a live snapshot the writer waits this many times as long as the snapshot took before it makes the next one,
/// even where half of `stream.live_tick` is shorter: a large market takes at most a tenth of the writer's time.
const LIVE_REST: u32 = 9;

/// What a thread has that runs a world, whatever it does for it at the moment.
#[derive(Debug)]
pub(crate) struct WorldWorker {
    pub(crate) options: WorldOptions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) handle: Arc<WorldHandle>,
    pub(crate) queue: Intake,
    /// The snapshot before the current one: dropped here rather than by whichever request is the last.
    pub(crate) retired: Option<Arc<Published>>,
    /// When it may be shown next to those who follow live.
    pub(crate) live_due: Instant,
}

impl WorldWorker {
    pub(crate) fn new(
        options: WorldOptions,
        clock: Arc<dyn Clock>,
        handle: &Arc<WorldHandle>,
        queue: Intake,
    ) -> Self {
        let handle = Arc::clone(handle);
        Self { options, clock, handle, queue, retired: None, live_due: Instant::now() }
    }

    /// Publishes the snapshot of a book as it is after log entry `seq`.
    pub(crate) fn publish(&mut self, book: &mut Book, seq: u64, at: Timestamp) {
        let begun = Instant::now();
        book.take_touched();
        let Self { options, handle, .. } = self;
        let published = options.publication(book, seq, at);
        // Before it is replaced: whoever has it is to find it at any time.
        handle.history.note_recent(&handle.published.load());
        handle.history.note_published(&published, handle.leads());
        handle.live.note_publication(&published);
        let retired = handle.published.swap(Arc::new(published));
        self.retired = Some(retired);
        if let Some(shared) = &handle.shared {
            shared.begun.store(true, Ordering::Release);
        }
        handle.vitals.store(Arc::new(book.vitals()));
        handle.stats.load.store(Arc::new(book.load()));
        handle.publications.send_replace(());
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        handle.stats.cut_us_last.store(took, Ordering::Relaxed);
        WorldHandle::count(&handle.stats.snapshots, 1);
    }

    /// Shows a book, as it is after log entry `seq`, to those who follow it live. Gives how long it is too early for
    /// that; `None`: it is done, or there is nothing to do.
    pub(crate) fn show_live(
        &mut self,
        book: &mut Book,
        seq: u64,
        at: Timestamp,
    ) -> Option<Duration> {
        let live = &self.handle.live;
        if !live.is_wanted() || !self.handle.has_begun() {
            return None;
        }
        let published = live.position_of(&self.handle.published().snapshot);
        let (position, seen) = (live.position(seq, at), live.seen());
        let is_known = position <= seen && !(position == seen && live.lacks_whole());
        if position <= published || is_known {
            return None;
        }
        // How fresh records are matters only to who wants whole snapshots.
        if book.is_untouched() && !live.is_whole_wanted() {
            live.note_seen(position);
            return None;
        }
        let wait = self.live_due.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            return Some(wait);
        }
        let begun = Instant::now();
        let shown = match book.take_touched() {
            Touched::Events(ids) if !live.needs_whole() => {
                self.options.part_between(book, (seq, at), ids)
            }
            touched @ (Touched::All | Touched::Events(_)) => {
                self.options.whole_between(book, (seq, at), touched)
            }
        };
        // Before anybody is notified: who is woken by it may take this thread's core for longer than this took. The
        // other half of a tick is for making events of it and sending them.
        let rest = (self.options.live_tick / 2).max(LIVE_REST * begun.elapsed());
        self.live_due = begun + rest;
        live.show(shown);
        None
    }

    /// Shows operators what has changed of identities since the last time.
    pub(crate) fn publish_identities(&self, book: &Book, tracker: Option<&mut Tracker>) {
        if let Some(identities) = tracker.and_then(|tracker| tracker.refresh(book)) {
            self.handle.identities.store(identities);
        }
    }

    pub(crate) fn note_identities(&self, book: &Book) {
        let (merged, unsure, aliases) = book.remembered();
        let stats = &self.handle.stats;
        stats.load.store(Arc::new(book.load()));
        for (figure, count) in
            [(&stats.merged_ids, merged), (&stats.unsure_pairs, unsure), (&stats.aliases, aliases)]
        {
            figure.store(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Sends away what came to a node that does not write.
    pub(crate) fn turn_away(&self) -> Waiting {
        self.wait(Duration::ZERO)
    }

    pub(crate) fn wait(&self, pause: Duration) -> Waiting {
        let begun = Instant::now();
        loop {
            match self.queue.wait(pause.saturating_sub(begun.elapsed())) {
                queue::Waiting::Stop => return Waiting::Stop,
                queue::Waiting::Operation((_, answer)) => queue::refuse_operation(answer),
                // Whoever waits finds that nobody answers.
                queue::Waiting::Look(look) => drop(look),
                queue::Waiting::Batches => self.queue.refuse_batches(NotTaken::Overtaken),
                queue::Waiting::Nothing => return Waiting::GoOn,
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    GoOn,
    Stop,
}

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    Stop,
    /// Another node writes from now on, or should.
    StepDown,
}
