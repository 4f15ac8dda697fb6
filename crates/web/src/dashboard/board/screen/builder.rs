//! Builds the rows and cells of one event: groups comparable prices and selects the best.
use std::cmp::Reverse;
use std::collections::BTreeMap;

use domain::market::{OutcomeRule, PointRule};
use domain::{BookmakerId, Price, RecordId, Status};
use market::SportView;
use market::analysis::{implied_probability, main_outcome, median};
use market::book::{Outcome, OutcomeName};
use market::snapshot::{EventRow, RecordRow};

use crate::dashboard::board::choice::Choice;
use crate::dashboard::board::screen::{
    Best, Cell, Column, Fixture, Missing, Priced, Row, ScreenInput, Start, records, score, title,
};
use crate::dashboard::board::sparkline;
use crate::dashboard::board::text::{age, line_text, price_text};
use crate::dashboard::cells;

/// Maximum number of best prices per outcome if there is no room for every bookmaker.
const BEST_MAX: usize = 3;
/// Minimum number of bookmakers with the same best price for which it may be left unmarked.
const TIES_MIN: usize = 4;

/// One outcome at every bookmaker that prices it.
type Offers<'a> = BTreeMap<BookmakerId, (&'a RecordRow, Outcome)>;

/// An event, with the reason for each column why a price is missing.
struct OfEvent<'a> {
    event: &'a EventRow,
    missing: Vec<Missing>,
}

pub(crate) struct ScreenBuilder<'a> {
    pub(crate) input: &'a ScreenInput<'a>,
    pub(crate) choice: &'a Choice,
    pub(crate) view: &'a SportView,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows_max: usize,
}

impl<'a> ScreenBuilder<'a> {
    /// An event with prices or suspended prices; `None` if it has neither.
    pub(crate) fn fixture(&self, event: &EventRow) -> Option<Fixture> {
        let shown = |row: &&RecordRow| {
            row.market == self.choice.market && self.columns.iter().any(|c| c.id == row.bookmaker)
        };
        let records: Vec<&RecordRow> = records(self.view, event).filter(shown).collect();
        let of_event = OfEvent { event, missing: self.missing(event) };
        let mut rows = self.rows(&of_event, &records);
        if rows.is_empty() && of_event.missing.iter().any(|own| own.suspended) {
            rows = self.closed_rows(&of_event);
        }
        if rows.is_empty() {
            return None;
        }
        let more = rows.len().saturating_sub(self.rows_max);
        rows.truncate(self.rows_max);
        let mut sparkline = String::new();
        if self.is_between_sides() {
            // One sparkline for all rows, over all lines: the line itself moves.
            let of_all = records.iter().map(|row| row.id);
            sparkline =
                rows.first().map(|row| self.sparkline(of_all, row.outcome)).unwrap_or_default();
        } else {
            for row in &mut rows {
                row.sparkline = self.sparkline(row.records.iter().copied().flatten(), row.outcome);
            }
        }
        Some(Fixture {
            id: event.id.to_string(),
            score: if event.status == Status::Scheduled { String::new() } else { score(event) },
            title: title(event),
            competition: event.details.competition.to_string(),
            live: event.status == Status::Live,
            starts: Start::new(event.commence_time),
            rows,
            more,
            sparkline,
        })
    }

    fn is_between_sides(&self) -> bool {
        match self.choice.market.outcome_rule() {
            OutcomeRule::Sides | OutcomeRule::OverUnder => true,
            OutcomeRule::Entrants | OutcomeRule::Pairing => false,
        }
    }

