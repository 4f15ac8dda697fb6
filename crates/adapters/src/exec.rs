//! The exec transport: a program that prints messages, in a process group of its own (A25, A26).

use std::collections::{BTreeMap, VecDeque};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use domain::Timestamp;
use domain::message::{Body, FeedMessage, Reject, RejectCode};
use feeds::adapter::{Coverage, Listed, Offered, Read, Scored};
use feeds::push::{LINE_BYTES_MAX, Rights};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::report::State;
use crate::runner::{Context, Made, Runner, random};
use crate::schedule::backoff;
use crate::settings::ExecSettings;
use crate::sink::NotTaken;

/// A batch ends with an empty line, after this much silence, or at the maximum number of lines.
const SILENCE: Duration = Duration::from_millis(200);
const BATCH_LINES_MAX: usize = 2_000;
/// Maximum size of one batch, and of the output of one run.
const BATCH_BYTES_MAX: usize = 4 << 20;
const RUN_BYTES_MAX: usize = 32 << 20;
/// Lines of stderr that are logged per second.
const LOG_LINES_PER_S: u32 = 20;
const LOG_LINE_CHARS_MAX: usize = 500;
/// Time that a program has to end after SIGTERM.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);
/// Time between two looks whether it has ended.
const GROUP_POLL: Duration = Duration::from_millis(50);
/// This many failures within the time below end the attempts.
const FAILURES_MAX: usize = 10;
const FAILURES_WITHIN: Duration = Duration::from_secs(600);

/// The recent failures: ten in ten minutes are too many.
#[derive(Debug, Default)]
pub(crate) struct Failures(VecDeque<Timestamp>);

impl Failures {
    /// `true`: do not try again.
    pub(crate) fn note(&mut self, now: Timestamp) -> bool {
        self.0.push_back(now);
        while self.0.front().is_some_and(|first| now.since(*first) > FAILURES_WITHIN) {
            self.0.pop_front();
        }
        self.0.len() >= FAILURES_MAX
    }
}

#[derive(Debug)]
pub(crate) struct Exec {
    runner: Runner,
    settings: ExecSettings,
    rights: Rights,
    /// Number of lines that the program has printed.
    lines: usize,
}

/// A line of a program with its number.
type Line = (usize, Vec<u8>);

/// A running program; dropping this ends it with its children.
struct Program {
    child: Child,
    group: Option<Pid>,
    running: Option<Running>,
}

/// The number of programs of this process that have not ended, and a notice when it falls.
static PROGRAMS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Counts a program until this is dropped.
struct Running;

impl Running {
    fn begin() -> Self {
        *PROGRAMS.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut count = PROGRAMS.0.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        PROGRAMS.1.notify_all();
    }
}

/// Waits at the end of the process until all programs have ended or were killed; returns the number of the others.
///
/// A program that outlived the service would be running twice after its next start.
pub fn wait_for_programs() -> usize {
    let count = PROGRAMS.0.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = STOP_TIME_MAX + 40 * GROUP_POLL;
    let waited = PROGRAMS.1.wait_timeout_while(count, limit, |count| *count > 0);
    let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
    *count
}

/// The stdin of a program, until the program does not read it.
struct Input(Option<ChildStdin>);

impl Input {
    /// Writes a line. A program that does not read its input is not an error: the wait for it is short, and as half a
    /// line may be written by then, nothing follows.
    async fn write_line(&mut self, text: &str) {
        let Some(stdin) = &mut self.0 else { return };
        let line = format!("{text}\n");
        let written = timeout(Duration::from_secs(1), stdin.write_all(line.as_bytes())).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::debug!(event = "adapter.stdin_closed", "the program does not read its stdin");
            self.0 = None;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let Some(group) = self.group else { return };
        let running = self.running.take();
        if kill_process_group(group, Signal::TERM).is_err() {
            return;
        }
        // Kill processes that ignore SIGTERM; on a thread, since the runtime may be shutting down.
        std::thread::spawn(move || {
            let _running = running;
            let until = std::time::Instant::now() + STOP_TIME_MAX;
            while std::time::Instant::now() < until {
                // Once the group is gone, its number may be given to another.
                if test_kill_process_group(group).is_err() {
                    return;
                }
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a separate thread, and the end of the process waits for it a bounded time"
                )]
                std::thread::sleep(GROUP_POLL);
            }
            if let Err(error) = kill_process_group(group, Signal::KILL) {
                tracing::debug!(event = "adapter.signal_failed", %error, "the program has ended already");
            }
        });
    }
}

