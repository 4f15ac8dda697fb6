//! What a board shows at one publication: bookmakers as columns, events with their outcomes as rows, and a cell for
//! each price. A pure function of the snapshot, the history and the choice, so that it is made once for everybody.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::market::OutcomeRule;
use domain::{BookmakerId, EventId, Format, Line, Price, RecordId, Status, Timestamp};
use market::book::{Outcome, OutcomeName};
use market::snapshot::{EventRow, RecordRow};
use market::{Snapshot, SportView};

use crate::dashboard::board::chance::{chance, median};
use crate::dashboard::board::choice::Choice;
use crate::dashboard::board::history::{History, main_offer};
use crate::dashboard::board::spark;

/// Events on one board: the next ones.
const EVENTS_MAX: usize = 100;
/// Outcomes of one event on the board; its own page has the others.
const ROWS_MAX: usize = 20;
/// Outcomes on an event's own page.
const ROWS_WHOLE_MAX: usize = 400;

/// So many with the same best price are a crowd.
const TIES_MIN: usize = 5;

/// What a screen is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) history: &'a History,
    pub(crate) stale_after: Duration,
}

/// A board at one publication.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) cut: Timestamp,
    pub(crate) columns: Vec<Column>,
    pub(crate) fixtures: Vec<Fixture>,
    /// Events that are not shown for want of room.
    pub(crate) hidden: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) id: BookmakerId,
    pub(crate) title: String,
    /// How long ago it was read last, where that is too long.
    pub(crate) late: String,
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
    /// Outcomes that are on its own page only.
    pub(crate) more: usize,
    /// A line for all rows, where there is not one for each.
    pub(crate) spark: String,
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
    /// The first of a pairing.
    pub(crate) leads: bool,
    pub(crate) best: Best,
    pub(crate) cells: Vec<Cell>,
    pub(crate) spark: String,
    /// The records that the prices are from, column by column.
    pub(crate) records: Vec<Option<RecordId>>,
}

/// The best price and who has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Best {
    pub(crate) price: String,
    pub(crate) who: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Nothing,
    Suspended,
    Priced(Priced),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Priced {
    pub(crate) price: Price,
    pub(crate) text: String,
    pub(crate) point: String,
    /// How old the price is, where that is too old.
    pub(crate) age: String,
    pub(crate) best: bool,
}

/// One outcome at every bookmaker that has it.
type Offers<'a> = BTreeMap<BookmakerId, (&'a RecordRow, Outcome)>;

impl Screen {
    /// The board of a sport's market, or of one event's.
    pub(crate) fn new(scene: &Scene<'_>, choice: &Choice, only: Option<EventId>) -> Self {
        let view = scene.snapshot.sport(choice.sport);
        let painter = Painter {
            scene,
            choice,
            view,
            columns: columns(scene, choice, view, only),
            rows_max: if only.is_some() { ROWS_WHOLE_MAX } else { ROWS_MAX },
        };
        let wanted = view.events.iter().filter(|event| match only {
            Some(id) => event.id == id,
            None => event.status != Status::Final,
        });
        let mut fixtures: Vec<Fixture> =
            wanted.filter_map(|event| painter.fixture(event)).take(EVENTS_MAX + 1).collect();
        let hidden = fixtures.len().saturating_sub(EVENTS_MAX);
        fixtures.truncate(EVENTS_MAX);
        Self { cut: scene.snapshot.cut_at, columns: painter.columns, fixtures, hidden }
    }
}

