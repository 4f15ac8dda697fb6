//! The past of a live world, from its log: the newest book before a publication, and the entries from there to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use change_log::ReadLog;
use domain::Timestamp;
use market::{Book, Change, Configured, Ids};

use super::{Found, HistoryError, Reach};
use crate::error::WorldError;
use crate::options::WorldOptions;
use crate::publication::Published;
use crate::replay::{Logged, Replay};

#[derive(Debug)]
pub(super) struct LoggedPast {
    options: WorldOptions,
    index: Mutex<Index>,
}

/// The publications that the log holds.
#[derive(Debug, Default)]
struct Index {
    /// By time; of those of one time, the one made last comes last.
    cuts: Vec<Cut>,
    /// All that publications were made with.
    configured: Vec<Arc<Configured>>,
    gaps: Vec<(Timestamp, Timestamp)>,
    /// The first entry that was not read yet.
    next_seq: u64,
    /// The last book before all publications that can be made again.
    base_seq: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    at: Timestamp,
    seq: u64,
    /// Where in `configured` it is; `None` where the log does not say.
    configured: Option<u32>,
}

impl LoggedPast {
    pub(super) fn new(options: WorldOptions) -> Self {
        Self { options, index: Mutex::default() }
    }

    /// The publication at or before an instant, where that is known without a look at the log: another followed it.
    pub(super) fn find_known(&self, at: Timestamp) -> Option<Result<Found, HistoryError>> {
        let index = self.index();
        let known = index.cuts.last().is_some_and(|last| at < last.at);
        known.then(|| index.find(at, &self.options))
    }

    pub(super) fn find(&self, at: Timestamp) -> Result<Found, HistoryError> {
        self.read_on()?.find(at, &self.options)
    }

    /// The publication of an entry.
    pub(super) fn find_entry(&self, seq: u64) -> Result<Option<Found>, HistoryError> {
        let index = self.read_on()?;
        let cut = index.cuts.iter().find(|cut| cut.seq == seq);
        let found = |cut: &Cut| Found { seq, at: cut.at, previous: None, next: None };
        Ok(cut.map(found))
    }

    pub(super) fn reach(&self) -> Result<Reach, HistoryError> {
        let index = self.read_on()?;
        index.reach(&self.options).ok_or(HistoryError::Off)
    }

    /// The publication before another.
    pub(super) fn before(&self, current: Timestamp) -> Result<Option<Timestamp>, HistoryError> {
        let index = self.read_on()?;
        let at = index.cuts.partition_point(|cut| cut.at < current);
        Ok(at.checked_sub(1).and_then(|at| index.cuts.get(at)).map(|cut| cut.at))
    }

    /// A publication, and the weight of its book.
    pub(super) fn rebuild(&self, found: Found) -> Result<(Published, u64), HistoryError> {
        let mut log = self.open()?;
        let configured = self.index().configured_at(found.seq);
        if configured.is_some_and(|then| *then.catalogue != *self.options.catalogue.version()) {
            return Err(HistoryError::Unreadable(None));
        }
        // Nothing that is to be read is deleted meanwhile.
        let _position = log.register().map_err(unreadable)?;
        let catalogue = || Arc::clone(&self.options.catalogue);
        let (mut book, base) = match log.checkpoint_up_to(found.seq - 1).map_err(unreadable)? {
            Some(held) => {
                let book = Book::from_image(held.version, &held.payload, catalogue());
                (book.map_err(unreadable)?, held.seq)
            }
            None if log.first_seq() == 1 => (Book::new(catalogue(), Ids::Minted { salt: 0 }), 0),
            None => return Err(self.not_kept()),
        };
        book.set_limits(self.options.limits);
        let mut replay = Replay::from(&*log, base + 1).map_err(unreadable)?;
        for logged in replay.by_ref() {
            let Logged { seq, at, change, .. } = logged.map_err(unreadable)?;
            book.absorb(&change, at);
            if seq < found.seq {
                continue;
            }
            // An entry that was lost may have been one of those that made it.
            let whole = seq == found.seq && replay.losses().entries == 0;
            let weight = book.weight();
            return match whole {
                true => Ok((self.options.publication(&book, seq, found.at), weight)),
                false => Err(HistoryError::Unreadable(None)),
            };
        }
        Err(self.not_kept())
    }

    fn not_kept(&self) -> HistoryError {
        match self.index().reach(&self.options) {
            Some(reach) => HistoryError::NotKept(Box::new(reach)),
            None => HistoryError::Unreadable(None),
        }
    }

    fn open(&self) -> Result<Box<dyn ReadLog>, HistoryError> {
        self.options.log.view().map_err(unreadable)?.ok_or(HistoryError::Off)
    }

