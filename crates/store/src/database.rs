//! One statement for two databases: its text, its values, and the connection or transaction that runs it.
//!
//! Differences in reaching SQLite and PostgreSQL are confined to this module and `lib.rs`; the few statements that
//! differ stand next to each other where they are used. On PostgreSQL nothing waits longer than [`ANSWER_TIME_MAX`],
//! whatever the network does: a connection that did not answer is closed and never reused.

use std::pin::Pin;
use std::time::Duration;

use sqlx::{
    Arguments as _, AssertSqlSafe, Encode, Executor as _, FromRow, PgPool, Postgres,
    SqlSafeStr as _, SqlStr, Sqlite, SqlitePool, Transaction, Type,
    error::BoxDynError,
    pool::PoolConnection,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};
use tokio::time::{error::Elapsed, timeout};

use crate::StoreError;

/// Maximum time of one statement to PostgreSQL and back. The server's own limit is shorter (`STATEMENT_TIME_MAX`), so
/// this one covers networks, not locks.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(8);

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

/// A transaction on a connection that can be closed, which `sqlx::Transaction` does not allow.
pub(crate) struct PgTx {
    connection: PoolConnection<Postgres>,
    state: PgTxState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PgTxState {
    Open,
    /// A statement failed: PostgreSQL would answer a commit with a silent rollback.
    Failed,
    Ended,
}

/// An operation that only one transaction at a time may perform, over all processes.
///
/// SQLite has one writer at a time anyway; PostgreSQL locks only rows, and these operations concern rows that do not
/// exist yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lock<'a> {
    /// Replacing one-time links.
    Links,
    /// Adding sessions of an account.
    Sessions { account_id: &'a str },
    /// Creating keys of an account, or suspending it with all of them.
    Keys { account_id: &'a str },
    /// Suspending operators.
    Operators,
    /// Counting the streams of keys.
    Streams,
}

/// Where a reading statement runs.
pub(crate) enum On<'a> {
    Database(&'a Database),
    Tx(&'a mut Tx),
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

/// A value that both databases can take.
pub(crate) trait Value<'a>: Send + Sync {
    fn add_to_sqlite(&self, to: &mut SqliteArguments) -> Result<(), BoxDynError>;
    fn add_to_postgres(&self, to: &mut PgArguments) -> Result<(), BoxDynError>;
}

impl<'a, T> Value<'a> for T
where
    T: Encode<'a, Sqlite> + Type<Sqlite> + Encode<'a, Postgres> + Type<Postgres> + Send + Sync,
{
    fn add_to_sqlite(&self, to: &mut SqliteArguments) -> Result<(), BoxDynError> {
        to.add(self)
    }

    fn add_to_postgres(&self, to: &mut PgArguments) -> Result<(), BoxDynError> {
        to.add(self)
    }
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

/// A row of a table.
pub(crate) trait Table: Record {
    const NAME: &'static str;
    /// Listed explicitly: a newer version of the program may add columns while this one runs.
    const COLUMNS: &'static str;
}

/// Decodes a row whose fields are not simply its columns, for both databases.
macro_rules! from_row {
    ($type:ty, |$row:ident| $decoded:expr) => {
        $crate::database::from_row!($type, sqlx::sqlite::SqliteRow, $row, $decoded);
        $crate::database::from_row!($type, sqlx::postgres::PgRow, $row, $decoded);
    };
    ($type:ty, $from:ty, $row:ident, $decoded:expr) => {
        impl sqlx::FromRow<'_, $from> for $type {
            fn from_row($row: &$from) -> sqlx::Result<Self> {
                use sqlx::Row as _;
                Ok($decoded)
            }
        }
    };
}

/// Decodes a row whose fields are columns of the same name: some unchanged, others converted from a type.
macro_rules! columns {
    ($type:ty, [$($plain:ident),*], [$($converted:ident: $from:ty),*]) => {
        $crate::database::from_row!($type, |row| Self {
            $($plain: row.try_get(stringify!($plain))?,)*
            $($converted: row
                .try_get::<$from, _>(stringify!($converted))?
                .try_into()
                .map_err($crate::database::decode_error)?,)*
        });
    };
}

/// Stores an enum as text in a column.
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

pub(crate) use {columns, from_row, text_column};

/// An invalid value in a column.
pub(crate) fn decode_error(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}

/// Converts a column to a count.
pub(crate) fn to_count(column: i64) -> Result<u32, sqlx::Error> {
    u32::try_from(column).map_err(|error| sqlx::Error::Decode(error.into()))
}

/// A database operation in progress. Boxed in the function that creates it, so that it is compiled once, in this
/// crate, and not in each crate that awaits it.
type Running<'t, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>;

/// The rows of a statement.
enum Rows {
    Sqlite(Vec<SqliteRow>),
    Postgres(Vec<PgRow>),
}

/// A statement with its values, `$1` first.
pub(crate) struct Query<'a> {
    text: SqlStr,
    values: Vec<Box<dyn Value<'a> + 'a>>,
}

/// Begins a statement.
pub(crate) fn query<'a>(text: &'static str) -> Query<'a> {
    Query { text: text.into_sql_str(), values: Vec::new() }
}

