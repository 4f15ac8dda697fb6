//! The book is bounded, whatever fills it, and a full one can be corrected, emptied and started.

use std::time::Duration;

use domain::message::{Body, Correction, RejectCode, ScoreBody};
use domain::{Market, Status};
use linesman_market::book::UNIT_BYTES;
use linesman_market::{Change, Ids, Limits, Operation};

use crate::test_book::{
    ACCEPTED, LIFETIMES, SALT, TestBook, UNCHANGED, outcome, period, remove, replayed, report,
    restored, score,
};

const TOO_LARGE: Result<linesman_market::Verdict, RejectCode> = Err(RejectCode::TooLarge);

fn with_limits(records_max: u64, records_per_feed_max: u64) -> TestBook {
    let mut test = TestBook::open();
    test.book.set_limits(Limits { records_max, records_per_feed_max, ..Limits::DEFAULT });
    test
}

/// A name without similarity to any other.
fn name(n: usize) -> String {
    let mut seed = (u64::try_from(n).unwrap() + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut word = || {
        let letters = (0..6).map(|_| {
            seed ^= seed >> 29;
            seed = seed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
            char::from(b'a' + u8::try_from((seed >> 32) % 26).unwrap())
        });
        letters.collect::<String>()
    };
    format!("{} {}", word(), word())
}

fn held_by(test: &TestBook, feed: &str) -> u64 {
    let load = test.book.load();
    load.feeds.iter().find(|(name, _)| **name == *feed).map_or(0, |(_, held)| *held)
}

/// Sends bodies until there is no more room; returns how many were accepted.
fn fill(test: &mut TestBook, feed: &str, body: impl Fn(&TestBook, usize) -> Vec<Body>) -> usize {
    for n in 0..1_000_000 {
        for body in body(test, n) {
            match test.say(feed, body) {
                Err(RejectCode::TooLarge) => return n,
                said => assert!(said.is_ok(), "{said:?}"),
            }
        }
        test.changes.clear();
    }
    unreachable!("nothing ever refused it");
}

#[test]
fn one_feed_cannot_fill_the_book_and_the_book_has_an_end() {
    let mut test = with_limits(100, 40);
    let list = |test: &TestBook, n: usize| {
        vec![test.bout(&format!("r{n}"), &name(2 * n), &name(2 * n + 1), 24)]
    };
    assert!(fill(&mut test, "north", list) >= 10);
    assert!((36..=40).contains(&held_by(&test, "north")), "{:?}", test.book.load());
    let later = |test: &TestBook, n: usize| list(test, 1000 + n);
    assert!(fill(&mut test, "south", later) >= 10, "another feed has room of its own");
    let last = |test: &TestBook, n: usize| list(test, 2000 + n);
    fill(&mut test, "west", last);
    assert!((96..=100).contains(&test.book.weight()), "{:?}", test.book.load());
    assert!(held_by(&test, "west") < 40, "the world was full before the feed was");
    let reject = test.book.decide(
        "east",
        &domain::message::FeedMessage {
            ts: None,
            fresh_for_s: None,
            body: list(&test, 5000).remove(0),
        },
        test.now,
    );
    assert!(reject.unwrap_err().message.contains("market.records_max"));
}

#[test]
fn a_full_book_is_corrected_scored_suspended_and_emptied() {
    let mut test = with_limits(1_000_000, 1_000_000);
    let quote = |test: &TestBook, price: i32| {
        test.quote(
            "n-1",
            "fanduel",
            Market::Moneyline,
            &[("Tomas Veldt", price), ("Oren Castellane", -165)],
        )
    };
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24)), ACCEPTED);
    assert_eq!(test.say("north", quote(&test, 140)), ACCEPTED);
    // As if the limits were lowered, or an older program's log were read.
    test.book.set_limits(Limits { records_max: 1, records_per_feed_max: 1, ..Limits::DEFAULT });
    let other = test.quote("n-1", "bet365", Market::Moneyline, &[("Tomas Veldt", 140)]);
    assert_eq!(test.say("north", other), TOO_LARGE);
    assert_eq!(test.say("north", test.bout("n-2", "Milan Dray", "Pavel Orsk", 24)), TOO_LARGE);
    assert_eq!(test.say("north", quote(&test, 150)), ACCEPTED);
    assert_eq!(test.say("north", quote(&test, 150)), UNCHANGED);
    let suspended = test.quote("n-1", "fanduel", Market::Moneyline, &[]);
    assert_eq!(test.say("north", suspended), ACCEPTED);
    assert_eq!(test.say("north", test.bout("n-1", "Tom Veldt", "Oren Castellane", 23)), ACCEPTED);
    test.wait(86_400);
    let rounds = (1..=12).map(|n| period(n, 10, 9)).collect();
    let live = ScoreBody { periods: rounds, ..score("n-1", Status::Live, 1, 0) };
    assert_eq!(test.say("north", Body::Score(live)), ACCEPTED);
    assert_eq!(test.say("north", Body::Score(score("n-1", Status::Final, 1, 0))), ACCEPTED);
    assert_eq!(test.say("north", remove("n-1")), ACCEPTED);
    assert!(test.book.weight() > 1, "what is removed is held until it is forgotten");
    test.wait(LIFETIMES.final_retention.as_secs());
    test.expire();
    assert_eq!((test.book.weight(), held_by(&test, "north")), (0, 0));
}

