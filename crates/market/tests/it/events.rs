//! The event of a listing, its lifetime, and its changes.

use domain::message::Body;
use domain::{Market, Status};
use linesman_market::{Change, Ids};
use serde_json::json;

use crate::test_book::{
    ACCEPTED, SALT, SUPERSEDED, TestBook, UNCHANGED, everything, head_to_head, remove, replayed,
    report, restored, score,
};

/// Two fighters, a moneyline, and three feeds.
fn with_bout() -> TestBook {
    let mut test = TestBook::open();
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    test
}

fn moneyline(test: &TestBook, reference: &str, bookmaker: &str, home: i32, away: i32) -> Body {
    let outcomes = [("Tomas Veldt", home), ("Oren Castellane", away)];
    test.quote(reference, bookmaker, Market::Moneyline, &outcomes)
}

#[test]
fn the_same_bout_under_another_spelling_order_and_time_is_the_same_event() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("77", "OREN  CASTELLANE", "Tomás Veldt", 25)), ACCEPTED);
    assert_eq!(test.say("west", test.bout("x", "tomas veldt", "oren-castellane", -12)), ACCEPTED);
    assert_eq!(test.say("east", test.bout("x", "T. Veldt", "Castellane, Oren", 361)), ACCEPTED);
    assert_eq!(test.events("mma").len(), 1, "336 h from another's is one event");
    assert_eq!(test.book.unsure().count(), 0);
    assert_eq!(test.say("up", test.bout("x", "Tomas Veldt", "Oren Castellane", -400)), ACCEPTED);
    let events = test.events("mma");
    assert_eq!(events.len(), 2, "388 h from the nearest may be two");
    assert_eq!(test.book.unsure().count(), 1);
    assert_eq!(test.say("down", test.bout("x", "Tomas Veldt", "Oren Castellane", 1500)), ACCEPTED);
    assert_eq!(test.events("mma").len(), 3, "and 1139 h surely are");
    assert_eq!(test.book.unsure().count(), 1);
    let events = test.events("mma");
    let events = &events[1..];
    assert_eq!(events[0]["home_team"], "Tomas Veldt");
    assert_eq!(events[0]["commence_time"], "2026-11-15T12:00:00Z");
}

#[test]
fn the_nearest_start_wins_where_two_events_would_fit() {
    let mut test = with_bout();
    assert_eq!(test.say("north", test.bout("n-2", "Tomas Veldt", "Oren Castellane", 48)), ACCEPTED);
    assert_eq!(test.say("south", test.bout("s", "Tomas Veldt", "Oren Castellane", 40)), ACCEPTED);
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    assert_eq!(test.say("north", remove("n-2")), ACCEPTED);
    let events = test.events("mma");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["id"], TestBook::id(1));
}

#[test]
fn two_refs_of_one_feed_are_two_events() {
    let mut test = with_bout();
    assert_eq!(test.say("north", test.bout("n-2", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.events("mma").len(), 2);
}

#[test]
fn a_ref_means_something_else_at_every_feed() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("n-1", "Milan Dray", "Pavel Orsk", 24)), ACCEPTED);
    assert_eq!(test.events("mma").len(), 2);
}

#[test]
fn the_same_people_in_another_sport_are_another_event() {
    let mut test = with_bout();
    let names = || head_to_head("Tomas Veldt", "Oren Castellane");
    assert_eq!(test.say("south", test.event("boxing", "s", names(), 24)), ACCEPTED);
    assert_eq!((test.events("mma").len(), test.events("boxing").len()), (1, 1));
    assert_eq!(test.say("north", test.event("boxing", "n-1", names(), 24)), ACCEPTED);
    assert_eq!(test.events("mma").len(), 0, "the ref took its listing along");
    assert_eq!(test.events("boxing")[0]["id"], TestBook::id(1));
}

