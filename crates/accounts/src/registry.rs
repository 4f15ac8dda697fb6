//! The verbs on keys, feeds and maintenance, done in the store alone. What a command-line process uses; a
//! running server is told afterwards, and does the same through [`crate::Accounts`].

use std::{sync::Arc, time::Duration};

use domain::{Clock, Timestamp};
use serde::{Serialize, Serializer};
use store::{AuditEntry, FeedRow, KeyEnd, KeyKind, KeyRow, Store};

use crate::{AccountError, Actor, Deed, FeedToken, KeyId, KeySecret, Limits, ring};

pub(crate) const ODDS_READ: &str = "odds:read";
const NAME_MAX: usize = 100;
const SLUG_MAX: usize = 64;
const OVERLAP_MAX: Duration = Duration::from_secs(7 * 86_400);
const MAINTENANCE: &str = "maintenance_retry_after_s";

/// What a new key is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    pub kind: KeyKind,
    /// May be empty.
    pub name: String,
    /// Sport groups to restrict the key to; `None` is all.
    pub groups: Option<Vec<String>>,
    pub odds_read: bool,
    pub limits: Limits,
    /// Whose key it is to be; `None` is nobody's in particular.
    pub account_id: Option<String>,
}

impl NewKey {
    /// A key with the limits every key has unless told otherwise.
    pub const fn of_kind(kind: KeyKind) -> Self {
        Self {
            kind,
            name: String::new(),
            groups: None,
            odds_read: true,
            limits: Limits::DEFAULT,
            account_id: None,
        }
    }
}

impl Limits {
    /// What the interface promises a key by default (D17).
    pub const DEFAULT: Self =
        Self { burst_per_minute: 60, requests_per_day: 10_000, requests_per_month: None };
}

/// A key as its owner may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyRecord {
    pub id: KeyId,
    pub name: String,
    #[serde(serialize_with = "kind_text")]
    pub kind: KeyKind,
    /// The key's start, such as `sk_test_ab…`.
    pub hint: String,
    pub groups: Option<Vec<String>>,
    pub permissions: Vec<String>,
    #[serde(flatten)]
    pub limits: Limits,
    #[serde(serialize_with = "instant_text")]
    pub created_at: Timestamp,
    /// When the key ended, or will end.
    #[serde(serialize_with = "maybe_instant_text")]
    pub revoked_at: Option<Timestamp>,
    pub rotated_from: Option<KeyId>,
    /// Whose key it is; `None` for one made on the command line.
    pub account_id: Option<String>,
}

/// A feed as an operator may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FeedRecord {
    pub name: String,
    pub bookmaker: Option<String>,
    /// Whether it may report where events stand.
    pub scores: bool,
    #[serde(serialize_with = "instant_text")]
    pub created_at: Timestamp,
    #[serde(serialize_with = "maybe_instant_text")]
    pub revoked_at: Option<Timestamp>,
    /// Since when its pushes are refused.
    #[serde(serialize_with = "maybe_instant_text")]
    pub paused_at: Option<Timestamp>,
}

/// Whether a new feed token may report where events stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// Only where it is bound to no bookmaker.
    OfUnbound,
    Allowed,
}

/// Whether the service is closed for maintenance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maintenance {
    #[default]
    Off,
    On {
        retry_after_s: u32,
    },
}

