//! The sport keys of a publication, and the events of each (V9).

use std::collections::HashMap;
use std::sync::OnceLock;

use domain::{SportId, Status};
use market::Snapshot;

use crate::answers::FragmentCache;
use crate::v4::wire::V4;
use crate::v4::wire::event::EventText;
use crate::v4::wire::fragment::{Filter, OddsFragment};

/// Data of one publication for `/v4`, built at the first request.
#[derive(Debug, Default)]
pub(crate) struct Publication {
    index: OnceLock<Index>,
    pub(super) fragments: FragmentCache<Filter, OddsFragment>,
}

impl Publication {
    pub(super) fn index(&self, snapshot: &Snapshot, wire: V4) -> &Index {
        self.index.get_or_init(|| Index::new(snapshot, wire))
    }

    /// Memory of the cached fragments, for metrics.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.fragments.kept_bytes()
    }
}

/// The sport keys of a publication.
#[derive(Debug, Default)]
pub(crate) struct Index(HashMap<Box<str>, KeyEvents>);

/// The events of one sport key.
#[derive(Debug)]
pub(super) struct KeyEvents {
    pub(super) sport: SportId,
    /// Positions in the sport, in order.
    pub(super) events: Vec<u32>,
    /// True if one of them is scheduled or live.
    pub(super) active: bool,
}

impl Index {
    fn new(snapshot: &Snapshot, wire: V4) -> Self {
        let mut keys: HashMap<Box<str>, KeyEvents> = HashMap::new();
        for (sport, _) in snapshot.catalogue().sports() {
            for (at, event) in (0..).zip(&snapshot.sport(sport).events) {
                let key = EventText::of(snapshot, wire, event).sport_key();
                let open = event.status != Status::Final;
                match keys.get_mut(key) {
                    Some(held) if held.sport == sport => {
                        held.events.push(at);
                        held.active |= open;
                    }
                    // If two of our sports have the same key, the first gets it.
                    Some(_) => {}
                    None => {
                        let events = KeyEvents { sport, events: vec![at], active: open };
                        keys.insert(key.into(), events);
                    }
                }
            }
        }
        Self(keys)
    }

    pub(crate) fn sport_of(&self, key: &str) -> Option<SportId> {
        self.0.get(key).map(|events| events.sport)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = (&str, &KeyEvents)> {
        self.0.iter().map(|(key, events)| (&**key, events))
    }

    /// True if an event has this key.
    pub(super) fn contains(&self, key: &str, event: usize) -> bool {
        let at = u32::try_from(event).unwrap_or(u32::MAX);
        self.0.get(key).is_some_and(|held| held.events.binary_search(&at).is_ok())
    }

    pub(super) fn events_of(&self, key: &str) -> &[u32] {
        self.0.get(key).map_or(&[], |held| &held.events)
    }
}
