//! What a cluster carries: a simulation of leases and revocation, and measurements of the servers it stands on.
//! `cargo xtask scale` runs this; no part of the program depends on it.

mod measure;
mod simulate;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::simulate::Plan;

/// What a cluster carries
#[derive(Debug, Parser)]
#[command(name = "linesman-scale")]
enum Verb {
    /// Play leases and revocation with many nodes, keys and faults
    Simulate {
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[arg(long, default_value_t = 1000)]
        nodes: u32,
        #[arg(long, default_value_t = 1_000_000)]
        keys: u32,
        /// Simulated seconds
        #[arg(long, default_value_t = 150)]
        seconds: u32,
    },
    /// Measure leases on PostgreSQL, the log on JetStream, and what a key takes in memory
    Measure,
}

fn main() -> ExitCode {
    match run(&Verb::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where stderr is closed there is nobody left to tell.
            writeln!(io::stderr().lock(), "linesman-scale: {error:#}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

fn run(verb: &Verb) -> Result<()> {
    let page = match *verb {
        Verb::Simulate { seed, nodes, keys, seconds } => {
            simulate::simulate(Plan::new(nodes, keys, seconds, seed))?
        }
        Verb::Measure => measure::measure()?,
    };
    io::stdout().lock().write_all(page.as_bytes()).context("cannot write to stdout")
}
