//! Selections: the rows of a snapshot, their order, and the start of a page (D4, D7, D8, D15, D16).
//!
//! A selection is the normal form of a query: two queries with the same meaning are the same selection. Each walks
//! the smallest index that covers it and stops when the page is exceeded.

use std::ops::ControlFlow;
use std::sync::Arc;

use domain::{
    BookmakerId, BookmakerSet, Catalogue, EventId, Market, RecordId, SportId, Status, Timestamp,
};

use crate::matching::fold;
use crate::snapshot::{EventRow, RecordRow, Snapshot, SportView};

/// Event ids that restrict an answer, sorted and unique.
pub type EventIds = Option<Arc<[EventId]>>;

/// A selection of odds records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OddsSelection {
    pub sport: SportId,
    pub bookmakers: BookmakerSet,
    /// The only requested bookmaker, if there is just one: its records have an index of their own.
    pub bookmaker: Option<BookmakerId>,
    pub market: Option<Market>,
    pub events: EventIds,
    pub limit: usize,
    pub after: Option<Cursor>,
}

/// A selection of events with their moneylines (D7).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoutSelection {
    pub sport: SportId,
    pub bookmakers: BookmakerSet,
    pub events: EventIds,
    pub limit: usize,
    pub after: Option<Cursor>,
}

/// A selection of scores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScoreSelection {
    pub sport: SportId,
    pub status: Option<Status>,
    pub events: EventIds,
    pub limit: usize,
    pub after: Option<Cursor>,
}

/// A selection of events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventSelection {
    pub sport: SportId,
    pub status: Option<Status>,
    pub events: EventIds,
    /// Inclusive.
    pub from: Option<Timestamp>,
    /// Exclusive.
    pub to: Option<Timestamp>,
    pub name: Option<NamePrefix>,
    pub limit: usize,
    pub after: Option<Cursor>,
}

/// The beginning of a word or of several consecutive words in a name, folded like names for matching (K21).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamePrefix(Box<str>);

impl NamePrefix {
    pub fn new(text: &str) -> Self {
        Self(format!(" {}", fold(text)).into())
    }

    /// True if a participant, the tournament or the competition of an event contains it.
    fn is_in(&self, event: &EventRow) -> bool {
        let details = &event.details;
        let sides = [&details.home, &details.away, &details.title];
        let names =
            sides.into_iter().flatten().chain([&details.competition]).chain(&*event.entrants);
        let mut names = names.map(|name| fold(name));
        names.any(|name| format!(" {name}").contains(&*self.0))
    }

    /// The folded text.
    pub fn as_str(&self) -> &str {
        self.0.trim_start()
    }
}

/// End of a page (D15): the sort key of its last row, so that it means the same position in every epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    pub commence_time: Timestamp,
    pub event: EventId,
    /// Absent if pages consist of whole events.
    pub record: Option<RecordPlace>,
}

/// The position of a record among those of its event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordPlace {
    pub bookmaker: Box<str>,
    pub market: Market,
    pub record: RecordId,
}

/// The selected items, and the start of the next page if there is one.
#[derive(Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<Cursor>,
}

/// Maximum page length for which memory is reserved in advance.
const ROOM_MAX: usize = 512;

impl<T> Page<T> {
    /// The first `limit` items; `cursor` returns the position of the last one if there are more.
    fn fill(
        mut items: impl Iterator<Item = T>,
        limit: usize,
        cursor: impl Fn(&T) -> Option<Cursor>,
    ) -> Self {
        // The number of items is not known in advance; growing step by step costs more than the reserved memory.
        let mut taken = Vec::with_capacity(limit.min(ROOM_MAX));
        taken.extend(items.by_ref().take(limit));
        let more = items.next().is_some();
        let next = taken.last().filter(|_| more).and_then(cursor);
        Self { items: taken, next }
    }
}

impl OddsSelection {
    /// The selected records.
    pub fn select<'a>(&self, snapshot: &'a Snapshot) -> Page<&'a RecordRow> {
        let view = snapshot.sport(self.sport);
        // One more than the page holds shows that there are more.
        let wanted = self.limit.saturating_add(1);
        let mut items: Vec<&RecordRow> = Vec::new();
        self.visit_events(snapshot, |event, from| {
            let of_event = view.events.get(event).map_or(0..0, |event| event.records.clone());
            let shown = (of_event.start.max(from)..of_event.end)
                .filter_map(|at| view.record(at))
                .filter(|row| self.bookmakers.contains(row.bookmaker))
                .filter(|row| self.market.is_none_or(|market| market == row.market));
            items.extend(shown.take(wanted - items.len()));
            if items.len() < wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let more = items.len() > self.limit;
        items.truncate(self.limit);
        let last = items.last().filter(|_| more);
        let next = last.map(|last| view.cursor_of(snapshot.catalogue(), last));
        Page { items, next }
    }

    /// Visits the events that may have selected records, in order, until the visitor breaks. It gets the position of
    /// each event, and that of the first record that may be taken.
    pub fn visit_events(
        &self,
        snapshot: &Snapshot,
        mut visit: impl FnMut(usize, u32) -> ControlFlow<()>,
    ) {
        let view = snapshot.sport(self.sport);
        let start =
            self.after.as_ref().map_or(0, |after| view.records_up_to(snapshot.catalogue(), after));
        if let Some(ids) = &self.events {
            let _visited = view.positions(ids).into_iter().try_for_each(|at| visit(at, start));
            return;
        }
        let index = self.index(view);
        let mut from = start;
        while let Some(event) = view.next_event(index, from) {
            if visit(event, start).is_break() {
                break;
            }
            from = view.events.get(event).map_or(u32::MAX, |event| event.records.end);
        }
    }

    /// The smallest list of positions that covers the selection, if there is one.
    fn index<'a>(&self, view: &'a SportView) -> Option<&'a [u32]> {
        match (self.bookmaker, self.market) {
            (Some(bookmaker), Some(market)) => {
                let (one, other) = (view.of_bookmaker(bookmaker), view.of_market(market));
                Some(if one.len() <= other.len() { one } else { other })
            }
            (Some(bookmaker), None) => Some(view.of_bookmaker(bookmaker)),
            (None, Some(market)) => Some(view.of_market(market)),
            (None, None) => None,
        }
    }
}

