//! Entries restored from rows.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use domain::score::Side;
use domain::{EventId, Format, Line, Market, Price, Quote, Timestamp};
use market::Change;
use market::change::{MarketKey, Quoted, QuotedOutcome, Who};
use parquet::errors::ParquetError;

use crate::archive::Archive;
use crate::commit::{Commit, TableFile};
use crate::error::ArchiveError;
use crate::frame::Frame;
use crate::parquet_read::{TableReader, WantedEntries};
use crate::rows::QUOTED;
use crate::{Entry, Table};

/// Entries after which a part is closed at the next publication. It bounds the memory.
pub const ENTRIES_MAX: u64 = 100_000;

/// Number of outcomes that memory is reserved for in advance.
const OUTCOMES_USUAL: usize = 64;

/// Number of files of a bucket that are read at the same time.
const READ_AT_A_TIME: usize = 12;

/// The entries of a lineage in order, read a bounded number at a time. It ends after its first error.
#[derive(Debug)]
pub struct Entries<'a> {
    archive: &'a Archive,
    commit: &'a Commit,
    lineage: usize,
    /// If set, prices and confirmations of these events alone.
    events: Option<Vec<String>>,
    /// The range that is not read yet.
    rest: Option<RangeInclusive<u64>>,
    ready: VecDeque<Entry>,
}

impl Archive {
    /// The entries of a lineage with these numbers, as far as the archive has them.
    pub fn entries<'a>(
        &'a self,
        commit: &'a Commit,
        lineage: usize,
        seqs: RangeInclusive<u64>,
    ) -> Entries<'a> {
        let held = commit.lineages.get(lineage);
        let (first, last) = held.map_or((1, 0), |held| (held.first_seq, held.last_seq));
        let rest = first.max(*seqs.start())..=last.min(*seqs.end());
        let rest = (!rest.is_empty()).then_some(rest);
        Entries { archive: self, commit, lineage, events: None, rest, ready: VecDeque::new() }
    }
}

impl Entries<'_> {
    /// The same without the prices and confirmations of other events.
    #[must_use]
    pub fn of_events(self, events: &[EventId]) -> Self {
        let events = Some(events.iter().map(EventId::to_string).collect());
        Self { events, ..self }
    }
}

/// A publication in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    pub lineage: usize,
    pub seq: u64,
    /// Time at which its entry was written, and its own time according to the entry.
    pub at: Timestamp,
    pub published_at: Timestamp,
    /// The version of the catalogue that it was made with, if the log had it.
    pub catalogue: Option<Arc<str>>,
}

