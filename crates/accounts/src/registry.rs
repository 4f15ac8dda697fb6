//! Operations on keys, feeds and maintenance, on the store alone, for command-line processes. A running server uses
//! [`crate::Accounts`].

mod record;

use std::{sync::Arc, time::Duration};

use domain::{Clock, Timestamp};
use store::{AuditEntry, FeedRow, KeyCountLimit, KeyEnd, KeyInsert, KeyRow, Store};

pub(crate) use crate::registry::record::MaintenanceState;
pub(crate) use crate::registry::record::key_record;
pub use crate::registry::record::{FeedRecord, KeyRecord, Maintenance, NewKey, Scores};
use crate::{
    AccountError, Actor, AuditAction, FeedToken, KeyId, KeySecret, key::grant,
    registry::record::feed_record,
};

const NAME_MAX: usize = 100;
const SLUG_MAX: usize = 64;
const OVERLAP_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Maximum number of active keys of one account, unless an operator sets another number.
pub(crate) const KEYS_MAX: u32 = 20;
/// Maximum number of keys, successors included, that one account creates within [`KEYS_MADE_TIME`]; its limit of
/// active keys if that is higher, enough to replace all of them. Each key is a row and two audit lines that stay
/// forever.
const KEYS_MADE_MAX: u32 = 30;
const KEYS_MADE_TIME: Duration = Duration::from_secs(3600);
const MAINTENANCE: &str = "maintenance_retry_after_s";

/// Operations on the store.
#[derive(Clone, Debug)]
pub struct Registry {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl Registry {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Creates a key. Its text is returned and not stored. The number of keys that an account has and creates is
    /// limited.
    ///
    /// # Errors
    /// A field is out of its bounds, or the account has or created too many keys.
    pub async fn create_key(
        &self,
        new: NewKey,
        by: &Actor,
    ) -> Result<(KeySecret, KeyRecord), AccountError> {
        check(&new)?;
        let (secret, row) = self.generate(new)?;
        let made = self
            .store
            .insert_key(&row, self.count_limit(by).as_ref(), &self.created(by, &row))
            .await?;
        inserted(made, &row)?;
        Ok((secret, key_record(row)))
    }

    /// Creates `count` keys without an account, all or none.
    ///
    /// # Errors
    /// A field is out of its bounds.
    pub async fn create_keys(
        &self,
        new: &NewKey,
        count: usize,
        by: &Actor,
    ) -> Result<Vec<(KeySecret, KeyRecord)>, AccountError> {
        check(new)?;
        let new = NewKey { account_id: None, ..new.clone() };
        let minted = (0..count).map(|_| self.generate(new.clone()));
        let (secrets, rows): (Vec<_>, Vec<_>) =
            minted.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let audit: Vec<AuditEntry> = rows.iter().map(|row| self.created(by, row)).collect();
        self.store.insert_keys(&rows, &audit).await?;
        Ok(secrets.into_iter().zip(rows.into_iter().map(key_record)).collect())
    }

    fn created(&self, by: &Actor, row: &KeyRow) -> AuditEntry {
        let detail = format!("{} {}", row.kind.as_str(), row.hint);
        by.entry(self.now(), AuditAction::KeyCreated, &row.id, &detail)
    }

    /// The limits on the number of keys that the actor's account has and creates; `None` without an account.
    fn count_limit(&self, by: &Actor) -> Option<KeyCountLimit> {
        let now = self.now();
        by.account_id.as_ref().map(|_| KeyCountLimit {
            now_ms: now.as_millis(),
            keys_max: KEYS_MAX,
            made_max: KEYS_MADE_MAX,
            since_ms: now.minus(KEYS_MADE_TIME).as_millis(),
        })
    }

    fn generate(&self, new: NewKey) -> Result<(KeySecret, KeyRow), AccountError> {
        let (secret, id) = (KeySecret::generate(new.kind)?, KeyId::generate()?);
        let row = KeyRow {
            id: String::from(id.as_str()),
            name: new.name,
            kind: new.kind,
            digest: secret.digest(),
            hint: secret.hint(),
            groups: new.groups.map(sorted),
            permissions: [(new.odds_read, grant::ODDS_READ), (new.export_read, grant::EXPORT_READ)]
                .into_iter()
                .filter(|(allowed, _)| *allowed)
                .map(|(_, name)| String::from(name))
                .collect(),
            burst_per_minute: new.limits.burst_per_minute,
            requests_per_day: new.limits.requests_per_day,
            requests_per_month: new.limits.requests_per_month,
            streams: new.streams,
            meter_id: String::from(id.as_str()),
            created_ms: self.clock.now().as_millis(),
            revoked_ms: None,
            expires_ms: None,
            rotated_from: None,
            account_id: new.account_id,
            account_quota: None,
            last_used_ms: None,
            last_agent: None,
            suspended_ms: None,
        };
        Ok((secret, row))
    }

