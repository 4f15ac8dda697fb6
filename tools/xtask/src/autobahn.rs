//! Autobahn's fuzzing client tests our WebSocket framing (S19): the example `websocket_echo` of `http` echoes all
//! messages with the framing code of the streams.
//!
//! The suite is from 2018 and runs on Python 2.7, last shipped by Debian 11: its packages are unpacked into the build
//! folder, together with the suite and its dependencies. The system is not changed.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use shell::{repository::Repository, servers};

use crate::packages;

const RELEASE: &str = "bullseye";
const DEBIAN_PACKAGES: [&str; 5] =
    ["python2.7-minimal", "libpython2.7-minimal", "libpython2.7-stdlib", "libffi7", "libssl1.1"];
const PYTHON: &str = "usr/bin/python2.7";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Source packages, which only have to be unpacked.
const SOURCES: [&str; 3] = ["autobahntestsuite==0.8.2", "autobahn==0.10.9", "txaio==2.1.0"];
/// Their dependencies, in the last compatible versions for Python 2.7.
const WHEELS: [&str; 25] = [
    "Automat==0.7.0",
    "Jinja2==2.11.3",
    "MarkupSafe==1.1.1",
    "PyHamcrest==1.9.0",
    "Twisted==20.3.0",
    "argparse==1.4.0",
    "attrs==19.3.0",
    "cffi==1.14.0",
    "constantly==15.1.0",
    "cryptography==2.8",
    "enum34==1.1.10",
    "hyperlink==19.0.0",
    "idna==2.8",
    "incremental==17.5.0",
    "ipaddress==1.0.23",
    "linecache2==1.0.0",
    "pyOpenSSL==19.1.0",
    "pyasn1==0.4.8",
    "pyasn1-modules==0.2.8",
    "service_identity==18.1.0",
    "setuptools==44.1.1",
    "six==1.14.0",
    "traceback2==1.4.0",
    "unittest2==1.1.0",
    "zope.interface==4.7.2",
];

/// All cases except compression, which streams do not use.
const CASES: [&str; 9] = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.*", "10.*"];
/// Minimum number of cases; with fewer, some were not run.
const CASES_MIN: usize = 290;
const AGENT: &str = "linesman";

pub(crate) fn run(repository: &Repository) -> Result<()> {
    let suite = suite(repository)?;
    let echo = Echo::start(repository)?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let spec = json!({
        "outdir": folder.path().join("reports"),
        "servers": [{ "agent": AGENT, "url": format!("ws://127.0.0.1:{}", echo.port) }],
        "cases": CASES,
        "exclude-cases": [],
        "exclude-agent-cases": {},
    });
    fs::write(folder.path().join("spec.json"), spec.to_string())?;
    let mut client = suite.command(folder.path());
    client.args(["-m", "fuzzingclient", "-s", "spec.json"]);
    shell::output(&mut client).context("Autobahn's fuzzing client")?;
    let report = fs::read_to_string(folder.path().join("reports/index.json"))
        .context("Autobahn's fuzzing client has written no report")?;
    let report: Value = serde_json::from_str(&report)?;
    let results = report.get(AGENT).and_then(Value::as_object).context("a report of nobody")?;
    let failed = failures(results);
    ensure!(results.len() >= CASES_MIN, "only {} cases were run", results.len());
    if !failed.is_empty() {
        bail!("{} of {} cases failed: {}", failed.len(), results.len(), failed.join(", "));
    }
    shell::say(&format!("   {} cases passed", results.len()));
    Ok(())
}

/// The cases that violate the protocol.
fn failures(results: &serde_json::Map<String, Value>) -> Vec<String> {
    let passes = |result: &Value, what: &str| {
        let outcome = result.get(what).and_then(Value::as_str).unwrap_or_default();
        matches!(outcome, "OK" | "NON-STRICT" | "INFORMATIONAL")
    };
    let failed = results
        .iter()
        .filter(|(_, result)| !passes(result, "behavior") || !passes(result, "behaviorClose"));
    failed
        .map(|(case, result)| {
            let outcome = |what| result.get(what).and_then(Value::as_str).unwrap_or("nothing");
            format!("{case} ({}, closing {})", outcome("behavior"), outcome("behaviorClose"))
        })
        .collect()
}

/// The suite and its Python.
struct Suite {
    folder: PathBuf,
}

