//! The files with rows of an event, so that the others need not be opened.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use domain::{EventId, Timestamp};

use crate::archive::Archive;
use crate::commit::{Commit, TableFile};
use crate::entries::unreadable;
use crate::error::ArchiveError;
use crate::event_cache::Held;
use crate::frame::Frame;
use crate::path::Columns;
use crate::table::Table;

/// Knowledge about the existence of an event before files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existence {
    /// It exists. Its listing may be past retention, and then any file may have rows of it.
    Known,
    /// It exists only if the archive has rows of it.
    Unknown,
}

/// The files that have rows of an event.
#[derive(Debug, Default)]
pub(crate) struct EventFiles<'a> {
    pub(crate) events: Vec<&'a TableFile>,
    pub(crate) odds: Vec<&'a TableFile>,
    pub(crate) closing: Vec<&'a TableFile>,
}

/// A file and the events that it has rows of.
pub(crate) type IndexedFile<'a> = (&'a TableFile, Arc<[Held]>);

impl Archive {
    /// The files of a table and sport, in the order of days and entries, with the events of each.
    ///
    /// # Errors
    /// A file that was not read before cannot be read.
    pub(crate) fn indexed<'a>(
        &self,
        commit: &'a Commit,
        table: Table,
        sport: &str,
    ) -> Result<Vec<IndexedFile<'a>>, ArchiveError> {
        let files = files_of(commit, table, sport);
        let mut known: HashMap<&str, Arc<[Held]>> = {
            let index = self.index();
            let held = |file: &&'a TableFile| Some((&*file.path, index.files.get(&file.path)?));
            files.iter().filter_map(held).map(|(path, held)| (path, Arc::clone(held))).collect()
        };
        let is_new = |file: &&TableFile| !known.contains_key(&*file.path);
        let new: Vec<&TableFile> = files.iter().copied().filter(is_new).collect();
        let read = |file: &TableFile| self.read_held(file);
        self.read_each(&new, read, |file, held| {
            self.index().files.insert(file.path.clone(), Arc::clone(&held));
            known.insert(&file.path, held);
            Ok(true)
        })?;
        let mut index = self.index();
        // Drops files that were replaced.
        if index.files.len() > 2 * commit.files.len() + 64 {
            let named: HashSet<&str> = commit.paths().collect();
            index.files.retain(|path, _| named.contains(&**path));
        }
        let held = |file: &'a TableFile| Some((file, known.remove(&*file.path)?));
        let indexed = files.into_iter().filter_map(held).collect();
        Ok(indexed)
    }

    /// The files that have or may have rows of an event.
    ///
    /// # Errors
    /// As for [`indexed`](Self::indexed).
    pub(crate) fn files_with<'a>(
        &self,
        commit: &'a Commit,
        sport: &str,
        (event, existence): (EventId, Existence),
    ) -> Result<EventFiles<'a>, ArchiveError> {
        let [events, closing] = [Table::Events, Table::Closing].map(|table| {
            let files = self.indexed(commit, table, sport)?.into_iter().map(|(file, _)| file);
            let index = self.index();
            let found = files.filter_map(|file| Some((file, index.find(file, event)?)));
            Ok::<Vec<(&TableFile, Held)>, ArchiveError>(found.collect())
        });
        let (events, closing) = (events?, closing?);
        if events.is_empty() && closing.is_empty() && existence == Existence::Unknown {
            return Ok(EventFiles::default());
        }
        // The first listing may be past retention while prices of later days are not.
        let first = events.iter().min_by_key(|(file, held)| (file.lineage, held.first_seq));
        let first = first.filter(|(_, held)| held.is_new);
        let last = events.iter().max_by_key(|(file, held)| (file.lineage, held.seq));
        let last = last.filter(|(_, held)| held.is_gone);
        // A publication is of one day, and the order of days may differ from that of entries if a clock was set back.
        let odds = files_of(commit, Table::Odds, sport).into_iter().filter(|odds| {
            let is_before = first.is_some_and(|(file, held)| {
                (odds.lineage, odds.last_seq) < (file.lineage, held.first_seq)
                    && odds.date() != file.date()
            });
            let is_after = last.is_some_and(|(file, held)| {
                (odds.lineage, odds.first_seq) > (file.lineage, held.seq)
                    && odds.date() != file.date()
            });
            !is_before && !is_after
        });
        Ok(EventFiles {
            odds: odds.collect(),
            events: events.into_iter().map(|(file, _)| file).collect(),
            closing: closing.into_iter().map(|(file, _)| file).collect(),
        })
    }

    fn read_held(&self, file: &TableFile) -> Result<Arc<[Held]>, ArchiveError> {
        let reader = self.read_table(file)?;
        let mut found: HashMap<EventId, ((u64, bool), Held)> = HashMap::new();
        for group in 0..reader.groups() {
            let mut frame = Frame::new(file.table);
            let names = ["seq", "event_id", "what", "start", "commence_time"];
            reader.read_columns(group, &mut frame, &names).map_err(unreadable(file))?;
            let columns = Columns::of(&frame);
            for row in 0..frame.rows() {
                let event = frame.text(columns.event_id, row).and_then(EventId::parse);
                let seq = frame.number(columns.seq, row).map(i64::cast_unsigned);
                let Some((event, seq)) = event.zip(seq) else { continue };
                let what = frame.text(columns.what, row);
                let is_gone = match file.table {
                    Table::Closing => frame.number(columns.start, row).is_none(),
                    Table::Odds
                    | Table::Scores
                    | Table::Events
                    | Table::Reads
                    | Table::Epochs
                    | Table::Internal => matches!(what, Some("removed" | "merged")),
                };
                let commence_ms = frame.number(columns.commence_time, row);
                let is_new = what == Some("listed");
                let held = Held { event, first_seq: seq, seq, is_new, is_gone, commence_ms };
                let (first, last) = found.entry(event).or_insert(((seq, is_new), held));
                if seq < first.0 {
                    *first = (seq, is_new);
                }
                if last.seq <= seq {
                    *last = held;
                }
            }
        }
        let whole =
            |((first_seq, is_new), last): ((u64, bool), Held)| Held { first_seq, is_new, ..last };
        let mut found: Vec<Held> = found.into_values().map(whole).collect();
        found.sort_unstable_by_key(|held| held.event);
        Ok(found.into())
    }
}

