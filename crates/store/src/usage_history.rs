//! Requests of keys by hour and by day, and the quota alerts that were sent.

use crate::{
    Store, StoreError, Window,
    database::{built_query, columns, query, text_column},
};

/// The outcome of a request, as distinguished by usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Ok,
    NotModified,
    /// A fault of the request.
    Refused,
    /// Over a limit.
    Limited,
    /// A fault of the service.
    Failed,
}

impl Outcome {
    pub const ALL: [Self; 5] =
        [Self::Ok, Self::NotModified, Self::Refused, Self::Limited, Self::Failed];

    /// The outcome for a status.
    pub const fn of_status(status: u16) -> Self {
        match status {
            304 => Self::NotModified,
            0..=399 => Self::Ok,
            429 => Self::Limited,
            400..=499 => Self::Refused,
            500.. => Self::Failed,
        }
    }
}

text_column!(
    Outcome,
    "outcome of requests",
    [
        Ok = "ok",
        NotModified = "not_modified",
        Refused = "refused",
        Limited = "limited",
        Failed = "failed"
    ]
);

/// The resolution of usage history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Hour,
    Day,
}

impl Step {
    pub const fn millis(self) -> i64 {
        match self {
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }

    const fn table(self) -> &'static str {
        match self {
            Self::Hour => "usage_hour",
            Self::Day => "usage_day",
        }
    }

    /// The start of the step around an instant.
    pub const fn start_ms(self, at_ms: i64) -> i64 {
        at_ms.div_euclid(self.millis()) * self.millis()
    }
}

/// Requests of one key in one step, to one endpoint, with one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountRow {
    pub key_id: String,
    pub start_ms: i64,
    pub endpoint: String,
    pub outcome: Outcome,
    pub requests: u64,
}

columns!(CountRow, [key_id, start_ms, endpoint], [outcome: String, requests: i64]);

impl Store {
    /// Adds hourly counts to their hours and days, all or none.
    pub async fn add_counts(&self, hours: &[CountRow]) -> Result<(), StoreError> {
        let mut hours: Vec<&CountRow> = hours.iter().collect();
        // Always in the same order, so that nodes that count the same keys do not deadlock.
        hours.sort_unstable_by(|a, b| {
            (&a.key_id, &a.endpoint, a.start_ms, a.outcome).cmp(&(
                &b.key_id,
                &b.endpoint,
                b.start_ms,
                b.outcome,
            ))
        });
        let mut tx = self.begin_write().await?;
        for row in hours {
            let requests = i64::try_from(row.requests)
                .map_err(|_| StoreError::corrupt("more requests than can be counted"))?;
            for step in [Step::Hour, Step::Day] {
                let table = step.table();
                built_query(format!(
                    "INSERT INTO {table} (key_id, start_ms, endpoint, outcome, requests) \
                     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key_id, start_ms, endpoint, outcome) \
                     DO UPDATE SET requests = {table}.requests + excluded.requests"
                ))
                .bind(&row.key_id)
                .bind(step.start_ms(row.start_ms))
                .bind(&row.endpoint)
                .bind(row.outcome.as_str())
                .bind(requests)
                .execute(&mut tx)
                .await?;
            }
        }
        tx.commit().await
    }

    /// The usage of an account's keys, or of one of them, since an instant, oldest first.
    pub async fn counts(
        &self,
        account_id: &str,
        key_id: Option<&str>,
        step: Step,
        from_ms: i64,
    ) -> Result<Vec<CountRow>, StoreError> {
        built_query(format!(
            "SELECT key_id, start_ms, endpoint, outcome, requests FROM {} \
             WHERE key_id IN (SELECT id FROM api_key WHERE account_id = $1) \
             AND ($2 IS NULL OR key_id = $2) AND start_ms >= $3 ORDER BY start_ms",
            step.table()
        ))
        .bind(account_id)
        .bind(key_id)
        .bind(from_ms)
        .fetch_all(&self.database)
        .await
    }

    /// Deletes hours before the first instant, and days and alerts before the second.
    pub async fn prune_counts(&self, hours_ms: i64, days_ms: i64) -> Result<u64, StoreError> {
        let delete = async |statement: &'static str, before_ms: i64| {
            self.database.write(query(statement).bind(before_ms)).await
        };
        let hours = delete("DELETE FROM usage_hour WHERE start_ms < $1", hours_ms).await?;
        let days = delete("DELETE FROM usage_day WHERE start_ms < $1", days_ms).await?;
        delete("DELETE FROM quota_alert WHERE window_start_ms < $1", days_ms).await?;
        Ok(hours + days)
    }

    /// Records that these percentages of a window were reached. Returns the largest one that was not recorded before.
    pub async fn record_alerts(
        &self,
        meter_id: &str,
        window: Window,
        start_ms: i64,
        percents: &[u32],
    ) -> Result<Option<u32>, StoreError> {
        let mut tx = self.begin_write().await?;
        let mut largest = None;
        for percent in percents {
            let recorded = query(
                "INSERT INTO quota_alert (meter_id, window_kind, window_start_ms, percent) \
                 VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            )
            .bind(meter_id)
            .bind(window.as_str())
            .bind(start_ms)
            .bind(i64::from(*percent))
            .execute(&mut tx)
            .await?;
            if recorded == 1 {
                largest = largest.max(Some(*percent));
            }
        }
        tx.commit().await?;
        Ok(largest)
    }
}
