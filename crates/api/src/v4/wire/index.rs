//! Which sport keys a publication has, and which events are of each (V9).

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use domain::{Shape, SportId, Status};
use market::Snapshot;
use market::snapshot::EventRow;

use crate::answers::FragmentCache;
use crate::v4::selection::{Selection, SportFilter, SportSet};
use crate::v4::wire::event::EventText;
use crate::v4::wire::fragment::{Filter, OddsFragment};
use crate::v4::wire::{Source, V4};

/// How many events that have not started `upcoming` shows.
const UPCOMING: usize = 8;

/// What is made of one publication for `/v4`, when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Publication {
    index: OnceLock<Index>,
    pub(super) fragments: FragmentCache<Filter, OddsFragment>,
}

impl Publication {
    pub(super) fn index(&self, snapshot: &Snapshot, wire: V4) -> &Index {
        self.index.get_or_init(|| Index::new(snapshot, wire))
    }

    /// For an operator to watch.
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
    /// Whether one of them is scheduled or live.
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
                    // Two sports of ours with one key: the first has it.
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

    /// Whether an event is of a key.
    pub(super) fn contains(&self, key: &str, event: usize) -> bool {
        let at = u32::try_from(event).unwrap_or(u32::MAX);
        self.0.get(key).is_some_and(|held| held.events.binary_search(&at).is_ok())
    }

    fn events_of(&self, key: &str) -> &[u32] {
        self.0.get(key).map_or(&[], |held| &held.events)
    }
}

/// The events that a selection is about, in order: those that a filter of the answer lets through.
pub(super) fn choose<'a>(
    source: &Source<'a>,
    selection: &Selection,
    wanted: impl Fn(&EventRow) -> bool,
) -> Vec<(SportId, usize, &'a EventRow)> {
    let snapshot = source.snapshot;
    let wanted = |row: &EventRow| {
        selection.from.is_none_or(|from| row.commence_time >= from)
            && selection.to.is_none_or(|to| row.commence_time <= to)
            && wanted(row)
    };
    let row = |sport: SportId, at: usize| {
        let row = snapshot.sport(sport).events.get(at)?;
        wanted(row).then_some((sport, at, row))
    };
    let place = |at: &u32| usize::try_from(*at).ok();
    match &selection.sport {
        SportFilter::All => Vec::new(),
        SportFilter::Upcoming(sports) => {
            let chosen = upcoming(snapshot, *sports).into_iter();
            let ids = selection.events.as_deref();
            let named = |sport: SportId, at: usize| {
                ids.is_none_or(|ids| snapshot.sport(sport).positions(ids).contains(&at))
            };
            chosen
                .filter(|(sport, at)| named(*sport, *at))
                .filter_map(|(s, at)| row(s, at))
                .collect()
        }
        SportFilter::Whole(sport) => match &selection.events {
            Some(ids) => {
                let positions = snapshot.sport(*sport).positions(ids);
                positions.into_iter().filter_map(|at| row(*sport, at)).collect()
            }
            None => {
                let all = 0..snapshot.sport(*sport).events.len();
                all.filter_map(|at| row(*sport, at)).collect()
            }
        },
        SportFilter::Key(sport, key) => match &selection.events {
            Some(ids) => {
                let positions = snapshot.sport(*sport).positions(ids).into_iter();
                let of_key = positions.filter(|at| source.index().contains(key, *at));
                of_key.filter_map(|at| row(*sport, at)).collect()
            }
            None => {
                let events = source.index().events_of(key).iter().filter_map(place);
                events.filter_map(|at| row(*sport, at)).collect()
            }
        },
    }
}

/// Head-to-head events of some sports that have started and are not final, and the next few, in order.
fn upcoming(snapshot: &Snapshot, sports: SportSet) -> Vec<(SportId, usize)> {
    let (mut started, mut next) = (Vec::new(), Vec::new());
    for (sport, rules) in snapshot.catalogue().sports() {
        if rules.shape != Shape::HeadToHead || !sports.contains(sport) {
            continue;
        }
        let mut waiting = 0;
        for (at, event) in snapshot.sport(sport).events.iter().enumerate() {
            let place = ((event.commence_time, event.id), (sport, at));
            match event.status {
                Status::Final => {}
                Status::Scheduled if event.commence_time > snapshot.cut_at => {
                    // Events are in the order of their start: the next of all sports are among the next of each.
                    if waiting < UPCOMING {
                        next.push(place);
                    }
                    waiting += 1;
                }
                Status::Scheduled | Status::Live => started.push(place),
            }
        }
    }
    next.sort_unstable();
    next.truncate(UPCOMING);
    started.extend(next);
    started.sort_unstable();
    started.into_iter().map(|(_, place)| place).collect()
}

/// A number of days.
pub(super) fn days(count: u8) -> Duration {
    Duration::from_secs(86_400 * u64::from(count))
}
