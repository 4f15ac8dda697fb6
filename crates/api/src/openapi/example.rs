//! Examples: responses of the real service to a fictional scenario.
//!
//! `tests/it/openapi.rs` plays the scenario, sends each request below and compares the responses with these files. The
//! files are never written by hand.

use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::openapi::caller::Caller;
use crate::openapi::object;
use crate::operation::Operation;

/// A request and its response.
struct Example {
    operation: Operation,
    name: &'static str,
    summary: &'static str,
    target: &'static str,
    body: &'static str,
    extent: Extent,
}

/// Shown part of the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// The first items of a long list.
    Beginning,
}

/// An event of the scenario.
pub(super) const EVENT_ID: &str = "evt_CMcfuPHZ7vj";

/// Replaces the request id, which differs between requests.
pub(super) const REQUEST_ID: &str = "req_7hK2mQ9xL4t";

/// A push of the scenario, and its receipt.
pub(super) const PUSH: &str = include_str!("examples/push.ndjson");
const RECEIPT: &str = include_str!("examples/push_receipt.json");
/// The beginning of a stream.
const STREAM: &str = include_str!("examples/stream.txt");
/// A refusal for each code.
const REFUSALS: &str = include_str!("examples/refusals.json");

macro_rules! example {
    ($operation:ident, $name:literal, $summary:literal, $target:expr, $extent:ident) => {
        Example {
            operation: Operation::$operation,
            name: $name,
            summary: $summary,
            target: $target,
            body: include_str!(concat!("examples/", $name, ".json")),
            extent: Extent::$extent,
        }
    };
}

const EXAMPLES: [Example; 24] = [
    example!(ListSports, "sports", "All sports", "/v1/sports", Whole),
    example!(GetOdds, "odds", "Every market of the upcoming fights", "/v1/sports/mma/odds", Whole),
    example!(
        GetOdds,
        "odds_bouts",
        "The moneyline, grouped by bout",
        "/v1/sports/mma/odds?group_by=bout",
        Whole
    ),
    example!(
        GetOdds,
        "odds_decimal",
        "Point spreads in decimal odds",
        "/v1/sports/american_football/odds?market=spread&odds_format=decimal",
        Whole
    ),
    example!(
        GetOdds,
        "odds_fractional",
        "One bookmaker's outright prices in fractional odds",
        "/v1/sports/golf/odds?bookmaker=bet365&market=outright&odds_format=fractional",
        Whole
    ),
    example!(
        GetScores,
        "scores_live",
        "Matches in progress",
        "/v1/sports/tennis/scores?status=live",
        Whole
    ),
    example!(
        GetScores,
        "scores_final",
        "Finished fights",
        "/v1/sports/mma/scores?status=final",
        Whole
    ),
    example!(GetScores, "scores_golf", "A golf tournament", "/v1/sports/golf/scores", Whole),
    example!(
        ListEvents,
        "events",
        "Upcoming fights",
        "/v1/sports/mma/events?status=scheduled",
        Whole
    ),
    example!(
        ListEvents,
        "events_window",
        "Games of one day",
        "/v1/sports/american_football/events?commence_from=2027-03-13T00:00:00Z&commence_to=2027-03-14T00:00:00Z",
        Whole
    ),
    example!(GetEvent, "event", "A fight", "/v1/sports/mma/events/evt_CMcfuPHZ7vj", Whole),
    example!(
        GetEvent,
        "event_golf",
        "A golf tournament",
        "/v1/sports/golf/events/evt_E4z2NoSN6No",
        Whole
    ),
    example!(
        GetBest,
        "best",
        "The best prices of boxing",
        "/v1/sports/boxing/best?market=moneyline",
        Whole
    ),
    example!(
        GetFair,
        "fair",
        "Fair prices of two-way and three-way fights",
        "/v1/sports/boxing/fair?market=moneyline&odds_format=decimal",
        Whole
    ),
    example!(
        ListArbitrages,
        "arbitrage",
        "A stake of 100 divided between two bookmakers",
        "/v1/sports/boxing/arbitrage",
        Whole
    ),
    example!(
        ListEv,
        "ev",
        "Prices above the fair ones by Shin's method",
        "/v1/sports/boxing/ev?method=shin&min_ev=0.01",
        Whole
    ),
    example!(
        ListMiddles,
        "middles",
        "Two totals that both win in between",
        "/v1/sports/boxing/middles",
        Whole
    ),
    example!(ListBooks, "books", "The first bookmakers of the list", "/v1/books", Beginning),
    example!(
        GetCoverage,
        "coverage",
        "One bookmaker's coverage of fights",
        "/v1/sports/mma/coverage?bookmaker=fanduel",
        Whole
    ),
    example!(
        ExplainEvent,
        "explain",
        "Why prices of a fight are present or missing",
        "/v1/sports/mma/events/evt_CMcfuPHZ7vj/explain",
        Whole
    ),
    example!(
        GetPricePath,
        "price_path",
        "One bookmaker's price history of a fight",
        "/v1/sports/mma/events/evt_CMcfuPHZ7vj/odds/history?bookmaker=fanduel",
        Whole
    ),
    example!(
        GetClosing,
        "closing",
        "Closing lines of fights, a few at a time",
        "/v1/sports/boxing/odds/closing?limit=2",
        Whole
    ),
    example!(GetStatus, "status", "All sources are fresh", "/v1/status", Whole),
    example!(GetHistory, "history", "The range of `as_of`", "/v1/history", Whole),
];

/// The examples of an operation, each with its request.
pub(super) fn of(operation: Operation) -> Value {
    object(EXAMPLES.iter().filter(|example| example.operation == operation).map(|example| {
        let mut shown = json!({
            "summary": example.summary,
            "value": parse(example.body),
            "x-request": format!("GET {}", example.target),
        });
        if let (Extent::Beginning, Some(fields)) = (example.extent, shown.as_object_mut()) {
            fields.insert("x-shortened".to_owned(), true.into());
        }
        (example.name.to_owned(), shown)
    }))
}

/// The beginning of a stream, with its request.
pub(super) fn stream() -> Value {
    json!({
        "summary": "The beginning of a stream of finished fights",
        "value": STREAM,
        "x-request": "GET /v1/stream?sports=mma&channels=scores&status=final",
    })
}

pub(super) fn receipt() -> Value {
    parse(RECEIPT)
}

/// The first message of the push.
pub(super) fn message() -> Value {
    parse(PUSH.lines().next().unwrap_or_default())
}

/// A refusal for this kind of client.
pub(super) fn refusal(caller: Caller, code: ErrorCode) -> Value {
    // No request makes the service fail on purpose, so this example is not a file.
    if code == ErrorCode::Internal {
        let reply = ApiError::internal().into_reply(REQUEST_ID);
        return serde_json::from_slice(&reply.body.whole()).unwrap_or_default();
    }
    let refusals = parse(REFUSALS);
    let found = [caller.prefix(), ""]
        .into_iter()
        .find_map(|prefix| refusals.get(format!("{prefix}{code:?}")).cloned());
    found.unwrap_or_default()
}

/// Parses an embedded file; a test detects invalid JSON.
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
