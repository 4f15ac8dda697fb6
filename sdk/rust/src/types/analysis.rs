//! Best and fair prices, arbitrage, value, middles.

use crate::macros::{open_enum, record};
use crate::price::{OddsFormat, Price};
use crate::types::Market;

open_enum! {
    /// How a bookmaker's margin is removed.
    Method {
        Power = "power",
        Multiplicative = "multiplicative",
        Additive = "additive",
        Shin = "shin",
        OddsRatio = "odds_ratio",
    }
}

record! {
    /// The best price of every outcome, line by line.
    BestLines {
        /// Sport key.
        sport: String,
        /// When the snapshot was published.
        generated_at: String,
        /// The format of prices; the requested `odds_format`.
        format: OddsFormat,
        /// Maximum age of the offers used, in seconds.
        max_age_s: u64,
        /// Offers that pass the filters but were not used.
        refused: RefusedOffers,
        /// In the order of start, event id, market, point, names.
        lines: Vec<BestLine>,
    } then complete
}

record! {
    /// A line with its best prices.
    BestLine {
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// When the event starts.
        commence_time: String,
        /// The market.
        market: Market,
        /// The home side's handicap or the total; null for markets without one.
        point: Option<f64>,
        /// Number of outcomes of the line: a moneyline with a draw has 3 and is another line than one without.
        ways: u64,
        /// The implied probabilities of the best prices, added up.
        booksum: f64,
        /// 1 - winners / booksum: the margin of the market at its best prices.
        hold: f64,
        /// The largest `age_s` of the offers used.
        oldest_age_s: u64,
        /// Every outcome with a price.
        outcomes: Vec<BestOutcome>,
    }
}

record! {
    /// An outcome and the best price for it.
    BestOutcome {
        /// Participant or side; `Over` and `Under` for totals.
        name: String,
        /// The outcome's signed handicap or the total; null for markets without one.
        point: Option<f64>,
        /// The highest price.
        price: Price,
        /// Bookmaker key; of equal prices the freshest, then the first by key.
        bookmaker: String,
        /// The odds record of the price.
        record_id: String,
        /// When this price was last confirmed.
        last_update: String,
        /// Whole seconds from `last_update` to `generated_at`.
        age_s: u64,
        /// Other bookmakers with the same price, by key.
        also: Vec<String>,
    } absent {
        /// Present only if the bookmaker's prices alone add up to less than the number of winners, which is usually a
        /// mistake.
        underround: bool,
    }
}

record! {
    /// Fair probabilities, line by line.
    FairLines {
        /// Sport key.
        sport: String,
        /// When the snapshot was published.
        generated_at: String,
        /// The format of prices; the requested `odds_format`.
        format: OddsFormat,
        /// How margins were removed.
        method: Method,
        /// `consensus`, or the bookmakers that were named, by key and separated by commas.
        reference: String,
        /// Maximum age of the offers used, in seconds.
        max_age_s: u64,
        /// Offers that were not used, and lines without a result.
        refused: RefusedLines,
        /// In the order of start, event id, market, point, names.
        lines: Vec<FairLine>,
    } then complete
}

record! {
    /// A line with its fair probabilities.
    FairLine {
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// When the event starts.
        commence_time: String,
        /// The market.
        market: Market,
        /// The home side's handicap or the total; null for markets without one.
        point: Option<f64>,
        /// Number of outcomes of the line: a moneyline with a draw has 3 and is another line than one without.
        ways: u64,
        /// Number of outcomes that win; the probabilities add up to it.
        winners: u64,
        /// Number of outcomes priced by at least half of the fresh offers; others have no fair price.
        field: u64,
        /// The largest `age_s` of the offers used.
        oldest_age_s: u64,
        /// The outcomes that a source prices.
        outcomes: Vec<FairOutcome>,
        /// The bookmakers whose prices were used.
        sources: Vec<FairSource>,
    }
}

record! {
    /// An outcome and its fair probability.
    FairOutcome {
        /// Participant or side; `Over` and `Under` for totals.
        name: String,
        /// The outcome's signed handicap or the total; null for markets without one.
        point: Option<f64>,
        /// Fair probability, nine places.
        probability: f64,
        /// The price of the probability as written here; null if that is 0 or 1.
        price: Option<Price>,
        /// Number of sources that price the outcome.
        books: u64,
    }
}

