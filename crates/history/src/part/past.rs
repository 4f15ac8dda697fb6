//! The past of an event according to a part: its end, which is not archived yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::EventId;
use market::Change;

use super::{Part, Rows, Tables};
use crate::Entry;
use crate::archive::Archive;
use crate::closing::{self, closing_lines};
use crate::commit::{Commit, Unclosed};
use crate::date::date_of;
use crate::error::ArchiveError;
use crate::event_index::StartedEvent;
use crate::frame::Frame;
use crate::path::{BasePrices, ClosingLine, EventPast, Wanted};
use crate::rows;
use crate::starts::Started;
use crate::table::Table;

/// Starts that are remembered because their past is damaged.
const UNCLOSED_MAX: usize = 1000;
/// Maximum number of starts that fail again in one part: each check of a damaged file reads it.
const FAILURES_MAX: usize = 8;

impl Part {
    /// True if a change can affect the selected rows.
    pub(super) fn concerns(&self, change: &Change) -> bool {
        match change {
            Change::Quoted(quoted) => self.wants(quoted.event),
            Change::Confirmed { event, .. } => self.wants(*event),
            Change::Founded { .. }
            | Change::Listed(_)
            | Change::Scored { .. }
            | Change::Withdrawn { .. }
            | Change::Beat { .. }
            | Change::Paced { .. }
            | Change::Expired { .. }
            | Change::SourceForgotten { .. }
            | Change::Cut { .. }
            | Change::Configured(_)
            | Change::Joined(_)
            | Change::Merged { .. }
            | Change::Split { .. }
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            | Change::Dropped { .. }
            | Change::Unlogged { .. } => true,
        }
    }

    /// Adds an entry to a part with a selection of prices and events.
    pub(super) fn look_at(&mut self, entry: &Entry, checksum: u32) {
        if let Change::Quoted(quoted) = &entry.change {
            rows::push_odds(&mut self.tables.odds, entry, quoted, &self.book);
        }
        if let Change::Cut { at } = entry.change {
            self.publish(entry, at, checksum);
        }
    }

    fn wants(&self, event: EventId) -> bool {
        match &self.rows {
            Rows::All | Rows::Prices => true,
            Rows::PricesOf(own) => own.contains(&event),
        }
    }

    /// Drops the rows that a publication has added for other events.
    pub(super) fn drop_others(&mut self) {
        let Rows::PricesOf(own) = &self.rows else { return };
        let ids: Vec<String> = own.iter().map(EventId::to_string).collect();
        for (frame, from) in self.tables.all_mut().into_iter().zip(self.closed) {
            let column = frame.column("event_id");
            let mut added = from..frame.rows();
            let is_own = |id: &str| ids.iter().any(|own| own == id);
            if !added.any(|row| frame.text(column, row).is_some_and(is_own)) {
                frame.truncate(from);
            }
        }
    }

