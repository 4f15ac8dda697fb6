//! Nodes that share a log on servers.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use accounts::{Accounts, Cluster};
use change_log::{LeaderClient, LogLocation, Options, StreamLocation};
use domain::{Clock, ManualClock, World};
use engine::{Leadership, Membership, WorldHandle, WorldOptions};
use store::Store;
use test_servers::Nats;
use tokio::runtime::{Handle, Runtime};

use crate::harness::{START, at};

/// Servers, and a separate runtime for the connections to them, which must continue while a test's thread blocks.
#[derive(Debug)]
pub(crate) struct TestLog {
    pub(crate) nats: Nats,
    runtime: Option<Runtime>,
}

impl TestLog {
    pub(crate) fn start() -> Self {
        Self { nats: Nats::start(1).unwrap(), runtime: Some(Runtime::new().unwrap()) }
    }

    pub(crate) fn servers(&self) -> LogServers {
        let runtime = self.runtime.as_ref().unwrap().handle().clone();
        LogServers { runtime, url: self.nats.url() }
    }
}

impl Drop for TestLog {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

/// Servers that hold the logs, and the runtime of the connections to them.
#[derive(Clone, Debug)]
pub(crate) struct LogServers {
    pub(crate) runtime: Handle,
    pub(crate) url: String,
}

impl LogServers {
    pub(crate) fn place(&self, world: World) -> StreamLocation {
        let (url, name) = (self.url.clone(), world.to_string());
        StreamLocation { url, name, replicas: None, entry_bytes_max: 1024 * 1024 }
    }
}

/// How a service joins a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Joining {
    pub(crate) servers: LogServers,
    pub(crate) clock: Arc<ManualClock>,
    /// `None`: it never writes.
    pub(crate) leadership: Option<Arc<Leadership>>,
}

impl Joining {
    pub(crate) fn new(test_log: &TestLog) -> Self {
        Self {
            servers: test_log.servers(),
            clock: Arc::new(ManualClock::at(at(START))),
            leadership: None,
        }
    }

    /// The same with its own leadership.
    pub(crate) fn electable(&self) -> (Self, Arc<Leadership>) {
        let leadership = Arc::new(Leadership::default());
        leadership.set_may_create_log(true);
        (Self { leadership: Some(Arc::clone(&leadership)), ..self.clone() }, leadership)
    }

    pub(super) async fn join(
        &self,
        options: WorldOptions,
        clock: &Arc<dyn Clock>,
    ) -> (Arc<WorldHandle>, JoinHandle<()>) {
        let leader_client = LeaderClient::open(&self.servers.place(World::Live)).await.unwrap();
        let membership = Membership { leader_client, leadership: self.leadership.clone() };
        let (handle, node) = WorldHandle::join(options, Arc::clone(clock), membership);
        tokio::spawn(engine::serve_forwards(Arc::clone(&handle)));
        (handle, std::thread::spawn(move || node.run()))
    }
}

/// The location of a world's log: the sandbox of a node in a cluster is generated from its seed.
pub(super) fn place(
    servers: Option<&LogServers>,
    joining: Option<&Joining>,
    dir: &Path,
    world: World,
) -> LogLocation {
    match servers {
        Some(_) if joining.is_some() && world == World::Sandbox => LogLocation::Nowhere,
        Some(servers) => {
            LogLocation::Stream { runtime: servers.runtime.clone(), location: servers.place(world) }
        }
        None => {
            LogLocation::Folder { dir: dir.join(world.to_string()), options: Options::default() }
        }
    }
}

/// The accounts of a single process, or of one node of a cluster.
pub(super) async fn load_accounts(
    store: &Store,
    clock: &Arc<dyn Clock>,
    cluster: Option<Cluster>,
) -> Accounts {
    let (accounts, worker) = match cluster {
        Some(cluster) => Accounts::load_node(store.clone(), Arc::clone(clock), cluster).await,
        None => Accounts::load(store.clone(), Arc::clone(clock)).await,
    }
    .unwrap();
    tokio::spawn(worker.run());
    accounts
}
