//! Moving everything from a SQLite file into an empty PostgreSQL database.
//!
//! The tables and their columns are read from the databases themselves, so that a table somebody adds is moved
//! without anybody thinking of it here. All of it arrives or nothing does.

use std::{collections::BTreeSet, path::Path};

use sqlx::{
    AssertSqlSafe, Row as _, Sqlite, SqlitePool, Transaction,
    sqlite::{SqliteArguments, SqliteRow},
};
use tokio::time::timeout;

use crate::{
    StoreError,
    database::{ANSWER_TIME_MAX, Database, PgTx, Tx, query},
    postgres, sqlite,
};

/// Rows that are on their way at once; the longest is a few kilobytes.
const ROWS_AT_ONCE: i64 = 1000;

/// How far a transfer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    pub rows: u64,
    pub of: u64,
}

/// Copies all that is in the file into the database, which has to be empty, and tells how far it is.
///
/// `settings` are written with it: what is true of the new place only. Nobody can write to the file meanwhile. It is
/// left as it is.
///
/// # Errors
/// Either cannot be opened, the database holds anything already, or a row does not arrive; then the database is as
/// empty as it was.
pub async fn transfer(
    from: &Path,
    to: &str,
    settings: &[(&str, &str)],
    tell: &mut (dyn FnMut(Transferred) + Send),
) -> Result<Transferred, StoreError> {
    let source = sqlite::open(from).await?;
    let target = Database::Postgres(postgres::connect(to).await?);
    let moved = copy(&source, &target, settings, tell).await;
    source.close().await;
    target.close().await;
    moved
}

async fn copy(
    source: &SqlitePool,
    target: &Database,
    settings: &[(&str, &str)],
    tell: &mut (dyn FnMut(Transferred) + Send),
) -> Result<Transferred, StoreError> {
    let mut source = source.begin_with("BEGIN IMMEDIATE").await?;
    let Tx::Postgres(mut tx) = target.begin().await? else {
        return Err(StoreError::corrupt("not a PostgreSQL database"));
    };
    let tables = tables(&mut source, &mut tx).await?;
    refuse_rows(&mut tx, &tables).await?;
    let mut moved = Transferred { rows: 0, of: tables.iter().map(|table| table.rows).sum() };
    for table in &tables {
        let before = moved.rows;
        let mut last = i64::MIN;
        while let Some((rows, newest)) = read(&mut source, table, last).await? {
            moved.rows += write(&mut tx, table, &rows).await?;
            last = newest;
            tell(moved);
        }
        if moved.rows - before != table.rows {
            return Err(StoreError::corrupt("a table changed while it was being moved"));
        }
        go_on_counting(&mut tx, table).await?;
    }
    let mut tx = Tx::Postgres(tx);
    for (key, value) in settings {
        let note = query("INSERT INTO setting (key, value) VALUES ($1, $2)");
        note.bind(*key).bind(*value).execute(&mut tx).await?;
    }
    tx.commit().await?;
    Ok(moved)
}

#[derive(Debug)]
struct Table {
    name: String,
    columns: Vec<Column>,
    rows: u64,
}

#[derive(Debug)]
struct Column {
    name: String,
    kind: Kind,
    /// Numbered by the database.
    counts: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Number,
    Bytes,
}

impl Kind {
    fn parse(word: &str) -> Result<Self, StoreError> {
        match word {
            "text" => Ok(Self::Text),
            "bigint" => Ok(Self::Number),
            "bytea" => Ok(Self::Bytes),
            _ => Err(StoreError::corrupt("a column of a kind that is not moved")),
        }
    }

    const fn array(self) -> &'static str {
        match self {
            Self::Text => "text[]",
            Self::Number => "bigint[]",
            Self::Bytes => "bytea[]",
        }
    }
}

/// A column's values in some rows.
enum Cells {
    Text(Vec<Option<String>>),
    Number(Vec<Option<i64>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Cells {
    fn read(rows: &[SqliteRow], column: &Column) -> Result<Self, StoreError> {
        let name = column.name.as_str();
        Ok(match column.kind {
            Kind::Text => {
                Self::Text(rows.iter().map(|row| row.try_get(name)).collect::<Result<_, _>>()?)
            }
            Kind::Number => {
                Self::Number(rows.iter().map(|row| row.try_get(name)).collect::<Result<_, _>>()?)
            }
            Kind::Bytes => {
                Self::Bytes(rows.iter().map(|row| row.try_get(name)).collect::<Result<_, _>>()?)
            }
        })
    }
}

/// All tables of the file, each after those that it refers to. What migrations note of themselves each database has
/// already.
async fn tables(
    source: &mut Transaction<'static, Sqlite>,
    tx: &mut PgTx,
) -> Result<Vec<Table>, StoreError> {
    let mut left: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' \
         AND name NOT IN ('_sqlx_migrations', 'schema_floor') ORDER BY name",
    )
    .fetch_all(&mut **source)
    .await?;
    let references: Vec<(String, String)> = sqlx::query_as(
        "SELECT t.name, f.\"table\" FROM sqlite_master t, pragma_foreign_key_list(t.name) f \
         WHERE t.type = 'table' AND t.name <> f.\"table\"",
    )
    .fetch_all(&mut **source)
    .await?;
    let mut tables = Vec::new();
    while !left.is_empty() {
        let waiting: BTreeSet<String> = (references.iter())
            .filter(|(_, to)| left.contains(to))
            .map(|(from, _)| from.clone())
            .collect();
        let (later, now): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|name| waiting.contains(name));
        if now.is_empty() {
            return Err(StoreError::corrupt("tables refer to each other in a circle"));
        }
        for name in now {
            tables.push(table(source, tx, name).await?);
        }
        left = later;
    }
    Ok(tables)
}

