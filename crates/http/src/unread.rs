//! How much memory clients hold by not reading their answers.
//!
//! An answer that is kept ready is one for all who asked for it, so who is slow to read it costs nothing. One that was
//! made for a single client stays until that client has read it. Such bytes are counted while they wait; beyond a
//! bound, clients are waited for only briefly.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// For a client to take an answer (D32); 150 KB at 2.5 KB/s. And for one to take anything of a stream (S10), whatever
/// others hold: what is sent on streams is counted and bounded where it is made.
pub(crate) const WRITE_TIME_MAX: Duration = Duration::from_secs(60);
/// The same while clients hold more than [`UNREAD_BYTES_MAX`].
const WRITE_TIME_WHEN_FULL: Duration = Duration::from_secs(2);
/// What clients may hold: four hundred large answers that differ from each other.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// Bytes of answers on their way that nobody but their client needs.
#[derive(Debug, Default)]
pub(crate) struct Unread(AtomicUsize);

impl Unread {
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn take(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// How long a client may take to read an answer that begins to wait now.
    pub(crate) fn write_time(&self) -> Duration {
        if self.bytes() > UNREAD_BYTES_MAX { WRITE_TIME_WHEN_FULL } else { WRITE_TIME_MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_waited_for_briefly_while_others_hold_too_much() {
        let unread = Unread::default();
        unread.add(UNREAD_BYTES_MAX);
        assert_eq!(unread.write_time(), WRITE_TIME_MAX);
        unread.add(1);
        assert_eq!(unread.write_time(), WRITE_TIME_WHEN_FULL);
        unread.take(1);
        assert_eq!(unread.write_time(), WRITE_TIME_MAX);
    }
}
