//! An invented world with all known traps, listed by several feeds in different spellings. Which listings are one
//! event is known from its construction, not computed.

use std::collections::{BTreeMap, BTreeSet};

use domain::message::{Body, FeedMessage, Fixture, Listing};
use domain::{Catalogue, Timestamp};
use proptest::prelude::*;

use crate::test_book::{Partition, at};

pub(crate) const FEEDS: [&str; 4] = ["north", "south", "west", "east"];

/// Given name and surname. Some share a surname, some nearly the whole name.
const PEOPLE: [(&str, &str); 16] = [
    ("Jermell", "Charlo"),
    ("Jermall", "Charlo"),
    ("Marcell", "Veldt"),
    ("Marcall", "Veldt"),
    ("Alexander", "Zverev"),
    ("Mischa", "Zverev"),
    ("Francisco", "Cerúndolo"),
    ("Juan Manuel", "Cerúndolo"),
    ("John", "Isner"),
    ("Jannik", "Sinner"),
    ("Zhizhen", "Zhang"),
    ("Ze", "Zhang"),
    ("Warlley", "Alves"),
    ("Ramazan", "Emeev"),
    ("Christopher", "O'Connell"),
    ("Oren", "Castellane"),
];

const CLUBS: [&[&str]; 8] = [
    &["Los Angeles Rams", "LA Rams", "Rams", "LAR", "LA"],
    &["Los Angeles Chargers", "LA Chargers", "Chargers", "LAC", "LA"],
    &["New York Giants", "NY Giants", "Giants", "NYG"],
    &["New York Jets", "NY Jets", "Jets", "NYJ"],
    &["Seattle Seahawks", "Seattle", "Seahawks", "SEA"],
    &["San Francisco 49ers", "SF 49ers", "49ers", "SF"],
    &["Kansas City Chiefs", "KC Chiefs", "Chiefs", "KC"],
    &["Washington Commanders", "Washington", "Commanders", "WSH"],
];

/// A sport with the distance of its rounds, the usual deviation of feeds, and that of a wrong time, in hours.
#[derive(Clone, Copy, Debug)]
struct Season {
    sport: &'static str,
    apart: i64,
    jitter: i64,
    wrong: i64,
}

const SEASONS: [Season; 4] = [
    // Certainly one within 336 h, certainly two beyond 1080 h.
    Season { sport: "mma", apart: 1300, jitter: 100, wrong: 450 },
    Season { sport: "boxing", apart: 1300, jitter: 100, wrong: 450 },
    // 48 h and 372 h.
    Season { sport: "tennis", apart: 420, jitter: 20, wrong: 100 },
    // 72 h and 152 h.
    Season { sport: "american_football", apart: 168, jitter: 20, wrong: 110 },
];

/// The messages of the feeds, each with its position in its ref's history.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) messages: Vec<Message>,
    pub(crate) truth: Partition,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) feed: &'static str,
    pub(crate) reference: String,
    /// True for the last message of the ref.
    pub(crate) last: bool,
    pub(crate) season: usize,
    pub(crate) names: (String, String),
    pub(crate) hours: i64,
    pub(crate) ts: i64,
}

impl Message {
    pub(crate) fn listing(&self, catalogue: &Catalogue) -> Listing {
        let (home, away) = &self.names;
        Listing {
            sport: catalogue.sport_id(SEASONS[self.season].sport).unwrap(),
            competition: "Any".into(),
            commence_time: at(self.hours * 3600),
            fixture: Fixture::HeadToHead { home: home.as_str().into(), away: away.as_str().into() },
        }
    }

    pub(crate) fn body(&self, catalogue: &Catalogue) -> FeedMessage {
        let listing = self.listing(catalogue);
        let body = Body::Event { reference: self.reference.as_str().into(), listing };
        FeedMessage { ts: Some(self.stamp()), fresh_for_s: None, body }
    }

    fn stamp(&self) -> Timestamp {
        at(self.ts - 1000)
    }
}

/// A meeting: season, round, the two participants.
type Meeting = (usize, i64, (usize, usize));

/// A feed's listing of a meeting: whether there is one, its spellings of the two, sides, deviation in hours, and a
/// wrong first listing.
#[derive(Clone, Debug)]
struct Telling {
    listed: bool,
    forms: (usize, usize),
    turned: bool,
    off: i64,
    first: First,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    Right,
    /// A start that is far too late.
    Late,
    /// Another opponent.
    Other,
}

