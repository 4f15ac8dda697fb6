//! API keys as rows. A key's text is never here, only its digest.

mod count_limit;

use std::fmt;

pub use crate::key::count_limit::{KeyCountLimit, KeyInsert};
use crate::{
    AuditEntry, Store, StoreError,
    database::{Tx, decode_from, query},
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

/// Which world a key sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Sandbox,
    Production,
}

impl KeyKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Production => "production",
        }
    }

    /// Reads the word [`KeyKind::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Sandbox, Self::Production].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    pub id: String,
    pub name: String,
    pub kind: KeyKind,
    pub digest: Digest,
    /// The start of the key, for people to tell their keys apart.
    pub hint: String,
    /// Sport groups the key is restricted to; `None` is all.
    pub groups: Option<Vec<String>>,
    pub permissions: Vec<String>,
    pub burst_per_minute: u32,
    pub requests_per_day: u32,
    pub requests_per_month: Option<u32>,
    /// Whose usage the key spends; shared along a line of rotations.
    pub meter_id: String,
    pub created_ms: i64,
    /// Ended at once, at this instant, whatever any clock says.
    pub revoked_ms: Option<i64>,
    /// Ends when the clock reaches this instant.
    pub expires_ms: Option<i64>,
    pub rotated_from: Option<String>,
    /// Whose key it is; `None` for one made on the command line.
    pub account_id: Option<String>,
    /// What the account's row says about what its keys may ask for together, as read with the key; `None` where there
    /// is no account, and of no account for a key that is new.
    pub account_quota: Option<AccountQuota>,
    /// When it was last let in, to the minute or so.
    pub last_used_ms: Option<i64>,
    /// What its client last called itself.
    pub last_agent: Option<String>,
    /// Out of force since then, with its account.
    pub suspended_ms: Option<i64>,
}

/// What an operator set for the production keys of an account together; `None`: what every account has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountQuota {
    pub requests_per_day: Option<u32>,
    pub requests_per_month: Option<u32>,
}

/// When a key was last let in, and what its client called itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    pub id: String,
    pub used_ms: i64,
    /// `None`: as before.
    pub agent: Option<String>,
}

/// How a rotated key ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEnd {
    AtOnce { now_ms: i64 },
    At { expires_ms: i64 },
}

/// Named one by one, here and in every statement: a newer version of the program may add columns while this one runs.
macro_rules! columns {
    () => {
        "id, name, kind, digest, hint, sport_groups, permissions, burst_per_minute, \
         requests_per_day, requests_per_month, meter_id, created_ms, revoked_ms, expires_ms, \
         rotated_from, account_id, last_used_ms, last_agent, suspended_ms, \
         (SELECT a.requests_per_day FROM account a WHERE a.id = api_key.account_id) AS account_day, \
         (SELECT a.requests_per_month FROM account a WHERE a.id = api_key.account_id) AS account_month"
    };
}

#[derive(sqlx::FromRow)]
struct RawKey {
    id: String,
    name: String,
    kind: String,
    #[sqlx(try_from = "Vec<u8>")]
    digest: Digest,
    hint: String,
    sport_groups: Option<String>,
    permissions: String,
    burst_per_minute: i64,
    requests_per_day: i64,
    requests_per_month: Option<i64>,
    meter_id: String,
    created_ms: i64,
    revoked_ms: Option<i64>,
    expires_ms: Option<i64>,
    rotated_from: Option<String>,
    account_id: Option<String>,
    last_used_ms: Option<i64>,
    last_agent: Option<String>,
    suspended_ms: Option<i64>,
    account_day: Option<i64>,
    account_month: Option<i64>,
}

decode_from!(KeyRow, RawKey);

impl TryFrom<RawKey> for KeyRow {
    type Error = StoreError;

