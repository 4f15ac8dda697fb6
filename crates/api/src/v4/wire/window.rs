//! The events of a publication that a selection covers, and their order.

use std::time::Duration;

use domain::{Shape, SportId, Status};
use market::Snapshot;
use market::snapshot::EventRow;

use crate::v4::selection::{Selection, SportFilter, SportSet};
use crate::v4::wire::Source;

/// Number of events in `upcoming` that have not started.
const UPCOMING: usize = 8;

/// The events of a selection, in order, that pass its filters.
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

/// Head-to-head events of the sports that have started and are not final, and the next few, in order.
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
                    // Events are in the order of their start, so the next ones of all sports are among the next ones
                    // of each.
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
