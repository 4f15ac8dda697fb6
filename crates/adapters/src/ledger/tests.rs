use std::sync::{Arc, LazyLock};

use domain::message::{Correction, Fixture};
use domain::{Catalogue, Format, Quote, Status};
use feeds::adapter::{Listed, Scored};
use feeds::push;

use super::*;

static CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::load(None).unwrap()));
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const RULES: Rules = Rules { remove_after: Duration::from_secs(900), in_play: true };

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A read this many seconds after `NOW`.
fn at(later: u64) -> ReadAt<'static> {
    let now = NOW.plus(secs(later));
    ReadAt { unit: "u", at: now, now, fresh_for_s: Some(180), all_read: true }
}

fn listed(n: u32) -> Listed {
    let listing = Listing {
        sport: CATALOGUE.sport_id("mma").unwrap(),
        competition: "UFC 331".into(),
        commence_time: NOW.plus(secs(3600)),
        fixture: Fixture::HeadToHead { home: format!("Home {n}").into(), away: "Away".into() },
    };
    Listed { reference: format!("e{n}").into(), listing }
}

fn priced(n: u32, price: &str, ts: Option<Timestamp>) -> Offered {
    let outcome = |name: &str, price: &str| OfferedOutcome {
        name: name.into(),
        quote: Quote::parse(price, Format::Decimal).unwrap(),
        point: None,
    };
    let odds = OddsBody {
        reference: format!("e{n}").into(),
        bookmaker: CATALOGUE.bookmaker_id("fanduel").unwrap(),
        market: Market::Moneyline,
        group: None,
        outcomes: vec![outcome(&format!("Home {n}"), price), outcome("Away", "1.5")],
    };
    Offered { odds, ts, suspended: false }
}

fn complete(events: std::ops::Range<u32>) -> Read {
    Read {
        coverage: Coverage::Complete,
        listings: events.clone().map(listed).collect(),
        markets: events.map(|n| priced(n, "2.5", None)).collect(),
        ..Read::default()
    }
}

fn lines(messages: &[FeedMessage]) -> Vec<String> {
    let line = |message: &FeedMessage| {
        let mut line = String::new();
        push::write_line(message, &CATALOGUE, &mut line);
        line.trim().to_owned()
    };
    messages.iter().map(line).collect()
}

fn kinds(plan: &Plan) -> Vec<&'static str> {
    let kind = |message: &FeedMessage| match &message.body {
        Body::Event { .. } => "event",
        Body::Odds(odds) if odds.outcomes.is_empty() => "withdrawn",
        Body::Odds(_) => "odds",
        Body::Score(_) => "score",
        Body::Remove { .. } => "remove",
        Body::Heartbeat { .. } => "heartbeat",
    };
    plan.messages.iter().map(kind).collect()
}

#[test]
fn only_what_changed_is_sent() {
    let mut ledger = Ledger::default();
    assert_eq!(
        kinds(&ledger.take(complete(0..2), at(0), RULES)),
        ["event", "event", "odds", "odds"]
    );
    assert_eq!(kinds(&ledger.take(complete(0..2), at(60), RULES)), [""; 0]);
    let mut moved = complete(0..2);
    moved.markets[1] = priced(1, "2.6", None);
    moved.listings[0].listing.commence_time = NOW.plus(secs(7200));
    let plan = ledger.take(moved, at(120), RULES);
    assert_eq!(kinds(&plan), ["event", "odds"]);
    assert!(
        lines(&plan.messages)[1].contains("\"ts\":\"2027-01-15T08:02:00Z\",\"fresh_for\":180"),
        "{plan:?}"
    );
}

