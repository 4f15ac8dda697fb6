//! `linesman replay`: pushes recordings into a running service, at their own speed or faster.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use domain::Timestamp;
use feeds::push;
use reqwest::StatusCode;
use serde::Deserialize;
use tokio_rustls::rustls::crypto::ring;

use crate::cli::{ReplayArgs, Speed, output};
use crate::config::Secret;

/// Lines in one push at most: enough to be fast, few enough for a smooth progress bar.
const BATCH_LINES_MAX: usize = 2_000;
/// Bytes in one push at most; ingest accepts 8 MiB.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Lines due within this time go into one push.
const TOGETHER: Duration = Duration::from_millis(50);
/// Tries of a push that the service cannot accept.
const TRIES_MAX: u32 = 6;
/// Rejected lines printed at the end.
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
struct Receipt {
    accepted: u64,
    unchanged: u64,
    superseded: u64,
    rejected_total: u64,
    /// The first of those.
    rejected: Vec<Rejected>,
}

#[derive(Deserialize)]
struct Rejected {
    line: usize,
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct Stamped {
    ts: Option<String>,
    /// From `linesman record`: when the service accepted the line, where that differs from `ts`.
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
    // The one TLS library that is built. Where somebody chose before, that stays.
    let _chosen = ring::default_provider().install_default();
    let client = reqwest::Client::builder().timeout(Duration::from_secs(60)).build()?;
    let url = format!("{}/ingest/v1/messages", args.to.trim_end_matches('/'));
    let begun = Instant::now();
    let first = lines.iter().find_map(|line| line.at);
    let mut totals = Totals::default();
    let mut rest = lines;
    while !rest.is_empty() {
        let due = due(args.speed, first, rest.first().and_then(|line| line.at));
        wait_until(begun + due).await;
        let (batch, later) = rest.split_at(batch_size(args.speed, first, rest, begun.elapsed()));
        let body: Vec<u8> =
            batch.iter().flat_map(|line| line.text.iter().copied().chain([b'\n'])).collect();
        let receipt = deliver(&client, &url, token.reveal(), body).await?;
        totals.add(&receipt, batch);
        rest = later;
        let (done, all) = (count(totals.lines), count(lines.len()));
        output::draw_progress(&output::progress(done, all, "lines", begun.elapsed()));
    }
    Ok(totals)
}

/// When a line is due, from the start of the replay.
fn due(speed: Speed, first: Option<Timestamp>, at: Option<Timestamp>) -> Duration {
    match (speed, first, at) {
        (Speed::Times(times), Some(first), Some(at)) => at.since(first) / u32::from(times),
        _ => Duration::ZERO,
    }
}

/// The number of lines in the next push: those that are due, or nearly.
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

async fn deliver(
    client: &reqwest::Client,
    url: &str,
    token: &str,
    body: Vec<u8>,
) -> anyhow::Result<Receipt> {
    let mut pause = Duration::from_millis(200);
    for attempt in 1..=TRIES_MAX {
        let request =
            client.post(url).bearer_auth(token).header("content-type", "application/x-ndjson");
        match request.body(body.clone()).send().await {
            Ok(answer) if answer.status() == StatusCode::OK => {
                let text = answer.text().await.context("the receipt is incomplete")?;
                return serde_json::from_str(&text).context("the receipt is invalid");
            }
            Ok(answer) if answer.status() != StatusCode::SERVICE_UNAVAILABLE => {
                let status = answer.status();
                bail!("the service rejected the recording with {status}: {}", answer.text().await?);
            }
            Ok(_) if attempt == TRIES_MAX => {
                bail!("the service is not available; replay again later")
            }
            Err(error) if attempt == TRIES_MAX => {
                // The error may name the address, but not the token, which is in a header.
                return Err(error).context("cannot reach the service");
            }
            // Pushes are idempotent, so a retry is safe.
            Ok(_) | Err(_) => tokio::time::sleep(pause).await,
        }
        pause *= 2;
    }
    bail!("the service is not available; replay again later")
}

impl Totals {
    fn add(&mut self, receipt: &Receipt, batch: &[Line<'_>]) {
        for reject in &receipt.rejected {
            // Lines are counted from 1.
            let line = reject.line.checked_sub(1).and_then(|position| batch.get(position));
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
