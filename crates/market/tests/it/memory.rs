//! Remembered identities: aliases learned from matches, ids, and all of it after restarts and from old versions.

use std::collections::HashSet;
use std::sync::Arc;

use domain::message::Body;
use domain::{EventId, Status, Timestamp};
use linesman_market::book::ImageError;
use linesman_market::{Alias, Book, By, Change, Ids, Meaning, Operation};
use proptest::prelude::*;

use crate::desk::{
    ACCEPTED, Desk, SALT, everything, partition, remove, replayed, report, restored,
};
use crate::identity::list;

const IDS: Ids = Ids::Minted { salt: SALT };
const VERSION_1: &str = include_str!("../fixtures/version1.txt");

/// The book, its replay and its checkpoint, each on its own desk.
fn continued(desk: Desk) -> [Desk; 3] {
    let again = |book: Book| Desk {
        catalogue: Arc::clone(&desk.catalogue),
        book,
        now: desk.now,
        changes: desk.changes.clone(),
        oddities: Vec::new(),
    };
    let replay = again(replayed(&desk.catalogue, IDS, &desk.changes));
    let restored = again(restored(&desk.book));
    [replay, restored, desk]
}

fn of_feed(desk: &Desk, feed: Option<&str>) -> Vec<Alias> {
    let aliases = desk.book.aliases().into_iter();
    aliases.filter(|alias| alias.feed.as_deref() == feed).cloned().collect()
}

#[test]
fn a_spelling_learnt_in_one_session_is_known_outside_it_to_that_feed_alone() {
    let mut desk = Desk::open();
    list(&mut desk, "north", "n-1", "Tomas Veldt v Michael Wendt", 24);
    list(&mut desk, "odd", "o-1", "Tomas Veldt v Mikey Wendt", 25);
    assert!(desk.are_one(("north", "n-1"), ("odd", "o-1")));
    let learnt = of_feed(&desk, Some("odd"));
    assert_eq!(learnt.len(), 1);
    assert_eq!((&*learnt[0].name, &*learnt[0].sport), ("Mikey Wendt", "mma"));
    assert_eq!(learnt[0].meaning, Meaning::Is("Michael Wendt".into()));
    for mut desk in continued(desk) {
        // With starts five days apart, a short form alone would not be enough.
        list(&mut desk, "north", "n-2", "Oren Castellane v Michael Wendt", 2400);
        list(&mut desk, "odd", "o-2", "Oren Castellane v Mikey Wendt", 2400 + 120);
        assert!(desk.are_one(("north", "n-2"), ("odd", "o-2")));
        list(&mut desk, "north", "n-3", "Emil Roth v Michael Wendt", 2400);
        list(&mut desk, "west", "w-3", "Emil Roth v Mikey Wendt", 2400 + 120);
        assert!(!desk.are_one(("north", "n-3"), ("west", "w-3")), "it is another feed's habit");
    }
}

