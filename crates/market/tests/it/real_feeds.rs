//! Cases from held-out recordings of real feeds, with invented names: sources that date a whole week or tournament by
//! its first day, players under another name, titles of common words, remarks in names. Each comes with cases that
//! must not be joined, and is run by the batch matcher and by the book in several orders.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::Timestamp;
use domain::message::{Body, FeedMessage, Fixture, Listing, OddsBody};
use linesman_market::{Alias, BatchMatcher, Meaning, Operation};

use crate::test_book::{ACCEPTED, Partition, TestBook, head_to_head, outcome, partition};

/// A feed's listing: feed, ref, competition, start, and the sides ("A v B") or the title.
type Line<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// Listings of one sport.
struct Slate<'a> {
    sport: &'a str,
    lines: Vec<Line<'a>>,
    /// Feed, ref and players of a tournament.
    fields: Vec<(&'a str, &'a str, Vec<String>)>,
}

impl<'a> Slate<'a> {
    fn new(sport: &'a str, lines: &[Line<'a>]) -> Self {
        Self { sport, lines: lines.to_vec(), fields: Vec::new() }
    }

    fn with(mut self, lines: &[Line<'a>]) -> Self {
        self.lines.extend(lines);
        self
    }

    fn field(mut self, feed: &'a str, reference: &'a str, players: &[String]) -> Self {
        self.fields.push((feed, reference, players.to_vec()));
        self
    }

    fn listing(&self, test: &TestBook, (.., competition, start, who): Line<'_>) -> Listing {
        let fixture = match who.split_once(" v ") {
            Some((home, away)) => head_to_head(home, away),
            None => Fixture::Field { title: who.into() },
        };
        let commence_time = Timestamp::parse(&format!("{start}:00Z")).unwrap();
        let sport = test.sport(self.sport);
        Listing { sport, competition: competition.into(), commence_time, fixture }
    }

    /// The refs that the book joins, with the listings in an order that depends on the seed.
    fn heard(&self, seed: usize) -> Partition {
        let mut test = TestBook::open();
        let count = self.lines.len();
        let mut order: Vec<usize> = (0..count).collect();
        // Steps that are coprime with the count reach all listings.
        let step = [1, 5, 7, 11, 13][seed % 5];
        if step == 1 || !count.is_multiple_of(step) {
            order = (0..count).map(|at| (at * step + seed) % count).collect();
        }
        for at in order {
            let line = self.lines[at];
            let listing = self.listing(&test, line);
            let body = Body::Event { reference: line.1.into(), listing };
            assert_eq!(
                test.hear(line.0, &FeedMessage { ts: None, fresh_for_s: None, body }),
                ACCEPTED
            );
        }
        for (feed, reference, players) in &self.fields {
            let outcomes = players.iter().map(|name| outcome(name, 1000, None)).collect();
            let body = Body::Odds(OddsBody {
                reference: (*reference).into(),
                bookmaker: test.bookmaker("bet365"),
                market: domain::Market::Outright,
                group: None,
                outcomes,
            });
            assert_eq!(
                test.hear(feed, &FeedMessage { ts: None, fresh_for_s: None, body }),
                ACCEPTED
            );
        }
        partition(&test.book, |_| true)
    }

    fn matched(&self) -> Partition {
        let test = TestBook::open();
        let mut matcher = BatchMatcher::new(Arc::clone(&test.catalogue));
        for line in &self.lines {
            matcher.list(line.0, line.1, self.listing(&test, *line));
        }
        for (feed, reference, players) in &self.fields {
            matcher.note_players(feed, reference, players.iter().map(String::as_str));
        }
        crate::order::partition_of(&matcher)
    }

    /// Checks which refs are one event, given as "feed ref"; all others must be alone.
    fn joins(&self, together: &[&[&str]]) {
        self.joins_in_orders(together, 5);
    }

    fn joins_in_orders(&self, together: &[&[&str]], orders: usize) {
        let named = |listed: &str| {
            let (feed, reference) = listed.split_once(' ').unwrap();
            (feed.to_owned(), reference.to_owned())
        };
        let mut expected: Partition = together
            .iter()
            .map(|refs| refs.iter().map(|listed| named(listed)).collect::<BTreeSet<_>>())
            .collect();
        for (feed, reference, ..) in &self.lines {
            let one = ((*feed).to_owned(), (*reference).to_owned());
            if !expected.iter().any(|refs| refs.contains(&one)) {
                expected.insert(BTreeSet::from([one]));
            }
        }
        assert_eq!(self.matched(), expected, "the batch matcher");
        for seed in 0..orders {
            assert_eq!(self.heard(seed), expected, "the book, order {seed}");
        }
    }
}