/// Begins a statement assembled from constants; values are bound, never part of the text.
pub(crate) fn built_query<'a>(text: String) -> Query<'a> {
    Query { text: AssertSqlSafe(text).into_sql_str(), values: Vec::new() }
}

/// Begins a statement that reads rows of a table; `rest` follows the table's name.
pub(crate) fn select<'a, R: Table>(rest: &'static str) -> Query<'a> {
    built_query(format!("SELECT {} FROM {} {rest}", R::COLUMNS, R::NAME))
}

/// Begins a statement that changes rows of a table and returns them.
pub(crate) fn returning<'a, R: Table>(change: &'static str) -> Query<'a> {
    built_query(format!("{change} RETURNING {}", R::COLUMNS))
}

impl<'a> Query<'a> {
    pub(crate) fn bind(mut self, value: impl Value<'a> + 'a) -> Self {
        self.values.push(Box::new(value));
        self
    }

    /// Runs a statement that returns no rows, and returns the number of rows changed.
    pub(crate) fn execute<'t>(self, tx: &'t mut Tx) -> Running<'t, u64>
    where
        'a: 't,
    {
        Box::pin(async move {
            match tx {
                Tx::Sqlite(tx) => Ok(self.for_sqlite()?.execute(&mut **tx).await?.rows_affected()),
                Tx::Postgres(tx) => tx.execute(self.for_postgres()?).await,
            }
        })
    }

    /// All rows of the result.
    pub(crate) async fn fetch_all<R: Record>(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Vec<R>, StoreError> {
        match self.fetch(on.into()).await? {
            Rows::Sqlite(rows) => decode(&rows),
            Rows::Postgres(rows) => decode(&rows),
        }
    }

    fn fetch<'t>(self, on: On<'t>) -> Running<'t, Rows>
    where
        'a: 't,
    {
        Box::pin(async move {
            Ok(match on {
                On::Database(Database::Sqlite(pool)) => {
                    Rows::Sqlite(self.for_sqlite()?.fetch_all(pool).await?)
                }
                On::Tx(Tx::Sqlite(tx)) => {
                    Rows::Sqlite(self.for_sqlite()?.fetch_all(&mut **tx).await?)
                }
                On::Database(Database::Postgres(pool)) => {
                    let query = self.for_postgres()?;
                    let mut connection = pool.acquire().await?;
                    let rows = timeout(ANSWER_TIME_MAX, query.fetch_all(&mut *connection)).await;
                    Rows::Postgres(settle(rows, &mut connection)?)
                }
                On::Tx(Tx::Postgres(tx)) => {
                    Rows::Postgres(tx.fetch_all(self.for_postgres()?).await?)
                }
            })
        })
    }

    /// The row of a statement that returns at most one.
    pub(crate) async fn fetch_optional<R: Record>(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Option<R>, StoreError> {
        Ok(self.fetch_all(on).await?.pop())
    }

    /// The row of a statement that always returns one.
    pub(crate) async fn fetch_one<R: Record>(self, on: impl Into<On<'_>>) -> Result<R, StoreError> {
        let row = self.fetch_optional(on).await?;
        row.ok_or_else(|| StoreError::corrupt("an aggregate yielded no row"))
    }

    /// The number of a statement that always returns one.
    pub(crate) async fn fetch_number(self, on: impl Into<On<'_>>) -> Result<i64, StoreError> {
        let (number,) = self.fetch_one(on).await?;
        Ok(number)
    }

    fn for_sqlite(
        self,
    ) -> Result<sqlx::query::Query<'static, Sqlite, SqliteArguments>, StoreError> {
        let mut arguments = SqliteArguments::default();
        for value in &self.values {
            value.add_to_sqlite(&mut arguments).map_err(StoreError::Corrupt)?;
        }
        Ok(sqlx::query_with(self.text, arguments))
    }

    fn for_postgres(self) -> Result<PgQuery<'static>, StoreError> {
        let mut arguments = PgArguments::default();
        for value in &self.values {
            value.add_to_postgres(&mut arguments).map_err(StoreError::Corrupt)?;
        }
        Ok(sqlx::query_with(self.text, arguments))
    }
}

