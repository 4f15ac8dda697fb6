//! Leased units of each meter's windows. `granted` counts requests leased to processes, not requests served: it is
//! raised on disk before the first of them is served, and never beyond the limit.

mod count;

use crate::{
    Store, StoreError,
    database::{decode_error, from_row, query, text_column, to_count},
    usage::count::{LockedCounts, WindowKey},
};

/// A period with its own count, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    Minute,
    Day,
    Month,
}

text_column!(Window, "usage window", [Minute = "minute", Day = "day", Month = "month"]);

/// A request for a part of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    pub meter_id: Box<str>,
    pub window: Window,
    pub start_ms: i64,
    /// Total units of the window.
    pub limit: u32,
    /// The lease is the remaining units divided by this, at most `lease_max`, and at least `least` if that many
    /// remain.
    pub divisor: u32,
    pub lease_max: u32,
    /// Units that a waiting request needs at once: fewer do not help it.
    pub least: u32,
}

impl LeaseRequest {
    /// The lease out of a window that has already leased `granted` units.
    pub fn grant(&self, granted: u32) -> u32 {
        let remaining = self.limit.saturating_sub(granted);
        let least = self.least.max(1);
        (remaining / self.divisor.max(1)).clamp(least, self.lease_max.max(least)).min(remaining)
    }
}

/// The answer to a [`LeaseRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Units that the caller may spend. 0: none remain.
    pub given: u32,
    /// Total units leased out of the window, this lease included.
    pub granted: u32,
}

/// Unspent units of a lease when its holder stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unspent {
    pub meter_id: Box<str>,
    pub window: Window,
    pub start_ms: i64,
    pub left: u32,
}

/// The starts of the current windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStarts {
    pub minute_ms: i64,
    pub day_ms: i64,
    pub month_ms: i64,
}

/// The units leased out of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    pub meter_id: String,
    pub window: Window,
    pub granted: u32,
}

from_row!(UsageRow, |row| Self {
    meter_id: row.try_get("meter_id")?,
    window: row.try_get::<String, _>("window_kind")?.try_into().map_err(decode_error)?,
    granted: row.try_get::<i64, _>("granted")?.try_into().map_err(decode_error)?,
});

impl Store {
    /// Grants every request, in one transaction: on disk when this returns. If the commit itself is interrupted, the
    /// leases may be lost to their windows.
    pub async fn lease(&self, requests: &[LeaseRequest]) -> Result<Vec<Lease>, StoreError> {
        let mut tx = self.begin_write().await?;
        let keys = requests.iter().map(WindowKey::of_request);
        let mut counts = LockedCounts::lock(&mut tx, keys).await?;
        let mut leases = Vec::with_capacity(requests.len());
        for request in requests {
            let count = counts.count(&WindowKey::of_request(request))?;
            let given = request.grant(to_count(count.granted)?);
            count.granted += i64::from(given);
            leases.push(Lease { given, granted: to_count(count.granted)? });
        }
        counts.write(&mut tx).await?;
        tx.commit().await?;
        Ok(leases)
    }

    /// Returns unspent units.
    pub async fn release(&self, unspent: &[Unspent]) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let keys = unspent.iter().map(WindowKey::of_unspent);
        let mut counts = LockedCounts::lock(&mut tx, keys).await?;
        for lease in unspent {
            let count = counts.count(&WindowKey::of_unspent(lease))?;
            let left = i64::from(lease.left);
            // More than was ever leased: the window was pruned meanwhile.
            if count.granted >= left {
                count.granted -= left;
            }
        }
        counts.write(&mut tx).await?;
        tx.commit().await
    }

    /// Writes a row that is never read, to learn whether a lease could be written.
    pub async fn probe(&self) -> Result<(), StoreError> {
        // One row, of a window that no meter has and that is never pruned, changed at every probe.
        let probe = query(
            "INSERT INTO usage (window_kind, window_start_ms, meter_id, granted) \
             VALUES ('month', 9223372036854775807, '', 1) \
             ON CONFLICT (window_kind, window_start_ms, meter_id) \
             DO UPDATE SET granted = 1 - usage.granted",
        );
        self.database.write(probe).await.map(drop)
    }

    /// The units that these windows have granted, for one meter or for all.
    pub async fn usage(
        &self,
        starts: WindowStarts,
        meter_id: Option<&str>,
    ) -> Result<Vec<UsageRow>, StoreError> {
        query(
            "SELECT meter_id, window_kind, granted FROM usage \
             WHERE ((window_kind = 'minute' AND window_start_ms = $1) \
             OR (window_kind = 'day' AND window_start_ms = $2) \
             OR (window_kind = 'month' AND window_start_ms = $3)) \
             AND ($4 IS NULL OR meter_id = $4)",
        )
        .bind(starts.minute_ms)
        .bind(starts.day_ms)
        .bind(starts.month_ms)
        .bind(meter_id)
        .fetch_all(&self.database)
        .await
    }

    /// Deletes minutes that began before the first instant, and days and months that began before the second.
    pub async fn prune_usage(&self, minutes_ms: i64, days_ms: i64) -> Result<u64, StoreError> {
        let prune = query(
            "DELETE FROM usage WHERE (window_kind = 'minute' AND window_start_ms < $1) \
             OR (window_kind IN ('day', 'month') AND window_start_ms < $2)",
        );
        self.database.write(prune.bind(minutes_ms).bind(days_ms)).await
    }
}
