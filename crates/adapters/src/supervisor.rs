//! Runs the adapters while this node leads, starts again what ends, and keeps their reports where every node finds
//! them (A4, A5, A20).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::{Catalogue, Clock, Timestamp};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::build::{Adapter, run_adapter};
use crate::report::{Board, Report, Sample, State};
use crate::runner::{Context, random};
use crate::schedule::backoff;
use crate::settings::AdapterSettings;
use crate::sink::{Answer, Sink};
use crate::threads::AdapterThreads;

/// How often leadership is looked at: adapters start within 2 s of gaining it, and end within 1 s of losing it.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the store is asked what people want, and gets how adapters are.
const EXCHANGE_EVERY: Duration = Duration::from_secs(1);
/// How long the store may take.
const STORE_TIME_MAX: Duration = Duration::from_millis(500);
/// A task that ran for this long before it ended was well.
const WELL_AFTER: Duration = Duration::from_secs(60);
/// The longest wait before a task is started again.
const RESTART_MAX: Duration = Duration::from_secs(60);
/// The `stale_after` of an adapter that has not read anything yet.
const STALE_AFTER_FIRST: Duration = Duration::from_secs(120);

/// What people want of an adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DesiredState {
    pub paused: bool,
    /// When a read was last asked for, in milliseconds.
    pub read_asked_ms: Option<i64>,
    /// When it was last resumed, in milliseconds.
    pub resumed_ms: Option<i64>,
}

/// What all nodes share: reports, samples and desired states.
pub trait Shared: Send + Sync + fmt::Debug {
    fn desired_states(&self) -> Answer<'_, Result<BTreeMap<String, DesiredState>, String>>;

    fn write<'a>(&'a self, report: &'a Report) -> Answer<'a, Result<(), String>>;

    fn write_samples<'a>(
        &'a self,
        name: &'a str,
        samples: &'a [Sample],
    ) -> Answer<'a, Result<(), String>>;

    /// Notes the first start of an adapter in the audit log, with who accepted the terms.
    fn note_first_start<'a>(
        &'a self,
        name: &'a str,
        accepted_by: &'a str,
    ) -> Answer<'a, Result<(), String>>;
}

/// What the supervisor runs with.
#[derive(Debug)]
pub struct Supervisor {
    pub catalogue: Arc<Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub sink: Arc<dyn Sink>,
    pub shared: Arc<dyn Shared>,
    pub adapters: Vec<Adapter>,
    pub boards: Boards,
    /// Where the adapters run; the supervisor itself runs where it is awaited.
    pub threads: AdapterThreads,
}

/// The reports of the adapters that this node runs, or would.
#[derive(Clone, Debug, Default)]
pub struct Boards(Arc<Vec<(String, Board)>>);

impl Boards {
    pub fn new(adapters: &[Adapter]) -> Self {
        let board = |adapter: &Adapter| {
            let settings = &adapter.settings;
            let board = Board::new(&settings.name, settings.row().name);
            board.set_stale_after(settings.stale_after.unwrap_or(STALE_AFTER_FIRST));
            (settings.name.clone(), board)
        };
        Self(Arc::new(adapters.iter().map(board).collect()))
    }

    pub fn get(&self, name: &str) -> Option<&Board> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, board)| board)
    }

    pub fn reports(&self) -> Vec<Report> {
        self.0.iter().map(|(_, board)| board.report()).collect()
    }
}

/// One adapter as the supervisor sees it.
struct SupervisedAdapter {
    adapter: Adapter,
    board: Board,
    desired: DesiredState,
    read_now: Arc<Notify>,
    task: Option<JoinHandle<()>>,
    started: Timestamp,
    /// Ends in a row, and when it may be started again.
    ends: u32,
    due: Timestamp,
    announced: bool,
    samples: u64,
}

impl Supervisor {
    /// Runs until it is dropped. `leads` says whether this node writes.
    pub async fn run(self, leads: impl Fn() -> bool + Send) {
        let now = self.clock.now();
        let mut supervised: Vec<SupervisedAdapter> = Vec::new();
        for adapter in &self.adapters {
            let Some(board) = self.boards.get(&adapter.settings.name) else { continue };
            supervised.push(SupervisedAdapter {
                adapter: adapter.clone(),
                board: board.clone(),
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
            held.board.set(state, why, now);
            return;
        }
        match &held.task {
            Some(task) if task.is_finished() => {
                held.task = None;
                held.board.note_restart();
                held.ends = if now.since(held.started) >= WELL_AFTER { 1 } else { held.ends + 1 };
                held.due = now.plus(backoff(held.ends, RESTART_MAX, None, random()));
                let name = &held.adapter.settings.name;
                tracing::error!(event = "adapter.ended", adapter = %name, "an adapter ended; it is started again");
                held.board.set(State::Retrying, "it ended and is started again", now);
            }
            Some(_) => held.board.look(now),
            None if now >= held.due => self.start(held, now).await,
            None => {}
        }
    }

    async fn start(&self, held: &mut SupervisedAdapter, now: Timestamp) {
        let settings = &held.adapter.settings;
        if !held.announced {
            let by = settings.accepted_by.as_deref().unwrap_or_default();
            if let Err(why) = within(self.shared.note_first_start(&settings.name, by)).await {
                // The start is noted before it happens, so it waits.
                held.board.set(
                    State::Retrying,
                    format!("the audit log cannot be written: {why}"),
                    now,
                );
                return;
            }
            held.announced = true;
        }
        held.board.set(State::Starting, "", now);
        let context = Context {
            settings: Arc::clone(settings),
            catalogue: Arc::clone(&self.catalogue),
            clock: Arc::clone(&self.clock),
            sink: Arc::clone(&self.sink),
            board: held.board.clone(),
            read_now: Arc::clone(&held.read_now),
        };
        held.started = now;
        held.task = self.threads.spawn(run_adapter(held.adapter.clone(), context));
    }

    /// Asks what people want, and writes down how adapters are: only the leader knows.
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
            // Resuming starts anew what had given up.
            if desired.resumed_ms > held.desired.resumed_ms && held.board.state() == State::Failed {
                held.stop();
            }
            held.desired = desired;
        }
        for held in supervised.iter_mut().filter(|_| leading) {
            let Some(report) = held.board.take_changed() else { continue };
            let mut written = within(self.shared.write(&report)).await;
            if written.is_ok() && report.quarantined != held.samples {
                let samples = held.board.samples();
                written = within(self.shared.write_samples(&report.name, &samples)).await;
                held.samples = report.quarantined;
            }
            if let Err(error) = written {
                held.board.mark_changed();
                tracing::debug!(event = "adapter.store_failed", %error, "a report cannot be written");
            }
        }
    }
}

/// The store is not waited for for long: leadership may be lost meanwhile.
async fn within<T>(asked: Answer<'_, Result<T, String>>) -> Result<T, String> {
    let answered = timeout(STORE_TIME_MAX, asked).await;
    answered.unwrap_or_else(|_| Err("the store does not answer".to_owned()))
}

impl SupervisedAdapter {
    /// Ends it at once: what it had under way is dropped, and its program gets a signal to end.
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

/// Whether an adapter has not been well for longer than it may be.
pub fn degraded(reports: &[Report], now: Timestamp) -> bool {
    reports.iter().any(|report| report.degrades(now))
}

/// Adapters of a configuration that are enabled.
pub fn enabled(adapters: &[AdapterSettings]) -> impl Iterator<Item = &AdapterSettings> {
    adapters.iter().filter(|adapter| adapter.enabled)
}
