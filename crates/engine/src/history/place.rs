//! The position of a publication in its world.

use domain::Timestamp;
use market::Snapshot;

/// Position of a publication: its entry in the log or, in a simulated world, its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Entry(u64),
    Time(Timestamp),
}

/// A condition for a snapshot at a position. Publications that could not be logged have the entry of the last one that
/// could be.
pub type IsSought<'a> = &'a (dyn Fn(&Snapshot) -> bool + Sync);

impl Place {
    pub(super) fn is(self, seq: u64, at: Timestamp) -> bool {
        match self {
            Self::Entry(own) => own == seq,
            Self::Time(own) => own == at,
        }
    }

    /// The number of its entry, or its time in milliseconds.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Entry(seq) => seq,
            Self::Time(at) => u64::try_from(at.as_millis()).unwrap_or(0),
        }
    }

    pub(crate) fn is_of(self, snapshot: &Snapshot) -> bool {
        self.is(snapshot.seq, snapshot.cut_at)
    }
}
