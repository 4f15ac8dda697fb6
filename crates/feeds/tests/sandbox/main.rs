//! The sandbox keeps its promises (issue 3) and its invariant: every way of bringing a book to an instant gives the
//! same book.

#![expect(
    clippy::tests_outside_test_module,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "an integration test is all tests"
)]

mod analytics;
mod book;
mod legal;
mod promises;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use domain::message::{Body, Fixture};
use domain::{Market, Region, Status, Timestamp};
use linesman_feeds::push::{parse_line, write_line};
use linesman_feeds::sandbox::Simulation;

use crate::book::{Book, sport};
use crate::promises::{arbitrages, instants, simulation, world};

/// Without optimisation a world takes most of a second; `--example sandbox_check` checks a thousand.
const INSTANTS: u32 = if cfg!(debug_assertions) { 12 } else { 200 };

/// 2026-11-14T00:00:00Z, an hour.
const MIDNIGHT_S: i64 = 1_794_614_400;

fn at(hours: i64, minutes: i64, seconds: i64) -> Timestamp {
    Timestamp::from_secs(MIDNIGHT_S + hours * 3600 + minutes * 60 + seconds)
}

fn after(start: Timestamp, seconds: u64) -> Timestamp {
    start.plus(Duration::from_secs(seconds))
}

#[track_caller]
fn assert_same(one: &Book, other: &Book) {
    let differences = one.differences(other);
    assert!(differences.is_empty(), "{differences:#?}");
    assert_eq!(one.faults, Vec::<String>::new());
    assert_eq!(other.faults, Vec::<String>::new());
}

#[test]
fn every_promise_holds_at_random_instants_of_two_years() {
    let (simulation, catalogue) = simulation(1);
    let (mut markets, mut beaten) = (0, 0);
    for at in instants(INSTANTS) {
        let facts = promises::check(&simulation, &catalogue, at);
        assert_eq!(facts.faults, Vec::<String>::new());
        let records: usize = facts.records.values().sum();
        assert!((4_000..15_000).contains(&records), "{records} records");
        markets += facts.two_way_markets;
        beaten += facts.arbitrages;
    }
    assert!(beaten * 100 < markets, "{beaten} arbitrages in {markets} markets");
}

#[test]
fn a_book_shows_the_same_whichever_way_it_came() {
    let (simulation, _) = simulation(7);
    // Short steps, uneven ones, and spans that cover all scheduled faults of an hour.
    let spans = [30, 10, 137, 4_400];
    for (start, span) in instants(4).zip(spans) {
        let (middle, end) = (after(start, span / 3), after(start, span));
        let mut stepped = world(&simulation, start);
        stepped.take(simulation.between(start, middle), middle);
        assert_same(&stepped, &world(&simulation, middle));
        stepped.take(simulation.between(middle, end), end);
        assert_same(&stepped, &world(&simulation, end));
    }
}

#[test]
fn small_steps_say_what_one_large_step_says() {
    let (simulation, _) = simulation(3);
    let start = at(5, 18, 3);
    let end = after(start, 150);
    let whole = simulation.between(start, end);
    let mut now = start;
    let mut parts = Vec::new();
    for step in [1, 9, 20, 30, 45, 45] {
        parts.extend(simulation.between(now, after(now, step)));
        now = after(now, step);
    }
    assert_eq!(now, end);
    assert!(whole == parts);
    assert!(simulation.between(end, end).is_empty());
    assert!(simulation.between(end, start).is_empty());
}

#[test]
fn two_processes_started_days_apart_show_the_same() {
    let (one, catalogue) = simulation(11);
    let now = at(30, 31, 40);
    // One was started at this instant; the other has run for an hour since its own start.
    let other = Simulation::new(11, Arc::clone(&catalogue));
    let begun = after(now, 0).minus(Duration::from_secs(3_700));
    let mut running = world(&other, begun);
    running.take(other.between(begun, now), now);
    assert_same(&running, &world(&one, now));
    assert!(one.world_at(now) == other.world_at(now));
    let another = Simulation::new(12, catalogue);
    assert!(one.world_at(now) != another.world_at(now));
}

