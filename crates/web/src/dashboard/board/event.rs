//! One event's page: its score, its prices at every bookmaker, their paths, margins, and the chances without them.
use std::sync::{Arc, PoisonError};

use askama::Template;
use domain::market::OutcomeRule;
use domain::{EventId, Format, Status};
use market::book::OutcomeName;
use market::snapshot::EventRow;

use crate::context::Web;
use crate::dashboard::board::chance::{Chance, chance, fair, margin, median, percent, winners};
use crate::dashboard::board::chart::{self, Chart};
use crate::dashboard::board::choice::Link;
use crate::dashboard::board::history::History;
use crate::dashboard::board::live::PageKey;
use crate::dashboard::board::screen::{Cell, Row, Screen, Start, Words, price_text};
use crate::dashboard::board::{Frame, chart::price_at};
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
}

/// The score by rounds, sets or quarters.
struct Periods {
    numbers: Vec<i64>,
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
    let words = Words::read(event);
    let sport = web.api.catalogue.sport(choice.sport);
    let path = format!("/board/event/{id}");
    let rows = screen.fixtures.first().map(|fixture| fixture.rows.as_slice()).unwrap_or_default();
    let chosen = rows.iter().position(|row| code(row.outcome) == key.outcome).unwrap_or(0);
    let block = block(rows, chosen, choice.market.outcome_rule() == OutcomeRule::Pairing);
    let history = web.board.history.read().unwrap_or_else(PoisonError::into_inner);
    let mine = rows.get(chosen);
    let about =
        About { screen, block, mine, winners: winners(choice.market), format: choice.format };
    let page = EventPage {
        shell,
        frame: Frame::new(web, &choice, &path, screen.cut),
        sport: sport.title.to_string(),
        back: format!("/board/{}{}", sport.key, choice.query()),
        competition: words.competition.clone(),
        status: event.status,
        starts: Start::new(event.commence_time),
        score: words.score.clone(),
        periods: periods(event, &words),
        title: words.title,
        query: choice.query(),
        linked: false,
        outcomes: rows
            .iter()
            .take(OUTCOMES_MAX)
            .enumerate()
            .map(|(at, row)| Link {
                title: row.name.clone(),
                href: format!("{path}{}&outcome={}#paths", choice.query(), code(row.outcome)),
                current: at == chosen,
            })
            .collect(),
        outcome: mine.map(|row| row.name.clone()).unwrap_or_default(),
        chart: about.chart(&history),
        books: about.books(&history),
        fair: about.fair(),
        screen: Arc::clone(screen),
    };
    drop(history);
    Ok(page.render()?)
}

/// The outcomes that belong together with the chosen one: those of its pairing, or all.
fn block(rows: &[Row], chosen: usize, pairing: bool) -> &[Row] {
    if !pairing {
        return rows;
    }
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
            .enumerate()
            .filter_map(|(at, (record, column))| {
                let path = history.path((*record)?, mine.outcome)?;
                Some((at, column.title.clone(), path))
            })
            .collect();
        chart::draw(&paths, self.screen.cut, self.format)
    }

    /// A bookmaker's prices for the block; `None` where one is missing, as they would not add up.
    fn prices(&self, column: usize) -> Option<Vec<Chance>> {
        let price = |row: &Row| match row.cells.get(column) {
            Some(Cell::Priced(priced)) => Some(chance(priced.price)),
            Some(Cell::Nothing | Cell::Suspended) | None => None,
        };
        let prices: Option<Vec<Chance>> = self.block.iter().map(price).collect();
        prices.filter(|prices| prices.len() > 1)
    }

    fn books(&self, history: &History) -> Vec<BookRow> {
        let Some(mine) = self.mine else {
            return Vec::new();
        };
        let place = self.block.iter().position(|row| row.outcome == mine.outcome);
        let columns = self.screen.columns.iter().enumerate();
        columns
            .map(|(at, column)| {
                let record = mine.records.get(at).copied().flatten();
                let path = record.and_then(|record| history.path(record, mine.outcome));
                let opened = path.map(|path| market::book::Outcome {
                    name: mine.outcome,
                    quote: path.opened,
                    point: None,
                });
                let prices = self.prices(at);
                let chance = prices
                    .as_deref()
                    .zip(place)
                    .and_then(|(prices, place)| fair(prices, self.winners).get(place).copied());
                BookRow {
                    colour: at,
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
            .collect()
    }

    /// The middle of what bookmakers that are not late think.
    fn fair(&self) -> Vec<FairRow> {
        let fresh = self.screen.columns.iter().enumerate().filter(|(_, own)| own.late.is_empty());
        let views: Vec<Vec<u32>> =
            fresh.filter_map(|(at, _)| Some(fair(&self.prices(at)?, self.winners))).collect();
        let middles: Option<Vec<Chance>> = (0..self.block.len())
            .map(|at| median(views.iter().filter_map(|view| view.get(at).copied()).collect()))
            .map(|middle| middle.and_then(Chance::new))
            .collect();
        // Middles of each add up to a little more or less than the whole.
        let middles = fair(&middles.unwrap_or_default(), self.winners);
        let rows = self.block.iter().zip(middles).take(FAIR_MAX);
        rows.map(|(row, middle)| FairRow {
            name: row.name.clone(),
            percent: percent(i64::from(middle)),
            width: (middle + 5_000_000) / 10_000_000,
            price: price_at(i64::from(middle), self.format),
        })
        .collect()
    }
}

fn periods(event: &EventRow, words: &Words) -> Option<Periods> {
    let score: serde_json::Value = serde_json::from_str(&event.texts.score).ok()?;
    let periods = score.get("periods")?.as_array()?;
    if periods.is_empty() {
        return None;
    }
    let number = |period: &serde_json::Value, field: &str| period.get(field)?.as_i64();
    let side = |name: &str, field: &str| {
        let each = periods.iter().map(|period| number(period, field));
        let total = number(&score, field).map(|total| total.to_string()).unwrap_or_default();
        let each = each.map(|own| own.map_or_else(String::new, |own| own.to_string())).collect();
        (name.to_owned(), each, total)
    };
    Some(Periods {
        numbers: periods.iter().filter_map(|period| number(period, "number")).collect(),
        sides: [side(&words.home, "home_score"), side(&words.away, "away_score")],
    })
}

/// An outcome in an address.
fn code(name: OutcomeName) -> String {
    match name {
        OutcomeName::Home => "h".to_owned(),
        OutcomeName::Away => "a".to_owned(),
        OutcomeName::Draw => "d".to_owned(),
        OutcomeName::Over => "o".to_owned(),
        OutcomeName::Under => "u".to_owned(),
        OutcomeName::Entrant(number) => format!("e{number}"),
    }
}