    /// Every key, oldest first.
    pub async fn list_keys(&self) -> Result<Vec<KeyRecord>, AccountError> {
        Ok(self.store.keys().await?.into_iter().map(key_record).collect())
    }

    /// Revokes a key by its id or its text. Revoking it twice changes nothing.
    ///
    /// # Errors
    /// There is no such key.
    pub async fn revoke_key(&self, id_or_key: &str, by: &Actor) -> Result<KeyRecord, AccountError> {
        self.revoke_row(id_or_key, by).await.map(key_record)
    }

    pub(crate) async fn revoke_row(
        &self,
        id_or_key: &str,
        by: &Actor,
    ) -> Result<KeyRow, AccountError> {
        let row = self.find_key(id_or_key).await?;
        let now = self.now();
        let audit = by.entry(now, AuditAction::KeyRevoked, &row.id, &row.hint);
        let ended = self.store.revoke_key(&row.id, now.as_millis(), &audit).await?;
        ended.ok_or(AccountError::UnknownKey)
    }

    /// Sets a key's own stream limit, or restores the operator's setting.
    ///
    /// # Errors
    /// There is no such key, or the number is 0.
    pub async fn limit_key_streams(
        &self,
        id: &str,
        streams: Option<u32>,
        by: &Actor,
    ) -> Result<KeyRecord, AccountError> {
        if streams == Some(0) {
            return Err(AccountError::ZeroLimit { field: "streams" });
        }
        let audit = by.entry(self.now(), AuditAction::KeyLimited, id, &streams_text(streams));
        let row = self.store.limit_key_streams(id, streams, &audit).await?;
        row.map(key_record).ok_or(AccountError::UnknownKey)
    }

    /// Replaces a key, given by its id or its text, with a new one with the same grant and the same meters. The old
    /// one ends at once, or after the overlap.
    ///
    /// # Errors
    /// There is no such key, it has ended or is ending, the overlap is longer than 7 days, or the account has or
    /// created too many keys.
    pub async fn rotate_key(
        &self,
        id_or_key: &str,
        overlap: Option<Duration>,
        by: &Actor,
    ) -> Result<(KeySecret, KeyRecord), AccountError> {
        let overlap = overlap.filter(|overlap| !overlap.is_zero());
        if overlap.is_some_and(|overlap| overlap > OVERLAP_MAX) {
            return Err(AccountError::OverlapTooLong);
        }
        let old = self.find_key(id_or_key).await?;
        let now = self.clock.now();
        if let Some(refusal) = refuse_rotation(&old, now) {
            return Err(refusal);
        }
        let end = match overlap {
            Some(overlap) => KeyEnd::At { expires_ms: now.plus(overlap).as_millis() },
            None => KeyEnd::AtOnce { now_ms: now.as_millis() },
        };
        let secret = KeySecret::generate(old.kind)?;
        let successor = KeyRow {
            id: String::from(KeyId::generate()?.as_str()),
            digest: secret.digest(),
            hint: secret.hint(),
            created_ms: now.as_millis(),
            rotated_from: Some(old.id.clone()),
            last_used_ms: None,
            last_agent: None,
            ..old
        };
        let old_id = successor.rotated_from.as_deref().unwrap_or_default();
        let audit =
            by.entry(now, AuditAction::KeyRotated, old_id, &rotated(overlap, &successor.id));
        let limit = self.count_limit(by);
        inserted(
            self.store.rotate_key(end, &successor, limit.as_ref(), &audit).await?,
            &successor,
        )?;
        Ok((secret, key_record(successor)))
    }