/// A week of games: one source dates them exactly, the other by the first day of the week.
const WEEK: [Line<'_>; 12] = [
    ("exact", "e1", "NFL", "2026-09-13T17:00", "Bills v Jets"),
    ("exact", "e2", "NFL", "2026-09-13T17:00", "Bears v Lions"),
    ("exact", "e3", "NFL", "2026-09-13T20:25", "Rams v Seahawks"),
    ("exact", "e4", "NFL", "2026-09-13T20:25", "Chiefs v Broncos"),
    ("exact", "e5", "NFL", "2026-09-11T00:20", "Eagles v Cowboys"),
    ("exact", "e6", "NFL", "2026-09-15T00:15", "Ravens v Steelers"),
    ("weekly", "w1", "NFL Week 1", "2026-09-09T00:00", "New York Jets v Buffalo Bills"),
    ("weekly", "w2", "NFL Week 1", "2026-09-09T00:00", "Chicago Bears v Detroit Lions"),
    ("weekly", "w3", "NFL Week 1", "2026-09-09T00:00", "LA Rams v Seattle Seahawks"),
    ("weekly", "w4", "NFL Week 1", "2026-09-09T00:00", "Kansas City Chiefs v Denver Broncos"),
    ("weekly", "w5", "NFL Week 1", "2026-09-09T00:00", "Philadelphia Eagles v Dallas Cowboys"),
    ("weekly", "w6", "NFL Week 1", "2026-09-09T00:00", "Baltimore Ravens v Pittsburgh Steelers"),
];
const WEEK_JOINED: [&[&str]; 6] = [
    &["exact e1", "weekly w1"],
    &["exact e2", "weekly w2"],
    &["exact e3", "weekly w3"],
    &["exact e4", "weekly w4"],
    &["exact e5", "weekly w5"],
    &["exact e6", "weekly w6"],
];

#[test]
fn a_week_dated_by_its_first_day_is_the_week_of_the_exact_source() {
    Slate::new("american_football", &WEEK).joins(&WEEK_JOINED);
}

#[test]
fn a_club_that_plays_again_within_the_week_plays_somebody_else() {
    // The next games of three of the clubs, on the following Sunday.
    let next = [
        ("exact", "n1", "NFL", "2026-09-20T17:00", "Steelers v Jets"),
        ("weekly", "x1", "NFL Week 2", "2026-09-16T00:00", "Baltimore Ravens v Buffalo Bills"),
    ];
    Slate::new("american_football", &WEEK).with(&next).joins(&WEEK_JOINED);
}

#[test]
fn a_rematch_in_the_next_week_dated_by_its_first_day_is_not_the_game_before() {
    // One source lists only the first meeting, the other only the second.
    let mut slate = Slate::new("american_football", &WEEK);
    slate.lines.retain(|line| line.1 != "w1");
    let rematch =
        [("weekly", "x1", "NFL Week 2", "2026-09-17T00:00", "Buffalo Bills v New York Jets")];
    slate.with(&rematch).joins(&WEEK_JOINED[1..]);
}

#[test]
fn without_other_games_to_show_it_five_days_are_too_many() {
    let few = [
        ("exact", "e6", "NFL", "2026-09-15T00:15", "Ravens v Steelers"),
        (
            "weekly",
            "w6",
            "NFL Week 1",
            "2026-09-09T00:00",
            "Baltimore Ravens v Pittsburgh Steelers",
        ),
    ];
    Slate::new("american_football", &few).joins(&[]);
}

