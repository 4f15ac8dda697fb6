//! Lines of a push, with defaults for fields that a test does not care about.

use serde_json::{Value, json};

/// Start of the events in tests, unless given.
pub(crate) const COMMENCE: &str = "2026-11-22T03:00:00Z";

pub(crate) fn event(reference: &str, sport: &str, home: &str, away: &str) -> Value {
    event_at(reference, sport, home, away, COMMENCE)
}

pub(crate) fn event_at(
    reference: &str,
    sport: &str,
    home: &str,
    away: &str,
    commence: &str,
) -> Value {
    json!({
        "type": "event", "ref": reference, "sport": sport, "competition": "Cup",
        "commence_time": commence, "home": home, "away": away,
    })
}

pub(crate) fn tournament(reference: &str, title: &str) -> Value {
    json!({
        "type": "event", "ref": reference, "sport": "golf", "competition": "Tour",
        "commence_time": COMMENCE, "title": title,
    })
}

/// A moneyline in American prices.
pub(crate) fn moneyline(
    reference: &str,
    bookmaker: &str,
    home: (&str, i32),
    away: (&str, i32),
) -> Value {
    json!({
        "type": "odds", "ref": reference, "bookmaker": bookmaker, "market": "moneyline",
        "format": "american",
        "outcomes": [
            { "name": home.0, "price": home.1 }, { "name": away.0, "price": away.1 },
        ],
    })
}

pub(crate) fn odds(
    reference: &str,
    bookmaker: &str,
    market: &str,
    format: &str,
    outcomes: &Value,
) -> Value {
    json!({
        "type": "odds", "ref": reference, "bookmaker": bookmaker, "market": market,
        "format": format, "outcomes": outcomes,
    })
}

pub(crate) fn score(reference: &str, status: &str, home: i32, away: i32) -> Value {
    json!({
        "type": "score", "ref": reference, "status": status, "home_score": home,
        "away_score": away, "periods": [],
    })
}

pub(crate) fn heartbeat(bookmaker: &str, sport: &str) -> Value {
    json!({ "type": "heartbeat", "bookmaker": bookmaker, "sport": sport })
}

/// The same line with another `ts`.
pub(crate) fn stamped(mut line: Value, ts: &str) -> Value {
    line["ts"] = ts.into();
    line
}
