//! Export of rows for other programs.

mod rest;

use std::fmt::Write as _;
use std::io::{self, Write};

use domain::Timestamp;

use crate::archive::Archive;
use crate::commit::{Commit, TableFile};
use crate::date::date_of;
use crate::durable::count;
use crate::entries::unreadable;
use crate::error::ArchiveError;
use crate::frame::{Frame, Values};
use crate::parquet_file::TableWriter;
use crate::table::{Kind, Table};
use rest::Rest;

/// A selection of rows, and their format.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    pub table: Table,
    /// Range of publication times; the end is exclusive. For a closing line it is the time of its prices.
    pub from: Timestamp,
    pub to: Timestamp,
    /// Only this sport; tables that are not separated by sport have all.
    pub sport: Option<&'a str>,
    pub format: ExportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    Parquet,
    /// RFC 4180 with a header row.
    Csv,
    /// A JSON object on each line.
    Ndjson,
}

/// The destination of rows.
enum Sink<W: Write + Send> {
    Parquet(TableWriter<W>),
    Text(W, ExportFormat),
}

impl<W: Write + Send> Sink<W> {
    fn write(&mut self, frame: &Frame, rows: &[usize]) -> Result<(), ArchiveError> {
        let table = frame.table.key();
        match self {
            Self::Parquet(writer) => writer
                .write(frame, rows)
                .map_err(|source| ArchiveError::Unwritable { table, source }),
            Self::Text(out, format) => {
                write_rows(frame, rows, *format, out).map_err(ArchiveError::Output)
            }
        }
    }
}

impl Archive {
    /// Writes rows selected by their time of publication, and returns their number. They are ordered by day, sport and
    /// entry; within some tens of thousands they are sorted like the table's files.
    ///
    /// Of files that are merged and deleted meanwhile, the rest of the rows is read from the newest commit.
    ///
    /// # Errors
    /// The archive cannot be read, or the rows cannot be written.
    pub fn export<W: Write + Send>(
        &self,
        commit: &Commit,
        export: &Export<'_>,
        out: W,
    ) -> Result<u64, ArchiveError> {
        let Export { table, format, .. } = *export;
        let unwritable = |source| ArchiveError::Unwritable { table: table.key(), source };
        let mut sink = match format {
            ExportFormat::Parquet => {
                Sink::Parquet(TableWriter::new(table, out).map_err(unwritable)?)
            }
            ExportFormat::Csv | ExportFormat::Ndjson => {
                let mut out = out;
                if format == ExportFormat::Csv {
                    let names: Vec<&str> =
                        table.columns().iter().map(|column| column.name).collect();
                    out.write_all(format!("{}\r\n", names.join(",")).as_bytes())
                        .map_err(ArchiveError::Output)?;
                }
                Sink::Text(out, format)
            }
        };
        let mut rows = 0;
        for files in files_of(commit, export).chunk_by(|one, other| one.group() == other.group()) {
            rows += self.export_group(files, export, &mut sink)?;
        }
        match sink {
            Sink::Parquet(writer) => writer.finish().map_err(unwritable)?.flush(),
            Sink::Text(mut out, _) => out.flush(),
        }
        .map_err(ArchiveError::Output)?;
        Ok(rows)
    }

    /// Writes the selected rows of files that can be merged with each other, and returns their number.
    fn export_group<W: Write + Send>(
        &self,
        files: &[&TableFile],
        export: &Export<'_>,
        sink: &mut Sink<W>,
    ) -> Result<u64, ArchiveError> {
        let (mut rest, mut rows) = (Rest::new(files), 0);
        while let Some(file) = rest.next_file() {
            let reader = match self.read_table(&file) {
                Err(error) if error.is_damage() => {
                    rest.replace(&file, self.newest()?, error)?;
                    continue;
                }
                reader => reader?,
            };
            for group in 0..reader.groups() {
                let mut frame = Frame::new(export.table);
                reader.read(group, &mut frame).map_err(unreadable(&file))?;
                let published = frame.column("published_at");
                let wanted = |row: &usize| {
                    let at = frame.number(published, *row).map(Timestamp::from_millis);
                    at.is_some_and(|at| (export.from..export.to).contains(&at))
                };
                let mut chosen = rest.rows_of(&frame);
                chosen.retain(wanted);
                if !chosen.is_empty() {
                    rows += count(chosen.len());
                    sink.write(&frame, &chosen)?;
                }
            }
        }
        rest.finish()?;
        Ok(rows)
    }
}

