//! A part of the log as rows: from one publication to another.

mod carried;
mod past;
mod write;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

use domain::{EventId, RecordId, SportId, Timestamp};
use market::book::Event;
use market::{Book, Change};

use crate::Entry;
use crate::commit::{Commit, Lineage};
use crate::entries::ENTRIES_MAX;
use crate::frame::Frame;
use crate::priced::{LastQuoted, LastScored, Priced, SinceCut};
use crate::rows::{self, EventChange};
use crate::scored::{self, Scored};
use crate::starts::{Started, Starts};
use crate::table::Table;

/// A selection of the rows that are produced from entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All, for the archive.
    All,
    /// Those of prices and events, for reading.
    Prices,
    /// Those of some events, and few others, for reading. The book may be limited to these events.
    PricesOf(Box<[EventId]>),
}

/// Entries that are being converted.
#[derive(Debug)]
pub struct Part {
    rows: Rows,
    book: Book,
    lineage: usize,
    /// The lineage after the commit of this part.
    after: Lineage,
    /// True if the lineage is not in the archive yet.
    founds: bool,
    tables: Tables,
    /// Rows of each table up to the last publication.
    closed: [usize; Tables::COUNT],
    since_cut: SinceCut,
    /// Hashes of the events that the last publication shows, and their sports.
    shown: HashMap<EventId, (u64, SportId)>,
    /// The prices that it shows.
    priced: Priced,
    /// The scores that it shows.
    scored: Scored,
    /// The events that it shows as started, and those that started in this part.
    starts: Starts,
    started: Vec<Started>,
    /// The first book of the lineage, or of the publications with a new catalogue.
    base_image: Option<BaseImage>,
    /// Content that its first publication may not show any more, because its catalogue or its log is another.
    dropped: carried::Dropped,
    next_seq: u64,
    missing: Vec<(u64, u64)>,
    gaps: Vec<(i64, i64)>,
    entries: u64,
}

/// A book as it is after entry `seq`.
#[derive(Debug)]
struct BaseImage {
    seq: u64,
    /// True if the publication of `seq` itself was made with another catalogue.
    carried: bool,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Tables {
    odds: Frame,
    scores: Frame,
    events: Frame,
    reads: Frame,
    epochs: Frame,
    internal: Frame,
}

impl Tables {
    /// Number of tables filled with each entry. Closing lines are produced at the end.
    const COUNT: usize = 6;

    fn new() -> Self {
        Self {
            odds: Frame::new(Table::Odds),
            scores: Frame::new(Table::Scores),
            events: Frame::new(Table::Events),
            reads: Frame::new(Table::Reads),
            epochs: Frame::new(Table::Epochs),
            internal: Frame::new(Table::Internal),
        }
    }

    fn all(&self) -> [&Frame; Self::COUNT] {
        [&self.odds, &self.scores, &self.events, &self.reads, &self.epochs, &self.internal]
    }

    fn all_mut(&mut self) -> [&mut Frame; Self::COUNT] {
        let Self { odds, scores, events, reads, epochs, internal } = self;
        [odds, scores, events, reads, epochs, internal]
    }
}

impl Part {
    /// Starts after the last archived entry; `book` is as of that entry.
    pub fn after(commit: &Commit, book: Book) -> Option<Self> {
        let lineage = commit.lineages.len().checked_sub(1)?;
        let after = commit.lineages.get(lineage)?.clone();
        Some(Self::new(book, lineage, after, false))
    }

    /// Starts a new lineage after entry `seq`; `book` is as of that entry.
    pub fn founding(commit: &Commit, book: Book, seq: u64) -> Self {
        let after = Lineage { first_seq: seq + 1, last_seq: seq, ..Lineage::default() };
        let base_image =
            (seq > 0).then(|| BaseImage { seq, carried: false, bytes: book.to_image() });
        let mut part = Self::new(book, commit.lineages.len(), after, true);
        // The first publication of a lineage has rows for everything it shows, because no rows describe the state
        // before.
        part.shown = HashMap::new();
        part.priced = Priced::default();
        part.scored = Scored::default();
        part.since_cut.any = seq > 0;
        Self { base_image, ..part }
    }

