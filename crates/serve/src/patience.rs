//! How long a connection is waited for: one timer for all its waits.
//!
//! A wait begins with every request and nearly always ends long before it is over. So the timer is not set anew for
//! each: it goes off at the earliest end it was ever given, and is moved to the true one then.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
    /// Never later than `until`.
    timer: Pin<Box<Sleep>>,
}

impl Patience {
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
