//! The bodies of the five analytics (N14 to N18).

mod write;

use domain::Format;
use market::analysis::Method;
use serde_json::{Value as Json, json};

use crate::v1::wire::object::{count, event_id, flag, id, list, object, one_of, schema, text};

pub(crate) use write::analyse;

object!(BestLines: "The best price of every outcome, line by line." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "When the snapshot was published."),
    FORMAT: "format" = format(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedOffers", "Offers that pass the filters but were not used."),
    LINES: "lines" = list("BestLine", "In the order of start, event id, market, point, names."),
});

object!(BestLine: "A line with its best prices." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "When the event starts."),
    MARKET: "market" = schema("MarketKey", "The market."),
    POINT: "point" = line_point(),
    WAYS: "ways" = ways(),
    BOOKSUM: "booksum" = number("The implied probabilities of the best prices, added up."),
    HOLD: "hold" = number("1 - winners / booksum: the width of the market at its best prices."),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    OUTCOMES: "outcomes" = list("BestOutcome", "Every outcome that is priced."),
});

object!(BestOutcome: "An outcome and the best price for it." {
    NAME: "name" = name(),
    POINT: "point" = point(),
    PRICE: "price" = schema("Price", "The highest price."),
    BOOKMAKER: "bookmaker" = text("Bookmaker key; of equal prices the freshest, then the first by key."),
    RECORD_ID: "record_id" = record_id(),
    LAST_UPDATE: "last_update" = schema("Timestamp", "When this price was last confirmed."),
    AGE_S: "age_s" = age(),
    UNDERROUND: "underround" optional = json!({
        "type": "boolean",
        "const": true,
        "description": "Only there when the bookmaker's prices alone add up to less than the number of winners, which \
                        is a mistake more often than not.",
    }),
    ALSO: "also" = json!({
        "type": "array",
        "items": { "type": "string" },
        "description": "Other bookmakers with the same price, by key.",
    }),
});

object!(FairLines: "Fair probabilities, line by line." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "When the snapshot was published."),
    FORMAT: "format" = format(),
    METHOD: "method" = method(),
    REFERENCE: "reference" = reference(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedLines", "Offers that were not used, and lines without a result."),
    LINES: "lines" = list("FairLine", "In the order of start, event id, market, point, names."),
});

object!(FairLine: "A line with its fair probabilities." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "When the event starts."),
    MARKET: "market" = schema("MarketKey", "The market."),
    POINT: "point" = line_point(),
    WAYS: "ways" = ways(),
    WINNERS: "winners" = count("How many of the outcomes win, which the probabilities add up to."),
    FIELD: "field" = count("Outcomes that at least half of the fresh offers price; others have no fair price."),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    OUTCOMES: "outcomes" = list("FairOutcome", "The outcomes that a source prices."),
    SOURCES: "sources" = list("FairSource", "Whose prices were used."),
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
    BOOKSUM: "booksum" = number("The implied probabilities of its prices, added up."),
    HOLD: "hold" = number("1 - winners / booksum: its margin."),
    PARAMETER: "parameter" = json!({
        "type": ["number", "null"],
        "description": "What the method solved for: k of `power`, z of `shin`, c of `odds_ratio`; else null.",
    }),
    PRICED: "priced" = count("Outcomes of the field that it prices."),
    LAST_UPDATE: "last_update" = schema("Timestamp", "When these prices were last confirmed."),
    AGE_S: "age_s" = age(),
});

object!(Arbitrages: "Arbitrages, the largest profit first." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "When the snapshot was published."),
    FORMAT: "format" = format(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedOffers", "Offers that pass the filters but were not used."),
    TRUNCATED: "truncated" = truncated(),
    ARBITRAGES: "arbitrages" = list("Arbitrage", "The largest profit first."),
});

object!(Arbitrage: "Bets on every outcome of a line that win whatever happens." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "When the event starts."),
    MARKET: "market" = schema("MarketKey", "The market."),
    POINT: "point" = line_point(),
    WAYS: "ways" = ways(),
    BOOKSUM: "booksum" = number("The implied probabilities of the best prices, added up; below 1."),
    PROFIT: "profit" = number("1 / booksum - 1, rounded down."),
    PUSH: "push" = flag("True where stakes may be returned: a draw, tie or point that nobody can bet on."),
    SUSPECT: "suspect" = flag("A profit above 0.1 is more often a mistake than an opportunity."),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    SKEW_S: "skew_s" = skew(),
    STAKE: "stake" = count("What is divided between the legs."),
    RETURNS_MIN: "returns_min" = number("The smallest of the legs' returns."),
    LEGS: "legs" = list("ArbitrageLeg", "One bet for each outcome."),
});

