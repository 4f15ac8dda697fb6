//! What keys were used for, by hour and by day, and which alerts about it were given.

use crate::{
    Store, StoreError, Window,
    database::{query, text_column},
};

/// How a request was answered, as far as the books tell answers apart.
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

    /// What a status counts as.
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

/// How finely history is told.
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

    /// Where the step around an instant begins.
    pub const fn start_ms(self, at_ms: i64) -> i64 {
        at_ms.div_euclid(self.millis()) * self.millis()
    }
}

/// Requests of one key in one step, to one endpoint, that went one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountRow {
    pub key_id: String,
    pub start_ms: i64,
    pub endpoint: String,
    pub outcome: Outcome,
    pub requests: u64,
}

impl Store {
    /// Adds counts of hours to those hours and to their days, all or nothing.
    ///
    /// # Errors
    /// The store cannot be written; then nothing was added.
    pub async fn add_counts(&self, hours: &[CountRow]) -> Result<(), StoreError> {
        let mut hours: Vec<&CountRow> = hours.iter().collect();
        // In one order everywhere, so that nodes that count for the same keys do not wait for each other in a circle.
        hours.sort_unstable_by(|a, b| {
            let place = |row: &'_ CountRow| (row.start_ms, row.outcome);
            (&a.key_id, &a.endpoint, place(a)).cmp(&(&b.key_id, &b.endpoint, place(b)))
        });
        let mut tx = self.begin_write().await?;
        for row in hours {
            let requests = i64::try_from(row.requests)
                .map_err(|_| StoreError::corrupt("more requests than can be counted"))?;
            let hour = query(
                "INSERT INTO usage_hour (key_id, start_ms, endpoint, outcome, requests) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key_id, start_ms, endpoint, outcome) \
                 DO UPDATE SET requests = usage_hour.requests + excluded.requests",
            );
            let day = query(
                "INSERT INTO usage_day (key_id, start_ms, endpoint, outcome, requests) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key_id, start_ms, endpoint, outcome) \
                 DO UPDATE SET requests = usage_day.requests + excluded.requests",
            );
            for (statement, start_ms) in
                [(hour, row.start_ms), (day, Step::Day.start_ms(row.start_ms))]
            {
                statement
                    .bind(&row.key_id)
                    .bind(start_ms)
                    .bind(&row.endpoint)
                    .bind(row.outcome.as_str())
                    .bind(requests)
                    .execute(&mut tx)
                    .await?;
            }
        }
        tx.commit().await
    }

    /// What an account's keys, or one of them, were used for since an instant, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn counts(
        &self,
        account_id: &str,
        key_id: Option<&str>,
        step: Step,
        from_ms: i64,
    ) -> Result<Vec<CountRow>, StoreError> {
        let statement = match step {
            Step::Hour => {
                "SELECT key_id, start_ms, endpoint, outcome, requests FROM usage_hour \
                 WHERE key_id IN (SELECT id FROM api_key WHERE account_id = $1) \
                 AND ($2 IS NULL OR key_id = $2) AND start_ms >= $3 ORDER BY start_ms"
            }
            Step::Day => {
                "SELECT key_id, start_ms, endpoint, outcome, requests FROM usage_day \
                 WHERE key_id IN (SELECT id FROM api_key WHERE account_id = $1) \
                 AND ($2 IS NULL OR key_id = $2) AND start_ms >= $3 ORDER BY start_ms"
            }
        };
        let rows: Vec<(String, i64, String, String, i64)> = query(statement)
            .bind(account_id)
            .bind(key_id)
            .bind(from_ms)
            .fetch_all(&self.database)
            .await?;
        rows.into_iter()
            .map(|(key_id, start_ms, endpoint, outcome, requests)| {
                Ok(CountRow {
                    key_id,
                    start_ms,
                    endpoint,
                    outcome: Outcome::try_from(outcome)?,
                    requests: u64::try_from(requests)
                        .map_err(|_| StoreError::corrupt("negative count of requests"))?,
                })
            })
            .collect()
    }

    /// Forgets hours before the first instant, and days and alerts before the second.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn prune_counts(&self, hours_ms: i64, days_ms: i64) -> Result<u64, StoreError> {
        let mut tx = self.begin_write().await?;
        let hours = query("DELETE FROM usage_hour WHERE start_ms < $1")
            .bind(hours_ms)
            .execute(&mut tx)
            .await?;
        let days = query("DELETE FROM usage_day WHERE start_ms < $1")
            .bind(days_ms)
            .execute(&mut tx)
            .await?;
        query("DELETE FROM quota_alert WHERE window_start_ms < $1")
            .bind(days_ms)
            .execute(&mut tx)
            .await?;
        tx.commit().await?;
        Ok(hours + days)
    }

    /// Notes that these shares of a window were reached. Gives the largest that was not noted before.
    ///
    /// # Errors
    /// The store cannot be written.
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
            let noted = query(
                "INSERT INTO quota_alert (meter_id, window_kind, window_start_ms, percent) \
                 VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            )
            .bind(meter_id)
            .bind(window.as_str())
            .bind(start_ms)
            .bind(i64::from(*percent))
            .execute(&mut tx)
            .await?;
            if noted == 1 {
                largest = largest.max(Some(*percent));
            }
        }
        tx.commit().await?;
        Ok(largest)
    }
}