record! {
    /// A bookmaker whose prices were used.
    FairSource {
        /// Bookmaker key.
        bookmaker: String,
        /// The odds record of the price.
        record_id: String,
        /// The implied probabilities of its prices, added up.
        booksum: f64,
        /// 1 - winners / booksum: its margin.
        hold: f64,
        /// The parameter found by the method: k of `power`, z of `shin`, c of `odds_ratio`; else null.
        parameter: Option<f64>,
        /// Number of outcomes of the field that it prices.
        priced: u64,
        /// When these prices were last confirmed.
        last_update: String,
        /// Whole seconds from `last_update` to `generated_at`.
        age_s: u64,
    }
}

record! {
    /// Arbitrages, the largest profit first.
    Arbitrages {
        /// Sport key.
        sport: String,
        /// When the snapshot was published.
        generated_at: String,
        /// The format of prices; the requested `odds_format`.
        format: OddsFormat,
        /// Maximum age of the offers used, in seconds.
        max_age_s: u64,
        /// Offers that pass the filters but were not used.
        refused: RefusedOffers,
        /// Results beyond `limit`.
        truncated: u64,
        /// The largest profit first.
        arbitrages: Vec<Arbitrage>,
    } then complete
}

record! {
    /// Bets on every outcome of a line that win in every case.
    Arbitrage {
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// When the event starts.
        commence_time: String,
        /// The market.
        market: Market,
        /// The home side's handicap or the total; null for markets without one.
        point: Option<f64>,
        /// Number of outcomes of the line: a moneyline with a draw has 3 and is another line than one without.
        ways: u64,
        /// The implied probabilities of the best prices, added up; below 1.
        booksum: f64,
        /// 1 / booksum - 1, rounded down.
        profit: f64,
        /// True if stakes may be returned: a draw, tie or point that cannot be bet on.
        push: bool,
        /// A profit above 0.1 is more often a mistake than an opportunity.
        suspect: bool,
        /// The largest `age_s` of the offers used.
        oldest_age_s: u64,
        /// The oldest leg's age less the newest's, in seconds.
        skew_s: u64,
        /// The stake divided between the legs.
        stake: u64,
        /// The smallest of the legs' returns.
        returns_min: f64,
        /// One bet for each outcome.
        legs: Vec<ArbitrageLeg>,
    }
}

record! {
    /// A bet of an arbitrage.
    ArbitrageLeg {
        /// Participant or side; `Over` and `Under` for totals.
        name: String,
        /// The best price.
        price: Price,
        /// Bookmaker key.
        bookmaker: String,
        /// Its part of the stake, to the cent.
        stake: f64,
        /// The return if it wins, rounded down to the cent.
        returns: f64,
        /// The outcome's signed handicap or the total; null for markets without one.
        point: Option<f64>,
        /// The odds record of the price.
        record_id: String,
        /// When this price was last confirmed.
        last_update: String,
        /// Whole seconds from `last_update` to `generated_at`.
        age_s: u64,
    }
}

record! {
    /// Prices with a positive expected value, the largest first.
    Values {
        /// Sport key.
        sport: String,
        /// When the snapshot was published.
        generated_at: String,
        /// The format of prices; the requested `odds_format`.
        format: OddsFormat,
        /// How margins were removed.
        method: Method,
        /// `consensus`, or the bookmakers that were named, by key and separated by commas.
        reference: String,
        /// Maximum age of the offers used, in seconds.
        max_age_s: u64,
        /// Offers that were not used, and lines without a result.
        refused: RefusedLines,
        /// Results beyond `limit`.
        truncated: u64,
        /// The largest expected value first.
        values: Vec<Value>,
    } then complete
}

record! {
    /// An offered price that pays more than the fair one.
    Value {
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// When the event starts.
        commence_time: String,
        /// The market.
        market: Market,
        /// Number of outcomes of the line: a moneyline with a draw has 3 and is another line than one without.
        ways: u64,
        /// Participant or side; `Over` and `Under` for totals.
        name: String,
        /// The outcome's signed handicap or the total; null for markets without one.
        point: Option<f64>,
        /// The price offered.
        price: Price,
        /// Bookmaker key.
        bookmaker: String,
        /// The odds record of the price.
        record_id: String,
        /// When this price was last confirmed.
        last_update: String,
        /// Whole seconds from `last_update` to `generated_at`.
        age_s: u64,
        /// Fair probability, nine places.
        probability: f64,
        /// The price of the probability as written here; null if that is 0 or 1.
        fair_price: Option<Price>,
        /// Expected value of a unit staked, rounded down.
        ev: f64,
        /// Sources of the probability, without this bookmaker.
        books: u64,
        /// The largest `age_s` of the offers used.
        oldest_age_s: u64,
        /// An expected value above 0.25 is more often a mistake than an opportunity.
        suspect: bool,
    }
}

