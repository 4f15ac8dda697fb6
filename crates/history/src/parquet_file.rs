//! Rows as a Parquet file.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::SCHEMA;
use crate::frame::{Frame, Leader, Values};
use crate::table::{Kind, Table};

const ZSTD_LEVEL: i32 = 3;
/// Columns with the same price in four formats, which take most of the space of a further outcome. They have no
/// dictionary and a higher compression level, which costs 1.3 µs for each row.
const PRICES: [&str; 4] = ["num", "den", "decimal", "american"];
const PRICES_ZSTD_LEVEL: i32 = 9;

impl Table {
    /// Maximum rows of a group. Besides one group that is read, one is held in memory. Groups are in the order of
    /// entries and sorted by event within, so that a time range or an event can be read from a file of a day without
    /// the rest. Each group has the ids of its records once: a row of `reads` has little else and takes 110 bytes in
    /// memory, and one of `odds` takes 280, so `reads` has larger groups.
    pub(crate) const fn group_rows(self) -> usize {
        match self {
            Self::Reads => 250_000,
            Self::Odds
            | Self::Scores
            | Self::Events
            | Self::Closing
            | Self::Epochs
            | Self::Internal => 100_000,
        }
    }

    /// Columns without a dictionary, because few of their numbers recur except next to each other or in the same
    /// sequence: the outcomes of a change have the same numbers, and so have records that are read together. Plain
    /// encoding leaves such sequences to the compression, which shortens them better than it shortens equal
    /// differences.
    const fn without_dictionary(self) -> &'static [(&'static str, Encoding)] {
        match self {
            Self::Odds => {
                &[("seq", Encoding::PLAIN), ("at", Encoding::PLAIN), ("ts", Encoding::PLAIN)]
            }
            Self::Reads => &[
                ("seq", Encoding::DELTA_BINARY_PACKED),
                ("at", Encoding::PLAIN),
                ("ts", Encoding::PLAIN),
            ],
            // Each differs little from the one before.
            Self::Scores | Self::Events | Self::Closing | Self::Epochs | Self::Internal => {
                &[("seq", Encoding::DELTA_BINARY_PACKED), ("at", Encoding::DELTA_BINARY_PACKED)]
            }
        }
    }
}

/// Writes a file, a group of rows at a time. Rows are sorted within their group.
pub(crate) struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> fmt::Debug for TableWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter").finish_non_exhaustive()
    }
}

impl<W: Write + Send> TableWriter<W> {
    pub(crate) fn new(table: Table, out: W) -> Result<Self> {
        let schema = Arc::new(parse_message_type(&table.message_type())?);
        Ok(Self { file: SerializedFileWriter::new(out, schema, Arc::new(properties(table)?))? })
    }

    /// Adds rows of a frame, in this order.
    pub(crate) fn write(&mut self, frame: &Frame, rows: &[usize]) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for (values, column) in frame.values.iter().zip(frame.table.columns()) {
            write_column(&mut group, frame, values, (column.kind, column.required), rows)?;
        }
        group.close()?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<W> {
        self.file.into_inner()
    }
}

fn properties(table: Table) -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by(format!("linesman {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "linesman.schema".to_owned(),
            SCHEMA.to_string(),
        )]));
    for (name, encoding) in table.without_dictionary() {
        let path = ColumnPath::from(*name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, *encoding);
    }
    for name in PRICES {
        let (path, level) = (ColumnPath::from(name), ZstdLevel::try_new(PRICES_ZSTD_LEVEL)?);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), Encoding::PLAIN)
            .set_column_compression(path, Compression::ZSTD(level));
    }
    Ok(properties.build())
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

fn next<'a, W: Write + Send>(group: &'a mut Group<'_, W>) -> Result<SerializedColumnWriter<'a>> {
    group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".to_owned()))
}

fn write_column<W: Write + Send>(
    group: &mut Group<'_, W>,
    frame: &Frame,
    values: &Values,
    (kind, required): (Kind, bool),
    rows: &[usize],
) -> Result<()> {
    match values {
        Values::Numbers(values) if kind == Kind::Flag => {
            let values = values.iter().map(|value| value.map(|value| value != 0));
            write_plain::<BoolType, W>(group, &values.collect::<Vec<_>>(), required, rows)
        }
        Values::Numbers(values) => write_plain::<Int64Type, W>(group, values, required, rows),
        Values::Doubles(values) => write_plain::<DoubleType, W>(group, values, required, rows),
        Values::Texts(values) => {
            let text = |at: u32| frame.texts.get(at).cloned().map(ByteArray::from);
            let values: Vec<_> = values.iter().map(|value| value.and_then(text)).collect();
            write_plain::<ByteArrayType, W>(group, &values, required, rows)
        }
        Values::Periods(values) => {
            let lists: Vec<_> = rows.iter().filter_map(|row| values.get(*row)).collect();
            let levels = list_levels(lists.iter().map(|list| list.len()));
            let periods = || lists.iter().flat_map(|list| list.iter());
            let numbers = periods().map(|period| i32::try_from(period.number).unwrap_or(i32::MAX));
            write_list::<Int32Type, W>(group, &numbers.collect::<Vec<_>>(), &levels)?;
            let homes: Vec<i32> = periods().map(|period| period.home).collect();
            write_list::<Int32Type, W>(group, &homes, &levels)?;
            let aways: Vec<i32> = periods().map(|period| period.away).collect();
            write_list::<Int32Type, W>(group, &aways, &levels)
        }
        Values::Leaders(values) => {
            let lists = rows.iter().filter_map(|row| values.get(*row)).map(|list| &**list);
            let lists: Vec<&[Leader]> = lists.collect();
            let levels = list_levels(lists.iter().map(|list| list.len()));
            let leaders = || lists.iter().flat_map(|list| list.iter());
            let names: Vec<_> =
                leaders().map(|(name, _)| ByteArray::from(name.as_bytes().to_vec())).collect();
            write_list::<ByteArrayType, W>(group, &names, &levels)?;
            let rounds: Vec<i32> =
                leaders().flat_map(|(_, rounds)| rounds.iter().copied()).collect();
            write_list::<Int32Type, W>(group, &rounds, &round_levels(&lists))
        }
    }
}

fn write_plain<T: DataType, W: Write + Send>(
    group: &mut Group<'_, W>,
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

/// Definition levels (whether there is an element) and repetition levels (whether it continues a list).
type Levels = (Vec<i16>, Vec<i16>);

fn write_list<T: DataType, W: Write + Send>(
    group: &mut Group<'_, W>,
    values: &[T::T],
    (definition, repetition): &Levels,
) -> Result<()> {
    let mut column = next(group)?;
    column.typed::<T>().write_batch(values, Some(definition), Some(repetition))?;
    column.close()
}

/// The levels of lists with these lengths.
fn list_levels(lengths: impl Iterator<Item = usize>) -> Levels {
    let (mut definition, mut repetition) = Levels::default();
    for length in lengths {
        definition.extend(std::iter::repeat_n(i16::from(length > 0), length.max(1)));
        repetition.extend((0..length.max(1)).map(|at| i16::from(at > 0)));
    }
    (definition, repetition)
}

/// The levels of the rounds within lists of players.
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
