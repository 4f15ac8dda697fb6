//! The events of a stream (S3): the data of each is one line of JSON. Its fields are defined once for the writer and
//! for the OpenAPI document.

mod event;

use std::collections::BTreeMap;

use domain::{RecordId, Sport, SportId, Timestamp};
use http::websocket::close_code;
use market::{OddsSelection, Snapshot};
use serde_json::json;

pub(crate) use self::event::{Event, Transport};
use super::delta::Delta;
use crate::answers::List;
use crate::error::ErrorCode;
use crate::v1::wire::object::{
    count, flag, id, list, object, one_of, push_plain, push_text, push_time, schema, text,
};

object!(StreamHello: "The first event of a stream: what follows." {
    STREAM: "stream" = id("str_", "The stream's id, for questions to the operator."),
    MODE: "mode" = one_of(Mode::KEYS, "When changes are sent: `publication` or `live`."),
    SPORTS: "sports" = texts("The sports that are followed."),
    CHANNELS: "channels" = texts("What is followed of them: `odds`, `scores`, `events`."),
    RESUMED: "resumed" = flag("Whether it goes on from the client's cursor. If not, discard all records: a snapshot follows."),
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
    TOUCHED: "touched" optional = touched(),
});

object!(StreamSource: "How fresh a bookmaker's prices of a sport are." {
    BOOK: "book" = text("Bookmaker key."),
    LAST_UPDATE: "last_update" = schema("Timestamp", "When it was last read."),
    STALE: "stale" = flag("Whether that is too long ago."),
});

object!(StreamCut: "The end of what belongs together: all of a publication or, in `live`, of what is stored so far." {
    CURSOR: "cursor" = text("Where the stream stands: `since`, or `Last-Event-ID`, to go on from here."),
    AT: "at" = schema("TimestampMs", "When the publication was made, or the last change was stored."),
    PUBLISHED: "published" = flag("Whether a publication ends here; always, but in `live`."),
});

object!(StreamReset: "The client's cursor cannot be used: forget what is known, a snapshot follows." {
    REASON: "reason" = one_of(
        Reset::KEYS,
        "`expired`: it is too old. `unknown`: it is of another log, or no cursor. `selection`: it is of another \
         selection.",
    ),
});

object!(StreamEnd: "The stream ends; the connection closes." {
    CODE: "code" = one_of(
        EndCode::KEYS,
        "Why. `done`: `until` is reached. `slow`: the client does not read. Others are error codes.",
    ),
    MESSAGE: "message" = text("Why, for people. It may change."),
    RETRY_AFTER_S: "retry_after_s" = count("When it makes sense to connect again."),
});

/// Delay before a client reconnects, in milliseconds.
const RETRY_MS: u32 = 2000;
/// Maximum number of ids in one event of freshness, so that it is no larger than a part of a snapshot.
const TOUCHED_MAX: usize = 5000;

/// A kind of list that a stream can follow.
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

    pub(crate) const fn of(list: &List) -> Self {
        match list {
            List::Odds(..) => Self::Odds,
            List::Scores(_) => Self::Scores,
            List::Events(_) => Self::Events,
        }
    }
}

/// Contents of the first event.
pub(crate) struct Hello<'a> {
    pub(crate) id: String,
    pub(crate) mode: Mode,
    pub(crate) sports: Vec<&'a str>,
    pub(crate) channels: &'a [Channel],
    pub(crate) resumed: bool,
    pub(crate) heartbeat_s: u32,
    pub(crate) interval_ms: u128,
}

/// Reason why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndCode {
    Done,
    AuthenticationFailed,
    Forbidden,
    QuotaExceeded,
    Maintenance,
    Unavailable,
    Slow,
}

impl EndCode {
    pub(crate) const ALL: [Self; 7] = [
        Self::Done,
        Self::AuthenticationFailed,
        Self::Forbidden,
        Self::QuotaExceeded,
        Self::Maintenance,
        Self::Unavailable,
        Self::Slow,
    ];
    const KEYS: [&str; Self::ALL.len()] = {
        let [done, authentication, forbidden, quota, maintenance, unavailable, slow] = Self::ALL;
        [
            done.key(),
            authentication.key(),
            forbidden.key(),
            quota.key(),
            maintenance.key(),
            unavailable.key(),
            slow.key(),
        ]
    };

    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::AuthenticationFailed => ErrorCode::AuthenticationFailed.slug(),
            Self::Forbidden => ErrorCode::Forbidden.slug(),
            Self::QuotaExceeded => ErrorCode::QuotaExceeded.slug(),
            Self::Maintenance => ErrorCode::Maintenance.slug(),
            Self::Unavailable => ErrorCode::Unavailable.slug(),
            Self::Slow => "slow",
        }
    }

    /// Close code of a WebSocket.
    pub(crate) const fn close_code(self) -> u16 {
        match self {
            Self::Done => close_code::NORMAL,
            Self::AuthenticationFailed => 4401,
            Self::Forbidden => 4403,
            Self::QuotaExceeded => 4429,
            Self::Maintenance | Self::Unavailable => 4503,
            Self::Slow => 4408,
        }
    }

    /// The end code for an error. Internal causes are only logged: clients may reconnect.
    pub(crate) fn of(error: ErrorCode) -> Self {
        let known = Self::ALL.into_iter().find(|code| code.key() == error.slug());
        known.unwrap_or(Self::Unavailable)
    }
}

