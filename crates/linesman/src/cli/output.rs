//! Output of commands: results on stdout, errors on stderr. Logs are not written here.
//!
//! Uses `write` and not `println!`, which panics when the reader has closed the pipe (`linesman keys list | head
//! -1`).

use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, StdoutLock, Write as _};
use std::time::Duration;

use anyhow::Context as _;

/// Size in bytes of one write of a long text.
const STREAM_BYTES: usize = 64 * 1024;

/// Writes a line to stdout and flushes it, so that a waiting script receives it.
///
/// # Errors
/// Stdout cannot be written to. A closed pipe is no error.
pub(crate) fn print_line(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{}", text.trim_end_matches('\n')).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// Buffered stdout for a long text. The caller flushes it, and stops if the pipe is closed.
pub(crate) fn stream() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(STREAM_BYTES, io::stdout().lock())
}

/// Writes an error to stderr, each line with the program's name.
pub(crate) fn print_error(text: &str) {
    let mut stderr = io::stderr().lock();
    for line in text.lines() {
        // A closed stderr is no reason to fail.
        writeln!(stderr, "linesman: {line}").unwrap_or_default();
    }
}

/// Prints advice to a person at a terminal. Pipes and logs do not get it.
pub(crate) fn print_hint(text: &str) {
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() && io::stdout().is_terminal() {
        // A closed stderr is no reason to fail.
        writeln!(stderr, "{text}").unwrap_or_default();
    }
}

/// Rewrites the current line of a terminal; prints nothing elsewhere.
pub(crate) fn draw_progress(text: &str) {
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() {
        // A closed stderr is no reason to fail.
        write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush()).unwrap_or_default();
    }
}

/// A progress bar with share and rate.
pub(crate) fn progress(done: u64, all: u64, unit: &str, elapsed: Duration) -> String {
    const WIDTH: u64 = 30;
    let filled = done * WIDTH / all.max(1);
    let rate = u128::from(done) * 1000 / elapsed.as_millis().max(1);
    let bar: String = (0..WIDTH).map(|at| if at < filled { '#' } else { '-' }).collect();
    format!("[{bar}] {}% {done}/{all} {unit}, {rate} per second", done * 100 / all.max(1))
}
