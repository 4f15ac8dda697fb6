//! Many nodes: reaching what they share, and this node's part in it (`docs/adr/0005-many-machines.md`).
//!
//! No node needs another to have started, nor the servers: what cannot be reached is waited for.

mod clock;
mod key_register;
mod leadership;

use std::sync::Arc;
use std::time::Duration;

use accounts::{AccountError, Accounts, LeaseWorker, Need};
use anyhow::Context;
use change_log::{LeaderClient, LogLocation, StreamLocation, StreamLog};
use domain::{Catalogue, Clock, World};
use engine::{Membership, Seat};
use market::{Book, Operation};
use rand::random;
use store::{Store, StoreError};
use tokio::runtime::Handle;

use crate::cli::Role;
use crate::config::Cluster;

pub(crate) use clock::SharedClock;
pub(crate) use leadership::{LOG_CREATED, LeaderElection, watch_leader};

/// The longest payload of one entry of the log: more than any message of the door becomes.
const ENTRY_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// How long a start waits before it tries the database again: at first, and at the most.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What this node's right to let keys in rests on.
pub(crate) async fn keys(cluster: &Cluster) -> anyhow::Result<accounts::Cluster> {
    let among =
        key_register::open_cluster(cluster.nats_url.reveal(), cluster.replicas, cluster.key_trust)
            .await;
    among.context("cluster.nats_url cannot be used")
}

/// Waits until what a command line has written of keys is in force on every node.
pub(crate) async fn confirm(cluster: &Cluster, store: &Store, need: Need) -> anyhow::Result<()> {
    key_register::confirm_everywhere(store.clone(), keys(cluster).await?, need).await
}

/// The database as a node has joined it: the time is taken from it, the keys are read.
type Joined = (Store, Arc<SharedClock>, (Accounts, LeaseWorker));

/// Connects to the database and reads the accounts, waiting for it where it is not there, or goes again, before all is
/// read.
pub(crate) async fn join(cluster: &Cluster) -> anyhow::Result<Joined> {
    let keys = keys(cluster).await?;
    let mut pause = PAUSE_MIN;
    loop {
        match try_join(cluster, keys.clone()).await {
            Ok(joined) => return Ok(joined),
            Err(AccountError::Store(StoreError::Unavailable(cause))) => {
                tracing::warn!(
                    error = &*cause as &dyn std::error::Error,
                    "database.url is not reached yet; waiting for it"
                );
            }
            Err(error) => return Err(error).context("database.url cannot be used"),
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(PAUSE_MAX);
    }
}

async fn try_join(cluster: &Cluster, keys: accounts::Cluster) -> Result<Joined, AccountError> {
    let store = Store::connect(cluster.database_url.reveal()).await?;
    let clock = Arc::new(SharedClock::of(&store).await?);
    let time = Arc::clone(&clock) as Arc<dyn Clock>;
    let loaded = Accounts::load_node(store.clone(), time, keys).await?;
    Ok((store, clock, loaded))
}

/// Where the log of the live world is.
fn log_place(cluster: &Cluster) -> StreamLocation {
    log_at(cluster.nats_url.reveal().to_owned(), cluster.replicas)
}

/// The same on servers that need not be configured.
pub(crate) fn log_at(url: String, replicas: Option<usize>) -> StreamLocation {
    let name = World::Live.to_string();
    StreamLocation { url, name, replicas, entry_bytes_max: ENTRY_BYTES_MAX }
}

/// The same as a place, reached by the tasks of the runtime that this is called in.
pub(crate) fn log_on_servers(cluster: &Cluster) -> LogLocation {
    LogLocation::Stream { runtime: Handle::current(), location: log_place(cluster) }
}

/// The way to whichever node writes the live world's log.
pub(crate) async fn caller(cluster: &Cluster) -> anyhow::Result<LeaderClient> {
    LeaderClient::open(&log_place(cluster)).await.context("cluster.nats_url cannot be used")
}

/// What a node of this role needs to join the live world.
pub(crate) async fn membership(cluster: &Cluster, role: Role) -> anyhow::Result<Membership> {
    let seat = match role {
        Role::All | Role::Ingest => Some(Arc::new(Seat::default())),
        Role::Api => None,
    };
    Ok(Membership { caller: caller(cluster).await?, seat })
}

/// What this process is called where nodes are told apart: never the same twice.
pub(crate) fn holder_name() -> String {
    format!("{}-{:016x}", std::process::id(), random::<u64>())
}

/// Has the node that writes carry out an operator's words.
pub(crate) async fn operate(cluster: &Cluster, operations: &[Operation]) -> anyhow::Result<()> {
    let caller = caller(cluster).await?;
    for operation in operations {
        engine::operate_from_afar(&caller, operation).await?;
    }
    Ok(())
}

/// The live world as the log on the servers tells it, up to now.
pub(crate) fn read_book(cluster: &Cluster, catalogue: &Arc<Catalogue>) -> anyhow::Result<Book> {
    // The log is waited for by this thread, while tasks of others speak with the servers.
    let runtime = tokio::runtime::Runtime::new()?;
    let mut log = StreamLog::find(runtime.handle(), &log_place(cluster))
        .context("the log on cluster.nats_url is not reached")?;
    Ok(engine::replay_book(&mut log, catalogue)?)
}