impl Archive {
    /// All publications, by lineage and entry.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn publications(&self, commit: &Commit) -> Result<Vec<Publication>, ArchiveError> {
        let mut publications = Vec::new();
        // Nearly all have the same catalogue.
        let mut last: Option<Arc<str>> = None;
        let files = commit.files.iter().filter(|file| file.table == Table::Epochs);
        let files: Vec<&TableFile> = files.collect();
        let all = WantedEntries { seqs: &(0..=u64::MAX), events: None };
        let read = |file: &TableFile| self.read_file(file, all);
        self.read_each(&files, read, |file, frame| {
            let columns = Columns::of(&frame);
            for row in 0..frame.rows() {
                let row = columns.row(&frame, row);
                let seq = row.number(columns.seq).map(i64::cast_unsigned);
                let published_at = row.millis(columns.published_at);
                let (Some(seq), Some(at), Some(published_at)) = (seq, row.at(), published_at)
                else {
                    let (path, reason) = (file.path.clone(), "a row is incomplete");
                    return Err(ArchiveError::Damaged { path, reason });
                };
                let lineage = file.lineage;
                let held = commit.lineages.get(lineage);
                // Entries that only older publications needed may be deleted already.
                if held.is_none_or(|held| held.first_seq <= seq) {
                    let version = row.text(columns.catalogue);
                    if last.as_deref() != version {
                        last = version.map(Arc::from);
                    }
                    let catalogue = last.clone();
                    publications.push(Publication { lineage, seq, at, published_at, catalogue });
                }
            }
            Ok(true)
        })?;
        publications.sort_unstable_by_key(|publication| (publication.lineage, publication.seq));
        Ok(publications)
    }

    pub(crate) fn read_table(&self, file: &TableFile) -> Result<TableReader, ArchiveError> {
        let opened = self.open(file)?;
        TableReader::open(file.table, opened).map_err(unreadable(file))
    }

    /// Reads files, and passes the results to `take` in order until it returns `false`. Several files of a bucket are
    /// read at the same time, because of the latency of each request.
    ///
    /// # Errors
    /// A file cannot be read, or `take` fails.
    pub(crate) fn read_each<'a, T: Send>(
        &self,
        files: &[&'a TableFile],
        read: impl Fn(&TableFile) -> Result<T, ArchiveError> + Sync,
        mut take: impl FnMut(&'a TableFile, T) -> Result<bool, ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let at_a_time = if self.location().folder().is_some() { 1 } else { READ_AT_A_TIME };
        let read = &read;
        for files in files.chunks(at_a_time) {
            let found: Vec<_> = match files {
                [file] => vec![read(file)],
                files => std::thread::scope(|scope| {
                    let reader = |file: &&'a TableFile| {
                        let file = *file;
                        (file, scope.spawn(move || read(file)))
                    };
                    let readers: Vec<_> = files.iter().map(reader).collect();
                    let ended = |(file, reader): (&TableFile, ScopedJoinHandle<'_, _>)| {
                        let (path, reason) = (file.path.clone(), "reading it ended early");
                        reader.join().unwrap_or(Err(ArchiveError::Damaged { path, reason }))
                    };
                    readers.into_iter().map(ended).collect()
                }),
            };
            for (file, found) in files.iter().zip(found) {
                if !take(file, found?)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn read_file(
        &self,
        file: &TableFile,
        wanted: WantedEntries<'_>,
    ) -> Result<Frame, ArchiveError> {
        let reader = self.read_table(file)?;
        reader.read_entries(&wanted).map_err(unreadable(file))
    }
}

pub(crate) fn unreadable(file: &TableFile) -> impl Fn(ParquetError) -> ArchiveError + '_ {
    |source| ArchiveError::Unreadable { path: file.path.clone(), source }
}

impl Entries<'_> {
    fn read(&mut self) -> Result<Option<Entry>, ArchiveError> {
        while self.ready.is_empty() {
            let Some(rest) = self.rest.take() else { return Ok(None) };
            let (from, to) = rest.into_inner();
            let until = from.saturating_add(ENTRIES_MAX - 1).min(to);
            self.ready = self.window(&(from..=until))?;
            self.rest = (until < to).then(|| until + 1..=to);
        }
        Ok(self.ready.pop_front())
    }

    fn window(&self, seqs: &RangeInclusive<u64>) -> Result<VecDeque<Entry>, ArchiveError> {
        let events = self.events.as_deref();
        let mut collected = Collected::new(seqs, events.is_some());
        let files = self.commit.files.iter().filter(|file| {
            file.lineage == self.lineage
                && file.table.holds_entries()
                && file.first_seq <= *seqs.end()
                && *seqs.start() <= file.last_seq
        });
        let files: Vec<&TableFile> = files.collect();
        let wanted = WantedEntries { seqs, events };
        let read = |file: &TableFile| self.archive.read_file(file, wanted);
        self.archive.read_each(&files, read, |_, frame| {
            collected.take(&frame, seqs);
            Ok(true)
        })?;
        collected.finish()
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.read();
        if entry.is_err() {
            self.rest = None;
        }
        entry.transpose()
    }
}

/// Entries as far as they have been read from tables, and the missing pieces.
#[derive(Debug)]
struct Collected {
    first: u64,
    /// In the order of their numbers.
    entries: Vec<Collecting>,
    /// True if price changes of some events are left out.
    some: bool,
    /// An entry that occurs twice or has an invalid row.
    faulty: Option<u64>,
}

/// The data of one entry read so far.
#[derive(Debug, Default)]
struct Collecting {
    entry: Option<Entry>,
    quotes: Option<Box<Quotes>>,
    feed: Option<Box<str>>,
}

/// The rows of a change of prices.
#[derive(Debug)]
struct Quotes {
    at: Timestamp,
    ts: Timestamp,
    event: EventId,
    market: MarketKey,
    expected: i64,
    /// Those that arrived in order, and the others.
    outcomes: Vec<QuotedOutcome>,
    later: Vec<(i64, QuotedOutcome)>,
}

