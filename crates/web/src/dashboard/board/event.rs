//! One event's page: its score, its prices at every bookmaker, their paths, margins, and the chances without them.
use std::sync::{Arc, PoisonError};

use askama::Template;
use domain::{EventId, Format, Period, Status};
use market::analysis::{Probability, implied_probability, margin, median, winners, without_margin};
use market::book::EventDetails;

use crate::context::Web;
use crate::dashboard::board::chart::{self, Chart};
use crate::dashboard::board::choice::Link;
use crate::dashboard::board::filter::Filter;
use crate::dashboard::board::history::History;
use crate::dashboard::board::live::PageKey;
use crate::dashboard::board::screen::{self, Cell, Row, Screen, Start};
use crate::dashboard::board::text::{align, price_text};
use crate::dashboard::board::{Frame, chart::price_at};
use crate::dashboard::cells::Cells;
use crate::dashboard::page::{Shell, Trouble};

/// Outcomes whose fair chances are shown; of a field, the favourites.
const FAIR_MAX: usize = 12;
/// Outcomes that one can choose to see the path of.
const OUTCOMES_MAX: usize = 40;

#[derive(Template)]
#[template(path = "board_game.html")]
struct EventPage {
    shell: Shell,
    frame: Frame,
    sport: String,
    back: String,
    title: String,
    competition: String,
    status: Status,
    starts: Start,
    score: String,
    periods: Option<Periods>,
    screen: Arc<Screen>,
    query: String,
    linked: bool,
    outcomes: Vec<Link>,
    outcome: String,
    chart: Option<Chart>,
    books: Vec<BookRow>,
    fair: Vec<FairRow>,
    cells: Cells,
}

/// The score by rounds, sets or quarters.
struct Periods {
    numbers: Vec<u32>,
    sides: [(String, Vec<String>, String); 2],
}

/// What is to be said of one bookmaker.
struct BookRow {
    colour: usize,
    title: String,
    late: String,
    opened: String,
    now: String,
    margin: String,
    fair: String,
}

/// An outcome's chance without margins, in the middle of all bookmakers.
struct FairRow {
    name: String,
    percent: String,
    /// Of a hundred.
    width: u32,
    price: String,
}

pub(crate) fn render(
    web: &Web,
    shell: Shell,
    key: &PageKey,
    id: EventId,
    screen: &Arc<Screen>,
) -> Result<String, Trouble> {
    let choice = key.view.choice;
    let world = web.api.world(web.settings.board.ok_or(Trouble::NotFound)?);
    let published = world.published();
    let event = published.snapshot.sport(choice.sport).event(id).ok_or(Trouble::NotFound)?;
    let sport = web.api.catalogue.sport(choice.sport);
    let path = format!("/board/event/{id}");
    let rows = screen.fixtures.first().map(|fixture| fixture.rows.as_slice()).unwrap_or_default();
    let chosen = rows.iter().position(|row| row.code == key.outcome).unwrap_or(0);
    let block = block(rows, chosen);
    let history = web.board.history.read().unwrap_or_else(PoisonError::into_inner);
    let mine = rows.get(chosen);
    let about =
        About { screen, block, mine, winners: winners(choice.market), format: choice.format };
    let page = EventPage {
        shell,
        frame: Frame::new(web, &choice, &path, screen.cut, &Filter::default()),
        sport: sport.title.to_string(),
        back: format!("/board/{}{}", sport.key, choice.query(&web.api.catalogue)),
        competition: event.details.competition.to_string(),
        status: event.status,
        starts: Start::new(event.commence_time),
        score: screen::score(event),
        periods: periods(&event.details),
        title: screen::title(event),
        query: choice.query(&web.api.catalogue),
        linked: false,
        outcomes: rows
            .iter()
            .take(OUTCOMES_MAX)
            .enumerate()
            .map(|(at, row)| Link {
                title: row.label(),
                href: format!(
                    "{path}{}&outcome={}#paths",
                    choice.query(&web.api.catalogue),
                    row.code
                ),
                current: at == chosen,
            })
            .collect(),
        outcome: mine.map(Row::label).unwrap_or_default(),
        chart: about.chart(&history),
        books: about.books(&history),
        fair: about.fair(),
        cells: Cells::new(&published.snapshot, choice.sport, event),
        screen: Arc::clone(screen),
    };
    drop(history);
    Ok(page.render()?)
}

/// The outcomes that belong together with the chosen one: those of its line or pairing, or all.
fn block(rows: &[Row], chosen: usize) -> &[Row] {
    let before = rows.get(..=chosen).unwrap_or_default();
    let from = before.iter().rposition(|row| row.leads).unwrap_or(0);
    let after = rows.get(chosen + 1..).unwrap_or_default();
    let to = after.iter().position(|row| row.leads).map_or(rows.len(), |at| chosen + 1 + at);
    rows.get(from..to).unwrap_or_default()
}

struct About<'a> {
    screen: &'a Screen,
    block: &'a [Row],
    mine: Option<&'a Row>,
    winners: u32,
    format: Format,
}