    fn new(book: Book, lineage: usize, after: Lineage, founds: bool) -> Self {
        Self {
            shown: shown_of(&book),
            priced: Priced::of(&book),
            scored: Scored::of(&book),
            starts: Starts::of(&book, Timestamp::from_millis(after.last_ms)),
            started: Vec::new(),
            rows: Rows::All,
            base_image: None,
            dropped: carried::Dropped::default(),
            book,
            lineage,
            next_seq: after.last_seq + 1,
            after,
            founds,
            tables: Tables::new(),
            closed: [0; Tables::COUNT],
            since_cut: SinceCut::default(),
            missing: Vec::new(),
            gaps: Vec::new(),
            entries: 0,
        }
    }

    /// The same with a selection of rows, for reading instead of archiving.
    #[must_use]
    pub fn of_rows(self, rows: Rows) -> Self {
        Self { rows, base_image: None, ..self }
    }

    /// The book after the last entry.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The number of the next entry.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Approximate memory of its rows, and of the starts that it has noted.
    pub fn row_bytes(&self) -> usize {
        let rows: usize = self.tables.all().into_iter().map(Frame::memory_bytes).sum();
        let fresh = self.started.iter().map(|started| started.last_updates.capacity());
        let fresh = fresh.sum::<usize>() * size_of::<(RecordId, Timestamp)>();
        rows + self.started.capacity() * size_of::<Started>() + fresh
    }

    /// True if it should be closed: it ends with a publication and has enough entries.
    pub fn is_full(&self) -> bool {
        self.is_closed() && self.entries >= ENTRIES_MAX
    }

    /// True if the last entry is a publication.
    fn is_closed(&self) -> bool {
        self.after.last_seq + 1 == self.next_seq
    }

    /// True if it contains no publication.
    pub fn is_empty(&self) -> bool {
        self.tables.epochs.rows() == 0
    }

    /// Adds the next entry. `checksum` distinguishes it from another one with the same number.
    pub fn push(&mut self, entry: &Entry, checksum: u32) {
        if entry.seq > self.next_seq {
            self.missing.push((self.next_seq, entry.seq - 1));
        }
        self.next_seq = entry.seq + 1;
        self.entries += 1;
        if !self.concerns(&entry.change) {
            return;
        }
        self.since_cut.confirmations.note(&self.book, &entry.change);
        // The event is not known any more afterwards.
        if let Change::Withdrawn { feed, reference, .. } = &entry.change
            && let Some(event) = self.book.listed_for(feed, reference)
        {
            self.since_cut.touched.insert(event, (entry.seq, entry.at));
        }
        self.book.absorb(&entry.change, entry.at);
        self.note(entry);
        if self.rows != Rows::All {
            return self.look_at(entry, checksum);
        }
        let Self { tables, book, .. } = self;
        match &entry.change {
            Change::Quoted(quoted) => {
                rows::push_odds(&mut tables.odds, entry, quoted, book);
                rows::push_internal(&mut tables.internal, entry);
            }
            Change::Confirmed { event, market, ts } => {
                rows::push_confirmed(&mut tables.reads, entry, (*event, market, *ts), book);
            }
            Change::Beat { bookmaker, sport, ts } => {
                let read = (&**bookmaker, sport.as_deref(), *ts);
                rows::push_read(&mut tables.reads, entry, read, None);
            }
            Change::Scored { event, score, ts } => {
                rows::push_score(&mut tables.scores, entry, (*event, score, *ts), book);
                rows::push_internal(&mut tables.internal, entry);
            }
            Change::Cut { at } => {
                rows::push_epoch(&mut tables.epochs, entry, *at, book);
                self.publish(entry, *at, checksum);
            }
            Change::Founded { .. }
            | Change::Listed(_)
            | Change::Withdrawn { .. }
            | Change::Expired { .. }
            | Change::SourceForgotten { .. }
            | Change::Joined(_)
            | Change::Merged { .. }
            | Change::Split { .. }
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            | Change::Dropped { .. }
            | Change::Paced { .. }
            | Change::Configured(_)
            | Change::Unlogged { .. } => rows::push_internal(&mut tables.internal, entry),
        }
    }

