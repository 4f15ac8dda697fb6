//! What the log holds: one entry for each accepted change of a book.
//!
//! The book decides on a message and yields a change; absorbing the change is what alters the book, now and
//! at every replay. Whatever a replay needs is in the entry, with keys and names in full, so that an entry
//! outlives the catalogue's numbering and the matching rules that led to it.

use serde::{Deserialize, Serialize};

use domain::message::Fixture;
use domain::score::Period;
use domain::{EventId, Line, Market, Quote, Side, Status, Timestamp};

use crate::matching::{Alias, Doubt, Evidence};

/// Version of the entries written now, kept beside each in the log. New variants go to the end of
/// [`Change`]; any other alteration needs a new version and a decoder for the old one.
pub const CHANGE_VERSION: u8 = 1;

/// How event ids come about in a world.
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
    /// The book starts from nothing: the first entry of a log, and the sandbox's at each start.
    Founded { ids: Ids },
    /// A feed lists an event under a ref of its own, or corrects what it said.
    Listed(Listed),
    /// A bookmaker's market as it stands; no outcomes means no prices.
    Quoted(Quoted),
    /// The prices held were read again.
    Confirmed { event: EventId, market: MarketKey, ts: Timestamp },
    /// Where the event stands.
    Scored { event: EventId, score: Reported, ts: Timestamp },
    /// A feed withdrew its offer.
    Withdrawn { feed: Box<str>, reference: Box<str>, ts: Timestamp },
    /// A bookmaker was read and nothing had changed.
    Beat { bookmaker: Box<str>, sport: Option<Box<str>>, ts: Timestamp },
    /// The event's time here is over (D24).
    Expired { event: EventId },
    /// A bookmaker stopped sending a sport long ago and has nothing left in it.
    SourceForgotten { bookmaker: Box<str>, sport: Box<str> },
    /// A snapshot of everything before this entry was published (D14).
    Cut { at: Timestamp },
    /// Why a ref was taken for an event that others list.
    Joined(Joined),
    /// Two events turned out to be one; the younger's id stands for the elder from now on.
    Merged { elder: EventId, younger: EventId, swapped: bool, by: By },
    /// An operator took a ref out of an event.
    Split { event: EventId, feed: Box<str>, reference: Box<str>, into: EventId },
    /// Two events may be one.
    Doubted { one: EventId, other: EventId, doubt: Doubt, evidence: Evidence },
    /// It is no longer in doubt whether they are.
    Cleared { one: EventId, other: EventId },
    /// An operator said that they are two.
    Parted { one: EventId, other: EventId },
    /// Something was learnt about a name.
    Taught { alias: Alias, by: By },
    /// It does not hold any more.
    Untaught { alias: Alias },
    /// An operator had all that a feed listed taken away.
    Dropped { feed: Box<str> },
    /// The next read of a bookmaker's sport keeps it fresh for this long. It comes before that read, so that whoever
    /// follows the log can tell both as one message.
    Paced { bookmaker: Box<str>, sport: Box<str>, fresh_for_s: u32 },
    /// What the writer of the entries that follow runs with.
    Configured(Configured),
    /// What was published from `from` on, up to the next publication at `to`, is not in the log: it could not be
    /// written.
    Unlogged { from: Timestamp, to: Timestamp },
}

/// What publications depend on besides the entries, and who writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// A number of the writer's own: entries of two writers are never taken for each other.
    pub writer: u64,
    pub refresh_interval_ms: u64,
    pub stale_after_ms: u64,
    /// The version of the catalogue.
    pub catalogue: Box<str>,
    /// The version of the program.
    pub program: Box<str>,
}

/// The listing a ref agreed with when it was taken for the same event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    pub feed: Box<str>,
    pub reference: Box<str>,
    pub with_feed: Box<str>,
    pub with_reference: Box<str>,
    pub evidence: Evidence,
}

/// On whose word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum By {
    Evidence,
    Operator,
}

/// Which event a feed's ref stands for, and what the feed says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub event: EventId,
    pub feed: Box<str>,
    pub reference: Box<str>,
    pub sport: Box<str>,
    pub competition: Box<str>,
    pub commence_time: Timestamp,
    pub fixture: Fixture,
    /// The feed's home is the event's away.
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

/// One outcome, identified by who it is rather than by a feed's spelling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuotedOutcome {
    pub who: Who,
    pub quote: Quote,
    pub point: Option<Line>,
}

/// Who or what an outcome is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Who {
    Side(Side),
    Draw,
    Over,
    Under,
    /// A player of the field, by the event's spelling.
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

/// The entry is not one this version can read.
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
        // Serialising plain data into a growing vector has no way to fail.
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
