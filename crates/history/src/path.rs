//! The price history of an event, from rows of the archive and of entries that are not archived yet.

mod base;
mod page;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::{EventId, Format, Line, Market, Price, Quote, RecordId, Timestamp};

use crate::frame::Frame;
pub use crate::path::base::BasePrices;
pub(crate) use crate::path::base::KeptPrices;
pub use crate::path::page::{Hold, PathPlace};
use crate::starts::StartBy;

/// A selection of changes of an event.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub event: EventId,
    pub bookmaker: &'a (dyn Fn(&str) -> bool + Sync),
    pub market: Option<Market>,
    /// Bounds of the time of publication; the end is exclusive.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// True to include changes that were replaced before they were published.
    pub all: bool,
    pub hold: Hold<'a>,
}

impl std::fmt::Debug for Wanted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wanted").field("event", &self.event).finish_non_exhaustive()
    }
}

impl<'a> Wanted<'a> {
    /// The last publication of an event before an instant.
    pub(crate) fn last_before(event: EventId, to: Timestamp) -> Wanted<'a> {
        let to = Some(to);
        let hold = Hold::Last;
        Wanted { event, bookmaker: &|_| true, market: None, from: None, to, all: false, hold }
    }

    /// True if a record is selected.
    pub(crate) fn is_of(&self, head: &PathHead) -> bool {
        self.market.is_none_or(|market| market == head.market) && (self.bookmaker)(&head.bookmaker)
    }

    /// The place after which points are selected.
    fn after(&self) -> Option<&PathPlace> {
        match self.hold {
            Hold::First { after, .. } => after,
            Hold::Last => None,
        }
    }
}

/// A change of prices or lines, in the order of publications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Time of its publication or, if it was replaced before that, of the publication of its replacement.
    pub published_at: Timestamp,
    pub lineage: usize,
    pub seq: u64,
    pub at: Timestamp,
    pub ts: Timestamp,
    pub shown: bool,
    /// The reason why nothing is priced.
    pub reason: Option<Box<str>>,
    /// The last shown freshness of the prices, if nothing is priced any more.
    pub last_update: Option<Timestamp>,
    /// In the order of answers.
    pub outcomes: Arc<[PointOutcome]>,
}

/// An outcome with its price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointOutcome {
    pub name: Arc<str>,
    /// `None`: a participant of a field.
    pub side: Option<&'static str>,
    pub quote: Quote,
    pub point: Option<Line>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathHead {
    pub record: RecordId,
    pub bookmaker: Box<str>,
    pub market: Market,
    pub pairing: Option<Box<str>>,
}

/// The price history of a record.
#[derive(Debug)]
pub struct RecordPath {
    pub head: PathHead,
    /// The first published prices.
    pub open: Option<Point>,
    pub points: Vec<Point>,
    pub closing: Option<ClosingLine>,
    /// The state before those points.
    before: Option<Point>,
    /// Publication time of the first of all its rows, and the state before it.
    first_shown: Option<Timestamp>,
    base: Option<base::Base>,
}

/// The closing line of a record; the one with the greatest `seq` counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosingLine {
    pub head: PathHead,
    pub lineage: usize,
    /// The publication that shows the start.
    pub seq: u64,
    /// Time of the start and its evidence; `None` if the start was withdrawn.
    pub start: Option<(Timestamp, StartBy)>,
    pub commence_time: Timestamp,
    /// True if the prices were still offered. Otherwise they are the last ones, and `reason` says why they were
    /// withdrawn.
    pub active: bool,
    pub reason: Option<Box<str>>,
    pub last_update: Timestamp,
    /// The change that set the prices.
    pub prices: Point,
}

/// The price history of an event.
#[derive(Debug)]
pub struct EventPast {
    /// Time at which it was first shown, and whether it was new then.
    listed: Option<(Timestamp, bool)>,
    /// True if a book has it, or if it has rows that are not held.
    exists: bool,
    records: HashMap<RecordId, RecordPath>,
    names: HashSet<Arc<str>>,
    /// Number of outcomes of the points, and its maximum.
    held: usize,
    held_max: usize,
    /// The end of the page, if known: nothing after it is held.
    end: Option<PathPlace>,
}

impl Default for EventPast {
    fn default() -> Self {
        Self::holding(page::HELD_MAX)
    }
}

impl Point {
    fn shows_the_same(&self, other: &Self) -> bool {
        self.outcomes == other.outcomes
    }

    /// True if it changes the given state before it.
    fn changes(&self, before: Option<&Self>) -> bool {
        match before {
            Some(before) => !before.shows_the_same(self),
            None => !self.outcomes.is_empty(),
        }
    }
}

impl RecordPath {
    fn new(head: PathHead) -> Self {
        let (before, first_shown, base) = (None, None, None);
        Self { head, open: None, points: Vec::new(), closing: None, before, first_shown, base }
    }
}

