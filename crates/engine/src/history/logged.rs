//! The past of a live world, from its log and, if the log does not reach back far enough, from its archive: the newest
//! book before a publication, and the entries from there to it.

mod books;
mod new_entries;
mod rolled;
mod tail;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use archive::{Archive, Commit, Entry, Lineage};
use change_log::ReadLog;
use domain::{Catalogue, Timestamp};
use market::Change;

use self::rolled::Rolled;
use self::tail::Tail;
use super::index::{IN_LOG, Index};
use super::steps::Steps;
use super::{Found, HistoryError, Place, Reach};
use crate::begun::Begun;
use crate::catalogues::Catalogues;
use crate::error::WorldError;
use crate::options::WorldOptions;
use crate::publication::Published;
use crate::replay::{Logged, Replay};

#[derive(Debug)]
pub(super) struct LoggedPast {
    pub(super) options: WorldOptions,
    pub(super) archive: Option<Archive>,
    pub(super) catalogues: Catalogues,
    pub(super) begun: Begun,
    index: Mutex<Index>,
    /// Time of the last read of the archive, and the last entry before the log at that time.
    looked: Mutex<Option<(Instant, u64)>>,
    /// True if the archive has changed since.
    has_news: AtomicBool,
    /// Time of the last publication, and how often it was before that of the one before it.
    last_cut_ms: AtomicI64,
    set_backs: AtomicU64,
    pub(super) tail: Tail,
    pub(super) rolled: Rolled,
}

/// The result of looking up an entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum EntryFound {
    /// The position of the entry, if it exists.
    Known(Option<Found>),
    /// Only the archive may have it; `next` is the time of the next publication.
    Archived { next: Option<Timestamp> },
}

/// Maximum number of decoded entries held for a reader of every publication.
const READ_MAX: usize = 20_000;
impl LoggedPast {
    pub(super) fn new(options: WorldOptions) -> Self {
        let archive = options.history.archive().map(|place| Archive::of(&place));
        let catalogues = Catalogues::new(&options);
        let begun = Begun::of(&options);
        Self {
            options,
            archive,
            catalogues,
            begun,
            index: Mutex::default(),
            looked: Mutex::default(),
            has_news: AtomicBool::new(false),
            last_cut_ms: AtomicI64::new(i64::MIN),
            set_backs: AtomicU64::new(0),
            tail: Tail::default(),
            rolled: Rolled::default(),
        }
    }

    /// The publication at or before an instant, if known without reading the log and without waiting.
    pub(super) fn find_at_once(&self, at: Timestamp, current: Timestamp) -> Option<Found> {
        self.find_known(&*self.index_at_once()?, at, current)
    }

    fn find_known(&self, index: &Index, at: Timestamp, current: Timestamp) -> Option<Found> {
        // A clock that was set back reaches the same times again: the index may lack what was made last.
        let is_current = index.set_backs == self.set_backs.load(Ordering::Acquire);
        is_current.then(|| index.find_known(at, current, &self.options)).flatten()
    }

