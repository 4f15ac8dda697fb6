//! The steady load: readers, pushers, clients that revoke keys, that reach limits, or that read every node's status.
//! Each is a thread with clients of its own; all observations go into the journal.

mod limits;
mod pusher;
mod reader;
mod repeater;
mod revoker;
mod stream;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use shell::random::Random;

use super::{market, record::Journal};
use crate::cluster::{
    http::Client,
    layout::ClusterLayout,
    unit::{APIS, Unit},
};

pub(super) use self::{reader::STATUS, stream::FEW};

/// The name of the key that may have few streams.
pub(super) const FEW_KEY: &str = "few";
/// Number of readers behind the load balancer.
const READERS: usize = 5;
/// Timeout of a client: longer than the load balancer needs to try all nodes.
const TIMEOUT: Duration = Duration::from_secs(10);

const STALL_CHECK: Duration = Duration::from_millis(50);
/// Minimum delay that is reported.
const STALL: Duration = Duration::from_millis(400);
/// Maximum attempts to let streams end as they have to.
const END_ATTEMPTS: u32 = 3;

/// The shared state of all workers.
#[derive(Clone, Debug)]
pub(super) struct LoadContext {
    pub(super) layout: Arc<ClusterLayout>,
    pub(super) journal: Arc<Journal>,
    stop: Arc<AtomicBool>,
}

impl LoadContext {
    pub(super) fn new(layout: ClusterLayout, journal: Journal) -> Self {
        Self { layout: Arc::new(layout), journal: Arc::new(journal), stop: Arc::default() }
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Runs a verb of the program and returns its output.
    pub(super) fn verb(&self, words: &[&str]) -> Result<String> {
        Ok(shell::output(&mut self.layout.verb(words)?)?.trim().to_owned())
    }

    /// A new key with limits.
    pub(super) fn new_key(&self, name: &str, per_minute: u64, per_day: u64) -> Result<String> {
        let (per_minute, per_day) = (per_minute.to_string(), per_day.to_string());
        self.verb(&[
            "keys",
            "create",
            "--kind",
            "production",
            "--name",
            name,
            "--burst-per-minute",
            &per_minute,
            "--requests-per-day",
            &per_day,
        ])
    }
}

/// The credentials of the workers.
#[derive(Debug)]
pub(super) struct Credentials {
    /// One for each pusher.
    tokens: Vec<String>,
    /// A key whose limits are never reached.
    pub(super) steady: String,
    /// One for streams, and one that may have few of them.
    streams: String,
    few: String,
    /// For answers of the past, whose turns are counted for each key.
    past: String,
}

impl Credentials {
    pub(super) fn create(context: &LoadContext) -> Result<Self> {
        let token = |pusher| context.verb(&["feeds", "create", &format!("pusher-{pusher}")]);
        let tokens = (0..market::PUSHERS).map(token).collect::<Result<_>>()?;
        Ok(Self {
            tokens,
            steady: context.new_key("steady", 1_000_000, 100_000_000)?,
            streams: stream::new_key(context, "streams", 100_000_000, 1000)?,
            few: stream::new_key(context, FEW_KEY, 100_000_000, FEW)?,
            past: context.new_key("past", 1_000_000, 100_000_000)?,
        })
    }
}

/// The workers; they end on request.
#[derive(Debug)]
pub(super) struct Load {
    context: LoadContext,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Lists the events and starts to push.
    pub(super) fn begin(
        context: &LoadContext,
        credentials: &Credentials,
        seed: u64,
    ) -> Result<Self> {
        let mut load = Self { context: context.clone(), workers: Vec::new() };
        for (pusher, token) in credentials.tokens.iter().enumerate() {
            list_events(context, pusher, token)?;
            let random = random(seed, 100 + pusher);
            let mut worker = pusher::Pusher::new(context, pusher, token.clone(), random);
            load.add(format!("pusher-{pusher}"), move || worker.run())?;
        }
        Ok(load)
    }

    fn add(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name);
        self.workers.push(thread.spawn(work).context("no more threads")?);
        Ok(())
    }

