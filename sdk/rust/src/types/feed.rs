//! Messages that a feed pushes. [`crate::Feed::push`] accepts these, and any other value that serialises to JSON.

use serde::{Serialize, Serializer};

use super::{Market, Status};
use crate::macros::message;
use crate::price::{OddsFormat, Price};

/// One line of a push.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FeedMessage {
    /// The source offers an event.
    Event(FeedEvent),
    /// A market of a bookmaker.
    Odds(FeedOdds),
    /// The state of an event.
    Score(FeedScore),
    /// The source withdrew an event.
    Remove(FeedRemove),
    /// The source was read; nothing changed.
    Heartbeat(FeedHeartbeat),
}

impl Serialize for FeedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Event(message) => message.serialize(serializer),
            Self::Odds(message) => message.serialize(serializer),
            Self::Score(message) => message.serialize(serializer),
            Self::Remove(message) => message.serialize(serializer),
            Self::Heartbeat(message) => message.serialize(serializer),
        }
    }
}

macro_rules! from_message {
    ($($variant:ident($name:ident))*) => {
        $(
            impl From<$name> for FeedMessage {
                fn from(message: $name) -> Self {
                    Self::$variant(message)
                }
            }
        )*
    };
}

from_message! {
    Event(FeedEvent) Odds(FeedOdds) Score(FeedScore) Remove(FeedRemove) Heartbeat(FeedHeartbeat)
}

message! {
    /// The source offers this event; sent again, it is a correction.
    FeedEvent = "event" {
        /// The source's own id of the event, at most 128 bytes.
        r#ref: String,
        /// Sport key.
        sport: String,
        /// League, tour or card.
        competition: String,
        /// When it starts.
        commence_time: String,
    } optional {
        /// One participant; for head-to-head sports.
        home: String,
        /// The other participant; for head-to-head sports.
        away: String,
        /// The tournament; for golf.
        title: String,
        /// When it happened, by the source; the arrival time if absent.
        ts: String,
    }
}

message! {
    /// A bookmaker's complete market at present; it replaces the previous one.
    FeedOdds = "odds" {
        /// The source's own id of the event.
        r#ref: String,
        /// The market.
        market: Market,
    } optional {
        /// Bookmaker key. May be omitted if the token is bound to a bookmaker.
        bookmaker: String,
        /// How prices are written.
        format: OddsFormat,
        /// The whole market; empty means no prices.
        outcomes: Vec<FeedOutcome>,
        /// True means no prices.
        suspended: bool,
        /// Names one pairing among several of the same market (`matchup`, `three_ball`).
        group: String,
        /// Number of seconds after `ts` for which the source is fresh, if longer than the service's own limit.
        fresh_for: u32,
        /// When it happened, by the source; the arrival time if absent.
        ts: String,
    }
}

message! {
    /// An outcome, with the source's name.
    FeedOutcome {
        /// Participant or side.
        name: String,
        /// In the message's format.
        price: Price,
    } optional {
        /// For spreads and totals.
        point: f64,
    }
}

message! {
    /// The state of the event.
    FeedScore = "score" {
        /// The source's own id of the event.
        r#ref: String,
        /// The event's status.
        status: Status,
    } optional {
        /// The score of the source's home side.
        home_score: i64,
        /// The score of the source's away side.
        away_score: i64,
        /// Sets, quarters or rounds so far.
        periods: Vec<FeedPeriod>,
        /// The winner; fight sports.
        winner: String,
        /// Golf: best first.
        leaders: Vec<FeedLeader>,
        /// An earlier report was wrong; without it a score that goes backwards is rejected.
        correction: bool,
        /// When it happened, by the source; the arrival time if absent.
        ts: String,
    }
}

message! {
    /// A set, quarter or round.
    FeedPeriod {
        /// Counted from 1.
        number: u64,
        /// The home side's score in it.
        home_score: i64,
        /// The away side's score in it.
        away_score: i64,
    } optional {}
}

message! {
    /// A player of a field.
    FeedLeader {
        /// The player.
        name: String,
        /// Totals of the rounds played.
        rounds: Vec<i64>,
    } optional {}
}

message! {
    /// The source withdrew the event. It is removed when the last feed that listed it has withdrawn it.
    FeedRemove = "remove" {
        /// The source's own id of the event.
        r#ref: String,
    } optional {
        /// When it happened, by the source; the arrival time if absent.
        ts: String,
    }
}

message! {
    /// The source was read and nothing changed: keeps it fresh.
    #[derive(Default)]
    FeedHeartbeat = "heartbeat" {} optional {
        /// Bookmaker key. May be omitted if the token is bound to a bookmaker.
        bookmaker: String,
        /// Sport key; all its sports if absent.
        sport: String,
        /// Number of seconds after `ts` for which the source is fresh, if longer than the service's own limit.
        fresh_for: u32,
        /// When it happened, by the source; the arrival time if absent.
        ts: String,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_written_as_the_protocol_says() {
        let prices = [
            FeedOutcome::new("Over", Price::Decimal("1.910".to_owned())).point(210.5),
            FeedOutcome::new("Under", Price::Decimal("1.95".to_owned())).point(210.5),
        ];
        let odds = FeedOdds::new("e-1", Market::TotalPoints)
            .bookmaker("fanduel")
            .format(OddsFormat::Decimal)
            .outcomes(prices);
        let score = FeedScore::new("e-1", "final").periods([FeedPeriod::new(1_u64, 2, 3)]);
        let messages: [FeedMessage; 5] = [
            FeedEvent::new("e-1", "mma", "Invitational 7", "2026-11-15T20:00:00Z")
                .home("Ana Testa")
                .away("Bea Probe")
                .into(),
            odds.into(),
            score.leaders([FeedLeader::new("Ana Testa", [70_i64, 68])]).into(),
            FeedRemove::new("e-1").into(),
            FeedHeartbeat::new().sport("mma").fresh_for(60_u32).into(),
        ];
        let lines: Vec<String> =
            messages.iter().map(|message| serde_json::to_string(message).unwrap()).collect();
        assert_eq!(
            lines,
            [
                "{\"type\":\"event\",\"ref\":\"e-1\",\"sport\":\"mma\",\"competition\":\"Invitational 7\",\
                 \"commence_time\":\"2026-11-15T20:00:00Z\",\"home\":\"Ana Testa\",\"away\":\"Bea Probe\"}",
                // Digit for digit.
                "{\"type\":\"odds\",\"ref\":\"e-1\",\"market\":\"total_points\",\"bookmaker\":\"fanduel\",\
                 \"format\":\"decimal\",\"outcomes\":[{\"name\":\"Over\",\"price\":1.910,\"point\":210.5},\
                 {\"name\":\"Under\",\"price\":1.95,\"point\":210.5}]}",
                &json!({
                    "type": "score", "ref": "e-1", "status": "final",
                    "periods": [{ "number": 1, "home_score": 2, "away_score": 3 }],
                    "leaders": [{ "name": "Ana Testa", "rounds": [70, 68] }],
                })
                .to_string(),
                "{\"type\":\"remove\",\"ref\":\"e-1\"}",
                "{\"type\":\"heartbeat\",\"sport\":\"mma\",\"fresh_for\":60}",
            ]
        );
    }
}
