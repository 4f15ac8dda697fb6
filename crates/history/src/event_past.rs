//! The past of events, read from the archive.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use domain::{EventId, RecordId, Timestamp};

use crate::archive::Archive;
use crate::closing::lines_of;
use crate::commit::{Commit, TableFile};
use crate::date::date_of;
use crate::entries::unreadable;
use crate::error::ArchiveError;
use crate::event_index::{EventFiles, Existence};
use crate::frame::Frame;
use crate::parquet_read::{TableReader, number_bounds};
use crate::path::{ClosingLine, EventPast, Wanted};

impl Archive {
    /// Adds the archived past of an event of a sport, if the archive has a row that shows its existence.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn event_past(
        &self,
        commit: &Commit,
        sport: &str,
        wanted: &Wanted<'_>,
        past: &mut EventPast,
    ) -> Result<(), ArchiveError> {
        self.add_past(commit, sport, (wanted, Existence::Unknown), past)
    }

    /// Adds the archived past of an event of a sport that is in a book. It may have been listed before everything that
    /// the archive holds.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn known_event_past(
        &self,
        commit: &Commit,
        sport: &str,
        wanted: &Wanted<'_>,
        past: &mut EventPast,
    ) -> Result<(), ArchiveError> {
        past.note_existence();
        self.add_past(commit, sport, (wanted, Existence::Known), past)
    }

    fn add_past(
        &self,
        commit: &Commit,
        sport: &str,
        (wanted, existence): (&Wanted<'_>, Existence),
        past: &mut EventPast,
    ) -> Result<(), ArchiveError> {
        let id = wanted.event.to_string();
        let files = self.files_with(commit, sport, (wanted.event, existence))?;
        let EventFiles { events, odds, closing } = files;
        let read = |file: &TableFile, take: &mut dyn FnMut(&Frame)| {
            let reader = self.read_table(file)?;
            reader.read_event(&id, take).map_err(unreadable(file))
        };
        let past = Mutex::new(past);
        // Results are added in any order: points outside the page are dropped while the rest is read.
        let held = || past.lock().unwrap_or_else(PoisonError::into_inner);
        let take_events =
            |file: &TableFile| read(file, &mut |frame| held().take_events(frame, 0..frame.rows()));
        self.read_each(&events, take_events, |_, ()| Ok(true))?;
        let take_prices = |file: &TableFile| {
            read(file, &mut |frame| held().take(frame, 0..frame.rows(), file.lineage, wanted))
        };
        self.read_each(&odds, take_prices, |_, ()| Ok(true))?;
        let take_lines = |file: &TableFile| {
            read(file, &mut |frame| {
                for (_, line) in lines_of(frame, file.lineage, |_| true) {
                    held().note_closing(line, wanted);
                }
            })
        };
        self.read_each(&closing, take_lines, |_, ()| Ok(true))
    }

    /// The first and the last prices before the start of events of a sport that have closing lines, each as
    /// [`event_past`](Self::event_past) adds it without points. Files are read once for all of them, and only until
    /// the records that have closing lines were opened.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn closing_pasts(
        &self,
        commit: &Commit,
        sport: &str,
        events: &[EventId],
        wanted: &Wanted<'_>,
    ) -> Result<HashMap<EventId, EventPast>, ArchiveError> {
        let mut closed: BTreeMap<String, Closed> = BTreeMap::new();
        // The files of each table, in order, and the events to read from each.
        let mut files: [BTreeMap<Order<'_>, Vec<String>>; 3] = Default::default();
        for event in events {
            let id = event.to_string();
            let EventFiles { events, odds, closing } =
                self.files_with(commit, sport, (*event, Existence::Known))?;
            for (files, own) in files.iter_mut().zip([events, closing, odds]) {
                for file in own {
                    files.entry(Order::of(file)).or_default().push(id.clone());
                }
            }
            let (past, lines) = (EventPast::default(), HashMap::new());
            closed.insert(id, Closed { event: *event, past, lines });
        }
        let [listed, lines, odds] = files;
        for (Order { file, .. }, mut ids) in listed {
            ids.sort_unstable();
            let frame = self.read_all(file, &ids)?;
            each_event(&frame, |id, rows| {
                if let Some(closed) = closed.get_mut(id) {
                    closed.past.take_events(&frame, rows.iter().copied());
                }
            });
        }
        for (Order { file, .. }, mut ids) in lines {
            ids.sort_unstable();
            for (event, line) in lines_of(&self.read_all(file, &ids)?, file.lineage, |_| true) {
                if let Some(closed) = closed.get_mut(&event.to_string()) {
                    closed.note(line);
                }
            }
        }
        for (Order { file, .. }, mut ids) in odds {
            let is_over = |id: &String| {
                let opened = closed.get(id).and_then(|closed| closed.opened(wanted));
                opened.is_some_and(|opened| *date_of(opened) < *file.date())
            };
            ids.retain(|id| !is_over(id));
            if !ids.is_empty() {
                ids.sort_unstable();
                self.read_openings(file, ids, wanted, &mut closed)?;
            }
        }
        let whole = |closed: Closed| {
            let Closed { event, mut past, lines } = closed;
            lines.into_values().for_each(|line| past.note_closing(line, wanted));
            (event, past)
        };
        Ok(closed.into_values().map(whole).collect())
    }

    /// All rows of events, whose ids are sorted.
    fn read_all(&self, file: &TableFile, ids: &[String]) -> Result<Frame, ArchiveError> {
        let (mut frame, reader) = (Frame::new(file.table), self.read_table(file)?);
        for group in 0..reader.groups() {
            reader.read_events(group, ids, &mut frame).map_err(unreadable(file))?;
        }
        Ok(frame)
    }

    /// Reads prices of events, whose ids are sorted, until all records that have closing lines were opened.
    fn read_openings(
        &self,
        file: &TableFile,
        mut ids: Vec<String>,
        wanted: &Wanted<'_>,
        closed: &mut BTreeMap<String, Closed>,
    ) -> Result<(), ArchiveError> {
        let reader = self.read_table(file)?;
        for group in 0..reader.groups() {
            let from = first_published(&reader, group);
            // Prices published after all of them opened are not the first.
            ids.retain(|id| {
                let opened = closed.get(id).and_then(|closed| closed.opened(wanted));
                opened.is_none_or(|opened| opened >= from)
            });
            let mut frame = Frame::new(file.table);
            reader.read_events(group, &ids, &mut frame).map_err(unreadable(file))?;
            each_event(&frame, |id, rows| {
                if let Some(Closed { event, past, .. }) = closed.get_mut(id) {
                    let own = Wanted { event: *event, ..*wanted };
                    past.take(&frame, rows.iter().copied(), file.lineage, &own);
                }
            });
        }
        Ok(())
    }
}

