//! Where a page ended (D15): the sort key of its last record, so that it means the same place in every
//! epoch. Opaque to clients; checked when it comes back.

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};

use domain::{EventId, Market, RecordId, Timestamp};

/// After which record, event or bout to go on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cursor {
    pub(crate) commence_time: Timestamp,
    pub(crate) event: EventId,
    /// Absent where whole events are paged through.
    pub(crate) record: Option<RecordPlace>,
}

/// A record's place among those of its event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct RecordPlace {
    pub(crate) bookmaker: Box<str>,
    pub(crate) market: Market,
    pub(crate) record: RecordId,
}

/// What a cursor pages through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    Records,
    Events,
}

/// First byte of every cursor, so that its form can change.
const VERSION: u8 = 1;
/// What most cursors take.
const BYTES: usize = 64;
/// A cursor is far shorter; a longer text is not one.
const TEXT_MAX: usize = 200;

impl Cursor {
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        BASE64URL_NOPAD.encode(&postcard::to_extend(self, bytes).unwrap_or_default())
    }

    /// Reads a cursor that pages through the expected kind of thing.
    pub fn decode(text: &str, paging: Paging) -> Option<Self> {
        if text.len() > TEXT_MAX {
            return None;
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        let (&version, rest) = bytes.split_first()?;
        let (cursor, left) = postcard::take_from_bytes::<Self>(rest).ok()?;
        let fits = cursor.record.is_some() == (paging == Paging::Records);
        (version == VERSION && left.is_empty() && fits).then_some(cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went_and_nothing_else_does() {
        let events = Cursor {
            commence_time: Timestamp::from_secs(1_800_000_000),
            event: EventId::from_number(77),
            record: None,
        };
        let place = RecordPlace {
            bookmaker: "fanduel".into(),
            market: Market::Spread,
            record: RecordId::from_number(5),
        };
        let records = Cursor { record: Some(place), ..events.clone() };
        assert_eq!(Cursor::decode(&events.encode(), Paging::Events), Some(events.clone()));
        assert_eq!(Cursor::decode(&records.encode(), Paging::Records), Some(records.clone()));
        assert_eq!(Cursor::decode(&records.encode(), Paging::Events), None);
        assert_eq!(Cursor::decode(&events.encode(), Paging::Records), None);
        let long = "A".repeat(10_000);
        for bad in ["", "x", "!!!!", "AAAA", &long] {
            assert_eq!(Cursor::decode(bad, Paging::Events), None, "{bad}");
        }
    }
}
