//! Ingest: the push endpoint of feeds.

use domain::Format;
use domain::message::{
    FRESH_FOR_S_MAX, FUTURE_TS_MS_MAX, NAME_BYTES_MAX, OUTCOMES_MAX, PERIODS_MAX, REF_BYTES_MAX,
    RejectCode, WORDS_MAX,
};
use serde_json::{Value, json};

use crate::error::ErrorCode;
use crate::ingest::{BODY_BYTES_MAX, LINES_MAX, LISTED_MAX, PATH};
use crate::openapi::caller::Caller;
use crate::openapi::header::headers_for_anyone;
use crate::openapi::response::Responses;
use crate::openapi::{example, object, refer};
use crate::v1::wire::object::{closed, schema, text};

const MEANING: &str = "\
For operators: how a source of prices delivers. The body is NDJSON, one message a line. An accepted message is \
durable before the answer; clients see it in the next snapshot. A bad line never harms the others. Sending a \
message twice changes nothing; the same prices with a newer `ts` count as `unchanged` and confirm freshness; a \
message with an older `ts` than what is held is `superseded`. A `ref` is the source's own id of an event: the \
service finds out which of its events is meant, under whichever spelling. Ingest may have a listener of its own.";

const NDJSON: &str = "application/x-ndjson";

/// The path item of ingest.
pub(crate) fn path(responses: &mut Responses) -> (String, Value) {
    let mut answers = vec![("200".to_owned(), success())];
    let codes = ErrorCode::ALL.into_iter().filter(|code| can_answer(*code));
    answers.extend(responses.refusals(Caller::Feed, codes));
    let unpacked = BODY_BYTES_MAX >> 20;
    let body = format!(
        "One message per line, or a single message as JSON without line breaks; at most {unpacked} MiB uncompressed \
        and {LINES_MAX} lines, within 30 s."
    );
    let item = json!({
        "post": {
            "tags": ["Feeds"],
            "operationId": "push_messages",
            "summary": "Push messages",
            "description": MEANING,
            "security": [{ "FeedToken": [] }],
            "parameters": [{
                "name": "Content-Encoding",
                "in": "header",
                "description": "Compression of the body.",
                "schema": { "type": "string", "enum": ["gzip", "zstd", "identity"] },
            }],
            "requestBody": {
                "required": true,
                "description": body,
                "content": {
                    NDJSON: {
                        "schema": { "type": "string" },
                        "x-line-schema": refer("schemas", "FeedMessage"),
                        "examples": {
                            "messages": { "summary": "An event, its odds and a heartbeat", "value": example::PUSH },
                        },
                    },
                    // A message is one line; generated clients can send only JSON.
                    "application/json": {
                        "schema": refer("schemas", "FeedMessage"),
                        "examples": {
                            "message": { "summary": "A single message", "value": example::message() },
                        },
                    },
                },
            },
            "responses": object(answers),
        },
    });
    (PATH.to_owned(), item)
}

fn success() -> Value {
    json!({
        "description": "The result of each line, even if all lines were rejected.",
        "headers": headers_for_anyone(),
        "content": {
            "application/json": {
                "schema": refer("schemas", "PushReceipt"),
                "examples": {
                    "receipt": { "summary": "The last line was rejected", "value": example::receipt() },
                },
            },
        },
    })
}

fn can_answer(code: ErrorCode) -> bool {
    match code {
        ErrorCode::InvalidBody
        | ErrorCode::AuthenticationFailed
        | ErrorCode::Forbidden
        | ErrorCode::MethodNotAllowed
        | ErrorCode::FeedPaused
        | ErrorCode::BodyTooLarge
        | ErrorCode::TargetTooLong
        | ErrorCode::HeadTooLarge
        | ErrorCode::Internal
        | ErrorCode::Unavailable => true,
        ErrorCode::InvalidParameter
        | ErrorCode::SportNotFound
        | ErrorCode::EventNotFound
        | ErrorCode::NotInHistory
        | ErrorCode::CursorExpired
        | ErrorCode::NotFound
        | ErrorCode::RateLimited
        | ErrorCode::QuotaExceeded
        | ErrorCode::UpgradeRequired
        | ErrorCode::TooManyStreams
        | ErrorCode::RangeNotSatisfiable
        | ErrorCode::Maintenance => false,
    }
}

