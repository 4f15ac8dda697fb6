//! When a checkpoint is due.
//!
//! A checkpoint takes time of the writer, during which nothing is accepted, and every entry since the last one delays
//! a start. With a log in a folder only this process starts from it and reads hundreds of thousands of entries a
//! second, so checkpoints are rare. With a log on servers any node may start at any time and reads every message over
//! the network: a checkpoint is written as soon as it saves a start about a second, but never so often that the writer
//! spends more than a small part of its time on it, whatever the size of the book.

use std::time::Duration;

use domain::Timestamp;

/// A checkpoint is due after this number of entries, whatever it costs: reading more back takes longer than a tenth of
/// a second anywhere.
const ENTRIES_MAX: u64 = 25_000;
/// Due after this time too; otherwise old entries of a quiet world would never be deleted.
const EVERY: Duration = Duration::from_secs(3600);
/// On servers: due after this number of entries.
const SHARED_ENTRIES: u64 = 10_000;
/// On servers: due after this time if there are at least this number of entries. Fewer are read faster than a book is.
const SHARED_EVERY: Duration = Duration::from_secs(60);
const SHARED_ENTRIES_MIN: u64 = 1_000;
/// On servers: minimum time since the last one, as a multiple of its duration. This is 2 % of the writer's time.
const SHARED_REST: u32 = 50;

/// The properties of the last checkpoint that the next one depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointSchedule {
    /// The entry that it covers; 0 if there is none.
    pub(crate) seq: u64,
    /// The time at which it was written.
    at: Timestamp,
    /// The time of the last attempt, and its duration.
    tried: Timestamp,
    took: Duration,
    /// True if other nodes start from it.
    is_shared: bool,
}

impl CheckpointSchedule {
    pub(crate) fn of_folder(seq: u64, at: Timestamp) -> Self {
        Self { seq, at, tried: at, took: Duration::ZERO, is_shared: false }
    }

    pub(crate) fn of_servers(seq: u64, at: Timestamp) -> Self {
        Self { is_shared: true, ..Self::of_folder(seq, at) }
    }

    /// True if a checkpoint that covers entry `seq` should be written now.
    pub(crate) fn is_due(&self, seq: u64, now: Timestamp) -> bool {
        let entries = seq.saturating_sub(self.seq);
        let age = now.since(self.at);
        if entries >= ENTRIES_MAX || age >= EVERY {
            return true;
        }
        let saves =
            entries >= SHARED_ENTRIES || (entries >= SHARED_ENTRIES_MIN && age >= SHARED_EVERY);
        let rested = now.since(self.tried) >= self.took.saturating_mul(SHARED_REST);
        self.is_shared && saves && rested
    }

    /// True if the last attempt was a minute ago.
    pub(crate) fn is_rested(&self, now: Timestamp) -> bool {
        now.since(self.tried) >= SHARED_EVERY
    }

    /// Notes an attempt; `written` is the entry covered if it succeeded.
    pub(crate) fn note(&mut self, written: Option<u64>, now: Timestamp, took: Duration) {
        (self.tried, self.took) = (now, took);
        if let Some(seq) = written {
            (self.seq, self.at) = (seq, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

    fn after(checkpoint_schedule: CheckpointSchedule, entries: u64, seconds: u64) -> bool {
        checkpoint_schedule
            .is_due(checkpoint_schedule.seq + entries, NOW.plus(Duration::from_secs(seconds)))
    }

    #[test]
    fn on_a_folder_it_is_written_rarely() {
        let checkpoint_schedule = CheckpointSchedule::of_folder(7, NOW);
        assert!(!after(checkpoint_schedule, ENTRIES_MAX - 1, 3599));
        assert!(after(checkpoint_schedule, ENTRIES_MAX, 0) && after(checkpoint_schedule, 0, 3600));
    }

    #[test]
    fn on_servers_it_is_written_when_it_saves_whoever_starts_something() {
        let checkpoint_schedule = CheckpointSchedule::of_servers(7, NOW);
        assert!(
            after(checkpoint_schedule, SHARED_ENTRIES, 1)
                && after(checkpoint_schedule, SHARED_ENTRIES_MIN, 60)
        );
        assert!(!after(checkpoint_schedule, SHARED_ENTRIES - 1, 59), "neither many nor old");
        assert!(!after(checkpoint_schedule, SHARED_ENTRIES_MIN - 1, 3599), "not for a handful");
        assert!(after(checkpoint_schedule, 1, 3600), "or old entries would never go");
    }

    #[test]
    fn one_that_takes_long_is_written_less_often_and_one_that_failed_is_not_tried_at_once() {
        let mut checkpoint_schedule = CheckpointSchedule::of_servers(0, NOW.minus(EVERY));
        checkpoint_schedule.note(Some(5), NOW, Duration::from_secs(2));
        assert_eq!(checkpoint_schedule.seq, 5);
        assert!(
            !after(checkpoint_schedule, ENTRIES_MAX - 1, 99)
                && after(checkpoint_schedule, SHARED_ENTRIES, 100)
        );
        assert!(after(checkpoint_schedule, ENTRIES_MAX, 0), "a start has a bound, too");
        checkpoint_schedule.note(None, NOW.plus(Duration::from_secs(200)), Duration::from_secs(1));
        assert_eq!(checkpoint_schedule.seq, 5);
        assert!(
            !after(checkpoint_schedule, SHARED_ENTRIES, 249)
                && after(checkpoint_schedule, SHARED_ENTRIES, 250)
        );
    }
}
