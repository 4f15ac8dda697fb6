//! Requests for production access as rows.

use crate::{
    AuditEntry, Store, StoreError,
    database::{query, text_column},
};

/// Where a request stands.
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
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AccessRow {
    pub id: String,
    pub account_id: String,
    /// What the data is wanted for, in the developer's words.
    pub purpose: String,
    pub created_ms: i64,
    #[sqlx(try_from = "String")]
    pub state: AccessState,
    pub decided_ms: Option<i64>,
    pub decided_by: Option<String>,
    pub note: Option<String>,
}

/// Named one by one, here and in every statement: a newer version of the program may add columns while this one runs.
macro_rules! columns {
    () => {
        "id, account_id, purpose, created_ms, state, decided_ms, decided_by, note"
    };
}

impl Store {
    /// Keeps a new, pending request. `false`: the account has one pending, and nothing was changed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn insert_access(
        &self,
        request: &AccessRow,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let kept = query(
            "INSERT INTO access_request (id, account_id, purpose, created_ms, state) \
             VALUES ($1, $2, $3, $4, 'pending') ON CONFLICT DO NOTHING",
        )
        .bind(&request.id)
        .bind(&request.account_id)
        .bind(&request.purpose)
        .bind(request.created_ms)
        .execute(&mut tx)
        .await?;
        if kept == 0 {
            return Ok(false);
        }
        tx.commit_with(audit).await?;
        Ok(true)
    }

    /// Requests, pending ones first and then the newest; of one account, or of all.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn access_requests(
        &self,
        account_id: Option<&str>,
        limit: u32,
    ) -> Result<Vec<AccessRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM access_request WHERE $1 IS NULL OR account_id = $1 \
             ORDER BY CASE state WHEN 'pending' THEN 0 ELSE 1 END, created_ms DESC, id LIMIT $2"
        ))
        .bind(account_id)
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await
    }

    /// How many requests wait for an answer.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_pending_access(&self) -> Result<i64, StoreError> {
        query("SELECT COUNT(*) FROM access_request WHERE state = 'pending'")
            .fetch_number(&self.database)
            .await
    }

    /// Answers a pending request and, where it is approved, opens the live world to its account; both or
    /// neither. `None`: there is no such pending request. The subject of `audit` becomes the account.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn decide_access(
        &self,
        decided: &AccessRow,
        audit: AuditEntry,
    ) -> Result<Option<AccessRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let row: Option<AccessRow> = query(concat!(
            "UPDATE access_request SET state = $2, decided_ms = $3, decided_by = $4, note = $5 \
             WHERE id = $1 AND state = 'pending' RETURNING ",
            columns!()
        ))
        .bind(&decided.id)
        .bind(decided.state.as_str())
        .bind(decided.decided_ms)
        .bind(decided.decided_by.as_deref())
        .bind(decided.note.as_deref())
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
        tx.audit(&AuditEntry { subject: row.account_id.clone(), ..audit }).await?;
        tx.commit().await?;
        Ok(Some(row))
    }
}
