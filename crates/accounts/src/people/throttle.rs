//! Rate limits per account and per source, in bounded memory. Pure: the caller passes the time.
//!
//! The generic cell rate algorithm: each key has one number, the instant until which its attempts are paid for. Keys
//! are stored as salted hashes, so that clients' input is not stored.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use domain::Timestamp;

/// Maximum number of keys. Further keys share one entry, so that a distributed attack is slowed as a whole and memory
/// is bounded.
const KEYS_MAX: usize = 20_000;

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Maximum number of attempts at once.
    pub(crate) burst: u32,
    /// Interval after which one more attempt is allowed.
    pub(crate) every: Duration,
}

#[derive(Debug)]
pub(crate) struct Throttle {
    limit: Limit,
    keys_max: usize,
    salt: RandomState,
    /// Until when each key's attempts are paid for, in milliseconds.
    paid_ms: HashMap<u64, i64>,
    overflow_ms: i64,
}

impl Throttle {
    pub(crate) fn new(limit: Limit) -> Self {
        Self {
            limit,
            keys_max: KEYS_MAX,
            salt: RandomState::new(),
            paid_ms: HashMap::new(),
            overflow_ms: i64::MIN,
        }
    }

    /// Counts an attempt, or returns how long to wait before the next.
    pub(crate) fn admit(&mut self, key: &impl Hash, now: Timestamp) -> Result<(), Duration> {
        let (now_ms, every_ms) = (now.as_millis(), millis(self.limit.every));
        let room_ms = every_ms.saturating_mul(i64::from(self.limit.burst.saturating_sub(1)));
        let paid_ms = self.slot(key, now_ms);
        let due_ms = (*paid_ms).max(now_ms);
        let wait_ms = due_ms - now_ms - room_ms;
        if wait_ms > 0 {
            return Err(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(u64::MAX)));
        }
        *paid_ms = due_ms.saturating_add(every_ms);
        Ok(())
    }

    /// Refunds an attempt that succeeded.
    pub(crate) fn refund(&mut self, key: &impl Hash) {
        let every_ms = millis(self.limit.every);
        if let Some(paid_ms) = self.paid_ms.get_mut(&self.salt.hash_one(key)) {
            *paid_ms = paid_ms.saturating_sub(every_ms);
        }
    }

    fn slot(&mut self, key: &impl Hash, now_ms: i64) -> &mut i64 {
        let key = self.salt.hash_one(key);
        if self.paid_ms.len() >= self.keys_max && !self.paid_ms.contains_key(&key) {
            self.paid_ms.retain(|_, paid_ms| *paid_ms > now_ms);
            if self.paid_ms.len() >= self.keys_max {
                return &mut self.overflow_ms;
            }
        }
        self.paid_ms.entry(key).or_insert(i64::MIN)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { burst: 3, every: Duration::from_secs(10) };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    #[test]
    fn a_burst_is_let_through_and_then_one_at_a_time() {
        let mut throttle = Throttle::new(LIMIT);
        for _ in 0..3 {
            assert_eq!(throttle.admit(&"ann", at(100)), Ok(()));
        }
        assert_eq!(throttle.admit(&"ann", at(100)), Err(Duration::from_secs(10)));
        assert_eq!(throttle.admit(&"bob", at(100)), Ok(()), "others are not held up");
        assert_eq!(throttle.admit(&"ann", at(104)), Err(Duration::from_secs(6)));
        assert_eq!(throttle.admit(&"ann", at(110)), Ok(()));
        assert_eq!(throttle.admit(&"ann", at(110)), Err(Duration::from_secs(10)));
        for _ in 0..3 {
            assert_eq!(throttle.admit(&"ann", at(1000)), Ok(()));
        }
        assert!(throttle.admit(&"ann", at(1000)).is_err());
    }

    #[test]
    fn a_refund_makes_room_for_one() {
        let mut throttle = Throttle::new(LIMIT);
        for _ in 0..3 {
            assert_eq!(throttle.admit(&"ann", at(100)), Ok(()));
        }
        throttle.refund(&"ann");
        assert_eq!(throttle.admit(&"ann", at(100)), Ok(()));
        assert!(throttle.admit(&"ann", at(100)).is_err());
    }

    #[test]
    fn memory_is_bounded_and_the_rest_share_one_place() {
        let mut throttle = Throttle { keys_max: 2, ..Throttle::new(LIMIT) };
        let mut admitted = |key: u32, now: i64| throttle.admit(&key, at(now)).is_ok();
        assert!(admitted(1, 0) && admitted(2, 0));
        // Keys 3 to 6 share a burst of three.
        assert!(admitted(3, 0) && admitted(4, 0) && admitted(5, 0) && !admitted(6, 0));
        assert!(admitted(1, 0), "a known key keeps its own slot");
        // When the known keys are paid off, their places are free again.
        assert!(admitted(7, 100) && admitted(8, 100));
        assert!(throttle.paid_ms.len() <= 2);
    }
}
