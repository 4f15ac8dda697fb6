//! When to read: by time to start, after failures, and within the request rate of a host. Pure: the time and the
//! random number are passed in.

use std::time::Duration;

use domain::Timestamp;

/// Maximum `Retry-After` that is respected.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// Wait of an adapter after upstream refused its credentials (401, 403).
pub const REFUSED_WAIT: Duration = Duration::from_secs(15 * 60);
/// Wait of a unit that does not exist upstream (404).
pub const MISSING_WAIT: Duration = Duration::from_secs(3600);
/// Failures in a row that open the circuit breaker of a host.
pub const BREAKER_FAILURES: u32 = 5;
/// The shortest interval.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// A row of a schedule: the interval for events that start within this time; `None` is for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleRow {
    pub starts_within: Option<Duration>,
    pub every: Duration,
}

/// Read intervals by time to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Vec<ScheduleRow>);

impl Default for Schedule {
    fn default() -> Self {
        let row = |starts_within: Option<u64>, every| ScheduleRow {
            starts_within: starts_within.map(Duration::from_secs),
            every: Duration::from_secs(every),
        };
        Self(vec![row(Some(0), 40), row(Some(3600), 60), row(Some(86_400), 300), row(None, 1800)])
    }
}

impl Schedule {
    pub fn new(rows: Vec<ScheduleRow>) -> Self {
        Self(rows)
    }

    /// The interval of a unit whose events have these start times: the shortest that any of them requires. Events
    /// that have started are within 0 s.
    pub fn every(&self, starts: impl Iterator<Item = Timestamp>, now: Timestamp) -> Duration {
        let other = self.0.iter().find(|row| row.starts_within.is_none());
        let rarely = other.map_or(Duration::from_secs(1800), |row| row.every);
        let of_event = |start: Timestamp| {
            let left = start.since(now);
            let fitting =
                self.0.iter().filter(|row| row.starts_within.is_none_or(|within| left <= within));
            fitting.map(|row| row.every).min().unwrap_or(rarely)
        };
        starts.map(of_event).min().unwrap_or(rarely).max(EVERY_MIN)
    }
}

/// An interval changed by up to a tenth either way; `random` is below 2^32.
pub fn jittered(every: Duration, random: u32) -> Duration {
    // 0.9 to 1.1 in parts of 2^33.
    let tenth = every / 10;
    every - tenth + scaled(tenth * 2, random)
}

/// Wait after the n-th failure in a row, at least as long as upstream asked for.
pub fn backoff(
    failures: u32,
    max: Duration,
    retry_after: Option<Duration>,
    random: u32,
) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let whole = Duration::from_secs(1).saturating_mul(1 << doublings.min(30)).min(max);
    let half = whole / 2;
    let wait = half + scaled(half, random);
    wait.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// A fraction of a duration: `random` / 2^32.
fn scaled(span: Duration, random: u32) -> Duration {
    let nanos = (span.as_nanos() * u128::from(random)) >> 32;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A circuit breaker: after some failures in a row, a host gets one probe at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    probing: bool,
}

impl Breaker {
    pub fn is_open(&self) -> bool {
        self.failures >= BREAKER_FAILURES
    }

    /// Asks for permission to send one request.
    pub fn admit(&mut self) -> bool {
        if self.is_open() && self.probing {
            return false;
        }
        self.probing = true;
        true
    }

    pub fn note(&mut self, good: bool) {
        self.probing = false;
        self.failures = if good { 0 } else { self.failures.saturating_add(1) };
    }
}

/// Evenly spaced requests: at most `per_minute`, with no bursts after idle time.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    gap: Duration,
    next: Timestamp,
}

impl Rate {
    pub fn new(per_minute: u32) -> Self {
        Self { gap: Duration::from_secs(60) / per_minute.max(1), next: Timestamp::from_millis(0) }
    }

    /// Time from which the next request may be sent.
    pub fn next(&self) -> Timestamp {
        self.next
    }

    pub fn note(&mut self, now: Timestamp) {
        self.next = now.plus(self.gap);
    }
}

