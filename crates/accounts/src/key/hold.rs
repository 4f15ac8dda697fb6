//! Keys in use for longer than one request, by streams. A change that ends keys waits until their holders have
//! noticed (S14).

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::KeyEntry;

/// How long changes wait for a noted key. A stream whose client does not read is closed after a second; the rest is
/// for a very busy node.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(4);

/// Keys that have ended or were replaced while in use.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// By the address of the entry. Entries stay until they are released or time out: every change waits for all of
    /// them, including those noted by other changes.
    ending: Mutex<HashMap<usize, Ending>>,
    released: Arc<Notify>,
}

/// A key that its holders have to release.
#[derive(Clone, Debug)]
struct Ending {
    entry: Arc<KeyEntry>,
    /// When waiting for it stops.
    until: Instant,
}

/// A key in use, for as long as this is kept.
#[derive(Debug)]
pub struct KeyHold {
    entry: Arc<KeyEntry>,
    released: Arc<Notify>,
}

impl Holders {
    pub(crate) fn hold(&self, entry: &Arc<KeyEntry>) -> KeyHold {
        entry.held.fetch_add(1, Ordering::SeqCst);
        KeyHold { entry: Arc::clone(entry), released: Arc::clone(&self.released) }
    }

    /// Notes entries that are no longer valid.
    pub(crate) fn note<'a>(&self, entries: impl IntoIterator<Item = &'a Arc<KeyEntry>>) {
        let until = Instant::now() + WAIT_MAX;
        let held = entries.into_iter().filter(|entry| entry.is_held());
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in held {
            let noted = || Ending { entry: Arc::clone(entry), until };
            ending.entry(Arc::as_ptr(entry).addr()).or_insert_with(noted);
        }
    }

    /// Waits until every noted entry is released, or at most for `max`.
    pub(crate) async fn wait(&self, max: Duration) {
        let mut ending = self.ending();
        let over = Instant::now() + max;
        loop {
            let mut released = pin!(self.released.notified());
            released.as_mut().enable();
            ending.retain(|ending| ending.entry.is_held());
            let times = ending.iter().map(|ending| ending.until);
            let now = Instant::now();
            let Some(until) = times.filter(|until| *until > now).min() else { break };
            if over <= now {
                break;
            }
            // Either way, the list is checked again.
            timeout_at(until.min(over), released).await.unwrap_or_default();
        }
        if !ending.is_empty() {
            tracing::warn!(
                event = "keys.held",
                "streams of a key that has ended are not closed yet; they are sent nothing more"
            );
        }
    }

    /// Noted entries that are still held and have not timed out.
    fn ending(&self) -> Vec<Ending> {
        let now = Instant::now();
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.retain(|_, ending| ending.entry.is_held() && ending.until > now);
        ending.values().cloned().collect()
    }
}

impl KeyEntry {
    fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst) > 0
    }
}

impl Drop for KeyHold {
    fn drop(&mut self) {
        if self.entry.held.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.released.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_held_key_is_waited_for_until_it_is_released_and_never_longer_than_asked() {
        let (holders, entry) = (Holders::default(), KeyEntry::for_test());
        let hold = holders.hold(&entry);
        holders.note([&entry]);
        let begun = Instant::now();
        holders.wait(Duration::from_millis(700)).await;
        assert!(begun.elapsed() < Duration::from_secs(1), "a lease is not waited away");
        let mut waiting = pin!(holders.wait(WAIT_MAX));
        assert!(timeout_at(begun + WAIT_MAX / 2, &mut waiting).await.is_err(), "it is held");
        drop(hold);
        timeout_at(Instant::now(), waiting).await.unwrap();
        // A change does not wait again for an entry that an earlier change has waited for long enough.
        let other = KeyEntry::for_test();
        let _hold = holders.hold(&other);
        holders.note([&other]);
        let noted = Instant::now();
        for _ in 0..2 {
            holders.wait(2 * WAIT_MAX).await;
            assert_eq!(noted.elapsed().as_secs(), WAIT_MAX.as_secs());
        }
    }
}
