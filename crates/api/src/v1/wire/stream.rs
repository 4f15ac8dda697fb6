//! The events of a stream, as Server-Sent Events (S3): each one line of JSON, its fields once for the writer and for
//! the OpenAPI document.

use bytes::Bytes;
use domain::SportId;
use market::{OddsSelection, Snapshot};
use serde_json::json;

use super::delta::Delta;
use crate::error::ErrorCode;
use crate::v1::wire::object::{
    count, flag, id, list, object, one_of, push_plain, push_text, push_time, schema, text,
};

object!(StreamHello: "The first event of a stream: what follows." {
    STREAM: "stream" = id("str_", "The stream's id, for questions to the operator."),
    MODE: "mode" = one_of(MODES, "When changes are sent: with each publication."),
    SPORTS: "sports" = texts("The sports that are followed."),
    CHANNELS: "channels" = texts("What is followed of them: `odds`, `scores`, `events`."),
    RESUMED: "resumed" = flag("Whether it goes on from the client's cursor, without a snapshot."),
    HEARTBEAT_S: "heartbeat_s" = count("Seconds without an event before a comment comes."),
    INTERVAL_MS: "interval_ms" = count("How often there is a publication."),
});

object!(StreamSnapshot: "Records to begin with: those of one channel and sport, in parts of up to 500." {
    CHANNEL: "channel" = one_of(Channel::KEYS, "What the records are."),
    SPORT: "sport" = text("Sport key."),
    PART: "part" = count("Which part this is, from 1."),
    PARTS: "parts" = count("How many there are."),
    RECORDS: "records" = records("The records, as the list of the same selection shows them."),
});

object!(StreamDelta: "What changed in one channel and sport. Put `upserts` by id and delete `removed`." {
    CHANNEL: "channel" = one_of(Channel::KEYS, "What the records are."),
    SPORT: "sport" = text("Sport key."),
    UPSERTS: "upserts" = records("New and changed records."),
    REMOVED: "removed" = list("Removed", "Records that the selection no longer has."),
    CONFLATED: "conflated" optional = flag("True where it is the sum of several publications."),
});

object!(StreamFresh: "How fresh the sources of a sport are, as of the publication." {
    SPORT: "sport" = text("Sport key."),
    SOURCES: "sources" = list("StreamSource", "The bookmakers of the selection."),
});

object!(StreamSource: "How fresh a bookmaker's prices of a sport are." {
    BOOK: "book" = text("Bookmaker key."),
    LAST_UPDATE: "last_update" = schema("Timestamp", "When it was last read."),
    STALE: "stale" = flag("Whether that is too long ago."),
});

object!(StreamCut: "The end of what belongs together: from here on the client has all of a publication." {
    CURSOR: "cursor" = text("Where the stream stands: `since`, or `Last-Event-ID`, to go on from here."),
    AT: "at" = schema("TimestampMs", "When the publication was made."),
    PUBLISHED: "published" = flag("Whether a publication ends here."),
});

object!(StreamReset: "The client's cursor cannot be used: forget what is known, a snapshot follows." {
    REASON: "reason" = one_of(
        Reset::KEYS,
        "`expired`: it is too old. `unknown`: it is of another log, or no cursor. `selection`: it is of another \
         selection.",
    ),
});

object!(StreamEnd: "The stream ends; the connection closes." {
    CODE: "code" = text("Why, as an error code."),
    MESSAGE: "message" = text("Why, for people. It may change."),
    RETRY_AFTER_S: "retry_after_s" = count("When it makes sense to connect again."),
});

const MODES: [&str; 1] = [MODE];
/// The one mode there is.
pub(crate) const MODE: &str = "publication";
/// What a client waits before it connects again, in milliseconds.
const RETRY_MS: u32 = 2000;

/// What a stream follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Channel {
    Odds,
    Scores,
    Events,
}

impl Channel {
    pub(crate) const ALL: [Self; 3] = [Self::Odds, Self::Scores, Self::Events];
    pub(crate) const KEYS: [&str; 3] = ["odds", "scores", "events"];

