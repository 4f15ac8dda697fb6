//! The comparisons that a message causes are bounded, whatever the book contains, and a flooding feed hides no
//! other's events.
//!
//! The bound is on the work as the book counts it (`effort`); `cargo bench -p linesman-market --bench worst` prints
//! the time.

use domain::message::{Body, FeedMessage, Fixture, OUTCOMES_MAX, RejectCode, ScoreBody, WORDS_MAX};
use domain::{Market, Status};
use linesman_market::effort::{self, EFFORT_MAX};
use proptest::prelude::*;

use crate::identity::list;
use crate::test_book::{ACCEPTED, Outcome, TestBook, head_to_head, outcome, remove, report};

/// Some comparisons are made even if the budget is spent (with the former event of the ref, with the displayed
/// names); the largest compares two pairs of players.
const OVERSHOOT: usize = 1_500;

/// Sends a message and checks that its effort is bounded.
fn say(test: &mut TestBook, feed: &str, body: Body) -> Outcome {
    let said = test.say(feed, body);
    assert!(effort::spent() <= EFFORT_MAX + OVERSHOOT, "{} for {said:?}", effort::spent());
    said
}

/// Words that all begin alike, have the same letters and differ in more than two places.
fn near_words(from: usize, count: usize, len: usize) -> String {
    let word = |n: usize| -> String {
        let mut letters: Vec<char> = ('a'..='m').cycle().take(len).collect();
        let mut rest = n;
        for at in (len - 6..len).rev() {
            let range = at - (len - 6) + 1;
            letters.swap(at, len - 6 + rest % range);
            rest /= range;
        }
        letters.into_iter().collect()
    };
    (from..from + count).map(word).collect::<Vec<_>>().join(" ")
}

fn player(n: usize) -> String {
    format!("{} Veldt{}", near_words(n, 8, 16), n / 8)
}

fn players(from: usize, count: usize) -> Vec<domain::message::OfferedOutcome> {
    (from..from + count).map(|n| outcome(&player(n), 140, None)).collect()
}

/// A tournament whose players all have nearly the same name.
fn crowded() -> TestBook {
    let mut test = TestBook::open();
    let listed = test.tournament("g-1", "Harbour Open", 24);
    assert_eq!(say(&mut test, "evil", listed), ACCEPTED);
    for n in 0..OUTCOMES_MAX / 4 {
        let body = test.odds_body("g-1", "bet365", Market::Outright, None, players(2 * n, 2));
        assert_eq!(say(&mut test, "evil", body), ACCEPTED);
    }
    test
}

#[test]
fn a_market_of_look_alikes_is_refused_before_they_are_compared() {
    let mut test = crowded();
    for market in [Market::Outright, Market::Matchup, Market::ThreeBall] {
        let body = test.odds_body("g-1", "bet365", market, None, players(1000, OUTCOMES_MAX / 2));
        assert_eq!(say(&mut test, "evil", body), Err(RejectCode::TooLarge));
    }
    // There is no room for that number, so none of them is compared.
    let body = test.odds_body("g-1", "bet365", Market::Outright, None, players(1000, OUTCOMES_MAX));
    assert_eq!(say(&mut test, "evil", body), Err(RejectCode::TooLarge));
    assert_eq!(effort::spent(), 0);
    // Known players are found by their spelling, which costs nothing either.
    let body = test.odds_body("g-1", "bet365", Market::Outright, None, players(0, 256));
    assert_eq!(say(&mut test, "evil", body), ACCEPTED);
    assert_eq!(effort::spent(), 0);
}

#[test]
fn leaders_who_look_alike_are_refused_the_same_way() {
    let mut test = crowded();
    test.wait(24 * 3600);
    let leaders = (1000..1256).map(|n| (player(n).into(), vec![70])).collect();
    let body = Body::Score(ScoreBody { leaders, ..report("g-1", Status::Live) });
    assert_eq!(say(&mut test, "evil", body), Err(RejectCode::TooLarge));
}

