//! Remembered identities: aliases learned from matches, ids, and all of it after restarts and from old versions.

use std::collections::HashSet;
use std::sync::Arc;

use domain::message::Body;
use domain::{EventId, Status, Timestamp};
use linesman_market::book::ImageError;
use linesman_market::{Alias, Book, By, Change, Ids, Meaning, Operation};
use proptest::prelude::*;

use crate::identity::list;
use crate::test_book::{
    ACCEPTED, SALT, TestBook, everything, partition, remove, replayed, report, restored,
};

const IDS: Ids = Ids::Minted { salt: SALT };
const VERSION_1: &str = include_str!("../fixtures/version1.txt");

/// The book, its replay and its checkpoint, each with its own fixture.
fn continued(test: TestBook) -> [TestBook; 3] {
    let again = |book: Book| TestBook {
        catalogue: Arc::clone(&test.catalogue),
        book,
        now: test.now,
        changes: test.changes.clone(),
        oddities: Vec::new(),
    };
    let replay = again(replayed(&test.catalogue, IDS, &test.changes));
    let restored = again(restored(&test.book));
    [replay, restored, test]
}

fn of_feed(test: &TestBook, feed: Option<&str>) -> Vec<Alias> {
    let aliases = test.book.aliases().into_iter();
    aliases.filter(|alias| alias.feed.as_deref() == feed).cloned().collect()
}

#[test]
fn a_spelling_learnt_in_one_session_is_known_outside_it_to_that_feed_alone() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Michael Wendt", 24);
    list(&mut test, "odd", "o-1", "Tomas Veldt v Mikey Wendt", 25);
    assert!(test.are_one(("north", "n-1"), ("odd", "o-1")));
    let learnt = of_feed(&test, Some("odd"));
    assert_eq!(learnt.len(), 1);
    assert_eq!((&*learnt[0].name, &*learnt[0].sport), ("Mikey Wendt", "mma"));
    assert_eq!(learnt[0].meaning, Meaning::Is("Michael Wendt".into()));
    for mut test in continued(test) {
        // With starts five days apart, a short form alone would not be enough.
        list(&mut test, "north", "n-2", "Oren Castellane v Michael Wendt", 2400);
        list(&mut test, "odd", "o-2", "Oren Castellane v Mikey Wendt", 2400 + 120);
        assert!(test.are_one(("north", "n-2"), ("odd", "o-2")));
        list(&mut test, "north", "n-3", "Emil Roth v Michael Wendt", 2400);
        list(&mut test, "west", "w-3", "Emil Roth v Mikey Wendt", 2400 + 120);
        assert!(!test.are_one(("north", "n-3"), ("west", "w-3")), "it is another feed's habit");
    }
}

#[test]
fn a_match_that_is_sure_already_teaches_nothing() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    for (feed, names) in [
        ("a", "Veldt T. v Castellane O."),
        ("b", "Tomás Veldt v CASTELLANE, OREN"),
        ("c", "Tomas Veldt v Castellane"),
        ("d", "Tomas Veldt Jr. v Oren Castellane"),
    ] {
        list(&mut test, feed, "1", names, 24);
    }
    assert_eq!(test.events("mma").len(), 1);
    assert!(test.book.aliases().is_empty(), "{:?}", test.book.aliases());
}

fn alias(feed: Option<&str>, name: &str, meaning: Meaning) -> Alias {
    Alias { sport: "mma".into(), feed: feed.map(Into::into), name: name.into(), meaning }
}

#[test]
fn an_operators_alias_holds_for_all_and_its_denial_too() {
    let mut test = TestBook::open();
    let is = alias(None, "Mikey Wendt", Meaning::Is("Michael Wendt".into()));
    test.operate(&Operation::Teach { aliases: vec![is] }).unwrap();
    list(&mut test, "north", "n-1", "Tomas Veldt v Michael Wendt", 24);
    list(&mut test, "west", "w-1", "Tomas Veldt v Mikey Wendt", 24 + 120);
    assert!(test.are_one(("north", "n-1"), ("west", "w-1")));
    let is_not = alias(None, "Mikey Wendt", Meaning::IsNot("Michael Wendt".into()));
    test.operate(&Operation::Teach { aliases: vec![is_not] }).unwrap();
    for mut test in continued(test) {
        list(&mut test, "north", "n-2", "Oren Castellane v Michael Wendt", 2400);
        list(&mut test, "west", "w-2", "Oren Castellane v Mikey Wendt", 2400);
        assert!(!test.are_one(("north", "n-2"), ("west", "w-2")), "they are two people");
        assert!(test.doubts().is_empty());
    }
    let mut test = TestBook::open();
    let stranger =
        Alias { sport: "curling".into(), ..alias(None, "A B", Meaning::Is("C D".into())) };
    let refused = test.operate(&Operation::Teach { aliases: vec![stranger] }).unwrap_err();
    assert_eq!(refused.to_string(), "there is no sport `curling`");
    assert!(test.changes.is_empty());
}

