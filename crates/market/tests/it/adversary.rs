//! A feed that lies: it renames, reuses refs, swaps sides and floods the service with look-alikes. The other feeds'
//! events are the same as without it, and its anomalies are counted.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::message::{Body, FeedMessage, Fixture, Listing};
use linesman_market::{Change, DOUBTS_MAX, Oddity};
use proptest::prelude::*;

use crate::identity::list;
use crate::test_book::{ACCEPTED, TestBook, at, head_to_head, partition, remove};
use crate::world::{Message, World, a_world};

const EVIL: &str = "evil";

/// The adversary's next action, with the message of an honest feed that it uses.
#[derive(Clone, Copy, Debug)]
struct Action {
    reference: usize,
    /// The honest message whose listing it takes.
    of: prop::sample::Index,
    twist: usize,
    /// Offset in hundredths of the maximum distance within one event.
    off: i64,
    /// Position among the honest messages; beyond their end, after all of them.
    after: prop::sample::Index,
}

/// Maximum offset in hours for each season of the world, so that an event it lists twice is still one.
///
/// A feed that lists the same two with starts too far apart declares two events, and keeps apart the honest listings
/// of either.
const OFF_MAX: [i64; 4] = [68, 68, 4, 16];

fn an_action() -> impl Strategy<Value = Action> {
    (
        0..30_usize,
        any::<prop::sample::Index>(),
        0..6_usize,
        -100..=100_i64,
        any::<prop::sample::Index>(),
    )
        .prop_map(|(reference, of, twist, off, after)| Action {
            reference,
            of,
            twist,
            off,
            after,
        })
}

/// A typing error inside the longest word.
fn slipped(name: &str) -> String {
    let longest = name.split(' ').max_by_key(|word| word.len()).unwrap_or(name);
    if longest.len() < 5 || !longest.is_ascii() {
        return name.to_owned();
    }
    let slip: String = longest.char_indices().filter(|(at, _)| *at != 3).map(|(_, c)| c).collect();
    name.replacen(longest, &slip, 1)
}

fn twisted(message: &Message, action: Action, listing: Listing) -> Listing {
    let Fixture::HeadToHead { home, away } = &listing.fixture else { unreachable!() };
    let (home, away) = (home.to_string(), away.to_string());
    let (home, away) = match action.twist {
        0 => (home, away),
        1 => (away, home),
        2 => (slipped(&home), away),
        3 => (home, slipped(&away)),
        4 => (format!("{home} Jr."), away),
        _ => (home.to_uppercase(), format!("{away} (BRA)")),
    };
    let secs = message.hours * 3600 + action.off * 36 * OFF_MAX[message.season];
    Listing { commence_time: at(secs), fixture: head_to_head(&home, &away), ..listing }
}

/// All messages, with the adversary's at their positions.
fn said(
    world: &[Message],
    actions: &[Action],
    test: &TestBook,
) -> Vec<(&'static str, FeedMessage)> {
    let mut said = Vec::new();
    let actions_at =
        |at: usize| actions.iter().filter(move |action| action.after.index(world.len() + 1) == at);
    let last: Vec<&Message> = world.iter().filter(|message| message.last).collect();
    for place in 0..=world.len() {
        for action in actions_at(place) {
            let message = last[action.of.index(last.len())];
            let listing = twisted(message, *action, message.listing(&test.catalogue));
            let body = Body::Event { reference: action.reference.to_string().into(), listing };
            said.push((EVIL, FeedMessage { ts: None, fresh_for_s: None, body }));
        }
        if let Some(message) = world.get(place) {
            said.push((message.feed, message.body(&test.catalogue)));
        }
    }
    said
}

/// The honest messages, without those that first name another opponent.
///
/// A feed that first lists one of its events as another takes that one's place with its own listing, which may
/// meanwhile join a liar's duplicate and stay there: a known limit (docs/matching.md).
fn unmistaken(messages: &[Message]) -> Vec<Message> {
    let last_word = |of: &Message| {
        let same_ref =
            |m: &&Message| (m.feed, &m.reference, m.last) == (of.feed, &of.reference, true);
        messages.iter().find(same_ref).map(|last| last.names.clone())
    };
    messages.iter().filter(|said| last_word(said).as_ref() == Some(&said.names)).cloned().collect()
}

