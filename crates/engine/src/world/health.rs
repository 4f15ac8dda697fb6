//! How a world stands: whether this node keeps up with the log, and why not.

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::Timestamp;

use super::{BEHIND_MAX, LATE_MIN, Shared, UNLED_MAX, WorldHandle};

impl WorldHandle {
    /// Whether the current snapshot is as young as it should be: a writer that died or hangs shows here.
    pub fn is_current(&self, now: Timestamp) -> bool {
        let published = self.published.load();
        // Three intervals and five seconds leave room for a long batch or a checkpoint.
        let late = 3 * self.refresh_interval + Duration::from_secs(5);
        let lag = now.since(published.until);
        let keeps_up = self.shared.as_ref().is_none_or(|shared| shared.keeps_up(now, lag));
        keeps_up && now.since(published.snapshot.cut_at) <= late
    }

    /// Whether this node has all that the log has, as far as it knows.
    pub fn is_up_to_date(&self, now: Timestamp) -> bool {
        let lag = |shared: &Shared| shared.lag_entries.load(Ordering::Relaxed);
        self.is_current(now) && self.shared.as_ref().is_none_or(|shared| lag(shared) == 0)
    }

    /// Whether the clock was set back behind the current snapshot, and nobody has cut another since.
    pub fn is_ahead(&self, now: Timestamp) -> bool {
        self.published.load().snapshot.cut_at.since(now) > self.refresh_interval
    }

    /// Whether no other node can show anything newer: the snapshot here is current, or the last one there is
    /// because nobody writes. Where all are equally late, to take them all away would leave nobody to serve it.
    pub fn is_abreast(&self, now: Timestamp) -> bool {
        self.is_current(now) || self.shared.as_ref().is_some_and(|shared| shared.is_last(now))
    }

    /// Whether a snapshot is due for so long that the reason matters: nobody writes, or this node does not hear of it.
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.shared.is_some() && self.lag(now) > LATE_MIN
    }

    /// Notes whether any node holds the lead, as the database says; `None`: it does not say.
    pub fn note_led(&self, led: Option<bool>, now: Timestamp) {
        if let Some(shared) = &self.shared {
            let unled_at_ms = if led == Some(false) { now.as_millis() } else { 0 };
            shared.unled_at_ms.store(unled_at_ms, Ordering::Relaxed);
        }
    }

    /// Why a node that follows a log is not current, in words.
    pub fn lateness(&self, now: Timestamp) -> Option<String> {
        let shared = self.shared.as_ref().filter(|_| !self.is_current(now))?;
        let entries = shared.lag_entries.load(Ordering::Relaxed);
        let lag_s = self.lag(now).as_secs();
        let trouble = shared.trouble.load();
        let why = trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let stuck = shared.stuck.load(Ordering::Relaxed);
        Some(if stuck && shared.outdated.load(Ordering::Relaxed) {
            "a newer program wrote the log: upgrade this node; it serves what it could read"
                .to_owned()
        } else if stuck {
            "what the log holds cannot be read: it is damaged".to_owned()
        } else if self.has_begun() && trouble.is_some() {
            format!(
                "this node is behind: it does not follow the log{why}, and its snapshot is {lag_s} s late"
            )
        } else if self.has_begun() {
            format!(
                "this node is behind: its snapshot is {lag_s} s late, and {entries} entries of the log were not read when it last looked"
            )
        } else {
            format!("the log was not read yet{why}")
        })
    }
}

impl Shared {
    /// The current snapshot is the last one, and nobody writes another.
    fn is_last(&self, now: Timestamp) -> bool {
        let said = self.unled_at_ms.load(Ordering::Relaxed);
        let unled = said != 0 && now.since(Timestamp::from_millis(said)) <= UNLED_MAX;
        unled && !self.stuck.load(Ordering::Relaxed) && self.begun.load(Ordering::Acquire)
    }

    /// `lag`: for how long another snapshot is due.
    fn keeps_up(&self, now: Timestamp, lag: Duration) -> bool {
        let since = self.behind_since_ms.load(Ordering::Relaxed);
        let lacks = since != 0 && now.since(Timestamp::from_millis(since)) > BEHIND_MAX;
        let behind = lacks || lag > BEHIND_MAX && self.trouble.load().is_some();
        !behind && !self.stuck.load(Ordering::Relaxed) && self.begun.load(Ordering::Acquire)
    }
}
