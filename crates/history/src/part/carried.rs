//! A part whose publications do not continue the previous one: they are made with another catalogue, or from another
//! log. Content that disappears or reappears has rows like any other change.

use domain::{EventId, Timestamp};
use market::Book;

use super::{BaseImage, Part, shown_of};
use crate::Entry;
use crate::commit::Commit;
use crate::priced::{DroppedRecord, Priced};
use crate::rows::{self, EventChange, OddsHead};
use crate::scored::Scored;
use crate::starts::Starts;

/// Content of the last publication that the next one may not have.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    events: Vec<(EventId, Box<str>)>,
    records: Vec<DroppedRecord>,
    /// Time of that publication, if the next ones may be of the same time or earlier.
    last_ms: Option<i64>,
}

impl Dropped {
    /// True if the last publication shows an event.
    pub(super) fn has(&self, event: EventId) -> bool {
        self.events.binary_search_by_key(&event, |(id, _)| *id).is_ok()
    }
}

impl Part {
    /// Starts after the last archived entry. That entry was published from `before`, and the next entries start with
    /// `book`, which has another catalogue. The archive stores this book, because nothing else records the state that
    /// a process derived from its log when it started.
    pub fn carried(commit: &Commit, before: &Book, book: Book) -> Option<Self> {
        let mut part = Self::after(commit, book)?;
        let bytes = part.book.to_image();
        part.base_image = Some(BaseImage { seq: part.after.last_seq, carried: true, bytes });
        let (shown, catalogue) = (shown_of(before), before.catalogue());
        let is_gone = |id: &EventId| !part.shown.contains_key(id);
        let gone = shown.iter().filter(|(id, _)| is_gone(id));
        let mut events: Vec<_> =
            gone.map(|(id, (_, sport))| (*id, catalogue.sport(*sport).key.clone())).collect();
        events.sort_unstable();
        part.shown.retain(|id, (look, _)| shown.get(id).is_some_and(|(held, _)| held == look));
        let records = part.priced.carry(&Priced::of(before), before);
        part.scored = Scored::of(before);
        part.dropped = Dropped { events, records, last_ms: None };
        part.since_cut.any = true;
        Some(part)
    }

    /// For a part that founds a lineage: the last publication of the previous lineage was made from `before`. Its
    /// content ends with the first publication after it, unless that shows it too.
    #[must_use]
    pub fn replacing(self, commit: &Commit, before: &Book) -> Self {
        let catalogue = before.catalogue();
        let sport_of = |sport| catalogue.sport(sport).key.clone();
        let shown = shown_of(before).into_iter();
        let mut events: Vec<_> = shown.map(|(id, (_, sport))| (id, sport_of(sport))).collect();
        events.sort_unstable();
        let records = Priced::default().carry(&Priced::of(before), before);
        let last_ms = commit.lineages.last().map(|last| last.last_ms);
        let shown_at = Timestamp::from_millis(last_ms.unwrap_or_default());
        let starts = self.starts.continuing(&Starts::of(before, shown_at), &self.book);
        Self { dropped: Dropped { events, records, last_ms }, starts, ..self }
    }

    /// Adds rows for the content that the first publication does not have.
    pub(super) fn note_dropped(&mut self, entry: &Entry, cut: Timestamp) {
        if self.dropped.last_ms.is_some_and(|last_ms| cut.as_millis() <= last_ms) {
            return;
        }
        let Dropped { events, records, .. } = std::mem::take(&mut self.dropped);
        for (id, sport) in events.iter().filter(|(id, _)| !self.shown.contains_key(id)) {
            let change = EventChange {
                seq: entry.seq,
                at: entry.at,
                published_at: cut,
                id: *id,
                what: "removed",
                event: None,
                sport: Some(sport),
                merged_into: None,
            };
            rows::push_event(&mut self.tables.events, &change);
        }
        for held in records.iter().filter(|held| !self.priced.has(held.event, held.record)) {
            let head = OddsHead {
                seq: entry.seq,
                at: entry.at,
                ts: entry.at,
                published_at: Some(cut),
                sport: Some(&held.sport),
                event: held.event,
                record: held.record,
                bookmaker: &held.bookmaker,
                market: held.market,
                group: held.group.as_deref(),
                last_update: held.last_update,
            };
            rows::push_gone(&mut self.tables.odds, &head, "removed");
        }
    }
}