impl EventPast {
    /// A past that holds at most about this number of outcomes.
    pub fn holding(held_max: usize) -> Self {
        let (records, names) = (HashMap::new(), HashSet::new());
        Self { listed: None, exists: false, records, names, held: 0, held_max, end: None }
    }

    /// True if nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        !self.exists && self.listed.is_none() && self.records.is_empty()
    }

    /// Notes that the event exists.
    pub(crate) fn note_existence(&mut self) {
        self.exists = true;
    }

    /// Time at which it was first shown, if it was new then: nothing of it was published before.
    pub fn new_at(&self) -> Option<Timestamp> {
        self.listed.filter(|(_, new)| *new).map(|(at, _)| at)
    }

    /// The end of the page, if not everything after it was held.
    pub fn end(&self) -> Option<&PathPlace> {
        self.end.as_ref()
    }

    /// The records in the order of answers, with the points of each in the order of publications. Points before the
    /// requested place or after the end of the page are left out.
    pub fn into_paths(self) -> Vec<RecordPath> {
        let mut paths: Vec<RecordPath> = self.records.into_values().collect();
        for path in &mut paths {
            path.points.sort_unstable_by_key(Point::place);
            path.begin_with_base();
            let mut last = path.before.take();
            path.points.retain(|point| {
                let changes = point.changes(last.as_ref());
                if changes {
                    last = Some(point.clone());
                }
                changes
            });
            // The change that set the prices of its closing line is past retention.
            if path.open.is_none() {
                let closing = path.closing.as_ref().filter(|line| line.start.is_some());
                let prices = closing.map(|line| Point { reason: None, ..line.prices.clone() });
                path.open = prices.filter(|prices| !prices.outcomes.is_empty());
            }
        }
        // A market that was never priced has no record.
        paths.retain(|path| path.open.is_some());
        paths.sort_unstable_by(|one, other| one.head.order().cmp(&other.head.order()));
        paths
    }

    /// Adds rows of the event in a table of events.
    pub(crate) fn take_events(&mut self, frame: &Frame, rows: impl Iterator<Item = usize>) {
        let columns = Columns::of(frame);
        for row in rows {
            let Some(at) = Columns::millis(frame, columns.published_at, row) else { continue };
            if self.listed.is_none_or(|(held, _)| at < held) {
                self.listed = Some((at, frame.text(columns.what, row) == Some("listed")));
            }
        }
    }

    /// Time at which the last of some records opened; `None` if one of them has not, as far as known.
    pub(crate) fn opened(&self, mut records: impl Iterator<Item = RecordId>) -> Option<Timestamp> {
        records.try_fold(Timestamp::from_millis(0), |last, record| {
            let open = self.records.get(&record)?.open.as_ref()?;
            Some(last.max(open.published_at))
        })
    }

    pub(crate) fn note_closing(&mut self, line: ClosingLine, wanted: &Wanted<'_>) {
        if !self.takes(&line.head, wanted) {
            return;
        }
        let record = line.head.record;
        let path = self.records.entry(record).or_insert_with(|| RecordPath::new(line.head.clone()));
        let later = |held: &ClosingLine| (held.lineage, held.seq) <= (line.lineage, line.seq);
        if path.closing.as_ref().is_none_or(later) {
            path.closing = Some(line);
        }
    }

    /// Adds the given rows of a table of odds that are of the event.
    pub(crate) fn take(
        &mut self,
        frame: &Frame,
        rows: impl Iterator<Item = usize>,
        lineage: usize,
        wanted: &Wanted<'_>,
    ) {
        let columns = Columns::of(frame);
        let mut point: Option<(PathHead, Point, Vec<PointOutcome>)> = None;
        for row in rows {
            let n = frame.number(columns.n, row);
            if n.is_none_or(|n| n == 1) {
                self.put(point.take(), wanted);
                point = columns
                    .point(frame, row, lineage)
                    .filter(|(head, point)| (point.shown || wanted.all) && self.takes(head, wanted))
                    .map(|(head, point)| (head, point, Vec::new()));
            }
            if n.is_some()
                && let Some((_, _, outcomes)) = &mut point
                && let Some(outcome) = columns.outcome(frame, row, &mut self.names)
            {
                outcomes.push(outcome);
            }
        }
        self.put(point, wanted);
    }

    fn put(&mut self, read: Option<(PathHead, Point, Vec<PointOutcome>)>, wanted: &Wanted<'_>) {
        let Some((head, mut point, mut outcomes)) = read else { return };
        outcomes.sort_by(|one, other| one.order().cmp(&other.order()));
        point.outcomes = outcomes.into();
        let record = head.record;
        let path = self.records.entry(record).or_insert_with(|| RecordPath::new(head));
        if point.shown && path.first_shown.is_none_or(|first| point.published_at < first) {
            path.first_shown = Some(point.published_at);
        }
        let earlier = |held: &Point| point.place() < held.place();
        if point.shown && !point.outcomes.is_empty() && path.open.as_ref().is_none_or(earlier) {
            path.open = Some(point.clone());
        }
        let is_early = wanted.from.is_some_and(|from| point.published_at < from);
        if !point.shown && (is_early || !wanted.all) {
            return;
        }
        let after = wanted.after().filter(|after| after.cmp_path(&path.head).is_eq());
        if is_early || after.is_some_and(|after| !after.is_before(&point)) {
            let later = |held: &Point| point.place() > held.place();
            if path.before.as_ref().is_none_or(later) {
                path.before = Some(point);
            }
        } else if wanted.to.is_none_or(|to| point.published_at < to) {
            self.hold(record, point, wanted.hold);
        }
    }

    /// True if a record is selected and not on another page. In any case the event is noted as existing.
    fn takes(&mut self, head: &PathHead, wanted: &Wanted<'_>) -> bool {
        if !wanted.is_of(head) {
            return false;
        }
        let is_in_page = wanted.after().is_none_or(|after| after.cmp_path(head).is_ge())
            && self.end.as_ref().is_none_or(|end| end.cmp_path(head).is_le());
        self.exists |= !is_in_page;
        is_in_page
    }
}

