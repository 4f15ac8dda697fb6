//! Responses as tables: RFC 4180 with a header row, generated from the JSON response (K16, K17).
//!
//! A row is an outcome or a leg, with the fields of the enclosing objects repeated. The structure of a response is a
//! list of levels, from the whole response to its rows; the columns are the fields of the levels' objects, named in
//! the objects' tables. The cells are the values as written in the JSON, so that no number changes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use market::analysis::AnalysisSelection;
use serde_json::value::RawValue;

use super::object::Key;
use super::{
    Arbitrage, ArbitrageLeg, Arbitrages, BestLine, BestLines, BestOutcome, CellState, Coverage,
    CoveredBook, CoveredMarket, Event, ExplainedBook, Explanation, FairLine, FairLines,
    FairOutcome, Middle, MiddleLeg, Middles, OddsRecord, Outcome, Period, RefusedLines,
    RefusedOffers, ScoreRecord, Value, Values,
};
use crate::answers::{Answer, List, Selector};

const CONTENT_TYPE: &str = "text/csv; charset=utf-8";
/// Prefix of a field whose name also occurs at an inner level: `point` of a line is the home side's, `point` of its
/// outcome is the outcome's own.
const AROUND: &str = "line.";

/// The objects at one depth of a response.
#[derive(Clone, Copy, Debug)]
struct Level {
    fields: &'static [Key],
    /// The list with the objects of the next level.
    inner: Option<Key>,
    /// A field whose value is an object with scalar fields, and those fields.
    object: Option<(Key, &'static [Key])>,
    /// Another list of objects, which does not fit into rows.
    left_out: Option<Key>,
}

impl Level {
    const fn of(fields: &'static [Key]) -> Self {
        Self { fields, inner: None, object: None, left_out: None }
    }

    const fn around(fields: &'static [Key], inner: Key) -> Self {
        Self { inner: Some(inner), ..Self::of(fields) }
    }

    const fn with_object(self, key: Key, fields: &'static [Key]) -> Self {
        Self { object: Some((key, fields)), ..self }
    }

    const fn without(self, key: Key) -> Self {
        Self { left_out: Some(key), ..self }
    }

    /// The columns: a field, or a field of an object in a field.
    fn columns(&self) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
        let [inner, left_out] = [self.inner, self.left_out].map(|key| key.map(|key| key.name));
        let shown = move |key: &&Key| ![inner, left_out].contains(&Some(key.name));
        let object = self.object;
        self.fields.iter().filter(shown).flat_map(move |key| {
            let fields = object.filter(|(of, _)| of.name == key.name).map(|(_, fields)| fields);
            let whole = fields.is_none().then_some((key.name, None));
            let parts = fields.unwrap_or_default().iter();
            whole.into_iter().chain(parts.map(|part| (key.name, Some(part.name))))
        })
    }
}

/// Odds have the column order of K17; other rows have that of the JSON.
const ODDS: [Level; 2] = [
    Level::around(
        &[
            OddsRecord::EVENT_ID,
            OddsRecord::SPORT_KEY,
            OddsRecord::BOOKMAKER,
            OddsRecord::MARKET,
            OddsRecord::FORMAT,
            OddsRecord::LAST_UPDATE,
            OddsRecord::ID,
        ],
        OddsRecord::OUTCOMES,
    ),
    Level::of(&[Outcome::NAME, Outcome::POINT, Outcome::PRICE]),
];
const SCORES: [Level; 1] = [Level::of(ScoreRecord::FIELDS)];
const EVENTS: [Level; 1] = [Level::of(Event::FIELDS)];
const BEST: [Level; 3] = [
    Level::around(BestLines::FIELDS, BestLines::LINES)
        .with_object(BestLines::REFUSED, RefusedOffers::FIELDS),
    Level::around(BestLine::FIELDS, BestLine::OUTCOMES),
    Level::of(BestOutcome::FIELDS),
];
const FAIR: [Level; 3] = [
    Level::around(FairLines::FIELDS, FairLines::LINES)
        .with_object(FairLines::REFUSED, RefusedLines::FIELDS),
    Level::around(FairLine::FIELDS, FairLine::OUTCOMES).without(FairLine::SOURCES),
    Level::of(FairOutcome::FIELDS),
];
const ARBITRAGE: [Level; 3] = [
    Level::around(Arbitrages::FIELDS, Arbitrages::ARBITRAGES)
        .with_object(Arbitrages::REFUSED, RefusedOffers::FIELDS),
    Level::around(Arbitrage::FIELDS, Arbitrage::LEGS),
    Level::of(ArbitrageLeg::FIELDS),
];
const EV: [Level; 2] = [
    Level::around(Values::FIELDS, Values::VALUES)
        .with_object(Values::REFUSED, RefusedLines::FIELDS),
    Level::of(Value::FIELDS),
];
const MIDDLES: [Level; 3] = [
    Level::around(Middles::FIELDS, Middles::MIDDLES)
        .with_object(Middles::REFUSED, RefusedOffers::FIELDS),
    Level::around(Middle::FIELDS, Middle::LEGS),
    Level::of(MiddleLeg::FIELDS),
];
const COVERAGE: [Level; 3] = [
    Level::around(Coverage::FIELDS, Coverage::BOOKS),
    Level::around(CoveredBook::FIELDS, CoveredBook::MARKETS),
    Level::of(CoveredMarket::FIELDS),
];
const EXPLAIN: [Level; 3] = [
    Level::around(Explanation::FIELDS, Explanation::BOOKS),
    Level::around(ExplainedBook::FIELDS, ExplainedBook::CELLS),
    Level::of(CellState::FIELDS),
];

