//! The event of a listing: which listings join, stay apart or are unsure, and how later messages settle it.

use domain::message::{Body, Fixture, Listing};
use linesman_market::{Alias, Change, Doubt, Meaning, Oddity, Operation};

use crate::test_book::{
    ACCEPTED, TestBook, at, everything, head_to_head, remove, replayed, restored,
};

/// "Home v Away", this number of hours after the start of the test.
pub(crate) fn bout(test: &TestBook, reference: &str, names: &str, hours: i64) -> Body {
    let (home, away) = names.split_once(" v ").unwrap();
    test.bout(reference, home, away, hours)
}

pub(crate) fn list(test: &mut TestBook, feed: &str, reference: &str, names: &str, hours: i64) {
    let body = bout(test, reference, names, hours);
    assert_eq!(test.say(feed, body), ACCEPTED, "{names}");
}

fn list_in(
    test: &mut TestBook,
    (sport, competition): (&str, &str),
    feed: &str,
    names: &str,
    hours: i64,
) {
    let (home, away) = names.split_once(" v ").unwrap();
    let listing = Listing {
        sport: test.sport(sport),
        competition: competition.into(),
        commence_time: at(hours * 3600),
        fixture: head_to_head(home, away),
    };
    let body = Body::Event { reference: names.into(), listing };
    assert_eq!(test.say(feed, body), ACCEPTED, "{names}");
}

#[test]
fn a_ref_that_joins_says_with_whom_and_why() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s-1", "Castellane O. v Veldt T.", 26);
    let profile = test.event_of("south", "s-1");
    let why: Vec<&str> = profile.refs.iter().map(|listed| &*listed.why).collect();
    assert_eq!(
        why,
        [
            "first listing: no other feed had a similar event",
            "as north:n-1: both sides: the same surname and initials; home and away the other way \
             round; starts 2 hours apart; the same competition",
        ]
    );
    assert!(profile.refs[1].swapped && profile.unsure.is_empty());
    let ids = linesman_market::Ids::Minted { salt: crate::test_book::SALT };
    let replay = replayed(&test.catalogue, ids, &test.changes);
    for book in [replay, restored(&test.book)] {
        assert_eq!(book.profile(profile.event).unwrap(), profile);
    }
}

#[test]
fn every_habit_of_writing_names_leads_to_the_one_event() {
    for (sport, first, habits) in [
        (
            "tennis",
            "Novak Djokovic v Félix Auger-Aliassime",
            &[
                "Djokovic N. v Auger-Aliassime F.",
                "N. Djokovic v F. Auger Aliassime",
                "Auger-Aliassime, Felix v Djokovic, Novak",
                "NOVAK DJOKOVIC v FELIX AUGER-ALIASSIME",
                "Novak Djokovic (SRB) v Felix Auger-Aliassime (CAN)",
                "Новак Джокович v Felix Auger-Aliassime",
            ][..],
        ),
        (
            "mma",
            "Tomas Veldt v Oren Castellane Jr.",
            &["Veldt T. v Castellane, Oren", "Tomas \"The Wall\" Veldt v Oren Castellane II"],
        ),
        (
            "american_football",
            "Los Angeles Rams v Seattle Seahawks",
            &["LA Rams v Seattle", "Rams v Seahawks", "SEA v LAR", "LA v Seahawks"],
        ),
        (
            "tennis",
            "Ana Veldt/Ida Orsk v Eva Roth/Mia Dray",
            &["Orsk I. / Veldt A. v Dray M. / Roth E."],
        ),
    ] {
        let mut test = TestBook::open();
        list_in(&mut test, (sport, "Any"), "first", first, 24);
        for (n, names) in habits.iter().enumerate() {
            list_in(&mut test, (sport, "Any"), &format!("feed {n}"), names, 24);
        }
        let apart: Vec<_> = test.events(sport);
        assert_eq!(apart.len(), 1, "{apart:#?}");
    }
}

