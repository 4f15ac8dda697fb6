//! Runs the adapters while this node leads, restarts those that end, and writes their reports where every node can
//! read them (A4, A5, A20).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::{Catalogue, Clock, Timestamp};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::build::{Adapter, run_adapter};
use crate::report::{Report, Reporter, Sample, State};
use crate::runner::{Context, random};
use crate::schedule::backoff;
use crate::settings::AdapterSettings;
use crate::sink::{Answer, Sink};
use crate::threads::AdapterThreads;

/// Interval of checks for leadership: adapters start within 2 s of gaining it, and end within 1 s of losing it.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval at which desired states are read from the store, and reports written to it.
const EXCHANGE_EVERY: Duration = Duration::from_secs(1);
/// Timeout of the store.
const STORE_TIME_MAX: Duration = Duration::from_millis(500);
/// A task that ran at least this long starts a new count of failures.
const WELL_AFTER: Duration = Duration::from_secs(60);
/// Maximum wait before a task is restarted.
const RESTART_MAX: Duration = Duration::from_secs(60);
/// The `stale_after` of an adapter before its first read.
const STALE_AFTER_FIRST: Duration = Duration::from_secs(120);

/// The state that operators want an adapter to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DesiredState {
    pub paused: bool,
    /// Time of the last request for a read, in milliseconds.
    pub read_asked_ms: Option<i64>,
    /// Time when it was last resumed, in milliseconds.
    pub resumed_ms: Option<i64>,
}

/// The state that all nodes share: reports, samples and desired states.
pub trait Shared: Send + Sync + fmt::Debug {
    fn desired_states(&self) -> Answer<'_, Result<BTreeMap<String, DesiredState>, String>>;

    fn write<'a>(&'a self, report: &'a Report) -> Answer<'a, Result<(), String>>;

    fn write_samples<'a>(
        &'a self,
        name: &'a str,
        samples: &'a [Sample],
    ) -> Answer<'a, Result<(), String>>;

    /// Records the first start of an adapter in the audit log, with the person who accepted the terms.
    fn note_first_start<'a>(
        &'a self,
        name: &'a str,
        accepted_by: &'a str,
    ) -> Answer<'a, Result<(), String>>;
}

/// The supervisor with its dependencies.
#[derive(Debug)]
pub struct Supervisor {
    pub catalogue: Arc<Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub sink: Arc<dyn Sink>,
    pub shared: Arc<dyn Shared>,
    pub adapters: Vec<Adapter>,
    pub reporters: Reporters,
    /// The threads of the adapters; the supervisor itself runs where it is awaited.
    pub threads: AdapterThreads,
}

/// The reports of this node's adapters, running or not.
#[derive(Clone, Debug, Default)]
pub struct Reporters(Arc<Vec<(String, Reporter)>>);

impl Reporters {
    pub fn new(adapters: &[Adapter]) -> Self {
        let reporter = |adapter: &Adapter| {
            let settings = &adapter.settings;
            let reporter = Reporter::new(&settings.name, settings.row().name);
            reporter.set_stale_after(settings.stale_after.unwrap_or(STALE_AFTER_FIRST));
            (settings.name.clone(), reporter)
        };
        Self(Arc::new(adapters.iter().map(reporter).collect()))
    }

    pub fn get(&self, name: &str) -> Option<&Reporter> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, reporter)| reporter)
    }

    pub fn reports(&self) -> Vec<Report> {
        self.0.iter().map(|(_, reporter)| reporter.report()).collect()
    }
}

/// The supervisor's state of one adapter.
struct SupervisedAdapter {
    adapter: Adapter,
    reporter: Reporter,
    desired: DesiredState,
    read_now: Arc<Notify>,
    task: Option<JoinHandle<()>>,
    started: Timestamp,
    /// Number of ends in a row, and the time from which it may be restarted.
    ends: u32,
    due: Timestamp,
    announced: bool,
    samples: u64,
}