#[test]
fn references_belong_to_one_event_for_its_whole_life() {
    let (simulation, _) = simulation(1);
    let mut known: HashMap<Box<str>, (Box<str>, Timestamp)> = HashMap::new();
    for step in 0..9 {
        let now = at(step * 13, 13, 0);
        let book = world(&simulation, now);
        for (reference, event) in book.events {
            assert!(reference.len() <= 128);
            let listing = event.listing;
            let mark = match listing.fixture {
                Fixture::HeadToHead { home, .. } => home,
                Fixture::Field { title } => title,
            };
            let held =
                known.entry(reference.clone()).or_insert((mark.clone(), listing.commence_time));
            assert_eq!(held.0, mark, "{reference}");
            let moved = listing.commence_time.since(held.1);
            assert!(moved.is_zero() || reference.contains("postponed"));
        }
    }
}

#[test]
fn one_bookmaker_is_always_stale_and_one_goes_dark_each_hour() {
    let (simulation, catalogue) = simulation(1);
    let id = |key: &str| catalogue.bookmaker_id(key).unwrap();
    let (late, dark) = (id("barstool"), id("bovada"));
    let mma = sport(&catalogue, "mma");
    let boxing = sport(&catalogue, "boxing");
    for (minute, second, is_dark) in [
        (5, 0, false),
        (30, 0, false),
        (31, 20, true),
        (31, 40, true),
        (34, 50, true),
        (35, 30, false),
        (55, 0, false),
        (58, 0, false),
        (59, 59, false),
    ] {
        let now = at(9, minute, second);
        let book = world(&simulation, now);
        let fresh = |bookmaker, sport| !book.is_stale(bookmaker, sport, now);
        assert!(!fresh(late, mma), "always stale");
        assert!(book.odds.keys().any(|key| key.1 == late), "and yet served");
        // The last read before half past is at most thirty seconds old by then.
        if (minute, second) != (31, 20) {
            assert_eq!(!fresh(dark, mma), is_dark, "{minute}:{second}");
        }
        let others = catalogue.bookmakers().map(|(id, _)| id);
        let read = others.filter(|id| book.sources.contains_key(&(*id, mma)));
        let stale = read.filter(|id| !fresh(*id, mma)).count();
        if (minute, second) != (31, 20) {
            assert_eq!(stale, 1 + usize::from(is_dark), "{minute}:{second}");
        }
        let boxing_active = book
            .sources
            .keys()
            .any(|(bookmaker, sport)| *sport == boxing && fresh(*bookmaker, boxing));
        assert_eq!(boxing_active, minute < 58, "{minute}:{second}");
    }
}

#[test]
fn each_hour_a_bout_is_cancelled_one_postponed_and_a_fighter_replaced() {
    let (simulation, _) = simulation(1);
    let (from, to) = (at(3, 0, 0), at(4, 0, 0));
    let mut book = world(&simulation, from);
    let before = book.clone();
    let messages = simulation.between(from, to);
    let removed: Vec<Box<str>> = messages
        .iter()
        .filter_map(|message| match &message.body {
            Body::Remove { reference } => Some(reference.clone()),
            Body::Event { .. } | Body::Odds(_) | Body::Score(_) | Body::Heartbeat { .. } => None,
        })
        .collect();
    assert_eq!(removed.len(), 1);
    assert!(before.odds.keys().any(|key| key.0 == removed[0]));
    book.take(messages, to);
    assert!(!book.events.contains_key(&removed[0]));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (reference, old) in &before.events {
        let Some(new) = book.events.get(reference) else {
            continue;
        };
        if old.listing.commence_time != new.listing.commence_time {
            assert_eq!(new.status(), Status::Scheduled);
            *kinds.entry("postponed").or_default() += 1;
        }
        if old.listing.fixture != new.listing.fixture {
            *kinds.entry("replaced").or_default() += 1;
            // The new pairing is priced again, under its new names.
            assert!(book.odds.keys().any(|key| key.0 == *reference));
        }
    }
    assert_eq!(kinds, BTreeMap::from([("postponed", 1), ("replaced", 1)]));
    // At the instant itself the old odds are removed; they come back with the next reads.
    let just = world(&simulation, at(3, 40, 0));
    let replaced = just.events.keys().find(|reference| {
        before.events.get(*reference).map(|event| &event.listing.fixture)
            != just.events.get(*reference).map(|event| &event.listing.fixture)
            && before.events.contains_key(*reference)
    });
    assert!(replaced.is_some_and(|reference| reference.contains("replaced")));
}

