//! The time that all nodes share: the database's, continued by a monotonic clock.
//!
//! Without this, a node whose own clock is wrong or stepped would count requests in another minute than the others,
//! and publish snapshots of another epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use domain::{Clock, Timestamp};
use store::{Store, StoreError};

/// How often the database is asked; clocks drift by far less than a millisecond meanwhile.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// Number of queries at the start: the fastest answer is the most precise.
const FIRST_QUESTIONS: u32 = 3;

/// This node's estimate of the database's clock.
#[derive(Debug)]
pub(crate) struct SharedClock {
    began: Instant,
    /// The database's time when this clock was started, in milliseconds.
    began_ms: AtomicI64,
}

/// Bounds of the database's time when this clock was started, from one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    least_ms: i64,
    most_ms: i64,
}

impl Bounds {
    /// The estimate within the bounds that is nearest to the previous one. A slow answer changes nothing that it does
    /// not contradict: otherwise the clock would jitter with the latency of answers.
    fn correct(self, began_ms: i64) -> i64 {
        began_ms.clamp(self.least_ms, self.most_ms)
    }

    fn middle(self) -> i64 {
        self.least_ms.midpoint(self.most_ms)
    }

    fn width(self) -> i64 {
        self.most_ms.saturating_sub(self.least_ms)
    }
}

impl SharedClock {
    /// Starts with the database's current time.
    ///
    /// # Errors
    /// The database does not answer.
    pub(crate) async fn of(store: &Store) -> Result<Self, StoreError> {
        let clock = Self { began: Instant::now(), began_ms: AtomicI64::new(0) };
        let mut best = clock.ask(store).await?;
        for _ in 1..FIRST_QUESTIONS {
            let bounds = clock.ask(store).await?;
            best = if bounds.width() < best.width() { bounds } else { best };
        }
        clock.began_ms.store(best.middle(), Ordering::Relaxed);
        Ok(clock)
    }

    async fn ask(&self, store: &Store) -> Result<Bounds, StoreError> {
        let before_ms = millis(self.began.elapsed());
        let now_ms = store.now_ms().await?;
        let after_ms = millis(self.began.elapsed()).saturating_add(1);
        Ok(Bounds { least_ms: now_ms - after_ms, most_ms: now_ms - before_ms + 1 })
    }

    /// Asks the database periodically. While it does not answer, the clock continues by itself.
    pub(crate) async fn keep(self: Arc<Self>, store: Store) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            match self.ask(&store).await {
                Ok(bounds) => {
                    let began_ms = self.began_ms.load(Ordering::Relaxed);
                    self.began_ms.store(bounds.correct(began_ms), Ordering::Relaxed);
                }
                Err(error) => {
                    tracing::debug!(event = "clock.read_failed", %error, "database time not read");
                }
            }
        }
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        let began_ms = self.began_ms.load(Ordering::Relaxed);
        Timestamp::from_millis(began_ms.saturating_add(millis(self.began.elapsed())))
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_moves_the_clock_no_further_than_it_proves() {
        let bounds = Bounds { least_ms: 100, most_ms: 500 };
        assert_eq!(
            [90, 100, 300, 500, 510].map(|began| bounds.correct(began)),
            [100, 100, 300, 500, 500]
        );
        assert_eq!((bounds.middle(), bounds.width()), (300, 400));
    }
}
