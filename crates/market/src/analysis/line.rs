//! Lines and offers: groups the prices of a sport that are about the same bet (N2, N3).
//!
//! A line is shared by the bookmakers that price it. Nothing here depends on a request: lines are built once for a
//! publication, and the results of a method for an offer are computed once and kept with it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use domain::market::OutcomeRule;
use domain::{BookmakerId, Line as Point, Market, Price, Quote, RecordId, SportId, Timestamp};

use crate::analysis::exact::Sum;
use crate::analysis::method::{Method, WithoutMargin};
use crate::analysis::probability::winners;
use crate::book::{Outcome, OutcomeName};
use crate::snapshot::{EventRow, RecordRow, Snapshot, SportView};

/// The lines of every sport of a snapshot, built on the first request for each sport.
#[derive(Debug, Default)]
pub struct Analysis(OnceLock<Box<[OnceLock<SportLines>]>>);

/// The lines of a sport, in the order of start, event id, market, point and names.
#[derive(Debug, Default)]
pub struct SportLines {
    pub lines: Vec<MarketLine>,
    /// Partial sets of prices, which cannot be compared with anything.
    pub partial: Vec<PartialOffer>,
}

/// Bets on the same thing.
#[derive(Debug)]
pub struct MarketLine {
    /// Position of its event.
    pub event: u32,
    pub market: Market,
    /// The home side's point, or the total.
    pub point: Option<Point>,
    /// For a field, all names that any bookmaker prices.
    pub names: Box<[OutcomeName]>,
    /// One for each bookmaker, in the order of their keys.
    pub offers: Vec<Offer>,
}

/// One bookmaker's complete set of prices in a line.
#[derive(Debug)]
pub struct Offer {
    pub bookmaker: BookmakerId,
    pub record: RecordId,
    pub last_update: Timestamp,
    /// Prices in the order of the line's names.
    pub prices: Box<[Priced]>,
    /// True if the prices alone add up to less than the number of winners (N6).
    pub underround: bool,
    fair: [OnceLock<Option<WithoutMargin>>; Method::ALL.len()],
}

/// One price of an offer.
#[derive(Clone, Copy, Debug)]
pub struct Priced {
    /// Position in the line's names.
    pub name: u16,
    pub quote: Quote,
}

/// An incomplete set of prices.
#[derive(Debug)]
pub struct PartialOffer {
    pub event: u32,
    pub market: Market,
    pub bookmaker: BookmakerId,
    pub last_update: Timestamp,
}

/// The key of a line within an event.
type Key = (Market, Option<i32>, Vec<OutcomeName>);

/// A set of prices that has not been assigned to the line's names yet.
struct Quotes<'a> {
    row: &'a RecordRow,
    outcomes: Vec<&'a Outcome>,
}

/// True for a market of a field, which has one line whoever its players are.
pub fn is_field(market: Market) -> bool {
    market.outcome_rule() == OutcomeRule::Entrants
}

impl Analysis {
    pub fn sport(&self, snapshot: &Snapshot, sport: SportId) -> Option<&SportLines> {
        let empty = || snapshot.catalogue().sports().map(|_| OnceLock::new()).collect();
        let cell = self.0.get_or_init(empty).get(sport.index())?;
        Some(cell.get_or_init(|| SportLines::new(snapshot.sport(sport))))
    }
}

impl SportLines {
    pub fn new(view: &SportView) -> Self {
        let mut lines = Self::default();
        for (at, event) in (0_u32..).zip(&view.events) {
            lines.add(view, at, event);
        }
        lines
    }

    fn add(&mut self, view: &SportView, at: u32, event: &EventRow) {
        let mut found: BTreeMap<Key, Vec<Quotes<'_>>> = BTreeMap::new();
        for row in event.records.clone().filter_map(|at| view.record(at)) {
            for (point, outcomes) in by_point(&row.record.outcomes) {
                let mut names: Vec<OutcomeName> = outcomes.iter().map(|own| own.name).collect();
                names.sort_unstable();
                if !is_complete(row.market, &names) {
                    let (market, bookmaker) = (row.market, row.bookmaker);
                    let last_update = row.last_update;
                    self.partial.push(PartialOffer { event: at, market, bookmaker, last_update });
                    continue;
                }
                if is_field(row.market) {
                    names.clear();
                }
                let quotes = found.entry((row.market, point, names)).or_default();
                // A bookmaker may have a pairing twice, in two groups of its feed: the freshest wins.
                let last = quotes.last().filter(|last| last.row.bookmaker == row.bookmaker);
                match last.map(|last| last.row.last_update >= row.last_update) {
                    Some(true) => continue,
                    Some(false) => drop(quotes.pop()),
                    None => {}
                }
                quotes.push(Quotes { row, outcomes });
            }
        }
        let mut of_event: Vec<MarketLine> = found
            .into_iter()
            .map(|((market, point, _), quotes)| {
                MarketLine::new(at, event, (market, point.map(Point::from_quarters)), &quotes)
            })
            .collect();
        of_event.sort_by_cached_key(|line| {
            let names: Vec<&str> = if is_field(line.market) {
                Vec::new()
            } else {
                line.names.iter().map(|name| event.outcome_text(*name)).collect()
            };
            (line.market, line.point, names)
        });
        self.lines.append(&mut of_event);
    }
}

