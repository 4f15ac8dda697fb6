//! What may have come and gone between two that a client is shown one after the other: neither of them has it, or not
//! in the client's selection (S7).
//!
//! A client may also have got some of that: a page of a later publication, or what came before its connection broke. So
//! what was different for a while counts, too, although it is the same at both ends.
//!
//! The entries between the two are read, and no book is made from them. More is found than came and went in any one
//! selection, and never less: who renders leaves out what the selection has at either end.

mod passing;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{EventId, Market, RecordId, Status, Timestamp};
use market::{Book, Ids, Snapshot};
use tokio::time::timeout;

use self::passing::{Groups, Passing};
use super::logged::LoggedPast;
use super::simulated::SimulatedPast;
use super::turns::Work;
use super::walk::Steps;
use super::{Found, History, HistoryError, Source};
use crate::made_once::MadeOnce;
use crate::simulator::{SANDBOX_FEED, arrival};

/// What is looked through, and for how long at most: further apart, what a client holds has to be read anew.
const ENTRIES_MAX: u64 = 5_000_000;
const SIMULATED_MAX: Duration = Duration::from_secs(3600);
const LOOK_MAX: Duration = Duration::from_secs(8);
/// What is kept for others who were as far, and about what one takes.
const KEPT_BYTES_MAX: usize = 8 << 20;
const KEPT_MAX: usize = 64;
const PASSED_BYTES: usize = 200;

/// From where to where, each by its entry and time, and whether live.
type Span = ((u64, Timestamp), (u64, Timestamp), bool);

/// What was looked up, for all who follow.
pub(super) type KeptPassed = MadeOnce<Span, Option<Arc<Passed>>>;

pub(super) fn none_kept() -> KeptPassed {
    MadeOnce::new(KEPT_BYTES_MAX, KEPT_MAX)
}

/// Records and events that may have been shown in between.
#[derive(Debug, Default)]
pub struct Passed {
    pub records: BTreeMap<RecordId, PassedRecord>,
    /// Records that were quoted: what is there at both ends may have been different, or not there.
    pub quoted: HashSet<RecordId>,
    pub events: BTreeMap<EventId, PassedEvent>,
    /// Events that became one, or two.
    pub joined: BTreeSet<(EventId, EventId)>,
    /// Events that ended and were over for so long that they were taken away.
    pub expired: BTreeSet<EventId>,
}

#[derive(Clone, Debug)]
pub struct PassedRecord {
    pub event: EventId,
    pub bookmaker: Box<str>,
    pub market: Market,
    group: Option<Box<str>>,
}

/// What happened to an event.
#[derive(Clone, Debug)]
pub struct PassedEvent {
    /// The key of its sport.
    pub sport: Box<str>,
    /// How often it was listed, or listed otherwise.
    pub listings: u32,
    /// What its scores said of it.
    pub statuses: BTreeSet<Status>,
    /// It was another event for a while: it may have been anything.
    pub is_joined: bool,
}

impl PassedEvent {
    /// Whether its names may have been others, and so what is said of its prices.
    pub fn may_be_renamed(&self) -> bool {
        self.listings > 0 || self.is_joined
    }
}

impl History {
    /// What may have been shown between two. `is_live`: not only what was published.
    ///
    /// # Errors
    /// It cannot be looked up now, or not any more.
    pub(crate) async fn passed(
        self: &Arc<Self>,
        from: &Arc<Snapshot>,
        to: &Arc<Snapshot>,
        is_live: bool,
    ) -> Result<Arc<Passed>, HistoryError> {
        let key = ((from.seq, from.cut_at), (to.seq, to.cut_at), is_live);
        let looked = self.passed.get(&key, async || {
            match self.look_for_passed(from, to, is_live).await {
                Ok(passed) => {
                    let bytes = passed.len() * PASSED_BYTES;
                    Ok((Some(Arc::new(passed)), bytes))
                }
                // It is for whoever asks next, too, and took long to find out.
                Err(HistoryError::TooFar) => Ok((None, PASSED_BYTES)),
                Err(error) => Err(error),
            }
        });
        Option::clone(&*looked.await?).ok_or(HistoryError::TooFar)
    }

    async fn look_for_passed(
        self: &Arc<Self>,
        from: &Arc<Snapshot>,
        to: &Arc<Snapshot>,
        is_live: bool,
    ) -> Result<Passed, HistoryError> {
        let (from, to) = (Arc::clone(from), Arc::clone(to));
        let look = move |source: &Source| {
            let until = Instant::now() + LOOK_MAX;
            let span = Between { from: &from, to: &to, is_live, until };
            match source {
                Source::Simulated(past) => past.pass(&span),
                Source::Logged(past) => past.pass(&span),
                Source::Nothing => Ok(Passed::default()),
            }
        };
        let looked = timeout(2 * LOOK_MAX, self.on_source(Work::Look, None, look)).await;
        looked.map_err(|_| HistoryError::Busy)?
    }
}

