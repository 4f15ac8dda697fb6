//! A part whose publications are made with another catalogue than the last one before it: what is not shown with it any
//! more, and what is shown again, has rows like any other change.

use domain::{EventId, Timestamp};
use market::Book;

use super::{BaseImage, Part, shown_of};
use crate::Entry;
use crate::commit::Commit;
use crate::priced::{DroppedRecord, Priced};
use crate::rows::{self, EventChange, OddsHead};
use crate::scored::Scored;

/// What the last publication shows and the catalogue of the next one does not have.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    events: Vec<(EventId, Box<str>)>,
    records: Vec<DroppedRecord>,
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
        part.dropped = Dropped { events, records };
        part.since_cut.any = true;
        Some(part)
    }

    /// Rows for what the catalogue of the first publication does not have.
    pub(super) fn note_dropped(&mut self, entry: &Entry, cut: Timestamp) {
        let Dropped { events, records } = std::mem::take(&mut self.dropped);
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
