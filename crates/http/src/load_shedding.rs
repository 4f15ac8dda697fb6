//! Detects overload, and decides which requests are refused then.
//!
//! The main listener's loop runs a tick, which waits for its turn like every request: its lateness is the time that
//! requests wait. A ready answer costs microseconds, one that has to be made ten to a hundred times as much. So under
//! overload, ready answers, status and health continue as usual, and an answer that is neither ready nor was requested
//! before in the epoch is refused with a clear 503 at once. Otherwise a few clients with unusual requests would delay
//! all others, then all would time out and retry, and soon only answers would be made that no client waits for any
//! more.
//!
//! A late tick alone is no overload: the machine may have been suspended, or its cores used by others. There must also
//! be a queue, that is, many clients with requests since the previous tick, and it must persist: several late ticks in
//! a row, as `CoDel` uses the minimum time that packets waited over an interval and not the maximum.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Interval of the tick.
pub(crate) const TICK_EVERY: Duration = Duration::from_millis(50);
/// Number of successive late ticks that make an overload.
const LATE_PULSES: u32 = 3;
/// Minimum number of clients for an overload: fewer do not wait for each other.
const ASKERS_MIN: u64 = 16;
/// Time under overload for the queue to become shorter; refusals ask clients to retry after it.
const RELIEF: Duration = Duration::from_secs(1);
/// Time after an overload in which one late tick shows that it continues.
const REMEMBERED: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct LoadShedding {
    origin: Instant,
    /// The number of the interval between two ticks.
    interval: AtomicU64,
    /// Clients with requests in it.
    clients: AtomicU64,
    detector: Mutex<OverloadDetector>,
    /// Microseconds after `origin`.
    sheds_until_us: AtomicU64,
    lag_us: AtomicU64,
    shed: AtomicU64,
}

impl LoadShedding {
    pub fn new(shed_after: Duration) -> Self {
        Self {
            origin: Instant::now(),
            interval: AtomicU64::new(1),
            clients: AtomicU64::new(0),
            detector: Mutex::new(OverloadDetector { shed_after, late: 0, shed_until: None }),
            sheds_until_us: AtomicU64::new(0),
            lag_us: AtomicU64::new(0),
            shed: AtomicU64::new(0),
        }
    }

    /// Notes a client with a request; `last` is the interval in which it was last counted. A client with many requests
    /// counts once.
    pub fn note_client(&self, last: &mut u64) {
        let interval = self.interval();
        if *last != interval {
            *last = interval;
            self.add_clients(1);
        }
    }

    /// The number of the present interval.
    pub fn interval(&self) -> u64 {
        self.interval.load(Ordering::Relaxed)
    }

    /// Adds clients to the present interval.
    pub fn add_clients(&self, count: u64) {
        self.clients.fetch_add(count, Ordering::Relaxed);
    }

    /// Notes a tick that was due at `due`.
    pub fn note_tick(&self, due: Instant, now: Instant) {
        let waited = now.duration_since(due);
        self.lag_us.store(micros(waited), Ordering::Relaxed);
        self.interval.fetch_add(1, Ordering::Relaxed);
        let clients = self.clients.swap(0, Ordering::Relaxed);
        // Two numbers: nothing in there panics half-way.
        let mut detector = self.detector.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) =
            detector.look(now.duration_since(self.origin), Tick { waited, clients })
        {
            self.sheds_until_us.store(micros(until), Ordering::Relaxed);
        }
    }

    /// True if an answer that is not ready should be refused; a refusal is counted.
    pub fn sheds(&self, now: Instant) -> bool {
        let at = micros(now.duration_since(self.origin));
        let sheds = at < self.sheds_until_us.load(Ordering::Relaxed);
        if sheds {
            self.shed.fetch_add(1, Ordering::Relaxed);
        }
        sheds
    }

    /// Lateness of the last tick, in microseconds.
    pub fn lag_us(&self) -> u64 {
        self.lag_us.load(Ordering::Relaxed)
    }

    /// Number of requests refused so far.
    pub fn shed(&self) -> &AtomicU64 {
        &self.shed
    }
}

/// The observations of a tick.
#[derive(Clone, Copy, Debug)]
struct Tick {
    waited: Duration,
    /// Clients with requests since the previous tick.
    clients: u64,
}

