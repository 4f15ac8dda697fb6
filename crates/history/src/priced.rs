//! The prices that publications show, so that `odds` also has the changes that no bookmaker reported: an event was
//! removed, became final, was joined with another or renamed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use domain::{BookmakerId, EventId, Market, RecordId, SportId, Status, Timestamp};
use market::Book;
use market::book::{Event, OpenRecord, Record};
use market::change::Quoted;

use crate::Entry;
use crate::confirmations::{Confirmations, Place};
use crate::frame::Frame;
use crate::rows::{self, OddsHead};

/// The changes since the last publication.
#[derive(Debug, Default)]
pub(crate) struct SinceCut {
    /// The last change of each record, and of each score.
    pub(crate) records: HashMap<RecordId, LastQuoted>,
    pub(crate) scores: HashMap<EventId, LastScored>,
    /// The last entry that names an event.
    pub(crate) touched: HashMap<EventId, (u64, Timestamp)>,
    pub(crate) merged: HashMap<EventId, EventId>,
    /// True if any event may be shown differently.
    pub(crate) any: bool,
    /// The freshness of prices in the last publication.
    pub(crate) confirmations: Confirmations,
}

impl SinceCut {
    /// The entry that caused a difference of an event: the last one that names it, if that came after the last report
    /// on the same, otherwise the publication.
    pub(crate) fn cause(
        &self,
        event: EventId,
        reported: Option<u64>,
        cut: &Entry,
    ) -> (u64, Timestamp) {
        let touched = self.touched.get(&event).copied();
        let later = touched.filter(|(seq, _)| reported.is_none_or(|reported| reported < *seq));
        later.unwrap_or((cut.seq, cut.at))
    }
}

/// The last change of a record.
#[derive(Clone, Debug)]
pub(crate) struct LastQuoted {
    pub(crate) seq: u64,
    pub(crate) event: EventId,
    /// True if it withdrew the prices.
    empty: bool,
    /// The record after the change.
    record: Option<Arc<Record>>,
}

impl LastQuoted {
    /// The change of an entry that the book has absorbed.
    pub(crate) fn of(seq: u64, id: RecordId, quoted: &Quoted, book: &Book) -> Self {
        let (event, key) = (quoted.event, &quoted.market);
        let bookmaker = book.catalogue().bookmaker_id(&key.bookmaker);
        let record = book
            .event(event)
            .zip(bookmaker)
            .and_then(|(event, bookmaker)| event.open_record(bookmaker, key.market, id).cloned());
        Self { seq, event, empty: quoted.outcomes.is_empty(), record }
    }

    /// True if a publication shows it: nothing has changed the prices since.
    fn is_shown(&self, open: Option<&Arc<Record>>) -> bool {
        match open {
            Some(open) => self.record.as_ref().is_some_and(|own| Arc::ptr_eq(own, open)),
            None => self.empty,
        }
    }
}

/// The last report of a score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastScored {
    pub(crate) seq: u64,
    /// A hash of the score after the report.
    pub(crate) look: u64,
}

/// A record that is shown with one catalogue and not with the next, with its keys as text.
#[derive(Debug)]
pub(crate) struct DroppedRecord {
    pub(crate) sport: Box<str>,
    pub(crate) event: EventId,
    pub(crate) record: RecordId,
    pub(crate) bookmaker: Box<str>,
    pub(crate) market: Market,
    pub(crate) group: Option<Box<str>>,
    pub(crate) last_update: Option<Timestamp>,
}

/// The prices that the last publication shows.
#[derive(Debug, Default)]
pub(crate) struct Priced(HashMap<EventId, PricedEvent>);

#[derive(Debug)]
struct PricedEvent {
    sport: SportId,
    records: HashMap<RecordId, PricedRecord>,
}

#[derive(Debug)]
struct PricedRecord {
    record: Arc<Record>,
    bookmaker: BookmakerId,
    market: Market,
    group: Option<Box<str>>,
}

impl PricedRecord {
    fn place(&self, sport: SportId, event: EventId, record: RecordId) -> Place {
        let Self { bookmaker, market, .. } = *self;
        Place { sport, event, bookmaker, market, record }
    }
}