/// Bookmakers of the region that have, or had, prices for what is shown.
fn columns(
    scene: &Scene<'_>,
    choice: &Choice,
    view: &SportView,
    only: Option<EventId>,
) -> Vec<Column> {
    let catalogue = scene.snapshot.catalogue();
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
        let closed = event.suspended.iter().filter(|(_, market)| *market == choice.market);
        closed.for_each(|(bookmaker, _)| mark(*bookmaker));
    }
    let mut columns: Vec<Column> = view
        .sources
        .iter()
        .filter(|source| pricing.get(source.bookmaker.index()).is_some_and(|prices| *prices))
        .map(|source| (source, catalogue.bookmaker(source.bookmaker)))
        .filter(|(_, own)| choice.region.is_none_or(|region| own.regions.contains(&region)))
        .map(|(source, own)| Column {
            id: source.bookmaker,
            title: own.title.to_string(),
            late: if source.stale {
                age(scene.snapshot.cut_at.since(source.source.read_at))
            } else {
                String::new()
            },
        })
        .collect();
    // By name, late or not: a column that moves under the reader's eyes is worse than a grey one.
    columns.sort_by_key(|column| column.title.to_lowercase());
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

struct Painter<'a> {
    scene: &'a Scene<'a>,
    choice: &'a Choice,
    view: &'a SportView,
    columns: Vec<Column>,
    rows_max: usize,
}

