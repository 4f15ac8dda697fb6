//! Changes since the last publication, for clients that do not wait for the next one (S6).
//!
//! While any client follows a world live, its book is shown between two publications, too. Such a live snapshot is a
//! part of a snapshot: the events that were touched since the previous one, so that its cost depends on the change. A
//! whole snapshot is assembled from those parts when it is needed. Everything shown is in the log. The position of a
//! live snapshot is the last entry that is in it and its time is that entry's, so that it can be rebuilt from the log;
//! in a simulated world the position is a time, as for a publication.
//!
//! The freshness of records may change without any event being touched. A client that needs it for each record
//! ([`WholeSnapshots`]) causes whole snapshots to be made in addition to the parts, as often as their cost allows.

mod steps;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use domain::{Timestamp, World};
use market::Snapshot;
use tokio::sync::watch;

use self::steps::Steps;
use crate::history::{IsSought, Place, RECENT_SHARE};
use crate::options::WorldOptions;
use crate::publication::Published;
pub use steps::LiveStep;
pub(crate) use steps::{Found, Steps as ShownSteps};

/// The snapshots between publications of a world.
#[derive(Debug)]
pub(crate) struct Live {
    world: World,
    present: ArcSwapOption<Published>,
    /// The last one that was cut as a whole.
    whole_present: ArcSwapOption<Published>,
    /// Position of the book when it was last examined; 0 if it is not known.
    seen: AtomicU64,
    /// The time of the book then, in milliseconds.
    seen_at: AtomicI64,
    changed: watch::Sender<()>,
    whole: watch::Sender<()>,
    /// The last live snapshots, and the publications among them.
    steps: Mutex<Steps>,
    /// Maximum memory for them, in bytes.
    steps_max: usize,
    /// The last requested step, because many clients request the same one at the same time.
    last_step: Mutex<Option<(Place, Arc<LiveStep>)>>,
    /// Held while a whole snapshot is assembled: once for all that need it.
    completing: Mutex<()>,
}

/// While a value of this type exists, whole snapshots are shown between publications.
#[derive(Debug)]
pub struct WholeSnapshots {
    _wanted: watch::Receiver<()>,
}

/// A found snapshot, and the time of the next one.
pub(crate) type FoundLive = (Found, Option<Timestamp>);

impl Live {
    pub(crate) fn new(options: &WorldOptions) -> Arc<Self> {
        Arc::new(Self {
            world: options.world,
            present: ArcSwapOption::empty(),
            whole_present: ArcSwapOption::empty(),
            seen: AtomicU64::new(0),
            seen_at: AtomicI64::new(0),
            changed: watch::Sender::new(()),
            whole: watch::Sender::new(()),
            steps: Mutex::default(),
            steps_max: options.history.memory_max / RECENT_SHARE,
            last_step: Mutex::default(),
            completing: Mutex::default(),
        })
    }

    /// Notifies of each new live snapshot. They are made while a receiver exists.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(crate) fn want_whole(&self) -> WholeSnapshots {
        WholeSnapshots { _wanted: self.whole.subscribe() }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// True if the next one has to be whole, to keep the memory within its bound.
    pub(crate) fn needs_whole(&self) -> bool {
        self.steps().needs_whole(self.steps_max)
    }

    /// True if whole ones are requested and that of a position was not shown.
    pub(crate) fn lacks_whole(&self, position: u64) -> bool {
        let is_shown = |shown: &Arc<Published>| self.position_of(&shown.snapshot) >= position;
        self.whole.receiver_count() > 0 && !self.whole_present.load().as_ref().is_some_and(is_shown)
    }

    /// The last one.
    pub(crate) fn present(&self) -> Option<Arc<Published>> {
        self.present.load_full()
    }

    /// The last one that was cut as a whole.
    pub(crate) fn whole_present(&self) -> Option<Arc<Published>> {
        self.whole_present.load_full()
    }

    /// Position of the book when it was last examined.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// Notes that there is nothing left to show of a book.
    pub(crate) fn note_seen(&self, position: u64, at: Timestamp) {
        self.seen_at.store(at.as_millis(), Ordering::Release);
        self.seen.store(position, Ordering::Release);
    }

