//! Books of the past, from the log or the archive.

use std::sync::Arc;

use archive::Archive;
use change_log::ReadLog;
use domain::Catalogue;
use market::Book;
use market::book::ImagePart;

use super::{LoggedPast, unreadable};
use crate::archiver::{book_from, continues};
use crate::catalogues::Made;
use crate::history::index::IN_LOG;
use crate::history::{Found, HistoryError};
use crate::replay::{self, Logged, Replay};

impl LoggedPast {
    /// The book of a publication, or of a state between two.
    pub(in crate::history) fn book(&self, found: Found) -> Result<Book, HistoryError> {
        self.book_with(found, None)
    }

    /// The same with the given catalogue of the next publication, or else with that of its time.
    pub(in crate::history) fn book_with(
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
            // A state between two publications.
            (None, Some(archive)) if found.seq <= base => {
                match self.archived(found.seq, Some(found.at))? {
                    Some((lineage, _)) => self.archived_book(archive, lineage, found, catalogue),
                    None => Err(self.not_kept()),
                }
            }
            _ => self.logged_book(found, catalogue),
        }
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
        // A publication depends on its catalogue, and on every entry before it.
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

    fn logged_book(
        &self,
        found: Found,
        catalogue: Option<&Arc<Catalogue>>,
    ) -> Result<Book, HistoryError> {
        let mut log = self.open()?;
        // Keeps the entries from being deleted while they are read.
        let _position = log.register().map_err(unreadable)?;
        let last = if catalogue.is_some() { found.seq } else { found.seq - 1 };
        let checkpoint = log.checkpoint_up_to(last).map_err(unreadable)?;
        if checkpoint.is_none() && log.first_seq() != 1 {
            return self.continued_book(&*log, found, catalogue);
        }
        let base = checkpoint.as_ref().map_or(0, |held| held.seq);
        // Only checkpoints of that time, and the archive, have the content that remained after a time with another
        // catalogue.
        let needed = if catalogue.is_some() { found.seq + 1 } else { found.seq };
        if let Some(archive) = &self.archive
            && self.index().passes_other_catalogue(base, needed)
            && let Some(lineage) = self.archived_as_in(&*log, needed)?
        {
            return self.archived_book(archive, lineage, found, catalogue);
        }
        let expected = self.index().catalogue_at(IN_LOG, found.seq);
        let make = |catalogue| {
            let limited = (self.options.limits, catalogue);
            let begun = replay::begin(checkpoint.as_ref(), ImagePart::All, limited);
            let (book, base) = begun.map_err(unreadable)?;
            self.replayed(book, &*log, (base, found.seq))
        };
        match catalogue {
            Some(catalogue) => make(Arc::clone(catalogue)),
            None => self.made(expected.as_deref(), make),
        }
    }

    /// A book of a log that has no checkpoint before it: of the archive that the log continues, rolled forward.
    fn continued_book(
        &self,
        log: &dyn ReadLog,
        found: Found,
        catalogue: Option<&Arc<Catalogue>>,
    ) -> Result<Book, HistoryError> {
        let Some(archive) = &self.archive else { return Err(self.not_kept()) };
        let commit = archive.newest().map_err(unreadable)?;
        let Some(last) = commit.lineages.last() else { return Err(self.not_kept()) };
        if !continues(log, last).map_err(unreadable)? {
            return Err(self.not_kept());
        }
        let (lineage, end) = (commit.lineages.len() - 1, last.last_seq);
        if found.seq <= end {
            return self.archived_book(archive, lineage, found, catalogue);
        }
        let expected = self.index().catalogue_at(IN_LOG, found.seq);
        let image = commit.image_before_next(lineage, end);
        let begin = image.map_or(0, |image| image.seq);
        if last.missing.iter().any(|(_, to)| begin <= *to) {
            return Err(HistoryError::Unreadable(None));
        }
        let make = |catalogue: Arc<Catalogue>| {
            let options = (&self.options, catalogue);
            let book = book_from(archive, &commit, image, (lineage, end), options);
            self.replayed(book.map_err(unreadable)?, log, (end, found.seq))
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
            // A lost entry may have been part of it.
            let whole = seq == to && replay.losses().entries == 0;
            return match whole {
                true => Ok(book),
                false => Err(HistoryError::Unreadable(None)),
            };
        }
        Err(self.not_kept())
    }
}
