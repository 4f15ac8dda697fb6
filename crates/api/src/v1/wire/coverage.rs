//! Why prices are missing: per cell for an event, as counts for a sport.

use domain::{Bookmaker, BookmakerId, EventId, Market, Region, SportId, Status, Timestamp};
use market::coverage::{CoverageSelection, ExplainSelection};
use market::snapshot::{EventRow, SourceRow};
use market::{Cell, CellFilter, Exclusion, Snapshot};
use serde_json::{Map, Value, json};

use crate::v1::wire::object::{Key, count, event_id, flag, list, object, one_of, schema, text};

object!(Coverage: "The number of prices of a sport, and why the others are missing." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "Time at which the snapshot was published."),
    EVENTS: "events" = count("Scheduled and live events."),
    BOOKS: "books" = list("CoveredBook", "Bookmakers with a source, in the order of their keys."),
    NO_SOURCE: "no_source" = keys("Bookmakers without a feed for this sport."),
});

object!(CoveredBook: "A bookmaker's coverage of a sport." {
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    REGIONS: "regions" = regions(),
    LAST_READ: "last_read" = schema("Timestamp", "Time of the last good read."),
    AGE_S: "age_s" = count("Whole seconds from `last_read` to `generated_at`."),
    STALE: "stale" = flag("True if the source had no good read recently."),
    LATENCY_MS: "latency_ms" = count("Delay of the last good read."),
    MARKETS: "markets" = list("CoveredMarket", "The sport's markets, in the order of their keys."),
});

object!(CoveredMarket: "A bookmaker's market; the counts of its states sum to `events`." {
    MARKET: "market" = schema("MarketKey", "The market."),
    PRICED: "priced" = count("Events with a price."),
    SUSPENDED: "suspended" = count("Events whose market was closed by a source that still lists the event."),
    WITHDRAWN: "withdrawn" = count("Events that had a price from a source that no longer lists them."),
    SOURCE_STALE: "source_stale" = count("Events whose source was not read recently, so the state is unknown."),
    UNSURE: "unsure" = count("Events that may be listed by the source as another event."),
    NOT_LISTED: "not_listed" = count("Events that the source does not list."),
    NOT_OFFERED: "not_offered" = count("Events that the source lists, but never with this market."),
    OLDEST_AGE_S: "oldest_age_s" = json!({
        "type": ["integer", "null"],
        "minimum": 0,
        "description": "The age of the oldest price, in whole seconds; null without a price.",
    }),
});

object!(Explanation: "Why each price of an event is present or missing." {
    SPORT: "sport" = text("Sport key."),
    EVENT_ID: "event_id" = event_id(),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "Time at which the snapshot was published."),
    STATUS: "status" = schema("Status", "The status of the event."),
    BOOKS: "books" = list("ExplainedBook", "Bookmakers, in the order of their keys."),
    NO_SOURCE: "no_source" = keys("Bookmakers without a feed for this sport."),
});

object!(ExplainedBook: "A bookmaker's prices of an event." {
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    REGIONS: "regions" = regions(),
    CELLS: "cells" = list("Cell", "One state for each market of the sport, in the order of their keys."),
});

object!(CellState: "Why a price is present or missing." {
    MARKET: "market" = schema("MarketKey", "The market."),
    STATE: "state" = one_of(STATES, "The first of these that applies."),
    RECORDS: "records" optional = count("`priced`: number of odds records; several if a market has pairings."),
    LAST_UPDATE: "last_update" optional = schema("Timestamp", "`priced`: time at which the price was last confirmed."),
    AGE_S: "age_s" optional = count("`priced`: whole seconds from `last_update` to `generated_at`."),
    STALE: "stale" optional = flag("`priced`: true for an old price, which odds show and analytics exclude."),
    BY: "by" optional = one_of(FILTERS, "`filtered`: the parameter that excludes the price."),
    SINCE: "since" optional = schema("Timestamp", "`suspended`, `withdrawn`: start of this state."),
    LAST_READ: "last_read" optional = schema("Timestamp", "Time of the source's last good read."),
    MAY_BE: "may_be" optional = event_id(),
});

const STATES: [&str; 10] = [
    "priced",
    "filtered",
    "ended",
    "suspended",
    "withdrawn",
    "no_source",
    "source_stale",
    "unsure",
    "not_listed",
    "not_offered",
];
const FILTERS: [&str; 3] = ["market", "bookmaker", "regions"];

/// Cells of one bookmaker and market, counted by state.
#[derive(Clone, Default)]
struct Counts {
    priced: u32,
    suspended: u32,
    withdrawn: u32,
    source_stale: u32,
    unsure: u32,
    not_listed: u32,
    not_offered: u32,
    oldest_age_s: Option<u64>,
}

