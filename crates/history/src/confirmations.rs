//! The freshness of prices in the last publication, while the entries after it are read.

use std::collections::HashMap;

use domain::{BookmakerId, EventId, Market, RecordId, SportId, Timestamp};
use market::{Book, Change, Confirmed};

use crate::rows;

/// The state before the first change since the last publication, once for each record and source.
#[derive(Debug, Default)]
pub(crate) struct Confirmations {
    records: HashMap<RecordId, Confirmed>,
    beats: HashMap<(SportId, BookmakerId), Timestamp>,
}

/// A record with the keys of its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) sport: SportId,
    pub(crate) event: EventId,
    pub(crate) bookmaker: BookmakerId,
    pub(crate) market: Market,
    pub(crate) record: RecordId,
}

impl Confirmations {
    /// Notes the state that an entry is about to change; `book` is the book before it.
    pub(crate) fn note(&mut self, book: &Book, change: &Change) {
        match change {
            Change::Quoted(quoted) => self.note_record(book, quoted.event, &quoted.market),
            Change::Confirmed { event, market, .. } => self.note_record(book, *event, market),
            Change::Beat { bookmaker, sport, .. } => {
                let catalogue = book.catalogue();
                let Some(bookmaker) = catalogue.bookmaker_id(bookmaker) else { return };
                let named = |key: &str| sport.as_deref().is_none_or(|sport| sport == key);
                for (sport, _) in catalogue.sports().filter(|(_, held)| named(&held.key)) {
                    let beat_at = book.beat_at(sport, bookmaker);
                    self.beats.entry((sport, bookmaker)).or_insert(beat_at);
                }
            }
            // Their records disappear, or move to another event.
            Change::Expired { event } => self.note_event(book, *event),
            Change::Merged { elder, younger, .. } => {
                self.note_event(book, *elder);
                self.note_event(book, *younger);
            }
            Change::Split { event, .. } => self.note_event(book, *event),
            Change::Founded { .. }
            | Change::Listed(_)
            | Change::Scored { .. }
            | Change::Withdrawn { .. }
            | Change::SourceForgotten { .. }
            | Change::Cut { .. }
            | Change::Joined(_)
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            | Change::Dropped { .. }
            | Change::Paced { .. }
            | Change::Configured(_)
            | Change::Unlogged { .. } => {}
        }
    }

    fn note_record(&mut self, book: &Book, event: EventId, market: &market::change::MarketKey) {
        let Some(bookmaker) = book.catalogue().bookmaker_id(&market.bookmaker) else { return };
        let record = rows::record_id(event, market);
        let held = book.event(event);
        let held = held.and_then(|event| event.confirmed_of(bookmaker, market.market, record));
        if let Some(held) = held {
            self.records.entry(record).or_insert(held);
        }
    }

    fn note_event(&mut self, book: &Book, event: EventId) {
        for (record, held) in book.event(event).into_iter().flat_map(market::book::Event::confirmed)
        {
            self.records.entry(record).or_insert(held);
        }
    }

    /// Time at which prices were confirmed according to the last publication; `book` is the present book.
    pub(crate) fn last_update(&self, book: &Book, place: &Place) -> Option<Timestamp> {
        let Place { sport, event, bookmaker, market, record } = *place;
        let now = || book.event(event)?.confirmed_of(bookmaker, market, record);
        let held = self.records.get(&record).copied().or_else(now)?;
        let beat_at = self.beats.get(&(sport, bookmaker)).copied();
        Some(held.last_update(beat_at.unwrap_or_else(|| book.beat_at(sport, bookmaker))))
    }
}