#[test]
fn a_match_that_is_sure_already_teaches_nothing() {
    let mut desk = Desk::open();
    list(&mut desk, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    for (feed, names) in [
        ("a", "Veldt T. v Castellane O."),
        ("b", "Tomás Veldt v CASTELLANE, OREN"),
        ("c", "Tomas Veldt v Castellane"),
        ("d", "Tomas Veldt Jr. v Oren Castellane"),
    ] {
        list(&mut desk, feed, "1", names, 24);
    }
    assert_eq!(desk.events("mma").len(), 1);
    assert!(desk.book.aliases().is_empty(), "{:?}", desk.book.aliases());
}

fn alias(feed: Option<&str>, name: &str, meaning: Meaning) -> Alias {
    Alias { sport: "mma".into(), feed: feed.map(Into::into), name: name.into(), meaning }
}

#[test]
fn an_operators_alias_holds_for_all_and_its_denial_too() {
    let mut desk = Desk::open();
    let is = alias(None, "Mikey Wendt", Meaning::Is("Michael Wendt".into()));
    desk.operate(&Operation::Teach { aliases: vec![is] }).unwrap();
    list(&mut desk, "north", "n-1", "Tomas Veldt v Michael Wendt", 24);
    list(&mut desk, "west", "w-1", "Tomas Veldt v Mikey Wendt", 24 + 120);
    assert!(desk.are_one(("north", "n-1"), ("west", "w-1")));
    let is_not = alias(None, "Mikey Wendt", Meaning::IsNot("Michael Wendt".into()));
    desk.operate(&Operation::Teach { aliases: vec![is_not] }).unwrap();
    for mut desk in continued(desk) {
        list(&mut desk, "north", "n-2", "Oren Castellane v Michael Wendt", 2400);
        list(&mut desk, "west", "w-2", "Oren Castellane v Mikey Wendt", 2400);
        assert!(!desk.are_one(("north", "n-2"), ("west", "w-2")), "they are two people");
        assert!(desk.doubts().is_empty());
    }
    let mut desk = Desk::open();
    let stranger =
        Alias { sport: "curling".into(), ..alias(None, "A B", Meaning::Is("C D".into())) };
    let refused = desk.operate(&Operation::Teach { aliases: vec![stranger] }).unwrap_err();
    assert_eq!(refused.to_string(), "there is no sport `curling`");
    assert!(desk.changes.is_empty());
}

#[test]
fn doubts_merged_ids_and_aliases_survive_restarts() {
    let mut desk = Desk::open();
    list(&mut desk, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut desk, "south", "s-1", "Veldt T. v Castellane O.", 424);
    list(&mut desk, "west", "w-1", "Milan Dray v Kalle Wendt", 24);
    list(&mut desk, "east", "e-1", "Milan Dray v Oskar Wendt", 24);
    list(&mut desk, "west", "w-2", "Pavel Orsk v Michael Wendt", 24);
    list(&mut desk, "east", "e-2", "Pavel Orsk v Mikey Wendt", 24);
    list(&mut desk, "south", "s-1", "Veldt T. v Castellane O.", 100);
    assert_eq!(desk.book.remembered(), (1, 1, 1));
    let (doubts, now) = (desk.doubts(), desk.now);
    let before = everything(&desk.book, now);
    let aliases: Vec<Alias> = desk.book.aliases().into_iter().cloned().collect();
    for desk in continued(desk) {
        assert_eq!(everything(&desk.book, now), before);
        assert_eq!(desk.doubts(), doubts);
        assert_eq!(desk.book.aliases().into_iter().cloned().collect::<Vec<_>>(), aliases);
        let younger = EventId::minted(SALT, 1);
        assert_eq!(desk.book.resolve(younger).to_string(), Desk::id(0));
        let sport = desk.sport("mma");
        assert!(desk.snapshot().sport(sport).event(younger).is_some());
    }
}

#[test]
fn what_is_remembered_of_an_event_goes_with_it() {
    let mut desk = Desk::open();
    list(&mut desk, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut desk, "south", "s-1", "Veldt T. v Castellane O.", 424);
    list(&mut desk, "west", "w-1", "Veldt v Castellane", 24);
    list(&mut desk, "south", "s-1", "Veldt T. v Castellane O.", 100);
    assert_eq!(desk.book.remembered(), (1, 1, 0));
    assert_eq!(desk.say("north", Body::Score(report("n-1", Status::Final))), ACCEPTED);
    desk.wait(72 * 3600);
    assert!(desk.expire() > 0);
    assert_eq!(desk.book.remembered(), (0, 0, 0));
    let younger = EventId::minted(SALT, 1);
    assert_eq!(desk.book.resolve(younger), younger);
    assert!(desk.book.profile(younger).is_none());
}

#[test]
fn an_id_is_never_given_twice_through_merges_splits_and_expiry() {
    let mut desk = Desk::open();
    let mut given: HashSet<EventId> = HashSet::new();
    for round in 0..6 {
        let start = 24 + round * 2000;
        list(&mut desk, "north", "n", "Tomas Veldt v Oren Castellane", start);
        list(&mut desk, "south", "s", "Tomas Veldt v Oren Castellane", start + 400);
        let made = [desk.event_of("north", "n").event, desk.event_of("south", "s").event];
        assert!(made.iter().all(|id| given.insert(*id)), "round {round}");
        let [one, other] = made;
        desk.operate(&Operation::Merge { one, other }).unwrap();
        let (event, feed, reference) = (one, "south".into(), "s".into());
        desk.operate(&Operation::Split { event, feed, reference }).unwrap();
        assert_eq!(desk.event_of("south", "s").event, other, "the id that it had");
        if round % 2 == 0 {
            desk.operate(&Operation::Merge { one, other }).unwrap();
        }
        desk = continued(desk).into_iter().nth(usize::try_from(round).unwrap() % 3).unwrap();
        for (feed, reference) in [("north", "n"), ("south", "s")] {
            assert_eq!(desk.say(feed, remove(reference)), ACCEPTED);
        }
        desk.wait(73 * 3600);
        desk.expire();
        assert_eq!(desk.book.events().count(), 0);
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
    let mut desk = Desk::open();
    let mut image = Vec::new();
    for line in VERSION_1.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["change", at, hex] => {
                let at = Timestamp::from_millis(at.parse().unwrap());
                let change = Change::decode(1, &bytes(hex)).unwrap();
                desk.book.absorb(&change, at);
                desk.changes.push((change, at));
                desk.now = at;
            }
            ["image", hex] => image = bytes(hex),
            _ => assert!(line.starts_with('#')),
        }
    }
    assert_eq!((desk.changes.len(), desk.events("mma").len(), desk.odds("mma").len()), (10, 1, 1));
    let checkpoint = Book::from_image(1, &image, Arc::clone(&desk.catalogue)).unwrap();
    assert_eq!(everything(&checkpoint, desk.now), everything(&desk.book, desk.now));
    assert_eq!(partition(&checkpoint, |_| true), partition(&desk.book, |_| true));
    assert_eq!(checkpoint.remembered(), (0, 0, 0));
    for book in [checkpoint, replayed(&desk.catalogue, IDS, &desk.changes)] {
        let mut desk = Desk { book, now: desk.now, ..Desk::open() };
        // The next listing joins, the next event has a new id, and the elder of two is the one known first.
        list(&mut desk, "west", "w-1", "Veldt T. v Castellane O.", 24);
        list(&mut desk, "west", "w-2", "Emil Roth v Jan Sever", 24);
        assert!(desk.are_one(("north", "n-1"), ("west", "w-1")));
        assert_eq!(desk.event_of("west", "w-2").event.to_string(), Desk::id(3));
        let (one, other) =
            (desk.event_of("west", "w-2").event, desk.event_of("north", "n-1").event);
        desk.operate(&Operation::Merge { one, other }).unwrap();
        assert_eq!(desk.event_of("west", "w-2").event.to_string(), Desk::id(0));
        // A checkpoint written now has the current version, and is complete.
        let again = restored(&desk.book);
        assert_eq!(everything(&again, desk.now), everything(&desk.book, desk.now));
    }
    let cut = |version| Book::from_image(version, &image, Arc::clone(&desk.catalogue)).unwrap_err();
    assert_eq!(cut(2), ImageError::Undecodable, "version 2 has more");
    assert_eq!(cut(0), ImageError::Version(0));
}

