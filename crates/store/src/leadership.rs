//! Who leads: of all nodes that could write a world's log, the one that should.
//!
//! A lead is held until an instant of the database's clock, so that no node's clock counts. It decides who tries;
//! that only one succeeds is the log's own doing, whatever a node that slept believes about its lead.

use crate::{Store, StoreError, database::query};

/// Leads are for less than this.
const LEADERSHIP_MS_MAX: i64 = 120_000;

/// A lead that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// One more with every change of hands: who holds a smaller one has been replaced.
    pub term: i64,
}

impl Store {
    /// Takes or prolongs the lead over something for `for_ms` from now on, two minutes at the most. `None`: another
    /// holder has it.
    ///
    /// The holder counts `for_ms` from before it called, on a clock that does not step, and so lets go first.
    ///
    /// # Errors
    /// The store cannot be written; then the holder has what it had.
    pub async fn acquire_leadership(
        &self,
        over: &str,
        holder: &str,
        for_ms: u32,
    ) -> Result<Option<Leadership>, StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        // A clock that is read before the row is waited for is early at most: a lead is then seen as longer than it is.
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
        // Nobody takes a lead for so long: the clock was ahead when it was taken. It is over in time for whoever holds
        // it.
        .bind(now_ms.saturating_add(LEADERSHIP_MS_MAX))
        .fetch_optional(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(term.map(|(term,)| Leadership { term }))
    }

    /// Whether anybody has the lead over something at this moment.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn has_leader(&self, over: &str) -> Result<bool, StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        let found: Option<(i64,)> =
            query("SELECT term FROM lead WHERE name = $1 AND ends_ms > $2 AND ends_ms <= $3")
                .bind(over)
                .bind(now_ms)
                .bind(now_ms.saturating_add(LEADERSHIP_MS_MAX))
                .fetch_optional(&mut tx)
                .await?;
        tx.commit().await?;
        Ok(found.is_some())
    }

    /// The database's clock, in milliseconds since 1970: the one that all who share it have in common.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn now_ms(&self) -> Result<i64, StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        tx.commit().await?;
        Ok(now_ms)
    }

    /// Gives a lead back before its end, so that another holder need not wait for it. Not having it is no fault.
    ///
    /// # Errors
    /// The store cannot be written; then it runs out by itself.
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