#[test]
fn what_only_looks_alike_stays_apart() {
    for (sport, one, other) in [
        ("boxing", "Jermell Charlo v Brian Castano", "Jermall Charlo v Juan Montiel"),
        ("boxing", "Marcell Veldt v Pavel Orsk", "Marcall Veldt v Oren Castellane"),
        ("tennis", "Zverev A. v Sinner J.", "Zverev M. v Sinner J."),
        ("tennis", "Cerundolo F. v Isner J.", "Juan Manuel Cerundolo v John Isner"),
        ("tennis", "John Isner v Tomas Veldt", "Jannik Sinner v Tomas Veldt"),
        ("tennis", "Zhang Ze v Tomas Veldt", "Zhang Zh. v Tomas Veldt"),
        ("tennis", "Ana Veldt/Ida Orsk v Eva Roth/Mia Dray", "Ana Veldt v Eva Roth"),
        ("mma", "Warlley Alves v Jeremiah Wells", "Warlley Alves v Ramazan Emeev"),
        ("mma", "Tomas Veldt v Oren Castellane", "Tomas Veldt v Pavel Orsk"),
        ("mma", "Roy Jones Jr. v Tomas Veldt", "Roy Jones Sr. v Tomas Veldt"),
        ("american_football", "Washington State v Oregon", "Washington v Oregon State"),
        ("american_football", "LA Rams v Denver", "LA Chargers v Denver"),
    ] {
        for (first, second) in [(one, other), (other, one)] {
            let mut test = TestBook::open();
            list_in(&mut test, (sport, "Any"), "north", first, 24);
            list_in(&mut test, (sport, "Any"), "south", second, 24);
            assert_eq!(test.events(sport).len(), 2, "{first} / {second}");
            // The same listings of the other feed find the right event each.
            list_in(&mut test, (sport, "Any"), "west", second, 25);
            list_in(&mut test, (sport, "Any"), "west", first, 25);
            assert_eq!(test.events(sport).len(), 2, "{first} / {second}");
            assert!(test.are_one(("north", first), ("west", first)));
        }
    }
}

#[test]
fn a_competition_of_the_same_name_in_another_sport_tells_nothing() {
    let mut test = TestBook::open();
    for names in
        ["Tomas Veldt v Oren Castellane", "Milan Dray v Pavel Orsk", "Emil Roth v Jan Sever"]
    {
        list_in(&mut test, ("mma", "Championship"), "north", names, 100);
        list_in(&mut test, ("mma", "Championship"), "south", names, 24);
    }
    assert_eq!(test.events("mma").len(), 3);
    // The same two, in consecutive weeks.
    list_in(&mut test, ("american_football", "Championship"), "north", "LA Rams v Denver", 140);
    list_in(&mut test, ("american_football", "Championship"), "south", "LA Rams v Denver", 24);
    assert_eq!(test.events("american_football").len(), 2);
}

#[test]
fn two_players_of_one_surname_in_one_draw_find_their_own() {
    let mut test = TestBook::open();
    let draw = [
        ("Alexander Zverev v Jannik Sinner", "Zverev A. v Sinner J."),
        ("Mischa Zverev v John Isner", "Isner J. v Zverev M."),
        ("Francisco Cerundolo v Tomas Veldt", "Veldt v Cerundolo F."),
        ("Juan Manuel Cerundolo v Anton Veldt", "Cerundolo J.M. v Veldt A."),
    ];
    for (full, _) in draw {
        list_in(&mut test, ("tennis", "Open"), "north", full, 24);
    }
    for (_, short) in draw {
        list_in(&mut test, ("tennis", "Open"), "south", short, 25);
    }
    assert_eq!(test.events("tennis").len(), 4);
    for (full, short) in draw {
        assert!(test.are_one(("north", full), ("south", short)), "{short}");
    }
    assert!(test.doubts().is_empty(), "{:?}", test.doubts());
}

