//! Tokens of push feeds. A name has one live token at a time; once that is revoked, the name can get a new one.

use crate::{
    AuditEntry, Digest, Store, StoreError,
    database::{Table, decode_error, from_row, query, returning, select},
};

/// One push feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRow {
    pub name: String,
    pub digest: Digest,
    /// The only bookmaker whose prices the token may send; `None`: any.
    pub bookmaker: Option<String>,
    /// Whether a token bound to a bookmaker may report scores.
    pub scores: bool,
    pub created_ms: i64,
    pub revoked_ms: Option<i64>,
    /// Time at which it was paused: its pushes are refused.
    pub paused_ms: Option<i64>,
}

from_row!(FeedRow, |row| Self {
    digest: row.try_get::<Vec<u8>, _>("digest")?.try_into().map_err(decode_error)?,
    scores: row.try_get::<i64, _>("scores")? != 0,
    name: row.try_get("name")?,
    bookmaker: row.try_get("bookmaker")?,
    created_ms: row.try_get("created_ms")?,
    revoked_ms: row.try_get("revoked_ms")?,
    paused_ms: row.try_get("paused_ms")?,
});

impl Table for FeedRow {
    const NAME: &'static str = "feed";
    const COLUMNS: &'static str =
        "name, digest, bookmaker, scores, created_ms, revoked_ms, paused_ms";
}

impl Store {
    /// Stores a new feed, or a new token of a revoked one. `false`: the name has a live token.
    pub async fn insert_feed(
        &self,
        feed: &FeedRow,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let stored = query(
            "INSERT INTO feed (name, digest, bookmaker, scores, created_ms, revoked_ms) \
             VALUES ($1, $2, $3, $4, $5, NULL) \
             ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, \
             bookmaker = excluded.bookmaker, scores = excluded.scores, created_ms = excluded.created_ms, revoked_ms = NULL, \
             paused_ms = NULL \
             WHERE feed.revoked_ms IS NOT NULL",
        )
        .bind(&feed.name)
        .bind(feed.digest.as_slice())
        .bind(&feed.bookmaker)
        .bind(i64::from(feed.scores))
        .bind(feed.created_ms)
        .execute(&mut tx)
        .await?;
        Ok(tx.commit_changed((stored > 0).then_some(()), audit).await?.is_some())
    }

    /// Every feed, by name.
    pub async fn feeds(&self) -> Result<Vec<FeedRow>, StoreError> {
        select::<FeedRow>("ORDER BY name").fetch_all(&self.database).await
    }

    /// Revokes a feed's token; a revoked token keeps its first instant.
    pub async fn revoke_feed(
        &self,
        name: &str,
        now_ms: i64,
        audit: &AuditEntry,
    ) -> Result<Option<FeedRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let revoke = returning::<FeedRow>(
            "UPDATE feed SET revoked_ms = COALESCE(revoked_ms, $2) WHERE name = $1",
        );
        let row = revoke.bind(name).bind(now_ms).fetch_optional(&mut tx).await?;
        tx.commit_changed(row, audit).await
    }

    /// Pauses a live feed, or resumes it with `None`. A paused feed keeps its first instant. Returns the updated
    /// feed; `None`: there is no live feed of that name.
    pub async fn pause_feed(
        &self,
        name: &str,
        paused_ms: Option<i64>,
        audit: &AuditEntry,
    ) -> Result<Option<FeedRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let pause = returning::<FeedRow>(
            "UPDATE feed SET paused_ms = CASE WHEN $2 IS NULL THEN NULL ELSE COALESCE(paused_ms, $2) END \
             WHERE name = $1 AND revoked_ms IS NULL",
        );
        let row = pause.bind(name).bind(paused_ms).fetch_optional(&mut tx).await?;
        tx.commit_changed(row, audit).await
    }
}
