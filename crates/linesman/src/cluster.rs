//! A node of a cluster: the database and the log that nodes share (`docs/adr/0005-many-machines.md`).
//!
//! Nodes and servers may start in any order: a node waits for servers that it cannot reach.

mod clock;
mod key_register;
mod leadership;

use std::sync::Arc;
use std::time::Duration;

use accounts::{AccountError, Accounts, LeaseWorker, Need};
use anyhow::Context;
use change_log::{LeaderClient, LogLocation, StreamLocation, StreamLog};
use domain::{Catalogue, Clock, World};
use engine::{Leadership, Membership};
use market::{Book, Operation};
use rand::random;
use store::{Store, StoreError};
use tokio::runtime::Handle;

use crate::cli::Role;
use crate::config::Cluster;

pub(crate) use clock::SharedClock;
pub(crate) use leadership::{LOG_CREATED, LeaderElection, watch_leader};

/// Maximum payload of a log entry: more than any ingest message needs.
const ENTRY_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// Pause before a start retries the database: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The key register and the rules by which this node may accept keys.
pub(crate) async fn keys(cluster: &Cluster) -> anyhow::Result<accounts::Cluster> {
    let among =
        key_register::open_cluster(cluster.nats_url.reveal(), cluster.replicas, cluster.key_trust)
            .await;
    among.context("cluster.nats_url cannot be used")
}

/// Waits until a change of keys by the command line is effective on every node.
pub(crate) async fn confirm(cluster: &Cluster, store: &Store, need: Need) -> anyhow::Result<()> {
    key_register::confirm_everywhere(store.clone(), keys(cluster).await?, need).await
}

/// The connected database, its clock, and the accounts read from it.
type Joined = (Store, Arc<SharedClock>, (Accounts, LeaseWorker));

/// Connects to the database and reads the accounts; waits while it is unreachable.
pub(crate) async fn join(cluster: &Cluster) -> anyhow::Result<Joined> {
    let keys = keys(cluster).await?;
    let mut pause = PAUSE_MIN;
    loop {
        match try_join(cluster, keys.clone()).await {
            Ok(joined) => return Ok(joined),
            Err(AccountError::Store(StoreError::Unavailable(cause))) => {
                let error = &*cause as &dyn std::error::Error;
                tracing::warn!(event = "database.unreachable", error, "waiting for database.url");
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

/// The location of the live world's log.
fn log_location(cluster: &Cluster) -> StreamLocation {
    log_at(cluster.nats_url.reveal().to_owned(), cluster.replicas)
}

/// The location of the live world's log on the given servers.
pub(crate) fn log_at(url: String, replicas: Option<usize>) -> StreamLocation {
    let name = World::Live.to_string();
    StreamLocation { url, name, replicas, entry_bytes_max: ENTRY_BYTES_MAX }
}

/// The location of the log for the engine, with the current runtime.
pub(crate) fn log_on_servers(cluster: &Cluster) -> LogLocation {
    LogLocation::Stream { runtime: Handle::current(), location: log_location(cluster) }
}

/// A client of the leader of the live world.
pub(crate) async fn leader_client(cluster: &Cluster) -> anyhow::Result<LeaderClient> {
    LeaderClient::open(&log_location(cluster)).await.context("cluster.nats_url cannot be used")
}

/// The part of a node with this role in the live world.
pub(crate) async fn membership(cluster: &Cluster, role: Role) -> anyhow::Result<Membership> {
    let leadership = match role {
        Role::All | Role::Ingest => Some(Arc::new(Leadership::default())),
        Role::Api => None,
    };
    Ok(Membership { leader_client: leader_client(cluster).await?, leadership })
}

/// A unique name of this process among nodes.
pub(crate) fn holder_name() -> String {
    format!("{}-{:016x}", std::process::id(), random::<u64>())
}

/// Lets the leader execute an operator's changes.
pub(crate) async fn operate(cluster: &Cluster, operations: &[Operation]) -> anyhow::Result<()> {
    let leader = leader_client(cluster).await?;
    for operation in operations {
        engine::operate_remotely(&leader, operation).await?;
    }
    Ok(())
}

/// The live world, replayed from the log on the servers up to now.
pub(crate) fn read_book(cluster: &Cluster, catalogue: &Arc<Catalogue>) -> anyhow::Result<Book> {
    // This thread waits for the log while the runtime's tasks talk to the servers.
    let runtime = tokio::runtime::Runtime::new()?;
    let mut log = StreamLog::find(runtime.handle(), &log_location(cluster))
        .context("the log on cluster.nats_url is not reached")?;
    Ok(engine::replay_book(&mut log, catalogue)?)
}