impl About<'_> {
    fn chart(&self, history: &History) -> Option<Chart> {
        let mine = self.mine?;
        let paths: Vec<_> = mine
            .records
            .iter()
            .zip(&self.screen.columns)
            .filter_map(|(record, column)| {
                let path = history.path((*record)?, mine.outcome)?;
                Some((column.colour, column.title.clone(), path))
            })
            .collect();
        chart::draw(&paths, self.screen.cut, self.format)
    }

    /// A bookmaker's prices for the block; `None` where one is missing, as they would not add up.
    fn prices(&self, column: usize) -> Option<Vec<Probability>> {
        let price = |row: &Row| match row.cells.get(column) {
            Some(Cell::Priced(priced)) => Some(implied_probability(priced.price)),
            Some(Cell::Nothing | Cell::Suspended) | None => None,
        };
        let prices: Option<Vec<Probability>> = self.block.iter().map(price).collect();
        prices.filter(|prices| prices.len() > 1)
    }

    fn books(&self, history: &History) -> Vec<BookRow> {
        let Some(mine) = self.mine else {
            return Vec::new();
        };
        let place = self.block.iter().position(|row| row.outcome == mine.outcome);
        let columns = self.screen.columns.iter().enumerate();
        let mut books: Vec<BookRow> = columns
            .map(|(at, column)| {
                let record = mine.records.get(at).copied().flatten();
                let path = record.and_then(|record| history.path(record, mine.outcome));
                let opened = path.map(|path| market::book::Outcome {
                    name: mine.outcome,
                    quote: path.opened,
                    point: None,
                });
                let prices = self.prices(at);
                let chance = prices.as_deref().zip(place).and_then(|(prices, place)| {
                    without_margin(prices, self.winners).get(place).copied()
                });
                BookRow {
                    colour: column.colour,
                    title: column.title.clone(),
                    late: column.late.clone(),
                    opened: opened.map(|own| price_text(&own, self.format)).unwrap_or_default(),
                    now: mine.cells.get(at).map(|cell| cell.text().to_owned()).unwrap_or_default(),
                    margin: prices
                        .map(|prices| percent(margin(&prices, self.winners)))
                        .unwrap_or_default(),
                    fair: chance.map(|own| percent(i64::from(own))).unwrap_or_default(),
                }
            })
            .collect();
        align(books.iter_mut().map(|own| &mut own.opened).collect());
        let priced = books.iter_mut().filter(|own| !own.now.ends_with('.'));
        align(priced.map(|own| &mut own.now).collect());
        books
    }

    /// The middle of what bookmakers that are not late think.
    fn fair(&self) -> Vec<FairRow> {
        let fresh = self.screen.columns.iter().enumerate().filter(|(_, own)| own.late.is_empty());
        let views: Vec<Vec<u32>> = fresh
            .filter_map(|(at, _)| Some(without_margin(&self.prices(at)?, self.winners)))
            .collect();
        let middles: Option<Vec<Probability>> = (0..self.block.len())
            .map(|at| median(views.iter().filter_map(|view| view.get(at).copied()).collect()))
            .map(|middle| middle.and_then(Probability::new))
            .collect();
        // Middles of each add up to a little more or less than the whole.
        let middles = without_margin(&middles.unwrap_or_default(), self.winners);
        let rows = self.block.iter().zip(middles).take(FAIR_MAX);
        rows.map(|(row, middle)| FairRow {
            name: row.label(),
            percent: percent(i64::from(middle)),
            width: (middle + 5_000_000) / 10_000_000,
            price: price_at(i64::from(middle), self.format),
        })
        .collect()
    }
}

fn periods(details: &EventDetails) -> Option<Periods> {
    let periods: Vec<Period> = details.periods().collect();
    if periods.is_empty() {
        return None;
    }
    let side = |name: &Option<Box<str>>, total: Option<i32>, of: fn(&Period) -> i32| {
        let name = name.as_deref().unwrap_or_default().to_owned();
        let each = periods.iter().map(|period| of(period).to_string()).collect();
        (name, each, total.map(|total| total.to_string()).unwrap_or_default())
    };
    let sides = [
        side(&details.home, details.score.home, |period| period.home),
        side(&details.away, details.score.away, |period| period.away),
    ];
    Some(Periods { numbers: periods.iter().map(|period| period.number).collect(), sides })
}

/// `52.4 %`, from billionths.
fn percent(billionths: i64) -> String {
    let tenths = (billionths + 500_000 * billionths.signum()) / 1_000_000;
    let sign = if tenths < 0 { "\u{2212}" } else { "" };
    format!("{sign}{}.{}\u{a0}%", tenths.abs() / 10, tenths.abs() % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_in_tenths_of_a_percent() {
        assert_eq!(percent(47_619_048), "4.8\u{a0}%");
        assert_eq!(percent(-47_619_048), "\u{2212}4.8\u{a0}%");
        assert_eq!(percent(598_999_999), "59.9\u{a0}%");
    }
}