#[test]
fn arbitrage_is_rare_and_short() {
    let (simulation, catalogue) = simulation(2);
    let football = catalogue.sport_id("american_football").unwrap();
    let start = at(14, 36, 0);
    let mut book = world(&simulation, start);
    let mut since: HashMap<String, u32> = HashMap::new();
    let (mut markets, mut beaten, mut longest) = (0, 0, 0);
    let mut now = start;
    for _ in 0..24 {
        let next = after(now, 30);
        book.take(simulation.between(now, next), next);
        now = next;
        let (all, found) = arbitrages(&book, now);
        let in_football = |what: &String| {
            let reference = what.split(' ').next().unwrap();
            book.events[reference].listing.sport == football
        };
        let (always, found): (Vec<String>, Vec<String>) = found.into_iter().partition(in_football);
        assert!(!always.is_empty(), "a bookmaker disagrees with the others in football (N20)");
        markets += all;
        beaten += found.len();
        let still: HashMap<String, u32> = found
            .iter()
            .filter_map(|what| what.split(" [").next())
            .map(|what| (what.to_owned(), since.get(what).copied().unwrap_or(0) + 1))
            .collect();
        longest = longest.max(still.values().copied().max().unwrap_or(0));
        since = still;
    }
    assert!(beaten * 200 < markets, "{beaten} of {markets}");
    assert!(longest <= 12, "one lasted {longest} refreshes");
}

#[test]
fn golf_prices_agree_with_each_other_and_every_region_is_covered() {
    let (simulation, catalogue) = simulation(1);
    let book = world(&simulation, at(50, 7, 0));
    let mut seen = 0;
    for ((reference, bookmaker, market, group), record) in &book.odds {
        if *market != Market::Outright {
            continue;
        }
        for wider in [Market::Top5, Market::Top10, Market::Top20] {
            let key = (reference.clone(), *bookmaker, wider, group.clone());
            let Some(other) = book.odds.get(&key) else {
                continue;
            };
            seen += 1;
            for (win, place) in record.outcomes.iter().zip(&other.outcomes) {
                assert_eq!(win.name, place.name);
                assert!(win.quote.price >= place.quote.price, "{reference} {}", win.name);
            }
        }
    }
    assert!(seen > 100);
    for region in Region::ALL {
        let mut bookmakers: Vec<_> = book.odds.keys().map(|key| key.1).collect();
        bookmakers.sort_unstable();
        bookmakers.dedup();
        let here =
            bookmakers.iter().filter(|id| catalogue.bookmaker(**id).regions.contains(&region));
        assert!(here.count() >= 5, "{region:?}");
    }
}

#[test]
fn scores_advance_and_the_last_prices_point_to_the_winner() {
    let (simulation, catalogue) = simulation(1);
    let start = at(20, 0, 0);
    let mut now = start;
    let mut book = world(&simulation, start);
    let mut favourite: HashMap<Box<str>, Box<str>> = HashMap::new();
    let (mut right, mut wrong) = (0, 0);
    let duels = ["tennis", "american_football"].map(|key| sport(&catalogue, key));
    for _ in 0..24 {
        let next = after(now, 300);
        let messages = simulation.between(now, next);
        for ((reference, _, market, _), record) in &book.odds {
            let live = promises::is_on(&book, reference, Status::Live);
            if *market == Market::Moneyline && live {
                let best = record.outcomes.iter().min_by_key(|outcome| outcome.quote.price);
                favourite.insert(reference.clone(), best.unwrap().name.clone());
            }
        }
        book.take(messages, next);
        now = next;
    }
    for event in duels.iter().flat_map(|id| book.with(*id, Status::Final)) {
        let score = event.score.as_ref().unwrap();
        let Fixture::HeadToHead { home, away } = &event.listing.fixture else {
            continue;
        };
        let winner = if score.home > score.away { home } else { away };
        if let Some(favourite) = favourite.get(&score.reference) {
            *(if favourite == winner { &mut right } else { &mut wrong }) += 1;
        }
    }
    assert!(right >= 8 && wrong * 8 <= right, "{right} right, {wrong} wrong");
    assert_eq!(book.faults, Vec::<String>::new());
}

#[test]
fn every_message_passes_the_feed_door_unchanged() {
    let (simulation, catalogue) = simulation(5);
    let start = at(1, 9, 50);
    let mut messages = simulation.world_at(start);
    messages.extend(simulation.between(start, after(start, 60)));
    let mut line = String::new();
    for message in messages {
        line.clear();
        write_line(&message, &catalogue, &mut line);
        let read = parse_line(line.trim_end().as_bytes(), &catalogue, None);
        assert!(read.as_ref() == Ok(&message), "{line} {read:?}");
    }
}
