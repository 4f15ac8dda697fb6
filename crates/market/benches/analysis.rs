//! What the first analysis of a publication takes on the sandbox's market, lines included:
//! `cargo bench -p linesman-market --bench analysis`. Fails above the bound of 50 ms.
#![expect(clippy::print_stdout, reason = "a bench is read from the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{BookmakerSet, Catalogue, SportId, Timestamp};
use feeds::sandbox::Simulation;
use linesman_market::analysis::{
    Analysis, ArbitrageSelection, BestSelection, FairSelection, Filter, Method, MiddleSelection,
    Reference, ValueSelection,
};
use linesman_market::{Book, Ids, Snapshot};

/// What a first response may take.
const BOUND: Duration = Duration::from_millis(50);
/// Runs of each; the machine may be shared, so the least counts.
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
                let begun = Instant::now();
                let results = select(&snapshot, &Analysis::default());
                (begun.elapsed(), results)
            });
            let (least, results) = least.min().unwrap_or_default();
            println!("{:<18} {name:<20} {:>9.3?}  {results} results", own.key, least);
            worst = worst.max(least);
        }
    }
    println!("the slowest takes {worst:.3?}, the bound is {BOUND:?}");
    if worst > BOUND { Err("a first response takes too long".into()) } else { Ok(()) }
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
