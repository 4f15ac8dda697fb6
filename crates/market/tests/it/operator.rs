//! Operators' decisions about identities take precedence over everything and persist.

use domain::message::Body;
use domain::{BookmakerSet, EventId, Market, Status};
use linesman_market::{Change, Ids, Meaning, Operation};

use crate::identity::list;
use crate::test_book::{
    ACCEPTED, SALT, TestBook, all_events, all_odds, all_scores, everything, remove, replayed,
    restored, score,
};

const IDS: Ids = Ids::Minted { salt: SALT };

/// Two events that only an operator can merge, each with a price; the second has its sides swapped.
fn two() -> (TestBook, EventId, EventId) {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Kevin Ferguson v Houston Alexander", 24);
    list(&mut test, "south", "s-1", "Houston Alexander v Kimbo Slice", 24);
    let prices = [("Kevin Ferguson", 150), ("Houston Alexander", -180)];
    let body = test.quote("n-1", "bet365", Market::Moneyline, &prices);
    assert_eq!(test.say("north", body), ACCEPTED);
    let prices = [("Kimbo Slice", 160), ("Houston Alexander", -190)];
    let body = test.quote("s-1", "fanduel", Market::Moneyline, &prices);
    assert_eq!(test.say("south", body), ACCEPTED);
    let body = Body::Score(score("s-1", Status::Live, 2, 1));
    assert_eq!(test.say("south", body), ACCEPTED);
    let (one, other) = (test.event_of("north", "n-1").event, test.event_of("south", "s-1").event);
    assert_ne!(one, other);
    (test, one, other)
}

fn merged() -> (TestBook, EventId, EventId) {
    let (mut test, one, other) = two();
    test.operate(&Operation::Merge { one: other, other: one }).unwrap();
    (test, one, other)
}

fn split(test: &mut TestBook, event: EventId, feed: &str, reference: &str) {
    let (feed, reference) = (feed.into(), reference.into());
    test.operate(&Operation::Split { event, feed, reference }).unwrap();
}

/// The book after a replay, after a restart, and unchanged.
fn continued(test: TestBook) -> [TestBook; 3] {
    let mut tests = [TestBook::open(), TestBook::open(), TestBook::open()];
    for other in &mut tests {
        (other.now, other.changes) = (test.now, test.changes.clone());
    }
    tests[0].book = replayed(&test.catalogue, IDS, &test.changes);
    tests[1].book = restored(&test.book);
    tests[2].book = test.book;
    tests
}

#[test]
fn a_merge_shows_one_event_that_answers_to_both_ids() {
    let (test, elder, younger) = merged();
    for test in continued(test) {
        assert_eq!(test.events("mma").len(), 1);
        assert_eq!(test.book.resolve(younger), elder);
        assert_eq!(test.book.profile(younger).unwrap().also, [younger]);
        let (sport, snapshot) = (test.sport("mma"), test.snapshot());
        for ids in [vec![elder], vec![younger], vec![elder.min(younger), elder.max(younger)]] {
            let events = Some(ids.into());
            let odds = linesman_market::OddsSelection {
                events: Clone::clone(&events),
                bookmakers: BookmakerSet::ALL,
                ..all_odds(sport)
            };
            assert_eq!(odds.select(&snapshot).items.len(), 2);
            let of = linesman_market::EventSelection {
                events: Clone::clone(&events),
                ..all_events(sport)
            };
            assert_eq!(of.select(&snapshot).items.len(), 1);
            let of = linesman_market::ScoreSelection { events, ..all_scores(sport) };
            assert_eq!(of.select(&snapshot).items.len(), 1);
        }
    }
}

#[test]
fn a_merge_turns_prices_and_scores_to_the_elders_sides() {
    let (test, elder, _) = merged();
    for test in continued(test) {
        let odds = test.odds("mma");
        let of =
            |bookmaker: &str| odds.iter().find(|record| record["bookmaker"] == bookmaker).unwrap();
        for (bookmaker, home, away) in [("bet365", 150, -180), ("fanduel", 160, -190)] {
            let record = of(bookmaker);
            assert_eq!(record["event_id"], elder.to_string());
            assert_eq!(record["outcomes"][0]["name"], "Kevin Ferguson");
            assert_eq!(record["outcomes"][0]["price"], home);
            assert_eq!(record["outcomes"][1]["price"], away);
        }
        let scores = test.scores("mma");
        assert_eq!((&scores[0]["home_score"], &scores[0]["away_score"]), (&1.into(), &2.into()));
    }
}

