//! What became of prices.

use crate::macros::{open_enum, record};
use crate::price::OddsFormat;
use crate::types::{Market, Outcome};

open_enum! {
    /// What says that an event has started.
    StartBy {
        Live = "live",
        CommenceTime = "commence_time",
    }
}

open_enum! {
    /// Why nothing is priced.
    PriceReason {
        NoPrices = "no_prices",
        Removed = "removed",
        Final = "final",
        Merged = "merged",
    }
}

record! {
    /// What became of one bookmaker's market of one event.
    PricePath {
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
        /// The first prices that were published.
        open: OpeningLine,
        /// The prices when the event started; null before that, and where nobody priced it before that.
        close: Option<ClosingLine>,
        /// Changes of prices or lines, in the order of publications.
        points: Vec<PricePoint>,
    } then complete
}

record! {
    /// The opening and the closing line of one bookmaker's market of one event.
    ClosingRecord {
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
        /// The first prices that were published.
        open: OpeningLine,
        /// The prices when the event started.
        close: ClosingLine,
    } then complete
}

record! {
    /// The first prices that were published.
    OpeningLine {
        /// When.
        published_at: String,
        /// False where they may have been published before history began.
        exact: bool,
        /// What could be bet on.
        outcomes: Vec<Outcome>,
    }
}

record! {
    /// The prices in the last publication before an event started.
    ClosingLine {
        /// When it started.
        start: String,
        /// What says so.
        by: StartBy,
        /// Whether the prices were still offered. Otherwise they are the last ones that were.
        active: bool,
        /// When these prices were first published.
        published_at: String,
        /// When they were last confirmed.
        last_update: String,
        /// Why they were withdrawn before the start.
        reason: Option<PriceReason>,
        /// What could be bet on.
        outcomes: Vec<Outcome>,
    }
}

record! {
    /// A change of prices or lines.
    PricePoint {
        /// When it was accepted.
        at: String,
        /// When it was first published; null: it was replaced before that.
        published_at: Option<String>,
        /// When it happened, as its source says.
        ts: String,
        /// Why nothing is priced.
        reason: Option<PriceReason>,
        /// What can be bet on; empty where nothing is priced.
        outcomes: Vec<Outcome>,
    }
}

impl ClosingRecord {
    fn complete(mut self) -> Result<Self, &'static str> {
        let outcomes = self.close.outcomes.iter_mut().chain(&mut self.open.outcomes);
        outcomes.for_each(|outcome| outcome.price.in_format(&self.format));
        Ok(self)
    }
}

impl PricePath {
    fn complete(mut self) -> Result<Self, &'static str> {
        let points = self.points.iter_mut().flat_map(|point| &mut point.outcomes);
        let close = self.close.iter_mut().flat_map(|close| &mut close.outcomes);
        let outcomes = points.chain(close).chain(&mut self.open.outcomes);
        outcomes.for_each(|outcome| outcome.price.in_format(&self.format));
        Ok(self)
    }
}
