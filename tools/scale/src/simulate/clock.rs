//! What each machine's clocks show, and random numbers that follow from the seed.

use domain::Timestamp;

pub(super) const SECOND_US: i64 = 1_000_000;

/// `SplitMix64`: small, and the same everywhere.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to, not including, `n`.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        let below = self.next() % u64::from(n.max(1));
        u32::try_from(below).unwrap_or_default()
    }

    /// From `low` to `high`, both included.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.saturating_sub(low).unsigned_abs().saturating_add(1);
        low.saturating_add_unsigned(self.next() % span)
    }
}

/// A machine's two clocks as seen from true time, in microseconds since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    /// How far the wall clock is off.
    pub(super) wall_off_us: i64,
    /// How fast both run beyond true time, in parts per million.
    pub(super) ppm: i64,
}

impl Clocks {
    /// What the wall clock says.
    pub(super) fn wall(self, began: Timestamp, at_us: i64) -> Timestamp {
        let us = self.steady(at_us) + self.wall_off_us;
        Timestamp::from_millis(began.as_millis() + us.div_euclid(1000))
    }

    /// What the clock says that is never set.
    pub(super) fn steady(self, at_us: i64) -> i64 {
        at_us + at_us * self.ppm / 1_000_000
    }
}
