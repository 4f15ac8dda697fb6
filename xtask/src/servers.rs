//! The servers that a cluster is built on, and that tests start for themselves: installed where they are missing.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::{repository::Repository, shell};

const MEND: &str = "the tests of the cluster need PostgreSQL and NATS (on Debian: apt-get install postgresql nats-server)";

/// Each Debian package with a place where it, or an installation by hand, puts its program.
const PACKAGES: [(&str, [&str; 2]); 2] = [
    ("postgresql", ["/usr/lib/postgresql", "/usr/lib/postgresql"]),
    ("nats-server", ["/usr/sbin/nats-server", "/usr/local/bin/nats-server"]),
];

/// Only root can do it, so others are told how.
pub(crate) fn ensure_installed(repository: &Repository) -> Result<()> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, places)| !places.iter().any(|place| Path::new(place).exists()))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let user = shell::output(shell::command("id", &repository.root).arg("-u"));
    ensure!(user.is_ok_and(|id| id.trim() == "0"), MEND);
    shell::say(&format!("   {} missing: installing", missing.join(" and ")));
    let install = || {
        let mut apt = shell::command("apt-get", &repository.root);
        apt.args(["install", "-y", "-q"]).args(&missing).env("DEBIAN_FRONTEND", "noninteractive");
        shell::run(&mut apt)
    };
    // On a fresh machine the list of packages is missing or old.
    install()
        .or_else(|_| {
            shell::run(shell::command("apt-get", &repository.root).args(["update", "-q"]))?;
            install()
        })
        .context(MEND)
}
