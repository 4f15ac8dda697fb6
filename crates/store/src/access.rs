//! Requests for production access.

use crate::{
    AuditEntry, Store, StoreError,
    database::{Table, columns, query, returning, select, text_column},
};

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessState {
    Pending,
    Approved,
    Refused,
}

text_column!(
    AccessState,
    "state of an access request",
    [Pending = "pending", Approved = "approved", Refused = "refused"]
);

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRow {
    pub id: String,
    pub account_id: String,
    /// The intended use of the data, in the developer's words.
    pub purpose: String,
    pub created_ms: i64,
    pub state: AccessState,
    pub decided_ms: Option<i64>,
    pub decided_by: Option<String>,
    pub note: Option<String>,
}

columns!(
    AccessRow,
    [id, account_id, purpose, created_ms, decided_ms, decided_by, note],
    [state: String]
);

impl Table for AccessRow {
    const NAME: &'static str = "access_request";
    const COLUMNS: &'static str =
        "id, account_id, purpose, created_ms, state, decided_ms, decided_by, note";
}

impl Store {
    /// Stores a new, pending request. `false`: the account has a pending one, and nothing was changed.
    pub async fn insert_access(
        &self,
        request: &AccessRow,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let inserted = query(
            "INSERT INTO access_request (id, account_id, purpose, created_ms, state) \
             VALUES ($1, $2, $3, $4, 'pending') ON CONFLICT DO NOTHING",
        )
        .bind(&request.id)
        .bind(&request.account_id)
        .bind(&request.purpose)
        .bind(request.created_ms)
        .execute(&mut tx)
        .await?;
        tx.commit_if(inserted > 0, audit).await
    }

    /// Requests of one account or of all, pending ones first and then the newest.
    pub async fn access_requests(
        &self,
        account_id: Option<&str>,
        limit: u32,
    ) -> Result<Vec<AccessRow>, StoreError> {
        select::<AccessRow>(
            "WHERE $1 IS NULL OR account_id = $1 \
             ORDER BY CASE state WHEN 'pending' THEN 0 ELSE 1 END, created_ms DESC, id LIMIT $2",
        )
        .bind(account_id)
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await
    }

    pub async fn count_pending_access(&self) -> Result<i64, StoreError> {
        query("SELECT COUNT(*) FROM access_request WHERE state = 'pending'")
            .fetch_number(&self.database)
            .await
    }

    /// Decides a pending request and, if it is approved, allows its account production keys: both or neither. `None`:
    /// there is no such pending request. The subject of `audit` becomes the account.
    pub async fn decide_access(
        &self,
        decided: &AccessRow,
        audit: AuditEntry,
    ) -> Result<Option<AccessRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let row: Option<AccessRow> = returning::<AccessRow>(
            "UPDATE access_request SET state = $2, decided_ms = $3, decided_by = $4, note = $5 \
             WHERE id = $1 AND state = 'pending'",
        )
        .bind(&decided.id)
        .bind(decided.state.as_str())
        .bind(decided.decided_ms)
        .bind(&decided.decided_by)
        .bind(&decided.note)
        .fetch_optional(&mut tx)
        .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        if row.state == AccessState::Approved {
            query("UPDATE account SET production_ms = $2 WHERE id = $1")
                .bind(&row.account_id)
                .bind(row.decided_ms)
                .execute(&mut tx)
                .await?;
        }
        tx.commit_with(&AuditEntry { subject: row.account_id.clone(), ..audit }).await?;
        Ok(Some(row))
    }
}
