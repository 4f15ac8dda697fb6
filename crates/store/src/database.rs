//! One statement, two databases: a text that both understand, the values to put into it, and where to run it.
//!
//! What differs between SQLite and PostgreSQL in how they are reached is in here and in `lib.rs`; the few
//! statements that differ stand beside each other where they are used. On PostgreSQL nothing waits for
//! longer than [`ANSWER_TIME_MAX`], whatever the network does: a connection that did not answer is closed,
//! never used again.

use std::{borrow::Cow, time::Duration};

use sqlx::{
    Arguments as _, Executor as _, FromRow, PgPool, Postgres, Sqlite, SqlitePool, Transaction,
    pool::PoolConnection,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};
use tokio::time::{error::Elapsed, timeout};

use crate::StoreError;

/// How long one statement may take on its way to PostgreSQL and back. The server itself gives up a little
/// earlier (`STATEMENT_TIME_MAX`), so that this is for networks, not for locks.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(8);

/// The connections of a store.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// A transaction that writes. Dropped without a commit, it is rolled back.
pub(crate) enum Tx {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(PgTx),
}

/// A transaction on a connection that can be given up, which `sqlx::Transaction` does not let go of.
pub(crate) struct PgTx {
    pub(crate) connection: PoolConnection<Postgres>,
    state: PgTxState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PgTxState {
    Open,
    /// A statement failed: PostgreSQL would answer a commit with a silent rollback.
    Failed,
    Ended,
}

/// What a transaction does alone, wherever else the same is being done.
///
/// SQLite has one writer at a time anyway; PostgreSQL locks only rows, and these are about rows that are not there yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lock<'a> {
    /// Deciding which one-time links are in force.
    Links,
    /// Deciding which sessions of an account are.
    Sessions { account_id: &'a str },
    /// Making keys of an account, or suspending it with all of them.
    Keys { account_id: &'a str },
    /// Deciding who runs the service.
    Operators,
}

/// Where a statement that reads is run.
pub(crate) enum On<'a> {
    Database(&'a Database),
    Tx(&'a mut Tx),
}

/// A value in a statement.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    Text(Option<Cow<'a, str>>),
    Number(Option<i64>),
    Bytes(Option<&'a [u8]>),
}

/// A row that both databases can yield.
pub(crate) trait Record:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> Record for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

/// Lets statements yield a row that is made from another, which has the columns as they are stored.
macro_rules! decode_from {
    ($row:ty, $raw:ty) => {
        impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for $row
        where
            $raw: sqlx::FromRow<'r, R>,
        {
            fn from_row(row: &'r R) -> sqlx::Result<Self> {
                let raw = <$raw as sqlx::FromRow<'r, R>>::from_row(row)?;
                Self::try_from(raw).map_err(|error| sqlx::Error::Decode(error.into()))
            }
        }
    };
}

/// An enum that a column holds as text.
macro_rules! text_column {
    ($type:ident, $what:literal, [$($variant:ident = $text:literal),+]) => {
        impl $type {
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl TryFrom<String> for $type {
            type Error = $crate::StoreError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                match text.as_str() {
                    $($text => Ok(Self::$variant),)+
                    _ => Err($crate::StoreError::corrupt(concat!("unknown ", $what))),
                }
            }
        }
    };
}

pub(crate) use {decode_from, text_column};

/// What a statement yielded.
enum Rows {
    Sqlite(Vec<SqliteRow>),
    Postgres(Vec<PgRow>),
}

impl Rows {
    fn decode<R: Record>(&self) -> Result<Vec<R>, StoreError> {
        let decoded: sqlx::Result<Vec<R>> = match self {
            Self::Sqlite(rows) => rows.iter().map(R::from_row).collect(),
            Self::Postgres(rows) => rows.iter().map(R::from_row).collect(),
        };
        Ok(decoded?)
    }
}

/// A statement with its values, `$1` first.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    text: &'static str,
    values: Vec<Value<'a>>,
}

/// Begins a statement.
pub(crate) const fn query<'a>(text: &'static str) -> Query<'a> {
    Query { text, values: Vec::new() }
}