    /// Notes the events and records that an entry concerns.
    fn note(&mut self, Entry { seq, at, change }: &Entry) {
        let since = &mut self.since_cut;
        let mut touch = |event: EventId| since.touched.insert(event, (*seq, *at));
        match change {
            Change::Quoted(quoted) => {
                let id = rows::record_id(quoted.event, &quoted.market);
                since.records.insert(id, LastQuoted::of(*seq, id, quoted, &self.book));
            }
            Change::Scored { event, .. } => {
                touch(*event);
                if let Some(held) = self.book.event(*event) {
                    let look = scored::look_of(held);
                    since.scores.insert(*event, LastScored { seq: *seq, look });
                }
            }
            Change::Listed(listed) => {
                // The ref may have belonged to another event until now.
                touch(listed.event);
                since.any = true;
            }
            Change::Expired { event } => {
                touch(*event);
            }
            Change::Merged { elder, younger, .. } => {
                touch(*elder);
                touch(*younger);
                since.merged.insert(*younger, *elder);
                since.any = true;
            }
            Change::Split { event, into, .. } => {
                touch(*event);
                touch(*into);
                since.any = true;
            }
            Change::Founded { .. } | Change::Withdrawn { .. } | Change::Dropped { .. } => {
                since.any = true;
            }
            Change::Confirmed { .. }
            | Change::Beat { .. }
            | Change::SourceForgotten { .. }
            | Change::Cut { .. }
            | Change::Joined(_)
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            | Change::Paced { .. }
            | Change::Configured(_) => {}
            Change::Unlogged { from, to } => self.gaps.push((from.as_millis(), to.as_millis())),
        }
    }

    /// Completes the rows since the last publication.
    fn publish(&mut self, entry: &Entry, cut: Timestamp, checksum: u32) {
        let changed = self.note_events(entry, cut);
        let since = std::mem::take(&mut self.since_cut);
        self.note_starts(changed, &since, (entry.seq, cut));
        let quoted = self.priced.shown_quotes(&self.book, &since);
        let last: HashSet<u64> =
            quoted.into_iter().chain(scored::shown_reports(&self.book, &since)).collect();
        for (frame, from) in self.tables.all_mut().into_iter().zip(self.closed) {
            let [published, shown, seq, event, record, outcomes, last_update] = [
                "published_at",
                "shown",
                "seq",
                "event_id",
                "record_id",
                "outcomes",
                "last_update",
            ]
            .map(|name| frame.column(name));
            for row in from..frame.rows() {
                frame.set_number(published, row, cut.as_millis());
                if !matches!(frame.table, Table::Odds | Table::Scores) {
                    continue;
                }
                let event = frame.text(event, row).and_then(EventId::parse);
                let listed = event.is_some_and(|event| self.shown.contains_key(&event));
                let own = frame.number(seq, row).map(i64::cast_unsigned);
                let current = listed && own.is_some_and(|own| last.contains(&own));
                frame.set_number(shown, row, i64::from(current));
                // Prices that were withdrawn: their last freshness.
                let record = frame.text(record, row).and_then(RecordId::parse);
                if current
                    && frame.number(outcomes, row) == Some(0)
                    && let Some(place) = event.zip(record)
                    && let Some(at) = self.priced.last_update(&self.book, place, &since)
                {
                    frame.set_number(last_update, row, at.as_millis());
                }
            }
        }
        self.priced.note(&mut self.tables.odds, &self.book, &since, (entry, cut));
        if self.rows == Rows::All {
            self.scored.note(&mut self.tables.scores, &self.book, &since, (entry, cut));
        }
        self.note_dropped(entry, cut);
        self.drop_others();
        self.closed = self.tables.all().map(Frame::rows);
        self.after.last_seq = entry.seq;
        self.after.last_checksum = checksum;
        self.after.last_ms = cut.as_millis();
        self.after.publications += 1;
        self.after.missing.append(&mut self.missing);
        self.after.gaps.append(&mut self.gaps);
    }

