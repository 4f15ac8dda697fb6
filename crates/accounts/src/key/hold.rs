//! Who goes by a key for longer than a request: streams. A change that ends keys waits until they have noticed (S14).

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::KeyEntry;

/// How long a change waits. Who does not read is given up after a second; the rest is for a node that is very busy.
/// Less than a key lease: a node waits before it renews its own.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// Keys that have ended, or were replaced, while somebody held them.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    ending: Mutex<Vec<Arc<KeyEntry>>>,
    released: Arc<Notify>,
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

    /// Notes entries that do not count any more.
    pub(crate) fn note<'a>(&self, entries: impl IntoIterator<Item = &'a Arc<KeyEntry>>) {
        let held = entries.into_iter().filter(|entry| entry.held.load(Ordering::SeqCst) > 0);
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.extend(held.map(Arc::clone));
    }

    /// Waits until nobody holds what was noted.
    pub(crate) async fn wait(&self) {
        let ending = {
            let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *ending)
        };
        if ending.is_empty() {
            return;
        }
        let waiting = async {
            loop {
                let mut released = pin!(self.released.notified());
                released.as_mut().enable();
                if ending.iter().all(|entry| entry.held.load(Ordering::SeqCst) == 0) {
                    return;
                }
                released.await;
            }
        };
        if timeout(WAIT_MAX, waiting).await.is_err() {
            tracing::warn!(
                event = "keys.held",
                "streams of a key that has ended are not closed yet; they are sent nothing more"
            );
        }
    }
}

impl Drop for KeyHold {
    fn drop(&mut self) {
        if self.entry.held.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.released.notify_waiters();
        }
    }
}
