//! The past of a live world, from its log and, where that does not reach back any more, from its archive: the newest
//! book before a publication, and the entries from there to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use archive::{Archive, Commit, Entry, Lineage, Publication, Table};
use change_log::ReadLog;
use domain::{Catalogue, Timestamp};
use market::{Book, Change, Ids};

use super::index::{IN_LOG, Index};
use super::rolled::Rolled;
use super::tail::Tail;
use super::walk::Steps;
use super::{Found, HistoryError, Place, Reach};
use crate::archiver::book_from;
use crate::begun::Begun;
use crate::catalogues::{Catalogues, Made};
use crate::error::{Chain, WorldError};
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
    /// When it was last looked what the archive has, and the last entry before the log then.
    looked: Mutex<Option<(Instant, u64)>>,
    /// The archive has changed since.
    has_news: AtomicBool,
    pub(super) tail: Tail,
    pub(super) rolled: Rolled,
}

/// Entries that are held decoded for who is shown every publication.
const READ_MAX: usize = 20_000;
/// How often it is looked what the archive has, however many ask: that is a request to a bucket, and what is added to
/// the archive is in the log for longer.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

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
            tail: Tail::default(),
            rolled: Rolled::default(),
        }
    }

    /// The publication at or before an instant, where that is known without a look at the log and without waiting.
    pub(super) fn find_at_once(&self, at: Timestamp, current: Timestamp) -> Option<Found> {
        self.index_at_once()?.find_known(at, current, &self.options)
    }

    pub(super) fn find(&self, at: Timestamp, current: Timestamp) -> Result<Found, HistoryError> {
        // Somebody else may have looked meanwhile.
        if let Some(found) = self.index().find_known(at, current, &self.options) {
            return Ok(found);
        }
        self.read_on()?.find(at, &self.options)
    }

    /// The publication of an entry or, where it is between two, what the book was after it.
    pub(super) fn find_entry(&self, seq: u64) -> Result<Option<Found>, HistoryError> {
        let index = self.read_on()?;
        let (cut, next) = (index.cut_of(seq), index.cut_after(seq));
        let in_log = seq > index.base_seq;
        let found = |at| Found { seq, at, previous: None, next: next.map(|next| next.at) };
        if let Some(cut) = cut {
            return Ok(Some(found(cut.at)));
        }
        drop(index);
        if !in_log {
            // Which one clients mean, they can tell: it is the one that was written last, or none that goes on.
            return Ok(self.archived(seq, None)?.map(|(_, entry)| found(entry.at)));
        }
        let logged = Replay::from(&*self.open()?, seq).map_err(unreadable)?.next();
        let logged = logged.transpose().map_err(unreadable)?;
        Ok(logged.filter(|logged| logged.seq == seq).map(|logged| found(logged.at)))
    }

    /// Whether the log does not reach back any more to an entry, or to the publication of a time.
    pub(super) fn is_archived(&self, place: Place) -> Result<bool, HistoryError> {
        let index = self.read_on()?;
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

    /// Which part of the archive has an entry, and the entry: a log that was lost or restored has others under the same
    /// numbers. `at` says which of them; without it, it is the one that was written last.
    fn archived(
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

    /// Which part of the archive has the same entry as the log.
    fn archived_as_in(&self, log: &dyn ReadLog, seq: u64) -> Result<Option<usize>, HistoryError> {
        let logged = Replay::from(log, seq).map_err(unreadable)?.next();
        let logged = logged.transpose().map_err(unreadable)?.filter(|logged| logged.seq == seq);
        let Some(Logged { at, .. }) = logged else { return Ok(None) };
        Ok(self.archived(seq, Some(at))?.map(|(lineage, _)| lineage))
    }

    pub(super) fn reach(&self) -> Result<Reach, HistoryError> {
        let index = self.read_on()?;
        if index.archived.is_missed && !index.archived.was_read {
            return Err(HistoryError::Unreadable(None));
        }
        index.reach(&self.options).ok_or(HistoryError::Off)
    }

    /// The publication before that of the present, where it is known without a look at the log and without waiting.
    pub(super) fn before_at_once(&self, seq: u64, current: Timestamp) -> Option<Timestamp> {
        self.index_at_once()?.before_known(seq, current, &self.options)
    }

    /// The publication before that of the present.
    pub(super) fn before(
        &self,
        seq: u64,
        current: Timestamp,
    ) -> Result<Option<Timestamp>, HistoryError> {
        if let Some(before) = self.index().before_known(seq, current, &self.options) {
            return Ok(Some(before));
        }
        // The log nearly always has it, and is there where the archive is not.
        let log = self.open()?;
        let base = base_of(&*log);
        let mut index = self.index();
        Self::note_log(&mut index, &*log)?;
        if let Some(before) = index.before(current, base, &self.options) {
            return Ok(Some(before));
        }
        drop(index);
        let index = self.read_on()?;
        match index.before(current, base, &self.options) {
            None if index.archived.is_missed => Err(HistoryError::Unreadable(None)),
            before => Ok(before),
        }
    }

    /// Which log or part of the archive a publication is read from.
    pub(super) fn lineage_of(&self, found: Found) -> Option<usize> {
        self.index().lineage_of(found)
    }

    /// The book of a publication, or of what was shown between two.
    pub(super) fn book(&self, found: Found) -> Result<Book, HistoryError> {
        self.book_with(found, None)
    }

    /// The same with that of the next publication, where one is given, and with that of its time otherwise.
    fn book_with(
        &self,
        found: Found,
        catalogue: Option<&Arc<Catalogue>>,
    ) -> Result<Book, HistoryError> {
        let (lineage, base) = {
            let index = self.index();
            (index.lineage_of(found), index.base_seq)
        };
        match (lineage, &self.archive) {
            (Some(lineage), Some(archive)) if lineage != IN_LOG => {
                self.archived_book(archive, lineage, found, catalogue)
            }
            // No publication: it is between two.
            (None, Some(archive)) if found.seq <= base => {
                match self.archived(found.seq, Some(found.at))? {
                    Some((lineage, _)) => self.archived_book(archive, lineage, found, catalogue),
                    None => Err(self.not_kept()),
                }
            }
            _ => self.logged_book(found, catalogue),
        }
    }

    /// The next publication after the one that somebody is at.
    pub(super) fn next(&self, steps: &mut Steps) -> Result<Option<Published>, HistoryError> {
        loop {
            self.follow_catalogue(steps)?;
            if let Some(next) = steps.advance(self)? {
                return Ok(Some(next));
            }
            let from = steps.at.seq;
            if self.read_on()?.cut_after(from).is_none() {
                return Ok(None);
            }
            self.read_entries(steps)?;
            if steps.waiting.is_empty() {
                return Err(HistoryError::Unreadable(None));
            }
        }
    }

    /// Sees to it that the next publication is made with its own catalogue, as far as the log says which. The book is
    /// made again with it: what another catalogue did not know may be in it.
    pub(super) fn follow_catalogue(&self, steps: &mut Steps) -> Result<(), HistoryError> {
        let from = steps.at.seq;
        if from < steps.same_catalogue_to {
            return Ok(());
        }
        // What was not read yet is not in another lineage for that.
        let known = Some(self.index()).filter(|index| from < index.next_seq);
        let known = known.and_then(|index| index.catalogue_after(from));
        let next = match known {
            Some(known) => Some(known),
            None => self.read_on()?.catalogue_after(from),
        };
        // There is none yet.
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

    /// Why a catalogue is not to be had: it is kept nowhere, or the archive is away.
    fn no_catalogue(&self) -> HistoryError {
        match self.begun.is_missing() {
            true => HistoryError::Unreadable(None),
            false => HistoryError::NoCatalogue,
        }
    }

    /// Reads some entries after those that somebody has. A log that was lost and begun anew has other entries under the
    /// same numbers: what is read goes on from an entry that they have.
    pub(super) fn read_entries(&self, steps: &mut Steps) -> Result<(), HistoryError> {
        let (seq, at) = match steps.waiting.back() {
            Some(last) => (last.seq, last.at),
            None => (steps.at.seq, steps.at.at),
        };
        let is_same = |entry: &Entry| entry.seq == seq && is_of(entry, at);
        let log = self.open()?;
        let logged_from = |seq| {
            let logged = Replay::from(&*log, seq).map_err(unreadable)?;
            Ok::<_, HistoryError>(logged.map(|logged| {
                let Logged { seq, at, change, .. } = logged.map_err(unreadable)?;
                Ok(Entry { seq, at, change })
            }))
        };
        if log.first_seq() <= seq {
            let mut entries = logged_from(seq)?;
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
                    steps.take_in(logged_from(seq + 1)?.take(READ_MAX))?;
                }
                return Ok(());
            }
        }
        Err(self.not_kept())
    }

    fn archived_book(
        &self,
        archive: &Archive,
        lineage: usize,
        found: Found,
        catalogue: Option<&Arc<Catalogue>>,
    ) -> Result<Book, HistoryError> {
        let commit = archive.newest().map_err(unreadable)?;
        let image = match catalogue {
            Some(_) => commit.image_before_next(lineage, found.seq),
            None => commit.image_up_to(lineage, found.seq),
        };
        let make = |catalogue: Arc<Catalogue>| {
            let options = (&self.options, catalogue);
            book_from(archive, &commit, image, (lineage, found.seq), options).map_err(unreadable)
        };
        let expected = self.index().catalogue_at(lineage, found.seq);
        // What was published depends on the catalogue, and on every entry before it.
        let book = match catalogue {
            Some(catalogue) => make(Arc::clone(catalogue))?,
            None => self.made(expected.as_deref(), make)?,
        };
        let lost = commit.lineages.get(lineage).map_or(&[][..], |lineage| &lineage.missing);
        let base = image.map_or(0, |image| image.seq);
        let whole = !lost.iter().any(|(first, _)| (base..=found.seq).contains(first));
        if !whole {
            return Err(HistoryError::Unreadable(None));
        }
        Ok(book)
    }

    /// A book with the catalogue of its time.
    fn made(
        &self,
        expected: Option<&str>,
        make: impl Fn(Arc<Catalogue>) -> Result<Book, HistoryError>,
    ) -> Result<Book, HistoryError> {
        match self.catalogues.make(self.archive.as_ref(), expected, make)? {
            Made::AsThen(book) => Ok(book),
            Made::Otherwise(_) => Err(self.no_catalogue()),
        }
    }

    /// The catalogue of a publication that was found, where it is another than that of the present and is kept.
    pub(super) fn other_catalogue(
        &self,
        found: Found,
    ) -> Result<Option<Arc<Catalogue>>, HistoryError> {
        let index = self.index();
        let version =
            index.lineage_of(found).and_then(|lineage| index.catalogue_at(lineage, found.seq));
        drop(index);
        let Some(version) = version else { return Ok(None) };
        let then = self.catalogues.get(self.archive.as_ref(), &version).map_err(unreadable)?;
        Ok(then.filter(|then| !Arc::ptr_eq(then, self.catalogues.own())))
    }

    /// All names that publications may have had, where that is known without a look and without waiting.
    pub(super) fn known_at_once(&self) -> Option<Arc<Catalogue>> {
        let index = self.index_at_once()?;
        let archived = Some(&index.archived).filter(|archived| archived.was_read)?;
        self.catalogues.known_at_once(&archived.catalogues)
    }

    /// All names that publications may have had: those of all catalogues that are kept.
    pub(super) fn known(&self) -> Result<Arc<Catalogue>, HistoryError> {
        let index = self.read_on()?;
        if index.archived.is_missed && !index.archived.was_read {
            return Err(HistoryError::Unreadable(None));
        }
        let versions = index.archived.catalogues.clone();
        drop(index);
        // What is not there for a moment is not forgotten for good.
        if self.begun.is_missing() {
            return Err(HistoryError::Unreadable(None));
        }
        self.catalogues.known(self.archive.as_ref(), &versions).map_err(unreadable)
    }

    fn logged_book(
        &self,
        found: Found,
        catalogue: Option<&Arc<Catalogue>>,
    ) -> Result<Book, HistoryError> {
        let mut log = self.open()?;
        // Nothing that is to be read is deleted meanwhile.
        let _position = log.register().map_err(unreadable)?;
        let last = if catalogue.is_some() { found.seq } else { found.seq - 1 };
        let checkpoint = log.checkpoint_up_to(last).map_err(unreadable)?;
        if checkpoint.is_none() && log.first_seq() != 1 {
            return Err(self.not_kept());
        }
        let base = checkpoint.as_ref().map_or(0, |held| held.seq);
        // What was left after a time with another catalogue, only checkpoints of that time say, and the archive.
        let needed = if catalogue.is_some() { found.seq + 1 } else { found.seq };
        if let Some(archive) = &self.archive
            && self.index().passes_other_catalogue(base, needed)
            && let Some(lineage) = self.archived_as_in(&*log, needed)?
        {
            return self.archived_book(archive, lineage, found, catalogue);
        }
        let expected = self.index().catalogue_at(IN_LOG, found.seq);
        let make = |catalogue| {
            let (mut book, base) = match &checkpoint {
                Some(held) => {
                    let book = Book::from_image(held.version, &held.payload, catalogue);
                    (book.map_err(unreadable)?, held.seq)
                }
                None => (Book::new(catalogue, Ids::Minted { salt: 0 }), 0),
            };
            book.set_limits(self.options.limits);
            self.replayed(book, &*log, (base, found.seq))
        };
        match catalogue {
            Some(catalogue) => make(Arc::clone(catalogue)),
            None => self.made(expected.as_deref(), make),
        }
    }

    /// A book as of entry `base`, rolled forward to entry `to`.
    fn replayed(
        &self,
        mut book: Book,
        log: &dyn ReadLog,
        (base, to): (u64, u64),
    ) -> Result<Book, HistoryError> {
        if base == to {
            return Ok(book);
        }
        let mut replay = Replay::from(log, base + 1).map_err(unreadable)?;
        for logged in replay.by_ref() {
            let Logged { seq, at, change, .. } = logged.map_err(unreadable)?;
            book.absorb(&change, at);
            if seq < to {
                continue;
            }
            // An entry that was lost may have been one of those that made it.
            let whole = seq == to && replay.losses().entries == 0;
            return match whole {
                true => Ok(book),
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

    pub(super) fn open(&self) -> Result<Box<dyn ReadLog>, HistoryError> {
        self.options.log.view().map_err(unreadable)?.ok_or(HistoryError::Off)
    }

    /// Reads what the log and the archive have had added, and forgets what can be made again no longer.
    fn read_on(&self) -> Result<MutexGuard<'_, Index>, HistoryError> {
        let log = self.open()?;
        let base = base_of(&*log);
        self.read_archive_again(base);
        let mut index = self.index();
        index.begin_after(base);
        Self::note_log(&mut index, &*log)?;
        if let Some(last) = index.cuts.last().map(|cut| cut.at) {
            index.begin_at(last.minus(self.options.history.retention));
        }
        Ok(index)
    }

    /// Adds what the log has had added.
    fn note_log(index: &mut Index, log: &dyn ReadLog) -> Result<(), HistoryError> {
        let from = index.next_seq.max(log.first_seq());
        for logged in Replay::from(log, from).map_err(unreadable)? {
            index.note(&logged.map_err(unreadable)?);
        }
        Ok(())
    }

    /// Reads what the archive has had added, unless that was just done and the log, which begins after entry `base`,
    /// has not forgotten anything since.
    fn read_archive_again(&self, base: u64) {
        let is_known = |index: &Index| index.archived.was_read && index.base_seq == base;
        let mut looked = match self.looked.try_lock() {
            Ok(looked) => looked,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody else is at it, and may have to wait for the store.
            Err(TryLockError::WouldBlock) if is_known(&self.index()) => return,
            Err(TryLockError::WouldBlock) => {
                self.looked.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        let is_recent =
            looked.is_some_and(|(at, base_then)| at.elapsed() < LOOK_INTERVAL && base_then == base);
        if is_recent && !self.has_news.swap(false, Ordering::AcqRel) {
            return;
        }
        let archived = self.read_archive();
        let mut index = self.index();
        match archived {
            Ok(read) => {
                if let Some((commit, publications)) = read {
                    index.note_archive(&commit, &publications);
                }
                let held = &mut index.archived;
                (held.was_read, held.failed, held.is_missed) = (true, false, false);
            }
            Err(error) => {
                index.archived.failed = true;
                // A new service begins its archive a moment later; until then its log has all there is.
                index.archived.is_missed = base != 0 || self.may_be_begun();
                tracing::warn!(event = "archive.unreadable", error = %Chain(&error), "the archive cannot be read; requests that need it are refused");
            }
        }
        *looked = Some((Instant::now(), base));
    }

    /// Has the archive looked at again by the next who asks: it has changed.
    pub(super) fn note_news(&self) {
        self.has_news.store(true, Ordering::Release);
    }

    /// Whether there is an archive, or it cannot be said that there is none.
    fn may_be_begun(&self) -> bool {
        self.begun.is_missing() || self.archive.as_ref().is_some_and(Archive::is_begun)
    }

    /// What the archive has had added.
    fn read_archive(&self) -> Result<Option<(Commit, Vec<Publication>)>, WorldError> {
        let Some(archive) = &self.archive else { return Ok(None) };
        if archive.newest_number()? == self.index().archived.commit {
            return Ok(None);
        }
        let commit = archive.newest()?;
        self.begun.note();
        let known = self.index().archived.files.clone();
        let mut new = commit.clone();
        new.files.retain(|file| file.table == Table::Epochs && !known.contains(&file.path));
        let publications = archive.publications(&new)?;
        Ok(Some((commit, publications)))
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        // An index that was left in the middle of a change is read again from where it is.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index, unless somebody is reading the log into it.
    fn index_at_once(&self) -> Option<MutexGuard<'_, Index>> {
        match self.index.try_lock() {
            Ok(index) => Some(index),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The parts of the archive that have an entry of a number, the one that was written last first.
fn lineages_with(commit: &Commit, seq: u64) -> impl Iterator<Item = usize> {
    let has = move |lineage: &Lineage| (lineage.first_seq..=lineage.last_seq).contains(&seq);
    let lineages = commit.lineages.iter().enumerate().rev();
    lineages.filter(move |(_, lineage)| has(lineage)).map(|(at, _)| at)
}

/// Whether an entry is of a time, or the publication of that time.
fn is_of(entry: &Entry, at: Timestamp) -> bool {
    entry.at == at || matches!(entry.change, Change::Cut { at: cut } if cut == at)
}

/// The last entry before all publications that a log can make again.
fn base_of(log: &dyn ReadLog) -> u64 {
    match log.oldest_checkpoint() {
        _ if log.first_seq() == 1 => 0,
        Some(seq) => seq,
        None => u64::MAX,
    }
}

pub(super) fn unreadable(error: impl Into<WorldError>) -> HistoryError {
    HistoryError::Unreadable(Some(Arc::new(error.into())))
}

#[cfg(test)]
mod tests;