#[test]
fn a_ref_that_moves_on_leaves_nothing_uncounted() {
    let mut test = with_limits(100, 60);
    // One ref, repeatedly for another event: its former events are held until they expire.
    let moves =
        |test: &TestBook, n: usize| vec![test.bout("n-1", &name(2 * n), &name(2 * n + 1), 24)];
    let moved = fill(&mut test, "north", moves);
    assert!(moved < 60, "{moved}");
    assert!(held_by(&test, "north") > 50, "{:?}", test.book.load());
    assert_eq!(restored(&test.book).load(), test.book.load());
}

#[test]
fn markets_without_prices_and_five_hundred_outcomes_count() {
    let mut test = with_limits(10_000, 1_000);
    assert_eq!(test.say("north", test.tournament("g-1", "The Harbour Open", 24)), ACCEPTED);
    let closed = |test: &TestBook, n: usize| {
        let group = format!("pairing {n}");
        vec![test.odds_body("g-1", "fanduel", Market::ThreeBall, Some(&group), vec![])]
    };
    let made = fill(&mut test, "north", closed);
    assert!((900..=1_000).contains(&made), "{made}");
    let mut test = with_limits(10_000, 1_000);
    assert_eq!(test.say("north", test.tournament("g-1", "The Harbour Open", 24)), ACCEPTED);
    let markets = [Market::Outright, Market::Top5, Market::Top10, Market::Top20];
    let large = |test: &TestBook, n: usize| {
        let players = (0..512).map(|n| outcome(&name(n), 900, None)).collect();
        let bookmakers = ["fanduel", "bet365", "draftkings", "betmgm"];
        vec![test.odds_body("g-1", bookmakers[n / 4], markets[n % 4], None, players)]
    };
    assert!(fill(&mut test, "north", large) < 15);
}

#[test]
fn a_start_is_within_the_horizon_and_one_from_an_older_log_ends_some_day() {
    let mut test = with_limits(1_000, 1_000);
    let days = |days: i64| 24 * days;
    assert_eq!(
        test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", days(732))),
        TOO_LARGE
    );
    assert_eq!(
        test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", days(731))),
        ACCEPTED
    );
    // A start long ago is accepted, too: the event expires when no feed has mentioned it for a while.
    assert_eq!(
        test.say("north", test.bout("n-2", "Milan Dray", "Pavel Orsk", days(-20_000))),
        ACCEPTED
    );
    let far = 253_370_764_800_000; // 9999
    let Some((Change::Listed(listed), _)) = test.changes.first() else { unreachable!() };
    let mut listed = listed.clone();
    listed.commence_time = domain::Timestamp::from_millis(far);
    test.book.absorb(&Change::Listed(listed), test.now);
    test.wait(LIFETIMES.forget_after.as_secs());
    assert_eq!(test.expire(), 1);
    test.wait(731 * 86_400 + LIFETIMES.forget_after.as_secs());
    assert_eq!(test.expire(), 1);
    assert_eq!(test.book.weight(), 0);
}

#[test]
fn what_a_feed_listed_is_dropped_with_all_that_it_holds() {
    let mut test = with_limits(10_000, 10_000);
    for n in 0..20 {
        let (home, away) = (name(2 * n), name(2 * n + 1));
        assert_eq!(test.say("north", test.bout(&format!("n{n}"), &home, &away, 24)), ACCEPTED);
        let quote = test.quote(&format!("n{n}"), "fanduel", Market::Moneyline, &[(&home, 140)]);
        assert_eq!(test.say("north", quote), ACCEPTED);
        if n % 2 == 0 {
            assert_eq!(test.say("south", test.bout(&format!("s{n}"), &home, &away, 24)), ACCEPTED);
            let quote = test.quote(&format!("s{n}"), "bet365", Market::Moneyline, &[(&away, 140)]);
            assert_eq!(test.say("south", quote), ACCEPTED);
        }
    }
    assert_eq!(test.say("north", remove("n0")), ACCEPTED);
    assert_eq!(test.say("north", remove("n1")), ACCEPTED);
    assert_eq!(test.say("north", test.bout("n2", "Somebody Else", "And Another", 24)), ACCEPTED);
    let dropped = Operation::Drop { feed: "north".into() };
    assert_eq!(test.operate(&dropped).unwrap(), 1);
    assert_eq!(held_by(&test, "north"), 0, "{:?}", test.book.load());
    assert_eq!(test.events("mma").len(), 10);
    let odds = test.odds("mma");
    assert!(odds.len() == 10 && odds.iter().all(|record| record["bookmaker"] == "bet365"));
    let own = test.book.load();
    assert_eq!(own.records, held_by(&test, "south"));
    assert_eq!(restored(&test.book).load(), own);
    assert_eq!(test.say("north", remove("n3")), Err(RejectCode::UnknownRef));
    // It may list again, and the operation may be repeated.
    assert_eq!(test.operate(&dropped).unwrap(), 1);
    let again = test.bout("n3", &name(6), &name(7), 24);
    assert_eq!(test.say("north", again), ACCEPTED);
    let unknown = test.operate(&Operation::Drop { feed: "nobody".into() }).unwrap_err();
    assert!(unknown.to_string().contains("`nobody`"));
    let changes = std::mem::take(&mut test.changes);
    let told = replayed(&test.catalogue, Ids::Minted { salt: SALT }, &changes);
    assert_eq!(told.load(), test.book.load());
}

