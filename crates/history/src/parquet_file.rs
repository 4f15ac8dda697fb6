//! Rows as a Parquet file, and back.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::ColumnReaderImpl;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::SCHEMA;
use crate::frame::{Frame, Leader, Values};
use crate::table::{Kind, Table};

const ZSTD_LEVEL: i32 = 3;
/// Columns in which each number differs little from the one before.
const DELTAS: [&str; 2] = ["seq", "at"];

/// A file with these rows of a frame, in this order.
pub(crate) fn write(frame: &Frame, rows: &[usize]) -> Result<Vec<u8>> {
    let schema = Arc::new(parse_message_type(&frame.table.message_type())?);
    let properties = Arc::new(properties()?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties)?;
    let mut group = file.next_row_group()?;
    for (values, column) in frame.values.iter().zip(frame.table.columns()) {
        write_column(&mut group, frame, values, (column.kind, column.required), rows)?;
    }
    group.close()?;
    file.into_inner()
}

fn properties() -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by(format!("linesman {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "linesman.schema".to_owned(),
            SCHEMA.to_string(),
        )]));
    for name in DELTAS {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

fn next<'a>(group: &'a mut Group<'_>) -> Result<SerializedColumnWriter<'a>> {
    group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".to_owned()))
}

fn write_column(
    group: &mut Group<'_>,
    frame: &Frame,
    values: &Values,
    (kind, required): (Kind, bool),
    rows: &[usize],
) -> Result<()> {
    match values {
        Values::Numbers(values) if kind == Kind::Flag => {
            let values = values.iter().map(|value| value.map(|value| value != 0));
            write_plain::<BoolType>(group, &values.collect::<Vec<_>>(), required, rows)
        }
        Values::Numbers(values) => write_plain::<Int64Type>(group, values, required, rows),
        Values::Doubles(values) => write_plain::<DoubleType>(group, values, required, rows),
        Values::Texts(values) => {
            let text = |at: u32| frame.texts.get(at).cloned().map(ByteArray::from);
            let values: Vec<_> = values.iter().map(|value| value.and_then(text)).collect();
            write_plain::<ByteArrayType>(group, &values, required, rows)
        }
        Values::Periods(values) => {
            let lists: Vec<_> = rows.iter().filter_map(|row| values.get(*row)).collect();
            let levels = list_levels(lists.iter().map(|list| list.len()));
            let periods = || lists.iter().flat_map(|list| list.iter());
            let numbers = periods().map(|period| i32::try_from(period.number).unwrap_or(i32::MAX));
            write_list::<Int32Type>(group, &numbers.collect::<Vec<_>>(), &levels)?;
            let homes: Vec<i32> = periods().map(|period| period.home).collect();
            write_list::<Int32Type>(group, &homes, &levels)?;
            let aways: Vec<i32> = periods().map(|period| period.away).collect();
            write_list::<Int32Type>(group, &aways, &levels)
        }
        Values::Leaders(values) => {
            let lists = rows.iter().filter_map(|row| values.get(*row)).map(|list| &**list);
            let lists: Vec<&[Leader]> = lists.collect();
            let levels = list_levels(lists.iter().map(|list| list.len()));
            let leaders = || lists.iter().flat_map(|list| list.iter());
            let names: Vec<_> =
                leaders().map(|(name, _)| ByteArray::from(name.as_bytes().to_vec())).collect();
            write_list::<ByteArrayType>(group, &names, &levels)?;
            let rounds: Vec<i32> =
                leaders().flat_map(|(_, rounds)| rounds.iter().copied()).collect();
            write_list::<Int32Type>(group, &rounds, &round_levels(&lists))
        }
    }
}

fn write_plain<T: DataType>(
    group: &mut Group<'_>,
    values: &[Option<T::T>],
    required: bool,
    rows: &[usize],
) -> Result<()> {
    let mut column = next(group)?;
    let cells = || rows.iter().filter_map(|row| values.get(*row));
    let present: Vec<T::T> = cells().filter_map(Clone::clone).collect();
    let levels: Vec<i16> = cells().map(|value| i16::from(value.is_some())).collect();
    let levels = (!required).then_some(levels.as_slice());
    column.typed::<T>().write_batch(&present, levels, None)?;
    column.close()
}

/// Whether there is an element (definition), and whether it continues a list (repetition).
type Levels = (Vec<i16>, Vec<i16>);

fn write_list<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    (definition, repetition): &Levels,
) -> Result<()> {
    let mut column = next(group)?;
    column.typed::<T>().write_batch(values, Some(definition), Some(repetition))?;
    column.close()
}