#[test]
fn where_either_of_two_could_be_meant_it_is_neither_until_somebody_tells() {
    let mut test = TestBook::open();
    list_in(&mut test, ("tennis", "Open"), "north", "Alexander Zverev v Tomas Veldt", 24);
    list_in(&mut test, ("tennis", "Open"), "north", "Mischa Zverev v Tomas Veldt", 30);
    list_in(&mut test, ("tennis", "Open"), "south", "Zverev v Tomas Veldt", 27);
    assert_eq!(test.events("tennis").len(), 3);
    let rivals = test.book.unsure().filter(|unsure| unsure.doubt == Doubt::Rival).count();
    assert_eq!(rivals, 2, "{:?}", test.doubts());
    // The second listing says which one it is.
    let Body::Event { listing, .. } =
        test.event("tennis", "x", head_to_head("Zverev M.", "Tomas Veldt"), 27)
    else {
        unreachable!()
    };
    let body = Body::Event { reference: "Zverev v Tomas Veldt".into(), listing };
    assert_eq!(test.say("south", body), ACCEPTED);
    assert!(
        test.are_one(("south", "Zverev v Tomas Veldt"), ("north", "Mischa Zverev v Tomas Veldt"))
    );
    assert!(test.doubts().is_empty(), "{:?}", test.doubts());
}

#[test]
fn a_rematch_is_another_event_and_each_listing_finds_its_own() {
    let mut test = TestBook::open();
    for (sport, weeks) in [("tennis", 1), ("american_football", 1), ("mma", 8), ("boxing", 8)] {
        let (names, later) = if sport == "american_football" {
            ("LA Rams v Seattle Seahawks", "Rams v Seahawks")
        } else {
            ("Tomas Veldt v Pavel Orsk", "Orsk P. v Veldt T.")
        };
        for feed in ["north", "south"] {
            list_in(&mut test, (sport, "First"), feed, names, 24);
            list_in(&mut test, (sport, "Second"), feed, later, 24 + weeks * 168);
        }
        assert_eq!(test.events(sport).len(), 2, "{sport}");
        assert!(test.are_one(("north", names), ("south", names)));
        assert!(test.are_one(("north", later), ("south", later)));
    }
    assert!(test.doubts().is_empty(), "{:?}", test.doubts());
}

#[test]
fn starts_too_far_apart_are_doubted_with_the_reason_and_a_corrected_time_settles_it() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 24 + 400);
    assert_eq!(test.events("mma").len(), 2);
    assert_eq!(
        test.doubts(),
        ["the participants agree, but the starts are too far apart to be sure: both sides: the \
          same surname and initials; starts 16 days apart; the same competition"]
    );
    let profile = test.event_of("south", "s-1");
    assert_eq!(profile.unsure.len(), 1);
    assert_eq!(test.book.remembered(), (0, 1, 0));
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 200);
    assert!(test.are_one(("north", "n-1"), ("south", "s-1")));
    assert!(test.doubts().is_empty());
    let elder = test.event_of("north", "n-1");
    assert_eq!(elder.event.to_string(), TestBook::id(0));
    assert_eq!(elder.also, [profile.event]);
}

#[test]
fn a_third_feed_in_between_settles_a_doubt() {
    for (second, third) in [
        (("Veldt T. v Castellane O.", 424), ("Tomas Veldt v Oren Castellane", 230)),
        (("Veldt v Castellane", 24), ("Veldt v Oren Castellane", 24)),
        (("Tom Veldt v Oren Castelane", 24 + 100), ("Tomas Veldt v Oren Castelane", 100)),
    ] {
        let mut test = TestBook::open();
        list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
        list(&mut test, "south", "s-1", second.0, second.1);
        assert_eq!((test.events("mma").len(), test.doubts().len()), (2, 1), "{second:?}");
        list(&mut test, "west", "w-1", third.0, third.1);
        assert_eq!((test.events("mma").len(), test.doubts().len()), (1, 0), "{third:?}");
    }
}