#[test]
fn an_event_does_not_begin_long_before_its_start_and_stays_after_an_old_final() {
    let mut test = with_limits(1_000, 1_000);
    let over = |reference: &str| Body::Score(score(reference, Status::Final, 1, 0));
    assert_eq!(
        test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 21 * 24)),
        ACCEPTED
    );
    assert_eq!(test.say("north", over("n-1")), Err(RejectCode::IllegalTransition));
    let corrected = ScoreBody { correction: Correction::Yes, ..score("n-1", Status::Live, 1, 0) };
    assert_eq!(test.say("north", Body::Score(corrected)), Err(RejectCode::IllegalTransition));
    assert_eq!(test.say("north", Body::Score(report("n-1", Status::Scheduled))), ACCEPTED);
    // Some sources date events only by the day.
    assert_eq!(test.say("north", test.bout("n-2", "Milan Dray", "Pavel Orsk", 24)), ACCEPTED);
    assert_eq!(test.say_at("north", -30 * 86_400, over("n-2")), ACCEPTED);
    assert_eq!(test.expire(), 0, "it is kept from when it was taken");
    test.wait(LIFETIMES.final_retention.as_secs() - 1);
    assert_eq!(test.expire(), 0);
    let mut again = TestBook { book: restored(&test.book), ..TestBook::open() };
    again.now = test.now.plus(Duration::from_secs(1));
    assert_eq!(again.expire(), 1, "also after a restart");
}

#[test]
fn a_report_with_a_time_ahead_does_not_outdate_others() {
    let mut test = with_limits(1_000, 1_000);
    assert_eq!(test.say("north", test.bout("n-1", "Tomas Veldt", "Oren Castellane", 2)), ACCEPTED);
    assert_eq!(test.say("south", test.bout("s-1", "Tomas Veldt", "Oren Castellane", 2)), ACCEPTED);
    assert_eq!(test.say_at("south", 5, Body::Score(score("s-1", Status::Live, 0, 0))), ACCEPTED);
    assert_eq!(test.say_at("north", 0, Body::Score(score("n-1", Status::Live, 1, 0))), ACCEPTED);
    assert_eq!(test.scores("mma")[0]["home_score"], 1);
}

#[test]
fn an_older_programs_image_is_counted_and_keeps_its_finals() {
    let mut test = with_limits(1_000, 1_000);
    let quote = test.quote("n-1", "fanduel", Market::Moneyline, &[("Tomas Veldt", 140)]);
    let said = [
        test.bout("n-1", "Tomas Veldt", "Oren Castellane", 1),
        quote,
        test.bout("n-2", "Milan Dray", "Pavel Orsk", 1),
        remove("n-2"),
    ];
    for body in said {
        assert_eq!(test.say("north", body), ACCEPTED);
    }
    let over = Body::Score(score("n-1", Status::Final, 1, 0));
    assert_eq!(test.say_at("north", -30 * 86_400, over), ACCEPTED);
    // The data of version 3 comes after that of version 2.
    let image = test.book.to_image();
    let catalogue = std::sync::Arc::clone(&test.catalogue);
    let old = linesman_market::Book::from_image(2, &image, catalogue).unwrap();
    assert_eq!(old.load(), test.book.load());
    let mut again = TestBook { book: old, ..TestBook::open() };
    again.now = test.now;
    assert_eq!(again.expire(), 0);
    again.wait(LIFETIMES.final_retention.as_secs());
    again.expire();
    assert_eq!((again.book.events().count(), again.book.weight()), (0, 0));
}

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
}

