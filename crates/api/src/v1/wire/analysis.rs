//! The bodies of the five analytics (N14 to N18).

mod write;

use domain::Format;
use market::analysis::Method;
use serde_json::{Value as Json, json};

use crate::v1::wire::object::{count, event_id, flag, id, list, object, one_of, schema, text};

pub(crate) use write::analyse;

object!(BestLines: "The best price of every outcome, line by line." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "Time at which the snapshot was published."),
    FORMAT: "format" = format(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedOffers", "Offers that match the filters but were not used."),
    LINES: "lines" = list("BestLine", "In the order of start, event id, market, point, names."),
});

object!(BestLine: "A line with its best prices." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "Start time of the event."),
    MARKET: "market" = schema("MarketKey", "The market."),
    POINT: "point" = line_point(),
    WAYS: "ways" = ways(),
    BOOKSUM: "booksum" = number("Sum of the implied probabilities of the best prices."),
    HOLD: "hold" = number("1 - winners / booksum: the width of the market at its best prices."),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    OUTCOMES: "outcomes" = list("BestOutcome", "All outcomes that have a price."),
});

object!(BestOutcome: "An outcome and the best price for it." {
    NAME: "name" = name(),
    POINT: "point" = point(),
    PRICE: "price" = schema("Price", "The highest price."),
    BOOKMAKER: "bookmaker" = text("Bookmaker key; among equal prices the most recently confirmed, then the first by \
                                  key."),
    RECORD_ID: "record_id" = record_id(),
    LAST_UPDATE: "last_update" = schema("Timestamp", "Time at which this price was last confirmed."),
    AGE_S: "age_s" = age(),
    UNDERROUND: "underround" optional = json!({
        "type": "boolean",
        "const": true,
        "description": "Present only if the implied probabilities of this bookmaker's own prices sum to less than \
                       the number of winners, which usually indicates an error.",
    }),
    ALSO: "also" = json!({
        "type": "array",
        "items": { "type": "string" },
        "description": "Other bookmakers with the same price, by key.",
    }),
});

object!(FairLines: "Fair probabilities, line by line." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "Time at which the snapshot was published."),
    FORMAT: "format" = format(),
    METHOD: "method" = method(),
    REFERENCE: "reference" = reference(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedLines", "Offers that were not used, and lines without a result."),
    LINES: "lines" = list("FairLine", "In the order of start, event id, market, point, names."),
});

object!(FairLine: "A line with its fair probabilities." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "Start time of the event."),
    MARKET: "market" = schema("MarketKey", "The market."),
    POINT: "point" = line_point(),
    WAYS: "ways" = ways(),
    WINNERS: "winners" = count("Number of winning outcomes, which is the sum of the probabilities."),
    FIELD: "field" = count("Outcomes that at least half of the fresh offers price; others have no fair price."),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    OUTCOMES: "outcomes" = list("FairOutcome", "The outcomes that have a price from a source."),
    SOURCES: "sources" = list("FairSource", "The bookmakers whose prices were used."),
});

object!(FairOutcome: "An outcome and its fair probability." {
    NAME: "name" = name(),
    POINT: "point" = point(),
    PROBABILITY: "probability" = probability(),
    PRICE: "price" = fair_price(),
    BOOKS: "books" = count("Sources that price the outcome."),
});

object!(FairSource: "A bookmaker whose prices were used." {
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    RECORD_ID: "record_id" = record_id(),
    BOOKSUM: "booksum" = number("Sum of the implied probabilities of its prices."),
    HOLD: "hold" = number("1 - winners / booksum: its margin."),
    PARAMETER: "parameter" = json!({
        "type": ["number", "null"],
        "description": "The parameter solved for: k of `power`, z of `shin`, c of `odds_ratio`; otherwise null.",
    }),
    PRICED: "priced" = count("Outcomes of the field that it prices."),
    LAST_UPDATE: "last_update" = schema("Timestamp", "Time at which these prices were last confirmed."),
    AGE_S: "age_s" = age(),
});

