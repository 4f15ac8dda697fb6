//! Options of a service under test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::thread::JoinHandle;
use std::time::Duration;

use accounts::{Cluster, People, PeopleRules};
use api::ingest::PushLimits;
use api::v1::stream::StreamSettings;
use api::v4::V4Settings;
use api::{Api, ApiSettings};
use archive::Location;
use domain::{Catalogue, Clock, ManualClock, Timestamp, World};
use engine::{Archiver, HistoryOptions, WorldHandle, WorldOptions, Worlds};
use feeds::sandbox::Simulation;
use http::{Proxies, Server, ServerSettings};
use market::{Lifetimes, Limits};
use serve::{Agents, ListenerRole, Service};
use store::Store;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use web::{Web, WebSettings};

use super::{
    DAY, Joining, LogServers, PushDoor, START, SystemClock, TestApp, Time, at, client, listen,
    shared,
};

/// Options of a service under test.
#[derive(Debug)]
pub(crate) struct Builder {
    dir: Option<TempDir>,
    time: Time,
    start: Timestamp,
    refresh_interval: Duration,
    stale_after: Duration,
    live_tick: Duration,
    history: HistoryOptions,
    limits: Limits,
    api: ApiSettings,
    server: ServerSettings,
    web: WebSettings,
    ingest_on_main: bool,
    sandbox_seed: Option<u64>,
    people: PeopleRules,
    log_servers: Option<LogServers>,
    joining: Option<Joining>,
    cluster: Option<Cluster>,
    accounts: Option<PathBuf>,
    keeps_pages: bool,
    mail: bool,
    archive: Option<ArchivePlace>,
    catalogue: Option<Catalogue>,
}

/// The embedded catalogue.
fn usual() -> Catalogue {
    Catalogue::load(None).unwrap()
}

