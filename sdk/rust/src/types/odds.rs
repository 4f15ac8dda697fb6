//! Sports, bookmakers, events, odds and scores.

use crate::macros::record;
use crate::price::{OddsFormat, Price};
use crate::types::{Market, Region, Status};

record! {
    /// All sports.
    SportList {
        /// In the catalogue's order.
        sports: Vec<Sport>,
    }
}

record! {
    /// A sport.
    Sport {
        /// Sport key.
        key: String,
        /// Display name.
        title: String,
        /// Sport group: the unit to which production keys can be restricted.
        group: String,
        /// False when every source of the sport is stale or there is none: skip it instead of retrying.
        active: bool,
        /// Scheduled and live events.
        events: u64,
        /// Bookmakers pricing the sport.
        books: u64,
    }
}

record! {
    /// A bookmaker.
    Bookmaker {
        /// Bookmaker key.
        key: String,
        /// Display name.
        title: String,
        /// Where it is offered.
        regions: Vec<Region>,
    }
}

record! {
    /// One bookmaker's market of one event.
    OddsRecord {
        /// The record's id; it stays while price and line move.
        id: String,
        /// Sport key.
        sport_key: String,
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// Bookmaker key.
        bookmaker: String,
        /// The market.
        market: Market,
        /// How `price` is written; the `odds_format` asked for.
        format: OddsFormat,
        /// When this price was last confirmed, changed or not.
        last_update: String,
        /// What can be bet on.
        outcomes: Vec<Outcome>,
    } then complete
}

record! {
    /// One outcome and what it pays.
    Outcome {
        /// Participant or side; `Over` and `Under` for totals.
        name: String,
        /// What it pays.
        price: Price,
        /// The signed handicap or the total; null for markets without one.
        point: Option<f64>,
    }
}

record! {
    /// A fight sport's moneyline, bout by bout (`group_by=bout`).
    GroupedBouts {
        /// Sport key.
        sport: String,
        /// When the snapshot was published.
        generated_at: String,
        /// The sport's sources that pass the bookmaker and region filter.
        sources: Vec<BoutSource>,
        /// Bouts with a price for the filter, in the order of events.
        bouts: Vec<Bout>,
    }
}

record! {
    /// One bookmaker's feed for the sport.
    BoutSource {
        /// Bookmaker key.
        book: String,
        /// The last good read.
        last_update: String,
        /// True when there was no good read from it recently.
        stale: bool,
        /// How long the last good read took (polled) or how late it arrived (pushed).
        latency_ms: u64,
    }
}

record! {
    /// A bout.
    Bout {
        /// The one fighter.
        home: String,
        /// The other fighter.
        away: String,
        /// When it starts.
        commence_time: String,
        /// Each bookmaker's moneyline.
        books: Vec<BoutBook>,
    }
}

record! {
    /// A bookmaker's moneyline of a bout.
    BoutBook {
        /// Bookmaker key.
        book: String,
        /// When this price was last confirmed.
        last_update: String,
        /// The fighters, and the draw where it is offered.
        outcomes: Vec<BoutOutcome>,
    }
}

record! {
    /// A fighter and what a win pays.
    BoutOutcome {
        /// The fighter.
        name: String,
        /// What it pays.
        price: Price,
    }
}

record! {
    /// How an event stands, with period detail.
    ScoreRecord {
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// Sport key.
        sport_key: String,
        /// How the event stands.
        status: Status,
        /// The home side; for golf the leader, `TBD` before the first score.
        home_team: String,
        /// The away side; for golf the runner-up, `TBD` before the first score.
        away_team: String,
        /// The home side's score; null for golf, and until a source reports it.
        home_score: Option<i64>,
        /// The away side's score; null for golf, and until a source reports it.
        away_score: Option<i64>,
        /// Sets, quarters, rounds; for golf the leaders' round totals.
        periods: Vec<Period>,
        /// When the score last changed.
        updated_at: String,
    } absent {
        /// The fighter who won; only there for a finished fight.
        winner: String,
    }
}

record! {
    /// A set, quarter or round.
    Period {
        /// Counted from 1.
        number: u64,
        /// The home side's score in it; for golf the leader's total.
        home_score: i64,
        /// The away side's score in it; for golf the runner-up's total.
        away_score: i64,
    }
}

record! {
    /// An event.
    Event {
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        id: String,
        /// Sport key.
        sport_key: String,
        /// The league, tour or card it belongs to.
        competition: String,
        /// When it starts; for golf, the first round's tee time.
        commence_time: String,
        /// The home side; null for golf.
        home_team: Option<String>,
        /// The away side; null for golf.
        away_team: Option<String>,
        /// How the event stands.
        status: Status,
        /// The markets with prices now.
        markets: Vec<Market>,
    } absent {
        /// The tournament; only there for golf.
        title: String,
    }
}

impl OddsRecord {
    fn complete(mut self) -> Result<Self, &'static str> {
        self.outcomes.iter_mut().for_each(|outcome| outcome.price.in_format(&self.format));
        Ok(self)
    }
}

impl GroupedBouts {
    /// It does not say its format: it is the one that was asked for.
    pub(crate) fn in_format(&mut self, format: &OddsFormat) {
        let books = self.bouts.iter_mut().flat_map(|bout| &mut bout.books);
        books
            .flat_map(|book| &mut book.outcomes)
            .for_each(|outcome| outcome.price.in_format(format));
    }
}
