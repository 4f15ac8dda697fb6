//! Counts the bytes of events that are shared or not read yet, and drops slow ones if there are too many (S10).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// Time without a chunk taken after which the clients of some events count as slow.
const STALLED_AFTER: Duration = Duration::from_secs(1);
/// Maximum time for sending events while other streams wait for memory: those give up after ten seconds.
const SENDING_MAX: Duration = Duration::from_secs(5);

/// Some complete events.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) events: u32,
}

/// Counter of all bytes in memory.
#[derive(Debug, Default)]
pub(super) struct Unread {
    bytes: AtomicUsize,
    /// Events that are sent in several chunks.
    parts: Mutex<Vec<Weak<Parts>>>,
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    of: Arc<Unread>,
    bytes: usize,
}

/// The events up to a cut, as they are sent.
#[derive(Debug)]
pub(super) enum Chunks {
    None,
    /// One chunk, which a client is sent at once.
    One(Chunk, Counted),
    Many(Arc<Parts>),
}

/// Chunks that are sent at the pace of clients, until memory is needed and they are dropped.
#[derive(Debug)]
pub(super) struct Parts {
    count: usize,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once they are dropped.
    chunks: Option<(Vec<Chunk>, Counted)>,
    /// Time at which any client last took a chunk.
    taken_at: Instant,
}

impl Unread {
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Drops chunks that no client takes, then those that take too long to be sent, until there are fewer bytes than
    /// `max`.
    pub(super) fn give_up_slow(&self, max: usize, now: Instant) {
        let parts: Vec<Arc<Parts>> = lock(&self.parts).iter().filter_map(Weak::upgrade).collect();
        let slow = parts.iter().filter_map(|parts| Some((parts.slow_since(now)?, parts)));
        let mut slow: Vec<_> = slow.collect();
        slow.sort_unstable_by_key(|(since, _)| *since);
        for (_, parts) in slow {
            if self.bytes() < max {
                return;
            }
            parts.state().chunks = None;
        }
    }

    fn count(self: &Arc<Self>, bytes: usize) -> Counted {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Counted { of: Arc::clone(self), bytes }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Chunks {
    pub(super) fn new(mut chunks: Vec<Chunk>, unread: &Arc<Unread>) -> Self {
        let counted = unread.count(chunks.iter().map(|chunk| chunk.bytes.len()).sum());
        let count = chunks.len();
        if count <= 1 {
            return chunks.pop().map_or(Self::None, |chunk| Self::One(chunk, counted));
        }
        let now = Instant::now();
        let state = Mutex::new(State { chunks: Some((chunks, counted)), taken_at: now });
        let parts = Arc::new(Parts { count, begun: now, state });
        let mut all = lock(&unread.parts);
        if all.len() == all.capacity() {
            all.retain(|parts| parts.strong_count() > 0);
        }
        all.push(Arc::downgrade(&parts));
        Self::Many(parts)
    }

    /// Their length in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_, counted) => counted.bytes,
            Self::Many(parts) => {
                parts.state().chunks.as_ref().map_or(0, |(_, counted)| counted.bytes)
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(..) => 1,
            Self::Many(parts) => parts.count,
        }
    }

    /// The chunk at an index; `None` if they were dropped.
    pub(super) fn take(&self, at: usize, now: Instant) -> Option<Chunk> {
        match self {
            Self::None => None,
            Self::One(chunk, _) => (at == 0).then(|| chunk.clone()),
            Self::Many(parts) => parts.take(at, now),
        }
    }

    /// The only chunk, if they are written at once.
    pub(super) fn only(&self) -> Option<&Chunk> {
        match self {
            Self::One(chunk, _) => Some(chunk),
            Self::None | Self::Many(_) => None,
        }
    }
}

impl Parts {
    fn take(&self, at: usize, now: Instant) -> Option<Chunk> {
        let mut state = self.state();
        state.taken_at = now;
        state.chunks.as_ref().and_then(|(chunks, _)| chunks.get(at).cloned())
    }

    /// True if they are still being sent, and the time since when they are slow; `None` if they are not slow.
    fn slow_since(&self, now: Instant) -> Option<(bool, Instant)> {
        let taken_at = self.state().taken_at;
        if now.duration_since(taken_at) >= STALLED_AFTER {
            return Some((false, taken_at));
        }
        (now.duration_since(self.begun) >= SENDING_MAX).then_some((true, self.begun))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under the lock panics half-way through a change.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 100;

    /// Two chunks of half the memory.
    fn half(unread: &Arc<Unread>) -> Chunks {
        let chunk = || Chunk { bytes: vec![0; MAX / 4].into(), events: 1 };
        Chunks::new(vec![chunk(), chunk()], unread)
    }

    #[test]
    fn what_nobody_takes_goes_first_and_what_is_new_stays() {
        let unread = Arc::default();
        let (stalled, taken) = (half(&unread), half(&unread));
        unread.give_up_slow(MAX, Instant::now());
        assert_eq!((unread.bytes(), stalled.bytes(), taken.bytes()), (MAX, MAX / 2, MAX / 2));
        let later = Instant::now() + SENDING_MAX;
        assert!(taken.take(0, later).is_some());
        unread.give_up_slow(MAX, later);
        assert_eq!((unread.bytes(), stalled.bytes(), taken.bytes()), (MAX / 2, 0, MAX / 2));
        assert!(stalled.take(1, later).is_none());
        // It is read but has taken too long, which matters if there are too many bytes.
        unread.give_up_slow(MAX, later);
        assert!(taken.take(1, later).is_some());
        unread.give_up_slow(MAX / 2, later);
        assert!(taken.take(1, later).is_none());
        drop((stalled, taken));
        assert_eq!(unread.bytes(), 0);
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let unread = Arc::default();
        for _ in 0..1000 {
            drop(half(&unread));
        }
        assert!(lock(&unread.parts).len() < 10);
    }
}
