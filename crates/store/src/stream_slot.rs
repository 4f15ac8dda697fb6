//! Counts the open streams of each key over the nodes of a cluster (S11).
//!
//! A node may hold streams until an instant of the database's clock, which it extends repeatedly; streams of a node
//! whose instant has passed do not count. All transactions here run one after the other: each holds a lock from its
//! first statement to its end. So a transaction whose commit was not answered cannot take effect after a later one of
//! the same node, and a node cannot prolong its right while another node counts without it.

use std::collections::HashMap;

use sqlx::FromRow as _;

use crate::{
    Store, StoreError,
    database::{Lock, PgTx, Tx, query, to_count},
};

/// The longest right. A right that seems longer was given when the clock was ahead, and has ended for its node by
/// now.
const RIGHT_MS_MAX: i64 = 120_000;

/// The streams of one key that a node wants to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsWanted {
    pub key_id: Box<str>,
    /// Streams already open. The number granted is never less.
    pub open: u32,
    /// Open streams plus those to be opened.
    pub wanted: u32,
    /// Maximum number of streams over all nodes.
    pub limit: u32,
}

impl StreamsWanted {
    /// The number that the node holds from now on, if the others hold `others`.
    fn granted(&self, others: u32) -> u32 {
        self.wanted.min(self.limit.saturating_sub(others)).max(self.open)
    }
}

impl Store {
    /// Lets a node hold streams for `for_ms` from now on, initially none. The node counts `for_ms` from before its
    /// call, on a clock that does not step, so that it stops first.
    pub async fn begin_stream_node(&self, node: &str, for_ms: u32) -> Result<(), StoreError> {
        let mut tx = self.begin_slots().await?;
        let now_ms = tx.delete_expired_stream_nodes().await?;
        query("INSERT INTO stream_node (id, until_ms) VALUES ($1, $2)")
            .bind(node)
            .bind(now_ms.saturating_add(i64::from(for_ms)))
            .execute(&mut tx)
            .await?;
        tx.commit().await
    }

    /// Sets the streams that a node holds of some keys, and prolongs its right by `for_ms` from now on. Returns the
    /// number held of each; `None`: its right has expired, and it holds none.
    pub async fn hold_streams(
        &self,
        node: &str,
        for_ms: u32,
        wanted: &[StreamsWanted],
    ) -> Result<Option<Vec<u32>>, StoreError> {
        let mut tx = self.begin_slots().await?;
        let now_ms = tx.delete_expired_stream_nodes().await?;
        let prolonged = query("UPDATE stream_node SET until_ms = $2 WHERE id = $1")
            .bind(node)
            .bind(now_ms.saturating_add(i64::from(for_ms)))
            .execute(&mut tx)
            .await?;
        let mut held = None;
        if prolonged > 0 {
            let others = tx.streams_of_others(node, wanted).await?;
            let others = |key: &StreamsWanted| others.get(&*key.key_id).copied().unwrap_or(0);
            let granted: Vec<u32> = wanted.iter().map(|key| key.granted(others(key))).collect();
            tx.write_streams(node, wanted, &granted).await?;
            held = Some(granted);
        }
        tx.commit().await?;
        Ok(held)
    }

    /// Ends a node's right; its streams are free at once.
    pub async fn end_stream_node(&self, node: &str) -> Result<(), StoreError> {
        let mut tx = self.begin_slots().await?;
        query("DELETE FROM stream_slot WHERE node_id = $1").bind(node).execute(&mut tx).await?;
        query("DELETE FROM stream_node WHERE id = $1").bind(node).execute(&mut tx).await?;
        tx.commit().await
    }

    /// The number of streams of a key on all nodes whose rights have not expired.
    pub async fn streams_of(&self, key_id: &str) -> Result<u32, StoreError> {
        let mut tx = self.begin_write().await?;
        let now_ms = tx.now_ms().await?;
        let held = query(
            "SELECT CAST(COALESCE(SUM(s.held), 0) AS BIGINT) FROM stream_slot s \
             JOIN stream_node n ON n.id = s.node_id WHERE s.key_id = $1 AND n.until_ms > $2",
        );
        let held = held.bind(key_id).bind(now_ms).fetch_number(&mut tx).await?;
        tx.commit().await?;
        Ok(to_count(held)?)
    }

    async fn begin_slots(&self) -> Result<Tx, StoreError> {
        let mut tx = self.begin_write().await?;
        tx.lock(Lock::Streams).await?;
        Ok(tx)
    }
}