/// The schedule of one unit.
#[derive(Clone, Debug)]
pub struct Unit {
    pub name: Box<str>,
    /// Time from which it may be read.
    pub due: Timestamp,
    /// Its interval at the last read.
    pub every: Duration,
    pub failures: u32,
}

impl Unit {
    pub fn new(name: impl Into<Box<str>>, due: Timestamp) -> Self {
        Self { name: name.into(), due, every: Duration::from_secs(60), failures: 0 }
    }

    /// After a good read: the next is due one interval after this one began. Missed reads are not made up.
    pub fn note_good(&mut self, now: Timestamp, every: Duration, random: u32) {
        (self.failures, self.every) = (0, every);
        self.due = now.plus(jittered(every, random));
    }

    pub fn note_failed(
        &mut self,
        now: Timestamp,
        max: Duration,
        retry_after: Option<Duration>,
        random: u32,
    ) {
        self.failures = self.failures.saturating_add(1);
        self.due = now.plus(backoff(self.failures, max, retry_after, random));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn the_event_that_needs_it_most_often_decides() {
        let schedule = Schedule::default();
        let every = |starts: &[i64]| {
            let starts = starts.iter().map(|secs| Timestamp::from_secs(NOW.as_secs() + secs));
            schedule.every(starts, NOW)
        };
        assert_eq!(every(&[]), secs(1800), "nothing is known of it");
        assert_eq!(every(&[86_401]), secs(1800));
        assert_eq!(every(&[86_401, 86_400]), secs(300));
        assert_eq!(every(&[3600, 90_000]), secs(60));
        assert_eq!(every(&[1]), secs(60), "a second before the start");
        assert_eq!(every(&[0]), secs(40));
        assert_eq!(every(&[-7200, 3600]), secs(40), "one has started");
    }

    #[test]
    fn intervals_differ_by_a_tenth_at_the_most() {
        assert_eq!(jittered(secs(40), 0), secs(36));
        assert_eq!(jittered(secs(40), 1 << 31), secs(40));
        let most = jittered(secs(40), u32::MAX);
        assert!(most <= secs(44) && most > Duration::from_millis(43_999), "{most:?}");
    }

    #[test]
    fn waits_double_up_to_their_limit_and_are_halved_at_the_most() {
        for (failures, least, most) in
            [(1, 500, 1000), (2, 1000, 2000), (4, 4000, 8000), (99, 150_000, 300_000)]
        {
            let wait = |random| backoff(failures, secs(300), None, random).as_millis();
            assert_eq!(wait(0), least, "{failures}");
            assert!(wait(u32::MAX) <= most && wait(u32::MAX) + 1 >= most, "{failures}");
        }
        let asked = |by| backoff(1, secs(300), Some(secs(by)), 0);
        assert_eq!((asked(120), asked(90_000)), (secs(120), secs(3600)), "at most an hour");
        assert_eq!(backoff(9, secs(300), Some(secs(1)), 0), secs(128), "ours is longer");
    }

    #[test]
    fn after_five_failures_one_probe_at_a_time_is_allowed() {
        let mut breaker = Breaker::default();
        for _ in 0..BREAKER_FAILURES {
            assert!(!breaker.is_open() && breaker.admit() && breaker.admit(), "closed: any number");
            breaker.note(false);
        }
        assert!(breaker.is_open() && breaker.admit() && !breaker.admit());
        breaker.note(false);
        assert!(breaker.admit() && !breaker.admit(), "the next probe");
        breaker.note(true);
        assert!(!breaker.is_open());
    }

    #[test]
    fn missed_reads_are_not_made_up_for() {
        let mut unit = Unit::new("u", NOW);
        let late = NOW.plus(secs(600));
        unit.note_good(late, secs(60), 1 << 31);
        assert_eq!(unit.due, late.plus(secs(60)));
        unit.note_failed(late, secs(300), None, 0);
        assert_eq!((unit.failures, unit.due), (1, late.plus(Duration::from_millis(500))));
        let mut rate = Rate::new(60);
        rate.note(late);
        assert_eq!(rate.next(), late.plus(secs(1)));
    }
}
