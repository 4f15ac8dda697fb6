//! A cache of the events in files.

use std::collections::HashMap;
use std::sync::Arc;

use domain::EventId;

use crate::commit::TableFile;

/// The events in each file, by id. Files never change, so each is read once.
#[derive(Debug, Default)]
pub(crate) struct EventIndex {
    pub(crate) files: HashMap<String, Arc<[Held]>>,
}

/// An event with rows in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) event: EventId,
    /// The entries of its first and of its last row in the file.
    pub(crate) first_seq: u64,
    pub(crate) seq: u64,
    /// In `events`: its first row in the file says that it was not shown before.
    pub(crate) is_new: bool,
    /// In `events`: it is not shown any more. In `closing`: its start was withdrawn.
    pub(crate) is_gone: bool,
    /// Its announced start, in milliseconds, if the last row has it.
    pub(crate) commence_ms: Option<i64>,
}

impl EventIndex {
    pub(crate) fn find(&self, file: &TableFile, event: EventId) -> Option<Held> {
        let held = self.files.get(&file.path)?;
        let at = held.binary_search_by_key(&event, |held| held.event).ok()?;
        held.get(at).copied()
    }
}
