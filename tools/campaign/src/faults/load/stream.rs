//! Streams on every node: followers of both modes that continue from their last cut, clients of a key that exceed its
//! streams, one with a small daily limit, and users of keys that are revoked.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::{Map, Value};
use shell::random::Random;

use super::{
    LoadContext,
    revoker::{KeyPool, revoke},
};
use crate::{
    cluster::{
        http::{Client, Events},
        unit::Unit,
    },
    faults::record::{Limits, StreamCut, StreamRun, now_ms},
};

pub(super) const MODES: [&str; 2] = ["publication", "live"];
/// Maximum streams of the key with few; below, clients of it on each node.
pub(in crate::faults) const FEW: u32 = 4;
pub(super) const FEW_CLIENTS: usize = 3;
/// Daily limit of the key with a short day.
const SHORT_DAY: u64 = 40;
/// Daily limit of the key whose day is over within the first stream.
const TINY_DAY: u64 = 3;
/// Longer than the requested heartbeat: a node that is silent for longer is given up.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum stay of the clients of limited keys.
const STAY_MS: i64 = 4000;
/// Maximum time until a stream ends that has to.
const END_MAX_MS: i64 = 120_000;
/// Maximum time until a node has heard of a new key.
const KEY_TIME_MAX: Duration = Duration::from_secs(60);
/// Successive refusals after which a short day is over.
const REFUSALS_MAX: u32 = 10;

/// A key for streams.
pub(super) fn new_key(
    context: &LoadContext,
    name: &str,
    per_day: u64,
    streams: u32,
) -> Result<String> {
    let (per_day, streams) = (per_day.to_string(), streams.to_string());
    context.verb(&[
        "keys",
        "create",
        "--kind",
        "production",
        "--name",
        name,
        "--burst-per-minute",
        "1000000",
        "--requests-per-day",
        &per_day,
        "--streams",
        &streams,
    ])
}

/// Successive streams of one key at one node.
#[derive(Debug)]
struct StreamClient {
    context: LoadContext,
    node: Unit,
    mode: &'static str,
    /// The last cut, to continue from there.
    cursor: Option<String>,
    /// The folded state, by id.
    records: BTreeMap<String, Value>,
}

/// The use of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Its state is recorded with every cut, until it ends.
    Follow,
    /// It is held for a while.
    Hold,
    /// It is held until it ends, which should be soon.
    End,
}

impl Use {
    fn stay_ms(self) -> i64 {
        match self {
            Self::Follow => i64::MAX,
            Self::Hold => STAY_MS,
            Self::End => END_MAX_MS,
        }
    }
}

impl StreamClient {
    fn new(context: &LoadContext, node: Unit, mode: &'static str) -> Self {
        Self { context: context.clone(), node, mode, cursor: None, records: BTreeMap::new() }
    }