    fn try_from(raw: RawKey) -> Result<Self, StoreError> {
        let quota = AccountQuota {
            requests_per_day: raw.account_day.map(to_limit).transpose()?,
            requests_per_month: raw.account_month.map(to_limit).transpose()?,
        };
        Ok(Self {
            account_quota: raw.account_id.is_some().then_some(quota),
            kind: KeyKind::parse(&raw.kind)
                .ok_or_else(|| StoreError::corrupt("unknown key kind"))?,
            digest: raw.digest,
            groups: raw.sport_groups.as_deref().map(split),
            permissions: split(&raw.permissions),
            burst_per_minute: to_limit(raw.burst_per_minute)?,
            requests_per_day: to_limit(raw.requests_per_day)?,
            requests_per_month: raw.requests_per_month.map(to_limit).transpose()?,
            id: raw.id,
            name: raw.name,
            hint: raw.hint,
            meter_id: raw.meter_id,
            created_ms: raw.created_ms,
            revoked_ms: raw.revoked_ms,
            expires_ms: raw.expires_ms,
            rotated_from: raw.rotated_from,
            account_id: raw.account_id,
            last_used_ms: raw.last_used_ms,
            last_agent: raw.last_agent,
            suspended_ms: raw.suspended_ms,
        })
    }
}

/// Keys whose last use is noted in one transaction: who revokes one of them meanwhile waits for the rest.
const NOTED_AT_ONCE: usize = 200;

/// A key made while its account is being suspended is suspended with it.
const INSERT: &str = "INSERT INTO api_key (id, name, kind, digest, hint, sport_groups, permissions, \
    burst_per_minute, requests_per_day, requests_per_month, meter_id, created_ms, revoked_ms, \
    expires_ms, rotated_from, account_id, suspended_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
    (SELECT suspended_ms FROM account WHERE id = $16))";

impl Store {
    /// Keeps a new key. Where it is an account's, it goes on with the meters of the account's key of that kind that
    /// ended last, if there is one whose meters no other key spends from: ending keys and making others brings no fresh
    /// window.
    ///
    /// `room` is `None` for whoever may make any number.
    ///
    /// # Errors
    /// A key with that id or digest exists, or the store cannot be written.
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

    /// Keeps new keys of nobody in particular, all or none.
    ///
    /// # Errors
    /// A key with the id or digest of one exists, or the store cannot be written.
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

