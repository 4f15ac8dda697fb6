//! The events of a stream.

use std::collections::BTreeMap;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::macros::{open_enum, record};
use crate::types::{Event, OddsRecord, ScoreRecord};

open_enum! {
    /// The contents of a stream.
    Channel {
        Odds = "odds",
        Scores = "scores",
        Events = "events",
    }
}

open_enum! {
    /// When changes are sent.
    StreamMode {
        Publication = "publication",
        Live = "live",
    }
}

open_enum! {
    /// Why a record was removed.
    RemovedReason {
        NoPrices = "no_prices",
        Removed = "removed",
        Final = "final",
        Merged = "merged",
        Expired = "expired",
        Filter = "filter",
    }
}

open_enum! {
    /// Why a stream could not continue from its cursor.
    ResetReason {
        Expired = "expired",
        Unknown = "unknown",
        Selection = "selection",
    }
}

open_enum! {
    /// Why a stream ended.
    EndCode {
        Done = "done",
        AuthenticationFailed = "authentication_failed",
        Forbidden = "forbidden",
        QuotaExceeded = "quota_exceeded",
        Maintenance = "maintenance",
        Unavailable = "unavailable",
        Slow = "slow",
    }
}

record! {
    /// A record that is no longer in a selection.
    Removed {
        /// The record's id; of scores and events, the event's.
        id: String,
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// `no_prices`: suspended or emptied. `removed`: withdrawn. `final`: the event is over. `merged`: it is the
        /// same as another event. `expired`: it ended long ago. `filter`: it exists, but is no longer in the
        /// selection.
        reason: RemovedReason,
    }
}

record! {
    /// Changes of odds since a cursor. Store `upserts` by id and delete `removed`.
    OddsDelta {
        /// The position of this answer: the next `since`.
        cursor: String,
        /// When the publication was made.
        published_at: String,
        /// New and changed records, as odds show them.
        upserts: Vec<OddsRecord>,
        /// Records that the selection no longer has.
        removed: Vec<Removed>,
    }
}

record! {
    /// Changes of scores since a cursor.
    ScoresDelta {
        /// The position of this answer: the next `since`.
        cursor: String,
        /// When the publication was made.
        published_at: String,
        /// New and changed scores.
        upserts: Vec<ScoreRecord>,
        /// Scores that the selection no longer has.
        removed: Vec<Removed>,
    }
}

record! {
    /// Changes of events since a cursor.
    EventsDelta {
        /// The position of this answer: the next `since`.
        cursor: String,
        /// When the publication was made.
        published_at: String,
        /// New and changed events.
        upserts: Vec<Event>,
        /// Events that the selection no longer has.
        removed: Vec<Removed>,
    }
}

record! {
    /// The first event of a stream: its properties.
    StreamHello {
        /// The stream's id, for questions to the operator.
        stream: String,
        /// When changes are sent: with each publication.
        mode: StreamMode,
        /// The sports of the stream.
        sports: Vec<String>,
        /// The channels of the stream: `odds`, `scores`, `events`.
        channels: Vec<String>,
        /// Whether it continues from the client's cursor, without a snapshot.
        resumed: bool,
        /// Seconds without an event before a comment is sent.
        heartbeat_s: u64,
        /// Interval of publications.
        interval_ms: u64,
    }
}

record! {
    /// The initial records: those of one channel and sport, in parts of up to 500.
    StreamSnapshot {
        /// The channel of the records.
        channel: Channel,
        /// Sport key.
        sport: String,
        /// Number of this part, from 1.
        part: u64,
        /// Number of parts.
        parts: u64,
        /// The records, as in the list of the same selection.
        records: Vec<StreamRecord>,
    }
}

record! {
    /// Changes in one channel and sport. Store `upserts` by id and delete `removed`.
    StreamDelta {
        /// The channel of the records.
        channel: Channel,
        /// Sport key.
        sport: String,
        /// New and changed records.
        upserts: Vec<StreamRecord>,
        /// Records that the selection no longer has.
        removed: Vec<Removed>,
    } absent {
        /// True if it combines several publications.
        conflated: bool,
    }
}

record! {
    /// The freshness of a sport's sources, as of the publication.
    StreamFresh {
        /// Sport key.
        sport: String,
        /// The bookmakers of the selection.
        sources: Vec<StreamSource>,
    } absent {
        /// With `freshness=records`: the ids of records without other changes, by their new `last_update`.
        touched: BTreeMap<String, Vec<String>>,
    }
}

record! {
    /// The freshness of a bookmaker's prices of a sport.
    StreamSource {
        /// Bookmaker key.
        book: String,
        /// When it was last read.
        last_update: String,
        /// True if that is too long ago.
        stale: bool,
    }
}

record! {
    /// The end of events that belong together: now the client has a complete publication.
    StreamCut {
        /// The position of the stream: `since`, or `Last-Event-ID`, to continue from here.
        cursor: String,
        /// When the publication was made.
        at: String,
        /// Whether a publication ends here.
        published: bool,
    }
}

record! {
    /// The client's cursor cannot be used: discard the state, a snapshot follows.
    StreamReset {
        /// `expired`: it is too old. `unknown`: it is from another log, or not a cursor. `selection`: it is from
        /// another selection.
        reason: ResetReason,
    }
}

record! {
    /// The stream ends; the connection closes.
    StreamEnd {
        /// The reason. `done`: `until` is reached. `slow`: the client does not read. Others are error codes.
        code: EndCode,
        /// The reason, for people. It may change.
        message: String,
        /// Seconds after which to connect again.
        retry_after_s: u64,
    }
}

/// A record of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamRecord {
    Odds(OddsRecord),
    Score(ScoreRecord),
    Event(Event),
    /// A record of a channel that this version of the client does not know.
    Other(Value),
}

impl StreamRecord {
    /// The key of the record: its id; for scores and events that of the event.
    pub fn id(&self) -> &str {
        match self {
            Self::Odds(record) => &record.id,
            Self::Score(record) => &record.event_id,
            Self::Event(event) => &event.id,
            Self::Other(value) => value.get("id").and_then(Value::as_str).unwrap_or_default(),
        }
    }
}

impl<'de> Deserialize<'de> for StreamRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A field that only records of one channel have.
        #[derive(Deserialize)]
        struct Shape {
            outcomes: Option<IgnoredAny>,
            periods: Option<IgnoredAny>,
            commence_time: Option<IgnoredAny>,
        }

        let json = Box::<RawValue>::deserialize(deserializer)?;
        let read = serde_json::from_str(json.get()).and_then(|shape| match shape {
            Shape { outcomes: Some(_), .. } => serde_json::from_str(json.get()).map(Self::Odds),
            Shape { periods: Some(_), .. } => serde_json::from_str(json.get()).map(Self::Score),
            Shape { commence_time: Some(_), .. } => {
                serde_json::from_str(json.get()).map(Self::Event)
            }
            Shape { .. } => serde_json::from_str(json.get()).map(Self::Other),
        });
        read.map_err(D::Error::custom)
    }
}

impl Serialize for StreamRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Odds(record) => record.serialize(serializer),
            Self::Score(record) => record.serialize(serializer),
            Self::Event(event) => event.serialize(serializer),
            Self::Other(value) => value.serialize(serializer),
        }
    }
}
