//! How many streams may be open: of one key, and of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use accounts::KeyId;

use super::StreamSettings;

#[derive(Debug, Default)]
pub(super) struct StreamSlots(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only of keys that have one.
    by_key: HashMap<Box<str>, usize>,
}

/// A stream's place, for as long as it lasts.
#[derive(Debug)]
pub(super) struct StreamSlot {
    of: Arc<StreamSlots>,
    key: Box<str>,
}

/// Whose limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Key,
    All,
}

impl StreamSlots {
    pub(super) fn take(
        self: &Arc<Self>,
        key: &KeyId,
        key_max: usize,
        settings: &StreamSettings,
    ) -> Result<StreamSlot, Refused> {
        let mut taken = self.lock();
        let own = taken.by_key.get(key.as_str()).copied().unwrap_or_default();
        if own >= key_max {
            return Err(Refused::Key);
        }
        if taken.all >= settings.connections_max {
            return Err(Refused::All);
        }
        taken.all += 1;
        taken.by_key.insert(key.as_str().into(), own + 1);
        Ok(StreamSlot { of: Arc::clone(self), key: key.as_str().into() })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Counts: nothing in there panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut taken = self.of.lock();
        taken.all = taken.all.saturating_sub(1);
        let left = taken.by_key.get(&self.key).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            taken.by_key.remove(&self.key);
        } else {
            taken.by_key.insert(self.key.clone(), left);
        }
    }
}
