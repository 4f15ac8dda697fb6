//! Records put together from their texts: those of one event side by side where that pays.
//!
//! Most answers hold all records of an event, or many that are neighbours. The first such answer of an epoch copies the
//! event's records, with their freshness stamped in, into one block for each format; every further one takes its share of
//! the block in one piece, without a copy, and does not go through the memory of a large market record by record. Blocks live and die
//! with the snapshot, so their stamps are always right, and together they are at most as large as its texts.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use domain::Format;

use crate::render::RecordText;
use crate::snapshot::{EventRow, RecordRow, SportView};

/// An event's records in each format, once asked for.
#[derive(Debug, Default)]
pub(crate) struct Blocks([OnceLock<Block>; 3]);

/// All records of an event in one format, each followed by a comma.
#[derive(Debug)]
struct Block {
    text: Bytes,
    /// Where each record ends.
    ends: Box<[u32]>,
    names: Box<[u8]>,
}

/// Neighbouring records of one event.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    rows: &'a [RecordRow],
    format: Format,
    /// The block they are in, and their places there.
    block: Option<(&'a Block, Range<usize>)>,
}

/// Records one after the other, each with a comma after it, and their names.
#[derive(Debug)]
pub(crate) struct Gathered {
    pieces: Vec<Bytes>,
    /// What was copied since the last piece.
    copied: Vec<u8>,
    names: Vec<u8>,
}

/// Fewer than this part of an event's records are not worth a block.
const WORTH: usize = 4;
/// A share of a block that is smaller is copied: a piece of its own costs more.
const PIECE_BYTES_MIN: usize = 1 << 10;

impl SportView {
    /// Positions in order, as runs of neighbours.
    pub(crate) fn runs(&self, positions: &[u32], format: Format) -> Vec<Run<'_>> {
        let mut runs = Vec::with_capacity(positions.len());
        let mut rest = positions;
        while let Some(event) = rest.first().and_then(|at| self.event_at(*at)) {
            // Positions are in order, and an event's records lie together.
            let (wanted, others) =
                rest.split_at(rest.partition_point(|at| *at < event.records.end).max(1));
            rest = others;
            let block = self.block(event, wanted.len(), format);
            let together = wanted.chunk_by(|one, next| one + 1 == *next);
            runs.extend(together.filter_map(|run| {
                let (first, last) = (*run.first()?, *run.last()?);
                let rows = self.rows(&(first..last + 1))?;
                let from = index(first - event.records.start);
                Some(Run {
                    rows,
                    format,
                    block: block.map(|block| (block, from..from + rows.len())),
                })
            }));
        }
        runs
    }

    fn event_at(&self, position: u32) -> Option<&EventRow> {
        self.events.get(index(self.record(position)?.event))
    }

    fn rows(&self, positions: &Range<u32>) -> Option<&[RecordRow]> {
        self.records.get(index(positions.start)..index(positions.end))
    }

    /// The event's block, if it is there or so many records of it are worth one.
    fn block<'a>(&self, event: &'a EventRow, wanted: usize, format: Format) -> Option<&'a Block> {
        let Blocks([american, decimal, fractional]) = &event.blocks;
        let cell = match format {
            Format::American => american,
            Format::Decimal => decimal,
            Format::Fractional => fractional,
        };
        if wanted * WORTH >= event.records.len() {
            let rows = self.rows(&event.records)?;
            return Some(cell.get_or_init(|| Block::new(rows, format)));
        }
        cell.get()
    }
}

impl Run<'_> {
    /// How many bytes are copied when this is put somewhere.
    fn copied_bytes(&self) -> usize {
        match &self.block {
            Some((block, places)) => Some(block.bytes(places).len())
                .filter(|length| *length < PIECE_BYTES_MIN)
                .unwrap_or_default(),
            None => self.rows.iter().map(|row| length(row, self.format)).sum(),
        }
    }

    /// Appends each record and a comma, and what names it.
    fn write(&self, out: &mut Vec<u8>, names: &mut Vec<u8>) {
        // Neighbouring records mostly share their freshness to the second.
        let mut stamp = (i64::MIN, [0; 20]);
        for row in self.rows {
            let Some(text) = row.text() else { continue };
            let second = row.last_update.as_secs();
            if stamp.0 != second {
                stamp = (second, row.last_update.seconds_text());
            }
            text.write(self.format, &stamp.1, out);
            out.push(b',');
            names.extend_from_slice(&name(text, second).to_le_bytes());
        }
    }
}