impl Supervisor {
    /// Runs until it is dropped. `leads` returns whether this node is the leader.
    pub async fn run(self, leads: impl Fn() -> bool + Send) {
        let now = self.clock.now();
        let mut supervised: Vec<SupervisedAdapter> = Vec::new();
        for adapter in &self.adapters {
            let Some(reporter) = self.reporters.get(&adapter.settings.name) else { continue };
            supervised.push(SupervisedAdapter {
                adapter: adapter.clone(),
                reporter: reporter.clone(),
                desired: DesiredState::default(),
                read_now: Arc::default(),
                task: None,
                started: now,
                ends: 0,
                due: now,
                announced: false,
                samples: 0,
            });
        }
        let mut exchanged = Timestamp::from_millis(0);
        loop {
            let (now, leading) = (self.clock.now(), leads());
            if now.since(exchanged) >= EXCHANGE_EVERY || now < exchanged {
                exchanged = now;
                self.exchange(&mut supervised, leading).await;
            }
            for held in &mut supervised {
                self.look(held, leading && leads()).await;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Starts, stops or restarts one adapter.
    async fn look(&self, held: &mut SupervisedAdapter, leading: bool) {
        let now = self.clock.now();
        let should = match (held.adapter.settings.enabled, held.desired.paused, leading) {
            (false, _, _) => Some((State::Off, "")),
            (true, true, _) => Some((State::Paused, "by an operator")),
            (true, false, false) => Some((State::Waiting, "another node is the leader")),
            (true, false, true) => None,
        };
        if let Some((state, why)) = should {
            held.stop();
            held.reporter.set(state, why, now);
            return;
        }
        match &held.task {
            Some(task) if task.is_finished() => {
                held.task = None;
                held.reporter.note_restart();
                held.ends = if now.since(held.started) >= WELL_AFTER { 1 } else { held.ends + 1 };
                held.due = now.plus(backoff(held.ends, RESTART_MAX, None, random()));
                let name = &held.adapter.settings.name;
                tracing::error!(event = "adapter.ended", adapter = %name, "an adapter ended and will be restarted");
                held.reporter.set(State::Retrying, "it ended and will be restarted", now);
            }
            Some(_) => held.reporter.look(now),
            None if now >= held.due => self.start(held, now).await,
            None => {}
        }
    }

    async fn start(&self, held: &mut SupervisedAdapter, now: Timestamp) {
        let settings = &held.adapter.settings;
        if !held.announced {
            let by = settings.accepted_by.as_deref().unwrap_or_default();
            if let Err(why) = within(self.shared.note_first_start(&settings.name, by)).await {
                // The audit entry comes before the start, so the start waits.
                held.reporter.set(
                    State::Retrying,
                    format!("the audit log cannot be written: {why}"),
                    now,
                );
                return;
            }
            held.announced = true;
        }
        held.reporter.set(State::Starting, "", now);
        let context = Context {
            settings: Arc::clone(settings),
            catalogue: Arc::clone(&self.catalogue),
            clock: Arc::clone(&self.clock),
            sink: Arc::clone(&self.sink),
            reporter: held.reporter.clone(),
            read_now: Arc::clone(&held.read_now),
        };
        held.started = now;
        held.task = self.threads.spawn(run_adapter(held.adapter.clone(), context));
    }

    /// Reads the desired states, and on the leader, which alone knows them, writes the reports.
    async fn exchange(&self, supervised: &mut [SupervisedAdapter], leading: bool) {
        let desired_states = match within(self.shared.desired_states()).await {
            Ok(desired_states) => desired_states,
            Err(error) => {
                tracing::debug!(event = "adapter.store_failed", %error, "cannot read the adapters' desired states from the database");
                return;
            }
        };
        for held in &mut *supervised {
            let desired =
                desired_states.get(&held.adapter.settings.name).copied().unwrap_or_default();
            if desired.read_asked_ms > held.desired.read_asked_ms {
                held.read_now.notify_one();
            }
            // Resuming restarts an adapter that had given up.
            if desired.resumed_ms > held.desired.resumed_ms
                && held.reporter.state() == State::Failed
            {
                held.stop();
            }
            held.desired = desired;
        }
        for held in supervised.iter_mut().filter(|_| leading) {
            let Some(report) = held.reporter.take_changed() else { continue };
            let mut written = within(self.shared.write(&report)).await;
            if written.is_ok() && report.quarantined != held.samples {
                let samples = held.reporter.samples();
                written = within(self.shared.write_samples(&report.name, &samples)).await;
                held.samples = report.quarantined;
            }
            if let Err(error) = written {
                held.reporter.mark_changed();
                tracing::debug!(event = "adapter.store_failed", %error, "a report cannot be written");
            }
        }
    }
}

/// Limits the wait for the store: leadership may be lost in the meantime.
async fn within<T>(asked: Answer<'_, Result<T, String>>) -> Result<T, String> {
    let answered = timeout(STORE_TIME_MAX, asked).await;
    answered.unwrap_or_else(|_| Err("the store does not answer".to_owned()))
}

impl SupervisedAdapter {
    /// Stops it at once: work in progress is dropped, and its program gets a signal to end.
    fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.ends = 0;
        self.due = Timestamp::from_millis(0);
    }
}

impl Drop for SupervisedAdapter {
    fn drop(&mut self) {
        self.stop();
    }
}

/// True if an adapter has been failing for longer than allowed.
pub fn degraded(reports: &[Report], now: Timestamp) -> bool {
    reports.iter().any(|report| report.degrades(now))
}

/// The enabled adapters of a configuration.
pub fn enabled(adapters: &[AdapterSettings]) -> impl Iterator<Item = &AdapterSettings> {
    adapters.iter().filter(|adapter| adapter.enabled)
}
