//! What one key is used for: how often, which way it went, by which client, and its last failures.
//!
//! A request adds one to a counter and looks at two numbers; everything else happens when somebody wants to know.
//! Counters are in two hours, one for even hours and one for odd ones, so that what is written down a little after
//! the turn of an hour (or of a day) still goes to where it belongs. A key that was never used has none of this.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering},
    },
};

use domain::Timestamp;
use store::{Outcome, Step};

/// How many endpoints can be told apart.
pub const OPERATIONS_MAX: usize = 8;
const CELLS: usize = OPERATIONS_MAX * Outcome::ALL.len();
/// How often the client's name is looked at.
const AGENT_STEP_MS: i64 = 60_000;
/// What is kept of a client's name.
const AGENT_CHARS_MAX: usize = 120;
/// Failures kept for one key.
pub const FAILURES_MAX: usize = 100;
/// Failures kept for all keys, some 50 MB at the most; beyond it a key's newest takes its oldest's place.
const FAILURES_ALL_MAX: usize = 100_000;
/// What is kept of what was asked, and of what was wrong with it.
const TARGET_CHARS_MAX: usize = 200;
const MESSAGE_CHARS_MAX: usize = 240;

/// A request as it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Which endpoint, below [`OPERATIONS_MAX`].
    pub operation: usize,
    pub outcome: Outcome,
    /// What the client calls itself.
    pub agent: Option<&'a [u8]>,
}

/// A request that was not answered as its sender hoped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub at: Timestamp,
    pub request_id: Box<str>,
    pub method: &'static str,
    /// Path and query, without secrets.
    pub target: Box<str>,
    pub status: u16,
    pub code: &'static str,
    pub message: Box<str>,
    /// How often it happened in a row; the rest is of the last time.
    pub times: u32,
}

impl Failure {
    fn is_again(&self, last: &Self) -> bool {
        (self.status, self.code, self.method, &self.target)
            == (last.status, last.code, last.method, &last.target)
    }

    fn bounded(mut self) -> Self {
        self.target = cut(&self.target, TARGET_CHARS_MAX);
        self.message = cut(&self.message, MESSAGE_CHARS_MAX);
        self
    }
}

fn cut(text: &str, chars_max: usize) -> Box<str> {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

/// How many failures are kept, of all keys together.
#[derive(Debug, Default)]
pub(crate) struct FailureCount(AtomicUsize);

/// What was counted and is not written down yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) hour_ms: i64,
    pub(crate) operation: usize,
    pub(crate) outcome: Outcome,
    pub(crate) requests: u32,
}

/// One key's books; empty until it is used.
#[derive(Debug)]
pub(crate) struct UsageCounter {
    counters: OnceLock<Box<KeyCounters>>,
    all_failures: Arc<FailureCount>,
}

#[derive(Debug)]
struct KeyCounters {
    hours: [[AtomicU32; CELLS]; 2],
    /// When the client's name was last looked at.
    agent_ms: AtomicI64,
    agent: Mutex<Box<str>>,
    failures: Mutex<VecDeque<Failure>>,
}

impl Default for KeyCounters {
    fn default() -> Self {
        Self {
            hours: [const { [const { AtomicU32::new(0) }; CELLS] }; 2],
            agent_ms: AtomicI64::new(i64::MIN),
            agent: Mutex::default(),
            failures: Mutex::default(),
        }
    }
}

impl UsageCounter {
    pub(crate) fn new(all_failures: Arc<FailureCount>) -> Self {
        Self { counters: OnceLock::new(), all_failures }
    }

    pub(crate) fn count(&self, call: Call<'_>, now: Timestamp) {
        let counters = self.counters.get_or_init(Box::default);
        let now_ms = now.as_millis();
        let hour = hour(now_ms);
        if let Some(cell) =
            counters.hours.get(hour).and_then(|hour| hour.get(cell(call.operation, call.outcome)))
        {
            cell.fetch_add(1, Ordering::Relaxed);
        }
        if now_ms.saturating_sub(counters.agent_ms.load(Ordering::Relaxed)) >= AGENT_STEP_MS {
            counters.agent_ms.store(now_ms, Ordering::Relaxed);
            counters.note_agent(call.agent);
        }
    }

