//! The events from one publication to another, or to a state shown between two, as bytes for all streams of the same
//! selection.

use std::sync::Arc;

use domain::{Catalogue, Timestamp};
use engine::{LiveStep, Passed, Published};
use market::Snapshot;

use super::screen::ScreenStep;
use super::selection::Selection;
use super::unread::{Chunk, Chunks, Unread};
use crate::answers::List;
use crate::position::LogPlace;
use crate::v1::wire::stream::{
    Channel, Event, Freshness, ListName, Transport, cut, deltas, fresh, snapshots,
};
use crate::v1::wire::{Between, Delta};

/// Small events are sent together: a write for each would cost more than its bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// The events up to a cut.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) chunks: Chunks,
    /// The position after these events.
    pub(super) to: LogPlace,
    pub(super) cut_at: Timestamp,
    /// True if that is not the position of a publication.
    pub(super) is_between: bool,
    /// Time up to which further changes are free once these are paid for.
    pub(super) paid_until: Timestamp,
    /// True if there are events other than freshness.
    pub(super) has_changes: bool,
    /// True if they are the sum of several publications.
    pub(super) conflated: bool,
}

/// State shared by all events.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// The catalogue of selections; a past publication may have another.
    pub(super) catalogue: Arc<Catalogue>,
    /// Counter of bytes that are kept or not read yet.
    pub(super) unread: Arc<Unread>,
}

impl Rendered {
    /// From `from` or from nothing, with the records known to have been shown in between.
    pub(super) fn new(
        selection: &Selection,
        from: Option<&Snapshot>,
        to: &Published,
        passing: (bool, Option<&Passed>),
        common: &Common,
    ) -> Self {
        let (conflated, passed) = passing;
        let between = Between { passed, skipped: &[] };
        Self::between(selection, (from, &to.snapshot), to, (conflated, between), common)
    }

    /// The events of a live step.
    pub(super) fn of_step(
        selection: &Selection,
        step: &LiveStep,
        shown: &Published,
        common: &Common,
    ) -> Self {
        let ends = (Some(&*step.from), &*step.to);
        let between = Between { passed: None, skipped: &step.skipped };
        Self::between(selection, ends, shown, (!step.skipped.is_empty(), between), common)
    }

    /// The change of a screen, which is free.
    pub(super) fn of_screen(
        selection: &Selection,
        ScreenStep { event, data }: ScreenStep,
        to: &Published,
        common: &Common,
    ) -> Self {
        let id = Some(selection.cursor(&to.snapshot));
        let event = Event { name: event, id, retry_ms: None, data: data.into() };
        let chunks = Chunks::new(together(vec![event], selection.transport), &common.unread);
        Self { chunks, ..Self::moved(selection, to) }
    }

    /// No events, only another position with the same contents.
    pub(super) fn moved(selection: &Selection, shown: &Published) -> Self {
        Self {
            chunks: Chunks::None,
            to: selection.place_of(&shown.snapshot),
            cut_at: shown.snapshot.cut_at,
            is_between: shown.is_between,
            paid_until: shown.until,
            has_changes: false,
            conflated: false,
        }
    }

    /// From one snapshot to another, with the changes in `shown`.
    fn between(
        selection: &Selection,
        (from, to): (Option<&Snapshot>, &Snapshot),
        shown: &Published,
        (mut conflated, between): (bool, Between<'_>),
        Common { catalogue, unread }: &Common,
    ) -> Self {
        let (is_between, paid_until) = (shown.is_between, shown.until);
        let (mut events, mut freshness): (Vec<Event>, Vec<Event>) = Default::default();
        let (lists, wanted) = selection.lists();
        for list in lists {
            let delta = Delta::between((list, catalogue), from, to, &between);
            let is_sum = conflated || delta.has_passed();
            conflated = is_sum;
            let name =
                ListName { channel: Channel::of(list), sport: catalogue.sport(list.sport()) };
            events.extend(match from {
                Some(_) => deltas(name, &delta, is_sum),
                None => snapshots(name, &delta),
            });
            let then = list.in_catalogue(catalogue, to.catalogue());
            if let (Some(List::Odds(odds, ..)), Some(_)) = (then.as_deref(), from) {
                freshness.extend(match wanted {
                    // The freshness of sources is only sent with publications.
                    Freshness::Sources if is_between => Vec::new(),
                    Freshness::Records if is_between && delta.is_fresh_alike() => Vec::new(),
                    Freshness::Sources => fresh(odds, None, to),
                    Freshness::Records => fresh(odds, Some(&delta), to),
                    Freshness::None => Vec::new(),
                });
            }
        }
        let has_changes = !events.is_empty();
        events.extend(freshness);
        // Between publications, nothing is sent if nothing changed.
        if !is_between || !events.is_empty() {
            events.push(cut(selection.cursor(to), to, !is_between));
        }
        Self {
            chunks: Chunks::new(together(events, selection.transport), unread),
            to: selection.place_of(to),
            cut_at: to.cut_at,
            is_between,
            // An interval costs once, regardless of the number of changes sent in it.
            paid_until: if is_between { paid_until } else { to.cut_at },
            has_changes,
            conflated: conflated && has_changes,
        }
    }
}

fn together(events: Vec<Event>, transport: Transport) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let (mut bytes, mut count) = (Vec::new(), 0);
    for event in events {
        let event = event.encode(transport);
        if count > 0 && bytes.len() + event.len() > CHUNK_BYTES {
            chunks.push(Chunk { bytes: std::mem::take(&mut bytes).into(), events: count });
            count = 0;
        }
        if count == 0 {
            bytes = event;
        } else {
            bytes.extend(event);
        }
        count += 1;
    }
    if count > 0 {
        chunks.push(Chunk { bytes: bytes.into(), events: count });
    }
    chunks
}
