//! Event fragments: the records of an event that match a filter, concatenated.
//!
//! Most clients use one of a few filters: their region, their format, perhaps a market. The first response of an epoch
//! that needs an event under such a filter concatenates the event's records with their freshness; every further one,
//! whatever else it selects, reuses the fragment without a copy and without touching a record. The cost of a response
//! then grows with its events and not with its records, and large markets are not read record by record.
//!
//! Fragments belong to one publication, so their freshness is always right. The number of filters and the cached bytes
//! are bounded; beyond that, fragments are built for one response only, and only as far as it needs them.

use std::sync::Arc;

use bytes::Bytes;
use domain::{BookmakerId, BookmakerSet, Format, Market, SportId};
use market::snapshot::{EventRow, RecordRow};
use market::{Snapshot, SportView};
use xxhash_rust::xxh3::xxh3_64;

use crate::answers::{Fragment, FragmentCache, SportFragments};
use crate::v1::wire::V1;
use crate::v1::wire::record::RecordText;

/// Records of an event to show, and their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(super) bookmakers: BookmakerSet,
    pub(super) market: Option<Market>,
    pub(super) format: Format,
}

/// The matching records of an event, in order, each followed by a comma.
#[derive(Debug)]
pub(crate) struct EventFragment {
    pub(super) text: Bytes,
    pub(super) entries: Box<[Entry]>,
    /// Hash of all entries.
    content_hash: u64,
}

/// One record of a fragment.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Position among the sport's records.
    pub(super) position: u32,
    /// End of its text.
    pub(super) end: u32,
    /// Hash of the record and its freshness.
    content_hash: u64,
}

/// The fragments cached for one publication.
pub(crate) type Fragments = FragmentCache<Filter, EventFragment>;

/// Builds the fragments of one sport for one filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentSource<'a> {
    snapshot: &'a Snapshot,
    view: &'a SportView,
    kept: Option<&'a SportFragments<Filter, EventFragment>>,
    filter: Filter,
}

/// The part of an event that a response still needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// First position.
    pub(super) from: u32,
    /// Maximum number of records.
    pub(super) count: usize,
}

impl Filter {
    fn lets_through(&self, (bookmaker, market): (BookmakerId, Market)) -> bool {
        self.bookmakers.contains(bookmaker) && self.market.is_none_or(|wanted| wanted == market)
    }
}

impl<'a> FragmentSource<'a> {
    pub(super) fn new(
        fragments: &'a Fragments,
        snapshot: &'a Snapshot,
        sport: SportId,
        filter: Filter,
    ) -> Self {
        let kept = fragments.of_sport(snapshot, sport);
        Self { snapshot, view: snapshot.sport(sport), kept, filter }
    }

    /// An event's fragment: at least the needed part, and the whole if it is cached.
    pub(super) fn fragment(&self, event: usize, need: Need) -> Option<Arc<EventFragment>> {
        let row = self.view.events.get(event)?;
        let size = (self.view.events.len(), self.view.records.len());
        let Some(cell) = self.kept.and_then(|kept| kept.cell(&self.filter, size, event)) else {
            return Some(Arc::new(self.put_together(row, need)));
        };
        if let Some(fragment) = cell.get() {
            return Some(fragment);
        }
        if !cell.has_room() {
            return Some(Arc::new(self.put_together(row, need)));
        }
        let whole = || self.put_together(row, Need { from: 0, count: usize::MAX });
        Some(cell.get_or_make(whole))
    }

    fn put_together(&self, event: &EventRow, need: Need) -> EventFragment {
        let Self { snapshot, view, filter, .. } = self;
        let positions = event.records.start.max(need.from)..event.records.end;
        let wanted =
            positions.filter(|at| view.kind(*at).is_some_and(|kind| filter.lets_through(kind)));
        let rows = wanted.take(need.count).filter_map(|at| {
            let row = view.record(at)?;
            Some((at, row, RecordText(snapshot.rendered_record(&V1, event, row))))
        });
        EventFragment::new(&rows.collect::<Vec<_>>(), filter.format)
    }
}

impl EventFragment {
    fn new(rows: &[(u32, &RecordRow, RecordText<'_>)], format: Format) -> Self {
        // Texts are spread over the memory of a large market. Reading their lengths first prefetches them and gives
        // the exact capacity.
        let length = rows.iter().map(|(_, _, record)| record.len(format) + 1).sum();
        let mut text = Vec::with_capacity(length);
        let mut entries = Vec::with_capacity(rows.len());
        // Neighbouring records mostly have the same freshness to the second.
        let mut stamp = (i64::MIN, [0; 20]);
        for (position, row, record) in rows {
            let second = row.last_update.as_secs();
            if stamp.0 != second {
                stamp = (second, row.last_update.seconds_text());
            }
            record.write(format, &stamp.1, &mut text);
            text.push(b',');
            let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
            let content_hash = content_hash(record.0.hash, second);
            entries.push(Entry { position: *position, end, content_hash });
        }
        let content_hash = hash_of(&entries);
        Self { text: text.into(), entries: entries.into(), content_hash }
    }

    /// The text of entries.
    pub(super) fn text_of(&self, from: usize, to: usize) -> &[u8] {
        let end_before = |place: usize| {
            let last = place.checked_sub(1).and_then(|last| self.entries.get(last));
            last.map_or(0, |entry| usize::try_from(entry.end).unwrap_or(usize::MAX))
        };
        self.text.get(end_before(from)..end_before(to)).unwrap_or_default()
    }

    /// Hash of entries: unequal entries have equal hashes only by chance.
    pub(super) fn content_hash(&self, from: usize, to: usize) -> u64 {
        if from == 0 && to == self.entries.len() {
            return self.content_hash;
        }
        hash_of(self.entries.get(from..to).unwrap_or_default())
    }
}

impl Fragment for EventFragment {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len() + size_of_val(&*self.entries)
    }
}

fn hash_of(entries: &[Entry]) -> u64 {
    let mut hashes = Vec::with_capacity(size_of::<u64>() * entries.len());
    entries.iter().for_each(|entry| hashes.extend_from_slice(&entry.content_hash.to_le_bytes()));
    xxh3_64(&hashes)
}

/// Hash of a record and its freshness.
fn content_hash(text: u64, second: i64) -> u64 {
    /// An odd number without a pattern, so that nearby seconds give distant values.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    text ^ second.cast_unsigned().wrapping_mul(SPREAD)
}
