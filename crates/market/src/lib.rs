//! Converts messages to rows: resolves the event of a message, keeps the book of prices and scores, and builds the
//! immutable snapshots that requests are answered from. The encoding of rows for clients is not part of this crate
//! ([`Wire`]).
//!
//! Everything here is a pure function of its arguments: no clock, no I/O, no randomness, no threads.

pub mod analysis;
pub mod book;
pub mod change;
pub mod coverage;
pub mod freshness;
mod matching;
pub mod record;
pub mod rendered;
pub mod select;
pub mod snapshot;

pub use book::{
    Book, DOUBTS_MAX, Decision, Lifetimes, Limits, Load, NotDone, Oddity, OpenOffer, Operation,
    Profile, ProfileRef, Touched, Unsure, Verdict,
};
pub use change::{By, CHANGE_VERSION, Change, ChangeError, Configured, Ids};
pub use coverage::{Cell, CellFilter, Exclusion};
pub use freshness::{Confirmed, Health, Source, Vitals};
pub use matching::effort;
pub use matching::plain_letters;
pub use matching::{
    ALIASES_MAX, ALIASES_OF_FEED_MAX, Alias, BatchMatcher, Doubt, Evidence, Found, Likeness,
    Meaning, Tie,
};
pub use record::{Recorded, Recorder};
pub use select::{BoutSelection, EventSelection, OddsSelection, Page, ScoreSelection};
pub use snapshot::{Layer, Snapshot, SportView, Wire};