impl Counts {
    fn add(&mut self, cell: Cell, cut_at: Timestamp) {
        let count = match cell {
            Cell::Priced { last_update, .. } => {
                self.oldest_age_s = self.oldest_age_s.max(Some(age(cut_at, last_update)));
                &mut self.priced
            }
            Cell::Suspended { .. } => &mut self.suspended,
            Cell::Withdrawn { .. } => &mut self.withdrawn,
            Cell::SourceStale { .. } => &mut self.source_stale,
            Cell::Unsure { .. } => &mut self.unsure,
            Cell::NotListed { .. } => &mut self.not_listed,
            Cell::NotOffered { .. } => &mut self.not_offered,
            // Not counted: final events are excluded, and a bookmaker without a source has no row.
            Cell::Ended | Cell::NoSource => return,
        };
        *count += 1;
    }

    fn json(&self, market: Market) -> Value {
        json!({
            (CoveredMarket::MARKET.name): market.key(),
            (CoveredMarket::PRICED.name): self.priced,
            (CoveredMarket::SUSPENDED.name): self.suspended,
            (CoveredMarket::WITHDRAWN.name): self.withdrawn,
            (CoveredMarket::SOURCE_STALE.name): self.source_stale,
            (CoveredMarket::UNSURE.name): self.unsure,
            (CoveredMarket::NOT_LISTED.name): self.not_listed,
            (CoveredMarket::NOT_OFFERED.name): self.not_offered,
            (CoveredMarket::OLDEST_AGE_S.name): self.oldest_age_s,
        })
    }
}

pub(super) fn coverage(selection: &CoverageSelection, snapshot: &Snapshot) -> String {
    let CoverageSelection { sport, filter } = selection;
    let view = snapshot.sport(*sport);
    let markets = snapshot.markets(*sport);
    let open = view.events.iter().filter(|event| event.status != Status::Final);
    let mut counts: Vec<Counts> = Vec::new();
    for event in open {
        // The cells of each event come in the same order.
        let mut at = 0;
        snapshot.visit_cells(*sport, event, |_, _, cell| {
            if counts.len() == at {
                counts.push(Counts::default());
            }
            if let Some(counts) = counts.get_mut(at) {
                counts.add(cell, snapshot.cut_at);
            }
            at += 1;
        });
    }
    let none = vec![Counts::default(); markets.len()];
    let mut of_bookmakers = counts.chunks(markets.len().max(1));
    let (mut books, mut no_source): (Vec<Value>, Vec<&str>) = Default::default();
    for (id, bookmaker) in snapshot.catalogue().bookmakers() {
        let counts = of_bookmakers.next().unwrap_or(&none);
        if filter.excludes_bookmaker(id).is_some() {
            continue;
        }
        let Some(source) = view.source(id) else {
            no_source.push(&bookmaker.key);
            continue;
        };
        let shown = markets.iter().zip(counts);
        let shown = shown.filter(|(market, _)| filter.excludes(id, **market).is_none());
        let shown: Vec<Value> = shown.map(|(market, counts)| counts.json(*market)).collect();
        books.push(covered_book(bookmaker, source, &shown, snapshot.cut_at));
    }
    json!({
        (Coverage::SPORT.name): snapshot.catalogue().sport(*sport).key,
        (Coverage::GENERATED_AT.name): millis(snapshot.cut_at),
        (Coverage::EVENTS.name): view.events_open,
        (Coverage::BOOKS.name): books,
        (Coverage::NO_SOURCE.name): no_source,
    })
    .to_string()
}

fn covered_book(
    bookmaker: &Bookmaker,
    row: &SourceRow,
    markets: &[Value],
    cut_at: Timestamp,
) -> Value {
    json!({
        (CoveredBook::BOOKMAKER.name): bookmaker.key,
        (CoveredBook::REGIONS.name): region_keys(bookmaker),
        (CoveredBook::LAST_READ.name): seconds(row.source.read_at),
        (CoveredBook::AGE_S.name): age(cut_at, row.source.read_at),
        (CoveredBook::STALE.name): row.stale,
        (CoveredBook::LATENCY_MS.name): row.source.latency_ms,
        (CoveredBook::MARKETS.name): markets,
    })
}

pub(super) fn explain(selection: &ExplainSelection, snapshot: &Snapshot) -> String {
    let ExplainSelection { sport, event, filter } = selection;
    let Some(event) = snapshot.sport(*sport).event(*event) else {
        return String::new();
    };
    let (books, no_source) = explained_books(snapshot, *sport, event, filter);
    json!({
        (Explanation::SPORT.name): snapshot.catalogue().sport(*sport).key,
        (Explanation::EVENT_ID.name): event.id.to_string(),
        (Explanation::GENERATED_AT.name): millis(snapshot.cut_at),
        (Explanation::STATUS.name): event.status.key(),
        (Explanation::BOOKS.name): books,
        (Explanation::NO_SOURCE.name): no_source,
    })
    .to_string()
}

