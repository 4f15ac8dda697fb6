//! The key lease: until when a node of a cluster may accept keys from memory.
//!
//! Every change of keys has a number (`store::key_change`). Two authorities know the newest number: the database, and
//! the [`crate::RevocationRegister`], where every change is announced once it is in the database. A node that has
//! every change up to the number that an authority names may accept keys for the length of a lease from the moment
//! when it *asked*, by a clock that never steps. Before then it has to ask either of them again. A node stops by
//! itself if it reaches neither, or if an authority knows of a newer change.
//!
//! A single process is the only one that changes its keys: its lease does not expire.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// How long a node may renew its lease by the register alone. Well below the day after which the database deletes a
/// silent node: changes do not wait for such a node.
const REGISTER_ONLY_MAX_MS: u64 = 12 * 3_600_000;
/// How long after the database last listed it a node relies on changes that it has read and could not confirm.
/// Without the database, quota leases end with the minute: this is long enough to spend them.
const UNCONFIRMED_MAX_MS: u64 = 100_000;
// After that, others may rely on its silence; clocks may be wrong by a minute or two.
const _: () = assert!(2 * UNCONFIRMED_MAX_MS <= store::NODE_SILENT_MS);
const NEVER_MS: u64 = u64::MAX;

/// A clock that cannot be set.
pub trait SteadyClock: Send + Sync + fmt::Debug {
    /// Milliseconds since an instant that stays the same while the process runs.
    fn now_ms(&self) -> u64;
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct MonotonicClock(Instant);

impl Default for MonotonicClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl SteadyClock for MonotonicClock {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(NEVER_MS)
    }
}

/// The source of the newest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authority {
    Store,
    Register,
}

/// How far a node has followed the changes of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncState {
    /// Every change up to this number is in memory.
    pub(crate) number: i64,
    /// Every change up to this number is confirmed in the database as read by the node.
    pub(crate) confirmed: i64,
    /// When the node asked for the last listing by the database.
    pub(crate) listed_ms: Option<u64>,
    pub(crate) lease_ms: u64,
}

impl SyncState {
    /// Until when keys may be accepted, given that an authority asked at `asked_ms` named the newest number. `None`:
    /// the answer does not renew the lease.
    pub(crate) fn until_ms(&self, by: Authority, asked_ms: u64, newest: i64) -> Option<u64> {
        let alone_ms = asked_ms.saturating_sub(self.listed_ms?);
        let held = match by {
            Authority::Store => self.number,
            Authority::Register if alone_ms <= UNCONFIRMED_MAX_MS => self.number,
            // Others assume that a long-silent node has no more than it has confirmed.
            Authority::Register if alone_ms <= REGISTER_ONLY_MAX_MS => self.confirmed,
            Authority::Register => return None,
        };
        // Counted from the question: changes after the answer are not in it.
        (held >= newest).then(|| asked_ms.saturating_add(self.lease_ms))
    }
}

/// Whether keys may be accepted: one atomic load and, in a cluster, a read of the clock.
#[derive(Debug)]
pub(crate) struct KeyLease {
    until_ms: AtomicU64,
    steady: Arc<dyn SteadyClock>,
}

impl KeyLease {
    /// The lease of a single process.
    pub(crate) fn unbounded() -> Self {
        Self { until_ms: AtomicU64::new(NEVER_MS), steady: Arc::new(MonotonicClock::default()) }
    }

    /// The lease of a node that has not asked yet.
    pub(crate) fn none_yet(steady: Arc<dyn SteadyClock>) -> Self {
        Self { until_ms: AtomicU64::new(0), steady }
    }

    /// Checked before the keys are read: the lease was given for those keys or later ones.
    pub(crate) fn holds(&self) -> bool {
        let until_ms = self.until_ms.load(Ordering::SeqCst);
        until_ms == NEVER_MS || self.steady.now_ms() < until_ms
    }

    /// `None`: it does not expire.
    pub(crate) fn left_ms(&self) -> Option<u64> {
        let until_ms = self.until_ms.load(Ordering::SeqCst);
        (until_ms != NEVER_MS).then(|| until_ms.saturating_sub(self.steady.now_ms()))
    }

    pub(crate) fn extend(&self, until_ms: u64) {
        self.until_ms.fetch_max(until_ms, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.until_ms.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNCED: SyncState =
        SyncState { number: 7, confirmed: 7, listed_ms: Some(1000), lease_ms: 5000 };

    #[test]
    fn a_lease_begins_with_the_question_and_needs_every_change() {
        for by in [Authority::Store, Authority::Register] {
            assert_eq!(SYNCED.until_ms(by, 2000, 7), Some(7000));
            assert_eq!(SYNCED.until_ms(by, 2000, 6), Some(7000));
            assert_eq!(SYNCED.until_ms(by, 2000, 8), None);
        }
    }

    #[test]
    fn an_unlisted_node_gets_no_lease_and_the_register_renews_for_half_a_day() {
        let unlisted = SyncState { listed_ms: None, ..SYNCED };
        assert_eq!(unlisted.until_ms(Authority::Store, 2000, 0), None);
        let late = 1000 + REGISTER_ONLY_MAX_MS;
        assert!(SYNCED.until_ms(Authority::Register, late, 7).is_some());
        assert_eq!(SYNCED.until_ms(Authority::Register, late + 1, 7), None);
        assert!(SYNCED.until_ms(Authority::Store, late + 1, 7).is_some());
    }

    #[test]
    fn unconfirmed_changes_count_for_a_while() {
        let unconfirmed = SyncState { confirmed: 6, ..SYNCED };
        let late = 1000 + UNCONFIRMED_MAX_MS;
        assert!(unconfirmed.until_ms(Authority::Register, late, 7).is_some());
        assert_eq!(unconfirmed.until_ms(Authority::Register, late + 1, 7), None);
        assert!(unconfirmed.until_ms(Authority::Register, late + 1, 6).is_some());
        assert!(unconfirmed.until_ms(Authority::Store, late + 1, 7).is_some());
    }

    #[test]
    fn a_lease_ends_with_the_clock_or_at_once_and_is_never_shortened_by_an_older_answer() {
        let lease = KeyLease::none_yet(Arc::new(MonotonicClock::default()));
        assert!(!lease.holds());
        lease.extend(60_000);
        lease.extend(10);
        assert!(lease.holds() && lease.left_ms().is_some_and(|left| left > 50_000));
        lease.end();
        assert!(!lease.holds());
        assert!(KeyLease::unbounded().holds());
        assert_eq!(KeyLease::unbounded().left_ms(), None);
    }
}
