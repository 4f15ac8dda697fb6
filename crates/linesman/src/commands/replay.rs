//! `linesman replay`: pushes recordings into a running service, at their own speed or faster.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use domain::Timestamp;
use feeds::push;
use linesman_client::types::PushReceipt;
use linesman_client::{Error, ErrorCode, Feed};
use serde::Deserialize;

use crate::cli::{ReplayArgs, Speed, output};
use crate::config::Secret;

/// Maximum number of lines in one push: enough to be fast, few enough for a smooth progress bar.
const BATCH_LINES_MAX: usize = 2_000;
/// Maximum size of one push; ingest accepts 8 MiB.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Lines due within this time go into one push.
const TOGETHER: Duration = Duration::from_millis(50);
/// Timeout of each step of a push.
const PUSH_TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum number of tries of a push while the service is unavailable.
const TRIES_MAX: u32 = 6;
/// Maximum number of rejected lines printed at the end.
const REJECTS_SHOWN: usize = 10;

/// A line of a recording with its position and time.
struct Line<'a> {
    file: &'a Path,
    number: usize,
    text: Vec<u8>,
    at: Option<Timestamp>,
}

#[derive(Default)]
struct Totals {
    lines: usize,
    accepted: u64,
    unchanged: u64,
    superseded: u64,
    rejected: u64,
    shown: Vec<String>,
}

#[derive(Deserialize)]
struct Stamped {
    ts: Option<String>,
    /// From `linesman record`: when the service accepted the line, if that differs from `ts`.
    recorded_at: Option<String>,
}

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let (lines, token) = (read(args)?, args.token()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let totals = runtime.block_on(replay(args, &token, &lines))?;
    output::draw_progress("");
    for reject in &totals.shown {
        output::print_error(reject);
    }
    let Totals { lines, accepted, unchanged, superseded, rejected, .. } = totals;
    output::print_line(&format!(
        "{lines} lines: {accepted} accepted, {unchanged} unchanged, {superseded} superseded, {rejected} rejected"
    ))?;
    Ok(())
}

/// All lines of all recordings, by time.
fn read(args: &ReplayArgs) -> anyhow::Result<Vec<Line<'_>>> {
    let mut lines = Vec::new();
    for file in &args.files {
        let bytes =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        // Lines of a file keep their order: a later one may depend on an earlier one.
        let mut at = None;
        for (number, text) in push::split_lines(&bytes) {
            let stamped = serde_json::from_slice::<Stamped>(text).ok();
            let stamp = stamped.and_then(|line| line.recorded_at.or(line.ts));
            at = at.max(stamp.and_then(|stamp| Timestamp::parse(&stamp).ok()));
            lines.push(Line { file, number, text: text.to_vec(), at });
        }
    }
    if lines.is_empty() {
        bail!("the recordings are empty");
    }
    lines.sort_by_key(|line| line.at);
    Ok(lines)
}

async fn replay(args: &ReplayArgs, token: &Secret, lines: &[Line<'_>]) -> anyhow::Result<Totals> {
    let feed = Feed::builder(&args.to, token.reveal()).timeout(PUSH_TIME_MAX).build()?;
    let begun = Instant::now();
    let first = lines.iter().find_map(|line| line.at);
    let mut totals = Totals::default();
    let mut rest = lines;
    while !rest.is_empty() {
        let due = due(args.speed, first, rest.first().and_then(|line| line.at));
        wait_until(begun + due).await;
        let (batch, later) = rest.split_at(batch_size(args.speed, first, rest, begun.elapsed()));
        let receipt = deliver(&feed, batch).await?;
        totals.add(&receipt, batch);
        rest = later;
        let (done, all) = (count(totals.lines), count(lines.len()));
        output::draw_progress(&output::progress(done, all, "lines", begun.elapsed()));
    }
    Ok(totals)
}

/// When a line is due, relative to the start of the replay.
fn due(speed: Speed, first: Option<Timestamp>, at: Option<Timestamp>) -> Duration {
    match (speed, first, at) {
        (Speed::Times(times), Some(first), Some(at)) => at.since(first) / u32::from(times),
        _ => Duration::ZERO,
    }
}

/// The number of lines in the next push: those that are due or nearly due.
fn batch_size(
    speed: Speed,
    first: Option<Timestamp>,
    rest: &[Line<'_>],
    elapsed: Duration,
) -> usize {
    let mut bytes = 0;
    let fits = |line: &&Line<'_>| {
        bytes += line.text.len() + 1;
        bytes <= BATCH_BYTES_MAX && due(speed, first, line.at) <= elapsed + TOGETHER
    };
    rest.iter().take(BATCH_LINES_MAX).take_while(fits).count().max(1)
}

async fn wait_until(instant: Instant) {
    tokio::time::sleep_until(instant.into()).await;
}

/// Pushes lines until the service has stored them.
async fn deliver(feed: &Feed, lines: &[Line<'_>]) -> anyhow::Result<PushReceipt> {
    let mut pause = Duration::from_millis(200);
    for attempt in 1.. {
        match feed.push_lines(lines.iter().map(|line| &line.text)).await {
            Ok(receipt) => return Ok(receipt),
            // Pushes are idempotent, so a retry is safe.
            Err(error) if is_temporary(&error) && attempt < TRIES_MAX => {}
            Err(error) if is_temporary(&error) && error.status().is_some() => {
                bail!("the service is not available ({error}); replay again later")
            }
            Err(error) => {
                let what = match error.status() {
                    Some(status) => format!("the service rejected the recording with {status}"),
                    None => "cannot reach the service".to_owned(),
                };
                return Err(error).context(what);
            }
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    bail!("the service is not available; replay again later")
}

/// Whether the same push may succeed later.
fn is_temporary(error: &Error) -> bool {
    *error.code() == ErrorCode::ConnectionFailed || error.status() == Some(503)
}

impl Totals {
    fn add(&mut self, receipt: &PushReceipt, batch: &[Line<'_>]) {
        for reject in &receipt.rejected {
            // Lines are counted from 1.
            let position = reject.line.checked_sub(1).and_then(|line| usize::try_from(line).ok());
            let line = position.and_then(|position| batch.get(position));
            if let (Some(line), true) = (line, self.shown.len() < REJECTS_SHOWN) {
                let (file, number) = (line.file.display(), line.number);
                self.shown.push(format!("{file}:{number}: {}: {}", reject.code, reject.message));
            }
        }
        self.lines += batch.len();
        self.accepted += receipt.accepted;
        self.unchanged += receipt.unchanged;
        self.superseded += receipt.superseded;
        self.rejected += receipt.rejected_total;
    }
}

fn count(lines: usize) -> u64 {
    u64::try_from(lines).unwrap_or(u64::MAX)
}
