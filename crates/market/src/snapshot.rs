//! A published state of one world: immutable, indexed, ready for selections.
//!
//! A snapshot shares records and their rendered forms with the book, so building one costs a pointer and a timestamp
//! for each record, changed or not.

mod layer;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use domain::{BookmakerId, Catalogue, EventId, Market, RecordId, SportId, Status, Timestamp};

use crate::book::{Book, Event, EventDetails, FeedIx, OutcomeName, Record, Slot};
use crate::freshness::Source;
use crate::matching::Hashed;
use crate::rendered::{Rendered, WireSlot};
pub use layer::Layer;

/// Renders rows for clients. Called on the thread that cuts a snapshot, once for each change.
pub trait Wire: Debug + Sync {
    /// The slot for its bytes; no other wire may have the same.
    fn slot(&self) -> WireSlot;

    /// Renders an event with its score.
    fn render_event(&self, catalogue: &Catalogue, event: &EventRow) -> Rendered;

    /// Renders a record without its freshness, which changes with every heartbeat.
    fn render_record(
        &self,
        catalogue: &Catalogue,
        event: &EventRow,
        record: &RecordRow,
    ) -> Rendered;
}

/// The data for all answers of one epoch.
#[derive(Debug)]
pub struct Snapshot {
    /// Time when the epoch was cut; freshness refers to it.
    pub cut_at: Timestamp,
    /// Age above which a price is stale.
    pub stale_after: Duration,
    /// The last log entry included; 0 if there is no log.
    pub seq: u64,
    /// The number of the writer that published it, or of the simulated world; 0 if the log does not contain it.
    pub writer: u64,
    catalogue: Arc<Catalogue>,
    sports: Vec<Arc<SportView>>,
    /// Names of the feeds, for operators only.
    feeds: Box<[Box<str>]>,
}

/// One sport in a snapshot.
#[derive(Debug, Default)]
pub struct SportView {
    /// Sorted by start, then id.
    pub events: Vec<EventRow>,
    /// Sorted by start, event id, bookmaker key, market key, record id.
    pub records: Vec<RecordRow>,
    /// Sorted by bookmaker key.
    pub sources: Vec<SourceRow>,
    /// False if every source is stale, or there is none.
    pub active: bool,
    /// Number of scheduled and live events (D31).
    pub events_open: u32,
    /// Number of bookmakers with prices.
    pub bookmakers: u32,
    /// Positions by id, including the ids of merged events.
    by_id: HashMap<EventId, u32, BuildHasherDefault<Hashed>>,
    /// Bookmaker and market of each record in a compact list: filters read many of these for each record that they
    /// accept.
    kinds: Vec<(BookmakerId, Market)>,
    /// Positions in `records`, for each bookmaker and each market.
    by_bookmaker: Vec<Vec<u32>>,
    by_market: Vec<Vec<u32>>,
}

/// One event.
#[derive(Clone, Debug)]
pub struct EventRow {
    pub id: EventId,
    pub commence_time: Timestamp,
    pub status: Status,
    pub details: Arc<EventDetails>,
    /// The positions of its records.
    pub records: Range<u32>,
    /// The players of a field by number; empty for head-to-head events.
    pub entrants: Arc<Vec<Box<str>>>,
    /// Markets that had prices and have none now, in the order of records; empty for a final event.
    pub(crate) closed: Box<[ClosedRow]>,
    /// Feeds that list it.
    pub(crate) listed_by: Box<[FeedIx]>,
    /// Possible duplicates of the event.
    pub(crate) may_be: Box<[EventId]>,
    /// Ids of events that were merged into this one.
    also: Vec<EventId>,
}

/// A market whose prices were removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedRow {
    pub(crate) bookmaker: BookmakerId,
    pub(crate) market: Market,
    /// Time of the removal according to its source.
    pub(crate) since: Timestamp,
    /// True if the feed that removed them still lists the event: then the market is suspended (D24).
    pub(crate) listed: bool,
}

/// One odds record.
#[derive(Clone, Debug)]
pub struct RecordRow {
    pub record: Arc<Record>,
    pub id: RecordId,
    /// Position of its event.
    pub event: u32,
    pub bookmaker: BookmakerId,
    pub market: Market,
    pub last_update: Timestamp,
}