object!(Arbitrages: "Arbitrages, the largest profit first." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "Time at which the snapshot was published."),
    FORMAT: "format" = format(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedOffers", "Offers that match the filters but were not used."),
    TRUNCATED: "truncated" = truncated(),
    ARBITRAGES: "arbitrages" = list("Arbitrage", "The largest profit first."),
});

object!(Arbitrage: "Bets on every outcome of a line that give a profit whatever the result." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "Start time of the event."),
    MARKET: "market" = schema("MarketKey", "The market."),
    POINT: "point" = line_point(),
    WAYS: "ways" = ways(),
    BOOKSUM: "booksum" = number("Sum of the implied probabilities of the best prices; below 1."),
    PROFIT: "profit" = number("1 / booksum - 1, rounded down."),
    PUSH: "push" = flag("True if stakes may be returned: on a draw, tie or push that is not an outcome of the line."),
    SUSPECT: "suspect" = flag("True if the profit is above 0.1, which is more often an error than an opportunity."),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    SKEW_S: "skew_s" = skew(),
    STAKE: "stake" = count("The total stake, which is divided between the legs."),
    RETURNS_MIN: "returns_min" = number("The smallest return of the legs."),
    LEGS: "legs" = list("ArbitrageLeg", "One bet for each outcome."),
});

object!(ArbitrageLeg: "A bet of an arbitrage." {
    NAME: "name" = name(),
    PRICE: "price" = schema("Price", "The best price."),
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    STAKE: "stake" = number("The leg's part of the stake, to the cent."),
    RETURNS: "returns" = number("The return if the leg wins, rounded down to the cent."),
    POINT: "point" = point(),
    RECORD_ID: "record_id" = record_id(),
    LAST_UPDATE: "last_update" = schema("Timestamp", "Time at which this price was last confirmed."),
    AGE_S: "age_s" = age(),
});

object!(Values: "Prices with a positive expected value, the largest first." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "Time at which the snapshot was published."),
    FORMAT: "format" = format(),
    METHOD: "method" = method(),
    REFERENCE: "reference" = reference(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedLines", "Offers that were not used, and lines without a result."),
    TRUNCATED: "truncated" = truncated(),
    VALUES: "values" = list("Value", "The largest expected value first."),
});

object!(Value: "An offered price above the fair price." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "Start time of the event."),
    MARKET: "market" = schema("MarketKey", "The market."),
    WAYS: "ways" = ways(),
    NAME: "name" = name(),
    POINT: "point" = point(),
    PRICE: "price" = schema("Price", "The price offered."),
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    RECORD_ID: "record_id" = record_id(),
    LAST_UPDATE: "last_update" = schema("Timestamp", "Time at which this price was last confirmed."),
    AGE_S: "age_s" = age(),
    PROBABILITY: "probability" = probability(),
    FAIR_PRICE: "fair_price" = fair_price(),
    EV: "ev" = number("Expected value per unit staked, rounded down."),
    BOOKS: "books" = count("Number of sources of the probability, without this bookmaker."),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    SUSPECT: "suspect" = flag("True if the expected value is above 0.25, which is more often an error than an \
                              opportunity."),
});

object!(Middles: "Middles, the cheapest first." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "Time at which the snapshot was published."),
    FORMAT: "format" = format(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedOffers", "Offers that match the filters but were not used."),
    TRUNCATED: "truncated" = truncated(),
    MIDDLES: "middles" = list("Middle", "The cheapest first, then the widest."),
});

object!(Middle: "Two bets that both win if the result lands between two points." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "Start time of the event."),
    MARKET: "market" = schema("MarketKey", "The market."),
    FROM: "from" = bound("Above this total, or home side's margin, both bets win."),
    TO: "to" = bound("Below this both bets win."),
    GAP: "gap" = bound("Difference between the two points."),
    LANDING: "landing" = whole_numbers("Whole numbers strictly between the points, on which both bets win. Null for \
                                       `total_rounds`."),
    PUSHES: "pushes" = whole_numbers(
        "Whole numbers equal to one of the points, on which one bet wins and the other is returned. Null for \
        `total_rounds`.",
    ),
    BOOKSUM: "booksum" = number("Sum of the implied probabilities of the two prices."),
    BREAK_EVEN: "break_even" = number(
        "booksum - 1, rounded up: the probability of landing at which the middle breaks even.",
    ),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    SKEW_S: "skew_s" = skew(),
    LEGS: "legs" = list("MiddleLeg", "The bet that wins above `from`, then the one that wins below `to`."),
});

