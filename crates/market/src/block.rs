//! Records put together from their texts: those of one event side by side where that pays.
//!
//! Most answers hold all records of an event, or many that are neighbours. The first such answer of an epoch copies the
//! event's records, with their freshness stamped in, into one block for each format; every further one takes its share of
//! the block in one piece, and does not go through the memory of a large market record by record. Blocks live and die
//! with the snapshot, so their stamps are always right, and together they are at most as large as its texts.

use std::ops::Range;
use std::sync::OnceLock;

use domain::Format;

use crate::render::RecordText;
use crate::snapshot::{EventRow, RecordRow, SportView};

/// An event's records in each format, once asked for.
#[derive(Debug, Default)]
pub(crate) struct Blocks([OnceLock<Block>; 3]);

/// All records of an event in one format, each followed by a comma.
#[derive(Debug)]
struct Block {
    text: Box<[u8]>,
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

/// A run that is shorter than this part of its event is not worth a block.
const WORTH: usize = 4;

impl SportView {
    /// Positions in order, as runs of neighbours.
    pub(crate) fn runs<'a>(
        &'a self,
        positions: &'a [u32],
        format: Format,
    ) -> impl Iterator<Item = Run<'a>> {
        let neighbours = move |one: &u32, next: &u32| {
            one + 1 == *next
                && self.record(*one).map(|row| row.event) == self.record(*next).map(|row| row.event)
        };
        positions.chunk_by(neighbours).filter_map(move |run| {
            let (first, last) = (*run.first()?, *run.last()?);
            let rows = self.rows(&(first..last + 1))?;
            let event = self.events.get(index(rows.first()?.event))?;
            let block = self.block(event, rows.len(), format).map(|block| {
                let from = index(first - event.records.start);
                (block, from..from + rows.len())
            });
            Some(Run { rows, format, block })
        })
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
    /// How many bytes [`Run::write`] appends.
    pub(crate) fn len(&self) -> usize {
        match &self.block {
            Some((block, places)) => block.bytes(places).len(),
            None => self.rows.iter().map(|row| length(row, self.format)).sum(),
        }
    }

    /// Appends each record and a comma, and what names it.
    pub(crate) fn write(&self, out: &mut Vec<u8>, names: &mut Vec<u8>) {
        match &self.block {
            Some((block, places)) => {
                out.extend_from_slice(block.bytes(places));
                names.extend_from_slice(block.names(places));
            }
            None => self.write_each(out, names),
        }
    }

    fn write_each(&self, out: &mut Vec<u8>, names: &mut Vec<u8>) {
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
        run.write_each(&mut text, &mut names);
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
