//! Checks every promise of the sandbox at random instants over two years:
//! `cargo run --release -p linesman-feeds --example sandbox_check -- 1000`.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a checker for people, made of the test's own modules"
)]
#![expect(dead_code, reason = "the test uses more of the shared modules")]

#[path = "../tests/sandbox/book.rs"]
mod book;
#[path = "../tests/sandbox/legal.rs"]
mod legal;
#[path = "../tests/sandbox/promises.rs"]
mod promises;

use std::collections::BTreeMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let n = n.unwrap_or(1000_u32);
    let (simulation, catalogue) = promises::simulation(1);
    let mut faults = 0;
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut markets, mut arbitrages) = (0, 0);
    for at in promises::instants(n) {
        let facts = promises::check(&simulation, &catalogue, at);
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
