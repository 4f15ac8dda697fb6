//! The only SQL: API keys, feed tokens, usage, settings, people and the audit log, in one SQLite file or in a
//! PostgreSQL database that many nodes share.
//!
//! Both have the same tables and run the same statements except where a module says why not; one test suite runs on
//! both. Servers and any number of command-line processes may have the store open at once. Every write is one
//! transaction, and its `WHERE` states its preconditions. The only logic here is what must be decided inside a
//! transaction.
//!
//! Every function fails if the database cannot be reached or does not answer in time; a failed write has changed
//! nothing. Functions document only deviations.

mod access;
mod account;
mod adapter;
mod audit;
mod database;
mod error;
mod feed;
mod key;
mod key_change;
mod leadership;
mod link;
mod migrations;
mod postgres;
mod session;
mod setting;
mod sqlite;
mod stream_slot;
mod transfer;
mod usage;
mod usage_history;

use std::path::Path;

use crate::database::{Database, Tx};
pub use crate::{
    access::{AccessRow, AccessState},
    account::{AccountRow, Allowance, Role, Totp},
    adapter::{AdapterRow, AdapterSampleRow},
    audit::{AuditEntry, AuditFilter, AuditRow},
    error::StoreError,
    feed::FeedRow,
    key::{AccountQuota, Digest, KeyCountLimit, KeyEnd, KeyInsert, KeyKind, KeyRow, KeyUse},
    key_change::{Behind, KeyChange, Listed, NODE_SILENT_MS},
    leadership::Leadership,
    link::{LinkPurpose, LinkRow},
    session::{SessionRow, Stage},
    stream_slot::StreamsWanted,
    transfer::{Transferred, transfer},
    usage::{Lease, LeaseRequest, Unspent, UsageRow, Window, WindowStarts},
    usage_history::{CountRow, Outcome, Step},
};

/// A handle to the store; clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens a SQLite file, creating it if it does not exist, and migrates its tables. Refuses a file that is no
    /// database and one that a newer version has written.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let pool = sqlite::open(path.as_ref()).await?;
        Ok(Self { database: Database::Sqlite(pool) })
    }

    /// Whether [`Store::open`] would create a new store: the file does not exist, is empty, or has none of our tables.
    pub async fn is_new(path: impl AsRef<Path>) -> Result<bool, StoreError> {
        sqlite::is_new(path.as_ref()).await
    }

    /// Connects to a PostgreSQL database and migrates its tables; of several processes that do so at once, one does
    /// the work. Refuses a database that is not in UTF-8 or that a newer version has written.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let pool = postgres::connect(url).await?;
        Ok(Self { database: Database::Postgres(pool) })
    }

    /// Copies a SQLite file, as it is at one instant, into a new file that only its owner can read. Writers are not
    /// delayed. Refuses a PostgreSQL database and an existing file.
    pub async fn back_up(&self, path: &Path) -> Result<(), StoreError> {
        let Database::Sqlite(pool) = &self.database else {
            return Err(StoreError::unavailable("a PostgreSQL database is backed up with pg_dump"));
        };
        let text =
            path.to_str().ok_or_else(|| StoreError::unavailable("the path is not in UTF-8"))?;
        // Created first: SQLite would make it readable by everybody, and it contains password hashes.
        sqlite::create_private(path).map_err(StoreError::unavailable)?;
        sqlx::query("VACUUM INTO $1").bind(text).execute(pool).await?;
        Ok(())
    }

    /// Closes the connections; later calls on any clone fail.
    pub async fn close(&self) {
        self.database.close().await;
    }

    async fn begin_write(&self) -> Result<Tx, StoreError> {
        self.database.begin().await
    }
}

/// The `LIKE` pattern for texts that contain a lower-case text, with `!` as escape. The two databases agree on the
/// case of ASCII letters only.
fn like_pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.to_ascii_lowercase().chars() {
        if matches!(letter, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}
