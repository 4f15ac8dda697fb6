//! Draws the behaviour of the sandbox, so that a person can see whether it is plausible: `cargo run --release -p
//! linesman-feeds --example sandbox_report -- FILE [SEED]`.
//!
//! The page is built from the messages alone, as any reader of the ingest endpoint would see them. It loads nothing
//! from outside and has no scripts; its instants are fixed, so the same program writes the same page.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a report for people, made in part of the test's own modules"
)]
#![expect(dead_code, reason = "the test uses more of the shared modules")]

#[path = "../../tests/sandbox/analytics.rs"]
mod analytics;
#[path = "../../tests/sandbox/book.rs"]
mod book;
#[path = "../../tests/sandbox/legal.rs"]
mod legal;
#[path = "../../tests/sandbox/promises.rs"]
mod promises;

mod arbitrage;
mod counts;
mod freshness;
mod golf;
mod grids;
mod lines;
mod margins;
mod page;
mod prices;
mod svg;
mod tape;

use std::error::Error;
use std::{env, fs};

use domain::Timestamp;

use crate::page::Page;
use crate::tape::Tape;

/// 2026-11-14T00:00:00Z, a Saturday.
const DAY_S: i64 = 1_794_614_400;
/// The seed of the service's own configuration.
const SEED: u64 = 20_261_114;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let out = arguments.next().ok_or("which file is to be written?")?;
    let seed = arguments.next().map_or(Ok(SEED), |seed| seed.parse())?;
    let (simulation, catalogue) = promises::simulation(seed);
    let day = Timestamp::from_secs(DAY_S);
    let tape = Tape::record(&simulation, &catalogue, day);
    let mut page = Page::new(seed, day);
    counts::draw(&tape, &mut page);
    prices::draw(&tape, "mma", &mut page);
    prices::draw(&tape, "tennis", &mut page);
    lines::draw(&tape, &mut page);
    margins::draw(&tape, &mut page);
    grids::draw(&tape, &mut page);
    golf::draw(&simulation, &catalogue, day, &mut page);
    arbitrage::draw(&tape, &mut page);
    freshness::draw(&simulation, &catalogue, day, &mut page);
    fs::write(&out, page.finish())?;
    println!("{out}");
    Ok(())
}
