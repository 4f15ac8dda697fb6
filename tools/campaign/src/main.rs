//! A cluster on one machine: to develop with (`cluster`), or broken under load in every way (`faults`).

mod cluster;
mod faults;

use std::process::ExitCode;

use clap::Parser;

/// A cluster on this machine
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Verb {
    /// Run a whole cluster on this machine, to develop with
    #[command(subcommand)]
    Cluster(cluster::Verb),
    /// Break a cluster under load in every way, and check what its clients saw
    Faults(faults::Options),
}

fn main() -> ExitCode {
    shell::main("campaign", |repository| match Verb::parse() {
        Verb::Cluster(verb) => cluster::run(repository, &verb),
        Verb::Faults(options) => faults::run(repository, &options),
    })
}
