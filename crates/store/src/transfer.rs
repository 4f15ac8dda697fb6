//! Copying a SQLite file into an empty PostgreSQL database, all of it or nothing.
//!
//! Tables and columns are read from the databases themselves, so that a new table is copied without a change here.

use std::{collections::BTreeSet, path::Path};

use sqlx::{AssertSqlSafe, PgPool, Row as _, Sqlite, SqlitePool, Transaction, sqlite::SqliteRow};

use crate::{
    StoreError,
    database::{PgTx, Tx, query},
    postgres, sqlite,
};

/// Maximum number of rows in one statement; the longest is a few kilobytes.
const ROWS_AT_ONCE: i64 = 1000;

/// The progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    pub rows: u64,
    pub of: u64,
}

/// Copies a file into a database, which must be empty, and reports the progress.
///
/// `settings` are stored with it: values that apply to the new database only. The file is locked against writes
/// meanwhile and not changed. If any step fails, the database stays empty.
pub async fn transfer(
    from: &Path,
    to: &str,
    settings: &[(&str, &str)],
    report: &mut (dyn FnMut(Transferred) + Send),
) -> Result<Transferred, StoreError> {
    let source = sqlite::open(from).await?;
    let target = postgres::connect(to).await?;
    let moved = copy(&source, &target, settings, report).await;
    source.close().await;
    target.close().await;
    moved
}

async fn copy(
    source: &SqlitePool,
    target: &PgPool,
    settings: &[(&str, &str)],
    report: &mut (dyn FnMut(Transferred) + Send),
) -> Result<Transferred, StoreError> {
    let mut source = source.begin_with("BEGIN IMMEDIATE").await?;
    let mut tx = PgTx::begin(target).await?;
    let tables = tables(&mut source, &mut tx).await?;
    refuse_rows(&mut tx, &tables).await?;
    let mut moved = Transferred { rows: 0, of: tables.iter().map(|table| table.rows).sum() };
    for table in &tables {
        let before = moved.rows;
        let mut last = i64::MIN;
        while let Some((rows, newest)) = read(&mut source, table, last).await? {
            moved.rows += write(&mut tx, table, &rows).await?;
            last = newest;
            report(moved);
        }
        if moved.rows - before != table.rows {
            return Err(StoreError::corrupt("a table changed while it was copied"));
        }
        continue_numbering(&mut tx, table).await?;
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
    numbered: bool,
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
            _ => Err(StoreError::corrupt("a column of a type that is not copied")),
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

/// All tables of the file except those of the migrations, each after the tables that it refers to.
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
            return Err(StoreError::corrupt("tables refer to each other in a cycle"));
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
    let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM \"{name}\""));
    let rows: i64 = sqlx::query_scalar(count).fetch_one(&mut **source).await?;
    let select = sqlx::query(
        "SELECT column_name::text, data_type::text, is_identity = 'YES' \
         FROM information_schema.columns \
         WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position",
    )
    .bind(&name);
    let mut columns = Vec::new();
    for row in tx.fetch_all(select).await? {
        let kind = Kind::parse(row.try_get(1)?)?;
        columns.push(Column { name: row.try_get(0)?, kind, numbered: row.try_get(2)? });
    }
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

/// Locks the tables against other writers, and refuses a database that holds rows.
async fn refuse_rows(tx: &mut PgTx, tables: &[Table]) -> Result<(), StoreError> {
    for Table { name, .. } in tables {
        let lock = format!("LOCK TABLE \"{name}\" IN SHARE ROW EXCLUSIVE MODE");
        tx.execute(sqlx::query(AssertSqlSafe(lock))).await?;
        let first = format!("SELECT 1 FROM \"{name}\" LIMIT 1");
        if !tx.fetch_all(sqlx::query(AssertSqlSafe(first))).await?.is_empty() {
            return Err(StoreError::NotEmpty { table: name.clone() });
        }
    }
    Ok(())
}

/// The next rows, in the order of their creation: a row comes after those that it refers to.
async fn read(
    source: &mut Transaction<'static, Sqlite>,
    table: &Table,
    after: i64,
) -> Result<Option<(Vec<SqliteRow>, i64)>, StoreError> {
    let name = &table.name;
    let text = format!(
        "SELECT rowid AS \"row number\", * FROM \"{name}\" WHERE rowid > $1 ORDER BY rowid LIMIT $2"
    );
    let rows = sqlx::query(AssertSqlSafe(text))
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
    let mut insert = sqlx::query(AssertSqlSafe(text));
    for Column { name, kind, .. } in &table.columns {
        insert = match kind {
            Kind::Text => insert.bind(cells::<String>(rows, name)?),
            Kind::Number => insert.bind(cells::<i64>(rows, name)?),
            Kind::Bytes => insert.bind(cells::<Vec<u8>>(rows, name)?),
        };
    }
    tx.execute(insert).await
}

/// The values of a column in some rows.
fn cells<T>(rows: &[SqliteRow], column: &str) -> sqlx::Result<Vec<Option<T>>>
where
    T: for<'r> sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    rows.iter().map(|row| row.try_get(column)).collect()
}

/// Makes the database's numbering continue after the last copied number.
async fn continue_numbering(tx: &mut PgTx, table: &Table) -> Result<(), StoreError> {
    for column in table.columns.iter().filter(|column| column.numbered) {
        let (table, column) = (&table.name, &column.name);
        let text = format!(
            "SELECT setval(pg_get_serial_sequence('\"{table}\"', '{column}'), MAX(\"{column}\")) \
             FROM \"{table}\" HAVING MAX(\"{column}\") IS NOT NULL"
        );
        tx.execute(sqlx::query(AssertSqlSafe(text))).await?;
    }
    Ok(())
}
