//! Connects the upstream adapters to the service: the destination of their messages, the storage of their reports,
//! and operators' requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use accounts::Registry;
use adapters::build::Adapter;
use adapters::report::{self, Report, Reporter, Sample, State};
use adapters::sink::{Answer, NotTaken, OpenEvent, Receipt, Sink};
use adapters::supervisor::{DesiredState, Reporters, Shared, Supervisor, degraded};
use adapters::threads::AdapterThreads;
use anyhow::{Context as _, bail};
use api::{AdapterReports, Api};
use bytes::Bytes;
use domain::{MetricsText, Timestamp, World};
use engine::feed_stats::{Push, Stamps};
use engine::{Piece, Terms};
use feeds::push::Rights;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use store::{AdapterRow, AdapterSampleRow, Store};

use crate::task::Tasks;

/// How often a node that does not lead reads the leader's reports on the adapters.
const FOLLOW_EVERY: Duration = Duration::from_secs(2);
/// A leader's report older than this means that no node reports.
const REPORT_AGE_MAX: Duration = Duration::from_secs(60);

/// Starts the adapters of a service, if it has any.
pub(crate) async fn start(
    adapters: Vec<Adapter>,
    api: &Arc<Api>,
    store: &Store,
    tasks: &Tasks,
) -> anyhow::Result<()> {
    if adapters.is_empty() {
        return Ok(());
    }
    let clock = Arc::clone(&api.clock);
    let registry = Arc::new(Registry::new(store.clone(), Arc::clone(&clock)));
    for feed in registry.list_feeds().await?.iter().filter(|feed| feed.revoked_at.is_none()) {
        if adapters.iter().any(|adapter| adapter.settings.name == feed.name) {
            bail!(
                "`adapters.{0}` has the name of a push feed; rename the adapter, or revoke the feed: linesman feeds revoke {0}",
                feed.name
            );
        }
    }
    let reporters = Reporters::new(&adapters);
    let page = Arc::new(Page {
        api: Arc::downgrade(api),
        reporters: reporters.clone(),
        followed: Mutex::default(),
    });
    // Set once: there is one start.
    if api.adapters.set(Arc::clone(&page) as Arc<dyn AdapterReports>).is_err() {
        bail!("the adapters were started before");
    }
    let supervisor = Supervisor {
        catalogue: Arc::clone(&api.catalogue),
        clock: Arc::clone(&clock),
        sink: Arc::new(LiveSink { api: Arc::clone(api) }),
        shared: Arc::new(SharedStore { store: store.clone(), registry, api: Arc::clone(api) }),
        adapters,
        reporters,
        threads: AdapterThreads::start().context("the threads of the adapters cannot start")?,
    };
    let live = Arc::clone(&api.worlds.live);
    tasks.spawn("the adapters", supervisor.run(move || live.leads()));
    tasks.spawn("the reports of adapters", follow(page, Arc::clone(api), store.clone()));
    Ok(())
}

/// Stops the tasks of the service, the adapters among them, and waits a bounded time for the programs that these ran.
pub(crate) async fn stop(tasks: &Tasks) -> anyhow::Result<()> {
    tasks.stop();
    let running = tokio::task::spawn_blocking(adapters::wait_for_programs).await?;
    if running > 0 {
        tracing::warn!(
            event = "adapter.programs_left",
            running,
            "programs of adapters still run after their signal to end"
        );
    }
    Ok(())
}

/// Delivers messages to the live world of this node.
#[derive(Debug)]
struct LiveSink {
    api: Arc<Api>,
}

impl Sink for LiveSink {
    fn submit<'a>(&'a self, feed: &'a str, body: Bytes) -> Answer<'a, Result<Receipt, NotTaken>> {
        Box::pin(async move {
            let mut whole = Receipt::default();
            for piece in Piece::all(&body) {
                self.take(feed, piece, &mut whole).await?;
            }
            Ok(whole)
        })
    }