object!(MiddleLeg: "A bet of a middle." {
    NAME: "name" = name(),
    POINT: "point" = point(),
    PRICE: "price" = schema("Price", "The best price."),
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    RECORD_ID: "record_id" = record_id(),
    LAST_UPDATE: "last_update" = schema("Timestamp", "Time at which this price was last confirmed."),
    AGE_S: "age_s" = age(),
});

object!(RefusedOffers: "Offers that were not used, each counted once under the first reason that applies." {
    STALE: "stale" = stale(),
    INCOMPLETE: "incomplete" = incomplete(),
    UNDERROUND: "underround" = underround(),
});

object!(RefusedLines: "Offers that were not used, and lines without a result." {
    STALE: "stale" = stale(),
    INCOMPLETE: "incomplete" = incomplete(),
    UNDERROUND: "underround" = underround(),
    THIN: "thin" = count("Lines with too few sources."),
    UNDEFINED: "undefined" = count("Lines for which the method has no result."),
});

fn number(meaning: &str) -> Json {
    json!({ "type": "number", "description": meaning })
}

fn format() -> Json {
    one_of(Format::ALL.map(Format::key), "Format of prices: the requested `odds_format`.")
}

fn method() -> Json {
    one_of(Method::ALL.map(Method::key), "The method by which margins were removed.")
}

fn reference() -> Json {
    text("`consensus`, or the requested bookmakers in the order of their keys, comma-separated.")
}

fn max_age() -> Json {
    count("Maximum age of the offers that were used, in seconds.")
}

fn truncated() -> Json {
    count("Number of results beyond `limit`.")
}

fn name() -> Json {
    text("Participant or side; `Over` and `Under` for totals.")
}

fn point() -> Json {
    nullable_point("The outcome's signed handicap or the total; null for markets without one.")
}

fn line_point() -> Json {
    nullable_point("The home side's handicap or the total; null for markets without one.")
}

fn nullable_point(meaning: &str) -> Json {
    json!({ "type": ["number", "null"], "multipleOf": 0.25, "description": meaning })
}

fn bound(meaning: &str) -> Json {
    json!({ "type": "number", "multipleOf": 0.25, "description": meaning })
}

fn whole_numbers(meaning: &str) -> Json {
    json!({ "type": ["array", "null"], "items": { "type": "integer" }, "description": meaning })
}

fn ways() -> Json {
    count(
        "Number of outcomes of the line: a moneyline with a draw has 3 and is a different line from one without.",
    )
}

fn record_id() -> Json {
    id("odd_", "Id of the odds record with this price.")
}

fn age() -> Json {
    count("Whole seconds from `last_update` to `generated_at`.")
}

fn oldest_age() -> Json {
    count("The largest `age_s` of what was used.")
}

fn skew() -> Json {
    count("Difference between the ages of the oldest and the newest leg, in seconds.")
}

fn probability() -> Json {
    json!({
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "Fair probability, with nine decimal places.",
    })
}

fn fair_price() -> Json {
    json!({
        "type": ["number", "string", "null"],
        "pattern": "^[1-9][0-9]*/[1-9][0-9]*$",
        "description": "The price equivalent to `probability` as printed; null if that is 0 or 1.",
    })
}

fn stale() -> Json {
    count("Offers older than the limit.")
}

fn incomplete() -> Json {
    count("Offers without all outcomes of the line, or with less than nine tenths of a field.")
}

fn underround() -> Json {
    count("Offers whose implied probabilities sum to less than the number of winners.")
}
