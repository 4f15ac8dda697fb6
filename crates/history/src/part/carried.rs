//! A part whose publications do not follow from the last one before it: they are made with another catalogue, or from
//! another log. What is not shown any more, and what is shown again, has rows like any other change.

use domain::{EventId, Timestamp};
use market::Book;

use super::{BaseImage, Part, shown_of};
use crate::Entry;
use crate::commit::Commit;
use crate::priced::{DroppedRecord, Priced};
use crate::rows::{self, EventChange, OddsHead};
use crate::scored::Scored;
use crate::starts::Starts;

/// What the last publication shows and the next one may not have.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    events: Vec<(EventId, Box<str>)>,
    records: Vec<DroppedRecord>,
    /// When that publication was made, where the next ones may be of the same time or earlier.
    last_ms: Option<i64>,
}

impl Dropped {
    /// Whether the last publication shows an event.
    pub(super) fn has(&self, event: EventId) -> bool {
        self.events.binary_search_by_key(&event, |(id, _)| *id).is_ok()
    }
}

impl Part {
    /// Begins after the last entry that the archive holds: that was published as `before` has it, and what comes next
    /// begins with `book`, which has another catalogue. The archive keeps it, as nothing else says what a process made
    /// of its log when it started.
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

    /// For a part that founds a lineage: the last publication of the one before it was made of `before`. What that
    /// shows ends with the first publication after it, unless that shows it too.
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

    /// Rows for what the first publication does not have.
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