impl Passed {
    fn len(&self) -> usize {
        let ids = self.quoted.len() / 8;
        ids + self.records.len() + self.events.len() + self.joined.len() + self.expired.len()
    }

    /// Events and all that they were joined with.
    pub fn with_joined(&self, events: &[EventId]) -> BTreeSet<EventId> {
        let mut all: BTreeSet<EventId> = events.iter().copied().collect();
        let mut known = 0;
        while known < all.len() {
            known = all.len();
            for (one, other) in &self.joined {
                if all.contains(one) || all.contains(other) {
                    all.extend([*one, *other]);
                }
            }
        }
        all
    }
}

/// What is looked through, and until when.
struct Between<'a> {
    from: &'a Snapshot,
    to: &'a Snapshot,
    is_live: bool,
    until: Instant,
}

impl Between<'_> {
    fn check_time(&self) -> Result<(), HistoryError> {
        if Instant::now() > self.until { Err(HistoryError::TooFar) } else { Ok(()) }
    }
}

impl LoggedPast {
    fn pass(&self, span: &Between<'_>) -> Result<Passed, HistoryError> {
        if span.to.seq.saturating_sub(span.from.seq) > ENTRIES_MAX {
            return Err(HistoryError::TooFar);
        }
        let mut passing = Passing::new(span.from, span.to, span.is_live, Groups::default());
        self.read_through(&mut passing, span)?;
        if passing.lacks_groups() {
            let groups = self.groups(span.from, passing.moved())?;
            passing = Passing::new(span.from, span.to, span.is_live, groups);
            self.read_through(&mut passing, span)?;
        }
        Ok(passing.into_passed())
    }

    fn read_through(
        &self,
        passing: &mut Passing<'_>,
        span: &Between<'_>,
    ) -> Result<(), HistoryError> {
        let Between { from, to: &Snapshot { seq: to, .. }, .. } = *span;
        let found = Found { seq: from.seq, at: from.cut_at, previous: None, next: None };
        let book = Book::new(Arc::clone(&self.options.catalogue), Ids::Minted { salt: 0 });
        let mut steps = Steps::new(book, found);
        while steps.at.seq < to {
            span.check_time()?;
            self.read_entries(&mut steps)?;
            if steps.waiting.is_empty() {
                return Err(HistoryError::Unreadable(None));
            }
            while let Some(entry) = steps.waiting.pop_front().filter(|entry| entry.seq <= to) {
                // What an entry did that was lost, nobody knows.
                if entry.seq != steps.at.seq + 1 {
                    return Err(HistoryError::TooFar);
                }
                passing.note(&entry.change, entry.seq == to);
                (steps.at.seq, steps.at.at) = (entry.seq, entry.at);
            }
            // The rest is later.
            steps.waiting.clear();
        }
        Ok(())
    }

    /// What the ids of some events' records are made with beside their bookmakers and markets: the book alone has it.
    fn groups(&self, from: &Snapshot, events: &[EventId]) -> Result<Groups, HistoryError> {
        let found = self
            .find_entry(from.seq)?
            .filter(|found| (found.seq, found.at) == (from.seq, from.cut_at));
        let book = self.book(found.ok_or(HistoryError::TooFar)?)?;
        let events = events.iter().filter_map(|id| book.event(*id));
        let open = events.flat_map(market::book::Event::open_records);
        Ok(open.filter_map(|record| Some((record.id, record.group?.into()))).collect())
    }
}

impl SimulatedPast {
    fn pass(&self, span: &Between<'_>) -> Result<Passed, HistoryError> {
        let Between { from, to, is_live, .. } = *span;
        // Cursors of the sandbox stay good for days, and playing so much again takes too long: nothing is said of it.
        if to.cut_at.since(from.cut_at) > SIMULATED_MAX {
            return Ok(Passed::default());
        }
        let mut passing = Passing::new(from, to, is_live, Groups::default());
        let (mut book, mut at) = (self.book(from.cut_at), from.cut_at);
        while at < to.cut_at {
            span.check_time()?;
            let next = self.publication_after(at).min(to.cut_at);
            for message in self.simulation.between(at, next) {
                // What is refused now was refused then.
                let Ok(decision) = book.apply(SANDBOX_FEED, &message, arrival(&message, next))
                else {
                    continue;
                };
                let changes = decision.change.iter().chain(&decision.follow);
                changes.for_each(|change| passing.note(change, false));
            }
            for change in book.overdue(next, self.options.lifetimes) {
                book.absorb(&change, next);
                passing.note(&change, false);
            }
            passing.publish(next == to.cut_at);
            at = next;
        }
        Ok(passing.into_passed())
    }
}
