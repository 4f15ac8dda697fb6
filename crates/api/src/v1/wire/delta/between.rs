//! Records that a client may have been sent between the two publications of a delta and that neither has in its
//! selection: they are removed (S7).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::{Catalogue, EventId, RecordId, Status};
use engine::{Passed, PassedEvent, PassedRecord};
use market::select::EventIds;
use market::snapshot::{EventRow, RecordRow};
use market::{EventSelection, ScoreSelection, Snapshot};

use super::{Delta, Side, events_of, records_of, side, view};
use crate::answers::List;

/// Knowledge of the states between two publications.
#[derive(Clone, Copy, Default)]
pub(crate) struct Between<'a> {
    /// What may have been shown.
    pub(crate) passed: Option<&'a Passed>,
    /// What was shown, oldest first.
    pub(crate) skipped: &'a [Arc<Snapshot>],
}

/// Ids that may have to be removed, with their events.
type Gone<T> = BTreeSet<(EventId, T)>;

impl Between<'_> {
    /// True if a record that is equal at both ends may have differed, or not existed, in between. The book keeps a
    /// record unchanged unless it is quoted.
    pub(super) fn has_changed_record(
        &self,
        to: &Side<'_>,
        (then, now): (&RecordRow, &RecordRow),
    ) -> bool {
        let was_quoted = !self.skipped.is_empty() && !Arc::ptr_eq(&then.record, &now.record);
        was_quoted
            || self.passed.is_some_and(|passed| {
                let event = usize::try_from(now.event).ok().and_then(|at| view(to).events.get(at));
                let event = event.and_then(|event| passed.events.get(&event.id));
                passed.quoted.contains(&now.id) || event.is_some_and(PassedEvent::may_be_renamed)
            })
    }

    /// True if an event that is equal at both ends may have differed in between.
    pub(super) fn has_changed_event(&self, then: &EventRow, now: &EventRow) -> bool {
        let was_changed = !self.skipped.is_empty() && !Arc::ptr_eq(&then.details, &now.details);
        was_changed || self.passed.is_some_and(|passed| passed.events.contains_key(&now.id))
    }

    /// True if an event ended in between and was removed after its retention time.
    pub(super) fn has_expired(&self, event: EventId) -> bool {
        self.passed.is_some_and(|passed| passed.expired.contains(&event))
    }
}

impl Delta {
    /// Removes what was or may have been shown in between and is listed at neither end.
    pub(super) fn add_between(
        &mut self,
        (list, catalogue): (&List, &Arc<Catalogue>),
        ends: [&Side<'_>; 2],
        between: &Between<'_>,
    ) {
        let skipped = between.skipped.iter().filter_map(|shown| side(list, catalogue, shown));
        let [_, to] = ends;
        if matches!(list, List::Odds(..)) {
            let passed = between.passed.map(|passed| records(passed, ends));
            let mut gone: Gone<RecordId> = passed.unwrap_or_default();
            for shown in skipped {
                gone.extend(records_of(Some(&shown)).filter_map(|row| {
                    let event = view(&shown).events.get(usize::try_from(row.event).ok()?)?;
                    Some((event.id, row.id))
                }));
            }
            if gone.is_empty() {
                return;
            }
            let known = ends.into_iter().flat_map(|end| records_of(Some(end)));
            let known: HashSet<RecordId> = known.map(|row| row.id).collect();
            for (event, id) in gone.into_iter().filter(|(_, id)| !known.contains(id)) {
                let mut text = String::new();
                id.push_to(&mut text);
                self.remove_passed(&text, event, why(to, (event, Some(id)), between));
            }
            return;
        }
        let passed = between.passed.map(|passed| events(passed, ends));
        let mut gone: Gone<()> = passed.unwrap_or_default();
        for shown in skipped {
            gone.extend(events_of(Some(&shown)).map(|(row, _)| (row.id, ())));
        }
        if gone.is_empty() {
            return;
        }
        let known = ends.into_iter().flat_map(|end| events_of(Some(end)));
        let known: HashSet<EventId> = known.map(|(row, _)| row.id).collect();
        for (id, ()) in gone.into_iter().filter(|(id, ())| !known.contains(id)) {
            self.remove_passed(&id.to_string(), id, why(to, (id, None), between));
        }
    }

    fn remove_passed(&mut self, id: &str, event: EventId, reason: &str) {
        self.has_passed = true;
        self.remove(id, event, reason);
    }
}

/// Why an event, or a record of it, is no longer in a list.
fn why(
    to: &Side<'_>,
    (event, record): (EventId, Option<RecordId>),
    between: &Between<'_>,
) -> &'static str {
    let view = view(to);
    let Some(now) = view.event(event) else {
        return if between.has_expired(event) { "expired" } else { "removed" };
    };
    if now.id != event {
        return "merged";
    }
    let mut records = now.records.clone().filter_map(|at| view.record(at));
    let is_there = record.is_none_or(|id| records.any(|row| row.id == id));
    match now.status {
        _ if is_there => "filter",
        Status::Final => "final",
        Status::Scheduled | Status::Live => "no_prices",
    }
}

