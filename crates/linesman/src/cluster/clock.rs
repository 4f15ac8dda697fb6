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
/// An answer that took longer says too little about now.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(500);

/// The database's clock, as far as this node knows it.
#[derive(Debug)]
pub(crate) struct SharedClock {
    began: Instant,
    /// What the database's clock showed when this one began, in milliseconds.
    began_ms: AtomicI64,
}

impl SharedClock {
    /// Begins with what the database says now.
    ///
    /// # Errors
    /// The database does not answer.
    pub(crate) async fn of(store: &Store) -> Result<Self, StoreError> {
        let clock = Self { began: Instant::now(), began_ms: AtomicI64::new(0) };
        let (began_ms, _) = clock.ask(store).await?;
        clock.began_ms.store(began_ms, Ordering::Relaxed);
        Ok(clock)
    }

    /// What the database's clock showed when this one began, and how long it took to be told.
    async fn ask(&self, store: &Store) -> Result<(i64, Duration), StoreError> {
        let before = self.began.elapsed();
        let now_ms = store.now_ms().await?;
        let took = self.began.elapsed().saturating_sub(before);
        Ok((now_ms - millis(before + took / 2), took))
    }

    /// Asks again and again for as long as the service runs. While the database does not answer, the clock goes on by
    /// itself.
    pub(crate) async fn keep(self: Arc<Self>, store: Store) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            match self.ask(&store).await {
                Ok((began_ms, took)) if took <= ANSWER_TIME_MAX => {
                    self.began_ms.store(began_ms, Ordering::Relaxed);
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the database's clock is not told"),
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
