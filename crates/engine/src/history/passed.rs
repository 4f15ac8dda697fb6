//! Records and events that may have appeared and disappeared between two snapshots that a client is shown in
//! succession: neither snapshot has them, or not in the client's selection (S7).
//!
//! A client may also have received some of them: from a page of a later publication, or before its connection broke. So
//! temporary differences count, too, even if both ends are the same.
//!
//! The entries between the two are read a bounded number at a time, without building a book. The result may contain
//! more than appeared and disappeared in any one selection, never less: the renderer leaves out what the selection has
//! at either end.
//!
//! A stream that is far behind is brought forward in steps ([`History::step_from`]). A client that gets everything at
//! once waits no longer than a request does; progress is kept, and the next request continues from there.

mod gathered;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archive::Lineage;
use change_log::ReadLog;
use domain::{EventId, Market, RecordId, Status, Timestamp};
use market::{Change, Snapshot};
use tokio::time::timeout;

use self::gathered::{Gathered, Groups};
use super::logged::{EntryFound, LoggedPast, is_of, logged_from, unreadable};
use super::simulated::SimulatedPast;
use super::turns::{TurnWait, Work};
use super::{History, HistoryError, Place, REBUILD_TIME_MAX, Source};
use crate::archiver::continues;
use crate::made_once::MadeOnce;
use crate::options::epoch_start;
use crate::simulator::{SANDBOX_FEED, arrival};

/// Time of a simulated world that is replayed in one turn, and in one step of a stream.
const SIMULATED_AT_ONCE: Duration = Duration::from_secs(3600);
const SIMULATED_STEP: Duration = Duration::from_secs(6 * 3600);
/// Number of turns in a stream's step over the entries of a log.
const STEP_TURNS: u64 = 5;
/// Fraction of history's memory that one lookup may take, and that all unfinished ones may take together, as a divisor.
const LOOK_SHARE: usize = 4;
/// Maximum number of unfinished lookups, and number of publications after which an unused one is dropped.
const LOOKS_MAX: usize = 16;
const IDLE_MAX: u32 = 20;
/// Maximum size and number of results kept for other clients at the same position, and approximate size of an item.
const KEPT_BYTES_MAX: usize = 8 << 20;
const KEPT_MAX: usize = 64;
const PASSED_BYTES: usize = 200;

/// A shown state: its entry and time.
type Shown = (u64, Timestamp);

/// Start, end, and whether it is live.
type Span = (Shown, Shown, bool);

/// Results of lookups, shared by all followers.
pub(super) type KeptPassed = MadeOnce<Span, Looked>;

pub(super) fn none_kept() -> KeptPassed {
    MadeOnce::new(KEPT_BYTES_MAX, KEPT_MAX)
}

/// The result of a lookup, also where it took long to find out that there is none.
#[derive(Debug)]
pub(super) enum Looked {
    Found(Arc<Passed>),
    TooMuch,
    TooFar,
}

/// The length of a stream's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// As much as is looked through in some turns.
    Long,
    /// To the next publication.
    One,
}

/// Records and events that may have been shown in between.
#[derive(Debug, Default)]
pub struct Passed {
    pub records: BTreeMap<RecordId, PassedRecord>,
    /// Records that were quoted: even if both ends have one, it may have been different or missing in between.
    pub quoted: HashSet<RecordId>,
    pub events: BTreeMap<EventId, PassedEvent>,
    /// Pairs of events that were merged or split.
    pub joined: BTreeSet<(EventId, EventId)>,
    /// Events that ended and were removed because they had been over for long enough.
    pub expired: BTreeSet<EventId>,
}

#[derive(Clone, Debug)]
pub struct PassedRecord {
    pub event: EventId,
    pub bookmaker: Arc<str>,
    pub market: Market,
    group: Option<Box<str>>,
}

/// The changes of an event.
#[derive(Clone, Debug)]
pub struct PassedEvent {
    /// The key of its sport.
    pub sport: Box<str>,
    /// Number of times that it was listed or that its listing changed.
    pub listings: u32,
    /// The statuses in its scores.
    pub statuses: BTreeSet<Status>,
    /// True if it was merged with another event for a while, so that anything may have been shown of it.
    pub is_joined: bool,
}

impl PassedEvent {
    /// True if its names may have changed, and with them the presentation of its prices.
    pub fn may_be_renamed(&self) -> bool {
        self.listings > 0 || self.is_joined
    }
}

/// The progress of a lookup from a shown state, and its result so far.
#[derive(Debug)]
struct Look {
    from: Shown,
    is_live: bool,
    /// The last state that was read.
    at: Shown,
    /// The lineage of the archive that it is in.
    lineage: Option<usize>,
    gathered: Gathered,
    /// True if it took more than one turn.
    is_long: bool,
    /// Publications since its last use.
    idle: u32,
}

