//! Whether the service falls behind, and what it leaves undone then.
//!
//! A listener's loop takes its own pulse: when the pulse comes late, requests wait in line for longer than it is late.
//! A ready answer costs microseconds, one that has to be made ten to a hundred times as much. So while the pulse is
//! late, ready answers, status and health go on as ever, and what is neither ready nor asked for before in the epoch is
//! refused with a clear 503 at once. Otherwise a few clients with unusual wishes would make everybody wait, then everybody would time out and ask
//! again, and soon nothing but answers that nobody waits for any more would be made.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// How often the pulse is taken.
pub(crate) const PULSE_EVERY: Duration = Duration::from_millis(50);
/// After a late pulse, the line is given this long to become shorter; refusals say to come back after it.
const RELIEF: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Pressure {
    shed_after: Duration,
    origin: Instant,
    /// Microseconds after `origin`.
    sheds_until_us: AtomicU64,
    lag_us: AtomicU64,
    shed: AtomicU64,
}

impl Pressure {
    pub(crate) fn new(shed_after: Duration) -> Self {
        Self {
            shed_after,
            origin: Instant::now(),
            sheds_until_us: AtomicU64::new(0),
            lag_us: AtomicU64::new(0),
            shed: AtomicU64::new(0),
        }
    }

    /// Takes note of a pulse that was due at `due`.
    pub(crate) fn note_pulse(&self, due: Instant, now: Instant) {
        let lag = now.duration_since(due);
        self.lag_us.store(micros(lag), Ordering::Relaxed);
        if lag > self.shed_after {
            let until = now.duration_since(self.origin) + RELIEF;
            self.sheds_until_us.store(micros(until), Ordering::Relaxed);
        }
    }

    /// Whether something that costs more than a ready answer is to be refused; a refusal is counted.
    pub(crate) fn sheds(&self, now: Instant) -> bool {
        let at = micros(now.duration_since(self.origin));
        let sheds = at < self.sheds_until_us.load(Ordering::Relaxed);
        if sheds {
            self.shed.fetch_add(1, Ordering::Relaxed);
        }
        sheds
    }

    /// How late the last pulse was, in microseconds.
    pub(crate) fn lag_us(&self) -> u64 {
        self.lag_us.load(Ordering::Relaxed)
    }

    /// Requests refused so far.
    pub(crate) fn shed(&self) -> &AtomicU64 {
        &self.shed
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_pulse_sheds_for_a_second_and_a_pulse_in_time_does_not() {
        let pressure = Pressure::new(Duration::from_millis(250));
        let due = pressure.origin + Duration::from_secs(10);
        let now = due + Duration::from_millis(250);
        pressure.note_pulse(due, now);
        assert!(!pressure.sheds(now), "that is not late yet");
        let now = due + Duration::from_millis(251);
        pressure.note_pulse(due, now);
        assert!(pressure.sheds(now));
        let soon = now + Duration::from_millis(900);
        pressure.note_pulse(soon, soon);
        assert!(pressure.sheds(soon), "the line needs time to become shorter");
        assert!(!pressure.sheds(now + Duration::from_millis(1_001)));
        assert_eq!(pressure.shed().load(Ordering::Relaxed), 2);
    }
}
