//! Price histories.

use crate::macros::{open_enum, record};
use crate::price::OddsFormat;
use crate::types::{Market, Outcome};

open_enum! {
    /// The evidence that an event has started.
    StartBy {
        Live = "live",
        CommenceTime = "commence_time",
    }
}

open_enum! {
    /// Why there is no price.
    PriceReason {
        NoPrices = "no_prices",
        Removed = "removed",
        Final = "final",
        Merged = "merged",
    }
}

record! {
    /// The price history of one bookmaker's market of one event.
    PricePath {
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
        /// The first prices that were published.
        open: OpeningLine,
        /// The prices when the event started; null before that, and if there were no prices before the start.
        close: Option<ClosingLine>,
        /// Changes of prices or lines, in the order of publications.
        points: Vec<PricePoint>,
    } then complete
}

record! {
    /// The opening and the closing line of one bookmaker's market of one event.
    ClosingRecord {
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
        /// The first prices that were published.
        open: OpeningLine,
        /// The prices when the event started.
        close: ClosingLine,
    } then complete
}

record! {
    /// The first prices that were published.
    OpeningLine {
        /// Time of the publication.
        published_at: String,
        /// False if they may have been published before history began.
        exact: bool,
        /// The outcomes that could be bet on.
        outcomes: Vec<Outcome>,
    }
}

record! {
    /// The prices in the last publication before an event started.
    ClosingLine {
        /// When the event started.
        start: String,
        /// The evidence of the start.
        by: StartBy,
        /// True if the prices were still offered; otherwise they are the last ones offered.
        active: bool,
        /// When these prices were first published.
        published_at: String,
        /// When they were last confirmed.
        last_update: String,
        /// Why they were withdrawn before the start.
        reason: Option<PriceReason>,
        /// The outcomes that could be bet on.
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
        /// When it happened, by its source.
        ts: String,
        /// Why there is no price.
        reason: Option<PriceReason>,
        /// The outcomes that can be bet on; empty if there is no price.
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
