//! Starts the worlds with their threads and tasks, on a data folder or as a node of a cluster.

use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context;
use change_log::{LogLocation, Options};
use domain::{Catalogue, Clock, World};
use engine::{Archiver, HistoryOptions, WorldHandle, WorldOptions, Writer, open_archive};
use feeds::sandbox::Simulation;
use market::{Lifetimes, Limits, Operation};
use rustix::process::setpriority_process;
use store::Store;

use crate::catalogue;
use crate::cli::Role;
use crate::clock::SystemClock;
use crate::cluster::{self, LeaderElection, watch_leader};
use crate::config::Config;
use crate::folder::Folder;
use crate::task::{Part, Tasks};

/// The inputs for opening worlds.
pub(crate) struct WorldSetup<'a> {
    pub(crate) config: &'a Config,
    pub(crate) role: Role,
    pub(crate) folder: &'a Folder,
    pub(crate) catalogue: &'a Arc<Catalogue>,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

impl WorldSetup<'_> {
    /// Runs the live world: on its folder, or as a node of a cluster.
    pub(crate) async fn run_live(
        &self,
        store: &Store,
        tasks: &Tasks,
    ) -> anyhow::Result<(Arc<WorldHandle>, JoinHandle<()>, Option<LeaderTasks>)> {
        let Some(cluster) = &self.config.cluster else {
            let (live, writer) = self.open_world(World::Live)?;
            archive(self.options_in_folder(World::Live), &live, tasks).await?;
            return Ok((live, spawn_world(|| writer.run(), tasks, "live")?, None));
        };
        let membership = cluster::membership(cluster, self.role).await?;
        let leadership = membership.leadership.clone();
        let options = self.options(World::Live, cluster::log_on_servers(cluster));
        let (live, node) = WorldHandle::join(options.clone(), Arc::clone(self.clock), membership);
        archive(options, &live, tasks).await?;
        let thread = spawn_world(|| node.run(), tasks, "live")?;
        let watch = watch_leader(store.clone(), Arc::clone(&live), Arc::clone(self.clock));
        let tasks = tasks.apart();
        tasks.spawn("the leader watch", watch);
        let election = leadership.map(|leadership| {
            LeaderElection::new(store.clone(), leadership, cluster::holder_name())
        });
        if let Some(election) = &election {
            tasks.spawn("the leader election", election.clone().keep());
            tasks
                .spawn("the server of forwarded pushes", engine::serve_forwards(Arc::clone(&live)));
        }
        Ok((live, thread, Some(LeaderTasks { tasks, election })))
    }

    pub(crate) fn open_world(&self, world: World) -> anyhow::Result<(Arc<WorldHandle>, Writer)> {
        let path = self.folder.log(world).display().to_string();
        WorldHandle::open(self.options_in_folder(world), Arc::clone(self.clock))
            .with_context(|| format!("the {world} world in {path} cannot be opened"))
    }

    fn options_in_folder(&self, world: World) -> WorldOptions {
        let place = match (world, &self.config.cluster) {
            // Each node simulates the market from the seed.
            (World::Sandbox, Some(_)) => LogLocation::Nowhere,
            (World::Sandbox | World::Live, _) => {
                LogLocation::Folder { dir: self.folder.log(world), options: Options::default() }
            }
        };
        self.options(world, place)
    }

    fn options(&self, world: World, log: LogLocation) -> WorldOptions {
        let Self { config, catalogue, .. } = self;
        let plays = world == World::Sandbox && config.sandbox.enabled && self.role != Role::Ingest;
        let market = &config.market;
        let place = self.folder.archive_of(config);
        let is_kept = config.history.enabled;
        WorldOptions {
            world,
            log,
            catalogue: Arc::clone(catalogue),
            refresh_interval: market.refresh_interval,
            stale_after: market.stale_after,
            wires: api::wires(world),
            lifetimes: Lifetimes {
                final_retention: market.final_retention,
                forget_after: market.forget_after,
            },
            limits: Limits {
                records_max: market.records_max,
                records_per_feed_max: market.records_per_feed_max.min(market.records_max),
                ..Limits::DEFAULT
            },
            log_retention: match world {
                World::Live => market.log_retention,
                World::Sandbox => market.log_retention.min(SANDBOX_LOG_RETENTION),
            },
            simulation: plays.then(|| Simulation::new(config.sandbox.seed, Arc::clone(catalogue))),
            notes: Some(self.folder.path().to_owned()),
            live_tick: config.stream.live_tick,
            history: HistoryOptions {
                // A cluster whose nodes share no archive has no history.
                by_time: is_kept && (world == World::Sandbox || place.is_some()),
                store: place.filter(|_| is_kept && world == World::Live),
                part_interval: config.history.part_interval,
                retention: config.history.retention,
                memory_max: config.history.memory_mb << 20,
                ..HistoryOptions::default()
            },
        }
    }
}