async fn table(
    source: &mut Transaction<'static, Sqlite>,
    tx: &mut PgTx,
    name: String,
) -> Result<Table, StoreError> {
    let counting = AssertSqlSafe(format!("SELECT COUNT(*) FROM \"{name}\""));
    let rows: i64 = sqlx::query_scalar(counting).fetch_one(&mut **source).await?;
    let asking = sqlx::query_as(
        "SELECT column_name::text, data_type::text, is_identity = 'YES' \
         FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position",
    )
    .bind(&name)
    .fetch_all(&mut *tx.connection);
    let there = timeout(ANSWER_TIME_MAX, asking).await;
    let there: Vec<(String, String, bool)> = tx.settle(there)?;
    let columns = there
        .into_iter()
        .map(|(name, kind, counts)| Ok(Column { name, kind: Kind::parse(&kind)?, counts }))
        .collect::<Result<Vec<_>, StoreError>>()?;
    let here: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info($1)")
        .bind(&name)
        .fetch_all(&mut **source)
        .await?;
    let known = |held: &String| columns.iter().any(|column| column.name == *held);
    if here.len() != columns.len() || !here.iter().all(known) {
        return Err(StoreError::corrupt("the two databases do not have the same columns"));
    }
    Ok(Table { name, columns, rows: u64::try_from(rows).unwrap_or(0) })
}

/// Shuts other writers out, and makes sure that there is nothing that would be mixed with what comes.
async fn refuse_rows(tx: &mut PgTx, tables: &[Table]) -> Result<(), StoreError> {
    for Table { name, .. } in tables {
        let locking = AssertSqlSafe(format!("LOCK TABLE \"{name}\" IN SHARE ROW EXCLUSIVE MODE"));
        let locked =
            timeout(ANSWER_TIME_MAX, sqlx::query(locking).execute(&mut *tx.connection)).await;
        tx.settle(locked)?;
        let looking = AssertSqlSafe(format!("SELECT EXISTS (SELECT 1 FROM \"{name}\")"));
        let looking = sqlx::query_scalar(looking).fetch_one(&mut *tx.connection);
        let found = timeout(ANSWER_TIME_MAX, looking).await;
        if tx.settle(found)? {
            return Err(StoreError::NotEmpty { table: name.clone() });
        }
    }
    Ok(())
}

/// The rows after one, in the order in which they were made: a row comes after those that it refers to.
async fn read(
    source: &mut Transaction<'static, Sqlite>,
    table: &Table,
    after: i64,
) -> Result<Option<(Vec<SqliteRow>, i64)>, StoreError> {
    let name = &table.name;
    let text = format!(
        "SELECT rowid AS \"row number\", * FROM \"{name}\" WHERE rowid > $1 ORDER BY rowid LIMIT $2"
    );
    let rows = sqlx::query_with(AssertSqlSafe(text), SqliteArguments::default())
        .bind(after)
        .bind(ROWS_AT_ONCE)
        .fetch_all(&mut **source)
        .await?;
    let Some(last) = rows.last() else {
        return Ok(None);
    };
    let newest = last.try_get("row number")?;
    Ok(Some((rows, newest)))
}

async fn write(tx: &mut PgTx, table: &Table, rows: &[SqliteRow]) -> Result<u64, StoreError> {
    let names: Vec<String> =
        table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let arrays: Vec<String> = (1..)
        .zip(&table.columns)
        .map(|(n, column)| format!("${n}::{}", column.kind.array()))
        .collect();
    let text = format!(
        "INSERT INTO \"{}\" ({}) SELECT * FROM UNNEST({})",
        table.name,
        names.join(", "),
        arrays.join(", ")
    );
    let mut query = sqlx::query(AssertSqlSafe(text));
    for column in &table.columns {
        query = match Cells::read(rows, column)? {
            Cells::Text(cells) => query.bind(cells),
            Cells::Number(cells) => query.bind(cells),
            Cells::Bytes(cells) => query.bind(cells),
        };
    }
    let written = timeout(ANSWER_TIME_MAX, query.execute(&mut *tx.connection)).await;
    Ok(tx.settle(written)?.rows_affected())
}

/// What the database numbers itself goes on after the last number that was moved.
async fn go_on_counting(tx: &mut PgTx, table: &Table) -> Result<(), StoreError> {
    for column in table.columns.iter().filter(|column| column.counts) {
        let (table, column) = (&table.name, &column.name);
        let text = format!(
            "SELECT setval(pg_get_serial_sequence('\"{table}\"', '{column}'), MAX(\"{column}\")) \
             FROM \"{table}\" HAVING MAX(\"{column}\") IS NOT NULL"
        );
        let setting = sqlx::query(AssertSqlSafe(text)).execute(&mut *tx.connection);
        let set = timeout(ANSWER_TIME_MAX, setting).await;
        tx.settle(set)?;
    }
    Ok(())
}
