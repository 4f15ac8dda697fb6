//! The status of an adapter: its state (A20), its counters and its quarantined inputs. All of it is safe to show:
//! units without their query, no headers and no secrets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{MetricsText, Timestamp};
use feeds::adapter::{Drift, Read};
use serde::{Deserialize, Serialize};

/// Number of quarantined inputs kept for each adapter, the newest ones.
pub const SAMPLES_MAX: usize = 20;
/// Number of bytes kept of each.
pub const SAMPLE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of unmapped names kept for each adapter.
const UNMAPPED_MAX: usize = 500;
/// The message after a tape has been played.
pub const TAPE_ENDED: &str = "the tape has ended";
/// Clock skew above this is warned about.
pub const SKEW_S_MIN: i64 = 30;

/// The state of an adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    #[default]
    Off,
    Paused,
    /// Another node is the leader.
    Waiting,
    Starting,
    Ok,
    /// No good read for twice the interval.
    Late,
    Retrying,
    Refused,
    Spent,
    Drift,
    Failed,
}

impl State {
    pub const ALL: [Self; 11] = [
        Self::Off,
        Self::Paused,
        Self::Waiting,
        Self::Starting,
        Self::Ok,
        Self::Late,
        Self::Retrying,
        Self::Refused,
        Self::Spent,
        Self::Drift,
        Self::Failed,
    ];

    pub const fn key(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Paused => "paused",
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Ok => "ok",
            Self::Late => "late",
            Self::Retrying => "retrying",
            Self::Refused => "refused",
            Self::Spent => "spent",
            Self::Drift => "drift",
            Self::Failed => "failed",
        }
    }
}

/// Reads by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    pub ok: u64,
    pub unchanged: u64,
    pub failed: u64,
}

/// Credits of an upstream that counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetReport {
    pub remaining: u64,
    pub used: u64,
    pub reserve: u64,
}

/// An upstream name without a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmappedCount {
    pub what: String,
    pub value: String,
    pub count: u64,
}

/// The report of one adapter, for operators and other nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub name: String,
    pub kind: String,
    pub state: State,
    pub since: String,
    pub message: String,
    pub last_good_read: Option<String>,
    pub next_read: Option<String>,
    pub lag_s: Option<i64>,
    pub skew_s: Option<i64>,
    pub reads: Reads,
    pub dropped: BTreeMap<String, u64>,
    pub unmapped: Vec<UnmappedCount>,
    pub quarantined: u64,
    pub budget: Option<BudgetReport>,
    /// Time since the last good read after which an adapter in a state other than `ok` degrades the service.
    #[serde(default)]
    pub stale_after_s: u64,
    #[serde(default)]
    pub restarts: u64,
    #[serde(default)]
    pub reconnects: u64,
    #[serde(default)]
    pub read_ms: u64,
}

/// An input that was not in the expected format.
#[derive(Clone, Debug)]
pub struct Sample {
    pub at: Timestamp,
    pub unit: String,
    pub path: String,
    pub reason: String,
    /// The beginning of the input.
    pub body: Vec<u8>,
}

/// The report that an adapter writes, shared with its readers.
#[derive(Clone, Debug, Default)]
pub struct Reporter(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    report: Report,
    since: Option<Timestamp>,
    last_good: Option<Timestamp>,
    /// The interval of the last good read.
    every: Duration,
    unmapped: BTreeMap<(String, String), u64>,
    samples: VecDeque<Sample>,
    changed: bool,
}

impl Reporter {
    pub fn new(name: &str, kind: &str) -> Self {
        let reporter = Self::default();
        {
            let mut inner = reporter.lock();
            (inner.report.name, inner.report.kind) = (name.to_owned(), kind.to_owned());
            inner.changed = true;
        }
        reporter
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, state: State, message: impl Into<String>, now: Timestamp) {
        let (mut inner, message) = (self.lock(), message.into());
        if inner.report.state != state {
            tracing::info!(event = "adapter.state", adapter = %inner.report.name, state = state.key(), %message, "adapter state changed");
            inner.since = Some(now);
            inner.report.since = now.to_string();
        }
        inner.changed |= inner.report.state != state || inner.report.message != message;
        (inner.report.state, inner.report.message) = (state, message);
    }

    pub fn state(&self) -> State {
        self.lock().report.state
    }

