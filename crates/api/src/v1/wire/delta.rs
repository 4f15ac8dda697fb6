//! The changes of a selection between two publications (S9).

mod between;

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;
use std::iter::Peekable;
use std::sync::Arc;

use domain::{Catalogue, EventId, Format, RecordId, Status, Timestamp};
use market::Snapshot;
use market::rendered::Rendered;
use market::snapshot::{EventRow, RecordRow, SportView};

use crate::answers::List;
use crate::v1::wire::object::{event_id, list, object, one_of, push_plain, schema, text};
use crate::v1::wire::record::RecordText;
use crate::v1::wire::{V1, event};

pub(crate) use between::Between;

object!(OddsDelta: "Changes of odds since a cursor. Insert or replace `upserts` by id and delete `removed`." {
    CURSOR: "cursor" = text("The cursor of this answer, for the next `since`."),
    PUBLISHED_AT: "published_at" = schema("TimestampMs", "Time of the publication."),
    UPSERTS: "upserts" = list("OddsRecord", "New and changed records, as in odds."),
    REMOVED: "removed" = list("Removed", "Records that are no longer in the selection."),
});

object!(ScoresDelta: "Changes of scores since a cursor." {
    CURSOR: "cursor" = text("The cursor of this answer, for the next `since`."),
    PUBLISHED_AT: "published_at" = schema("TimestampMs", "Time of the publication."),
    UPSERTS: "upserts" = list("ScoreRecord", "New and changed scores."),
    REMOVED: "removed" = list("Removed", "Scores that are no longer in the selection."),
});

object!(EventsDelta: "Changes of events since a cursor." {
    CURSOR: "cursor" = text("The cursor of this answer, for the next `since`."),
    PUBLISHED_AT: "published_at" = schema("TimestampMs", "Time of the publication."),
    UPSERTS: "upserts" = list("Event", "New and changed events."),
    REMOVED: "removed" = list("Removed", "Events that are no longer in the selection."),
});

object!(Removed: "A record that is no longer in a selection." {
    ID: "id" = text("Id of the record; for scores and events, id of the event."),
    EVENT_ID: "event_id" = event_id(),
    REASON: "reason" = one_of(
        REASONS,
        "`no_prices`: suspended or without prices. `removed`: withdrawn by its source. `final`: the event is over. \
        `merged`: the event was merged into another. `expired`: the event was removed some time after its end. \
        `filter`: it still exists but no longer matches the selection.",
    ),
});

const REASONS: [&str; 6] = ["no_prices", "removed", "final", "merged", "expired", "filter"];

/// Maximum number of changes in a response; with more, the client reads everything again.
pub(crate) const CHANGES_MAX: usize = 10_000;

/// Maximum number of list items per part, if the list is sent in parts.
const PART_ITEMS_MAX: usize = 500;

/// A publication, and the list in terms of its catalogue.
type Side<'a> = (&'a Snapshot, Cow<'a, List>);

/// The changes of a selection.
#[derive(Default)]
pub(crate) struct Delta {
    pub(super) upserts: Items,
    pub(super) removed: Items,
    /// Odds records whose freshness alone changed.
    pub(super) touched: Vec<(Timestamp, RecordId)>,
    /// True if a record is removed that neither publication has.
    has_passed: bool,
}

/// The rendered items of a JSON list.
#[derive(Default)]
pub(super) struct Items {
    bytes: Vec<u8>,
    count: usize,
    /// Ends of the parts; the comma after each belongs to no part.
    ends: Vec<usize>,
}

impl Items {
    /// Begins a new item.
    fn begin(&mut self) -> &mut Vec<u8> {
        if self.count > 0 {
            if self.count.is_multiple_of(PART_ITEMS_MAX) {
                self.ends.push(self.bytes.len());
            }
            self.bytes.push(b',');
        }
        self.count += 1;
        &mut self.bytes
    }

    /// The parts for sending; none if the list is empty.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| end + 1));
        let ends = self.ends.iter().copied().chain([self.bytes.len()]);
        let parts = starts.zip(ends).filter_map(|(start, end)| self.bytes.get(start..end));
        parts.filter(|_| self.count > 0)
    }
}

/// The items of the first state, to be taken by those of the second. Both list most of them in the same order.
struct Before<K, V, I: Iterator<Item = (K, V)>> {
    in_order: Peekable<I>,
    /// All that `in_order` had when the order first differed.
    others: HashMap<K, V>,
}

impl<K: Eq + Hash, V, I: Iterator<Item = (K, V)>> Before<K, V, I> {
    fn new(items: I) -> Self {
        Self { in_order: items.peekable(), others: HashMap::new() }
    }

