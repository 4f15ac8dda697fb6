//! `cargo xtask test`: the named and timed steps; the first failure ends the run.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use shell::{repository::Repository, servers};

use crate::{
    autobahn, browser, clients, fuzz, layering, openapi, prior_clients, sandbox, schemathesis, sdk,
    supply, tidy,
};

/// Enough to find a panic that is easy to reach; longer runs are `cargo xtask fuzz --seconds N`.
const FUZZ_SECONDS: u32 = 10;

type Step = (&'static str, fn(&Repository) -> Result<()>);

/// All steps use one feature set, that of the tests, and no `RUSTFLAGS`, so that no step rebuilds the output of
/// another.
const STEPS: [Step; 19] = [
    ("format", format),
    ("lint", lint),
    ("docs", docs),
    ("layering", layering::check),
    ("tidy", tidy::check),
    ("dependencies", supply::deny),
    ("unused", supply::unused),
    ("tests", tests),
    ("doc tests", doc_tests),
    ("openapi", openapi::check),
    ("sandbox", sandbox::check),
    ("fuzz", |repository| fuzz::run(repository, FUZZ_SECONDS)),
    ("autobahn", autobahn::run),
    ("schemathesis", schemathesis::schemathesis),
    ("clients", clients::clients),
    ("prior clients", prior_clients::prior_clients),
    ("sdk", sdk::check_and_test),
    ("faults", faults),
    ("browser", browser::browser),
];

pub(crate) fn test(repository: &Repository, from: Option<&str>) -> Result<()> {
    let begun = Instant::now();
    let repository = &repository.with_tests();
    let first = from.map_or(Some(0), |from| STEPS.iter().position(|(name, _)| *name == from));
    let Some(first) = first else {
        bail!("the steps are: {}", STEPS.map(|(name, _)| name).join(", "));
    };
    for (n, (name, step)) in STEPS.iter().enumerate().skip(first) {
        shell::say(&format!("── {}/{} {name}", n + 1, STEPS.len()));
        let started = Instant::now();
        let outcome = step(repository);
        let seconds = started.elapsed().as_secs_f32();
        if let Err(error) = outcome {
            shell::say(&format!("{error:#}"));
            bail!("step `{name}` failed after {seconds:.1} s");
        }
        shell::say(&format!("   {name}: ok, {seconds:.1} s"));
    }
    shell::say(&format!(
        "all {} steps passed, {:.0} s",
        STEPS.len() - first,
        begun.elapsed().as_secs_f32()
    ));
    Ok(())
}

fn format(repository: &Repository) -> Result<()> {
    shell::run(shell::cargo(repository).args(["fmt", "--all", "--check"]))
        .context("run `cargo fmt --all`")
}

fn lint(repository: &Repository) -> Result<()> {
    let arguments = ["clippy", "-q", "--workspace", "--all-targets", "--", "-D", "warnings"];
    shell::run(shell::cargo(repository).args(arguments))
}

fn docs(repository: &Repository) -> Result<()> {
    let mut cargo = shell::cargo(repository);
    cargo.args(["doc", "-q", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    shell::run(&mut cargo)
}

fn tests(repository: &Repository) -> Result<()> {
    servers::ensure_installed(repository)?;
    if shell::succeeds(shell::cargo(repository).args(["nextest", "--version"])) {
        return shell::run(shell::cargo(repository).args(["nextest", "run", "--workspace"]));
    }
    shell::say("   cargo-nextest is not installed: cargo test instead");
    shell::run(shell::cargo(repository).args(["test", "-q", "--workspace", "--all-targets"]))
}

/// Skips the step if there are no examples, because searching for them takes minutes.
fn doc_tests(repository: &Repository) -> Result<()> {
    let is_fence = |line: &str| ["/// ```", "//! ```"].iter().any(|mark| line.contains(mark));
    let files = repository.text_files()?;
    let mut sources = files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && !file.path.starts_with("tools/xtask"));
    if !sources.any(|file| file.text.lines().any(is_fence)) {
        shell::say("   no documentation has an example");
        return Ok(());
    }
    shell::run(shell::cargo(repository).args(["test", "-q", "--workspace", "--doc"]))
}

/// The short campaign. Only violations of invariants fail it; the share of successful reads and the recovery time
/// depend on the load of the machine.
fn faults(repository: &Repository) -> Result<()> {
    let mut cargo = shell::cargo(repository);
    cargo.args(["run", "-q", "-p", "linesman-campaign", "--", "faults", "--short"]);
    shell::run(cargo.args(["--ignore-timing", "--with-tests"]))
}
