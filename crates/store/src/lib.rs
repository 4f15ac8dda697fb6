//! The only SQL: API keys, feed tokens, usage, settings, people and what they did, in one SQLite file.
//!
//! The server and any number of command-line processes have the file open at once. Every write is one
//! `BEGIN IMMEDIATE` transaction, so that a reader never has to become a writer half-way (which SQLite
//! refuses at once instead of waiting). Statements are written so that PostgreSQL takes them as they are.
//! No logic lives here beyond what must be decided inside a transaction.

mod access;
mod account;
mod audit;
mod error;
mod feed;
mod history;
mod key;
mod link;
mod session;
mod setting;
mod usage;

use std::{path::Path, time::Duration};

use sqlx::{
    Sqlite, SqlitePool, Transaction,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

pub use crate::{
    access::{AccessRow, AccessState},
    account::{AccountRow, Role, Totp},
    audit::{AuditEntry, AuditRow},
    error::StoreError,
    feed::FeedRow,
    history::{CountRow, Outcome, Step},
    key::{Digest, KeyEnd, KeyKind, KeyRow, KeyUse},
    link::{LinkPurpose, LinkRow},
    session::{SessionRow, Stage},
    usage::{Lease, LeaseAsk, Unspent, UsageRow, Window, WindowStarts},
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

/// How long a writer waits for another process's transaction. Ours are a few milliseconds long.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// One writer at a time is all SQLite has; the rest are for readers.
const CONNECTIONS_MAX: u32 = 4;
/// Two processes opening a new file at once trip over each other: switching to WAL does not wait for
/// the lock, and both try the same migration. The loser only has to look again.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);
const OPEN_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A handle to the store; clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: SqlitePool,
}

impl Store {
    /// Opens the file, making it where there is none, and brings its tables up to date.
    ///
    /// # Errors
    /// The file cannot be made, opened or locked, is no database, or was written by a newer version.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        make_private(path).map_err(|cause| StoreError::Unavailable(Box::new(cause)))?;
        let started = tokio::time::Instant::now();
        loop {
            match Self::try_open(path).await {
                Err(StoreError::Unavailable(_)) if started.elapsed() < OPEN_PATIENCE => {}
                opened => return opened,
            }
            tokio::time::sleep(OPEN_RETRY_DELAY).await;
        }
    }

    async fn try_open(path: &Path) -> Result<Self, StoreError> {
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
        Ok(Self { pool })
    }

    /// Closes the connections; later calls on any clone fail.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn begin_write(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?)
    }
}

/// Makes the file readable by its owner alone; SQLite gives its side files the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}
