//! Memory budget of pushes in progress: a limit over all feeds and a limit per feed.
//!
//! A push holds its decompressed body until its receipt is sent; a body that is still arriving holds the bytes
//! received so far. The last quarter is reserved for feeds that hold little, so that a few large feeds cannot block
//! the others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::MetricsText;

/// Minimum charge for a push: its task, its connection's buffers, its place in the queue.
const PUSH_BYTES_MIN: usize = 16 << 10;
/// Maximum memory of a feed that may use the reserved quarter.
const LITTLE_BYTES: usize = 1 << 20;

/// Memory limits of pushes.
#[derive(Clone, Copy, Debug)]
pub struct PushLimits {
    /// Over all feeds.
    pub bytes_max: usize,
    /// Of one feed.
    pub feed_bytes_max: usize,
}

/// Memory held by pushes.
#[derive(Debug)]
pub struct Budget {
    limits: PushLimits,
    state: Mutex<State>,
    refused_feed: AtomicU64,
    refused_all: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    pushes: usize,
    feeds: HashMap<String, usize>,
}

/// Why a push cannot hold more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The feed's limit is reached.
    Feed,
    /// The limit over all feeds is reached.
    All,
}

/// Memory held by one push; dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    feed: String,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limits: PushLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
            refused_feed: AtomicU64::new(0),
            refused_all: AtomicU64::new(0),
        })
    }

    /// Starts a push.
    pub(crate) fn enter(self: &Arc<Self>, feed: &str) -> Result<Held, NoRoom> {
        self.take(feed, PUSH_BYTES_MIN)?;
        self.lock().pushes += 1;
        Ok(Held { budget: Arc::clone(self), feed: feed.to_owned(), bytes: PUSH_BYTES_MIN })
    }

    fn take(&self, feed: &str, more: usize) -> Result<(), NoRoom> {
        let mut state = self.lock();
        let of_feed = state.feeds.get(feed).copied().unwrap_or(0).saturating_add(more);
        let of_all = state.bytes.saturating_add(more);
        let PushLimits { bytes_max, feed_bytes_max } = self.limits;
        let open_to_all = bytes_max / 4 * 3;
        let all_max = if of_feed <= LITTLE_BYTES { bytes_max } else { open_to_all };
        let (no_room, counter) = if of_feed > feed_bytes_max {
            (NoRoom::Feed, &self.refused_feed)
        } else if of_all > all_max {
            (NoRoom::All, &self.refused_all)
        } else {
            state.bytes = of_all;
            match state.feeds.get_mut(feed) {
                Some(held) => *held = of_feed,
                None => drop(state.feeds.insert(feed.to_owned(), of_feed)),
            }
            return Ok(());
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Err(no_room)
    }

    fn give_back(&self, feed: &str, bytes: usize) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        if let Some(held) = state.feeds.get_mut(feed) {
            *held = held.saturating_sub(bytes);
            if *held == 0 {
                state.feeds.remove(feed);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn render(&self, page: &mut MetricsText) {
        let (bytes, pushes) = {
            let state = self.lock();
            (state.bytes, state.pushes)
        };
        let name = "linesman_push_bytes";
        page.family(name, "gauge", "Memory held by pushes in progress.");
        page.line(format_args!("{name} {bytes}"));
        let name = "linesman_pushes_under_way";
        page.family(name, "gauge", "Pushes in progress: arriving, waiting or being answered.");
        page.line(format_args!("{name} {pushes}"));
        let name = "linesman_pushes_refused_total";
        let help =
            "Pushes refused with 503 because a memory limit was reached: per feed, or in total.";
        page.family(name, "counter", help);
        for (reason, counter) in
            [("feed_memory", &self.refused_feed), ("total_memory", &self.refused_all)]
        {
            let count = counter.load(Ordering::Relaxed);
            page.line(format_args!("{name}{{reason=\"{reason}\"}} {count}"));
        }
    }
}

impl Held {
    /// Reserves memory up to this many bytes of content.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let wanted = bytes.saturating_add(PUSH_BYTES_MIN);
        if let Some(more) = wanted.checked_sub(self.bytes).filter(|more| *more > 0) {
            self.budget.take(&self.feed, more)?;
            self.bytes = wanted;
        }
        Ok(())
    }

    /// Releases memory beyond this many bytes of content.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let kept = bytes.saturating_add(PUSH_BYTES_MIN).min(self.bytes);
        self.budget.give_back(&self.feed, self.bytes - kept);
        self.bytes = kept;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(&self.feed, self.bytes);
        let mut state = self.budget.lock();
        state.pushes = state.pushes.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn budget() -> Arc<Budget> {
        Budget::new(PushLimits { bytes_max: 64 * MIB, feed_bytes_max: 32 * MIB })
    }

    #[test]
    fn a_feed_has_its_share_and_gets_it_back() {
        let budget = budget();
        let mut one = budget.enter("a").unwrap();
        one.hold(20 * MIB).unwrap();
        let mut other = budget.enter("a").unwrap();
        assert_eq!(other.hold(20 * MIB), Err(NoRoom::Feed));
        other.hold(5 * MIB).unwrap();
        one.shrink(MIB);
        other.hold(20 * MIB).unwrap();
        drop((one, other));
        assert!(budget.lock().feeds.is_empty() && budget.lock().bytes == 0);
        assert_eq!(budget.lock().pushes, 0);
    }

    #[test]
    fn feeds_that_take_all_they_can_leave_room_for_those_that_need_little() {
        let budget = budget();
        let (mut one, mut two) = (budget.enter("a").unwrap(), budget.enter("b").unwrap());
        one.hold(31 * MIB).unwrap();
        two.hold(16 * MIB).unwrap();
        assert_eq!(two.hold(20 * MIB), Err(NoRoom::All));
        let mut large = budget.enter("c").unwrap();
        assert_eq!(large.hold(4 * MIB), Err(NoRoom::All));
        let small: Vec<Held> =
            (0..16).map(|at| budget.enter(&format!("small-{at}"))).map(Result::unwrap).collect();
        assert_eq!(small.len(), 16);
    }

    #[test]
    fn pushes_without_content_are_bounded_too() {
        let budget = budget();
        let mut all = Vec::new();
        while let Ok(held) = budget.enter("a") {
            all.push(held);
        }
        assert_eq!(all.len(), 32 * MIB / PUSH_BYTES_MIN);
    }
}
