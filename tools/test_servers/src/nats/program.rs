//! Selects the nats-server to run: preferably one that does not lose acknowledged entries.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::process::run;

const MISSING: &str =
    "NATS is not installed (on Debian: apt-get install nats-server; `cargo xtask test` does it)";
/// Paths of a manual installation and of Debian's package.
const INSTALLED: [&str; 2] = ["/usr/local/bin/nats-server", "/usr/sbin/nats-server"];
/// Path below cargo's target folder of the one fetched by `cargo xtask`.
const FETCHED: &str = "servers/nats-server";

/// A server's version. Servers before 2.10 lose acknowledged entries when they are cut off from each other one after
/// the other (`docs/operations/faults.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NatsVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

impl NatsVersion {
    /// The first version that keeps acknowledged entries, as far as tested.
    pub const MIN: Self = Self { major: 2, minor: 10, patch: 0 };

    /// Parses the output of `nats-server --version`.
    fn parse(said: &str) -> Option<Self> {
        let (_, version) = said.trim().split_once("nats-server: v")?;
        // A dash or a plus begins a pre-release or a custom build.
        let mut numbers =
            version.split(['-', '+']).next()?.split('.').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for NatsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A server's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsProgram {
    pub path: PathBuf,
    pub version: NatsVersion,
}

impl NatsProgram {
    /// Reads the version of a program.
    ///
    /// # Errors
    /// It cannot be run, or is another program.
    pub fn at(path: PathBuf) -> Result<Self> {
        let said = run(Command::new(&path).arg("--version"))?;
        let version = NatsVersion::parse(&said)
            .with_context(|| format!("{} is no nats-server: {}", path.display(), said.trim()))?;
        Ok(Self { path, version })
    }

    /// True if it keeps acknowledged entries.
    pub fn is_current(&self) -> bool {
        self.version >= NatsVersion::MIN
    }
}

impl fmt::Display for NatsProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = if self.is_current() { "" } else { ", too old" };
        write!(f, "NATS {}{age} ({})", self.version, self.path.display())
    }
}

/// The server's program: an installed current one, else the one that `cargo xtask` fetched, else the newest.
///
/// # Errors
/// None can be run.
pub fn nats_program() -> Result<NatsProgram> {
    let here = std::env::current_exe().context("this program does not know where it is")?;
    let mut broken = Vec::new();
    let found = places(&here).filter_map(|path| {
        NatsProgram::at(path).map_err(|error| broken.push(format!("{error:#}; "))).ok()
    });
    choose(found).with_context(|| format!("{}{MISSING}", broken.concat()))
}

/// Possible paths of a server, for a program in cargo's target folder.
fn places(here: &Path) -> impl Iterator<Item = PathBuf> {
    // Cargo marks its folder; folders above it are not ours.
    let marked = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let fetched = here.ancestors().skip(1).find(marked).map(|folder| folder.join(FETCHED));
    INSTALLED.into_iter().map(PathBuf::from).chain(fetched).filter(|path| path.is_file())
}

/// The first current one, else the newest.
fn choose(found: impl Iterator<Item = NatsProgram>) -> Option<NatsProgram> {
    let mut newest: Option<NatsProgram> = None;
    for program in found {
        if program.is_current() {
            return Some(program);
        }
        if newest.as_ref().is_none_or(|newest| newest.version < program.version) {
            newest = Some(program);
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(path: &str, said: &str) -> NatsProgram {
        NatsProgram { path: path.into(), version: NatsVersion::parse(said).unwrap() }
    }

    fn chosen(programs: &[(&str, &str)]) -> Option<String> {
        let found = programs.iter().map(|(path, said)| program(path, said));
        choose(found).map(|program| program.path.display().to_string())
    }

    #[test]
    fn versions_are_numbers_and_not_text() {
        let parse = |said| NatsVersion::parse(said).unwrap();
        assert_eq!(parse("nats-server: v2.9.10\n").to_string(), "2.9.10");
        assert!(parse("nats-server: v2.9.10") < NatsVersion::MIN);
        assert!(parse("nats-server: v2.10.0") >= NatsVersion::MIN);
        assert!(parse("nats-server: v2.10.27") > parse("nats-server: v2.10.9"));
        assert!(parse("nats-server: v10.0.0") > parse("nats-server: v2.15.1"));
        assert_eq!(parse("nats-server: v2.11.0-RC.1"), parse("nats-server: v2.11.0+b2"));
    }

    #[test]
    fn what_is_no_version_is_not_taken_for_one() {
        for said in ["", "nats-server", "nats-server: v2.10", "nats-server: v2.x.1", "v2.10.1"] {
            assert_eq!(NatsVersion::parse(said), None, "{said}");
        }
        assert_eq!(NatsVersion::parse("nats-server: v2.10.1.7"), None);
    }

    #[test]
    fn the_first_current_one_is_run_and_else_the_newest() {
        let (old, older) = ("nats-server: v2.9.10", "nats-server: v2.8.2");
        let (current, newer) = ("nats-server: v2.10.27", "nats-server: v2.15.1");
        assert_eq!(chosen(&[("local", current), ("system", newer)]).unwrap(), "local");
        assert_eq!(chosen(&[("local", old), ("system", newer)]).unwrap(), "system");
        assert_eq!(chosen(&[("system", old), ("fetched", current)]).unwrap(), "fetched");
        assert_eq!(chosen(&[("local", older), ("system", old)]).unwrap(), "system");
        assert_eq!(chosen(&[("local", old), ("system", older)]).unwrap(), "local");
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_fetched_one_is_found_from_where_cargo_puts_tests() {
        let target = tempfile::tempdir().unwrap();
        let fetched = target.path().join(FETCHED);
        fs::create_dir_all(fetched.parent().unwrap()).unwrap();
        let test = target.path().join("debug").join("deps").join("it-0123");
        assert!(!places(&test).any(|path| path == fetched));
        fs::write(&fetched, "").unwrap();
        assert!(!places(&test).any(|path| path == fetched), "not a folder of cargo's");
        fs::write(target.path().join("CACHEDIR.TAG"), "").unwrap();
        assert_eq!(places(&test).last().unwrap(), fetched);
    }
}
