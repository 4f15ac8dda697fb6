//! Public clients of The Odds API v4, unmodified and from their registries, work against the running service with only
//! their host replaced. The programs that use them are in `e2e/prior_clients`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use shell::{repository::Repository, servers};

use crate::schemathesis::{Server, VENV, make_key};

/// The packages of `PyPI`. Other versions do other things, and a change that nobody made must not break the tests.
const PACKAGES: [&str; 2] = ["theoddsapi==1.3.7", "betting-odds-tracker==0.1.0"];
/// What theoddsapi imports and does not declare.
const UNDECLARED: [&str; 3] = ["requests", "pandas", "beautifulsoup4"];
const CHECKS: [&str; 2] = ["check_theoddsapi.py", "check_betting_odds_tracker.py"];

pub(crate) fn prior_clients(repository: &Repository) -> Result<()> {
    let source = repository.root.join("e2e/prior_clients");
    let python = install_python(repository)?;
    let program = repository.build_program()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let server = Server::start(&program, folder.path())?;
    let key = make_key(&program, folder.path())?;
    for check in CHECKS {
        let mut run = shell::command(&python, folder.path());
        // Some keep notes in the home folder.
        run.env("HOME", folder.path()).arg(source.join(check)).args([&server.address, &key]);
        shell::run(&mut run).with_context(|| format!("{check} in e2e/prior_clients"))?;
    }
    let mut rust = shell::command("cargo", &source.join("rust"));
    rust.args(["run", "-q", "--target-dir"]).arg(repository.target()?.join("prior-client"));
    shell::run(rust.args(["--", &server.address, &key])).context("the crate the-odds-api")
}

/// The packages in a Python environment of their own under the build folder; gives its interpreter.
fn install_python(repository: &Repository) -> Result<PathBuf> {
    let folder = repository.target()?.join("prior-clients");
    let (python, pip) = (folder.join("bin/python"), folder.join("bin/pip"));
    let listed =
        shell::output(shell::command(&pip, &repository.root).args(["list", "--format", "freeze"]));
    let is_there =
        |list: &str| PACKAGES.iter().all(|package| list.lines().any(|line| line == *package));
    if listed.is_ok_and(|list| is_there(&list)) {
        return Ok(python);
    }
    shell::say("   the prior clients are missing: installing them under the build folder");
    let mut venv = shell::command("python3", &repository.root);
    venv.args(["-m", "venv", "--clear"]).arg(&folder);
    if !shell::succeeds(&mut venv) {
        servers::install_missing(repository, &["python3-venv"], VENV)?;
        shell::run(&mut venv)?;
    }
    let mut install = shell::command(pip, &repository.root);
    install.args(["install", "-q", "--disable-pip-version-check"]);
    shell::run(install.args(UNDECLARED).args(PACKAGES))?;
    Ok(python)
}
