//! Memory for pushes under way: a number of bytes over all feeds, and one for each.
//!
//! A push holds what it has sent, unpacked, until its receipt is on its way; a body that is still arriving holds what
//! came of it. The last quarter is kept for feeds that hold little, so that a few that take all they can do not shut
//! out the others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::MetricsText;

/// What a push counts for at the least: its task, its connection's buffers, its place in the queue.
const PUSH_BYTES_MIN: usize = 16 << 10;
/// Up to this a feed holds little.
const LITTLE_BYTES: usize = 1 << 20;

/// Bounds of the memory that pushes take.
#[derive(Clone, Copy, Debug)]
pub struct PushLimits {
    /// Over all feeds.
    pub bytes_max: usize,
    /// Of one feed.
    pub feed_bytes_max: usize,
}

/// What pushes hold.
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

/// There is no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The feed has all that one feed may have.
    Feed,
    /// All feeds together have too much.
    All,
}

/// The part of one push; dropping it gives it back.
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

    /// Begins a push.
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
        page.family(name, "gauge", "Memory that pushes under way hold.");
        page.line(format_args!("{name} {bytes}"));
        let name = "linesman_pushes_under_way";
        page.family(name, "gauge", "Pushes that arrive, wait or are answered now.");
        page.line(format_args!("{name} {pushes}"));
        let name = "linesman_pushes_refused_total";
        let help =
            "Pushes refused with 503 for want of memory: their feed's, or that of all feeds.";
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
    /// Takes what is lacking to this many bytes of content.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let wanted = bytes.saturating_add(PUSH_BYTES_MIN);
        if let Some(more) = wanted.checked_sub(self.bytes).filter(|more| *more > 0) {
            self.budget.take(&self.feed, more)?;
            self.bytes = wanted;
        }
        Ok(())
    }

    /// Gives back what goes beyond this many bytes of content.
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