/// Fills a book and cuts a snapshot of it: both together use no more memory than was counted.
fn takes_what_it_counts(shape: impl Fn(&TestBook, usize) -> Vec<Body>) {
    const UNITS: u64 = 5_000;
    let mut test = with_limits(UNITS, UNITS);
    test.snapshot();
    let before = resident_bytes();
    fill(&mut test, "north", shape);
    let published = (test.snapshot(), test.snapshot());
    let units = usize::try_from(test.book.weight()).unwrap();
    assert!(units > 3_000, "{units}");
    let each = (resident_bytes() - before) / units;
    // Resident memory is in whole pages, and includes what the allocator keeps free.
    assert!(each <= UNIT_BYTES + UNIT_BYTES / 16, "{each} bytes for one of {units}");
    drop(published);
}

const LONG: &str = "Qwertyuiopas";

#[test]
fn memory_of_plain_listings() {
    takes_what_it_counts(|test, n| {
        vec![test.bout(&format!("r{n}"), &name(2 * n), &name(2 * n + 1), 24)]
    });
}

#[test]
fn memory_of_listings_of_many_short_words() {
    let words = |n: usize| {
        let word = |by: usize| char::from(b'a' + u8::try_from(n / by % 26).unwrap());
        let end: String = [1, 26, 676].into_iter().map(word).collect();
        "bcdfghjk".chars().map(|c| format!("{c}{end} ")).collect::<String>()
    };
    takes_what_it_counts(move |test, n| {
        vec![test.bout(&format!("r{n}"), &words(2 * n), &words(2 * n + 1), 24)]
    });
}

#[test]
fn memory_of_listings_with_the_longest_names() {
    let long = |n: usize| format!("{} {}", name(n), "\"\\".repeat(93));
    takes_what_it_counts(move |test, n| {
        let reference = format!("{n:0>128}");
        vec![test.bout(&reference, &long(2 * n), &long(2 * n + 1), 24)]
    });
}

#[test]
fn memory_of_signs_that_are_words() {
    let signs = |n: usize| format!("{} {}", name(n), "🤹".repeat(10));
    takes_what_it_counts(move |test, n| {
        vec![test.bout(&format!("r{n}"), &signs(2 * n), &signs(2 * n + 1), 24)]
    });
}

#[test]
fn memory_of_events_that_nobody_lists() {
    takes_what_it_counts(|test, n| {
        let reference = format!("r{n}");
        vec![test.bout(&reference, &name(2 * n), &name(2 * n + 1), 24), remove(&reference)]
    });
}

#[test]
fn memory_of_markets_without_prices() {
    takes_what_it_counts(|test, n| {
        let (tournament, group) = (format!("g{}", n / 4_000), format!("{n:0>128}"));
        let listed = test.tournament(&tournament, &format!("Open {}", name(n / 4_000)), 24);
        vec![
            listed,
            test.odds_body(&tournament, "fanduel", Market::ThreeBall, Some(&group), vec![]),
        ]
    });
}

#[test]
fn memory_of_plain_prices() {
    takes_what_it_counts(|test, n| {
        let (tournament, group) = (format!("g{}", n / 4_000), format!("group {n}"));
        let listed = test.tournament(&tournament, &format!("Open {}", name(n / 4_000)), 24);
        let players = (0..3).map(|at| outcome(&name(n % 100 + at), 900, None)).collect();
        let odds = test.odds_body(&tournament, "fanduel", Market::ThreeBall, Some(&group), players);
        vec![listed, odds]
    });
}

#[test]
fn memory_of_five_hundred_players_with_long_names() {
    takes_what_it_counts(|test, n| {
        let tournament = format!("g{n}");
        let long =
            |at: usize| format!("{} {} {}", name(512 * n + at), LONG.repeat(7), "xy ".repeat(18));
        let players: Vec<_> = (0..512).map(|at| outcome(&long(at), 900, None)).collect();
        // More at a time would be too much work for one message.
        let some = players.chunks(8).map(|some| {
            test.odds_body(&tournament, "fanduel", Market::Outright, None, some.to_vec())
        });
        let some: Vec<Body> = some.collect();
        let none = test.odds_body(&tournament, "fanduel", Market::Outright, None, vec![]);
        let all = test.odds_body(&tournament, "fanduel", Market::Outright, None, players);
        let listed = test.tournament(&tournament, &format!("Open {}", name(n)), 24);
        [vec![listed], some, vec![all, none]].concat()
    });
}

#[test]
fn memory_of_scores_without_end() {
    takes_what_it_counts(|test, n| {
        let (reference, home) = (format!("r{n}"), name(2 * n));
        let periods = (1..=100).map(|n| period(n, 100_000, 100_000)).collect();
        let live = ScoreBody { periods, ..score(&reference, Status::Live, 1, 0) };
        let listed = test.bout(&reference, &home, &name(2 * n + 1), 24);
        vec![listed, Body::Score(live)]
    });
}