    /// Every key ever issued, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        query(concat!("SELECT ", columns!(), " FROM api_key ORDER BY created_ms, id"))
            .fetch_all(&self.database)
            .await
    }

    /// Every key that has not ended by this instant, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn live_keys(&self, now_ms: i64) -> Result<Vec<KeyRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM api_key WHERE revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > $1) \
             ORDER BY created_ms, id"
        ))
        .bind(now_ms)
        .fetch_all(&self.database)
        .await
    }

    /// Whether any key was ever issued.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn has_keys(&self) -> Result<bool, StoreError> {
        let found: Vec<(String,)> =
            query("SELECT id FROM api_key LIMIT 1").fetch_all(&self.database).await?;
        Ok(!found.is_empty())
    }

    /// Keys with a text in their owner's address, their name, hint, id or groups, or that are of a kind or in a state
    /// of that name; the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_keys(
        &self,
        text: &str,
        now_ms: i64,
        limit: u32,
    ) -> Result<Vec<KeyRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM api_key WHERE LOWER(name) LIKE $1 ESCAPE '!' OR LOWER(hint) LIKE $1 ESCAPE '!' \
             OR LOWER(id) LIKE $1 ESCAPE '!' OR LOWER(COALESCE(sport_groups, 'all')) LIKE $1 ESCAPE '!' \
             OR LOWER(COALESCE((SELECT a.email FROM account a WHERE a.id = api_key.account_id), \
             account_id, 'command line')) LIKE $1 ESCAPE '!' OR kind = $2 \
             OR CASE WHEN revoked_ms IS NOT NULL OR expires_ms <= $3 THEN 'revoked' \
             WHEN suspended_ms IS NOT NULL THEN 'suspended' \
             WHEN expires_ms IS NOT NULL THEN 'ending' ELSE 'live' END = $2 \
             ORDER BY created_ms DESC, id DESC LIMIT $4"
        ))
        .bind(like_pattern(text))
        .bind(text.to_ascii_lowercase())
        .bind(now_ms)
        .bind(i64::from(limit))
        .fetch_all(&self.database)
        .await
    }

    /// Every key ever issued to an account, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn keys_of(&self, account_id: &str) -> Result<Vec<KeyRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM api_key WHERE account_id = $1 ORDER BY created_ms, id"
        ))
        .bind(account_id)
        .fetch_all(&self.database)
        .await
    }

    /// An account's keys that have ended by this instant, those that ended last first, from one on and at most so many.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn ended_keys_of(
        &self,
        account_id: &str,
        now_ms: i64,
        (from, limit): (u32, u32),
    ) -> Result<Vec<KeyRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM api_key WHERE account_id = $1 AND (revoked_ms IS NOT NULL OR expires_ms <= $2) \
             ORDER BY COALESCE(revoked_ms, expires_ms) DESC, id LIMIT $3 OFFSET $4"
        ))
        .bind(account_id)
        .bind(now_ms)
        .bind(i64::from(limit))
        .bind(i64::from(from))
        .fetch_all(&self.database)
        .await
    }

    /// An account's keys that have not ended by this instant, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn live_keys_of(
        &self,
        account_id: &str,
        now_ms: i64,
    ) -> Result<Vec<KeyRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM api_key WHERE account_id = $1 AND revoked_ms IS NULL \
             AND (expires_ms IS NULL OR expires_ms > $2) ORDER BY created_ms, id"
        ))
        .bind(account_id)
        .bind(now_ms)
        .fetch_all(&self.database)
        .await
    }

    /// Notes when keys were last let in, and by which client where that is known; an older note does not
    /// replace a newer one.
    ///
    /// # Errors
    /// The store cannot be written; then some may not have been noted.
    pub async fn record_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        let mut uses: Vec<&KeyUse> = uses.iter().collect();
        // In one order everywhere, so that nodes that note the same keys do not wait for each other in a circle.
        uses.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        for some in uses.chunks(NOTED_AT_ONCE) {
            let mut tx = self.begin_write().await?;
            for used in some {
                query(
                    "UPDATE api_key SET last_used_ms = $2, last_agent = COALESCE($3, last_agent) \
                     WHERE id = $1 AND (last_used_ms IS NULL OR last_used_ms < $2)",
                )
                .bind(&used.id)
                .bind(used.used_ms)
                .bind(used.agent.as_deref())
                .execute(&mut tx)
                .await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }

    /// Every key whose last change has a number above this one, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn keys_changed_after(&self, number: i64) -> Result<Vec<KeyRow>, StoreError> {
        query(concat!(
            "SELECT ",
            columns!(),
            " FROM api_key WHERE change_number > $1 ORDER BY created_ms, id"
        ))
        .bind(number)
        .fetch_all(&self.database)
        .await
    }

    /// The key with this id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError> {
        query(concat!("SELECT ", columns!(), " FROM api_key WHERE id = $1"))
            .bind(id)
            .fetch_optional(&self.database)
            .await
    }

    /// The key with this digest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn key_by_digest(&self, digest: &Digest) -> Result<Option<KeyRow>, StoreError> {
        query(concat!("SELECT ", columns!(), " FROM api_key WHERE digest = $1"))
            .bind(digest.as_slice())
            .fetch_optional(&self.database)
            .await
    }

    /// Ends a key at once; one that has ended keeps its first instant. Gives the key as it now is.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn revoke_key(
        &self,
        id: &str,
        now_ms: i64,
        audit: &AuditEntry,
    ) -> Result<Option<KeyRow>, StoreError> {
        let mut tx = self.begin_write().await?;
        let row: Option<KeyRow> = query(concat!(
            "UPDATE api_key SET revoked_ms = COALESCE(revoked_ms, $2), change_number = NULL \
             WHERE id = $1 RETURNING ",
            columns!()
        ))
        .bind(id)
        .bind(now_ms)
        .fetch_optional(&mut tx)
        .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        tx.commit_change(audit).await?;
        Ok(Some(row))
    }

    /// Ends a key and keeps its successor, both or neither. `room` is `None` for whoever may make any number.
    ///
    /// # Errors
    /// The store cannot be written.
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
        .bind(successor.rotated_from.as_deref())
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
            .bind(key.rotated_from.as_deref())
            .bind(key.account_id.as_deref())
            .execute(self)
            .await?;
        Ok(())
    }
}

fn split(list: &str) -> Vec<String> {
    list.split(',').filter(|part| !part.is_empty()).map(String::from).collect()
}

fn to_limit(column: i64) -> Result<u32, StoreError> {
    u32::try_from(column).map_err(|_| StoreError::corrupt("limit out of range"))
}
