//! How far a world has been shown to live followers.

use domain::{Timestamp, World};
use feeds::sandbox::Simulation;

use super::WorldHandle;

impl WorldHandle {
    /// The last position that a state of an instant in the past can have, as far as this node has the log.
    pub fn last_place(&self, until: Timestamp) -> u64 {
        match self.world {
            World::Live => self.last_entry(),
            World::Sandbox => self.live.position(0, Simulation::last_step(until)),
        }
    }

    /// True if live followers were shown everything up to an instant in the past, as far as this node has the log, or
    /// were shown something later. To be read before the state itself. `whole`: in whole snapshots.
    pub fn has_shown(&self, until: Timestamp, whole: bool) -> bool {
        let (shown, shown_at) = self.live.reached(whole);
        let published = self.published.load();
        let shown = shown.max(self.live.position_of(&published.snapshot));
        until < shown_at.max(published.snapshot.cut_at) || self.last_place(until) <= shown
    }
}