/// The verbs on the store.
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

    /// Issues a key. Its text is here and nowhere else.
    ///
    /// # Errors
    /// A field is out of its bounds, or the store cannot be written.
    pub async fn create_key(&self, new: NewKey) -> Result<(KeySecret, KeyRecord), AccountError> {
        check(&new)?;
        let (secret, row) = self.mint(new)?;
        self.store.insert_key(&row).await?;
        Ok((secret, record(row)))
    }

    /// Issues so many keys of the same kind, all or none.
    ///
    /// # Errors
    /// A field is out of its bounds, or the store cannot be written.
    pub async fn create_keys(
        &self,
        new: &NewKey,
        count: usize,
    ) -> Result<Vec<(KeySecret, KeyRecord)>, AccountError> {
        check(new)?;
        let minted = (0..count).map(|_| self.mint(new.clone()));
        let (secrets, rows): (Vec<_>, Vec<_>) =
            minted.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        self.store.insert_keys(&rows).await?;
        Ok(secrets.into_iter().zip(rows.into_iter().map(record)).collect())
    }

    fn mint(&self, new: NewKey) -> Result<(KeySecret, KeyRow), AccountError> {
        let (secret, id) = (KeySecret::generate(new.kind)?, KeyId::generate()?);
        let row = KeyRow {
            id: String::from(id.as_str()),
            name: new.name,
            kind: new.kind,
            digest: secret.digest(),
            hint: secret.hint(),
            groups: new.groups.map(sorted),
            permissions: new.odds_read.then(|| String::from(ODDS_READ)).into_iter().collect(),
            burst_per_minute: new.limits.burst_per_minute,
            requests_per_day: new.limits.requests_per_day,
            requests_per_month: new.limits.requests_per_month,
            meter_id: String::from(id.as_str()),
            created_ms: self.clock.now().as_millis(),
            revoked_ms: None,
            expires_ms: None,
            rotated_from: None,
            account_id: new.account_id,
            last_used_ms: None,
            last_agent: None,
            suspended_ms: None,
        };
        Ok((secret, row))
    }

    /// Every key ever issued, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_keys(&self) -> Result<Vec<KeyRecord>, AccountError> {
        Ok(self.store.keys().await?.into_iter().map(record).collect())
    }

    /// Ends a key, named by its id or its text, at once. Ending it twice changes nothing.
    ///
    /// # Errors
    /// There is no such key, or the store cannot be written.
    pub async fn revoke_key(&self, id_or_key: &str) -> Result<KeyRecord, AccountError> {
        self.revoke_row(id_or_key).await.map(record)
    }

    pub(crate) async fn revoke_row(&self, id_or_key: &str) -> Result<KeyRow, AccountError> {
        let id = self.find_key(id_or_key).await?.id;
        let now_ms = self.clock.now().as_millis();
        self.store.revoke_key(&id, now_ms).await?.ok_or(AccountError::UnknownKey)
    }

    /// Replaces a key, named by its id or its text, by a new one with the same grant that spends from the
    /// same meters. The old one ends at once, or after the overlap.
    ///
    /// # Errors
    /// There is no such key, it has ended or is ending, the overlap is longer than 7 days, or the store
    /// cannot be written.
    pub async fn rotate_key(
        &self,
        id_or_key: &str,
        overlap: Option<Duration>,
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
        if !self.store.rotate_key(end, &successor).await? {
            // Somebody else ended or rotated it since it was read.
            return Err(AccountError::RotateTwice(successor.rotated_from.unwrap_or_default()));
        }
        Ok((secret, record(successor)))
    }

    /// Issues a feed token. Its text is here and nowhere else. A revoked feed's name can be taken again. Scores are for
    /// tokens that are bound to no bookmaker.
    ///
    /// # Errors
    /// The name is out of its bounds or has a live token, or the store cannot be written.
    pub async fn create_feed(
        &self,
        name: &str,
        bookmaker: Option<&str>,
    ) -> Result<(FeedToken, FeedRecord), AccountError> {
        self.create_feed_with(name, bookmaker, Scores::OfUnbound).await
    }

    /// The same, with what it may say of scores.
    ///
    /// # Errors
    /// As [`Self::create_feed`].
    pub async fn create_feed_with(
        &self,
        name: &str,
        bookmaker: Option<&str>,
        scores: Scores,
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
        if !self.store.insert_feed(&row).await? {
            return Err(AccountError::FeedExists(row.name));
        }
        Ok((token, feed_record(row)))
    }

    /// Every feed, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_feeds(&self) -> Result<Vec<FeedRecord>, AccountError> {
        Ok(self.store.feeds().await?.into_iter().map(feed_record).collect())
    }

    /// Ends a feed's token at once. Ending it twice changes nothing.
    ///
    /// # Errors
    /// There is no such feed, or the store cannot be written.
    pub async fn revoke_feed(&self, name: &str) -> Result<FeedRecord, AccountError> {
        let row = self.store.revoke_feed(name, self.clock.now().as_millis()).await?;
        row.map(feed_record).ok_or_else(|| AccountError::UnknownFeed(String::from(name)))
    }

    /// Refuses a feed's pushes from now on, or takes them again. Its token stays good.
    ///
    /// # Errors
    /// There is no live feed of that name, or the store cannot be written.
    pub async fn pause_feed(&self, name: &str, paused: bool) -> Result<FeedRecord, AccountError> {
        let paused_ms = paused.then(|| self.clock.now().as_millis());
        let row = self.store.pause_feed(name, paused_ms).await?;
        row.map(feed_record).ok_or_else(|| AccountError::UnknownFeed(String::from(name)))
    }

    /// Whether the service is closed for maintenance.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn maintenance(&self) -> Result<Maintenance, AccountError> {
        let value = self.store.setting(MAINTENANCE).await?;
        // A value that cannot be read still says that the operator closed the service.
        Ok(value.map_or(Maintenance::Off, |value| Maintenance::On {
            retry_after_s: value.parse().unwrap_or(1),
        }))
    }

    /// Closes or opens the service.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn set_maintenance(&self, maintenance: Maintenance) -> Result<(), AccountError> {
        let value = match maintenance {
            Maintenance::Off => None,
            Maintenance::On { retry_after_s } => Some(retry_after_s.to_string()),
        };
        Ok(self.store.set_setting(MAINTENANCE, value.as_deref()).await?)
    }

    /// Writes down what was done on the command line.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn note(&self, deed: Deed, subject: &str, detail: &str) -> Result<(), AccountError> {
        let Actor { account_id, who, address } = Actor::command_line();
        let entry = AuditEntry {
            at_ms: self.clock.now().as_millis(),
            account_id,
            who,
            action: deed.as_str().to_owned(),
            subject: subject.to_owned(),
            detail: detail.to_owned(),
            address,
        };
        Ok(self.store.append_audit(&entry).await?)
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

pub(crate) fn record(row: KeyRow) -> KeyRecord {
    let ends_ms = row.revoked_ms.or(row.expires_ms);
    KeyRecord {
        id: KeyId::from_stored(&row.id),
        limits: ring::limits(&row),
        name: row.name,
        kind: row.kind,
        hint: row.hint,
        groups: row.groups,
        permissions: row.permissions,
        created_at: Timestamp::from_millis(row.created_ms),
        revoked_at: ends_ms.map(Timestamp::from_millis),
        rotated_from: row.rotated_from.as_deref().map(KeyId::from_stored),
        account_id: row.account_id,
    }
}

fn feed_record(row: FeedRow) -> FeedRecord {
    FeedRecord {
        name: row.name,
        scores: row.scores || row.bookmaker.is_none(),
        bookmaker: row.bookmaker,
        created_at: Timestamp::from_millis(row.created_ms),
        revoked_at: row.revoked_ms.map(Timestamp::from_millis),
        paused_at: row.paused_ms.map(Timestamp::from_millis),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn kind_text<S: Serializer>(kind: &KeyKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.as_str())
}

fn instant_text<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(at)
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn maybe_instant_text<S: Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.to_string()).serialize(to)
}
