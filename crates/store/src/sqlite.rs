//! Opening a SQLite file. Every write is a `BEGIN IMMEDIATE` transaction, so that a reader never has to become a
//! writer, which SQLite refuses at once instead of waiting.

use std::{path::Path, time::Duration};

use sqlx::{
    Connection as _, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{StoreError, migrations};

include!(concat!(env!("OUT_DIR"), "/sqlite.rs"));

/// How long a writer waits for another process's transaction. Ours take a few milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLite has one writer at a time; the other connections are for readers.
const CONNECTIONS_MAX: u32 = 4;
/// How long an open is retried. Of two processes that open a new file at once, one fails: switching to WAL does not
/// wait for the lock, and both try the same migration. A retry succeeds.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
const OPEN_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The size of the write-ahead log after a checkpoint, in bytes, so that one large transaction does not occupy disk
/// space forever. SQLite makes a checkpoint every 1,000 pages.
const JOURNAL_SIZE_LIMIT: &str = "16777216";

pub(crate) async fn open(path: &Path) -> Result<SqlitePool, StoreError> {
    ensure_private(path).map_err(StoreError::unavailable)?;
    let started = tokio::time::Instant::now();
    loop {
        match try_open(path).await {
            Err(StoreError::Unavailable(_)) if started.elapsed() < OPEN_TIMEOUT => {}
            opened => return opened,
        }
        tokio::time::sleep(OPEN_RETRY_DELAY).await;
    }
}

/// Whether a file has none of our tables.
pub(crate) async fn is_new(path: &Path) -> Result<bool, StoreError> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Ok(found) if found.len() == 0 => return Ok(true),
        Ok(_) => {}
        Err(error) => return Err(StoreError::unavailable(error)),
    }
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let tables = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'api_key'";
    let count: i64 = sqlx::query_scalar(tables).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(count == 0)
}

async fn try_open(path: &Path) -> Result<SqlitePool, StoreError> {
    let pool = connect(options(path)).await?;
    migrations::of(MIGRATIONS).run(&pool).await?;
    Ok(pool)
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // A lease must be on disk before it is spent, or it could be granted twice after a power cut.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("journal_size_limit", JOURNAL_SIZE_LIMIT)
        .foreign_keys(true)
}

async fn connect(options: SqliteConnectOptions) -> Result<SqlitePool, StoreError> {
    let pool = SqlitePoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(BUSY_TIMEOUT)
        .after_release(|connection, _| Box::pin(has_no_transaction(connection)))
        .connect_with(options)
        .await?;
    Ok(pool)
}

/// Whether a connection can be reused. On a full disk SQLite rolls back by itself, the driver's rollback then fails,
/// and the driver refuses to begin another transaction on that connection: it is closed instead.
async fn has_no_transaction(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    // The driver's rollback may still be queued: commands run in order, so it has run when this one returns.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

/// Creates the file readable by its owner only; SQLite gives its side files the same mode.
fn ensure_private(path: &Path) -> std::io::Result<()> {
    private_options().append(true).create(true).open(path).map(drop)
}

/// Creates a new empty file that only its owner can read.
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    private_options().write(true).create_new(true).open(path).map(drop)
}

fn private_options() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod hostile {
    use crate::{LeaseRequest, Store, Window, database::Database};

    use super::*;

    /// A store on a disk that is full after a number of pages.
    async fn small(path: &Path, pages: u32) -> Store {
        open(path).await.unwrap().close().await;
        let options = options(path).pragma("max_page_count", pages.to_string());
        Store { database: Database::Sqlite(connect(options).await.unwrap()) }
    }

    fn ask(meter: usize) -> LeaseRequest {
        LeaseRequest {
            meter_id: format!("key_{meter}").into(),
            window: Window::Day,
            start_ms: 0,
            limit: 100,
            divisor: 4,
            lease_max: 100,
            least: 1,
        }
    }

    #[tokio::test]
    async fn every_write_works_again_once_a_full_disk_has_room() {
        let dir = tempfile::tempdir().unwrap();
        let store = small(&dir.path().join("accounts.db"), 100).await;
        let filling = "x".repeat(20_000);
        let mut filled = 0;
        // Small writes too, until no more fit; on every connection, several times.
        while store.set_setting(&format!("filling_{filled}"), Some(&filling)).await.is_ok() {
            filled += 1;
        }
        let mut meter = 0;
        while store.lease(&[ask(meter)]).await.is_ok() {
            meter += 1;
        }
        for _ in 0..10 {
            assert!(store.set_setting("more", Some(&filling)).await.is_err());
            assert!(store.lease(&[ask(meter)]).await.is_err());
        }
        assert!(
            filled > 2 && store.setting("filling_0").await.unwrap().is_some(),
            "reading goes on"
        );

        // Space is freed, without reopening anything.
        store.set_setting("filling_0", None).await.unwrap();
        store.set_setting("filling_1", None).await.unwrap();
        for _ in 0..10 {
            store.set_setting("more", Some("good")).await.unwrap();
            store.probe().await.unwrap();
            assert_eq!(store.lease(&[ask(meter)]).await.unwrap().len(), 1);
            meter += 1;
        }
    }
}
