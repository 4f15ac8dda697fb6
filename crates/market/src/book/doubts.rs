//! Pairs of events that may be one, indexed by both events.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

use domain::EventId;

use crate::book::settle::ordered;
use crate::matching::{Doubt, Evidence, Hashed};

/// Two events, the smaller id first.
pub(crate) type Pair = (EventId, EventId);

/// All possible duplicates, with the reason.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    held: BTreeMap<Pair, (Doubt, Evidence)>,
    /// Partners by event: every listing looks up its event's partners, and nearly all have none.
    partners: HashMap<EventId, BTreeSet<EventId>, BuildHasherDefault<Hashed>>,
}

impl Doubts {
    pub(crate) fn insert(&mut self, (one, other): Pair, why: (Doubt, Evidence)) {
        self.held.insert(ordered(one, other), why);
        self.partners.entry(one).or_default().insert(other);
        self.partners.entry(other).or_default().insert(one);
    }

    pub(crate) fn remove(&mut self, (one, other): Pair) -> Option<(Doubt, Evidence)> {
        for (id, partner) in [(one, other), (other, one)] {
            if let Some(partners) = self.partners.get_mut(&id) {
                partners.remove(&partner);
                if partners.is_empty() {
                    self.partners.remove(&id);
                }
            }
        }
        self.held.remove(&ordered(one, other))
    }

    /// The possible duplicates of an event.
    pub(crate) fn of(&self, event: EventId) -> impl Iterator<Item = EventId> {
        self.partners.get(&event).into_iter().flatten().copied()
    }

    pub(crate) fn contains(&self, one: EventId, other: EventId) -> bool {
        self.held.contains_key(&ordered(one, other))
    }

    pub(crate) fn why(&self, one: EventId, other: EventId) -> Option<Doubt> {
        self.held.get(&ordered(one, other)).map(|(doubt, _)| *doubt)
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pair, (Doubt, Evidence))> {
        self.held.iter().map(|(pair, why)| (*pair, *why))
    }

    /// Forgets an event that was removed.
    pub(crate) fn drop_event(&mut self, id: EventId) {
        let partners: Vec<EventId> = self.of(id).collect();
        for partner in partners {
            self.remove((id, partner));
        }
    }

    /// Moves the doubts about the younger event to the elder.
    pub(crate) fn follow_merge(&mut self, elder: EventId, younger: EventId) {
        let partners: Vec<EventId> = self.of(younger).collect();
        for partner in partners {
            let why = self.remove((younger, partner));
            if let Some(why) = why.filter(|_| partner != elder && !self.contains(elder, partner)) {
                self.insert((elder, partner), why);
            }
        }
    }
}