impl PricedEvent {
    /// The shown prices of an event; `None` if it has none.
    fn of(event: &Event) -> Option<Self> {
        let priced = |open: OpenRecord<'_>| {
            let OpenRecord { id, bookmaker, market, group, record, .. } = open;
            let (record, group) = (Arc::clone(record), group.map(Into::into));
            (id, PricedRecord { record, bookmaker, market, group })
        };
        let records: HashMap<_, _> = event.open_records().map(priced).collect();
        (event.is_listed() && !records.is_empty()).then_some(Self { sport: event.sport, records })
    }
}

impl Priced {
    /// The prices of a book that was just published.
    pub(crate) fn of(book: &Book) -> Self {
        let priced = |event: &Event| Some((event.id, PricedEvent::of(event)?));
        Self(book.events().filter_map(priced).collect())
    }

    /// Keeps the prices that the previous publication, made with another catalogue, showed with the same outcomes.
    /// Returns those that it showed and that are missing now.
    pub(crate) fn carry(&mut self, before: &Self, book: &Book) -> Vec<DroppedRecord> {
        let mut dropped = Vec::new();
        for (event, priced) in &before.0 {
            let now = self.0.get(event).map(|now| &now.records);
            let is_gone = |record: &RecordId| now.is_none_or(|now| !now.contains_key(record));
            for (record, held) in priced.records.iter().filter(|(record, _)| is_gone(record)) {
                let place = held.place(priced.sport, *event, *record);
                dropped.push(DroppedRecord {
                    sport: book.catalogue().sport(priced.sport).key.clone(),
                    event: *event,
                    record: *record,
                    bookmaker: book.catalogue().bookmaker(held.bookmaker).key.clone(),
                    market: held.market,
                    group: held.group.clone(),
                    last_update: Confirmations::default().last_update(book, &place),
                });
            }
        }
        dropped.sort_unstable_by_key(|held| (held.event, held.record));
        for (event, priced) in &mut self.0 {
            let then = before.0.get(event).map(|then| &then.records);
            priced.records.retain(|record, now| {
                let then = then.and_then(|then| then.get(record));
                then.is_some_and(|then| then.record.outcomes == now.record.outcomes)
            });
        }
        dropped
    }

    /// True if the last publication shows prices of a record.
    pub(crate) fn has(&self, event: EventId, record: RecordId) -> bool {
        self.0.get(&event).is_some_and(|priced| priced.records.contains_key(&record))
    }

    /// The freshness of an event's prices in the last publication.
    pub(crate) fn last_updates(
        &self,
        book: &Book,
        event: EventId,
        since: &SinceCut,
    ) -> HashMap<RecordId, Timestamp> {
        let Some(priced) = self.0.get(&event) else { return HashMap::new() };
        let fresh = |(record, held): (&RecordId, &PricedRecord)| {
            let place = held.place(priced.sport, event, *record);
            Some((*record, since.confirmations.last_update(book, &place)?))
        };
        priced.records.iter().filter_map(fresh).collect()
    }

    /// The freshness of one record's prices in it.
    pub(crate) fn last_update(
        &self,
        book: &Book,
        (event, record): (EventId, RecordId),
        since: &SinceCut,
    ) -> Option<Timestamp> {
        let priced = self.0.get(&event)?;
        let place = priced.records.get(&record)?.place(priced.sport, event, record);
        since.confirmations.last_update(book, &place)
    }

    /// The entries of price changes that a publication shows.
    pub(crate) fn shown_quotes(&self, book: &Book, since: &SinceCut) -> HashSet<u64> {
        let events: HashSet<EventId> = since.records.values().map(|quoted| quoted.event).collect();
        let events = events.iter().filter_map(|id| book.event(*id));
        let open: HashMap<RecordId, &Arc<Record>> = events
            .flat_map(|event| event.open_records().map(|open| (open.id, open.record)))
            .collect();
        let is_shown =
            |(id, quoted): &(&RecordId, &LastQuoted)| quoted.is_shown(open.get(id).copied());
        since.records.iter().filter(is_shown).map(|(_, quoted)| quoted.seq).collect()
    }

