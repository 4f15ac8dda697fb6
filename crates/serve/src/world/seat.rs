//! Whose turn it is to write a log that several nodes share, as far as this node has been told.
//!
//! Told by whoever keeps the lead (a row in the database); believed only as far as the log agrees: it refuses whoever
//! has not read on, whatever is said here.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// What passes between the keeper of the lead and the thread that follows or writes.
#[derive(Debug, Default)]
pub struct Seat {
    /// The term of the lead this node has, 0 while it has none.
    term: AtomicI64,
    fit: AtomicBool,
}

impl Seat {
    /// This node should write.
    pub fn grant(&self, term: i64) {
        self.term.store(term.max(1), Ordering::Release);
    }

    /// This node should not write (any more).
    pub fn withdraw(&self) {
        self.term.store(0, Ordering::Release);
    }

    /// The term of the lead this node has.
    pub fn term(&self) -> Option<i64> {
        Some(self.term.load(Ordering::Acquire)).filter(|term| *term != 0)
    }

    /// Whether this node could write: it reaches the log and has read all of it. One that could not must not hold the
    /// lead, for nobody would write then.
    pub fn is_fit(&self) -> bool {
        self.fit.load(Ordering::Acquire)
    }

    pub(super) fn set_fit(&self, fit: bool) {
        self.fit.store(fit, Ordering::Release);
    }
}