record! {
    /// Middles, the cheapest first.
    Middles {
        /// Sport key.
        sport: String,
        /// When the snapshot was published.
        generated_at: String,
        /// The format of prices; the requested `odds_format`.
        format: OddsFormat,
        /// Maximum age of the offers used, in seconds.
        max_age_s: u64,
        /// Offers that pass the filters but were not used.
        refused: RefusedOffers,
        /// Results beyond `limit`.
        truncated: u64,
        /// The cheapest first, then the widest.
        middles: Vec<Middle>,
    } then complete
}

record! {
    /// Two bets that both win between two points.
    Middle {
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// When the event starts.
        commence_time: String,
        /// The market.
        market: Market,
        /// Above this total, or home side's margin, both bets win.
        from: f64,
        /// Below this both bets win.
        to: f64,
        /// Distance between the two.
        gap: f64,
        /// Whole numbers strictly between: both bets win. Null for `total_rounds`.
        landing: Option<Vec<i64>>,
        /// Whole numbers on a bound: one bet wins, the other is returned. Null for `total_rounds`.
        pushes: Option<Vec<i64>>,
        /// The implied probabilities of the two prices, added up.
        booksum: f64,
        /// booksum - 1, rounded up: the landing probability at which the middle pays for itself.
        break_even: f64,
        /// The largest `age_s` of the offers used.
        oldest_age_s: u64,
        /// The oldest leg's age less the newest's, in seconds.
        skew_s: u64,
        /// The bet that wins above `from`, then the one that wins below `to`.
        legs: Vec<MiddleLeg>,
    }
}

record! {
    /// A bet of a middle.
    MiddleLeg {
        /// Participant or side; `Over` and `Under` for totals.
        name: String,
        /// The outcome's signed handicap or the total; null for markets without one.
        point: Option<f64>,
        /// The best price.
        price: Price,
        /// Bookmaker key.
        bookmaker: String,
        /// The odds record of the price.
        record_id: String,
        /// When this price was last confirmed.
        last_update: String,
        /// Whole seconds from `last_update` to `generated_at`.
        age_s: u64,
    }
}

record! {
    /// Offers that were not used, each counted once, by the first reason.
    RefusedOffers {
        /// Older than the limit.
        stale: u64,
        /// Not all outcomes of the line, or of a field less than nine tenths.
        incomplete: u64,
        /// Prices that alone add up to less than the number of winners.
        underround: u64,
    }
}

record! {
    /// Offers that were not used, and lines without a result.
    RefusedLines {
        /// Older than the limit.
        stale: u64,
        /// Not all outcomes of the line, or of a field less than nine tenths.
        incomplete: u64,
        /// Prices that alone add up to less than the number of winners.
        underround: u64,
        /// Lines with too few sources.
        thin: u64,
        /// Lines for which the method has no result.
        undefined: u64,
    }
}

impl BestLines {
    fn complete(mut self) -> Result<Self, &'static str> {
        let outcomes = self.lines.iter_mut().flat_map(|line| &mut line.outcomes);
        outcomes.for_each(|outcome| outcome.price.in_format(&self.format));
        Ok(self)
    }
}

impl FairLines {
    fn complete(mut self) -> Result<Self, &'static str> {
        let outcomes = self.lines.iter_mut().flat_map(|line| &mut line.outcomes);
        outcomes
            .filter_map(|outcome| outcome.price.as_mut())
            .for_each(|price| price.in_format(&self.format));
        Ok(self)
    }
}

impl Arbitrages {
    fn complete(mut self) -> Result<Self, &'static str> {
        let legs = self.arbitrages.iter_mut().flat_map(|arbitrage| &mut arbitrage.legs);
        legs.for_each(|leg| leg.price.in_format(&self.format));
        Ok(self)
    }
}

impl Values {
    fn complete(mut self) -> Result<Self, &'static str> {
        let prices = self
            .values
            .iter_mut()
            .flat_map(|value| [Some(&mut value.price), value.fair_price.as_mut()]);
        prices.flatten().for_each(|price| price.in_format(&self.format));
        Ok(self)
    }
}

impl Middles {
    fn complete(mut self) -> Result<Self, &'static str> {
        let legs = self.middles.iter_mut().flat_map(|middle| &mut middle.legs);
        legs.for_each(|leg| leg.price.in_format(&self.format));
        Ok(self)
    }
}
