//! The counts of windows, locked while a transaction changes them.
//!
//! The two databases differ here. SQLite has one writer, so reading is enough. PostgreSQL locks the rows, always in
//! the same order, so that nodes that need the same rows wait for each other and never deadlock; and all with one
//! statement, so that a thousand meters at the start of a minute are not a thousand round trips.

use std::collections::BTreeMap;

use sqlx::FromRow as _;

use crate::{
    StoreError,
    database::{PgTx, Tx, query},
    usage::{LeaseRequest, Unspent, Window},
};

/// A window of a meter; its order is the order of locking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WindowKey<'a> {
    window: &'static str,
    start_ms: i64,
    meter_id: &'a str,
}

/// The granted units of a window when it was locked, and now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    locked: i64,
    pub(super) granted: i64,
}

impl<'a> WindowKey<'a> {
    pub(super) fn of_request(request: &'a LeaseRequest) -> Self {
        Self::new(request.window, request.start_ms, &request.meter_id)
    }

    pub(super) fn of_unspent(unspent: &'a Unspent) -> Self {
        Self::new(unspent.window, unspent.start_ms, &unspent.meter_id)
    }

    fn new(window: Window, start_ms: i64, meter_id: &'a str) -> Self {
        Self { window: window.as_str(), start_ms, meter_id }
    }
}

/// Counts that only this transaction can change until it ends.
#[derive(Debug)]
pub(super) struct LockedCounts<'a>(BTreeMap<WindowKey<'a>, Count>);

impl<'a> LockedCounts<'a> {
    /// Locks these windows. A window that has granted nothing yet counts 0.
    pub(super) async fn lock(
        tx: &mut Tx,
        keys: impl Iterator<Item = WindowKey<'a>>,
    ) -> Result<Self, StoreError> {
        let mut counts = keys.map(|key| (key, Count::default())).collect();
        match tx {
            Tx::Sqlite(_) => read(tx, &mut counts).await?,
            Tx::Postgres(tx) => lock(tx, &mut counts).await?,
        }
        Ok(Self(counts))
    }

    pub(super) fn count(&mut self, key: &WindowKey<'a>) -> Result<&mut Count, StoreError> {
        self.0.get_mut(key).ok_or_else(|| StoreError::corrupt("a window was not locked"))
    }

    /// Writes the changed counts.
    pub(super) async fn write(mut self, tx: &mut Tx) -> Result<(), StoreError> {
        self.0.retain(|_, count| count.granted != count.locked);
        match tx {
            Tx::Sqlite(_) => write(tx, &self.0).await,
            Tx::Postgres(tx) => update(tx, &self.0).await,
        }
    }
}

type Counts<'a> = BTreeMap<WindowKey<'a>, Count>;

async fn read(tx: &mut Tx, counts: &mut Counts<'_>) -> Result<(), StoreError> {
    for (key, count) in counts {
        let read: Option<(i64,)> = query(
            "SELECT granted FROM usage \
             WHERE window_kind = $1 AND window_start_ms = $2 AND meter_id = $3",
        )
        .bind(key.window)
        .bind(key.start_ms)
        .bind(key.meter_id)
        .fetch_optional(&mut *tx)
        .await?;
        let (granted,) = read.unwrap_or_default();
        *count = Count { locked: granted, granted };
    }
    Ok(())
}

async fn write(tx: &mut Tx, changed: &Counts<'_>) -> Result<(), StoreError> {
    for (key, count) in changed {
        query(
            "INSERT INTO usage (window_kind, window_start_ms, meter_id, granted) \
             VALUES ($1, $2, $3, $4) ON CONFLICT (window_kind, window_start_ms, meter_id) \
             DO UPDATE SET granted = excluded.granted",
        )
        .bind(key.window)
        .bind(key.start_ms)
        .bind(key.meter_id)
        .bind(count.granted)
        .execute(tx)
        .await?;
    }
    Ok(())
}

/// The keys as PostgreSQL arrays.
fn arrays<'a>(counts: &Counts<'a>) -> (Vec<&'static str>, Vec<i64>, Vec<&'a str>) {
    counts.keys().map(|key| (key.window, key.start_ms, key.meter_id)).collect()
}

async fn lock(tx: &mut PgTx, counts: &mut Counts<'_>) -> Result<(), StoreError> {
    let (windows, starts_ms, meter_ids) = arrays(counts);
    // A row must exist to be locked. Two nodes that insert the same row wait for each other here, in order too.
    let insert = sqlx::query(
        "INSERT INTO usage (window_kind, window_start_ms, meter_id, granted) \
         SELECT kind, start_ms, meter, 0 FROM \
         UNNEST($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY AS a (kind, start_ms, meter, n) \
         ORDER BY n ON CONFLICT (window_kind, window_start_ms, meter_id) DO NOTHING",
    );
    tx.execute(insert.bind(&windows).bind(&starts_ms).bind(&meter_ids)).await?;
    let select = sqlx::query(
        "SELECT n, granted FROM usage JOIN \
         UNNEST($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY AS a (kind, start_ms, meter, n) \
         ON window_kind = kind AND window_start_ms = start_ms AND meter_id = meter \
         ORDER BY n FOR UPDATE OF usage",
    );
    let rows = tx.fetch_all(select.bind(&windows).bind(&starts_ms).bind(&meter_ids)).await?;
    let mut locked: Vec<(i64, i64)> =
        rows.iter().map(<(i64, i64)>::from_row).collect::<sqlx::Result<_>>()?;
    // A row whose lock was waited for is read again, but the rows keep their earlier order.
    locked.sort_unstable();
    if locked.len() != counts.len() {
        // Only pruning deletes rows, and only of windows that ended long ago.
        return Err(StoreError::unavailable("a window was deleted while it was being locked"));
    }
    for ((_, granted), count) in locked.into_iter().zip(counts.values_mut()) {
        *count = Count { locked: granted, granted };
    }
    Ok(())
}

async fn update(tx: &mut PgTx, changed: &Counts<'_>) -> Result<(), StoreError> {
    let (windows, starts_ms, meter_ids) = arrays(changed);
    let (locked, granted): (Vec<i64>, Vec<i64>) =
        changed.values().map(|count| (count.locked, count.granted)).unzip();
    // The statement also compares the locked count: the sum stays correct even if a lock fails.
    let update = sqlx::query(
        "UPDATE usage SET granted = a.granted FROM \
         UNNEST($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) \
         AS a (kind, start_ms, meter, locked, granted) \
         WHERE window_kind = kind AND window_start_ms = start_ms AND meter_id = meter \
         AND usage.granted = locked",
    );
    let update =
        update.bind(&windows).bind(&starts_ms).bind(&meter_ids).bind(&locked).bind(&granted);
    if usize::try_from(tx.execute(update).await?).is_ok_and(|rows| rows == granted.len()) {
        return Ok(());
    }
    Err(StoreError::unavailable("a count changed while it was locked"))
}
