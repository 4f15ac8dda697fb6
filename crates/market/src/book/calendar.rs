//! The listings of each feed by competition and start, for finding the events around one.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use domain::Timestamp;

use crate::book::event::FeedIx;
use crate::matching::competition_key;

/// Starts and refs, in order.
type Dates = BTreeSet<(Timestamp, Box<str>)>;

/// The listings of all feeds, by feed and competition.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    held: HashMap<(FeedIx, u64), Dates>,
}

impl Calendar {
    pub(super) fn insert(
        &mut self,
        (feed, reference): (FeedIx, &str),
        competition: &str,
        at: Timestamp,
    ) {
        let key = (feed, competition_key(competition));
        self.held.entry(key).or_default().insert((at, reference.into()));
    }

    pub(super) fn remove(
        &mut self,
        (feed, reference): (FeedIx, &str),
        competition: &str,
        at: Timestamp,
    ) {
        let key = (feed, competition_key(competition));
        if let Some(held) = self.held.get_mut(&key) {
            held.remove(&(at, reference.into()));
            if held.is_empty() {
                self.held.remove(&key);
            }
        }
    }

    /// Refs of a feed's listings in a competition that start around a time, the nearest on either side; at the same
    /// start those around a ref. At most `most` before it, and as many after.
    pub(super) fn around(
        &self,
        (feed, reference): (FeedIx, &str),
        competition: &str,
        (at, within): (Timestamp, Duration),
        most: usize,
    ) -> impl Iterator<Item = &str> {
        let held = self.held.get(&(feed, competition_key(competition)));
        let from = (at, reference.into());
        let near = move |(start, _): &&(Timestamp, Box<str>)| {
            u128::from(start.as_millis().abs_diff(at.as_millis())) <= within.as_millis()
        };
        let before = held.map(|held| held.range(..&from).rev().take(most));
        let before: Vec<_> = before.into_iter().flatten().take_while(near).collect();
        let after = held.map(|held| held.range(&from..).take(most));
        let after: Vec<_> = after.into_iter().flatten().take_while(near).collect();
        before.into_iter().chain(after).map(|(_, reference)| &**reference)
    }
}
