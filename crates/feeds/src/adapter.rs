//! Translation of upstream formats to offers: the pure half of the adapters.
//!
//! A kind of upstream is one [`Translator`]: bytes in, a [`Read`] out. It opens nothing, reads no clock and knows
//! nothing of schedules, withdrawals or the book; one runner turns reads into messages for all kinds. Translators
//! never panic, hold a small multiple of their input, and take prices from the text of the numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::catalogue::{BookmakerId, BookmakerSet, Catalogue, SportId};
use domain::message::{Body, FeedMessage, Listing, OddsBody, ScoreBody};
use domain::time::Timestamp;

use crate::push;

pub mod betfair;
mod gather;
pub mod mapped;
mod names;
mod pull;
pub mod the_odds_api;

pub(crate) use gather::Gather;
pub use names::{Known, Names};

/// Maximum size of a body, uncompressed.
pub const BODY_BYTES_MAX: usize = 32 << 20;
/// Maximum number of names of one read that are kept as unmapped; further ones are only counted as dropped.
pub const UNMAPPED_MAX: usize = 200;
/// Maximum number of failed items of one read that are kept with path and reason.
pub const FAILURES_MAX: usize = 20;

/// One upstream format.
pub trait Translator: Send + fmt::Debug {
    /// Reads one body or stream line of `unit`. `at` is when the request was sent, or the line arrived.
    ///
    /// # Errors
    /// The input is not in the expected format, or too many of its items failed: none of it must be accepted.
    fn translate(&mut self, unit: &str, bytes: &[u8], at: Timestamp) -> Result<Read, Drift>;

    /// Held-back changes that are due at `at`, for conflated streams. Others hold nothing back.
    fn flush(&mut self, _at: Timestamp) -> Read {
        Read::default()
    }
}

/// The content of one input for its unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    pub coverage: Coverage,
    /// One per ref, in the order of the input.
    pub listings: Vec<Listed>,
    /// One per ref, bookmaker, market and group. A market may belong to a ref that another read lists.
    pub markets: Vec<Offered>,
    pub scores: Vec<Scored>,
    /// Bookmakers and sports that this read confirms as a whole, if upstream gives no time per market. Heartbeats are
    /// sent for them.
    pub confirmed: Vec<(BookmakerId, SportId)>,
    /// Number of items left out on purpose or because they are unknown, by reason (see the constants in [`dropped`]).
    pub dropped: BTreeMap<&'static str, u64>,
    /// Names without a mapping; their offers are not in this read.
    pub unmapped: BTreeMap<Unmapped, u64>,
    /// Number of items (events and priced outcomes) that were tried.
    pub items: u64,
    /// Number of items that failed; they are not in this read.
    pub failed: u64,
    /// The first failures, with path and reason.
    pub failures: Vec<Drift>,
}

/// The part of its unit that a read covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coverage {
    /// Only changes: items that are missing are unchanged.
    #[default]
    Delta,
    /// Everything: a missing market no longer has prices, a missing event is gone.
    Complete,
    /// Every event, no prices: a missing event is gone; markets are unchanged.
    Events,
    /// Every price: a missing market no longer has prices, but a missing event is still listed.
    Prices,
}

/// An event that upstream offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub reference: Box<str>,
    pub listing: Listing,
}

/// A bookmaker's market as upstream offers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// Has no outcomes if it is suspended, withdrawn or has no usable price.
    pub odds: OddsBody,
    /// Time at which upstream last read or confirmed these prices; `None` if upstream gives no such time.
    pub ts: Option<Timestamp>,
    /// True if upstream keeps the market but takes no bets; sent without delay.
    pub suspended: bool,
}

/// A score that upstream reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    pub score: ScoreBody,
    pub ts: Option<Timestamp>,
}

/// An upstream name without a mapping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unmapped {
    pub what: What,
    pub value: Box<str>,
}

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Bookmaker,
    Sport,
    Market,
}

impl What {
    /// Its name in reports and metrics.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Bookmaker => "bookmaker",
            Self::Sport => "sport",
            Self::Market => "market",
        }
    }

    /// The configuration key that maps such names.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Bookmaker => "bookmakers",
            Self::Sport => "sports",
            Self::Market => "markets_map",
        }
    }
}

