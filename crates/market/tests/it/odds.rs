//! Prices: replacement, freshness, removal, and the order of answers.

use domain::message::{Body, Correction, FeedMessage, OfferedOutcome, ScoreBody};
use domain::{Format, Line, Market, Quote, Status};
use linesman_market::Book;
use serde_json::{Value, json};

use crate::test_book::{
    ACCEPTED, Outcome, SUPERSEDED, TestBook, UNCHANGED, outcome, remove, report, score,
};

fn with_bout() -> TestBook {
    let mut test = TestBook::open();
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    test
}

fn with_tournament() -> TestBook {
    let mut test = TestBook::open();
    assert_eq!(test.say("north", test.tournament("g-1", "The Harbour Open", 24)), ACCEPTED);
    test
}

impl TestBook {
    fn price(&mut self, bookmaker: &str, home: i32, away: i32) -> Outcome {
        self.say("north", self.moneyline(bookmaker, home, away))
    }

    fn moneyline(&self, bookmaker: &str, home: i32, away: i32) -> Body {
        let outcomes = [("Tomas Veldt", home), ("Oren Castellane", away)];
        self.quote("n-1", bookmaker, Market::Moneyline, &outcomes)
    }

    fn last_updates(&self, sport: &str) -> Vec<Value> {
        self.odds(sport).iter().map(|record| record["last_update"].clone()).collect()
    }
}

#[test]
fn the_next_event_is_the_first_with_prices_that_has_not_begun() {
    let mut test = with_bout();
    for (reference, home, hours) in [("n-2", "Ilya Brandt", 25), ("n-3", "Luca Ferro", 26)] {
        let bout = test.bout(reference, home, "Marko Sund", hours);
        assert_eq!(test.say("north", bout), ACCEPTED);
    }
    let next = |test: &TestBook| {
        let snapshot = test.snapshot();
        let next = snapshot.sport(test.sport("mma")).upcoming_event().unwrap();
        next.details.home.as_deref().unwrap().to_owned()
    };
    assert_eq!(next(&test), "Luca Ferro", "without prices the last to leave");
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    assert_eq!(next(&test), "Tomas Veldt");
    let outcomes = [("Ilya Brandt", 140), ("Marko Sund", -165)];
    let body = test.quote("n-2", "fanduel", Market::Moneyline, &outcomes);
    assert_eq!(test.say("north", body), ACCEPTED);
    assert_eq!(next(&test), "Tomas Veldt");
    let begun = Body::Score(score("n-1", Status::Live, 0, 0));
    assert_eq!(test.say("north", begun), ACCEPTED);
    assert_eq!(next(&test), "Ilya Brandt");
}

#[test]
fn the_whole_market_is_replaced() {
    let mut test = with_bout();
    let mut three = vec![outcome("Tomas Veldt", 140, None), outcome("Oren Castellane", -165, None)];
    three.push(outcome("Draw", 5000, None));
    let body = test.odds_body("n-1", "fanduel", Market::Moneyline, None, three);
    assert_eq!(test.say("north", body), ACCEPTED);
    assert_eq!(test.odds("mma")[0]["outcomes"].as_array().unwrap().len(), 3);
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    assert_eq!(test.odds("mma")[0]["outcomes"].as_array().unwrap().len(), 2);
}

#[test]
fn outcomes_in_another_order_and_spelling_are_the_same_prices() {
    let mut test = with_bout();
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    let turned = [("oren castellane", -165), ("TOMÁS VELDT", 140)];
    assert_eq!(
        test.say("north", test.quote("n-1", "fanduel", Market::Moneyline, &turned)),
        UNCHANGED
    );
}

#[test]
fn the_same_value_quoted_in_another_format_is_another_quote() {
    let mut test = with_bout();
    assert_eq!(test.price("fanduel", 150, -200), ACCEPTED);
    let quoted = |name: &str, text: &str| OfferedOutcome {
        name: name.into(),
        quote: Quote::parse(text, Format::Decimal).unwrap(),
        point: None,
    };
    let outcomes = vec![quoted("Tomas Veldt", "2.5"), quoted("Oren Castellane", "1.5")];
    let body = test.odds_body("n-1", "fanduel", Market::Moneyline, None, outcomes);
    assert_eq!(test.say("north", body), ACCEPTED);
}

