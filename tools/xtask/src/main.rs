//! The project's own tasks: `cargo xtask test` is what continuous integration runs; the other verbs are single steps
//! of it.
//!
//! Every check is a plain function from the repository to a list of complaints, so that it can be tested with faulty
//! texts.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Args, Parser};

mod archive_readers;
mod autobahn;
mod browser;
mod clients;
mod cycles;
mod dist;
mod fuzz;
mod layering;
mod links;
mod log_events;
mod openapi;
mod other_bucket;
mod packages;
mod prior_clients;
mod promises;
mod prose;
mod sandbox;
mod schemathesis;
mod sdk;
mod source;
mod steps;
mod stream_clients;
mod supply;
mod tidy;

use shell::repository::Repository;

/// The project's own tasks
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Verb {
    /// Run every check of continuous integration, step by step
    Test {
        /// Start with this step; the earlier ones have passed
        #[arg(long, value_name = "STEP")]
        from: Option<String>,
    },
    /// Check rules about files that no compiler checks
    Tidy,
    /// Check that crates depend on each other only as allowed
    Layering,
    /// Rewrite openapi.json from the program
    Openapi,
    /// Build the release archive, and print its path
    Dist,
    /// Run each fuzz target for a while
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Test a running server against its own OpenAPI document
    Schemathesis,
    /// Test our WebSocket framing with Autobahn's fuzzing client
    Autobahn,
    /// Generate clients from the OpenAPI document, and run them against a server
    Clients,
    /// Test the archive in a bucket on moto, too
    Bucket,
    /// Run public clients of The Odds API v4, unmodified, against a server
    PriorClients,
    /// Write the types of the clients in sdk/ from openapi.json
    Sdk {
        /// Only compare the types with the committed ones
        #[arg(long)]
        check: bool,
        /// Test the clients against the running program
        #[arg(long, conflicts_with = "check")]
        test: bool,
    },
    /// Measure the service against nginx and its bars
    #[command(disable_help_flag = true)]
    Bench(Arguments),
    /// Work out what many nodes serve and what they ask of the log and the database
    #[command(disable_help_flag = true)]
    Scale(Arguments),
    /// Run a whole cluster on this machine, to develop with
    #[command(disable_help_flag = true)]
    Cluster(Arguments),
    /// Break a cluster under load in every way, and check what its clients saw
    #[command(disable_help_flag = true)]
    Faults(Arguments),
    /// Test the pages in a real browser, and take pictures of them
    Browser,
    /// Draw what the sandbox does as an HTML page of charts, and print where it is
    SandboxReport {
        /// The page; in the build folder if not said
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// All arguments after the verb, passed to a separate program under `tools/`.
#[derive(Debug, Args)]
struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    all: Vec<OsString>,
}

fn main() -> ExitCode {
    shell::main("xtask", |repository| run(repository, &Verb::parse()))
}

fn run(repository: &Repository, verb: &Verb) -> Result<()> {
    match verb {
        Verb::Test { from } => steps::test(repository, from.as_deref()),
        Verb::Tidy => tidy::check(repository),
        Verb::Layering => layering::check(repository),
        Verb::Openapi => openapi::rewrite(repository),
        Verb::Dist => dist::dist(repository),
        Verb::Fuzz { seconds } => fuzz::run(repository, *seconds),
        Verb::Cluster(arguments) => {
            tool(repository, &["linesman-campaign", "--", "cluster"], arguments)
        }
        Verb::Faults(arguments) => {
            tool(repository, &["linesman-campaign", "--", "faults"], arguments)
        }
        Verb::Browser => browser::browser(repository),
        Verb::Schemathesis => schemathesis::schemathesis(repository),
        Verb::Autobahn => autobahn::run(repository),
        Verb::Clients => clients::clients(repository),
        Verb::Bucket => other_bucket::other_bucket(repository),
        Verb::PriorClients => prior_clients::prior_clients(repository),
        Verb::Sdk { check: true, .. } => sdk::check(repository),
        Verb::Sdk { test: true, .. } => sdk::test(repository),
        Verb::Sdk { .. } => sdk::write(repository),
        Verb::Bench(arguments) => {
            tool(repository, &["linesman-bench", "--release", "--"], arguments)
        }
        // Arithmetic needs no optimised build.
        Verb::Scale(arguments) if arguments.all.is_empty() => {
            tool(repository, &["linesman-scale", "--"], arguments)
        }
        Verb::Scale(arguments) => {
            tool(repository, &["linesman-scale", "--release", "--"], arguments)
        }
        Verb::SandboxReport { out } => sandbox::report(repository, out.as_deref()),
    }
}

/// Builds and runs a package of `tools/`.
fn tool(repository: &Repository, package: &[&str], arguments: &Arguments) -> Result<()> {
    let mut cargo = shell::cargo(repository);
    shell::run(cargo.args(["run", "-q", "-p"]).args(package).args(&arguments.all))
}