    /// The position and the time up to which everything was shown. Whoever reads them before the last state finds at
    /// least that state. `whole`: in whole snapshots.
    pub(crate) fn reached(&self, whole: bool) -> (u64, Timestamp) {
        if whole {
            let shown = self.whole_present.load();
            let shown = shown.as_ref().map(|shown| &shown.snapshot);
            return shown.map_or((0, Timestamp::from_millis(0)), |shown| {
                (self.position_of(shown), shown.cut_at)
            });
        }
        (self.seen(), Timestamp::from_millis(self.seen_at.load(Ordering::Acquire)))
    }

    /// The position of a book after an entry of that time.
    pub(crate) fn position(&self, seq: u64, at: Timestamp) -> u64 {
        match self.world {
            World::Live => seq,
            World::Sandbox => u64::try_from(at.as_millis()).unwrap_or(0),
        }
    }

    pub(crate) fn position_of(&self, snapshot: &Snapshot) -> u64 {
        self.position(snapshot.seq, snapshot.cut_at)
    }

    /// One of the last ones or of the publications among them, and the time of the next one.
    pub(crate) fn find(&self, place: Place, is: IsSought<'_>) -> Option<FoundLive> {
        self.steps().find(place, |held| is(&held.snapshot), |_| true)
    }

    /// One of the last ones that is not a publication, and the time of the next publication.
    pub(crate) fn find_between(&self, place: Place, is: IsSought<'_>) -> Option<FoundLive> {
        let is_sought = |held: &Published| held.is_between && is(&held.snapshot);
        self.steps().find(place, is_sought, |later| !later.is_between)
    }

    /// The step from a place to one of the last ones, if the touched events are known. Its cost depends on the change.
    pub(crate) fn step(&self, from: Place, to: &Published) -> Option<Arc<LiveStep>> {
        let mut last = self.last_step.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((place, step)) = &*last
            && (*place, step.to.seq, step.to.cut_at) == (from, to.snapshot.seq, to.snapshot.cut_at)
        {
            return Some(Arc::clone(step));
        }
        let step = Arc::new(self.steps().between(from, &to.snapshot)?);
        *last = Some((from, Arc::clone(&step)));
        Some(step)
    }

    /// A live snapshot as a whole, assembled if it was shown in parts. This takes as long as a cut.
    pub(crate) fn complete(&self, found: Found) -> Option<Arc<Published>> {
        let parts = match found {
            Found::Whole(whole) => return Some(whole),
            Found::Parts(parts) => parts,
        };
        let _turn = self.completing.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have assembled it meanwhile.
        if let Some(whole) = self.steps().completed(&parts.last()?.snapshot) {
            return Some(whole);
        }
        let whole = Found::gather(&parts)?;
        self.steps().complete(&whole, self.steps_max);
        Some(whole)
    }

    /// The snapshot at a place, and the next one shown, if any. `exact`: only those that were cut as a whole.
    pub(crate) fn after(
        &self,
        place: Place,
        exact: bool,
    ) -> Option<(Arc<Published>, Option<Arc<Published>>)> {
        self.steps().after(place, |later| !exact || later.is_exact())
    }

    /// The last one shown between two positions that is not a publication: those that were not logged differ although
    /// their positions are the same.
    pub(crate) fn last_between(&self, from: u64, to: u64) -> Option<Arc<Published>> {
        let is_within = |held: &Published| (from..=to).contains(&self.position_of(&held.snapshot));
        self.steps().last(|held| held.is_between && is_within(held))
    }

    pub(crate) fn show(&self, published: Published) {
        let (position, at) = (self.position_of(&published.snapshot), published.snapshot.cut_at);
        self.steps().push(published.of_the_past(0), self.steps_max);
        let published = Arc::new(published);
        if published.is_exact() {
            self.whole_present.store(Some(Arc::clone(&published)));
        }
        self.present.store(Some(published));
        // Afterwards: what was seen is shown.
        self.note_seen(position, at);
        self.changed.send_replace(());
    }

    /// Notes a publication, before it is current.
    pub(crate) fn note_publication(&self, published: &Published) {
        // A log that lost entries reaches this position again, with other content.
        let lost = self.seen() > self.position_of(&published.snapshot);
        if lost || !self.is_wanted() {
            self.forget();
        }
        if self.is_wanted() {
            self.steps().push(published.of_the_past(0), self.steps_max);
        }
    }

    /// Drops everything shown, because the next publication does not follow it without a gap.
    pub(crate) fn forget(&self) {
        self.present.store(None);
        self.whole_present.store(None);
        self.note_seen(0, Timestamp::from_millis(0));
        *self.steps() = Steps::default();
        *self.last_step.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
