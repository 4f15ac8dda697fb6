//! The participant of a price: one of the event's, under any name, or nobody.

use domain::message::{Body, RejectCode, ScoreBody};
use domain::{Market, Status};
use proptest::prelude::*;

use crate::test_book::{ACCEPTED, TestBook, head_to_head, report};

fn with(sport: &str, home: &str, away: &str) -> TestBook {
    let mut test = TestBook::open();
    let body = test.event(sport, "r", head_to_head(home, away), 24);
    assert_eq!(test.say("north", body), ACCEPTED);
    test
}

/// The side that a name's price is assigned to, or the rejection.
fn side(sport: &str, home: &str, away: &str, name: &str) -> Result<&'static str, RejectCode> {
    let mut test = with(sport, home, away);
    test.say("north", test.quote("r", "bet365", Market::Moneyline, &[(name, 140)]))?;
    let odds = test.odds(sport);
    let shown = odds[0]["outcomes"][0]["name"].as_str().unwrap();
    // The answer uses the event's own names, which show the side.
    Ok(if shown == home {
        "home"
    } else if shown == away {
        "away"
    } else {
        "neither"
    })
}

#[test]
fn a_name_goes_to_the_side_it_means() {
    for (sport, home, away, of_home, of_away) in [
        (
            "mma",
            "Tomas Veldt",
            "Oren Castellane",
            &[
                "Veldt",
                "T. Veldt",
                "Veldt T.",
                "VELDT, TOMAS",
                "Tom Veldt",
                "Tomas \"The Wall\" Veldt",
            ][..],
            &["Castellane", "O. Castellane", "Oren Castelane", "Oren Castellane (ISR)"][..],
        ),
        (
            "american_football",
            "Los Angeles Rams",
            "Seattle Seahawks",
            &["LAR", "Rams", "LA Rams", "LA"],
            &["SEA", "Seattle", "seahawks"],
        ),
        (
            "american_football",
            "Los Angeles Rams",
            "LA Chargers",
            &["LAR", "Rams", "LA Rams"],
            &["LAC", "Chargers", "Los Angeles Chargers"],
        ),
        (
            "tennis",
            "Alexander Zverev",
            "Mischa Zverev",
            &["A. Zverev", "Zverev A."],
            &["Zverev M."],
        ),
        (
            "tennis",
            "Ana Veldt/Ida Orsk",
            "Eva Roth/Mia Dray",
            &["Orsk I. / Veldt A.", "Veldt / Orsk"],
            &["Dray/Roth"],
        ),
        (
            "boxing",
            "Jermell Charlo",
            "Jermall Charlo",
            &["Jermell Charlo", "JERMELL CHARLO"],
            &["Jermall Charlo", "Charlo, Jermall"],
        ),
        ("boxing", "Marcell Veldt", "Marcall Veldt", &["marcell veldt"], &["Marcall VELDT"]),
    ] {
        for (names, expected) in [(of_home, "home"), (of_away, "away")] {
            for name in names {
                assert_eq!(
                    side(sport, home, away, name),
                    Ok(expected),
                    "{name} of {home} v {away}"
                );
                // With the sides swapped, the answer is swapped, too.
                let other = if expected == "home" { "away" } else { "home" };
                assert_eq!(side(sport, away, home, name), Ok(other), "{name} of {away} v {home}");
            }
        }
    }
}

#[test]
fn what_could_be_either_or_nobody_is_rejected_with_a_reason() {
    for (sport, home, away, names) in [
        ("tennis", "Alexander Zverev", "Mischa Zverev", &["Zverev", "Zverev V."][..]),
        ("boxing", "Jermell Charlo", "Jermall Charlo", &["Charlo", "J. Charlo", "Jermoll Charlo"]),
        (
            "boxing",
            "Marcell Veldt",
            "Marcall Veldt",
            &["Veldt", "M. Veldt", "Marc Veldt", "Marcall"],
        ),
        ("american_football", "Los Angeles Rams", "Los Angeles Chargers", &["LA", "Los Angeles"]),
        ("american_football", "Washington State", "Oregon", &["Oregon State", "Washington"]),
        (
            "mma",
            "Tomas Veldt",
            "Oren Castellane",
            &["Pavel Orsk", "A. Veldt", "Tomas Castellane", "—", "Home"],
        ),
        ("mma", "Roy Jones Jr.", "Tomas Veldt", &["Roy Jones Sr."]),
        ("tennis", "Ana Veldt/Ida Orsk", "Eva Roth/Mia Dray", &["Ana Veldt", "Orsk/Roth"]),
    ] {
        for name in names {
            let said = side(sport, home, away, name);
            assert_eq!(said, Err(RejectCode::UnknownOutcome), "{name} of {home} v {away}");
        }
    }
    let test = with("mma", "Tomas Veldt", "Oren Castellane");
    let body = test.quote("r", "bet365", Market::Moneyline, &[("Pavel Orsk", 140)]);
    let message = domain::message::FeedMessage { ts: None, fresh_for_s: None, body };
    let reject = test.book.decide("north", &message, test.now).unwrap_err();
    let text = reject.to_string();
    assert!(text.contains("`Pavel Orsk`") && text.contains("`Tomas Veldt`"), "{text}");
}

