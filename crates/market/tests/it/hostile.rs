//! Bytes from a damaged disk or from outside: read or refused, never a panic, never more memory than their content
//! justifies.

mod bounds;
mod expiry;
mod work;

use std::sync::Arc;

use domain::message::{Body, ScoreBody};
use domain::{Catalogue, Market, Status};
use linesman_market::book::{IMAGE_VERSION, ImageError};
use linesman_market::{Book, CHANGE_VERSION, Change, ChangeError, Ids, Operation};
use proptest::prelude::*;

use crate::test_book::{ACCEPTED, LIFETIMES, TestBook, everything, remove, report, score};

/// A book with one of everything, and the changes that produced it.
fn lived() -> TestBook {
    let mut test = TestBook::open();
    let said = [
        test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24),
        test.bout("n-2", "Milan Dray", "Pavel Orsk", 24),
        test.tournament("g-1", "The Harbour Open", 24),
        test.quote("n-1", "fanduel", Market::Moneyline, &[("Tomas Veldt", 140), ("draw", 900)]),
        test.quote("g-1", "bet365", Market::Top5, &[("Kim Sato", 140), ("Ivo Brandt", 900)]),
        Body::Score(score("n-1", Status::Live, 1, 0)),
        Body::Score(ScoreBody {
            leaders: vec![("Kim Sato".into(), vec![68, 70])],
            ..report("g-1", Status::Live)
        }),
        test.beat("fanduel", Some("mma")),
        remove("n-2"),
    ];
    for body in said {
        assert_eq!(test.say("north", body), ACCEPTED);
    }
    test
}

/// Bytes that were changed, removed and inserted.
fn damaged(mut bytes: Vec<u8>, damage: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    for (place, kind, value) in damage {
        let at = place.index(bytes.len() + 1);
        match kind % 3 {
            0 if at < bytes.len() => bytes[at] = *value,
            1 => bytes.insert(at, *value),
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}

fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    // Truncation is rare, or little would be left to read.
    let kind = prop_oneof![8 => Just(0_u8), 3 => Just(1), 1 => Just(2)];
    proptest::collection::vec((any::<prop::sample::Index>(), kind, any::<u8>()), 1..4)
}

/// Whatever data got in, the book can be queried, expired and saved.
fn use_it(mut test: TestBook) {
    let before = everything(&test.book, test.now);
    assert!(!before.is_empty());
    let again = crate::test_book::restored(&test.book);
    assert_eq!(everything(&again, test.now), before);
    let said = test.bout("n-1", "Tomas Veldt", "Pavel Orsk", 24);
    assert!(test.say("north", said).is_ok());
    assert!(test.book.overdue(test.now, LIFETIMES).len() <= 100);
}

/// A log with entries lost to damage is read with gaps.
#[test]
fn a_book_without_some_of_its_changes_is_still_a_book() {
    let mut whole = lived();
    // A second feed's listings join, and an operator merges and splits events.
    for (reference, one, other) in
        [("s-1", "Tomas Veldt", "Oren Castellane"), ("s-3", "Ivo Brandt", "Kim Sato")]
    {
        let said = whole.bout(reference, one, other, 24);
        assert_eq!(whole.say("south", said), ACCEPTED);
    }
    let id = |reference: &str, feed: &str| whole.event_of(feed, reference).event;
    let (one, other) = (id("n-1", "north"), id("s-3", "south"));
    whole.operate(&Operation::Merge { one, other }).unwrap();
    let count = whole.changes.len();
    assert!(count > 12);
    for first in 0..count {
        for second in first..count {
            let mut test = TestBook::open();
            test.now = whole.now;
            for (at, (change, time)) in whole.changes.iter().enumerate() {
                if at != first && at != second {
                    test.book.absorb(change, *time);
                }
            }
            test.book.renew_salt(99);
            let said = test.bout("new", "Milan Dray", "Someone Else", 24);
            assert_eq!(test.say("west", said), ACCEPTED);
            use_it(test);
        }
    }
}

#[test]
fn an_unknown_version_is_told_apart_from_damage() {
    let test = lived();
    let mut bytes = Vec::new();
    test.changes[0].0.encode(&mut bytes);
    assert_eq!(Change::decode(9, &bytes), Err(ChangeError::Version(9)));
    assert_eq!(Change::decode(CHANGE_VERSION, &[]), Err(ChangeError::Undecodable));
    let catalogue = || Arc::clone(&test.catalogue);
    let image = test.book.to_image();
    let error = |version, bytes: &[u8]| Book::from_image(version, bytes, catalogue()).unwrap_err();
    assert_eq!(error(9, &image), ImageError::Version(9));
    for cut in 0..image.len() {
        assert_eq!(error(IMAGE_VERSION, &image[..cut]), ImageError::Undecodable);
    }
}

#[test]
fn a_count_in_a_short_image_is_not_believed() {
    // Counts of 2^32 - 1 feeds, events and sources, followed by a list of 2^63 offers.
    let count = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let mut image = vec![0, 7, 0];
    for _ in 0..3 {
        image.extend_from_slice(&count);
    }
    image.extend_from_slice(b"\x01n");
    image.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    let before = resident_kib();
    let catalogue = Arc::new(Catalogue::load(None).unwrap());
    let read = Book::from_image(IMAGE_VERSION, &image, catalogue);
    assert_eq!(read.unwrap_err(), ImageError::Undecodable);
    assert!(resident_peak_kib() < before + 64 * 1024, "memory grew by what the bytes claimed");
}

fn resident_kib() -> u64 {
    status_kib("VmRSS:")
}

fn resident_peak_kib() -> u64 {
    status_kib("VmHWM:").max(resident_kib())
}

fn status_kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_an_entry_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(change) = Change::decode(CHANGE_VERSION, &bytes) {
            let mut test = lived();
            test.book.absorb(&change, test.now);
            use_it(test);
        }
    }

    #[test]
    fn any_bytes_are_an_image_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        if let Ok(book) = Book::from_image(IMAGE_VERSION, &bytes, catalogue) {
            use_it(TestBook { book, ..TestBook::open() });
        }
    }

    #[test]
    fn a_damaged_log_is_replayed_as_far_as_it_can_be_read(
        hits in proptest::collection::vec((any::<prop::sample::Index>(), damage()), 1..4)
    ) {
        let test = lived();
        let mut entries: Vec<Vec<u8>> = Vec::new();
        for (change, _) in &test.changes {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            entries.push(bytes);
        }
        for (which, damage) in &hits {
            let at = which.index(entries.len());
            entries[at] = damaged(std::mem::take(&mut entries[at]), damage);
        }
        let mut book = Book::new(Arc::clone(&test.catalogue), Ids::Minted { salt: 7 });
        for bytes in &entries {
            if let Ok(change) = Change::decode(CHANGE_VERSION, bytes) {
                book.absorb(&change, test.now);
            }
        }
        use_it(TestBook { book, ..TestBook::open() });
    }

    #[test]
    fn a_damaged_image_is_read_or_refused(damage in damage()) {
        let test = lived();
        let bytes = damaged(test.book.to_image(), &damage);
        if let Ok(book) = Book::from_image(IMAGE_VERSION, &bytes, Arc::clone(&test.catalogue)) {
            use_it(TestBook { book, ..TestBook::open() });
        }
    }
}