/// Time at which changes are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// With each publication.
    Publication,
    /// As soon as they are stored.
    Live,
}

impl Mode {
    /// The first is the default.
    pub(crate) const ALL: [Self; 2] = [Self::Publication, Self::Live];
    pub(crate) const KEYS: [&str; 2] = ["publication", "live"];

    pub(crate) const fn key(self) -> &'static str {
        let [publication, live] = Self::KEYS;
        match self {
            Self::Publication => publication,
            Self::Live => live,
        }
    }

    pub(crate) fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.key() == key)
    }
}

/// Kind of freshness that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Freshness {
    Sources,
    /// The sources, and the records that were confirmed.
    Records,
    None,
}

impl Freshness {
    /// The first is the default.
    pub(crate) const ALL: [Self; 3] = [Self::Sources, Self::Records, Self::None];
    pub(crate) const KEYS: [&str; 3] = ["sources", "records", "none"];

    pub(crate) fn parse(key: &str) -> Option<Self> {
        Self::KEYS.iter().zip(Self::ALL).find(|(own, _)| **own == key).map(|(_, value)| value)
    }
}

/// Reason why a client has to restart from a snapshot.
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

fn touched() -> serde_json::Value {
    json!({
        "type": "object",
        "additionalProperties": { "type": "array", "items": { "type": "string" } },
        "description": "With `freshness=records`: by the new `last_update`, the ids of the records that are the same \
                        otherwise. Records in a delta have theirs.",
    })
}

pub(crate) fn hello(hello: &Hello<'_>) -> Event {
    let mut out = StreamHello::STREAM.first.to_owned();
    push_plain(&hello.id, &mut out);
    out.push_str(StreamHello::MODE.next);
    push_plain(hello.mode.key(), &mut out);
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
    out.push('}');
    Event { retry_ms: Some(RETRY_MS), ..Event::new("hello", out) }
}

/// The first event of a page: the delay before it reconnects.
pub(crate) fn greeting() -> Event {
    Event { retry_ms: Some(RETRY_MS), ..Event::new("hello", "{}") }
}

pub(crate) fn reset(reason: Reset) -> Event {
    let mut out = StreamReset::REASON.first.to_owned();
    push_plain(reason.key(), &mut out);
    out.push('}');
    Event::new("reset", out)
}

/// `retry_ms`: delay before the client should reconnect, if it differs from the one sent before.
pub(crate) fn end(
    code: EndCode,
    message: &str,
    retry_after_s: u32,
    retry_ms: Option<u32>,
) -> Event {
    let mut out = StreamEnd::CODE.first.to_owned();
    push_plain(code.key(), &mut out);
    out.push_str(StreamEnd::MESSAGE.next);
    push_text(message, &mut out);
    out.push_str(StreamEnd::RETRY_AFTER_S.next);
    out.push_str(&retry_after_s.to_string());
    out.push('}');
    Event { retry_ms, ..Event::new("end", out) }
}

/// The list that an event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListName<'a> {
    pub(crate) channel: Channel,
    pub(crate) sport: &'a Sport,
}

/// The initial records of a list.
pub(crate) fn snapshots(name: ListName<'_>, whole: &Delta) -> Vec<Event> {
    let mut parts: Vec<&[u8]> = whole.upserts.parts().collect();
    if parts.is_empty() {
        // An empty list is sent, too.
        parts.push(&[]);
    }
    let count = parts.len();
    let event = |(at, records): (usize, &[u8])| {
        let mut out = begin(StreamSnapshot::CHANNEL.first, StreamSnapshot::SPORT.next, name);
        out.push_str(StreamSnapshot::PART.next);
        out.push_str(&(at + 1).to_string());
        out.push_str(StreamSnapshot::PARTS.next);
        out.push_str(&count.to_string());
        out.push_str(StreamSnapshot::RECORDS.next);
        let mut out = out.into_bytes();
        push_items(records, &mut out);
        out.push(b'}');
        Event::new("snapshot", out)
    };
    parts.into_iter().enumerate().map(event).collect()
}

