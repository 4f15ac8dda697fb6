//! The time limits of a connection: one timer for all its waits.
//!
//! A wait begins with every request and nearly always ends long before its limit. So the timer is not set again for
//! each: it fires at the earliest limit it was ever given, and is then moved to the true one.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Maximum time from the first byte of a head to its last (D32).
pub(crate) const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum time between two requests (D32).
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(75);
/// Maximum time for which a client that was asked to close is read.
pub(crate) const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
/// Maximum time for the first request of a new client when the service closes.
pub(crate) const FIRST_TIME_AT_CLOSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Timeout {
    until: Instant,
    /// Never later than `until`.
    timer: Pin<Box<Sleep>>,
}

impl Timeout {
    pub(crate) fn new(wait: Duration) -> Self {
        let until = Instant::now() + wait;
        Self { until, timer: Box::pin(sleep_until(until)) }
    }

    /// Starts another wait, which replaces the previous one.
    pub(crate) fn allow(&mut self, wait: Duration) {
        self.allow_from(Instant::now(), wait);
    }

    /// Starts another wait at a moment that was measured already.
    pub(crate) fn allow_from(&mut self, begun: Instant, wait: Duration) {
        self.allow_until(begun + wait);
    }

    pub(crate) fn allow_until(&mut self, until: Instant) {
        self.until = until;
        if self.until < self.timer.deadline() {
            self.timer.as_mut().reset(self.until);
        }
    }

    /// True if the limit is exceeded. Otherwise the task is woken when it may be.
    pub(crate) fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        while self.timer.as_mut().poll(context).is_ready() {
            if self.timer.deadline() >= self.until {
                return true;
            }
            self.timer.as_mut().reset(self.until);
        }
        false
    }
}
