//! One window's lease in memory: the units that this process may still grant, and the last state that the store
//! reported.
//!
//! Pure arithmetic, no lock and no store. Invariants: [`WindowLease::take`] takes only units that
//! [`WindowLease::refill`] added, and a window that was left is never entered again, however the clock steps.

use domain::Timestamp;
use store::{Lease, LeaseRequest, Unspent, Window};

use crate::{Owner, Refusal, WindowStanding, key::window};

/// The largest lease: the most that a crash can lose of a window.
const LEASE_MAX: u32 = 10_000;
/// How long before the end of a window a busy key leases from the next one, so that it does not wait when the minute
/// begins.
const LEAD_MS: i64 = 10_000;
/// How long an exhausted window counts as exhausted before the store is asked again: another node may have returned a
/// lease.
const RECHECK_MS: i64 = 5_000;

#[derive(Debug)]
pub(crate) struct WindowLease {
    owner: Owner,
    window: Window,
    limit: u32,
    start_ms: i64,
    end_ms: i64,
    /// Total units of the window leased by all processes, as far as is known.
    granted: u32,
    /// Leased by this process and not granted yet.
    left: u32,
    /// Units left after the last refill; at half of them the next lease is requested.
    filled: u32,
    /// Minimum number of units to lease; 0: none.
    wanted: u32,
    checked_ms: i64,
    next: Next,
}

/// The first lease of the window after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Unasked,
    Wanted,
    Asked,
    Held(Lease),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// No lease is left, but the store may have more.
    NeedsLease,
    /// The window's limit is granted.
    Exhausted,
}

impl WindowLease {
    pub(crate) fn new(
        (owner, window): (Owner, Window),
        limit: u32,
        granted: u32,
        now: Timestamp,
    ) -> Self {
        let (start_ms, end_ms) = window::bounds(window, now);
        Self {
            owner,
            window,
            limit,
            start_ms,
            end_ms,
            granted,
            left: 0,
            filled: 0,
            wanted: 0,
            checked_ms: now.as_millis(),
            next: Next::Unasked,
        }
    }

