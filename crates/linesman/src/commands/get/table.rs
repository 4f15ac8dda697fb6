//! Answers as rows: read from CSV or JSON, printed as a table for people or as CSV for programs.

use std::collections::HashMap;
use std::env;
use std::io::{self, ErrorKind, IsTerminal as _, Write};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::cli::output;

/// Columns that change with time alone: they do not mark a row as changed.
const CLOCKS: [&str; 9] = [
    "last_update",
    "age_s",
    "oldest_age_s",
    "line.oldest_age_s",
    "generated_at",
    "server_time",
    "last_read",
    "skew_s",
    "to",
];
const BOLD: &str = "\x1b[1m";
const MARKED: &str = "\x1b[1;33m";
const PLAIN: &str = "\x1b[0m";
/// Clears the screen before each watched answer.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Csv,
    Table { is_coloured: bool },
}

impl Style {
    /// A table on a terminal, in colour unless `NO_COLOR` is set; CSV elsewhere.
    pub(super) fn of_stdout() -> Self {
        if !io::stdout().is_terminal() {
            return Self::Csv;
        }
        let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self::Table { is_coloured: !is_plain }
    }
}

/// How a row differs from the previous answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Same,
    New,
    Changed,
    Gone,
}

impl Change {
    fn mark(self) -> &'static str {
        match self {
            Self::Same => " ",
            Self::New => "+",
            Self::Changed => "*",
            Self::Gone => "-",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::New => "new",
            Self::Changed => "changed",
            Self::Gone => "gone",
        }
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads RFC 4180 with a header row.
    ///
    /// # Errors
    /// It is not UTF-8, or a quoted cell does not end.
    pub(super) fn parse_csv(body: &[u8]) -> anyhow::Result<Self> {
        let text = str::from_utf8(body).context("the server's table is not UTF-8")?;
        let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
        let (mut is_quoted, mut rest) = (false, text.chars().peekable());
        while let Some(letter) = rest.next() {
            match letter {
                '"' if is_quoted && rest.next_if_eq(&'"').is_some() => cell.push('"'),
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
                '\r' if !is_quoted && rest.peek() == Some(&'\n') => {}
                '\n' if !is_quoted => {
                    row.push(std::mem::take(&mut cell));
                    rows.push(std::mem::take(&mut row));
                }
                letter => cell.push(letter),
            }
        }
        if is_quoted || rows.is_empty() {
            bail!("the response is no table; is the URL that of a Linesman server?");
        }
        let columns = rows.remove(0);
        Ok(Self { columns, rows })
    }

    /// Reads a list of objects, or one object; `rows` are those of an object.
    ///
    /// # Errors
    /// It is no JSON.
    pub(super) fn parse_json(body: &[u8], rows: fn(&Value) -> Vec<Value>) -> anyhow::Result<Self> {
        let value: Value = serde_json::from_slice(body)
            .context("the response is no JSON; is the URL that of a Linesman server?")?;
        let items = match &value {
            Value::Array(items) => items.as_slice(),
            Value::Object(object) => match object.get("sports") {
                Some(Value::Array(items)) => items.as_slice(),
                Some(_) | None => std::slice::from_ref(&value),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
        };
        let mut table = Self::default();
        for item in items.iter().flat_map(rows) {
            let mut cells = Vec::new();
            flatten("", &item, &mut cells);
            let mut row = vec![String::new(); table.columns.len()];
            for (name, text) in cells {
                let at = table.columns.iter().position(|column| *column == name);
                let at = at.unwrap_or_else(|| {
                    table.columns.push(name);
                    row.push(String::new());
                    row.len() - 1
                });
                row.get_mut(at).into_iter().for_each(|cell| cell.clone_from(&text));
            }
            table.rows.push(row);
        }
        let width = table.columns.len();
        table.rows.iter_mut().for_each(|row| row.resize(width, String::new()));
        Ok(table)
    }

    /// Appends the rows of a later page.
    pub(super) fn add(&mut self, page: Self) {
        if self.columns.is_empty() {
            self.columns = page.columns;
        }
        self.rows.extend(page.rows);
    }

    /// Prints all rows.
    ///
    /// # Errors
    /// Stdout cannot be written to. A closed pipe is no error.
    pub(super) fn print(&self, style: Style) -> anyhow::Result<()> {
        let mut text = String::new();
        match style {
            Style::Csv => {
                push_csv(self.columns.iter().map(String::as_str), &mut text);
                self.rows
                    .iter()
                    .for_each(|row| push_csv(row.iter().map(String::as_str), &mut text));
            }
            Style::Table { is_coloured } => self.push_table(&[], is_coloured, &mut text),
        }
        write(&text).map(drop)
    }

    /// Prints the differences from the previous answer: on a terminal all rows with marks, in CSV the changed rows
    /// with the column `change` first. False: the output is closed.
    ///
    /// # Errors
    /// Stdout cannot be written to.
    pub(super) fn print_changes(
        &self,
        before: Option<&Self>,
        keys: &[&str],
        style: Style,
    ) -> anyhow::Result<bool> {
        let (changes, gone) = self.changes(before, keys);
        let mut text = String::new();
        match style {
            Style::Table { is_coloured } => {
                text.push_str(CLEAR);
                let changes = if before.is_some() { changes } else { Vec::new() };
                self.push_table(&changes, is_coloured, &mut text);
            }
            Style::Csv => {
                let names = self.columns.iter().map(String::as_str);
                if before.is_none() {
                    push_csv(std::iter::once("change").chain(names), &mut text);
                }
                let marked = self.rows.iter().zip(changes);
                let gone = gone.into_iter().map(|row| (row, Change::Gone));
                for (row, change) in marked.chain(gone).filter(|(_, one)| *one != Change::Same) {
                    let cells = row.iter().map(String::as_str);
                    push_csv(std::iter::once(change.name()).chain(cells), &mut text);
                }
            }
        }
        write(&text)
    }

    /// The change of each row, and the removed rows.
    fn changes<'t>(
        &self,
        before: Option<&'t Self>,
        keys: &[&str],
    ) -> (Vec<Change>, Vec<&'t Vec<String>>) {
        let Some(before) = before else { return (vec![Change::New; self.rows.len()], Vec::new()) };
        let held: HashMap<Vec<&str>, &Vec<String>> =
            before.rows.iter().map(|row| (before.key(row, keys), row)).collect();
        let mut left = held.clone();
        let changes = self.rows.iter().map(|row| {
            let key = self.key(row, keys);
            left.remove(&key);
            match held.get(&key) {
                None => Change::New,
                Some(held) if self.is_same(row, held) => Change::Same,
                Some(_) => Change::Changed,
            }
        });
        let changes = changes.collect();
        let is_gone = |row: &&Vec<String>| left.contains_key(&before.key(row, keys));
        (changes, before.rows.iter().filter(is_gone).collect())
    }

