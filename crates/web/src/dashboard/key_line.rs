//! A key as pages show it.

use accounts::KeyView;
use domain::Timestamp;

use crate::dashboard::time_text::{TimeText, number};

/// A key as a row of a table.
#[derive(Clone, Debug)]
pub(crate) struct KeyLine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) hint: String,
    pub(crate) kind: &'static str,
    pub(crate) groups: String,
    /// Its permissions, or the text for a key without any.
    pub(crate) permissions: String,
    pub(crate) created: TimeText,
    pub(crate) last_used: Option<TimeText>,
    /// The client's last user agent: untrusted text.
    pub(crate) agent: Option<String>,
    pub(crate) used: String,
    pub(crate) limit: String,
    pub(crate) used_n: u32,
    pub(crate) limit_n: u32,
    /// `active`, `ending`, `suspended` or `revoked`.
    pub(crate) state: &'static str,
    pub(crate) ends: Option<TimeText>,
    /// Maximum number of open streams, on pages that show it.
    pub(crate) streams: String,
    /// The owner's name, on pages that list keys of several accounts.
    pub(crate) owner: String,
    /// Id of the owner's account; empty if the key has none.
    pub(crate) owner_id: String,
}

impl KeyLine {
    pub(crate) fn new(view: &KeyView, now: Timestamp) -> Self {
        let record = &view.record;
        let used = view.today.map_or(0, |today| today.used);
        Self {
            id: record.id.as_str().to_owned(),
            name: if record.name.is_empty() { "unnamed".to_owned() } else { record.name.clone() },
            hint: record.hint.clone(),
            kind: record.kind.as_str(),
            groups: record.groups.as_ref().map_or("all".to_owned(), |groups| groups.join(", ")),
            permissions: match &*record.permissions {
                [] => "none".to_owned(),
                held => held.join(", "),
            },
            created: TimeText::new(record.created_at, now),
            last_used: view.last_used.map(|at| TimeText::new(at, now)),
            agent: view.last_agent.clone(),
            used: number(used),
            limit: number(record.limits.requests_per_day),
            used_n: used,
            limit_n: record.limits.requests_per_day,
            state: state(view, now),
            ends: record.revoked_at.map(|at| TimeText::new(at, now)),
            streams: String::new(),
            owner: String::new(),
            owner_id: record.account_id.clone().unwrap_or_default(),
        }
    }

    /// True if requests with the key are accepted.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.state, "active" | "ending")
    }
}

fn state(view: &KeyView, now: Timestamp) -> &'static str {
    match view.record.revoked_at {
        Some(at) if at <= now => "revoked",
        _ if view.suspended => "suspended",
        Some(_) => "ending",
        None => "active",
    }
}
