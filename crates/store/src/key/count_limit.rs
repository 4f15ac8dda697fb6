//! Limits on the keys that an account has and creates, the meters that a new key takes over, and the retention of
//! ended keys.

use crate::{
    KeyRow, Store, StoreError,
    database::{Lock, Tx, query, to_count},
};

/// Ended keys of one account that are kept for display; older ones are deleted with their usage.
const ENDED_MAX: i64 = 200;
/// Minimum time that every ended key is kept: longer than the period in which created keys are counted.
const ENDED_KEPT_MS: i64 = 86_400_000;
/// Keys deleted in one transaction: others wait for it.
const DELETED_AT_ONCE: i64 = 200;

/// Limits on the keys that an account has and creates. Checked in the transaction that creates a key, so that two
/// concurrent ones cannot both take the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCountLimit {
    pub now_ms: i64,
    /// Maximum number of active keys, unless the account's row sets another.
    pub keys_max: u32,
    /// Maximum number of keys created since an instant; `keys_max` if that is higher.
    pub made_max: u32,
    pub since_ms: i64,
}

/// The result of creating a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyInsert {
    Inserted,
    /// The key to replace does not exist, has ended, is already ending or is suspended.
    NothingToReplace,
    /// The account has the maximum number of active keys.
    Full {
        keys_max: u32,
    },
    /// The account recently created the maximum number of keys, the first of them at `first_ms`.
    TooMany {
        made_max: u32,
        first_ms: i64,
    },
}

/// Whether a new key adds an active one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    Additional,
    Replacement,
}

impl Store {
    /// Deletes some of the keys that ended long ago, except the newest of each account, and returns their number: 0
    /// when none is left.
    pub async fn delete_ended_keys(&self, now_ms: i64) -> Result<usize, StoreError> {
        let ids: Vec<(String,)> = query(
            "SELECT id FROM (SELECT id, COALESCE(revoked_ms, expires_ms) AS ended_ms, \
             ROW_NUMBER() OVER (PARTITION BY account_id \
             ORDER BY COALESCE(revoked_ms, expires_ms) DESC, id) AS place FROM api_key \
             WHERE account_id IS NOT NULL AND (revoked_ms IS NOT NULL OR expires_ms <= $1)) ended \
             WHERE place > $2 AND ended_ms <= $3 LIMIT $4",
        )
        .bind(now_ms)
        .bind(ENDED_MAX)
        .bind(now_ms.saturating_sub(ENDED_KEPT_MS))
        .bind(DELETED_AT_ONCE)
        .fetch_all(&self.database)
        .await?;
        if ids.is_empty() {
            return Ok(0);
        }
        let mut tx = self.begin_write().await?;
        for (id,) in &ids {
            for statement in [
                "DELETE FROM usage_hour WHERE key_id = $1",
                "DELETE FROM usage_day WHERE key_id = $1",
                "UPDATE api_key SET rotated_from = NULL WHERE rotated_from = $1",
                "DELETE FROM api_key WHERE id = $1",
            ] {
                query(statement).bind(id).execute(&mut tx).await?;
            }
        }
        tx.commit().await?;
        Ok(ids.len())
    }
}

impl Tx {
    /// Keeps the account of a key from being suspended, and from getting other keys, until the transaction ends.
    pub(super) async fn lock_account(&mut self, key: &KeyRow) -> Result<(), StoreError> {
        match &key.account_id {
            Some(account_id) => self.lock(Lock::Keys { account_id }).await,
            None => Ok(()),
        }
    }

    /// Checks whether an account may create another key; [`Tx::lock_account`] has to be called first.
    pub(super) async fn check_key_count(
        &mut self,
        account_id: &str,
        limit: &KeyCountLimit,
        placement: Placement,
    ) -> Result<KeyInsert, StoreError> {
        let set: Option<(Option<i64>,)> = query("SELECT keys_max FROM account WHERE id = $1")
            .bind(account_id)
            .fetch_optional(&mut *self)
            .await?;
        let set = set.and_then(|(keys_max,)| keys_max).map(to_count).transpose()?;
        let keys_max = set.unwrap_or(limit.keys_max);
        let live = query(
            "SELECT COUNT(*) FROM api_key WHERE account_id = $1 AND revoked_ms IS NULL \
             AND (expires_ms IS NULL OR expires_ms > $2)",
        )
        .bind(account_id)
        .bind(limit.now_ms)
        .fetch_number(&mut *self)
        .await?;
        if placement == Placement::Additional && live >= i64::from(keys_max) {
            return Ok(KeyInsert::Full { keys_max });
        }
        let (made, first_ms): (i64, Option<i64>) = query(
            "SELECT COUNT(*), MIN(created_ms) FROM api_key WHERE account_id = $1 AND created_ms > $2",
        )
        .bind(account_id)
        .bind(limit.since_ms)
        .fetch_one(self)
        .await?;
        let made_max = limit.made_max.max(keys_max);
        Ok(match first_ms {
            Some(first_ms) if made >= i64::from(made_max) => {
                KeyInsert::TooMany { made_max, first_ms }
            }
            Some(_) | None => KeyInsert::Inserted,
        })
    }

    /// The meters of the account's last ended key of the same kind, if no key uses them any more.
    pub(super) async fn unused_meters(
        &mut self,
        key: &KeyRow,
    ) -> Result<Option<String>, StoreError> {
        let Some(account_id) = &key.account_id else {
            return Ok(None);
        };
        let row: Option<(String,)> = query(
            "SELECT meter_id FROM api_key WHERE account_id = $1 AND kind = $2 GROUP BY meter_id \
             HAVING SUM(CASE WHEN revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > $3) \
             THEN 1 ELSE 0 END) = 0 \
             ORDER BY MAX(COALESCE(revoked_ms, expires_ms)) DESC, meter_id LIMIT 1",
        )
        .bind(account_id)
        .bind(key.kind.as_str())
        .bind(key.created_ms)
        .fetch_optional(self)
        .await?;
        Ok(row.map(|(meter_id,)| meter_id))
    }
}
