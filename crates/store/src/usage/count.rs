//! The counts of windows, held while a transaction decides about them. The two databases part here:
//! SQLite has one writer, so reading is holding; PostgreSQL locks the rows, always in the same order, so that
//! nodes that want the same ones wait for each other and never in a circle, and all of them with one
//! statement, so that a thousand meters at the turn of a minute are not a thousand round trips.

use std::collections::BTreeMap;

use sqlx::{Sqlite, Transaction};
use tokio::time::timeout;

use crate::{
    StoreError,
    database::{ANSWER_TIME_MAX, PgTx, Tx},
    usage::{LeaseRequest, Unspent, Window},
};

/// Which window of which meter, in the order of locking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WindowKey<'a> {
    window: &'static str,
    start_ms: i64,
    meter_id: &'a str,
}

/// What a window had given when it was held, and what it has given by now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    held: i64,
    pub(super) granted: i64,
}

impl<'a> WindowKey<'a> {
    pub(super) fn of_ask(ask: &'a LeaseRequest) -> Self {
        Self::new(ask.window, ask.start_ms, &ask.meter_id)
    }

    pub(super) fn of_unspent(unspent: &'a Unspent) -> Self {
        Self::new(unspent.window, unspent.start_ms, &unspent.meter_id)
    }

    fn new(window: Window, start_ms: i64, meter_id: &'a str) -> Self {
        Self { window: window.as_str(), start_ms, meter_id }
    }
}

/// Counts that this transaction alone may change until it ends.
#[derive(Debug)]
pub(super) struct LockedCounts<'a>(BTreeMap<WindowKey<'a>, Count>);

impl<'a> LockedCounts<'a> {
    /// Holds these windows. One that has given nothing yet counts 0.
    pub(super) async fn take(tx: &mut Tx, keys: Vec<WindowKey<'a>>) -> Result<Self, StoreError> {
        let mut counts: BTreeMap<WindowKey<'a>, Count> =
            keys.into_iter().map(|key| (key, Count::default())).collect();
        match tx {
            Tx::Sqlite(tx) => read(tx, &mut counts).await?,
            Tx::Postgres(tx) => lock(tx, &mut counts).await?,
        }
        Ok(Self(counts))
    }

    pub(super) fn count(&mut self, key: &WindowKey<'a>) -> Result<&mut Count, StoreError> {
        self.0.get_mut(key).ok_or_else(|| StoreError::corrupt("a window was not held"))
    }

