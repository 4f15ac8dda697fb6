//! The rights of a key: its limits, never above those of its account, and the data that it may read.

use serde::Serialize;
use store::{KeyKind, KeyRow};

use crate::KeyId;

/// The permission to read odds, events and scores.
pub(crate) const ODDS_READ: &str = "odds:read";
/// The permission to download files of the archive. A key has it only if it was created with it.
pub(crate) const EXPORT_READ: &str = "export:read";

/// The limits of a key and its rotated successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    pub burst_per_minute: u32,
    pub requests_per_day: u32,
    pub requests_per_month: Option<u32>,
}

impl Limits {
    /// Lowers the limits to the quota that the keys of the account share.
    fn within(self, shared: Option<Quota>) -> Self {
        let Some(shared) = shared else {
            return self;
        };
        let months = [self.requests_per_month, shared.requests_per_month];
        Self {
            requests_per_day: self.requests_per_day.min(shared.requests_per_day),
            requests_per_month: months.into_iter().flatten().min(),
            ..self
        }
    }
}

/// The quota that all keys of one kind share within an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) requests_per_day: u32,
    pub(crate) requests_per_month: Option<u32>,
}

/// The rights of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub key_id: KeyId,
    pub kind: KeyKind,
    /// Odds, events and scores may be read.
    pub odds_read: bool,
    /// Files of the archive may be read.
    pub export_read: bool,
    /// Sport groups the key is restricted to; `None` is all.
    pub groups: Option<Box<[Box<str>]>>,
    pub limits: Limits,
    /// Maximum number of open streams; `None`: the operator's setting.
    pub streams: Option<u32>,
}

impl Grant {
    /// Whether sports of this group are within the grant.
    pub fn covers_group(&self, group: &str) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.iter().any(|own| **own == *group))
    }
}

pub(crate) fn grant(row: &KeyRow) -> Grant {
    let has = |name: &str| row.permissions.iter().any(|permission| permission == name);
    Grant {
        key_id: KeyId::from_stored(&row.id),
        kind: row.kind,
        odds_read: has(ODDS_READ),
        export_read: has(EXPORT_READ),
        groups: row
            .groups
            .as_ref()
            .map(|groups| groups.iter().map(|group| group.as_str().into()).collect()),
        limits: limits(row),
        streams: row.streams,
    }
}

/// A key's limits: those of its row, capped by its account's.
pub(crate) fn limits(row: &KeyRow) -> Limits {
    let own = Limits {
        burst_per_minute: row.burst_per_minute,
        requests_per_day: row.requests_per_day,
        requests_per_month: row.requests_per_month,
    };
    own.within(quota(row))
}

/// The quota of a key's account for keys of that kind. Sandbox keys have a separate quota: an operator's limits apply
/// to production keys, and tests do not use them up.
pub(crate) fn quota(row: &KeyRow) -> Option<Quota> {
    let Limits { requests_per_day, .. } = Limits::DEFAULT;
    row.account_quota.map(|set| match row.kind {
        KeyKind::Production => Quota {
            requests_per_day: set.requests_per_day.unwrap_or(requests_per_day),
            requests_per_month: set.requests_per_month,
        },
        KeyKind::Sandbox => Quota { requests_per_day, requests_per_month: None },
    })
}

/// The meters that a key shares with the other keys of its account.
pub(crate) fn shared_meter_id(row: &KeyRow) -> Option<String> {
    let account_id = row.account_id.as_ref()?;
    Some(match row.kind {
        KeyKind::Production => account_id.clone(),
        KeyKind::Sandbox => format!("{account_id}/sandbox"),
    })
}
