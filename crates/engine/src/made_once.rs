//! Values that many followers of a world need at the same moment, made once for all of them and kept within a memory
//! bound: the events of streams, the screens of boards.
//!
//! A follower holds only its position. It requests the step from there to the present publication. So a slow one gets
//! the sum of what it missed, and no other waits for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

type Cell<V> = Arc<OnceCell<Arc<V>>>;

/// Values by key; those unused for longest are removed first.
#[derive(Debug)]
pub struct MadeOnce<K, V> {
    kept: Mutex<Kept<K, V>>,
    bytes_max: usize,
    /// Maximum number of values that are kept or awaited, whatever their size.
    entries_max: usize,
}

#[derive(Debug)]
struct Entry<V> {
    cell: Cell<V>,
    /// 0 while it is made.
    bytes: usize,
    used: u64,
}

#[derive(Debug)]
struct Kept<K, V> {
    entries: HashMap<K, Entry<V>>,
    bytes: usize,
    /// Counts uses, to find the value unused for longest.
    now: u64,
}

impl<K: Clone + Eq + Hash, V> MadeOnce<K, V> {
    pub fn new(bytes_max: usize, entries_max: usize) -> Self {
        let kept = Kept { entries: HashMap::new(), bytes: 0, now: 0 };
        Self { kept: Mutex::new(kept), bytes_max, entries_max }
    }

    /// The value of a key: the kept one, or a new one with its size in bytes. Concurrent calls wait while it is made;
    /// if it cannot be made, the next call tries again.
    ///
    /// # Errors
    /// It was to be made here, and that failed.
    pub async fn get<E>(
        &self,
        key: &K,
        make: impl AsyncFnOnce() -> Result<(V, usize), E>,
    ) -> Result<Arc<V>, E> {
        let cell = self.lock().cell(key, self.entries_max);
        let made = cell.get_or_try_init(async || {
            let (value, bytes) = make().await?;
            self.lock().note(key, bytes, self.bytes_max);
            Ok(Arc::new(value))
        });
        made.await.map(Arc::clone)
    }

    /// The value of a key, if it is kept.
    pub fn find(&self, key: &K) -> Option<Arc<V>> {
        let mut kept = self.lock();
        kept.now += 1;
        let used = kept.now;
        let entry = kept.entries.get_mut(key)?;
        entry.used = used;
        entry.cell.get().map(Arc::clone)
    }

    /// Drops all values. Holders of a value keep it.
    pub fn clear(&self) {
        self.lock().make_room(0);
    }

    fn lock(&self) -> MutexGuard<'_, Kept<K, V>> {
        // Nothing in there panics half-way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, V> Kept<K, V> {
    fn cell(&mut self, key: &K, entries_max: usize) -> Cell<V> {
        self.now += 1;
        let used = self.now;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.used = used;
            return Arc::clone(&entry.cell);
        }
        if self.entries.len() >= entries_max {
            self.drop_oldest();
        }
        let cell = Cell::default();
        self.entries.insert(key.clone(), Entry { cell: Arc::clone(&cell), bytes: 0, used });
        cell
    }

    /// Notes the size of an entry, and removes those unused for longest until all is within the bound.
    fn note(&mut self, key: &K, bytes: usize, max: usize) {
        if let Some(entry) = self.entries.get_mut(key) {
            self.bytes = self.bytes - entry.bytes + bytes;
            entry.bytes = bytes;
        }
        self.make_room(max);
    }

    fn make_room(&mut self, max: usize) {
        while self.bytes > max && self.drop_oldest() {}
    }

    /// Removes several entries at once, so that the search for them is rare.
    fn drop_oldest(&mut self) -> bool {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let some = uses.len() / 8;
        if uses.is_empty() {
            return false;
        }
        let (_, last, _) = uses.select_nth_unstable(some);
        let last = *last;
        self.entries.retain(|_, entry| entry.used > last);
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
        true
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    async fn get(kept: &MadeOnce<u32, u32>, key: u32, bytes: usize) -> u32 {
        let made = kept.get(&key, async || Ok::<_, Infallible>((key * 10, bytes))).await;
        *made.unwrap()
    }

    #[tokio::test]
    async fn a_value_is_made_once_and_what_could_not_be_made_is_tried_again() {
        let kept: MadeOnce<u32, u32> = MadeOnce::new(100, 8);
        assert_eq!(kept.get(&1, async || Err::<(u32, usize), _>("no")).await, Err("no"));
        assert_eq!(kept.find(&1), None);
        assert_eq!(get(&kept, 1, 1).await, 10);
        assert_eq!(*kept.get(&1, async || Err("made twice")).await.unwrap(), 10);
        assert_eq!(kept.find(&1).as_deref(), Some(&10));
    }

    #[tokio::test]
    async fn the_longest_unused_go_first_by_bytes_and_by_number() {
        let kept: MadeOnce<u32, u32> = MadeOnce::new(100, 8);
        for key in 1..=3 {
            get(&kept, key, 30).await;
        }
        assert!(kept.find(&1).is_some());
        get(&kept, 4, 30).await;
        assert_eq!([1, 2, 3, 4].map(|key| kept.find(&key).is_some()), [true, false, true, true]);
        let kept: MadeOnce<u32, u32> = MadeOnce::new(100, 8);
        for key in 0..20 {
            get(&kept, key, 1).await;
            assert!(kept.lock().entries.len() <= 8);
        }
        assert!(kept.find(&19).is_some() && kept.find(&0).is_none());
        kept.clear();
        assert!(kept.find(&19).is_none());
    }
}