/// The schemas of ingest.
pub(super) fn schemas() -> [(&'static str, Value); 8] {
    [
        ("FeedMessage", feed_message()),
        ("FeedEvent", feed_event()),
        ("FeedOdds", feed_odds()),
        ("FeedScore", feed_score()),
        ("FeedRemove", feed_remove()),
        ("FeedHeartbeat", feed_heartbeat()),
        ("PushReceipt", push_receipt()),
        ("RejectedLine", rejected_line()),
    ]
}

fn feed_message() -> Value {
    let kinds = ["event", "odds", "score", "remove", "heartbeat"];
    let schemas = ["FeedEvent", "FeedOdds", "FeedScore", "FeedRemove", "FeedHeartbeat"];
    let mapping = kinds.iter().zip(schemas).map(|(kind, schema)| {
        ((*kind).to_owned(), Value::from(format!("#/components/schemas/{schema}")))
    });
    json!({
        "description": "One line of a push. Unknown fields are ignored, unknown types rejected.",
        "oneOf": schemas.map(|schema| refer("schemas", schema)),
        "discriminator": { "propertyName": "type", "mapping": object(mapping) },
    })
}

/// A message; unlike a response it may have unknown fields.
fn message(kind: &str, meaning: &str, mut fields: Vec<(&str, Value)>, optional: &[&str]) -> Value {
    let mut all = vec![("type", json!({ "type": "string", "const": kind }))];
    all.append(&mut fields);
    all.push((
        "ts",
        instant("Time of the event or change according to the source; the arrival time if absent."),
    ));
    let optional: Vec<&str> = optional.iter().copied().chain(["ts"]).collect();
    open(meaning, all, &optional)
}

fn open(meaning: &str, fields: Vec<(&str, Value)>, optional: &[&str]) -> Value {
    let mut schema = closed(meaning, fields, optional);
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("additionalProperties".to_owned(), true.into());
    }
    schema
}

fn instant(meaning: &str) -> Value {
    let ahead_s = FUTURE_TS_MS_MAX / 1000;
    let meaning = format!("{meaning} At most {ahead_s} s ahead of the service's clock.");
    json!({ "type": "string", "format": "date-time", "description": meaning })
}

fn reference() -> Value {
    let meaning = format!("The source's own id of the event, at most {REF_BYTES_MAX} bytes.");
    json!({ "type": "string", "minLength": 1, "maxLength": REF_BYTES_MAX, "description": meaning })
}

fn name(meaning: &str) -> Value {
    let meaning = format!(
        "{meaning} At most {NAME_BYTES_MAX} bytes and {WORDS_MAX} words, without invisible characters."
    );
    json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX, "description": meaning })
}

fn bookmaker() -> Value {
    text(
        "Bookmaker key. With a token that is bound to a bookmaker, it must be that one and may be omitted.",
    )
}

fn fresh_for() -> Value {
    let meaning = "Time after `ts` during which the source is fresh, in seconds, if that is longer than the \
                  service's limit. For sources that are read less often.";
    json!({ "type": "integer", "minimum": 1, "maximum": FRESH_FOR_S_MAX, "description": meaning })
}

fn feed_event() -> Value {
    let start = json!({ "type": "string", "format": "date-time", "description": "Start time." });
    let fields = vec![
        ("ref", reference()),
        ("sport", text("Sport key.")),
        ("competition", name("League, tour or card.")),
        ("commence_time", start),
        ("home", name("One participant; for head-to-head sports.")),
        ("away", name("The other participant; for head-to-head sports.")),
        ("title", name("The tournament; for golf.")),
    ];
    let meaning = "The source lists this event. Sending it again corrects its details.";
    message("event", meaning, fields, &["home", "away", "title"])
}

