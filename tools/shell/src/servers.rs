//! The servers that tests start and that a cluster needs, and other Debian packages: installed if they are missing.

mod debian;
mod nats;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::repository::Repository;

const HOW_TO_INSTALL: &str = "the tests need PostgreSQL, NATS, nginx, Caddy and curl or wget (on Debian: apt-get install postgresql nats-server nginx-light caddy curl)";

/// A Debian package with the possible paths of its program: packaged or installed by hand.
type Package = (&'static str, [&'static str; 2]);

const POSTGRES: Package = ("postgresql", ["/usr/lib/postgresql", "/usr/lib/postgresql"]);
const NATS: Package = ("nats-server", ["/usr/sbin/nats-server", "/usr/local/bin/nats-server"]);
/// Used by `deploy/nginx/linesman-nodes` to query nodes; either is sufficient.
const CURL: Package = ("curl", ["/usr/bin/curl", "/usr/bin/wget"]);
const CADDY: Package = ("caddy", ["/usr/bin/caddy", "/usr/local/bin/caddy"]);
const NGINX: Package = ("nginx-light", ["/usr/sbin/nginx", "/usr/local/bin/nginx"]);

/// The servers that tests start.
pub fn ensure_installed(repository: &Repository) -> Result<()> {
    install(repository, &[POSTGRES, CURL, NGINX, CADDY], HOW_TO_INSTALL)?;
    nats::ensure_current(repository, || install(repository, &[NATS], HOW_TO_INSTALL))
}

/// Ensures a current NATS alone.
pub fn ensure_nats(repository: &Repository) -> Result<()> {
    let how = "this needs NATS (on Debian: apt-get install nats-server)";
    nats::ensure_current(repository, || install(repository, &[NATS], how))
}

/// The servers of a whole cluster.
pub fn ensure_cluster_installed(repository: &Repository) -> Result<()> {
    let how = "a cluster needs PostgreSQL, NATS and nginx (on Debian: apt-get install postgresql nats-server nginx-light)";
    install(repository, &[POSTGRES, NGINX], how)?;
    nats::ensure_current(repository, || install(repository, &[NATS], how))
}

/// Unpacks packages of another Debian release without installing them; `take` copies the needed files from a folder
/// under `folder`.
pub fn unpack<T>(
    release: &str,
    packages: &[&str],
    folder: &Path,
    take: impl Fn(&Path) -> Result<T>,
) -> Result<T> {
    debian::unpack(release, packages, folder, take)
}

/// Installs a package if possible; returns true if it is present.
pub fn try_install(repository: &Repository, package: Package) -> bool {
    install(repository, &[package], "").is_ok()
}

fn install(repository: &Repository, packages: &[Package], how: &'static str) -> Result<()> {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(_, places)| !places.iter().any(|place| Path::new(place).exists()))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    install_missing(repository, &missing, how)
}

/// Installs Debian packages. Only root can do it; otherwise the error explains how.
pub fn install_missing(repository: &Repository, missing: &[&str], how: &'static str) -> Result<()> {
    let user = crate::output(crate::command("id", &repository.root).arg("-u"));
    ensure!(user.is_ok_and(|id| id.trim() == "0"), how);
    crate::say(&format!("   {} missing: installing", missing.join(" and ")));
    // Another apt may be running, and mirrors fail temporarily.
    let apt = || {
        let mut apt = crate::command("apt-get", &repository.root);
        apt.args(["-q", "-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=120"]);
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    let install = || crate::run(apt().args(["install", "-y"]).args(missing));
    // On a fresh machine the package lists are missing or old.
    install()
        .or_else(|_| {
            crate::run(apt().arg("update"))?;
            install()
        })
        .context(how)
}
