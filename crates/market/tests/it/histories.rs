//! Random histories: steps of several feeds about a few events, chosen so that they interact.

use domain::{Market, Status};
use proptest::prelude::*;
use proptest::sample::select;

use crate::vocabulary::{LINES, PEOPLE, PRICES, WORDS};

pub(crate) const FEEDS: [&str; 3] = ["north", "south", "west"];
pub(crate) const BOOKMAKERS: [&str; 3] = ["bet365", "betfair", "fanduel"];
pub(crate) const SPORTS: [&str; 4] = ["mma", "american_football", "golf", "tennis"];
/// Each ref with its sport and the two people it usually means; the first two are easily confused.
pub(crate) const REFS: [(&str, &str, (usize, usize)); 4] = [
    ("r0", "mma", (0, 1)),
    ("r1", "mma", (0, 1)),
    ("r2", "american_football", (2, 3)),
    ("r3", "golf", (0, 0)),
];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Say {
        feed: &'static str,
        when: When,
        what: What,
    },
    /// Repeat the last message.
    Again,
    /// Repeat the last odds, with another time.
    Confirm(When),
    Wait(u64),
    Expire,
    /// Continue with a book read from the checkpoint of this one.
    Restart,
    /// Continue with a book built from all changes so far.
    Replay,
    Compare,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Unsaid,
    /// Milliseconds from now.
    Off(i64),
    /// The `ts` last sent.
    Last,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Event { at: usize, sport: Option<usize>, names: Names, hours: i64, competition: &'static str },
    Odds { at: usize, bookmaker: usize, market: Pick, group: Option<&'static str>, prices: Prices },
    Score { at: usize, body: Scored },
    Remove { at: usize },
    Beat { bookmaker: usize, sport: Option<usize> },
}

#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) pair: Option<(usize, usize)>,
    pub(crate) swapped: bool,
    pub(crate) spellings: (usize, usize),
    pub(crate) title: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Pick {
    /// A market that the ref's usual sport has.
    Usual(usize),
    Any(Market),
}

#[derive(Clone, Debug)]
pub(crate) enum Prices {
    None,
    /// The usual outcomes of the market with these spellings and prices, perhaps in the other order.
    Usual {
        spellings: (usize, usize),
        prices: (usize, usize),
        line: usize,
        draw: bool,
        turned: bool,
    },
    /// Any names.
    Odd(Vec<(&'static str, usize, Option<usize>)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Scored {
    pub(crate) status: Status,
    pub(crate) home: Option<i32>,
    pub(crate) away: Option<i32>,
    pub(crate) periods: usize,
    pub(crate) winner: Option<&'static str>,
    pub(crate) leaders: Vec<(usize, usize, usize)>,
    pub(crate) correction: bool,
}

fn a_name() -> impl Strategy<Value = &'static str> {
    let people: Vec<&'static str> = PEOPLE.into_iter().flatten().collect();
    prop_oneof![
        8 => select(people),
        1 => select(WORDS.to_vec()),
    ]
}

fn a_ref() -> impl Strategy<Value = usize> {
    prop_oneof![5 => Just(0_usize), 3 => Just(1), 2 => Just(2), 3 => Just(3)]
}

fn a_bookmaker() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(0_usize), 2 => Just(1), 1 => Just(2)]
}

fn an_event() -> impl Strategy<Value = What> {
    let names = (
        prop_oneof![6 => Just(None), 3 => Just(Some((0, 2))), 1 => Just(Some((2, 3)))],
        any::<bool>(),
        (0..3_usize, 0..3_usize),
        prop_oneof![4 => Just(0), 1 => 0..4_usize],
    )
        .prop_map(|(pair, swapped, spellings, title)| Names {
            pair,
            swapped,
            spellings,
            title,
        });
    let sport = prop_oneof![12 => Just(None), 1 => (0..SPORTS.len()).prop_map(Some)];
    // Certainly one event within 336 h in mma, 72 h in football, 120 h in golf; certainly two beyond 1080 h, 96 h,
    // 144 h.
    let hours =
        select(vec![-2_i64, 24, 24, 24, 25, 60, 97, 121, 145, 169, 350, 361, 362, 720, 1104, 1105]);
    let competition = prop_oneof![6 => Just("Card 12"), 1 => Just("Card \"12\"")];
    (a_ref(), sport, names, hours, competition).prop_map(
        |(at, sport, names, hours, competition)| What::Event {
            at,
            sport,
            names,
            hours,
            competition,
        },
    )
}

