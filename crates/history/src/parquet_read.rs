//! Rows of a Parquet file.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use domain::score::Period;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::statistics::Statistics;

use crate::frame::{Frame, Leader, Values};
use crate::source::Source;
use crate::table::{Kind, Table};

/// A file whose rows are read a group at a time.
pub(crate) struct TableReader {
    table: Table,
    pub(crate) file: SerializedFileReader<Source>,
    source: Source,
}

impl fmt::Debug for TableReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableReader").field("table", &self.table).finish_non_exhaustive()
    }
}

impl TableReader {
    pub(crate) fn open(table: Table, source: Source) -> Result<Self> {
        Ok(Self { table, file: SerializedFileReader::new(source.clone())?, source })
    }

    /// How many groups of rows there are.
    pub(crate) fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Whether this program knows all of its columns.
    pub(crate) fn is_known(&self) -> bool {
        let schema = self.file.metadata().file_metadata().schema_descr();
        schema
            .root_schema()
            .get_fields()
            .iter()
            .all(|field| self.table.columns().iter().any(|column| column.name == field.name()))
    }

    /// Adds all rows of a group to a frame.
    pub(crate) fn read(&self, group: usize, frame: &mut Frame) -> Result<()> {
        self.source.prefetch(bytes_of(self.file.metadata().row_group(group)))?;
        read_group(frame, &*self.file.get_row_group(group)?)
    }

    /// All rows of the groups that have entries of `seqs`.
    pub(crate) fn read_entries(&self, seqs: &RangeInclusive<u64>) -> Result<Frame> {
        let mut frame = Frame::new(self.table);
        for at in 0..self.groups() {
            if has_entries(self.file.metadata().row_group(at), seqs) {
                self.read(at, &mut frame)?;
            }
        }
        Ok(frame)
    }
}

/// Where the columns of a row group are.
fn bytes_of(group: &RowGroupMetaData) -> Range<u64> {
    let ranges = || group.columns().iter().map(ColumnChunkMetaData::byte_range);
    let start = ranges().map(|(start, _)| start).min().unwrap_or_default();
    let end = ranges().map(|(start, length)| start.saturating_add(length)).max();
    start..end.unwrap_or(start)
}

/// Whether a row group can have entries of a range.
fn has_entries(group: &RowGroupMetaData, seqs: &RangeInclusive<u64>) -> bool {
    let seq = group.columns().iter().find(|column| column.column_path().string() == "seq");
    let Some(Statistics::Int64(bounds)) = seq.and_then(|seq| seq.statistics()) else { return true };
    let (Some(first), Some(last)) = (bounds.min_opt(), bounds.max_opt()) else { return true };
    first.cast_unsigned() <= *seqs.end() && *seqs.start() <= last.cast_unsigned()
}

fn read_group(frame: &mut Frame, group: &dyn RowGroupReader) -> Result<()> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    read_rows(frame, group, 0..rows)
}

/// Adds some rows of a group to a frame.
pub(crate) fn read_rows(
    frame: &mut Frame,
    group: &dyn RowGroupReader,
    range: Range<usize>,
) -> Result<()> {
    read_cells(frame, group, range, |_| true)
}

