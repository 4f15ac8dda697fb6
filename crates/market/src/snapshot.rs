//! A published state of one world: immutable, indexed, ready to be selected from.
//!
//! A snapshot shares the records' text with the book, so making one costs a pointer and a stamp for each
//! record, whether or not it changed.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use domain::{BookmakerId, Catalogue, EventId, Market, RecordId, SportId, Status, Timestamp};

use crate::book::{Book, Event, EventTexts, Record};
use crate::freshness::Source;
use crate::matching::Hashed;
use crate::render::{self, RecordText};
use crate::share::Shares;

/// Everything answers of one epoch are made from.
#[derive(Debug)]
pub struct Snapshot {
    /// When the epoch was cut; freshness in it is as of then.
    pub cut_at: Timestamp,
    catalogue: Arc<Catalogue>,
    sports: Vec<SportView>,
}

/// One sport in a snapshot.
#[derive(Debug)]
pub struct SportView {
    /// By start, then id.
    pub events: Vec<EventRow>,
    /// By start, event id, bookmaker key, market key, record id.
    pub records: Vec<RecordRow>,
    /// By bookmaker key.
    pub sources: Vec<SourceRow>,
    /// False when every source is stale, or there is none.
    pub active: bool,
    /// Scheduled and live events (D31).
    pub events_open: u32,
    /// Bookmakers with prices.
    pub bookmakers: u32,
    /// Ids of events that turned out to be another lead to that one.
    by_id: HashMap<EventId, u32, BuildHasherDefault<Hashed>>,
    /// What each record is of, side by side: filters look at many of these for each record that they let through.
    kinds: Vec<(BookmakerId, Market)>,
    /// Positions in `records`, for each bookmaker and each market.
    by_bookmaker: Vec<Vec<u32>>,
    by_market: Vec<Vec<u32>>,
    pub(crate) shares: Shares,
}

/// One event.
#[derive(Debug)]
pub struct EventRow {
    pub id: EventId,
    pub commence_time: Timestamp,
    pub status: Status,
    pub texts: Arc<EventTexts>,
    /// Its records' positions.
    pub records: Range<u32>,
    /// The players of a field by their numbers; empty for head-to-head events.
    pub entrants: Arc<Vec<Box<str>>>,
    /// Markets without prices at the moment, of bookmakers whose feed lists the event: suspended (D24).
    pub suspended: Vec<(BookmakerId, Market)>,
}

/// One odds record.
#[derive(Debug)]
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
#[derive(Debug)]
pub struct SourceRow {
    pub bookmaker: BookmakerId,
    pub source: Source,
    pub stale: bool,
}

impl Snapshot {
    /// The book as it stands, with freshness as of `cut_at`.
    pub fn cut(book: &Book, cut_at: Timestamp, stale_after: Duration) -> Self {
        let catalogue = Arc::clone(book.catalogue());
        let mut listed: Vec<Vec<&Event>> = vec![Vec::new(); catalogue.sports().count()];
        for event in book.events().filter(|event| event.is_listed()) {
            if let Some(of_sport) = listed.get_mut(event.sport.index()) {
                of_sport.push(event);
            }
        }
        let sports = catalogue
            .sports()
            .zip(listed)
            .map(|((sport, _), mut events)| {
                events.sort_unstable_by_key(|event| (event.commence_time, event.id));
                SportView::cut(book, sport, &events, cut_at, stale_after)
            })
            .collect();
        Self { cut_at, catalogue, sports }
    }

    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// The sport behind an id of this snapshot's catalogue.
    #[expect(
        clippy::indexing_slicing,
        reason = "there is one view for every sport of the catalogue"
    )]
    pub fn sport(&self, id: SportId) -> &SportView {
        &self.sports[id.index()]
    }

    pub fn records(&self) -> usize {
        self.sports.iter().map(|sport| sport.records.len()).sum()
    }

    /// What is kept of events' shares of answers, for an operator to watch.
    pub fn shared_bytes(&self) -> usize {
        self.sports.iter().map(|sport| sport.shares.kept_bytes()).sum()
    }

    pub fn events(&self) -> usize {
        self.sports.iter().map(|sport| sport.events.len()).sum()
    }
}

