//! Every promise of the sandbox, checked at one instant. Shared by the test, which samples some instants, and by the
//! example `sandbox_check`, which samples as many as requested.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use domain::message::{Fixture, OfferedOutcome};
use domain::{Catalogue, Line, Market, Price, Region, SportId, Status, Timestamp};
use linesman_feeds::sandbox::Simulation;

use crate::analytics;
use crate::book::{Book, Event, sport};
use crate::legal;

/// The counts at one instant, for summing up.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) events: BTreeMap<Box<str>, usize>,
    pub(crate) live: BTreeMap<Box<str>, usize>,
    pub(crate) finals: BTreeMap<Box<str>, usize>,
    pub(crate) records: BTreeMap<Box<str>, usize>,
    /// Number of pairs of opposite prices at the same line, and of those among them that are an arbitrage.
    pub(crate) two_way_markets: usize,
    pub(crate) arbitrages: usize,
    pub(crate) faults: Vec<String>,
}

/// Minimum number of events of each sport, scheduled and live.
const LEAST: [(&str, usize, usize); 5] = [
    ("mma", 12, 2),
    ("boxing", 8, 1),
    ("tennis", 24, 3),
    ("american_football", 14, 1),
    ("golf", 2, 1),
];

pub(crate) fn simulation(seed: u64) -> (Simulation, Arc<Catalogue>) {
    let catalogue = Arc::new(Catalogue::load(None).expect("the embedded catalogue"));
    (Simulation::new(seed, Arc::clone(&catalogue)), catalogue)
}

pub(crate) fn world(simulation: &Simulation, at: Timestamp) -> Book {
    let mut book = Book::default();
    book.take(simulation.world_at(at), at);
    book
}

pub(crate) fn check(simulation: &Simulation, catalogue: &Catalogue, at: Timestamp) -> Facts {
    let book = world(simulation, at);
    let mut facts = Facts { faults: book.faults.clone(), ..Facts::default() };
    for (key, least, competitions) in LEAST {
        check_sport(&book, catalogue, key, (least, competitions), at, &mut facts);
    }
    check_golf(&book, catalogue, &mut facts);
    check_odds(&book, catalogue, &mut facts);
    check_arbitrage(&book, at, &mut facts);
    analytics::check(&book, catalogue, at, &mut facts);
    for fault in &mut facts.faults {
        *fault = format!("{at}: {fault}");
    }
    facts
}

fn check_sport(
    book: &Book,
    catalogue: &Catalogue,
    key: &str,
    (least, competitions): (usize, usize),
    at: Timestamp,
    facts: &mut Facts,
) {
    let id = sport(catalogue, key);
    let scheduled: Vec<&Event> = book.with(id, Status::Scheduled).collect();
    let live: Vec<&Event> = book.with(id, Status::Live).collect();
    let finals: Vec<&Event> = book.with(id, Status::Final).collect();
    let open = scheduled.iter().chain(&live);
    let shows: BTreeSet<_> = open.clone().map(|event| &event.listing.competition).collect();
    let faults = &mut facts.faults;
    let mut ensure = |holds: bool, fault: &str| {
        if !holds {
            faults.push(format!("{key}: {fault}"));
        }
    };
    ensure(open.count() >= least, "too few events");
    ensure(shows.len() >= competitions, "too few competitions");
    ensure(!live.is_empty(), "nothing live");
    ensure(!finals.is_empty(), "nothing finished");
    let soon = scheduled.iter().any(|event| {
        let wait = event.listing.commence_time.as_millis() - at.as_millis();
        (1..=3_600_000).contains(&wait)
    });
    ensure(soon, "nothing starts within the hour");
    for event in scheduled.iter().chain(&live).chain(&finals) {
        if let Some(score) = &event.score
            && let Err(fault) = legal::check(key, score)
        {
            ensure(false, &fault);
        }
        ensure(
            event.status() != Status::Live || event.listing.commence_time <= at,
            "live before its time",
        );
        if let Fixture::HeadToHead { home, away } = &event.listing.fixture {
            ensure(home != away, "somebody meets himself");
            let winner = event.score.as_ref().and_then(|score| score.winner.as_ref());
            let known = winner.is_none_or(|winner| winner == home || winner == away);
            ensure(known, "a stranger won");
        }
    }
    let sides: Vec<_> = open_sides(&scheduled).chain(open_sides(&live)).collect();
    let distinct: HashSet<_> = sides.iter().collect();
    // Teams play again; individuals do not before they have rested.
    ensure(
        key == "american_football" || distinct.len() == sides.len(),
        "somebody is in two contests",
    );
    facts.events.insert(key.into(), scheduled.len() + live.len());
    facts.live.insert(key.into(), live.len());
    facts.finals.insert(key.into(), finals.len());
}

fn open_sides<'a>(events: &'a [&Event]) -> impl Iterator<Item = Box<str>> + 'a {
    events.iter().flat_map(|event| match &event.listing.fixture {
        Fixture::HeadToHead { home, away } => vec![home.clone(), away.clone()],
        Fixture::Field { .. } => Vec::new(),
    })
}

fn check_golf(book: &Book, catalogue: &Catalogue, facts: &mut Facts) {
    let golf = sport(catalogue, "golf");
    let mut fields: BTreeMap<&str, usize> = BTreeMap::new();
    for ((reference, _, market, _), record) in &book.odds {
        if *market == Market::Outright {
            let most = fields.entry(reference).or_default();
            *most = record.outcomes.len().max(*most);
        }
    }
    let large = fields.values().filter(|players| **players > 120).count();
    if large < 2 {
        facts.faults.push(format!("golf: {large} large fields"));
    }
    let of = |event: &Event, id: SportId| event.listing.sport == id;
    for event in book.events.values().filter(|event| of(event, golf)) {
        if !matches!(event.listing.fixture, Fixture::Field { .. }) {
            facts.faults.push("golf with sides".into());
        }
    }
}

