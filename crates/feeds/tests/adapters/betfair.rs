//! The Exchange Stream: recordings against a simple model, line by line, and after a resumption at any point.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use domain::price::{Format, Quote};
use domain::score::Status;
use domain::time::Timestamp;
use linesman_feeds::adapter::betfair::{Betfair, Control, Options};
use linesman_feeds::adapter::{Coverage, Read, Translator};
use serde_json::{Value, json};

use super::{read, recordings, settings};

/// A translator that emits every change at once, whatever the size.
fn translator() -> Betfair {
    Betfair::new(settings("betfair"), Options { min_size: 0, emit_every: Duration::ZERO })
}

/// The lines of each recording.
fn files() -> Vec<(PathBuf, Vec<String>)> {
    let Some(data) = recordings() else { return Vec::new() };
    let names = [
        "tennis_event_29788105.ndjson.gz",
        "tennis_event_29788106.ndjson.gz",
        "tennis_event_29788457.ndjson.gz",
        "golf_top5_1.230478683.bz2",
    ];
    let paths = names.into_iter().map(|name| data.join("feeds/betfair_stream").join(name));
    let lines = |path: PathBuf| {
        let text = String::from_utf8(read(&path)?).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Some((path, lines))
    };
    paths.filter_map(lines).collect()
}

/// A naive model of the ladders, as the exchange describes them.
#[derive(Clone, Default)]
struct Model {
    /// By market and runner: size by price text.
    ladders: BTreeMap<(String, u64), BTreeMap<String, f64>>,
    definitions: BTreeMap<String, Value>,
}

impl Model {
    fn apply(&mut self, line: &Value) {
        for market in line["mc"].as_array().into_iter().flatten() {
            let id = market["id"].as_str().unwrap().to_owned();
            if market["img"] == true {
                self.ladders.retain(|(held, _), _| *held != id);
            }
            if market["marketDefinition"].is_object() {
                self.definitions.insert(id.clone(), market["marketDefinition"].clone());
            }
            for runner in market["rc"].as_array().into_iter().flatten() {
                let key = (id.clone(), runner["id"].as_u64().unwrap());
                for level in runner["atb"].as_array().into_iter().flatten() {
                    let (price, size) = (level[0].to_string(), level[1].as_f64().unwrap());
                    let ladder = self.ladders.entry(key.clone()).or_default();
                    if size == 0.0 {
                        ladder.remove(&price);
                    } else {
                        ladder.insert(price, size);
                    }
                }
            }
        }
    }

    /// The offers of the result market, or of the finish market: names with their best prices.
    fn offers(&self) -> BTreeMap<String, Quote> {
        let mut offers = BTreeMap::new();
        for (id, definition) in &self.definitions {
            let kind = definition["marketType"].as_str().unwrap();
            if !["MATCH_ODDS", "TOP_5_FINISH"].contains(&kind) || definition["status"] != "OPEN" {
                continue;
            }
            for runner in definition["runners"].as_array().unwrap() {
                let ladder = self.ladders.get(&(id.clone(), runner["id"].as_u64().unwrap()));
                let best = ladder
                    .into_iter()
                    .flatten()
                    .map(|(price, _)| price)
                    .max_by(|a, b| a.parse::<f64>().unwrap().total_cmp(&b.parse().unwrap()));
                if let Some(best) = best.filter(|_| runner["status"] == "ACTIVE") {
                    let quote = Quote::parse(best, Format::Decimal).unwrap();
                    offers.insert(runner["name"].as_str().unwrap().to_owned(), quote);
                }
            }
        }
        offers
    }
}

/// The messages sent, as the book would hold them.
#[derive(Default)]
struct Sent {
    offers: BTreeMap<String, Quote>,
    winner: Option<Box<str>>,
    live: bool,
    ended: bool,
    suspensions: usize,
}

impl Sent {
    fn take(&mut self, read: &Read) {
        for offered in &read.markets {
            assert!(!offered.suspended || offered.odds.outcomes.is_empty());
            self.suspensions += usize::from(offered.suspended);
            let outcomes = offered.odds.outcomes.iter();
            self.offers = outcomes.map(|o| (o.name.to_string(), o.quote)).collect();
        }
        for scored in &read.scores {
            self.live |= scored.score.status == Status::Live;
            if scored.score.status == Status::Final {
                self.ended = true;
                self.winner.clone_from(&scored.score.winner);
            }
        }
    }
}

fn at(line: &Value) -> Timestamp {
    Timestamp::from_millis(line["pt"].as_i64().unwrap())
}

