//! Schemathesis reads `/openapi.json` of a running server and sends it everything that the document allows and
//! forbids; any answer that the document does not describe is a failure.
//!
//! The server is the built program, with a fresh data folder and free ports; it is stopped when the check is done.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use shell::repository::Repository;

use crate::packages;

/// The version whose options are used below.
const PACKAGE: &str = "schemathesis==4.32.5";

/// Examples for each operation and phase: enough to cover every parameter alone and in pairs.
const EXAMPLES: &str = "50";

/// Seed of the examples, fixed so that a failure is reproducible.
const SEED: &str = "20261114";

/// Maximum time for the whole run, which takes about a minute on an idle machine.
const RUN_MAX: Duration = Duration::from_secs(1800);

/// Maximum time to start: a debug build takes a second, on slow machines longer.
const START_MAX: Duration = Duration::from_secs(120);

/// A long list of ids makes the target too long, and 414 is answered before the list is checked.
const SETTINGS: &str = "[checks]\nnegative_data_rejection.expected-statuses = \
    [400, 401, 403, 404, 405, 406, 409, 414, 415, 422, 428, 429, \"5xx\"]\n";

pub(crate) fn schemathesis(repository: &Repository) -> Result<()> {
    let tester = packages::python(repository, "schemathesis", &[PACKAGE])?.join("st");
    let program = repository.build_program()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    fs::write(folder.path().join("schemathesis.toml"), SETTINGS)
        .context("cannot write settings")?;
    let server = Server::start(&program, folder.path())?;
    let key = make_key(&program, folder.path())?;

    let mut run = shell::command(tester, folder.path());
    run.args(["run", "--no-color", "--max-examples", EXAMPLES, "--seed", SEED])
        .args(["--generation-database", "none", "--request-timeout", "60"])
        // The server refuses inputs that a schema cannot exclude: foreign cursors, a grouping that the sport does not
        // have, a key in both query and header. The tests of `serve` check these refusals.
        .args(["--exclude-checks", "positive_data_acceptance"])
        // It cannot write NDJSON; ingest has its own tests and a fuzz target.
        .args(["--exclude-path", "/ingest/v1/messages"])
        // Its answer does not end, so the request would block; it has its own tests.
        .args(["--exclude-path", "/v1/stream"])
        .args(["--continue-on-failure", "--header"])
        .arg(format!("X-API-Key: {key}"))
        .arg(format!("{}/openapi.json", server.address));
    let mut child = run.spawn().context("cannot start schemathesis")?;
    let status = shell::wait(&mut child, RUN_MAX).context("schemathesis")?;
    ensure!(status.success(), "schemathesis found answers that openapi.json does not promise");
    Ok(())
}

/// A running server; dropping it stops it.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(program: &Path, folder: &Path) -> Result<Self> {
        Self::start_with(program, folder, &[])
    }

    /// Starts it with settings given as environment variables.
    pub(crate) fn start_with(
        program: &Path,
        folder: &Path,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        Self::restart_with(program, folder, settings, "http://127.0.0.1:0")
    }

    /// Starts it at the address of an earlier one.
    pub(crate) fn restart_with(
        program: &Path,
        folder: &Path,
        settings: &[(&str, &str)],
        address: &str,
    ) -> Result<Self> {
        let listen = address.strip_prefix("http://").unwrap_or(address);
        let mut command = with_data(program, folder);
        command
            .envs(settings.iter().copied())
            .args(["serve", "--listen", listen])
            .env("LINESMAN_SERVER__OPS_LISTEN", "127.0.0.1:0")
            // A busy machine must not cause refusals here.
            .env("LINESMAN_SERVER__SHED_AFTER", "1m")
            .stderr(Stdio::null());
        Self::spawn(&mut command)
    }

    /// Starts a program that prints its address.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start a server")?;
        let stdout = child.stdout.take();
        // From here on dropping ends the child, whatever fails.
        let mut server = Self { child, address: String::new() };
        server.address = first_address(stdout.context("the server has no stdout")?)?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, so an error is ignored.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Reads the first address that a server prints; of the program, it is the API's. The output is read to the end, so
/// that the pipe never fills up.
pub(crate) fn first_address(output: impl Read + Send + 'static) -> Result<String> {
    let (found, finding) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(address) = shell::address_in(&line) {
                // Only the first is awaited; nobody receives later ones.
                found.send(format!("http://{address}")).unwrap_or_default();
            }
        }
    });
    finding.recv_timeout(START_MAX).context("the server did not print its address")
}

/// Creates a key whose limits the run does not reach.
pub(crate) fn make_key(program: &Path, folder: &Path) -> Result<String> {
    make_key_of("sandbox", program, folder)
}

/// Creates a key of a kind, without limits that a test would reach.
pub(crate) fn make_key_of(kind: &str, program: &Path, folder: &Path) -> Result<String> {
    let mut command = with_data(program, folder);
    command.args(["keys", "create", "--kind", kind, "--name", "schemathesis"]);
    command.args(["--burst-per-minute", "1000000", "--requests-per-day", "100000000"]);
    Ok(shell::output(&mut command)?.trim().to_owned())
}

/// Runs the program with the given data folder as its working directory, so that no `linesman.toml` is picked up.
pub(crate) fn with_data(program: &Path, folder: &Path) -> Command {
    let mut command = shell::command(program, folder);
    command.arg("--data").arg(folder.join("data"));
    command
}