impl Exec {
    pub(crate) fn new(context: Context, settings: ExecSettings, rights: Rights) -> Self {
        Self { runner: Runner::new(context), settings, rights, lines: 0 }
    }

    /// Runs the program repeatedly until this is dropped.
    pub(crate) async fn run(mut self) {
        let mut failures = Failures::default();
        let mut in_a_row = 0;
        loop {
            let begun = self.runner.now();
            let ended = match self.settings.every {
                None => self.run_on().await,
                Some(every) => self.run_once(every).await,
            };
            let now = self.runner.now();
            let max = self.runner.context.settings.access.backoff_max;
            match (ended, self.settings.every) {
                (Ok(()), Some(every)) => {
                    in_a_row = 0;
                    let next = begun.plus(every);
                    self.runner.reporter().note_next(Some(next));
                    self.wait(next.since(self.runner.now())).await;
                    continue;
                }
                (Ok(()), None) => {
                    let why = "the program ended; it should run all the time (or set `every`)";
                    self.runner.reporter().note_failed(State::Retrying, why, now);
                }
                (Err(why), _) => self.runner.reporter().note_failed(State::Retrying, why, now),
            }
            self.runner.reporter().note_restart();
            if failures.note(now) {
                let why = "ten failures in ten minutes; `linesman feeds resume` starts it again";
                self.runner.reporter().set(State::Failed, why, now);
                return std::future::pending().await;
            }
            in_a_row += 1;
            self.wait(backoff(in_a_row, max, None, random())).await;
        }
    }

