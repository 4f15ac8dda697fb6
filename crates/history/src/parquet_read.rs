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

use crate::frame::{Frame, Leader, Texts, Values};
use crate::source::Source;
use crate::table::{Kind, Table};

/// A file whose rows are read one group at a time.
pub(crate) struct TableReader {
    pub(crate) table: Table,
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

    /// Number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Metadata of a group.
    pub(crate) fn metadata(&self, group: usize) -> &RowGroupMetaData {
        self.file.metadata().row_group(group)
    }

    /// True if this program knows all of its columns.
    pub(crate) fn is_known(&self) -> bool {
        let schema = self.file.metadata().file_metadata().schema_descr();
        schema
            .root_schema()
            .get_fields()
            .iter()
            .all(|field| self.table.columns().iter().any(|column| column.name == field.name()))
    }

    /// True if a group may have rows of some entries.
    pub(crate) fn may_have_entries(&self, group: usize, seqs: &RangeInclusive<u64>) -> bool {
        let bounds = bounds(self.metadata(group));
        bounds.is_some_and(|(first, last)| first <= *seqs.end() && *seqs.start() <= last)
    }

    /// Reads a group of a bucket in one request, because many of its columns are read next.
    pub(crate) fn prefetch(&self, group: usize) -> Result<()> {
        self.source.prefetch(bytes_of(self.metadata(group)))
    }

    /// Adds all rows of a group to a frame.
    pub(crate) fn read(&self, group: usize, frame: &mut Frame) -> Result<()> {
        self.prefetch(group)?;
        read_group(frame, &*self.file.get_row_group(group)?)
    }

    /// The rows of some entries, with the columns that entries are rebuilt from.
    pub(crate) fn read_entries(&self, wanted: &WantedEntries<'_>) -> Result<Frame> {
        let mut frame = Frame::new(self.table);
        let columns = self.table.entry_columns();
        for at in 0..self.groups() {
            let metadata = self.file.metadata().row_group(at);
            let by_event = self.table.order().first() == Some(&"event_id");
            let (Some((first, last)), events) = (bounds(metadata), wanted.events) else { continue };
            let is_in = first <= *wanted.seqs.end() && *wanted.seqs.start() <= last;
            let may = |event: &String| !by_event || may_have(metadata, event);
            if !is_in || !events.is_none_or(|events| events.iter().any(may)) {
                continue;
            }
            self.source.prefetch(bytes_of(metadata))?;
            let group = self.file.get_row_group(at)?;
            let whole = *wanted.seqs.start() <= first && last <= *wanted.seqs.end();
            let all = 0..usize::try_from(metadata.num_rows())?;
            let rows = match whole && events.is_none() {
                true => vec![all],
                false => self.rows_with(&*group, wanted)?,
            };
            if !rows.is_empty() {
                read_cells(&mut frame, &*group, &rows, |name| columns.contains(&name))?;
            }
        }
        Ok(frame)
    }

    /// The rows of a group that belong to the wanted entries.
    fn rows_with(
        &self,
        group: &dyn RowGroupReader,
        wanted: &WantedEntries<'_>,
    ) -> Result<Vec<Range<usize>>> {
        let mut frame = Frame::new(self.table);
        let all = 0..usize::try_from(group.metadata().num_rows())?;
        let of_event = |name: &str| name == "event_id" && wanted.events.is_some();
        read_cells(&mut frame, group, &[all], |name| name == "seq" || of_event(name))?;
        let [seq, event] = ["seq", "event_id"].map(|name| frame.column(name));
        let is_wanted = |row: usize| {
            let is_in = |seq: i64| wanted.seqs.contains(&seq.cast_unsigned());
            let is_of = |events: &[String]| {
                let own = frame.text(event, row);
                own.is_none_or(|own| events.iter().any(|event| event == own))
            };
            frame.number(seq, row).is_some_and(is_in) && wanted.events.is_none_or(is_of)
        };
        let mut rows: Vec<Range<usize>> = Vec::new();
        for row in (0..frame.rows()).filter(|row| is_wanted(*row)) {
            match rows.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                Some(_) | None => rows.push(row..row + 1),
            }
        }
        Ok(rows)
    }
}

/// A selection of entries to read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedEntries<'a> {
    pub(crate) seqs: &'a RangeInclusive<u64>,
    /// If set, only prices and confirmations of these events are read, but everything else.
    pub(crate) events: Option<&'a [String]>,
}

