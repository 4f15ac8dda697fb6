//! How long a connection is waited for: one timer for all its waits.
//!
//! A wait begins with every request and nearly always ends long before it is over. So the timer is not set anew for
//! each: it goes off at the earliest end it was ever given, and is moved to the true one then.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// From the first byte of a head to its last (D32).
pub(crate) const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two requests (D32).
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(75);
/// How long a client that was asked to go is listened to.
pub(crate) const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a client that has just come may take to ask when the service closes.
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

    /// Begins another wait, which replaces the one before.
    pub(crate) fn allow(&mut self, wait: Duration) {
        self.allow_from(Instant::now(), wait);
    }

    /// Begins another wait as of a moment that was looked at already.
    pub(crate) fn allow_from(&mut self, begun: Instant, wait: Duration) {
        self.allow_until(begun + wait);
    }

    pub(crate) fn allow_until(&mut self, until: Instant) {
        self.until = until;
        if self.until < self.timer.deadline() {
            self.timer.as_mut().reset(self.until);
        }
    }

    /// Whether the wait is over. If not, the task is woken when it may be.
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
