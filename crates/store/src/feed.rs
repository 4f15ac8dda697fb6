//! Push-feed tokens as rows. A name belongs to one live token at a time; once that is revoked, the name
//! can be given out again with a new one.

use crate::{
    AuditEntry, Digest, Store, StoreError,
    database::{decode_from, query},
};

/// One push feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRow {
    pub name: String,
    pub digest: Digest,
    /// The only bookmaker the token may speak for; `None` is any.
    pub bookmaker: Option<String>,
    /// Whether it may report scores where it is bound to a bookmaker.
    pub scores: bool,
    pub created_ms: i64,
    pub revoked_ms: Option<i64>,
    /// Since when its pushes are refused.
    pub paused_ms: Option<i64>,
}

/// Named one by one, here and in every statement: a newer version of the program may add columns while this one runs.
macro_rules! columns {
    () => {
        "name, digest, bookmaker, scores, created_ms, revoked_ms, paused_ms"
    };
}

#[derive(sqlx::FromRow)]
struct RawFeed {
    name: String,
    #[sqlx(try_from = "Vec<u8>")]
    digest: Digest,
    bookmaker: Option<String>,
    scores: i64,
    created_ms: i64,
    revoked_ms: Option<i64>,
    paused_ms: Option<i64>,
}

decode_from!(FeedRow, RawFeed);

impl TryFrom<RawFeed> for FeedRow {
    type Error = StoreError;

    fn try_from(raw: RawFeed) -> Result<Self, StoreError> {
        Ok(Self {
            name: raw.name,
            digest: raw.digest,
            bookmaker: raw.bookmaker,
            scores: raw.scores != 0,
            created_ms: raw.created_ms,
            revoked_ms: raw.revoked_ms,
            paused_ms: raw.paused_ms,
        })
    }
}

impl Store {
    /// Keeps a new feed, or gives a revoked one its new token. `false`: the name has a live token.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn insert_feed(
        &self,
        feed: &FeedRow,
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let kept = query(
            "INSERT INTO feed (name, digest, bookmaker, scores, created_ms, revoked_ms) \
             VALUES ($1, $2, $3, $4, $5, NULL) \
             ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, \
             bookmaker = excluded.bookmaker, scores = excluded.scores, created_ms = excluded.created_ms, revoked_ms = NULL, \
             paused_ms = NULL \
             WHERE feed.revoked_ms IS NOT NULL",
        )
        .bind(&feed.name)
        .bind(feed.digest.as_slice())
        .bind(feed.bookmaker.as_deref())
        .bind(i64::from(feed.scores))
        .bind(feed.created_ms)
        .execute(&mut tx)
        .await?;
        if kept == 0 {
            return Ok(false);
        }
        tx.commit_change(audit).await?;
        Ok(true)
    }

    /// Every feed, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn feeds(&self) -> Result<Vec<FeedRow>, StoreError> {
        query(concat!("SELECT ", columns!(), " FROM feed ORDER BY name"))
            .fetch_all(&self.database)
            .await
    }

    /// Ends a feed's token at once; one that has ended keeps its first instant.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn revoke_feed(
        &self,
        name: &str,
        now_ms: i64,
        audit: &AuditEntry,
    ) -> Result<Option<FeedRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let row: Option<FeedRow> = query(concat!(
            "UPDATE feed SET revoked_ms = COALESCE(revoked_ms, $2) WHERE name = $1 RETURNING ",
            columns!()
        ))
        .bind(name)
        .bind(now_ms)
        .fetch_optional(&mut tx)
        .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        tx.commit_change(audit).await?;
        Ok(Some(row))
    }

    /// Pauses a live feed, or lets it push again with `None`. One that is paused keeps its first instant. Gives the
    /// feed as it now is; `None`: there is no live feed of that name.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn pause_feed(
        &self,
        name: &str,
        paused_ms: Option<i64>,
        audit: &AuditEntry,
    ) -> Result<Option<FeedRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let row: Option<FeedRow> = query(
            concat!("UPDATE feed SET paused_ms = CASE WHEN $2 IS NULL THEN NULL ELSE COALESCE(paused_ms, $2) END \
             WHERE name = $1 AND revoked_ms IS NULL RETURNING ", columns!()),
        )
        .bind(name)
        .bind(paused_ms)
        .fetch_optional(&mut tx)
        .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        tx.commit_change(audit).await?;
        Ok(Some(row))
    }
}
