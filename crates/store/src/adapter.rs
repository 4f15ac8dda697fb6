//! Upstream adapters: their state as reported by the leader, requests of people, and input that could not be read.

use crate::{
    AuditEntry, Store, StoreError,
    database::{Table, from_row, query, select},
};

/// One adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterRow {
    pub name: String,
    /// JSON; empty before the leader's first report.
    pub report: String,
    pub updated_ms: i64,
    /// The person who accepted the upstream's terms at the last start; empty before the first.
    pub accepted_by: String,
    pub paused_ms: Option<i64>,
    pub resumed_ms: Option<i64>,
    pub read_asked_ms: Option<i64>,
}

from_row!(AdapterRow, |row| Self {
    name: row.try_get("name")?,
    report: row.try_get("report")?,
    updated_ms: row.try_get("updated_ms")?,
    accepted_by: row.try_get("accepted_by")?,
    paused_ms: row.try_get("paused_ms")?,
    resumed_ms: row.try_get("resumed_ms")?,
    read_asked_ms: row.try_get("read_asked_ms")?,
});

impl Table for AdapterRow {
    const NAME: &'static str = "adapter";
    const COLUMNS: &'static str =
        "name, report, updated_ms, accepted_by, paused_ms, resumed_ms, read_asked_ms";
}

/// An input that was not in the expected format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterSampleRow {
    pub adapter: String,
    pub number: i64,
    pub at_ms: i64,
    pub unit: String,
    pub path: String,
    pub reason: String,
    pub body: Vec<u8>,
}

from_row!(AdapterSampleRow, |row| Self {
    adapter: row.try_get("adapter")?,
    number: row.try_get("number")?,
    at_ms: row.try_get("at_ms")?,
    unit: row.try_get("unit")?,
    path: row.try_get("path")?,
    reason: row.try_get("reason")?,
    body: row.try_get("body")?,
});

impl Table for AdapterSampleRow {
    const NAME: &'static str = "adapter_sample";
    const COLUMNS: &'static str = "adapter, number, at_ms, unit, path, reason, body";
}

impl Store {
    /// Every adapter that ever ran or was named in a request, by name.
    pub async fn adapters(&self) -> Result<Vec<AdapterRow>, StoreError> {
        select::<AdapterRow>("ORDER BY name").fetch_all(&self.database).await
    }

    /// Stores the state of an adapter.
    pub async fn write_adapter(
        &self,
        name: &str,
        report: &str,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        query(
            "INSERT INTO adapter (name, report, updated_ms, accepted_by) VALUES ($1, $2, $3, '') \
             ON CONFLICT (name) DO UPDATE SET report = excluded.report, updated_ms = excluded.updated_ms",
        )
        .bind(name)
        .bind(report)
        .bind(now_ms)
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }

    /// Records that an adapter starts after a person accepted the terms; `false`: it was recorded before.
    pub async fn note_adapter_start(
        &self,
        name: &str,
        accepted_by: &str,
        now_ms: i64,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let changed = query(
            "INSERT INTO adapter (name, report, updated_ms, accepted_by) VALUES ($1, '', $3, $2) \
             ON CONFLICT (name) DO UPDATE SET accepted_by = excluded.accepted_by \
             WHERE adapter.accepted_by <> excluded.accepted_by",
        )
        .bind(name)
        .bind(accepted_by)
        .bind(now_ms)
        .execute(&mut tx)
        .await?;
        Ok(tx.commit_changed((changed > 0).then_some(()), audit).await?.is_some())
    }

    /// Pauses or resumes an adapter. A paused adapter keeps the instant of its first pause.
    pub async fn pause_adapter(
        &self,
        name: &str,
        paused: bool,
        now_ms: i64,
        audit: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let (paused_ms, resumed_ms) =
            if paused { (Some(now_ms), None) } else { (None, Some(now_ms)) };
        query(
            "INSERT INTO adapter (name, report, updated_ms, accepted_by, paused_ms, resumed_ms) \
             VALUES ($1, '', $2, '', $3, $4) \
             ON CONFLICT (name) DO UPDATE SET \
             paused_ms = CASE WHEN excluded.paused_ms IS NULL THEN NULL \
             ELSE COALESCE(adapter.paused_ms, excluded.paused_ms) END, \
             resumed_ms = COALESCE(excluded.resumed_ms, adapter.resumed_ms)",
        )
        .bind(name)
        .bind(now_ms)
        .bind(paused_ms)
        .bind(resumed_ms)
        .execute(&mut tx)
        .await?;
        tx.commit_changed(Some(()), audit).await.map(drop)
    }

    /// Requests a read of an adapter now.
    pub async fn ask_adapter_read(
        &self,
        name: &str,
        now_ms: i64,
        audit: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        query(
            "INSERT INTO adapter (name, report, updated_ms, accepted_by, read_asked_ms) \
             VALUES ($1, '', $2, '', $2) \
             ON CONFLICT (name) DO UPDATE SET read_asked_ms = excluded.read_asked_ms",
        )
        .bind(name)
        .bind(now_ms)
        .execute(&mut tx)
        .await?;
        tx.commit_changed(Some(()), audit).await.map(drop)
    }

    /// Stores the samples of an adapter, replacing earlier ones.
    pub async fn write_adapter_samples(
        &self,
        name: &str,
        samples: &[AdapterSampleRow],
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        query("DELETE FROM adapter_sample WHERE adapter = $1").bind(name).execute(&mut tx).await?;
        for sample in samples {
            query(
                "INSERT INTO adapter_sample (adapter, number, at_ms, unit, path, reason, body) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(name)
            .bind(sample.number)
            .bind(sample.at_ms)
            .bind(&sample.unit)
            .bind(&sample.path)
            .bind(&sample.reason)
            .bind(sample.body.as_slice())
            .execute(&mut tx)
            .await?;
        }
        tx.commit().await
    }

    /// The samples of an adapter, newest first.
    pub async fn adapter_samples(&self, name: &str) -> Result<Vec<AdapterSampleRow>, StoreError> {
        select::<AdapterSampleRow>("WHERE adapter = $1 ORDER BY number")
            .bind(name)
            .fetch_all(&self.database)
            .await
    }
}
