//! Selection of a stream, in normal form: streams of the same selection share their events.

use std::sync::Arc;

use domain::{SportId, Timestamp, World};
use engine::{Published, WorldHandle};
use market::Snapshot;

use super::screen::{SCREEN_CHECK, Screen};
use crate::answers::List;
use crate::context::Api;
use crate::position::{LogPlace, LogPosition, lists_check, place_of};
use crate::v1::changes::has_come_to;
use crate::v1::wire::stream::{Freshness, Mode, Transport};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Selection {
    pub(super) world: World,
    pub(super) followed: Followed,
    pub(super) mode: Mode,
    /// Format of its events.
    pub(super) transport: Transport,
    /// Checksum that distinguishes its cursors from those of other selections.
    pub(super) check: u32,
}

/// The source of a stream's events.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Followed {
    /// By sport and then by channel, in the order of sending.
    Lists(Vec<List>, Freshness),
    /// Contents of a page.
    Screen(Arc<dyn Screen>),
}

impl Selection {
    pub(super) fn new(
        world: World,
        lists: Vec<List>,
        mode: Mode,
        freshness: Freshness,
        transport: Transport,
        api: &Api,
    ) -> Self {
        let check = lists_check(lists.iter(), &api.catalogue);
        Self { world, followed: Followed::Lists(lists, freshness), mode, transport, check }
    }

    pub(super) fn of_screen(world: World, screen: Arc<dyn Screen>) -> Self {
        let (mode, transport) = (Mode::Publication, Transport::ServerSentEvents);
        Self { world, followed: Followed::Screen(screen), mode, transport, check: SCREEN_CHECK }
    }

    pub(super) fn place_of(&self, snapshot: &Snapshot) -> LogPlace {
        place_of(self.world, snapshot)
    }

    /// True if a position is that of a publication, or between it and the next one.
    pub(super) fn has_reached(
        &self,
        place: LogPlace,
        last: &Snapshot,
        handle: &WorldHandle,
    ) -> bool {
        let last = self.place_of(last);
        place == last || (place.0 > last.0 && has_come_to(handle, place.0))
    }

    /// The next state after a position: the current publication or, in `live`, a state after it.
    pub(super) fn next_after(
        &self,
        place: LogPlace,
        handle: &WorldHandle,
    ) -> Option<Arc<Published>> {
        // Read first: at that time every earlier publication is current, so none is skipped.
        let shown = self.shown(handle);
        let present = handle.published();
        if !self.has_reached(place, &present.snapshot, handle) {
            return Some(Arc::clone(&present));
        }
        shown.filter(|shown| self.place_of(&shown.snapshot).0 > place.0)
    }

    /// The state shown between publications to streams of this selection.
    pub(super) fn shown(&self, handle: &WorldHandle) -> Option<Arc<Published>> {
        match self.mode {
            // Only whole snapshots have the freshness of each record.
            Mode::Live if self.wants_whole() => handle.shown_whole(),
            Mode::Live => handle.shown_live(),
            Mode::Publication => None,
        }
    }

    /// True if everything up to an instant in the past was shown to streams of this selection. To be read before the
    /// states themselves.
    pub(super) fn has_shown(&self, until: Timestamp, handle: &WorldHandle) -> bool {
        match self.mode {
            Mode::Live => handle.has_shown(until, self.wants_whole()),
            Mode::Publication => true,
        }
    }

    /// True if it needs whole snapshots between publications.
    pub(super) fn wants_whole(&self) -> bool {
        self.mode == Mode::Live && self.lists().1 == Freshness::Records
    }

    /// The cursor of a publication, or of a state shown between two.
    pub(super) fn cursor(&self, snapshot: &Snapshot) -> String {
        let (at, check) = self.place_of(snapshot);
        LogPosition { world: self.world, at, check, selection: self.check }.encode()
    }

    /// The sport of each list.
    pub(super) fn sports(&self) -> impl Iterator<Item = SportId> {
        self.lists().0.iter().map(List::sport)
    }

    /// Its lists, and the kind of freshness that is sent.
    pub(super) fn lists(&self) -> (&[List], Freshness) {
        match &self.followed {
            Followed::Lists(lists, freshness) => (lists, *freshness),
            Followed::Screen(_) => (&[], Freshness::None),
        }
    }
}
