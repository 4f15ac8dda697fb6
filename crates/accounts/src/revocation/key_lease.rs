//! Until when a node of a cluster may let keys in from memory.
//!
//! Every change of keys has a number (`store::change`). There are two witnesses of the newest one: the database
//! itself, and the [`RevocationRegister`], to whom every change is told once it is in the database. A node that has
//! everything up to the number that a witness names may let keys in until `trust` after it *asked*, by a clock that
//! never steps. Then it has to have asked again, either of them. A node that reaches neither, or that a witness knows
//! more than, stops by itself.
//!
//! A single process is the only one that changes its keys in memory: its trust has no end.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// For how long the register alone may vouch. Well below the day after which the database forgets a node it has not
/// seen: a node that nobody waits for must not let anybody in.
const ALONE_MAX_MS: u64 = 12 * 3_600_000;
/// For how long after the database was last known to list a node it goes by changes that it has read and could not
/// confirm. With the database gone, leases end at the turn of the minute: this is for long enough to spend them all.
const UNCONFIRMED_MAX_MS: u64 = 100_000;
// By then others may take it for granted that it does not any more; clocks may be wrong by a minute or two.
const _: () = assert!(2 * UNCONFIRMED_MAX_MS <= store::NODE_SILENT_MS);
const FOR_EVER_MS: u64 = u64::MAX;

/// A clock that goes on at the same limit whatever anybody sets.
pub trait SteadyClock: Send + Sync + fmt::Debug {
    /// Milliseconds since an instant that stays the same while the process runs.
    fn now_ms(&self) -> u64;
}

/// The machine's own steady clock.
#[derive(Debug)]
pub struct MonotonicClock(Instant);

impl Default for MonotonicClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl SteadyClock for MonotonicClock {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(FOR_EVER_MS)
    }
}

/// Why a register did not do what it was asked.
pub type RegisterError = Box<dyn std::error::Error + Send + Sync>;
/// What a register answers, later.
pub type RegisterFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who makes numbers known to nodes that cannot reach the database, and remembers the greatest.
///
/// All answers must be as of one place: whatever was announced before a confirmation was asked for, by whomever,
/// must show in it. An answer that may be old is none.
pub trait RevocationRegister: Send + Sync + fmt::Debug {
    /// Makes a number known; once this returns, every later [`RevocationRegister::confirm`] anywhere gives it or a
    /// greater one. Gives the greatest that is known.
    fn announce(&self, number: i64) -> RegisterFuture<'_, Result<i64, RegisterError>>;

    /// A number that was announced at some time; `None` where none ever was. There may be greater ones.
    fn known(&self) -> RegisterFuture<'_, Result<Option<i64>, RegisterError>>;

    /// Wakes nodes up, so that they ask sooner than they would. It may be lost.
    fn hint(&self) -> RegisterFuture<'_, ()>;

    /// The greatest number that was announced, as of after this was called. Fails where none ever was.
    fn confirm(&self, held: i64) -> RegisterFuture<'_, Result<i64, RegisterError>>;

    /// Waits until something may have been announced. It may be wrong both ways: whoever relies on it asks.
    fn wait_for_hint(&self) -> RegisterFuture<'_, ()>;
}

/// Who said which number is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authority {
    Store,
    Register,
}

/// What a node has in memory, and how it stands with the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncState {
    /// Every change up to this number is in force here.
    pub(crate) number: i64,
    /// The database knows that it is up to this one.
    pub(crate) confirmed: i64,
    /// When the database was asked that last was known to list this node.
    pub(crate) listed_ms: Option<u64>,
    pub(crate) lease_ms: u64,
}

impl SyncState {
    /// Until when keys may be let in, now that a witness who was asked at `asked_ms` has named the newest number.
    /// `None`: no longer than until now.
    pub(crate) fn until_ms(&self, by: Authority, asked_ms: u64, newest: i64) -> Option<u64> {
        let alone_ms = asked_ms.saturating_sub(self.listed_ms?);
        let held = match by {
            Authority::Store => self.number,
            Authority::Register if alone_ms <= UNCONFIRMED_MAX_MS => self.number,
            // Who was silent for long is taken for having no more than it has confirmed.
            Authority::Register if alone_ms <= ALONE_MAX_MS => self.confirmed,
            Authority::Register => return None,
        };
        // From the question on, not from the answer: what was changed after the answer was given is not in it.
        (held >= newest).then(|| asked_ms.saturating_add(self.lease_ms))
    }
}

/// Whether keys may be let in. One load and a look at the clock; a single process does not even look.
#[derive(Debug)]
pub(crate) struct KeyLease {
    until_ms: AtomicU64,
    steady: Arc<dyn SteadyClock>,
}

impl KeyLease {
    /// Of a process that nobody else changes keys beside.
    pub(crate) fn unbounded() -> Self {
        Self { until_ms: AtomicU64::new(FOR_EVER_MS), steady: Arc::new(MonotonicClock::default()) }
    }

    /// Of a node that has not asked anybody yet.
    pub(crate) fn none_yet(steady: Arc<dyn SteadyClock>) -> Self {
        Self { until_ms: AtomicU64::new(0), steady }
    }

    /// To be looked at before the keys are: who is seen to be trusted has the keys that the trust was given for.
    pub(crate) fn holds(&self) -> bool {
        let until_ms = self.until_ms.load(Ordering::SeqCst);
        until_ms == FOR_EVER_MS || self.steady.now_ms() < until_ms
    }

    /// `None`: for ever.
    pub(crate) fn left_ms(&self) -> Option<u64> {
        let until_ms = self.until_ms.load(Ordering::SeqCst);
        (until_ms != FOR_EVER_MS).then(|| until_ms.saturating_sub(self.steady.now_ms()))
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
    fn trust_is_counted_from_the_question_and_only_given_to_who_misses_nothing() {
        for by in [Authority::Store, Authority::Register] {
            assert_eq!(SYNCED.until_ms(by, 2000, 7), Some(7000));
            assert_eq!(SYNCED.until_ms(by, 2000, 6), Some(7000));
            assert_eq!(SYNCED.until_ms(by, 2000, 8), None);
        }
    }

    #[test]
    fn who_is_not_listed_is_not_trusted_and_the_herald_vouches_for_half_a_day() {
        let unlisted = SyncState { listed_ms: None, ..SYNCED };
        assert_eq!(unlisted.until_ms(Authority::Store, 2000, 0), None);
        let late = 1000 + ALONE_MAX_MS;
        assert!(SYNCED.until_ms(Authority::Register, late, 7).is_some());
        assert_eq!(SYNCED.until_ms(Authority::Register, late + 1, 7), None);
        assert!(SYNCED.until_ms(Authority::Store, late + 1, 7).is_some());
    }

    #[test]
    fn what_was_not_confirmed_counts_for_a_while() {
        let unconfirmed = SyncState { confirmed: 6, ..SYNCED };
        let late = 1000 + UNCONFIRMED_MAX_MS;
        assert!(unconfirmed.until_ms(Authority::Register, late, 7).is_some());
        assert_eq!(unconfirmed.until_ms(Authority::Register, late + 1, 7), None);
        assert!(unconfirmed.until_ms(Authority::Register, late + 1, 6).is_some());
        assert!(unconfirmed.until_ms(Authority::Store, late + 1, 7).is_some());
    }

    #[test]
    fn trust_ends_with_the_clock_or_at_once_and_is_never_shortened_by_an_older_answer() {
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
