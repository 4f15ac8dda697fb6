//! Shared by the developer tools: running other programs, the repository, programs installed on demand.

pub mod random;
pub mod repository;
pub mod servers;
pub mod tool;

use std::{
    env,
    ffi::OsStr,
    fmt, fs,
    io::{self, Write as _},
    path::Path,
    process::{Child, Command, ExitCode, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::repository::Repository;

/// Poll interval for a program with a deadline.
const POLL: Duration = Duration::from_millis(50);

/// Runs a tool; prints its error under its name.
pub fn main(name: &str, run: impl FnOnce(&Repository) -> Result<()>) -> ExitCode {
    match Repository::find().and_then(|repository| run(&repository)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{name}: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to stderr, like cargo, so that both outputs stay in order.
pub fn say(text: &str) {
    // If stderr is closed the line is lost.
    writeln!(io::stderr().lock(), "{text}").unwrap_or_default();
}

/// Writes results to stdout.
///
/// # Errors
/// Stdout is closed.
pub fn print(text: &str) -> Result<()> {
    io::stdout().lock().write_all(text.as_bytes()).context("cannot write to stdout")
}

/// The cargo that runs this program, at the root of the repository.
///
/// Without the variables that cargo set for this program: build scripts that read such a variable would run again, and
/// cause rebuilds alternating with a cargo started by hand.
pub fn cargo(repository: &Repository) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = command(cargo, &repository.root);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    command
}

pub fn command(program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}

/// Runs a program to its end; its output is shown.
///
/// # Errors
/// It cannot be started, or it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", name(command)))?;
    ensure!(status.success(), "{} failed ({status})", name(command));
    Ok(())
}

/// Runs a program and returns its output on stdout.
///
/// # Errors
/// It cannot be started, fails, or prints text that is not UTF-8.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({}): {}", name(command), output.status, said.trim());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed something else than UTF-8", name(command)))
}

/// True if a program can be started and succeeds; its output is not shown.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Waits for a program to end; kills it after the limit.
///
/// # Errors
/// It cannot be waited for, or the limit is reached.
pub fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait().context("cannot wait for a program")? {
            return Ok(status);
        }
        sleep(POLL);
    }
    child.kill().context("cannot end a program")?;
    child.wait().context("cannot wait for a program")?;
    bail!("not done after {} s", limit.as_secs())
}

#[expect(clippy::disallowed_methods, reason = "there is no async runtime here to be blocked")]
pub fn sleep(time: Duration) {
    thread::sleep(time);
}

/// Polls until a condition holds.
///
/// # Errors
/// It does not hold within the time.
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) -> Result<()> {
    let started = Instant::now();
    while !holds() {
        ensure!(started.elapsed() < limit, "{what}: not after {} s", limit.as_secs());
        sleep(POLL);
    }
    Ok(())
}

/// The `http://host:port` in a line printed by a server.
pub fn address_in(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("http://")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !".:[]-".contains(c));
    let (host, _) = rest.split_at(end.unwrap_or(rest.len()));
    let host = host.trim_end_matches(['.', ':']);
    (!host.is_empty()).then_some(host)
}

/// Memory used by a process, in bytes.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).context("no VmRSS")?;
    Ok(kib.trim().parse::<u64>()? * 1024)
}

/// Formats `12345.6` as `12,346`.
pub fn thousands(number: impl fmt::Display) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digit.is_ascii_digit() && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The program and its first arguments, as a name in messages.
fn name(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = command.get_args().take(3).map(OsStr::to_string_lossy);
    let words: Vec<_> = [program.to_string_lossy()].into_iter().chain(words).collect();
    format!("`{}`", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_not_told_what_it_told_this_program() {
        let cargo = cargo(&Repository::find().unwrap());
        let removed: Vec<_> = cargo.get_envs().filter(|(_, value)| value.is_none()).collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_VERSION"] {
            assert!(env::var_os(name).is_some(), "tests are run by cargo");
            assert!(removed.iter().any(|(removed, _)| *removed == name), "{removed:?}");
        }
    }

    #[test]
    fn the_address_is_found_in_what_a_server_prints() {
        for (line, address) in [
            ("Linesman is at http://127.0.0.1:40123", Some("127.0.0.1:40123")),
            ("listening on http://127.0.0.1:40123/v1/status.", Some("127.0.0.1:40123")),
            ("curl 'http://[::1]:80/v1'", Some("[::1]:80")),
            ("no address", None),
        ] {
            assert_eq!(address_in(line), address, "{line}");
        }
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(thousands(12_345.6), "12,346");
        assert_eq!(thousands(123_456.0), "123,456");
        assert_eq!((thousands(999), thousands(1000)), ("999".to_owned(), "1,000".to_owned()));
    }
}