/// One bookmaker's state in the sport.
#[derive(Clone, Debug)]
pub struct SourceRow {
    pub bookmaker: BookmakerId,
    pub source: Source,
    pub stale: bool,
    /// The feeds that have quoted it.
    pub(crate) quoted_by: Box<[FeedIx]>,
}

impl Snapshot {
    /// The state of the book after log entry `seq`, with freshness as of `cut_at`, rendered for some wires.
    pub fn cut(
        book: &Book,
        seq: u64,
        cut_at: Timestamp,
        stale_after: Duration,
        wires: &[&dyn Wire],
    ) -> Self {
        let mut listed: Vec<Vec<&Event>> = vec![Vec::new(); book.catalogue().sports().count()];
        for event in book.events().filter(|event| event.is_listed()) {
            if let Some(of_sport) = listed.get_mut(event.sport.index()) {
                of_sport.push(event);
            }
        }
        let sports = book.catalogue().sports().zip(listed).map(|((sport, _), mut events)| {
            events.sort_unstable_by_key(|event| (event.commence_time, event.id));
            let sources = source_rows(book, sport, cut_at, stale_after);
            Arc::new(SportView::cut(book, &events, sources, wires))
        });
        let feeds = book.feed_names().map(Into::into).collect();
        Self { feeds, ..Self::of_views(book, seq, cut_at, stale_after, sports.collect()) }
    }

    /// As [`Snapshot::cut`], for some events only and without sources, at a cost in proportion to those events.
    pub fn cut_events(
        book: &Book,
        ids: &BTreeSet<EventId>,
        (seq, cut_at): (u64, Timestamp),
        stale_after: Duration,
        wires: &[&dyn Wire],
    ) -> Self {
        let mut events: Vec<&Event> = ids.iter().filter_map(|id| book.event(*id)).collect();
        events.retain(|event| event.is_listed());
        events.sort_unstable_by_key(|event| (event.sport.index(), event.commence_time, event.id));
        let mut sports = vec![Arc::default(); book.catalogue().sports().count()];
        for of_sport in events.chunk_by(|one, other| one.sport == other.sport) {
            let at = of_sport.first().map(|event| event.sport.index());
            if let Some(view) = at.and_then(|at| sports.get_mut(at)) {
                *view = Arc::new(SportView::cut(book, of_sport, Vec::new(), wires));
            }
        }
        Self::of_views(book, seq, cut_at, stale_after, sports)
    }

    fn of_views(
        book: &Book,
        seq: u64,
        cut_at: Timestamp,
        stale_after: Duration,
        sports: Vec<Arc<SportView>>,
    ) -> Self {
        let catalogue = Arc::clone(book.catalogue());
        let writer = book.configured().map_or(0, |configured| configured.writer);
        Self { cut_at, stale_after, seq, writer, catalogue, sports, feeds: Box::default() }
    }

    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// The view of a sport, by its id in this snapshot's catalogue.
    #[expect(
        clippy::indexing_slicing,
        reason = "there is one view for every sport of the catalogue"
    )]
    pub fn sport(&self, id: SportId) -> &SportView {
        &self.sports[id.index()]
    }

    /// The feeds that have quoted a bookmaker in a sport. Shown to operators; no answer of the API contains them.
    pub fn feeds_quoting(&self, sport: SportId, bookmaker: BookmakerId) -> Vec<&str> {
        let source = self.sport(sport).source(bookmaker);
        let quoting = source.map_or(&[][..], |source| &source.quoted_by).iter();
        let name = |feed: &FeedIx| self.feeds.get(usize::try_from(feed.0).ok()?);
        quoting.filter_map(name).map(|name| &**name).collect()
    }

    pub fn records(&self) -> usize {
        self.sports.iter().map(|sport| sport.records.len()).sum()
    }

    /// An event as rendered by a wire; rendered now if the snapshot was not cut for that wire.
    pub fn rendered_event<'a>(&self, wire: &impl Wire, event: &'a EventRow) -> &'a Rendered {
        let render = || wire.render_event(&self.catalogue, event);
        event.details.rendered.get_or_render(wire.slot(), render)
    }

    /// A record as rendered by a wire; rendered now if the snapshot was not cut for that wire.
    pub fn rendered_record<'a>(
        &self,
        wire: &impl Wire,
        event: &EventRow,
        record: &'a RecordRow,
    ) -> &'a Rendered {
        let render = || wire.render_record(&self.catalogue, event, record);
        record.record.rendered.get_or_render(wire.slot(), render)
    }

    pub fn events(&self) -> usize {
        self.sports.iter().map(|sport| sport.events.len()).sum()
    }
}