#[test]
fn the_same_message_twice_is_unchanged() {
    let mut test = with_bout();
    let listing = test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24);
    let odds = moneyline(&test, "n-1", "fanduel", 140, -165);
    let live = Body::Score(score("n-1", Status::Live, 1, 0));
    assert_eq!(test.say("north", odds.clone()), ACCEPTED);
    assert_eq!(test.say("north", live.clone()), ACCEPTED);
    let before = everything(&test.book, test.now);
    for body in [listing, odds, live] {
        assert_eq!(test.say("north", body), UNCHANGED);
    }
    assert_eq!(everything(&test.book, test.now), before);
    assert_eq!(test.changes.len(), 3);
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    assert_eq!(test.say("north", remove("n-1")), UNCHANGED);
}

#[test]
fn an_older_message_is_superseded() {
    let mut test = TestBook::open();
    test.wait(600);
    let old = test.bout("n-1", "Tomas Veldt", "Pavel Orsk", 24);
    assert_eq!(
        test.say_at("north", 100, test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)),
        ACCEPTED
    );
    assert_eq!(test.say_at("north", 100, moneyline(&test, "n-1", "fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.say_at("north", 100, Body::Score(score("n-1", Status::Live, 1, 0))), ACCEPTED);
    let before = everything(&test.book, test.now);
    assert_eq!(test.say_at("north", 99, old), SUPERSEDED);
    assert_eq!(test.say_at("north", 99, moneyline(&test, "n-1", "fanduel", 150, -180)), SUPERSEDED);
    assert_eq!(
        test.say_at("north", 99, Body::Score(score("n-1", Status::Final, 2, 0))),
        SUPERSEDED
    );
    assert_eq!(test.say_at("north", 99, remove("n-1")), SUPERSEDED);
    assert_eq!(everything(&test.book, test.now), before);
}

#[test]
fn what_does_not_say_when_is_never_older_than_what_is_held() {
    let mut test = TestBook::open();
    test.wait(600);
    let soon = 604;
    let bout = test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24);
    assert_eq!(test.say_at("north", soon, bout), ACCEPTED);
    assert_eq!(test.say_at("north", soon, moneyline(&test, "n-1", "fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.say_at("north", soon, Body::Score(score("n-1", Status::Live, 1, 0))), ACCEPTED);
    // The clock is behind the held message; a new message is newer all the same, and is not dated before it.
    assert_eq!(test.say("north", moneyline(&test, "n-1", "fanduel", 150, -180)), ACCEPTED);
    assert_eq!(test.say("north", moneyline(&test, "n-1", "fanduel", 150, -180)), UNCHANGED);
    let older = moneyline(&test, "n-1", "fanduel", 160, -190);
    assert_eq!(test.say_at("north", soon - 1, older), SUPERSEDED);
    assert_eq!(test.say("north", Body::Score(score("n-1", Status::Live, 2, 0))), ACCEPTED);
    let again = test.bout("n-1", "Tomas Veldt", "Oren Castellane", 25);
    assert_eq!(test.say("north", again), ACCEPTED);
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
}

#[test]
fn the_eldest_listing_names_and_times_the_event_and_the_next_follows_it() {
    let mut test = with_bout();
    let swapped = test.bout("s-1", "O. Castellane", "Tomas Veldt", 26);
    assert_eq!(test.say("south", swapped), ACCEPTED);
    assert_eq!(test.events("mma").len(), 1, "an initial is the name, where all else agrees");
    let swapped = test.bout("s-1", "OREN CASTELLANE", "TOMAS VELDT", 26);
    assert_eq!(test.say("south", swapped), ACCEPTED);
    assert_eq!(test.events("mma")[0]["home_team"], "Tomas Veldt");

    let mut test = with_bout();
    let swapped = test.bout("s-1", "OREN CASTELLANE", "TOMAS VELDT", 26);
    assert_eq!(test.say("south", swapped), ACCEPTED);
    assert_eq!(test.say("south", moneyline(&test, "s-1", "fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.odds("mma")[0]["outcomes"][0]["name"], "Tomas Veldt");
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    let event = &test.events("mma")[0];
    assert_eq!(event["id"], TestBook::id(0));
    assert_eq!(event["home_team"], "TOMAS VELDT", "still home, in the words of who is left");
    assert_eq!(event["commence_time"], "2026-11-15T14:00:00Z");
    assert_eq!(
        test.odds("mma")[0]["outcomes"][0],
        json!({"name":"TOMAS VELDT","price":140,"point":null})
    );
}

#[test]
fn a_correction_of_the_leading_feed_shows_and_one_of_another_does_not() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("s-1", "Oren Castellane", "Tomas Veldt", 24)), ACCEPTED);
    assert_eq!(test.say("south", test.bout("s-1", "Oren Castellane", "Tomas Veldt", 30)), ACCEPTED);
    assert_eq!(test.events("mma")[0]["commence_time"], "2026-11-15T12:00:00Z");
    // A month later it is still the same event, according to the ref.
    assert_eq!(
        test.say("north", test.bout("n-1", "Tomás Veldt", "Oren Castellane", 744)),
        ACCEPTED
    );
    let event = &test.events("mma")[0];
    assert_eq!(event["commence_time"], "2026-12-15T12:00:00Z");
    assert_eq!(event["home_team"], "Tomás Veldt");
    assert_eq!(event["id"], TestBook::id(0));
    assert_eq!(event["status"], "scheduled");
}

#[test]
fn a_replaced_fighter_takes_the_odds_away() {
    let mut test = with_bout();
    assert_eq!(test.say("north", moneyline(&test, "n-1", "fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Pavel Orsk", 24)), ACCEPTED);
    assert_eq!(test.odds("mma").len(), 0);
    let event = &test.events("mma")[0];
    assert_eq!(
        (&event["id"], &event["away_team"]),
        (&json!(TestBook::id(0)), &json!("Pavel Orsk"))
    );
    assert_eq!(event["markets"], json!([]));
}

#[test]
fn a_replaced_fighter_is_another_event_where_others_list_the_first() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("s-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.say("south", moneyline(&test, "s-1", "bet365", 130, -150)), ACCEPTED);
    assert_eq!(test.say("north", moneyline(&test, "n-1", "fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Pavel Orsk", 24)), ACCEPTED);
    assert_eq!(test.events("mma").len(), 2);
    let odds = test.odds("mma");
    assert_eq!(odds.len(), 1, "the other feed's price stays where it was");
    assert_eq!(
        (&odds[0]["event_id"], &odds[0]["bookmaker"]),
        (&json!(TestBook::id(0)), &json!("bet365"))
    );
}

#[test]
fn who_comes_back_to_an_event_of_others_by_now_gets_one_of_its_own() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("s-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.say("south", remove("s-1")), ACCEPTED);
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Pavel Orsk", 24)), ACCEPTED);
    assert_eq!(test.say("south", test.bout("s-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.say("south", moneyline(&test, "s-1", "bet365", 130, -150)), ACCEPTED);
    let odds = test.odds("mma");
    assert_eq!(odds[0]["event_id"], TestBook::id(1));
    assert_eq!(odds[0]["outcomes"][1]["name"], "Oren Castellane");
}

#[test]
fn the_event_goes_when_the_last_feed_removed_it() {
    let mut test = with_bout();
    assert_eq!(test.say("south", test.bout("s-1", "Oren Castellane", "Tomas Veldt", 24)), ACCEPTED);
    assert_eq!(test.say("north", moneyline(&test, "n-1", "fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.say("south", moneyline(&test, "s-1", "bet365", 130, -150)), ACCEPTED);
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    assert_eq!(test.events("mma").len(), 1);
    let odds = test.odds("mma");
    assert_eq!((odds.len(), &odds[0]["bookmaker"]), (1, &json!("bet365")));
    assert_eq!(test.say("south", remove("s-1")), ACCEPTED);
    assert_eq!((test.events("mma").len(), test.scores("mma").len()), (0, 0));
    assert_eq!(test.odds("mma").len(), 0);
}

#[test]
fn a_relisted_event_keeps_its_id() {
    let mut test = with_bout();
    assert_eq!(test.say("north", moneyline(&test, "n-1", "fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    test.wait(3600);
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.events("mma")[0]["id"], TestBook::id(0));
    assert_eq!(test.odds("mma").len(), 0, "prices come back with new odds only");
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    // Another feed, another ref, and still the same event.
    assert_eq!(test.say("south", test.bout("s-9", "Oren Castellane", "Tomas Veldt", 24)), ACCEPTED);
    assert_eq!(test.events("mma")[0]["id"], TestBook::id(0));
}

#[test]
fn a_feed_that_renames_its_ref_keeps_the_event_and_the_old_ref_cannot_take_it_away() {
    let mut test = with_bout();
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    assert_eq!(test.say("north", test.bout("n-2", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.say("north", moneyline(&test, "n-2", "fanduel", 140, -165)), ACCEPTED);
    assert_eq!(test.events("mma")[0]["id"], TestBook::id(0));
    // The old ref comes back: its event is taken, so it gets one of its own.
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.events("mma").len(), 2);
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    assert_eq!(test.events("mma")[0]["id"], TestBook::id(0));
    assert_eq!(test.odds("mma").len(), 1);
    // The same if the old ref comes back with another participant.
    assert_eq!(test.say("north", test.bout("n-1", "Milan Dray", "Pavel Orsk", 24)), ACCEPTED);
    assert_eq!((test.events("mma").len(), test.odds("mma").len()), (2, 1));
}

#[test]
fn a_final_event_leaves_after_72_hours() {
    let mut test = with_bout();
    assert_eq!(test.say("north", Body::Score(report("n-1", Status::Final))), ACCEPTED);
    test.wait(72 * 3600 - 1);
    assert_eq!(test.expire(), 0);
    assert_eq!(test.scores("mma").len(), 1);
    test.wait(1);
    assert_eq!(test.expire(), 1);
    assert_eq!((test.events("mma").len(), test.scores("mma").len()), (0, 0));
    assert_eq!(test.expire(), 0);
}

#[test]
fn an_event_nobody_speaks_of_is_forgotten_after_its_start() {
    let mut test = with_bout();
    test.wait(24 * 3600 + 48 * 3600 - 1);
    assert_eq!(test.expire(), 0);
    test.wait(1);
    assert_eq!(test.expire(), 1);
    // An event that all feeds removed expires, too, although it would start much later.
    assert_eq!(test.say("north", test.bout("n-2", "Milan Dray", "Pavel Orsk", 720)), ACCEPTED);
    assert_eq!(test.say("north", remove("n-2")), ACCEPTED);
    test.wait(72 * 3600);
    assert_eq!(test.expire(), 1);
    assert_eq!(test.book.events().count(), 0);
}

#[test]
fn the_id_of_an_expired_event_is_never_given_again() {
    let mut test = with_bout();
    assert_eq!(test.say("north", Body::Score(report("n-1", Status::Final))), ACCEPTED);
    test.wait(72 * 3600);
    test.expire();
    let ids = Ids::Minted { salt: SALT };
    let replay = replayed(&test.catalogue, ids, &test.changes);
    for book in [restored(&test.book), replay, test.book] {
        let mut test = TestBook { book, now: test.now, ..TestBook::open() };
        let listing = test.bout("n-1", "Tomas Veldt", "Oren Castellane", 96);
        assert_eq!(test.say("north", listing), ACCEPTED);
        assert_eq!(test.events("mma")[0]["id"], TestBook::id(1));
    }
}

#[test]
fn ids_go_on_where_they_were_after_a_sport_left_the_catalogue() {
    let darts = r#"
        [[sport]]
        key = "darts"
        title = "Darts"
        group = "pub"
        shape = "head_to_head"
        markets = ["moneyline"]
        same_event_within_hours = 12
    "#;
    let ids = Ids::Minted { salt: SALT };
    let mut test = TestBook::with(ids, Some(darts));
    let names = head_to_head("Milan Dray", "Pavel Orsk");
    assert_eq!(test.say("north", test.event("darts", "d-1", names, 24)), ACCEPTED);
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.say("north", Body::Score(report("n-1", Status::Final))), ACCEPTED);
    test.wait(72 * 3600);
    test.expire();
    let without = TestBook::open();
    let mut after = TestBook { book: replayed(&without.catalogue, ids, &test.changes), ..without };
    after.now = test.now;
    assert_eq!(after.say("north", after.bout("n-2", "Emil Roth", "Jan Sever", 96)), ACCEPTED);
    assert_eq!(after.events("mma")[0]["id"], TestBook::id(2), "not the id of the event that was");
}

#[test]
fn what_left_the_catalogue_is_left_out_of_a_checkpoint() {
    let shop = "[[bookmaker]]\nkey = \"corner_shop\"\ntitle = \"Corner Shop\"\nregions = [\"uk\"]";
    let mut test = TestBook::with(Ids::Minted { salt: SALT }, Some(shop));
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.say("north", moneyline(&test, "n-1", "corner_shop", 140, -165)), ACCEPTED);
    assert_eq!(test.say("north", moneyline(&test, "n-1", "fanduel", 140, -165)), ACCEPTED);
    let mut without = TestBook::open();
    let image = test.book.to_image();
    let version = linesman_market::book::IMAGE_VERSION;
    let catalogue = std::sync::Arc::clone(&without.catalogue);
    without.book = linesman_market::Book::from_image(version, &image, catalogue).unwrap();
    assert_eq!(without.odds("mma").len(), 1);
    let ids = Ids::Minted { salt: SALT };
    let replay = replayed(&without.catalogue, ids, &test.changes);
    assert_eq!(everything(&without.book, test.now), everything(&replay, test.now));
}

#[test]
fn derived_ids_are_the_same_everywhere_and_never_shared() {
    let derived = || TestBook::with(Ids::Derived { salt: SALT }, None);
    let (mut one, mut other) = (derived(), derived());
    assert_eq!(other.say("sim", other.bout("b-0", "Emil Roth", "Jan Sever", 24)), ACCEPTED);
    for test in [&mut one, &mut other] {
        assert_eq!(
            test.say("sim", test.bout("b-1", "Tomas Veldt", "Oren Castellane", 24)),
            ACCEPTED
        );
    }
    let id = one.events("mma")[0]["id"].clone();
    assert!(other.events("mma").iter().any(|event| event["id"] == id));
    // The same ref of another feed is another event, and so is the same ref in another sport.
    assert_eq!(one.say("more", one.bout("b-1", "Milan Dray", "Pavel Orsk", 24)), ACCEPTED);
    assert_eq!(one.events("mma").len(), 2);
    let names = head_to_head("Tomas Veldt", "Oren Castellane");
    assert_eq!(one.say("sim", one.event("boxing", "b-1", names, 24)), ACCEPTED);
    assert_eq!((one.events("mma").len(), one.events("boxing").len()), (1, 1));
}

#[test]
fn a_book_founded_anew_is_empty() {
    let mut test = with_bout();
    test.book.absorb(&Change::Founded { ids: Ids::Minted { salt: SALT } }, test.now);
    assert_eq!(test.events("mma").len(), 0);
    assert_eq!(test.say("north", test.bout("n-5", "Milan Dray", "Pavel Orsk", 24)), ACCEPTED);
    assert_eq!(test.events("mma")[0]["id"], TestBook::id(0));
}