    /// Creates a feed token. Its text is returned and not stored. The name of a revoked feed can be used again.
    ///
    /// # Errors
    /// The name is out of its bounds or has a live token.
    pub async fn create_feed(
        &self,
        name: &str,
        bookmaker: Option<&str>,
        scores: Scores,
        by: &Actor,
    ) -> Result<(FeedToken, FeedRecord), AccountError> {
        if !is_slug(name) {
            return Err(AccountError::BadFeedName);
        }
        let token = FeedToken::generate()?;
        let row = FeedRow {
            name: String::from(name),
            digest: token.digest(),
            bookmaker: bookmaker.map(String::from),
            scores: scores == Scores::Allowed,
            created_ms: self.clock.now().as_millis(),
            revoked_ms: None,
            paused_ms: None,
        };
        let detail = rights_text(&row);
        let audit = by.entry(self.now(), AuditAction::FeedCreated, name, &detail);
        if !self.store.insert_feed(&row, &audit).await? {
            return Err(AccountError::FeedExists(row.name));
        }
        Ok((token, feed_record(row)))
    }

    /// Every feed, by name.
    pub async fn list_feeds(&self) -> Result<Vec<FeedRecord>, AccountError> {
        Ok(self.store.feeds().await?.into_iter().map(feed_record).collect())
    }

    /// Revokes a feed's token. Revoking it twice changes nothing.
    ///
    /// # Errors
    /// There is no such feed.
    pub async fn revoke_feed(&self, name: &str, by: &Actor) -> Result<FeedRecord, AccountError> {
        let now = self.now();
        let audit = by.entry(now, AuditAction::FeedRevoked, name, "");
        let row = self.store.revoke_feed(name, now.as_millis(), &audit).await?;
        row.map(feed_record).ok_or_else(|| AccountError::UnknownFeed(String::from(name)))
    }

    /// Pauses a feed, whose pushes are then refused, or resumes it. Its token stays valid.
    ///
    /// # Errors
    /// There is no live feed of that name.
    pub async fn pause_feed(
        &self,
        name: &str,
        paused: bool,
        by: &Actor,
    ) -> Result<FeedRecord, AccountError> {
        let now = self.now();
        let audit = by.entry(now, pause_action(paused), name, "");
        let row = self.store.pause_feed(name, paused.then(|| now.as_millis()), &audit).await?;
        row.map(feed_record).ok_or_else(|| AccountError::UnknownFeed(String::from(name)))
    }

    /// Pauses or resumes an upstream adapter, including one that has given up.
    pub async fn pause_adapter(
        &self,
        name: &str,
        paused: bool,
        by: &Actor,
    ) -> Result<(), AccountError> {
        let now = self.now();
        let audit = by.entry(now, pause_action(paused), name, "adapter");
        Ok(self.store.pause_adapter(name, paused, now.as_millis(), &audit).await?)
    }

    /// Requests a read of an upstream adapter now.
    pub async fn ask_adapter_read(&self, name: &str, by: &Actor) -> Result<(), AccountError> {
        let now = self.now();
        let audit = by.entry(now, AuditAction::AdapterReadAsked, name, "");
        Ok(self.store.ask_adapter_read(name, now.as_millis(), &audit).await?)
    }

    /// Logs the first start of an adapter after a person accepted the upstream's terms.
    pub async fn note_adapter_start(
        &self,
        name: &str,
        accepted_by: &str,
    ) -> Result<(), AccountError> {
        let now = self.now();
        let detail = format!("terms accepted by {accepted_by}");
        let audit = Actor::service().entry(now, AuditAction::AdapterStarted, name, &detail);
        self.store.note_adapter_start(name, accepted_by, now.as_millis(), &audit).await?;
        Ok(())
    }

    /// Whether maintenance is on.
    pub async fn maintenance(&self) -> Result<Maintenance, AccountError> {
        let value = self.store.setting(MAINTENANCE).await?;
        // A value that cannot be parsed still means that maintenance is on.
        Ok(value.map_or(Maintenance::Off, |value| Maintenance::On {
            retry_after_s: value.parse().unwrap_or(1),
        }))
    }

    /// Starts or ends maintenance.
    pub async fn set_maintenance(
        &self,
        maintenance: Maintenance,
        by: &Actor,
    ) -> Result<(), AccountError> {
        let value = match maintenance {
            Maintenance::Off => None,
            Maintenance::On { retry_after_s } => Some(retry_after_s.to_string()),
        };
        let (action, detail) = maintenance.action();
        let audit = by.entry(self.now(), action, "service", &detail);
        Ok(self.store.decide_setting(MAINTENANCE, value.as_deref(), &audit).await?)
    }