#[test]
fn doubts_merged_ids_and_aliases_survive_restarts() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 424);
    list(&mut test, "west", "w-1", "Milan Dray v Kalle Wendt", 24);
    list(&mut test, "east", "e-1", "Milan Dray v Oskar Wendt", 24);
    list(&mut test, "west", "w-2", "Pavel Orsk v Michael Wendt", 24);
    list(&mut test, "east", "e-2", "Pavel Orsk v Mikey Wendt", 24);
    list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 100);
    assert_eq!(test.book.remembered(), (1, 1, 1));
    let (doubts, now) = (test.doubts(), test.now);
    let before = everything(&test.book, now);
    let aliases: Vec<Alias> = test.book.aliases().into_iter().cloned().collect();
    for test in continued(test) {
        assert_eq!(everything(&test.book, now), before);
        assert_eq!(test.doubts(), doubts);
        assert_eq!(test.book.aliases().into_iter().cloned().collect::<Vec<_>>(), aliases);
        let younger = EventId::minted(SALT, 1);
        assert_eq!(test.book.resolve(younger).to_string(), TestBook::id(0));
        let sport = test.sport("mma");
        assert!(test.snapshot().sport(sport).event(younger).is_some());
    }
}

#[test]
fn what_is_remembered_of_an_event_goes_with_it() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 424);
    list(&mut test, "west", "w-1", "Veldt v Castellane", 24);
    list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 100);
    assert_eq!(test.book.remembered(), (1, 1, 0));
    assert_eq!(test.say("north", Body::Score(report("n-1", Status::Final))), ACCEPTED);
    test.wait(72 * 3600);
    assert!(test.expire() > 0);
    assert_eq!(test.book.remembered(), (0, 0, 0));
    let younger = EventId::minted(SALT, 1);
    assert_eq!(test.book.resolve(younger), younger);
    assert!(test.book.profile(younger).is_none());
}

#[test]
fn an_id_is_never_given_twice_through_merges_splits_and_expiry() {
    let mut test = TestBook::open();
    let mut given: HashSet<EventId> = HashSet::new();
    for round in 0..6 {
        let start = 24 + round * 2000;
        list(&mut test, "north", "n", "Tomas Veldt v Oren Castellane", start);
        list(&mut test, "south", "s", "Tomas Veldt v Oren Castellane", start + 400);
        let made = [test.event_of("north", "n").event, test.event_of("south", "s").event];
        assert!(made.iter().all(|id| given.insert(*id)), "round {round}");
        let [one, other] = made;
        test.operate(&Operation::Merge { one, other }).unwrap();
        let (event, feed, reference) = (one, "south".into(), "s".into());
        test.operate(&Operation::Split { event, feed, reference }).unwrap();
        assert_eq!(test.event_of("south", "s").event, other, "the id that it had");
        if round % 2 == 0 {
            test.operate(&Operation::Merge { one, other }).unwrap();
        }
        test = continued(test).into_iter().nth(usize::try_from(round).unwrap() % 3).unwrap();
        for (feed, reference) in [("north", "n"), ("south", "s")] {
            assert_eq!(test.say(feed, remove(reference)), ACCEPTED);
        }
        test.wait(73 * 3600);
        test.expire();
        assert_eq!(test.book.events().count(), 0);
    }
    assert_eq!(given.len(), 12);
}

/// The bytes of a hexadecimal text.
fn bytes(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
    digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
}

