//! The rows of one event, without the rest.

use std::ops::Range;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::ByteArrayType;
use parquet::errors::Result;
use parquet::file::reader::FileReader;

use crate::frame::Frame;
use crate::parquet_read::{TableReader, id_place, may_have, read_cells, read_rows};

/// Ids that are read at a time while the rows of an event are looked for.
const IDS_AT_ONCE: usize = 4096;

impl TableReader {
    /// Adds the rows of an event to a frame. The file's groups are sorted by event.
    pub(crate) fn read_event(&self, event: &str, frame: &mut Frame) -> Result<()> {
        for at in 0..self.groups() {
            let metadata = self.file.metadata().row_group(at);
            if !may_have(metadata, event) {
                continue;
            }
            let rows = self.rows_of(at, event)?;
            if !rows.is_empty() {
                read_rows(frame, &*self.file.get_row_group(at)?, rows)?;
            }
        }
        Ok(())
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

    /// Which rows of a group are of an event.
    fn rows_of(&self, group: usize, event: &str) -> Result<Range<usize>> {
        let group = self.file.get_row_group(group)?;
        let Some(column) = id_place(group.metadata()) else { return Ok(0..0) };
        let mut ids = get_typed_column_reader::<ByteArrayType>(group.get_column_reader(column)?);
        let (mut read, mut found) = (Vec::with_capacity(IDS_AT_ONCE), None);
        let mut from = 0;
        loop {
            read.clear();
            let (rows, _, _) = ids.read_records(IDS_AT_ONCE, None, None, &mut read)?;
            let first = read.partition_point(|id| id.data() < event.as_bytes());
            let end = read.partition_point(|id| id.data() <= event.as_bytes());
            if found.is_none() && first < end {
                found = Some(from + first);
            }
            // All that follow are of later events.
            if rows == 0 || end < read.len() {
                return Ok(found.map_or(0..0, |first| first..from + end));
            }
            from += rows;
        }
    }
}