    /// Waits for this time, or until an operator requests a read.
    async fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        let read_now = Arc::clone(&self.runner.context.read_now);
        while Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            tokio::select! {
                () = sleep(left.min(Duration::from_secs(1))) => {}
                () = read_now.notified() => return,
            }
            if let Err(why) = self.runner.tick().await {
                self.runner.note_not_taken(why);
            }
        }
    }

    fn start(&self) -> Result<Program, String> {
        let (name, rest) = self.settings.command.split_first().ok_or("`command` is empty")?;
        let mut environment = BTreeMap::new();
        for (key, value) in &self.settings.env {
            environment.insert(key.clone(), value.read()?.reveal().to_owned());
        }
        let mut command = Command::new(name);
        command.args(rest).env_clear().envs(environment);
        command.env("PATH", &self.settings.path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        let child = command.spawn().map_err(|error| format!("cannot start `{name}`: {error}"))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Program { child, group, running: Some(Running::begin()) })
    }

    /// Starts the program and sends it the list of open markets.
    async fn greet(&mut self) -> Result<(Program, Input, BufReader<ChildStdout>), String> {
        let mut program = self.start()?;
        self.lines = 0;
        if let Some(stderr) = program.child.stderr.take() {
            tokio::spawn(log_lines(self.runner.context.settings.name.clone(), stderr));
        }
        let pipes = program.child.stdin.take().zip(program.child.stdout.take());
        let (stdin, stdout) = pipes.ok_or("the program has no stdin or stdout")?;
        let mut stdin = Input(Some(stdin));
        let catalogue = Arc::clone(&self.runner.context.catalogue);
        let name = self.runner.context.settings.name.clone();
        let ledger = self.runner.ledger().await.map_err(|why| why.to_string())?;
        let open: Vec<_> = ledger
            .open()
            .map(|(reference, (bookmaker, market, group))| {
                let bookmaker = &catalogue.bookmaker(*bookmaker).key;
                json!({ "ref": reference, "bookmaker": bookmaker, "market": market.key(), "group": group })
            })
            .collect();
        let hello = json!({ "hello": 1, "adapter": name, "open": open });
        stdin.write_line(&hello.to_string()).await;
        Ok((program, stdin, BufReader::new(stdout)))
    }

    /// Reads a program that runs indefinitely; `Ok`: it ended by itself.
    async fn run_on(&mut self) -> Result<(), String> {
        let (mut program, mut stdin, mut stdout) = self.greet().await?;
        let mut line = Vec::new();
        loop {
            let (batch, ended) = self.next_batch(&mut stdout, &mut line).await?;
            if !batch.is_empty() {
                self.take_batch(batch, &mut stdin).await.map_err(|why| why.to_string())?;
            }
            if let Err(why) = self.runner.tick().await {
                return Err(why.to_string());
            }
            if ended {
                // It may wait for the end of its input.
                drop(stdin);
                return match timeout(STOP_TIME_MAX, program.child.wait()).await {
                    Ok(end) => end_of(end),
                    Err(_) => Err("it closed its output and did not end".to_owned()),
                };
            }
        }
    }

    /// One run of a program whose output counts only if it exits successfully.
    async fn run_once(&mut self, every: Duration) -> Result<(), String> {
        let at = self.runner.now();
        let clock = Instant::now();
        let limit = self.runner.context.settings.access.timeout.max(every);
        let (mut program, mut stdin, stdout) = self.greet().await?;
        let mut output = Vec::new();
        let mut reader = stdout.take(u64::try_from(RUN_BYTES_MAX).unwrap_or(u64::MAX) + 1);
        let whole = timeout(limit, async {
            reader.read_to_end(&mut output).await.map_err(|error| error.to_string())?;
            if output.len() > RUN_BYTES_MAX {
                return Err(format!("it printed more than {} MiB", RUN_BYTES_MAX >> 20));
            }
            end_of(program.child.wait().await)
        });
        whole
            .await
            .unwrap_or_else(|_| Err("it was still running when its next run was due".to_owned()))?;
        let lines: Vec<Line> = feeds::push::split_lines(&output)
            .map(|(number, line)| (number, line.to_vec()))
            .collect();
        if self.settings.complete {
            self.take_complete(lines, at, every, &mut stdin)
                .await
                .map_err(|why| why.to_string())?;
        } else {
            for batch in lines.chunks(BATCH_LINES_MAX) {
                self.take_batch(batch.to_vec(), &mut stdin).await.map_err(|why| why.to_string())?;
            }
        }
        self.runner.reporter().note_good(self.runner.now(), every, false, clock.elapsed());
        Ok(())
    }

    /// The next batch of lines, and whether the output has ended. `line` keeps an incomplete one for the next call.
    async fn next_batch(
        &mut self,
        stdout: &mut BufReader<ChildStdout>,
        line: &mut Vec<u8>,
    ) -> Result<(Vec<Line>, bool), String> {
        let (mut batch, mut bytes): (Vec<Line>, usize) = (Vec::new(), 0);
        loop {
            let pause = if batch.is_empty() { Duration::from_secs(1) } else { SILENCE };
            match timeout(pause, read_line(stdout, line)).await {
                Err(_) => return Ok((batch, false)),
                Ok(Err(why)) => return Err(why),
                Ok(Ok(false)) => return Ok((batch, true)),
                Ok(Ok(true)) => {
                    self.lines += 1;
                    let text = std::mem::take(line);
                    if text.trim_ascii().is_empty() {
                        return Ok((batch, false));
                    }
                    bytes += text.len();
                    batch.push((self.lines, text));
                    if batch.len() >= BATCH_LINES_MAX || bytes >= BATCH_BYTES_MAX {
                        return Ok((batch, false));
                    }
                }
            }
        }
    }

    /// Parses lines; rejects are reported to the program.
    async fn parse(&mut self, lines: Vec<Line>, stdin: &mut Input) -> Vec<(usize, FeedMessage)> {
        let fresh_for =
            self.runner.context.settings.stale_after.or(self.settings.every.map(|every| every * 3));
        let fresh_for_s =
            fresh_for.and_then(|span| u32::try_from(span.as_secs()).ok()).filter(|s| *s > 0);
        let mut messages = Vec::new();
        for (number, line) in lines {
            match self.rights.parse(&line, &self.runner.context.catalogue) {
                Ok(mut message) => {
                    if matches!(message.body, Body::Odds(_) | Body::Heartbeat { .. }) {
                        message.fresh_for_s = message.fresh_for_s.or(fresh_for_s);
                    }
                    messages.push((number, message));
                }
                Err(reject) => self.report(number, &reject, stdin).await,
            }
        }
        messages
    }

    async fn report(&self, line: usize, reject: &Reject, stdin: &mut Input) {
        self.runner.reporter().note_dropped(reject.code.slug(), 1);
        let text = json!({ "line": line, "code": reject.code.slug(), "message": reject.message });
        stdin.write_line(&text.to_string()).await;
    }

    async fn take_batch(&mut self, lines: Vec<Line>, stdin: &mut Input) -> Result<(), NotTaken> {
        let (count, clock) = (lines.len(), Instant::now());
        let messages = self.parse(lines, stdin).await;
        let now = self.runner.now();
        if let Some(newest) = messages.iter().filter_map(|(_, message)| message.ts).max() {
            self.runner.reporter().note_lag(newest, now);
        }
        let bodies: Vec<FeedMessage> =
            messages.iter().map(|(_, message)| message.clone()).collect();
        let receipt = self.runner.send(&bodies).await?;
        for (line, reject) in &receipt.rejected {
            let number = line.checked_sub(1).and_then(|line| messages.get(line));
            if let (Some((number, _)), true) =
                (number, reject.code != RejectCode::IllegalTransition)
            {
                let text = json!({ "line": number, "code": reject.code.slug(), "message": reject.message });
                stdin.write_line(&text.to_string()).await;
            }
        }
        if messages.is_empty() && count > 0 {
            let why = "the program printed no valid message";
            self.runner.reporter().set(State::Drift, why, now);
        } else if self.settings.every.is_none() {
            let every =
                self.runner.context.settings.stale_after.unwrap_or(Duration::from_secs(90)) / 2;
            self.runner.reporter().note_good(now, every, false, clock.elapsed());
        }
        Ok(())
    }

    /// Treats the output of a run as a complete read.
    async fn take_complete(
        &mut self,
        lines: Vec<Line>,
        at: Timestamp,
        every: Duration,
        stdin: &mut Input,
    ) -> Result<(), NotTaken> {
        let mut read = Read { coverage: Coverage::Complete, ..Read::default() };
        for (_, message) in self.parse(lines, stdin).await {
            let ts = message.ts;
            match message.body {
                Body::Event { reference, listing } => {
                    read.listings.push(Listed { reference, listing });
                }
                Body::Odds(odds) => {
                    let suspended = odds.outcomes.is_empty();
                    read.markets.push(Offered { odds, ts, suspended });
                }
                Body::Score(score) => read.scores.push(Scored { score, ts }),
                Body::Heartbeat { bookmaker, sport: Some(sport) } => {
                    read.confirmed.push((bookmaker, sport));
                }
                Body::Remove { .. } | Body::Heartbeat { sport: None, .. } => {}
            }
        }
        self.runner.take(read, Made { unit: "stdout", at, every, all_read: true }).await
    }
}

