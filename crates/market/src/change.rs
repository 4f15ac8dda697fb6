//! The content of the log: one entry for each accepted change of a book.
//!
//! The book decides on a message and returns a change; absorbing the change is what alters the book, now and at every
//! replay. The entry contains everything that a replay needs, with full keys and names, so that it outlives the
//! catalogue's numbering and the matching rules of its time.

use serde::{Deserialize, Serialize};

use domain::message::Fixture;
use domain::score::Period;
use domain::{EventId, Line, Market, Quote, Side, Status, Timestamp};

use crate::matching::{Alias, Doubt, Evidence};

/// Version of the entries written now, stored with each in the log. New variants go to the end of [`Change`]; any
/// other alteration needs a new version and a decoder for the old one.
pub const CHANGE_VERSION: u8 = 1;

/// The way in which a world creates event ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ids {
    /// The next of a sequence, scrambled with the installation's salt.
    Minted { salt: u64 },
    /// From the feed's ref, so that every process has the same ids (the sandbox).
    Derived { salt: u64 },
}

/// One accepted change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// The book starts empty: the first entry of a log, and the sandbox's at each start.
    Founded { ids: Ids },
    /// A feed lists an event under its ref, or corrects the listing.
    Listed(Listed),
    /// A bookmaker's whole current market; no outcomes means no prices.
    Quoted(Quoted),
    /// The held prices were read again.
    Confirmed { event: EventId, market: MarketKey, ts: Timestamp },
    /// The current score of an event.
    Scored { event: EventId, score: Reported, ts: Timestamp },
    /// A feed withdrew its offer.
    Withdrawn { feed: Box<str>, reference: Box<str>, ts: Timestamp },
    /// A bookmaker was read and nothing had changed.
    Beat { bookmaker: Box<str>, sport: Option<Box<str>>, ts: Timestamp },
    /// The event is removed from the book (D24).
    Expired { event: EventId },
    /// A source that was silent for long and has no prices is removed.
    SourceForgotten { bookmaker: Box<str>, sport: Box<str> },
    /// A snapshot of everything before this entry was published (D14).
    Cut { at: Timestamp },
    /// The reason why a ref was taken for an event that others list.
    Joined(Joined),
    /// Two events were found to be one; the younger's id is an alias of the elder from now on.
    Merged { elder: EventId, younger: EventId, swapped: bool, by: By },
    /// An operator split a ref from an event.
    Split { event: EventId, feed: Box<str>, reference: Box<str>, into: EventId },
    /// Two events may be one.
    Doubted { one: EventId, other: EventId, doubt: Doubt, evidence: Evidence },
    /// The two are no longer in doubt.
    Cleared { one: EventId, other: EventId },
    /// An operator declared that they are different events.
    Parted { one: EventId, other: EventId },
    /// An alias was learned.
    Taught { alias: Alias, by: By },
    /// An alias no longer holds.
    Untaught { alias: Alias },
    /// An operator removed everything that a feed listed.
    Dropped { feed: Box<str> },
    /// The next read of a bookmaker's sport keeps it fresh for this long. It precedes that read, so that a follower
    /// of the log can combine both into one message.
    Paced { bookmaker: Box<str>, sport: Box<str>, fresh_for_s: u32 },
    /// The configuration of the writer of the following entries.
    Configured(Configured),
    /// Publications from `from` up to the next one at `to` are not in the log, because it could not be written.
    Unlogged { from: Timestamp, to: Timestamp },
}

/// The configuration on which publications depend besides the entries, and their writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// A number unique to the writer, so that entries of two writers are never confused.
    pub writer: u64,
    pub refresh_interval_ms: u64,
    pub stale_after_ms: u64,
    /// The version of the catalogue.
    pub catalogue: Box<str>,
    /// The version of the program.
    pub program: Box<str>,
}

/// The listing that a ref matched when it was taken for the same event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    pub feed: Box<str>,
    pub reference: Box<str>,
    pub with_feed: Box<str>,
    pub with_reference: Box<str>,
    pub evidence: Evidence,
}

/// The origin of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum By {
    Evidence,
    Operator,
}

/// The event of a feed's ref, and the feed's listing of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub event: EventId,
    pub feed: Box<str>,
    pub reference: Box<str>,
    pub sport: Box<str>,
    pub competition: Box<str>,
    pub commence_time: Timestamp,
    pub fixture: Fixture,
    /// True if the feed's home is the event's away.
    pub swapped: bool,
    pub ts: Timestamp,
}

/// A market of an event at a bookmaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketKey {
    pub bookmaker: Box<str>,
    pub market: Market,
    pub group: Option<Box<str>>,
}

/// New prices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quoted {
    pub event: EventId,
    pub market: MarketKey,
    pub feed: Box<str>,
    pub outcomes: Vec<QuotedOutcome>,
    pub ts: Timestamp,
}

/// One outcome, identified by its subject and not by a feed's spelling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuotedOutcome {
    pub who: Who,
    pub quote: Quote,
    pub point: Option<Line>,
}

/// The subject of an outcome.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Who {
    Side(Side),
    Draw,
    Over,
    Under,
    /// A player of the field, in the event's spelling.
    Player(Box<str>),
}

/// A score with players by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    pub status: Status,
    pub home: Option<i32>,
    pub away: Option<i32>,
    pub periods: Vec<Period>,
    pub winner: Option<Side>,
    pub leaders: Vec<(Box<str>, Vec<i32>)>,
}

/// This version cannot read the entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("log entry has version {0}; this program reads up to {CHANGE_VERSION}")]
    Version(u8),
    #[error("log entry cannot be decoded")]
    Undecodable,
}

impl Change {
    /// Appends the entry's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        // Serialising plain data into a growing vector cannot fail.
        if let Ok(bytes) = postcard::to_extend(self, std::mem::take(out)) {
            *out = bytes;
        }
    }

    /// Reads what [`Change::encode`] wrote.
    ///
    /// # Errors
    /// The version is unknown or the bytes are not such an entry.
    pub fn decode(version: u8, bytes: &[u8]) -> Result<Self, ChangeError> {
        if version != CHANGE_VERSION {
            return Err(ChangeError::Version(version));
        }
        postcard::from_bytes(bytes).map_err(|_| ChangeError::Undecodable)
    }
}