/// Unfinished lookups, which other requests may continue.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<VecDeque<Look>>);

impl Looks {
    /// Notes that there was another publication.
    pub(super) fn age(&self) {
        let mut held = self.lock();
        held.retain(|look| look.idle < IDLE_MAX);
        held.iter_mut().for_each(|look| look.idle += 1);
    }

    /// A lookup that has not passed the requested end.
    fn take(&self, from: Shown, to: Shown, is_live: bool) -> Option<Look> {
        let mut held = self.lock();
        let is = |look: &Look| (look.from, look.is_live) == (from, is_live) && look.at <= to;
        let at = held.iter().position(is)?;
        held.remove(at)
    }

    fn put(&self, look: Look, bytes_max: usize) {
        let mut held = self.lock();
        held.push_back(Look { idle: 0, ..look });
        while held.len() > LOOKS_MAX || bytes_of(&held) > bytes_max {
            held.pop_front();
        }
    }

    /// Approximate size of all.
    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes_of(held: &VecDeque<Look>) -> usize {
    held.iter().map(|look| look.gathered.bytes()).sum()
}

impl History {
    /// Content that may have been shown between two snapshots. `is_live`: also between publications. `key`: the
    /// requesting key, if a lookup is needed.
    ///
    /// # Errors
    /// It cannot be looked up now, or no longer.
    pub(crate) async fn passed(
        self: &Arc<Self>,
        from: &Arc<Snapshot>,
        to: &Arc<Snapshot>,
        is_live: bool,
        key: u64,
    ) -> Result<Arc<Passed>, HistoryError> {
        let span = ((from.seq, from.cut_at), (to.seq, to.cut_at), is_live);
        let looked = self.passed.get(&span, async || {
            match self.look_for_passed([from, to], is_live, key).await {
                Ok(passed) => {
                    let bytes = passed.len() * PASSED_BYTES;
                    Ok((Looked::Found(Arc::new(passed)), bytes))
                }
                Err(HistoryError::TooMuch) => Ok((Looked::TooMuch, PASSED_BYTES)),
                Err(HistoryError::TooFar) => Ok((Looked::TooFar, PASSED_BYTES)),
                Err(error) => Err(error),
            }
        });
        match &*looked.await? {
            Looked::Found(passed) => Ok(Arc::clone(passed)),
            Looked::TooMuch => Err(HistoryError::TooMuch),
            Looked::TooFar => Err(HistoryError::TooFar),
        }
    }

    /// The first intermediate position of a stream from one place to another; `None`: it goes to the other directly.
    ///
    /// The steps from a place are the same on every node and at all times, so no client gets content beyond a step
    /// early.
    pub(crate) async fn step_from(
        self: &Arc<Self>,
        from: Place,
        to: &Snapshot,
        stride: Stride,
    ) -> Result<Option<Place>, HistoryError> {
        match (&self.source, from) {
            (Source::Simulated(past), Place::Time(at)) => {
                let next = match stride {
                    Stride::Long => epoch_start(at.plus(SIMULATED_STEP), past.interval()),
                    Stride::One => past.publication_after(at),
                };
                Ok(Some(Place::Time(next)).filter(|_| next < to.cut_at))
            }
            (Source::Logged(past), Place::Entry(seq)) => {
                let entries = match stride {
                    Stride::Long => self.options.entries_at_once.saturating_mul(STEP_TURNS),
                    Stride::One => 0,
                };
                if to.seq.saturating_sub(seq) <= entries {
                    return Ok(None);
                }
                let step = match past.step_at_once(seq, entries) {
                    Some(step) => Some(step),
                    None => {
                        let wait = &mut TurnWait::default();
                        self.look_up(wait, move |past| past.step(seq, entries)).await?
                    }
                };
                Ok(step.filter(|step| *step < to.seq).map(Place::Entry))
            }
            (Source::Simulated(_) | Source::Logged(_) | Source::Nothing, _) => Ok(None),
        }
    }

    /// Looks one turn at a time, so that other requests get turns in between.
    async fn look_for_passed(
        self: &Arc<Self>,
        [from, to]: [&Arc<Snapshot>; 2],
        is_live: bool,
        key: u64,
    ) -> Result<Passed, HistoryError> {
        let looking = async {
            let mut wait = TurnWait::default();
            loop {
                let (history, from, to) = (Arc::clone(self), Arc::clone(from), Arc::clone(to));
                let look = move |_: &Source| history.look(&from, &to, is_live);
                let looked = self.on_source(Work::Look, Some(key), &mut wait, look).await?;
                if let Some(passed) = looked {
                    return Ok(passed);
                }
            }
        };
        timeout(REBUILD_TIME_MAX, looking).await.map_err(|_| HistoryError::Busy)?
    }