impl Painter<'_> {
    /// An event with prices, or with suspended ones; `None` for one that has neither.
    fn fixture(&self, event: &EventRow) -> Option<Fixture> {
        let words = Words::read(event);
        let mut rows = self.rows(event, &words);
        let is_closed = |column: &Column| self.is_suspended(event, column.id);
        if rows.is_empty() && self.columns.iter().any(is_closed) {
            rows = self.closed_rows(event, &words);
        }
        if rows.is_empty() {
            return None;
        }
        let more = rows.len().saturating_sub(self.rows_max);
        rows.truncate(self.rows_max);
        let one_for_all = self.is_between_sides();
        let spark = match rows.first() {
            Some(row) if one_for_all => self.spark(row),
            Some(_) | None => String::new(),
        };
        if !one_for_all {
            for row in &mut rows {
                row.spark = self.spark(row);
            }
        }
        Some(Fixture {
            id: event.id.to_string(),
            score: if event.status == Status::Scheduled { String::new() } else { words.score },
            title: words.title,
            competition: words.competition,
            live: event.status == Status::Live,
            starts: Start::new(event.commence_time),
            rows,
            more,
            spark,
        })
    }

    fn is_between_sides(&self) -> bool {
        match self.choice.market.outcome_rule() {
            OutcomeRule::Sides | OutcomeRule::OverUnder => true,
            OutcomeRule::Entrants | OutcomeRule::Pairing => false,
        }
    }

    fn rows(&self, event: &EventRow, words: &Words) -> Vec<Row> {
        let mut blocks: BTreeMap<Vec<OutcomeName>, BTreeMap<OutcomeName, Offers<'_>>> =
            BTreeMap::new();
        let shown = |row: &&RecordRow| {
            row.market == self.choice.market && self.columns.iter().any(|c| c.id == row.bookmaker)
        };
        for row in records(self.view, event).filter(shown) {
            // Pairings are told apart by who is in them; every other market is one block.
            let mut names: Vec<OutcomeName> =
                row.record.outcomes.iter().map(|outcome| outcome.name).collect();
            names.sort_unstable();
            names.dedup();
            let pairing = self.choice.market.outcome_rule() == OutcomeRule::Pairing;
            let key = if pairing { names.clone() } else { Vec::new() };
            let block = blocks.entry(key).or_default();
            for name in names {
                if let Some(offer) = main_offer(&row.record.outcomes, name) {
                    block.entry(name).or_default().insert(row.bookmaker, (row, *offer));
                }
            }
        }
        let mut rows = Vec::new();
        for block in blocks.into_values() {
            let mut ordered: Vec<(OutcomeName, Offers<'_>)> = block.into_iter().collect();
            if !self.is_between_sides() {
                // Favourites first.
                ordered.sort_by_cached_key(|(name, offers)| {
                    let chances = offers.values().map(|(_, own)| chance(own.quote.price).get());
                    (std::cmp::Reverse(median(chances.collect())), words.outcome(event, *name))
                });
            }
            let whole = ordered.into_iter().enumerate();
            rows.extend(whole.map(|(at, (name, offers))| Row {
                leads: at == 0,
                ..self.row(event, words.outcome(event, name), name, &offers)
            }));
        }
        rows
    }

    /// One outcome at every bookmaker. The best is the best price that is not late, among those on the line that
    /// most bookmakers have: prices on other lines are prices of other bets.
    fn row(
        &self,
        event: &EventRow,
        name: String,
        outcome: OutcomeName,
        offers: &Offers<'_>,
    ) -> Row {
        let usual = usual_line(offers.values().map(|(_, offer)| offer.point));
        let fresh = || {
            self.columns.iter().filter_map(|column| {
                let (row, offer) = offers.get(&column.id)?;
                let counts = Some(offer.point) == usual && self.age(column, row).is_empty();
                counts.then_some((offer, column))
            })
        };
        // Of equals the first, so that nothing changes hands while prices stand still.
        let best = fresh().rev().max_by_key(|(offer, _)| offer.quote.price);
        let best_price = best.map(|(offer, _)| offer.quote.price);
        let ties = fresh().filter(|(offer, _)| Some(offer.quote.price) == best_price).count();
        // What nearly everybody offers is not worth a mark.
        let marks = ties < TIES_MIN || ties * 3 <= fresh().count() * 2;
        let cell = |column: &Column| {
            let Some((row, offer)) = offers.get(&column.id) else {
                let closed = self.is_suspended(event, column.id);
                return if closed { Cell::Suspended } else { Cell::Nothing };
            };
            let age = self.age(column, row);
            let price = offer.quote.price;
            let is_best =
                marks && age.is_empty() && best_price == Some(price) && Some(offer.point) == usual;
            Cell::Priced(Priced {
                price,
                text: price_text(offer, self.choice.format),
                point: offer.point.map(|point| line_text(point, outcome)).unwrap_or_default(),
                age,
                best: is_best,
            })
        };
        Row {
            outcome,
            name,
            leads: false,
            best: best.map_or_else(Best::default, |(offer, column)| Best {
                price: price_text(offer, self.choice.format),
                who: column.title.clone(),
            }),
            cells: self.columns.iter().map(cell).collect(),
            spark: String::new(),
            records: self
                .columns
                .iter()
                .map(|column| offers.get(&column.id).map(|(row, _)| row.id))
                .collect(),
        }
    }

    /// Both sides of an event whose every price is suspended.
    fn closed_rows(&self, event: &EventRow, words: &Words) -> Vec<Row> {
        let names: &[OutcomeName] = match self.choice.market.outcome_rule() {
            OutcomeRule::Sides => &[OutcomeName::Home, OutcomeName::Away],
            OutcomeRule::OverUnder => &[OutcomeName::Over, OutcomeName::Under],
            OutcomeRule::Entrants | OutcomeRule::Pairing => &[],
        };
        let none = Offers::new();
        names
            .iter()
            .map(|name| self.row(event, words.outcome(event, *name), *name, &none))
            .collect()
    }

    fn is_suspended(&self, event: &EventRow, bookmaker: BookmakerId) -> bool {
        event.suspended.contains(&(bookmaker, self.choice.market))
    }

    /// How old a price is, where it is too old.
    fn age(&self, column: &Column, row: &RecordRow) -> String {
        let old = self.scene.snapshot.cut_at.since(row.last_update);
        if column.late.is_empty() && old <= self.scene.stale_after {
            return String::new();
        }
        age(old)
    }

    fn spark(&self, row: &Row) -> String {
        let paths = row.records.iter().flatten();
        let paths = paths.filter_map(|record| self.scene.history.path(*record, row.outcome));
        spark::draw(&paths.collect::<Vec<_>>(), self.scene.snapshot.cut_at)
    }
}

/// An event's texts, out of its JSON.
pub(crate) struct Words {
    pub(crate) title: String,
    pub(crate) competition: String,
    pub(crate) score: String,
    pub(crate) home: String,
    pub(crate) away: String,
}

