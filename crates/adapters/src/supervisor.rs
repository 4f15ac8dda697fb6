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
pub struct Wish {
    pub paused: bool,
    /// When a read was last asked for, in milliseconds.
    pub read_asked_ms: Option<i64>,
    /// When it was last resumed, in milliseconds.
    pub resumed_ms: Option<i64>,
}

/// What all nodes share: reports, samples and wishes.
pub trait Shared: Send + Sync + fmt::Debug {
    fn wishes(&self) -> Answer<'_, Result<BTreeMap<String, Wish>, String>>;

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
struct Seat {
    adapter: Adapter,
    board: Board,
    wish: Wish,
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
        let mut seats: Vec<Seat> = Vec::new();
        for adapter in &self.adapters {
            let Some(board) = self.boards.get(&adapter.settings.name) else { continue };
            seats.push(Seat {
                adapter: adapter.clone(),
                board: board.clone(),
                wish: Wish::default(),
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
                self.exchange(&mut seats, leading).await;
            }
            for seat in &mut seats {
                self.look(seat, leading && leads()).await;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Starts, stops or restarts one adapter.
    async fn look(&self, seat: &mut Seat, leading: bool) {
        let now = self.clock.now();
        let should = match (seat.adapter.settings.enabled, seat.wish.paused, leading) {
            (false, _, _) => Some((State::Off, "")),
            (true, true, _) => Some((State::Paused, "by an operator")),
            (true, false, false) => Some((State::Waiting, "another node is the leader")),
            (true, false, true) => None,
        };
        if let Some((state, why)) = should {
            seat.stop();
            seat.board.set(state, why, now);
            return;
        }
        match &seat.task {
            Some(task) if task.is_finished() => {
                seat.task = None;
                seat.board.note_restart();
                seat.ends = if now.since(seat.started) >= WELL_AFTER { 1 } else { seat.ends + 1 };
                seat.due = now.plus(backoff(seat.ends, RESTART_MAX, None, random()));
                let name = &seat.adapter.settings.name;
                tracing::error!(event = "adapter.ended", adapter = %name, "an adapter ended; it is started again");
                seat.board.set(State::Retrying, "it ended and is started again", now);
            }
            Some(_) => seat.board.look(now),
            None if now >= seat.due => self.start(seat, now).await,
            None => {}
        }
    }

    async fn start(&self, seat: &mut Seat, now: Timestamp) {
        let settings = &seat.adapter.settings;
        if !seat.announced {
            let by = settings.accepted_by.as_deref().unwrap_or_default();
            if let Err(why) = within(self.shared.note_first_start(&settings.name, by)).await {
                // The start is noted before it happens, so it waits.
                seat.board.set(
                    State::Retrying,
                    format!("the audit log cannot be written: {why}"),
                    now,
                );
                return;
            }
            seat.announced = true;
        }
        seat.board.set(State::Starting, "", now);
        let context = Context {
            settings: Arc::clone(settings),
            catalogue: Arc::clone(&self.catalogue),
            clock: Arc::clone(&self.clock),
            sink: Arc::clone(&self.sink),
            board: seat.board.clone(),
            read_now: Arc::clone(&seat.read_now),
        };
        seat.started = now;
        seat.task = self.threads.spawn(run_adapter(seat.adapter.clone(), context));
    }

    /// Asks what people want, and writes down how adapters are: only the leader knows.
    async fn exchange(&self, seats: &mut [Seat], leading: bool) {
        let wishes = match within(self.shared.wishes()).await {
            Ok(wishes) => wishes,
            Err(error) => {
                tracing::debug!(event = "adapter.store_failed", %error, "cannot read the adapters' desired states from the database");
                return;
            }
        };
        for seat in &mut *seats {
            let wish = wishes.get(&seat.adapter.settings.name).copied().unwrap_or_default();
            if wish.read_asked_ms > seat.wish.read_asked_ms {
                seat.read_now.notify_one();
            }
            // Resuming starts anew what had given up.
            if wish.resumed_ms > seat.wish.resumed_ms && seat.board.state() == State::Failed {
                seat.stop();
            }
            seat.wish = wish;
        }
        for seat in seats.iter_mut().filter(|_| leading) {
            let Some(report) = seat.board.take_changed() else { continue };
            let mut written = within(self.shared.write(&report)).await;
            if written.is_ok() && report.quarantined != seat.samples {
                let samples = seat.board.samples();
                written = within(self.shared.write_samples(&report.name, &samples)).await;
                seat.samples = report.quarantined;
            }
            if let Err(error) = written {
                seat.board.mark_changed();
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

impl Seat {
    /// Ends it at once: what it had under way is dropped, and its program gets a signal to end.
    fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.ends = 0;
        self.due = Timestamp::from_millis(0);
    }
}

impl Drop for Seat {
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
