//! Rows of one table in memory, column by column.

use std::cmp::Ordering;
use std::collections::HashMap;

use bytes::Bytes;
use domain::score::Period;

use crate::table::{Kind, Table};

/// A player with the rounds played.
pub(crate) type Leader = (Box<str>, Vec<i32>);

/// The value of one column in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Null,
    Number(i64),
    Flag(bool),
    Double(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Periods(&'a [Period]),
    Leaders(&'a [Leader]),
}

impl<'a> Cell<'a> {
    pub(crate) fn unsigned(number: u64) -> Self {
        Self::Number(number.cast_signed())
    }

    pub(crate) fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }

    pub(crate) fn number(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Number)
    }

    fn as_number(self) -> Option<i64> {
        if let Self::Flag(flag) = self {
            return Some(i64::from(flag));
        }
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    fn as_bytes(self) -> Option<&'a [u8]> {
        if let Self::Text(text) = self {
            return Some(text.as_bytes());
        }
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// The values of a column.
#[derive(Debug)]
pub(crate) enum Values {
    Numbers(Vec<Option<i64>>),
    Doubles(Vec<Option<f64>>),
    /// Indices into the frame's texts.
    Texts(Vec<Option<u32>>),
    Periods(Vec<Box<[Period]>>),
    Leaders(Vec<Box<[Leader]>>),
}

impl Values {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number | Kind::Unsigned | Kind::Flag | Kind::Millis | Kind::Hundredths => {
                Self::Numbers(Vec::new())
            }
            Kind::Double => Self::Doubles(Vec::new()),
            Kind::Text | Kind::Bytes => Self::Texts(Vec::new()),
            Kind::Periods => Self::Periods(Vec::new()),
            Kind::Leaders => Self::Leaders(Vec::new()),
        }
    }

    /// Memory, without what the lists of periods and leaders contain.
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Numbers(values) => values.capacity() * size_of::<Option<i64>>(),
            Self::Doubles(values) => values.capacity() * size_of::<Option<f64>>(),
            Self::Texts(values) => values.capacity() * size_of::<Option<u32>>(),
            Self::Periods(values) => values.capacity() * size_of::<Box<[Period]>>(),
            Self::Leaders(values) => values.capacity() * size_of::<Box<[Leader]>>(),
        }
    }

    fn truncate(&mut self, rows: usize) {
        match self {
            Self::Numbers(values) => values.truncate(rows),
            Self::Doubles(values) => values.truncate(rows),
            Self::Texts(values) => values.truncate(rows),
            Self::Periods(values) => values.truncate(rows),
            Self::Leaders(values) => values.truncate(rows),
        }
    }
}

/// Interned texts.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    by_text: HashMap<Bytes, u32>,
    list: Vec<Bytes>,
    /// Approximate memory.
    bytes: usize,
}

/// Bytes that a text takes in addition to its own, for its places in the map and the list.
const TEXT_BYTES: usize = 128;

impl Texts {
    pub(crate) fn intern(&mut self, text: &[u8]) -> u32 {
        if let Some(held) = self.by_text.get(text) {
            return *held;
        }
        let at = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.bytes += text.len() + TEXT_BYTES;
        let text = Bytes::copy_from_slice(text);
        self.by_text.insert(text.clone(), at);
        self.list.push(text);
        at
    }

    pub(crate) fn get(&self, at: u32) -> Option<&Bytes> {
        usize::try_from(at).ok().and_then(|at| self.list.get(at))
    }
}

/// Rows of a table.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) table: Table,
    pub(crate) values: Vec<Values>,
    pub(crate) texts: Texts,
    rows: usize,
}

impl Frame {
    pub(crate) fn new(table: Table) -> Self {
        let values = table.columns().iter().map(|column| Values::new(column.kind)).collect();
        Self { table, values, texts: Texts::default(), rows: 0 }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Approximate memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.values.iter().map(Values::memory_bytes).sum::<usize>() + self.texts.bytes
    }

