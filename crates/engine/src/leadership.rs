//! The leadership of a log that several nodes share, as far as this node knows.
//!
//! Set by the task that keeps the lead (a row in the database). It is effective only as far as the log agrees: the log
//! refuses a writer that has not read all of it, whatever is set here.

use domain::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use change_log::LogError;

/// Maximum time that the thread may spend on one thing and still count as healthy: longer than a batch or a snapshot
/// takes.
const BUSY_TIME_MAX: Duration = Duration::from_secs(4);
/// Maximum time of the log's servers for one answer to the leader. A standby should write within five seconds of any
/// failure of this node, and needs up to one of them to learn of it and half a second to read on; the servers of a
/// busy machine answer within one. A node that steps down without need loses only a moment: the log never accepts two
/// writers.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// State shared by the keeper of the lead and the thread that follows or writes.
#[derive(Debug)]
pub struct Leadership {
    /// The term of this node's leadership; 0 while it is not the leader.
    term: AtomicI64,
    healthy: AtomicBool,
    /// The keeper of the lead has found that no node has ever written the log.
    may_create_log: AtomicBool,
    /// This node has read something of the log.
    log_seen: AtomicBool,
    began: Instant,
    /// Time at which the thread last started something else, in milliseconds since `began`.
    progress_ms: AtomicU64,
    /// Time by which the servers should have answered, in milliseconds since `began`; 0 while no question is open.
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

    /// The term of this node's leadership.
    pub fn term(&self) -> Option<i64> {
        Some(self.term.load(Ordering::Acquire)).filter(|term| *term != 0)
    }

    /// True if this node could write: it reaches the log and has read all of it. A node that could not must not hold
    /// the lead, or no node would write.
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

    /// Sets whether this node may create the log if the servers have none. It may do so only once: if there was a log
    /// and it is missing now, it is lost, and an empty one in its place would look like all there ever was.
    pub fn set_may_create_log(&self, may_create_log: bool) {
        self.may_create_log.store(may_create_log, Ordering::Release);
    }

    pub(crate) fn can_create_log(&self) -> bool {
        self.may_create_log.load(Ordering::Acquire) && !self.has_seen_log()
    }

    /// True if this node has read something of the log, so that the log exists.
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

    /// Notes that the thread is not stuck in its previous step.
    pub(crate) fn note_progress(&self) {
        self.progress_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Asks the log's servers something that should not take longer than `within`. If they do not answer, asking again
    /// gives them no more time.
    pub(crate) fn asking<T>(
        &self,
        within: Duration,
        ask: impl FnOnce() -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let due_ms = self.now_ms().saturating_add(millis(within));
        // Only the asking thread changes it.
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

    /// The servers have answered, and more is awaited from them: a checkpoint is many answers.
    pub(crate) fn note_answer(&self) {
        let due_ms = &self.answer_due_ms;
        // Only the asking thread changes it, and it is notified of answers while it asks.
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

/// A node's term as the leader.
#[derive(Debug)]
pub(crate) struct Term {
    pub(crate) leadership: Arc<Leadership>,
    /// Time of the servers' last answer or failure to answer.
    pub(crate) looked: Instant,
    pub(crate) misses: u32,
    /// The latest instant of all snapshots that were shown.
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