impl SportView {
    fn cut(book: &Book, listed: &[&Event], sources: Vec<SourceRow>, wires: &[&dyn Wire]) -> Self {
        let catalogue = book.catalogue();
        let mut view = Self::new(catalogue, listed.len(), sources);
        let records = listed.iter().map(|event| event.slots.len()).sum();
        view.records.reserve(records);
        view.kinds.reserve(records);
        // All of them belong to one sport.
        let beats = Beats::new(book, listed.first().map(|event| event.sport));
        for (at, event) in (0_u32..).zip(listed) {
            let from = view.next_record();
            let mut row = EventRow::new(book, event, from);
            for wire in wires {
                let render = || wire.render_event(catalogue, &row);
                row.details.rendered.get_or_render(wire.slot(), render);
            }
            for (key, slot) in &event.slots {
                let Some(open) = &slot.open else { continue };
                let record = RecordRow {
                    record: Arc::clone(open),
                    id: key.record,
                    event: at,
                    bookmaker: key.bookmaker,
                    market: key.market,
                    last_update: slot.confirmed().last_update(beats.of(key.bookmaker)),
                };
                for wire in wires {
                    let render = || wire.render_record(catalogue, &row, &record);
                    open.rendered.get_or_render(wire.slot(), render);
                }
                view.push_record(record);
            }
            row.records.end = view.next_record();
            view.push_event(row);
        }
        for (younger, elder) in book.merged() {
            if let Some(at) = view.by_id.get(&elder).copied() {
                view.by_id.insert(younger, at);
                let row = usize::try_from(at).ok().and_then(|at| view.events.get_mut(at));
                row.into_iter().for_each(|row| row.also.push(younger));
            }
        }
        view.count_bookmakers()
    }

    /// A view without events yet.
    fn new(catalogue: &Catalogue, events: usize, sources: Vec<SourceRow>) -> Self {
        Self {
            events: Vec::with_capacity(events),
            active: sources.iter().any(|source| !source.stale),
            sources,
            by_id: HashMap::with_capacity_and_hasher(events, BuildHasherDefault::default()),
            by_bookmaker: vec![Vec::new(); catalogue.bookmakers().count()],
            by_market: vec![Vec::new(); Market::ALL.len()],
            ..Self::default()
        }
    }

    /// Adds an event after its records.
    fn push_event(&mut self, row: EventRow) {
        let at = u32::try_from(self.events.len()).unwrap_or(u32::MAX);
        self.by_id.insert(row.id, at);
        self.by_id.extend(row.also.iter().map(|id| (*id, at)));
        self.events_open += u32::from(row.status != Status::Final);
        self.events.push(row);
    }

    fn count_bookmakers(mut self) -> Self {
        let pricing = self.by_bookmaker.iter().filter(|positions| !positions.is_empty()).count();
        self.bookmakers = u32::try_from(pricing).unwrap_or(u32::MAX);
        self
    }

