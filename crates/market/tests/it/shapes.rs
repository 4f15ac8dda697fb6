//! Answers to the byte: every field of the interface, in its order, with its nulls (D12).

use domain::message::{Body, ScoreBody};
use domain::{BookmakerSet, Format, Market, RecordId, Status};
use linesman_market::{OddsPage, OddsSelection};

use crate::desk::{ACCEPTED, Desk, all_odds, outcome, period, report, score};

fn with_bout() -> Desk {
    let mut desk = Desk::open();
    let listing = desk.bout("n-1", "Tomas \"Tank\" Veldt", "Oren Castellane\u{1}", 24);
    assert_eq!(desk.say("north", listing), ACCEPTED);
    desk
}

fn with_prices() -> Desk {
    let mut desk = with_bout();
    let prices = [("Tomas \"Tank\" Veldt", 150), ("Oren Castellane", -110), ("draw", 6600)];
    let body = desk.quote("n-1", "fanduel", Market::Moneyline, &prices);
    assert_eq!(desk.say("north", body), ACCEPTED);
    desk
}

fn record_id(bookmaker: &str, market: Market, group: Option<&str>) -> RecordId {
    RecordId::new(domain::EventId::parse(&Desk::id(0)).unwrap(), bookmaker, market, group)
}

#[test]
fn an_odds_record_in_each_format() {
    let desk = with_prices();
    let (event, id) = (Desk::id(0), record_id("fanduel", Market::Moneyline, None));
    for (format, key, [home, away, draw]) in [
        (Format::American, "american", ["150", "-110", "6600"]),
        (Format::Decimal, "decimal", ["2.5", "1.909", "67"]),
        (Format::Fractional, "fractional", ["\"3/2\"", "\"10/11\"", "\"66/1\""]),
    ] {
        let expected = format!(
            r#"[{{"id":"{id}","sport_key":"mma","event_id":"{event}","bookmaker":"fanduel","market":"moneyline","format":"{key}","last_update":"2026-11-14T12:00:00Z","outcomes":[{{"name":"Tomas \"Tank\" Veldt","price":{home},"point":null}},{{"name":"Oren Castellane\u0001","price":{away},"point":null}},{{"name":"Draw","price":{draw},"point":null}}]}}]"#
        );
        assert_eq!(desk.odds_text("mma", format), expected);
    }
}

#[test]
fn a_record_with_points() {
    let mut desk = with_bout();
    let outcomes = vec![outcome("Over", -115, Some("2.5")), outcome("Under", -105, Some("2.5"))];
    let body = desk.odds_body("n-1", "bet365", Market::TotalRounds, None, outcomes);
    assert_eq!(desk.say("north", body), ACCEPTED);
    let (event, id) = (Desk::id(0), record_id("bet365", Market::TotalRounds, None));
    let expected = format!(
        r#"[{{"id":"{id}","sport_key":"mma","event_id":"{event}","bookmaker":"bet365","market":"total_rounds","format":"american","last_update":"2026-11-14T12:00:00Z","outcomes":[{{"name":"Over","price":-115,"point":2.5}},{{"name":"Under","price":-105,"point":2.5}}]}}]"#
    );
    assert_eq!(desk.odds_text("mma", Format::American), expected);
}

#[test]
fn a_head_to_head_event_has_no_title() {
    let desk = with_prices();
    let event = Desk::id(0);
    let expected = format!(
        r#"[{{"id":"{event}","sport_key":"mma","competition":"Northern Cage 12","commence_time":"2026-11-15T12:00:00Z","home_team":"Tomas \"Tank\" Veldt","away_team":"Oren Castellane\u0001","status":"scheduled","markets":["moneyline"]}}]"#
    );
    assert_eq!(desk.events_text("mma"), expected);
}

#[test]
fn a_golf_event_has_a_title_and_no_teams() {
    let mut desk = Desk::open();
    assert_eq!(desk.say("north", desk.tournament("g-1", "The Harbour Open", 24)), ACCEPTED);
    for market in [Market::Top5, Market::Top10, Market::Outright] {
        let body = desk.quote("g-1", "fanduel", market, &[("Kim Sato", 900)]);
        assert_eq!(desk.say("north", body), ACCEPTED);
    }
    let event = Desk::id(0);
    let expected = format!(
        r#"[{{"id":"{event}","sport_key":"golf","title":"The Harbour Open","competition":"Northern Cage 12","commence_time":"2026-11-15T12:00:00Z","home_team":null,"away_team":null,"status":"scheduled","markets":["outright","top10","top5"]}}]"#
    );
    assert_eq!(desk.events_text("golf"), expected);
}

