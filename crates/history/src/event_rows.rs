//! Reads the rows of some events without the others.

use std::ops::Range;

use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, RowGroupReader};

use crate::frame::Frame;
use crate::parquet_read::{TableReader, id_place, may_have, read_cells};
use crate::path::COLUMN_NAMES;

/// Distance of the rows whose ids are compared first in a search for an event, before those in between.
const STRIDE: usize = 512;
/// Number of ids read at a time in a search for the rows of several events.
const IDS_AT_ONCE: usize = 4096;

impl TableReader {
    /// Passes the rows of an event to `take`, in the columns needed for paths, a group at a time. The file's groups
    /// are sorted by event.
    pub(crate) fn read_event(&self, event: &str, mut take: impl FnMut(&Frame)) -> Result<()> {
        for at in 0..self.groups() {
            if may_have(self.file.metadata().row_group(at), event) {
                let group = self.file.get_row_group(at)?;
                let rows = rows_of(&*group, event)?;
                let mut frame = Frame::new(self.table);
                read_path_cells(&mut frame, &*group, &[rows])?;
                take(&frame);
            }
        }
        Ok(())
    }

    /// Adds the rows of events, whose ids are sorted, from a group to a frame.
    pub(crate) fn read_events(
        &self,
        group: usize,
        events: &[String],
        frame: &mut Frame,
    ) -> Result<()> {
        let metadata = self.file.metadata().row_group(group);
        let events = events.iter().filter(|event| may_have(metadata, event));
        let events: Vec<&str> = events.map(String::as_str).collect();
        let group = self.file.get_row_group(group)?;
        let rows = match &*events {
            [] => return Ok(()),
            [event] => vec![rows_of(&*group, event)?],
            events => rows_of_all(&*group, events)?,
        };
        read_path_cells(frame, &*group, &rows)
    }

    /// Adds some columns of all rows of a group to a frame.
    pub(crate) fn read_columns(
        &self,
        group: usize,
        frame: &mut Frame,
        names: &[&str],
    ) -> Result<()> {
        let group = self.file.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows())?;
        let all = 0..rows;
        read_cells(frame, &*group, &[all], |name| names.contains(&name))
    }
}

fn read_path_cells(
    frame: &mut Frame,
    group: &dyn RowGroupReader,
    rows: &[Range<usize>],
) -> Result<()> {
    if rows.iter().all(Range::is_empty) {
        return Ok(());
    }
    read_cells(frame, group, rows, |name| COLUMN_NAMES.contains(&name))?;
    frame.fill();
    Ok(())
}

/// A sequential reader of the ids of a group's rows.
struct Ids {
    column: ColumnReaderImpl<ByteArrayType>,
    at: usize,
    read: Vec<ByteArray>,
}

impl Ids {
    /// `None`: the group has no such column.
    fn of(group: &dyn RowGroupReader) -> Result<Option<Self>> {
        let Some(place) = id_place(group.metadata()) else { return Ok(None) };
        let column = get_typed_column_reader::<ByteArrayType>(group.get_column_reader(place)?);
        Ok(Some(Self { column, at: 0, read: Vec::with_capacity(IDS_AT_ONCE) }))
    }

    /// The ids of some rows, which must come after all rows read before.
    fn read(&mut self, rows: Range<usize>) -> Result<&[ByteArray]> {
        let short = || ParquetError::General("a column is too short".to_owned());
        let over = rows.start.saturating_sub(self.at);
        if over > 0 && self.column.skip_records(over)? != over {
            return Err(short());
        }
        self.read.clear();
        while self.read.len() < rows.len() {
            let left = rows.len() - self.read.len();
            if self.column.read_records(left, None, None, &mut self.read)?.0 == 0 {
                return Err(short());
            }
        }
        self.at = rows.end;
        Ok(&self.read)
    }
}

/// The rows of an event in a group.
fn rows_of(group: &dyn RowGroupReader, event: &str) -> Result<Range<usize>> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    let (Some(mut samples), Some(mut ids)) = (Ids::of(group)?, Ids::of(group)?) else {
        return Ok(0..0);
    };
    // Between the last sample before the event, and the first one after it.
    let (mut low, mut high) = (0, rows);
    for at in (0..rows).step_by(STRIDE) {
        match samples.read(at..at + 1)? {
            [id] if id.data() < event.as_bytes() => low = at,
            [id] if id.data() > event.as_bytes() => {
                high = at;
                break;
            }
            _ => {}
        }
    }
    // The first row is near the former, and the end near the latter.
    let first_end = high.min(low + STRIDE + 1);
    let read = ids.read(low..first_end)?;
    let first = low + read.partition_point(|id| id.data() < event.as_bytes());
    let end = low + read.partition_point(|id| id.data() <= event.as_bytes());
    if end < first_end || first_end == high {
        return Ok(first..end);
    }
    let last_begin = first_end.max(high.saturating_sub(STRIDE + 1));
    let read = ids.read(last_begin..high)?;
    Ok(first..last_begin + read.partition_point(|id| id.data() <= event.as_bytes()))
}

/// The rows of events, whose ids are sorted, in a group.
fn rows_of_all(group: &dyn RowGroupReader, events: &[&str]) -> Result<Vec<Range<usize>>> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    let Some(mut ids) = Ids::of(group)? else { return Ok(Vec::new()) };
    let mut found: Vec<Range<usize>> = Vec::new();
    for from in (0..rows).step_by(IDS_AT_ONCE) {
        let mut at = from;
        for same in
            ids.read(from..rows.min(from + IDS_AT_ONCE))?.chunk_by(|one, other| one == other)
        {
            let end = at + same.len();
            let id = same.first().map_or(&[][..], ByteArray::data);
            if events.binary_search_by(|event| event.as_bytes().cmp(id)).is_ok() {
                match found.last_mut() {
                    Some(last) if last.end == at => last.end = end,
                    Some(_) | None => found.push(at..end),
                }
            }
            at = end;
        }
    }
    Ok(found)
}
