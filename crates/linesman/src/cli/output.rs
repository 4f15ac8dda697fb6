//! The program's words to whoever started it: results on stdout, troubles on stderr.
//!
//! The only place that writes to either. Logs do not come through here. Written with `write`, not
//! `println!`, which panics when the reader has gone (`linesman keys list | head -1`).

use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, StdoutLock, Write as _};
use std::time::Duration;

/// Bytes of a long text written at a time.
const STREAM_BYTES: usize = 64 * 1024;

/// Writes a line to stdout at once, so that a script waiting for it gets it.
///
/// # Errors
/// Stdout can not be written to. A reader that has gone is no error: it has seen what it wanted.
pub(crate) fn print_line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{}", text.trim_end_matches('\n')).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Stdout for a long text, which is there once it was flushed. Whether its reader has gone is for the caller to
/// look at: there is then no use in going on.
pub(crate) fn stream() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(STREAM_BYTES, io::stdout().lock())
}

/// Writes what went wrong to stderr, each line under the program's name.
pub(crate) fn print_error(text: &str) {
    let mut stderr = io::stderr().lock();
    for line in text.lines() {
        // Where stderr is closed there is nobody left to tell.
        writeln!(stderr, "linesman: {line}").unwrap_or_default();
    }
}

/// Draws a line over itself on a terminal; elsewhere it would only be noise.
pub(crate) fn draw_progress(text: &str) {
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() {
        // Where stderr is closed there is nobody left to tell.
        write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush()).unwrap_or_default();
    }
}

/// A bar, how much of it is done, and how fast.
pub(crate) fn progress(done: u64, all: u64, of_what: &str, elapsed: Duration) -> String {
    const WIDTH: u64 = 30;
    let filled = done * WIDTH / all.max(1);
    let rate = u128::from(done) * 1000 / elapsed.as_millis().max(1);
    let bar: String = (0..WIDTH).map(|at| if at < filled { '#' } else { '-' }).collect();
    format!("[{bar}] {}% {done}/{all} {of_what}, {rate} a second", done * 100 / all.max(1))
}