#[test]
fn a_score_before_during_and_after() {
    let mut desk = with_bout();
    let event = Desk::id(0);
    let head = format!(r#"[{{"event_id":"{event}","sport_key":"mma","status":"#);
    let teams = r#""home_team":"Tomas \"Tank\" Veldt","away_team":"Oren Castellane\u0001""#;
    assert_eq!(
        desk.scores_text("mma"),
        format!(
            r#"{head}"scheduled",{teams},"home_score":null,"away_score":null,"periods":[],"updated_at":"2026-11-14T12:00:00Z"}}]"#
        )
    );
    desk.wait(60);
    let live = ScoreBody { periods: vec![period(1, 10, 9)], ..score("n-1", Status::Live, 1, 0) };
    assert_eq!(desk.say("north", Body::Score(live)), ACCEPTED);
    assert_eq!(
        desk.scores_text("mma"),
        format!(
            r#"{head}"live",{teams},"home_score":1,"away_score":0,"periods":[{{"number":1,"home_score":10,"away_score":9}}],"updated_at":"2026-11-14T12:01:00Z"}}]"#
        )
    );
    let over =
        ScoreBody { winner: Some("Oren Castellane".into()), ..score("n-1", Status::Final, 1, 2) };
    assert_eq!(desk.say("north", Body::Score(over)), ACCEPTED);
    assert_eq!(
        desk.scores_text("mma"),
        format!(
            r#"{head}"final",{teams},"home_score":1,"away_score":2,"periods":[],"updated_at":"2026-11-14T12:01:00Z","winner":"Oren Castellane\u0001"}}]"#
        )
    );
}

#[test]
fn a_golf_score() {
    let mut desk = Desk::open();
    assert_eq!(desk.say("north", desk.tournament("g-1", "The Harbour Open", 24)), ACCEPTED);
    let leaders = vec![("Kim Sato".into(), vec![68, 70]), ("Ivo Brandt".into(), vec![69, 71])];
    let body = ScoreBody { leaders, ..report("g-1", Status::Live) };
    assert_eq!(desk.say("north", Body::Score(body)), ACCEPTED);
    let event = Desk::id(0);
    let expected = format!(
        r#"[{{"event_id":"{event}","sport_key":"golf","status":"live","home_team":"Kim Sato","away_team":"Ivo Brandt","home_score":null,"away_score":null,"periods":[{{"number":1,"home_score":68,"away_score":69}},{{"number":2,"home_score":70,"away_score":71}}],"updated_at":"2026-11-14T12:00:00Z"}}]"#
    );
    assert_eq!(desk.scores_text("golf"), expected);
}

#[test]
fn the_grouped_shape() {
    let mut desk = with_prices();
    // A bout without a price is left out; a source that only beats is there, late and stale.
    assert_eq!(desk.say("north", desk.bout("n-2", "Milan Dray", "Pavel Orsk", 12)), ACCEPTED);
    desk.wait(90);
    let beat = desk.beat("bet365", Some("mma"));
    assert_eq!(desk.say_at("north", -10, beat), ACCEPTED);
    desk.now = desk.now.plus(std::time::Duration::from_millis(250));
    let prices = [("Tomas \"Tank\" Veldt", 150), ("Oren Castellane", -110), ("draw", 6600)];
    let body = desk.quote("n-1", "fanduel", Market::Moneyline, &prices);
    assert_eq!(desk.say_at("north", 89, body), Ok(linesman_market::Verdict::Unchanged));
    let expected = r#"{"sport":"mma","generated_at":"2026-11-14T12:01:30.250Z","sources":[{"book":"bet365","last_update":"2026-11-14T11:59:50Z","stale":true,"latency_ms":100000},{"book":"fanduel","last_update":"2026-11-14T12:01:29Z","stale":false,"latency_ms":1250}],"bouts":[{"home":"Tomas \"Tank\" Veldt","away":"Oren Castellane\u0001","commence_time":"2026-11-15T12:00:00Z","books":[{"book":"fanduel","last_update":"2026-11-14T12:01:29Z","outcomes":[{"name":"Tomas \"Tank\" Veldt","price":150},{"name":"Oren Castellane\u0001","price":-110},{"name":"Draw","price":6600}]}]}]}"#;
    assert_eq!(desk.bouts_text("mma"), expected);
}

#[test]
fn nothing_is_an_empty_answer() {
    let desk = Desk::open();
    assert_eq!(desk.odds_text("golf", Format::Decimal), "[]");
    assert_eq!(desk.events_text("golf"), "[]");
    assert_eq!(desk.scores_text("golf"), "[]");
    let grouped =
        r#"{"sport":"boxing","generated_at":"2026-11-14T12:00:00.000Z","sources":[],"bouts":[]}"#;
    assert_eq!(desk.bouts_text("boxing"), grouped);
}

/// Somebody may ask for any set of bookmakers, and for each set again. Only so much is kept, and answers stay right.
#[test]
fn more_filters_than_are_kept_for_answer_the_same() {
    let mut desk = with_bout();
    let books = ["fanduel", "bet365", "draftkings", "pinnacle", "betmgm"];
    for (bookmaker, price) in books.into_iter().zip(100..) {
        let prices = [("Tomas \"Tank\" Veldt", price), ("Oren Castellane", -price)];
        let body = desk.quote("n-1", bookmaker, Market::Moneyline, &prices);
        assert_eq!(desk.say("north", body), ACCEPTED);
    }
    let books = books.map(|key| desk.book.catalogue().bookmaker_id(key).unwrap());
    let (snapshot, sport) = (desk.snapshot(), desk.sport("mma"));
    for set in 0..1_usize << books.len() {
        let mut bookmakers = BookmakerSet::default();
        for at in (0..books.len()).filter(|at| set >> at & 1 == 1) {
            bookmakers.insert(books[at]);
        }
        for limit in [2, 500] {
            let of = OddsSelection { bookmakers, limit, ..all_odds(sport, Format::American) };
            let alone = desk.snapshot();
            let (page, expected) = (of.page(&snapshot), of.page(&alone));
            let written = |page: &OddsPage| {
                let mut out = Vec::new();
                page.write(&mut out);
                out
            };
            assert_eq!(written(&page), written(&expected));
            assert_eq!((page.name, &page.next), (expected.name, &expected.next));
            assert_eq!(page.records, set.count_ones().min(limit.try_into().unwrap()) as usize);
        }
    }
    let bound = 512 * snapshot.records() + 5 * 512;
    assert!((1..=bound).contains(&snapshot.shared_bytes()), "{}", snapshot.shared_bytes());
}

/// What is put together for one answer is kept for the next, whose limit or filter is another.
#[test]
fn an_answer_and_its_name_do_not_depend_on_what_was_asked_before() {
    let mut desk = with_bout();
    for (bookmaker, price) in [("fanduel", 100), ("bet365", 110), ("draftkings", 120)] {
        let prices = [("Tomas \"Tank\" Veldt", price), ("Oren Castellane", -price)];
        let body = desk.quote("n-1", bookmaker, Market::Moneyline, &prices);
        assert_eq!(desk.say("north", body), ACCEPTED);
        desk.wait(1);
        let over = vec![outcome("Over", price, Some("2.5")), outcome("Under", -price, Some("2.5"))];
        let body = desk.odds_body("n-1", bookmaker, Market::TotalRounds, None, over);
        assert_eq!(desk.say("north", body), ACCEPTED);
    }
    let snapshot = desk.snapshot();
    let dense = all_odds(desk.sport("mma"), Format::Decimal);
    let sparse = OddsSelection { limit: 1, ..dense.clone() };
    let written = |selection: &OddsSelection| {
        let mut out = Vec::new();
        let page = selection.page(&snapshot);
        page.write(&mut out);
        (String::from_utf8(out).unwrap(), page.name)
    };
    let before = written(&sparse);
    let whole = written(&dense);
    assert_eq!(written(&sparse), before);
    assert_eq!(written(&dense), whole);
    assert_ne!(before.1, whole.1);
    let first: serde_json::Value = serde_json::from_str(&before.0).unwrap();
    let all: serde_json::Value = serde_json::from_str(&whole.0).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 6);
    assert_eq!(first[0], all[0]);
    let middle = OddsSelection { market: Some(Market::TotalRounds), ..dense };
    let middle: serde_json::Value = serde_json::from_str(&written(&middle).0).unwrap();
    let expected: Vec<_> = all.as_array().unwrap().iter().skip(1).step_by(2).cloned().collect();
    assert_eq!(middle, serde_json::Value::from(expected));
}