    /// Opens a stream and reads it; returns the status of the answer, 0 if there was none.
    fn run(&mut self, (name, key): (&str, &str), how: Use) -> u16 {
        match self.open((name, key)) {
            Ok((run, events)) => {
                self.read(events, run, how);
                200
            }
            Err(status) => status,
        }
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// The status of another answer, 0 if there was none.
    fn open(&self, (name, key): (&str, &str)) -> Result<(StreamRun, Events), u16> {
        let path = format!(
            "/v1/stream?sports=mma,tennis&odds_format=decimal&freshness=none&heartbeat=5&mode={}",
            self.mode
        );
        let mut headers = format!("x-api-key: {key}\r\n");
        if let Some(cursor) = &self.cursor {
            headers += &format!("last-event-id: {cursor}\r\n");
        }
        let client = Client::new(self.context.layout.port(self.node), TIMEOUT);
        let Ok((status, events)) = client.stream(&path, &headers) else { return Err(0) };
        if status != 200 {
            return Err(status);
        }
        let opened_ms = now_ms();
        let run = StreamRun {
            key: name.to_owned(),
            node: self.node,
            mode: self.mode,
            opened_ms,
            last_ms: opened_ms,
            last_cut_ms: None,
            changes: 0,
            end: None,
        };
        Ok((run, events))
    }

    /// Reads a stream and records its use; returns the code that it ended with, if known.
    fn read(&mut self, events: Events, mut run: StreamRun, how: Use) -> Option<String> {
        self.read_events(events, &mut run, how);
        let end = run.end.clone();
        self.context.journal.note("stream", run, |records| &mut records.streams);
        end
    }

    fn read_events(&mut self, mut events: Events, run: &mut StreamRun, how: Use) {
        let (mut is_first, mut has_changes) = (true, false);
        while let Ok(Some((name, data))) = events.next() {
            run.last_ms = now_ms();
            let data: Value = serde_json::from_str(&data).unwrap_or_default();
            match name.as_str() {
                "reset" => self.records.clear(),
                "snapshot" => self.put(data.get("records")),
                "delta" => {
                    has_changes = true;
                    self.put(data.get("upserts"));
                    for removed in array(data.get("removed")) {
                        if let Some(id) = removed.get("id").and_then(Value::as_str) {
                            self.records.remove(id);
                        }
                    }
                }
                "cut" => {
                    run.changes += u64::from(has_changes && !is_first);
                    (is_first, has_changes) = (false, false);
                    self.cut(&data, run, how);
                }
                "end" => {
                    run.end = data.get("code").and_then(Value::as_str).map(str::to_owned);
                }
                _ => {}
            }
            let is_over = run.last_ms - run.opened_ms > how.stay_ms();
            if is_over || !self.context.goes_on() {
                return;
            }
        }
    }

    fn put(&mut self, records: Option<&Value>) {
        for record in array(records) {
            let Some(id) = record.get("id").and_then(Value::as_str) else { continue };
            // The confirmation time of a price is not in a delta.
            let mut kept = record.as_object().cloned().unwrap_or_else(Map::new);
            kept.remove("last_update");
            self.records.insert(id.to_owned(), kept.into());
        }
    }

    fn cut(&mut self, data: &Value, run: &mut StreamRun, how: Use) {
        let text = |field| data.get(field).and_then(Value::as_str);
        self.cursor = text("cursor").map(str::to_owned);
        let at: Option<Timestamp> = text("at").and_then(|at| at.parse().ok());
        let published = data.get("published") == Some(&Value::Bool(true));
        run.last_cut_ms = at.map(Timestamp::as_millisecond).max(run.last_cut_ms);
        let (Use::Follow, Some(at)) = (how, at) else { return };
        let all: Value = self.records.values().cloned().collect();
        let cut = StreamCut {
            node: self.node,
            mode: self.mode,
            at_ms: at.as_millisecond(),
            published,
            body: self.context.journal.keep_body(all.to_string().as_bytes()),
        };
        self.context.journal.note("cut", cut, |records| &mut records.cuts);
    }
}

fn array(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// Follows a node in a mode during the whole campaign.
pub(super) fn follow(context: &LoadContext, node: Unit, mode: &'static str, key: &str) {
    let mut client = StreamClient::new(context, node, mode);
    while context.goes_on() {
        client.run(("streams", key), Use::Follow);
        shell::sleep(PAUSE);
    }
}

/// Opens streams of a key that may have few, repeatedly.
pub(super) fn crowd(context: &LoadContext, node: Unit, key: &str) {
    while context.goes_on() {
        StreamClient::new(context, node, "publication").run((super::FEW_KEY, key), Use::Hold);
        shell::sleep(PAUSE);
    }
}

/// Opens streams of a key until its daily limit is reached, and continues with another key.
pub(super) fn spend(context: &LoadContext, nodes: &[Unit], random: &mut Random) {
    let (mut made, mut refusals, mut key) = (0, u32::MAX, None);
    while context.goes_on() {
        if refusals > REFUSALS_MAX {
            made += 1;
            let name = format!("short-{made}");
            if let Ok(new) = new_key(context, &name, SHORT_DAY, 2) {
                let (per_minute, per_day) = (1_000_000, SHORT_DAY);
                let limits = Limits { key: name.clone(), per_minute, per_day };
                context.journal.note("stream_limits", limits, |records| &mut records.stream_limits);
                (key, refusals) = (Some((name, new)), 0);
            }
        }
        if let (Some((name, key)), Some(node)) = (&key, random.pick(nodes)) {
            let mut client = StreamClient::new(context, *node, "publication");
            let status = client.run((name, key), Use::Hold);
            refusals = if status == 429 { refusals.saturating_add(1) } else { 0 };
        }
        shell::sleep(PAUSE);
    }
}

/// Lets a stream end by its quota and another with its key. While parts fail, neither may happen: a day may be over
/// when a stream is opened, and a stream may break off before its key is revoked. So both are shown before the first
/// fault, and a campaign without them has found nothing. Each attempt has its own keys.
///
/// # Errors
/// A stream did not end so.
pub(super) fn end_both(context: &LoadContext, node: Unit, attempt: u32) -> Result<()> {
    let (short_name, revoked_name) =
        (format!("short-first-{attempt}"), format!("revoked-stream-{attempt}"));
    let short = new_key(context, &short_name, TINY_DAY, 2)?;
    let revoked = new_key(context, &revoked_name, 100_000, 2)?;
    let limits = Limits { key: short_name.clone(), per_minute: 1_000_000, per_day: TINY_DAY };
    context.journal.note("stream_limits", limits, |records| &mut records.stream_limits);
    let open = |key, mode| -> Result<_> {
        let client = StreamClient::new(context, node, mode);
        let mut opened = None;
        // The node may hear of a new key a moment later.
        shell::wait_until("a new key has a stream", KEY_TIME_MAX, || {
            opened = client.open(key).ok();
            opened.is_some()
        })?;
        let (run, events) = opened.context("no stream")?;
        Ok((client, run, events))
    };
    let (mut client, run, events) = open((&short_name, &short), "publication")?;
    let end = client.read(events, run, Use::End);
    ensure!(end.as_deref() == Some("quota_exceeded"), "a stream past its quota ended with {end:?}");
    let (mut client, run, events) = open((&revoked_name, &revoked), "live")?;
    revoke(context, &revoked_name, &revoked)?;
    let end = client.read(events, run, Use::End);
    ensure!(
        end.as_deref() == Some("authentication_failed"),
        "the stream of a revoked key ended with {end:?}"
    );
    Ok(())
}

/// Holds streams of keys that are revoked meanwhile.
pub(super) fn hold_revoked(context: &LoadContext, node: Unit, pool: &KeyPool) {
    while context.goes_on() {
        let begun = Instant::now();
        if let Some((name, key)) = pool.all().into_iter().next() {
            StreamClient::new(context, node, "live").run((&name, &key), Use::Hold);
        }
        shell::sleep(PAUSE.saturating_sub(begun.elapsed()));
    }
}