#[test]
fn a_feed_speaks_in_its_own_words_of_an_event_that_others_named() {
    let mut test = TestBook::open();
    let body = test.bout("n-1", "Tomas Veldt", "Oren Castellane", 24);
    assert_eq!(test.say("north", body), ACCEPTED);
    let body = test.bout("s-1", "Castellane O.", "Veldt T.", 24);
    assert_eq!(test.say("south", body), ACCEPTED);
    for (n, names) in
        [["Castellane O.", "Veldt T."], ["Oren Castellane", "Tomas Veldt"], ["Castellane", "Veldt"]]
            .iter()
            .enumerate()
    {
        test.wait(1);
        let price = -110 - i32::try_from(n).unwrap();
        let prices = [(names[0], price), (names[1], 120)];
        let body = test.quote("s-1", "bet365", Market::Moneyline, &prices);
        assert_eq!(test.say("south", body), ACCEPTED, "{names:?}");
        let odds = test.odds("mma");
        assert_eq!(odds[0]["outcomes"][0]["name"], "Tomas Veldt");
        assert_eq!(odds[0]["outcomes"][1]["price"], price);
    }
    let winner = ScoreBody { winner: Some("Veldt".into()), ..report("s-1", Status::Final) };
    assert_eq!(test.say("south", Body::Score(winner)), ACCEPTED);
    assert_eq!(test.scores("mma")[0]["winner"], "Tomas Veldt");
}

#[test]
fn golfers_are_one_across_spellings_and_two_stay_two() {
    let mut test = TestBook::open();
    for feed in ["north", "south"] {
        let body = test.tournament("g", "The Harbour Open", 24);
        assert_eq!(test.say(feed, body), ACCEPTED);
    }
    let names = |test: &TestBook, bookmaker: &str| -> Vec<String> {
        let odds = test.odds("golf");
        let record = odds.iter().find(|record| record["bookmaker"] == bookmaker).unwrap();
        let outcomes = record["outcomes"].as_array().unwrap();
        outcomes.iter().map(|outcome| outcome["name"].as_str().unwrap().to_owned()).collect()
    };
    let ours = [
        ("Rory McIlroy", 500),
        ("Si Woo Kim", 900),
        ("Tom Kim", 1000),
        ("Nicolai Højgaard", 1100),
        ("Rasmus Højgaard", 1200),
    ];
    let body = test.quote("g", "bet365", Market::Outright, &ours);
    assert_eq!(test.say("north", body), ACCEPTED);
    let theirs = [
        ("McIlroy, Rory", 510),
        ("S.W. Kim", 910),
        ("Kim T.", 1010),
        ("Hojgaard N.", 1110),
        ("R. Hojgaard", 1210),
        ("Joohyung Kim", 1300),
    ];
    let body = test.quote("g", "fanduel", Market::Outright, &theirs);
    assert_eq!(test.say("south", body), ACCEPTED);
    assert_eq!(
        names(&test, "fanduel"),
        [
            "Joohyung Kim",
            "Nicolai Højgaard",
            "Rasmus Højgaard",
            "Rory McIlroy",
            "Si Woo Kim",
            "Tom Kim"
        ]
    );
    // A surname shared by several players is nobody's, and does not add a player.
    let body = test.quote("g", "betfair", Market::Outright, &[("Kim", 800), ("Hojgaard", 900)]);
    assert_eq!(test.say("south", body), ACCEPTED);
    assert_eq!(names(&test, "betfair"), ["Hojgaard", "Kim"]);
    // Two names of one player in one market cannot both mean him.
    let body =
        test.quote("g", "betfair", Market::Top5, &[("Rory McIlroy", 100), ("R. McIlroy", 200)]);
    assert_eq!(test.say("south", body), ACCEPTED);
    let odds = test.odds("golf");
    let top5 = odds.iter().find(|record| record["market"] == "top5").unwrap();
    assert_eq!(top5["outcomes"].as_array().unwrap().len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the names of the sides, swapping the event swaps the answer: it is never the wrong side.
    #[test]
    fn a_price_never_depends_on_which_side_is_named_first(
        home in "(A|J|T)(\\.|om|ermell|ermall) (Veldt|Charlo|Orsk)( Jr.)?",
        away in "(A|J|T)(\\.|om|ermell|ermall) (Veldt|Charlo|Orsk)( Jr.)?",
        name in "(A|J|T)?(\\.|om|ermell|ermall)? ?(Veldt|Charlo|Orsk)( Jr.)?",
        sport in proptest::sample::select(vec!["mma", "tennis"]),
    ) {
        prop_assume!(home != away);
        let turned = side(sport, &away, &home, &name).map(|side| match side {
            "home" => "away",
            "away" => "home",
            other => other,
        });
        prop_assert_eq!(side(sport, &home, &away, &name), turned);
    }
}