    /// Adds rows for differences to the previous publication that no price change explains.
    pub(crate) fn note(
        &mut self,
        odds: &mut Frame,
        book: &Book,
        since: &SinceCut,
        cut: (&Entry, Timestamp),
    ) {
        let ids: BTreeSet<EventId> = match since.any {
            true => book.events().map(|event| event.id).chain(self.0.keys().copied()).collect(),
            false => {
                let quoted = since.records.values().map(|quoted| quoted.event);
                since.touched.keys().copied().chain(quoted).collect()
            }
        };
        for id in ids {
            let event = book.event(id).filter(|event| event.is_listed());
            let now = event.and_then(PricedEvent::of);
            let before = match now {
                Some(now) => self.0.insert(id, now),
                None => self.0.remove(&id),
            };
            if let Some(before) = &before {
                note_gone(odds, book, since, (id, event, before), cut);
            }
            if let Some(event) = event {
                let before = before.as_ref().map(|before| &before.records);
                note_shown(odds, book, since, (event, before), cut);
            }
        }
    }
}

/// Adds rows for prices that are not shown any more.
fn note_gone(
    odds: &mut Frame,
    book: &Book,
    since: &SinceCut,
    (id, event, before): (EventId, Option<&Event>, &PricedEvent),
    (entry, published_at): (&Entry, Timestamp),
) {
    let open: HashSet<RecordId> = match event {
        Some(event) => event.open_records().map(|open| open.id).collect(),
        None => HashSet::new(),
    };
    let reason = match event {
        Some(event) if event.score.status == Status::Final => "final",
        None if since.merged.contains_key(&id) => "merged",
        Some(_) | None => "removed",
    };
    let catalogue = book.catalogue();
    for (record, held) in before.records.iter().filter(|(record, _)| !open.contains(record)) {
        let quoted = since.records.get(record);
        // A row already says that the bookmaker withdrew them.
        if event.is_some() && quoted.is_some_and(|quoted| quoted.is_shown(None)) {
            continue;
        }
        let (seq, at) = since.cause(id, quoted.map(|quoted| quoted.seq), entry);
        let head = OddsHead {
            seq,
            at,
            ts: at,
            published_at: Some(published_at),
            sport: Some(&catalogue.sport(before.sport).key),
            event: id,
            record: *record,
            bookmaker: &catalogue.bookmaker(held.bookmaker).key,
            market: held.market,
            group: held.group.as_deref(),
            last_update: since
                .confirmations
                .last_update(book, &held.place(before.sport, id, *record)),
        };
        rows::push_gone(odds, &head, reason);
    }
}

/// Adds rows for prices that are shown differently without a change of their own.
fn note_shown(
    odds: &mut Frame,
    book: &Book,
    since: &SinceCut,
    (event, before): (&Event, Option<&HashMap<RecordId, PricedRecord>>),
    (entry, published_at): (&Entry, Timestamp),
) {
    let catalogue = book.catalogue();
    for open in event.open_records() {
        let held = before.and_then(|before| before.get(&open.id));
        let same = held.is_some_and(|held| Arc::ptr_eq(&held.record, open.record));
        let quoted = since.records.get(&open.id);
        if same || quoted.is_some_and(|quoted| quoted.is_shown(Some(open.record))) {
            continue;
        }
        let (seq, at) = since.cause(event.id, quoted.map(|quoted| quoted.seq), entry);
        let confirmed = event.confirmed_of(open.bookmaker, open.market, open.id);
        let beat_at = book.beat_at(event.sport, open.bookmaker);
        let head = OddsHead {
            seq,
            at,
            ts: open.ts,
            published_at: Some(published_at),
            sport: Some(&catalogue.sport(event.sport).key),
            event: event.id,
            record: open.id,
            bookmaker: &catalogue.bookmaker(open.bookmaker).key,
            market: open.market,
            group: open.group,
            // Their confirmation may be of another lineage, or past retention.
            last_update: confirmed.map(|confirmed| confirmed.last_update(beat_at)),
        };
        let beat_seen = confirmed.map(|confirmed| confirmed.beat_seen);
        rows::push_shown(odds, &head, (event, open.record), beat_seen);
    }
}
