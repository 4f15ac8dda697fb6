//! One event's page: its score, its prices at every bookmaker, their history, margins and fair probabilities.
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::{Arc, PoisonError};

use askama::Template;
use domain::{BookmakerSet, EventId, Format, Line, Period, RecordId, Status};
use engine::{PriceHistory, PricePath, Published};
use market::analysis::{
    Analysis, FairOutcome, FairSelection, MarketLine, Method, Probability, Reference,
    implied_probability, is_field, margin, winners, without_margin,
};
use market::book::{EventDetails, OutcomeName};

use crate::context::Web;
use crate::dashboard::board::chart::{self, Chart, price_at};
use crate::dashboard::board::choice::{Choice, Link, analysis_filter};
use crate::dashboard::board::filter::Filter;
use crate::dashboard::board::frame::Frame;
use crate::dashboard::board::live::PageKey;
use crate::dashboard::board::past::EventPast;
use crate::dashboard::board::screen::{self, Cell, Row, Screen, Start, code};
use crate::dashboard::board::text::{align, percent, price_text};
use crate::dashboard::cells::Cells;
use crate::dashboard::page::Shell;
use crate::dashboard::page_error::PageError;

/// Maximum number of outcomes with fair probabilities; in a field, the favourites.
const FAIR_MAX: usize = 12;
/// Maximum number of lines of a market searched for the chosen one.
const FAIR_LINES_MAX: usize = 500;
/// Maximum number of outcomes offered for the price history.
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
    methods: [&'static str; Method::ALL.len()],
    cells: Cells,
}

/// The score by rounds, sets or quarters.
struct Periods {
    numbers: Vec<u32>,
    sides: [(String, Vec<String>, String); 2],
}

/// One bookmaker's row.
struct BookRow {
    colour: usize,
    title: String,
    late: String,
    opened: String,
    now: String,
    margin: String,
    fair: String,
}

/// An outcome's fair probability: the median over all bookmakers, without margins.
struct FairRow {
    name: String,
    percent: String,
    /// Width of the bar in percent.
    width: u32,
    price: String,
    /// The fair price by each method.
    by_method: Vec<String>,
}

pub(crate) fn render(
    web: &Web,
    shell: Shell,
    key: &PageKey,
    id: EventId,
    (screen, published, past): (&Arc<Screen>, &Published, Option<&EventPast>),
) -> Result<String, PageError> {
    let choice = key.view.choice;
    let event = published.snapshot.sport(choice.sport).event(id).ok_or(PageError::NotFound)?;
    let sport = web.api.catalogue.sport(choice.sport);
    let path = format!("/board/event/{id}");
    let rows = screen.fixtures.first().map(|fixture| fixture.rows.as_slice()).unwrap_or_default();
    let chosen = rows.iter().position(|row| row.code == key.outcome).unwrap_or(0);
    let block = block(rows, chosen);
    let history = web.board.history.read().unwrap_or_else(PoisonError::into_inner);
    let mine = rows.get(chosen);
    let (winners, format) = (winners(choice.market), choice.format);
    let about = About { screen, block, mine, past, winners, format };
    let page = EventPage {
        shell,
        frame: Frame::new(web, &choice, &path, screen, &Filter::default()),
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
        fair: fair_rows(published, id, &about, &choice),
        methods: Method::ALL.map(method_title),
        cells: Cells::new(&published.snapshot, choice.sport, event),
        screen: Arc::clone(screen),
    };
    drop(history);
    Ok(page.render()?)
}

const fn method_title(method: Method) -> &'static str {
    match method {
        Method::Power => "Power",
        Method::Multiplicative => "Multiplicative",
        Method::Additive => "Additive",
        Method::Shin => "Shin",
        Method::OddsRatio => "Odds ratio",
    }
}

/// The outcomes compared with the chosen one: those of its line or pairing, or all.
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
    past: Option<&'a EventPast>,
    winners: u32,
    format: Format,
}

