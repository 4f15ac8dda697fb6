//! What was taken since the last publication, for those who do not wait for the next one (S6).
//!
//! While anybody follows a world live, its book is shown between two publications, too, as a snapshot of its own. What
//! such a snapshot has is in the log. Its position is the last entry that is in it and its time is that entry's, so
//! that it can be made again from the log; in a simulated world its position is a time, as that of a publication is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use domain::{Timestamp, World};
use market::Snapshot;
use tokio::sync::watch;

use crate::history::{Place, RECENT_SHARE, Recent};
use crate::options::WorldOptions;
use crate::publication::Published;

/// The snapshots between publications of a world.
#[derive(Debug)]
pub(crate) struct Live {
    world: World,
    present: ArcSwapOption<Published>,
    changed: watch::Sender<()>,
    /// The last ones, and the publications among them.
    recent: Mutex<Recent>,
    /// What those may take, in bytes.
    recent_max: usize,
}

impl Live {
    pub(crate) fn new(options: &WorldOptions) -> Self {
        Self {
            world: options.world,
            present: ArcSwapOption::empty(),
            changed: watch::Sender::new(()),
            recent: Mutex::default(),
            recent_max: options.history.memory_max / RECENT_SHARE,
        }
    }

    /// Says when there is another one. They are made for as long as anybody has this.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// The last one.
    pub(crate) fn present(&self) -> Option<Arc<Published>> {
        self.present.load_full()
    }

    /// How far a book is after an entry of that time.
    pub(crate) fn position(&self, seq: u64, at: Timestamp) -> u64 {
        match self.world {
            World::Live => seq,
            World::Sandbox => u64::try_from(at.as_millis()).unwrap_or(0),
        }
    }

    pub(crate) fn position_of(&self, snapshot: &Snapshot) -> u64 {
        self.position(snapshot.seq, snapshot.cut_at)
    }

    /// One of the last ones or of the publications among them, and when what followed it was made.
    pub(crate) fn find(&self, place: Place) -> Option<(Arc<Published>, Option<Timestamp>)> {
        self.recent().find(|held| place.is_of(&held.snapshot), |_| true)
    }

    /// One of the last ones, but no publication, and when the publication that followed it was made.
    pub(crate) fn find_between(&self, place: Place) -> Option<(Arc<Published>, Option<Timestamp>)> {
        let is = |held: &Published| held.is_between && place.is_of(&held.snapshot);
        self.recent().find(is, |later| !later.is_between)
    }

    pub(crate) fn show(&self, published: Published) {
        self.recent().push(published.of_the_past(0), self.recent_max);
        self.present.store(Some(Arc::new(published)));
        self.changed.send_replace(());
    }

    /// Notes a publication, before it is in force.
    pub(crate) fn note_publication(&self, published: &Published) {
        let position = self.position_of(&published.snapshot);
        let shown = self.present.load();
        // A log that lost entries is at such a position again, with other content.
        let lost = shown.as_ref().is_some_and(|shown| self.position_of(&shown.snapshot) > position);
        if lost || !self.is_wanted() {
            self.present.store(None);
            *self.recent() = Recent::default();
        }
        if self.is_wanted() {
            self.recent().push(published.of_the_past(0), self.recent_max);
        }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
