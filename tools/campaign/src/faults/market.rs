//! The market that is pushed: a few events whose every price identifies its push.
//!
//! A pusher owns two events and counts its batches. A batch has one line for each of its series (a market of an event
//! at a bookmaker), and the price in it is 2 plus a thousandth for each batch: so the log and every answer show their
//! batch, and only the numbers have to be kept.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const PUSHERS: usize = 4;
pub(super) const BOOKMAKERS: [&str; 3] = ["fanduel", "draftkings", "betmgm"];
const EVENTS_EACH: usize = 2;
/// Names that matching never confuses.
const PEOPLE: [[&str; 2]; PUSHERS * EVENTS_EACH] = [
    ["Anton Berger", "Luis Calderon"],
    ["Dmitri Sokolov", "Kenji Watanabe"],
    ["Olu Adeyemi", "Marcus Thornhill"],
    ["Pavel Novotny", "Hassan Karimi"],
    ["Elena Marchetti", "Sofia Lindqvist"],
    ["Grace Okafor", "Yuki Tanaka"],
    ["Camille Dubois", "Ingrid Halvorsen"],
    ["Rosa Jimenez", "Wen Zhao"],
];

/// One market of one event at one bookmaker: its pusher, and its line in each of the pusher's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Series {
    pub(super) pusher: usize,
    pub(super) line: usize,
}

/// The properties of a series.
#[derive(Clone, Copy, Debug)]
struct Place {
    event: usize,
    bookmaker: &'static str,
    market: &'static str,
}

/// The sport of a pusher's events.
pub(super) fn sport(pusher: usize) -> &'static str {
    if pusher < PUSHERS / 2 { "mma" } else { "tennis" }
}

fn markets(pusher: usize) -> [&'static str; 2] {
    match sport(pusher) {
        "mma" => ["moneyline", "total_rounds"],
        _ => ["moneyline", "total_points"],
    }
}

fn places(pusher: usize) -> Vec<Place> {
    let mut places = Vec::new();
    for event in 0..EVENTS_EACH {
        for bookmaker in BOOKMAKERS {
            for market in markets(pusher) {
                places.push(Place { event: pusher * EVENTS_EACH + event, bookmaker, market });
            }
        }
    }
    places
}

pub(super) fn all_series() -> Vec<Series> {
    let lines = |pusher| (0..places(pusher).len()).map(move |line| Series { pusher, line });
    (0..PUSHERS).flat_map(lines).collect()
}

/// The series of a bookmaker's market of an event, which is found by its home side.
pub(super) fn series_of(home: &str, bookmaker: &str, market: &str) -> Option<Series> {
    let event = PEOPLE.iter().position(|[own, _]| *own == home)?;
    let pusher = event / EVENTS_EACH;
    let line = places(pusher).iter().position(|place| {
        (place.event, place.bookmaker, place.market) == (event, bookmaker, market)
    })?;
    Some(Series { pusher, line })
}

/// The lines that list a pusher's events.
pub(super) fn listing(pusher: usize) -> String {
    let mut text = String::new();
    for event in pusher * EVENTS_EACH..(pusher + 1) * EVENTS_EACH {
        let [home, away] = PEOPLE.get(event).copied().unwrap_or_default();
        let line = json!({
            "type": "event", "ref": format!("e{event}"), "sport": sport(pusher), "competition": "Fault Cup",
            "commence_time": format!("2026-06-{:02}T12:00:00Z", event + 1), "home": home, "away": away,
        });
        writeln!(text, "{line}").unwrap_or_default();
    }
    text
}

/// A pusher's batch with a number and a time.
pub(super) fn batch(pusher: usize, n: u32, ts_ms: i64) -> String {
    let mut text = String::new();
    let ts = Timestamp::from_millisecond(ts_ms).unwrap_or_default();
    let price = format!("{}.{:03}", (2000 + n) / 1000, (2000 + n) % 1000);
    for Place { event, bookmaker, market } in places(pusher) {
        let [home, away] = PEOPLE.get(event).copied().unwrap_or_default();
        let (first, second, point) = match market {
            "moneyline" => (home, away, ""),
            _ => ("Over", "Under", ",\"point\":2.5"),
        };
        // The price is written digit by digit: it must not go through floating point.
        writeln!(
            text,
            r#"{{"type":"odds","ref":"e{event}","bookmaker":"{bookmaker}","market":"{market}","format":"decimal","ts":"{ts:.3}","outcomes":[{{"name":"{first}","price":{price}{point}}},{{"name":"{second}","price":1.5{point}}}]}}"#
        )
        .unwrap_or_default();
    }
    text
}

/// The number of the batch of a price in an answer.
pub(super) fn number_in(price: &Value) -> Option<u32> {
    let text = price.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let thousandths: u32 = format!("{part:0<3}").parse().ok().filter(|_| part.len() <= 3)?;
    (whole.parse::<u32>().ok()? * 1000 + thousandths).checked_sub(2000)
}

/// The number of the batch of a price in the log, where it is profit and stake.
pub(super) fn number_of_ratio(profit: u64, stake: u64) -> Option<u32> {
    let thousandths = profit.checked_mul(1000)?.checked_div(stake)?;
    u32::try_from(thousandths.checked_sub(1000)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_tells_its_batch() {
        let price = |n: u32| -> Value {
            let text = batch(0, n, 0);
            let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            line["outcomes"][0]["price"].clone()
        };
        for n in [0, 1, 10, 500, 999, 1000, 12_345] {
            assert_eq!(number_in(&price(n)), Some(n));
        }
        assert_eq!(number_of_ratio(1001, 1000), Some(1));
        assert_eq!(number_of_ratio(3, 2), Some(500));
        assert_eq!(number_in(&json!(1.5)), None);
    }

    #[test]
    fn every_line_is_a_series_that_is_found_again() {
        let mut found = Vec::new();
        for pusher in 0..PUSHERS {
            for (line, place) in places(pusher).iter().enumerate() {
                let [home, _] = PEOPLE[place.event];
                let series = series_of(home, place.bookmaker, place.market).unwrap();
                assert_eq!(series, Series { pusher, line });
                found.push(series);
            }
            assert_eq!(batch(pusher, 1, 0).lines().count(), places(pusher).len());
        }
        assert_eq!(found, all_series());
    }
}
