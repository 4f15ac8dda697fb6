//! Time and random numbers, replaced in tests.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::pin::Pin;
use std::time::{Duration, Instant};

/// A future in a box.
pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Time and random numbers. Tests of programs may replace it, so that nothing waits.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since any fixed instant.
    fn now(&self) -> Duration;

    /// Waits.
    fn sleep(&self, time: Duration) -> Waiting;

    /// At least 0 and below 1.
    fn random(&self) -> f64;
}

/// The clock of the machine.
#[derive(Debug)]
pub(crate) struct SystemClock(Instant);

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, time: Duration) -> Waiting {
        Box::pin(tokio::time::sleep(time))
    }

    fn random(&self) -> f64 {
        // Each state has its own random keys: good enough to spread retries.
        let bits = RandomState::new().build_hasher().finish();
        f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
    }
}