/// All cells of an event as in `explain`, for operators; `None` if the snapshot does not have the event.
pub fn event_cells(snapshot: &Snapshot, sport: SportId, event: EventId) -> Option<Value> {
    let event = snapshot.sport(sport).event(event)?;
    let (books, no_source) = explained_books(snapshot, sport, event, &CellFilter::default());
    Some(json!({
        (Explanation::BOOKS.name): books,
        (Explanation::NO_SOURCE.name): no_source,
    }))
}

fn explained_books<'a>(
    snapshot: &'a Snapshot,
    sport: SportId,
    event: &EventRow,
    filter: &CellFilter,
) -> (Vec<Value>, Vec<&'a str>) {
    let mut cells: Vec<(BookmakerId, Market, Cell)> = Vec::new();
    snapshot.visit_cells(sport, event, |bookmaker, market, cell| {
        cells.push((bookmaker, market, cell));
    });
    let (mut books, mut no_source): (Vec<Value>, Vec<&str>) = Default::default();
    for own in cells.chunk_by(|one, other| one.0 == other.0) {
        let Some((id, ..)) = own.first() else { continue };
        let bookmaker = snapshot.catalogue().bookmaker(*id);
        if own.iter().all(|(.., cell)| *cell == Cell::NoSource) {
            no_source.push(&bookmaker.key);
            continue;
        }
        let cells = own.iter().map(|(id, market, cell)| {
            let excluded = filter.excludes(*id, *market);
            cell_json(*market, *cell, excluded, snapshot.cut_at)
        });
        books.push(json!({
            (ExplainedBook::BOOKMAKER.name): bookmaker.key,
            (ExplainedBook::REGIONS.name): region_keys(bookmaker),
            (ExplainedBook::CELLS.name): cells.collect::<Value>(),
        }));
    }
    (books, no_source)
}

fn cell_json(market: Market, cell: Cell, excluded: Option<Exclusion>, cut_at: Timestamp) -> Value {
    let [priced, filtered, ended, suspended, withdrawn, none, stale, unsure, unlisted, unoffered] =
        STATES;
    let mut fields = Map::new();
    let mut put = |key: Key, value: Value| {
        fields.insert(key.name.to_owned(), value);
    };
    put(CellState::MARKET, market.key().into());
    let mut state = |name: &str| put(CellState::STATE, name.into());
    match (cell, excluded) {
        (Cell::Priced { .. }, Some(by)) => {
            let [market, bookmaker, regions] = FILTERS;
            state(filtered);
            let by = match by {
                Exclusion::Market => market,
                Exclusion::Bookmaker => bookmaker,
                Exclusion::Regions => regions,
            };
            put(CellState::BY, by.into());
        }
        (Cell::Priced { records, last_update, stale }, None) => {
            state(priced);
            put(CellState::RECORDS, records.into());
            put(CellState::LAST_UPDATE, seconds(last_update).into());
            put(CellState::AGE_S, age(cut_at, last_update).into());
            put(CellState::STALE, stale.into());
        }
        (Cell::Ended, _) => state(ended),
        (Cell::NoSource, _) => state(none),
        (Cell::Suspended { since }, _) => {
            state(suspended);
            put(CellState::SINCE, seconds(since).into());
        }
        (Cell::Withdrawn { since }, _) => {
            state(withdrawn);
            put(CellState::SINCE, seconds(since).into());
        }
        (Cell::Unsure { may_be }, _) => {
            state(unsure);
            put(CellState::MAY_BE, may_be.to_string().into());
        }
        (Cell::SourceStale { last_read }, _) => {
            state(stale);
            put(CellState::LAST_READ, seconds(last_read).into());
        }
        (Cell::NotListed { last_read }, _) => {
            state(unlisted);
            put(CellState::LAST_READ, seconds(last_read).into());
        }
        (Cell::NotOffered { last_read }, _) => {
            state(unoffered);
            put(CellState::LAST_READ, seconds(last_read).into());
        }
    }
    fields.into()
}

fn keys(meaning: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": meaning })
}

fn regions() -> Value {
    json!({
        "type": "array",
        "items": { "type": "string", "enum": Region::ALL.map(Region::key) },
        "description": "The regions in which the bookmaker operates.",
    })
}

fn region_keys(bookmaker: &Bookmaker) -> Vec<&'static str> {
    bookmaker.regions.iter().map(|region| region.key()).collect()
}

fn age(cut_at: Timestamp, then: Timestamp) -> u64 {
    cut_at.since(then).as_secs()
}

fn seconds(time: Timestamp) -> String {
    time.seconds_text().map(char::from).iter().collect()
}

fn millis(time: Timestamp) -> String {
    time.millis_text().map(char::from).iter().collect()
}
