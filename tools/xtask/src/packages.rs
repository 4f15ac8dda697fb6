//! Packages of other registries in fixed versions, so that upstream changes cannot break the tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use shell::{repository::Repository, servers};

/// Debian and its derivatives ship Python without the venv module.
const VENV: &str = "python3 cannot make a virtual environment: install Python 3 with its venv module \
                    (on Debian: apt-get install python3-venv)";
const NODE: &str =
    "this step needs Node.js 20 or later with npm (on Debian: apt-get install nodejs npm)";
/// The lock file from which the installed packages come.
const INSTALLED: &str = "node_modules/.installed-lock.json";

/// Installs Python packages in a virtual environment under the build folder; returns the folder of its programs.
/// Packages without a version are undeclared dependencies of others.
pub(crate) fn python(repository: &Repository, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = repository.target()?.join(name);
    let programs = folder.join("bin");
    let pip = || shell::command(programs.join("pip"), &repository.root);
    let listed = shell::output(pip().args(["list", "--format", "freeze"]));
    let is_there = |list: &str| {
        let mut pinned = packages.iter().filter(|package| package.contains("=="));
        pinned.all(|package| list.lines().any(|line| line == *package))
    };
    if listed.is_ok_and(|list| is_there(&list)) {
        return Ok(programs);
    }
    shell::say(&format!("   installing Python packages in {}", folder.display()));
    let mut venv = shell::command("python3", &repository.root);
    venv.args(["-m", "venv", "--clear"]).arg(&folder);
    if !shell::succeeds(&mut venv) {
        servers::install_missing(repository, &["python3-venv"], VENV)?;
        shell::run(&mut venv)?;
    }
    shell::run(pip().args(["install", "-q", "--disable-pip-version-check"]).args(packages))?;
    Ok(programs)
}

/// Installs the npm packages of a folder according to its lock file.
pub(crate) fn npm(folder: &Path) -> Result<()> {
    ensure!(shell::succeeds(shell::command("npm", folder).arg("--version")), NODE);
    let lock = fs::read(folder.join("package-lock.json"))
        .with_context(|| format!("{} has no package-lock.json", folder.display()))?;
    if fs::read(folder.join(INSTALLED)).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut npm = shell::command("npm", folder);
    shell::run(npm.args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"]))
        .with_context(|| format!("the packages of {} cannot be installed", folder.display()))?;
    fs::write(folder.join(INSTALLED), lock).context("cannot write to node_modules")
}