    /// Groups of comparable outcomes: those of one line, of one pairing, or all.
    fn rows(&self, of: &OfEvent<'_>, records: &[&'a RecordRow]) -> Vec<Row> {
        let pairing = self.choice.market.outcome_rule() == OutcomeRule::Pairing;
        let mut rows = Vec::new();
        for line in main_lines(records) {
            let mut blocks: BTreeMap<Vec<OutcomeName>, BTreeMap<OutcomeName, Offers<'_>>> =
                BTreeMap::new();
            for row in records {
                let offered = || row.record.outcomes.iter().filter(|own| line_of(own) == line);
                // Pairings differ by their participants.
                let mut names = Vec::new();
                if pairing {
                    names.extend(offered().map(|own| own.name));
                    names.sort_unstable();
                    names.dedup();
                }
                for own in offered() {
                    let block = blocks.entry(names.clone()).or_default();
                    block.entry(own.name).or_default().insert(row.bookmaker, (row, *own));
                }
            }
            for block in blocks.into_values() {
                let ordered = self.ordered(of.event, block).into_iter().enumerate();
                rows.extend(ordered.map(|(at, (name, offers))| Row {
                    leads: at == 0,
                    ..self.row(of, name, &offers)
                }));
            }
        }
        rows
    }

    /// Two sides in their order; the outcomes of a field by price, favourites first.
    fn ordered<'b>(
        &self,
        event: &EventRow,
        block: BTreeMap<OutcomeName, Offers<'b>>,
    ) -> Vec<(OutcomeName, Offers<'b>)> {
        let mut ordered: Vec<(OutcomeName, Offers<'b>)> = block.into_iter().collect();
        if !self.is_between_sides() {
            ordered.sort_by_cached_key(|(name, offers)| {
                let each =
                    offers.values().map(|(_, own)| implied_probability(own.quote.price).get());
                (Reverse(median(each.collect())), event.outcome_text(*name))
            });
        }
        ordered
    }

    /// One outcome on one line at every bookmaker.
    fn row(&self, of: &OfEvent<'_>, outcome: OutcomeName, offers: &Offers<'_>) -> Row {
        let mut fresh: Vec<(Price, &Outcome, &Column)> = self
            .columns
            .iter()
            .filter_map(|column| {
                let (row, offer) = offers.get(&column.id)?;
                let counts = self.age(column, row).is_empty();
                counts.then_some((offer.quote.price, offer, column))
            })
            .collect();
        // Stable sort: equal prices keep their order, so that the best one does not change while prices stand still.
        fresh.sort_by_key(|(price, ..)| Reverse(*price));
        let top = marked(&fresh.iter().map(|(price, ..)| *price).collect::<Vec<_>>());
        let columns = self.columns.iter().zip(&of.missing);
        let cells: Vec<Cell> =
            columns.map(|(column, missing)| self.cell(column, missing, offers, top)).collect();
        let mut best: Vec<Best> = fresh
            .iter()
            .take(BEST_MAX)
            .map(|(_, offer, column)| Best {
                price: price_text(offer, self.choice.format),
                who: column.title.clone(),
            })
            .collect();
        if best.is_empty() {
            let late = cells.iter().any(|cell| matches!(cell, Cell::Priced(_)));
            let why = if late { "late prices only" } else { "suspended" };
            best.push(Best { price: String::new(), who: why.to_owned() });
        }
        let point = offers.values().find_map(|(_, offer)| offer.point);
        let is_main = |row: &RecordRow, own: &Outcome| {
            main_outcome(&row.record.outcomes, outcome).is_some_and(|main| main.point == own.point)
        };
        let record = |column: &Column| {
            let (row, own) = offers.get(&column.id)?;
            is_main(row, own).then_some(row.id)
        };
        Row {
            outcome,
            name: of.event.outcome_text(outcome).to_owned(),
            line: point.map(|point| line_text(point, outcome)).unwrap_or_default(),
            code: code(outcome, point.map(domain::Line::quarters)),
            leads: false,
            best,
            cells,
            sparkline: String::new(),
            records: self.columns.iter().map(record).collect(),
        }
    }

    fn cell(
        &self,
        column: &Column,
        missing: &Missing,
        offers: &Offers<'_>,
        top: Option<Price>,
    ) -> Cell {
        let Some((row, offer)) = offers.get(&column.id) else {
            return Cell::Missing(missing.clone());
        };
        let age = self.age(column, row);
        let price = offer.quote.price;
        Cell::Priced(Priced {
            price,
            text: price_text(offer, self.choice.format),
            best: age.is_empty() && top == Some(price),
            age,
        })
    }

    /// Both sides of an event whose prices are all suspended.
    fn closed_rows(&self, of: &OfEvent<'_>) -> Vec<Row> {
        let names: &[OutcomeName] = match self.choice.market.outcome_rule() {
            OutcomeRule::Sides => &[OutcomeName::Home, OutcomeName::Away],
            OutcomeRule::OverUnder => &[OutcomeName::Over, OutcomeName::Under],
            OutcomeRule::Entrants | OutcomeRule::Pairing => &[],
        };
        let none = Offers::new();
        names.iter().map(|name| self.row(of, *name, &none)).collect()
    }

    /// For each column, the reason why it has no price.
    fn missing(&self, event: &EventRow) -> Vec<Missing> {
        let snapshot = self.input.snapshot;
        let mut states = BTreeMap::new();
        snapshot.visit_cells(self.choice.sport, event, |bookmaker, market, cell| {
            if market == self.choice.market {
                states.insert(bookmaker, cell);
            }
        });
        let other = match self.choice.market.point_rule() {
            PointRule::None => "not priced",
            PointRule::Signed | PointRule::Total => "other line",
        };
        let missing = |column: &Column| match states.get(&column.id) {
            // The bookmaker prices the market, but not this outcome or line.
            Some(market::Cell::Priced { .. }) | None => {
                Missing { why: other.to_owned(), suspended: false }
            }
            Some(cell) => Missing {
                why: cells::text(*cell, snapshot.cut_at),
                suspended: matches!(cell, market::Cell::Suspended { .. }),
            },
        };
        self.columns.iter().map(missing).collect()
    }

    /// Age of a price if it is stale; otherwise empty.
    fn age(&self, column: &Column, row: &RecordRow) -> String {
        let old = self.input.snapshot.cut_at.since(row.last_update);
        if column.late.is_empty() && old <= self.input.stale_after {
            return String::new();
        }
        age(old)
    }

    fn sparkline(&self, records: impl Iterator<Item = RecordId>, outcome: OutcomeName) -> String {
        let paths = records.filter_map(|record| self.input.history.path(record, outcome));
        sparkline::draw(&paths.collect::<Vec<_>>(), self.input.snapshot.cut_at)
    }
}

