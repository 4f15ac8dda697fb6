//! The only SQL: API keys, feed tokens, usage, settings, people and what they did, in one SQLite file or in
//! a PostgreSQL database that many nodes share.
//!
//! Both hold the same tables and take the same statements but where a module says why not; one suite of tests
//! is run against both. Servers and any number of command-line processes have the store open at once. Every
//! write is one transaction, and says in its `WHERE` what it relies on. No logic lives here beyond what must be
//! decided inside a transaction.

mod access;
mod account;
mod audit;
mod database;
mod error;
mod feed;
mod key;
mod key_change;
mod leadership;
mod link;
mod postgres;
mod session;
mod setting;
mod sqlite;
mod transfer;
mod usage;
mod usage_history;

use std::path::Path;

use crate::database::{Database, Tx};
pub use crate::{
    access::{AccessRow, AccessState},
    account::{AccountRow, Allowance, Role, Totp},
    audit::{AuditEntry, AuditFilter, AuditRow},
    error::StoreError,
    feed::FeedRow,
    key::{AccountQuota, Digest, KeyCountLimit, KeyEnd, KeyInsert, KeyKind, KeyRow, KeyUse},
    key_change::{Behind, KeyChange, Listed, NODE_SILENT_MS},
    leadership::Leadership,
    link::{LinkPurpose, LinkRow},
    session::{SessionRow, Stage},
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
    /// Opens a SQLite file, making it where there is none, and brings its tables up to date.
    ///
    /// # Errors
    /// The file cannot be made, opened or locked, is no database, or was written by a newer version.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let pool = sqlite::open(path.as_ref()).await?;
        Ok(Self { database: Database::Sqlite(pool) })
    }

    /// Whether [`Store::open`] would make a new store of a SQLite file: it is not there, is empty, or has none of our
    /// tables.
    ///
    /// # Errors
    /// The file cannot be read or is no database.
    pub async fn is_new(path: impl AsRef<Path>) -> Result<bool, StoreError> {
        sqlite::is_new(path.as_ref()).await
    }

    /// Connects to a PostgreSQL database and brings its tables up to date. Any number of processes may
    /// do so at once; one of them does the work.
    ///
    /// # Errors
    /// The address is none, the database cannot be reached in time, is not in UTF-8, or was written by a
    /// newer version.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let pool = postgres::connect(url).await?;
        Ok(Self { database: Database::Postgres(pool) })
    }

    /// Writes all of a SQLite file, as it is at one instant, into a new one that only its owner can read. Writers
    /// wait only for what they would wait for anyway.
    ///
    /// # Errors
    /// There is such a file already, it cannot be written, or the store is a PostgreSQL database.
    pub async fn back_up(&self, path: &Path) -> Result<(), StoreError> {
        let Database::Sqlite(pool) = &self.database else {
            return Err(StoreError::unavailable("a PostgreSQL database is backed up with pg_dump"));
        };
        let text =
            path.to_str().ok_or_else(|| StoreError::unavailable("the path is not in UTF-8"))?;
        // Made first: SQLite would make it readable by everybody, and there are password hashes in it.
        sqlite::make_new(path).map_err(StoreError::unavailable)?;
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

/// The pattern for what contains a text in small letters, whatever signs are in it. The two databases agree on ASCII
/// letters alone.
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