/// The earliest publication time of a group's rows, if known. If a clock was set back, a later group may have earlier
/// ones.
fn first_published(reader: &TableReader, group: usize) -> Timestamp {
    let bounds = number_bounds(reader.metadata(group), "published_at");
    Timestamp::from_millis(bounds.map_or(i64::MIN, |(first, _)| first))
}

/// A file in reading order: by day, lineage and entry.
#[derive(Clone, Copy, Debug)]
struct Order<'a> {
    key: (&'a str, usize, u64, &'a str),
    file: &'a TableFile,
}

impl<'a> Order<'a> {
    fn of(file: &'a TableFile) -> Self {
        Self { key: (file.date(), file.lineage, file.first_seq, &file.path), file }
    }
}

impl PartialEq for Order<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Order<'_> {}

impl PartialOrd for Order<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Order<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// The data read so far of an event that has closing lines.
#[derive(Debug)]
struct Closed {
    event: EventId,
    past: EventPast,
    lines: HashMap<RecordId, ClosingLine>,
}

impl Closed {
    /// The last closing line of a record counts.
    fn note(&mut self, line: ClosingLine) {
        let held = self.lines.get(&line.head.record);
        if held.is_none_or(|held| (held.lineage, held.seq) <= (line.lineage, line.seq)) {
            self.lines.insert(line.head.record, line);
        }
    }

    /// Time at which the last of the wanted records with closing lines was opened; `None` if one was not opened yet.
    fn opened(&self, wanted: &Wanted<'_>) -> Option<Timestamp> {
        let lines = self.lines.values().filter(|line| line.start.is_some());
        let wanted = lines.map(|line| &line.head).filter(|head| wanted.is_of(head));
        self.past.opened(wanted.map(|head| head.record))
    }
}

/// Calls `take` with the rows of each event, which are consecutive in a group.
fn each_event(frame: &Frame, mut take: impl FnMut(&str, &[usize])) {
    let column = frame.column("event_id");
    let rows: Vec<usize> = (0..frame.rows()).collect();
    for same in rows.chunk_by(|one, other| frame.text(column, *one) == frame.text(column, *other)) {
        let id = same.first().and_then(|row| frame.text(column, *row));
        if let Some(id) = id {
            take(id, same);
        }
    }
}