    fn next_record(&self) -> u32 {
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    fn push_record(&mut self, row: RecordRow) {
        let at = self.next_record();
        if let Some(positions) = self.by_bookmaker.get_mut(row.bookmaker.index()) {
            positions.push(at);
        }
        if let Some(positions) = self.by_market.get_mut(row.market.index()) {
            positions.push(at);
        }
        self.kinds.push((row.bookmaker, row.market));
        self.records.push(row);
    }

    pub fn event(&self, id: EventId) -> Option<&EventRow> {
        self.events.get(self.event_position(id)?)
    }

    /// The next event to start that has prices, or the last one, for examples: the first of the list is over, and may
    /// be gone before its reader requests it.
    pub fn upcoming_event(&self) -> Option<&EventRow> {
        let is_next = |row: &&EventRow| row.status == Status::Scheduled && !row.records.is_empty();
        self.events.iter().find(is_next).or_else(|| self.events.last())
    }

    /// The position of an event.
    pub fn event_position(&self, id: EventId) -> Option<usize> {
        usize::try_from(*self.by_id.get(&id)?).ok()
    }

    pub fn record(&self, at: u32) -> Option<&RecordRow> {
        self.records.get(usize::try_from(at).ok()?)
    }

    /// The bookmaker and market of a record.
    pub fn kind(&self, at: u32) -> Option<(BookmakerId, Market)> {
        self.kinds.get(usize::try_from(at).ok()?).copied()
    }

    pub(crate) fn of_bookmaker(&self, bookmaker: BookmakerId) -> &[u32] {
        self.by_bookmaker.get(bookmaker.index()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn of_market(&self, market: Market) -> &[u32] {
        self.by_market.get(market.index()).map_or(&[], Vec::as_slice)
    }
}

impl EventRow {
    /// An event before its records.
    fn new(book: &Book, event: &Event, records_from: u32) -> Self {
        Self {
            id: event.id,
            commence_time: event.commence_time,
            status: event.score.status,
            details: Arc::clone(event.details()),
            records: records_from..records_from,
            entrants: Arc::clone(event.field.names()),
            closed: closed(book, event).into(),
            listed_by: event.listed_by.iter().map(|(feed, _)| *feed).collect(),
            may_be: book.doubted_with(event.id).collect(),
            also: Vec::new(),
        }
    }

    /// The bookmakers at which a market is suspended: it has no prices while its feed lists the event (D24).
    pub fn suspended(&self, market: Market) -> impl Iterator<Item = BookmakerId> {
        let closed = self.closed.iter().filter(move |row| row.listed && row.market == market);
        closed.map(|row| row.bookmaker)
    }

    /// The text of an outcome's name.
    pub fn outcome_text(&self, name: OutcomeName) -> &str {
        let EventDetails { title, home, away, .. } = &*self.details;
        let text = |side| title.as_ref().or(side).map_or("", |text| &**text);
        match name {
            OutcomeName::Home => text(home.as_ref()),
            OutcomeName::Away => text(away.as_ref()),
            OutcomeName::Draw => "Draw",
            OutcomeName::Over => "Over",
            OutcomeName::Under => "Under",
            OutcomeName::Entrant(at) => self.entrants.get(usize::from(at)).map_or("", |name| name),
        }
    }
}

/// The newest heartbeats of a sport's bookmakers, by number: they are needed once for each record.
struct Beats(Vec<Timestamp>);

impl Beats {
    fn new(book: &Book, sport: Option<SportId>) -> Self {
        let beat_at = |id| sport.map_or(Source::NEVER.beat_at, |sport| book.beat_at(sport, id));
        Self(book.catalogue().bookmakers().map(|(id, _)| beat_at(id)).collect())
    }

    fn of(&self, bookmaker: BookmakerId) -> Timestamp {
        self.0.get(bookmaker.index()).copied().unwrap_or(Source::NEVER.beat_at)
    }
}

/// One row for all pairings of a market (D30).
fn closed(book: &Book, event: &Event) -> Vec<ClosedRow> {
    let mut rows: Vec<ClosedRow> = Vec::new();
    if event.is_final() {
        return rows;
    }
    // Slots are in the order of bookmakers, then markets.
    for (key, slot) in event.slots.iter().filter(|(_, slot)| slot.open.is_none()) {
        let listed = event.is_listed_by(slot.feed);
        let since = if listed { slot.ts } else { withdrawn_at(book, event, slot) };
        let row = ClosedRow { bookmaker: key.bookmaker, market: key.market, since, listed };
        match rows.last_mut() {
            Some(last) if (last.bookmaker, last.market) == (row.bookmaker, row.market) => {
                if (row.listed, row.since) > (last.listed, last.since) {
                    *last = row;
                }
            }
            _ => rows.push(row),
        }
    }
    rows
}

/// Time when the feed of a slot withdrew the event, as far as known.
fn withdrawn_at(book: &Book, event: &Event, slot: &Slot) -> Timestamp {
    let of_feed = event.withdrawn.range((slot.feed, Box::default())..);
    let refs = of_feed.take_while(|(feed, _)| *feed == slot.feed);
    let offers = refs.filter_map(|(feed, reference)| book.feed(*feed)?.offer(reference));
    offers.map(|offer| offer.ts).fold(slot.ts, Timestamp::max)
}

fn source_rows(
    book: &Book,
    sport: SportId,
    cut_at: Timestamp,
    stale_after: Duration,
) -> Vec<SourceRow> {
    book.sources()
        .filter(|(of, _, _)| *of == sport)
        .map(|(_, bookmaker, source)| SourceRow {
            bookmaker,
            source,
            stale: source.is_stale(cut_at, stale_after),
            quoted_by: book.feeds_quoting(sport, bookmaker).collect(),
        })
        .collect()
}
