//! Encoded changes for the log, many in one buffer.

use market::{CHANGE_VERSION, Change};

/// A batch of changes, encoded for the log.
#[derive(Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

impl Entries {
    pub(crate) fn push(&mut self, change: &Change) {
        change.encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(from, to)| (CHANGE_VERSION, self.bytes.get(from..*to).unwrap_or_default()))
    }
}
