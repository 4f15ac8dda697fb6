//! An event's share of an answer: those of its records that a filter lets through, side by side.
//!
//! Most clients use one of a few filters: their region, their format, perhaps a market. The first answer of an epoch
//! that needs an event under such a filter puts the event's records together, with their freshness stamped in; every
//! further one, whatever else it selects, takes the share in one piece, without a copy and without looking at a single
//! record. An answer then costs what its events are, not what its records are, and does not go through the memory of a
//! large market record by record.
//!
//! Shares live and die with the snapshot, so their stamps are always right. Both the filters and the bytes that are
//! kept are bounded; what comes after is put together for its answer alone, no further than the answer needs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use domain::{BookmakerId, BookmakerSet, Format, Market};
use xxhash_rust::xxh3::xxh3_64;

use crate::snapshot::{EventRow, RecordRow, SportView};

/// Which records of an event an answer shows, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) bookmakers: BookmakerSet,
    pub(crate) market: Option<Market>,
    pub(crate) format: Format,
}

/// The records of an event that a filter lets through, in order, each followed by a comma.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) text: Bytes,
    pub(crate) entries: Box<[Entry]>,
    /// Of all entries.
    name: u64,
}

/// One record of a share.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Where it stands among the sport's records.
    pub(crate) position: u32,
    /// Where its text ends.
    pub(crate) end: u32,
    /// Names what it says and its freshness.
    name: u64,
}

/// The shares kept for each of the first filters of an epoch.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    layers: [OnceLock<Layer>; LAYERS],
    kept_bytes: AtomicUsize,
}

#[derive(Debug)]
struct Layer {
    filter: Filter,
    /// For each event of the sport.
    shares: Box<[OnceLock<Arc<Share>>]>,
}

/// Filters that shares are kept for.
const LAYERS: usize = 16;
/// What may be kept for each record of the sport. A record's texts take about twice as much.
const KEPT_BYTES_A_RECORD: usize = 512;

/// The part of an event that an answer still needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// The first position.
    pub(crate) from: u32,
    /// The most records.
    pub(crate) count: usize,
}

impl Filter {
    fn lets_through(&self, (bookmaker, market): (BookmakerId, Market)) -> bool {
        self.bookmakers.contains(bookmaker) && self.market.is_none_or(|wanted| wanted == market)
    }
}

impl SportView {
    /// An event's share: at least what is needed of it, and all of it where it is kept.
    pub(crate) fn share(&self, event: usize, filter: &Filter, need: Need) -> Option<Arc<Share>> {
        let row = self.events.get(event)?;
        let Some(cell) =
            self.shares.layer(filter, self.events.len()).and_then(|layer| layer.shares.get(event))
        else {
            return Some(Arc::new(self.put_together(row, filter, need)));
        };
        if let Some(kept) = cell.get() {
            return Some(Arc::clone(kept));
        }
        let room = KEPT_BYTES_A_RECORD * self.records.len();
        if self.shares.kept_bytes() >= room {
            return Some(Arc::new(self.put_together(row, filter, need)));
        }
        let kept = cell.get_or_init(|| {
            let whole = self.put_together(row, filter, Need { from: 0, count: usize::MAX });
            self.shares.kept_bytes.fetch_add(whole.bytes(), Ordering::Relaxed);
            Arc::new(whole)
        });
        Some(Arc::clone(kept))
    }

    fn put_together(&self, event: &EventRow, filter: &Filter, need: Need) -> Share {
        let positions = event.records.start.max(need.from)..event.records.end;
        let wanted =
            positions.filter(|at| self.kind(*at).is_some_and(|kind| filter.lets_through(kind)));
        let rows: Vec<(u32, &RecordRow)> =
            wanted.take(need.count).filter_map(|at| Some((at, self.record(at)?))).collect();
        Share::new(&rows, filter.format)
    }
}

impl Shares {
    /// The shares of a filter, if it is or becomes one of those that shares are kept for.
    fn layer(&self, filter: &Filter, events: usize) -> Option<&Layer> {
        let make = || {
            let shares: Box<[_]> = std::iter::repeat_with(OnceLock::new).take(events).collect();
            self.kept_bytes.fetch_add(size_of_val(&*shares), Ordering::Relaxed);
            Layer { filter: *filter, shares }
        };
        let mut layers = self.layers.iter().map(|cell| cell.get_or_init(make));
        layers.find(|layer| layer.filter == *filter)
    }

    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes.load(Ordering::Relaxed)
    }
}

impl Share {
    fn new(rows: &[(u32, &RecordRow)], format: Format) -> Self {
        // Texts lie all over the memory of a large market. Asking for their lengths first brings them in while nothing
        // waits for them yet, and gives the copy its true size.
        let length = |row: &RecordRow| row.text().map_or(0, |text| text.len(format) + 1);
        let mut text = Vec::with_capacity(rows.iter().map(|(_, row)| length(row)).sum());
        let mut entries = Vec::with_capacity(rows.len());
        // Neighbouring records mostly share their freshness to the second.
        let mut stamp = (i64::MIN, [0; 20]);
        for (position, row) in rows {
            let Some(record) = row.text() else { continue };
            let second = row.last_update.as_secs();
            if stamp.0 != second {
                stamp = (second, row.last_update.seconds_text());
            }
            record.write(format, &stamp.1, &mut text);
            text.push(b',');
            let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
            entries.push(Entry { position: *position, end, name: name(record.hash(), second) });
        }
        let name = name_of(&entries);
        Self { text: text.into(), entries: entries.into(), name }
    }

    /// The text of entries.
    pub(crate) fn text_of(&self, from: usize, to: usize) -> &[u8] {
        let end_before = |place: usize| {
            let last = place.checked_sub(1).and_then(|last| self.entries.get(last));
            last.map_or(0, |entry| usize::try_from(entry.end).unwrap_or(usize::MAX))
        };
        self.text.get(end_before(from)..end_before(to)).unwrap_or_default()
    }

    /// Names entries: others have the same name only by chance.
    pub(crate) fn name_of(&self, from: usize, to: usize) -> u64 {
        if from == 0 && to == self.entries.len() {
            return self.name;
        }
        name_of(self.entries.get(from..to).unwrap_or_default())
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len() + size_of_val(&*self.entries)
    }
}

fn name_of(entries: &[Entry]) -> u64 {
    let mut names = Vec::with_capacity(size_of::<u64>() * entries.len());
    entries.iter().for_each(|entry| names.extend_from_slice(&entry.name.to_le_bytes()));
    xxh3_64(&names)
}

/// Names a record and its freshness.
fn name(text: u64, second: i64) -> u64 {
    /// An odd number without a pattern: it sends seconds that are near each other far apart.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    text ^ second.cast_unsigned().wrapping_mul(SPREAD)
}