impl Tx {
    /// Deletes nodes whose right has expired, with their streams, and returns the time.
    async fn delete_expired_stream_nodes(&mut self) -> Result<i64, StoreError> {
        // Read after the lock: a node whose right ends meanwhile has not prolonged it.
        let now_ms = self.now_ms().await?;
        let latest_ms = now_ms.saturating_add(RIGHT_MS_MAX);
        for delete in [
            "DELETE FROM stream_slot WHERE node_id IN \
             (SELECT id FROM stream_node WHERE until_ms <= $1 OR until_ms > $2)",
            "DELETE FROM stream_node WHERE until_ms <= $1 OR until_ms > $2",
        ] {
            query(delete).bind(now_ms).bind(latest_ms).execute(self).await?;
        }
        Ok(now_ms)
    }

    /// The streams of these keys on other nodes; keys without any are missing.
    async fn streams_of_others(
        &mut self,
        node: &str,
        wanted: &[StreamsWanted],
    ) -> Result<HashMap<String, u32>, StoreError> {
        let rows: Vec<(String, i64)> = match self {
            Self::Postgres(tx) => others(tx, node, wanted).await?,
            Self::Sqlite(_) => {
                let mut rows = Vec::new();
                for key in wanted {
                    let held = query(
                        "SELECT COALESCE(SUM(held), 0) FROM stream_slot WHERE key_id = $1 AND node_id <> $2",
                    );
                    let held = held.bind(&*key.key_id).bind(node).fetch_number(&mut *self).await?;
                    rows.push((key.key_id.to_string(), held));
                }
                rows
            }
        };
        rows.into_iter().map(|(key, held)| Ok((key, to_count(held)?))).collect()
    }

    async fn write_streams(
        &mut self,
        node: &str,
        wanted: &[StreamsWanted],
        granted: &[u32],
    ) -> Result<(), StoreError> {
        if let Self::Postgres(tx) = self {
            return write(tx, node, wanted, granted).await;
        }
        for (key, held) in wanted.iter().zip(granted) {
            let change = match held {
                0 => query("DELETE FROM stream_slot WHERE key_id = $1 AND node_id = $2"),
                _ => query(
                    "INSERT INTO stream_slot (key_id, node_id, held) VALUES ($1, $2, $3) \
                     ON CONFLICT (key_id, node_id) DO UPDATE SET held = excluded.held",
                ),
            };
            let change = change.bind(&*key.key_id).bind(node);
            let change = if *held > 0 { change.bind(i64::from(*held)) } else { change };
            change.execute(self).await?;
        }
        Ok(())
    }
}

/// For all keys with one statement: many clients reconnect at the same time.
async fn others(
    tx: &mut PgTx,
    node: &str,
    wanted: &[StreamsWanted],
) -> Result<Vec<(String, i64)>, StoreError> {
    let keys: Vec<&str> = wanted.iter().map(|key| &*key.key_id).collect();
    let select = sqlx::query(
        "SELECT key_id, CAST(SUM(held) AS BIGINT) FROM stream_slot \
         WHERE key_id = ANY($1::text[]) AND node_id <> $2 GROUP BY key_id",
    );
    let rows = tx.fetch_all(select.bind(&keys).bind(node)).await?;
    Ok(rows.iter().map(<(String, i64)>::from_row).collect::<sqlx::Result<_>>()?)
}

async fn write(
    tx: &mut PgTx,
    node: &str,
    wanted: &[StreamsWanted],
    granted: &[u32],
) -> Result<(), StoreError> {
    let keys: Vec<&str> = wanted.iter().map(|key| &*key.key_id).collect();
    let held: Vec<i64> = granted.iter().map(|held| i64::from(*held)).collect();
    let delete = sqlx::query(
        "DELETE FROM stream_slot USING UNNEST($1::text[], $2::bigint[]) AS a (key, held) \
         WHERE key_id = a.key AND node_id = $3 AND a.held = 0",
    );
    tx.execute(delete.bind(&keys).bind(&held).bind(node)).await?;
    let insert = sqlx::query(
        "INSERT INTO stream_slot (key_id, node_id, held) \
         SELECT a.key, $3, a.held FROM UNNEST($1::text[], $2::bigint[]) AS a (key, held) WHERE a.held > 0 \
         ON CONFLICT (key_id, node_id) DO UPDATE SET held = excluded.held",
    );
    tx.execute(insert.bind(&keys).bind(&held).bind(node)).await?;
    Ok(())
}
