//! The results of the lines of a push.

use domain::message::Reject;
use market::Oddity;

/// The durable results of a batch.
#[derive(Debug, Default)]
pub struct Receipt {
    pub accepted: u64,
    pub unchanged: u64,
    pub superseded: u64,
    pub rejected: Vec<(usize, Reject)>,
    pub odd: Vec<Anomaly>,
    /// Refs that were matched to an event of another feed.
    pub joins: u64,
}

impl Receipt {
    /// Adds the results of a further part of the same batch.
    pub(crate) fn add(&mut self, part: Self) {
        self.accepted += part.accepted;
        self.unchanged += part.unchanged;
        self.superseded += part.superseded;
        self.joins += part.joins;
        self.rejected.extend(part.rejected);
        self.odd.extend(part.odd);
    }
}

/// A message that is accepted although a correct source rarely sends it.
#[derive(Debug)]
pub struct Anomaly {
    pub line: usize,
    pub what: Oddity,
    pub text: String,
}