impl MarketLine {
    fn new(
        at: u32,
        event: &EventRow,
        (market, point): (Market, Option<Point>),
        quotes: &[Quotes<'_>],
    ) -> Self {
        let outcomes = quotes.iter().flat_map(|own| &own.outcomes);
        let mut names: Vec<OutcomeName> = outcomes.map(|own| own.name).collect();
        names.sort_unstable();
        names.dedup();
        // Sides are in their own order, followed by draw or tie; players are sorted by name.
        let text = |name: &OutcomeName| match name {
            OutcomeName::Entrant(_) => (0, event.outcome_text(*name)),
            OutcomeName::Home | OutcomeName::Away | OutcomeName::Over | OutcomeName::Under => {
                (1, "")
            }
            OutcomeName::Draw => (2, ""),
        };
        names.sort_by_key(text);
        let places: BTreeMap<OutcomeName, u16> = names.iter().copied().zip(0..).collect();
        let offers = quotes.iter().map(|own| Offer::new(market, own, &places)).collect();
        Self { event: at, market, point, names: names.into(), offers }
    }

    pub fn winners(&self) -> u32 {
        winners(self.market)
    }

    /// The point of one of its outcomes.
    pub fn point_of(&self, name: OutcomeName) -> Option<Point> {
        let point = self.point?;
        let away = self.market.outcome_rule() == OutcomeRule::Sides && name == OutcomeName::Away;
        Some(if away { Point::from_quarters(-point.quarters()) } else { point })
    }
}

impl Offer {
    fn new(market: Market, quotes: &Quotes<'_>, places: &BTreeMap<OutcomeName, u16>) -> Self {
        let priced = |own: &&Outcome| {
            places.get(&own.name).map(|name| Priced { name: *name, quote: own.quote })
        };
        let mut prices: Vec<Priced> = quotes.outcomes.iter().filter_map(priced).collect();
        prices.sort_unstable_by_key(|own| own.name);
        let sum = Sum::of(prices.iter().map(|own| own.quote.price));
        Self {
            bookmaker: quotes.row.bookmaker,
            record: quotes.row.id,
            last_update: quotes.row.last_update,
            prices: prices.into(),
            underround: sum.cmp_whole(winners(market)).is_lt(),
            fair: Default::default(),
        }
    }

    /// The sum of its prices alone.
    pub fn sum(&self) -> Sum {
        Sum::of(self.prices.iter().map(|own| own.quote.price))
    }

    /// The result of a method for the offer; computed once.
    pub fn without_margin(&self, method: Method, winners: u32) -> Option<&WithoutMargin> {
        let compute = || {
            let prices: Vec<Price> = self.prices.iter().map(|own| own.quote.price).collect();
            method.remove(&prices, winners)
        };
        self.fair.get(method.index())?.get_or_init(compute).as_ref()
    }
}

/// The outcomes of a record by the home side's point or the total: alternative lines are separate offers.
fn by_point(outcomes: &[Outcome]) -> BTreeMap<Option<i32>, Vec<&Outcome>> {
    let mut by_point: BTreeMap<Option<i32>, Vec<&Outcome>> = BTreeMap::new();
    for own in outcomes {
        let quarters = own.point.map(Point::quarters);
        let of_line = if own.name == OutcomeName::Away { quarters.map(|q| -q) } else { quarters };
        by_point.entry(of_line).or_default().push(own);
    }
    by_point
}

/// True if the sorted names are all possible outcomes of the market.
fn is_complete(market: Market, names: &[OutcomeName]) -> bool {
    let players = || names.iter().filter(|name| matches!(name, OutcomeName::Entrant(_))).count();
    match market {
        Market::Moneyline | Market::Spread => {
            names.starts_with(&[OutcomeName::Home, OutcomeName::Away])
        }
        Market::TotalPoints | Market::TotalRounds => {
            names == [OutcomeName::Over, OutcomeName::Under]
        }
        Market::Matchup => players() == 2,
        Market::ThreeBall => players() == 3,
        Market::Outright | Market::RoundLeader | Market::Top5 | Market::Top10 | Market::Top20 => {
            !names.is_empty()
        }
    }
}