impl Words {
    pub(crate) fn read(event: &EventRow) -> Self {
        let parsed =
            |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
        let own = parsed(&event.texts.event);
        let score = parsed(&event.texts.score);
        let text = |field: &str| own.get(field).and_then(|value| value.as_str());
        let (home, away) = (event.texts.home.to_string(), event.texts.away.to_string());
        let side = |field: &str| score.get(field).and_then(serde_json::Value::as_i64);
        let score = match (side("home_score"), side("away_score")) {
            (Some(home), Some(away)) => format!("{home}\u{2013}{away}"),
            (Some(_) | None, _) => String::new(),
        };
        Self {
            title: text("title").map_or_else(|| format!("{home} v {away}"), str::to_owned),
            competition: text("competition").unwrap_or_default().to_owned(),
            score,
            home,
            away,
        }
    }

    pub(crate) fn outcome(&self, event: &EventRow, name: OutcomeName) -> String {
        match name {
            OutcomeName::Home => self.home.clone(),
            OutcomeName::Away => self.away.clone(),
            OutcomeName::Draw => "Draw".to_owned(),
            OutcomeName::Over => "Over".to_owned(),
            OutcomeName::Under => "Under".to_owned(),
            OutcomeName::Entrant(number) => event
                .entrants
                .get(usize::from(number))
                .map_or_else(String::new, ToString::to_string),
        }
    }
}

impl Fixture {
    /// Whether its names have the text that is looked for, in small letters.
    pub(crate) fn is_about(&self, wanted: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(wanted);
        has(&self.title) || has(&self.competition) || self.rows.iter().any(|row| has(&row.name))
    }
}

impl Start {
    pub(crate) fn new(at: Timestamp) -> Self {
        let iso = at.to_string();
        let moment = crate::dashboard::moment::Moment::new(at, at);
        // The day, the month and the time: "15 Nov, 15:30".
        let (date, time) = moment.text.split_once(", ").unwrap_or((&moment.text, ""));
        let date = date.rsplit_once(' ').map_or(date, |(date, _)| date);
        Self { iso, text: format!("{date}, {}", time.trim_end_matches(" UTC")) }
    }
}

/// The line that most have; of equals the lowest.
fn usual_line(points: impl Iterator<Item = Option<Line>>) -> Option<Option<Line>> {
    let mut counts: BTreeMap<Option<i32>, (u32, Option<Line>)> = BTreeMap::new();
    for point in points {
        counts.entry(point.map(Line::quarters)).or_insert((0, point)).0 += 1;
    }
    counts.into_values().rev().max_by_key(|(count, _)| *count).map(|(_, point)| point)
}

/// A price as the board writes it: with its sign, and with at least two places, so that columns line up.
pub(crate) fn price_text(offer: &Outcome, format: Format) -> String {
    let text = offer.quote.to_json(format);
    let text = text.trim_matches('"');
    match format {
        Format::American => match text.strip_prefix('-') {
            Some(digits) => format!("\u{2212}{digits}"),
            None => format!("+{text}"),
        },
        Format::Fractional => text.to_owned(),
        Format::Decimal => {
            let places = text.split_once('.').map_or(0, |(_, places)| places.len());
            let dot = if places == 0 { "." } else { "" };
            format!("{text}{dot}{}", "0".repeat(2_usize.saturating_sub(places)))
        }
    }
}

/// A handicap with its sign, a total without.
fn line_text(line: Line, outcome: OutcomeName) -> String {
    let mut text = String::new();
    line.write_json(&mut text);
    let total = matches!(outcome, OutcomeName::Over | OutcomeName::Under);
    match text.strip_prefix('-') {
        Some(digits) => format!("\u{2212}{digits}"),
        None if total || line.quarters() == 0 => text,
        None => format!("+{text}"),
    }
}

/// A span in one short word.
pub(crate) fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7200 => (seconds / 60, "m"),
        7200..172_800 => (seconds / 3600, "h"),
        172_800.. => (seconds / 86_400, "d"),
    };
    format!("{count}{unit}")
}
