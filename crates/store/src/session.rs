//! Sessions. The token of the cookie is never stored, only its digest.

use crate::{
    AuditEntry, Digest, Store, StoreError,
    database::{Lock, Table, columns, query, select, text_column},
};

/// The progress of a sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The password was correct; the second factor is still missing.
    Password,
    Full,
}

text_column!(Stage, "session stage", [Password = "password", Full = "full"]);

/// One session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub digest: Digest,
    /// Its public id, for lists.
    pub id: String,
    pub account_id: String,
    pub stage: Stage,
    pub created_ms: i64,
    pub seen_ms: i64,
    pub address: String,
    pub agent: String,
}

columns!(
    SessionRow,
    [id, account_id, created_ms, seen_ms, address, agent],
    [digest: Vec<u8>, stage: String]
);

impl Table for SessionRow {
    const NAME: &'static str = "session";
    const COLUMNS: &'static str =
        "digest, id, account_id, stage, created_ms, seen_ms, address, agent";
}

impl Store {
    /// Stores a new session in place of an old one, and keeps at most `max` of the account, those last seen.
    pub async fn insert_session(
        &self,
        session: &SessionRow,
        replaced: Option<&Digest>,
        max: u32,
        audit: Option<&AuditEntry>,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        tx.lock(Lock::Sessions { account_id: &session.account_id }).await?;
        query("DELETE FROM session WHERE digest = $1")
            .bind(replaced.map(Digest::as_slice))
            .execute(&mut tx)
            .await?;
        query(
            "INSERT INTO session (digest, id, account_id, stage, created_ms, seen_ms, address, agent) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(session.digest.as_slice())
        .bind(&session.id)
        .bind(&session.account_id)
        .bind(session.stage.as_str())
        .bind(session.created_ms)
        .bind(session.seen_ms)
        .bind(&session.address)
        .bind(&session.agent)
        .execute(&mut tx)
        .await?;
        query(
            "DELETE FROM session WHERE account_id = $1 AND digest NOT IN (SELECT digest FROM session \
             WHERE account_id = $1 ORDER BY seen_ms DESC, created_ms DESC LIMIT $2)",
        )
        .bind(&session.account_id)
        .bind(i64::from(max))
        .execute(&mut tx)
        .await?;
        tx.commit_with(audit).await
    }

    pub async fn session(&self, digest: &Digest) -> Result<Option<SessionRow>, StoreError> {
        select::<SessionRow>("WHERE digest = $1")
            .bind(digest.as_slice())
            .fetch_optional(&self.database)
            .await
    }

    /// An account's sessions, last seen first.
    pub async fn sessions_of(&self, account_id: &str) -> Result<Vec<SessionRow>, StoreError> {
        select::<SessionRow>("WHERE account_id = $1 ORDER BY seen_ms DESC, created_ms DESC")
            .bind(account_id)
            .fetch_all(&self.database)
            .await
    }

    /// Records that a session was used.
    pub async fn touch_session(&self, digest: &Digest, seen_ms: i64) -> Result<(), StoreError> {
        let touch = query("UPDATE session SET seen_ms = $2 WHERE digest = $1");
        self.database.write(touch.bind(digest.as_slice()).bind(seen_ms)).await.map(drop)
    }

    /// Ends one session of an account. `false`: it has no such session.
    pub async fn end_session(
        &self,
        account_id: &str,
        id: &str,
        audit: Option<&AuditEntry>,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let ended = query("DELETE FROM session WHERE account_id = $1 AND id = $2")
            .bind(account_id)
            .bind(id)
            .execute(&mut tx)
            .await?;
        tx.commit_if(ended > 0, audit).await
    }

    /// Ends all sessions of an account, except one if it is given.
    pub async fn end_sessions(
        &self,
        account_id: &str,
        kept: Option<&Digest>,
        audit: &AuditEntry,
    ) -> Result<u64, StoreError> {
        let mut tx = self.begin_write().await?;
        let ended = tx.end_sessions(account_id, kept).await?;
        tx.commit_with(audit).await?;
        Ok(ended)
    }

    /// Deletes sessions last seen at or before the first instant or created at or before the second, and links that
    /// expired by the third.
    pub async fn prune_sessions(
        &self,
        seen_ms: i64,
        created_ms: i64,
        links_ms: i64,
    ) -> Result<u64, StoreError> {
        let sessions = query("DELETE FROM session WHERE seen_ms <= $1 OR created_ms <= $2");
        let sessions = self.database.write(sessions.bind(seen_ms).bind(created_ms)).await?;
        let links = query("DELETE FROM link WHERE expires_ms <= $1").bind(links_ms);
        Ok(sessions + self.database.write(links).await?)
    }
}

impl crate::Tx {
    pub(crate) async fn end_sessions(
        &mut self,
        account_id: &str,
        kept: Option<&Digest>,
    ) -> Result<u64, StoreError> {
        query("DELETE FROM session WHERE account_id = $1 AND digest IS DISTINCT FROM $2")
            .bind(account_id)
            .bind(kept.map(Digest::as_slice))
            .execute(self)
            .await
    }
}
