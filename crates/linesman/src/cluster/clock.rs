//! The time that all nodes have in common: the database's, carried on by a clock that does not step.
//!
//! A node whose own clock is wrong or is set meanwhile would otherwise count requests in another minute than the rest,
//! and publish snapshots of another epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use domain::{Clock, Timestamp};
use store::{Store, StoreError};

/// How often the database is asked; clocks drift apart by far less than a millisecond meanwhile.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// How often it is asked at first: the quickest answer tells most.
const FIRST_QUESTIONS: u32 = 3;

/// The database's clock, as far as this node knows it.
#[derive(Debug)]
pub(crate) struct SharedClock {
    began: Instant,
    /// What the database's clock showed when this one began, in milliseconds.
    began_ms: AtomicI64,
}

/// What the database's clock showed when this one began, as far as one answer tells: between these, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    least_ms: i64,
    most_ms: i64,
}

impl Bounds {
    /// The estimate that is nearest to the one before. A slow answer moves nothing that it does not contradict: a clock
    /// that follows how long answers take would go back and forth.
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
    /// Begins with what the database says now.
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

    /// Asks again and again for as long as the service runs. While the database does not answer, the clock goes on by
    /// itself.
    pub(crate) async fn keep(self: Arc<Self>, store: Store) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            match self.ask(&store).await {
                Ok(bounds) => {
                    let began_ms = self.began_ms.load(Ordering::Relaxed);
                    self.began_ms.store(bounds.correct(began_ms), Ordering::Relaxed);
                }
                Err(error) => tracing::debug!(%error, "the database's clock is not bounds"),
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