    /// Looks for one turn; `None` if it is not finished.
    fn look(
        &self,
        from: &Snapshot,
        to: &Snapshot,
        is_live: bool,
    ) -> Result<Option<Passed>, HistoryError> {
        let ([begin, end], ends) = ([from, to].map(|of| (of.seq, of.cut_at)), [from, to]);
        let bytes_max = self.options.memory_max / LOOK_SHARE;
        let held = self.looks.take(begin, end, is_live);
        // For a simulated world that is far behind, not every publication is examined: more is found than was shown.
        let is_far = matches!(self.source, Source::Simulated(_))
            && to.cut_at.since(from.cut_at) > SIMULATED_AT_ONCE;
        let mut look = held.unwrap_or_else(|| {
            let gathered = Gathered::new(is_live || is_far);
            let (lineage, is_long, idle) = (None, false, 0);
            Look { from: begin, is_live, at: begin, lineage, gathered, is_long, idle }
        });
        let is_whole = match &self.source {
            Source::Simulated(past) => {
                past.gather(&mut look, to.cut_at);
                look.at.1 >= to.cut_at
            }
            Source::Logged(past) => {
                if let Err(error) = past.gather(&mut look, to) {
                    // What cannot be read now is tried again, from here on.
                    if matches!(error, HistoryError::Unreadable(_)) {
                        self.looks.put(look, bytes_max);
                    }
                    return Err(error);
                }
                look.at.0 >= to.seq
            }
            Source::Nothing => true,
        };
        if look.gathered.bytes() > bytes_max {
            return Err(HistoryError::TooMuch);
        }
        let passed = match (is_whole, &self.source) {
            (false, _) => None,
            (true, source) => {
                let (passed, lacking) = look.gathered.between(ends, &Groups::default());
                Some(match source {
                    Source::Logged(past) if !lacking.is_empty() => {
                        let groups = past.groups(from, &lacking)?;
                        look.gathered.between(ends, &groups).0
                    }
                    Source::Logged(_) | Source::Simulated(_) | Source::Nothing => passed,
                })
            }
        };
        look.is_long |= passed.is_none();
        if look.is_long {
            self.looks.put(look, bytes_max);
        }
        Ok(passed)
    }
}

impl Passed {
    fn len(&self) -> usize {
        let ids = self.quoted.len() / 8;
        ids + self.records.len() + self.events.len() + self.joined.len() + self.expired.len()
    }

    /// Events and all events that they were merged with or split from.
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

impl LoggedPast {
    /// The same as [`Self::step`], if known without reading the log and without waiting.
    fn step_at_once(&self, seq: u64, entries: u64) -> Option<u64> {
        self.index_at_once()?.known_step(seq, entries)
    }

    /// The last publication that one step of some entries reaches; if there is none, the next publication.
    fn step(&self, seq: u64, entries: u64) -> Result<Option<u64>, HistoryError> {
        // Another request may have read it meanwhile.
        if let Some(step) = self.index().known_step(seq, entries) {
            return Ok(Some(step));
        }
        let index = self.read_log_on()?;
        match index.is_stale && seq <= index.base_seq {
            true => Err(HistoryError::Unreadable(None)),
            false => Ok(index.step(seq, entries)),
        }
    }

    /// Continues a lookup over some entries.
    fn gather(&self, look: &mut Look, to: &Snapshot) -> Result<(), HistoryError> {
        let (seq, _) = look.at;
        let end = to.seq.min(seq.saturating_add(self.options.history.entries_at_once));
        if end <= seq {
            return Ok(());
        }
        let log = self.open()?;
        if look.lineage.is_none() && self.gather_logged(&*log, look, end)? {
            return Ok(());
        }
        let Some(archive) = &self.archive else { return Err(self.not_kept()) };
        let commit = archive.newest().map_err(unreadable)?;
        let lineage = match look.lineage {
            Some(lineage) => Some(lineage),
            None => self.archived_at(look.at)?,
        };
        let held = lineage.and_then(|at| Some((at, commit.lineages.get(at)?)));
        let Some((lineage, held)) = held.filter(|(_, held)| held.first_seq <= seq + 1) else {
            return Err(self.not_kept());
        };
        let of_target = self.index().archived_lineage_of(to.seq, to.cut_at);
        if of_target.is_some_and(|target| target != lineage) {
            return Err(self.not_kept());
        }
        if held.last_seq <= seq {
            // The log may begin right where the archive ends.
            let is_last = lineage + 1 == commit.lineages.len();
            let follows = is_last && log.first_seq() == seq + 1;
            if !follows && !continues(&*log, held).map_err(unreadable)? {
                return Err(self.not_kept());
            }
            look.read_on(&*log, end)?;
            look.lineage = None;
            return Ok(());
        }
        let end = end.min(held.last_seq);
        if has_lost(held, seq + 1, end) {
            return Err(HistoryError::TooFar);
        }
        let seqs = seq + 1..=end;
        let read =
            archive.changed(&commit, lineage, &seqs, &mut |changed| look.gathered.take(changed));
        read.map_err(unreadable)?;
        // The lineage determines its time.
        (look.at.0, look.lineage) = (end, Some(lineage));
        Ok(())
    }