/// The changes of a list; empty if there are none.
pub(crate) fn deltas(name: ListName<'_>, delta: &Delta, conflated: bool) -> Vec<Event> {
    let (mut upserts, mut removed) = (delta.upserts.parts(), delta.removed.parts());
    let mut events = Vec::new();
    loop {
        let (new, gone) = (upserts.next(), removed.next());
        if new.is_none() && gone.is_none() {
            return events;
        }
        let mut out = begin(StreamDelta::CHANNEL.first, StreamDelta::SPORT.next, name);
        out.push_str(StreamDelta::UPSERTS.next);
        let mut out = out.into_bytes();
        push_items(new.unwrap_or_default(), &mut out);
        out.extend(StreamDelta::REMOVED.next.as_bytes());
        push_items(gone.unwrap_or_default(), &mut out);
        if conflated {
            out.extend(StreamDelta::CONFLATED.next.as_bytes());
            out.extend(b"true");
        }
        out.push(b'}');
        events.push(Event::new("delta", out));
    }
}

/// The freshness of a selection's sources and, if requested, the records that were confirmed; empty if the selection
/// has no sources.
pub(crate) fn fresh(
    odds: &OddsSelection,
    delta: Option<&Delta>,
    snapshot: &Snapshot,
) -> Vec<Event> {
    let mut sources = sources(odds, snapshot);
    let touched = delta.map(|delta| &*delta.touched).unwrap_or_default();
    if sources.is_empty() && touched.is_empty() {
        return Vec::new();
    }
    // Even if there are none, one event has to report that.
    let count = touched.len().div_ceil(TOUCHED_MAX).max(1);
    let mut parts = touched.chunks(TOUCHED_MAX);
    let event = |_| {
        let mut out = StreamFresh::SPORT.first.to_owned();
        push_plain(sport_key(odds.sport, snapshot), &mut out);
        out.push_str(StreamFresh::SOURCES.next);
        out.push('[');
        out.push_str(&std::mem::take(&mut sources));
        out.push(']');
        if delta.is_some() {
            out.push_str(StreamFresh::TOUCHED.next);
            push_touched(parts.next().unwrap_or_default(), &mut out);
        }
        out.push('}');
        Event::new("fresh", out)
    };
    (0..count).map(event).collect()
}

fn sources(odds: &OddsSelection, snapshot: &Snapshot) -> String {
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
    sources
}

/// Ids grouped by time: many records have the same time to the second.
fn push_touched(touched: &[(Timestamp, RecordId)], out: &mut String) {
    let mut by_time: BTreeMap<[u8; 20], Vec<RecordId>> = BTreeMap::new();
    for (at, id) in touched {
        by_time.entry(at.seconds_text()).or_default().push(*id);
    }
    let mut before = '{';
    for (at, ids) in by_time {
        out.push(before);
        push_plain(&String::from_utf8_lossy(&at), out);
        out.push(':');
        let ids = ids.into_iter().map(|id| {
            let mut text = String::new();
            id.push_to(&mut text);
            text
        });
        push_list(ids, out);
        before = ',';
    }
    out.push_str(if before == '{' { "{}" } else { "}" });
}

/// `published`: true if the snapshot is a publication.
pub(crate) fn cut(cursor: String, snapshot: &Snapshot, published: bool) -> Event {
    let mut out = StreamCut::CURSOR.first.to_owned();
    push_plain(&cursor, &mut out);
    out.push_str(StreamCut::AT.next);
    push_plain(&String::from_utf8_lossy(&snapshot.cut_at.millis_text()), &mut out);
    out.push_str(StreamCut::PUBLISHED.next);
    out.push_str(if published { "true}" } else { "false}" });
    Event { id: Some(cursor), ..Event::new("cut", out) }
}

fn sport_key(sport: SportId, snapshot: &Snapshot) -> &str {
    &snapshot.catalogue().sport(sport).key
}

fn begin(channel: &str, sport: &str, name: ListName<'_>) -> String {
    let mut out = channel.to_owned();
    push_plain(name.channel.key(), &mut out);
    out.push_str(sport);
    push_plain(&name.sport.key, &mut out);
    out
}

fn push_items(items: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    out.extend_from_slice(items);
    out.push(b']');
}

fn push_list(keys: impl Iterator<Item = impl AsRef<str>>, out: &mut String) {
    out.push('[');
    for (at, key) in keys.enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_plain(key.as_ref(), out);
    }
    out.push(']');
}