#[test]
fn an_alias_settles_a_doubt_without_anybody_saying_more() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Kalle Wendt", 24);
    list(&mut test, "south", "s-1", "Tomas Veldt v Oskar Wendt", 24);
    assert_eq!(
        test.doubts(),
        ["one participant agrees, the other may be somebody else: one side: the same name, the \
          other: one word in common; the same start; the same competition"]
    );
    let alias = Alias {
        sport: "mma".into(),
        feed: None,
        name: "Oskar Wendt".into(),
        meaning: Meaning::Is("Kalle Wendt".into()),
    };
    test.operate(&Operation::Teach { aliases: vec![alias] }).unwrap();
    assert!(test.are_one(("north", "n-1"), ("south", "s-1")));
    assert!(test.doubts().is_empty());
}

#[test]
fn an_alias_brings_together_what_nobody_would_have_doubted() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Kevin Ferguson v Houston Alexander", 24);
    list(&mut test, "south", "s-1", "Houston Alexander v Kimbo Slice", 24);
    assert_eq!((test.events("mma").len(), test.doubts().len()), (2, 0));
    let alias = |name: &str| Alias {
        sport: "mma".into(),
        feed: None,
        name: name.into(),
        meaning: Meaning::Is("Kevin Ferguson".into()),
    };
    test.operate(&Operation::Teach { aliases: vec![alias("Slice, Kimbo")] }).unwrap();
    assert!(test.are_one(("north", "n-1"), ("south", "s-1")));
    let ids = linesman_market::Ids::Minted { salt: crate::test_book::SALT };
    let replay = replayed(&test.catalogue, ids, &test.changes);
    assert_eq!(everything(&replay, test.now), everything(&test.book, test.now));
}

#[test]
fn what_a_leaving_listing_contradicted_is_looked_at_again() {
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s-1", "Anton Veldt v Oren Castellane", 24);
    assert!(test.are_one(("north", "n-1"), ("south", "s-1")));
    list(&mut test, "west", "w-1", "Tomas Veldt v Oren Castellane", 24);
    assert_eq!((test.events("mma").len(), test.doubts().len()), (2, 1));
    assert_eq!(test.say("south", remove("s-1")), ACCEPTED);
    assert!(test.are_one(("north", "n-1"), ("west", "w-1")));
    assert!(test.doubts().is_empty(), "{:?}", test.doubts());
}

#[test]
fn a_replaced_opponent_is_followed_by_each_feed_in_its_own_time() {
    for late in ["north", "south"] {
        let mut test = TestBook::open();
        list(&mut test, "north", "1", "Warlley Alves v Jeremiah Wells", 24);
        list(&mut test, "south", "1", "Wells J. v Alves W.", 24);
        assert_eq!(test.events("mma").len(), 1);
        let early = if late == "north" { "south" } else { "north" };
        list(&mut test, early, "1", "Warlley Alves v Ramazan Emeev", 24);
        assert_eq!(test.events("mma").len(), 2, "the other still has the first");
        list(&mut test, late, "1", "Alves W. v Emeev R.", 24);
        assert_eq!(test.events("mma").len(), 1);
        let profile = test.event_of("north", "1");
        assert_eq!((profile.event.to_string(), profile.refs.len()), (TestBook::id(0), 2));
        assert!(test.oddities.contains(&Oddity::Replaced));
    }
}

