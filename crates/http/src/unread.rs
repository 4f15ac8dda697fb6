//! Memory that clients hold by not reading their answers.
//!
//! A cached answer is shared by all clients, so a slow reader of it costs nothing. An answer made for a single client
//! stays in memory until that client has read it. Such bytes are counted while they wait; beyond a bound, clients get
//! only a short time to read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Maximum time for a client to accept an answer (D32): 150 KB at 2.5 KB/s.
///
/// Also the maximum time without progress on a stream (S10), regardless of the memory held: bytes of streams are
/// counted and bounded by their producer.
pub(crate) const WRITE_TIME_MAX: Duration = Duration::from_secs(60);
/// The same while clients hold more than [`UNREAD_BYTES_MAX`].
const WRITE_TIME_WHEN_FULL: Duration = Duration::from_secs(2);
/// Maximum bytes held by clients: four hundred different large answers.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// Bytes of pending answers that only their client needs.
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

    /// Maximum time for reading an answer that begins to wait now.
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
