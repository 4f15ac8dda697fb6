//! The pages in a real browser: `e2e/` drives Chromium against the built program.

use anyhow::Result;

use shell::{repository::Repository, servers};

use crate::packages;

const CHROMIUM: &str = "the browser tests need Chromium (on Debian: apt-get install chromium), or its path in \
                        the variable CHROMIUM";
/// Path of Chromium on Debian and its derivatives.
const CHROMIUM_PATH: &str = "/usr/bin/chromium";

pub(crate) fn browser(repository: &Repository) -> Result<()> {
    let folder = repository.root.join("e2e");
    let chromium = std::env::var_os("CHROMIUM").unwrap_or_else(|| CHROMIUM_PATH.into());
    if !shell::succeeds(shell::command(&chromium, &folder).arg("--version")) {
        servers::install_missing(repository, &["chromium"], CHROMIUM)?;
    }
    packages::npm(&folder)?;
    let program = repository.build_program()?;
    let pictures = repository.target()?.join("screenshots");
    let mut tests = shell::command("npm", &folder);
    tests
        .args(["test", "--silent"])
        .env("LINESMAN", program)
        .env("SHOTS", &pictures)
        .env("CHROMIUM", chromium);
    shell::run(&mut tests)?;
    shell::say(&format!("   pictures of every page: {}", pictures.display()));
    Ok(())
}
