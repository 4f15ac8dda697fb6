//! The text of a cursor (D15). Opaque to clients; checked when it comes back.

use data_encoding::BASE64URL_NOPAD;
use market::analysis::LineCursor;
use market::select::{Cursor, RecordPlace};
use serde::{Serialize, de::DeserializeOwned};

/// The kind of rows that a cursor pages through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paging {
    Records,
    Events,
}

/// First byte of every cursor, as a version.
const VERSION: u8 = 1;
/// Usual length of a cursor in bytes.
const BYTES: usize = 64;
/// Maximum length of a cursor's text; real cursors are far shorter.
const TEXT_MAX: usize = 200;

pub(super) fn encode(cursor: &Cursor) -> String {
    let mut bytes = Vec::with_capacity(BYTES);
    bytes.push(VERSION);
    let place = cursor.record.as_ref().map(|at| (&at.bookmaker, at.market, at.record));
    let fields = (cursor.commence_time, cursor.event, place);
    BASE64URL_NOPAD.encode(&postcard::to_extend(&fields, bytes).unwrap_or_default())
}

/// First byte of a cursor through lines.
const LINE_VERSION: u8 = 2;

pub(super) fn encode_line(cursor: &LineCursor) -> String {
    let mut bytes = Vec::with_capacity(BYTES);
    bytes.push(LINE_VERSION);
    BASE64URL_NOPAD.encode(&postcard::to_extend(cursor, bytes).unwrap_or_default())
}

/// Decodes a cursor through lines.
pub(crate) fn decode_line(text: &str) -> Option<LineCursor> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    let (&version, rest) = bytes.split_first()?;
    let (cursor, left) = postcard::take_from_bytes(rest).ok()?;
    (version == LINE_VERSION && left.is_empty()).then_some(cursor)
}

/// First byte of a cursor through points of price paths.
const PATH_VERSION: u8 = 3;

pub(super) fn encode_path<T: Serialize>(cursor: &T) -> String {
    let mut bytes = Vec::with_capacity(BYTES);
    bytes.push(PATH_VERSION);
    BASE64URL_NOPAD.encode(&postcard::to_extend(cursor, bytes).unwrap_or_default())
}

pub(crate) fn decode_path<T: DeserializeOwned>(text: &str) -> Option<T> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    let (&version, rest) = bytes.split_first()?;
    let (cursor, left) = postcard::take_from_bytes(rest).ok()?;
    (version == PATH_VERSION && left.is_empty()).then_some(cursor)
}

/// Decodes a cursor of the expected kind.
pub(crate) fn decode(text: &str, paging: Paging) -> Option<Cursor> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    let (&version, rest) = bytes.split_first()?;
    let ((commence_time, event, place), left) = postcard::take_from_bytes(rest).ok()?;
    let record =
        Option::map(place, |(bookmaker, market, record)| RecordPlace { bookmaker, market, record });
    let fits = record.is_some() == (paging == Paging::Records);
    let cursor = Cursor { commence_time, event, record };
    (version == VERSION && left.is_empty() && fits).then_some(cursor)
}

#[cfg(test)]
mod tests {
    use domain::{EventId, Market, RecordId, Timestamp};

    use super::*;

    fn cursors() -> [(Cursor, Paging); 2] {
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
        [(events, Paging::Events), (records, Paging::Records)]
    }

    #[test]
    fn a_cursor_comes_back_as_it_went_and_nothing_else_does() {
        let [(events, _), (records, _)] = cursors();
        assert_eq!(decode(&encode(&events), Paging::Events), Some(events.clone()));
        assert_eq!(decode(&encode(&records), Paging::Records), Some(records.clone()));
        assert_eq!(decode(&encode(&records), Paging::Events), None);
        assert_eq!(decode(&encode(&events), Paging::Records), None);
        let long = "A".repeat(10_000);
        for bad in ["", "x", "!!!!", "AAAA", &long] {
            assert_eq!(decode(bad, Paging::Events), None, "{bad}");
        }
    }

    #[test]
    fn the_text_is_what_clients_hold() {
        let texts = cursors().map(|(cursor, _)| encode(&cursor));
        assert_eq!(texts, ["AYDA4oXjaE0A", "AYDA4oXjaE0BB2ZhbmR1ZWwEBQ"]);
    }

    /// Every text that differs from a cursor in one letter is either a cursor or refused.
    #[test]
    fn a_damaged_text_is_a_cursor_or_refused() {
        for (cursor, paging) in cursors() {
            let text = encode(&cursor);
            for (at, letter) in (0..text.len()).flat_map(|at| (0..=127_u8).map(move |l| (at, l))) {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = letter;
                let damaged = String::from_utf8(bytes).unwrap();
                if let Some(read) = decode(&damaged, paging) {
                    assert_eq!(decode(&encode(&read), paging), Some(read));
                }
                let mut short = text.clone();
                short.truncate(at);
                assert_eq!(decode(&short, paging), None);
            }
        }
    }
}
