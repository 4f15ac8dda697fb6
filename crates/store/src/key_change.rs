//! The number of the last change of keys, and the nodes that have read up to it.
//!
//! The number is raised last in a transaction, on one row that stays locked until the end: numbers become visible in
//! order, and a node that reads the number first and the keys after it has every change up to that number.

use crate::{
    Store, StoreError,
    database::{Tx, query},
};

/// A node that was not seen for this long has stopped accepting keys by itself; its row is deleted.
const DEAD_AFTER_MS: i64 = 86_400_000;
/// A node that was not seen for this long, by this database's clock, relies on no change beyond those it has
/// confirmed.
///
/// Well beyond the time after which it does so by its own clock (`accounts`: `UNCONFIRMED_MAX_MS`): clocks may be
/// wrong.
pub const NODE_SILENT_MS: u64 = 240_000;

/// The state of the changes of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// The number of the last change; 0 before the first.
    pub number: i64,
    /// The number to which the count was raised when the database was last restored from a backup; 0 if it never was.
    /// Numbers of different eras cannot be compared: everything has to be read again.
    pub era: i64,
}

/// A node in the list of those that accept keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The number it has confirmed.
    pub confirmed: i64,
    /// The last number that it had not confirmed when its lease expired; 0: none.
    pub run_out: i64,
}

impl Listed {
    /// Whether a change waits for this node.
    pub fn is_waited_for(&self) -> bool {
        self.confirmed >= self.run_out
    }
}

/// The nodes that have yet to read up to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    pub nodes: u64,
    /// The longest of their key leases.
    pub lease_ms: u64,
}

impl Tx {
    /// Assigns the next number to everything that this transaction changed. Called last: from here on other
    /// transactions wait.
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
    pub async fn key_change(&self) -> Result<KeyChange, StoreError> {
        Ok(self.key_change_seen_by("").await?.0)
    }

    /// The last change, and the state of a node at the same instant; `None` if the node is not listed.
    pub async fn key_change_seen_by(
        &self,
        node: &str,
    ) -> Result<(KeyChange, Option<Listed>), StoreError> {
        // In one statement: a node that is listed here is listed when the number is read.
        let (number, era, confirmed, run_out): (i64, i64, Option<i64>, Option<i64>) = query(
            "SELECT c.number, c.era, n.confirmed, n.run_out FROM \
             (SELECT COALESCE(MAX(CASE WHEN name = 'keys' THEN number END), 0) AS number, \
             COALESCE(MAX(CASE WHEN name = 'era' THEN number END), 0) AS era FROM key_change) c \
             LEFT JOIN node n ON n.id = $1",
        )
        .bind(node)
        .fetch_one(&self.database)
        .await?;
        let listed =
            confirmed.map(|confirmed| Listed { confirmed, run_out: run_out.unwrap_or_default() });
        Ok((KeyChange { number, era }, listed))
    }

    /// Raises the number to this one and begins an era with it, unless it is reached already: the database was
    /// restored to a state before changes that nodes have read.
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
            // Confirmations since the backup are lost: changes wait for all nodes again.
            query("UPDATE node SET run_out = 0 WHERE run_out > 0").execute(&mut tx).await?;
        }
        tx.commit().await
    }

    /// Lists a node as alive, with the number up to which it has read.
    pub async fn confirm_node(
        &self,
        id: &str,
        number: i64,
        lease_ms: u64,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        // A call that timed out may arrive after the next one: the greater number is kept.
        query(
            "INSERT INTO node (id, confirmed, trust_ms, seen_ms, run_out) VALUES ($1, $2, $3, $4, 0) \
             ON CONFLICT (id) DO UPDATE SET trust_ms = excluded.trust_ms, seen_ms = excluded.seen_ms, \
             run_out = COALESCE(node.run_out, 0), \
             confirmed = CASE WHEN excluded.confirmed > node.confirmed THEN excluded.confirmed \
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

    /// Deletes nodes that were not seen for a day.
    pub async fn delete_dead_nodes(&self) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        query("DELETE FROM node WHERE seen_ms < $1")
            .bind(now_ms.saturating_sub(DEAD_AFTER_MS))
            .execute(&mut tx)
            .await?;
        tx.commit().await
    }

    /// Deletes a node that accepts no keys any more; changes no longer wait for it.
    pub async fn delete_node(&self, id: &str) -> Result<(), StoreError> {
        self.database.write(query("DELETE FROM node WHERE id = $1").bind(id)).await.map(drop)
    }

    /// The nodes that have not read up to a number and may still accept keys.
    pub async fn nodes_behind(&self, number: i64) -> Result<Behind, StoreError> {
        let (nodes, lease_ms): (i64, i64) = query(
            "SELECT COUNT(*), COALESCE(MAX(trust_ms), 0) FROM node \
             WHERE confirmed < $1 AND confirmed >= COALESCE(run_out, 0)",
        )
        .bind(number)
        .fetch_one(&self.database)
        .await?;
        let to_u64 = |column: i64| {
            u64::try_from(column).map_err(|_| StoreError::corrupt("a node's row is out of range"))
        };
        Ok(Behind { nodes: to_u64(nodes)?, lease_ms: to_u64(lease_ms)? })
    }

    /// Marks nodes that were not seen for minutes and have not confirmed a number: their lease has expired, they
    /// cannot renew it before they confirm, and until then no change waits for them.
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