impl BoutSelection {
    /// Bouts that have a moneyline price at the selected bookmakers.
    pub fn select<'a>(&self, snapshot: &'a Snapshot) -> Page<(&'a EventRow, Vec<&'a RecordRow>)> {
        let view = snapshot.sport(self.sport);
        let events = view.events_after(&self.events, self.after.as_ref());
        let bouts = events.filter_map(|event| {
            let rows: Vec<&RecordRow> = event
                .records
                .clone()
                .filter_map(|at| view.record(at))
                .filter(|row| {
                    row.market == Market::Moneyline && self.bookmakers.contains(row.bookmaker)
                })
                .collect();
            (!rows.is_empty()).then_some((event, rows))
        });
        Page::fill(bouts, self.limit, |(event, _)| Some(event.cursor()))
    }
}

impl ScoreSelection {
    pub fn select<'a>(&self, snapshot: &'a Snapshot) -> Page<&'a EventRow> {
        let events = snapshot.sport(self.sport).events_after(&self.events, self.after.as_ref());
        let wanted = events.filter(|event| self.status.is_none_or(|status| status == event.status));
        Page::fill(wanted, self.limit, |event| Some(event.cursor()))
    }
}

impl EventSelection {
    pub fn select<'a>(&self, snapshot: &'a Snapshot) -> Page<&'a EventRow> {
        let events = snapshot.sport(self.sport).events_after(&self.events, self.after.as_ref());
        let wanted = events.filter(|event| {
            self.status.is_none_or(|status| status == event.status)
                && self.from.is_none_or(|from| event.commence_time >= from)
                && self.to.is_none_or(|to| event.commence_time < to)
                && self.name.as_ref().is_none_or(|name| name.is_in(event))
        });
        Page::fill(wanted, self.limit, |event| Some(event.cursor()))
    }
}

impl EventRow {
    fn cursor(&self) -> Cursor {
        Cursor { commence_time: self.commence_time, event: self.id, record: None }
    }
}

impl SportView {
    /// Events in order, restricted to ids if given, after the cursor.
    fn events_after<'a>(
        &'a self,
        ids: &EventIds,
        after: Option<&Cursor>,
    ) -> Box<dyn Iterator<Item = &'a EventRow> + 'a> {
        let start = after.map_or(0, |after| {
            self.events
                .partition_point(|e| (e.commence_time, e.id) <= (after.commence_time, after.event))
        });
        match ids {
            None => Box::new(self.events.iter().skip(start)),
            Some(ids) => Box::new(
                self.positions(ids)
                    .into_iter()
                    .filter(move |at| *at >= start)
                    .filter_map(|at| self.events.get(at)),
            ),
        }
    }

    /// The positions of the events with these ids, in order.
    pub fn positions(&self, ids: &[EventId]) -> Vec<usize> {
        let mut positions = Vec::with_capacity(ids.len());
        positions.extend(ids.iter().filter_map(|id| self.event_position(*id)));
        positions.sort_unstable();
        // Two ids may mean the same event.
        positions.dedup();
        positions
    }

    /// The event of the first record from a position on, restricted to the index if there is one.
    fn next_event(&self, index: Option<&[u32]>, from: u32) -> Option<usize> {
        let at = match index {
            None => from,
            Some(index) => *index.get(index.partition_point(|at| *at < from))?,
        };
        usize::try_from(self.record(at)?.event).ok()
    }

    /// The position after the cursor's record.
    fn records_up_to(&self, catalogue: &Catalogue, after: &Cursor) -> u32 {
        let at = self.records.partition_point(|row| {
            let Some(event) = self.event_of(row) else {
                return false;
            };
            let here = (event.commence_time, event.id);
            let there = (after.commence_time, after.event);
            let place = || {
                let key = &*catalogue.bookmaker(row.bookmaker).key;
                after.record.as_ref().is_none_or(|end| {
                    (key, row.market, row.id) <= (&*end.bookmaker, end.market, end.record)
                })
            };
            here < there || (here == there && place())
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// The cursor after a record.
    pub fn cursor_of(&self, catalogue: &Catalogue, row: &RecordRow) -> Cursor {
        let place = RecordPlace {
            bookmaker: catalogue.bookmaker(row.bookmaker).key.clone(),
            market: row.market,
            record: row.id,
        };
        let (commence_time, event) = self
            .event_of(row)
            .map_or((Timestamp::default(), EventId::from_number(0)), |e| (e.commence_time, e.id));
        Cursor { commence_time, event, record: Some(place) }
    }

    fn event_of(&self, row: &RecordRow) -> Option<&EventRow> {
        self.events.get(usize::try_from(row.event).ok()?)
    }
}