    /// Takes a failure down; the same again counts to the one before.
    pub(crate) fn fail(&self, failure: Failure) {
        let failure = failure.bounded();
        let counters = self.counters.get_or_init(Box::default);
        let mut failures = lock(&counters.failures);
        if let Some(last) = failures.back_mut()
            && failure.is_again(last)
        {
            *last = Failure { times: last.times.saturating_add(1), ..failure };
            return;
        }
        let all = &self.all_failures.0;
        let full = failures.len() >= FAILURES_MAX
            || (all.load(Ordering::Relaxed) >= FAILURES_ALL_MAX && !failures.is_empty());
        if full {
            failures.pop_front();
        } else {
            all.fetch_add(1, Ordering::Relaxed);
        }
        failures.push_back(failure);
    }

    /// The last failures, oldest first.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.counters
            .get()
            .map_or_else(Vec::new, |counters| lock(&counters.failures).iter().cloned().collect())
    }

    /// What the client last called itself.
    pub(crate) fn agent(&self) -> Option<String> {
        let agent = self.counters.get().map(|counters| lock(&counters.agent).to_string());
        agent.filter(|agent| !agent.is_empty())
    }

    /// What is not written down yet, left as it is.
    pub(crate) fn pending(&self, now: Timestamp) -> Vec<Pending> {
        self.read(now, |cell| cell.load(Ordering::Relaxed))
    }

    /// What is not written down yet; from here on it counts as written.
    pub(crate) fn take(&self, now: Timestamp) -> Vec<Pending> {
        self.read(now, |cell| cell.swap(0, Ordering::Relaxed))
    }

    /// Puts back what could not be written.
    pub(crate) fn give_back(&self, pending: &Pending) {
        let counters = self.counters.get_or_init(Box::default);
        let hour = counters.hours.get(hour(pending.hour_ms));
        if let Some(cell) = hour.and_then(|hour| hour.get(cell(pending.operation, pending.outcome)))
        {
            cell.fetch_add(pending.requests, Ordering::Relaxed);
        }
    }

    fn read(&self, now: Timestamp, how: impl Fn(&AtomicU32) -> u32) -> Vec<Pending> {
        let Some(counters) = self.counters.get() else {
            return Vec::new();
        };
        let this_hour = Step::Hour.start_ms(now.as_millis());
        let mut pending = Vec::new();
        for hour_ms in [this_hour - Step::Hour.millis(), this_hour] {
            let cells = counters.hours.get(hour(hour_ms)).into_iter().flatten();
            for (n, cell) in cells.enumerate() {
                // A look before the swap spares the cache line of what nobody asked for.
                if cell.load(Ordering::Relaxed) == 0 {
                    continue;
                }
                let outcome = Outcome::ALL.get(n % Outcome::ALL.len());
                let (Some(outcome), requests) = (outcome, how(cell)) else { continue };
                let operation = n / Outcome::ALL.len();
                pending.push(Pending { hour_ms, operation, outcome: *outcome, requests });
            }
        }
        pending
    }
}

impl Drop for UsageCounter {
    fn drop(&mut self) {
        if let Some(counters) = self.counters.get() {
            self.all_failures.0.fetch_sub(lock(&counters.failures).len(), Ordering::Relaxed);
        }
    }
}

