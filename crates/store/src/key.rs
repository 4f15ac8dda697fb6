//! API keys. The text of a key is never stored, only its digest.

mod count_limit;

use std::fmt;

pub use crate::key::count_limit::{KeyCountLimit, KeyInsert};
use crate::{
    AuditEntry, Store, StoreError,
    database::{
        Table, Tx, decode_error, from_row, query, returning, select, text_column, to_count,
    },
    key::count_limit::Placement,
    like_pattern,
};

/// SHA-256 of a key or token. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<Vec<u8>> for Digest {
    type Error = StoreError;

    fn try_from(column: Vec<u8>) -> Result<Self, StoreError> {
        column.try_into().map(Self).map_err(|_| StoreError::corrupt("digest is not 32 bytes"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

/// The data that a key reads: simulated or live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Sandbox,
    Production,
}

text_column!(KeyKind, "key kind", [Sandbox = "sandbox", Production = "production"]);

/// One API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    pub id: String,
    pub name: String,
    pub kind: KeyKind,
    pub digest: Digest,
    /// The start of the key, for people to distinguish their keys.
    pub hint: String,
    /// Sport groups to which the key is restricted; `None`: all.
    pub groups: Option<Vec<String>>,
    pub permissions: Vec<String>,
    pub burst_per_minute: u32,
    pub requests_per_day: u32,
    pub requests_per_month: Option<u32>,
    /// Maximum number of open streams; `None`: the operator's setting.
    pub streams: Option<u32>,
    /// The meter of its requests; shared by a key and its rotated successors.
    pub meter_id: String,
    pub created_ms: i64,
    /// Revoked at this instant, regardless of clocks.
    pub revoked_ms: Option<i64>,
    /// Ends when the clock reaches this instant.
    pub expires_ms: Option<i64>,
    pub rotated_from: Option<String>,
    /// Its owner; `None` for a key created on the command line.
    pub account_id: Option<String>,
    /// The account's quota, as read with the key; `None` without an account, and for a new key.
    pub account_quota: Option<AccountQuota>,
    /// Its last use, to the minute or so.
    pub last_used_ms: Option<i64>,
    /// The last `User-Agent` of its client.
    pub last_agent: Option<String>,
    /// Time at which it was suspended with its account.
    pub suspended_ms: Option<i64>,
}

/// Limits that an operator set for all production keys of an account together; `None`: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountQuota {
    pub requests_per_day: Option<u32>,
    pub requests_per_month: Option<u32>,
}

/// The last use of a key, and the `User-Agent` of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    pub id: String,
    pub used_ms: i64,
    /// `None`: unchanged.
    pub agent: Option<String>,
}

/// How a rotated key ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEnd {
    AtOnce { now_ms: i64 },
    At { expires_ms: i64 },
}

impl Table for KeyRow {
    const NAME: &'static str = "api_key";
    const COLUMNS: &'static str = "id, name, kind, digest, hint, sport_groups, permissions, burst_per_minute, \
         requests_per_day, requests_per_month, streams, meter_id, created_ms, revoked_ms, expires_ms, \
         rotated_from, account_id, last_used_ms, last_agent, suspended_ms, \
         (SELECT a.requests_per_day FROM account a WHERE a.id = api_key.account_id) AS account_day, \
         (SELECT a.requests_per_month FROM account a WHERE a.id = api_key.account_id) AS account_month";
}

