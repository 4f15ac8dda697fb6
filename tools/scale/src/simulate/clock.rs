//! The clocks of each machine.

use domain::Timestamp;

pub(super) const SECOND_US: i64 = 1_000_000;

/// A machine's two clocks as seen from true time, in microseconds since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    /// Offset of the wall clock.
    pub(super) wall_off_us: i64,
    /// Speed of both clocks relative to true time, in parts per million.
    pub(super) ppm: i64,
}

impl Clocks {
    /// Reading of the wall clock.
    pub(super) fn wall(self, began: Timestamp, at_us: i64) -> Timestamp {
        let us = self.steady(at_us) + self.wall_off_us;
        Timestamp::from_millis(began.as_millis() + us.div_euclid(1000))
    }

    /// Reading of the monotonic clock.
    pub(super) fn steady(self, at_us: i64) -> i64 {
        at_us + at_us * self.ppm / 1_000_000
    }
}