    fn key<'r>(&self, row: &'r [String], keys: &[&str]) -> Vec<&'r str> {
        let cells = self.columns.iter().zip(row);
        cells
            .filter(|(name, _)| keys.contains(&name.as_str()))
            .map(|(_, cell)| cell.as_str())
            .collect()
    }

    fn is_same(&self, row: &[String], held: &[String]) -> bool {
        let cells = self.columns.iter().zip(row.iter().zip(held));
        row.len() == held.len()
            && cells
                .clone()
                .all(|(name, (now, then))| now == then || CLOCKS.contains(&name.as_str()))
    }

    /// Values that all rows share are printed above the table, and columns without a value are left out.
    fn push_table(&self, changes: &[Change], is_coloured: bool, out: &mut String) {
        let Some((first, others)) = self.rows.split_first() else {
            out.push_str("nothing found\n");
            return;
        };
        let (bold, plain) = if is_coloured { (BOLD, PLAIN) } else { ("", "") };
        let mut shown = Vec::new();
        for (at, (name, common)) in self.columns.iter().zip(first).enumerate() {
            if others.iter().any(|row| row.get(at) != Some(common)) {
                shown.push((at, name));
            } else if !common.is_empty() {
                out.push_str(&format!("{bold}{}{plain} {}\n", printable(name), printable(common)));
            }
        }
        if others.is_empty() {
            return;
        }
        out.push('\n');
        let cells = |row: &[String]| -> Vec<String> {
            let cell = |at: usize| row.get(at).map_or("", |cell| unguarded(cell));
            shown.iter().map(|(at, _)| printable(cell(*at))).collect()
        };
        let names: Vec<String> = shown.iter().map(|(_, name)| printable(name)).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| cells(row)).collect();
        let widths: Vec<usize> = (0..shown.len())
            .map(|at| {
                let column = rows.iter().chain([&names]).filter_map(|row| row.get(at));
                column.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let is_marked = !changes.is_empty();
        let margin = |mark: &str| if is_marked { format!("{mark} ") } else { String::new() };
        out.push_str(&format!("{bold}{}{}{plain}\n", margin(" "), aligned(&names, &widths)));
        for (at, row) in rows.iter().enumerate() {
            let change = changes.get(at).copied().unwrap_or(Change::Same);
            let is_bright = is_coloured && change != Change::Same;
            let (before, after) = if is_bright { (MARKED, PLAIN) } else { ("", "") };
            let line = aligned(row, &widths);
            out.push_str(&format!("{before}{}{line}{after}\n", margin(change.mark())));
        }
    }
}

