//! Whose turn it is to write a log that several nodes share, as far as this node knows.
//!
//! Set by whoever keeps the lead (a row in the database); believed only as far as the log agrees: it refuses whoever
//! has not read on, whatever is said here.

use domain::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use change_log::LogError;

/// How long the thread may be busy with one thing and still count as fit: longer than a batch or a snapshot takes.
const BUSY_TIME_MAX: Duration = Duration::from_secs(4);
/// How long the log's servers may take for one answer to a node that writes. A standby should write within five
/// seconds of whatever befell this one, and needs up to one of them to hear of it and half a one to read on; a busy
/// machine's servers answer within one. Who gives way wrongly loses no more than a moment: the log takes nothing from
/// two.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// What passes between the keeper of the lead and the thread that follows or writes.
#[derive(Debug)]
pub struct Leadership {
    /// The term of the lead this node has, 0 while it has none.
    term: AtomicI64,
    healthy: AtomicBool,
    /// Nobody has ever written the log, says the keeper of the lead.
    may_create_log: AtomicBool,
    /// This node has read something of the log.
    log_seen: AtomicBool,
    began: Instant,
    /// When the thread last went on to something else, in milliseconds since `began`.
    progress_ms: AtomicU64,
    /// Until when the servers should have answered, the same way; 0 while nothing was asked.
    answer_due_ms: AtomicU64,
}

impl Default for Leadership {
    fn default() -> Self {
        Self {
            term: AtomicI64::new(0),
            healthy: AtomicBool::new(false),
            may_create_log: AtomicBool::new(false),
            log_seen: AtomicBool::new(false),
            began: Instant::now(),
            progress_ms: AtomicU64::new(0),
            answer_due_ms: AtomicU64::new(0),
        }
    }
}

impl Leadership {
    /// This node should write.
    pub fn grant(&self, term: i64) {
        self.term.store(term.max(1), Ordering::Release);
    }

    /// This node should not write (any more).
    pub fn withdraw(&self) {
        self.term.store(0, Ordering::Release);
    }

    /// The term of the lead this node has.
    pub fn term(&self) -> Option<i64> {
        Some(self.term.load(Ordering::Acquire)).filter(|term| *term != 0)
    }

    /// Whether this node could write: it reaches the log and has read all of it. One that could not must not hold the
    /// lead, for nobody would write then.
    pub fn is_healthy(&self) -> bool {
        let now_ms = self.now_ms();
        let answered = match self.answer_due_ms.load(Ordering::Acquire) {
            0 => {
                now_ms.saturating_sub(self.progress_ms.load(Ordering::Relaxed))
                    <= millis(BUSY_TIME_MAX)
            }
            due_ms => now_ms <= due_ms,
        };
        self.healthy.load(Ordering::Acquire) && answered
    }

    /// Whether this node may make the log where the servers have none. That is for once: where there was a log, one
    /// that is missing is lost, and an empty one in its place would be taken for all there ever was.
    pub fn set_may_create_log(&self, may_create_log: bool) {
        self.may_create_log.store(may_create_log, Ordering::Release);
    }

    pub(crate) fn can_create_log(&self) -> bool {
        self.may_create_log.load(Ordering::Acquire) && !self.has_seen_log()
    }

    /// Whether this node has read something of the log, so that it is there for good.
    pub fn has_seen_log(&self) -> bool {
        self.log_seen.load(Ordering::Acquire)
    }

    pub(crate) fn note_log(&self) {
        self.log_seen.store(true, Ordering::Release);
    }

    pub(crate) fn set_healthy(&self, healthy: bool) {
        self.note_progress();
        self.answer_due_ms.store(0, Ordering::Release);
        self.healthy.store(healthy, Ordering::Release);
    }

    /// Notes that the thread is not stuck in what it did before.
    pub(crate) fn note_progress(&self) {
        self.progress_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Asks the log's servers something that should not take longer than `within`. Where they do not answer, asking
    /// again gives them no more time.
    pub(crate) fn asking<T>(
        &self,
        within: Duration,
        ask: impl FnOnce() -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let due_ms = self.now_ms().saturating_add(millis(within));
        // Only the thread that asks changes it.
        if self.answer_due_ms.load(Ordering::Acquire) == 0 {
            self.answer_due_ms.store(due_ms, Ordering::Release);
        }
        let answer = ask();
        self.note_progress();
        if !matches!(answer, Err(LogError::Unavailable(_))) {
            self.answer_due_ms.store(0, Ordering::Release);
        }
        answer
    }

    /// The servers have answered, and something is still awaited of them: a checkpoint is many answers.
    pub(crate) fn note_answer(&self) {
        let due_ms = &self.answer_due_ms;
        // Only the thread that asks changes it, and it is notified of answers while it asks.
        if due_ms.load(Ordering::Acquire) != 0 {
            due_ms.store(self.now_ms().saturating_add(millis(ANSWER_TIME_MAX)), Ordering::Release);
        }
    }

    fn now_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A node's turn to write.
#[derive(Debug)]
pub(crate) struct Term {
    pub(crate) leadership: Arc<Leadership>,
    /// When the servers last answered, or did not.
    pub(crate) looked: Instant,
    pub(crate) misses: u32,
    /// The latest instant of which a snapshot was shown.
    pub(crate) furthest_cut: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until servers that were given no time are late.
    fn wait_until_late(leadership: &Leadership) {
        while leadership.answer_due_ms.load(Ordering::Acquire) >= leadership.now_ms() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_waits_for_servers_is_unfit_until_they_answer() {
        let leadership = Leadership::default();
        assert!(!leadership.is_healthy(), "nothing was read yet");
        leadership.set_healthy(true);
        assert!(leadership.is_healthy());
        let hour = Duration::from_secs(3600);
        assert!(leadership.asking(hour, || Ok(leadership.is_healthy())).unwrap());
        let silent = || {
            wait_until_late(&leadership);
            assert!(!leadership.is_healthy());
            Err::<(), _>(LogError::Unavailable("no answer".into()))
        };
        assert!(leadership.asking(Duration::from_millis(1), silent).is_err());
        assert!(!leadership.is_healthy(), "they have still not answered");
        assert!(leadership.asking(hour, silent).is_err(), "and have no more time than they had");
        assert!(leadership.asking(hour, || Err::<(), _>(LogError::Overtaken)).is_err());
        assert!(leadership.is_healthy(), "that was an answer");
    }

    #[test]
    fn every_answer_gives_the_servers_time_for_the_next() {
        let leadership = Leadership::default();
        leadership.set_healthy(true);
        leadership.note_answer();
        assert_eq!(leadership.answer_due_ms.load(Ordering::Acquire), 0, "nothing was asked");
        let long = || {
            wait_until_late(&leadership);
            assert!(!leadership.is_healthy(), "the first is late");
            leadership.note_answer();
            assert!(leadership.is_healthy(), "the next is not");
            Ok(())
        };
        leadership.asking(Duration::from_millis(1), long).unwrap();
    }
}
