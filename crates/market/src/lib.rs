//! From messages to rows: which event a message is about, the book of prices and scores, and the immutable snapshots
//! that requests are answered from. How rows are written for clients is not known here ([`Wire`]).
//!
//! Everything here is a pure function of what it is given: no clock, no I/O, no randomness, no threads.

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