/// Distinguishes an overload from a machine that was suspended.
#[derive(Debug)]
struct OverloadDetector {
    shed_after: Duration,
    /// Number of successive late ticks.
    late: u32,
    /// End of the last overload, since the origin.
    shed_until: Option<Duration>,
}

impl OverloadDetector {
    /// The end of shedding, if the tick shows an overload. Times are since the origin.
    fn look(&mut self, now: Duration, tick: Tick) -> Option<Duration> {
        if tick.waited <= self.shed_after || tick.clients < ASKERS_MIN {
            self.late = 0;
            return None;
        }
        self.late += 1;
        let goes_on = self.shed_until.is_some_and(|until| now < until + REMEMBERED);
        if self.late < LATE_PULSES && !goes_on {
            return None;
        }
        self.shed_until = Some(now + RELIEF);
        self.shed_until
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON_TIME: Tick = Tick { waited: Duration::from_millis(250), clients: 10_000 };
    const STALLED: Tick = Tick { waited: Duration::from_secs(5), clients: ASKERS_MIN - 1 };
    const LATE: Tick = Tick { waited: Duration::from_millis(251), clients: ASKERS_MIN };

    /// Which of these ticks, one each second, are followed by shedding.
    fn shedding(ticks: &[Tick]) -> Vec<bool> {
        let shed_after = Duration::from_millis(250);
        let mut detector = OverloadDetector { shed_after, late: 0, shed_until: None };
        let at = |second: usize| Duration::from_secs(u64::try_from(second).unwrap());
        ticks.iter().enumerate().map(|(n, tick)| detector.look(at(n), *tick).is_some()).collect()
    }

    #[test]
    fn a_line_that_stays_is_an_overload() {
        assert_eq!(shedding(&[LATE, LATE, LATE, LATE]), [false, false, true, true]);
    }

    #[test]
    fn a_machine_that_stood_still_is_none() {
        // Stopped and continued, with a queue that was answered at once.
        let longest = Tick { waited: Duration::from_secs(60), clients: 10_000 };
        let once = [ON_TIME, longest, ON_TIME, LATE, LATE, ON_TIME, LATE, LATE];
        assert!(!shedding(&once).contains(&true));
    }

    #[test]
    fn few_clients_are_none_however_late_everything_is() {
        assert!(!shedding(&[STALLED; 100]).contains(&true));
        assert!(!shedding(&[LATE, LATE, STALLED, LATE, LATE]).contains(&true));
    }

    #[test]
    fn an_overload_that_comes_back_is_known_at_once_and_forgotten_in_time() {
        let mut ticks = vec![LATE, LATE, LATE, ON_TIME, ON_TIME, LATE];
        assert_eq!(shedding(&ticks).last(), Some(&true));
        ticks.extend([ON_TIME; 11]);
        ticks.push(LATE);
        assert_eq!(shedding(&ticks).last(), Some(&false));
    }

    #[test]
    fn who_asks_again_and_again_is_counted_once_between_two_pulses() {
        let pressure = LoadShedding::new(Duration::from_millis(250));
        let (mut one, mut other) = (0, 0);
        for _ in 0..1_000 {
            pressure.note_client(&mut one);
        }
        pressure.note_client(&mut other);
        assert_eq!(pressure.clients.load(Ordering::Relaxed), 2);
        pressure.note_tick(pressure.origin, pressure.origin);
        pressure.note_client(&mut one);
        assert_eq!(pressure.clients.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_overload_sheds_for_a_second() {
        let pressure = LoadShedding::new(Duration::from_millis(250));
        let mut now = pressure.origin;
        for _ in 0..LATE_PULSES {
            assert!(!pressure.sheds(now));
            for _ in 0..ASKERS_MIN {
                pressure.note_client(&mut 0);
            }
            now += LATE.waited;
            pressure.note_tick(now - LATE.waited, now);
        }
        assert!(pressure.sheds(now));
        assert!(pressure.sheds(now + Duration::from_millis(900)), "the line needs time");
        assert!(!pressure.sheds(now + Duration::from_millis(1_001)));
        assert_eq!(pressure.shed().load(Ordering::Relaxed), 2);
    }
}