fn some_odds() -> impl Strategy<Value = What> {
    let market = prop_oneof![
        15 => (0..7_usize).prop_map(Pick::Usual),
        1 => select(Market::ALL.to_vec()).prop_map(Pick::Any),
    ];
    let group = prop_oneof![3 => Just(None), 1 => Just(Some("pair 1")), 1 => Just(Some("pair 2"))];
    let usual = (
        (0..3_usize, 0..3_usize),
        (0..PRICES.len(), 0..PRICES.len()),
        0..LINES.len(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(spellings, prices, line, draw, turned)| Prices::Usual {
            spellings,
            prices,
            line,
            draw,
            turned,
        });
    let odd = proptest::collection::vec(
        (a_name(), 0..PRICES.len(), proptest::option::of(0..LINES.len())),
        1..4,
    );
    let prices = prop_oneof![1 => Just(Prices::None), 10 => usual, 2 => odd.prop_map(Prices::Odd)];
    (a_ref(), a_bookmaker(), market, group, prices).prop_map(
        |(at, bookmaker, market, group, prices)| What::Odds {
            at,
            bookmaker,
            market,
            group,
            prices,
        },
    )
}

fn a_score() -> impl Strategy<Value = What> {
    let status = prop_oneof![
        2 => Just(Status::Scheduled),
        5 => Just(Status::Live),
        2 => Just(Status::Final),
    ];
    let points = || proptest::option::of(0..3_i32);
    let winner = proptest::option::weighted(0.4, a_name());
    let leaders = proptest::collection::vec((0..PEOPLE.len(), 0..3_usize, 0..4_usize), 0..4);
    (status, points(), points(), 0..3_usize, winner, leaders, any::<bool>(), a_ref()).prop_map(
        |(status, home, away, periods, winner, leaders, correction, at)| What::Score {
            at,
            body: Scored { status, home, away, periods, winner, leaders, correction },
        },
    )
}

fn a_time() -> impl Strategy<Value = When> {
    prop_oneof![
        6 => Just(When::Unsaid),
        3 => Just(When::Off(0)),
        4 => select(vec![-500_i64, -10_000, -60_000, -3_600_000]).prop_map(When::Off),
        1 => select(vec![4_000_i64, 5_000, 5_001]).prop_map(When::Off),
        2 => Just(When::Last),
    ]
}

pub(crate) fn a_step() -> impl Strategy<Value = Step> {
    let beat = (a_bookmaker(), proptest::option::of(0..3_usize))
        .prop_map(|(bookmaker, sport)| What::Beat { bookmaker, sport });
    let what = prop_oneof![
        10 => an_event(),
        14 => some_odds(),
        5 => a_score(),
        5 => a_ref().prop_map(|at| What::Remove { at }),
        6 => beat,
    ];
    // Few feeds and refs, used unevenly, so that their histories interact.
    let feed = prop_oneof![4 => Just(FEEDS[0]), 4 => Just(FEEDS[1]), 1 => Just(FEEDS[2])];
    let say = (feed, a_time(), what).prop_map(|(feed, when, what)| Step::Say { feed, when, what });
    let waits = vec![0_u64, 500, 5_000, 30_000, 90_000, 90_001, 3_600_000, 86_400_000, 262_800_000];
    prop_oneof![
        40 => say,
        2 => Just(Step::Again),
        4 => a_time().prop_map(Step::Confirm),
        8 => select(waits).prop_map(Step::Wait),
        3 => Just(Step::Expire),
        2 => Just(Step::Restart),
        1 => Just(Step::Replay),
        1 => Just(Step::Compare),
    ]
}
