//! The running worlds: which threads and tasks they need, alone on a folder or as one node of many.

use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context;
use change_log::{Options, Place};
use domain::{Catalogue, Clock, World};
use feeds::sandbox::Simulation;
use market::{Lifetimes, Limits, Operation};
use rustix::process::setpriority_process;
use serve::{WorldHandle, WorldOptions, Writer};
use store::Store;

use crate::catalogue;
use crate::cli::Role;
use crate::clock::SystemClock;
use crate::cluster::{self, Leading, watch_lead};
use crate::config::Config;
use crate::folder::Folder;
use crate::task::{Part, Tasks};

/// What worlds are opened with.
pub(crate) struct Base<'a> {
    pub(crate) config: &'a Config,
    pub(crate) role: Role,
    pub(crate) folder: &'a Folder,
    pub(crate) catalogue: &'a Arc<Catalogue>,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

impl Base<'_> {
    /// Runs the live world: alone on its folder, or as one node of many.
    pub(crate) async fn run_live(
        &self,
        store: &Store,
        tasks: &Tasks,
    ) -> anyhow::Result<(Arc<WorldHandle>, JoinHandle<()>, Option<LeadTasks>)> {
        let Some(cluster) = &self.config.cluster else {
            let (live, writer) = self.open_world(World::Live)?;
            return Ok((live, spawn_world(|| writer.run(), tasks, "live")?, None));
        };
        let membership = cluster::membership(cluster, self.role).await?;
        let seat = membership.seat.clone();
        let options = self.options(World::Live, cluster::log_on_servers(cluster));
        let (live, node) = WorldHandle::join(options, Arc::clone(self.clock), membership);
        let thread = spawn_world(|| node.run(), tasks, "live")?;
        let watching = watch_lead(store.clone(), Arc::clone(&live), Arc::clone(self.clock));
        let tasks = tasks.apart();
        tasks.spawn("the watch over the lead", watching);
        let leading = seat.map(|seat| Leading::new(store.clone(), seat, cluster::holder_name()));
        if let Some(leading) = &leading {
            tasks.spawn("the keeper of the lead", leading.clone().keep());
            tasks.spawn("the desk", serve::keep_desk(Arc::clone(&live)));
        }
        Ok((live, thread, Some(LeadTasks { tasks, leading })))
    }

    pub(crate) fn open_world(&self, world: World) -> anyhow::Result<(Arc<WorldHandle>, Writer)> {
        let path = self.folder.log(world).display().to_string();
        WorldHandle::open(self.options_in_folder(world), Arc::clone(self.clock))
            .with_context(|| format!("the {world} world in {path} cannot be opened"))
    }

    fn options_in_folder(&self, world: World) -> WorldOptions {
        let place = match (world, &self.config.cluster) {
            // Each node makes the simulated world from its seed.
            (World::Sandbox, Some(_)) => Place::Nowhere,
            (World::Sandbox | World::Live, _) => {
                Place::Folder { dir: self.folder.log(world), options: Options::default() }
            }
        };
        self.options(world, place)
    }

    fn options(&self, world: World, log: Place) -> WorldOptions {
        let Self { config, catalogue, .. } = self;
        let plays = world == World::Sandbox && config.sandbox.enabled && self.role != Role::Ingest;
        let market = &config.market;
        WorldOptions {
            world,
            log,
            catalogue: Arc::clone(catalogue),
            refresh_interval: market.refresh_interval,
            stale_after: market.stale_after,
            wires: serve::WIRES,
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
        }
    }
}

/// What a node of many runs because of who writes.
pub(crate) struct LeadTasks {
    tasks: Tasks,
    /// Where it may be this one.
    leading: Option<Leading>,
}

impl LeadTasks {
    /// The thread that writes has ended: another node need not wait until the lead runs out.
    pub(crate) async fn stop(self) {
        self.tasks.stop();
        let Some(leading) = self.leading else { return };
        if let Err(error) = leading.give_up().await {
            tracing::warn!(%error, "the lead is not given back; it runs out by itself");
        }
    }
}

/// The simulated world can be made again from its seed at any time; its log is for looking back a little.
const SANDBOX_LOG_RETENTION: std::time::Duration = std::time::Duration::from_secs(2 * 3600);

/// A quarter of a contended core, and a request that wakes up meanwhile does not wait for the writer's turn to end.
const WRITER_NICENESS: i32 = 6;

/// Runs a world in a thread of its own.
pub(crate) fn spawn_world(
    work: impl FnOnce() + Send + 'static,
    tasks: &Tasks,
    world: Part,
) -> anyhow::Result<JoinHandle<()>> {
    let report = tasks.report_end(world);
    let name = format!("writer-{world}");
    let run = move || {
        let _report = report;
        // Where there are fewer cores than work, those who wait for an answer come before the next snapshot. On Linux
        // this is the thread's own priority.
        if let Err(error) = setpriority_process(None, WRITER_NICENESS) {
            tracing::debug!(%error, "the writer has the priority of everybody else");
        }
        work();
    };
    std::thread::Builder::new().name(name).spawn(run).context("a writer thread cannot start")
}

/// Carries out operations on the live world while no server runs; the caller holds the folder's lock.
pub(crate) fn operate_alone(
    config: &Config,
    folder: &Folder,
    operations: &[Operation],
) -> anyhow::Result<()> {
    let catalogue = catalogue::load(config)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let base = Base { config, role: Role::All, folder, catalogue: &catalogue, clock: &clock };
    Ok(serve::operate_alone(&base.options_in_folder(World::Live), &*clock, operations)?)
}
