//! The events of a stream.

use std::collections::BTreeMap;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::macros::{open_enum, record};
use crate::types::{Event, OddsRecord, ScoreRecord};

open_enum! {
    /// What a stream carries.
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
    /// Why a record is gone.
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
    /// Why a stream could not go on from its cursor.
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
    /// Something that a selection no longer has.
    Removed {
        /// The record's id; of scores and events, the event's.
        id: String,
        /// The event's id: opaque, stable across restarts, nodes and bookmakers.
        event_id: String,
        /// `no_prices`: suspended or emptied. `removed`: taken back. `final`: the event is over. `merged`: it is the
        /// same as another. `expired`: it was over long ago. `filter`: it is there, and not in the selection any
        /// more.
        reason: RemovedReason,
    }
}

record! {
    /// What changed in odds since a cursor. Put `upserts` by id and delete `removed`.
    OddsDelta {
        /// Where this answer stands: the next `since`.
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
    /// What changed in scores since a cursor.
    ScoresDelta {
        /// Where this answer stands: the next `since`.
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
    /// What changed in events since a cursor.
    EventsDelta {
        /// Where this answer stands: the next `since`.
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
    /// The first event of a stream: what follows.
    StreamHello {
        /// The stream's id, for questions to the operator.
        stream: String,
        /// When changes are sent: with each publication.
        mode: StreamMode,
        /// The sports that are followed.
        sports: Vec<String>,
        /// What is followed of them: `odds`, `scores`, `events`.
        channels: Vec<String>,
        /// Whether it goes on from the client's cursor, without a snapshot.
        resumed: bool,
        /// Seconds without an event before a comment comes.
        heartbeat_s: u64,
        /// How often there is a publication.
        interval_ms: u64,
    }
}

record! {
    /// Records to begin with: those of one channel and sport, in parts of up to 500.
    StreamSnapshot {
        /// What the records are.
        channel: Channel,
        /// Sport key.
        sport: String,
        /// Which part this is, from 1.
        part: u64,
        /// How many there are.
        parts: u64,
        /// The records, as the list of the same selection shows them.
        records: Vec<StreamRecord>,
    }
}

record! {
    /// What changed in one channel and sport. Put `upserts` by id and delete `removed`.
    StreamDelta {
        /// What the records are.
        channel: Channel,
        /// Sport key.
        sport: String,
        /// New and changed records.
        upserts: Vec<StreamRecord>,
        /// Records that the selection no longer has.
        removed: Vec<Removed>,
    } absent {
        /// True where it is the sum of several publications.
        conflated: bool,
    }
}

record! {
    /// How fresh the sources of a sport are, as of the publication.
    StreamFresh {
        /// Sport key.
        sport: String,
        /// The bookmakers of the selection.
        sources: Vec<StreamSource>,
    } absent {
        /// With `freshness=records`: by the new `last_update`, the ids of the records that are the same otherwise.
        touched: BTreeMap<String, Vec<String>>,
    }
}

record! {
    /// How fresh a bookmaker's prices of a sport are.
    StreamSource {
        /// Bookmaker key.
        book: String,
        /// When it was last read.
        last_update: String,
        /// Whether that is too long ago.
        stale: bool,
    }
}

record! {
    /// The end of what belongs together: from here on the client has all of a publication.
    StreamCut {
        /// Where the stream stands: `since`, or `Last-Event-ID`, to go on from here.
        cursor: String,
        /// When the publication was made.
        at: String,
        /// Whether a publication ends here.
        published: bool,
    }
}

record! {
    /// The client's cursor cannot be used: forget what is known, a snapshot follows.
    StreamReset {
        /// `expired`: it is too old. `unknown`: it is of another log, or no cursor. `selection`: it is of another
        /// selection.
        reason: ResetReason,
    }
}

record! {
    /// The stream ends; the connection closes.
    StreamEnd {
        /// Why. `done`: `until` is reached. `slow`: the client does not read. Others are error codes.
        code: EndCode,
        /// Why, for people. It may change.
        message: String,
        /// When it makes sense to connect again.
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
    /// What it is put by: the record's id; for scores and events that of the event.
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