    fn take(&mut self, id: &K) -> Option<V> {
        if let Some((_, item)) = self.in_order.next_if(|(next, _)| next == id) {
            return Some(item);
        }
        self.others.extend(self.in_order.by_ref());
        self.others.remove(id)
    }

    /// All that were not taken.
    fn into_rest(self) -> impl Iterator<Item = V> {
        self.in_order.map(|(_, item)| item).chain(self.others.into_values())
    }
}

impl Delta {
    /// The changes of a whole list from one publication to a later one, or the whole list. Each publication may have
    /// another catalogue than the list, which may lack the list's names.
    pub(crate) fn between(
        (list, catalogue): (&List, &Arc<Catalogue>),
        from: Option<&Snapshot>,
        to: &Snapshot,
        between: &Between<'_>,
    ) -> Self {
        let mut delta = Self::default();
        let side = |of| side(list, catalogue, of);
        let (from, to) = (from.and_then(side), side(to));
        let (from, to) = (from.as_ref(), to.as_ref());
        match list {
            List::Odds(_, format, _) => delta.records(*format, (from, to), between),
            List::Scores(_) => delta.events((from, to), between, |texts| texts.1),
            List::Events(_) => delta.events((from, to), between, |texts| texts.0),
        }
        if let Some((from, to)) = from.zip(to) {
            delta.add_between((list, catalogue), [from, to], between);
        }
        delta
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.upserts.count + self.removed.count == 0
    }

    /// True if a record is removed that appeared and disappeared in between.
    pub(crate) fn has_passed(&self) -> bool {
        self.has_passed
    }

    /// True if no record changed in its freshness alone.
    pub(crate) fn is_fresh_alike(&self) -> bool {
        self.touched.is_empty()
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.upserts.count + self.removed.count > CHANGES_MAX
    }

    /// The body of the response.
    pub(crate) fn into_body(self, cursor: &str, to: &Snapshot) -> Vec<u8> {
        let bytes = self.upserts.bytes.len() + self.removed.bytes.len();
        let mut out = String::with_capacity(bytes + 128);
        out.push_str(OddsDelta::CURSOR.first);
        push_plain(cursor, &mut out);
        out.push_str(OddsDelta::PUBLISHED_AT.next);
        push_plain(&String::from_utf8_lossy(&to.cut_at.millis_text()), &mut out);
        out.push_str(OddsDelta::UPSERTS.next);
        let mut out = out.into_bytes();
        out.push(b'[');
        out.extend(self.upserts.bytes);
        out.push(b']');
        out.extend(OddsDelta::REMOVED.next.as_bytes());
        out.push(b'[');
        out.extend(self.removed.bytes);
        out.extend(b"]}");
        out
    }

    fn records(
        &mut self,
        format: Format,
        (from, to): (Option<&Side<'_>>, Option<&Side<'_>>),
        between: &Between<'_>,
    ) {
        let mut before = Before::new(records_of(from).map(|row| (row.id, row)));
        for row in records_of(to) {
            let held = from.zip(before.take(&row.id));
            let rendered = to.and_then(|to| rendered_of(to, row));
            let same = held.filter(|(from, held)| {
                // Most records are kept from one publication to the next, with their text.
                let is_kept = Arc::ptr_eq(&held.record, &row.record);
                let is_alike = || {
                    let then = rendered_of(from, held);
                    then.map(|text| &text.bytes) == rendered.map(|text| &text.bytes)
                };
                (is_kept || is_alike())
                    && !to.is_some_and(|to| between.has_changed_record(to, (*held, row)))
            });
            if let Some((_, held)) = same {
                if held.last_update.as_secs() != row.last_update.as_secs() {
                    self.touched.push((row.last_update, row.id));
                }
                continue;
            }
            if let Some(rendered) = rendered {
                let upserts = self.upserts.begin();
                RecordText(rendered).write(format, &row.last_update.seconds_text(), upserts);
            }
        }
        let Some(from) = from else { return };
        // In the order in which they were listed.
        let mut gone: Vec<&RecordRow> = before.into_rest().collect();
        gone.sort_unstable_by_key(|row| (row.event, row.id));
        let (events, view) = (&view(from).events, to.map(view));
        let is_known = |bookmaker| {
            let key = &from.0.catalogue().bookmaker(bookmaker).key;
            to.is_none_or(|(to, _)| to.catalogue().bookmaker_id(key).is_some())
        };
        for row in gone {
            let Some(event) = usize::try_from(row.event).ok().and_then(|at| events.get(at)) else {
                continue;
            };
            let there = view.is_some_and(|view| {
                let now = view.event(event.id).filter(|now| now.id == event.id);
                let records = now.map_or(0..0, |now| now.records.clone());
                records.filter_map(|at| view.record(at)).any(|held| held.id == row.id)
            });
            let mut id = String::new();
            row.id.push_to(&mut id);
            let why = match there {
                true => "filter",
                // The catalogue no longer has the bookmaker.
                false if !is_known(row.bookmaker) => "removed",
                false => {
                    let key = &from.0.catalogue().bookmaker(row.bookmaker).key;
                    let now = view.and_then(|view| view.event(event.id));
                    let bookmaker = to.and_then(|(to, _)| to.catalogue().bookmaker_id(key));
                    let suspended = now.is_some_and(|now| {
                        now.suspended(row.market).any(|held| Some(held) == bookmaker)
                    });
                    match reason(event, view, between) {
                        // Its feed no longer lists the event, but another one does.
                        "no_prices" if !suspended => "removed",
                        reason => reason,
                    }
                }
            };
            self.remove(&id, event.id, why);
        }
    }