impl<'a> Query<'a> {
    pub(crate) fn bind(mut self, value: impl Into<Value<'a>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Runs a statement that yields no rows, and says how many it changed.
    pub(crate) async fn execute(self, tx: &mut Tx) -> Result<u64, StoreError> {
        match tx {
            Tx::Sqlite(tx) => {
                let arguments = self.sqlite()?;
                let done = sqlx::query_with(self.text, arguments).execute(&mut **tx).await?;
                Ok(done.rows_affected())
            }
            Tx::Postgres(tx) => {
                let arguments = self.postgres()?;
                let work = sqlx::query_with(self.text, arguments).execute(&mut *tx.connection);
                let done = timeout(ANSWER_TIME_MAX, work).await;
                Ok(tx.settle(done)?.rows_affected())
            }
        }
    }

    /// Every row that the statement yields.
    pub(crate) async fn fetch_all<R: Record>(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Vec<R>, StoreError> {
        self.rows(on.into()).await?.decode()
    }

    async fn rows(self, on: On<'_>) -> Result<Rows, StoreError> {
        match on {
            On::Database(Database::Sqlite(pool)) => {
                let arguments = self.sqlite()?;
                Ok(Rows::Sqlite(sqlx::query_with(self.text, arguments).fetch_all(pool).await?))
            }
            On::Tx(Tx::Sqlite(tx)) => {
                let arguments = self.sqlite()?;
                let work = sqlx::query_with(self.text, arguments).fetch_all(&mut **tx);
                Ok(Rows::Sqlite(work.await?))
            }
            On::Database(Database::Postgres(pool)) => {
                let arguments = self.postgres()?;
                let mut connection = pool.acquire().await?;
                let work = sqlx::query_with(self.text, arguments).fetch_all(&mut *connection);
                let rows = timeout(ANSWER_TIME_MAX, work).await;
                settle(rows, &mut connection).map(Rows::Postgres)
            }
            On::Tx(Tx::Postgres(tx)) => {
                let arguments = self.postgres()?;
                let work = sqlx::query_with(self.text, arguments).fetch_all(&mut *tx.connection);
                let rows = timeout(ANSWER_TIME_MAX, work).await;
                tx.settle(rows).map(Rows::Postgres)
            }
        }
    }

    /// The one row that the statement can yield.
    pub(crate) async fn fetch_optional<R: Record>(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Option<R>, StoreError> {
        Ok(self.fetch_all(on).await?.pop())
    }

    /// The one number that the statement always yields.
    pub(crate) async fn fetch_number(self, on: impl Into<On<'_>>) -> Result<i64, StoreError> {
        let row: Option<(i64,)> = self.fetch_optional(on).await?;
        row.map(|(number,)| number).ok_or_else(|| StoreError::corrupt("a count yielded no row"))
    }

    fn sqlite(&self) -> Result<SqliteArguments, StoreError> {
        let mut arguments = SqliteArguments::default();
        for value in &self.values {
            let added = match value {
                Value::Text(text) => arguments.add(text.as_deref()),
                Value::Number(number) => arguments.add(*number),
                Value::Bytes(bytes) => arguments.add(*bytes),
            };
            added.map_err(StoreError::Corrupt)?;
        }
        Ok(arguments)
    }

    fn postgres(&self) -> Result<PgArguments, StoreError> {
        let mut arguments = PgArguments::default();
        for value in &self.values {
            let added = match value {
                Value::Text(text) => arguments.add(text.as_deref()),
                Value::Number(number) => arguments.add(*number),
                Value::Bytes(bytes) => arguments.add(*bytes),
            };
            added.map_err(StoreError::Corrupt)?;
        }
        Ok(arguments)
    }
}

impl Database {
    /// Begins to write.
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        Ok(match self {
            Self::Sqlite(pool) => Tx::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => {
                let mut tx = PgTx { connection: pool.acquire().await?, state: PgTxState::Open };
                let begun = timeout(ANSWER_TIME_MAX, tx.connection.execute("BEGIN")).await;
                tx.settle(begun)?;
                Tx::Postgres(tx)
            }
        })
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl Tx {
    /// Waits until nobody else is at it; then nobody else is until this transaction ends.
    pub(crate) async fn lock(&mut self, lock: Lock<'_>) -> Result<(), StoreError> {
        let (class, subject) = match lock {
            Lock::Links => (1, ""),
            Lock::Sessions { account_id } => (2, account_id),
            Lock::Keys { account_id } => (3, account_id),
            Lock::Operators => (4, ""),
        };
        if let Self::Postgres(tx) = self {
            let work = sqlx::query("SELECT pg_advisory_xact_lock($1, hashtext($2))")
                .bind(class)
                .bind(subject)
                .execute(&mut *tx.connection);
            let locked = timeout(ANSWER_TIME_MAX, work).await;
            tx.settle(locked)?;
        }
        Ok(())
    }

    /// The time by the database's clock.
    pub(crate) async fn now_ms(&mut self) -> Result<i64, StoreError> {
        let text = match self {
            Self::Sqlite(_) => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres(_) => {
                "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
            }
        };
        query(text).fetch_number(self).await
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(tx) => Ok(tx.commit().await?),
            Self::Postgres(mut tx) => {
                if tx.state != PgTxState::Open {
                    return Err(StoreError::corrupt("a failed transaction was to be committed"));
                }
                let done = timeout(ANSWER_TIME_MAX, tx.connection.execute("COMMIT")).await;
                tx.settle(done)?;
                tx.state = PgTxState::Ended;
                Ok(())
            }
        }
    }
}

impl PgTx {
    /// What a statement in this transaction came to.
    pub(crate) fn settle<T>(
        &mut self,
        answered: Result<sqlx::Result<T>, Elapsed>,
    ) -> Result<T, StoreError> {
        let settled = settle(answered, &mut self.connection);
        if settled.is_err() {
            self.state = PgTxState::Failed;
        }
        settled
    }
}

impl Drop for PgTx {
    fn drop(&mut self) {
        // Rolled back by the server, which notices even where no rollback would get through.
        if self.state != PgTxState::Ended {
            self.connection.close_on_drop();
        }
    }
}

/// What a statement came to. After anything but a plain refusal the connection is not to be trusted.
fn settle<T>(
    answered: Result<sqlx::Result<T>, Elapsed>,
    connection: &mut PoolConnection<Postgres>,
) -> Result<T, StoreError> {
    match answered {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            if !matches!(error, sqlx::Error::Database(_)) {
                connection.close_on_drop();
            }
            Err(error.into())
        }
        Err(elapsed) => {
            connection.close_on_drop();
            Err(StoreError::Unavailable(Box::new(elapsed)))
        }
    }
}

impl<'a> From<&'a Database> for On<'a> {
    fn from(database: &'a Database) -> Self {
        Self::Database(database)
    }
}

impl<'a> From<&'a mut Tx> for On<'a> {
    fn from(tx: &'a mut Tx) -> Self {
        Self::Tx(tx)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(text)))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(Cow::Owned(text)))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::Owned))
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'a> From<Option<&'a [u8]>> for Value<'a> {
    fn from(bytes: Option<&'a [u8]>) -> Self {
        Self::Bytes(bytes)
    }
}
