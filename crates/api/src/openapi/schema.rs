//! The objects of answers: exact fields, which of them are always there, and which may be null (D12).

use domain::{Format, Market, Region, Status};
use serde_json::{Value, json};

use crate::error::ErrorCode;
use crate::openapi::{object, refer};

/// Every schema by name.
pub(crate) fn all(pushed: [(&'static str, Value); 8]) -> Value {
    let own = [
        ("SportList", sport_list()),
        ("Sport", sport()),
        ("Bookmaker", bookmaker()),
        ("OddsRecord", odds_record()),
        ("Outcome", outcome()),
        ("Price", price()),
        ("GroupedBouts", grouped_bouts()),
        ("BoutSource", bout_source()),
        ("Bout", bout()),
        ("BoutBook", bout_book()),
        ("BoutOutcome", bout_outcome()),
        ("ScoreRecord", score_record()),
        ("Period", period()),
        ("Event", event()),
        ("ServiceStatus", service_status()),
        ("RateLimit", rate_limit()),
        ("Timestamp", timestamp()),
        ("TimestampMs", timestamp_ms()),
        (
            "MarketKey",
            json!({ "type": "string", "enum": Market::ALL.map(Market::key), "description": "A market." }),
        ),
        ("Status", status()),
        ("Error", error()),
    ];
    let all = own.into_iter().chain(pushed);
    object(all.map(|(name, schema)| (name.to_owned(), schema)))
}

/// A closed object; what is not optional is always there.
pub(super) fn record(meaning: &str, fields: Vec<(&str, Value)>, optional: &[&str]) -> Value {
    let required: Vec<&str> =
        fields.iter().map(|(name, _)| *name).filter(|name| !optional.contains(name)).collect();
    json!({
        "type": "object",
        "description": meaning,
        "required": required,
        "properties": object(fields.into_iter().map(|(name, value)| (name.to_owned(), value))),
        "additionalProperties": false,
    })
}

pub(super) fn text(meaning: &str) -> Value {
    json!({ "type": "string", "description": meaning })
}

fn text_or_null(meaning: &str) -> Value {
    json!({ "type": ["string", "null"], "description": meaning })
}

fn count(meaning: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": meaning })
}

fn list(of: &str, meaning: &str) -> Value {
    json!({ "type": "array", "items": schema(of), "description": meaning })
}

fn schema(name: &str) -> Value {
    refer("schemas", name)
}

/// A reference with words of its own.
pub(super) fn meaning(name: &str, meaning: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}"), "description": meaning })
}

fn id(prefix: &str, meaning: &str) -> Value {
    json!({
        "type": "string",
        "pattern": format!("^{prefix}[0-9A-Za-z]+$"),
        "description": meaning,
    })
}

fn event_id() -> Value {
    id("evt_", "The event's id: opaque, stable across restarts, nodes and bookmakers.")
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
    json!({
        "type": "string",
        "enum": Status::ALL.map(Status::key),
        "description": "How an event stands. It goes forward only, unless its source sends a correction.",
    })
}

fn sport_list() -> Value {
    record("All sports.", vec![("sports", list("Sport", "In the catalogue's order."))], &[])
}

fn sport() -> Value {
    let fields = vec![
        ("key", text("Sport key.")),
        ("title", text("Display name.")),
        ("group", text("Sport group: the unit to which production keys can be restricted.")),
        (
            "active",
            json!({
                "type": "boolean",
                "description": "False when every source of the sport is stale or there is none: skip it \
                                instead of retrying.",
            }),
        ),
        ("events", count("Scheduled and live events.")),
        ("books", count("Bookmakers pricing the sport.")),
    ];
    record("A sport.", fields, &[])
}

fn bookmaker() -> Value {
    let regions = json!({
        "type": "array",
        "items": { "type": "string", "enum": Region::ALL.map(Region::key) },
        "minItems": 1,
        "uniqueItems": true,
        "description": "Where it is offered.",
    });
    let fields = vec![
        ("key", text("Bookmaker key.")),
        ("title", text("Display name.")),
        ("regions", regions),
    ];
    record("A bookmaker.", fields, &[])
}

fn odds_record() -> Value {
    let format = json!({
        "type": "string",
        "enum": Format::ALL.map(Format::key),
        "description": "How `price` is written; the `odds_format` asked for.",
    });
    let fields = vec![
        ("id", id("odd_", "The record's id; it stays while price and line move.")),
        ("sport_key", text("Sport key.")),
        ("event_id", event_id()),
        ("bookmaker", text("Bookmaker key.")),
        ("market", meaning("MarketKey", "The market.")),
        ("format", format),
        (
            "last_update",
            meaning("Timestamp", "When this price was last confirmed, changed or not."),
        ),
        ("outcomes", list("Outcome", "What can be bet on.")),
    ];
    record("One bookmaker's market of one event.", fields, &[])
}

fn outcome() -> Value {
    let point = json!({
        "type": ["number", "null"],
        "multipleOf": 0.25,
        "description": "The signed handicap or the total; null for markets without one.",
    });
    let fields = vec![
        ("name", text("Participant or side; `Over` and `Under` for totals.")),
        ("price", meaning("Price", "What it pays.")),
        ("point", point),
    ];
    record("One outcome and what it pays.", fields, &[])
}

fn price() -> Value {
    json!({
        "description": "What the outcome pays, in the format asked for.",
        "anyOf": [
            {
                "title": "american",
                "type": "integer",
                "anyOf": [{ "maximum": -101 }, { "minimum": 100 }],
                "description": "Signed; even money is 100.",
                "examples": [-110, 150],
            },
            {
                "title": "decimal",
                "type": "number",
                "exclusiveMinimum": 1,
                "description": "Return per unit staked, the stake included.",
                "examples": [1.909, 2.5],
            },
            {
                "title": "fractional",
                "type": "string",
                "pattern": "^[1-9][0-9]*/[1-9][0-9]*$",
                "description": "Profit to stake, in lowest terms.",
                "examples": ["10/11", "3/2"],
            },
        ],
    })
}

fn grouped_bouts() -> Value {
    let fields = vec![
        ("sport", text("Sport key.")),
        ("generated_at", meaning("TimestampMs", "When the snapshot was published.")),
        (
            "sources",
            list("BoutSource", "The sport's sources that pass the bookmaker and region filter."),
        ),
        ("bouts", list("Bout", "Bouts with a price for the filter, in the order of events.")),
    ];
    record("A fight sport's moneyline, bout by bout (`group_by=bout`).", fields, &[])
}

fn bout_source() -> Value {
    let stale = json!({
        "type": "boolean",
        "description": "True when there was no good read from it recently.",
    });
    let fields = vec![
        ("book", text("Bookmaker key.")),
        ("last_update", meaning("Timestamp", "The last good read.")),
        ("stale", stale),
        (
            "latency_ms",
            count("How long the last good read took (polled) or how late it arrived (pushed)."),
        ),
    ];
    record("One bookmaker's feed for the sport.", fields, &[])
}

fn bout() -> Value {
    let fields = vec![
        ("home", text("The one fighter.")),
        ("away", text("The other fighter.")),
        ("commence_time", meaning("Timestamp", "When it starts.")),
        ("books", list("BoutBook", "Each bookmaker's moneyline.")),
    ];
    record("A bout.", fields, &[])
}

fn bout_book() -> Value {
    let fields = vec![
        ("book", text("Bookmaker key.")),
        ("last_update", meaning("Timestamp", "When this price was last confirmed.")),
        ("outcomes", list("BoutOutcome", "The fighters, and the draw where it is offered.")),
    ];
    record("A bookmaker's moneyline of a bout.", fields, &[])
}

fn bout_outcome() -> Value {
    let fields = vec![("name", text("The fighter.")), ("price", meaning("Price", "What it pays."))];
    record("A fighter and what a win pays.", fields, &[])
}

fn score_record() -> Value {
    let score = |whose: &str| {
        json!({
            "type": ["integer", "null"],
            "description": format!("{whose} score; null for golf, and until a source reports it."),
        })
    };
    let fields = vec![
        ("event_id", event_id()),
        ("sport_key", text("Sport key.")),
        ("status", meaning("Status", "How the event stands.")),
        ("home_team", text("The home side; for golf the leader, `TBD` before the first score.")),
        ("away_team", text("The away side; for golf the runner-up, `TBD` before the first score.")),
        ("home_score", score("The home side's")),
        ("away_score", score("The away side's")),
        ("periods", list("Period", "Sets, quarters, rounds; for golf the leaders' round totals.")),
        ("updated_at", meaning("Timestamp", "When the score last changed.")),
        ("winner", text("The fighter who won; only there for a finished fight.")),
    ];
    record("How an event stands, with period detail.", fields, &["winner"])
}

fn period() -> Value {
    let score = |whose: &str| json!({ "type": "integer", "description": whose });
    let number = json!({ "type": "integer", "minimum": 1, "description": "Counted from 1." });
    let fields = vec![
        ("number", number),
        ("home_score", score("The home side's score in it; for golf the leader's total.")),
        ("away_score", score("The away side's score in it; for golf the runner-up's total.")),
    ];
    record("A set, quarter or round.", fields, &[])
}

fn event() -> Value {
    let fields = vec![
        ("id", event_id()),
        ("sport_key", text("Sport key.")),
        ("title", text("The tournament; only there for golf.")),
        ("competition", text("The league, tour or card it belongs to.")),
        (
            "commence_time",
            meaning("Timestamp", "When it starts; for golf, the first round's tee time."),
        ),
        ("home_team", text_or_null("The home side; null for golf.")),
        ("away_team", text_or_null("The away side; null for golf.")),
        ("status", meaning("Status", "How the event stands.")),
        ("markets", list("MarketKey", "The markets with prices now.")),
    ];
    record("An event.", fields, &["title"])
}

fn service_status() -> Value {
    let status = json!({
        "type": "string",
        "enum": ["ok", "degraded", "maintenance"],
        "description": "`degraded`: at least one source is stale, its prices still served. \
                        `maintenance`: every other endpoint answers 503.",
    });
    let fields = vec![
        ("status", status),
        ("api_version", json!({ "type": "string", "const": "v1", "description": "The version." })),
        ("server_time", meaning("Timestamp", "Now.")),
        ("rate_limit", meaning("RateLimit", "The limits of the calling key.")),
        ("sports_active", count("Sports with a source that is not stale.")),
    ];
    record("How the service is, as the key sees it.", fields, &[])
}

fn rate_limit() -> Value {
    let fields = vec![
        ("burst_per_minute", count("Requests in one UTC minute.")),
        ("requests_per_day", count("Requests in one UTC day.")),
    ];
    record("The limits of the calling key.", fields, &[])
}

fn error() -> Value {
    let mut codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.slug()).collect();
    codes.dedup();
    let code = json!({ "type": "string", "enum": codes, "description": "For programs." });
    let fields = vec![
        ("code", code),
        ("message", text("For people: what was wrong and what would be right. It may change.")),
        ("request_id", id("req_", "The request's id, also in `x-request-id`.")),
        ("param", text("The parameter to blame; only there when there is one.")),
    ];
    let error = record("What went wrong.", fields, &["param"]);
    record("The body of every answer that is not 2xx or 304.", vec![("error", error)], &[])
}
