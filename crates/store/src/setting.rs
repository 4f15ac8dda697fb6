//! Small values that outlive a restart, such as maintenance.

use crate::{
    AuditEntry, Store, StoreError,
    database::{Tx, query},
};

impl Store {
    pub async fn setting(&self, key: &str) -> Result<Option<String>, StoreError> {
        let row: Option<(String,)> = query("SELECT value FROM setting WHERE key = $1")
            .bind(key)
            .fetch_optional(&self.database)
            .await?;
        Ok(row.map(|(value,)| value))
    }

    /// Sets or, with `None`, removes a setting that a person controls. Nodes follow it as they follow keys.
    pub async fn decide_setting(
        &self,
        key: &str,
        value: Option<&str>,
        audit: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        tx.set(key, value).await?;
        tx.commit_change(audit).await
    }

    /// Sets or, with `None`, removes a value of the service itself. Nodes follow it as they follow keys.
    pub async fn set_setting(&self, key: &str, value: Option<&str>) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        tx.set(key, value).await?;
        tx.number_change().await?;
        tx.commit().await
    }
}

impl Tx {
    async fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), StoreError> {
        let statement = match value {
            Some(value) => query(
                "INSERT INTO setting (key, value) VALUES ($1, $2) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            )
            .bind(key)
            .bind(value),
            None => query("DELETE FROM setting WHERE key = $1").bind(key),
        };
        statement.execute(self).await?;
        Ok(())
    }
}
