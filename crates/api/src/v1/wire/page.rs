//! Pages: rows as a JSON array. A page of odds is a sequence of event fragments, up to a limit.

use std::ops::ControlFlow;

use bytes::Bytes;
use domain::Format;
use market::Snapshot;
use market::select::{Cursor, OddsSelection};
use xxhash_rust::xxh3::xxh3_128;

use crate::v1::wire::event_fragment::{EventFragment, Filter, FragmentSource, Fragments, Need};

/// A page of odds records: the JSON array, in consecutive pieces.
#[derive(Debug)]
pub(super) struct OddsPage {
    pub(super) pieces: Vec<Bytes>,
    /// Computed without reading the whole body: different bodies have equal hashes only by chance.
    pub(super) content_hash: u128,
    /// Start of the next page, if there is one.
    pub(super) next: Option<Cursor>,
}

/// A page being assembled.
#[derive(Debug)]
struct PageBuilder {
    limit: usize,
    pieces: Vec<Bytes>,
    /// Bytes copied since the last piece.
    copied: Vec<u8>,
    hashes: Vec<u8>,
    records: usize,
    /// Position of the last record.
    last: Option<u32>,
    /// True if there are more records than fit.
    more: bool,
}

/// Minimum size of a separate piece; shorter text is copied because a piece costs more.
const PIECE_BYTES_MIN: usize = 1 << 10;
/// Initial capacity in fragments, enough for most responses.
const FRAGMENTS: usize = 8;

impl OddsPage {
    /// Builds the page of the selected records.
    pub(super) fn new(
        selection: &OddsSelection,
        format: Format,
        snapshot: &Snapshot,
        fragments: &Fragments,
    ) -> Self {
        let OddsSelection { sport, bookmakers, market, limit, .. } = *selection;
        let filter = Filter { bookmakers, market, format };
        let source = FragmentSource::new(fragments, snapshot, sport, filter);
        let mut builder = PageBuilder::new(format, limit);
        selection.visit_events(snapshot, |event, from| {
            builder.add(&source, event, from);
            if builder.more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let view = snapshot.sport(sport);
        let last = builder.last.filter(|_| builder.more).and_then(|last| view.record(last));
        let next = last.map(|last| view.cursor_of(snapshot.catalogue(), last));
        builder.end(next)
    }
}

impl PageBuilder {
    fn new(format: Format, limit: usize) -> Self {
        let mut hashes = Vec::with_capacity(size_of::<u64>() * FRAGMENTS + 1);
        hashes.push(format as u8);
        let mut pieces = Vec::with_capacity(FRAGMENTS + 2);
        pieces.push(Bytes::from_static(b"["));
        Self { limit, pieces, copied: Vec::new(), hashes, records: 0, last: None, more: false }
    }

    /// Adds an event's records from a position on, as far as they fit.
    fn add(&mut self, source: &FragmentSource<'_>, event: usize, from: u32) {
        let room = self.limit - self.records;
        // One more than fits shows that there are more.
        let need = Need { from, count: room.saturating_add(1) };
        let Some(fragment) = source.fragment(event, need) else { return };
        let first = fragment.entries.partition_point(|entry| entry.position < from);
        let end = fragment.entries.len().min(first.saturating_add(room));
        self.more = end < fragment.entries.len();
        self.put(&fragment, first, end);
    }

    fn put(&mut self, fragment: &EventFragment, from: usize, to: usize) {
        let Some(last) = to.checked_sub(1).filter(|last| *last >= from) else { return };
        self.records += to - from;
        self.last = fragment.entries.get(last).map(|entry| entry.position);
        self.hashes.extend_from_slice(&fragment.content_hash(from, to).to_le_bytes());
        let text = fragment.text_of(from, to);
        if text.len() < PIECE_BYTES_MIN {
            self.copied.extend_from_slice(text);
        } else {
            self.end_copied();
            self.pieces.push(fragment.text.slice_ref(text));
        }
    }

    fn end_copied(&mut self) {
        if !self.copied.is_empty() {
            self.pieces.push(Bytes::from(std::mem::take(&mut self.copied)));
        }
    }

    /// Finishes the page; `next` is the start of the next one.
    fn end(mut self, next: Option<Cursor>) -> OddsPage {
        self.end_copied();
        let Self { mut pieces, hashes, records, .. } = self;
        if let (Some(last), true) = (pieces.last_mut(), records > 0) {
            // The comma after the last record.
            last.truncate(last.len().saturating_sub(1));
        }
        pieces.push(Bytes::from_static(b"]"));
        OddsPage { pieces, content_hash: xxh3_128(&hashes), next }
    }
}

/// A JSON array of rendered texts.
pub(super) fn array<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = vec![b'['];
    for (i, text) in texts.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(text);
    }
    out.push(b']');
    out
}