/// The location of the archive.
#[derive(Debug)]
enum ArchivePlace {
    /// In its own folder.
    Own,
    Elsewhere(Location),
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            dir: None,
            time: Time::Manual,
            start: at(START),
            refresh_interval: Duration::from_secs(30),
            stale_after: Duration::from_secs(90),
            live_tick: Duration::from_millis(1),
            history: HistoryOptions { part_interval: DAY, ..HistoryOptions::default() },
            // Most tests report on events without waiting for their start.
            limits: Limits { begin_early_max: Duration::MAX, ..Limits::DEFAULT },
            api: ApiSettings {
                query_key_enabled: true,
                query_key_sunset: "Sun, 01 Nov 2027 00:00:00 GMT".to_owned(),
                pushes: PushLimits { bytes_max: 128 << 20, feed_bytes_max: 32 << 20 },
                v4: V4Settings::default(),
                stream: StreamSettings::default(),
            },
            web: WebSettings::default(),
            ingest_on_main: true,
            server: ServerSettings {
                connections_max: 1000,
                connections_per_source_max: 1000,
                drain: Duration::ZERO,
                proxies: Proxies::default(),
                // A slow machine must not cause refusals in unrelated tests.
                shed_after: Duration::from_secs(600),
            },
            sandbox_seed: None,
            people: PeopleRules::default(),
            log_servers: None,
            joining: None,
            cluster: None,
            accounts: None,
            keeps_pages: false,
            mail: false,
            archive: None,
            catalogue: None,
        }
    }

    /// Stores the logs on servers.
    pub(crate) fn log_on(mut self, servers: LogServers) -> Self {
        self.log_servers = Some(servers);
        self
    }

    /// Starts one node of several that share the live world's log and a clock.
    pub(crate) fn joining(mut self, joining: Joining) -> Self {
        self.log_servers = Some(joining.servers.clone());
        self.joining = Some(joining);
        self
    }

    /// Starts one node of a cluster.
    pub(crate) fn one_of(mut self, cluster: Cluster) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// With the accounts in this folder, which it shares with other nodes.
    pub(crate) fn accounts_in(mut self, dir: &Path) -> Self {
        self.accounts = Some(dir.to_owned());
        self
    }

    /// Boards update themselves, and the record of freshness is kept.
    pub(crate) fn keeping_pages(mut self) -> Self {
        self.keeps_pages = true;
        self
    }

    /// As [`Self::archived`], in another location.
    pub(crate) fn archived_in(mut self, place: Location) -> Self {
        self.archive = Some(ArchivePlace::Elsewhere(place));
        self
    }

    /// Archives publications when the test requests it.
    pub(crate) fn archived(mut self) -> Self {
        self.archive = Some(ArchivePlace::Own);
        self
    }

    /// With another catalogue than the embedded one.
    pub(crate) fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = Some(catalogue);
        self
    }

    /// Runs the sandbox's simulation.
    pub(crate) fn sandbox(mut self, seed: u64) -> Self {
        self.sandbox_seed = Some(seed);
        self
    }

    pub(crate) fn system_clock(mut self) -> Self {
        self.time = Time::System;
        self.refresh_interval = Duration::from_millis(100);
        self
    }

    pub(crate) fn starting_at(mut self, start: Timestamp) -> Self {
        self.start = start;
        self
    }

    pub(crate) fn refresh_interval(mut self, interval: Duration) -> Self {
        self.refresh_interval = interval;
        self
    }

    pub(crate) fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub(crate) fn history_retention(mut self, retention: Duration) -> Self {
        self.history.retention = retention;
        self
    }

    /// Number of entries that are searched at a time for records that appeared and disappeared.
    pub(crate) fn entries_at_once(mut self, entries: u64) -> Self {
        self.history.entries_at_once = entries;
        self
    }

    /// Memory for publications of the past, and for lookups of what was quoted in between.
    pub(crate) fn history_memory(mut self, bytes: usize) -> Self {
        self.history.memory_max = bytes;
        self
    }

    /// History switched off, as in a cluster whose nodes share no archive.
    pub(crate) fn without_history(mut self) -> Self {
        self.history.by_time = false;
        self
    }

    pub(crate) fn stale_after(mut self, after: Duration) -> Self {
        self.stale_after = after;
        self
    }

    /// Changes are shown live no more often than twice in this time.
    pub(crate) fn live_tick(mut self, tick: Duration) -> Self {
        self.live_tick = tick;
        self
    }

    /// The operator has switched `api_key` off.
    pub(crate) fn without_query_key(mut self) -> Self {
        self.api.query_key_enabled = false;
        self
    }

    pub(crate) fn push_door(mut self, door: PushDoor) -> Self {
        self.ingest_on_main = door == PushDoor::OnMain;
        self
    }

    /// The operator's settings about people and pages.
    pub(crate) fn pages(mut self, people: PeopleRules, pages: WebSettings) -> Self {
        self.people = people;
        self.web = pages;
        self
    }

    /// Connections from this machine come from a proxy.
    pub(crate) fn behind_a_proxy(mut self) -> Self {
        self.server.proxies.trusted = vec!["127.0.0.1".parse().unwrap()];
        self
    }

    /// Emails are queued; [`TestApp::email`] reads them.
    pub(crate) fn mail(mut self) -> Self {
        self.mail = true;
        self
    }

    /// The operator's settings about `/v4`.
    pub(crate) fn v4(mut self, settings: V4Settings) -> Self {
        self.api.v4 = settings;
        self
    }

    /// The operator's settings about streams.
    pub(crate) fn streams(mut self, settings: StreamSettings) -> Self {
        self.api.stream = settings;
        self
    }

    pub(crate) fn connections_max(mut self, max: usize) -> Self {
        self.server.connections_max = max;
        self
    }

    /// Maximum memory of pushes, over all feeds and of one.
    pub(crate) fn push_bytes(mut self, bytes_max: usize, feed_bytes_max: usize) -> Self {
        self.api.pushes = PushLimits { bytes_max, feed_bytes_max };
        self
    }

    pub(crate) fn connections_per_source_max(mut self, max: usize) -> Self {
        self.server.connections_per_source_max = max;
        self
    }

    /// Time for which connections are still accepted while the service stops.
    pub(crate) fn drain(mut self, time: Duration) -> Self {
        self.server.drain = time;
        self
    }

    pub(crate) fn shed_after(mut self, late: Duration) -> Self {
        self.server.shed_after = late;
        self
    }

    /// Starts on a folder that a service used before.
    pub(crate) fn on(mut self, dir: TempDir) -> Self {
        self.dir = Some(dir);
        self
    }

    pub(crate) async fn start(self) -> TestApp {
        let dir = self.dir.unwrap_or_else(|| TempDir::new().unwrap());
        let joined = self.joining.as_ref().map(|joining| Arc::clone(&joining.clock));
        let manual = joined.unwrap_or_else(|| Arc::new(ManualClock::at(self.start)));
        let clock: Arc<dyn Clock> = match self.time {
            Time::Manual => Arc::clone(&manual) as Arc<dyn Clock>,
            Time::System => Arc::new(SystemClock),
        };
        let accounts_dir = self.accounts.as_deref().unwrap_or_else(|| dir.path());
        let store = Store::open(accounts_dir.join("accounts.db")).await.unwrap();
        let accounts = shared::load_accounts(&store, &clock, self.cluster).await;
        let people = People::new(store.clone(), Arc::clone(&clock), self.people).unwrap();
        let (outbox, email_queue) = accounts::outbox("https://odds.example.com");
        let people = people.with_mail(self.mail.then_some(outbox));
        let catalogue = Arc::new(self.catalogue.unwrap_or_else(usual));
        let (servers, joining) = (self.log_servers.as_ref(), self.joining.as_ref());
        let options = |world: World, seed: Option<u64>| WorldOptions {
            wires: api::wires(world),
            world,
            log: shared::place(servers, joining, dir.path(), world),
            catalogue: Arc::clone(&catalogue),
            refresh_interval: self.refresh_interval,
            stale_after: self.stale_after,
            lifetimes: Lifetimes { final_retention: 3 * DAY, forget_after: 7 * DAY },
            limits: self.limits,
            log_retention: DAY,
            simulation: seed.map(|seed| Simulation::new(seed, Arc::clone(&catalogue))),
            notes: Some(dir.path().to_owned()),
            live_tick: self.live_tick,
            history: history(&self.history, self.archive.as_ref(), dir.path(), world),
        };
        let (live, live_writer) = match joining {
            Some(joining) => joining.join(options(World::Live, None), &clock).await,
            None => open(options(World::Live, None), &clock),
        };
        let archiver = Archiver::new(options(World::Live, None), &live);
        let archiver = archiver.map(|archiver| tokio::spawn(archiver.run()));
        let (sandbox, sandbox_writer) = open(options(World::Sandbox, self.sandbox_seed), &clock);
        let writers = vec![(World::Live, live_writer), (World::Sandbox, sandbox_writer)];
        let server = Server::new(clock, self.server);
        let api = Api::new(catalogue, accounts, Worlds { live, sandbox }, self.api, server);
        let web = Web::new(Arc::clone(&api), people, self.web);
        let agents = Agents::new(true);
        let service = Arc::new(Service { api, web, agents, ingest_on_main: self.ingest_on_main });
        let stop = CancellationToken::new();
        if self.keeps_pages {
            tokio::spawn(web::keep_pages(Arc::clone(&service.web), stop.clone()));
        }
        TestApp {
            addr: listen(&service, ListenerRole::Main, &stop).await,
            push_addr: listen(&service, ListenerRole::Ingest, &stop).await,
            operator_addr: listen(&service, ListenerRole::Operator, &stop).await,
            client: client(),
            refresh_interval: self.refresh_interval,
            waker: tokio::sync::OnceCell::new(),
            names: AtomicU32::new(0),
            email_queue: tokio::sync::Mutex::new(email_queue),
            time: self.time,
            service,
            manual,
            store,
            dir: Some(dir),
            stop,
            writers,
            archiver,
        }
    }
}

/// Opens a world, and runs its writer on a separate thread.
fn open(options: WorldOptions, clock: &Arc<dyn Clock>) -> (Arc<WorldHandle>, JoinHandle<()>) {
    let open = || WorldHandle::open(options, Arc::clone(clock)).unwrap();
    // Opening a log on servers blocks, which a task must not do.
    let (handle, writer) = std::thread::scope(|scope| scope.spawn(open).join().unwrap());
    (handle, std::thread::spawn(move || writer.run()))
}

/// The live world is archived only when a test requests it.
fn history(
    options: &HistoryOptions,
    archive: Option<&ArchivePlace>,
    dir: &Path,
    world: World,
) -> HistoryOptions {
    let store = archive.filter(|_| world == World::Live).map(|place| match place {
        ArchivePlace::Own => dir.join("archive").into(),
        ArchivePlace::Elsewhere(place) => place.clone(),
    });
    HistoryOptions { store, ..options.clone() }
}
