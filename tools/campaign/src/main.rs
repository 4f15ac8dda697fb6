//! A cluster on one machine: for development (`cluster`), or with faults under load (`faults`).

mod cluster;
mod faults;

use std::process::ExitCode;

use clap::Parser;

/// A cluster on this machine
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Verb {
    /// Run a whole cluster on this machine, for development
    #[command(subcommand)]
    Cluster(cluster::Verb),
    /// Run a cluster under load with faults, and check what its clients saw
    Faults(faults::Options),
}

fn main() -> ExitCode {
    shell::main("campaign", |repository| match Verb::parse() {
        Verb::Cluster(verb) => cluster::run(repository, &verb),
        Verb::Faults(options) => faults::run(repository, &options),
    })
}