from_row!(KeyRow, |row| {
    let account_id: Option<String> = row.try_get("account_id")?;
    let count = |column: Option<i64>| column.map(to_count).transpose();
    let list =
        |text: String| text.split(',').filter(|part| !part.is_empty()).map(String::from).collect();
    let quota = AccountQuota {
        requests_per_day: count(row.try_get("account_day")?)?,
        requests_per_month: count(row.try_get("account_month")?)?,
    };
    Self {
        account_quota: account_id.is_some().then_some(quota),
        account_id,
        kind: row.try_get::<String, _>("kind")?.try_into().map_err(decode_error)?,
        digest: row.try_get::<Vec<u8>, _>("digest")?.try_into().map_err(decode_error)?,
        groups: row.try_get::<Option<String>, _>("sport_groups")?.map(list),
        permissions: list(row.try_get("permissions")?),
        burst_per_minute: to_count(row.try_get("burst_per_minute")?)?,
        requests_per_day: to_count(row.try_get("requests_per_day")?)?,
        requests_per_month: count(row.try_get("requests_per_month")?)?,
        streams: count(row.try_get("streams")?)?,
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        hint: row.try_get("hint")?,
        meter_id: row.try_get("meter_id")?,
        created_ms: row.try_get("created_ms")?,
        revoked_ms: row.try_get("revoked_ms")?,
        expires_ms: row.try_get("expires_ms")?,
        rotated_from: row.try_get("rotated_from")?,
        last_used_ms: row.try_get("last_used_ms")?,
        last_agent: row.try_get("last_agent")?,
        suspended_ms: row.try_get("suspended_ms")?,
    }
});

/// Maximum number of keys whose last use is recorded in one transaction: a revocation of one of them waits for it.
const USES_AT_ONCE: usize = 200;

/// A key that is created while its account is being suspended is suspended with it.
const INSERT: &str = "INSERT INTO api_key (id, name, kind, digest, hint, sport_groups, permissions, \
    burst_per_minute, requests_per_day, requests_per_month, meter_id, created_ms, revoked_ms, \
    expires_ms, rotated_from, account_id, streams, suspended_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
    (SELECT suspended_ms FROM account WHERE id = $16))";

impl Store {
    /// Stores a new key. A key of an account takes over the meters of the account's last ended key of that kind, if
    /// no other key uses them: revoking and creating keys does not reset the quota.
    ///
    /// `limit` is `None` for callers without a limit on the number of keys. A key whose id or digest exists is a
    /// conflict.
    pub async fn insert_key(
        &self,
        key: &KeyRow,
        limit: Option<&KeyCountLimit>,
        audit: &AuditEntry,
    ) -> Result<KeyInsert, StoreError> {
        let mut tx = self.begin_write().await?;
        tx.lock_account(key).await?;
        if let (Some(limit), Some(account_id)) = (limit, &key.account_id) {
            let made = tx.check_key_count(account_id, limit, Placement::Additional).await?;
            if made != KeyInsert::Inserted {
                return Ok(made);
            }
        }
        match tx.unused_meters(key).await? {
            Some(meter_id) => tx.insert_key(&KeyRow { meter_id, ..key.clone() }).await?,
            None => tx.insert_key(key).await?,
        }
        tx.commit_change(audit).await?;
        Ok(KeyInsert::Inserted)
    }

    /// Stores new keys without an account, all or none.
    pub async fn insert_keys(
        &self,
        keys: &[KeyRow],
        audit: &[AuditEntry],
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_write().await?;
        for key in keys {
            tx.lock_account(key).await?;
            tx.insert_key(key).await?;
        }
        for entry in audit {
            tx.audit(entry).await?;
        }
        tx.number_change().await?;
        tx.commit().await
    }