    fn open<'a>(&'a self, feed: &'a str) -> Answer<'a, Result<Vec<OpenEvent>, NotTaken>> {
        Box::pin(async move {
            let feed: Box<str> = feed.into();
            let open = self.api.world(World::Live).look(move |book| book.open_of(&feed)).await;
            open.map(|open| open.into_iter().map(to_open).collect())
                .map_err(|_| NotTaken::NotLeader)
        })
    }
}

pub(crate) fn to_open(offer: market::OpenOffer) -> OpenEvent {
    let market::OpenOffer { reference, sport, commence_time, markets } = offer;
    OpenEvent { reference, sport, commence_time, markets }
}

impl LiveSink {
    async fn take(&self, feed: &str, piece: Piece, whole: &mut Receipt) -> Result<(), NotTaken> {
        let live = self.api.world(World::Live);
        if !live.leads() {
            return Err(NotTaken::NotLeader);
        }
        let arrived = self.api.clock.now();
        let reserved = live.reserve(feed, &piece).await.map_err(not_taken)?;
        let (catalogue, parsed) = (Arc::clone(&self.api.catalogue), piece.clone());
        let parsing = tokio::task::spawn_blocking(move || {
            let lines = parsed.parse(&catalogue, Rights { bookmaker: None, scores: true });
            let stamps = Stamps::of(&lines);
            (lines, stamps)
        });
        let (lines, stamps) = parsing.await.map_err(|_| NotTaken::LogFailed)?;
        let taken = reserved.put(lines, Terms::default()).map_err(not_taken)?;
        let receipt = taken.await.unwrap_or(Err(engine::NotTaken::Stopped)).map_err(not_taken)?;
        let durable = self.api.clock.now();
        let push = Push { receipt: &receipt, stamps: &stamps, arrived, durable, piece: &piece };
        self.api.feed_stats.note(feed, &push);
        whole.accepted += receipt.accepted;
        whole.unchanged += receipt.unchanged;
        whole.superseded += receipt.superseded;
        whole.rejected.extend(receipt.rejected);
        Ok(())
    }
}

fn not_taken(why: engine::NotTaken) -> NotTaken {
    match why {
        engine::NotTaken::LogFailed => NotTaken::LogFailed,
        engine::NotTaken::Stopped
        | engine::NotTaken::Overtaken
        | engine::NotTaken::NoWriter
        | engine::NotTaken::Overdue
        | engine::NotTaken::Withdrawn => NotTaken::NotLeader,
    }
}

/// Reports and desired states, in the store that all nodes share.
#[derive(Debug)]
struct SharedStore {
    store: Store,
    registry: Arc<Registry>,
    api: Arc<Api>,
}

impl Shared for SharedStore {
    fn desired_states(&self) -> Answer<'_, Result<BTreeMap<String, DesiredState>, String>> {
        Box::pin(async {
            let rows = self.store.adapters().await.map_err(|error| error.to_string())?;
            let desired = |row: AdapterRow| {
                let AdapterRow { name, paused_ms, resumed_ms, read_asked_ms, .. } = row;
                (name, DesiredState { paused: paused_ms.is_some(), read_asked_ms, resumed_ms })
            };
            Ok(rows.into_iter().map(desired).collect())
        })
    }

    fn write<'a>(&'a self, report: &'a Report) -> Answer<'a, Result<(), String>> {
        Box::pin(async {
            let json = serde_json::to_string(report).map_err(|error| error.to_string())?;
            let now_ms = self.api.clock.now().as_millis();
            let written = self.store.write_adapter(&report.name, &json, now_ms).await;
            written.map_err(|error| error.to_string())
        })
    }

    fn write_samples<'a>(
        &'a self,
        name: &'a str,
        samples: &'a [Sample],
    ) -> Answer<'a, Result<(), String>> {
        Box::pin(async move {
            let row = |(number, sample): (i64, &Sample)| AdapterSampleRow {
                adapter: name.to_owned(),
                number,
                at_ms: sample.at.as_millis(),
                unit: sample.unit.clone(),
                path: sample.path.clone(),
                reason: sample.reason.clone(),
                body: sample.body.clone(),
            };
            let rows: Vec<AdapterSampleRow> = (0..).zip(samples).map(row).collect();
            let written = self.store.write_adapter_samples(name, &rows).await;
            written.map_err(|error| error.to_string())
        })
    }

    fn note_first_start<'a>(
        &'a self,
        name: &'a str,
        accepted_by: &'a str,
    ) -> Answer<'a, Result<(), String>> {
        Box::pin(async move {
            let noted = self.registry.note_adapter_start(name, accepted_by).await;
            noted.map_err(|error| error.to_string())
        })
    }
}

