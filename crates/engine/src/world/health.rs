//! The health of a world: whether this node keeps up with the log, and the reason if not.

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::Timestamp;

use super::{BEHIND_MAX, LATE_MIN, LOOKED_MAX, Shared, UNLED_MAX, WorldHandle};

impl WorldHandle {
    /// True if the current snapshot is as young as it should be. It is false if a writer died or hangs.
    pub fn is_current(&self, now: Timestamp) -> bool {
        let published = self.published.load();
        // Three intervals and five seconds leave room for a long batch or a checkpoint.
        let late = 3 * self.refresh_interval + Duration::from_secs(5);
        let lag = now.since(published.until);
        let keeps_up = self.shared.as_ref().is_none_or(|shared| shared.keeps_up(now, lag));
        keeps_up && now.since(published.snapshot.cut_at) <= late
    }

    /// True if this node has everything that was in the log a few seconds ago. A node that cannot reach the log does
    /// not know that, however young its snapshot is.
    pub fn is_up_to_date(&self, now: Timestamp) -> bool {
        let has_all = |shared: &Shared| {
            let looked = Timestamp::from_millis(shared.looked_ms.load(Ordering::Relaxed));
            now.since(looked) <= LOOKED_MAX && shared.lag_entries.load(Ordering::Relaxed) == 0
        };
        self.is_current(now) && (self.leads() || self.shared.as_ref().is_none_or(has_all))
    }

    /// True if the clock was set back behind the current snapshot, and none was cut since.
    pub fn is_ahead(&self, now: Timestamp) -> bool {
        self.published.load().snapshot.cut_at.since(now) > self.refresh_interval
    }

    /// True if no other node can show anything newer: the snapshot here is current, or it is the last one because
    /// there is no leader. If all nodes are equally late, removing them all would leave none to serve it.
    pub fn is_abreast(&self, now: Timestamp) -> bool {
        self.is_current(now) || self.shared.as_ref().is_some_and(|shared| shared.is_last(now))
    }

    /// True if a snapshot is overdue for so long that the reason matters: there is no leader, or this node does not
    /// receive its entries.
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.shared.is_some() && self.lag(now) > LATE_MIN
    }

    /// Notes whether any node holds the lead according to the database; `None`: it does not answer.
    pub fn note_led(&self, led: Option<bool>, now: Timestamp) {
        if let Some(shared) = &self.shared {
            let unled_at_ms = if led == Some(false) { now.as_millis() } else { 0 };
            shared.unled_at_ms.store(unled_at_ms, Ordering::Relaxed);
        }
    }

    /// The reason why a node that follows a log is not current, as text.
    pub fn lateness(&self, now: Timestamp) -> Option<String> {
        let shared = self.shared.as_ref().filter(|_| !self.is_current(now))?;
        let entries = shared.lag_entries.load(Ordering::Relaxed);
        let lag_s = self.lag(now).as_secs();
        let problem = shared.problem.load();
        let why = problem.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let stuck = shared.stuck.load(Ordering::Relaxed);
        Some(if stuck && shared.outdated.load(Ordering::Relaxed) {
            "a newer program wrote the log: upgrade this node; it serves what it could read"
                .to_owned()
        } else if stuck {
            "the content of the log cannot be read: it is damaged".to_owned()
        } else if self.has_begun() && problem.is_some() {
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
    /// True if the current snapshot is the last one, and no node writes another.
    fn is_last(&self, now: Timestamp) -> bool {
        let said = self.unled_at_ms.load(Ordering::Relaxed);
        let unled = said != 0 && now.since(Timestamp::from_millis(said)) <= UNLED_MAX;
        unled && !self.stuck.load(Ordering::Relaxed) && self.begun.load(Ordering::Acquire)
    }

    /// `lag`: the time since another snapshot is due.
    fn keeps_up(&self, now: Timestamp, lag: Duration) -> bool {
        let since = self.behind_since_ms.load(Ordering::Relaxed);
        let lacks = since != 0 && now.since(Timestamp::from_millis(since)) > BEHIND_MAX;
        let behind = lacks || lag > BEHIND_MAX && self.problem.load().is_some();
        !behind && !self.stuck.load(Ordering::Relaxed) && self.begun.load(Ordering::Acquire)
    }
}