#[test]
fn a_ref_used_for_another_event_leaves_the_first_to_the_others() {
    let mut test = TestBook::open();
    list(&mut test, "north", "1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "north", "1", "Milan Dray v Pavel Orsk", 48);
    assert_eq!(test.oddities, [Oddity::ReusedRef]);
    assert_eq!(test.event_of("south", "1").event.to_string(), TestBook::id(0));
    assert_eq!(test.event_of("north", "1").event.to_string(), TestBook::id(1));
    // The same with a single feed: no former participant stays, so it is another event and the id stays with the
    // first.
    list(&mut test, "north", "1", "Emil Roth v Jan Sever", 48);
    assert_eq!(test.oddities, [Oddity::ReusedRef; 2]);
    assert_eq!(test.event_of("north", "1").event.to_string(), TestBook::id(2));
}

#[test]
fn a_tournament_is_matched_by_title_and_dates() {
    let mut test = TestBook::open();
    for (feed, title, hours) in [
        ("north", "The Harbour Open", 24),
        ("south", "Harbour Open 2026", 96),
        ("west", "PGA Tour: Harbour Open presented by Veldt", 24),
        ("north", "Desert Classic", 24),
        ("south", "The Desert Classic", 24),
        ("west", "Harbour Open", 24 + 52 * 168),
    ] {
        let body = test.tournament(title, title, hours);
        assert_eq!(test.say(feed, body), ACCEPTED, "{title}");
    }
    assert_eq!(test.events("golf").len(), 3);
    assert!(test.are_one(("north", "The Harbour Open"), ("south", "Harbour Open 2026")));
    assert!(test.are_one(("north", "Desert Classic"), ("south", "The Desert Classic")));
}

#[test]
fn names_of_signs_and_of_great_length_are_taken_and_stay_apart() {
    let mut test = TestBook::open();
    let long = "Veldt ".repeat(24);
    for (n, (home, away)) in [("···", "—"), ("—", "!!!"), (long.as_str(), "Oren"), ("()", "\"\"")]
        .into_iter()
        .enumerate()
    {
        for feed in ["north", "south"] {
            let fixture = Fixture::HeadToHead { home: home.into(), away: away.into() };
            let body = test.event("mma", &n.to_string(), fixture, 24);
            assert_eq!(test.say(feed, body), ACCEPTED);
        }
    }
    assert!((4..=8).contains(&test.events("mma").len()));
    assert!(test.are_one(("north", "0"), ("south", "0")));
    assert!(!test.are_one(("north", "0"), ("north", "1")));
}

#[test]
fn a_merge_by_evidence_turns_prices_and_scores_and_both_ids_answer() {
    use domain::{Market, Status};
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s-1", "Castellane O. v Veldt T.", 24 + 400);
    let younger = test.event_of("south", "s-1").event;
    let prices = [("Castellane O.", -150), ("Veldt T.", 130)];
    let quote = test.quote("s-1", "bet365", Market::Moneyline, &prices);
    assert_eq!(test.say("south", quote), ACCEPTED);
    let score = crate::test_book::score("s-1", Status::Live, 2, 1);
    assert_eq!(test.say("south", Body::Score(score)), ACCEPTED);
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 400);
    let merged = |(change, _): &&(Change, _)| matches!(change, Change::Merged { .. });
    assert_eq!(test.changes.iter().filter(merged).count(), 1);
    let odds = test.odds("mma");
    assert_eq!(odds.len(), 1);
    assert_eq!(odds[0]["event_id"], TestBook::id(0));
    assert_eq!(odds[0]["outcomes"][0]["name"], "Tomas Veldt");
    assert_eq!(odds[0]["outcomes"][0]["price"], 130);
    let scores = test.scores("mma");
    assert_eq!((&scores[0]["home_score"], &scores[0]["away_score"]), (&1.into(), &2.into()));
    let sport = test.sport("mma");
    let snapshot = test.snapshot();
    assert_eq!(snapshot.sport(sport).event(younger).unwrap().id.to_string(), TestBook::id(0));
    assert_eq!(snapshot.sport(sport).events.len(), 1);
}

#[test]
fn no_price_outlives_an_event_that_was_over_when_it_took_another_in() {
    use domain::{Market, Status};
    let mut test = TestBook::open();
    list(&mut test, "north", "n-1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 24 + 400);
    let quote = test.quote("s-1", "bet365", Market::Moneyline, &[("Veldt T.", 130)]);
    assert_eq!(test.say("south", quote), ACCEPTED);
    let over = crate::test_book::score("n-1", Status::Final, 2, 1);
    assert_eq!(test.say("north", Body::Score(over)), ACCEPTED);
    list(&mut test, "south", "s-1", "Veldt T. v Castellane O.", 24);
    assert_eq!(test.events("mma").len(), 1);
    assert_eq!(test.odds("mma").len(), 0);
}