    /// Notes a good read of a unit with this interval.
    pub fn note_good(&self, now: Timestamp, every: Duration, unchanged: bool, took: Duration) {
        {
            let mut inner = self.lock();
            let reads = &mut inner.report.reads;
            *if unchanged { &mut reads.unchanged } else { &mut reads.ok } += 1;
            inner.report.last_good_read = Some(now.to_string());
            inner.report.read_ms += u64::try_from(took.as_millis()).unwrap_or(0);
            (inner.last_good, inner.every, inner.changed) = (Some(now), every, true);
        }
        self.set(State::Ok, "", now);
    }

    pub fn note_failed(&self, state: State, message: impl Into<String>, now: Timestamp) {
        self.lock().report.reads.failed += 1;
        self.set(state, message, now);
    }

    /// Counts the items that a read dropped.
    pub fn note_read(&self, read: &Read) {
        let mut inner = self.lock();
        for (reason, count) in &read.dropped {
            *inner.report.dropped.entry((*reason).to_owned()).or_default() += count;
        }
        for (name, count) in &read.unmapped {
            let key = (name.what.key().to_owned(), name.value.to_string());
            if inner.unmapped.contains_key(&key) || inner.unmapped.len() < UNMAPPED_MAX {
                *inner.unmapped.entry(key).or_default() += count;
            }
        }
    }

    pub fn note_dropped(&self, reason: &str, count: u64) {
        if count > 0 {
            *self.lock().report.dropped.entry(reason.to_owned()).or_default() += count;
        }
    }

    pub fn note_lag(&self, ts: Timestamp, now: Timestamp) {
        self.lock().report.lag_s = i64::try_from(now.since(ts).as_secs()).ok();
    }

    /// Notes how far the upstream's clock is ahead of ours.
    pub fn note_skew(&self, upstream: Timestamp, now: Timestamp) {
        let skew_s = upstream.as_secs() - now.as_secs();
        let mut inner = self.lock();
        let is_new = inner.report.skew_s.is_none_or(|held| held.abs() <= SKEW_S_MIN);
        if skew_s.abs() > SKEW_S_MIN && is_new {
            tracing::warn!(event = "adapter.clock_skew", adapter = %inner.report.name, skew_s, "upstream's clock differs from ours");
        }
        inner.report.skew_s = Some(skew_s);
    }

    pub fn note_next(&self, next: Option<Timestamp>) {
        self.lock().report.next_read = next.map(|next| next.to_string());
    }

    pub fn note_budget(&self, budget: BudgetReport) {
        self.lock().report.budget = Some(budget);
    }

    pub fn note_restart(&self) {
        self.lock().report.restarts += 1;
    }

    pub fn note_reconnect(&self) {
        self.lock().report.reconnects += 1;
    }

    pub fn set_stale_after(&self, stale_after: Duration) {
        self.lock().report.stale_after_s = stale_after.as_secs();
    }

    /// Keeps the beginning of an input that was refused as a whole.
    pub fn quarantine(&self, unit: &str, body: &[u8], drift: &Drift, now: Timestamp) {
        {
            let mut inner = self.lock();
            if inner.samples.len() >= SAMPLES_MAX {
                inner.samples.pop_front();
            }
            let body = body.get(..SAMPLE_BYTES_MAX.min(body.len())).unwrap_or_default().to_vec();
            let (path, reason) = (drift.path.clone(), drift.reason.clone());
            inner.samples.push_back(Sample { at: now, unit: unit.to_owned(), path, reason, body });
            inner.report.quarantined += 1;
            inner.changed = true;
        }
        self.note_failed(State::Drift, drift.to_string(), now);
    }

    pub fn samples(&self) -> Vec<Sample> {
        self.lock().samples.iter().rev().cloned().collect()
    }

    /// Sets an `ok` adapter to `late` once twice its interval has passed without a good read.
    pub fn look(&self, now: Timestamp) {
        let (last_good, every, state) = {
            let inner = self.lock();
            if inner.report.message == TAPE_ENDED {
                return;
            }
            (inner.last_good, inner.every, inner.report.state)
        };
        let allowed = (every * 2).max(Duration::from_secs(2));
        if let (State::Ok, Some(last)) = (state, last_good)
            && now.since(last) > allowed
        {
            self.set(State::Late, format!("no good read since {last}"), now);
        }
    }

    pub fn report(&self) -> Report {
        let mut inner = self.lock();
        let counted = inner.unmapped.iter().map(|((what, value), count)| UnmappedCount {
            what: what.clone(),
            value: value.clone(),
            count: *count,
        });
        inner.report.unmapped = counted.collect();
        inner.report.clone()
    }

