//! Inputs and outputs of callers: new keys, and keys and feeds as shown to people.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::Timestamp;
use serde::{Serialize, Serializer};
use store::{FeedRow, KeyKind, KeyRow};

use crate::{AuditAction, KeyId, Limits, key::grant};

/// A key to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    pub kind: KeyKind,
    /// May be empty.
    pub name: String,
    /// Sport groups to which the key is restricted; `None`: all.
    pub groups: Option<Vec<String>>,
    pub odds_read: bool,
    pub export_read: bool,
    pub limits: Limits,
    /// Maximum number of open streams; `None`: the operator's setting.
    pub streams: Option<u32>,
    /// Its owner, if any.
    pub account_id: Option<String>,
}

impl NewKey {
    /// A key with the default limits.
    pub const fn of_kind(kind: KeyKind) -> Self {
        Self {
            kind,
            name: String::new(),
            groups: None,
            odds_read: true,
            export_read: false,
            limits: Limits::DEFAULT,
            streams: None,
            account_id: None,
        }
    }
}

impl Limits {
    /// The default limits of a key (D17).
    pub const DEFAULT: Self =
        Self { burst_per_minute: 60, requests_per_day: 10_000, requests_per_month: None };
}

/// A key as shown to its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyRecord {
    pub id: KeyId,
    pub name: String,
    #[serde(serialize_with = "kind_text")]
    pub kind: KeyKind,
    /// The key's first characters, such as `sk_test_ab…`.
    pub hint: String,
    pub groups: Option<Vec<String>>,
    pub permissions: Vec<String>,
    #[serde(flatten)]
    pub limits: Limits,
    /// Maximum number of open streams; `None`: the operator's setting.
    pub streams: Option<u32>,
    #[serde(serialize_with = "instant_text")]
    pub created_at: Timestamp,
    /// When the key ended, or will end.
    #[serde(serialize_with = "maybe_instant_text")]
    pub revoked_at: Option<Timestamp>,
    pub rotated_from: Option<KeyId>,
    /// Its owner; `None` for a key created on the command line.
    pub account_id: Option<String>,
}

/// A feed as shown to an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FeedRecord {
    pub name: String,
    pub bookmaker: Option<String>,
    /// Whether it may report scores.
    pub scores: bool,
    #[serde(serialize_with = "instant_text")]
    pub created_at: Timestamp,
    #[serde(serialize_with = "maybe_instant_text")]
    pub revoked_at: Option<Timestamp>,
    /// Time at which it was paused.
    #[serde(serialize_with = "maybe_instant_text")]
    pub paused_at: Option<Timestamp>,
}

/// Whether a new feed token may report scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// Only if it is bound to no bookmaker.
    OfUnbound,
    Allowed,
}

/// Whether the service is in maintenance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maintenance {
    #[default]
    Off,
    On {
        retry_after_s: u32,
    },
}

/// The present one; every request and every delivery looks at it.
#[derive(Debug, Default)]
pub(crate) struct MaintenanceState(AtomicU64);

impl MaintenanceState {
    pub(crate) fn get(&self) -> Maintenance {
        match self.0.load(Ordering::SeqCst).checked_sub(1) {
            None => Maintenance::Off,
            Some(seconds) => {
                Maintenance::On { retry_after_s: u32::try_from(seconds).unwrap_or(u32::MAX) }
            }
        }
    }

    pub(crate) fn set(&self, maintenance: Maintenance) {
        let state = match maintenance {
            Maintenance::Off => 0,
            Maintenance::On { retry_after_s } => u64::from(retry_after_s) + 1,
        };
        self.0.store(state, Ordering::SeqCst);
    }
}

impl Maintenance {
    pub(crate) fn action(self) -> (AuditAction, String) {
        match self {
            Self::On { retry_after_s } => {
                (AuditAction::MaintenanceOn, format!("try again in {retry_after_s} s"))
            }
            Self::Off => (AuditAction::MaintenanceOff, String::new()),
        }
    }
}

pub(crate) fn key_record(row: KeyRow) -> KeyRecord {
    let ends_ms = row.revoked_ms.or(row.expires_ms);
    KeyRecord {
        id: KeyId::from_stored(&row.id),
        limits: grant::limits(&row),
        streams: row.streams,
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

pub(super) fn feed_record(row: FeedRow) -> FeedRecord {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maintenance_is_what_was_set_last() {
        let state = MaintenanceState::default();
        assert_eq!(state.get(), Maintenance::Off);
        for retry_after_s in [0, 1, u32::MAX] {
            state.set(Maintenance::On { retry_after_s });
            assert_eq!(state.get(), Maintenance::On { retry_after_s });
        }
        state.set(Maintenance::Off);
        assert_eq!(state.get(), Maintenance::Off);
    }
}