/// Of lists with these lengths.
fn list_levels(lengths: impl Iterator<Item = usize>) -> Levels {
    let (mut definition, mut repetition) = Levels::default();
    for length in lengths {
        definition.extend(std::iter::repeat_n(i16::from(length > 0), length.max(1)));
        repetition.extend((0..length.max(1)).map(|at| i16::from(at > 0)));
    }
    (definition, repetition)
}

/// Of the rounds within lists of players.
fn round_levels(lists: &[&[Leader]]) -> Levels {
    let (mut definition, mut repetition) = Levels::default();
    for list in lists {
        if list.is_empty() {
            definition.push(0);
            repetition.push(0);
        }
        for (at, (_, rounds)) in list.iter().enumerate() {
            definition.extend(std::iter::repeat_n(
                1 + i16::from(!rounds.is_empty()),
                rounds.len().max(1),
            ));
            repetition.push(i16::from(at > 0));
            repetition.extend(std::iter::repeat_n(2, rounds.len().saturating_sub(1)));
        }
    }
    (definition, repetition)
}

/// The rows of a file, without its lists: of the row groups that have entries of `seqs`, all rows.
pub(crate) fn read(table: Table, bytes: Bytes, seqs: &RangeInclusive<u64>) -> Result<Frame> {
    let file = SerializedFileReader::new(bytes)?;
    let mut frame = Frame::new(table);
    for at in 0..file.num_row_groups() {
        let group = file.get_row_group(at)?;
        if has_entries(group.metadata(), seqs) {
            read_group(&mut frame, &*group)?;
        }
    }
    Ok(frame)
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
    let before = frame.rows();
    frame.extend_by(rows);
    for (at, column) in group.metadata().columns().iter().enumerate() {
        let path = column.column_path().string();
        // Lists, and columns that a newer program has added.
        let Some(place) = frame.column(&path) else { continue };
        let Some(kind) = frame.table.columns().get(place).map(|column| column.kind) else {
            continue;
        };
        let reader = group.get_column_reader(at)?;
        let Frame { values, texts, .. } = &mut *frame;
        match values.get_mut(place) {
            Some(Values::Numbers(values)) if kind == Kind::Flag => {
                let read = read_plain(&mut get_typed_column_reader::<BoolType>(reader), rows)?;
                put(values, before, read.into_iter().map(|value| value.map(i64::from)));
            }
            Some(Values::Numbers(values)) => {
                let read = read_plain(&mut get_typed_column_reader::<Int64Type>(reader), rows)?;
                put(values, before, read);
            }
            Some(Values::Doubles(values)) => {
                let read = read_plain(&mut get_typed_column_reader::<DoubleType>(reader), rows)?;
                put(values, before, read);
            }
            Some(Values::Texts(values)) => {
                let read = read_plain(&mut get_typed_column_reader::<ByteArrayType>(reader), rows)?;
                let read =
                    read.into_iter().map(|value| value.map(|text| texts.intern(text.data())));
                put(values, before, read);
            }
            Some(Values::Periods(_) | Values::Leaders(_)) | None => {}
        }
    }
    Ok(())
}

fn put<T>(values: &mut [Option<T>], from: usize, read: impl IntoIterator<Item = Option<T>>) {
    for (held, read) in values.iter_mut().skip(from).zip(read) {
        *held = read;
    }
}

fn read_plain<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<Option<T::T>>> {
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