/// A tournament: one source dates it by the day, the other by the first day.
const DRAW: [Line<'_>; 10] = [
    ("daily", "d1", "Veldt Open", "2026-02-02T00:00", "Marek Orsk v Tomas Brandt"),
    ("daily", "d2", "Veldt Open", "2026-02-02T00:00", "Lorin Castellane v Jan Hofer"),
    ("daily", "d3", "Veldt Open", "2026-02-03T00:00", "Nils Aker v Oren Zabel"),
    ("daily", "d4", "Veldt Open", "2026-02-05T00:00", "Marek Orsk v Nils Aker"),
    ("daily", "d5", "Veldt Open", "2026-02-08T00:00", "Marek Orsk v Lorin Castellane"),
    ("first", "f1", "Veldtheim", "2026-02-02T00:00", "Orsk M. v Brandt T."),
    ("first", "f2", "Veldtheim", "2026-02-02T00:00", "Castellane L. v Hofer J."),
    ("first", "f3", "Veldtheim", "2026-02-02T00:00", "Zabel O. v Aker N."),
    ("first", "f4", "Veldtheim", "2026-02-02T00:00", "Aker N. v Orsk M."),
    ("first", "f5", "Veldtheim", "2026-02-02T00:00", "Castellane L. v Orsk M."),
];
const DRAW_JOINED: [&[&str]; 5] = [
    &["daily d1", "first f1"],
    &["daily d2", "first f2"],
    &["daily d3", "first f3"],
    &["daily d4", "first f4"],
    &["daily d5", "first f5"],
];

#[test]
fn a_tournament_dated_by_its_first_day_is_joined_match_by_match() {
    Slate::new("tennis", &DRAW).joins(&DRAW_JOINED);
}

#[test]
fn a_rematch_nine_days_later_at_another_tournament_is_another_match() {
    // One source lists only the first meeting, the other only the second.
    let mut slate = Slate::new("tennis", &DRAW);
    slate.lines.retain(|line| line.1 != "f1");
    let rematch = [("first", "g1", "Orskburg", "2026-02-11T00:00", "Orsk M. v Brandt T.")];
    slate.with(&rematch).joins(&DRAW_JOINED[1..]);
}

#[test]
fn without_other_matches_to_show_it_nine_days_are_too_many() {
    let two = [
        ("daily", "d1", "Veldt Open", "2026-02-02T00:00", "Marek Orsk v Tomas Brandt"),
        ("first", "g1", "Orskburg", "2026-02-11T00:00", "Orsk M. v Brandt T."),
    ];
    Slate::new("tennis", &two).joins(&[]);
}

/// The tournament as listed by two sources that date it by the day.
fn draw_by_day() -> Slate<'static> {
    let mut slate = Slate::new("tennis", &DRAW);
    for at in 0..5 {
        slate.lines[at + 5].3 = slate.lines[at].3;
    }
    slate
}

/// One further match of the tournament, under these names.
fn draw_and<'a>(ours: &'a str, theirs: &'a str) -> Slate<'a> {
    let mut slate: Slate<'a> = draw_by_day();
    slate.lines.extend([
        ("daily", "d6", "Veldt Open", "2026-02-04T00:00", ours),
        ("first", "f6", "Veldtheim", "2026-02-04T11:00", theirs),
    ]);
    slate
}

#[test]
fn brothers_who_meet_the_same_opponent_in_one_tournament_stay_two() {
    // Dated by the first day, nothing shows which of the two it is.
    let later = [
        ("daily", "d6", "Veldt Open", "2026-02-04T00:00", "Kai Lindqvist v Tomas Brandt"),
        ("first", "f6", "Veldtheim", "2026-02-02T00:00", "Lindqvist J.E. v Brandt T."),
    ];
    Slate::new("tennis", &DRAW).with(&later).joins(&DRAW_JOINED);
    let next_days = [
        ("daily", "d6", "Veldt Open", "2026-02-04T00:00", "Kai Lindqvist v Tomas Brandt"),
        ("first", "f6", "Veldtheim", "2026-02-06T00:00", "Lindqvist J.E. v Brandt T."),
    ];
    draw_by_day().with(&next_days).joins(&DRAW_JOINED);
}

