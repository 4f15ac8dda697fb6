//! Past publications that are kept ready: the last ones, and those that were requested, with their answers.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::Timestamp;
use tokio::sync::OnceCell;

use super::{Found, History, Source, WEIGHT_BYTES};
use crate::publication::Published;

/// Bytes per unit of weight of a book that is held to be rolled forward and shares its records with a kept publication;
/// measured with 200,000 records.
const BOOK_BYTES: usize = 400;
/// The same for a publication that shares its records with the present one: rows, and fragments of answers.
const SHARED_BYTES: usize = 800;
/// Maximum size of the answers produced from a past publication.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// Size of the marks of selections that were requested from it (`api::answers`).
const MARKS_BYTES: usize = 512 << 10;

/// A publication, and the time of the next one in the log; `None`: it is not known.
type WithNext = (Arc<Published>, Option<Timestamp>);

/// The last publications. They share what did not change and have no answers, so each takes little more than its rows.
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

/// One publication, made once for all waiting requests.
type Cell = Arc<OnceCell<Arc<Published>>>;

/// Publications that were rebuilt, and copies of recent ones, within a bound of memory.
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
    /// the removed entries: dropping them takes time, which no request should wait for.
    pub(super) fn note(
        &mut self,
        (seq, at): (u64, Timestamp),
        bytes: usize,
        max: usize,
    ) -> Vec<KeptEntry> {
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
        gone
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

impl History {
    /// Keeps a publication with answers of its own, within the bound. `is_recent`: it shares its records with others.
    pub(super) fn keep(
        &self,
        found: Found,
        published: &Published,
        is_recent: bool,
    ) -> Arc<Published> {
        let published = Arc::new(published.of_the_past(ANSWER_BYTES_MAX));
        let weight = usize::try_from(published.weight).unwrap_or(usize::MAX);
        let unit_bytes = if is_recent { SHARED_BYTES } else { WEIGHT_BYTES };
        let answers = ANSWER_BYTES_MAX + MARKS_BYTES;
        let bytes = weight.saturating_mul(unit_bytes).saturating_add(answers);
        let max = self.options.memory_max.saturating_sub(weight.saturating_mul(BOOK_BYTES));
        let gone = self.kept().note((found.seq, found.at), bytes, max);
        if !gone.is_empty() {
            drop(tokio::task::spawn_blocking(move || drop(gone)));
        }
        published
    }

    /// Estimated memory of what is kept of the past: publications with their answers, rows of the last ones, unfinished
    /// lookups and the ends of price histories.
    pub fn memory_bytes(&self) -> usize {
        let kept = self.kept().bytes();
        let recent = self.recent().bytes;
        let tails = match &self.source {
            Source::Logged(past) => past.tail.bytes(),
            Source::Simulated(_) | Source::Nothing => 0,
        };
        kept + recent + self.looks.bytes() + tails
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use change_log::LogLocation;
    use domain::{EventId, ManualClock};
    use market::{Alias, Meaning, Operation};
    use tokio::time::timeout;

    use super::*;
    use crate::writer::test_options;
    use crate::{WorldHandle, Writer};

    fn open(dir: &Path, memory_max: usize) -> (Arc<WorldHandle>, Writer, Arc<ManualClock>) {
        let options = change_log::Options::default();
        let mut options = test_options(LogLocation::Folder { dir: dir.into(), options });
        options.history.memory_max = memory_max;
        let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_700_000_000)));
        let (handle, writer) =
            WorldHandle::open(options, Arc::<ManualClock>::clone(&clock)).unwrap();
        (handle, writer, clock)
    }

    /// H22: a client that follows `x-next-publication` gets answers from every one of them.
    #[tokio::test]
    async fn answers_from_recent_publications_are_within_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        // An empty market weighs nothing.
        let bytes_max = 2 * (ANSWER_BYTES_MAX + MARKS_BYTES);
        let (handle, mut writer, clock) = open(dir.path(), bytes_max);
        let mut times = Vec::new();
        for _ in 0..6 {
            clock.advance(Duration::from_secs(5));
            writer.work();
            times.push(handle.published().snapshot.cut_at);
        }
        let mut asked = Vec::new();
        for at in &times[..5] {
            let past = handle.as_of(*at, 1).await.unwrap();
            assert_eq!((past.published.snapshot.cut_at, past.current), (*at, false));
            asked.push(Arc::downgrade(&past.published));
        }
        let rebuilds = handle.history.stats.rebuilds.load(Ordering::Relaxed);
        assert_eq!(rebuilds, 0, "all of them are recent");
        assert_eq!(handle.history.memory_bytes(), bytes_max);
        let dropped = async {
            while asked.iter().filter(|past| past.strong_count() > 0).count() > 2 {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), dropped).await.expect("the first three are dropped");
        let again = handle.as_of(times[4], 1).await.unwrap().published;
        assert!(asked[4].upgrade().is_some_and(|kept| Arc::ptr_eq(&kept, &again)));
    }

    #[test]
    fn the_ends_of_price_histories_are_in_the_memory_figure() {
        let dir = tempfile::tempdir().unwrap();
        let (handle, mut writer, clock) = open(dir.path(), 512 << 20);
        let meaning = Meaning::Is("Anderson Silva".into());
        let alias = Alias { sport: "mma".into(), feed: None, name: "A. Silva".into(), meaning };
        writer.operate(&Operation::Teach { aliases: vec![alias] }).unwrap();
        clock.advance(Duration::from_secs(5));
        writer.work();
        let Source::Logged(past) = &handle.history.source else { panic!("it has no log") };
        let before = handle.history.memory_bytes();
        let (seq, events) = (handle.published().seq(), [EventId::from_number(1)]);
        past.on_tail(None, seq, &events, |_| Ok(())).unwrap();
        assert!(past.tail.bytes() > 0);
        assert_eq!(handle.history.memory_bytes(), before + past.tail.bytes());
    }

    #[test]
    fn what_is_unused_for_longest_goes_first_and_the_bound_holds() {
        let mut kept = Kept::default();
        let at = Timestamp::from_secs;
        for n in 0..10_u32 {
            let cell = kept.cell(u64::from(n), at(n.into()));
            assert_eq!(Arc::strong_count(&cell), 2);
            // The first is requested again each time.
            kept.cell(0, at(0));
            kept.note((n.into(), at(n.into())), 100, 350);
            assert!(kept.bytes() <= 350, "{}", kept.bytes());
        }
        let mut left: Vec<u64> = kept.entries.iter().map(|kept| kept.seq).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 8, 9]);
        // One that is larger than the bound is kept alone for the requests that wait for it.
        kept.cell(77, at(77));
        let gone = kept.note((77, at(77)), 1000, 350);
        assert_eq!((kept.bytes(), gone.len(), kept.entries.len()), (1000, 3, 1));
    }
}