object!(ArbitrageLeg: "A bet of an arbitrage." {
    NAME: "name" = name(),
    PRICE: "price" = schema("Price", "The best price."),
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    STAKE: "stake" = number("Its part of the stake, to the cent."),
    RETURNS: "returns" = number("What comes back if it wins, rounded down to the cent."),
    POINT: "point" = point(),
    RECORD_ID: "record_id" = record_id(),
    LAST_UPDATE: "last_update" = schema("Timestamp", "When this price was last confirmed."),
    AGE_S: "age_s" = age(),
});

object!(Values: "Prices with a positive expected value, the largest first." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "When the snapshot was published."),
    FORMAT: "format" = format(),
    METHOD: "method" = method(),
    REFERENCE: "reference" = reference(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedLines", "Offers that were not used, and lines without a result."),
    TRUNCATED: "truncated" = truncated(),
    VALUES: "values" = list("Value", "The largest expected value first."),
});

object!(Value: "An offered price that pays more than the fair one." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "When the event starts."),
    MARKET: "market" = schema("MarketKey", "The market."),
    WAYS: "ways" = ways(),
    NAME: "name" = name(),
    POINT: "point" = point(),
    PRICE: "price" = schema("Price", "The price offered."),
    BOOKMAKER: "bookmaker" = text("Bookmaker key."),
    RECORD_ID: "record_id" = record_id(),
    LAST_UPDATE: "last_update" = schema("Timestamp", "When this price was last confirmed."),
    AGE_S: "age_s" = age(),
    PROBABILITY: "probability" = probability(),
    FAIR_PRICE: "fair_price" = fair_price(),
    EV: "ev" = number("Expected value of a unit staked, rounded down."),
    BOOKS: "books" = count("Sources of the probability, without this bookmaker."),
    OLDEST_AGE_S: "oldest_age_s" = oldest_age(),
    SUSPECT: "suspect" = flag("An expected value above 0.25 is more often a mistake than an opportunity."),
});

object!(Middles: "Middles, the cheapest first." {
    SPORT: "sport" = text("Sport key."),
    GENERATED_AT: "generated_at" = schema("TimestampMs", "When the snapshot was published."),
    FORMAT: "format" = format(),
    MAX_AGE_S: "max_age_s" = max_age(),
    REFUSED: "refused" = schema("RefusedOffers", "Offers that pass the filters but were not used."),
    TRUNCATED: "truncated" = truncated(),
    MIDDLES: "middles" = list("Middle", "The cheapest first, then the widest."),
});

object!(Middle: "Two bets that both win between two points." {
    EVENT_ID: "event_id" = event_id(),
    COMMENCE_TIME: "commence_time" = schema("Timestamp", "When the event starts."),
    MARKET: "market" = schema("MarketKey", "The market."),
    FROM: "from" = bound("Above this total, or home side's margin, both bets win."),
    TO: "to" = bound("Below this both bets win."),
    GAP: "gap" = bound("How far apart the two are."),
    LANDING: "landing" = whole_numbers("Whole numbers strictly between: both bets win. Null for `total_rounds`."),
    PUSHES: "pushes" = whole_numbers(
        "Whole numbers on a bound: one bet wins, the other is returned. Null for `total_rounds`.",
    ),
    BOOKSUM: "booksum" = number("The implied probabilities of the two prices, added up."),
    BREAK_EVEN: "break_even" = number(
        "booksum - 1, rounded up: the landing probability at which the middle pays for itself.",
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
    LAST_UPDATE: "last_update" = schema("Timestamp", "When this price was last confirmed."),
    AGE_S: "age_s" = age(),
});

object!(RefusedOffers: "Offers that were not used, each counted once, by the first reason." {
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
    one_of(Format::ALL.map(Format::key), "How prices are written; the `odds_format` asked for.")
}

fn method() -> Json {
    one_of(Method::ALL.map(Method::key), "How margins were removed.")
}

fn reference() -> Json {
    text("`consensus`, or the bookmakers that were named, by key and separated by commas.")
}

fn max_age() -> Json {
    count("The oldest offer that was used, in seconds.")
}

fn truncated() -> Json {
    count("Results beyond `limit`.")
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
        "How many outcomes the line has: a moneyline with a draw has 3 and is another line than one without.",
    )
}

fn record_id() -> Json {
    id("odd_", "The odds record that the price is from.")
}

fn age() -> Json {
    count("Whole seconds from `last_update` to `generated_at`.")
}

fn oldest_age() -> Json {
    count("The largest `age_s` of what was used.")
}

fn skew() -> Json {
    count("The oldest leg's age less the newest's, in seconds.")
}

fn probability() -> Json {
    json!({
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "Fair probability, nine places.",
    })
}

fn fair_price() -> Json {
    json!({
        "type": ["number", "string", "null"],
        "pattern": "^[1-9][0-9]*/[1-9][0-9]*$",
        "description": "The price of the probability as it is written here; null where that is 0 or 1.",
    })
}

fn stale() -> Json {
    count("Older than the limit.")
}

fn incomplete() -> Json {
    count("Not all outcomes of the line, or of a field less than nine tenths.")
}

fn underround() -> Json {
    count("Prices that alone add up to less than the number of winners.")
}