impl Suite {
    fn command(&self, folder: &Path) -> Command {
        let root = self.folder.join("root");
        let mut command = shell::command(root.join(PYTHON), folder);
        command
            .env("LD_LIBRARY_PATH", root.join(LIBRARIES))
            .env("PYTHONHOME", root.join("usr"))
            .env("PYTHONPATH", self.folder.join("lib"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .args(["-c", "from autobahntestsuite import wstest; wstest.run()"]);
        command
    }
}

/// Finds the suite, or installs it.
fn suite(repository: &Repository) -> Result<Suite> {
    let folder = repository.target()?.join("autobahn");
    let suite = Suite { folder: folder.clone() };
    let works = || shell::succeeds(suite.command(&repository.root).arg("--help"));
    if folder.join("root").join(PYTHON).is_file() && works() {
        return Ok(suite);
    }
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    servers::unpack(RELEASE, &DEBIAN_PACKAGES, &folder, |content| {
        fs::rename(content, folder.join("root")).context("cannot put Python there")
    })?;
    fetch(repository, &folder)?;
    ensure!(works(), "the suite in {} does not run", folder.display());
    Ok(suite)
}

/// Fetches the packages of Python 2.7 with the pip of Python 3, and unpacks them.
fn fetch(repository: &Repository, folder: &Path) -> Result<()> {
    let pip = packages::python(repository, "autobahn-pip", &["wheel==0.45.1"])?.join("pip");
    let download = |arguments: &[&str], packages: &[&str]| {
        let mut pip = shell::command(&pip, folder);
        pip.args(["download", "-q", "--no-deps", "-d", "fetched"]).args(arguments).args(packages);
        shell::run(&mut pip).with_context(|| packages.join(", "))
    };
    download(&["--no-binary", ":all:"], &SOURCES)?;
    let platform = [
        "--only-binary=:all:",
        "--python-version=27",
        "--implementation=cp",
        "--abi=cp27mu",
        "--platform=manylinux1_x86_64",
        "--platform=manylinux2010_x86_64",
    ];
    download(&platform, &WHEELS)?;
    let lib = folder.join("lib");
    fs::create_dir_all(&lib)?;
    for entry in fs::read_dir(folder.join("fetched"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "whl") {
            let mut unzip = shell::command("python3", folder);
            shell::run(unzip.args(["-m", "zipfile", "-e"]).arg(&path).arg(&lib))?;
        } else {
            let mut tar = shell::command("tar", folder);
            tar.arg("-xzf").arg(&path).arg("-C").arg(&lib).arg("--strip-components=1");
            shell::run(tar.args(["--wildcards", "*/*/*"]))?;
        }
    }
    // A namespace package whose parts are installed separately; an installer would write this file.
    fs::write(lib.join("zope/__init__.py"), "")?;
    Ok(())
}

/// The echo server; it is stopped when this is dropped.
struct Echo {
    child: Child,
    port: u16,
}

impl Echo {
    fn start(repository: &Repository) -> Result<Self> {
        // Built with the whole workspace, like the tests: each set of features is built separately.
        let example = ["--workspace", "--example", "websocket_echo"];
        shell::run(shell::cargo(repository).args(["build", "-q"]).args(example))?;
        let program = repository.target()?.join("debug/examples/websocket_echo");
        let mut command = shell::command(program, &repository.root);
        let mut child = command.stdout(Stdio::piped()).spawn().context("the echo server")?;
        let output = child.stdout.take().context("the echo server has no output")?;
        let mut echo = Self { child, port: 0 };
        let line = BufReader::new(output).lines().next().context("the echo server ended")??;
        echo.port = line.trim().parse().context("the echo server prints its port first")?;
        Ok(echo)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_passes_where_both_its_outcome_and_its_closing_do() {
        let results = json!({
            "1.1.1": { "behavior": "OK", "behaviorClose": "OK" },
            "6.4.1": { "behavior": "NON-STRICT", "behaviorClose": "OK" },
            "7.1.6": { "behavior": "INFORMATIONAL", "behaviorClose": "INFORMATIONAL" },
            "7.5.1": { "behavior": "OK", "behaviorClose": "WRONG CODE" },
            "9.1.1": { "behavior": "FAILED", "behaviorClose": "OK" },
            "9.1.2": {},
        });
        let failed = failures(results.as_object().unwrap());
        assert_eq!(failed.len(), 3);
        assert_eq!(failed[0], "7.5.1 (OK, closing WRONG CODE)");
    }
}
