//! Usage over time: counted in memory, stored every minute, and read back together with counts that are not stored
//! yet. Requests never wait for it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::Timestamp;
use store::{CountRow, KeyRow, Step, Window};

use crate::{
    AccountError, Accounts, Failure, KeyEntry, KeyId, KeyRecord, Owner, WindowStanding,
    key::{grant::shared_meter_id, usage_counter::Pending, window},
    registry,
};

/// Maximum number of rows in one transaction: leases wait for it.
const ROWS_MAX: usize = 500;
/// Hourly usage is kept for the last week.
const KEEP_HOURS: Duration = Duration::from_secs(8 * 86_400);
/// More than a year, so that a month can be compared with the one a year ago.
const KEEP_DAYS: Duration = Duration::from_secs(400 * 86_400);
const PRUNE_EVERY: Duration = Duration::from_secs(3600);

/// Shares of a quota at which its owner gets an alert, in percent.
pub const ALERT_PERCENTS: [u32; 3] = [50, 80, 95];

/// Locked while counts move from memory to the store, so that a reader sees each of them once.
#[derive(Debug, Default)]
pub(crate) struct WriteState {
    pruned_at: Option<Timestamp>,
}

/// A key, the window and its start, and the percentage that was reached.
pub(crate) type AlertKey = (String, (Window, i64, u32));

/// A selection of an account's usage.
#[derive(Clone, Copy, Debug)]
pub struct UsageQuery<'a> {
    pub account_id: &'a str,
    /// One key; `None`: all.
    pub key_id: Option<&'a str>,
    pub step: Step,
    pub from: Timestamp,
}

/// A key that has reached a percentage of its quota for the first time in the window.
#[derive(Clone, Debug)]
pub struct QuotaAlert {
    pub key: KeyRecord,
    pub percent: u32,
    pub standing: WindowStanding,
}

/// The largest of [`ALERT_PERCENTS`] that a window has reached.
pub fn alert_percent(standing: &WindowStanding) -> Option<u32> {
    ALERT_PERCENTS.into_iter().rev().find(|percent| has_reached(standing, *percent))
}

fn has_reached(standing: &WindowStanding, percent: u32) -> bool {
    u64::from(standing.used) * 100 >= u64::from(standing.limit) * u64::from(percent)
}