fn form(season: usize, who: usize, form: usize) -> String {
    if SEASONS[season].sport == "american_football" {
        let forms = CLUBS[who % CLUBS.len()];
        return forms[form % forms.len()].to_owned();
    }
    let (given, surname) = PEOPLE[who];
    let initials: String =
        given.split(' ').map(|word| format!("{}.", first_letter(word))).collect();
    // One of the two Zhangs is clipped, and the other is already short.
    let initials = if surname == "Zhang" {
        if given == "Ze" { "Ze".into() } else { "Zh.".into() }
    } else {
        initials
    };
    let plain = deunicode(surname);
    match form % 8 {
        0 => format!("{given} {surname}"),
        1 => format!("{plain} {initials}"),
        2 => format!("{initials} {plain}"),
        3 => format!("{surname}, {given}"),
        4 => format!("{given} {plain}").to_uppercase(),
        5 => format!("{given} \"Boo\" {surname}"),
        6 => format!("{given} {plain} (USA)"),
        _ => format!("{plain} {given}"),
    }
}

fn first_letter(word: &str) -> char {
    word.chars().next().unwrap()
}

fn deunicode(text: &str) -> String {
    text.replace('ú', "u")
}

fn a_telling() -> impl Strategy<Value = Telling> {
    let first =
        prop_oneof![6 => Just(First::Right), 1 => Just(First::Late), 1 => Just(First::Other)];
    (proptest::bool::weighted(0.75), (0..8_usize, 0..8_usize), any::<bool>(), -100..=100_i64, first)
        .prop_map(|(listed, forms, turned, off, first)| Telling {
            listed,
            forms,
            turned,
            off,
            first,
        })
}

pub(crate) fn a_world() -> impl Strategy<Value = World> {
    // Some pairs meet repeatedly.
    let pair = prop_oneof![2 => (0..16_usize, 0..16_usize), 1 => (0..2_usize, Just(4_usize))];
    let meeting = (0..SEASONS.len(), 0..3_i64, pair);
    let meetings = proptest::collection::vec(meeting, 1..24);
    let tellings = proptest::collection::vec(proptest::collection::vec(a_telling(), 4), 24);
    (meetings, tellings).prop_map(|(meetings, tellings)| make(&meetings, &tellings))
}

/// Nobody meets himself or two people with one surname at a time, and the same two meet once in a round.
fn sensible(meetings: &[Meeting]) -> Vec<Meeting> {
    let mut kept: Vec<Meeting> = Vec::new();
    for (season, round, (one, other)) in meetings {
        let clubs = SEASONS[*season].sport == "american_football";
        let who = |at: usize| if clubs { at % CLUBS.len() } else { at };
        let (one, other) = (who(*one).min(who(*other)), who(*one).max(who(*other)));
        // Twins against one opponent at one time differ by one typing error; so do clubs of one city.
        let alike = |a: usize, b: usize| {
            if clubs { a / 2 == b / 2 && a < 4 } else { PEOPLE[a].1 == PEOPLE[b].1 }
        };
        let near = |(s, r, (a, b)): &Meeting| {
            let same_time = s == season && r == round;
            same_time
                && [(one, other), (other, one)].iter().any(|(x, y)| {
                    alike(*x, *a) && alike(*y, *b)
                        || (x, y) == (a, b)
                        || (x == a && alike(*y, *b))
                        || (y == b && alike(*x, *a))
                })
        };
        if !alike(one, other) && one != other && !kept.iter().any(near) {
            kept.push((*season, *round, (one, other)));
        }
    }
    kept
}

fn make(meetings: &[Meeting], tellings: &[Vec<Telling>]) -> World {
    let mut messages = Vec::new();
    let mut groups: BTreeMap<usize, BTreeSet<(String, String)>> = BTreeMap::new();
    for (n, (meeting, tellings)) in sensible(meetings).iter().zip(tellings).enumerate() {
        let (season, round, (one, other)) = *meeting;
        let Season { apart, jitter, wrong, .. } = SEASONS[season];
        for (feed, telling) in FEEDS.iter().zip(tellings).filter(|(_, telling)| telling.listed) {
            let reference = format!("{}{n}", first_letter(feed));
            let pair = |other: usize| {
                let names =
                    (form(season, one, telling.forms.0), form(season, other, telling.forms.1));
                if telling.turned { (names.1, names.0) } else { names }
            };
            let said = |last: bool, names: (String, String), hours: i64| Message {
                feed,
                reference: reference.clone(),
                last,
                season,
                names,
                hours,
                ts: i64::from(last),
            };
            let hours = 24 + round * apart + telling.off * jitter / 100;
            match telling.first {
                First::Right => {}
                First::Late => messages.push(said(false, pair(other), hours + wrong)),
                First::Other => messages.push(said(false, pair((other + 5) % 8), hours)),
            }
            messages.push(said(true, pair(other), hours));
            groups.entry(n).or_default().insert(((*feed).to_owned(), reference.clone()));
        }
    }
    World { messages, truth: groups.into_values().collect() }
}