#[test]
fn a_third_feed_prices_the_right_fighter_when_it_agrees_best_with_a_turned_listing() {
    let mut test = TestBook::open();
    for (feed, home, away, hours) in [
        ("north", "Tomas Veldt", "Oren Castellane", 24),
        ("south", "Oren Castellane", "Tomas Veldt", 30),
        ("west", "Oren Castellane", "Tomas Veldt", 30),
    ] {
        assert_eq!(test.say(feed, test.bout("x", home, away, hours)), ACCEPTED);
    }
    let prices = [("Oren Castellane", -165), ("Tomas Veldt", 140)];
    let quote = test.quote("x", "fanduel", Market::Moneyline, &prices);
    assert_eq!(test.say("west", quote), ACCEPTED);
    let home = json!({"name": "Tomas Veldt", "price": 140, "point": null});
    assert_eq!(test.odds("mma")[0]["outcomes"][0], home);
}

#[test]
fn a_swapped_listing_prices_the_right_fighter() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("s-1", "OREN CASTELLANE", "TOMAS VELDT", 24)), ACCEPTED);
    let outcomes = [("OREN CASTELLANE", -165), ("TOMAS VELDT", 140)];
    assert_eq!(
        test.say("south", test.quote("s-1", "fanduel", Market::Moneyline, &outcomes)),
        ACCEPTED
    );
    let expected = json!([
        {"name": "Tomas Veldt", "price": 140, "point": null},
        {"name": "Oren Castellane", "price": -165, "point": null},
    ]);
    assert_eq!(test.odds("mma")[0]["outcomes"], expected);
}

#[test]
fn a_suspended_market_has_no_record_and_an_older_message_cannot_bring_it_back() {
    let mut test = with_bout();
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    test.wait(60);
    assert_eq!(test.say("north", test.quote("n-1", "fanduel", Market::Moneyline, &[])), ACCEPTED);
    assert_eq!(test.odds("mma").len(), 0);
    assert_eq!(test.events("mma")[0]["markets"], json!([]));
    assert_eq!(test.say_at("north", 59, test.moneyline("fanduel", 140, -165)), SUPERSEDED);
    assert_eq!(test.odds("mma").len(), 0);
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    assert_eq!(test.events("mma")[0]["markets"], json!(["moneyline"]));
}

#[test]
fn a_record_keeps_its_id_while_price_and_line_move() {
    let mut test = with_bout();
    let spread = |test: &TestBook, price, home, away| {
        let outcomes = vec![
            outcome("Tomas Veldt", price, Some(home)),
            outcome("Oren Castellane", -130, Some(away)),
        ];
        test.odds_body("n-1", "fanduel", Market::Spread, None, outcomes)
    };
    assert_eq!(test.say("north", spread(&test, 110, "-3.5", "3.5")), ACCEPTED);
    let id = test.odds("mma")[0]["id"].clone();
    assert_eq!(test.say("north", spread(&test, 120, "-4.5", "4.5")), ACCEPTED);
    let record = &test.odds("mma")[0];
    assert_eq!((&record["id"], &record["outcomes"][0]["point"]), (&id, &json!(-4.5)));
    assert_eq!(test.say("north", test.quote("n-1", "fanduel", Market::Spread, &[])), ACCEPTED);
    assert_eq!(test.say("north", spread(&test, 120, "-4.5", "4.5")), ACCEPTED);
    assert_eq!(test.odds("mma")[0]["id"], id);
}