impl Accounts {
    /// Stores the counts since the last write; counts that could not be stored are counted again. `endpoints` names
    /// the operations.
    pub async fn write_usage(&self, endpoints: &[&'static str]) -> Result<(), AccountError> {
        let mut writing = self.writing.lock().await;
        self.keys.drop_expired().await;
        let now = self.registry.now();
        let mut counted: Vec<(Arc<KeyEntry>, Pending)> = Vec::new();
        for entry in self.keys.with_usage() {
            for pending in entry.counter.take(now) {
                counted.push((Arc::clone(&entry), pending));
            }
        }
        let mut chunks = counted.chunks(ROWS_MAX);
        let mut outcome = Ok(());
        for chunk in chunks.by_ref() {
            let rows: Vec<CountRow> =
                chunk.iter().map(|(entry, pending)| row(entry, pending, endpoints)).collect();
            outcome = self.store.add_counts(&rows).await;
            if outcome.is_err() {
                chunk.iter().for_each(|(entry, pending)| entry.counter.give_back(pending));
                break;
            }
        }
        for (entry, pending) in chunks.flatten() {
            entry.counter.give_back(pending);
        }
        drop(counted);
        self.keys.forget_retired();
        let unspent = self.keys.drop_idle_meters().await;
        if outcome.is_ok() && !unspent.is_empty() {
            outcome = self.store.release(&unspent).await;
        }
        if outcome.is_ok() && writing.pruned_at.is_none_or(|at| now.since(at) >= PRUNE_EVERY) {
            writing.pruned_at = Some(now);
            let (hours, days) = (now.minus(KEEP_HOURS), now.minus(KEEP_DAYS));
            outcome = self.store.prune_counts(hours.as_millis(), days.as_millis()).await.map(drop);
            while outcome.is_ok() {
                match self.store.delete_ended_keys(now.as_millis()).await {
                    Ok(0) => break,
                    gone => outcome = gone.map(drop),
                }
            }
        }
        Ok(outcome?)
    }

    /// The usage of an account's keys, including counts that are not stored yet; oldest first.
    pub async fn usage(
        &self,
        query: UsageQuery<'_>,
        endpoints: &[&'static str],
    ) -> Result<Vec<CountRow>, AccountError> {
        let UsageQuery { account_id, key_id, step, from } = query;
        let _held = self.writing.lock().await;
        let own = self.own_rows(account_id, key_id).await?;
        let mut rows = self.store.counts(account_id, key_id, step, from.as_millis()).await?;
        let now = self.registry.now();
        for entry in self.keys.with_usage_of(&own) {
            for pending in entry.counter.pending(now) {
                let mut row = row(&entry, &pending, endpoints);
                row.start_ms = step.start_ms(row.start_ms);
                rows.push(row);
            }
        }
        rows.retain(|row| row.start_ms >= from.as_millis());
        rows.sort_by_key(|row| row.start_ms);
        Ok(rows)
    }

    /// At most `max` of the last failures of an account's keys or of one key, newest first, each with its key.
    pub async fn failures(
        &self,
        account_id: &str,
        key_id: Option<&str>,
        max: usize,
    ) -> Result<Vec<(KeyId, Failure)>, AccountError> {
        let own = self.own_rows(account_id, key_id).await?;
        let mut failures: Vec<(KeyId, Failure)> = Vec::new();
        for entry in self.keys.with_usage_of(&own) {
            let id = &entry.grant.key_id;
            failures.extend(entry.counter.failures().into_iter().map(|one| (id.clone(), one)));
        }
        failures.sort_by_key(|(_, failure)| std::cmp::Reverse(failure.at));
        failures.truncate(max);
        Ok(failures)
    }

    /// The rows of an account's keys, or of one of them.
    async fn own_rows(
        &self,
        account_id: &str,
        key_id: Option<&str>,
    ) -> Result<Vec<KeyRow>, AccountError> {
        let mut own = self.store.keys_of(account_id).await?;
        own.retain(|row| key_id.is_none_or(|wanted| wanted == row.id));
        Ok(own)
    }

    /// Keys of accounts that have reached an alert percentage of their quota, each percentage once per window. A key
    /// for which the store fails is retried at the next call and does not stop the others.
    pub async fn take_quota_alerts(&self) -> Vec<QuotaAlert> {
        let now = self.registry.now();
        let mut reached: HashMap<String, (WindowStanding, u32)> = HashMap::new();
        for entry in self.keys.with_usage() {
            let standing = entry.meters.standing(now).quota;
            if let Some(percent) = alert_percent(&standing).filter(|_| entry.is_active(now)) {
                reached.insert(entry.grant.key_id.as_str().to_owned(), (standing, percent));
            }
        }
        let mut alerts = Vec::new();
        for (key_id, (standing, percent)) in reached {
            let start_ms = window::bounds(standing.window, now).0;
            let alert = (key_id.clone(), (standing.window, start_ms, percent));
            if self.alerted.lock().await.contains(&alert) {
                continue;
            }
            match self.new_alert(&key_id, standing, start_ms).await {
                Ok(new) => {
                    alerts.extend(new);
                    self.alerted.lock().await.insert(alert);
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        event = "quota_alert.failed",
                        key_id,
                        error,
                        "quota alert not stored; retrying"
                    );
                }
            }
        }
        let current = [Window::Day, Window::Month].map(|kind| (kind, window::bounds(kind, now).0));
        self.alerted
            .lock()
            .await
            .retain(|(_, (kind, start, _))| current.contains(&(*kind, *start)));
        alerts
    }

    async fn new_alert(
        &self,
        key_id: &str,
        standing: WindowStanding,
        start_ms: i64,
    ) -> Result<Option<QuotaAlert>, AccountError> {
        let Some(row) = self.store.key(key_id).await? else {
            return Ok(None);
        };
        let reached: Vec<u32> =
            ALERT_PERCENTS.into_iter().filter(|percent| has_reached(&standing, *percent)).collect();
        // An alert about a shared quota is stored once for all its keys.
        let shared = shared_meter_id(&row).filter(|_| standing.owner == Owner::Account);
        let meter_id = shared.as_ref().unwrap_or(&row.meter_id);
        let new = self.store.record_alerts(meter_id, standing.window, start_ms, &reached).await?;
        Ok(new.map(|percent| QuotaAlert { key: registry::key_record(row), percent, standing }))
    }
}

fn row(entry: &KeyEntry, pending: &Pending, endpoints: &[&'static str]) -> CountRow {
    CountRow {
        key_id: entry.grant.key_id.as_str().to_owned(),
        start_ms: pending.hour_ms,
        endpoint: (*endpoints.get(pending.operation).unwrap_or(&"unknown")).to_owned(),
        outcome: pending.outcome,
        requests: u64::from(pending.requests),
    }
}