    /// Reads what the log has had added, and forgets what can be made again no longer.
    fn read_on(&self) -> Result<MutexGuard<'_, Index>, HistoryError> {
        let log = self.open()?;
        let mut index = self.index();
        index.base_seq = match log.oldest_checkpoint() {
            _ if log.first_seq() == 1 => 0,
            Some(seq) => seq,
            None => u64::MAX,
        };
        let from = index.next_seq.max(log.first_seq());
        for logged in Replay::from(&*log, from).map_err(unreadable)? {
            index.note(&logged.map_err(unreadable)?);
        }
        let base = index.base_seq;
        index.cuts.retain(|cut| cut.seq > base);
        if let Some(last) = index.cuts.last().map(|cut| cut.at) {
            let oldest = last.minus(self.options.history.retention);
            index.cuts.retain(|cut| cut.at >= oldest);
            index.gaps.retain(|(_, to)| *to >= oldest);
        }
        Ok(index)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // An index that was left in the middle of a change is read again from where it is.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn note(&mut self, Logged { seq, change, .. }: &Logged) {
        self.next_seq = seq + 1;
        match change {
            Change::Cut { at } => {
                let configured = self.configured.len().checked_sub(1);
                let configured = configured.and_then(|at| u32::try_from(at).ok());
                let cut = Cut { at: *at, seq: *seq, configured };
                // A clock that was set back comes to the same times again.
                let place = self.cuts.partition_point(|held| held.at <= cut.at);
                self.cuts.insert(place, cut);
            }
            Change::Configured(configured) => self.configured.push(Arc::new(configured.clone())),
            Change::Unlogged { from, to } => self.gaps.push((*from, *to)),
            Change::Founded { .. }
            | Change::Listed(_)
            | Change::Quoted(_)
            | Change::Confirmed { .. }
            | Change::Scored { .. }
            | Change::Withdrawn { .. }
            | Change::Beat { .. }
            | Change::Paced { .. }
            | Change::Expired { .. }
            | Change::SourceForgotten { .. }
            | Change::Joined(_)
            | Change::Merged { .. }
            | Change::Split { .. }
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            | Change::Dropped { .. } => {}
        }
    }

    fn find(&self, at: Timestamp, options: &WorldOptions) -> Result<Found, HistoryError> {
        let end = self.cuts.partition_point(|cut| cut.at <= at);
        let place = end.checked_sub(1);
        let lost = self.gaps.iter().any(|(from, to)| (*from..*to).contains(&at));
        let found = place.and_then(|place| self.cuts.get(place)).filter(|_| !lost);
        let Some(found) = found else {
            return Err(match self.reach(options) {
                Some(reach) => HistoryError::NotKept(Box::new(reach)),
                None => HistoryError::Off,
            });
        };
        // Of publications of one time the last one counts.
        let earlier = self.cuts.partition_point(|cut| cut.at < found.at).checked_sub(1);
        let previous = earlier.and_then(|place| self.cuts.get(place)).map(|cut| cut.at);
        let next = self.cuts.get(end).map(|cut| cut.at);
        Ok(Found { seq: found.seq, at: found.at, previous, next })
    }

    fn reach(&self, options: &WorldOptions) -> Option<Reach> {
        let (first, last) = (self.cuts.first()?, self.cuts.last()?);
        Some(Reach {
            from: first.at,
            to: last.at,
            publications: u64::try_from(self.cuts.len()).unwrap_or(u64::MAX),
            retention: options.history.retention,
            gaps: self.gaps.iter().copied().filter(|(_, to)| *to > first.at).collect(),
        })
    }

    fn configured_at(&self, seq: u64) -> Option<Arc<Configured>> {
        let cut = self.cuts.iter().find(|cut| cut.seq == seq)?;
        let at = usize::try_from(cut.configured?).ok()?;
        self.configured.get(at).cloned()
    }
}

fn unreadable(error: impl Into<WorldError>) -> HistoryError {
    HistoryError::Unreadable(Some(Arc::new(error.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(cuts: &[(i64, u64)]) -> Index {
        let mut index = Index::default();
        for (at, seq) in cuts {
            let at = Timestamp::from_secs(*at);
            let change = Change::Cut { at };
            index.note(&Logged { seq: *seq, checksum: 0, at, change, bytes: 0 });
        }
        index
    }

    fn options() -> WorldOptions {
        crate::writer::test_options(change_log::LogLocation::Nowhere)
    }

    fn seq_at(index: &Index, at: i64) -> Option<u64> {
        index.find(Timestamp::from_secs(at), &options()).ok().map(|found| found.seq)
    }

    #[test]
    fn a_time_that_came_twice_is_the_publication_made_last() {
        let index = index(&[(100, 1), (130, 2), (160, 3), (130, 4), (145, 5), (160, 6), (190, 7)]);
        assert_eq!(seq_at(&index, 99), None);
        assert_eq!(seq_at(&index, 100), Some(1));
        assert_eq!(seq_at(&index, 131), Some(4));
        assert_eq!(seq_at(&index, 150), Some(5));
        assert_eq!(seq_at(&index, 189), Some(6));
        let found = index.find(Timestamp::from_secs(160), &options()).unwrap();
        assert_eq!(found.previous, Some(Timestamp::from_secs(145)));
        assert_eq!(found.next, Some(Timestamp::from_secs(190)));
    }

    #[test]
    fn nothing_is_shown_of_a_time_whose_publications_were_lost() {
        let mut index = index(&[(100, 1), (190, 5)]);
        index.gaps.push((Timestamp::from_secs(130), Timestamp::from_secs(190)));
        assert_eq!(seq_at(&index, 129), Some(1));
        assert_eq!(seq_at(&index, 130), None);
        assert_eq!(seq_at(&index, 189), None);
        assert_eq!(seq_at(&index, 190), Some(5));
    }
}