#[test]
fn a_newer_time_of_upstream_is_sent_and_one_ahead_of_ours_is_clamped() {
    let mut ledger = Ledger::default();
    let read = |ts: u64| Read {
        markets: vec![priced(0, "2.5", Some(NOW.plus(secs(ts))))],
        ..complete(0..1)
    };
    ledger.take(read(0), at(5), RULES);
    assert_eq!(
        kinds(&ledger.take(read(0), at(10), RULES)),
        [""; 0],
        "upstream did not read it again"
    );
    let plan = ledger.take(read(9), at(15), RULES);
    assert_eq!((kinds(&plan), plan.clamped), (vec!["odds"], 0));
    assert_eq!(plan.messages[0].ts, Some(NOW.plus(secs(9))));
    let plan = ledger.take(read(60), at(20), RULES);
    assert_eq!((plan.messages[0].ts, plan.clamped), (Some(NOW.plus(secs(20))), 1));
}

#[test]
fn missing_markets_go_at_once_and_missing_events_after_a_while() {
    let mut ledger = Ledger::default();
    ledger.take(complete(0..2), at(0), RULES);
    assert_eq!(kinds(&ledger.take(complete(0..1), at(60), RULES)), ["withdrawn"]);
    assert_eq!(kinds(&ledger.take(complete(0..1), at(899), RULES)), [""; 0]);
    let plan = ledger.take(complete(0..1), at(900), RULES);
    assert_eq!(kinds(&plan), ["remove"]);
    assert_eq!(
        kinds(&ledger.take(complete(0..2), at(960), RULES)),
        ["event", "odds"],
        "it is back"
    );
}

#[test]
fn coverage_says_what_a_missing_thing_means() {
    let read = |coverage| Read { coverage, ..Read::default() };
    for (coverage, expected) in [
        (Coverage::Delta, &[][..]),
        (Coverage::Prices, &["withdrawn"][..]),
        (Coverage::Events, &["remove"][..]),
        (Coverage::Complete, &["withdrawn", "remove"][..]),
    ] {
        let mut ledger = Ledger::default();
        ledger.take(complete(0..1), at(0), RULES);
        assert_eq!(kinds(&ledger.take(read(coverage), at(3600), RULES)), expected, "{coverage:?}");
    }
}

#[test]
fn units_that_end_alike_belong_together_and_others_do_not() {
    let mut ledger = Ledger::default();
    let of = |unit, later| ReadAt { unit, ..at(later) };
    ledger.take(
        Read { coverage: Coverage::Events, markets: vec![], ..complete(0..1) },
        of("events/mma", 0),
        RULES,
    );
    let prices = Read { listings: vec![], coverage: Coverage::Prices, ..complete(0..1) };
    assert_eq!(kinds(&ledger.take(prices, of("odds/mma", 1), RULES)), ["odds"]);
    let none = || Read { coverage: Coverage::Prices, ..Read::default() };
    assert_eq!(kinds(&ledger.take(none(), of("odds/golf", 2), RULES)), [""; 0]);
    assert_eq!(kinds(&ledger.take(none(), of("odds/mma", 3), RULES)), ["withdrawn"]);
    assert_eq!(ledger.starts("odds/mma").count(), 1);
}

#[test]
fn a_read_that_would_empty_most_is_held_back_until_two_more_agree() {
    let mut ledger = Ledger::default();
    ledger.take(complete(0..10), at(0), RULES);
    let half = ledger.take(complete(0..5), at(10), RULES);
    assert_eq!((half.held_back, kinds(&half).len()), (None, 5), "half is believed");
    ledger.take(complete(0..10), at(20), RULES);
    for (later, held) in [(30, Some(6)), (40, Some(6)), (50, None)] {
        let plan = ledger.take(complete(0..4), at(later), RULES);
        assert_eq!(
            (plan.held_back, kinds(&plan).len()),
            (held, if held.is_some() { 0 } else { 6 })
        );
    }
    ledger.take(complete(0..10), at(60), RULES);
    assert!(ledger.take(complete(0..4), at(70), RULES).held_back.is_some());
    assert!(ledger.take(complete(0..10), at(80), RULES).held_back.is_none());
    assert!(ledger.take(complete(0..4), at(90), RULES).held_back.is_some(), "counted anew");
    let mut few = Ledger::default();
    few.take(complete(0..9), at(0), RULES);
    assert_eq!(few.take(complete(0..0), at(10), RULES).held_back, None, "nine are too few to tell");
}

