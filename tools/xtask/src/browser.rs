//! The pages in a real browser: `e2e/` drives Chromium against the program as built.

use anyhow::{Context as _, Result, ensure};

use shell::{repository::Repository, servers};

const NODE: &str =
    "the browser tests need Node.js 20 or later with npm (on Debian: apt-get install nodejs npm)";
const CHROMIUM: &str = "the browser tests need Chromium (on Debian: apt-get install chromium), or its path in \
                        the variable CHROMIUM";
/// Where Debian and its kin keep it.
const CHROMIUM_PATH: &str = "/usr/bin/chromium";

pub(crate) fn browser(repository: &Repository) -> Result<()> {
    let folder = repository.root.join("e2e");
    ensure!(shell::succeeds(shell::command("npm", &folder).arg("--version")), NODE);
    let chromium = std::env::var_os("CHROMIUM").unwrap_or_else(|| CHROMIUM_PATH.into());
    if !shell::succeeds(shell::command(&chromium, &folder).arg("--version")) {
        servers::install_missing(repository, &["chromium"], CHROMIUM)?;
    }
    // What is there is kept when it is what the lock file says; npm looks itself.
    let mut npm = shell::command("npm", &folder);
    shell::run(npm.args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"]))
        .context("the packages of e2e/ cannot be installed")?;
    let program = repository.build_program()?;
    let pictures = repository.target()?.join("screenshots");
    let mut tests = shell::command("npm", &folder);
    tests
        .args(["test", "--silent"])
        .env("LINESMAN", program)
        .env("LINESMAN_SHOTS", &pictures)
        .env("CHROMIUM", chromium);
    shell::run(&mut tests)?;
    shell::say(&format!("   pictures of every page: {}", pictures.display()));
    Ok(())
}