/// The cells of a line, padded to the width of their columns; numbers right-aligned.
fn aligned(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| match cell.parse::<f64>() {
        Ok(_) => format!("{cell:>width$}"),
        Err(_) => format!("{cell:<width$}"),
    });
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// The text without characters that control a terminal: names come from feeds.
pub(super) fn printable(text: &str) -> String {
    let is_seen = |letter: char| {
        !letter.is_control()
            && !matches!(letter, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|letter| if is_seen(letter) { letter } else { '\u{fffd}' }).collect()
}

/// The text without the character that keeps a spreadsheet from evaluating it.
fn unguarded(cell: &str) -> &str {
    let is_formula = |first: char| matches!(first, '=' | '+' | '-' | '@') || first.is_control();
    cell.strip_prefix('\'').filter(|rest| rest.starts_with(is_formula)).unwrap_or(cell)
}

/// The values of an object by name; names in nested objects are joined with a dot.
fn flatten(name: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (field, value) in object {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                flatten(&name, value, cells);
            }
        }
        Value::Array(items) => {
            let texts = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            cells.push((name.to_owned(), guarded(texts.collect::<Vec<_>>().join(","))));
        }
        Value::String(text) => cells.push((name.to_owned(), guarded(text.clone()))),
        Value::Null => cells.push((name.to_owned(), String::new())),
        Value::Bool(_) | Value::Number(_) => cells.push((name.to_owned(), value.to_string())),
    }
}

/// A text as the server writes it in a table.
fn guarded(text: String) -> String {
    let is_formula = |first: char| matches!(first, '=' | '+' | '-' | '@') || first.is_control();
    if text.starts_with(is_formula) { format!("'{text}") } else { text }
}

fn push_csv<'c>(cells: impl Iterator<Item = &'c str>, out: &mut String) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            out.push(',');
        }
        if cell.contains(['"', ',', '\r', '\n']) {
            out.extend(["\"", &cell.replace('"', "\"\""), "\""]);
        } else {
            out.push_str(cell);
        }
    }
    out.push_str("\r\n");
}

/// Writes to stdout. False: the output is closed.
fn write(text: &str) -> anyhow::Result<bool> {
    let mut stdout = output::stream();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write to stdout"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    fn text(table: &Table, changes: &[Change], is_coloured: bool) -> String {
        let mut out = String::new();
        table.push_table(changes, is_coloured, &mut out);
        out
    }

    #[test]
    fn a_table_is_read_and_written_again() {
        let csv = "id,name\r\n1,\"a, \"\"b\"\"\r\nc\"\r\n2,'=x\r\n";
        let table = Table::parse_csv(csv.as_bytes()).unwrap();
        assert_eq!(table.rows, [["1", "a, \"b\"\r\nc"], ["2", "'=x"]]);
        let mut out = String::new();
        for row in [&table.columns].into_iter().chain(&table.rows) {
            push_csv(row.iter().map(String::as_str), &mut out);
        }
        assert_eq!(out, csv);
        for wrong in [&b""[..], b"a,\"b", b"\xff\n"] {
            assert!(Table::parse_csv(wrong).is_err());
        }
    }

    #[test]
    fn people_see_what_rows_have_in_common_once_and_nothing_that_a_terminal_obeys() {
        let csv = "sport,empty,name,price\r\nmma,,Ana,-110\r\nmma,,B\x1b[2Jea,5\r\n";
        let table = Table::parse_csv(csv.as_bytes()).unwrap();
        let shown = text(&table, &[], false);
        assert_eq!(shown, "sport mma\n\nname     price\nAna       -110\nB\u{fffd}[2Jea      5\n");
        let marked = text(&table, &[Change::Changed, Change::Same], true);
        assert!(marked.contains(&format!("{MARKED}* Ana       -110{PLAIN}\n")), "{marked}");
        assert!(marked.contains("\n  B\u{fffd}[2Jea"), "{marked}");
        assert_eq!(text(&Table::default(), &[], false), "nothing found\n");
    }

    #[test]
    fn objects_become_rows() {
        let json =
            br#"{"status":"ok","rate_limit":{"per_day":5},"list":["a","b"],"none":null,"by":"=x"}"#;
        let table = Table::parse_json(json, lines::whole).unwrap();
        assert_eq!(table.columns, ["status", "rate_limit.per_day", "list", "none", "by"]);
        assert_eq!(table.rows, [["ok", "5", "a,b", "", "'=x"]]);
        assert_eq!(text(&table, &[], false), "status ok\nrate_limit.per_day 5\nlist a,b\nby '=x\n");
        let list = Table::parse_json(
            br#"{"sports":[{"key":"mma"},{"key":"golf","new":1}]}"#,
            lines::whole,
        )
        .unwrap();
        assert_eq!(list.rows, [["mma", ""], ["golf", "1"]]);
    }

    #[test]
    fn changes_are_those_of_the_same_rows() {
        let table = |csv: &str| Table::parse_csv(csv.as_bytes()).unwrap();
        let before = table("id,name,price,age_s\n1,A,5,1\n1,B,6,1\n2,A,7,1\n");
        let now = table("id,name,price,age_s\n1,A,5,9\n1,B,8,9\n3,A,7,9\n");
        let (changes, gone) = now.changes(Some(&before), &["id", "name"]);
        assert_eq!(changes, [Change::Same, Change::Changed, Change::New]);
        assert_eq!(gone, [&before.rows[2]]);
    }
}