    /// Adds a row with a cell for each of the table's columns, in their order; missing cells are null.
    pub(crate) fn push(&mut self, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.values.len(), "{}", self.table.key());
        let cells = cells.iter().copied().chain(std::iter::repeat(Cell::Null));
        let Self { values, texts, rows, .. } = self;
        for (values, cell) in values.iter_mut().zip(cells) {
            match values {
                Values::Numbers(values) => values.push(cell.as_number()),
                Values::Doubles(values) => {
                    values.push(if let Cell::Double(number) = cell { Some(number) } else { None });
                }
                Values::Texts(values) => {
                    values.push(cell.as_bytes().map(|text| texts.intern(text)));
                }
                Values::Periods(values) => {
                    values.push(if let Cell::Periods(list) = cell {
                        list.into()
                    } else {
                        Box::default()
                    });
                }
                Values::Leaders(values) => {
                    values.push(if let Cell::Leaders(list) = cell {
                        list.into()
                    } else {
                        Box::default()
                    });
                }
            }
        }
        *rows += 1;
    }

    /// Adds rows whose columns are filled separately; values missing at the end of a column are null.
    pub(crate) fn extend_by(&mut self, rows: usize) {
        self.rows += rows;
    }

    /// Adds nulls for the values missing at the ends of columns.
    pub(crate) fn fill(&mut self) {
        for values in &mut self.values {
            match values {
                Values::Numbers(values) => values.resize(self.rows, None),
                Values::Doubles(values) => values.resize(self.rows, None),
                Values::Texts(values) => values.resize(self.rows, None),
                Values::Periods(values) => values.resize(self.rows, Box::default()),
                Values::Leaders(values) => values.resize(self.rows, Box::default()),
            }
        }
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.values.iter_mut().for_each(|values| values.truncate(rows));
        self.rows = self.rows.min(rows);
    }

    /// The position of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.table.columns().iter().position(|column| column.name == name)
    }

    pub(crate) fn number(&self, column: Option<usize>, row: usize) -> Option<i64> {
        match self.values.get(column?)? {
            Values::Numbers(values) => values.get(row).copied().flatten(),
            Values::Doubles(_) | Values::Texts(_) | Values::Periods(_) | Values::Leaders(_) => None,
        }
    }

    pub(crate) fn set_number(&mut self, column: Option<usize>, row: usize, number: i64) {
        let values = column.and_then(|column| self.values.get_mut(column));
        if let Some(Values::Numbers(values)) = values
            && let Some(held) = values.get_mut(row)
        {
            *held = Some(number);
        }
    }

    pub(crate) fn set_text(&mut self, column: Option<usize>, row: usize, text: &str) {
        let values = column.and_then(|column| self.values.get_mut(column));
        if let Some(Values::Texts(values)) = values
            && let Some(held) = values.get_mut(row)
        {
            *held = Some(self.texts.intern(text.as_bytes()));
        }
    }

    pub(crate) fn bytes(&self, column: Option<usize>, row: usize) -> Option<&Bytes> {
        match self.values.get(column?)? {
            Values::Texts(values) => self.texts.get(values.get(row).copied().flatten()?),
            Values::Numbers(_) | Values::Doubles(_) | Values::Periods(_) | Values::Leaders(_) => {
                None
            }
        }
    }

    pub(crate) fn text(&self, column: Option<usize>, row: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes(column, row)?).ok()
    }

    /// Sorts rows in the order of the table's files.
    pub(crate) fn sort(&self, rows: &mut [usize]) {
        let order: Vec<usize> =
            self.table.order().iter().filter_map(|name| self.column(name)).collect();
        rows.sort_by(|one, other| {
            let by = |at: &usize| {
                let (at, one, other) = (Some(*at), *one, *other);
                let numbers = self.number(at, one).cmp(&self.number(at, other));
                numbers.then_with(|| self.bytes(at, one).cmp(&self.bytes(at, other)))
            };
            order.iter().map(by).find(|by| by.is_ne()).unwrap_or(Ordering::Equal)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_frame_is_that_of_its_rows_and_of_each_text_once() {
        let mut frame = Frame::new(Table::Odds);
        let columns = frame.values.len();
        let mut add = |text: &str| {
            frame.push(&vec![Cell::Text(text); columns]);
            frame.memory_bytes()
        };
        let text = "x".repeat(10_000);
        let first = add(&text);
        assert!((10_000..20_000).contains(&first), "{first}");
        let rows = (0..999).fold(first, |_, _| add(&text));
        assert!(rows - first >= 900 * 8 * columns && rows < 1_000_000, "{rows}");
        assert!(add(&text.to_uppercase()) >= rows + 10_000);
    }
}