    pub(crate) const fn key(self) -> &'static str {
        let [odds, scores, events] = Self::KEYS;
        match self {
            Self::Odds => odds,
            Self::Scores => scores,
            Self::Events => events,
        }
    }

    pub(crate) fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.key() == key)
    }
}

/// What the first event says.
pub(crate) struct Hello<'a> {
    pub(crate) id: String,
    pub(crate) sports: Vec<&'a str>,
    pub(crate) channels: &'a [Channel],
    pub(crate) resumed: bool,
    pub(crate) heartbeat_s: u32,
    pub(crate) interval_ms: u128,
}

/// Why a client has to begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    Expired,
    Unknown,
    Selection,
}

impl Reset {
    const KEYS: [&str; 3] = ["expired", "unknown", "selection"];

    const fn key(self) -> &'static str {
        let [expired, unknown, selection] = Self::KEYS;
        match self {
            Self::Expired => expired,
            Self::Unknown => unknown,
            Self::Selection => selection,
        }
    }
}

fn texts(meaning: &str) -> serde_json::Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": meaning })
}

fn records(meaning: &str) -> serde_json::Value {
    let one = ["OddsRecord", "ScoreRecord", "Event"]
        .map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
    json!({ "type": "array", "items": { "oneOf": one }, "description": meaning })
}

pub(crate) fn hello(hello: &Hello<'_>) -> Bytes {
    let mut out = format!("retry: {RETRY_MS}\nevent: hello\ndata: ");
    out.push_str(StreamHello::STREAM.first);
    push_plain(&hello.id, &mut out);
    out.push_str(StreamHello::MODE.next);
    push_plain(MODE, &mut out);
    out.push_str(StreamHello::SPORTS.next);
    push_list(hello.sports.iter().copied(), &mut out);
    out.push_str(StreamHello::CHANNELS.next);
    push_list(hello.channels.iter().map(|channel| channel.key()), &mut out);
    out.push_str(StreamHello::RESUMED.next);
    out.push_str(if hello.resumed { "true" } else { "false" });
    out.push_str(StreamHello::HEARTBEAT_S.next);
    out.push_str(&hello.heartbeat_s.to_string());
    out.push_str(StreamHello::INTERVAL_MS.next);
    out.push_str(&hello.interval_ms.to_string());
    out.push_str("}\n\n");
    out.into()
}

pub(crate) fn reset(reason: Reset) -> Bytes {
    let mut out = format!("event: reset\ndata: {}", StreamReset::REASON.first);
    push_plain(reason.key(), &mut out);
    out.push_str("}\n\n");
    out.into()
}

/// `retry_ms`: how long the client should wait before it connects again, where that differs from what it heard.
pub(crate) fn end(
    code: ErrorCode,
    message: &str,
    retry_after_s: u32,
    retry_ms: Option<u32>,
) -> Bytes {
    let retry = retry_ms.map(|retry_ms| format!("retry: {retry_ms}\n")).unwrap_or_default();
    let mut out = format!("{retry}event: end\ndata: {}", StreamEnd::CODE.first);
    push_plain(code.slug(), &mut out);
    out.push_str(StreamEnd::MESSAGE.next);
    push_text(message, &mut out);
    out.push_str(StreamEnd::RETRY_AFTER_S.next);
    out.push_str(&retry_after_s.to_string());
    out.push_str("}\n\n");
    out.into()
}

pub(crate) fn heartbeat(seconds: u32) -> Bytes {
    format!(": {seconds}\n\n").into()
}

/// The records of a channel and sport to begin with.
pub(crate) fn snapshots(channel: Channel, sport: &str, whole: &Delta) -> Vec<Vec<u8>> {
    let mut parts: Vec<&[u8]> = whole.upserts.parts().collect();
    if parts.is_empty() {
        // That there is none is said, too.
        parts.push(&[]);
    }
    let count = parts.len();
    let event = |(at, records): (usize, &[u8])| {
        let mut out = begin("snapshot", StreamSnapshot::CHANNEL.first, channel);
        out.push_str(StreamSnapshot::SPORT.next);
        push_plain(sport, &mut out);
        out.push_str(StreamSnapshot::PART.next);
        out.push_str(&(at + 1).to_string());
        out.push_str(StreamSnapshot::PARTS.next);
        out.push_str(&count.to_string());
        out.push_str(StreamSnapshot::RECORDS.next);
        let mut out = out.into_bytes();
        push_items(records, &mut out);
        out.extend(b"}\n\n");
        out
    };
    parts.into_iter().enumerate().map(event).collect()
}

