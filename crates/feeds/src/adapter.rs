//! Upstream formats to what they offer: the pure half of the adapters.
//!
//! A kind of upstream is one [`Translator`]: bytes in, a [`Read`] out. It opens nothing, reads no clock and knows
//! nothing of schedules, withdrawals or the book; one runner turns reads into messages for all kinds. Translators never
//! panic, hold a small multiple of their input, and take prices from the text of the numbers.

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

/// Longest body that a translator takes, uncompressed.
pub const BODY_BYTES_MAX: usize = 32 << 20;
/// Most names of one read that are kept as unmapped; the others are only counted as dropped.
pub const UNMAPPED_MAX: usize = 200;
/// Most failed items of one read that are kept with path and reason.
pub const FAILURES_MAX: usize = 20;

/// One upstream format.
pub trait Translator: Send + fmt::Debug {
    /// Reads one body or stream line of `unit`. `at` is when the request was sent, or the line arrived.
    ///
    /// # Errors
    /// The input is not in the expected format, or too many of its items failed: nothing of it is to be accepted.
    fn translate(&mut self, unit: &str, bytes: &[u8], at: Timestamp) -> Result<Read, Drift>;

    /// What was held back and is due at `at`: streams that are conflated. Others hold nothing back.
    fn flush(&mut self, _at: Timestamp) -> Read {
        Read::default()
    }
}

/// What one input says about its unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    pub coverage: Coverage,
    /// One per ref, in the order of the input.
    pub listings: Vec<Listed>,
    /// One per ref, bookmaker, market and group. A market may belong to a ref that another read lists.
    pub markets: Vec<Offered>,
    pub scores: Vec<Scored>,
    /// Bookmakers and sports that this read confirms as a whole, where upstream gives no time per market: what a
    /// heartbeat is sent for.
    pub confirmed: Vec<(BookmakerId, SportId)>,
    /// What was left out on purpose or because it is unknown, by reason (see the constants in [`dropped`]).
    pub dropped: BTreeMap<&'static str, u64>,
    /// Names without a mapping: nothing of theirs is in this read.
    pub unmapped: BTreeMap<Unmapped, u64>,
    /// How many items (events and priced outcomes) were tried.
    pub items: u64,
    /// How many of them failed; they are not in this read.
    pub failed: u64,
    /// The first of them, with path and reason.
    pub failures: Vec<Drift>,
}

/// How much of its unit a read covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coverage {
    /// Only what changed: what is missing is as it was.
    #[default]
    Delta,
    /// Everything: a missing market has no prices any more, a missing event is gone.
    Complete,
    /// Every event, no prices: a missing event is gone; markets are as they were.
    Events,
    /// Every price: a missing market has no prices any more, but a missing event is still listed.
    Prices,
}

/// An event that upstream offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub reference: Box<str>,
    pub listing: Listing,
}

/// A bookmaker's market as upstream has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// Without outcomes where it is suspended, withdrawn or has no usable price.
    pub odds: OddsBody,
    /// When upstream says it last read or confirmed these prices; `None`: upstream gives no such time.
    pub ts: Option<Timestamp>,
    /// Upstream keeps the market but takes no bets: sent without waiting.
    pub suspended: bool,
}

/// A score that upstream reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    pub score: ScoreBody,
    pub ts: Option<Timestamp>,
}

/// An upstream name that has no counterpart here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unmapped {
    pub what: What,
    pub value: Box<str>,
}

/// What kind of name it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Bookmaker,
    Sport,
    Market,
}

impl What {
    /// As reports and metrics name it.
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
    /// A bookmaker that another adapter reads (A10).
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
    /// More than a read may hold.
    pub const TOO_MANY: &str = "too_many";
}

/// The input, or one item of it, is not what the translator expects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct Drift {
    /// Where: `events[3].start`, or `line 1, column 20`.
    pub path: String,
    /// What was wrong. It may quote a few characters of the input.
    pub reason: String,
}

impl Drift {
    pub fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

/// What the operator's configuration says to translators of every kind.
#[derive(Clone, Debug)]
pub struct Settings {
    pub catalogue: Arc<Catalogue>,
    /// `bookmaker`: whose prices these are, where the input does not say.
    pub bookmaker: Option<BookmakerId>,
    /// Bookmakers that other adapters read: dropped here as `owned` (A10).
    pub owned: BookmakerSet,
    /// `bookmakers`, `sports` and `markets_map` over the kind's own tables.
    pub names: Names,
}

impl Settings {
    /// No operator's mappings, no bookmaker.
    pub fn new(catalogue: Arc<Catalogue>) -> Self {
        Self { catalogue, bookmaker: None, owned: BookmakerSet::default(), names: Names::default() }
    }
}

impl Read {
    /// Moves all its times later.
    pub fn shift(&mut self, by: Duration) {
        let listings = self.listings.iter_mut().map(|listed| &mut listed.listing.commence_time);
        let markets = self.markets.iter_mut().filter_map(|market| market.ts.as_mut());
        let scores = self.scores.iter_mut().filter_map(|scored| scored.ts.as_mut());
        for time in listings.chain(markets).chain(scores) {
            *time = time.plus(by);
        }
    }

    /// Adds the next page of the same unit; its coverage stays.
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

    /// The read as messages: events, then prices, then scores. Withdrawals and heartbeats are the runner's.
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
/// One of them is not in the expected format; what came before it is in `out`.
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