impl Gathered {
    /// An array of these runs, in pieces, and what names it: its format and each record.
    pub(crate) fn array(runs: &[Run<'_>], format: Format) -> (Vec<Bytes>, Vec<u8>) {
        let records: usize = runs.iter().map(|run| run.rows.len()).sum();
        // Texts lie all over the memory of a large market. Asking for their lengths first brings them in while nothing
        // waits for them yet, and gives what is copied its true size.
        let copied = runs.iter().map(Run::copied_bytes).sum::<usize>();
        let mut gathered = Self {
            pieces: Vec::with_capacity(2 * runs.len() + 2),
            copied: Vec::with_capacity(copied),
            names: Vec::with_capacity(NAME_BYTES * records + 1),
        };
        gathered.names.push(format as u8);
        gathered.pieces.push(Bytes::from_static(b"["));
        runs.iter().for_each(|run| gathered.put(run));
        gathered.end_copied();
        let Self { mut pieces, names, .. } = gathered;
        if let (Some(last), false) = (pieces.last_mut(), runs.is_empty()) {
            // The comma after the last record.
            last.truncate(last.len().saturating_sub(1));
        }
        pieces.push(Bytes::from_static(b"]"));
        (pieces, names)
    }

    fn put(&mut self, run: &Run<'_>) {
        let Some((block, places)) = &run.block else {
            run.write(&mut self.copied, &mut self.names);
            return;
        };
        self.names.extend_from_slice(block.names(places));
        let share = block.bytes(places);
        if share.len() < PIECE_BYTES_MIN {
            self.copied.extend_from_slice(share);
        } else {
            self.end_copied();
            self.pieces.push(block.text.slice_ref(share));
        }
    }

    fn end_copied(&mut self) {
        if !self.copied.is_empty() {
            self.pieces.push(Bytes::from(std::mem::take(&mut self.copied)));
        }
    }
}

/// What a record and its comma take.
fn length(row: &RecordRow, format: Format) -> usize {
    row.text().map_or(0, |text| text.len(format) + 1)
}

/// Names a record and its freshness.
fn name(text: &RecordText, second: i64) -> u64 {
    /// An odd number without a pattern: it sends seconds that are near each other far apart.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    text.hash() ^ second.cast_unsigned().wrapping_mul(SPREAD)
}

/// What one record's name takes.
const NAME_BYTES: usize = size_of::<u64>();

impl Block {
    fn new(rows: &[RecordRow], format: Format) -> Self {
        let run = Run { rows, format, block: None };
        let mut ends = Vec::with_capacity(rows.len());
        let mut end = 0;
        for row in rows {
            end += length(row, format);
            ends.push(u32::try_from(end).unwrap_or(u32::MAX));
        }
        let mut text = Vec::with_capacity(end);
        let mut names = Vec::with_capacity(NAME_BYTES * rows.len());
        run.write(&mut text, &mut names);
        Self { text: text.into(), ends: ends.into(), names: names.into() }
    }

    fn bytes(&self, places: &Range<usize>) -> &[u8] {
        let end_of = |place: usize| self.ends.get(place).map_or(0, |end| index(*end));
        let from = places.start.checked_sub(1).map_or(0, end_of);
        let to = places.end.checked_sub(1).map_or(0, end_of);
        self.text.get(from..to).unwrap_or_default()
    }

    fn names(&self, places: &Range<usize>) -> &[u8] {
        self.names.get(NAME_BYTES * places.start..NAME_BYTES * places.end).unwrap_or_default()
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
