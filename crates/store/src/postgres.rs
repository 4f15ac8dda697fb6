//! Connecting to PostgreSQL, with a timeout on everything.

use std::time::Duration;

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

use crate::{StoreError, migrations};

include!(concat!(env!("OUT_DIR"), "/postgres.rs"));

/// Maximum number of connections of a node: it writes little at a time, and a thousand nodes share one database.
const CONNECTIONS_MAX: u32 = 4;
/// Time after which an idle connection is closed.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a statement waits for a connection, which may have to be established.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// Set on the server: maximum time of one statement, waiting for locks included. Ours take a few milliseconds.
const STATEMENT_TIME_MAX: &str = "5s";
/// Set on the server: how long a transaction may be idle, so that a paused node does not hold its locks. Less than a
/// statement may wait: a node that waits for such a lock, for example for the leadership of the paused node, gets it.
const OPEN_TIME_MAX: &str = "3s";
/// Creating an index of a large table takes long, and other nodes wait for it.
const MIGRATE_TIME_MAX: Duration = Duration::from_secs(600);

pub(crate) async fn connect(url: &str) -> Result<PgPool, StoreError> {
    let options = parse(url)?;
    migrate(options.clone()).await?;
    let bounded = options.options([
        ("statement_timeout", STATEMENT_TIME_MAX),
        ("idle_in_transaction_session_timeout", OPEN_TIME_MAX),
    ]);
    Ok(PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_TIME_MAX)
        .idle_timeout(IDLE_TIME_MAX)
        .connect_with(bounded)
        .await?)
}

pub(crate) fn parse(url: &str) -> Result<PgConnectOptions, StoreError> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(StoreError::Address);
    }
    let options: PgConnectOptions = url.parse().map_err(|_| StoreError::Address)?;
    Ok(options
        .application_name("linesman")
        // A lease must be on disk before it is spent, whatever the server's setting.
        .options([("synchronous_commit", "on")]))
}

/// Migrates the tables on a separate connection, which may take long.
async fn migrate(options: PgConnectOptions) -> Result<(), StoreError> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(CONNECT_TIME_MAX)
        .connect_with(options)
        .await?;
    let encoding: String = sqlx::query_scalar("SHOW server_encoding").fetch_one(&pool).await?;
    if encoding != "UTF8" {
        return Err(StoreError::corrupt(
            "the database is not in UTF-8; make one with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
        ));
    }
    refuse_newer(&pool).await?;
    // Migrations of a newer program were checked above.
    let mut migrations = migrations::of(MIGRATIONS);
    migrations.set_ignore_missing(true);
    timeout(MIGRATE_TIME_MAX, migrations.run(&pool)).await.map_err(StoreError::unavailable)??;
    pool.close().await;
    Ok(())
}

/// Refuses a database that a newer program has migrated, unless every such migration is marked as compatible with
/// this program: in a rolling upgrade old nodes start while new ones run.
async fn refuse_newer(pool: &PgPool) -> Result<(), StoreError> {
    let (migrated, floored): (bool, bool) = sqlx::query_as(
        "SELECT to_regclass('_sqlx_migrations') IS NOT NULL, to_regclass('schema_floor') IS NOT NULL",
    )
    .fetch_one(pool)
    .await?;
    if !migrated {
        return Ok(());
    }
    let known: Vec<i64> = MIGRATIONS.iter().map(|(version, ..)| *version).collect();
    let newest = known.iter().copied().max().unwrap_or(0);
    let unknown: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE version <> ALL ($1)")
            .bind(&known)
            .fetch_all(pool)
            .await?;
    let compatible: Vec<i64> = if floored {
        sqlx::query_scalar(
            "SELECT version FROM schema_floor WHERE version > $1 AND oldest_known <= $1",
        )
        .bind(newest)
        .fetch_all(pool)
        .await?
    } else {
        Vec::new()
    };
    let refused: Vec<i64> =
        unknown.into_iter().filter(|version| !compatible.contains(version)).collect();
    match refused.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(StoreError::Corrupt(
            format!("its migration {first} is newer than this program; run the newer program")
                .into(),
        )),
    }
}