/// Byte range of the columns of a row group.
fn bytes_of(group: &RowGroupMetaData) -> Range<u64> {
    let ranges = || group.columns().iter().map(ColumnChunkMetaData::byte_range);
    let start = ranges().map(|(start, _)| start).min().unwrap_or_default();
    let end = ranges().map(|(start, length)| start.saturating_add(length)).max();
    start..end.unwrap_or(start)
}

/// Bounds of the entries in a row group; `None`: it has no rows.
fn bounds(group: &RowGroupMetaData) -> Option<(u64, u64)> {
    let known = number_bounds(group, "seq");
    let known = known.map(|(first, last)| (first.cast_unsigned(), last.cast_unsigned()));
    (group.num_rows() > 0).then(|| known.unwrap_or((0, u64::MAX)))
}

/// The minimum and maximum of a column in a row group, if known.
pub(crate) fn number_bounds(group: &RowGroupMetaData, name: &str) -> Option<(i64, i64)> {
    let column = group.columns().iter().find(|column| column.column_path().string() == name)?;
    let Statistics::Int64(bounds) = column.statistics()? else { return None };
    bounds.min_opt().copied().zip(bounds.max_opt().copied())
}

/// Index of the column with the ids of events.
pub(crate) fn id_place(group: &RowGroupMetaData) -> Option<usize> {
    group.columns().iter().position(|column| column.column_path().string() == "event_id")
}

/// True if a group may have rows of an event.
pub(crate) fn may_have(group: &RowGroupMetaData, event: &str) -> bool {
    let column = id_place(group).and_then(|at| group.columns().get(at));
    let Some(Statistics::ByteArray(bounds)) = column.and_then(|column| column.statistics()) else {
        return true;
    };
    let (Some(first), Some(last)) = (bounds.min_opt(), bounds.max_opt()) else { return true };
    (first.data()..=last.data()).contains(&event.as_bytes())
}

fn read_group(frame: &mut Frame, group: &dyn RowGroupReader) -> Result<()> {
    let all = 0..usize::try_from(group.metadata().num_rows())?;
    read_cells(frame, group, &[all], |_| true)?;
    frame.fill();
    Ok(())
}