#[test]
fn a_log_and_a_checkpoint_of_version_1_are_read_and_gone_on_with() {
    let mut test = TestBook::open();
    let mut image = Vec::new();
    for line in VERSION_1.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["change", at, hex] => {
                let at = Timestamp::from_millis(at.parse().unwrap());
                let change = Change::decode(1, &bytes(hex)).unwrap();
                test.book.absorb(&change, at);
                test.changes.push((change, at));
                test.now = at;
            }
            ["image", hex] => image = bytes(hex),
            _ => assert!(line.starts_with('#')),
        }
    }
    assert_eq!((test.changes.len(), test.events("mma").len(), test.odds("mma").len()), (10, 1, 1));
    let checkpoint = Book::from_image(1, &image, Arc::clone(&test.catalogue)).unwrap();
    assert_eq!(everything(&checkpoint, test.now), everything(&test.book, test.now));
    assert_eq!(partition(&checkpoint, |_| true), partition(&test.book, |_| true));
    assert_eq!(checkpoint.remembered(), (0, 0, 0));
    for book in [checkpoint, replayed(&test.catalogue, IDS, &test.changes)] {
        let mut test = TestBook { book, now: test.now, ..TestBook::open() };
        // The next listing joins, the next event has a new id, and the elder of two is the one known first.
        list(&mut test, "west", "w-1", "Veldt T. v Castellane O.", 24);
        list(&mut test, "west", "w-2", "Emil Roth v Jan Sever", 24);
        assert!(test.are_one(("north", "n-1"), ("west", "w-1")));
        assert_eq!(test.event_of("west", "w-2").event.to_string(), TestBook::id(3));
        let (one, other) =
            (test.event_of("west", "w-2").event, test.event_of("north", "n-1").event);
        test.operate(&Operation::Merge { one, other }).unwrap();
        assert_eq!(test.event_of("west", "w-2").event.to_string(), TestBook::id(0));
        // A checkpoint written now has the current version, and is complete.
        let again = restored(&test.book);
        assert_eq!(everything(&again, test.now), everything(&test.book, test.now));
    }
    let cut = |version| Book::from_image(version, &image, Arc::clone(&test.catalogue)).unwrap_err();
    assert_eq!(cut(2), ImageError::Undecodable, "version 2 has more");
    assert_eq!(cut(0), ImageError::Version(0));
}

#[test]
fn every_change_of_identities_is_written_and_read_alike() {
    let id = |n| EventId::minted(SALT, n);
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Michael Wendt", 24);
    list(&mut test, "south", "s-1", "Mikey Wendt v Tomas Veldt", 25);
    list(&mut test, "west", "w-1", "Tomas Veldt v Michael Wendt", 900);
    let (one, other) = (id(0), id(1));
    test.operate(&Operation::Merge { one, other }).unwrap();
    let (feed, reference): (Box<str>, Box<str>) = ("south".into(), "s-1".into());
    test.operate(&Operation::Split { event: id(0), feed, reference }).unwrap();
    test.operate(&Operation::Part { one: id(0), other: id(2) }).unwrap();
    test.changes.push((Change::Cleared { one: id(0), other: id(2) }, test.now));
    let kinds: HashSet<_> = test.changes.iter().map(|(c, _)| std::mem::discriminant(c)).collect();
    assert_eq!(kinds.len(), 9, "each of the new ones, and listings");
    for (change, _) in &test.changes {
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        assert_eq!(Change::decode(1, &bytes).as_ref(), Ok(change));
    }
    let by_operator = |(change, _): &&(Change, Timestamp)| {
        matches!(change, Change::Merged { by: By::Operator, .. })
    };
    assert_eq!(test.changes.iter().filter(by_operator).count(), 1);
}

proptest! {
    #![proptest_config(crate::test_book::cases(64))]

    /// Changes about events that do not exist, in any order, have no effect.
    #[test]
    fn changes_of_identities_that_fit_nothing_are_void(
        picks in proptest::collection::vec((0..8_usize, 0..4_u64, 0..4_u64, any::<bool>()), 1..40)
    ) {
        let mut test = TestBook::open();
        list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
        list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 424);
        let (_, Change::Doubted { doubt, evidence, .. }) = (0, &test.changes[2].0) else {
            panic!("{:?}", test.changes)
        };
        let (doubt, evidence) = (*doubt, *evidence);
        for (kind, one, other, swapped) in picks {
            let (one, other) = (EventId::minted(SALT, one), EventId::minted(SALT, other));
            let (feed, reference): (Box<str>, Box<str>) = ("south".into(), "s-1".into());
            let alias = alias(None, "Mikey Wendt", Meaning::Is("Michael Wendt".into()));
            let change = match kind {
                0 => Change::Merged { elder: one, younger: other, swapped, by: By::Operator },
                1 => Change::Split { event: one, feed, reference, into: other },
                2 => Change::Doubted { one, other, doubt, evidence },
                3 => Change::Cleared { one, other },
                4 => Change::Parted { one, other },
                5 => Change::Taught { alias, by: By::Evidence },
                6 => Change::Untaught { alias },
                _ => Change::Expired { event: one },
            };
            test.book.absorb(&change, test.now);
            test.changes.push((change, test.now));
        }
        let before = everything(&test.book, test.now);
        prop_assert_eq!(&everything(&restored(&test.book), test.now), &before);
        prop_assert_eq!(&everything(&replayed(&test.catalogue, IDS, &test.changes), test.now), &before);
        list(&mut test, "west", "w-1", "Tomas Veldt v Oren Castellane", 200);
    }
}
