//! A NATS that keeps acknowledged entries. Debian 12's package is too old, so the package of the next release is
//! unpacked into cargo's target folder, without changes to the system and without root.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use test_servers::{NatsProgram, NatsVersion};

use super::debian;
use crate::repository::Repository;

const PACKAGE: &str = "nats-server";
const IN_PACKAGE: &str = "usr/sbin/nats-server";
/// The release of Debian whose package is fetched: 2.10.27.
const RELEASE: &str = "trixie";

/// Finds a current NATS, or fetches one. An old one is used as a last resort, with a warning.
pub(super) fn ensure_current(
    repository: &Repository,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let found = test_servers::nats_program();
    if found.as_ref().is_ok_and(NatsProgram::is_current) {
        return Ok(());
    }
    let why = match fetch(&repository.target()?.join("servers")) {
        Ok(fetched) => {
            crate::say(&format!("   fetched {fetched}"));
            return Ok(());
        }
        Err(why) => why,
    };
    let found = found.or_else(|_| {
        install()?;
        test_servers::nats_program()
    });
    match found {
        Ok(current) if current.is_current() => {}
        Ok(old) => crate::say(&warning(&old, &why)),
        Err(missing) => return Err(why.context(format!("{missing:#}"))),
    }
    Ok(())
}

/// The warning for a server that may lose acknowledged entries.
fn warning(old: &NatsProgram, why: &anyhow::Error) -> String {
    format!(
        "   WARNING: {old} is run, and it is older than {}: it loses acknowledged entries when its servers are cut off \
         from each other one after the other, so faults that do this may break rules that a newer one keeps. \
         A newer one in /usr/local/bin is taken before it. None could be fetched: {why:#}",
        NatsVersion::MIN
    )
}

/// Unpacks the package of a newer Debian.
fn fetch(folder: &Path) -> Result<NatsProgram> {
    crate::say("   no current NATS is installed");
    debian::unpack(RELEASE, &[PACKAGE], folder, |content| put(&content.join(IN_PACKAGE), folder))
}

/// Moves the program to its place atomically, because others may be looking for it.
fn put(program: &Path, folder: &Path) -> Result<NatsProgram> {
    let fetched = NatsProgram::at(program.to_owned())?;
    ensure!(fetched.is_current(), "Debian {RELEASE} has {fetched}, which is too old, too");
    let path = folder.join(PACKAGE);
    fs::rename(program, &path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(NatsProgram { path, ..fetched })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_no_server_is_not_put_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(put(Path::new("/bin/true"), folder.path()).is_err());
        assert!(!folder.path().join(PACKAGE).exists());
    }
}