#[test]
fn best_prices_after_every_line_are_those_of_a_simple_model() {
    for (path, lines) in files() {
        let (mut ours, mut model, mut sent) = (translator(), Model::default(), Sent::default());
        let mut compared = 0;
        for (number, line) in lines.iter().enumerate() {
            let json: Value = serde_json::from_str(line).unwrap();
            sent.take(&ours.translate("stream", line.as_bytes(), at(&json)).unwrap());
            model.apply(&json);
            assert_eq!(sent.offers, model.offers(), "{} line {}", path.display(), number + 1);
            compared += usize::from(!sent.offers.is_empty());
        }
        let golf = path.to_string_lossy().contains("golf");
        // The golf recording has only last traded prices.
        assert!(golf || compared > lines.len() / 2, "{}: {compared}", path.display());
        assert!(sent.suspensions > 0, "{}", path.display());
        if !golf {
            let last =
                model.definitions.values().find(|d| d["marketType"] == "MATCH_ODDS").unwrap();
            let runners = last["runners"].as_array().unwrap();
            let winner = runners.iter().find(|runner| runner["status"] == "WINNER").unwrap();
            assert_eq!(sent.winner.as_deref(), winner["name"].as_str(), "{}", path.display());
            assert!(sent.live && sent.ended);
        }
    }
}

/// By runner and price, the last level sent by the exchange.
type Ladders = BTreeMap<u64, BTreeMap<String, Value>>;

/// The lines of a range as the exchange sends them after a resumption: each level and definition once.
fn conflated(lines: &[Value]) -> Value {
    let mut markets: BTreeMap<String, (Option<Value>, Ladders)> = BTreeMap::new();
    for line in lines {
        for market in line["mc"].as_array().into_iter().flatten() {
            let held = markets.entry(market["id"].as_str().unwrap().to_owned()).or_default();
            if market["marketDefinition"].is_object() {
                held.0 = Some(market["marketDefinition"].clone());
            }
            for runner in market["rc"].as_array().into_iter().flatten() {
                let ladder = held.1.entry(runner["id"].as_u64().unwrap()).or_default();
                for level in runner["atb"].as_array().into_iter().flatten() {
                    ladder.insert(level[0].to_string(), level.clone());
                }
            }
        }
    }
    let mc: Vec<Value> = markets
        .into_iter()
        .map(|(id, (definition, runners))| {
            let rc: Vec<Value> = runners.into_iter()
            .map(|(id, ladder)| json!({"id": id, "atb": ladder.into_values().collect::<Vec<_>>()}))
            .collect();
            let mut market = json!({"id": id, "rc": rc});
            if let Some(definition) = definition {
                market["marketDefinition"] = definition;
            }
            market
        })
        .collect();
    json!({"op": "mcm", "ct": "RESUB_DELTA", "clk": "x", "pt": lines.last().unwrap()["pt"], "mc": mc})
}

#[test]
fn after_a_resumption_at_any_point_prices_are_the_same() {
    for (path, lines) in files() {
        let lines: Vec<Value> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let step = (lines.len() / 97).max(1);
        let (mut ours, mut model, mut sent) = (translator(), Model::default(), Sent::default());
        let mut number = 0;
        while number < lines.len() {
            // Some lines arrive one by one; then the connection is cut, and the next ones arrive as one.
            for line in lines.iter().skip(number).take(step) {
                let bytes = line.to_string();
                sent.take(&ours.translate("stream", bytes.as_bytes(), at(line)).unwrap());
                model.apply(line);
            }
            number += step;
            let missed = lines.get(number..(number + step).min(lines.len())).unwrap_or_default();
            if missed.is_empty() {
                break;
            }
            let resumed = conflated(missed).to_string();
            sent.take(
                &ours.translate("stream", resumed.as_bytes(), at(missed.last().unwrap())).unwrap(),
            );
            missed.iter().for_each(|line| model.apply(line));
            number += step;
            assert_eq!(sent.offers, model.offers(), "{} line {number}", path.display());
        }
    }
}

fn definition(event: u64, status: &str, in_play: bool) -> Value {
    json!({"status": status, "inPlay": in_play, "marketType": "MATCH_ODDS", "eventId": event.to_string(),
        "eventTypeId": "6423", "marketTime": "2026-11-22T18:00:00.000Z", "runners": [
            {"id": 11, "sortPriority": 1, "status": "ACTIVE"}, {"id": 12, "sortPriority": 2, "status": "ACTIVE"}]})
}

fn image(segment: Option<&str>, markets: &[Value]) -> String {
    let mut line = json!({"op": "mcm", "id": 2, "ct": "SUB_IMAGE", "initialClk": "i1", "clk": "c1", "pt": 1_000, "mc": markets});
    if let Some(segment) = segment {
        line["segmentType"] = segment.into();
    }
    line.to_string()
}

