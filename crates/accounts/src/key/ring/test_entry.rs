//! A key without a store, for tests.

use std::sync::atomic::{AtomicI64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use domain::Timestamp;
use store::KeyKind;

use super::{KeyEntry, NEVER_ENDS_MS, NEVER_MS};
use crate::key::usage_counter::UsageCounter;
use crate::simulation::MeterSimulation;
use crate::{Grant, KeyId, Limits};

impl KeyEntry {
    /// A live key that is in no store.
    pub(crate) fn for_test() -> Arc<Self> {
        let limits = Limits { burst_per_minute: 1, requests_per_day: 1, requests_per_month: None };
        let grant = Grant {
            key_id: KeyId::generate().unwrap(),
            kind: KeyKind::Production,
            odds_read: true,
            export_read: false,
            groups: None,
            limits,
            streams: None,
        };
        Arc::new(Self {
            grant,
            meters: MeterSimulation::default().meters("test", limits, &[], Timestamp::from_secs(0)),
            grant_text: OnceLock::new(),
            revoked_from_ms: AtomicI64::new(NEVER_ENDS_MS),
            used_ms: AtomicI64::new(NEVER_MS),
            noted_ms: AtomicI64::new(NEVER_MS),
            held: AtomicUsize::new(0),
            counter: Arc::new(UsageCounter::new(Arc::default())),
        })
    }
}