impl Quotes {
    /// All outcomes; `None` if some are missing.
    fn finish(mut self, feed: Box<str>) -> Option<(Timestamp, Quoted)> {
        self.later.sort_by_key(|(n, _)| *n);
        for (n, outcome) in self.later {
            if i64::try_from(self.outcomes.len() + 1) != Ok(n) {
                return None;
            }
            self.outcomes.push(outcome);
        }
        let whole = i64::try_from(self.outcomes.len()) == Ok(self.expected);
        let Self { at, ts, event, market, outcomes, .. } = self;
        whole.then_some((at, Quoted { event, market, feed, outcomes, ts }))
    }
}

impl Collected {
    /// For the entries of a range, which is not longer than [`ENTRIES_MAX`].
    fn new(seqs: &RangeInclusive<u64>, some: bool) -> Self {
        let first = *seqs.start();
        let length = usize::try_from((seqs.end() + 1).saturating_sub(first)).unwrap_or_default();
        let entries = std::iter::repeat_with(Collecting::default).take(length).collect();
        Self { first, entries, some, faulty: None }
    }

    fn at(&mut self, seq: u64) -> Option<&mut Collecting> {
        self.entries.get_mut(usize::try_from(seq.checked_sub(self.first)?).ok()?)
    }

    /// Adds the rows of entries in a range.
    fn take(&mut self, frame: &Frame, seqs: &RangeInclusive<u64>) {
        let columns = Columns::of(frame);
        for row in 0..frame.rows() {
            let Some(seq) = frame.number(columns.seq, row).map(i64::cast_unsigned) else {
                continue;
            };
            if !seqs.contains(&seq) {
                continue;
            }
            let taken = match frame.table {
                Table::Odds => self.take_odds(&columns.row(frame, row), seq),
                Table::Reads => self.take_read(&columns.row(frame, row), seq),
                Table::Epochs => self.take_epoch(&columns.row(frame, row), seq),
                Table::Internal => self.take_internal(&columns.row(frame, row), seq),
                Table::Scores | Table::Events | Table::Closing => Some(()),
            };
            if taken.is_none() {
                self.faulty.get_or_insert(seq);
            }
        }
    }

    fn insert(&mut self, seq: u64, at: Timestamp, change: Change) -> Option<()> {
        match self.at(seq)?.entry.replace(Entry { seq, at, change }) {
            None => Some(()),
            Some(_) => None,
        }
    }

    fn take_epoch(&mut self, row: &Row<'_>, seq: u64) -> Option<()> {
        let at = row.millis(row.columns.published_at)?;
        self.insert(seq, row.at()?, Change::Cut { at })
    }

    fn take_internal(&mut self, row: &Row<'_>, seq: u64) -> Option<()> {
        let bytes = row.frame.bytes(row.columns.entry, row.row)?;
        if row.text(row.columns.kind)? == QUOTED {
            let feed = std::str::from_utf8(bytes).ok()?;
            return self.at(seq)?.feed.replace(feed.into()).is_none().then_some(());
        }
        let (version, payload) = bytes.split_first()?;
        let change = Change::decode(*version, payload).ok()?;
        self.insert(seq, row.at()?, change)
    }

    fn take_read(&mut self, row: &Row<'_>, seq: u64) -> Option<()> {
        let (at, ts) = (row.at()?, row.ts()?);
        let change = match row.text(row.columns.event_id) {
            Some(event) => {
                Change::Confirmed { event: EventId::parse(event)?, market: row.market()?, ts }
            }
            None => Change::Beat {
                bookmaker: row.text(row.columns.bookmaker)?.into(),
                sport: row.text(row.columns.sport).map(Into::into),
                ts,
            },
        };
        self.insert(seq, at, change)
    }