/// What changed in a channel and sport; nothing where nothing did.
pub(crate) fn deltas(
    channel: Channel,
    sport: &str,
    delta: &Delta,
    conflated: bool,
) -> Vec<Vec<u8>> {
    let (mut upserts, mut removed) = (delta.upserts.parts(), delta.removed.parts());
    let mut events = Vec::new();
    loop {
        let (new, gone) = (upserts.next(), removed.next());
        if new.is_none() && gone.is_none() {
            return events;
        }
        let mut out = begin("delta", StreamDelta::CHANNEL.first, channel);
        out.push_str(StreamDelta::SPORT.next);
        push_plain(sport, &mut out);
        out.push_str(StreamDelta::UPSERTS.next);
        let mut out = out.into_bytes();
        push_items(new.unwrap_or_default(), &mut out);
        out.extend(StreamDelta::REMOVED.next.as_bytes());
        push_items(gone.unwrap_or_default(), &mut out);
        if conflated {
            out.extend(StreamDelta::CONFLATED.next.as_bytes());
            out.extend(b"true");
        }
        out.extend(b"}\n\n");
        events.push(out);
    }
}

/// How fresh the sources of a selection are; `None` where it has none.
pub(crate) fn fresh(odds: &OddsSelection, snapshot: &Snapshot) -> Option<Vec<u8>> {
    let mut sources = String::new();
    for row in &snapshot.sport(odds.sport).sources {
        if odds.bookmakers.contains(row.bookmaker) {
            if !sources.is_empty() {
                sources.push(',');
            }
            sources.push_str(StreamSource::BOOK.first);
            push_plain(&snapshot.catalogue().bookmaker(row.bookmaker).key, &mut sources);
            sources.push_str(StreamSource::LAST_UPDATE.next);
            push_time(row.source.read_at, &mut sources);
            sources.push_str(StreamSource::STALE.next);
            sources.push_str(if row.stale { "true}" } else { "false}" });
        }
    }
    if sources.is_empty() {
        return None;
    }
    let mut out = format!("event: fresh\ndata: {}", StreamFresh::SPORT.first);
    push_plain(sport_key(odds.sport, snapshot), &mut out);
    out.push_str(StreamFresh::SOURCES.next);
    out.push('[');
    out.push_str(&sources);
    out.push_str("]}\n\n");
    Some(out.into_bytes())
}

pub(crate) fn cut(cursor: &str, snapshot: &Snapshot) -> Vec<u8> {
    let mut out = format!("event: cut\nid: {cursor}\ndata: {}", StreamCut::CURSOR.first);
    push_plain(cursor, &mut out);
    out.push_str(StreamCut::AT.next);
    push_plain(&String::from_utf8_lossy(&snapshot.cut_at.millis_text()), &mut out);
    out.push_str(StreamCut::PUBLISHED.next);
    out.push_str("true}\n\n");
    out.into_bytes()
}

pub(crate) fn sport_key(sport: SportId, snapshot: &Snapshot) -> &str {
    &snapshot.catalogue().sport(sport).key
}

fn begin(event: &str, first: &str, channel: Channel) -> String {
    let mut out = format!("event: {event}\ndata: {first}");
    push_plain(channel.key(), &mut out);
    out
}

fn push_items(items: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    out.extend_from_slice(items);
    out.push(b']');
}

fn push_list<'a>(keys: impl Iterator<Item = &'a str>, out: &mut String) {
    out.push('[');
    for (at, key) in keys.enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_plain(key, out);
    }
    out.push(']');
}