/// An event whose start is in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedEvent {
    pub event: EventId,
    pub commence_time: Timestamp,
    /// False if the start was withdrawn.
    pub is_started: bool,
}

impl Archive {
    /// The events of a sport that have closing lines.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn started(
        &self,
        commit: &Commit,
        sport: &str,
    ) -> Result<BTreeMap<EventId, StartedEvent>, ArchiveError> {
        let mut started: BTreeMap<EventId, ((usize, u64), StartedEvent)> = BTreeMap::new();
        for (file, held) in self.indexed(commit, Table::Closing, sport)? {
            for Held { event, seq, is_gone, commence_ms, .. } in held.iter().copied() {
                let Some(commence_ms) = commence_ms else { continue };
                let key = (file.lineage, seq);
                let commence_time = Timestamp::from_millis(commence_ms);
                let found = StartedEvent { event, commence_time, is_started: !is_gone };
                let last = started.entry(event).or_insert((key, found));
                if last.0 <= key {
                    *last = (key, found);
                }
            }
        }
        Ok(started.into_iter().map(|(event, (_, found))| (event, found)).collect())
    }
}

fn files_of<'a>(commit: &'a Commit, table: Table, sport: &str) -> Vec<&'a TableFile> {
    let folder = format!("{}/sport={sport}/", table.key());
    let files = commit.files.iter().filter(|file| file.path.starts_with(&folder));
    let mut files: Vec<&TableFile> = files.collect();
    files.sort_by_key(|file| (file.date(), file.lineage, file.first_seq));
    files
}