    /// Changes the limit. Leased units beyond a lower limit are lost to the window.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        if let Next::Held(lease) = &mut self.next {
            lease.given = lease.given.min(limit);
        }
        self.keep_within();
    }

    /// Drops leased units beyond a lowered limit. They do not count as used.
    fn keep_within(&mut self) {
        let beyond = self.left.min(self.granted.saturating_sub(self.limit));
        self.left -= beyond;
        self.granted -= beyond;
    }

    /// Enters the window around `now` if it is later than the current one.
    pub(crate) fn roll(&mut self, now: Timestamp) {
        if now.as_millis() >= self.end_ms {
            let (next, next_ms) = (self.next, self.end_ms);
            *self = Self::new((self.owner, self.window), self.limit, 0, now);
            // A process that was paused past the end of the next window has lost its lease.
            if let Next::Held(lease) = next
                && self.start_ms == next_ms
            {
                (self.left, self.filled, self.granted) = (lease.given, lease.given, lease.granted);
                self.keep_within();
            }
        }
    }

    /// Whether this number of units can be granted. Requests a lease if that may help.
    fn readiness(&mut self, units: u32, now: Timestamp) -> Readiness {
        let Some(short) = units.checked_sub(self.left).filter(|short| *short > 0) else {
            return Readiness::Ready;
        };
        if self.limit.saturating_sub(self.granted) >= short {
            self.wanted = self.wanted.max(short);
            return Readiness::NeedsLease;
        }
        // A request for more than the limit is refused without asking the store.
        if units <= self.limit && now.as_millis().saturating_sub(self.checked_ms) >= RECHECK_MS {
            self.wanted = self.wanted.max(short);
        }
        Readiness::Exhausted
    }

    /// Whether this number of units can be granted. `Err(None)`: too few units are leased, but the store may have
    /// more.
    pub(crate) fn check(&mut self, units: u32, now: Timestamp) -> Result<(), Option<Refusal>> {
        match self.readiness(units, now) {
            Readiness::Ready => Ok(()),
            Readiness::NeedsLease => Err(None),
            Readiness::Exhausted => Err(Some(self.refusal(now))),
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Grants this number of units; only after [`Readiness::Ready`].
    pub(crate) fn take(&mut self, units: u32, now: Timestamp) {
        self.left = self.left.saturating_sub(units);
        if self.next == Next::Unasked && self.end_ms - now.as_millis() <= LEAD_MS {
            self.next = Next::Wanted;
        }
        if self.left <= self.filled / 2 && self.granted < self.limit {
            self.wanted = self.wanted.max(1);
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted > 0 || self.next == Next::Wanted
    }

    /// The leases to request for this window and the next.
    pub(crate) fn asks(&mut self, meter_id: &str) -> impl Iterator<Item = LeaseRequest> {
        let least = std::mem::take(&mut self.wanted);
        let now = (least > 0).then_some((self.start_ms, least));
        let next = (self.next == Next::Wanted).then_some((self.end_ms, 1));
        if next.is_some() {
            self.next = Next::Asked;
        }
        let asks = [now, next].map(|ask| ask.map(|window| self.ask(meter_id, window)));
        asks.into_iter().flatten()
    }

    fn ask(&self, meter_id: &str, (start_ms, least): (i64, u32)) -> LeaseRequest {
        LeaseRequest {
            meter_id: meter_id.into(),
            window: self.window,
            start_ms,
            limit: self.limit,
            // A minute's limit is worth few round trips; a crash should lose little of a day's.
            divisor: match self.window {
                Window::Minute => 4,
                Window::Day | Window::Month => 16,
            },
            lease_max: LEASE_MAX,
            least,
        }
    }

    /// Adds a lease. A lease of a window that is over is dropped.
    pub(crate) fn refill(&mut self, ask: &LeaseRequest, lease: Lease, now: Timestamp) {
        if ask.window == self.window && ask.start_ms == self.start_ms {
            self.left = self.left.saturating_add(lease.given);
            self.filled = self.left;
            self.granted = lease.granted;
            self.keep_within();
            self.wanted = 0;
            self.checked_ms = now.as_millis();
        } else if ask.window == self.window && ask.start_ms == self.end_ms {
            self.next = Next::Held(lease);
        }
    }

    /// Removes everything, to be returned to the store.
    pub(crate) fn drain(&mut self, meter_id: &str) -> impl Iterator<Item = Unspent> {
        let left = std::mem::take(&mut self.left);
        self.granted = self.granted.saturating_sub(left);
        let next = match std::mem::replace(&mut self.next, Next::Unasked) {
            Next::Held(lease) => lease.given,
            Next::Unasked | Next::Wanted | Next::Asked => 0,
        };
        let unspent = [(self.start_ms, left), (self.end_ms, next)].map(|(start_ms, left)| {
            let meter_id = meter_id.into();
            (left > 0).then_some(Unspent { meter_id, window: self.window, start_ms, left })
        });
        unspent.into_iter().flatten()
    }

    pub(crate) fn standing(&self) -> WindowStanding {
        let used = self.granted.saturating_sub(self.left);
        WindowStanding {
            owner: self.owner,
            window: self.window,
            limit: self.limit,
            used,
            remaining: self.limit.saturating_sub(used),
            resets_at: Timestamp::from_millis(self.end_ms),
        }
    }

    fn refusal(&self, now: Timestamp) -> Refusal {
        let wait_ms = self.end_ms.saturating_sub(now.as_millis()).max(1);
        Refusal {
            owner: self.owner,
            window: self.window,
            limit: self.limit,
            remaining: self.standing().remaining,
            retry_after_s: u32::try_from((wait_ms + 999) / 1000).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests;