impl About<'_> {
    /// The price history of the chosen outcome at a bookmaker.
    fn path<'a>(&self, history: &'a PriceHistory, record: RecordId) -> Option<Cow<'a, PricePath>> {
        let mine = self.mine?;
        let noted = history.path(record, mine.outcome);
        let whole = self.past.and_then(|past| past.path(record, mine, noted));
        whole.map(Cow::Owned).or(noted.map(Cow::Borrowed))
    }

    fn chart(&self, history: &PriceHistory) -> Option<Chart> {
        let mine = self.mine?;
        let paths: Vec<_> = mine
            .records
            .iter()
            .zip(&self.screen.columns)
            .filter_map(|(record, column)| {
                let path = self.path(history, (*record)?)?;
                Some((column.colour, column.title.clone(), path))
            })
            .collect();
        chart::draw(&paths, self.screen.cut, self.format)
    }

    /// A bookmaker's prices for the block; `None` if one is missing, because the rest do not sum to a book.
    fn prices(&self, column: usize) -> Option<Vec<Probability>> {
        let price = |row: &Row| match row.cells.get(column) {
            Some(Cell::Priced(priced)) => Some(implied_probability(priced.price)),
            Some(Cell::Missing(_)) | None => None,
        };
        let prices: Option<Vec<Probability>> = self.block.iter().map(price).collect();
        prices.filter(|prices| prices.len() > 1)
    }

    /// True if the line is the block's: all of its outcomes are rows of the block.
    fn is_of(&self, line: &MarketLine) -> bool {
        let is_row = |name: &OutcomeName| {
            let code = code(*name, line.point_of(*name).map(Line::quarters));
            self.block.iter().any(|row| row.code == code)
        };
        is_field(line.market) || line.names.iter().all(is_row)
    }

    fn books(&self, history: &PriceHistory) -> Vec<BookRow> {
        let Some(mine) = self.mine else {
            return Vec::new();
        };
        let place = self.block.iter().position(|row| row.outcome == mine.outcome);
        let columns = self.screen.columns.iter().enumerate();
        let mut books: Vec<BookRow> = columns
            .map(|(at, column)| {
                let record = mine.records.get(at).copied().flatten();
                let path = record.and_then(|record| self.path(history, record));
                let opened = path.map(|path| market::book::Outcome {
                    name: mine.outcome,
                    quote: path.opened,
                    point: None,
                });
                let prices = self.prices(at);
                let probability = prices.as_deref().zip(place).and_then(|(prices, place)| {
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
                    fair: probability.map(|own| percent(i64::from(own))).unwrap_or_default(),
                }
            })
            .collect();
        align(books.iter_mut().map(|own| &mut own.opened).collect());
        let priced = books.iter_mut().filter(|own| !own.now.ends_with('.'));
        align(priced.map(|own| &mut own.now).collect());
        books
    }
}

/// Fair probabilities of the chosen outcome's line by every method: the median over all bookmakers, as in the API.
fn fair_rows(
    published: &Published,
    id: EventId,
    about: &About<'_>,
    choice: &Choice,
) -> Vec<FairRow> {
    let analysis = published.per_publication(Analysis::default);
    let by_method = Method::ALL.map(|method| {
        let selection = FairSelection {
            filter: analysis_filter(choice, Some(id), BookmakerSet::ALL),
            reference: Reference { method, min_books: 1, ..Reference::default() },
            limit: FAIR_LINES_MAX,
            after: None,
        };
        let page = selection.select(&published.snapshot, analysis);
        let found = page.lines.iter().filter(|fair| about.is_of(fair.line));
        let line = found.max_by_key(|fair| fair.sources.len());
        line.map(|fair| fair.outcomes.clone()).unwrap_or_default()
    });
    let [first, ..] = &by_method;
    let mut shown: Vec<&FairOutcome> = first.iter().collect();
    if is_field(choice.market) {
        shown.sort_by_key(|own| Reverse(own.fair.probability));
    }
    let row = |own: &FairOutcome| {
        let of = |outcomes: &Vec<FairOutcome>| {
            let found = outcomes.iter().find(|other| other.name == own.name);
            found.map(|found| price_at(found.fair.probability.into(), choice.format))
        };
        let name = about.block.iter().find(|row| row.outcome == own.name).map(Row::label)?;
        let probability = own.fair.probability;
        Some(FairRow {
            name,
            percent: percent(probability.into()),
            width: (probability + 5_000_000) / 10_000_000,
            price: price_at(probability.into(), choice.format),
            by_method: by_method.iter().map(|own| of(own).unwrap_or_default()).collect(),
        })
    };
    shown.into_iter().filter_map(row).take(FAIR_MAX).collect()
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