/// The levels of the response to a selection; empty if it cannot be a table.
fn levels(selector: &Selector) -> &'static [Level] {
    match selector {
        Selector::List(List::Odds(..)) => &ODDS,
        Selector::List(List::Scores(_)) => &SCORES,
        Selector::List(List::Events(_)) => &EVENTS,
        Selector::Coverage(_) => &COVERAGE,
        Selector::Explain(_) => &EXPLAIN,
        Selector::Analysis(selection, _) => match &**selection {
            AnalysisSelection::Best(_) => &BEST,
            AnalysisSelection::Fair(_) => &FAIR,
            AnalysisSelection::Arbitrage(_) => &ARBITRAGE,
            AnalysisSelection::Value(_) => &EV,
            AnalysisSelection::Middle(_) => &MIDDLES,
        },
        Selector::Sports
        | Selector::Books
        | Selector::Bouts(..)
        | Selector::Event(..)
        | Selector::Delta(..)
        | Selector::Csv(_)
        | Selector::Path(_)
        | Selector::Closing(_)
        | Selector::V4(_) => &[],
    }
}

/// The table of the response to a selection.
pub(super) fn tabulate(selector: &Selector, json: &Answer) -> serde_json::Result<Answer> {
    let (levels, body) = (levels(selector), json.body());
    let whole: &RawValue = serde_json::from_slice(&body)?;
    // Most of a row repeats the row before.
    let mut out = String::with_capacity(4 * body.len());
    push_header(levels, &mut out);
    if is_list(whole) {
        for record in items(whole)? {
            push_rows(levels, record, "", &mut out)?;
        }
    } else {
        push_rows(levels, whole, "", &mut out)?;
    }
    let next = json.next.as_deref().map(str::to_owned);
    Ok(Answer::new(out.into_bytes(), next).noting_empty(json.empty).of_type(CONTENT_TYPE))
}

fn push_header(levels: &[Level], out: &mut String) {
    for (depth, level) in levels.iter().enumerate() {
        let further_in = levels.get(depth + 1..).unwrap_or_default();
        for column in level.columns() {
            if further_in.iter().any(|inner| inner.columns().any(|own| own == column)) {
                out.push_str(AROUND);
            }
            out.push_str(column.0);
            if let Some(part) = column.1 {
                out.extend([".", part]);
            }
            out.push(',');
        }
    }
    end_line(out);
}

/// Appends the rows of an object; `around` has the cells before theirs.
fn push_rows(
    levels: &[Level],
    object: &RawValue,
    around: &str,
    out: &mut String,
) -> serde_json::Result<()> {
    let Some((level, further_in)) = levels.split_first() else { return Ok(()) };
    let fields = fields(object)?;
    let start = out.len();
    out.push_str(around);
    for (name, part) in level.columns() {
        let cell = fields.get(name).copied();
        let cell = match (cell, part) {
            (Some(object), Some(part)) => self::fields(object)?.get(part).copied(),
            (cell, _) => cell,
        };
        if let Some(cell) = cell {
            push_cell(cell, out)?;
        }
        out.push(',');
    }
    let Some(inner) = level.inner else {
        end_line(out);
        return Ok(());
    };
    let around = out.split_off(start);
    let list = fields.get(inner.name).map(|list| items(list)).transpose()?;
    list.into_iter().flatten().try_for_each(|inner| push_rows(further_in, inner, &around, out))
}

/// Ends a line, replacing the comma after its last cell.
fn end_line(out: &mut String) {
    out.pop();
    out.push_str("\r\n");
}

/// Appends a value: a number or flag unchanged, nothing for null, a list as one text.
fn push_cell(value: &RawValue, out: &mut String) -> serde_json::Result<()> {
    match value.get() {
        "null" => {}
        text if text.starts_with('"') => push_text(&decode(value)?, out),
        list if list.starts_with('[') => {
            let texts: Vec<Cow<'_, str>> =
                items(value)?.into_iter().map(decode_item).collect::<Result<_, _>>()?;
            push_text(&texts.join(","), out);
        }
        plain => out.push_str(plain),
    }
    Ok(())
}

/// A list item in a cell; a period as `6-4`.
fn decode_item(item: &RawValue) -> serde_json::Result<Cow<'_, str>> {
    if !item.get().starts_with('{') {
        return decode(item);
    }
    let fields = fields(item)?;
    let [home, away] = [Period::HOME_SCORE, Period::AWAY_SCORE]
        .map(|key| fields.get(key.name).map_or("", |score| score.get()));
    Ok(format!("{home}-{away}").into())
}