fn beset() -> impl Strategy<Value = (World, Vec<Message>, Vec<Action>)> {
    let actions = proptest::collection::vec(an_action(), 1..120);
    let world = a_world().prop_filter("somebody has to speak", |world| !world.messages.is_empty());
    (world, actions).prop_flat_map(|(world, actions)| {
        let messages = Just(unmistaken(&world.messages)).prop_shuffle();
        (Just(world), messages, Just(actions))
    })
}

proptest! {
    #![proptest_config(crate::test_book::cases(96))]

    #[test]
    fn the_others_events_are_what_they_are_without_it((world, messages, actions) in beset()) {
        let mut test = TestBook::open();
        for (feed, message) in said(&messages, &actions, &test) {
            prop_assert!(test.hear(feed, &message).is_ok());
        }
        prop_assert_eq!(partition(&test.book, |feed| feed != EVIL), world.truth);
        // One to one within a feed, whatever the adversary does.
        for refs in partition(&test.book, |feed| feed != EVIL) {
            let feeds: BTreeSet<&str> = refs.iter().map(|(feed, _)| feed.as_str()).collect();
            prop_assert_eq!(feeds.len(), refs.len());
        }
        prop_assert!(test.book.unsure().count() <= DOUBTS_MAX);
    }
}

#[test]
fn exact_duplicates_before_between_and_after_part_nobody() {
    for order in
        [["evil", "north", "south"], ["north", "evil", "south"], ["north", "south", "evil"]]
    {
        let mut test = TestBook::open();
        for feed in order {
            match feed {
                "evil" => {
                    for n in 0..300 {
                        list(
                            &mut test,
                            EVIL,
                            &format!("{n}"),
                            "Tomas Veldt v Oren Castellane",
                            n % 40,
                        );
                    }
                }
                "north" => list(&mut test, "north", "1", "Tomas Veldt v Oren Castellane", 0),
                _ => list(&mut test, "south", "1", "Castellane O. v Veldt T.", 39),
            }
        }
        assert!(test.are_one(("north", "1"), ("south", "1")), "{order:?}");
        assert_eq!(test.event_of("north", "1").refs.len(), 3);
        assert!(test.oddities.iter().filter(|o| **o == Oddity::Duplicate).count() >= 299);
        assert_eq!(test.events("mma").len(), 300);
    }
}

#[test]
fn what_it_lists_and_takes_back_hides_nobody() {
    let mut test = TestBook::open();
    list(&mut test, "north", "1", "Tomas Veldt v Oren Castellane", 10);
    for n in 0..300 {
        list(&mut test, EVIL, &format!("{n}"), "Tomas Veldt v Oren Castellane", 24);
        assert_eq!(test.say(EVIL, remove(&format!("{n}"))), ACCEPTED);
    }
    for n in 0..300 {
        list(&mut test, EVIL, &format!("x{n}"), &format!("Tomas Veldt v Oren Castellane{n}"), 24);
        assert_eq!(test.say(EVIL, remove(&format!("x{n}"))), ACCEPTED);
    }
    list(&mut test, "south", "1", "Veldt T. v Castellane O.", 24);
    assert!(test.are_one(("north", "1"), ("south", "1")));
}

#[test]
fn a_ref_that_means_another_event_every_minute_harms_only_itself() {
    let mut test = TestBook::open();
    let bouts =
        ["Tomas Veldt v Oren Castellane", "Milan Dray v Pavel Orsk", "Emil Roth v Jan Sever"];
    for (n, names) in bouts.iter().enumerate() {
        for feed in ["north", "south"] {
            list(&mut test, feed, &format!("{n}"), names, 24);
        }
    }
    let before = partition(&test.book, |feed| feed != EVIL);
    for n in 0..60_usize {
        test.wait(60);
        let (home, away) = bouts[n % 3].split_once(" v ").unwrap();
        let (home, away) = if n % 2 == 0 { (home, away) } else { (away, home) };
        assert_eq!(test.say(EVIL, test.bout("1", home, away, 24)), ACCEPTED);
        assert_eq!(partition(&test.book, |feed| feed != EVIL), before);
    }
    assert_eq!(test.oddities, [Oddity::ReusedRef; 59]);
    assert_eq!(test.events("mma").len(), 3, "and leaves nothing behind");
    let never = |(change, _): &(Change, _)| !matches!(change, Change::Merged { .. });
    assert!(test.changes.iter().all(never));
}