impl KeyCounters {
    fn note_agent(&self, agent: Option<&[u8]>) {
        let text = String::from_utf8_lossy(agent.unwrap_or_default());
        let text: String = text.chars().filter(|c| !c.is_control()).take(AGENT_CHARS_MAX).collect();
        let mut held = lock(&self.agent);
        if **held != *text {
            *held = text.into();
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here panics half-way through a change.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hour(at_ms: i64) -> usize {
    usize::from(at_ms.div_euclid(Step::Hour.millis()) & 1 == 1)
}

const fn cell(operation: usize, outcome: Outcome) -> usize {
    operation * Outcome::ALL.len() + outcome as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: i64 = 3600;

    fn call(operation: usize, outcome: Outcome) -> Call<'static> {
        Call { operation, outcome, agent: Some(b"curl/8") }
    }

    fn failure(target: &str) -> Failure {
        Failure {
            at: Timestamp::from_secs(1),
            request_id: "req_1".into(),
            method: "GET",
            target: target.into(),
            status: 400,
            code: "invalid_parameter",
            message: "m".into(),
            times: 1,
        }
    }

    #[test]
    fn every_cell_is_its_own() {
        for (n, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(cell(0, outcome), n);
        }
        let mut cells: Vec<usize> = (0..OPERATIONS_MAX)
            .flat_map(|operation| Outcome::ALL.map(|outcome| cell(operation, outcome)))
            .collect();
        cells.dedup();
        assert_eq!((cells.len(), cells.last()), (CELLS, Some(&(CELLS - 1))));
    }

    #[test]
    fn what_is_counted_before_the_turn_of_an_hour_stays_in_it() {
        let counter = UsageCounter::new(Arc::default());
        let (before, after) = (Timestamp::from_secs(HOUR_S - 1), Timestamp::from_secs(HOUR_S + 5));
        counter.count(call(1, Outcome::Ok), before);
        counter.count(call(1, Outcome::Ok), after);
        counter.count(call(1, Outcome::Ok), after);
        let one =
            |hour_ms, requests| Pending { hour_ms, operation: 1, outcome: Outcome::Ok, requests };
        assert_eq!(counter.pending(after), [one(0, 1), one(HOUR_S * 1000, 2)]);
        let taken = counter.take(after);
        assert_eq!(counter.pending(after), []);
        taken.iter().for_each(|pending| counter.give_back(pending));
        assert_eq!(counter.pending(after), [one(0, 1), one(HOUR_S * 1000, 2)]);
    }

    #[test]
    fn a_hostile_client_name_is_bounded_and_looked_at_once_a_minute() {
        let counter = UsageCounter::new(Arc::default());
        assert_eq!(counter.agent(), None);
        let hostile = format!("<script>\u{0}\n{}", "x".repeat(5000));
        let named = |agent| Call { agent, ..call(0, Outcome::Ok) };
        counter.count(named(Some(hostile.as_bytes())), Timestamp::from_secs(0));
        let held = counter.agent().unwrap();
        assert_eq!(held.chars().count(), AGENT_CHARS_MAX);
        assert!(held.starts_with("<script>x"), "{held}");
        counter.count(named(Some(b"curl")), Timestamp::from_secs(59));
        assert_eq!(counter.agent(), Some(held));
        counter.count(named(Some(b"curl")), Timestamp::from_secs(60));
        assert_eq!(counter.agent().as_deref(), Some("curl"));
        counter.count(named(Some(b"\xff\xfe")), Timestamp::from_secs(120));
        assert_eq!(counter.agent().as_deref(), Some("\u{fffd}\u{fffd}"));
    }

    #[test]
    fn failures_are_bounded_and_the_same_again_is_one() {
        let all = Arc::<FailureCount>::default();
        let counter = UsageCounter::new(Arc::clone(&all));
        for n in 0..150 {
            counter.fail(failure(&format!("/v1/{n}")));
        }
        counter.fail(failure("/v1/149"));
        counter.fail(failure(&format!("/{}", "long/".repeat(1000))));
        let kept = counter.failures();
        assert_eq!((kept.len(), all.0.load(Ordering::Relaxed)), (FAILURES_MAX, FAILURES_MAX));
        assert_eq!(&*kept[0].target, "/v1/51");
        assert_eq!((&*kept[98].target, kept[98].times), ("/v1/149", 2));
        assert_eq!(kept[99].target.chars().count(), TARGET_CHARS_MAX + 1);
        drop(counter);
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn when_all_failures_are_many_each_key_keeps_its_newest() {
        let all = Arc::<FailureCount>::default();
        all.0.store(FAILURES_ALL_MAX, Ordering::Relaxed);
        let counter = UsageCounter::new(Arc::clone(&all));
        counter.fail(failure("/v1/1"));
        counter.fail(failure("/v1/2"));
        let kept: Vec<Box<str>> = counter.failures().into_iter().map(|kept| kept.target).collect();
        assert_eq!(kept, ["/v1/2".into()]);
    }
}