    /// Logs an action that did not change the store; changes of the store are logged together with the change.
    pub async fn note(
        &self,
        by: &Actor,
        action: AuditAction,
        subject: &str,
        detail: &str,
    ) -> Result<(), AccountError> {
        Ok(self.store.append_audit(&[by.entry(self.now(), action, subject, detail)]).await?)
    }

    async fn find_key(&self, id_or_key: &str) -> Result<KeyRow, AccountError> {
        let row = if let Some(secret) = KeySecret::parse(id_or_key.as_bytes()) {
            self.store.key_by_digest(&secret.digest()).await?
        } else if id_or_key.starts_with("key_") {
            self.store.key(id_or_key).await?
        } else {
            return Err(AccountError::NotAKey);
        };
        row.ok_or(AccountError::UnknownKey)
    }
}

fn inserted(made: KeyInsert, row: &KeyRow) -> Result<(), AccountError> {
    match made {
        KeyInsert::Inserted => Ok(()),
        // The key was ended or rotated after it was read.
        KeyInsert::NothingToReplace => {
            Err(AccountError::RotateTwice(row.rotated_from.clone().unwrap_or_default()))
        }
        KeyInsert::Full { keys_max } => Err(AccountError::KeysFull { keys_max }),
        KeyInsert::TooMany { made_max, first_ms } => {
            let free = Timestamp::from_millis(first_ms).plus(KEYS_MADE_TIME);
            let wait = free.since(Timestamp::from_millis(row.created_ms));
            Err(AccountError::KeysTooMany { made_max, retry_after_s: wait.as_secs() + 1 })
        }
    }
}

/// The detail of a rotation in the audit log.
pub(crate) fn rotated(overlap: Option<Duration>, successor: &str) -> String {
    match overlap {
        Some(overlap) => format!("overlap {} s; new key {successor}", overlap.as_secs()),
        None => format!("no overlap; new key {successor}"),
    }
}

pub(crate) fn pause_action(paused: bool) -> AuditAction {
    if paused { AuditAction::FeedPaused } else { AuditAction::FeedResumed }
}

fn refuse_rotation(old: &KeyRow, now: Timestamp) -> Option<AccountError> {
    let ended = old.revoked_ms.is_some() || old.expires_ms.is_some_and(|at| at <= now.as_millis());
    if ended {
        Some(AccountError::RotateRevoked(old.id.clone()))
    } else {
        old.expires_ms.map(|_| AccountError::RotateTwice(old.id.clone()))
    }
}

fn check(new: &NewKey) -> Result<(), AccountError> {
    let limits = [
        ("burst_per_minute", Some(new.limits.burst_per_minute)),
        ("requests_per_day", Some(new.limits.requests_per_day)),
        ("requests_per_month", new.limits.requests_per_month),
        ("streams", new.streams),
    ];
    if let Some((field, _)) = limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
        return Err(AccountError::ZeroLimit { field });
    }
    if new.name.chars().count() > NAME_MAX || new.name.chars().any(char::is_control) {
        return Err(AccountError::BadName { max: NAME_MAX });
    }
    let Some(groups) = &new.groups else {
        return Ok(());
    };
    match groups.iter().find(|group| !is_slug(group)) {
        Some(bad) => Err(AccountError::BadGroup(bad.chars().take(SLUG_MAX).collect())),
        None if groups.is_empty() => Err(AccountError::NoGroups),
        None => Ok(()),
    }
}

fn is_slug(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
    (1..=SLUG_MAX).contains(&text.len()) && text.bytes().all(plain)
}

fn sorted(mut groups: Vec<String>) -> Vec<String> {
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// A stream limit, for the audit log.
pub(crate) fn streams_text(streams: Option<u32>) -> String {
    streams.map_or_else(|| "streams: default".to_owned(), |streams| format!("streams: {streams}"))
}

/// The rights of a feed, for the audit log.
fn rights_text(feed: &FeedRow) -> String {
    match &feed.bookmaker {
        None => "any bookmaker".to_owned(),
        Some(bookmaker) if feed.scores => format!("{bookmaker}, with scores"),
        Some(bookmaker) => bookmaker.clone(),
    }
}