    /// Writes the closing lines of events that started, by sport and by the day of the publication that shows the
    /// start; also of events that started before and could not be read at that time.
    pub(super) fn write_closings(
        &self,
        archive: &Archive,
        commit: &Commit,
        next: &mut Commit,
    ) -> Result<(), ArchiveError> {
        let mut frames: BTreeMap<String, Frame> = BTreeMap::new();
        let mut base = None;
        // Of a log that was replaced, this part has no rows to begin with, and neither will a later one.
        let (earlier, lost): (Vec<_>, Vec<_>) =
            next.unclosed.drain(..).partition(|held| held.lineage == self.lineage);
        if !lost.is_empty() {
            let events = lost.len();
            tracing::warn!(
                event = "archive.closings_given_up",
                events,
                "events of a log that was replaced get no closing lines"
            );
        }
        // Those that fail again come last the next time, so that all of them are tried.
        let (mut failures, mut failed) = (0, Vec::new());
        let earlier: Vec<Started> = earlier.into_iter().map(|held| held.started).collect();
        let all = earlier.iter().map(|started| (started, true));
        for (started, was_skipped) in all.chain(self.started.iter().map(|own| (own, false))) {
            let unclosed = || Unclosed { lineage: self.lineage, started: started.clone() };
            if was_skipped && failures >= FAILURES_MAX {
                next.unclosed.push(unclosed());
                continue;
            }
            let lines = match self.closings_of(Some((archive, commit)), started, &mut base) {
                Ok(lines) => lines,
                // Damage stays until a person restores the file, and everything else would wait for that.
                Err(error) if error.is_damage() => {
                    failures += 1;
                    let unclosed_count = next.unclosed.len() + failed.len();
                    let is_kept = was_skipped || unclosed_count < UNCLOSED_MAX;
                    if !was_skipped {
                        tracing::error!(
                            event = "archive.closing_skipped",
                            error = &error as &dyn std::error::Error,
                            event_id = %started.event,
                            made_later = is_kept,
                            "an event began whose past in the archive is damaged; it has no closing lines there until \
                             the file is put back"
                        );
                    }
                    if is_kept {
                        failed.push(unclosed());
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            let folder = format!(
                "{}/sport={}/date={}",
                Table::Closing.key(),
                started.sport,
                date_of(started.cut)
            );
            let frame = frames.entry(folder).or_insert_with(|| Frame::new(Table::Closing));
            closing::push(frame, started, &lines);
        }
        next.unclosed.extend(failed);
        for (folder, frame) in frames.iter().filter(|(_, frame)| frame.rows() > 0) {
            let rows = (0..frame.rows()).collect();
            next.files.push(self.write_file(archive, frame, folder, rows)?);
        }
        Ok(())
    }

    /// The closing lines that a start produces, from the archive and this part. `base` is read when an event first
    /// needs it, for all that started.
    fn closings_of(
        &self,
        archive: Option<(&Archive, &Commit)>,
        started: &Started,
        base: &mut Option<Option<Arc<BasePrices>>>,
    ) -> Result<Vec<ClosingLine>, ArchiveError> {
        let wanted = Wanted::last_before(started.event, started.before());
        let mut past = EventPast::default();
        self.take_rows(&wanted, &mut past);
        if let Some((archive, commit)) = archive {
            let sport = &*started.sport;
            match past.new_at() {
                Some(_) => archive.event_past(commit, sport, &wanted, &mut past)?,
                None => archive.known_event_past(commit, sport, &wanted, &mut past)?,
            }
            if past.new_at().is_none() {
                let base = match base {
                    Some(base) => base,
                    None => {
                        let unclosed = commit.unclosed.iter().map(|held| &held.started);
                        let events = self.started.iter().chain(unclosed).map(|own| own.event);
                        let events: Vec<EventId> = events.collect();
                        let read = archive.base_prices(commit, self.book.catalogue(), &events);
                        base.insert(match read {
                            Err(error) if error.is_damage() => {
                                tracing::warn!(
                                    event = "archive.base_unreadable",
                                    error = &error as &dyn std::error::Error,
                                    "the oldest book of the archive is damaged; prices unchanged for longer than \
                                     `history.retention` have no closing lines"
                                );
                                None
                            }
                            read => read?,
                        })
                    }
                };
                base.iter().for_each(|base| past.take_base(base, &wanted));
            }
        }
        Ok(closing_lines(past, started, self.lineage))
    }

    /// Adds the publications of an event in this part to its archived past, if there is an archive.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn event_past(
        &self,
        archive: Option<(&Archive, &Commit)>,
        wanted: &Wanted<'_>,
        past: &mut EventPast,
    ) -> Result<(), ArchiveError> {
        self.take_rows(wanted, past);
        // The last one counts.
        if let Some(last) = self.started.iter().rfind(|started| started.event == wanted.event) {
            for line in self.closings_of(archive, last, &mut None)? {
                past.note_closing(line, wanted);
            }
        }
        Ok(())
    }

    /// The sport of an event that a publication of this part shows or is the first not to show. The book may not have
    /// it any more.
    pub fn sport_of(&self, event: EventId) -> Option<&str> {
        let (id, frame) = (event.to_string(), &self.tables.events);
        let [column, sport] = ["event_id", "sport"].map(|name| frame.column(name));
        let row = (0..frame.rows()).find(|row| frame.text(column, *row) == Some(&*id))?;
        frame.text(sport, row)
    }

    /// The events of a sport whose start was shown or withdrawn in this part.
    pub fn started(&self, sport: &str) -> BTreeMap<EventId, StartedEvent> {
        let started = self.started.iter().filter(|started| *started.sport == *sport);
        let found = started.map(|started| {
            let Started { event, commence_time, .. } = *started;
            (event, StartedEvent { event, commence_time, is_started: started.start.is_some() })
        });
        // The last one counts.
        found.collect()
    }

    fn take_rows(&self, wanted: &Wanted<'_>, past: &mut EventPast) {
        let id = wanted.event.to_string();
        let [odds, _, events, ..] = self.closed;
        let rows_of = |frame: &Frame, rows: usize| -> Vec<usize> {
            let column = frame.column("event_id");
            (0..rows).filter(|row| frame.text(column, *row) == Some(&*id)).collect()
        };
        let Tables { odds: odds_frame, events: events_frame, .. } = &self.tables;
        past.take_events(events_frame, rows_of(events_frame, events).into_iter());
        past.take(odds_frame, rows_of(odds_frame, odds).into_iter(), self.lineage, wanted);
    }
}
