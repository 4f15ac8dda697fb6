//! The usage of one key: requests by operation and outcome, the client, and the last failures.
//!
//! A request increments one counter and compares two numbers. Even and odd hours have separate counters, so that
//! counts stored shortly after the end of an hour (or a day) still belong to it. A key that was never used has no
//! counters.

use std::{
    collections::VecDeque,
    iter,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering},
    },
};

use domain::Timestamp;
use store::{Outcome, Step};

/// Maximum number of operations that are counted separately.
pub const OPERATIONS_MAX: usize = 64;
/// Number of operations whose counters are allocated together.
const GROUP: usize = 8;
const CELLS: usize = GROUP * Outcome::ALL.len();
/// Minimum time between two reads of the `User-Agent`.
const AGENT_STEP_MS: i64 = 60_000;
/// Maximum length of a stored `User-Agent`; a longer one is cut.
const AGENT_CHARS_MAX: usize = 120;
/// Failures kept for one key.
pub const FAILURES_MAX: usize = 100;
/// Failures kept for all keys, at most some 50 MB; beyond it a key's newest failure replaces its oldest.
const FAILURES_ALL_MAX: usize = 100_000;
/// Maximum length of a stored target; longer targets and messages are cut.
const TARGET_CHARS_MAX: usize = 200;
const MESSAGE_CHARS_MAX: usize = 240;

/// A request to be counted.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Index of the operation, below [`OPERATIONS_MAX`].
    pub operation: usize,
    pub outcome: Outcome,
    /// The `User-Agent`.
    pub agent: Option<&'a [u8]>,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub at: Timestamp,
    pub request_id: Box<str>,
    /// The operation's name in metrics and usage.
    pub endpoint: &'static str,
    pub method: &'static str,
    /// Path and query, without secrets.
    pub target: Box<str>,
    pub status: u16,
    pub code: &'static str,
    pub message: Box<str>,
    /// Number of consecutive occurrences; the other fields are those of the last one.
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

/// The number of failures kept for all keys.
#[derive(Debug, Default)]
pub(crate) struct FailureCount(AtomicUsize);

/// Counts of one hour and operation that are not stored yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) hour_ms: i64,
    pub(crate) operation: usize,
    pub(crate) outcome: Outcome,
    pub(crate) requests: u32,
}

/// The counters of one key; empty until it is used.
#[derive(Debug)]
pub(crate) struct UsageCounter {
    counters: OnceLock<Box<KeyCounters>>,
    all_failures: Arc<FailureCount>,
}

#[derive(Debug)]
struct KeyCounters {
    first: Group,
    /// When the `User-Agent` was last read.
    agent_ms: AtomicI64,
    agent: Mutex<Box<str>>,
    failures: Mutex<VecDeque<Failure>>,
}

/// The counters of a group of consecutive operations; a group is allocated when one of its operations is first used.
#[derive(Debug)]
struct Group {
    hours: [[AtomicU32; CELLS]; 2],
    next: OnceLock<Box<Self>>,
}

impl Default for Group {
    fn default() -> Self {
        let hours = [const { [const { AtomicU32::new(0) }; CELLS] }; 2];
        Self { hours, next: OnceLock::new() }
    }
}

impl Default for KeyCounters {
    fn default() -> Self {
        Self {
            first: Group::default(),
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
        if let Some(cell) = counters.cell(now_ms, call.operation, call.outcome) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
        if now_ms.saturating_sub(counters.agent_ms.load(Ordering::Relaxed)) >= AGENT_STEP_MS {
            counters.agent_ms.store(now_ms, Ordering::Relaxed);
            counters.note_agent(call.agent);
        }
    }

    /// Keeps a failure; a repetition of the last one only increments its count.
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

    /// The last `User-Agent`.
    pub(crate) fn agent(&self) -> Option<String> {
        let agent = self.counters.get().map(|counters| lock(&counters.agent).to_string());
        agent.filter(|agent| !agent.is_empty())
    }

    /// Counts that are not stored yet.
    pub(crate) fn pending(&self, now: Timestamp) -> Vec<Pending> {
        self.read(now, |cell| cell.load(Ordering::Relaxed))
    }

    /// Counts that are not stored yet; they are then marked as stored.
    pub(crate) fn take(&self, now: Timestamp) -> Vec<Pending> {
        self.read(now, |cell| cell.swap(0, Ordering::Relaxed))
    }

    /// Adds back counts that could not be stored.
    pub(crate) fn give_back(&self, pending: &Pending) {
        let counters = self.counters.get_or_init(Box::default);
        if let Some(cell) = counters.cell(pending.hour_ms, pending.operation, pending.outcome) {
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
            let groups = iter::successors(Some(&counters.first), |group| {
                group.next.get().map(|next| &**next)
            });
            let cells = groups.filter_map(|group| group.hours.get(hour(hour_ms))).flatten();
            for (n, cell) in cells.enumerate() {
                // A load before the swap saves a write to the cache line.
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
    fn cell(&self, at_ms: i64, operation: usize, outcome: Outcome) -> Option<&AtomicU32> {
        if operation >= OPERATIONS_MAX {
            return None;
        }
        let mut group = &self.first;
        for _ in 0..operation / GROUP {
            group = group.next.get_or_init(Box::default);
        }
        group.hours.get(hour(at_ms))?.get(cell(operation % GROUP, outcome))
    }

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
    // No code under the lock panics half-way through a change.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hour(at_ms: i64) -> usize {
    usize::from(at_ms.div_euclid(Step::Hour.millis()) & 1 == 1)
}

const fn cell(operation: usize, outcome: Outcome) -> usize {
    operation * Outcome::ALL.len() + outcome as usize
}

#[cfg(test)]
mod tests;