#[test]
fn a_field_in_other_spellings_is_worth_its_work() {
    let mut test = TestBook::open();
    let listed = test.tournament("g-1", "Harbour Open", 24);
    assert_eq!(test.say("north", listed), ACCEPTED);
    let (given, surname) =
        (["Tomas", "Milan", "Oren", "Si Woo", "Joo Hyung"], ["Kim", "Lee", "An", "Smith"]);
    let person = |n: usize| {
        (given[n % 5], format!("{}{}", surname[n % 4], "abcdefgh".get(..n / 20).unwrap_or("")))
    };
    let named = |n: usize| format!("{} {}", person(n).0, person(n).1);
    let turned = |n: usize| format!("{}, {}", person(n).1.to_uppercase(), person(n).0);
    let of =
        |name: &dyn Fn(usize) -> String| (0..156).map(|n| outcome(&name(n), 140, None)).collect();
    let body = test.odds_body("g-1", "bet365", Market::Outright, None, of(&named));
    assert_eq!(say(&mut test, "north", body), ACCEPTED);
    let body = test.odds_body("g-1", "fanduel", Market::Outright, None, of(&turned));
    assert_eq!(say(&mut test, "north", body), ACCEPTED);
    assert!(effort::spent() > 0);
    let odds = test.odds("golf");
    assert_eq!(
        odds[0]["outcomes"].as_array().unwrap().len(),
        odds[1]["outcomes"].as_array().unwrap().len()
    );
    assert_eq!(odds[0]["outcomes"][7]["name"], odds[1]["outcomes"][7]["name"]);
}

#[test]
fn a_market_of_two_sides_has_few_spellings() {
    let mut test = TestBook::open();
    list(&mut test, "north", "1", "Tomas Veldt v Oren Castellane", 24);
    let line = |name: &str, n: i32| outcome(name, 140, Some(&n.to_string()));
    let lines = (0..500).map(|n| line("Tomas Veltd", n)).collect();
    let body = test.odds_body("1", "bet365", Market::Spread, None, lines);
    assert_eq!(say(&mut test, "north", body), ACCEPTED);
    assert!(effort::spent() < 100, "each spelling is looked at once");
    let lines = (0..500)
        .map(|n| line(&format!("Tomas Veldt{}", "t".repeat(usize::try_from(n).unwrap())), n))
        .collect();
    let body = test.odds_body("1", "bet365", Market::Spread, None, lines);
    assert!(say(&mut test, "north", body).is_err());
}

#[test]
fn a_name_has_so_many_words_and_plain_letters() {
    let mut test = TestBook::open();
    let words = |count: usize| vec!["Veldt"; count].join(" ");
    for (name, said) in [
        (words(WORDS_MAX), ACCEPTED),
        (words(WORDS_MAX + 1), Err(RejectCode::TooLarge)),
        ("a ".repeat(90), Err(RejectCode::TooLarge)),
        // One character that becomes eighteen letters.
        ("\u{fdfa}".repeat(60), Err(RejectCode::TooLarge)),
        ("\u{1f939}".repeat(40), Err(RejectCode::TooLarge)),
    ] {
        let bout = test.bout("1", &name, "Oren Castellane", 24);
        assert_eq!(say(&mut test, "north", bout), said, "{name}");
        let bout = test.tournament("g", &name, 24);
        assert_eq!(say(&mut test, "north", bout), said, "{name}");
    }
}

fn near_bout(n: usize) -> Fixture {
    let of = |from| format!("{} Veldt", near_words(from, 9, 17));
    head_to_head(&of(n % 40), &of(40 + n % 37))
}

fn near_pairs(n: usize) -> Fixture {
    let of = |from| format!("{} Veldt", near_words(from, 7, 9));
    let pair = |from| format!("{} / {}", of(from), of(from + 5));
    head_to_head(&pair(n % 40), &pair(60 + n % 37))
}

#[test]
fn listings_that_look_alike_cost_no_more_than_their_budget() {
    for (sport, fixture) in [
        ("mma", near_bout as fn(usize) -> Fixture),
        ("tennis", near_pairs),
        ("american_football", near_bout),
    ] {
        let mut test = TestBook::open();
        let mut most = 0;
        for n in 0..80 {
            // Ten feeds with new refs, corrections and removals.
            let (feed, reference) = (format!("feed-{}", n % 10), format!("{}", n / 10 % 12));
            let hours = 24 + i64::try_from(n % 7).unwrap();
            let body = test.event(sport, &reference, fixture(n / 10), hours);
            let _said: Outcome = say(&mut test, &feed, body);
            most = most.max(effort::spent());
            if n % 17 == 16 {
                let _said: Outcome = say(&mut test, &feed, remove(&reference));
            }
        }
        assert!(most > EFFORT_MAX / 4, "{sport}: the shape is no attack any more: {most}");
    }
}