    /// Starts to read, once all series have prices.
    pub(super) fn begin_to_read(&mut self, credentials: &Credentials, seed: u64) -> Result<()> {
        let (context, steady) = (self.context.clone(), &credentials.steady);
        for number in 0..READERS {
            let mut worker =
                reader::Reader::new(&context, steady, random(seed, 200 + number), number == 0);
            self.add(format!("reader-{number}"), move || worker.run())?;
        }
        for api in APIS {
            let mut worker = reader::Prober::new(&context, steady, api);
            self.add(format!("prober-{api}"), move || worker.run())?;
        }
        for (number, node) in [None].into_iter().chain(APIS.map(Some)).enumerate() {
            let random = random(seed, 500 + number);
            let mut worker = repeater::Repeater::new(&context, node, &credentials.past, random);
            self.add(format!("repeater-{number}"), move || worker.run())?;
        }
        for profile in limits::PROFILES {
            let mut worker = limits::LimitClient::new(&context, profile, random(seed, 300));
            self.add(format!("limits-{}", profile.name), move || worker.run())?;
        }
        end_streams(&context)?;
        let pool = revoker::KeyPool::default();
        for number in 0..revoker::REVOKERS {
            let mut worker = revoker::Revoker::new(&context, &pool, number);
            self.add(format!("revoker-{number}"), move || worker.run())?;
        }
        for node in [None].into_iter().chain(APIS.map(Some)) {
            let mut worker = revoker::KeyUser::new(&context, &pool, node);
            self.add("user".to_owned(), move || worker.run())?;
        }
        self.begin_streams(credentials, seed, &pool)?;
        self.add("stalls".to_owned(), move || watch_stalls(&context))
    }

    fn begin_streams(
        &mut self,
        credentials: &Credentials,
        seed: u64,
        pool: &revoker::KeyPool,
    ) -> Result<()> {
        for api in APIS {
            for mode in stream::MODES {
                let (context, key) = (self.context.clone(), credentials.streams.clone());
                let follow = move || stream::follow(&context, api, mode, &key);
                self.add(format!("{mode}-{api}"), follow)?;
            }
            for _ in 0..stream::FEW_CLIENTS {
                let (context, key) = (self.context.clone(), credentials.few.clone());
                self.add(format!("few-{api}"), move || stream::crowd(&context, api, &key))?;
            }
            let (context, pool) = (self.context.clone(), pool.clone());
            let hold = move || stream::hold_revoked(&context, api, &pool);
            self.add(format!("held-{api}"), hold)?;
        }
        let (context, mut random) = (self.context.clone(), random(seed, 400));
        self.add("short".to_owned(), move || stream::spend(&context, &APIS, &mut random))
    }

    /// Ends all workers.
    ///
    /// # Errors
    /// A worker had failed.
    pub(super) fn end(self) -> Result<()> {
        self.context.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            let name = worker.thread().name().unwrap_or_default().to_owned();
            worker.join().map_err(|_| anyhow!("{name} has failed"))?;
        }
        Ok(())
    }
}

/// Lets streams end as they have to; again with other keys if the machine was too busy for that.
fn end_streams(context: &LoadContext) -> Result<()> {
    for attempt in 1..END_ATTEMPTS {
        match stream::end_both(context, APIS[0], attempt) {
            Ok(()) => return Ok(()),
            Err(error) => shell::say(&format!("   {error:#}; once more")),
        }
    }
    stream::end_both(context, APIS[0], END_ATTEMPTS)
}

fn random(seed: u64, worker: usize) -> Random {
    Random::new(seed ^ u64::try_from(worker).unwrap_or_default().wrapping_mul(0x9e37_79b9))
}

/// Notes when this machine was so busy that no process made progress: the cluster is not to blame for delays at that
/// time.
fn watch_stalls(context: &LoadContext) {
    while context.goes_on() {
        let before = Instant::now();
        shell::sleep(STALL_CHECK);
        let late = before.elapsed().saturating_sub(STALL_CHECK);
        if late > STALL {
            let late_ms = u64::try_from(late.as_millis()).unwrap_or(u64::MAX);
            context.journal.note("stall_ms", late_ms, |records| &mut records.stalls);
        }
    }
}

fn list_events(context: &LoadContext, pusher: usize, token: &str) -> Result<()> {
    let client = Client::new(context.layout.port(Unit::Nginx), TIMEOUT);
    let headers = pusher::headers(token);
    let mut last = String::new();
    // No fault has started, but an ingest may still be waiting for its lease.
    shell::wait_until("events are listed", Duration::from_secs(60), || {
        let answer = client.post(pusher::INGEST_PATH, &headers, market::listing(pusher).as_bytes());
        last = format!("{answer:?}");
        answer.is_ok_and(|answer| pusher::outcome(&answer) == super::record::Outcome::Taken)
    })
    .context(last)
}
