//! Successive publications of the past: one book, rolled forward from each to the next.

use std::collections::VecDeque;
use std::sync::Arc;

use archive::Entry;
use domain::Timestamp;
use market::{Book, Change};

use super::logged::LoggedPast;
use super::turns::{TurnWait, Work};
use super::{Found, History, HistoryError, Place, Source};
use crate::catalogues::version_of;
use crate::publication::Published;

/// The position of a reader of every publication.
#[derive(Debug)]
pub struct Walk {
    pub(super) history: Arc<History>,
    pub(super) steps: Box<Steps>,
}

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
    pub(super) fn advance(&mut self, past: &LoggedPast) -> Result<Option<Published>, HistoryError> {
        while !self.waiting.is_empty() {
            if let Some(published) = self.take_entry(past)? {
                return Ok(Some(published));
            }
        }
        Ok(None)
    }

    /// Rolls the book forward by the next entry. Returns a publication if the entry is one.
    pub(super) fn take_entry(
        &mut self,
        past: &LoggedPast,
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
        if version_of(&self.book).is_some_and(|then| !past.catalogues.is_of(&self.book, then)) {
            return Err(HistoryError::NoCatalogue);
        }
        Ok(Some(past.options.publication(&self.book, seq, at)))
    }
}

impl History {
    /// Starts after a client's position; `current` is the time of the present publication. `None`: there is none that
    /// can be shown. `key`: the requesting key.
    pub(crate) async fn walk(
        self: &Arc<Self>,
        place: Place,
        current: Timestamp,
        key: u64,
    ) -> Result<Option<Walk>, HistoryError> {
        let mut wait = TurnWait::default();
        let found = self.find_place(place, current, &mut wait).await?;
        let Some(found) = found else { return Ok(None) };
        let begin = move |source: &Source| match source {
            Source::Simulated(past) => Ok(past.book(found.at)),
            Source::Logged(past) => past.book(found),
            Source::Nothing => Err(HistoryError::Off),
        };
        let book = self.on_source(Work::Rebuild, Some(key), &mut wait, begin).await?;
        let steps = Box::new(Steps::new(book, found));
        Ok(Some(Walk { history: Arc::clone(self), steps }))
    }
}

impl Walk {
    /// The next publication; `current` is the time of the present one. `None`: there is none yet.
    ///
    /// # Errors
    /// It cannot be rebuilt now, or history ends here.
    pub async fn next(
        self,
        current: Timestamp,
    ) -> Result<(Self, Option<Arc<Published>>), HistoryError> {
        let Self { history, mut steps } = self;
        let step = move |source: &Source| {
            let next = match source {
                Source::Simulated(past) => Ok(past.next(&mut steps, current)),
                Source::Logged(past) => past.next(&mut steps),
                Source::Nothing => Err(HistoryError::Off),
            };
            next.map(|next| (steps, next))
        };
        let wait = &mut TurnWait::default();
        let (steps, next) = history.on_source(Work::Read, None, wait, step).await?;
        let next = next.map(|next| Arc::new(next.of_the_past(0)));
        Ok((Self { history, steps }, next))
    }
}
