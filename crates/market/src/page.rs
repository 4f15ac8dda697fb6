//! A page of odds: shares of events, one after the other, up to a limit.

use std::sync::Arc;

use bytes::Bytes;
use domain::Format;
use xxhash_rust::xxh3::xxh3_128;

use crate::cursor::Cursor;
use crate::share::{Filter, Need, Share};
use crate::snapshot::SportView;

/// A page of odds records: the JSON array of them, in pieces that follow each other.
#[derive(Debug)]
pub struct OddsPage {
    pub pieces: Vec<Bytes>,
    /// Made without looking at all of the body: bodies that differ have names that differ, but for chance.
    pub name: u128,
    pub records: usize,
    /// Where the next page starts, if there is one.
    pub next: Option<Cursor>,
}

impl OddsPage {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    }
}

/// A page being put together.
#[derive(Debug)]
pub(crate) struct Draft {
    limit: usize,
    pieces: Vec<Bytes>,
    /// What was copied since the last piece.
    copied: Vec<u8>,
    names: Vec<u8>,
    pub(crate) records: usize,
    /// The position of the last record.
    pub(crate) last: Option<u32>,
    /// There are more records than fit.
    pub(crate) more: bool,
}

/// Text that is shorter is copied: a piece of its own costs more.
const PIECE_BYTES_MIN: usize = 1 << 10;
/// Room for the shares of as many events as most answers have.
const SHARES: usize = 8;

impl Draft {
    pub(crate) fn new(format: Format, limit: usize) -> Self {
        let mut names = Vec::with_capacity(size_of::<u64>() * SHARES + 1);
        names.push(format as u8);
        let mut pieces = Vec::with_capacity(SHARES + 2);
        pieces.push(Bytes::from_static(b"["));
        Self { limit, pieces, copied: Vec::new(), names, records: 0, last: None, more: false }
    }

    /// Adds an event's records from a position on, as far as they fit.
    pub(crate) fn add(&mut self, view: &SportView, event: usize, filter: &Filter, from: u32) {
        let room = self.limit - self.records;
        // One more than fits tells that there are more.
        let need = Need { from, count: room.saturating_add(1) };
        let Some(share) = view.share(event, filter, need) else { return };
        let first = share.entries.partition_point(|entry| entry.position < from);
        let end = share.entries.len().min(first.saturating_add(room));
        self.more = end < share.entries.len();
        self.put(&share, first, end);
    }

    fn put(&mut self, share: &Arc<Share>, from: usize, to: usize) {
        let Some(last) = to.checked_sub(1).filter(|last| *last >= from) else { return };
        self.records += to - from;
        self.last = share.entries.get(last).map(|entry| entry.position);
        self.names.extend_from_slice(&share.name_of(from, to).to_le_bytes());
        let text = share.text_of(from, to);
        if text.len() < PIECE_BYTES_MIN {
            self.copied.extend_from_slice(text);
        } else {
            self.end_copied();
            self.pieces.push(share.text.slice_ref(text));
        }
    }

    fn end_copied(&mut self) {
        if !self.copied.is_empty() {
            self.pieces.push(Bytes::from(std::mem::take(&mut self.copied)));
        }
    }

    /// The page, with `next` as its next.
    pub(crate) fn end(mut self, next: Option<Cursor>) -> OddsPage {
        self.end_copied();
        let Self { mut pieces, names, records, .. } = self;
        if let (Some(last), true) = (pieces.last_mut(), records > 0) {
            // The comma after the last record.
            last.truncate(last.len().saturating_sub(1));
        }
        pieces.push(Bytes::from_static(b"]"));
        OddsPage { pieces, name: xxh3_128(&names), records, next }
    }
}