#[test]
fn every_change_of_identities_is_written_and_read_alike() {
    let id = |n| EventId::minted(SALT, n);
    let mut desk = Desk::open();
    list(&mut desk, "north", "n-1", "Tomas Veldt v Michael Wendt", 24);
    list(&mut desk, "south", "s-1", "Mikey Wendt v Tomas Veldt", 25);
    list(&mut desk, "west", "w-1", "Tomas Veldt v Michael Wendt", 900);
    let (one, other) = (id(0), id(1));
    desk.operate(&Operation::Merge { one, other }).unwrap();
    let (feed, reference): (Box<str>, Box<str>) = ("south".into(), "s-1".into());
    desk.operate(&Operation::Split { event: id(0), feed, reference }).unwrap();
    desk.operate(&Operation::Part { one: id(0), other: id(2) }).unwrap();
    desk.changes.push((Change::Cleared { one: id(0), other: id(2) }, desk.now));
    let kinds: HashSet<_> = desk.changes.iter().map(|(c, _)| std::mem::discriminant(c)).collect();
    assert_eq!(kinds.len(), 9, "each of the new ones, and listings");
    for (change, _) in &desk.changes {
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        assert_eq!(Change::decode(1, &bytes).as_ref(), Ok(change));
    }
    let by_operator = |(change, _): &&(Change, Timestamp)| {
        matches!(change, Change::Merged { by: By::Operator, .. })
    };
    assert_eq!(desk.changes.iter().filter(by_operator).count(), 1);
}

proptest! {
    #![proptest_config(crate::desk::cases(64))]

    /// Changes about events that do not exist, in any order, have no effect.
    #[test]
    fn changes_of_identities_that_fit_nothing_are_void(
        picks in proptest::collection::vec((0..8_usize, 0..4_u64, 0..4_u64, any::<bool>()), 1..40)
    ) {
        let mut desk = Desk::open();
        list(&mut desk, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
        list(&mut desk, "south", "s-1", "Veldt T. v Castellane O.", 424);
        let (_, Change::Doubted { doubt, evidence, .. }) = (0, &desk.changes[2].0) else {
            panic!("{:?}", desk.changes)
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
            desk.book.absorb(&change, desk.now);
            desk.changes.push((change, desk.now));
        }
        let before = everything(&desk.book, desk.now);
        prop_assert_eq!(&everything(&restored(&desk.book), desk.now), &before);
        prop_assert_eq!(&everything(&replayed(&desk.catalogue, IDS, &desk.changes), desk.now), &before);
        list(&mut desk, "west", "w-1", "Tomas Veldt v Oren Castellane", 200);
    }
}