    fn take_odds(&mut self, row: &Row<'_>, seq: u64) -> Option<()> {
        let columns = row.columns;
        let expected = row.number(columns.outcomes)?;
        let quotes = &mut self.at(seq)?.quotes;
        let quotes = match quotes {
            Some(quotes) => quotes,
            None => quotes.insert(Box::new(Quotes {
                at: row.at()?,
                ts: row.ts()?,
                event: EventId::parse(row.text(columns.event_id)?)?,
                market: row.market()?,
                expected,
                outcomes: Vec::with_capacity(usize::try_from(expected).ok()?.min(OUTCOMES_USUAL)),
                later: Vec::new(),
            })),
        };
        if expected == 0 {
            return Some(());
        }
        let price = Price::from_ratio(
            row.number(columns.num)?.cast_unsigned(),
            row.number(columns.den)?.cast_unsigned(),
        )?;
        let quarters = row.number(columns.point).map(|point| i32::try_from(point / 25));
        let name = || row.text(columns.name);
        let outcome = QuotedOutcome {
            who: match row.text(columns.side) {
                Some("home") => Who::Side(Side::Home),
                Some("away") => Who::Side(Side::Away),
                Some("draw") => Who::Draw,
                Some("over") => Who::Over,
                Some("under") => Who::Under,
                Some(_) => return None,
                None => Who::Player(name()?.into()),
            },
            quote: Quote { price, format: Format::parse(row.text(columns.quoted)?)? },
            point: quarters.transpose().ok()?.map(Line::from_quarters),
        };
        let n = row.number(columns.n)?;
        if i64::try_from(quotes.outcomes.len() + 1) == Ok(n) {
            quotes.outcomes.push(outcome);
        } else {
            quotes.later.push((n, outcome));
        }
        Some(())
    }

    /// Merges the data of two tables.
    fn finish(mut self) -> Result<VecDeque<Entry>, ArchiveError> {
        let mut entries = VecDeque::with_capacity(self.entries.len());
        for (seq, held) in (self.first..).zip(self.entries) {
            // Rows without a feed only describe what a publication shows differently; their entry is in another table.
            let quoted = match (held.feed, held.quotes) {
                (Some(feed), Some(quotes)) => Some(quotes.finish(feed)),
                (Some(_), None) if !self.some => Some(None),
                (Some(_) | None, None) | (None, Some(_)) => None,
            };
            let quoted = match quoted {
                Some(Some((at, quoted))) => Some(Entry { seq, at, change: Change::Quoted(quoted) }),
                Some(None) => {
                    self.faulty.get_or_insert(seq);
                    None
                }
                None => None,
            };
            if quoted.is_some() && held.entry.is_some() {
                self.faulty.get_or_insert(seq);
            }
            entries.extend(held.entry.or(quoted));
        }
        match self.faulty {
            Some(seq) => Err(ArchiveError::Entry { seq }),
            None => Ok(entries),
        }
    }
}

/// Positions of the columns that entries are read from.
macro_rules! columns {
    ($($name:ident)*) => {
        #[derive(Clone, Copy, Debug)]
        struct Columns { $($name: Option<usize>,)* }

        impl Columns {
            fn of(frame: &Frame) -> Self {
                Self { $($name: frame.column(stringify!($name)),)* }
            }
        }
    };
}

columns! {
    seq at ts published_at sport event_id bookmaker market pairing outcomes n name side quoted num den point kind entry
    catalogue
}

impl Columns {
    fn row<'a>(&'a self, frame: &'a Frame, row: usize) -> Row<'a> {
        Row { columns: self, frame, row }
    }
}

#[derive(Clone, Copy, Debug)]
struct Row<'a> {
    columns: &'a Columns,
    frame: &'a Frame,
    row: usize,
}

impl<'a> Row<'a> {
    fn number(&self, column: Option<usize>) -> Option<i64> {
        self.frame.number(column, self.row)
    }

    fn text(&self, column: Option<usize>) -> Option<&'a str> {
        self.frame.text(column, self.row)
    }

    fn millis(&self, column: Option<usize>) -> Option<Timestamp> {
        self.number(column).map(Timestamp::from_millis)
    }

    fn at(&self) -> Option<Timestamp> {
        self.millis(self.columns.at)
    }

    fn ts(&self) -> Option<Timestamp> {
        self.millis(self.columns.ts)
    }

    fn market(&self) -> Option<MarketKey> {
        Some(MarketKey {
            bookmaker: self.text(self.columns.bookmaker)?.into(),
            market: Market::parse(self.text(self.columns.market)?)?,
            group: self.text(self.columns.pairing).map(Into::into),
        })
    }
}
