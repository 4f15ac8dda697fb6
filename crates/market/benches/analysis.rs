//! CPU time of one core for the first analysis of a publication of the sandbox's market, lines included, and for the
//! coverage of 1,000 events at 60 bookmakers: `cargo bench -p linesman-market --bench analysis`. Fails above the
//! bound of 50 ms.
#![expect(clippy::print_stdout, reason = "a bench is read from the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use domain::message::{Body, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome};
use domain::{BookmakerSet, Catalogue, Format, Market, Quote, SportId, Timestamp};
use feeds::sandbox::Simulation;
use linesman_market::analysis::{
    Analysis, ArbitrageSelection, BestSelection, FairSelection, Filter, Method, MiddleSelection,
    Reference, ValueSelection,
};
use linesman_market::{Book, Cell, Ids, Snapshot};
use rustix::time::{ClockId, clock_gettime};

/// Maximum time of a first response.
const BOUND: Duration = Duration::from_millis(50);
/// Number of events in the coverage measurement.
const CROWD_EVENTS: u64 = 1000;
const CROWD_BOOKMAKERS: usize = 60;
/// Number of runs of each measurement; the minimum counts, as the machine may be shared.
const RUNS: usize = 5;
/// 2026-11-14T23:38:00Z.
const START: Timestamp = Timestamp::from_secs(1_794_699_480);

fn main() -> Result<(), Box<dyn Error>> {
    let catalogue = Arc::new(Catalogue::load(None)?);
    let mut book = Book::new(Arc::clone(&catalogue), Ids::Derived { salt: 1 });
    for message in Simulation::new(1, Arc::clone(&catalogue)).world_at(START) {
        book.apply("sandbox", &message, START)?;
    }
    let snapshot = Snapshot::cut(&book, 0, START, Duration::from_secs(90), &[]);
    println!("{} records", snapshot.records());
    let mut worst = Duration::ZERO;
    for (sport, own) in catalogue.sports() {
        for (name, select) in selections(sport) {
            let least = (0..RUNS).map(|_| {
                let begun = cpu();
                let results = select(&snapshot, &Analysis::default());
                (cpu().saturating_sub(begun), results)
            });
            let (least, results) = least.min().unwrap_or_default();
            println!("{:<18} {name:<20} {:>9.3?}  {results} results", own.key, least);
            worst = worst.max(least);
        }
    }
    let crowd = crowd(&catalogue)?;
    let sport = catalogue.sport_id("mma").ok_or("no mma")?;
    let least = (0..RUNS).map(|_| {
        let begun = cpu();
        let priced = count_priced(&crowd, sport);
        (cpu().saturating_sub(begun), priced)
    });
    let (least, priced) = least.min().unwrap_or_default();
    println!("{:<18} {:<20} {least:>9.3?}  {priced} cells priced", "1,000 events", "coverage");
    worst = worst.max(least);
    println!("the slowest takes {worst:.3?}, the bound is {BOUND:?}");
    if worst > BOUND { Err("a first response takes too long".into()) } else { Ok(()) }
}

/// Bouts, each with a moneyline at half of the first bookmakers of the catalogue.
fn crowd(catalogue: &Arc<Catalogue>) -> Result<Snapshot, Box<dyn Error>> {
    let mut book = Book::new(Arc::clone(catalogue), Ids::Derived { salt: 1 });
    let sport = catalogue.sport_id("mma").ok_or("no mma")?;
    let quote = Quote::parse("1.9", Format::Decimal)?;
    let mut say = |body: Body| {
        let message = FeedMessage { ts: None, fresh_for_s: None, body };
        book.apply("crowd", &message, START).map(drop)
    };
    for n in 0..CROWD_EVENTS {
        let (home, away) = (format!("Home Number{n}"), format!("Away Number{n}"));
        let fixture =
            Fixture::HeadToHead { home: home.as_str().into(), away: away.as_str().into() };
        let commence_time = START.plus(Duration::from_secs(3600 * (n + 1)));
        let listing = Listing { sport, competition: "Crowd".into(), commence_time, fixture };
        let reference: Box<str> = format!("c-{n}").into();
        say(Body::Event { reference: reference.clone(), listing })?;
        let first = if n % 2 == 0 { 0 } else { 1 };
        for (bookmaker, _) in catalogue.bookmakers().take(CROWD_BOOKMAKERS).skip(first).step_by(2) {
            let outcome = |name: &str| OfferedOutcome { name: name.into(), quote, point: None };
            let outcomes = vec![outcome(&home), outcome(&away)];
            let (market, group) = (Market::Moneyline, None);
            let reference = reference.clone();
            say(Body::Odds(OddsBody { reference, bookmaker, market, group, outcomes }))?;
        }
    }
    Ok(Snapshot::cut(&book, 0, START, Duration::from_secs(90), &[]))
}

/// Visits every cell of a sport.
fn count_priced(snapshot: &Snapshot, sport: SportId) -> usize {
    let mut priced = 0;
    for event in &snapshot.sport(sport).events {
        snapshot.visit_cells(sport, event, |_, _, cell| {
            priced += usize::from(matches!(cell, Cell::Priced { .. }));
        });
    }
    priced
}

type Select = Box<dyn Fn(&Snapshot, &Analysis) -> usize>;

fn selections(sport: SportId) -> Vec<(String, Select)> {
    let filter = Filter {
        sport,
        market: None,
        events: None,
        from: None,
        to: None,
        status: None,
        bookmakers: BookmakerSet::ALL,
        max_age_s: None,
    };
    let limit = 500;
    let best = BestSelection { filter: filter.clone(), limit, after: None };
    let arbitrage = ArbitrageSelection { filter: filter.clone(), min_profit: 0, stake: 100, limit };
    let middle = MiddleSelection { filter: filter.clone(), max_cost: 50_000_000, limit };
    let mut all: Vec<(String, Select)> = vec![
        ("best".to_owned(), Box::new(move |s, a| best.select(s, a).lines.len())),
        ("arbitrage".to_owned(), Box::new(move |s, a| arbitrage.select(s, a).results.len())),
        ("middles".to_owned(), Box::new(move |s, a| middle.select(s, a).results.len())),
    ];
    for method in Method::ALL {
        let reference = Reference { method, ..Reference::default() };
        let (own, other) = (reference.clone(), filter.clone());
        let fair = FairSelection { filter: filter.clone(), reference, limit, after: None };
        let value = ValueSelection { filter: other, reference: own, min_ev: 0, limit };
        let key = method.key();
        all.push((format!("fair {key}"), Box::new(move |s, a| fair.select(s, a).lines.len())));
        all.push((format!("ev {key}"), Box::new(move |s, a| value.select(s, a).results.len())));
    }
    all
}

/// CPU time of this thread so far.
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    Duration::from_secs(part(spent.tv_sec)) + Duration::from_nanos(part(spent.tv_nsec))
}
