//! What the developer tools share: running other programs, the repository, programs that are installed when needed.

pub mod repository;
pub mod servers;
pub mod tool;

use std::{
    env,
    ffi::OsStr,
    io::{self, Write as _},
    path::Path,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::repository::Repository;

/// How often a program with a deadline is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Writes a line to stderr, where cargo writes too, so that the two stay in order.
pub fn say(text: &str) {
    // Where stderr is closed there is nobody left to tell.
    writeln!(io::stderr().lock(), "{text}").unwrap_or_default();
}

/// Writes to stdout what somebody may want to keep.
///
/// # Errors
/// Stdout is closed.
pub fn print(text: &str) -> Result<()> {
    io::stdout().lock().write_all(text.as_bytes()).context("cannot write to stdout")
}

/// The cargo that runs this program, at the root of the repository.
pub fn cargo(repository: &Repository) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    command(cargo, &repository.root)
}

pub fn command(program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}

/// Runs a program to its end, its output shown.
///
/// # Errors
/// It can not be started, or it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", name(command)))?;
    ensure!(status.success(), "{} failed ({status})", name(command));
    Ok(())
}

/// Runs a program and returns what it prints on stdout.
///
/// # Errors
/// It can not be started, fails, or prints something else than UTF-8.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({}): {}", name(command), output.status, said.trim());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed something else than UTF-8", name(command)))
}

/// Whether a program can be started and succeeds; its output is not shown.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Waits for a program to end; one that is not done in time is killed.
///
/// # Errors
/// It can not be waited for, or the time is over.
pub fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait().context("cannot wait for a program")? {
            return Ok(status);
        }
        pause();
    }
    child.kill().context("cannot end a program")?;
    child.wait().context("cannot wait for a program")?;
    bail!("not done after {} s", limit.as_secs())
}

#[expect(clippy::disallowed_methods, reason = "there is no async runtime here to be blocked")]
fn pause() {
    thread::sleep(POLL);
}

/// The program and its first words, to name it in a message.
fn name(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = command.get_args().take(3).map(OsStr::to_string_lossy);
    let words: Vec<_> = [program.to_string_lossy()].into_iter().chain(words).collect();
    format!("`{}`", words.join(" "))
}
