//! The number of the last change of keys, and which nodes have read up to it.
//!
//! The number is raised last in a transaction, on one row that stays locked until it ends: numbers become visible in
//! their order, and who reads the number first and the keys after it has every change up to that number.

use crate::{
    Store, StoreError,
    database::{Tx, query},
};

/// A node that was not seen for so long has stopped letting keys in by itself long ago, and its row goes.
const FORGET_AFTER_MS: i64 = 86_400_000;
/// A node that was not seen for so long, by this database's clock, goes by no more than it has confirmed.
///
/// Well beyond the time after which it does so by its own (`accounts`: `UNCONFIRMED_MAX_MS`): clocks may be wrong.
pub const NODE_SILENT_MS: u64 = 240_000;

/// How far the changes of keys have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// Of the last change; 0 before the first.
    pub number: i64,
    /// The number that the count was raised to when the database was last set back; 0 where it never was. Numbers of
    /// different eras say nothing about each other's changes: everything is to be read again.
    pub era: i64,
}

/// How a node stands in the list of those who let keys in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The number that it has confirmed.
    pub confirmed: i64,
    /// The last number that it was waited for in vain; 0 where it never was.
    pub run_out: i64,
}

impl Listed {
    /// Whether whoever changes something waits for it.
    pub fn is_waited_for(&self) -> bool {
        self.confirmed >= self.run_out
    }
}

/// Who has yet to read up to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    pub nodes: u64,
    /// The longest time that one of them lets keys in without having asked.
    pub lease_ms: u64,
}

impl Tx {
    /// Gives the next number to everything that this transaction changed. The last thing to do in it: others wait
    /// from here on.
    pub(crate) async fn number_change(&mut self) -> Result<(), StoreError> {
        let number = query(
            "INSERT INTO key_change (name, number) VALUES ('keys', 1) \
             ON CONFLICT (name) DO UPDATE SET number = key_change.number + 1 RETURNING number",
        )
        .fetch_number(&mut *self)
        .await?;
        query("UPDATE api_key SET change_number = $1 WHERE change_number IS NULL")
            .bind(number)
            .execute(self)
            .await?;
        Ok(())
    }
}

impl Store {
    /// The last change of keys, feed tokens or maintenance.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn key_change(&self) -> Result<KeyChange, StoreError> {
        let row: Option<(i64, i64)> = query(
            "SELECT COALESCE(MAX(CASE WHEN name = 'keys' THEN number END), 0), \
             COALESCE(MAX(CASE WHEN name = 'era' THEN number END), 0) FROM key_change",
        )
        .fetch_optional(&self.database)
        .await?;
        let (number, era) = row.ok_or_else(|| StoreError::corrupt("a count yielded no row"))?;
        Ok(KeyChange { number, era })
    }

    /// The last change, and how a node is listed at the same instant; `None` where it is not.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn key_change_seen_by(
        &self,
        node: &str,
    ) -> Result<(KeyChange, Option<Listed>), StoreError> {
        // In one statement: a node that is listed here is listed when the number is read.
        let row: Option<(i64, i64, Option<i64>, Option<i64>)> = query(
            "SELECT c.number, c.era, n.confirmed, n.run_out FROM \
             (SELECT COALESCE(MAX(CASE WHEN name = 'keys' THEN number END), 0) AS number, \
             COALESCE(MAX(CASE WHEN name = 'era' THEN number END), 0) AS era FROM key_change) c \
             LEFT JOIN node n ON n.id = $1",
        )
        .bind(node)
        .fetch_optional(&self.database)
        .await?;
        let (number, era, confirmed, run_out) =
            row.ok_or_else(|| StoreError::corrupt("a count yielded no row"))?;
        let listed =
            confirmed.map(|confirmed| Listed { confirmed, run_out: run_out.unwrap_or_default() });
        Ok((KeyChange { number, era }, listed))
    }

    /// Raises the number to this one and begins an era with it, unless it is there already: the database was set back
    /// behind what nodes were told.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn raise_key_change(&self, to: i64) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let raised = query(
            "INSERT INTO key_change (name, number) VALUES ('keys', $1) \
             ON CONFLICT (name) DO UPDATE SET number = excluded.number \
             WHERE key_change.number < excluded.number",
        )
        .bind(to)
        .execute(&mut tx)
        .await?;
        if raised > 0 {
            query(
                "INSERT INTO key_change (name, number) VALUES ('era', $1) \
                 ON CONFLICT (name) DO UPDATE SET number = excluded.number",
            )
            .bind(to)
            .execute(&mut tx)
            .await?;
            // Whoever came back in the life of the database that is lost is waited for.
            query("UPDATE node SET run_out = 0 WHERE run_out > 0").execute(&mut tx).await?;
        }
        tx.commit().await
    }

    /// Notes that a node is there and has read up to a number.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn confirm_node(
        &self,
        id: &str,
        number: i64,
        lease_ms: u64,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        // An attempt that was given up may arrive after the next one: what was read stays read.
        query(
            "INSERT INTO node (id, confirmed, trust_ms, seen_ms, run_out) VALUES ($1, $2, $3, $4, 0) \
             ON CONFLICT (id) DO UPDATE SET trust_ms = excluded.trust_ms, seen_ms = excluded.seen_ms, \
             run_out = COALESCE(node.run_out, 0), confirmed = CASE WHEN excluded.confirmed > node.confirmed THEN excluded.confirmed \
             ELSE node.confirmed END",
        )
        .bind(id)
        .bind(number)
        .bind(i64::try_from(lease_ms).unwrap_or(i64::MAX))
        .bind(now_ms)
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }

    /// Forgets nodes that were not seen for a day.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn delete_dead_nodes(&self) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        query("DELETE FROM node WHERE seen_ms < $1")
            .bind(now_ms.saturating_sub(FORGET_AFTER_MS))
            .execute(&mut tx)
            .await?;
        tx.commit().await
    }

    /// Forgets a node that lets nobody in any more. Nobody waits for it from here on.
    ///
    /// # Errors
    /// The store cannot be written; then it is waited for, for minutes.
    pub async fn delete_node(&self, id: &str) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        query("DELETE FROM node WHERE id = $1").bind(id).execute(&mut tx).await?;
        tx.commit().await
    }

    /// How many nodes have not read up to a number and may let keys in all the same.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn nodes_behind(&self, number: i64) -> Result<Behind, StoreError> {
        let row: Option<(i64, i64)> = query(
            "SELECT COUNT(*), COALESCE(MAX(trust_ms), 0) FROM node \
             WHERE confirmed < $1 AND confirmed >= COALESCE(run_out, 0)",
        )
        .bind(number)
        .fetch_optional(&self.database)
        .await?;
        let (nodes, lease_ms) = row.ok_or_else(|| StoreError::corrupt("a count yielded no row"))?;
        let count = |column: i64| {
            u64::try_from(column).map_err(|_| StoreError::corrupt("a node's row is out of range"))
        };
        Ok(Behind { nodes: count(nodes)?, lease_ms: count(lease_ms)? })
    }

    /// Notes of everybody who has not been seen for minutes and has not confirmed a number, whose right to let keys in
    /// has run out therefore, that it cannot gain it before it has: nobody waits for it until then.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn mark_expired(&self, number: i64) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        query(
            "UPDATE node SET run_out = $1 WHERE confirmed < $1 AND run_out < $1 AND seen_ms < $2",
        )
        .bind(number)
        .bind(now_ms.saturating_sub_unsigned(NODE_SILENT_MS))
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }
}
