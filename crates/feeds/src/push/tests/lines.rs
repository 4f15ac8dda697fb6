//! Single lines: the content of valid ones, and the rejection of invalid ones.

use std::collections::HashSet;

use domain::line::Line;
use domain::market::Market;
use domain::message::{Body, Correction, Fixture, OUTCOMES_MAX, OddsBody, RejectCode};
use domain::price::{Format, Quote};
use domain::score::{Period, Status};
use domain::time::Timestamp;

use super::{catalogue, parse};
use crate::push::{LINE_BYTES_MAX, parse_line};

fn odds(market: &str, format: &str, outcomes: &str) -> String {
    format!(
        r#"{{"type":"odds","ref":"a","bookmaker":"fanduel","market":"{market}","format":"{format}","outcomes":{outcomes}}}"#
    )
}

fn event(sport: &str, rest: &str) -> String {
    format!(
        r#"{{"type":"event","ref":"a","sport":"{sport}","competition":"Cup","commence_time":"2026-11-22T03:00:00Z",{rest}}}"#
    )
}

fn score(rest: &str) -> String {
    format!(r#"{{"type":"score","ref":"a","status":"live",{rest}}}"#)
}

#[track_caller]
fn read_odds(line: &str) -> OddsBody {
    let Body::Odds(odds) = parse(line).unwrap().body else {
        panic!("not odds: {line}");
    };
    odds
}

#[track_caller]
fn check(line: &str, code: RejectCode, problem: &str) {
    let reject = parse(line).expect_err(line);
    assert_eq!(reject.code, code, "{line}: {reject}");
    assert!(reject.message.contains(problem), "{line}: {reject} should say {problem:?}");
}

#[test]
fn an_event_is_read() {
    let line = r#" {"type":"event","ref":"b-991","sport":"mma","competition":" UFC 331 ","commence_time":"2026-11-22T03:00:00Z","home":"Ji\u0159\u00ed Prochazka","away":"Alex Pereira","title":5,"status":1,"periods":3} "#;
    let message = parse(line).unwrap();
    assert_eq!(message.ts, None);
    let Body::Event { reference, listing } = message.body else {
        panic!("not an event");
    };
    assert_eq!(&*reference, "b-991");
    assert_eq!(&*listing.competition, "UFC 331");
    assert_eq!(listing.commence_time.to_string(), "2026-11-22T03:00:00Z");
    let (home, away) = ("Jiří Prochazka".into(), "Alex Pereira".into());
    assert_eq!(listing.fixture, Fixture::HeadToHead { home, away });

    let golf = event("golf", r#""title":"The Open","home":null,"away":"ignored""#);
    let Body::Event { listing, .. } = parse(&golf).unwrap().body else {
        panic!("not an event");
    };
    let title = "The Open".into();
    assert_eq!(listing.fixture, Fixture::Field { title });
}

#[test]
fn odds_are_read() {
    let line = r#"{"type":"odds","ref":"b-991","bookmaker":"fanduel","market":"spread","format":"american","outcomes":[{"name":"A","price":140,"point":-3.5,"more":{}},{"point":3.5,"price":-165,"name":"B"}],"group":"x","ts":"2026-11-14T23:38:00.250Z"}"#;
    let message = parse(line).unwrap();
    assert_eq!(message.ts.map(Timestamp::as_millis), Some(1_794_699_480_250));
    let odds = read_odds(line);
    assert_eq!((odds.market, odds.group.as_deref()), (Market::Spread, Some("x")));
    let read: Vec<_> =
        odds.outcomes.iter().map(|o| (&*o.name, o.quote.price.american(), o.point)).collect();
    let line = |quarters| Some(Line::from_quarters(quarters));
    assert_eq!(read, [("A", 140, line(-14)), ("B", -165, line(14))]);
}

#[test]
fn a_market_without_prices_has_no_outcomes() {
    for rest in [
        r#""outcomes":[]"#,
        r#""suspended":true"#,
        r#""suspended":true,"outcomes":null"#,
        r#""suspended":true,"format":"decimal","outcomes":[{"name":"A","price":0}]"#,
    ] {
        let line = format!(
            r#"{{"type":"odds","ref":"a","bookmaker":"fanduel","market":"spread",{rest}}}"#
        );
        assert_eq!(read_odds(&line).outcomes, [], "{line}");
    }
}

#[test]
fn a_score_is_read() {
    let line = r#"{"type":"score","ref":"g","status":"final","home_score":0,"away_score":null,"periods":[{"number":1,"home_score":7,"away_score":-3},{"number":4,"home_score":0,"away_score":0}],"winner":"B","leaders":[{"name":"C","rounds":[68,-4]},{"name":"D","rounds":[]}],"correction":true}"#;
    let Body::Score(score) = parse(line).unwrap().body else {
        panic!("not a score");
    };
    assert_eq!((score.status, score.home, score.away), (Status::Final, Some(0), None));
    let period = |number, home, away| Period { number, home, away };
    assert_eq!(score.periods, [period(1, 7, -3), period(4, 0, 0)]);
    assert_eq!(score.winner.as_deref(), Some("B"));
    assert_eq!(score.leaders, [("C".into(), vec![68, -4]), ("D".into(), vec![])]);
    assert_eq!(score.correction, Correction::Yes);
}

#[test]
fn prices_and_points_are_taken_from_the_text_of_the_number() {
    for (format, json, profit, stake) in [
        ("decimal", "1.9090909090909092", 2_272_727_272_727_273_u64, 2_500_000_000_000_000_u64),
        ("decimal", "1.9090909090909093", 9_090_909_090_909_093, 10_000_000_000_000_000),
        ("decimal", "1e2", 99, 1),
        ("decimal", "2.50", 3, 2),
        ("american", "-1.1E2", 10, 11),
        ("american", "150.0", 3, 2),
        ("fractional", r#""5\/2""#, 5, 2),
        ("fractional", r#""10/4""#, 5, 2),
    ] {
        let line =
            odds("spread", format, &format!(r#"[{{"name":"A","price":{json},"point":-0.0}}]"#));
        let read = read_odds(&line);
        let outcome = &read.outcomes[0];
        assert_eq!(
            (outcome.quote.price.profit(), outcome.quote.price.stake()),
            (profit, stake),
            "{json}"
        );
        assert_eq!(outcome.quote.format, Format::parse(format).unwrap());
        assert_eq!(outcome.point, Some(Line::from_quarters(0)));
    }
    let line = odds("total_rounds", "decimal", r#"[{"name":"Over","price":2,"point":25e-1}]"#);
    assert_eq!(read_odds(&line).outcomes[0].point, Some(Line::from_quarters(10)));
}

#[test]
fn the_last_of_two_equal_keys_counts_and_escaped_keys_are_keys() {
    let line =
        odds("moneyline", "decimal", r#"[{"name":"A","pri\u0063e":3,"price":2.5}],"ref":"b""#);
    let read = read_odds(&line);
    assert_eq!(&*read.reference, "b");
    assert_eq!(Ok(read.outcomes[0].quote), Quote::parse("2.5", Format::Decimal));
}

#[test]
fn a_bound_token_speaks_for_its_own_bookmaker_only() {
    let catalogue = catalogue();
    let bound = catalogue.bookmaker_id("fanduel");
    let parse = |bookmaker: &str| {
        let line = format!(r#"{{"type":"heartbeat"{bookmaker}}}"#);
        parse_line(line.as_bytes(), catalogue, bound).map_err(|reject| reject.code)
    };
    let own = parse(r#","bookmaker":"fanduel""#).unwrap();
    assert_eq!(parse(""), Ok(own.clone()));
    assert_eq!(parse(r#","bookmaker":null"#), Ok(own));
    assert_eq!(parse(r#","bookmaker":"bet365""#), Err(RejectCode::WrongBookmaker));
    assert_eq!(parse(r#","bookmaker":"nobody""#), Err(RejectCode::UnknownBookmaker));
}

#[test]
fn every_line_of_the_table_is_refused_as_it_says() {
    let mut codes = HashSet::new();
    for row in include_str!("refused.txt").lines() {
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = row.splitn(3, " | ").collect();
        let &[code, problem, line] = cells.as_slice() else {
            panic!("{row}");
        };
        let code = RejectCode::ALL.into_iter().find(|c| c.slug() == code);
        check(line, code.unwrap(), problem);
        codes.insert(code.unwrap());
    }
    use RejectCode as C;
    let elsewhere = [C::WrongBookmaker, C::TooLarge];
    // These codes need the book or the clock.
    let not_ours =
        [C::MarketNotInSport, C::UnknownRef, C::UnknownOutcome, C::FutureTs, C::IllegalTransition];
    codes.extend(elsewhere.into_iter().chain(not_ours));
    assert_eq!(codes.len(), C::ALL.len());
}

#[test]
fn what_is_not_utf8_or_empty_is_invalid_json() {
    let reject = parse_line(b"{\"type\":\"\xff\"}", catalogue(), None).unwrap_err();
    assert_eq!(reject.code, RejectCode::InvalidJson);
    assert_eq!(reject.message, "not UTF-8 after byte 9");
    check("", RejectCode::InvalidJson, "does not end on its line");
    check("{", RejectCode::InvalidJson, "send one object a line, without line breaks in it");
    check("\"type\": \"event\",", RejectCode::InvalidJson, "send one object a line");
    check("[{\"type\":\"heartbeat\"}]", RejectCode::InvalidJson, "without the array");
}

/// Builds a line of this size in one respect.
type LineOfSize<'a> = &'a dyn Fn(usize) -> String;

#[test]
fn every_size_has_a_bound() {
    let outcomes = |n: usize| {
        let items: Vec<String> =
            (0..n).map(|i| format!(r#"{{"name":"P{i}","price":2}}"#)).collect();
        odds("outright", "decimal", &format!("[{}]", items.join(",")))
    };
    let periods = |n: usize| {
        let items: Vec<String> =
            (1..=n).map(|i| format!(r#"{{"number":{i},"home_score":0,"away_score":0}}"#)).collect();
        score(&format!(r#""periods":[{}]"#, items.join(",")))
    };
    let remove = |n: usize| format!(r#"{{"type":"remove","ref":"{}"}}"#, "r".repeat(n));
    let title = |n: usize| event("golf", &format!(r#""title":" {} ""#, "t".repeat(n)));
    let rounds = |n: usize| {
        let rounds = vec!["70"; n].join(",");
        score(&format!(r#""leaders":[{{"name":"A","rounds":[{rounds}]}}]"#))
    };
    let leaders = |n: usize| {
        let items = vec![r#"{"name":"A","rounds":[]}"#; n].join(",");
        score(&format!(r#""leaders":[{items}]"#))
    };
    let group =
        |n: usize| odds("matchup", "decimal", &format!(r#"[],"group":"{}""#, "g".repeat(n)));
    let long = |n: usize| {
        let short = r#"{"type":"remove","ref":"a"}"#;
        format!("{short}{}", " ".repeat(n - short.len()))
    };
    let table: [(LineOfSize<'_>, usize, &str); 8] = [
        (&outcomes, OUTCOMES_MAX, "`outcomes` has more than 512 items"),
        (&periods, 100, "`periods` has more than 100 items"),
        (&remove, 128, "`ref` has 129 bytes; at most 128"),
        (&title, 200, "`title` has 201 bytes; at most 200"),
        (&rounds, 100, "`leaders[0].rounds` has more than 100 items"),
        (&leaders, OUTCOMES_MAX, "`leaders` has more than 512 items"),
        (&group, 128, "`group` has 129 bytes"),
        (&long, LINE_BYTES_MAX, "the line has 1048577 bytes"),
    ];
    for (line, most, problem) in table {
        assert!(parse(&line(most)).is_ok(), "{problem} at {most}");
        check(&line(most + 1), RejectCode::TooLarge, problem);
    }
}

#[test]
fn a_duplicate_is_found_in_a_large_field_too() {
    let field = |last: &str| {
        let mut items: Vec<String> =
            (0..156).map(|i| format!(r#"{{"name":"P{i}","price":2}}"#)).collect();
        items.push(format!(r#"{{"name":"{last}","price":2}}"#));
        odds("outright", "decimal", &format!("[{}]", items.join(",")))
    };
    assert_eq!(read_odds(&field("P156")).outcomes.len(), 157);
    check(&field("P77"), RejectCode::InvalidMessage, "`P77` twice");
}

#[test]
fn nesting_costs_no_stack() {
    let deep = |open: &str, close: &str| {
        let depth = 100_000;
        format!("{}{}", open.repeat(depth), close.repeat(depth))
    };
    let lists = deep("[", "]");
    let ignored = format!(r#"{{"type":"remove","ref":"a","x":{lists},"outcomes":{lists}}}"#);
    assert!(parse(&ignored).is_ok());
    check(
        &odds("moneyline", "decimal", &lists),
        RejectCode::InvalidMessage,
        "`outcomes` must be a list of objects",
    );
    check(&lists, RejectCode::InvalidJson, "without the array");
    check(
        &odds("moneyline", "decimal", &format!(r#"[{{"name":"A","price":{lists}}}]"#)),
        RejectCode::InvalidPrice,
        "`outcomes[0].price`",
    );
}

#[test]
fn a_remark_that_makes_a_name_too_long_does_not_cost_the_listing() {
    let remark = "wagers are void if it goes the distance, ".repeat(6);
    let home_of = |home: &str| {
        let line = event("boxing", &format!(r#""home":"{home}","away":"Jan Brandt""#));
        let message = parse(&line).map_err(|reject| reject.code)?;
        let Body::Event { listing, .. } = message.body else { unreachable!() };
        let Fixture::HeadToHead { home, .. } = listing.fixture else { unreachable!() };
        Ok(home.into_string())
    };
    assert_eq!(home_of(&format!("Mika Orsk (exhibition, {remark})")).unwrap(), "Mika Orsk");
    assert_eq!(home_of(&format!("Mika Orsk - {remark}")).unwrap(), "Mika Orsk");
    // A name that fits stays unchanged, and a long name without a remark is still too long.
    assert_eq!(home_of("Mika Orsk (exhibition)").unwrap(), "Mika Orsk (exhibition)");
    assert_eq!(home_of(&"Orsk".repeat(60)), Err(RejectCode::TooLarge));
    assert_eq!(home_of(&format!("{} (exhibition)", "Orsk".repeat(60))), Err(RejectCode::TooLarge));
}