#[test]
fn sides_swapped_every_minute_turn_no_price() {
    use domain::Market;
    let mut test = TestBook::open();
    list(&mut test, "north", "1", "Tomas Veldt v Oren Castellane", 24);
    for n in 0..20 {
        test.wait(60);
        let names = ["Tomas Veldt v Oren Castellane", "Oren Castellane v Tomas Veldt"][n % 2];
        list(&mut test, EVIL, "1", names, 24);
        let price = 100 + i32::try_from(n).unwrap();
        let body = test.quote("1", "bet365", Market::Moneyline, &[("Veldt", price)]);
        assert_eq!(test.say(EVIL, body), ACCEPTED);
        let odds = test.odds("mma");
        assert_eq!(odds[0]["outcomes"][0]["name"], "Tomas Veldt");
        assert_eq!(odds[0]["outcomes"][0]["price"], price);
        assert_eq!(test.events("mma")[0]["home_team"], "Tomas Veldt");
    }
    assert_eq!(test.oddities, [Oddity::Turned; 19]);
}

#[test]
fn a_feed_that_renames_its_events_is_noted_and_brings_none_of_the_others_together() {
    let mut test = TestBook::open();
    list(&mut test, "north", "1", "Tomas Veldt v Oren Castellane", 24);
    list(&mut test, "north", "2", "Milan Dray v Pavel Orsk", 24);
    list(&mut test, "south", "1", "Veldt T. v Castellane O.", 24);
    // From one bout to the other, changing one participant at a time.
    for names in [
        "Tomas Veldt v Oren Castellane",
        "Tomas Veldt v Pavel Orsk",
        "Milan Dray v Pavel Orsk",
        "Milan Dray v Oren Castellane",
        "Tomas Veldt v Oren Castellane",
    ] {
        list(&mut test, EVIL, "1", names, 24);
    }
    assert!(!test.are_one(("north", "1"), ("north", "2")));
    assert!(test.are_one(("north", "1"), ("south", "1")));
    assert_eq!(test.oddities.len(), 4, "{:?}", test.oddities);
}

#[test]
fn an_alias_that_it_teaches_is_its_own_only() {
    let mut test = TestBook::open();
    list(&mut test, "north", "1", "Tomas Veldt v Michael Wendt", 24);
    list(&mut test, EVIL, "1", "Tomas Veldt v Mikey Wendt", 24);
    assert_eq!(test.book.aliases().len(), 1);
    // Another pair with these names, far from any session, is not joined because of it.
    list(&mut test, "west", "1", "Oren Castellane v Michael Wendt", 2400);
    list(&mut test, "south", "1", "Oren Castellane v Mikey Wendt", 2400 + 120);
    assert!(!test.are_one(("west", "1"), ("south", "1")));
}

#[test]
fn doubts_that_it_raises_have_a_bound() {
    let mut test = TestBook::open();
    list(&mut test, "north", "1", "Tomas Veldt v Oskar Wendt", 24);
    for n in 0..400 {
        let given = format!("{}olle", char::from(b'a' + u8::try_from(n % 14).unwrap()));
        let catalogue = Arc::clone(&test.catalogue);
        let listing = Listing {
            sport: catalogue.sport_id("mma").unwrap(),
            competition: "Any".into(),
            commence_time: at(24 * 3600),
            fixture: head_to_head("Tomas Veldt", &format!("{given}{n} Wendt")),
        };
        let body = Body::Event { reference: n.to_string().into(), listing };
        assert_eq!(test.say(EVIL, body), ACCEPTED);
    }
    assert!((1..=8).contains(&test.book.unsure().count()), "{}", test.book.unsure().count());
    list(&mut test, "south", "1", "Veldt T. v Wendt O.", 24);
    assert!(test.are_one(("north", "1"), ("south", "1")));
}