#[test]
fn what_twenty_feeds_list_in_earnest_is_far_from_the_budget() {
    let mut test = TestBook::open();
    let (given, surname) =
        (["Tomas", "Milan", "Marek", "Oren"], ["Silva", "Santos", "Souza", "Veldt", "Costa"]);
    let mut most = 0;
    for feed in 0..20 {
        for n in 0..60 {
            let person = |n: usize| match feed % 3 {
                0 => format!("{} {}{}", given[n % 4], surname[n % 5], n / 20),
                1 => format!(
                    "{}{} {}.",
                    surname[n % 5],
                    n / 20,
                    given[n % 4].chars().next().unwrap()
                ),
                _ => format!("{}{}, {}", surname[n % 5], n / 20, given[n % 4]),
            };
            let hours = 24 + i64::try_from(n % 3).unwrap() + feed % 2;
            let listed = test.bout(&n.to_string(), &person(n), &person(n + 67), hours);
            assert_eq!(test.say(&format!("feed-{feed}"), listed), ACCEPTED);
            most = most.max(effort::spent());
            let moved = test.bout(&n.to_string(), &person(n), &person(n + 67), hours + 1);
            assert_eq!(test.say(&format!("feed-{feed}"), moved), ACCEPTED);
            most = most.max(effort::spent());
        }
    }
    assert!(most < EFFORT_MAX / 2, "{most}");
}

#[test]
fn a_flood_of_look_alikes_hides_nobody() {
    for order in
        [["evil", "north", "south"], ["north", "evil", "south"], ["north", "south", "evil"]]
    {
        let mut test = TestBook::open();
        for feed in order {
            match feed {
                // Nearly identical names, from two feeds that flood together, including withdrawn listings.
                "evil" => {
                    for n in 0..200 {
                        let evil = ["evil", "evil-too"][n % 2];
                        let reference = format!("{}", n / 2);
                        let names = (
                            "Tomas Veldt",
                            format!("Oren Castellane {}", near_words(n / 8, 1, 12)),
                        );
                        let listed = test.bout(
                            &reference,
                            names.0,
                            &names.1,
                            24 + i64::try_from(n % 5).unwrap(),
                        );
                        let _said: Outcome = say(&mut test, evil, listed);
                        if n % 5 == 4 {
                            let _said: Outcome = say(&mut test, evil, remove(&reference));
                        }
                    }
                }
                "north" => list(&mut test, "north", "1", "Tomas Veldt v Oren Castellane", 24),
                _ => list(&mut test, "south", "1", "Castellane O. v Veldt T.", 25),
            }
        }
        assert!(test.are_one(("north", "1"), ("south", "1")), "{order:?}");
    }
}

/// A word that is similar to others.
fn a_word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{4,16}",
        (0..40_usize, 8..17_usize).prop_map(|(n, len)| near_words(n, 1, len)),
        "(Tomas|Veldt|Oren|van|de|J\\.|Jr\\.|Al|Alexander|Sasha|&|/|and)",
    ]
}

fn a_name() -> impl Strategy<Value = String> {
    proptest::collection::vec(a_word(), 1..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(crate::test_book::cases(6))]

    /// Searches for attacks that are not among the known shapes.
    #[test]
    fn whatever_is_said_costs_no_more_than_its_budget(
        said in proptest::collection::vec(
            (0..4_usize, 0..6_usize, (0..12_usize, 0..12_usize), 0..30_i64, 0..8_u8),
            1..80,
        ),
        names in proptest::collection::vec(a_name(), 12),
        sport in prop_oneof![Just("mma"), Just("tennis"), Just("american_football"), Just("golf")],
    ) {
        let mut test = TestBook::open();
        for (feed, reference, (home, away), hours, kind) in said {
            let (feed, reference) = (format!("feed-{feed}"), format!("r{reference}"));
            let (home, away) = (&names[home], &names[away]);
            let body = match (kind, sport) {
                (0, _) => remove(&reference),
                (1, "golf") => test.quote(&reference, "bet365", Market::Outright, &[(home, 140), (away, 120)]),
                (1, _) => test.quote(&reference, "bet365", Market::Moneyline, &[(home, 140), (away, 120)]),
                (_, "golf") => test.tournament(&reference, home, hours),
                _ => test.event(sport, &reference, head_to_head(home, away), hours),
            };
            let _said: Outcome = test.hear(&feed, &FeedMessage { ts: None, fresh_for_s: None, body });
            prop_assert!(effort::spent() <= EFFORT_MAX + OVERSHOOT, "{}", effort::spent());
        }
    }
}