fn feed_odds() -> Value {
    let outcome = open(
        "An outcome under the source's name.",
        vec![
            ("name", name("Participant or side.")),
            ("price", schema("Price", "The price, in the format of the message.")),
            (
                "point",
                json!({ "type": ["number", "null"], "multipleOf": 0.25, "description": "For spreads and totals." }),
            ),
        ],
        &["point"],
    );
    let outcomes = json!({
        "type": "array",
        "items": outcome,
        "maxItems": OUTCOMES_MAX,
        "description": "All outcomes of the market; an empty list means no prices.",
    });
    let fields = vec![
        ("ref", reference()),
        ("bookmaker", bookmaker()),
        ("market", schema("MarketKey", "The market.")),
        (
            "format",
            json!({ "type": "string", "enum": Format::ALL.map(Format::key), "description": "Format of prices." }),
        ),
        ("outcomes", outcomes),
        ("suspended", json!({ "type": "boolean", "description": "True means no prices." })),
        (
            "group",
            text(
                "Identifies one of several pairings of the same market (`matchup`, `three_ball`).",
            ),
        ),
        ("fresh_for", fresh_for()),
    ];
    let meaning = "A bookmaker's current prices for a whole market; they replace all earlier ones.";
    message(
        "odds",
        meaning,
        fields,
        &["bookmaker", "format", "outcomes", "suspended", "group", "fresh_for"],
    )
}

fn feed_score() -> Value {
    let score = |meaning: &str| json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 9999, "description": meaning });
    let periods = json!({
        "type": "array",
        "items": refer("schemas", "Period"),
        "maxItems": PERIODS_MAX,
        "description": "Sets, quarters or rounds so far.",
    });
    let leader = open(
        "A player of a field.",
        vec![
            ("name", name("The player.")),
            (
                "rounds",
                json!({
                    "type": "array",
                    "items": { "type": "integer" },
                    "description": "The player's totals of the rounds played.",
                }),
            ),
        ],
        &[],
    );
    let fields = vec![
        ("ref", reference()),
        ("status", schema("Status", "The status of the event.")),
        ("home_score", score("Score of the side that the source lists as home.")),
        ("away_score", score("Score of the side that the source lists as away.")),
        ("periods", periods),
        ("winner", text("The winner; for fight sports.")),
        (
            "leaders",
            json!({ "type": "array", "items": leader, "description": "For golf, the best player first." }),
        ),
        (
            "correction",
            json!({
                "type": "boolean",
                "description": "True if an earlier report was wrong; otherwise a score that goes backwards is rejected.",
            }),
        ),
    ];
    let optional = ["home_score", "away_score", "periods", "winner", "leaders", "correction"];
    let meaning = "The score of an event. A token that is bound to one bookmaker needs the right to report scores; \
                  `live` and `final` are rejected more than a day before the start.";
    message("score", meaning, fields, &optional)
}

fn feed_remove() -> Value {
    let meaning = "The source withdrew the event. The event is removed when the last feed that listed it has withdrawn it.";
    message("remove", meaning, vec![("ref", reference())], &[])
}

fn feed_heartbeat() -> Value {
    let fields = vec![
        ("bookmaker", bookmaker()),
        ("sport", text("Sport key; all sports of the bookmaker if absent.")),
        ("fresh_for", fresh_for()),
    ];
    let meaning = "The source was read and nothing changed; keeps the source fresh.";
    message("heartbeat", meaning, fields, &["bookmaker", "sport", "fresh_for"])
}

fn push_receipt() -> Value {
    let count = |meaning: &str| json!({ "type": "integer", "minimum": 0, "description": meaning });
    let listed = format!("The first {LISTED_MAX} rejected lines, in their order.");
    let rejected = json!({
        "type": "array",
        "items": refer("schemas", "RejectedLine"),
        "maxItems": LISTED_MAX,
        "description": listed,
    });
    let fields = vec![
        ("accepted", count("Number of lines that changed something.")),
        ("unchanged", count("Number of lines that repeated current data.")),
        ("superseded", count("Number of lines older than current data.")),
        ("rejected_total", count("Number of rejected lines, listed or not.")),
        ("rejected", rejected),
    ];
    closed("The result of a push.", fields, &[])
}

fn rejected_line() -> Value {
    let codes = RejectCode::ALL.map(RejectCode::slug);
    let fields = vec![
        ("line", json!({ "type": "integer", "minimum": 1, "description": "Counted from 1." })),
        (
            "code",
            json!({ "type": "string", "enum": codes, "description": "Stable error code, for programs." }),
        ),
        ("message", text("For people.")),
    ];
    closed("A rejected line and the reason.", fields, &[])
}