type PgQuery<'q> = sqlx::query::Query<'q, Postgres, PgArguments>;

fn decode<'r, Row, R: FromRow<'r, Row>>(rows: &'r [Row]) -> Result<Vec<R>, StoreError>
where
    Row: sqlx::Row,
{
    Ok(rows.iter().map(R::from_row).collect::<sqlx::Result<_>>()?)
}

impl Database {
    /// Begins a transaction that writes.
    pub(crate) fn begin(&self) -> Running<'_, Tx> {
        Box::pin(async move {
            Ok(match self {
                Self::Sqlite(pool) => Tx::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
                Self::Postgres(pool) => Tx::Postgres(PgTx::begin(pool).await?),
            })
        })
    }

    /// Runs one statement as a transaction, and returns the number of rows changed.
    pub(crate) async fn write(&self, query: Query<'_>) -> Result<u64, StoreError> {
        let mut tx = self.begin().await?;
        let changed = query.execute(&mut tx).await?;
        tx.commit().await?;
        Ok(changed)
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl Tx {
    /// Waits until no other transaction has the lock, and holds it until this one ends.
    pub(crate) async fn lock(&mut self, lock: Lock<'_>) -> Result<(), StoreError> {
        let (class, subject) = match lock {
            Lock::Links => (1, ""),
            Lock::Sessions { account_id } => (2, account_id),
            Lock::Keys { account_id } => (3, account_id),
            Lock::Operators => (4, ""),
            Lock::Streams => (5, ""),
        };
        if let Self::Postgres(tx) = self {
            let query = sqlx::query("SELECT pg_advisory_xact_lock($1, hashtext($2))");
            tx.execute(query.bind(class).bind(subject)).await?;
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

    pub(crate) fn commit(self) -> Running<'static, ()> {
        Box::pin(async move {
            match self {
                Self::Sqlite(tx) => Ok(tx.commit().await?),
                Self::Postgres(tx) => tx.commit().await,
            }
        })
    }
}

impl PgTx {
    pub(crate) async fn begin(pool: &PgPool) -> Result<Self, StoreError> {
        let mut tx = Self { connection: pool.acquire().await?, state: PgTxState::Open };
        let begun = timeout(ANSWER_TIME_MAX, tx.connection.execute("BEGIN")).await;
        tx.settle(begun)?;
        Ok(tx)
    }

    async fn commit(mut self) -> Result<(), StoreError> {
        if self.state != PgTxState::Open {
            return Err(StoreError::corrupt("a failed transaction was to be committed"));
        }
        let done = timeout(ANSWER_TIME_MAX, self.connection.execute("COMMIT")).await;
        self.settle(done)?;
        self.state = PgTxState::Ended;
        Ok(())
    }

    pub(crate) async fn execute(&mut self, query: PgQuery<'_>) -> Result<u64, StoreError> {
        let done = timeout(ANSWER_TIME_MAX, query.execute(&mut *self.connection)).await;
        Ok(self.settle(done)?.rows_affected())
    }

    pub(crate) async fn fetch_all(&mut self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        let rows = timeout(ANSWER_TIME_MAX, query.fetch_all(&mut *self.connection)).await;
        self.settle(rows)
    }

    /// The result of a statement in this transaction.
    fn settle<T>(&mut self, answered: Result<sqlx::Result<T>, Elapsed>) -> Result<T, StoreError> {
        let settled = settle(answered, &mut self.connection);
        if settled.is_err() {
            self.state = PgTxState::Failed;
        }
        settled
    }
}

impl Drop for PgTx {
    fn drop(&mut self) {
        // Rolled back by the server, which notices the closing even if a rollback would not reach it.
        if self.state != PgTxState::Ended {
            self.connection.close_on_drop();
        }
    }
}

/// The result of a statement. After any failure other than a refusal by the database, the connection is closed.
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
            Err(StoreError::unavailable(elapsed))
        }
    }
}