fn market(id: &str, event: u64, price: &str) -> Value {
    let price: Value = serde_json::from_str(price).unwrap();
    json!({"id": id, "img": true, "marketDefinition": definition(event, "OPEN", false),
        "rc": [{"id": 11, "batb": [[0, price, 25], [1, 1.5, 100]]}, {"id": 12, "batb": [[0, 2.5, 3], [1, 2.4, 12.5]]}]})
}

const NAMES: &str = r#"[{"marketId":"1.1","marketStartTime":"2026-11-22T18:00:00.000Z","competition":{"id":"7","name":"NFL"},
 "event":{"id":"100","name":"Buffalo @ Miami","openDate":"2026-11-22T18:00:00.000Z"},
 "runners":[{"selectionId":11,"runnerName":"Miami"},{"selectionId":12,"runnerName":"Buffalo"}]},
 {"marketId":"1.2","marketStartTime":"2026-11-22T21:00:00.000Z","competition":{"name":"NFL"},"event":{"name":"A v B"},
 "runners":[{"selectionId":11,"runnerName":"A"},{"selectionId":12,"runnerName":"B"}]}]"#;

#[test]
fn an_image_is_complete_at_its_last_segment_and_names_come_from_the_catalogue() {
    let mut betfair = Betfair::new(settings("betfair"), Options::default());
    let now = Timestamp::from_secs(1_800_000_000);
    let read = betfair.translate("s", br#"{"op":"connection","connectionId":"x"}"#, now).unwrap();
    assert_eq!((read.items, betfair.take_control()), (0, Some(Control::Connected)));
    assert_eq!(betfair.clocks(), None);
    let first = image(Some("SEG_START"), &[market("1.1", 100, "1.8")]);
    let last = image(Some("SEG_END"), &[market("1.2", 200, "3.05")]);
    assert!(betfair.translate("s", first.as_bytes(), now).unwrap().markets.is_empty());
    let read = betfair.translate("s", last.as_bytes(), now).unwrap();
    assert!(read.listings.is_empty() && read.coverage == Coverage::Delta);
    assert_eq!(betfair.clocks(), Some(("i1", "c1")));
    let mut missing = betfair.missing_names();
    missing.sort();
    assert_eq!(missing, ["1.1".into(), "1.2".into()] as [Box<str>; 2]);
    let read = betfair.read_catalogue(NAMES.as_bytes(), now).unwrap();
    assert_eq!(read.coverage, Coverage::Complete);
    assert_eq!((read.listings.len(), read.markets.len()), (2, 2));
    let miami = read.markets.iter().find(|market| &*market.odds.reference == "100").unwrap();
    let prices: Vec<_> = miami
        .odds
        .outcomes
        .iter()
        .map(|o| format!("{} {}", o.name, o.quote.to_json(Format::Decimal)))
        .collect();
    // A price with less than the minimum size does not count.
    assert_eq!(prices, ["Miami 1.8", "Buffalo 2.4"]);
    let listing = read.listings.iter().find(|listed| &*listed.reference == "100").unwrap();
    assert_eq!(listing.listing.fixture.to_string(), "Miami v Buffalo");
    assert!(betfair.missing_names().is_empty());
    // A new image without the second market: the complete read lacks it, too.
    let again = image(None, &[market("1.1", 100, "1.81")]);
    let read = betfair.translate("s", again.as_bytes(), now.plus(Duration::from_secs(5))).unwrap();
    assert_eq!(read.coverage, Coverage::Complete);
    assert_eq!((read.listings.len(), read.markets.len()), (1, 1));
}

#[test]
fn an_event_that_is_in_play_when_its_names_arrive_is_reported_as_live() {
    let mut betfair = Betfair::new(settings("betfair"), Options::default());
    let now = Timestamp::from_secs(1_800_000_000);
    let mut in_play = market("1.1", 100, "1.8");
    in_play["marketDefinition"] = definition(100, "OPEN", true);
    let read = betfair.translate("s", image(None, &[in_play]).as_bytes(), now).unwrap();
    assert!(read.scores.is_empty(), "it has no names yet");
    let read = betfair.read_catalogue(NAMES.as_bytes(), now).unwrap();
    let statuses: Vec<Status> = read.scores.iter().map(|scored| scored.score.status).collect();
    assert_eq!(statuses, [Status::Live]);
}

#[test]
fn prices_are_conflated_and_suspensions_are_not() {
    let mut betfair = Betfair::new(settings("betfair"), Options::default());
    let now = Timestamp::from_secs(1_800_000_000);
    let later = |ms: u64| now.plus(Duration::from_millis(ms));
    betfair.translate("s", image(None, &[market("1.1", 100, "1.8")]).as_bytes(), now).unwrap();
    betfair.read_catalogue(NAMES.as_bytes(), now).unwrap();
    let change = |price: &str| {
        format!(
            r#"{{"op":"mcm","id":2,"clk":"c2","pt":2000,"mc":[{{"id":"1.1","rc":[{{"batb":[[0,{price},50]],"id":11}}]}}]}}"#
        )
    };
    assert!(
        betfair.translate("s", change("1.82").as_bytes(), later(300)).unwrap().markets.is_empty()
    );
    assert!(
        betfair.translate("s", change("1.84").as_bytes(), later(600)).unwrap().markets.is_empty()
    );
    assert!(betfair.flush(later(900)).markets.is_empty());
    let read = betfair.flush(later(1_000));
    assert_eq!(read.markets.len(), 1);
    assert_eq!(read.markets[0].odds.outcomes[0].quote.to_json(Format::Decimal), "1.84");
    assert_eq!(read.markets[0].ts, Some(Timestamp::from_secs(2)));
    assert!(betfair.flush(later(5_000)).markets.is_empty(), "nothing changed");
    let defined = |status: &str, in_play| {
        let mut definition = definition(100, status, in_play);
        if status == "CLOSED" {
            definition["runners"][1]["status"] = "WINNER".into();
        }
        json!({"op": "mcm", "id": 2, "clk": "c3", "pt": 3_000, "mc": [{"id": "1.1", "marketDefinition": definition}]}).to_string()
    };
    betfair.translate("s", change("1.9").as_bytes(), later(5_000)).unwrap();
    let read = betfair.translate("s", defined("SUSPENDED", true).as_bytes(), later(5_010)).unwrap();
    assert!(read.markets[0].suspended && read.markets[0].odds.outcomes.is_empty());
    assert_eq!(read.scores[0].score.status, Status::Live);
    let read = betfair.translate("s", defined("OPEN", true).as_bytes(), later(5_020)).unwrap();
    assert_eq!(read.markets[0].odds.outcomes.len(), 2);
    assert!(read.scores.is_empty());
    let read = betfair.translate("s", defined("CLOSED", true).as_bytes(), later(5_030)).unwrap();
    assert!(!read.markets[0].suspended && read.markets[0].odds.outcomes.is_empty());
    assert_eq!(read.scores[0].score.winner.as_deref(), Some("Buffalo"));
    assert_eq!(read.scores[0].score.status, Status::Final);
}

#[test]
fn totals_of_several_markets_are_lines_of_one_and_heartbeats_confirm() {
    let mut betfair = Betfair::new(settings("betfair"), Options::default());
    let now = Timestamp::from_secs(1_800_000_000);
    let total = |id: &str, kind: &str| {
        let mut market = market(id, 300, "1.9");
        market["marketDefinition"]["marketType"] = kind.into();
        market["marketDefinition"]["eventName"] = "Buffalo @ Miami".into();
        market["marketDefinition"]["runners"][0]["name"] = "Under 45.5 Points".into();
        market["marketDefinition"]["runners"][1]["name"] = "Over 45.5 Points".into();
        market
    };
    let mut second = total("1.6", "OVER_UNDER_475");
    second["marketDefinition"]["runners"][0]["name"] = "Under".into();
    second["marketDefinition"]["runners"][1]["name"] = "Over".into();
    let line =
        image(None, &[total("1.5", "OVER_UNDER_455"), second, total("1.7", "BOTH_TO_SCORE")]);
    let read = betfair.translate("s", line.as_bytes(), now).unwrap();
    let [offered] = &*read.markets else { panic!("{read:?}") };
    let mut lines: Vec<_> = offered
        .odds
        .outcomes
        .iter()
        .map(|o| (o.name.to_string(), o.point.unwrap().quarters()))
        .collect();
    lines.sort();
    let expected = [("Over", 182), ("Over", 190), ("Under", 182), ("Under", 190)];
    assert_eq!(lines, expected.map(|(name, quarters)| (name.to_owned(), quarters)));
    assert_eq!(read.listings[0].listing.fixture.to_string(), "Miami v Buffalo");
    assert_eq!(read.unmapped.keys().next().map(|name| &*name.value), Some("BOTH_TO_SCORE"));
    assert_eq!(read.confirmed.len(), 1);
    let beat = |status: &str| {
        format!(r#"{{"op":"mcm","id":2,"clk":"c9","pt":9000,"ct":"HEARTBEAT"{status}}}"#)
    };
    let at = |seconds| now.plus(Duration::from_secs(seconds));
    assert!(betfair.translate("s", beat("").as_bytes(), at(5)).unwrap().confirmed.is_empty());
    let late = beat(r#","status":503"#);
    assert!(betfair.translate("s", late.as_bytes(), at(11)).unwrap().confirmed.is_empty());
    assert_eq!(betfair.translate("s", beat("").as_bytes(), at(11)).unwrap().confirmed.len(), 1);
    assert_eq!(betfair.clocks(), Some(("i1", "c9")));
}