/// The displayed state of the adapters: this node's own if it leads, otherwise the leader's reports.
#[derive(Debug)]
struct Page {
    api: std::sync::Weak<Api>,
    reporters: Reporters,
    followed: Mutex<BTreeMap<String, Report>>,
}

impl Page {
    fn reports(&self) -> Vec<Report> {
        let own = self.reporters.reports();
        let leads = self.api.upgrade().is_some_and(|api| api.world(World::Live).leads());
        if leads {
            return own;
        }
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        own.into_iter().map(|own| followed.get(&own.name).cloned().unwrap_or(own)).collect()
    }
}

impl AdapterReports for Page {
    fn to_json(&self) -> Vec<Value> {
        let shown = |report: &Report| {
            let mut value = serde_json::to_value(report).unwrap_or_default();
            if let Some(object) = value.as_object_mut() {
                // These values are metrics.
                for key in ["stale_after_s", "restarts", "reconnects", "read_ms"] {
                    object.shift_remove(key);
                }
            }
            value
        };
        self.reports().iter().map(shown).collect()
    }

    fn samples(&self, name: &str) -> Vec<Value> {
        let samples = self.reporters.get(name).map(Reporter::samples).unwrap_or_default();
        let shown = samples.iter().map(|sample| {
            json!({
                "at": sample.at.to_string(), "unit": sample.unit, "path": sample.path, "reason": sample.reason,
            })
        });
        shown.collect()
    }

    fn is_degraded(&self, now: Timestamp) -> bool {
        degraded(&self.reports(), now)
    }

    fn render(&self, page: &mut MetricsText) {
        report::render(&self.reports(), page);
    }
}

/// Reads the leader's reports on the adapters while another node leads.
async fn follow(page: Arc<Page>, api: Arc<Api>, store: Store) {
    loop {
        if !api.world(World::Live).leads() {
            match store.adapters().await {
                Ok(rows) => {
                    let now = api.clock.now();
                    let read = rows.into_iter().filter_map(|row| parse_report(&row, now)).collect();
                    *page.followed.lock().unwrap_or_else(PoisonError::into_inner) = read;
                }
                Err(error) => {
                    tracing::debug!(event = "adapter.store_failed", %error, "the leader's reports cannot be read");
                }
            }
        }
        tokio::time::sleep(FOLLOW_EVERY).await;
    }
}

/// A report of the leader, marked if it is old.
pub(crate) fn parse_report(row: &AdapterRow, now: Timestamp) -> Option<(String, Report)> {
    let mut report: Report = serde_json::from_str(&row.report).ok()?;
    let age = now.since(Timestamp::from_millis(row.updated_ms));
    let runs = !matches!(report.state, State::Off | State::Paused | State::Failed);
    if runs && age > REPORT_AGE_MAX.max(Duration::from_secs(report.stale_after_s)) {
        report.state = State::Late;
        report.message = format!("no report for {} s", age.as_secs());
    }
    if row.paused_ms.is_some() && report.state != State::Off {
        (report.state, report.message) = (State::Paused, "by an operator".to_owned());
    }
    Some((row.name.clone(), report))
}