#[test]
fn a_merge_teaches_names_for_all_and_goes_on_through_corrections() {
    let (test, elder, _) = merged();
    let learnt = test.book.aliases();
    assert_eq!(learnt.len(), 1);
    assert_eq!((learnt[0].feed.as_deref(), &*learnt[0].name), (None, "Kimbo Slice"));
    assert_eq!(learnt[0].meaning, Meaning::Is("Kevin Ferguson".into()));
    for mut test in continued(test) {
        // Either feed may correct the time, using its own names.
        list(&mut test, "south", "s-1", "Houston Alexander v Kimbo Slice", 30);
        list(&mut test, "north", "n-1", "Kevin Ferguson v Houston Alexander", 31);
        assert_eq!(test.event_of("south", "s-1").event, elder);
        assert_eq!(test.event_of("north", "n-1").event, elder);
        let prices = [("Kimbo Slice", 170), ("Houston Alexander", -200)];
        let body = test.quote("s-1", "fanduel", Market::Moneyline, &prices);
        assert_eq!(test.say("south", body), ACCEPTED);
        // A third feed's names are resolved at once, and so is the next bout of the two names.
        list(&mut test, "west", "w-1", "Slice, Kimbo v Alexander H.", 24);
        assert_eq!(test.event_of("west", "w-1").event, elder);
        list(&mut test, "north", "n-2", "Kevin Ferguson v Tomas Veldt", 2400);
        list(&mut test, "south", "s-2", "Tomas Veldt v Kimbo Slice", 2400);
        assert!(test.are_one(("north", "n-2"), ("south", "s-2")));
    }
}

#[test]
fn a_split_brings_the_former_id_back_with_its_prices_and_is_not_undone() {
    let (mut test, elder, younger) = merged();
    split(&mut test, elder, "south", "s-1");
    for mut test in continued(test) {
        let profile = test.event_of("south", "s-1");
        assert_eq!((profile.event, profile.refs.len()), (younger, 1));
        assert_eq!(profile.refs[0].why, "operator decision");
        assert_eq!(test.book.resolve(younger), younger);
        let odds = test.odds("mma");
        let of = |id: EventId| {
            let of_event: Vec<_> =
                odds.iter().filter(|r| r["event_id"] == id.to_string()).collect();
            assert_eq!(of_event.len(), 1);
            of_event[0].clone()
        };
        assert_eq!(of(elder)["bookmaker"], "bet365");
        assert_eq!(of(younger)["bookmaker"], "fanduel");
        assert_eq!(of(younger)["outcomes"][0]["name"], "Houston Alexander");
        assert_eq!(of(younger)["outcomes"][0]["price"], -190);
        assert_eq!(of(younger)["outcomes"][1]["name"], "Kimbo Slice");
        // Corrections and new listings do not merge them again.
        list(&mut test, "south", "s-1", "Houston Alexander v Kimbo Slice", 25);
        list(&mut test, "north", "n-1", "Kevin Ferguson v Houston Alexander", 25);
        assert_eq!(test.say("south", remove("s-1")), ACCEPTED);
        list(&mut test, "south", "s-1", "Houston Alexander v Kimbo Slice", 24);
        assert!(!test.are_one(("north", "n-1"), ("south", "s-1")));
        assert_eq!(test.event_of("south", "s-1").event, younger);
        assert!(test.doubts().is_empty());
    }
}

#[test]
fn a_split_of_what_a_match_had_joined_unteaches_it_and_tells_the_two_people_apart() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Michael Wendt", 24);
    list(&mut test, "south", "s-1", "Tomas Veldt v Mikey Wendt", 24);
    let event = test.event_of("north", "n-1").event;
    assert_eq!(test.event_of("south", "s-1").event, event);
    assert_eq!(test.book.remembered(), (0, 0, 1));
    split(&mut test, event, "south", "s-1");
    for mut test in continued(test) {
        assert_eq!(test.event_of("south", "s-1").event.to_string(), TestBook::id(1), "a new id");
        let learnt = test.book.aliases();
        assert_eq!(learnt.len(), 1);
        assert_eq!(learnt[0].meaning, Meaning::IsNot("Michael Wendt".into()));
        // One decision holds for every feed and every later bout.
        list(&mut test, "north", "n-2", "Oren Castellane v Michael Wendt", 2400);
        list(&mut test, "west", "w-2", "Oren Castellane v Mikey Wendt", 2400);
        assert!(!test.are_one(("north", "n-2"), ("west", "w-2")));
        // Each listing of a third feed finds its own event.
        list(&mut test, "west", "w-3", "Tomas Veldt v Mikey Wendt", 24);
        list(&mut test, "east", "e-3", "Tomas Veldt v Michael Wendt", 24);
        assert!(test.are_one(("south", "s-1"), ("west", "w-3")));
        assert!(test.are_one(("north", "n-1"), ("east", "e-3")));
    }
}