    fn events<'a>(
        &mut self,
        (from, to): (Option<&Side<'a>>, Option<&Side<'a>>),
        between: &Between<'_>,
        part: impl Fn((&'a [u8], &'a [u8])) -> &'a [u8],
    ) {
        let texts = |(row, rendered)| (row, part(event::texts(rendered)));
        let before = events_of(from).map(texts);
        let mut before = Before::new(before.map(|(row, text)| (row.id, (row, text))));
        for (row, text) in events_of(to).map(texts) {
            let same = before
                .take(&row.id)
                .is_some_and(|(then, held)| held == text && !between.has_changed_event(then, row));
            if !same {
                self.upserts.begin().extend_from_slice(text);
            }
        }
        let view = to.map(view);
        let mut gone: Vec<&EventRow> = before.into_rest().map(|(row, _)| row).collect();
        gone.sort_unstable_by_key(|row| (row.commence_time, row.id));
        for row in gone {
            let now = view.and_then(|view| view.event(row.id));
            let there = now.is_some_and(|now| now.id == row.id);
            let why = if there { "filter" } else { reason(row, view, between) };
            self.remove(&row.id.to_string(), row.id, why);
        }
    }

    fn remove(&mut self, id: &str, event: EventId, reason: &str) {
        let mut text = String::with_capacity(96);
        text.push_str(Removed::ID.first);
        push_plain(id, &mut text);
        text.push_str(Removed::EVENT_ID.next);
        push_plain(&event.to_string(), &mut text);
        text.push_str(Removed::REASON.next);
        push_plain(reason, &mut text);
        text.push('}');
        self.removed.begin().extend_from_slice(text.as_bytes());
    }
}

fn side<'a>(list: &'a List, own: &Arc<Catalogue>, of: &'a Snapshot) -> Option<Side<'a>> {
    Some((of, list.in_catalogue(own, of.catalogue())?))
}

/// The records of a list; empty if its publication does not know the list.
fn records_of<'a>(side: Option<&Side<'a>>) -> impl Iterator<Item = &'a RecordRow> {
    side.into_iter().flat_map(|(of, list)| list.records(of))
}

/// The events of a list, with their rendered text.
fn events_of<'a>(side: Option<&Side<'a>>) -> impl Iterator<Item = (&'a EventRow, &'a Rendered)> {
    side.into_iter().flat_map(|(of, list)| {
        let of: &'a Snapshot = of;
        list.events(of).into_iter().map(move |row| (row, of.rendered_event(&V1, row)))
    })
}

/// The view of a list's sport.
fn view<'a>((snapshot, list): &Side<'a>) -> &'a SportView {
    snapshot.sport(list.sport())
}

/// The rendered record in all formats.
fn rendered_of<'a>(side: &Side<'a>, row: &'a RecordRow) -> Option<&'a Rendered> {
    let event = view(side).events.get(usize::try_from(row.event).ok()?)?;
    Some(side.0.rendered_record(&V1, event, row))
}

/// Why an event or its record is no longer listed.
fn reason(before: &EventRow, to: Option<&SportView>, between: &Between<'_>) -> &'static str {
    match to.and_then(|to| to.event(before.id)) {
        Some(now) if now.id != before.id => "merged",
        Some(now) if now.status == Status::Final => "final",
        Some(_) => "no_prices",
        None if before.status == Status::Final || between.has_expired(before.id) => "expired",
        None => "removed",
    }
}
