//! Rejections: the exact code for each reason, and that nothing changes.

use domain::message::{Body, FeedMessage, OUTCOMES_MAX, RejectCode, ScoreBody};
use domain::{Market, Status, Timestamp};

use crate::test_book::{
    ACCEPTED, TestBook, UNCHANGED, everything, head_to_head, outcome, remove, report,
};

fn with_events() -> TestBook {
    let mut test = TestBook::open();
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    let pair = head_to_head("Emil Roth", "Jan Sever");
    assert_eq!(test.say("north", test.event("tennis", "t-1", pair, 24)), ACCEPTED);
    assert_eq!(test.say("north", test.tournament("g-1", "The Harbour Open", 24)), ACCEPTED);
    test
}

#[track_caller]
fn refused(test: &mut TestBook, body: Body, code: RejectCode) {
    let before = everything(&test.book, test.now);
    let reject = test
        .book
        .apply("north", &FeedMessage { ts: None, fresh_for_s: None, body }, test.now)
        .unwrap_err();
    assert_eq!(reject.code, code, "{}", reject.message);
    assert!(!reject.message.is_empty());
    assert_eq!(everything(&test.book, test.now), before);
}

#[test]
fn a_ref_must_have_been_listed_by_the_same_feed() {
    let mut test = with_events();
    let prices = [("Tomas Veldt", 140), ("Oren Castellane", -165)];
    let bodies = |test: &TestBook, reference: &str| {
        [
            test.quote(reference, "fanduel", Market::Moneyline, &prices),
            Body::Score(report(reference, Status::Live)),
            remove(reference),
        ]
    };
    for body in bodies(&test, "n-2") {
        refused(&mut test, body, RejectCode::UnknownRef);
    }
    for body in bodies(&test, "n-1") {
        assert_eq!(test.say("south", body), Err(RejectCode::UnknownRef));
    }
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    let [odds, score, remove] = bodies(&test, "n-1");
    refused(&mut test, odds, RejectCode::UnknownRef);
    refused(&mut test, score, RejectCode::UnknownRef);
    assert_eq!(test.say("north", remove), UNCHANGED);
}

#[test]
fn a_market_must_be_one_of_the_sports() {
    let mut test = with_events();
    for (reference, market) in [
        ("n-1", Market::TotalPoints),
        ("n-1", Market::Outright),
        ("t-1", Market::TotalRounds),
        ("g-1", Market::Moneyline),
    ] {
        let body = test.quote(reference, "fanduel", market, &[]);
        refused(&mut test, body, RejectCode::MarketNotInSport);
    }
}

#[test]
fn a_group_goes_with_pairings_only() {
    let mut test = with_events();
    for (reference, market) in [("n-1", Market::Moneyline), ("g-1", Market::Outright)] {
        let body = test.odds_body(reference, "fanduel", market, Some("1"), vec![]);
        refused(&mut test, body, RejectCode::InvalidMessage);
    }
}

#[test]
fn an_outcome_must_be_about_somebody_in_the_event() {
    let mut test = with_events();
    for (reference, market, name) in [
        ("n-1", Market::Moneyline, "Pavel Orsk"),
        ("n-1", Market::Moneyline, "Tomas Veldt Oren Castellane"),
        ("n-1", Market::Moneyline, "M. Veldt"),
        ("n-1", Market::Moneyline, "···"),
        ("n-1", Market::TotalRounds, "Tomas Veldt"),
        ("n-1", Market::Spread, "Over"),
        ("t-1", Market::Moneyline, "Draw"),
        ("t-1", Market::TotalPoints, "Between"),
    ] {
        let body = test.quote(reference, "fanduel", market, &[(name, 140)]);
        refused(&mut test, body, RejectCode::UnknownOutcome);
    }
    let body = ScoreBody { winner: Some("Pavel Orsk".into()), ..report("n-1", Status::Final) };
    refused(&mut test, Body::Score(body), RejectCode::UnknownOutcome);
}

#[test]
fn two_outcomes_must_not_mean_the_same() {
    let mut test = with_events();
    for (reference, market, one, other) in [
        ("n-1", Market::Moneyline, "Tomas Veldt", "TOMÁS VELDT"),
        ("n-1", Market::Moneyline, "draw", "Tie"),
        ("n-1", Market::TotalRounds, "over", "Over"),
        // This player is new, under either spelling.
        ("g-1", Market::Outright, "J.J. Spaun", "JJ Spaun"),
    ] {
        let body = test.quote(reference, "fanduel", market, &[(one, 140), (other, 150)]);
        refused(&mut test, body, RejectCode::InvalidMessage);
    }
}

#[test]
fn a_final_event_takes_no_more_odds() {
    let mut test = with_events();
    assert_eq!(test.say("north", Body::Score(report("n-1", Status::Final))), ACCEPTED);
    let prices = [("Tomas Veldt", 140), ("Oren Castellane", -165)];
    let body = test.quote("n-1", "fanduel", Market::Moneyline, &prices);
    refused(&mut test, body, RejectCode::IllegalTransition);
    // An empty list of prices is not a contradiction.
    assert_eq!(test.say("north", test.quote("n-1", "fanduel", Market::Moneyline, &[])), ACCEPTED);
}

#[test]
fn a_ts_more_than_five_seconds_ahead_is_refused_whatever_it_says() {
    let mut test = with_events();
    let bodies = [
        test.bout("n-1", "Tomas Veldt", "Oren Castellane", 48),
        test.quote("n-1", "fanduel", Market::Moneyline, &[]),
        Body::Score(report("n-1", Status::Live)),
        remove("n-1"),
        test.beat("fanduel", Some("mma")),
    ];
    for body in bodies {
        let ms = test.now.as_millis();
        let late = FeedMessage {
            ts: Some(Timestamp::from_millis(ms + 5_001)),
            fresh_for_s: None,
            body: body.clone(),
        };
        assert_eq!(test.hear("north", &late), Err(RejectCode::FutureTs));
        let just =
            FeedMessage { ts: Some(Timestamp::from_millis(ms + 5_000)), fresh_for_s: None, body };
        assert!(test.hear("north", &just).is_ok());
        test.wait(10);
    }
}

#[test]
fn a_field_has_a_bound() {
    let mut test = with_events();
    let players = |from: usize, count: usize| {
        (from..from + count).map(|n| outcome(&format!("Player {n}"), 900, None)).collect()
    };
    let body = test.odds_body("g-1", "fanduel", Market::Outright, None, players(0, OUTCOMES_MAX));
    assert_eq!(test.say("north", body), ACCEPTED);
    let body = test.odds_body("g-1", "bet365", Market::Outright, None, players(1, OUTCOMES_MAX));
    refused(&mut test, body, RejectCode::TooLarge);
    let leaders = vec![("One More".into(), vec![68])];
    let body = ScoreBody { leaders, ..report("g-1", Status::Live) };
    refused(&mut test, Body::Score(body), RejectCode::TooLarge);
    // Known players still fit.
    let body = test.odds_body("g-1", "bet365", Market::Top5, None, players(0, OUTCOMES_MAX));
    assert_eq!(test.say("north", body), ACCEPTED);
}