/// Starts writing the archive of the live world, if it has one. A location that cannot be reached now may be
/// reachable later; one that cannot decide between two writers never works.
async fn archive(
    options: WorldOptions,
    live: &Arc<WorldHandle>,
    tasks: &Tasks,
) -> anyhow::Result<()> {
    let Some(place) = options.history.archive() else { return Ok(()) };
    let shown = place.to_string();
    // If it does not answer, the start does not wait for it.
    let tried = {
        let options = options.clone();
        tokio::task::spawn_blocking(move || open_archive(&options))
    };
    match tokio::time::timeout(ARCHIVE_WAIT_MAX, tried).await {
        Ok(Ok(Err(error))) if error.is_not_exclusive() => {
            return Err(error).context("`history.store` cannot be used; name another place");
        }
        Ok(Ok(Err(error))) => {
            tracing::warn!(
                event = "archive.unreachable",
                archive = shown,
                error = format!("{:#}", anyhow::Error::from(error)),
                "the archive cannot be used yet; the log keeps its entries until it can"
            );
        }
        Ok(Ok(Ok(_)) | Err(_)) | Err(_) => {}
    }
    if let Some(archiver) = Archiver::new(options, live) {
        tasks.spawn("the archive", archiver.run());
    }
    Ok(())
}

/// How long a start waits for the archive.
const ARCHIVE_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// The tasks of a node that depend on the leader.
pub(crate) struct LeaderTasks {
    tasks: Tasks,
    /// `None`: this node never leads.
    election: Option<LeaderElection>,
}

impl LeaderTasks {
    /// Ends the term after the writer has stopped, so that another node need not wait for its end.
    pub(crate) async fn stop(self) {
        self.tasks.stop();
        let Some(election) = self.election else { return };
        if let Err(error) = election.give_up().await {
            tracing::warn!(event = "leader.release_failed", %error, "leadership not released; its term expires");
        }
    }
}

/// The simulated world can be computed from its seed at any time; its log only serves recent history.
const SANDBOX_LOG_RETENTION: std::time::Duration = std::time::Duration::from_secs(2 * 3600);

/// A quarter of a contended core; a request that wakes up preempts the writer.
const WRITER_NICENESS: i32 = 6;

/// Runs a world in a separate thread.
pub(crate) fn spawn_world(
    work: impl FnOnce() + Send + 'static,
    tasks: &Tasks,
    world: Part,
) -> anyhow::Result<JoinHandle<()>> {
    let report = tasks.report_end(world);
    let name = format!("writer-{world}");
    let run = move || {
        let _report = report;
        // On a busy machine, requests have precedence over the next snapshot. On Linux this is the priority of the
        // thread.
        if let Err(error) = setpriority_process(None, WRITER_NICENESS) {
            tracing::debug!(event = "writer.priority_failed", %error, "the writer runs at normal priority");
        }
        work();
    };
    std::thread::Builder::new().name(name).spawn(run).context("a writer thread cannot start")
}

/// The options with which a command opens the live world: in the folder or, in a cluster, on the servers. In a
/// cluster it must be called within a runtime, from a thread that may block.
pub(crate) fn live_options(config: &Config, folder: &Folder) -> anyhow::Result<WorldOptions> {
    let catalogue = &catalogue::load(config)?;
    let clock: &Arc<dyn Clock> = &(Arc::new(SystemClock) as Arc<dyn Clock>);
    let setup = WorldSetup { config, role: Role::All, folder, catalogue, clock };
    Ok(match &config.cluster {
        Some(cluster) => setup.options(World::Live, cluster::log_on_servers(cluster)),
        None => setup.options_in_folder(World::Live),
    })
}

/// Executes operations on the live world while no server runs; the caller holds the folder's lock.
pub(crate) fn operate_alone(
    config: &Config,
    folder: &Folder,
    operations: &[Operation],
) -> anyhow::Result<()> {
    Ok(engine::operate_alone(&live_options(config, folder)?, &SystemClock, operations)?)
}