fn joined_and<'a>(more: &'a [&'a str]) -> Vec<&'a [&'a str]> {
    DRAW_JOINED.iter().copied().chain([more]).collect()
}

#[test]
fn a_player_under_another_given_name_or_a_married_name_is_known_by_the_match() {
    let joined = joined_and(&["daily d6", "first f6"]);
    for (ours, theirs) in [
        ("Kate Lindqvist v Tomas Brandt", "Ekaterina Lindqvist v Brandt T."),
        ("Kate Lindqvist v Tomas Brandt", "Brandt T. v Lindqvist E."),
        ("Ekaterina Lindqvist v Tomas Brandt", "Ekaterina Sandahl v Tomas Brandt"),
    ] {
        draw_and(ours, theirs).joins(&joined);
    }
}

#[test]
fn with_a_namesake_in_the_draw_another_given_name_is_another_player() {
    let sister =
        [("daily", "d7", "Veldt Open", "2026-02-03T00:00", "Ekaterina Lindqvist v Jan Hofer")];
    // The book joins for good, so the sister must be known by then.
    let mut slate = Slate::new("tennis", &sister);
    slate.lines.extend(draw_and("Kate Lindqvist v Tomas Brandt", "Brandt T. v Lindqvist E.").lines);
    slate.joins_in_orders(&DRAW_JOINED, 1);
}

#[test]
fn another_opponent_a_pair_or_a_qualifier_is_not_a_player_under_another_name() {
    for (ours, theirs) in [
        ("Kate Lindqvist v Tomas Brandt", "Maria Hofstad v Brandt T."),
        ("Kate Lindqvist v Tomas Brandt", "Ekaterina Lindqvist v Zabel O."),
        ("Kate Lindqvist v Tomas Brandt", "E. Lindqvist/M. Orsk v T. Brandt/J. Hofer"),
        ("Kate Lindqvist Jr. v Tomas Brandt", "Ekaterina Lindqvist Sr. v Brandt T."),
    ] {
        draw_and(ours, theirs).joins(&DRAW_JOINED);
    }
    let qualifying = [
        ("daily", "d6", "Veldt Open", "2026-02-04T00:00", "Kate Lindqvist v Tomas Brandt"),
        ("first", "q6", "Veldtheim Q", "2026-02-04T00:00", "Lindqvist E. v Brandt T."),
    ];
    draw_by_day().with(&qualifying).joins(&DRAW_JOINED);
}

fn players(from: usize, count: usize, turned: bool) -> Vec<String> {
    let name = |n: usize| {
        let (given, surname) = (format!("Given{}", letters(n)), format!("Sur{}", letters(n)));
        if turned { format!("{surname}, {given}") } else { format!("{given} {surname}") }
    };
    (from..from + count).map(name).collect()
}

fn letters(n: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
    [letter(n / 26), letter(n), letter(n / 7)].iter().collect()
}

#[test]
fn a_title_of_common_words_is_the_weeks_tournament_with_or_without_more_of_them() {
    let open = [
        ("one", "a", "PGA TOUR", "2026-07-16T06:00", "The Open"),
        ("two", "b", "Golf", "2026-07-16T00:00", "The Open Championship"),
        ("three", "c", "Golf", "2026-07-19T18:00", "The 154th Open Winner"),
        (
            "four",
            "d",
            "Golf",
            "2026-07-16T05:35",
            "2026 Open Championship (Royal Birkdale) - Outright Betting to Win",
        ),
        // The previous week, dated by its last day.
        ("five", "e", "Golf", "2026-07-12T18:00", "Orsk Scottish Open"),
    ];
    Slate::new("golf", &open).joins(&[&["one a", "two b", "three c", "four d"]]);
}

#[test]
fn the_womens_and_the_seniors_open_are_not_the_open() {
    let opens = [
        ("one", "a", "Golf", "2026-07-30T06:00", "The Open"),
        ("two", "b", "Golf", "2026-07-30T00:00", "Women's Open"),
        ("three", "c", "Golf", "2026-07-30T00:00", "The Senior Open Championship"),
        ("four", "d", "LPGA", "2026-07-30T06:00", "Open"),
    ];
    // A source that says so in the competition means the women's event.
    let mut slate = Slate::new("golf", &opens[1..]);
    slate.joins(&[&["two b", "four d"]]);
    slate.lines = opens[..3].to_vec();
    slate.joins(&[]);
}

#[test]
fn a_sponsors_title_is_known_by_the_week_and_the_field() {
    let titles = [
        ("one", "a", "PGA TOUR", "2026-07-16T06:00", "The Open"),
        ("two", "b", "Golf", "2026-07-16T00:00", "Northbank British Open"),
    ];
    let slate = || Slate::new("golf", &titles).field("one", "a", &players(0, 40, false));
    slate().field("two", "b", &players(10, 30, true)).joins(&[&["one a", "two b"]]);
    // A tournament of another tour in that week.
    slate().field("two", "b", &players(100, 40, true)).joins(&[]);
    // Without fields the match is unknown.
    Slate::new("golf", &titles).joins(&[]);
    // Many players of this week also played last week.
    let mut before = slate().field("two", "b", &players(10, 30, true));
    before.lines[1].3 = "2026-07-12T18:00";
    before.joins(&[]);
}

#[test]
fn a_remark_in_the_field_of_a_name_is_not_the_name() {
    let bouts = [
        ("one", "a", "Boxing", "2026-11-15T01:00", "Mika Orsk v Jan Brandt"),
        (
            "two",
            "b",
            "Boxing",
            "2026-11-15T00:00",
            "Mika Orsk (exhibition, wagers void if it goes the distance and/or rounds are cut) v Brandt, Jan",
        ),
        (
            "three",
            "c",
            "Boxing",
            "2026-11-15T00:00",
            "Orsk M. - eight rounds of two minutes each v Jan Brandt; not on the main card",
        ),
    ];
    Slate::new("boxing", &bouts).joins(&[&["one a", "two b", "three c"]]);
    // Two that differ by more than the remark are different.
    let others = [
        bouts[1],
        ("one", "x", "Boxing", "2026-11-15T01:00", "Mika Orsk v Nils Hofer (exhibition)"),
    ];
    Slate::new("boxing", &others).joins(&[]);
}

#[test]
fn an_operator_who_says_that_two_names_are_two_people_is_believed() {
    let slate = draw_and("Kate Lindqvist v Tomas Brandt", "Ekaterina Lindqvist v Brandt T.");
    let mut test = TestBook::open();
    for line in slate.lines.iter().filter(|line| !["d6", "f6"].contains(&line.1)) {
        let body = Body::Event { reference: line.1.into(), listing: slate.listing(&test, *line) };
        assert_eq!(test.hear(line.0, &FeedMessage { ts: None, fresh_for_s: None, body }), ACCEPTED);
    }
    let alias = Alias {
        sport: "tennis".into(),
        feed: None,
        name: "Kate Lindqvist".into(),
        meaning: Meaning::IsNot("Ekaterina Lindqvist".into()),
    };
    test.operate(&Operation::Teach { aliases: vec![alias] }).unwrap();
    for line in slate.lines.iter().filter(|line| ["d6", "f6"].contains(&line.1)) {
        let body = Body::Event { reference: line.1.into(), listing: slate.listing(&test, *line) };
        assert_eq!(test.hear(line.0, &FeedMessage { ts: None, fresh_for_s: None, body }), ACCEPTED);
    }
    assert!(!test.are_one(("daily", "d6"), ("first", "f6")));
}
