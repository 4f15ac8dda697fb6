//! A book that is rolled forward from one publication of the past to the next.

use std::collections::VecDeque;

use archive::Entry;
use market::{Book, Change};

use super::{Found, HistoryError};
use crate::catalogues::{Catalogues, version_of};
use crate::options::WorldOptions;
use crate::publication::Published;

/// The book of a publication, and the entries after it.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) book: Book,
    pub(super) at: Found,
    /// Entries after it that are already read.
    pub(super) waiting: VecDeque<Entry>,
    /// The last publication known to have the book's catalogue.
    pub(super) same_catalogue_to: u64,
}

impl Steps {
    pub(super) fn new(book: Book, at: Found) -> Self {
        Self { book, at, waiting: VecDeque::new(), same_catalogue_to: 0 }
    }

    /// Adds entries to the waiting ones.
    pub(super) fn take_in(
        &mut self,
        entries: impl Iterator<Item = Result<Entry, HistoryError>>,
    ) -> Result<(), HistoryError> {
        for entry in entries {
            self.waiting.push_back(entry?);
        }
        Ok(())
    }

    /// Rolls the book forward to the next publication among the waiting entries.
    pub(super) fn advance(
        &mut self,
        catalogues: &Catalogues,
        options: &WorldOptions,
    ) -> Result<Option<Published>, HistoryError> {
        while !self.waiting.is_empty() {
            if let Some(published) = self.take_entry(catalogues, options)? {
                return Ok(Some(published));
            }
        }
        Ok(None)
    }

    /// Rolls the book forward by the next entry. Returns a publication if the entry is one.
    pub(super) fn take_entry(
        &mut self,
        catalogues: &Catalogues,
        options: &WorldOptions,
    ) -> Result<Option<Published>, HistoryError> {
        let Some(Entry { seq, at, change }) = self.waiting.pop_front() else { return Ok(None) };
        // A lost entry may have been part of it.
        if seq != self.at.seq + 1 {
            return Err(HistoryError::Unreadable(None));
        }
        self.book.absorb(&change, at);
        (self.at.seq, self.at.at) = (seq, at);
        let Change::Cut { at } = change else { return Ok(None) };
        self.at.at = at;
        if version_of(&self.book).is_some_and(|then| !catalogues.is_of(&self.book, then)) {
            return Err(HistoryError::NoCatalogue);
        }
        Ok(Some(options.publication(&self.book, seq, at)))
    }
}