/// Adds some columns of some rows of a group to a frame. Unwanted columns may have fewer values.
pub(crate) fn read_cells(
    frame: &mut Frame,
    group: &dyn RowGroupReader,
    rows: &[Range<usize>],
    wanted: impl Fn(&str) -> bool,
) -> Result<()> {
    let before = frame.rows();
    frame.extend_by(rows.iter().map(Range::len).sum());
    let after = frame.rows();
    let table = frame.table;
    for (at, column) in group.metadata().columns().iter().enumerate() {
        let path = column.column_path().string();
        // Columns of lists are named after the list and the field in it.
        let (name, part) = path.split_once('.').unwrap_or((&path, ""));
        if !wanted(name) {
            continue;
        }
        // A newer program has added this column.
        let Some(place) = frame.column(name) else { continue };
        let Some(kind) = table.columns().get(place).map(|column| column.kind) else { continue };
        let reader = group.get_column_reader(at)?;
        let Frame { values, texts, .. } = &mut *frame;
        match values.get_mut(place) {
            Some(Values::Numbers(values)) if kind == Kind::Flag => {
                let read = Plain::<BoolType>::read(reader, rows)?;
                put(values, before, read.values().map(|value| value.copied().map(i64::from)));
            }
            Some(Values::Numbers(values)) => {
                let read = Plain::<Int64Type>::read(reader, rows)?;
                put(values, before, read.values().map(Option::<&i64>::copied));
            }
            Some(Values::Doubles(values)) => {
                let read = Plain::<DoubleType>::read(reader, rows)?;
                put(values, before, read.values().map(Option::<&f64>::copied));
            }
            Some(Values::Texts(values)) => {
                let read = Plain::<ByteArrayType>::read(reader, rows)?;
                let mut known = KnownTexts::new(texts);
                put(values, before, read.values().map(|text| Some(known.intern(text?.data()))));
            }
            Some(Values::Periods(values)) => {
                let read = read_list::<Int32Type>(reader, rows)?;
                values.resize(after, Box::default());
                put_periods(values.get_mut(before..).unwrap_or_default(), part, &read);
            }
            Some(Values::Leaders(values)) => {
                values.resize(after, Box::default());
                let values = values.get_mut(before..).unwrap_or_default();
                if part.ends_with("name") {
                    put_names(values, read_list::<ByteArrayType>(reader, rows)?);
                } else {
                    put_rounds(values, &read_list::<Int32Type>(reader, rows)?);
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// The values of a list's column, and for each position whether it has a value (definition) and what it continues
/// (repetition).
struct Listed<T> {
    values: Vec<T>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

/// Skips some rows of a column.
fn skip<T: DataType>(reader: &mut ColumnReaderImpl<T>, rows: usize) -> Result<()> {
    match rows == 0 || reader.skip_records(rows)? == rows {
        true => Ok(()),
        false => Err(ParquetError::General("a column is too short".to_owned())),
    }
}

fn read_list<T: DataType>(reader: ColumnReader, rows: &[Range<usize>]) -> Result<Listed<T::T>> {
    let mut reader = get_typed_column_reader::<T>(reader);
    let mut read = Listed { values: Vec::new(), definition: Vec::new(), repetition: Vec::new() };
    let Listed { values, definition, repetition } = &mut read;
    let mut at = 0;
    for range in rows {
        skip(&mut reader, range.start - at)?;
        let levels = (Some(&mut *definition), Some(&mut *repetition));
        let (records, _, _) = reader.read_records(range.len(), levels.0, levels.1, values)?;
        if records != range.len() {
            return Err(ParquetError::General("a list is too short".to_owned()));
        }
        at = range.end;
    }
    Ok(read)
}

/// Sets one number of every period of each row.
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

/// Sets the rounds of players whose names are already set.
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

/// The definition levels of each row.
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

/// Writes values to a column, starting at a row.
fn put<T: Clone>(values: &mut Vec<Option<T>>, from: usize, read: impl Iterator<Item = Option<T>>) {
    values.resize(from, None);
    values.extend(read);
}

/// The values of a column, and for each row whether it has one; empty levels if all rows have values.
struct Plain<T: DataType> {
    present: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> Plain<T> {
    fn read(reader: ColumnReader, rows: &[Range<usize>]) -> Result<Self> {
        let mut reader = get_typed_column_reader::<T>(reader);
        let (mut present, mut levels, mut at) = (Vec::new(), Vec::new(), 0);
        for range in rows {
            skip(&mut reader, range.start - at)?;
            at = range.start;
            while at < range.end {
                let (records, _, _) =
                    reader.read_records(range.end - at, Some(&mut levels), None, &mut present)?;
                if records == 0 {
                    return Err(ParquetError::General("a column is too short".to_owned()));
                }
                at += records;
            }
        }
        Ok(Self { present, levels })
    }

    /// The value of each row.
    fn values(&self) -> impl Iterator<Item = Option<&T::T>> {
        let (all, mut present) = (self.levels.is_empty(), self.present.iter());
        let rows = if all { self.present.len() } else { self.levels.len() };
        (0..rows).map(move |row| {
            match all || self.levels.get(row).is_some_and(|level| *level > 0) {
                true => present.next(),
                false => None,
            }
        })
    }
}

/// Texts already seen in a column. Equal ones nearly always share the bytes of the column's dictionary.
struct KnownTexts<'a> {
    texts: &'a mut Texts,
    /// A hash table of texts by address: address, length and number.
    known: Vec<(usize, usize, u32)>,
}

impl<'a> KnownTexts<'a> {
    const PLACES: usize = 4096;

    fn new(texts: &'a mut Texts) -> Self {
        Self { texts, known: vec![(0, 0, 0); Self::PLACES] }
    }

    /// The number of a text, whose bytes must not move during the lifetime of this value.
    fn intern(&mut self, text: &[u8]) -> u32 {
        let (at, length) = (text.as_ptr().addr(), text.len());
        let place = (at ^ (at >> 12)) % Self::PLACES;
        if let Some((held_at, held_length, number)) = self.known.get(place)
            && (*held_at, *held_length) == (at, length)
        {
            return *number;
        }
        let number = self.texts.intern(text);
        if let Some(held) = self.known.get_mut(place) {
            *held = (at, length, number);
        }
        number
    }
}