#[test]
fn two_that_were_parted_are_two_whatever_comes() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 424);
    assert_eq!(test.doubts().len(), 1);
    let (one, other) = (test.event_of("north", "n-1").event, test.event_of("south", "s-1").event);
    test.operate(&Operation::Part { one: other, other: one }).unwrap();
    for mut test in continued(test) {
        assert!(test.doubts().is_empty());
        list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 24);
        list(&mut test, "west", "w-1", "Tomas Veldt v Oren Castellane", 24);
        assert!(!test.are_one(("north", "n-1"), ("south", "s-1")));
        assert!(test.doubts().is_empty(), "{:?}", test.doubts());
        assert_eq!(test.events("mma").len(), 2);
    }
}

#[test]
fn refs_of_one_feed_that_an_operator_put_together_stay_together() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "north", "n-2", "Tomas Veldt v Oren Castellane", 24);
    let (one, other) = (test.event_of("north", "n-1").event, test.event_of("north", "n-2").event);
    test.operate(&Operation::Merge { one, other }).unwrap();
    let body = test.quote("n-1", "bet365", Market::Moneyline, &[("Tomas Veldt", 150)]);
    assert_eq!(test.say("north", body), ACCEPTED);
    for mut test in continued(test) {
        list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 25);
        list(&mut test, "north", "n-2", "Tomas Veldt v Oren Castellane", 26);
        assert!(test.are_one(("north", "n-1"), ("north", "n-2")));
        assert_eq!(test.say("north", remove("n-2")), ACCEPTED);
        assert_eq!(test.odds("mma").len(), 1, "it still lists the event");
        assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
        assert_eq!(test.odds("mma").len(), 0);
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason_and_changes_nothing() {
    let (mut test, one, other) = two();
    let names = crate::test_book::head_to_head("Ana Sommer", "Ida Vale");
    let body = test.event("tennis", "t-1", names, 24);
    assert_eq!(test.say("north", body), ACCEPTED);
    let tennis = test.event_of("north", "t-1").event;
    let nobody = EventId::from_number(1);
    let (before, made) = (everything(&test.book, test.now), test.changes.len());
    let ref_of = |feed: &str, reference: &str| Operation::Split {
        event: one,
        feed: feed.into(),
        reference: reference.into(),
    };
    for (operation, reason) in [
        (Operation::Merge { one, other: one }, format!("both ids are event {one} already")),
        (Operation::Merge { one, other: nobody }, format!("there is no event {nobody}")),
        (Operation::Merge { one, other: tennis }, "the two events are of different sports".into()),
        (
            Operation::Part { one, other: one },
            format!("both ids are event {one}; `events split` moves a ref out of it"),
        ),
        (ref_of("north", "n-1"), format!("north:n-1 is the only ref of event {one}")),
        (
            ref_of("south", "s-1"),
            format!("event {one} is not listed as south:s-1; it is listed as north:n-1"),
        ),
        (
            ref_of("nobody", "x"),
            format!("event {one} is not listed as nobody:x; it is listed as north:n-1"),
        ),
    ] {
        assert_eq!(test.operate(&operation).unwrap_err().to_string(), reason);
    }
    assert_eq!((everything(&test.book, test.now), test.changes.len()), (before, made));
    // The younger's id means the elder.
    test.operate(&Operation::Merge { one, other }).unwrap();
    let refused = test.operate(&Operation::Merge { one, other }).unwrap_err();
    assert_eq!(refused.to_string(), format!("both ids are event {one} already"));
    split(&mut test, other, "south", "s-1");
    assert_eq!(test.event_of("south", "s-1").event, other);
}

#[test]
fn a_chain_of_merges_leads_to_the_eldest() {
    let mut test = TestBook::open();
    let names =
        ["Tomas Veldt v Oren Castellane", "Milan Dray v Pavel Orsk", "Emil Roth v Jan Sever"];
    for (n, names) in names.iter().enumerate() {
        list(&mut test, "north", &format!("n-{n}"), names, 24);
    }
    let [first, second, third] =
        ["n-0", "n-1", "n-2"].map(|reference| test.event_of("north", reference).event);
    test.operate(&Operation::Merge { one: third, other: second }).unwrap();
    test.operate(&Operation::Merge { one: third, other: first }).unwrap();
    for test in continued(test) {
        assert!([first, second, third].iter().all(|id| test.book.resolve(*id) == first));
        let mut also = test.book.profile(first).unwrap().also;
        also.sort_unstable();
        let mut expected = [second, third];
        expected.sort_unstable();
        assert_eq!(also, expected);
        let never = |(change, _): &(Change, _)| !matches!(change, Change::Doubted { .. });
        assert!(test.changes.iter().all(never));
    }
}