    /// Writes down what was changed.
    pub(super) async fn put(&self, tx: &mut Tx) -> Result<(), StoreError> {
        let changed: Vec<(WindowKey<'a>, Count)> = (self.0.iter())
            .filter(|(_, count)| count.granted != count.held)
            .map(|(key, count)| (*key, *count))
            .collect();
        match tx {
            Tx::Sqlite(tx) => write(tx, &changed).await,
            Tx::Postgres(tx) => raise(tx, &changed).await,
        }
    }
}

async fn read(
    tx: &mut Transaction<'static, Sqlite>,
    counts: &mut BTreeMap<WindowKey<'_>, Count>,
) -> Result<(), StoreError> {
    for (key, count) in counts {
        let granted: Option<i64> = sqlx::query_scalar(
            "SELECT granted FROM usage \
             WHERE window_kind = $1 AND window_start_ms = $2 AND meter_id = $3",
        )
        .bind(key.window)
        .bind(key.start_ms)
        .bind(key.meter_id)
        .fetch_optional(&mut **tx)
        .await?;
        let granted = granted.unwrap_or(0);
        *count = Count { held: granted, granted };
    }
    Ok(())
}

async fn write(
    tx: &mut Transaction<'static, Sqlite>,
    changed: &[(WindowKey<'_>, Count)],
) -> Result<(), StoreError> {
    for (key, count) in changed {
        sqlx::query(
            "INSERT INTO usage (window_kind, window_start_ms, meter_id, granted) \
             VALUES ($1, $2, $3, $4) ON CONFLICT (window_kind, window_start_ms, meter_id) \
             DO UPDATE SET granted = excluded.granted",
        )
        .bind(key.window)
        .bind(key.start_ms)
        .bind(key.meter_id)
        .bind(count.granted)
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// Places as PostgreSQL's arrays.
#[derive(Default)]
struct Columns<'a> {
    windows: Vec<&'static str>,
    starts_ms: Vec<i64>,
    meter_ids: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, key: &WindowKey<'a>) {
        self.windows.push(key.window);
        self.starts_ms.push(key.start_ms);
        self.meter_ids.push(key.meter_id);
    }
}

async fn lock(
    tx: &mut PgTx,
    counts: &mut BTreeMap<WindowKey<'_>, Count>,
) -> Result<(), StoreError> {
    let mut columns = Columns::default();
    for key in counts.keys() {
        columns.push(key);
    }
    // A row has to be there to be locked. Two nodes that make the same one wait for each other here, in order too.
    let making = sqlx::query(
        "INSERT INTO usage (window_kind, window_start_ms, meter_id, granted) \
         SELECT kind, start_ms, meter_id, 0 \
         FROM UNNEST($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY AS a (kind, start_ms, meter_id, n) \
         ORDER BY n ON CONFLICT (window_kind, window_start_ms, meter_id) DO NOTHING",
    )
    .bind(&columns.windows)
    .bind(&columns.starts_ms)
    .bind(&columns.meter_ids)
    .execute(&mut *tx.connection);
    let made = timeout(ANSWER_TIME_MAX, making).await;
    tx.settle(made)?;
    let holding = sqlx::query_as(
        "SELECT n, granted FROM usage JOIN \
         UNNEST($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY AS a (kind, start_ms, meter, n) \
         ON window_kind = kind AND window_start_ms = start_ms AND meter_id = meter \
         ORDER BY n FOR UPDATE OF usage",
    )
    .bind(&columns.windows)
    .bind(&columns.starts_ms)
    .bind(&columns.meter_ids)
    .fetch_all(&mut *tx.connection);
    let held = timeout(ANSWER_TIME_MAX, holding).await;
    let mut held: Vec<(i64, i64)> = tx.settle(held)?;
    // A row that was waited for is read anew once it is locked, but the rows are in the order of before.
    held.sort_unstable();
    let whole = held.len() == counts.len();
    for ((_, granted), count) in held.into_iter().zip(counts.values_mut()) {
        *count = Count { held: granted, granted };
    }
    // Only pruning takes rows away, and only of windows that are long over.
    if whole {
        Ok(())
    } else {
        Err(StoreError::unavailable("a window went while it was being held"))
    }
}

async fn raise(tx: &mut PgTx, changed: &[(WindowKey<'_>, Count)]) -> Result<(), StoreError> {
    let mut columns = Columns::default();
    let (mut held, mut granted) = (Vec::new(), Vec::new());
    for (key, count) in changed {
        columns.push(key);
        held.push(count.held);
        granted.push(count.granted);
    }
    let asked = u64::try_from(granted.len()).unwrap_or(u64::MAX);
    // What was held is in the statement too: the sum stays right even where a lock should not do what it says.
    let raising = sqlx::query(
        "UPDATE usage SET granted = a.granted FROM \
         UNNEST($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) \
         AS a (kind, start_ms, meter, held, granted) \
         WHERE window_kind = kind AND window_start_ms = start_ms AND meter_id = meter \
         AND usage.granted = held",
    )
    .bind(&columns.windows)
    .bind(&columns.starts_ms)
    .bind(&columns.meter_ids)
    .bind(&held)
    .bind(&granted)
    .execute(&mut *tx.connection);
    let raised = timeout(ANSWER_TIME_MAX, raising).await;
    if tx.settle(raised)?.rows_affected() == asked {
        return Ok(());
    }
    Err(StoreError::unavailable("a count changed while it was held"))
}