/// Reasons in [`Read::dropped`].
pub mod dropped {
    /// A bookmaker that belongs to another adapter (A10).
    pub const OWNED: &str = "owned";
    /// Mapped to nothing by the operator or by the kind's own tables.
    pub const IGNORED: &str = "ignored";
    /// No mapping (A11).
    pub const UNMAPPED: &str = "unmapped";
    /// A lay price of an exchange.
    pub const LAY: &str = "lay";
    /// The sport does not have this market.
    pub const NOT_IN_SPORT: &str = "market_not_in_sport";
    /// An event whose names or start are not known yet.
    pub const INCOMPLETE: &str = "incomplete";
    /// A single item that could not be read while most could (A18).
    pub const FAILED: &str = "failed";
    /// More items than a read may hold.
    pub const TOO_MANY: &str = "too_many";
}

/// The input, or one item of it, is not what the translator expects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct Drift {
    /// Position in the input: `events[3].start`, or `line 1, column 20`.
    pub path: String,
    /// Description of the fault. It may quote a few characters of the input.
    pub reason: String,
}

impl Drift {
    pub fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

/// The operator's settings for translators of every kind.
#[derive(Clone, Debug)]
pub struct Settings {
    pub catalogue: Arc<Catalogue>,
    /// `bookmaker`: the bookmaker of the prices, if the input does not name it.
    pub bookmaker: Option<BookmakerId>,
    /// Bookmakers that belong to other adapters: dropped here as `owned` (A10).
    pub owned: BookmakerSet,
    /// `bookmakers`, `sports` and `markets_map`, which override the kind's own tables.
    pub names: Names,
}

impl Settings {
    /// Settings without mappings of the operator and without a bookmaker.
    pub fn new(catalogue: Arc<Catalogue>) -> Self {
        Self { catalogue, bookmaker: None, owned: BookmakerSet::default(), names: Names::default() }
    }
}

impl Read {
    /// Shifts all its times to later.
    pub fn shift(&mut self, by: Duration) {
        let listings = self.listings.iter_mut().map(|listed| &mut listed.listing.commence_time);
        let markets = self.markets.iter_mut().filter_map(|market| market.ts.as_mut());
        let scores = self.scores.iter_mut().filter_map(|scored| scored.ts.as_mut());
        for time in listings.chain(markets).chain(scores) {
            *time = time.plus(by);
        }
    }

    /// Appends the next page of the same unit; the coverage stays.
    pub fn append(&mut self, next: Self) {
        self.listings.extend(next.listings);
        self.markets.extend(next.markets);
        self.scores.extend(next.scores);
        let new = next.confirmed.into_iter().filter(|pair| !self.confirmed.contains(pair));
        let new: Vec<_> = new.collect();
        self.confirmed.extend(new);
        for (reason, count) in next.dropped {
            *self.dropped.entry(reason).or_default() += count;
        }
        for (name, count) in next.unmapped {
            if self.unmapped.len() < UNMAPPED_MAX || self.unmapped.contains_key(&name) {
                *self.unmapped.entry(name).or_default() += count;
            }
        }
        self.items += next.items;
        self.failed += next.failed;
        self.failures.extend(next.failures);
        self.failures.truncate(FAILURES_MAX);
    }

    /// The read as messages: events, then prices, then scores. The runner adds withdrawals and heartbeats.
    pub fn messages(&self) -> impl Iterator<Item = FeedMessage> {
        let events = self.listings.iter().map(|listed| FeedMessage {
            fresh_for_s: None,
            ts: None,
            body: Body::Event {
                reference: listed.reference.clone(),
                listing: listed.listing.clone(),
            },
        });
        let odds = self.markets.iter().map(|offered| FeedMessage {
            ts: offered.ts,
            fresh_for_s: None,
            body: Body::Odds(offered.odds.clone()),
        });
        let scores = self.scores.iter().map(|scored| FeedMessage {
            ts: scored.ts,
            fresh_for_s: None,
            body: Body::Score(scored.score.clone()),
        });
        events.chain(odds).chain(scores)
    }
}

/// Translates bodies or stream lines, each with its unit, to NDJSON as `feeds translate` prints it.
///
/// # Errors
/// One of them is not in the expected format; the messages before it are in `out`.
pub fn translate_bodies<'b>(
    translator: &mut dyn Translator,
    bodies: impl Iterator<Item = (&'b str, &'b [u8])>,
    at: Timestamp,
    catalogue: &Catalogue,
    out: &mut String,
) -> Result<(), Drift> {
    for (unit, body) in bodies {
        let read = translator.translate(unit, body, at)?;
        read.messages().for_each(|message| push::write_line(&message, catalogue, out));
    }
    let rest = translator.flush(at);
    rest.messages().for_each(|message| push::write_line(&message, catalogue, out));
    Ok(())
}