impl SportView {
    fn cut(
        book: &Book,
        sport_id: SportId,
        listed: &[&Event],
        cut_at: Timestamp,
        stale_after: Duration,
    ) -> Self {
        let catalogue = book.catalogue();
        let sport = catalogue.sport(sport_id);
        let sources = source_rows(book, sport_id, cut_at, stale_after);
        let mut view = Self {
            events: Vec::with_capacity(listed.len()),
            records: Vec::new(),
            kinds: Vec::new(),
            active: sources.iter().any(|source| !source.stale),
            sources,
            events_open: 0,
            bookmakers: 0,
            by_id: HashMap::with_capacity_and_hasher(listed.len(), BuildHasherDefault::default()),
            by_bookmaker: vec![Vec::new(); catalogue.bookmakers().count()],
            by_market: vec![Vec::new(); Market::ALL.len()],
            shares: Shares::default(),
        };
        for (at, event) in (0_u32..).zip(listed) {
            let texts = event.texts.get_or_init(|| Arc::new(render::event_texts(event, sport)));
            let from = view.next_record();
            for (key, slot) in &event.slots {
                let Some(record) = &slot.open else { continue };
                record.text.get_or_init(|| {
                    let bookmaker = &catalogue.bookmaker(key.bookmaker).key;
                    let market = key.market.key();
                    RecordText::render(
                        event,
                        sport,
                        bookmaker,
                        market,
                        key.record,
                        &record.outcomes,
                    )
                });
                view.push_record(RecordRow {
                    record: Arc::clone(record),
                    id: key.record,
                    event: at,
                    bookmaker: key.bookmaker,
                    market: key.market,
                    last_update: book.last_update(sport_id, key, slot),
                });
            }
            view.by_id.insert(event.id, at);
            view.events_open += u32::from(event.score.status != Status::Final);
            view.events.push(EventRow {
                id: event.id,
                commence_time: event.commence_time,
                status: event.score.status,
                texts: Arc::clone(texts),
                records: from..view.next_record(),
                entrants: Arc::clone(event.field.names()),
                suspended: suspended(event),
            });
        }
        for (younger, elder) in book.merged() {
            if let Some(at) = view.by_id.get(&elder).copied() {
                view.by_id.insert(younger, at);
            }
        }
        let pricing = view.by_bookmaker.iter().filter(|positions| !positions.is_empty()).count();
        view.bookmakers = u32::try_from(pricing).unwrap_or(u32::MAX);
        view
    }

    pub(crate) fn next_record(&self) -> u32 {
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

    pub(crate) fn event_position(&self, id: EventId) -> Option<usize> {
        usize::try_from(*self.by_id.get(&id)?).ok()
    }

    pub(crate) fn record(&self, at: u32) -> Option<&RecordRow> {
        self.records.get(usize::try_from(at).ok()?)
    }

    /// Whose record it is, and of which market.
    pub(crate) fn kind(&self, at: u32) -> Option<(BookmakerId, Market)> {
        self.kinds.get(usize::try_from(at).ok()?).copied()
    }

    pub(crate) fn of_bookmaker(&self, bookmaker: BookmakerId) -> &[u32] {
        self.by_bookmaker.get(bookmaker.index()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn of_market(&self, market: Market) -> &[u32] {
        self.by_market.get(market.index()).map_or(&[], Vec::as_slice)
    }
}

impl RecordRow {
    /// The JSON pieces; always there in a snapshot.
    pub(crate) fn text(&self) -> Option<&RecordText> {
        self.record.text.get()
    }
}

fn suspended(event: &Event) -> Vec<(BookmakerId, Market)> {
    if event.is_final() {
        return Vec::new();
    }
    let closed = event.slots.iter().filter(|(_, slot)| slot.open.is_none());
    let offered = closed.filter(|(_, slot)| event.is_listed_by(slot.feed));
    let mut markets: Vec<(BookmakerId, Market)> =
        offered.map(|(key, _)| (key.bookmaker, key.market)).collect();
    // One for all pairings of a market (D30); slots are in the order of bookmakers, then markets.
    markets.dedup();
    markets
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
        })
        .collect()
}
