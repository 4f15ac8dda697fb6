//! The dependencies of the program: licences, sources, known vulnerabilities, and unused ones.

use anyhow::{Context as _, Result};

use shell::{repository::Repository, tool};

/// `cargo deny`: `deny.toml` lists what is allowed.
///
/// The list of known vulnerabilities (advisories) is a git repository, which some networks cannot reach. In that case
/// a warning is printed and the rest is still checked.
pub(crate) fn deny(repository: &Repository) -> Result<()> {
    let deny = tool::find(repository, "deny")?;
    let check = |what: &[&str]| {
        let mut command = shell::command(&deny, &repository.root);
        command.args(["--log-level", "error", "check", "--hide-inclusion-graph"]).args(what);
        command
    };
    shell::run(&mut check(&["bans", "licenses", "sources"]))
        .context("`deny.toml` says what may be depended on")?;
    let fetched = shell::succeeds(shell::command(&deny, &repository.root).args(["fetch", "db"]));
    if !fetched {
        shell::say(
            "   WARNING: the list of advisories is not reached, so known faults of dependencies are not looked for",
        );
        return Ok(());
    }
    shell::run(&mut check(&["advisories"])).context("a dependency has a known fault")
}

/// `cargo machete`: finds unused dependencies.
pub(crate) fn unused(repository: &Repository) -> Result<()> {
    let machete = tool::find(repository, "machete")?;
    shell::run(&mut shell::command(&machete, &repository.root))
        .context("a dependency is not used; take it out of the Cargo.toml named above")
}