    /// The same in the log; returns whether the log has the entry at the lookup's position.
    fn gather_logged(
        &self,
        log: &dyn ReadLog,
        look: &mut Look,
        end: u64,
    ) -> Result<bool, HistoryError> {
        let (seq, at) = look.at;
        if log.first_seq() > seq {
            return Ok(false);
        }
        let first = logged_from(log, seq)?.next().transpose()?;
        if !first.is_some_and(|entry| entry.seq == seq && is_of(&entry, at)) {
            return Ok(false);
        }
        look.read_on(log, end)?;
        Ok(true)
    }

    /// The lineage of the archive that has a shown state.
    fn archived_at(&self, (seq, at): Shown) -> Result<Option<usize>, HistoryError> {
        let known = self.index().archived_lineage_of(seq, at);
        match known {
            Some(lineage) => Ok(Some(lineage)),
            // It is between two publications.
            None => Ok(self.archived(seq, Some(at))?.map(|(lineage, _)| lineage)),
        }
    }

    /// The groups in the ids of some events' records, in addition to bookmakers and markets: only the book has them.
    fn groups(&self, from: &Snapshot, events: &[EventId]) -> Result<Groups, HistoryError> {
        let found = match self.find_entry(from.seq)? {
            EntryFound::Known(found) => found,
            EntryFound::Archived { next } => self.find_archived(from.seq, next)?,
        };
        let found = found.filter(|found| (found.seq, found.at) == (from.seq, from.cut_at));
        let book = self.book(found.ok_or(HistoryError::TooFar)?)?;
        let events = events.iter().filter_map(|id| book.event(*id));
        let open = events.flat_map(market::book::Event::open_records);
        Ok(open.filter_map(|record| Some((record.id, record.group?.into()))).collect())
    }
}

impl Look {
    /// Reads the entries of a log up to one of them.
    fn read_on(&mut self, log: &dyn ReadLog, end: u64) -> Result<(), HistoryError> {
        let (begin, _) = self.at;
        for entry in logged_from(log, begin + 1)? {
            let entry = entry?;
            if entry.seq > end {
                break;
            }
            // The effect of a lost entry is unknown.
            if entry.seq != self.at.0 + 1 {
                return Err(HistoryError::TooFar);
            }
            self.gathered.note(&entry.change);
            let at = if let Change::Cut { at } = entry.change { at } else { entry.at };
            self.at = (entry.seq, at);
        }
        match self.at.0 > begin {
            true => Ok(()),
            false => Err(HistoryError::Unreadable(None)),
        }
    }
}

/// True if a lineage of the archive lacks some of these entries.
fn has_lost(held: &Lineage, first: u64, last: u64) -> bool {
    held.missing.iter().any(|(from, to)| *from <= last && first <= *to)
}

impl SimulatedPast {
    /// Replays a bounded time from the lookup's position.
    fn gather(&self, look: &mut Look, to: Timestamp) {
        let (_, mut at) = look.at;
        let (mut book, end) = (self.book(at), to.min(at.plus(SIMULATED_AT_ONCE)));
        while at < end {
            let next = match look.gathered.is_live() {
                true => end,
                false => self.publication_after(at).min(to),
            };
            for message in self.simulation.between(at, next) {
                // Messages refused now were refused at that time, too.
                let Ok(decision) = book.apply(SANDBOX_FEED, &message, arrival(&message, next))
                else {
                    continue;
                };
                let changes = decision.change.iter().chain(&decision.follow);
                changes.for_each(|change| look.gathered.note(change));
            }
            for change in book.overdue(next, self.options.lifetimes) {
                book.absorb(&change, next);
                look.gathered.note(&change);
            }
            look.gathered.note(&Change::Cut { at: next });
            at = next;
        }
        look.at.1 = at;
    }
}
