//! Whose turn it is to write a log that several nodes share, as far as this node has been told.
//!
//! Told by whoever keeps the lead (a row in the database); believed only as far as the log agrees: it refuses whoever
//! has not read on, whatever is said here.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long the thread may be busy with one thing and still count as fit: longer than a checkpoint takes, and
/// shorter than it tries to reach servers that do not answer.
const BUSY_TIME_MAX: Duration = Duration::from_secs(4);

/// What passes between the keeper of the lead and the thread that follows or writes.
#[derive(Debug)]
pub struct Seat {
    /// The term of the lead this node has, 0 while it has none.
    term: AtomicI64,
    fit: AtomicBool,
    /// Nobody has ever written the log, says the keeper of the lead.
    founds: AtomicBool,
    /// This node has read something of the log.
    knows: AtomicBool,
    began: Instant,
    /// When the thread last went on to something else, in milliseconds since `began`.
    pulse_ms: AtomicU64,
}

impl Default for Seat {
    fn default() -> Self {
        Self {
            term: AtomicI64::new(0),
            fit: AtomicBool::new(false),
            founds: AtomicBool::new(false),
            knows: AtomicBool::new(false),
            began: Instant::now(),
            pulse_ms: AtomicU64::new(0),
        }
    }
}

impl Seat {
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
    pub fn is_fit(&self) -> bool {
        let pulse = Duration::from_millis(self.pulse_ms.load(Ordering::Relaxed));
        let busy = self.began.elapsed().saturating_sub(pulse);
        self.fit.load(Ordering::Acquire) && busy <= BUSY_TIME_MAX
    }

    /// Whether this node may make the log where the servers have none. That is for once: where there was a log, one
    /// that is missing is lost, and an empty one in its place would be taken for all there ever was.
    pub fn set_founds(&self, founds: bool) {
        self.founds.store(founds, Ordering::Release);
    }

    pub(super) fn may_found(&self) -> bool {
        self.founds.load(Ordering::Acquire) && !self.knows_log()
    }

    /// Whether this node has read something of the log, so that it is there for good.
    pub fn knows_log(&self) -> bool {
        self.knows.load(Ordering::Acquire)
    }

    pub(super) fn note_log(&self) {
        self.knows.store(true, Ordering::Release);
    }

    pub(super) fn set_fit(&self, fit: bool) {
        self.beat();
        self.fit.store(fit, Ordering::Release);
    }

    /// Notes that the thread is not stuck in what it did before.
    pub(super) fn beat(&self) {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.pulse_ms.store(now_ms, Ordering::Relaxed);
    }
}