#[test]
fn the_first_complete_read_withdraws_what_the_book_holds_and_upstream_has_not() {
    let mma = CATALOGUE.sport_id("mma").unwrap();
    let open = |n: u32| OpenEvent {
        reference: format!("e{n}").into(),
        sport: mma,
        commence_time: NOW.plus(secs(3600)),
        markets: vec![(CATALOGUE.bookmaker_id("fanduel").unwrap(), Market::Moneyline, None)],
    };
    let mut ledger = Ledger::new(vec![open(0), open(1)], NOW);
    let partly = ReadAt { all_read: false, ..at(1) };
    assert_eq!(
        kinds(&ledger.take(complete(5..6), partly, RULES)),
        ["event", "odds"],
        "another unit may have it"
    );
    let plan = ledger.take(
        Read { listings: vec![listed(0)], ..complete(0..1) },
        ReadAt { unit: "v", ..at(2) },
        RULES,
    );
    assert_eq!(
        kinds(&plan),
        ["event", "withdrawn", "odds"],
        "e1 is gone; e0 is told anew: the book may differ"
    );
}

#[test]
fn prices_go_when_an_event_starts_where_they_are_not_kept_in_play() {
    let rules = Rules { in_play: false, ..RULES };
    let mut ledger = Ledger::default();
    ledger.take(complete(0..1), at(0), rules);
    assert!(ledger.tick(NOW.plus(secs(3599)), rules).is_empty());
    let gone = ledger.tick(NOW.plus(secs(3600)), rules);
    assert!(
        lines(&gone)[0].contains("\"outcomes\":[]")
            && lines(&gone)[0].contains("\"fresh_for\":180"),
        "{gone:?}"
    );
    assert!(ledger.tick(NOW.plus(secs(3601)), rules).is_empty());
    assert_eq!(kinds(&ledger.take(complete(0..1), at(3700), rules)), [""; 0], "they stay away");
    assert!(ledger.tick(NOW.plus(secs(9999)), RULES).is_empty());
}

#[test]
fn confirmed_sources_get_a_heartbeat_also_when_nothing_changed() {
    let source = (CATALOGUE.bookmaker_id("fanduel").unwrap(), CATALOGUE.sport_id("mma").unwrap());
    let mut ledger = Ledger::default();
    let read = Read { confirmed: vec![source], ..complete(0..1) };
    assert_eq!(kinds(&ledger.take(read, at(0), RULES)), ["event", "odds", "heartbeat"]);
    let plan = ledger.take_unchanged(at(800));
    assert_eq!(kinds(&plan), ["heartbeat"]);
    assert_eq!(plan.messages[0].fresh_for_s, Some(180));
    assert_eq!(
        kinds(&ledger.take(complete(5..6), at(1600), RULES)),
        ["event", "withdrawn", "odds"],
        "seen at 800"
    );
}

#[test]
fn a_score_is_sent_once_and_a_final_one_ends_the_reading() {
    let mut ledger = Ledger::default();
    ledger.take(complete(0..1), at(0), RULES);
    let score = |status| {
        let score = ScoreBody {
            reference: "e0".into(),
            status,
            home: None,
            away: None,
            periods: vec![],
            winner: None,
            leaders: vec![],
            correction: Correction::No,
        };
        Read { scores: vec![Scored { score, ts: None }], ..Read::default() }
    };
    assert!(!ledger.has_begun("u", NOW) && ledger.has_begun("u", NOW.plus(secs(3600))));
    assert_eq!(kinds(&ledger.take(score(Status::Live), at(3600), RULES)), ["score"]);
    assert_eq!(kinds(&ledger.take(score(Status::Live), at(3660), RULES)), [""; 0]);
    assert_eq!(kinds(&ledger.take(score(Status::Final), at(3700), RULES)), ["score"]);
    assert!(!ledger.has_begun("u", NOW.plus(secs(3700))));
}
