//! The messages that feeds push.

use std::fmt;

use crate::catalogue::{BookmakerId, SportId};
use crate::keyed::keyed;
use crate::line::Line;
use crate::market::Market;
use crate::price::Quote;
use crate::score::{Period, Status};
use crate::time::Timestamp;

/// Longest `ref` and `group`, in bytes.
pub const REF_BYTES_MAX: usize = 128;
/// Longest name of a participant, competition or tournament, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Most words in one name. Names of people have up to eight, of tournaments with their sponsors up to twenty.
pub const WORDS_MAX: usize = 24;
/// Minimum number of words after a dash to be a remark and not part of a name.
const REMARK_WORDS_MIN: usize = 3;
/// Longest name in plain Latin letters, in bytes: a character of some scripts becomes several letters.
pub const PLAIN_BYTES_MAX: usize = 400;
/// Most outcomes in one market and most players in one field; the largest real fields have 156.
pub const OUTCOMES_MAX: usize = 512;
/// Most periods in one score.
pub const PERIODS_MAX: usize = 100;
/// Most markets that one event may have over all bookmakers and pairings; a golf week has some hundreds. It also
/// bounds how many markets one message closes or renames.
pub const MARKETS_MAX: usize = 4_000;
/// Maximum time by which a source's `ts` may be ahead of our clock, in milliseconds.
pub const FUTURE_TS_MS_MAX: i64 = 5_000;
/// Longest `fresh_for`, in seconds: data read less than once a day is not odds.
pub const FRESH_FOR_S_MAX: u32 = 86_400;

/// A name without a remark at its end: "(exhibition, no bets on the distance)", " - not before 8 pm". Some sources
/// put such remarks into the field of the name.
pub fn without_remark(name: &str) -> &str {
    let begins = name.char_indices().filter(|(at, c)| {
        let rest = name.get(at + c.len_utf8()..).unwrap_or_default();
        match c {
            '(' | '[' | '{' | ';' | '*' => true,
            // A dash with space around it and several words after it: dashes in names have no spaces, or one word
            // after them.
            '-' | '\u{2013}' | '\u{2014}' => {
                let before = name.get(..*at).unwrap_or_default();
                let spaced = rest.trim_start_matches('-').starts_with(' ')
                    && before.trim_end_matches('-').ends_with(' ');
                spaced && rest.split_whitespace().nth(REMARK_WORDS_MIN - 1).is_some()
            }
            _ => false,
        }
    });
    let kept =
        begins.map(|(at, _)| name.get(..at).unwrap_or_default().trim_end_matches([' ', '-']));
    let mut kept = kept.filter(|kept| kept.contains(char::is_alphanumeric));
    kept.next().unwrap_or(name)
}

/// One message of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedMessage {
    /// When the source says it happened; the arrival time if it does not say.
    pub ts: Option<Timestamp>,
    /// Number of seconds after `ts` for which the source counts as fresh, if longer than usual. Only odds and
    /// heartbeats carry it.
    pub fresh_for_s: Option<u32>,
    pub body: Body,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The source offers this event; a repeated message corrects it.
    Event { reference: Box<str>, listing: Listing },
    /// A bookmaker's whole current market; no outcomes means no prices.
    Odds(OddsBody),
    /// The current state of an event.
    Score(ScoreBody),
    /// The source withdrew the event.
    Remove { reference: Box<str> },
    /// The bookmaker was read and nothing changed.
    Heartbeat { bookmaker: BookmakerId, sport: Option<SportId> },
}

/// An event as a source lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub sport: SportId,
    pub competition: Box<str>,
    pub commence_time: Timestamp,
    pub fixture: Fixture,
}

/// The participants of an event: the nulls of the wire follow from the variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Fixture {
    HeadToHead { home: Box<str>, away: Box<str> },
    Field { title: Box<str> },
}

impl fmt::Display for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeadToHead { home, away } => write!(f, "{home} v {away}"),
            Self::Field { title } => f.write_str(title),
        }
    }
}

/// The body of an `odds` message.
#[derive(Clone, Debug, PartialEq)]
pub struct OddsBody {
    pub reference: Box<str>,
    pub bookmaker: BookmakerId,
    pub market: Market,
    /// One pairing among several of the same market (D30).
    pub group: Option<Box<str>>,
    /// Empty when suspended or withdrawn.
    pub outcomes: Vec<OfferedOutcome>,
}

/// One outcome, with the source's name for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedOutcome {
    pub name: Box<str>,
    pub quote: Quote,
    pub point: Option<Line>,
}

/// The body of a `score` message, with the sides in the source's order.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreBody {
    pub reference: Box<str>,
    pub status: Status,
    pub home: Option<i32>,
    pub away: Option<i32>,
    pub periods: Vec<Period>,
    pub winner: Option<Box<str>>,
    pub leaders: Vec<(Box<str>, Vec<i32>)>,
    pub correction: Correction,
}

/// Whether a score says that an earlier report was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    Yes,
    No,
}

/// The reason why one message was refused. The slugs are part of the push API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectCode {
    InvalidJson,
    InvalidMessage,
    UnknownType,
    UnknownSport,
    UnknownBookmaker,
    WrongBookmaker,
    UnknownMarket,
    MarketNotInSport,
    InvalidPrice,
    InvalidPoint,
    UnknownRef,
    UnknownOutcome,
    FutureTs,
    IllegalTransition,
    TooLarge,
}

keyed!(RejectCode, slug {
    InvalidJson = "invalid_json",
    InvalidMessage = "invalid_message",
    UnknownType = "unknown_type",
    UnknownSport = "unknown_sport",
    UnknownBookmaker = "unknown_bookmaker",
    WrongBookmaker = "wrong_bookmaker",
    UnknownMarket = "unknown_market",
    MarketNotInSport = "market_not_in_sport",
    InvalidPrice = "invalid_price",
    InvalidPoint = "invalid_point",
    UnknownRef = "unknown_ref",
    UnknownOutcome = "unknown_outcome",
    FutureTs = "future_ts",
    IllegalTransition = "illegal_transition",
    TooLarge = "too_large",
});

/// A refused message: the code for programs, the sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Reject {
    pub code: RejectCode,
    pub message: String,
}

impl Reject {
    pub fn new(code: RejectCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_is_no_part_of_the_name() {
        for (written, name) in [
            ("Mika Orsk (exhibition, wagers void if it goes the distance)", "Mika Orsk"),
            ("Mika Orsk [BRA]", "Mika Orsk"),
            ("Mika Orsk - bout is not on the main card", "Mika Orsk"),
            ("Mika Orsk; all bets action", "Mika Orsk"),
            ("Mika Orsk (unclosed", "Mika Orsk"),
            ("Mika Orsk - Berg", "Mika Orsk - Berg"),
            ("Mika Orsk-Berg de la Rocha", "Mika Orsk-Berg de la Rocha"),
            ("(TBD)", "(TBD)"),
            ("(A) Orsk", "(A) Orsk"),
            ("Orsk - ", "Orsk - "),
        ] {
            assert_eq!(without_remark(written), name);
        }
    }
}
