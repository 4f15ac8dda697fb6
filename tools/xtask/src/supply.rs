//! What the program is made of: licences, sources and known faults of its dependencies, and that each of them is used.

use anyhow::{Context as _, Result};

use shell::{repository::Repository, tool};

/// `cargo deny`: `deny.toml` says what may be depended on.
///
/// The list of known faults (advisories) is a git repository of its own, which not every network reaches. Where it is
/// not reached that is said, and the rest is checked all the same.
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

/// `cargo machete`: no crate is depended on and not used.
pub(crate) fn unused(repository: &Repository) -> Result<()> {
    let machete = tool::find(repository, "machete")?;
    shell::run(&mut shell::command(&machete, &repository.root))
        .context("a dependency is not used; take it out of the Cargo.toml named above")
}
