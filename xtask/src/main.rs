//! The project's own tasks: `cargo xtask test` is what continuous integration runs, the other verbs are
//! single steps of it.
//!
//! Every check is a plain function from the repository to a list of complaints, so that it can be tested
//! on texts that are wrong on purpose.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Parser;

mod bench;
mod browser;
mod cluster;
mod faults;
mod fuzz;
mod layering;
mod openapi;
mod promises;
mod prose;
mod repository;
mod sandbox;
mod scale;
mod schemathesis;
mod servers;
mod shell;
mod steps;
mod supply;
mod tidy;
mod tool;

use crate::repository::Repository;

/// The project's own tasks
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Verb {
    /// Everything that must hold before a change is taken, step by step
    Test,
    /// Rules about files that no compiler checks
    Tidy,
    /// The crates depend on each other only as allowed
    Layering,
    /// Rewrite openapi.json from the program
    Openapi,
    /// Run each fuzz target for a while
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Test a running server against its own OpenAPI document
    Schemathesis,
    /// Measure the service against nginx and its bars
    Bench(bench::Options),
    /// Work out what many nodes serve and what they ask of the log and the database
    Scale(scale::Options),
    /// Run a whole cluster on this machine, to develop with
    #[command(subcommand)]
    Cluster(cluster::Verb),
    /// Break a cluster under load in every way, and check what its clients saw
    Faults(faults::Options),
    /// Test the pages in a real browser, and take pictures of them
    Browser,
    /// Draw what the sandbox does as an HTML page of charts, and print where it is
    SandboxReport {
        /// The page; in the build folder if not said
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(&Verb::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            shell::say(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(verb: &Verb) -> Result<()> {
    let repository = Repository::find()?;
    match verb {
        Verb::Test => steps::test(&repository),
        Verb::Tidy => tidy::check(&repository),
        Verb::Layering => layering::check(&repository),
        Verb::Openapi => openapi::rewrite(&repository),
        Verb::Fuzz { seconds } => fuzz::run(&repository, *seconds),
        Verb::Cluster(verb) => cluster::run(&repository, verb),
        Verb::Faults(options) => faults::run(&repository, options),
        Verb::Browser => browser::browser(&repository),
        Verb::Schemathesis => schemathesis::schemathesis(&repository),
        Verb::Bench(options) => bench::run(&repository, options),
        Verb::Scale(options) => scale::run(&repository, options),
        Verb::SandboxReport { out } => sandbox::report(&repository, out.as_deref()),
    }
}
