//! Leadership: which node should write a world's log.
//!
//! A leadership lasts until an instant of the database's clock; the nodes' clocks do not matter. It decides which
//! node tries to write; the log ensures that only one succeeds, whatever a paused node believes.

use crate::{Store, StoreError, database::query};

/// The longest leadership.
const LEADERSHIP_MS_MAX: i64 = 120_000;

/// A leadership that a node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// Incremented with every change of the leader: a node with a smaller term has been replaced.
    pub term: i64,
}

impl Store {
    /// Acquires or prolongs a leadership for `for_ms` from now on, at most two minutes. `None`: another node has it.
    ///
    /// The holder counts `for_ms` from before its call, on a clock that does not step, so it stops first.
    pub async fn acquire_leadership(
        &self,
        over: &str,
        holder: &str,
        for_ms: u32,
    ) -> Result<Option<Leadership>, StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        // The clock is read before the row is locked: at worst a leadership seems longer than it is.
        let term: Option<(i64,)> = query(
            "INSERT INTO lead (name, holder, term, ends_ms) VALUES ($1, $2, 1, $4) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_ms = excluded.ends_ms, \
             term = lead.term + CASE WHEN lead.holder = excluded.holder THEN 0 ELSE 1 END \
             WHERE lead.holder = excluded.holder OR lead.ends_ms <= $3 OR lead.ends_ms > $5 RETURNING term",
        )
        .bind(over)
        .bind(holder)
        .bind(now_ms)
        .bind(now_ms.saturating_add(i64::from(for_ms)))
        // Longer than any leadership: the clock was ahead when it was acquired. It has ended for its holder by now.
        .bind(now_ms.saturating_add(LEADERSHIP_MS_MAX))
        .fetch_optional(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(term.map(|(term,)| Leadership { term }))
    }

    /// Whether any node leads at this moment.
    pub async fn has_leader(&self, over: &str) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        let found =
            query("SELECT COUNT(*) FROM lead WHERE name = $1 AND ends_ms > $2 AND ends_ms <= $3")
                .bind(over)
                .bind(now_ms)
                .bind(now_ms.saturating_add(LEADERSHIP_MS_MAX))
                .fetch_number(&mut tx)
                .await?;
        tx.commit().await?;
        Ok(found > 0)
    }

    /// The database's clock, in milliseconds since 1970, which all nodes share.
    pub async fn now_ms(&self) -> Result<i64, StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        tx.commit().await?;
        Ok(now_ms)
    }

    /// Ends a leadership early, so that another node need not wait for its end. Not holding it is no error.
    pub async fn release_leadership(&self, over: &str, holder: &str) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        query("UPDATE lead SET ends_ms = $3 WHERE name = $1 AND holder = $2 AND ends_ms > $3")
            .bind(over)
            .bind(holder)
            .bind(now_ms)
            .execute(&mut tx)
            .await?;
        tx.commit().await
    }
}