    /// Notes a publication.
    pub(super) fn note_cut(&self, at: Timestamp) {
        let last_ms = self.last_cut_ms.swap(at.as_millis(), Ordering::AcqRel);
        if at.as_millis() < last_ms {
            self.set_backs.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn find(&self, at: Timestamp, current: Timestamp) -> Result<Found, HistoryError> {
        // Another request may have read it meanwhile.
        if let Some(found) = self.find_known(&self.index(), at, current) {
            return Ok(found);
        }
        self.read_log_on()?.find(at, &self.options)
    }

    /// The publication of an entry and its lineage, if known without reading the log and without waiting: many clients
    /// that reconnect at the same moment ask for the same.
    pub(super) fn find_entry_at_once(&self, seq: u64) -> Option<(Found, usize)> {
        Self::known_entry(&*self.index_at_once()?, seq)
    }

    fn known_entry(index: &Index, seq: u64) -> Option<(Found, usize)> {
        let (cut, next) = index.known_cut_of(seq)?;
        Some((Found { seq, at: cut.at, previous: None, next: Some(next) }, cut.lineage))
    }

    /// The publication of an entry or, between two publications, the state after the entry, as far as known without the
    /// archive's store.
    pub(super) fn find_entry(&self, seq: u64) -> Result<EntryFound, HistoryError> {
        // Another request may have read it meanwhile.
        if let Some((found, _)) = Self::known_entry(&self.index(), seq) {
            return Ok(EntryFound::Known(Some(found)));
        }
        let index = self.read_log_on()?;
        let (cut, next) = (index.cut_of(seq), index.cut_after(seq));
        let in_log = seq > index.base_seq;
        if !in_log && (index.is_stale || (cut.is_none() && index.archived.is_missed)) {
            return Err(HistoryError::Unreadable(None));
        }
        let next = next.map(|next| next.at);
        let found = |at| Found { seq, at, previous: None, next };
        if let Some(cut) = cut {
            return Ok(EntryFound::Known(Some(found(cut.at))));
        }
        drop(index);
        if !in_log {
            return Ok(EntryFound::Archived { next });
        }
        let logged = Replay::from(&*self.open()?, seq).map_err(unreadable)?.next();
        let logged = logged.transpose().map_err(unreadable)?.filter(|logged| logged.seq == seq);
        Ok(EntryFound::Known(logged.map(|logged| found(logged.at))))
    }

    /// The same for an entry between two publications that only the archive has.
    pub(super) fn find_archived(
        &self,
        seq: u64,
        next: Option<Timestamp>,
    ) -> Result<Option<Found>, HistoryError> {
        // If several lineages have the number, the latest one counts; clients can tell that it is not theirs.
        let found = self.archived(seq, None)?;
        Ok(found.map(|(_, entry)| Found { seq, at: entry.at, previous: None, next }))
    }

    /// True if the log no longer reaches back to an entry, or to the publication of a time.
    pub(super) fn is_archived(&self, place: Place) -> Result<bool, HistoryError> {
        if let Place::Entry(seq) = place
            && let Some((_, lineage)) = Self::known_entry(&self.index(), seq)
        {
            return Ok(lineage != IN_LOG);
        }
        let index = self.read_log_on()?;
        Ok(match place {
            Place::Entry(seq) => match index.cut_of(seq) {
                Some(cut) => cut.lineage != IN_LOG,
                None => seq <= index.base_seq,
            },
            Place::Time(at) => {
                let found = index.find(at, &self.options)?;
                index.lineage_of(found) != Some(IN_LOG)
            }
        })
    }

    /// The lineage of the archive that has an entry, and the entry. A log that was lost or restored has others with the
    /// same numbers: `at` selects one of them; without it, the latest counts.
    pub(super) fn archived(
        &self,
        seq: u64,
        at: Option<Timestamp>,
    ) -> Result<Option<(usize, Entry)>, HistoryError> {
        let Some(archive) = &self.archive else { return Ok(None) };
        let commit = archive.newest().map_err(unreadable)?;
        for lineage in lineages_with(&commit, seq) {
            let entry = archive.entries(&commit, lineage, seq..=seq).next();
            let entry = entry.transpose().map_err(unreadable)?;
            if let Some(entry) = entry.filter(|entry| at.is_none_or(|at| is_of(entry, at))) {
                return Ok(Some((lineage, entry)));
            }
        }
        Ok(None)
    }

    /// The lineage of the archive that has the same entry as the log.
    fn archived_as_in(&self, log: &dyn ReadLog, seq: u64) -> Result<Option<usize>, HistoryError> {
        let logged = Replay::from(log, seq).map_err(unreadable)?.next();
        let logged = logged.transpose().map_err(unreadable)?.filter(|logged| logged.seq == seq);
        let Some(Logged { at, .. }) = logged else { return Ok(None) };
        Ok(self.archived(seq, Some(at))?.map(|(lineage, _)| lineage))
    }

    pub(super) fn reach(&self) -> Result<Reach, HistoryError> {
        let index = self.read_log_on()?;
        if index.archived.is_missed && !index.archived.was_read {
            return Err(HistoryError::Unreadable(None));
        }
        index.reach(&self.options).ok_or(HistoryError::Off)
    }

    /// The publication before the present one, if known without reading the log and without waiting.
    pub(super) fn before_at_once(&self, seq: u64, current: Timestamp) -> Option<Timestamp> {
        self.index_at_once()?.before_known(seq, current, &self.options)
    }

    /// The publication before the present one.
    pub(super) fn before(
        &self,
        seq: u64,
        current: Timestamp,
    ) -> Result<Option<Timestamp>, HistoryError> {
        if let Some(before) = self.index().before_known(seq, current, &self.options) {
            return Ok(Some(before));
        }
        // The log nearly always has it, and is available even if the archive is not.
        let log = self.open()?;
        let mut index = self.index();
        let base = base_of(&*log, &index);
        Self::note_log(&mut index, &*log)?;
        if let Some(before) = index.before(current, base, &self.options) {
            return Ok(Some(before));
        }
        drop(index);
        let index = self.read_log_on()?;
        match index.before(current, base, &self.options) {
            None if index.archived.is_missed => Err(HistoryError::Unreadable(None)),
            before => Ok(before),
        }
    }

    /// The log or the lineage of the archive that a publication is read from.
    pub(super) fn lineage_of(&self, found: Found) -> Option<usize> {
        self.index().lineage_of(found)
    }

    /// The next publication after the reader's position.
    pub(super) fn next(&self, steps: &mut Steps) -> Result<Option<Published>, HistoryError> {
        loop {
            self.follow_catalogue(steps)?;
            if let Some(next) = steps.advance(&self.catalogues, &self.options)? {
                return Ok(Some(next));
            }
            if !self.goes_on(steps.at.seq)? {
                return Ok(None);
            }
            self.read_entries(steps)?;
            if steps.waiting.is_empty() {
                return Err(HistoryError::Unreadable(None));
            }
        }
    }

    /// True if a publication follows an entry.
    fn goes_on(&self, seq: u64) -> Result<bool, HistoryError> {
        let index = self.read_log_on()?;
        let (is_known, in_log) = (index.cut_after(seq).is_some(), seq > index.base_seq);
        drop(index);
        Ok(is_known || (!in_log && self.read_on()?.cut_after(seq).is_some()))
    }

    /// Ensures that the next publication is made with its own catalogue, if the log names it. The book is rebuilt with
    /// it, because it may contain what another catalogue did not know.
    pub(super) fn follow_catalogue(&self, steps: &mut Steps) -> Result<(), HistoryError> {
        let from = steps.at.seq;
        if from < steps.same_catalogue_to {
            return Ok(());
        }
        // Entries that were not read yet are not in another lineage for that reason.
        let known = Some(self.index()).filter(|index| from < index.next_seq);
        let known = known.and_then(|index| index.catalogue_after(from));
        let next = match known {
            Some(known) => Some(known),
            None => self.read_on()?.catalogue_after(from),
        };
        // No publication follows yet.
        let Some((version, to)) = next else { return Ok(()) };
        if let Some(version) = version {
            let kept = self.catalogues.get(self.archive.as_ref(), &version).map_err(unreadable)?;
            let catalogue = kept.ok_or_else(|| self.no_catalogue())?;
            if !Arc::ptr_eq(&catalogue, steps.book.catalogue()) {
                steps.book = self.book_with(steps.at, Some(&catalogue))?;
            }
        }
        steps.same_catalogue_to = to;
        Ok(())
    }

    /// The reason why a catalogue is missing: it is stored nowhere, or the archive is unavailable.
    fn no_catalogue(&self) -> HistoryError {
        match self.begun.is_missing() {
            true => HistoryError::Unreadable(None),
            false => HistoryError::NoCatalogue,
        }
    }

    /// Reads some entries after the reader's. A log that was lost and started again has other entries with the same
    /// numbers, so reading continues only from an entry that the reader has.
    pub(super) fn read_entries(&self, steps: &mut Steps) -> Result<(), HistoryError> {
        let (seq, at) = match steps.waiting.back() {
            Some(last) => (last.seq, last.at),
            None => (steps.at.seq, steps.at.at),
        };
        let is_same = |entry: &Entry| entry.seq == seq && is_of(entry, at);
        let log = self.open()?;
        if log.first_seq() <= seq {
            let mut entries = logged_from(&*log, seq)?;
            if entries.next().transpose()?.as_ref().is_some_and(is_same) {
                return steps.take_in(entries.take(READ_MAX));
            }
        }
        let Some(archive) = &self.archive else { return Err(self.not_kept()) };
        let commit = archive.newest().map_err(unreadable)?;
        for lineage in lineages_with(&commit, seq) {
            let entries = archive.entries(&commit, lineage, seq..=u64::MAX);
            let mut entries = entries.map(|entry| entry.map_err(unreadable));
            if entries.next().transpose()?.as_ref().is_some_and(is_same) {
                let held = steps.waiting.len();
                steps.take_in(entries.take(READ_MAX))?;
                // The log may begin right where the archive ends.
                let is_last = lineage + 1 == commit.lineages.len();
                if is_last && steps.waiting.len() == held && log.first_seq() == seq + 1 {
                    steps.take_in(logged_from(&*log, seq + 1)?.take(READ_MAX))?;
                }
                return Ok(());
            }
        }
        Err(self.not_kept())
    }

    /// The catalogue version of a publication that was found, if it differs from the present one.
    pub(super) fn other_version(&self, found: Found) -> Option<Arc<str>> {
        let index = self.index();
        let version = index.catalogue_at(index.lineage_of(found)?, found.seq);
        version.filter(|version| !self.catalogues.is_own(version))
    }

    /// The catalogue of another version, if it is stored.
    pub(super) fn other_catalogue(
        &self,
        version: &str,
    ) -> Result<Option<Arc<Catalogue>>, HistoryError> {
        self.catalogues.get(self.archive.as_ref(), version).map_err(unreadable)
    }

    /// All names that publications may have used, if known without reading or waiting.
    pub(super) fn known_at_once(&self) -> Option<Arc<Catalogue>> {
        let index = self.index_at_once()?;
        let archived = Some(&index.archived).filter(|archived| archived.was_read)?;
        self.catalogues.known_at_once(&archived.catalogues)
    }

    /// All names that publications may have used: those of all stored catalogues.
    pub(super) fn known(&self) -> Result<Arc<Catalogue>, HistoryError> {
        let index = self.read_on()?;
        if index.archived.is_missed && !index.archived.was_read {
            return Err(HistoryError::Unreadable(None));
        }
        let versions = index.archived.catalogues.clone();
        drop(index);
        // A temporarily missing archive must not count as having no catalogues.
        if self.begun.is_missing() {
            return Err(HistoryError::Unreadable(None));
        }
        self.catalogues.known(self.archive.as_ref(), &versions).map_err(unreadable)
    }

    /// Says how far history reaches now, since something is not kept any more.
    pub(super) fn not_kept(&self) -> HistoryError {
        match self.read_log_on().map(|index| index.reach(&self.options)) {
            Ok(Some(reach)) => HistoryError::NotKept(Box::new(reach)),
            Ok(None) => HistoryError::Unreadable(None),
            Err(error) => error,
        }
    }

    pub(super) fn open(&self) -> Result<Box<dyn ReadLog>, HistoryError> {
        self.options.log.view().map_err(unreadable)?.ok_or(HistoryError::Off)
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        // If a panic interrupted a change of the index, reading continues where it stopped.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index, unless another request is reading the log into it.
    pub(super) fn index_at_once(&self) -> Option<MutexGuard<'_, Index>> {
        match self.index.try_lock() {
            Ok(index) => Some(index),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The lineages of the archive that have an entry with a number, the latest first.
fn lineages_with(commit: &Commit, seq: u64) -> impl Iterator<Item = usize> {
    let has = move |lineage: &Lineage| (lineage.first_seq..=lineage.last_seq).contains(&seq);
    let lineages = commit.lineages.iter().enumerate().rev();
    lineages.filter(move |(_, lineage)| has(lineage)).map(|(at, _)| at)
}

/// The entries of a log from a number on.
pub(super) fn logged_from(
    log: &dyn ReadLog,
    seq: u64,
) -> Result<impl Iterator<Item = Result<Entry, HistoryError>>, HistoryError> {
    let logged = Replay::from(log, seq).map_err(unreadable)?;
    Ok(logged.map(|logged| {
        let Logged { seq, at, change, .. } = logged.map_err(unreadable)?;
        Ok(Entry { seq, at, change })
    }))
}

/// True if an entry has this time, or is the publication of this time.
pub(super) fn is_of(entry: &Entry, at: Timestamp) -> bool {
    entry.at == at || matches!(entry.change, Change::Cut { at: cut } if cut == at)
}

/// The last entry before all publications that a log can rebuild, together with the archive that it continues.
fn base_of(log: &dyn ReadLog, index: &Index) -> u64 {
    let first = log.first_seq();
    let base = match log.oldest_checkpoint() {
        _ if first == 1 => 0,
        Some(seq) => seq,
        None => u64::MAX,
    };
    let continued = index.continued.filter(|archived| first <= archived + 1);
    continued.map_or(base, |archived| base.min(archived))
}

pub(super) fn unreadable(error: impl Into<WorldError>) -> HistoryError {
    HistoryError::Unreadable(Some(Arc::new(error.into())))
}

#[cfg(test)]
mod tests;
