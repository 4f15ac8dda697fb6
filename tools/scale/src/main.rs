//! Capacity of a cluster: a simulation of leases and revocation, and measurements of its servers. `cargo xtask scale`
//! runs this; no part of the program depends on it.

mod measure;
mod page;
mod simulate;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::simulate::Plan;

/// Capacity of many nodes, and their load on the log and the database; without a verb by plain arithmetic
#[derive(Debug, Parser)]
#[command(name = "cargo xtask scale")]
struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Simulate leases and revocation with many nodes, keys and faults
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
    /// Measure leases on PostgreSQL, the log on JetStream, and the memory of a key
    Measure,
}

fn main() -> ExitCode {
    shell::main("scale", |_| run(&Options::parse()))
}

fn run(options: &Options) -> Result<()> {
    let page = match options.verb {
        None => page::page(),
        Some(Verb::Simulate { seed, nodes, keys, seconds }) => {
            simulate::simulate(Plan::new(nodes, keys, seconds, seed))?
        }
        Some(Verb::Measure) => measure::measure()?,
    };
    shell::print(&page)
}