/// The text of a JSON string; any other value unchanged.
fn decode(value: &RawValue) -> serde_json::Result<Cow<'_, str>> {
    let raw = value.get();
    match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        None => Ok(raw.into()),
        Some(plain) if !plain.contains('\\') => Ok(plain.into()),
        Some(_) => serde_json::from_str::<String>(raw).map(Cow::from),
    }
}

/// Appends a text: potential spreadsheet formulas are marked as text, and texts with separators are quoted.
fn push_text(text: &str, out: &mut String) {
    let formula = |first: char| matches!(first, '=' | '+' | '-' | '@') || first.is_control();
    let guard = if text.starts_with(formula) { "'" } else { "" };
    if text.contains(['"', ',', '\r', '\n']) {
        out.extend(["\"", guard, &text.replace('"', "\"\""), "\""]);
    } else {
        out.extend([guard, text]);
    }
}

fn is_list(value: &RawValue) -> bool {
    value.get().starts_with('[')
}

fn items(list: &RawValue) -> serde_json::Result<Vec<&RawValue>> {
    serde_json::from_str(list.get())
}

fn fields(object: &RawValue) -> serde_json::Result<BTreeMap<&str, &RawValue>> {
    serde_json::from_str(object.get())
}

#[cfg(test)]
mod tests {
    use domain::Catalogue;
    use market::EventSelection;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn events() -> Selector {
        let sport = Catalogue::load(None).unwrap().sport_id("mma").unwrap();
        let (status, events, from, to, name, after) = Default::default();
        let limit = 1;
        let list = EventSelection { sport, status, events, from, to, name, limit, after };
        Selector::List(List::Events(list))
    }

    /// Reads the cells of a table whose cells contain no line breaks, according to RFC 4180.
    fn read(table: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
        let (mut quoted, mut rest) = (false, table.chars().peekable());
        while let Some(c) = rest.next() {
            match c {
                '"' if quoted && rest.next_if_eq(&'"').is_some() => cell.push('"'),
                '"' => quoted = !quoted,
                ',' if !quoted => row.push(std::mem::take(&mut cell)),
                '\r' if !quoted => {
                    assert_eq!(rest.next(), Some('\n'));
                    row.push(std::mem::take(&mut cell));
                    rows.push(std::mem::take(&mut row));
                }
                c => cell.push(c),
            }
        }
        assert!(!quoted && row.is_empty() && cell.is_empty());
        rows
    }

    proptest! {
        /// For any texts in a response, the table has the same texts in the same cells, and none is a formula.
        #[test]
        fn every_text_comes_back_from_its_cell(
            texts in prop::collection::vec("([=+@\"',\r\n\t-]|\\PC|[\u{1}-\u{1f}\u{7f}\u{85}]){0,6}", 1..6),
            markets in prop::collection::vec("[a-z,\"]{0,3}", 0..3),
        ) {
            let records: Vec<_> = texts
                .iter()
                .map(|text| json!({ "competition": text, "home_team": null, "markets": markets }))
                .collect();
            let json = Answer::new(serde_json::to_vec(&records).unwrap(), None);
            let table = tabulate(&events(), &json).unwrap().body();
            let rows = read(std::str::from_utf8(&table).unwrap());
            let names: Vec<&str> = Event::FIELDS.iter().map(|key| key.name).collect();
            prop_assert_eq!(&rows[0], &names);
            let at = |name| names.iter().position(|own| *own == name).unwrap();
            prop_assert_eq!(rows.len(), texts.len() + 1);
            for (row, text) in rows[1..].iter().zip(&texts) {
                let cell = row[at("competition")].as_str();
                prop_assert!(cell.is_empty() || !cell.starts_with(['=', '+', '-', '@']), "{:?}", cell);
                prop_assert!(!cell.starts_with(|first: char| first.is_control()), "{:?}", cell);
                let same = cell == text || cell.strip_prefix('\'') == Some(text);
                prop_assert!(same, "{:?} became {:?}", text, cell);
                prop_assert_eq!(&row[at("home_team")], "");
                prop_assert_eq!(&row[at("markets")], &markets.join(","));
            }
        }
    }

    #[test]
    fn numbers_are_written_as_they_are_in_the_json() {
        let record =
            r#"[{"id":1.10,"title":-110,"competition":12345678901234567890.125,"home_team":true}]"#;
        let json = Answer::new(record.into(), Some("more".to_owned())).noting_empty(true);
        let table = tabulate(&events(), &json).unwrap();
        let rows = read(std::str::from_utf8(&table.body()).unwrap());
        assert_eq!(
            rows[1],
            ["1.10", "", "-110", "12345678901234567890.125", "", "true", "", "", ""]
        );
        assert_eq!((table.next.as_deref(), table.empty), (Some("more"), true));
        assert_eq!(table.content_type, CONTENT_TYPE);
    }

    #[test]
    fn an_answer_that_is_no_table_is_an_error_and_never_half_a_table() {
        for body in ["", "[", "[1]", "{\"id\":1}x"] {
            assert!(tabulate(&events(), &Answer::new(body.into(), None)).is_err(), "{body}");
        }
    }
}
