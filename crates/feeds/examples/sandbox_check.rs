//! Checks every promise of the sandbox at random instants over two years:
//! `cargo run --release -p linesman-feeds --example sandbox_check -- 1000`.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a checker for people, made of the test's own modules"
)]
#![expect(dead_code, reason = "the test uses more of the shared modules")]

#[path = "../tests/sandbox/analytics.rs"]
mod analytics;
#[path = "../tests/sandbox/book.rs"]
mod book;
#[path = "../tests/sandbox/legal.rs"]
mod legal;
#[path = "../tests/sandbox/promises.rs"]
mod promises;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;

use promises::Facts;

fn main() -> ExitCode {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let n = n.unwrap_or(1000_u32);
    let mut faults = 0;
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut markets, mut arbitrages) = (0, 0);
    for facts in check_all(n) {
        for fault in facts.faults.iter().take(3) {
            println!("{fault}");
        }
        faults += facts.faults.len();
        markets += facts.two_way_markets;
        arbitrages += facts.arbitrages;
        let kinds = [
            ("events", &facts.events),
            ("live", &facts.live),
            ("finals", &facts.finals),
            ("records", &facts.records),
        ];
        for (kind, by_sport) in kinds {
            for (sport, have) in by_sport {
                let key = format!("{sport} {kind}");
                let range = counts.entry(key).or_insert((usize::MAX, 0));
                *range = (range.0.min(*have), range.1.max(*have));
            }
        }
    }
    for (what, (least, most)) in &counts {
        println!("{what}: {least} to {most}");
    }
    println!("two-way markets {markets}, of them arbitrages {arbitrages}");
    println!("{n} instants, {faults} faults");
    if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Distributes the instants over the processors, each with a sandbox of its own.
fn check_all(n: u32) -> Vec<Facts> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let check_some = |first: usize| -> Vec<Facts> {
        let (simulation, catalogue) = promises::simulation(1);
        let instants = promises::instants(n).skip(first).step_by(threads);
        instants.map(|at| promises::check(&simulation, &catalogue, at)).collect()
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|first| scope.spawn(move || check_some(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no check panics")).collect()
    })
}
