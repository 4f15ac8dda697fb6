//! The record of a run, and the invariants it is checked against.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use store::Window;

use super::{
    clock::Clocks,
    database::{Load, Place},
    load::Keys,
};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Node failures (`crashes`) and orderly stops.
    pub(super) crashes: u64,
    pub(super) orderly: u64,
    pub(super) cuts: u64,
    pub(super) pauses: u64,
    pub(super) steps: u64,
}

/// The revocation of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revocation {
    pub(super) number: u64,
    key: u32,
    called_us: i64,
    /// Clocks of the revoking machine.
    clocks: Clocks,
    /// Time, by its monotonic clock, at which the change was stored and announced.
    begun_us: i64,
    pub(super) returned_us: Option<i64>,
}

impl Revocation {
    pub(super) fn new(key: u32, number: u64, called_us: i64, clocks: Clocks) -> Self {
        Self { number, key, called_us, clocks, begun_us: 0, returned_us: None }
    }

    /// Begins the wait; returns the number of the change.
    pub(super) fn begin(&mut self, at_us: i64) -> u64 {
        self.begun_us = self.clocks.steady(at_us);
        self.number
    }

    pub(super) fn waited_us(&self, at_us: i64) -> i64 {
        self.clocks.steady(at_us) - self.begun_us
    }
}

#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) requests: u64,
    /// Accepted and counted to every limit.
    pub(super) granted: u64,
    /// Over a limit.
    pub(super) refused: u64,
    /// No lease in time.
    pub(super) unavailable: u64,
    /// The node had no key lease.
    pub(super) untrusted: u64,
    /// The node knew that the key had ended.
    pub(super) revoked: u64,
    /// With a key whose revocation had returned. Must be 0.
    pub(super) let_in_after_revocation: u64,
    pub(super) waited_us_max: i64,
    pub(super) faults: Faults,
    pub(super) load: Load,
    pub(super) windows: u64,
    /// Windows that exceeded their limit, or the sum of their leases. Must be 0.
    pub(super) overdrawn: u64,
    /// Losses larger than the leases a node can hold. Must be 0.
    pub(super) losses_too_large: u64,
    pub(super) losses: u64,
    /// The largest loss when a node ended, in hundredths of the window's largest lease.
    pub(super) loss_percent_max: u32,
    taken: HashMap<Place, u32>,
    answers: u32,
    lost: HashMap<((usize, u32), Place), u32>,
    revocations: Vec<Revocation>,
    by_key: HashMap<u32, usize>,
}

impl Record {
    pub(super) fn take(&mut self, place: Place) {
        *self.taken.entry(place).or_default() += 1;
    }

    /// Records the leases of a lost answer. Each is a loss of its own, and at most one lease.
    pub(super) fn lose_answer(&mut self, place: Place, count: u32) {
        self.answers += 1;
        self.lose((usize::MAX, self.answers), place, count);
    }

    /// Records the leases that a node held, or was about to get, when it ended.
    pub(super) fn lose(&mut self, life: (usize, u32), place: Place, count: u32) {
        *self.lost.entry((life, place)).or_default() += count;
    }

    pub(super) fn revoke(&mut self, revocation: Revocation) -> usize {
        self.by_key.insert(revocation.key, self.revocations.len());
        self.revocations.push(revocation);
        self.revocations.len() - 1
    }

    pub(super) fn is_revoked(&self, key: u32) -> bool {
        self.by_key.contains_key(&key)
    }

    pub(super) fn revocation(&mut self, number: usize) -> Result<&mut Revocation> {
        self.revocations.get_mut(number).context("there is no such revocation")
    }

    /// Records that a key passed the key check.
    pub(super) fn note_let_in(&mut self, key: u32, at_us: i64) {
        let revocation = self.by_key.get(&key).and_then(|number| self.revocations.get(*number));
        let returned_us = revocation.and_then(|revocation| revocation.returned_us);
        if returned_us.is_some_and(|returned_us| returned_us <= at_us) {
            self.let_in_after_revocation += 1;
        }
    }

    /// Durations of the completed revocations, sorted.
    pub(super) fn revocations_us(&self) -> Vec<i64> {
        let took = |r: &Revocation| r.returned_us.map(|returned_us| returned_us - r.called_us);
        let mut took: Vec<i64> = self.revocations.iter().filter_map(took).collect();
        took.sort_unstable();
        took
    }

    /// Compares the accepted requests with the leases and the limits.
    pub(super) fn check_windows(&mut self, granted: &HashMap<Place, u32>, keys: Keys) {
        for (place, given) in granted {
            let (key, window, _) = *place;
            let taken = self.taken.get(place).copied().unwrap_or_default();
            self.windows += 1;
            if taken > *given || *given > limit(keys, key, window) {
                self.overdrawn += 1;
            }
        }
        for (place, taken) in &self.taken {
            let (key, window, _) = *place;
            let is_counted =
                window != Window::Month || keys.limits(key).requests_per_month.is_some();
            if is_counted && granted.get(place).is_none_or(|given| taken > given) {
                self.overdrawn += 1;
            }
        }
        self.losses = u64::try_from(self.lost.len()).unwrap_or(u64::MAX);
        for ((_, (key, window, _)), lost) in &self.lost {
            let slice = lease_max(limit(keys, *key, *window), *window);
            // The next lease is requested when half is left: x/2 + 1 stays below 2.
            if *lost > slice * 2 {
                self.losses_too_large += 1;
            }
            self.loss_percent_max = self.loss_percent_max.max(lost * 100 / slice);
        }
    }
}

fn limit(keys: Keys, key: u32, window: Window) -> u32 {
    let limits = keys.limits(key);
    match window {
        Window::Minute => limits.burst_per_minute,
        Window::Day => limits.requests_per_day,
        Window::Month => limits.requests_per_month.unwrap_or_default(),
    }
}

/// The first lease of a window, which is the largest: repeated here on purpose, so that a change of the real one is
/// noticed.
fn lease_max(limit: u32, window: Window) -> u32 {
    let divisor = match window {
        Window::Minute => 4,
        Window::Day | Window::Month => 16,
    };
    (limit / divisor).clamp(1, 10_000)
}
