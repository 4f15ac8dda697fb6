//! Opening a SQLite file. Every write to it is a `BEGIN IMMEDIATE` transaction, so that a reader never has to
//! become a writer half-way, which SQLite refuses at once instead of waiting.

use std::{path::Path, time::Duration};

use sqlx::{
    SqlitePool,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::StoreError;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

/// How long a writer waits for another process's transaction. Ours are a few milliseconds long.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// One writer at a time is all SQLite has; the rest are for readers.
const CONNECTIONS_MAX: u32 = 4;
/// Two processes opening a new file at once trip over each other: switching to WAL does not wait for
/// the lock, and both try the same migration. The loser only has to look again.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);
const OPEN_RETRY_DELAY: Duration = Duration::from_millis(50);

pub(crate) async fn open(path: &Path) -> Result<SqlitePool, StoreError> {
    make_private(path).map_err(StoreError::unavailable)?;
    let started = tokio::time::Instant::now();
    loop {
        match try_open(path).await {
            Err(StoreError::Unavailable(_)) if started.elapsed() < OPEN_PATIENCE => {}
            opened => return opened,
        }
        tokio::time::sleep(OPEN_RETRY_DELAY).await;
    }
}

async fn try_open(path: &Path) -> Result<SqlitePool, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // A lease must be on disk before it is spent, or a power cut could hand it out twice.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true);
    let pool = SqlitePoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(BUSY_TIMEOUT)
        .connect_with(options)
        .await?;
    MIGRATIONS.run(&pool).await?;
    Ok(pool)
}

/// Makes the file readable by its owner alone; SQLite gives its side files the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}
