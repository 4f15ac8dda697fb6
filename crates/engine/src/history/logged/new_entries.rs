//! Additions to the log and the archive since the last read.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use archive::{Archive, Commit, Publication, Table};
use change_log::ReadLog;

use super::{LoggedPast, base_of, unreadable};
use crate::archiver::continues;
use crate::error::{Chain, WorldError};
use crate::history::HistoryError;
use crate::history::index::Index;
use crate::replay::Replay;

/// Minimum time between reads of the archive's newest commit, however many requests there are: each is a request to a
/// bucket, and the log keeps archived entries for longer than this.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Additions to the archive.
struct Additions {
    commit: Commit,
    publications: Vec<Publication>,
    log: Box<dyn ReadLog>,
    /// True if the log has the archive's last entry.
    is_continued: bool,
}

impl LoggedPast {
    /// Reads additions to the log and the archive, and drops publications that can no longer be rebuilt.
    pub(in crate::history) fn read_on(&self) -> Result<MutexGuard<'_, Index>, HistoryError> {
        self.look_again()?;
        self.read_log_on()
    }

    /// Reads additions to the archive if that is due. It may wait for the store.
    pub(in crate::history) fn look_again(&self) -> Result<(), HistoryError> {
        let log = self.open()?;
        let base = base_of(&*log, &self.index());
        self.read_archive_again(base);
        Ok(())
    }

    /// True if the archive has to be read, unless another request is reading it and its content was read before.
    pub(in crate::history) fn is_look_due(&self) -> bool {
        if self.archive.is_none() || self.has_news.load(Ordering::Acquire) {
            return self.archive.is_some();
        }
        match self.looked.try_lock() {
            Ok(looked) => looked.is_none_or(|(at, _)| at.elapsed() >= LOOK_INTERVAL),
            Err(_) => self.index_at_once().is_none_or(|index| !index.archived.was_read),
        }
    }

    /// The same for the log alone, together with the known content of the archive.
    pub(in crate::history) fn read_log_on(&self) -> Result<MutexGuard<'_, Index>, HistoryError> {
        // Before the log is opened: later publications are not in it.
        let set_backs = self.set_backs.load(Ordering::Acquire);
        let log = self.open()?;
        let mut index = self.index();
        let oldest = |index: &Index| Some(index.last()?.minus(self.options.history.retention));
        self.note_all(&mut index, &*log)?;
        if oldest(&index).is_some_and(|oldest| index.has_dropped(oldest)) {
            // The clock was ahead: what was dropped is not past retention.
            *index = Index::default();
            self.note_all(&mut index, &*log)?;
        }
        index.set_backs = set_backs;
        if let Some(oldest) = oldest(&index) {
            index.begin_at(oldest);
        }
        Ok(index)
    }

    fn note_all(&self, index: &mut Index, log: &dyn ReadLog) -> Result<(), HistoryError> {
        let base = base_of(log, index);
        if self.archive.is_none() {
            index.archived.was_read = true;
        } else if index.looked_base != Some(base) {
            // Entries that the log no longer has may have been added to the archive.
            self.note_news();
            (index.archived.failed, index.archived.is_missed) = (true, true);
        }
        index.is_stale = self.archive.is_some() && index.read_base.is_some_and(|read| read != base);
        index.begin_after(base);
        Self::note_log(index, log)
    }

    /// Adds new entries of the log.
    pub(super) fn note_log(index: &mut Index, log: &dyn ReadLog) -> Result<(), HistoryError> {
        let from = index.next_seq.max(log.first_seq());
        for logged in Replay::from(log, from).map_err(unreadable)? {
            index.note(&logged.map_err(unreadable)?);
        }
        Ok(())
    }

    /// Reads additions to the archive, unless it was just read and the log, which begins after entry `base`, has not
    /// dropped anything since.
    fn read_archive_again(&self, base: u64) {
        let is_known = |index: &Index| index.archived.was_read && index.base_seq == base;
        let mut looked = match self.looked.try_lock() {
            Ok(looked) => looked,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another request is reading it, and may have to wait for the store.
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
        let known = {
            let index = self.index();
            (index.archived.commit, index.archived.files.clone())
        };
        let commit = known.0;
        let (archived, mut base) = (self.read_archive(known), base);
        let mut index = self.index();
        if index.archived.commit != commit {
            // It was begun again meanwhile, without what was known.
            self.note_news();
            return;
        }
        match archived {
            Ok(read) => {
                if let Some(Additions { commit, publications, log, is_continued }) = read {
                    index.note_archive(&commit, &publications);
                    let last = commit.lineages.last().filter(|_| is_continued);
                    index.continued = last.map(|last| last.last_seq);
                    base = base_of(&*log, &index);
                    // What the log alone has is read again with the next look at it.
                    index.begin_after(base);
                }
                index.read_base = Some(base);
                let held = &mut index.archived;
                (held.was_read, held.failed, held.is_missed) = (true, false, false);
            }
            Err(error) => {
                index.archived.failed = true;
                // A new service starts its archive a moment later; until then its log has everything.
                index.archived.is_missed = base != 0 || self.may_be_begun();
                tracing::warn!(event = "archive.unreadable", error = %Chain(&error), "the archive cannot be read; requests that need it are refused");
            }
        }
        index.looked_base = Some(base);
        *looked = Some((Instant::now(), base));
    }

    /// Notes that the archive has changed: the next request reads it again.
    pub(in crate::history) fn note_news(&self) {
        self.has_news.store(true, Ordering::Release);
    }

    /// True unless it is known that there is no archive.
    fn may_be_begun(&self) -> bool {
        self.begun.is_missing() || self.archive.as_ref().is_some_and(Archive::is_begun)
    }

    /// Reads additions to what is known of the archive: a commit, and the files whose publications were read.
    fn read_archive(
        &self,
        (number, known): (u64, HashSet<String>),
    ) -> Result<Option<Additions>, WorldError> {
        let Some(archive) = &self.archive else { return Ok(None) };
        if archive.newest_number()? == number {
            return Ok(None);
        }
        let commit = archive.newest()?;
        self.begun.note();
        let mut new = commit.clone();
        new.files.retain(|file| file.table == Table::Epochs && !known.contains(&file.path));
        let publications = archive.publications(&new)?;
        // Opened after the archive was read, so that it has what was archived.
        let Some(log) = self.options.log.view()? else { return Ok(None) };
        let last = commit.lineages.last();
        let is_continued = last.map(|last| continues(&*log, last)).transpose()?.unwrap_or(false);
        Ok(Some(Additions { commit, publications, log, is_continued }))
    }
}
