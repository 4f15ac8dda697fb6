//! The state of a world's thread, whether it writes or follows.

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

/// Pause after a live snapshot before the next one of its kind, as a multiple of the time that the snapshot took, even
/// if half of `stream.live_tick` is shorter. So in a large market, parts and whole snapshots each take at most a tenth
/// of the writer's time.
const LIVE_REST: u32 = 9;

/// The state of a thread that runs a world, in both roles.
#[derive(Debug)]
pub(crate) struct WorldWorker {
    pub(crate) options: WorldOptions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) handle: Arc<WorldHandle>,
    pub(crate) queue: Intake,
    /// The snapshot before the current one: dropped here rather than by the last request that uses it.
    pub(crate) retired: Option<Arc<Published>>,
    /// Earliest time of the next live snapshot.
    pub(crate) live_due: Instant,
    /// Earliest time of the next whole live snapshot.
    pub(crate) whole_due: Instant,
}

/// The extent of a live snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// The touched events, unless all were touched.
    Touched,
    Whole,
}

impl WorldWorker {
    pub(crate) fn new(
        options: WorldOptions,
        clock: Arc<dyn Clock>,
        handle: &Arc<WorldHandle>,
        queue: Intake,
    ) -> Self {
        let handle = Arc::clone(handle);
        let now = Instant::now();
        Self { options, clock, handle, queue, retired: None, live_due: now, whole_due: now }
    }

    /// Publishes the snapshot of a book as it is after log entry `seq`. `next`: the time of the publication that
    /// follows the current one in the log, which is this one unless others were skipped; `None`: not known.
    pub(crate) fn publish(
        &mut self,
        book: &mut Book,
        seq: u64,
        at: Timestamp,
        next: Option<Timestamp>,
    ) {
        let begun = Instant::now();
        book.take_touched();
        let Self { options, handle, .. } = self;
        let published = options.publication(book, seq, at);
        // Before it is replaced, so that its holders can find it at any time.
        handle.history.note_recent(&handle.published.load(), next);
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
        // A replay continues live from a publication that a whole snapshot follows.
        self.whole_due = Instant::now();
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        handle.stats.cut_us_last.store(took, Ordering::Relaxed);
        WorldHandle::count(&handle.stats.snapshots, 1);
    }

    /// Shows a book, as it is after log entry `seq`, to clients that follow it live. Returns the time until the rest
    /// may be shown; `None`: nothing is left.
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
        let position = live.position(seq, at);
        if position <= published || position < live.seen() {
            return None;
        }
        let is_new = position > live.seen();
        if is_new && book.is_untouched() {
            live.note_seen(position, at);
        }
        // The freshness of records matters only to readers of whole snapshots. Those are made when they are due, and
        // the others do not wait for them.
        let now = Instant::now();
        let whole_wait =
            live.lacks_whole(position).then(|| self.whole_due.saturating_duration_since(now));
        let part_wait =
            (is_new && !book.is_untouched()).then(|| self.live_due.saturating_duration_since(now));
        if whole_wait.is_some_and(|wait| wait.is_zero()) {
            self.show_now(book, (seq, at), Show::Whole);
            return None;
        }
        if part_wait.is_some_and(|wait| wait.is_zero()) {
            self.show_now(book, (seq, at), Show::Touched);
            return whole_wait;
        }
        [part_wait, whole_wait].into_iter().flatten().min()
    }

    fn show_now(&mut self, book: &mut Book, at: (u64, Timestamp), show: Show) {
        let live = &self.handle.live;
        let begun = Instant::now();
        let shown = match book.take_touched() {
            Touched::Events(ids) if show == Show::Touched && !live.needs_whole() => {
                self.options.part_between(book, at, ids)
            }
            touched @ (Touched::All | Touched::Events(_)) => {
                self.options.whole_between(book, at, touched)
            }
        };
        // Before notifying: a woken task may take this thread's core for longer than this took. The other half of a
        // tick is for making events of it and sending them.
        let (took, tick) = (begun.elapsed(), self.options.live_tick / 2);
        let rest = tick.max(LIVE_REST * took);
        self.live_due = match show {
            Show::Touched => begun + rest,
            Show::Whole => begun + tick.max(took),
        };
        if shown.is_whole() {
            self.whole_due = begun + rest;
        }
        live.show(shown);
    }

    /// Publishes the changes of identities since the last time, for operators.
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

    /// Refuses the requests that came to a node which does not write.
    pub(crate) fn turn_away(&self) -> Waiting {
        self.wait(Duration::ZERO)
    }

    pub(crate) fn wait(&self, pause: Duration) -> Waiting {
        let begun = Instant::now();
        loop {
            match self.queue.wait(pause.saturating_sub(begun.elapsed())) {
                queue::Waiting::Stop => return Waiting::Stop,
                queue::Waiting::Operation((_, answer)) => queue::refuse_operation(answer),
                // The waiting caller finds its channel closed.
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

/// The next action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    Stop,
    /// Another node is the leader from now on, or should be.
    StepDown,
}
