//! What the log and the archive have had added since somebody looked.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use archive::{Archive, Commit, Publication, Table};
use change_log::ReadLog;

use super::{LoggedPast, base_of, unreadable};
use crate::error::{Chain, WorldError};
use crate::history::HistoryError;
use crate::history::index::Index;
use crate::replay::Replay;

/// How often it is looked what the archive has, however many ask: that is a request to a bucket, and what is added to
/// the archive is in the log for longer.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl LoggedPast {
    /// Reads what the log and the archive have had added, and forgets what can be made again no longer.
    pub(in crate::history) fn read_on(&self) -> Result<MutexGuard<'_, Index>, HistoryError> {
        self.look_again()?;
        self.read_log_on()
    }

    /// Looks what the archive has had added, where that is due. It may wait for its store.
    pub(in crate::history) fn look_again(&self) -> Result<(), HistoryError> {
        let log = self.open()?;
        self.read_archive_again(base_of(&*log));
        Ok(())
    }

    /// Whether the archive is to be looked at, unless somebody who is at it has seen before what it has.
    pub(in crate::history) fn is_look_due(&self) -> bool {
        if self.archive.is_none() || self.has_news.load(Ordering::Acquire) {
            return self.archive.is_some();
        }
        match self.looked.try_lock() {
            Ok(looked) => looked.is_none_or(|(at, _)| at.elapsed() >= LOOK_INTERVAL),
            Err(_) => self.index_at_once().is_none_or(|index| !index.archived.was_read),
        }
    }

    /// The same of the log alone, and of what is known of the archive.
    pub(in crate::history) fn read_log_on(&self) -> Result<MutexGuard<'_, Index>, HistoryError> {
        let log = self.open()?;
        let base = base_of(&*log);
        let mut index = self.index();
        if self.archive.is_none() {
            index.archived.was_read = true;
        } else if index.looked_base != Some(base) {
            // What the log does not have any more, the archive may have had added.
            self.note_news();
            (index.archived.failed, index.archived.is_missed) = (true, true);
        }
        index.is_stale = index.read_base.is_some_and(|read| read != base);
        index.begin_after(base);
        Self::note_log(&mut index, &*log)?;
        if let Some(last) = index.cuts.last().map(|cut| cut.at) {
            index.begin_at(last.minus(self.options.history.retention));
        }
        Ok(index)
    }

    /// Adds what the log has had added.
    pub(super) fn note_log(index: &mut Index, log: &dyn ReadLog) -> Result<(), HistoryError> {
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
        index.looked_base = Some(base);
        match archived {
            Ok(read) => {
                index.read_base = Some(base);
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
    pub(in crate::history) fn note_news(&self) {
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
}
