//! What became of the lines of a push.

use domain::message::Reject;
use market::Oddity;

/// What became of a batch, durably.
#[derive(Debug, Default)]
pub struct Receipt {
    pub accepted: u64,
    pub unchanged: u64,
    pub superseded: u64,
    pub rejected: Vec<(usize, Reject)>,
    pub odd: Vec<Anomaly>,
    /// Refs that were taken for an event that another feed lists.
    pub joins: u64,
}

impl Receipt {
    /// Adds what became of a further part of the same batch.
    pub(crate) fn add(&mut self, part: Self) {
        self.accepted += part.accepted;
        self.unchanged += part.unchanged;
        self.superseded += part.superseded;
        self.joins += part.joins;
        self.rejected.extend(part.rejected);
        self.odd.extend(part.odd);
    }
}

/// A message that was taken although a sound source rarely sends such.
#[derive(Debug)]
pub struct Anomaly {
    pub line: usize,
    pub what: Oddity,
    pub text: String,
}