    /// Marks the report as changed again, because it could not be written.
    pub fn mark_changed(&self) {
        self.lock().changed = true;
    }

    /// The report, if it changed since the last call.
    pub fn take_changed(&self) -> Option<Report> {
        let changed = std::mem::take(&mut self.lock().changed);
        changed.then(|| self.report())
    }
}

impl Report {
    /// True if the adapter has been in a failing state for longer than allowed (A21).
    pub fn degrades(&self, now: Timestamp) -> bool {
        if matches!(self.state, State::Off | State::Paused | State::Ok) {
            return false;
        }
        let begun = self.last_good_read.as_ref().unwrap_or(&self.since);
        let limit = Duration::from_secs(self.stale_after_s);
        Timestamp::parse(begun).is_ok_and(|begun| now.since(begun) > limit)
    }
}

/// Writes the `linesman_adapter_*` metrics.
pub fn render(reports: &[Report], page: &mut MetricsText) {
    let seconds = |ms: u64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let name = "linesman_adapter_state";
    page.family(name, "gauge", "1 for the state an adapter is in.");
    for report in reports {
        for state in State::ALL {
            let is_in = u8::from(report.state == state);
            page.line(format_args!(
                "{name}{{adapter=\"{}\",state=\"{}\"}} {is_in}",
                report.name,
                state.key()
            ));
        }
    }
    let name = "linesman_adapter_reads_total";
    page.family(name, "counter", "Reads of upstream by outcome.");
    for Report { name: adapter, reads, .. } in reports {
        for (outcome, count) in
            [("ok", reads.ok), ("unchanged", reads.unchanged), ("failed", reads.failed)]
        {
            page.line(format_args!(
                "{name}{{adapter=\"{adapter}\",outcome=\"{outcome}\"}} {count}"
            ));
        }
    }
    let name = "linesman_adapter_read_seconds";
    page.family(name, "summary", "Duration of good reads.");
    for report in reports {
        let (sum, count) = (seconds(report.read_ms), report.reads.ok + report.reads.unchanged);
        page.line(format_args!("{name}_sum{{adapter=\"{}\"}} {sum}", report.name));
        page.line(format_args!("{name}_count{{adapter=\"{}\"}} {count}", report.name));
    }
    let name = "linesman_adapter_dropped_total";
    page.family(name, "counter", "Items that reads dropped, by reason.");
    for report in reports {
        for (reason, count) in &report.dropped {
            page.line(format_args!(
                "{name}{{adapter=\"{}\",reason=\"{reason}\"}} {count}",
                report.name
            ));
        }
    }
    let name = "linesman_adapter_unmapped_total";
    page.family(name, "counter", "Upstream names without a mapping.");
    for report in reports {
        for what in ["bookmaker", "sport", "market"] {
            let of = report.unmapped.iter().filter(|name| name.what == what);
            let count: u64 = of.map(|name| name.count).sum();
            page.line(format_args!(
                "{name}{{adapter=\"{}\",what=\"{what}\"}} {count}",
                report.name
            ));
        }
    }
    render_gauges(reports, page);
}

fn render_gauges(reports: &[Report], page: &mut MetricsText) {
    type Figure = fn(&Report) -> Option<i64>;
    let figures: [(&str, &str, &str, Figure); 6] = [
        (
            "linesman_adapter_lag_seconds",
            "gauge",
            "Age of upstream's newest timestamp when it was read.",
            |r| r.lag_s,
        ),
        (
            "linesman_adapter_clock_skew_seconds",
            "gauge",
            "Time by which upstream's clock is ahead of ours.",
            |r| r.skew_s,
        ),
        (
            "linesman_adapter_quarantined_total",
            "counter",
            "Inputs that were not in the expected format.",
            |r| i64::try_from(r.quarantined).ok(),
        ),
        ("linesman_adapter_reconnects_total", "counter", "Reconnections of streams.", |r| {
            i64::try_from(r.reconnects).ok()
        }),
        (
            "linesman_adapter_restarts_total",
            "counter",
            "Restarts of tasks and programs that ended.",
            |r| i64::try_from(r.restarts).ok(),
        ),
        ("linesman_adapter_budget_remaining", "gauge", "Remaining credits.", |r| {
            r.budget.and_then(|budget| i64::try_from(budget.remaining).ok())
        }),
    ];
    for (name, kind, help, figure) in figures {
        page.family(name, kind, help);
        for report in reports {
            if let Some(value) = figure(report) {
                page.line(format_args!("{name}{{adapter=\"{}\"}} {value}", report.name));
            }
        }
    }
}
