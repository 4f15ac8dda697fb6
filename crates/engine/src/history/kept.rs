//! Past publications that are kept ready: the last ones, and those that were rebuilt.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::Timestamp;
use tokio::sync::OnceCell;

use crate::publication::Published;

/// A publication, and the time of the next one in the log; `None`: it is not known.
type WithNext = (Arc<Published>, Option<Timestamp>);

/// The last publications. They share what did not change, so each takes little more than its rows.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    publications: VecDeque<WithNext>,
    bytes: usize,
}

/// The part of history's memory that they may take, as a divisor.
pub(crate) const RECENT_SHARE: usize = 4;
/// Number of the newest publications that are kept however much memory they take, because current streams read them.
const RECENT_MIN: usize = 4;
/// Bytes that the row of a record takes with its index entries; below, the row of an event.
const RECORD_ROW_BYTES: usize = 100;
const EVENT_ROW_BYTES: usize = 300;

impl Recent {
    pub(crate) fn push(&mut self, published: Published, next: Option<Timestamp>, max: usize) {
        self.bytes += row_bytes(&published);
        self.publications.push_back((Arc::new(published), next));
        while self.bytes > max
            && self.publications.len() > RECENT_MIN
            && let Some((oldest, _)) = self.publications.pop_front()
        {
            self.bytes -= row_bytes(&oldest);
        }
    }

    /// The last publication that satisfies `is`.
    pub(crate) fn find(&self, is: impl Fn(&Published) -> bool) -> Option<WithNext> {
        self.publications.iter().rev().find(|(held, _)| is(held)).cloned()
    }
}

/// Bytes that the rows of a publication take.
pub(crate) fn row_bytes(published: &Published) -> usize {
    let snapshot = &published.snapshot;
    snapshot.records() * RECORD_ROW_BYTES + snapshot.events() * EVENT_ROW_BYTES
}

/// One publication, rebuilt once for all waiting requests.
type Cell = Arc<OnceCell<Arc<Published>>>;

/// Rebuilt publications, within a bound of memory.
#[derive(Debug, Default)]
pub(super) struct Kept {
    entries: Vec<KeptEntry>,
    /// Counts requests, to find the entry unused for longest.
    now: u64,
}

#[derive(Debug)]
pub(super) struct KeptEntry {
    seq: u64,
    at: Timestamp,
    cell: Cell,
    bytes: usize,
    used: u64,
}

/// Maximum number of publications that are ready or awaited.
const ENTRIES_MAX: usize = 1024;

impl Kept {
    pub(super) fn cell(&mut self, seq: u64, at: Timestamp) -> Cell {
        self.now += 1;
        let used = self.now;
        if let Some(kept) = self.entries.iter_mut().find(|kept| (kept.seq, kept.at) == (seq, at)) {
            kept.used = used;
            return Arc::clone(&kept.cell);
        }
        if self.entries.len() >= ENTRIES_MAX {
            self.take_oldest(None);
        }
        let cell = Cell::default();
        self.entries.push(KeptEntry { seq, at, cell: Arc::clone(&cell), bytes: 0, used });
        cell
    }

    /// Notes the size of a publication, and removes those unused for longest until all is within the bound. Returns
    /// the remaining bytes and the removed entries: dropping them takes time, which no request should wait for.
    pub(super) fn note(
        &mut self,
        (seq, at): (u64, Timestamp),
        bytes: usize,
        max: usize,
    ) -> (usize, Vec<KeptEntry>) {
        let noted = self.entries.iter_mut().find(|kept| (kept.seq, kept.at) == (seq, at));
        let noted = noted.map(|kept| {
            kept.bytes = bytes;
            kept.used
        });
        let mut gone = Vec::new();
        while self.bytes() > max
            && let Some(oldest) = self.take_oldest(noted)
        {
            gone.push(oldest);
        }
        (self.bytes(), gone)
    }

    fn bytes(&self) -> usize {
        self.entries.iter().map(|kept| kept.bytes).sum()
    }

    /// `spared`: the use of an entry that stays whatever its size, because a request waits for it.
    fn take_oldest(&mut self, spared: Option<u64>) -> Option<KeptEntry> {
        let old = self.entries.iter().enumerate().filter(|(_, kept)| Some(kept.used) != spared);
        let oldest = old.min_by_key(|(_, kept)| kept.used).map(|(at, _)| at);
        oldest.map(|at| self.entries.swap_remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unused_for_longest_goes_first_and_the_bound_holds() {
        let mut kept = Kept::default();
        let at = Timestamp::from_secs;
        for n in 0..10_u32 {
            let cell = kept.cell(u64::from(n), at(n.into()));
            assert_eq!(Arc::strong_count(&cell), 2);
            // The first is requested again each time.
            kept.cell(0, at(0));
            let (bytes, _) = kept.note((n.into(), at(n.into())), 100, 350);
            assert!(bytes <= 350, "{bytes}");
        }
        let mut left: Vec<u64> = kept.entries.iter().map(|kept| kept.seq).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 8, 9]);
        // One that is larger than the bound is kept alone for the requests that wait for it.
        kept.cell(77, at(77));
        let (bytes, gone) = kept.note((77, at(77)), 1000, 350);
        assert_eq!((bytes, gone.len(), kept.entries.len()), (1000, 3, 1));
    }
}