/// Adds some columns of some rows of a group to a frame.
pub(crate) fn read_cells(
    frame: &mut Frame,
    group: &dyn RowGroupReader,
    range: Range<usize>,
    wanted: impl Fn(&str) -> bool,
) -> Result<()> {
    let (skipped, rows) = (range.start, range.len());
    let before = frame.rows();
    frame.extend_by(rows);
    let table = frame.table;
    for (at, column) in group.metadata().columns().iter().enumerate() {
        let path = column.column_path().string();
        // Those of lists are named after the list and their place in it.
        let (name, part) = path.split_once('.').unwrap_or((&path, ""));
        if !wanted(name) {
            continue;
        }
        // A column that a newer program has added.
        let Some(place) = frame.column(name) else { continue };
        let Some(kind) = table.columns().get(place).map(|column| column.kind) else { continue };
        let reader = group.get_column_reader(at)?;
        let Frame { values, texts, .. } = &mut *frame;
        match values.get_mut(place) {
            Some(Values::Numbers(values)) if kind == Kind::Flag => {
                let read = read_plain::<BoolType>(reader, skipped, rows)?;
                put(values, before, read.into_iter().map(|value| value.map(i64::from)));
            }
            Some(Values::Numbers(values)) => {
                let read = read_plain::<Int64Type>(reader, skipped, rows)?;
                put(values, before, read);
            }
            Some(Values::Doubles(values)) => {
                let read = read_plain::<DoubleType>(reader, skipped, rows)?;
                put(values, before, read);
            }
            Some(Values::Texts(values)) => {
                let read = read_plain::<ByteArrayType>(reader, skipped, rows)?;
                let read =
                    read.into_iter().map(|value| value.map(|text| texts.intern(text.data())));
                put(values, before, read);
            }
            Some(Values::Periods(values)) => {
                let read = read_list::<Int32Type>(reader, skipped, rows)?;
                put_periods(values.get_mut(before..).unwrap_or_default(), part, &read);
            }
            Some(Values::Leaders(values)) => {
                let values = values.get_mut(before..).unwrap_or_default();
                if part.ends_with("name") {
                    put_names(values, read_list::<ByteArrayType>(reader, skipped, rows)?);
                } else {
                    put_rounds(values, &read_list::<Int32Type>(reader, skipped, rows)?);
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// The values of a list's column, and for each place whether it has one (definition) and what it continues
/// (repetition).
struct Listed<T> {
    values: Vec<T>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

/// A column from one of its rows on.
fn column_from<T: DataType>(reader: ColumnReader, skipped: usize) -> Result<ColumnReaderImpl<T>> {
    let mut reader = get_typed_column_reader::<T>(reader);
    match reader.skip_records(skipped)? == skipped {
        true => Ok(reader),
        false => Err(ParquetError::General("a column is too short".to_owned())),
    }
}

fn read_list<T: DataType>(
    reader: ColumnReader,
    skipped: usize,
    rows: usize,
) -> Result<Listed<T::T>> {
    let mut reader = column_from::<T>(reader, skipped)?;
    let mut read = Listed { values: Vec::new(), definition: Vec::new(), repetition: Vec::new() };
    let Listed { values, definition, repetition } = &mut read;
    let (records, _, _) = reader.read_records(rows, Some(definition), Some(repetition), values)?;
    match records == rows {
        true => Ok(read),
        false => Err(ParquetError::General("a list is too short".to_owned())),
    }
}

/// A number of each period of each row.
fn put_periods(rows: &mut [Box<[Period]>], part: &str, read: &Listed<i32>) {
    let mut values = read.values.iter().copied();
    for (row, numbers) in rows.iter_mut().zip(rows_of(&read.repetition, &read.definition)) {
        let numbers: Vec<i32> =
            numbers.iter().filter(|level| **level > 0).filter_map(|_| values.next()).collect();
        if row.len() != numbers.len() {
            *row = vec![Period { number: 0, home: 0, away: 0 }; numbers.len()].into();
        }
        for (period, number) in row.iter_mut().zip(numbers) {
            match part.rsplit('.').next() {
                Some("number") => period.number = u32::try_from(number).unwrap_or_default(),
                Some("home") => period.home = number,
                _ => period.away = number,
            }
        }
    }
}

fn put_names(rows: &mut [Box<[Leader]>], read: Listed<ByteArray>) {
    let mut names = read.values.into_iter();
    for (row, levels) in rows.iter_mut().zip(rows_of(&read.repetition, &read.definition)) {
        let names = levels.iter().filter(|level| **level > 0).filter_map(|_| names.next());
        let leader = |name: ByteArray| (String::from_utf8_lossy(name.data()).into(), Vec::new());
        *row = names.map(leader).collect();
    }
}

/// The rounds of players whose names were put before.
fn put_rounds(rows: &mut [Box<[Leader]>], read: &Listed<i32>) {
    let (mut values, mut row, mut player) = (read.values.iter().copied(), None, 0);
    for (definition, repetition) in read.definition.iter().zip(&read.repetition) {
        match repetition {
            0 => (row, player) = (Some(row.map_or(0, |row: usize| row + 1)), 0),
            1 => player += 1,
            _ => {}
        }
        let leader = row.and_then(|row| rows.get_mut(row)).and_then(|row| row.get_mut(player));
        if *definition > 1
            && let (Some((_, rounds)), Some(value)) = (leader, values.next())
        {
            rounds.push(value);
        }
    }
}

/// The levels of each row.
fn rows_of<'a>(repetition: &[i16], definition: &'a [i16]) -> Vec<&'a [i16]> {
    let mut begins: Vec<usize> =
        repetition.iter().enumerate().filter(|(_, level)| **level == 0).map(|(at, _)| at).collect();
    begins.push(definition.len());
    begins
        .windows(2)
        .map(|ends| match ends {
            [from, to] => definition.get(*from..*to).unwrap_or_default(),
            _ => &[],
        })
        .collect()
}

fn put<T>(values: &mut [Option<T>], from: usize, read: impl IntoIterator<Item = Option<T>>) {
    for (held, read) in values.iter_mut().skip(from).zip(read) {
        *held = read;
    }
}

fn read_plain<T: DataType>(
    reader: ColumnReader,
    skipped: usize,
    rows: usize,
) -> Result<Vec<Option<T::T>>> {
    let mut reader = column_from::<T>(reader, skipped)?;
    let (mut present, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut read = 0;
    while read < rows {
        let (records, _, _) =
            reader.read_records(rows - read, Some(&mut levels), None, &mut present)?;
        if records == 0 {
            return Err(ParquetError::General("a column is too short".to_owned()));
        }
        read += records;
    }
    if levels.is_empty() {
        return Ok(present.into_iter().map(Some).collect());
    }
    let mut present = present.into_iter();
    Ok(levels.into_iter().map(|level| if level > 0 { present.next() } else { None }).collect())
}
