//! The sandbox: its promises at many instants, and charts that show whether it is plausible.

use std::{env, fs, path::Path};

use anyhow::{Context as _, Result};

use shell::repository::Repository;

/// The page's name in the build folder.
const PAGE: &str = "sandbox-report.html";

/// Number of instants in two simulated years at which every promise must hold.
const INSTANTS: &str = "400";

/// Checks every promise of the sandbox, with an optimised build: otherwise it would take half an hour.
pub(crate) fn check(repository: &Repository) -> Result<()> {
    let mut cargo = shell::cargo(repository);
    cargo.args(["run", "-q", "--release", "-p", "linesman-feeds", "--example", "sandbox_check"]);
    shell::run(cargo.args(["--", INSTANTS])).context("the sandbox breaks a promise")
}

/// Writes the page; the example that draws it prints its path.
pub(crate) fn report(repository: &Repository, out: Option<&Path>) -> Result<()> {
    let out = match out {
        // A relative path refers to the current folder, and cargo runs at the root.
        Some(out) => env::current_dir().context("there is no current folder")?.join(out),
        None => repository.target()?.join(PAGE),
    };
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    shell::say("drawing a day of the sandbox and a golf tournament: about a minute");
    let mut cargo = shell::cargo(repository);
    cargo.args(["run", "-q", "--release", "-p", "linesman-feeds", "--example", "sandbox_report"]);
    shell::run(cargo.arg("--").arg(out))
}