/// Records that may have been in a list.
fn records(passed: &Passed, ends: [&Side<'_>; 2]) -> Gone<RecordId> {
    let may = |record: &PassedRecord, end: &Side<'_>| {
        let (snapshot, list) = end;
        let List::Odds(odds, ..) = &**list else { return false };
        let catalogue = snapshot.catalogue();
        let own = &catalogue.sport(list.sport()).key;
        let known = passed.events.get(&record.event);
        let is_of = known.is_some_and(|event| event.sport == *own)
            || view(end).event(record.event).is_some();
        let bookmaker = catalogue.bookmaker_id(&record.bookmaker);
        is_of
            && bookmaker.is_some_and(|id| odds.bookmakers.contains(id))
            && odds.market.is_none_or(|market| market == record.market)
    };
    let asked = asked(passed, ends);
    let is_asked = |event| asked.as_ref().is_none_or(|asked| asked.contains(&event));
    let gone = passed.records.iter().filter(|(_, record)| {
        is_asked(record.event) && ends.into_iter().any(|end| may(record, end))
    });
    gone.map(|(id, record)| (record.event, *id)).collect()
}

/// Events that may have been in a list.
fn events(passed: &Passed, ends: [&Side<'_>; 2]) -> Gone<()> {
    let asked = asked(passed, ends);
    let is_asked = |event| asked.as_ref().is_none_or(|asked| asked.contains(&event));
    let gone = passed.events.iter().filter(|(id, event)| {
        is_asked(**id) && ends.into_iter().any(|end| may_pass(**id, event, end, ends))
    });
    gone.map(|(id, _)| (*id, ())).collect()
}

/// True if an event may have been in a list in between, although it is listed at neither end.
fn may_pass(id: EventId, event: &PassedEvent, side: &Side<'_>, [from, to]: [&Side<'_>; 2]) -> bool {
    let (snapshot, list) = side;
    if snapshot.catalogue().sport(list.sport()).key != event.sport {
        return false;
    }
    let (status, has_more) = match &**list {
        List::Odds(..) => return false,
        List::Scores(ScoreSelection { status, .. }) => (*status, false),
        List::Events(EventSelection { status, from, to, name, .. }) => {
            (*status, from.is_some() || to.is_some() || name.is_some())
        }
    };
    let is_there = |end| view(end).event(id).is_some_and(|row| row.id == id);
    if event.is_joined || !is_there(to) {
        return true;
    }
    // An event that did not exist before may have had any status when it was shown again.
    let by_status = status.is_some_and(|status| {
        event.statuses.contains(&status) || (!is_there(from) && !event.statuses.is_empty())
    });
    // An event listed only once had the details it has at one of the ends.
    by_status || (has_more && event.listings > 1)
}

/// The requested events and all that were merged with them; `None` for all events.
fn asked(passed: &Passed, ends: [&Side<'_>; 2]) -> Option<BTreeSet<EventId>> {
    let [_, (_, list)] = ends;
    let ids: &EventIds = match &**list {
        List::Odds(odds, ..) => &odds.events,
        List::Scores(ScoreSelection { events, .. })
        | List::Events(EventSelection { events, .. }) => events,
    };
    let mut ids = ids.as_ref()?.to_vec();
    for end in ends {
        let now = ids.iter().filter_map(|id| Some(view(end).event(*id)?.id));
        let now: Vec<EventId> = now.collect();
        ids.extend(now);
    }
    Some(passed.with_joined(&ids))
}
