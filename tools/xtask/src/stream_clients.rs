//! Public clients of Server-Sent Events and of `WebSocket` follow a stream through a restart of the program without
//! loss. The programs are in `e2e/clients`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use shell::repository::Repository;

use crate::packages;
use crate::schemathesis::{Server, make_key};

/// The packages of `PyPI`; those of npm are in `e2e/clients/package.json`.
const PACKAGES: [&str; 5] = [
    "httpx==0.28.1",
    "httpx-sse==0.4.3",
    "sseclient-py==1.9.0",
    "requests==2.34.2",
    "websockets==17.4",
];
const PYTHON: [&str; 3] = ["httpx-sse", "sseclient-py", "websockets"];
const NODE: [&str; 2] = ["eventsource", "ws"];

/// Frequent publications, so that the run is short.
const SETTINGS: [(&str, &str); 2] =
    [("LINESMAN_MARKET__REFRESH_INTERVAL", "2s"), ("LINESMAN_MARKET__STALE_AFTER", "1m")];
/// Number of cuts that clients have seen before the restart.
const CUTS_BEFORE: usize = 2;
/// Maximum time; the clients take half a minute on an idle machine.
const RUN_MAX: Duration = Duration::from_secs(300);

/// `typescript`: folder of the npm packages and their program.
pub(crate) fn stream_clients(
    repository: &Repository,
    program: &Path,
    typescript: &Path,
) -> Result<()> {
    let python = packages::python(repository, "stream-clients", &PACKAGES)?.join("python");
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let server = Server::start_with(program, folder.path(), &SETTINGS)?;
    let (address, key) = (server.address.clone(), make_key(program, folder.path())?);
    let mut running = Vec::new();
    for library in PYTHON {
        let mut run = shell::command(&python, folder.path());
        run.arg(repository.root.join("e2e/clients/stream.py")).args([library, &address, &key]);
        running.push(Client::start(library, &mut run)?);
    }
    for library in NODE {
        let mut run = shell::command("node", typescript);
        run.args(["stream.mjs", library, &address, &key]);
        running.push(Client::start(library, &mut run)?);
    }
    for client in &running {
        client.wait_for_cuts(CUTS_BEFORE)?;
    }
    drop(server);
    let again = Server::restart_with(program, folder.path(), &SETTINGS, &address)?;
    ensure!(again.address == address, "the program is at another address after its restart");
    for client in &mut running {
        let status = shell::wait(&mut client.child, RUN_MAX).context(client.library)?;
        ensure!(status.success(), "{} lost or repeated something", client.library);
    }
    Ok(())
}

/// A client that reports each correct cut.
struct Client {
    library: &'static str,
    child: Child,
    cuts: mpsc::Receiver<()>,
}

impl Client {
    fn start(library: &'static str, command: &mut std::process::Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn().context(library)?;
        let stdout = child.stdout.take().context("a client without stdout")?;
        let (cut, cuts) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line == "cut" {
                    // Nobody waits for later ones.
                    cut.send(()).unwrap_or_default();
                }
            }
        });
        Ok(Self { library, child, cuts })
    }

    fn wait_for_cuts(&self, count: usize) -> Result<()> {
        for _ in 0..count {
            if self.cuts.recv_timeout(RUN_MAX).is_err() {
                bail!("{} has not come to its first cuts", self.library);
            }
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended already, so an error is ignored.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