/// Reads to the end of the line; `false` at the end of the output. If cancelled, the next call continues the line.
async fn read_line(
    stdout: &mut BufReader<ChildStdout>,
    line: &mut Vec<u8>,
) -> Result<bool, String> {
    loop {
        let held = stdout.fill_buf().await.map_err(|error| error.to_string())?;
        if held.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = held.iter().position(|byte| *byte == b'\n');
        let (taken, used) = match end {
            Some(end) => (held.get(..end).unwrap_or_default(), end + 1),
            None => (held, held.len()),
        };
        line.extend_from_slice(taken);
        stdout.consume(used);
        if line.len() > LINE_BYTES_MAX + 2 {
            return Err(format!("it printed a line of more than {LINE_BYTES_MAX} bytes"));
        }
        if end.is_some() {
            return Ok(true);
        }
    }
}

fn end_of(status: std::io::Result<ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the program failed: {status}")),
        Err(error) => Err(format!("the program cannot be waited for: {error}")),
    }
}

/// Logs what a program prints on stderr, up to a number of lines per second.
async fn log_lines(adapter: String, stderr: impl tokio::io::AsyncRead + Unpin) {
    let mut lines = BufReader::new(stderr);
    let (mut second, mut count, mut skipped) = (Instant::now(), 0, 0_u64);
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        match (&mut lines).take(limit).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if second.elapsed() >= Duration::from_secs(1) {
            if skipped > 0 {
                tracing::warn!(event = "adapter.stderr_skipped", %adapter, skipped, "lines of a program were not logged");
            }
            (second, count, skipped) = (Instant::now(), 0, 0);
        }
        count += 1;
        if count > LOG_LINES_PER_S {
            skipped += 1;
            continue;
        }
        let text: String =
            String::from_utf8_lossy(&line).trim_end().chars().take(LOG_LINE_CHARS_MAX).collect();
        tracing::info!(event = "adapter.stderr", %adapter, text, "stderr of a program");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_failures_in_ten_minutes_end_the_attempts() {
        let at = |secs: i64| Timestamp::from_secs(1_800_000_000 + secs);
        let mut failures = Failures::default();
        let ended: Vec<bool> = (0..10).map(|n| failures.note(at(n * 60))).collect();
        assert_eq!(ended.iter().position(|ended| *ended), Some(9));
        let mut rare = Failures::default();
        assert!((0..50).all(|n| !rare.note(at(n * 67))), "nine in ten minutes are allowed");
    }
}