#[test]
fn several_lines_of_one_market_stand_in_rising_order() {
    let mut test = with_bout();
    let total = |name, line: &str| outcome(name, -110, Some(line));
    let outcomes = vec![
        total("under", "2.5"),
        total("Over", "2.5"),
        total("OVER", "1.5"),
        total("Under", "1.5"),
    ];
    let body = test.odds_body("n-1", "fanduel", Market::TotalRounds, None, outcomes);
    assert_eq!(test.say("north", body), ACCEPTED);
    let record = &test.odds("mma")[0];
    let shown: Vec<(&str, f64)> = record["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| (o["name"].as_str().unwrap(), o["point"].as_f64().unwrap()))
        .collect();
    assert_eq!(shown, [("Over", 1.5), ("Over", 2.5), ("Under", 1.5), ("Under", 2.5)]);
    assert_eq!(Line::parse("1.5").unwrap().quarters(), 6);
}

#[test]
fn odds_leave_when_the_event_is_final() {
    let mut test = with_bout();
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    assert_eq!(test.say("north", Body::Score(score("n-1", Status::Live, 0, 0))), ACCEPTED);
    assert_eq!(test.odds("mma").len(), 1);
    assert_eq!(test.say("north", Body::Score(score("n-1", Status::Final, 0, 1))), ACCEPTED);
    assert_eq!(test.odds("mma").len(), 0);
    assert_eq!(test.events("mma")[0]["markets"], json!([]));
    assert_eq!(test.snapshot().sport(test.sport("mma")).bookmakers, 0);
}

#[test]
fn after_a_correction_odds_come_back_only_with_new_messages() {
    let mut test = with_bout();
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    assert_eq!(test.say("north", Body::Score(score("n-1", Status::Final, 0, 1))), ACCEPTED);
    let back = ScoreBody { correction: Correction::Yes, ..score("n-1", Status::Live, 0, 0) };
    assert_eq!(test.say("north", Body::Score(back)), ACCEPTED);
    assert_eq!(test.odds("mma").len(), 0);
    assert_eq!(test.say("north", test.beat("fanduel", Some("mma"))), ACCEPTED);
    assert_eq!(test.odds("mma").len(), 0, "a heartbeat is no price");
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    assert_eq!(test.odds("mma").len(), 1);
}

#[test]
fn a_withdrawn_feed_takes_its_own_prices_only() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("s-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    let theirs = [("Tomas Veldt", 135), ("Oren Castellane", -160)];
    assert_eq!(
        test.say("south", test.quote("s-1", "bet365", Market::Moneyline, &theirs)),
        ACCEPTED
    );
    assert_eq!(test.say("south", remove("s-1")), ACCEPTED);
    let odds = test.odds("mma");
    assert_eq!((odds.len(), &odds[0]["bookmaker"]), (1, &json!("fanduel")));
}

#[test]
fn the_same_prices_with_a_newer_ts_are_unchanged_and_confirm_freshness() {
    let mut test = with_bout();
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    test.wait(30);
    assert_eq!(test.price("fanduel", 140, -165), UNCHANGED);
    assert_eq!(test.last_updates("mma"), ["2026-11-14T12:00:30Z"]);
    // The log contains the confirmation, too.
    assert_eq!(test.changes.len(), 3);
}

#[test]
fn a_heartbeat_moves_last_update_of_open_markets_only_forward() {
    let mut test = with_bout();
    test.wait(600);
    let boxing = crate::test_book::head_to_head("Milan Dray", "Pavel Orsk");
    assert_eq!(test.say("north", test.event("boxing", "b-1", boxing, 24)), ACCEPTED);
    let punch = [("Milan Dray", 120), ("Pavel Orsk", -140)];
    assert_eq!(
        test.say_at("north", 0, test.quote("b-1", "fanduel", Market::Moneyline, &punch)),
        ACCEPTED
    );
    assert_eq!(test.say_at("north", 0, test.moneyline("bet365", 150, -170)), ACCEPTED);
    assert_eq!(test.say_at("north", 0, test.moneyline("fanduel", 140, -165)), ACCEPTED);
    let spread = [("Tomas Veldt", 140), ("Oren Castellane", -165)];
    assert_eq!(
        test.say_at("north", 500, test.quote("n-1", "fanduel", Market::Spread, &spread)),
        ACCEPTED
    );
    assert_eq!(test.say_at("north", 300, test.beat("fanduel", Some("mma"))), ACCEPTED);
    // bet365 stays, the moneyline is confirmed, the newer spread stays.
    let after = ["2026-11-14T12:00:00Z", "2026-11-14T12:05:00Z", "2026-11-14T12:08:20Z"];
    assert_eq!(test.last_updates("mma"), after);
    assert_eq!(test.last_updates("boxing"), ["2026-11-14T12:00:00Z"]);
    assert_eq!(test.say_at("north", 200, test.beat("fanduel", Some("mma"))), SUPERSEDED);
    assert_eq!(test.say_at("north", 300, test.beat("fanduel", Some("mma"))), UNCHANGED);
    assert_eq!(test.last_updates("mma"), after);
    // Without a sport it applies to every sport in which the bookmaker is known.
    assert_eq!(test.say_at("north", 590, test.beat("fanduel", None)), ACCEPTED);
    assert_eq!(test.last_updates("boxing"), ["2026-11-14T12:09:50Z"]);
}

#[test]
fn a_late_read_of_prices_a_heartbeat_confirmed_does_not_take_freshness_back() {
    let mut test = with_bout();
    test.wait(600);
    assert_eq!(test.say_at("north", 0, test.moneyline("fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.say_at("north", 100, test.beat("fanduel", Some("mma"))), ACCEPTED);
    assert_eq!(test.say_at("north", 50, test.moneyline("fanduel", 140, -165)), UNCHANGED);
    assert_eq!(test.last_updates("mma"), ["2026-11-14T12:01:40Z"]);
    assert_eq!(test.say_at("north", 150, test.moneyline("fanduel", 140, -165)), UNCHANGED);
    assert_eq!(test.last_updates("mma"), ["2026-11-14T12:02:30Z"]);
}

#[test]
fn a_heartbeat_before_the_prices_does_not_confirm_them() {
    let mut test = with_bout();
    test.wait(600);
    assert_eq!(test.say_at("north", 500, test.beat("fanduel", Some("mma"))), ACCEPTED);
    assert_eq!(test.say_at("north", 100, test.moneyline("fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.last_updates("mma"), ["2026-11-14T12:01:40Z"]);
    assert_eq!(test.say_at("north", 520, test.beat("fanduel", None)), ACCEPTED);
    assert_eq!(test.last_updates("mma"), ["2026-11-14T12:08:40Z"]);
}

#[test]
fn a_heartbeat_for_every_sport_takes_none_back() {
    let mut test = with_bout();
    test.wait(600);
    assert_eq!(test.say_at("north", 0, test.moneyline("fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.say_at("north", 0, test.beat("fanduel", Some("golf"))), ACCEPTED);
    assert_eq!(test.say_at("north", 500, test.beat("fanduel", Some("mma"))), ACCEPTED);
    // It arrives late: new for golf, but not for mma.
    assert_eq!(test.say_at("north", 300, test.beat("fanduel", None)), ACCEPTED);
    assert_eq!(test.last_updates("mma"), ["2026-11-14T12:08:20Z"]);
    let read: Vec<String> = test.book.sources().map(|(_, _, s)| s.read_at.to_string()).collect();
    assert_eq!(read, ["2026-11-14T12:08:20Z", "2026-11-14T12:05:00Z"]);
}

#[test]
fn a_heartbeat_of_nobody_known_changes_nothing() {
    let mut test = with_bout();
    assert_eq!(test.say("north", test.beat("fanduel", None)), UNCHANGED);
    assert_eq!(test.changes.len(), 1);
}

#[test]
fn a_source_is_stale_after_90_seconds_and_the_sport_inactive_when_all_are() {
    let mut test = with_bout();
    let mma = test.sport("mma");
    let state = |test: &TestBook| {
        let snapshot = test.snapshot();
        let view = snapshot.sport(mma);
        let stale: Vec<bool> = view.sources.iter().map(|source| source.stale).collect();
        let health = test.book.vitals().health(test.now, crate::test_book::STALE_AFTER);
        (view.active, stale, health.degraded, health.sports_active)
    };
    assert_eq!(state(&test), (false, vec![], false, 0), "a sport without a source is not active");
    assert_eq!(test.price("bet365", 140, -165), ACCEPTED);
    test.wait(1);
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    test.wait(89);
    assert_eq!(state(&test), (true, vec![false, false], false, 1));
    test.wait(1);
    assert_eq!(state(&test), (true, vec![true, false], true, 1));
    test.wait(1);
    assert_eq!(state(&test), (false, vec![true, true], true, 0));
    assert_eq!(test.odds("mma").len(), 2, "stale odds are still served");
    assert_eq!(test.last_updates("mma"), ["2026-11-14T12:00:00Z", "2026-11-14T12:00:01Z"]);
    assert_eq!(test.say("north", test.beat("bet365", Some("mma"))), ACCEPTED);
    assert_eq!(state(&test), (true, vec![false, true], true, 1));
}

#[test]
fn the_newest_read_says_for_how_long_its_source_is_fresh() {
    let mut test = with_bout();
    let (mma, fanduel) =
        (test.sport("mma"), test.book.catalogue().bookmaker_id("fanduel").unwrap());
    let stale = |test: &TestBook| {
        let image = Book::from_image(
            linesman_market::book::IMAGE_VERSION,
            &test.book.to_image(),
            std::sync::Arc::clone(test.book.catalogue()),
        );
        let stale = |book: &Book| {
            let mut sources = book.sources();
            let (_, _, source) = sources.find(|s| (s.0, s.1) == (mma, fanduel)).unwrap();
            source.is_stale(test.now, crate::test_book::STALE_AFTER)
        };
        assert_eq!(stale(&image.unwrap()), stale(&test.book), "a checkpoint keeps it");
        stale(&test.book)
    };
    let hear = |test: &mut TestBook, fresh_for_s, secs: Option<i64>, body| {
        let ts = secs.map(crate::test_book::at);
        test.hear("north", &FeedMessage { ts, fresh_for_s, body })
    };
    let prices = test.moneyline("fanduel", 140, -165);
    assert_eq!(hear(&mut test, Some(600), None, prices.clone()), ACCEPTED);
    test.wait(600);
    assert!(!stale(&test), "its read keeps it fresh for ten minutes");
    test.wait(1);
    assert!(stale(&test));
    let beat = test.beat("fanduel", Some("mma"));
    assert_eq!(hear(&mut test, Some(30), None, beat.clone()), ACCEPTED);
    test.wait(90);
    assert!(!stale(&test), "what is shorter than for all does not count");
    assert_eq!(hear(&mut test, Some(3600), Some(1), beat), SUPERSEDED);
    test.wait(1);
    assert!(stale(&test), "an older read says nothing");
    let all = test.beat("fanduel", None);
    assert_eq!(hear(&mut test, Some(600), None, all), ACCEPTED);
    test.wait(91);
    assert!(!stale(&test), "a heartbeat of all sports is one of each");
    assert_eq!(hear(&mut test, None, None, prices), UNCHANGED);
    test.wait(91);
    assert!(stale(&test), "a read that does not say takes it back");
}

#[test]
fn a_silent_source_without_prices_is_forgotten() {
    let mut test = with_bout();
    assert_eq!(test.say("north", test.beat("fanduel", Some("golf"))), ACCEPTED);
    assert_eq!(test.price("fanduel", 140, -165), ACCEPTED);
    test.wait(48 * 3600 - 1);
    assert_eq!(test.expire(), 0);
    test.wait(1);
    assert_eq!(test.expire(), 1, "golf goes; in mma there are prices");
    assert_eq!(test.book.sources().count(), 1);
}

#[test]
fn matchups_of_several_pairings_are_several_records() {
    let mut test = with_tournament();
    let matchup = |test: &TestBook, group: &str, one: &str, other: &str| {
        let outcomes =
            vec![outcome(one, -110, None), outcome(other, -110, None), outcome("Tie", 900, None)];
        test.odds_body("g-1", "fanduel", Market::Matchup, Some(group), outcomes)
    };
    assert_eq!(test.say("north", matchup(&test, "r1 1", "Ivo Brandt", "Lars Meyn")), ACCEPTED);
    assert_eq!(test.say("north", matchup(&test, "r1 2", "Ivo Brandt", "Kim Sato")), ACCEPTED);
    assert_eq!(test.say("north", matchup(&test, "r1 2", "Ivo Brandt", "Kim Sato")), UNCHANGED);
    let odds = test.odds("golf");
    assert_eq!(odds.len(), 2);
    assert_ne!(odds[0]["id"], odds[1]["id"]);
    assert_eq!(odds[0]["outcomes"].as_array().unwrap().len(), 3);
    assert_eq!(test.events("golf")[0]["markets"], json!(["matchup"]));
    let none = test.odds_body("g-1", "fanduel", Market::Matchup, Some("r1 1"), vec![]);
    assert_eq!(test.say("north", none), ACCEPTED);
    assert_eq!(test.odds("golf").len(), 1);
}

#[test]
fn a_players_name_is_the_first_feeds() {
    let mut test = with_tournament();
    assert_eq!(test.say("south", test.tournament("77", "THE HARBOUR OPEN", 100)), ACCEPTED);
    let body = test.quote("g-1", "fanduel", Market::Outright, &[("Søren Kjær", 900)]);
    assert_eq!(test.say("north", body), ACCEPTED);
    let body =
        test.quote("77", "bet365", Market::Top5, &[("SOREN KJAER", 200), ("Ivo Brandt", 400)]);
    assert_eq!(test.say("south", body), ACCEPTED);
    let odds = test.odds("golf");
    assert_eq!(odds[0]["outcomes"][0]["name"], "Ivo Brandt");
    assert_eq!(odds[0]["outcomes"][1]["name"], "Søren Kjær");
}

#[test]
fn odds_come_by_start_event_bookmaker_market_and_record() {
    let mut test = with_bout();
    assert_eq!(test.say("north", test.bout("n-2", "Milan Dray", "Pavel Orsk", 12)), ACCEPTED);
    for bookmaker in ["williamhill", "888sport", "betmgm"] {
        let prices = [("Milan Dray", 120), ("Pavel Orsk", -140)];
        for market in [Market::Spread, Market::Moneyline] {
            assert_eq!(test.say("north", test.quote("n-2", bookmaker, market, &prices)), ACCEPTED);
        }
        assert_eq!(test.price(bookmaker, 140, -165), ACCEPTED);
    }
    let odds = test.odds("mma");
    let order: Vec<(&str, &str)> = odds
        .iter()
        .map(|r| (r["bookmaker"].as_str().unwrap(), r["market"].as_str().unwrap()))
        .collect();
    assert_eq!(
        order,
        [
            ("888sport", "moneyline"),
            ("888sport", "spread"),
            ("betmgm", "moneyline"),
            ("betmgm", "spread"),
            ("williamhill", "moneyline"),
            ("williamhill", "spread"),
            ("888sport", "moneyline"),
            ("betmgm", "moneyline"),
            ("williamhill", "moneyline"),
        ]
    );
    assert!(odds[..6].iter().all(|record| record["event_id"] == TestBook::id(1)));
}

#[test]
fn an_event_counts_until_it_is_final() {
    let mut test = with_bout();
    assert_eq!(test.say("north", test.bout("n-2", "Milan Dray", "Pavel Orsk", 12)), ACCEPTED);
    let open = |test: &TestBook| test.snapshot().sport(test.sport("mma")).events_open;
    assert_eq!(test.say("north", Body::Score(report("n-2", Status::Live))), ACCEPTED);
    assert_eq!(open(&test), 2);
    assert_eq!(test.say("north", Body::Score(report("n-2", Status::Final))), ACCEPTED);
    assert_eq!(open(&test), 1);
}