/// The line of an outcome's block in quarters, as seen by the home side or the total.
fn line_of(outcome: &Outcome) -> Option<i32> {
    let quarters = outcome.point?.quarters();
    Some(match outcome.name {
        OutcomeName::Away => -quarters,
        OutcomeName::Home
        | OutcomeName::Draw
        | OutcomeName::Over
        | OutcomeName::Under
        | OutcomeName::Entrant(_) => quarters,
    })
}

/// Main lines of the bookmakers: the most frequent first, ties by the lowest. A market without lines gives one `None`.
fn main_lines(records: &[&RecordRow]) -> Vec<Option<i32>> {
    let mut counts: BTreeMap<Option<i32>, u32> = BTreeMap::new();
    for row in records {
        let outcomes = &row.record.outcomes;
        let first = outcomes.iter().map(|own| own.name).min();
        if let Some(main) = first.and_then(|name| main_outcome(outcomes, name)) {
            *counts.entry(line_of(main)).or_default() += 1;
        }
    }
    let mut lines: Vec<(Option<i32>, u32)> = counts.into_iter().collect();
    lines.sort_by_key(|(_, count)| Reverse(*count));
    lines.into_iter().map(|(line, _)| line).collect()
}

/// The price to mark, given prices from best to worst: better than another one, and not offered by most bookmakers.
fn marked(prices: &[Price]) -> Option<Price> {
    let (top, last) = (prices.first()?, prices.last()?);
    let ties = prices.iter().filter(|price| *price == top).count();
    let crowd = ties >= TIES_MIN && ties * 2 > prices.len();
    (top > last && !crowd).then_some(*top)
}

/// The row's code in a URL.
pub(crate) fn code(name: OutcomeName, quarters: Option<i32>) -> String {
    let name = match name {
        OutcomeName::Home => "h".to_owned(),
        OutcomeName::Away => "a".to_owned(),
        OutcomeName::Draw => "d".to_owned(),
        OutcomeName::Over => "o".to_owned(),
        OutcomeName::Under => "u".to_owned(),
        OutcomeName::Entrant(number) => format!("e{number}"),
    };
    quarters.map_or(name.clone(), |quarters| format!("{name}{quarters}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_marked_where_it_is_better_than_another_and_not_everybodys() {
        let marked = |prices: &[u64]| {
            let prices: Vec<Price> =
                prices.iter().map(|own| Price::from_ratio(*own, 100).unwrap()).collect();
            marked(&prices).is_some()
        };
        assert!(marked(&[120, 110]) && marked(&[120, 120, 120, 110]));
        assert!(marked(&[120, 120, 120, 120, 110, 110, 110, 110]));
        assert!(!marked(&[]) && !marked(&[120]) && !marked(&[120, 120]));
        assert!(!marked(&[1000, 1000, 1000, 1000, 1000, 800, 750]));
    }

    #[test]
    fn a_row_is_named_by_its_outcome_and_its_line() {
        assert_eq!(code(OutcomeName::Away, Some(-14)), "a-14");
        assert_eq!(code(OutcomeName::Entrant(12), None), "e12");
    }
}
