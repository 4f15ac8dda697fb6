//! `cargo xtask sandbox-report`: charts of the sandbox, for people to see whether it is plausible.

use std::{env, fs, path::Path};

use anyhow::{Context as _, Result};

use crate::{repository::Repository, shell};

/// The page's name in the build folder.
const PAGE: &str = "sandbox-report.html";

/// Writes the page; the example that draws it prints its path.
pub(crate) fn report(repository: &Repository, out: Option<&Path>) -> Result<()> {
    let out = match out {
        // What is said is meant from where it was said, and cargo runs at the root.
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