/// Files that can have selected rows.
fn files_of<'a>(commit: &'a Commit, export: &Export<'_>) -> Vec<&'a TableFile> {
    let (first, last) = (date_of(export.from), date_of(export.to));
    let sport = export.sport.map(|sport| format!("/sport={sport}/"));
    let of_sport = |file: &TableFile| match &sport {
        Some(sport) if file.table.by_sport() => file.path.contains(sport),
        Some(_) | None => true,
    };
    let mut files: Vec<&TableFile> = commit
        .files
        .iter()
        .filter(|file| file.table == export.table && of_sport(file))
        // A closing line is in the file of the day on which its event was first shown as started, or its start was
        // withdrawn, which may be long after its prices were published.
        .filter(|file| {
            *first <= *file.date() && (file.table == Table::Closing || file.date() <= &*last)
        })
        .collect();
    files.sort_by_key(|file| (file.date(), file.folder(), file.lineage, file.first_seq));
    files
}

fn write_rows(
    frame: &Frame,
    rows: &[usize],
    format: ExportFormat,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut line = String::new();
    for row in rows {
        line.clear();
        let mut before = if format == ExportFormat::Ndjson { "{" } else { "" };
        for (at, column) in frame.table.columns().iter().enumerate() {
            line.push_str(before);
            before = ",";
            if format == ExportFormat::Ndjson {
                push(&mut line, format_args!("\"{}\":", column.name));
                push_json(frame, (at, column.kind), *row, &mut line);
            } else {
                push_field(frame, (at, column.kind), *row, &mut line);
            }
        }
        line.push_str(if format == ExportFormat::Ndjson { "}\n" } else { "\r\n" });
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

/// Writing to a string does not fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).unwrap_or_default();
}

/// A value that is not a text; `None` if it is one.
fn plain(frame: &Frame, (at, kind): (usize, Kind), row: usize) -> Option<String> {
    let values = frame.values.get(at)?;
    Some(match values {
        Values::Numbers(values) => match (values.get(row).copied().flatten(), kind) {
            (None, _) => String::new(),
            (Some(number), Kind::Flag) => (number != 0).to_string(),
            (Some(number), Kind::Unsigned) => number.cast_unsigned().to_string(),
            (Some(number), Kind::Hundredths) => {
                let sign = if number < 0 { "-" } else { "" };
                let (whole, rest) = (number.unsigned_abs() / 100, number.unsigned_abs() % 100);
                let text = format!("{sign}{whole}.{rest:02}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            (Some(number), _) => number.to_string(),
        },
        Values::Doubles(values) => {
            let value = values.get(row).copied().flatten();
            value.map_or_else(String::new, |number| number.to_string())
        }
        Values::Periods(values) => serde_json::to_string(values.get(row)?).ok()?,
        Values::Leaders(values) => {
            let list: Vec<_> = values
                .get(row)?
                .iter()
                .map(|(name, rounds)| serde_json::json!({ "name": name, "rounds": rounds }))
                .collect();
            serde_json::to_string(&list).ok()?
        }
        Values::Texts(_) => return None,
    })
}

/// A text, a time or bytes; `None` for null.
fn text(frame: &Frame, (at, kind): (usize, Kind), row: usize) -> Option<String> {
    match kind {
        Kind::Millis => {
            let at = Timestamp::from_millis(frame.number(Some(at), row)?);
            Some(at.millis_text().map(char::from).into_iter().collect())
        }
        Kind::Bytes => {
            let bytes = frame.bytes(Some(at), row)?;
            Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        }
        Kind::Text
        | Kind::Number
        | Kind::Unsigned
        | Kind::Flag
        | Kind::Hundredths
        | Kind::Double
        | Kind::Periods
        | Kind::Leaders => frame.text(Some(at), row).map(str::to_owned),
    }
}

fn is_text(kind: Kind) -> bool {
    matches!(kind, Kind::Millis | Kind::Bytes | Kind::Text)
}

fn push_json(frame: &Frame, column: (usize, Kind), row: usize, out: &mut String) {
    let value = match is_text(column.1) {
        true => text(frame, column, row).and_then(|text| serde_json::to_string(&text).ok()),
        false => plain(frame, column, row).filter(|value| !value.is_empty()),
    };
    out.push_str(value.as_deref().unwrap_or("null"));
}

/// Marks values as text that a spreadsheet would run as a formula, and quotes those that contain separators.
fn push_field(frame: &Frame, column: (usize, Kind), row: usize, out: &mut String) {
    let value = match is_text(column.1) {
        true => text(frame, column, row).unwrap_or_default(),
        false => plain(frame, column, row).unwrap_or_default(),
    };
    let formula = |first: char| matches!(first, '=' | '+' | '-' | '@') || first.is_control();
    let guard = if column.1 == Kind::Text && value.starts_with(formula) { "'" } else { "" };
    if value.contains(['"', ',', '\r', '\n']) {
        push(out, format_args!("\"{guard}{}\"", value.replace('"', "\"\"")));
    } else {
        push(out, format_args!("{guard}{value}"));
    }
}
