//! `cargo xtask bench`: the cost of the service, measured against nginx on the same bytes and against the bars in
//! `docs/performance.md`.
//!
//! The service and nginx run on one core, the generator on another, in alternating rounds; see [`rounds`]. A run takes
//! about ten minutes and needs the machine for itself; `--quick` takes two and is only for a first impression. Timings
//! do not fail the command: they are for people. `--instructions` is reproducible.

mod bar;
mod growth;
mod history;
mod instructions;
mod load;
mod loaded;
mod machine;
mod measure;
mod nats;
mod nchan;
mod nginx;
mod plot;
mod report;
mod rounds;
mod service;
mod stream;
mod v4;
mod wrk;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use shell::repository::Repository;

/// Measure the service against nginx and its bars
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches of a command line are independent of each other"
)]
struct Options {
    /// Fewer and shorter rounds, and a market of 20,000 records
    #[arg(long)]
    quick: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Write the table and the plots into docs/
    #[arg(long)]
    record: bool,
    /// Measure only these parts, and no growth
    #[arg(long, value_delimiter = ',', conflicts_with = "record")]
    only: Vec<measure::Part>,
    /// Only count instructions and compare them with the baseline
    #[arg(long)]
    instructions: bool,
    /// Make the instructions counted the baseline
    #[arg(long, requires = "instructions")]
    update: bool,
}

/// Duration and extent of measurements.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: usize,
    seconds: f64,
    records: usize,
}

fn main() -> ExitCode {
    shell::main("bench", |repository| run(repository, &Options::parse()))
}

fn run(repository: &Repository, options: &Options) -> Result<()> {
    nginx::install(
        repository,
        &[("nginx", "nginx-light"), ("wrk", "wrk"), ("valgrind", "valgrind")],
    )?;
    shell::say("building the release");
    let program = service::build(repository)?;
    if options.instructions {
        return instructions::check(repository, &program, options.update);
    }
    let effort = if options.quick {
        Effort { rounds: 3, seconds: 0.5, records: 20_000 }
    } else {
        Effort { rounds: 9, seconds: 1.0, records: 200_000 }
    };
    let all = options.only.is_empty();
    let streams = all || options.only.iter().any(|part| part.is_stream());
    if streams && !std::path::Path::new(nchan::MODULE).exists() {
        nginx::install(repository, &[("nchan", "libnginx-mod-nchan")])?;
    }
    if streams {
        shell::servers::ensure_nats(repository)?;
    }
    machine::pin_self()?;
    let mut bars = Vec::new();
    if all || !options.only.iter().all(|part| part.is_apart()) {
        bars.extend(measure::bars(&program, effort, &options.only)?);
    }
    if streams {
        shell::say("streams");
        bars.extend(stream::bars(&program, effort, &options.only)?);
    }
    let present = options.only.contains(&measure::Part::HistoryPresent);
    if all || options.only.contains(&measure::Part::History) {
        shell::say("history");
        bars.extend(history::bars(&program, effort)?);
    } else if present {
        let folder = tempfile::tempdir()?;
        history::present::bars(&program, folder.path(), effort, &mut bars)?;
    }
    let plots = if all { growth::plots(&program, effort)? } else { Vec::new() };
    if options.json {
        shell::print(&report::to_json(&bars, &plots))?;
    } else {
        shell::print(&report::to_table(&bars))?;
    }
    if options.record {
        report::record(repository, &bars, &plots)?;
    }
    Ok(())
}

/// The counts are far below the limit of precision.
#[expect(clippy::cast_precision_loss, reason = "figures for people, with three digits that matter")]
fn float(count: u64) -> f64 {
    count as f64
}