    /// Every key, oldest first.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        select::<KeyRow>("ORDER BY created_ms, id").fetch_all(&self.database).await
    }

    /// Every key that has not ended by this instant, oldest first.
    pub async fn live_keys(&self, now_ms: i64) -> Result<Vec<KeyRow>, StoreError> {
        select::<KeyRow>(
            "WHERE revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > $1) \
             ORDER BY created_ms, id",
        )
        .bind(now_ms)
        .fetch_all(&self.database)
        .await
    }

    /// Whether any key was ever created.
    pub async fn has_keys(&self) -> Result<bool, StoreError> {
        let found: Option<(String,)> =
            query("SELECT id FROM api_key LIMIT 1").fetch_optional(&self.database).await?;
        Ok(found.is_some())
    }

    /// Keys with a text in their owner's address, their name, hint, id or groups, or as their kind or state; newest
    /// first.
    pub async fn find_keys(
        &self,
        text: &str,
        now_ms: i64,
        limit: u32,
    ) -> Result<Vec<KeyRow>, StoreError> {
        select::<KeyRow>("WHERE LOWER(name) LIKE $1 ESCAPE '!' OR LOWER(hint) LIKE $1 ESCAPE '!' \
             OR LOWER(id) LIKE $1 ESCAPE '!' OR LOWER(COALESCE(sport_groups, 'all')) LIKE $1 ESCAPE '!' \
             OR LOWER(COALESCE((SELECT a.email FROM account a WHERE a.id = api_key.account_id), \
             account_id, 'command line')) LIKE $1 ESCAPE '!' OR kind = $2 \
             OR CASE WHEN revoked_ms IS NOT NULL OR expires_ms <= $3 THEN 'revoked' \
             WHEN suspended_ms IS NOT NULL THEN 'suspended' \
             WHEN expires_ms IS NOT NULL THEN 'ending' ELSE 'live' END = $2 \
             ORDER BY created_ms DESC, id DESC LIMIT $4")
        .bind(like_pattern(text))
        .bind(text.to_ascii_lowercase())
        .bind(now_ms)
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await
    }

    /// Every key of an account, oldest first.
    pub async fn keys_of(&self, account_id: &str) -> Result<Vec<KeyRow>, StoreError> {
        select::<KeyRow>("WHERE account_id = $1 ORDER BY created_ms, id")
            .bind(account_id)
            .fetch_all(&self.database)
            .await
    }

    /// An account's keys that have ended by this instant, latest end first: `limit` of them after `from`.
    pub async fn ended_keys_of(
        &self,
        account_id: &str,
        now_ms: i64,
        (from, limit): (u32, u32),
    ) -> Result<Vec<KeyRow>, StoreError> {
        select::<KeyRow>(
            "WHERE account_id = $1 AND (revoked_ms IS NOT NULL OR expires_ms <= $2) \
             ORDER BY COALESCE(revoked_ms, expires_ms) DESC, id LIMIT $3 OFFSET $4",
        )
        .bind(account_id)
        .bind(now_ms)
        .bind(i64::from(limit))
        .bind(i64::from(from))
        .fetch_all(&self.database)
        .await
    }

    /// An account's keys that have not ended by this instant, oldest first.
    pub async fn live_keys_of(
        &self,
        account_id: &str,
        now_ms: i64,
    ) -> Result<Vec<KeyRow>, StoreError> {
        select::<KeyRow>(
            "WHERE account_id = $1 AND revoked_ms IS NULL \
             AND (expires_ms IS NULL OR expires_ms > $2) ORDER BY created_ms, id",
        )
        .bind(account_id)
        .bind(now_ms)
        .fetch_all(&self.database)
        .await
    }

    /// Records the last use of keys and, if known, their clients; a later use is kept. On failure, some may have been
    /// recorded.
    pub async fn record_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        let mut uses: Vec<&KeyUse> = uses.iter().collect();
        // Always in the same order, so that nodes that record the same keys do not deadlock.
        uses.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        for some in uses.chunks(USES_AT_ONCE) {
            let mut tx = self.begin_write().await?;
            for used in some {
                query(
                    "UPDATE api_key SET last_used_ms = $2, last_agent = COALESCE($3, last_agent) \
                     WHERE id = $1 AND (last_used_ms IS NULL OR last_used_ms < $2)",
                )
                .bind(&used.id)
                .bind(used.used_ms)
                .bind(&used.agent)
                .execute(&mut tx)
                .await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }

    /// Keys whose last change has a greater number, oldest first.
    pub async fn keys_changed_after(&self, number: i64) -> Result<Vec<KeyRow>, StoreError> {
        select::<KeyRow>("WHERE change_number > $1 ORDER BY created_ms, id")
            .bind(number)
            .fetch_all(&self.database)
            .await
    }

    pub async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError> {
        select::<KeyRow>("WHERE id = $1").bind(id).fetch_optional(&self.database).await
    }

    pub async fn key_by_digest(&self, digest: &Digest) -> Result<Option<KeyRow>, StoreError> {
        select::<KeyRow>("WHERE digest = $1")
            .bind(digest.as_slice())
            .fetch_optional(&self.database)
            .await
    }

    /// Revokes a key; a revoked key keeps its first instant. Returns the updated key.
    pub async fn revoke_key(
        &self,
        id: &str,
        now_ms: i64,
        audit: &AuditEntry,
    ) -> Result<Option<KeyRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let revoke = returning::<KeyRow>(
            "UPDATE api_key SET revoked_ms = COALESCE(revoked_ms, $2), change_number = NULL WHERE id = $1",
        );
        let row = revoke.bind(id).bind(now_ms).fetch_optional(&mut tx).await?;
        tx.commit_changed(row, audit).await
    }

    /// Sets a key's own stream limit, or restores the operator's setting. Returns the updated key.
    pub async fn limit_key_streams(
        &self,
        id: &str,
        streams: Option<u32>,
        audit: &AuditEntry,
    ) -> Result<Option<KeyRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let limit = returning::<KeyRow>(
            "UPDATE api_key SET streams = $2, change_number = NULL WHERE id = $1",
        );
        let row = limit.bind(id).bind(streams.map(i64::from)).fetch_optional(&mut tx).await?;
        tx.commit_changed(row, audit).await
    }

    /// Ends a key and stores its successor, both or neither. `limit` is `None` for callers without a limit on the
    /// number of keys.
    pub async fn rotate_key(
        &self,
        end: KeyEnd,
        successor: &KeyRow,
        limit: Option<&KeyCountLimit>,
        audit: &AuditEntry,
    ) -> Result<KeyInsert, StoreError> {
        let (revoked_ms, expires_ms, placement) = match end {
            KeyEnd::AtOnce { now_ms } => (Some(now_ms), None, Placement::Replacement),
            KeyEnd::At { expires_ms } => (None, Some(expires_ms), Placement::Additional),
        };
        let mut tx = self.begin_write().await?;
        tx.lock_account(successor).await?;
        if let (Some(limit), Some(account_id)) = (limit, &successor.account_id) {
            let made = tx.check_key_count(account_id, limit, placement).await?;
            if made != KeyInsert::Inserted {
                return Ok(made);
            }
        }
        let ended = query(
            "UPDATE api_key SET revoked_ms = $2, expires_ms = $3, change_number = NULL \
             WHERE id = $1 AND revoked_ms IS NULL AND expires_ms IS NULL AND suspended_ms IS NULL",
        )
        .bind(&successor.rotated_from)
        .bind(revoked_ms)
        .bind(expires_ms)
        .execute(&mut tx)
        .await?;
        if ended == 0 {
            return Ok(KeyInsert::NothingToReplace);
        }
        tx.insert_key(successor).await?;
        tx.commit_change(audit).await?;
        Ok(KeyInsert::Inserted)
    }
}

impl Tx {
    async fn insert_key(&mut self, key: &KeyRow) -> Result<(), StoreError> {
        query(INSERT)
            .bind(&key.id)
            .bind(&key.name)
            .bind(key.kind.as_str())
            .bind(key.digest.as_slice())
            .bind(&key.hint)
            .bind(key.groups.as_ref().map(|groups| groups.join(",")))
            .bind(key.permissions.join(","))
            .bind(i64::from(key.burst_per_minute))
            .bind(i64::from(key.requests_per_day))
            .bind(key.requests_per_month.map(i64::from))
            .bind(&key.meter_id)
            .bind(key.created_ms)
            .bind(key.revoked_ms)
            .bind(key.expires_ms)
            .bind(&key.rotated_from)
            .bind(&key.account_id)
            .bind(key.streams.map(i64::from))
            .execute(self)
            .await?;
        Ok(())
    }
}
