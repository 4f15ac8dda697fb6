//! Servers as child processes that end with the test.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// Maximum time for a server to start or stop on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A running child process, killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// The signal for an orderly stop.
    end: Signal,
}

impl Process {
    /// Starts a server whose output goes to a file.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command, end: Signal, output: &Path) -> Result<Self> {
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(output)
            .with_context(|| format!("{} cannot be written", output.display()))?;
        let copy = file.try_clone().context("a file cannot be opened twice")?;
        command.stdin(Stdio::null()).stdout(file).stderr(copy);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("{name} cannot be started"))?;
        Ok(Self { child, end })
    }

    /// Waits until `is_up` returns true.
    ///
    /// # Errors
    /// The server ends, or takes too long.
    pub fn wait_until(&mut self, what: &str, mut is_up: impl FnMut() -> bool) -> Result<()> {
        let begun = Instant::now();
        while !is_up() {
            if let Some(status) = self.child.try_wait().context("a server cannot be looked at")? {
                bail!("{what} ended at once ({status})");
            }
            if begun.elapsed() > TIMEOUT {
                bail!("{what} is not up after {} s", TIMEOUT.as_secs());
            }
            pause();
        }
        Ok(())
    }

    /// Its number in the system.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// The process no longer exists.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("a server cannot be signalled")
    }

    /// Stops it in order, or kills it after a while.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn stop(&mut self) -> Result<()> {
        let begun = Instant::now();
        // It may have ended already; the wait below detects that.
        self.signal(self.end).unwrap_or_default();
        while self.child.try_wait().context("a server cannot be waited for")?.is_none() {
            if begun.elapsed() > TIMEOUT {
                return self.kill();
            }
            pause();
        }
        Ok(())
    }

    /// Kills it.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().context("a server cannot be killed")?;
        self.child.wait().context("a server cannot be waited for")?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        self.stop().unwrap_or_default();
    }
}

/// A command whose process ends with the thread that started it, even if that is killed. As root it runs as `user`, if
/// given: PostgreSQL refuses to run as root.
pub fn child_command(program: impl AsRef<OsStr>, user: Option<&str>, end: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", end]);
    if let Some(user) = user.filter(|_| geteuid().is_root()) {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    command.arg("--").arg(program);
    command
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[expect(clippy::disallowed_methods, reason = "servers are started before anything else is done")]
pub(crate) fn pause() {
    thread::sleep(POLL);
}
