//! The book of the last rebuilt publication: later ones are rebuilt by rolling it forward (H22).

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use archive::Entry;
use market::{Book, Change};

use super::{LoggedPast, unreadable};
use crate::history::index::IN_LOG;
use crate::history::{Found, HistoryError, WEIGHT_BYTES};
use crate::publication::Published;
use crate::replay::{Logged, Replay};

/// Maximum number of entries to roll it over; beyond it, a nearer stored book may be quicker.
const ENTRIES_MAX: u64 = 25_000;
/// Number of new publications without a request after which it is dropped.
const IDLE_MAX: u32 = 20;

/// The book, kept for a while.
#[derive(Debug, Default)]
pub(in crate::history) struct Rolled(Mutex<Option<Held>>);

#[derive(Debug)]
struct Held {
    lineage: usize,
    at: Found,
    book: Book,
    /// Publications since it was used.
    idle: u32,
}

impl Rolled {
    /// Notes that there was another publication.
    pub(in crate::history) fn age(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *held = held.take().filter(|held| held.idle < IDLE_MAX);
        held.iter_mut().for_each(|held| held.idle += 1);
    }

    fn take(&self) -> Option<Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, held: Held) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }
}

impl LoggedPast {
    /// A publication, made again.
    pub(in crate::history) fn rebuild(&self, found: Found) -> Result<Published, HistoryError> {
        let lineage = self.lineage_of(found);
        let held = lineage.and_then(|lineage| self.roll(lineage, found));
        let book = match held {
            Some(book) => book,
            None => self.book(found)?,
        };
        let published = self.options.past_publication(&book, found.seq, found.at);
        // It shares its records with the publication, which is kept for as long.
        let weight = usize::try_from(published.weight).unwrap_or(usize::MAX);
        let bytes = weight.saturating_mul(WEIGHT_BYTES);
        if let Some(lineage) = lineage.filter(|_| bytes <= self.options.history.memory_max) {
            self.rolled.put(Held { lineage, at: found, book, idle: 0 });
        }
        Ok(published)
    }

    /// The held book, rolled forward to a publication; `None`: it has to be rebuilt.
    fn roll(&self, lineage: usize, to: Found) -> Option<Book> {
        let Held { lineage: own, at: from, mut book, .. } = self.rolled.take()?;
        if own != lineage || !(from.seq..from.seq + ENTRIES_MAX).contains(&to.seq) {
            return None;
        }
        let entries = self.entries_of(lineage, from.seq..=to.seq);
        let mut entries = entries.ok()?.into_iter();
        // A log that was rewritten from an earlier entry on has another entry here.
        let Entry { seq, change, .. } = entries.next()?;
        if seq != from.seq || !matches!(change, Change::Cut { at } if at == from.at) {
            return None;
        }
        let mut last = seq;
        for Entry { seq, at, change } in entries {
            if seq != last + 1 {
                return None;
            }
            // A start with another catalogue does not keep everything that was there before.
            if let Change::Configured(next) = &change
                && !self.catalogues.is_of(&book, &next.catalogue)
            {
                return None;
            }
            book.absorb(&change, at);
            last = seq;
        }
        (last == to.seq).then_some(book)
    }

    /// The entries with these numbers of a lineage, as far as they exist.
    fn entries_of(
        &self,
        lineage: usize,
        seqs: RangeInclusive<u64>,
    ) -> Result<Vec<Entry>, HistoryError> {
        match &self.archive {
            Some(archive) if lineage != IN_LOG => {
                let commit = archive.newest().map_err(unreadable)?;
                let entries = archive.entries(&commit, lineage, seqs);
                entries.collect::<Result<_, _>>().map_err(unreadable)
            }
            _ => {
                let log = self.open()?;
                let replay = Replay::from(&*log, *seqs.start()).map_err(unreadable)?;
                let mut entries = Vec::new();
                for logged in replay {
                    let Logged { seq, at, change, .. } = logged.map_err(unreadable)?;
                    if seq > *seqs.end() {
                        break;
                    }
                    entries.push(Entry { seq, at, change });
                }
                Ok(entries)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use change_log::LogLocation;
    use domain::{ManualClock, Timestamp};
    use market::{Alias, Meaning, Operation};

    use super::*;
    use crate::WorldHandle;
    use crate::writer::test_options;

    #[test]
    fn the_next_publication_is_made_from_the_book_of_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let log =
            LogLocation::Folder { dir: dir.path().into(), options: change_log::Options::default() };
        let options = test_options(log);
        let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_700_000_000)));
        let (handle, mut writer) =
            WorldHandle::open(options.clone(), Arc::<ManualClock>::clone(&clock)).unwrap();
        let mut founds = Vec::new();
        let past = LoggedPast::new(options.clone());
        for n in 0..5 {
            let meaning = Meaning::Is("Anderson Silva".into());
            let name = format!("Fighter {n}").into();
            let alias = Alias { sport: "mma".into(), feed: None, name, meaning };
            writer.operate(&Operation::Teach { aliases: vec![alias] }).unwrap();
            clock.advance(Duration::from_secs(5));
            writer.work();
            let at = handle.published().snapshot.cut_at;
            founds.push(past.find(at, at).unwrap());
        }
        let lineage = past.lineage_of(founds[1]).unwrap();
        past.rebuild(founds[1]).unwrap();
        let rolled = past.roll(lineage, founds[3]).expect("the book of the second is held");
        let fresh = LoggedPast::new(options);
        fresh.find(founds[3].at, founds[3].at).unwrap();
        assert_eq!(rolled.to_image(), fresh.book(founds[3]).unwrap().to_image());
        // Not backwards, not from another log, and not forever.
        past.rebuild(founds[3]).unwrap();
        assert!(past.roll(lineage, founds[1]).is_none());
        past.rebuild(founds[1]).unwrap();
        let mut held = past.rolled.take().unwrap();
        held.at.at = Timestamp::from_secs(1);
        past.rolled.put(held);
        assert!(past.roll(lineage, founds[3]).is_none());
        past.rebuild(founds[1]).unwrap();
        (0..=IDLE_MAX).for_each(|_| past.rolled.age());
        assert!(past.rolled.take().is_none());
    }

    #[test]
    fn a_book_is_held_where_its_publication_fits_into_memory() {
        let dir = tempfile::tempdir().unwrap();
        let log =
            LogLocation::Folder { dir: dir.path().into(), options: change_log::Options::default() };
        let mut options = test_options(log);
        let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_700_000_000)));
        let (handle, mut writer) =
            WorldHandle::open(options.clone(), Arc::<ManualClock>::clone(&clock)).unwrap();
        let meaning = Meaning::Is("Anderson Silva".into());
        let alias = Alias { sport: "mma".into(), feed: None, name: "A. Silva".into(), meaning };
        writer.operate(&Operation::Teach { aliases: vec![alias] }).unwrap();
        clock.advance(Duration::from_secs(5));
        writer.work();
        let at = handle.published().snapshot.cut_at;
        let past = LoggedPast::new(options.clone());
        let weight = past.rebuild(past.find(at, at).unwrap()).unwrap().weight;
        let bytes = usize::try_from(weight).unwrap() * WEIGHT_BYTES;
        for (memory_max, is_held) in [(bytes, true), (bytes - 1, false)] {
            options.history.memory_max = memory_max;
            let past = LoggedPast::new(options.clone());
            past.rebuild(past.find(at, at).unwrap()).unwrap();
            assert_eq!(past.rolled.take().is_some(), is_held);
        }
    }
}
