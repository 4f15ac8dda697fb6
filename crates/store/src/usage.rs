//! What has been leased out of each meter's windows. `granted` counts requests handed to some process to
//! spend, not requests served: it is raised on disk before the first of them is, and never past the limit.

mod count;

use crate::{
    Store, StoreError,
    database::{query, text_column},
    usage::count::{LockedCounts, WindowKey},
};

/// A span of time with its own count, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    Minute,
    Day,
    Month,
}

text_column!(Window, "usage window", [Minute = "minute", Day = "day", Month = "month"]);

/// A wish for a slice of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    pub meter_id: Box<str>,
    pub window: Window,
    pub start_ms: i64,
    /// What the window may give in all.
    pub limit: u32,
    /// The slice is one part in so many of what remains, at least 1 and at most `lease_max`.
    pub divisor: u32,
    pub lease_max: u32,
}

impl LeaseRequest {
    /// The slice that a window gives which has given so much before.
    pub fn slice(&self, granted: u32) -> u32 {
        let remaining = self.limit.saturating_sub(granted);
        (remaining / self.divisor.max(1)).clamp(1, self.lease_max.max(1)).min(remaining)
    }
}

/// The answer to a [`LeaseRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The slice: the asker's to spend. 0: nothing remains.
    pub given: u32,
    /// Leased out of the window in all, this slice included.
    pub granted: u32,
}

/// What is left of a lease when its holder stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unspent {
    pub meter_id: Box<str>,
    pub window: Window,
    pub start_ms: i64,
    pub left: u32,
}

/// Where the current windows begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStarts {
    pub minute_ms: i64,
    pub day_ms: i64,
    pub month_ms: i64,
}

/// How much of a window has been leased out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    pub meter_id: String,
    pub window: Window,
    pub granted: u32,
}

impl Store {
    /// Leases a slice for every ask, all in one transaction: on disk when this returns.
    ///
    /// # Errors
    /// The store cannot be written; then nothing was leased, or (where the commit itself was cut off)
    /// something was and is lost to its window.
    pub async fn lease(&self, asks: &[LeaseRequest]) -> Result<Vec<Lease>, StoreError> {
        let mut tx = self.begin_write().await?;
        let keys = asks.iter().map(WindowKey::of_ask).collect();
        let mut held = LockedCounts::take(&mut tx, keys).await?;
        let mut leases = Vec::with_capacity(asks.len());
        for ask in asks {
            let count = held.count(&WindowKey::of_ask(ask))?;
            let given = ask.slice(to_count(count.granted)?);
            count.granted += i64::from(given);
            leases.push(Lease { given, granted: to_count(count.granted)? });
        }
        held.put(&mut tx).await?;
        tx.commit().await?;
        Ok(leases)
    }

    /// Gives back what was leased and not spent.
    ///
    /// # Errors
    /// The store cannot be written; then nothing was given back.
    pub async fn release(&self, unspent: &[Unspent]) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let keys = unspent.iter().map(WindowKey::of_unspent).collect();
        let mut held = LockedCounts::take(&mut tx, keys).await?;
        for lease in unspent {
            let count = held.count(&WindowKey::of_unspent(lease))?;
            let left = i64::from(lease.left);
            // More than was ever given: a window that was forgotten meanwhile.
            if count.granted >= left {
                count.granted -= left;
            }
        }
        held.put(&mut tx).await?;
        tx.commit().await
    }

    /// Writes something that nobody reads, durably: whether a lease could be written.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn probe(&self) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        // One row, of a window that no meter has and that is never pruned, changed every time.
        query(
            "INSERT INTO usage (window_kind, window_start_ms, meter_id, granted) \
             VALUES ('month', 9223372036854775807, '', 1) \
             ON CONFLICT (window_kind, window_start_ms, meter_id) \
             DO UPDATE SET granted = 1 - usage.granted",
        )
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }

    /// What these windows have given, for one meter or for all.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn usage(
        &self,
        starts: WindowStarts,
        meter_id: Option<&str>,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let rows: Vec<(String, String, i64)> = query(
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
        .await?;
        rows.into_iter()
            .map(|(meter_id, window, granted)| {
                Ok(UsageRow {
                    meter_id,
                    window: Window::try_from(window)?,
                    granted: to_count(granted)?,
                })
            })
            .collect()
    }

    /// Forgets windows that began before these instants: minutes before the first, days and months
    /// before the second.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn prune_usage(&self, minutes_ms: i64, days_ms: i64) -> Result<u64, StoreError> {
        let mut tx = self.begin_write().await?;
        let pruned = query(
            "DELETE FROM usage WHERE (window_kind = 'minute' AND window_start_ms < $1) \
             OR (window_kind = 'day' AND window_start_ms < $2) \
             OR (window_kind = 'month' AND window_start_ms < $2)",
        )
        .bind(minutes_ms)
        .bind(days_ms)
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(pruned)
    }
}

fn to_count(column: i64) -> Result<u32, StoreError> {
    u32::try_from(column).map_err(|_| StoreError::corrupt("usage out of range"))
}
