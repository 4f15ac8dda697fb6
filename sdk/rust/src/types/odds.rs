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
        /// False if every source of the sport is stale or there is none: skip it instead of retrying.
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
        /// The regions in which it is offered.
        regions: Vec<Region>,
    }
}

record! {
    /// One bookmaker's market of one event.
    OddsRecord {
        /// The record's id; it stays the same while price and line change.
        id: String,
        /// Sport key.
        sport_key: String,
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// Bookmaker key.
        bookmaker: String,
        /// The market.
        market: Market,
        /// The format of `price`; the requested `odds_format`.
        format: OddsFormat,
        /// When this price was last confirmed, changed or not.
        last_update: String,
        /// The outcomes that can be bet on.
        outcomes: Vec<Outcome>,
    } then complete
}

record! {
    /// An outcome and its price.
    Outcome {
        /// Participant or side; `Over` and `Under` for totals.
        name: String,
        /// Its price.
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
        /// True if there was no good read from it recently.
        stale: bool,
        /// Duration of the last good read (polled), or its delay (pushed).
        latency_ms: u64,
    }
}

record! {
    /// A bout.
    Bout {
        /// The first fighter.
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
        /// The fighters, and the draw if it is offered.
        outcomes: Vec<BoutOutcome>,
    }
}

record! {
    /// A fighter and the price of a win.
    BoutOutcome {
        /// The fighter.
        name: String,
        /// The price.
        price: Price,
    }
}

record! {
    /// The state of an event, with period detail.
    ScoreRecord {
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// Sport key.
        sport_key: String,
        /// The status of the event.
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
        /// The fighter who won; present only for a finished fight.
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
        /// The status of the event.
        status: Status,
        /// The markets with prices now.
        markets: Vec<Market>,
    } absent {
        /// The tournament; present only for golf.
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
    /// It does not contain its format, which is the requested one.
    pub(crate) fn in_format(&mut self, format: &OddsFormat) {
        let books = self.bouts.iter_mut().flat_map(|bout| &mut bout.books);
        books
            .flat_map(|book| &mut book.outcomes)
            .for_each(|outcome| outcome.price.in_format(format));
    }
}
