//! What is remembered of the events of files.

use std::collections::HashMap;
use std::sync::Arc;

use domain::EventId;

use crate::commit::TableFile;

/// The events of files, by their ids. Files never change, so each is read once.
#[derive(Debug, Default)]
pub(crate) struct EventIndex {
    pub(crate) files: HashMap<String, Arc<[Held]>>,
}

/// An event that a file has rows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) event: EventId,
    /// The last of its rows that the file has.
    pub(crate) seq: u64,
    /// In `events`: the first of its rows that the file has says that it was not shown before.
    pub(crate) is_new: bool,
    /// In `events`: it is not shown any more. In `closing`: it has not started after all.
    pub(crate) is_gone: bool,
    /// When it is announced for, in milliseconds, where the last row says that.
    pub(crate) commence_ms: Option<i64>,
}

impl EventIndex {
    pub(crate) fn find(&self, file: &TableFile, event: EventId) -> Option<Held> {
        let held = self.files.get(&file.path)?;
        let at = held.binary_search_by_key(&event, |held| held.event).ok()?;
        held.get(at).copied()
    }
}