impl PathHead {
    /// The order of answers (D15).
    pub fn order(&self) -> (&str, &'static str, RecordId) {
        (&self.bookmaker, self.market.key(), self.record)
    }
}

impl PointOutcome {
    fn order(&self) -> (usize, &str, Option<Line>) {
        let place = SIDES.iter().position(|side| Some(*side) == self.side);
        // The names of sides are not compared.
        match place {
            Some(place) => (place, "", self.point),
            None => (SIDES.len(), &self.name, self.point),
        }
    }
}

/// Sides in the order of answers.
const SIDES: [&str; 5] = ["home", "away", "draw", "over", "under"];

/// Positions of the columns that changes are read from.
macro_rules! columns {
    ($($name:ident)*) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Columns { $(pub(crate) $name: Option<usize>,)* }

        /// Names of the columns.
        pub(crate) const COLUMN_NAMES: &[&str] = &[$(stringify!($name),)*];

        impl Columns {
            pub(crate) fn of(frame: &Frame) -> Self {
                Self { $($name: frame.column(stringify!($name)),)* }
            }
        }
    };
}

// The id of a record follows from the other columns. Files have those of all records of a group in one place, which
// takes longer to read than everything else of an event.
columns! {
    seq at ts published_at shown event_id bookmaker market pairing n name side quoted num den point reason last_update
    start start_by active commence_time what
}

impl Columns {
    pub(crate) fn millis(frame: &Frame, column: Option<usize>, row: usize) -> Option<Timestamp> {
        frame.number(column, row).map(Timestamp::from_millis)
    }

    /// A change without its outcomes.
    pub(crate) fn point(
        &self,
        frame: &Frame,
        row: usize,
        lineage: usize,
    ) -> Option<(PathHead, Point)> {
        let text = |column| frame.text(column, row);
        let event = EventId::parse(text(self.event_id)?)?;
        let (bookmaker, pairing) = (text(self.bookmaker)?, text(self.pairing));
        let market = Market::parse(text(self.market)?)?;
        let head = PathHead {
            record: RecordId::new(event, bookmaker, market, pairing),
            bookmaker: bookmaker.into(),
            market,
            pairing: pairing.map(Into::into),
        };
        let point = Point {
            published_at: Self::millis(frame, self.published_at, row)?,
            lineage,
            seq: frame.number(self.seq, row)?.cast_unsigned(),
            at: Self::millis(frame, self.at, row)?,
            ts: Self::millis(frame, self.ts, row)?,
            shown: frame.number(self.shown, row)? != 0,
            reason: text(self.reason).map(Into::into),
            last_update: Self::millis(frame, self.last_update, row),
            outcomes: Arc::default(),
        };
        Some((head, point))
    }

    pub(crate) fn outcome(
        &self,
        frame: &Frame,
        row: usize,
        names: &mut HashSet<Arc<str>>,
    ) -> Option<PointOutcome> {
        let number = |column| frame.number(column, row);
        let (num, den) = (number(self.num)?.cast_unsigned(), number(self.den)?.cast_unsigned());
        let format = Format::parse(frame.text(self.quoted, row)?)?;
        let quarters = number(self.point).and_then(|point| i32::try_from(point / 25).ok());
        let side = frame.text(self.side, row);
        let name = frame.text(self.name, row).unwrap_or_default();
        let name = match names.get(name) {
            Some(held) => Arc::clone(held),
            None => {
                let new: Arc<str> = name.into();
                names.insert(Arc::clone(&new));
                new
            }
        };
        Some(PointOutcome {
            name,
            side: SIDES.into_iter().find(|known| Some(*known) == side),
            quote: Quote { price: Price::from_ratio(num, den)?, format },
            point: quarters.map(Line::from_quarters),
        })
    }
}
