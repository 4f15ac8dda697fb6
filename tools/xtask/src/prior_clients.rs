//! Public clients of The Odds API v4, unmodified and from their registries, work against the running service with only
//! their host replaced. The programs that use them are in `e2e/prior_clients`.

use anyhow::{Context as _, Result};

use shell::repository::Repository;

use crate::packages;
use crate::schemathesis::{Server, make_key};

/// The packages of `PyPI`; the last three are undeclared dependencies of theoddsapi.
const PACKAGES: [&str; 5] =
    ["theoddsapi==1.3.7", "betting-odds-tracker==0.1.0", "requests", "pandas", "beautifulsoup4"];
const CHECKS: [&str; 2] = ["check_theoddsapi.py", "check_betting_odds_tracker.py"];

pub(crate) fn prior_clients(repository: &Repository) -> Result<()> {
    let source = repository.root.join("e2e/prior_clients");
    let python = packages::python(repository, "prior-clients", &PACKAGES)?.join("python");
    let program = repository.build_program()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let server = Server::start(&program, folder.path())?;
    let key = make_key(&program, folder.path())?;
    for check in CHECKS {
        let mut run = shell::command(&python, folder.path());
        // Some store files in the home folder.
        run.env("HOME", folder.path()).arg(source.join(check)).args([&server.address, &key]);
        shell::run(&mut run).with_context(|| format!("{check} in e2e/prior_clients"))?;
    }
    let mut rust = shell::command("cargo", &source.join("rust"));
    rust.args(["run", "-q", "--target-dir"]).arg(repository.target()?.join("prior-client"));
    shell::run(rust.args(["--", &server.address, &key])).context("the crate the-odds-api")
}
