//! Contents of a board at one publication: bookmakers as columns, events with their outcomes as rows, and a cell for
//! each price. A pure function of the snapshot, the history and the choice, so that it is built once for all readers.

mod builder;

use std::time::Duration;

use domain::market::PointRule;
use domain::{BookmakerId, EventId, Price, RecordId, Status, Timestamp, World};
use market::book::OutcomeName;
use market::snapshot::{EventRow, RecordRow};
use market::{Snapshot, SportView};

use crate::dashboard::board::choice::Choice;
use crate::dashboard::board::screen::builder::ScreenBuilder;
use crate::dashboard::board::text::{age, align};
use api::v1::stream::screen_cursor;
use engine::PriceHistory;

pub(crate) use self::builder::code;

/// Maximum number of events on one board: the next ones.
const EVENTS_MAX: usize = 100;
/// Maximum number of outcomes of one event on the board; the event's page has the rest.
const ROWS_MAX: usize = 20;
/// Maximum number of outcomes if each line has its own: three lines.
const ROWS_OF_LINES_MAX: usize = 6;
/// Maximum number of outcomes on an event's page.
const ROWS_WHOLE_MAX: usize = 400;

/// Approximate memory of a row and of a cell with their texts, in bytes.
const ROW_BYTES: usize = 400;
const CELL_BYTES: usize = 120;

/// Input of a screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScreenInput<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) history: &'a PriceHistory,
    pub(crate) stale_after: Duration,
    pub(crate) world: World,
}

/// A board at one publication.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) cut: Timestamp,
    /// Position from which a browser that shows it continues.
    pub(crate) cursor: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) fixtures: Vec<Fixture>,
    /// Number of events omitted because of `EVENTS_MAX`.
    pub(crate) hidden: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) id: BookmakerId,
    pub(crate) title: String,
    /// Time since the last read if the source is late; otherwise empty.
    pub(crate) late: String,
    /// Index by name: the colour of its line, which is kept when the column moves.
    pub(crate) colour: usize,
}

#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) competition: String,
    pub(crate) live: bool,
    pub(crate) starts: Start,
    pub(crate) score: String,
    pub(crate) rows: Vec<Row>,
    /// Number of outcomes shown only on the event's page.
    pub(crate) more: usize,
    /// Path of the sparkline for all rows, if the rows have none of their own.
    pub(crate) sparkline: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) iso: String,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) outcome: OutcomeName,
    pub(crate) name: String,
    /// Handicap or total of the prices; empty in markets without lines.
    pub(crate) line: String,
    /// The row in a URL: the outcome, and the line in quarters.
    pub(crate) code: String,
    /// True for the first row of a line or pairing.
    pub(crate) leads: bool,
    /// The best prices, at most three, or the reason why there is none.
    pub(crate) best: Vec<Best>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) sparkline: String,
    /// Record ids per column, where this line is the record's main line: their history is of these prices.
    pub(crate) records: Vec<Option<RecordId>>,
}

/// One of the best prices with its bookmakers; without a price, the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Best {
    pub(crate) price: String,
    pub(crate) who: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// No price, with the reason as text (C7).
    Missing(Missing),
    Priced(Priced),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) why: String,
    pub(crate) suspended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Priced {
    pub(crate) price: Price,
    pub(crate) text: String,
    /// Age of the price if it is stale; otherwise empty.
    pub(crate) age: String,
    pub(crate) best: bool,
}

impl Screen {
    /// Builds the board of a sport's market, or of one event's.
    pub(crate) fn new(input: &ScreenInput<'_>, choice: &Choice, only: Option<EventId>) -> Self {
        let view = input.snapshot.sport(choice.sport);
        let builder = ScreenBuilder {
            input,
            choice,
            view,
            columns: columns(input, choice, view, only),
            rows_max: match (only, choice.market.point_rule()) {
                (Some(_), _) => ROWS_WHOLE_MAX,
                (None, PointRule::None) => ROWS_MAX,
                (None, PointRule::Signed | PointRule::Total) => ROWS_OF_LINES_MAX,
            },
        };
        let wanted = view.events.iter().filter(|event| match only {
            Some(id) => event.id == id,
            None => event.status != Status::Final,
        });
        let mut fixtures: Vec<Fixture> =
            wanted.filter_map(|event| builder.fixture(event)).take(EVENTS_MAX + 1).collect();
        let hidden = fixtures.len().saturating_sub(EVENTS_MAX);
        fixtures.truncate(EVENTS_MAX);
        align_columns(&mut fixtures, builder.columns.len());
        let cursor = screen_cursor(input.world, input.snapshot);
        Self { cut: input.snapshot.cut_at, cursor, columns: builder.columns, fixtures, hidden }
    }
}

