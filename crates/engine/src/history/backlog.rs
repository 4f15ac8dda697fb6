//! The publications that are known not to be archived yet, on the node that writes the archive.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::Timestamp;

/// Maximum number of publications remembered: more than a day of them. Beyond it, the oldest ones and the last one
/// stay.
const PUBLICATIONS_MAX: usize = 4096;

/// Publications that are not archived, with their entries, oldest first: those of this process, and the first one of
/// an earlier process or leader, once it was found in the log.
#[derive(Debug, Default)]
pub(super) struct Backlog(Mutex<VecDeque<(u64, Timestamp)>>);

impl Backlog {
    pub(super) fn note_published(&self, seq: u64, at: Timestamp) {
        let mut held = self.lock();
        if held.len() >= PUBLICATIONS_MAX {
            held.pop_back();
        }
        held.push_back((seq, at));
    }

    /// Notes the first publication after the end of the archive.
    pub(super) fn note_first(&self, seq: u64, at: Timestamp) {
        let mut held = self.lock();
        if held.front().is_none_or(|(oldest, _)| seq < *oldest) {
            held.push_front((seq, at));
        }
    }

    /// All publications up to an entry are in the archive.
    pub(super) fn note_archived(&self, seq: u64) {
        self.lock().retain(|(own, _)| *own > seq);
    }

    /// Another node writes the archive.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Age of the oldest publication.
    pub(super) fn age(&self, now: Timestamp) -> Duration {
        self.lock().front().map_or(Duration::ZERO, |(_, at)| now.since(*at))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_publication_counts_however_many_there_are() {
        let backlog = Backlog::default();
        let (at, now) = (Timestamp::from_secs, Timestamp::from_secs(10_000));
        assert_eq!(backlog.age(now), Duration::ZERO);
        for n in 1..=5000_u32 {
            backlog.note_published(n.into(), at(n.into()));
        }
        assert_eq!(backlog.age(now), Duration::from_secs(9999));
        assert_eq!(backlog.lock().len(), PUBLICATIONS_MAX);
        backlog.note_archived(10);
        assert_eq!(backlog.age(now), Duration::from_secs(10_000 - 11));
        backlog.note_archived(4999);
        assert_eq!(backlog.age(now), Duration::from_secs(5000));
        backlog.note_archived(5000);
        assert_eq!(backlog.age(now), Duration::ZERO);
        backlog.note_first(6000, at(6000));
        backlog.note_first(5001, at(5001));
        backlog.note_first(5002, at(5002));
        assert_eq!(backlog.age(now), Duration::from_secs(10_000 - 5001));
        backlog.note_archived(5001);
        assert_eq!(backlog.age(now), Duration::from_secs(4000));
    }
}
