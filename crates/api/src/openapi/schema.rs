//! The schemas of responses: exact fields, which are always present, and which can be null (D12). Those of v1 are
//! derived from the tables of the writers.

use domain::{Market, Status};
use serde_json::{Value, json};

use crate::error::ErrorCode;
use crate::openapi::object;
use crate::v1::wire;
use crate::v1::wire::object::{closed, id, one_of, text};

/// All schemas by name.
pub(crate) fn all(pushed: [(&'static str, Value); 8]) -> Value {
    let own = [
        ("SportList", wire::SportList::schema()),
        ("Sport", wire::Sport::schema()),
        ("Bookmaker", wire::Bookmaker::schema()),
        ("OddsRecord", wire::OddsRecord::schema()),
        ("Outcome", wire::Outcome::schema()),
        ("Price", price()),
        ("GroupedBouts", wire::GroupedBouts::schema()),
        ("BoutSource", wire::BoutSource::schema()),
        ("Bout", wire::Bout::schema()),
        ("BoutBook", wire::BoutBook::schema()),
        ("BoutOutcome", wire::BoutOutcome::schema()),
        ("ScoreRecord", wire::ScoreRecord::schema()),
        ("Period", wire::Period::schema()),
        ("Event", wire::Event::schema()),
        ("BestLines", wire::BestLines::schema()),
        ("BestLine", wire::BestLine::schema()),
        ("BestOutcome", wire::BestOutcome::schema()),
        ("FairLines", wire::FairLines::schema()),
        ("FairLine", wire::FairLine::schema()),
        ("FairOutcome", wire::FairOutcome::schema()),
        ("FairSource", wire::FairSource::schema()),
        ("Arbitrages", wire::Arbitrages::schema()),
        ("Arbitrage", wire::Arbitrage::schema()),
        ("ArbitrageLeg", wire::ArbitrageLeg::schema()),
        ("Values", wire::Values::schema()),
        ("Value", wire::Value::schema()),
        ("Middles", wire::Middles::schema()),
        ("Middle", wire::Middle::schema()),
        ("MiddleLeg", wire::MiddleLeg::schema()),
        ("RefusedOffers", wire::RefusedOffers::schema()),
        ("RefusedLines", wire::RefusedLines::schema()),
        ("ServiceStatus", wire::ServiceStatus::schema()),
        ("RateLimit", wire::RateLimit::schema()),
        ("OddsDelta", wire::OddsDelta::schema()),
        ("ScoresDelta", wire::ScoresDelta::schema()),
        ("EventsDelta", wire::EventsDelta::schema()),
        ("Removed", wire::Removed::schema()),
        ("StreamHello", wire::stream::StreamHello::schema()),
        ("StreamSnapshot", wire::stream::StreamSnapshot::schema()),
        ("StreamDelta", wire::stream::StreamDelta::schema()),
        ("StreamFresh", wire::stream::StreamFresh::schema()),
        ("StreamSource", wire::stream::StreamSource::schema()),
        ("StreamCut", wire::stream::StreamCut::schema()),
        ("StreamReset", wire::stream::StreamReset::schema()),
        ("StreamEnd", wire::stream::StreamEnd::schema()),
        ("PricePath", wire::PricePath::schema()),
        ("ClosingRecord", wire::ClosingRecord::schema()),
        ("OpeningLine", wire::OpeningLine::schema()),
        ("ClosingLine", wire::ClosingLine::schema()),
        ("PricePoint", wire::PricePoint::schema()),
        ("HistoryReach", wire::HistoryReach::schema()),
        ("HistoryGap", wire::HistoryGap::schema()),
        ("Coverage", wire::Coverage::schema()),
        ("CoveredBook", wire::CoveredBook::schema()),
        ("CoveredMarket", wire::CoveredMarket::schema()),
        ("Explanation", wire::Explanation::schema()),
        ("ExplainedBook", wire::ExplainedBook::schema()),
        ("Cell", wire::CellState::schema()),
        ("Timestamp", timestamp()),
        ("TimestampMs", timestamp_ms()),
        ("MarketKey", one_of(Market::ALL.map(Market::key), "A market.")),
        ("Status", status()),
        ("Error", error()),
    ];
    let all = own.into_iter().chain(pushed);
    object(all.map(|(name, schema)| (name.to_owned(), schema)))
}

fn timestamp() -> Value {
    json!({
        "type": "string",
        "format": "date-time",
        "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$",
        "description": "An instant in UTC, to the second.",
        "examples": ["2026-11-14T23:38:00Z"],
    })
}

fn timestamp_ms() -> Value {
    json!({
        "type": "string",
        "format": "date-time",
        "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$",
        "description": "An instant in UTC, to the millisecond.",
        "examples": ["2026-11-14T23:38:00.000Z"],
    })
}

fn status() -> Value {
    let meaning =
        "The status of an event. It only moves forward, unless its source sends a correction.";
    one_of(Status::ALL.map(Status::key), meaning)
}

/// One type for all formats, with their bounds in the description: alternatives with bounds of their own become
/// `unknown` or `Any` in generated clients.
fn price() -> Value {
    let meaning = "The price of the outcome, in the requested format. American: a signed whole number, at most -101 \
                  or at least 100; even money is 100. Decimal: the return per unit staked, including the stake; \
                  above 1. Fractional: a string, profit to stake in lowest terms.";
    json!({
        "type": ["number", "string"],
        "pattern": "^[1-9][0-9]*/[1-9][0-9]*$",
        "description": meaning,
        "examples": [-110, 150, 1.909, 2.5, "10/11"],
    })
}

fn error() -> Value {
    let mut codes: Vec<&str> = Vec::new();
    for slug in ErrorCode::ALL.iter().map(|code| code.slug()) {
        // Several refusals share a code.
        if !codes.contains(&slug) {
            codes.push(slug);
        }
    }
    let code = json!({ "type": "string", "enum": codes, "description": "Stable error code, for programs." });
    let fields = vec![
        ("code", code),
        (
            "message",
            text(
                "Explanation for people: what was wrong and how to correct it. The text may change.",
            ),
        ),
        ("request_id", id("req_", "Id of the request, also in `x-request-id`.")),
        ("param", text("The invalid parameter; present only if there is one.")),
    ];
    let error = closed("The error.", fields, &["param"]);
    closed("The body of every answer that is not 2xx or 304.", vec![("error", error)], &[])
}
