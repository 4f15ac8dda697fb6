//! What each machine's clocks show.

use domain::Timestamp;

pub(super) const SECOND_US: i64 = 1_000_000;

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