impl Screen {
    /// Approximate memory of the screen.
    pub(crate) fn bytes(&self) -> usize {
        let rows = self.fixtures.iter().flat_map(|fixture| &fixture.rows);
        let rows = rows.map(|row| ROW_BYTES + CELL_BYTES * row.cells.len() + row.sparkline.len());
        rows.sum::<usize>() + ROW_BYTES * (self.fixtures.len() + self.columns.len())
    }
}

/// Gives all decimal prices of a column the same number of decimal places.
fn align_columns(fixtures: &mut [Fixture], columns: usize) {
    let rows = fixtures.iter_mut().flat_map(|own| &mut own.rows);
    let mut by_column: Vec<Vec<&mut String>> = (0..=columns).map(|_| Vec::new()).collect();
    for row in rows {
        let texts = row.cells.iter_mut().map(|cell| match cell {
            Cell::Priced(priced) => vec![&mut priced.text],
            Cell::Missing(_) => Vec::new(),
        });
        let best = row.best.iter_mut().map(|own| &mut own.price).collect();
        for (column, texts) in by_column.iter_mut().zip(std::iter::once(best).chain(texts)) {
            column.extend(texts);
        }
    }
    by_column.into_iter().for_each(align);
}

/// Chosen bookmakers of the region that have, or had, prices for the events shown.
fn columns(
    input: &ScreenInput<'_>,
    choice: &Choice,
    view: &SportView,
    only: Option<EventId>,
) -> Vec<Column> {
    let catalogue = input.snapshot.catalogue();
    let mut pricing = vec![false; catalogue.bookmakers().count()];
    let mut mark = |id: BookmakerId| {
        if let Some(mark) = pricing.get_mut(id.index()) {
            *mark = true;
        }
    };
    for event in view.events.iter().filter(|event| only.is_none_or(|id| event.id == id)) {
        for row in records(view, event).filter(|row| row.market == choice.market) {
            mark(row.bookmaker);
        }
        event.suspended(choice.market).for_each(&mut mark);
    }
    let mut columns: Vec<Column> = view
        .sources
        .iter()
        .filter(|source| pricing.get(source.bookmaker.index()).is_some_and(|prices| *prices))
        .map(|source| (source, catalogue.bookmaker(source.bookmaker)))
        .filter(|(_, own)| choice.region.is_none_or(|region| own.regions.contains(&region)))
        .filter(|(source, _)| choice.bookmakers.is_none_or(|own| own.contains(source.bookmaker)))
        .map(|(source, own)| Column {
            id: source.bookmaker,
            title: own.title.to_string(),
            late: if source.stale {
                age(input.snapshot.cut_at.since(source.source.read_at))
            } else {
                String::new()
            },
            colour: 0,
        })
        .collect();
    columns.sort_by_key(|column| column.title.to_lowercase());
    for (at, column) in columns.iter_mut().enumerate() {
        column.colour = at;
    }
    // Sorted by name, late bookmakers last: prices nobody can bet on must not precede current ones.
    columns.sort_by_key(|column| !column.late.is_empty());
    columns
}

pub(crate) fn records<'a>(
    view: &'a SportView,
    event: &EventRow,
) -> impl Iterator<Item = &'a RecordRow> {
    let place = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
    let range = place(event.records.start)..place(event.records.end);
    view.records.get(range).unwrap_or_default().iter()
}

/// Display name of an event: its title, or both sides.
pub(crate) fn title(event: &EventRow) -> String {
    let details = &event.details;
    let side = |name: &Option<Box<str>>| name.as_deref().unwrap_or_default().to_owned();
    match &details.title {
        Some(title) => title.to_string(),
        None => format!("{} v {}", side(&details.home), side(&details.away)),
    }
}

pub(crate) fn score(event: &EventRow) -> String {
    match (event.details.score.home, event.details.score.away) {
        (Some(home), Some(away)) => format!("{home}\u{2013}{away}"),
        (Some(_) | None, _) => String::new(),
    }
}

impl Fixture {
    /// True if the event's names contain the search text, which is in lower case.
    pub(crate) fn is_about(&self, wanted: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(wanted);
        has(&self.title) || has(&self.competition) || self.rows.iter().any(|row| has(&row.name))
    }
}

impl Row {
    /// The outcome's label, with its line if it has one.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.name, self.line).trim_end().to_owned()
    }
}

impl Start {
    pub(crate) fn new(at: Timestamp) -> Self {
        let iso = at.to_string();
        let moment = crate::dashboard::time_text::TimeText::new(at, at);
        // Text is "15 Nov, 15:30": day, month and time.
        let (date, time) = moment.text.split_once(", ").unwrap_or((&moment.text, ""));
        let date = date.rsplit_once(' ').map_or(date, |(date, _)| date);
        Self { iso, text: format!("{date}, {}", time.trim_end_matches(" UTC")) }
    }
}