pub(crate) fn winners(market: Market) -> f64 {
    match market {
        Market::Top5 => 5.0,
        Market::Top10 => 10.0,
        Market::Top20 => 20.0,
        Market::Matchup
        | Market::Moneyline
        | Market::Outright
        | Market::RoundLeader
        | Market::Spread
        | Market::ThreeBall
        | Market::TotalPoints
        | Market::TotalRounds => 1.0,
    }
}

pub(crate) fn implied(price: Price) -> f64 {
    let part = |n: u64| f64::from(u32::try_from(n).expect("small"));
    part(price.stake()) / (part(price.stake()) + part(price.profit()))
}

fn check_odds(book: &Book, catalogue: &Catalogue, facts: &mut Facts) {
    let mut markets: BTreeMap<(SportId, Region), BTreeSet<Market>> = BTreeMap::new();
    for ((reference, bookmaker, market, _), record) in &book.odds {
        let event = &book.events[reference];
        let id = event.listing.sport;
        let key = catalogue.sport(id).key.clone();
        *facts.records.entry(key).or_default() += 1;
        if !catalogue.sport(id).offers(*market) {
            facts.faults.push(format!("{reference}: no {market:?}"));
        }
        for region in &catalogue.bookmaker(*bookmaker).regions {
            markets.entry((id, *region)).or_default().insert(*market);
        }
        let sum: f64 = record.outcomes.iter().map(|o| implied(o.quote.price)).sum();
        if sum <= winners(*market) {
            facts.faults.push(format!("{reference} {bookmaker:?} {market:?} underround: {sum}"));
        }
        if sum > winners(*market) * 1.7 {
            facts.faults.push(format!("{reference} {bookmaker:?} {market:?} absurd: {sum}"));
        }
        if let Err(fault) = points(*market, &record.outcomes) {
            facts.faults.push(format!("{reference} {market:?} {fault}"));
        }
    }
    for (id, sport) in catalogue.sports() {
        for region in Region::ALL {
            let have = markets.get(&(id, region));
            for market in &sport.markets {
                // Round leaders are offered only in America and Britain.
                let local = *market == Market::RoundLeader && region == Region::Au;
                if !local && !have.is_some_and(|have| have.contains(market)) {
                    facts.faults.push(format!("{} {market:?}: nowhere in {region:?}", sport.key));
                }
            }
        }
    }
}

/// Checks points and names against the rules of the market.
fn points(market: Market, outcomes: &[OfferedOutcome]) -> Result<(), String> {
    let names: HashSet<_> = outcomes.iter().map(|outcome| &outcome.name).collect();
    if names.len() != outcomes.len() {
        return Err("one outcome twice".into());
    }
    let quarters: Vec<Option<i32>> =
        outcomes.iter().map(|outcome| outcome.point.map(Line::quarters)).collect();
    let fine = match market {
        Market::Spread => matches!(quarters[..], [Some(a), Some(b)] if a == -b && a % 4 != 0),
        Market::TotalPoints | Market::TotalRounds => {
            matches!(quarters[..], [Some(a), Some(b)] if a == b && a > 0 && a % 4 != 0)
        }
        Market::Moneyline => quarters.len() <= 3 && quarters.iter().all(Option::is_none),
        Market::ThreeBall => quarters == [None; 3],
        Market::Matchup => quarters == [None; 2],
        Market::Outright | Market::RoundLeader | Market::Top5 | Market::Top10 | Market::Top20 => {
            quarters.len() > 10 && quarters.iter().all(Option::is_none)
        }
    };
    fine.then_some(()).ok_or(format!("{outcomes:?}"))
}

/// Two outcomes at the best prices of all fresh bookmakers.
fn check_arbitrage(book: &Book, at: Timestamp, facts: &mut Facts) {
    let found = arbitrages(book, at);
    facts.two_way_markets += found.0;
    facts.arbitrages += found.1.len();
}

/// The number of two-way markets, and those that are an arbitrage.
pub(crate) fn arbitrages(book: &Book, at: Timestamp) -> (usize, Vec<String>) {
    let mut best: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for ((reference, bookmaker, market, group), record) in &book.odds {
        let event = &book.events[reference];
        let [one, other] = &record.outcomes[..] else {
            continue;
        };
        if book.is_stale(*bookmaker, event.listing.sport, at) {
            continue;
        }
        let point = one.point.map(Line::quarters);
        let what = format!("{reference} {market:?} {group:?} {point:?}");
        let slot = best.entry(what).or_insert([1.0, 1.0]);
        for (least, outcome) in slot.iter_mut().zip([one, other]) {
            *least = least.min(implied(outcome.quote.price));
        }
    }
    let beaten = best.iter().filter(|(_, [one, other])| one + other < 1.0);
    let beaten = beaten.map(|(what, sides)| format!("{what} {sides:?}")).collect();
    (best.len(), beaten)
}

/// Random instants over two years, the same on each run.
pub(crate) fn instants(n: u32) -> impl Iterator<Item = Timestamp> {
    /// 2026-11-01T00:00:00Z.
    const FIRST_MS: u64 = 1_793_491_200_000;
    const TWO_YEARS_MS: u64 = 2 * 365 * 86_400_000;
    let mut state = 0x5eed_u64;
    (0..n).map(move |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let ms = FIRST_MS + (state >> 20) % TWO_YEARS_MS;
        Timestamp::from_millis(i64::try_from(ms).expect("in range"))
    })
}

/// True if a record belongs to an event with this status.
pub(crate) fn is_on(book: &Book, reference: &str, status: Status) -> bool {
    book.events.get(reference).is_some_and(|event| event.status() == status)
}