    /// Notes the events that this publication shows as started.
    fn note_starts(
        &mut self,
        changed: Vec<EventId>,
        since: &SinceCut,
        (seq, cut): (u64, Timestamp),
    ) {
        let touched = changed.into_iter().chain(since.touched.keys().copied());
        for (event, start) in self.starts.publish(&self.book, touched, cut) {
            let Some(held) = self.book.event(event) else { continue };
            self.started.push(Started {
                event,
                sport: self.book.catalogue().sport(held.sport).key.clone(),
                seq,
                cut,
                commence_time: held.commence_time,
                start,
                last_updates: self.priced.last_updates(&self.book, event, since),
            });
        }
    }

    /// Adds rows for events that this publication shows differently from the last, and returns those events.
    fn note_events(&mut self, entry: &Entry, cut: Timestamp) -> Vec<EventId> {
        let mut changed: BTreeMap<EventId, &'static str> = BTreeMap::new();
        let mut check = |id: EventId, event: Option<&Event>| {
            let look = event.filter(|event| event.is_listed()).map(look_of);
            let before = self.shown.get(&id).map(|(look, _)| *look);
            if look == before {
                return;
            }
            changed.insert(
                id,
                match (before, look) {
                    // The log that was lost showed it, too.
                    (None, _) if self.dropped.has(id) => "changed",
                    (None, _) => "listed",
                    (Some(_), Some(_)) => "changed",
                    (Some(_), None) if self.since_cut.merged.contains_key(&id) => "merged",
                    (Some(_), None) => "removed",
                },
            );
        };
        if self.since_cut.any {
            self.book.events().for_each(|event| check(event.id, Some(event)));
            let gone = self.shown.keys().filter(|id| self.book.event(**id).is_none());
            gone.for_each(|id| check(*id, None));
        } else {
            self.since_cut.touched.keys().for_each(|id| check(*id, self.book.event(*id)));
        }
        for (&id, &what) in &changed {
            let event = self.book.event(id).filter(|event| event.is_listed());
            let before = match event {
                Some(event) => self.shown.insert(id, (look_of(event), event.sport)),
                None => self.shown.remove(&id),
            };
            let (seq, at) =
                self.since_cut.touched.get(&id).copied().unwrap_or((entry.seq, entry.at));
            let sport = event.map(|event| event.sport).or(before.map(|(_, sport)| sport));
            let sport = sport.map(|sport| &*self.book.catalogue().sport(sport).key);
            let merged_into = self.since_cut.merged.get(&id).copied();
            let change =
                EventChange { seq, at, published_at: cut, id, what, event, sport, merged_into };
            rows::push_event(&mut self.tables.events, &change);
        }
        changed.into_keys().collect()
    }
}

/// Hashes of the events that a publication shows, and their sports.
fn shown_of(book: &Book) -> HashMap<EventId, (u64, SportId)> {
    let shown = book.events().filter(|event| event.is_listed());
    shown.map(|event| (event.id, (look_of(event), event.sport))).collect()
}

/// A hash of what is shown of an event, without prices.
fn look_of(event: &Event) -> u64 {
    let details = event.details();
    let mut hasher = DefaultHasher::new();
    (&details.competition, &details.title, &details.home, &details.away).hash(&mut hasher);
    (event.commence_time, event.score.status).hash(&mut hasher);
    hasher.finish()
}
