//! The order of arrival does not matter: whichever feed comes first, the same refs are one event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use linesman_market::{BatchMatcher, Ids};
use proptest::prelude::*;

use crate::test_book::{
    ACCEPTED, Partition, SALT, SUPERSEDED, TestBook, at, everything, partition, replayed, restored,
};
use crate::world::{Message, World, a_world};

fn told(messages: &[Message]) -> TestBook {
    let mut test = TestBook::open();
    test.now = at(0);
    for message in messages {
        let said = test.hear(message.feed, &message.body(&Arc::clone(&test.catalogue)));
        assert!(said == ACCEPTED || said == SUPERSEDED, "{said:?} {message:?}");
    }
    test
}

/// A world and its messages in another order.
fn shuffled() -> impl Strategy<Value = (World, Vec<Message>)> {
    a_world().prop_flat_map(|world| {
        let messages = Just(world.messages.clone()).prop_shuffle();
        (Just(world), messages)
    })
}

pub(crate) fn partition_of(matcher: &BatchMatcher) -> Partition {
    let mut groups: BTreeMap<_, BTreeSet<(String, String)>> = BTreeMap::new();
    for found in matcher.solve() {
        let listed = (found.feed.to_string(), found.reference.to_string());
        groups.entry(found.event).or_default().insert(listed);
    }
    groups.into_values().collect()
}

proptest! {
    #![proptest_config(crate::test_book::cases(96))]

    #[test]
    fn whatever_the_order_the_same_refs_are_one_event((world, messages) in shuffled()) {
        let test = told(&messages);
        prop_assert_eq!(&partition(&test.book, |_| true), &world.truth);
        let replay = replayed(&test.catalogue, Ids::Minted { salt: SALT }, &test.changes);
        prop_assert_eq!(&partition(&replay, |_| true), &world.truth);
        prop_assert_eq!(everything(&replay, test.now), everything(&test.book, test.now));
        prop_assert_eq!(partition(&restored(&test.book), |_| true), world.truth);
    }

    #[test]
    fn a_roll_is_the_same_whatever_the_order_it_is_called_in((world, messages) in shuffled()) {
        let test = TestBook::open();
        let called = |messages: &[Message]| {
            let mut matcher = BatchMatcher::new(Arc::clone(&test.catalogue));
            for message in messages.iter().filter(|message| message.last) {
                matcher.list(message.feed, &message.reference, message.listing(&test.catalogue));
            }
            matcher
        };
        let (one, other) = (called(&world.messages), called(&messages));
        prop_assert_eq!(one.solve(), other.solve());
        prop_assert_eq!(partition_of(&one), world.truth);
    }
}
