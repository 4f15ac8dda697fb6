//! Bounded numbers of simultaneous connections or streams: in all, and for one source, so that no source takes all
//! slots.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::source_of;

#[derive(Debug, Default)]
pub struct Slots(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only sources with slots.
    by_source: HashMap<Option<IpAddr>, usize>,
}

/// A slot, for as long as it is held.
#[derive(Debug)]
pub struct Slot {
    of: Arc<Slots>,
    source: Option<IpAddr>,
}

/// Maximum numbers of slots.
#[derive(Clone, Copy, Debug)]
pub struct SlotLimits {
    pub all: usize,
    pub source: usize,
}

impl Slots {
    /// A slot for a source; `None` if there is none.
    pub fn take(self: &Arc<Self>, source: Option<IpAddr>, max: SlotLimits) -> Option<Slot> {
        let source = source.map(source_of);
        let mut taken = self.lock();
        let own = taken.by_source.get(&source).copied().unwrap_or_default();
        if taken.all >= max.all || own >= max.source {
            return None;
        }
        taken.all += 1;
        taken.by_source.insert(source, own + 1);
        Some(Slot { of: Arc::clone(self), source })
    }

    pub fn taken(&self) -> usize {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Counts: nothing in there panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.of.lock();
        taken.all = taken.all.saturating_sub(1);
        let left = taken.by_source.get(&self.source).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            taken.by_source.remove(&self.source);
        } else {
            taken.by_source.insert(self.source, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_in_all_and_from_one_source_and_none_is_forgotten() {
        let places = Arc::new(Slots::default());
        let source = |n: u8| Some(IpAddr::from([192, 0, 2, n]));
        let take = |n| places.take(source(n), SlotLimits { all: 4, source: 2 });
        let (one, two) = (take(1).unwrap(), take(1).unwrap());
        assert!(take(1).is_none());
        let others = [take(2).unwrap(), take(3).unwrap()];
        assert!(take(4).is_none(), "all are taken");
        drop(one);
        assert_eq!(places.taken(), 3);
        let again = take(1).unwrap();
        assert!(take(1).is_none());
        drop((two, again, others));
        assert_eq!(places.taken(), 0);
        assert!(places.lock().by_source.is_empty());
    }
}
