//! What came and went between two that a client is shown one after the other: neither of them has it (S7).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use domain::{EventId, Market, RecordId, Timestamp};
use market::{Book, Change, Ids, Snapshot};

use super::logged::LoggedPast;
use super::simulated::SimulatedPast;
use super::turns::Work;
use super::walk::Steps;
use super::{Found, History, HistoryError, Source};
use crate::error::Chain;
use crate::made_once::MadeOnce;
use crate::simulator::{SANDBOX_FEED, arrival};

/// What is looked through: further apart, nothing is said of what passed.
const ENTRIES_MAX: usize = 1_000_000;
const SIMULATED_MAX: Duration = Duration::from_secs(3600);
/// What is kept for others who were as far, and about what one takes.
const KEPT_BYTES_MAX: usize = 8 << 20;
const KEPT_MAX: usize = 64;
const PASSED_BYTES: usize = 160;

/// From where to where, each by its entry and time, and whether live.
type Span = ((u64, Timestamp), (u64, Timestamp), bool);

/// What was looked up, for all who follow.
pub(super) type KeptPassed = MadeOnce<Span, Passed>;

pub(super) fn none_kept() -> KeptPassed {
    MadeOnce::new(KEPT_BYTES_MAX, KEPT_MAX)
}

/// Records and events that were shown in between.
#[derive(Debug, Default)]
pub struct Passed {
    pub records: BTreeMap<RecordId, PassedRecord>,
    /// With the sport's key.
    pub events: BTreeMap<EventId, Box<str>>,
}

#[derive(Debug)]
pub struct PassedRecord {
    pub event: EventId,
    pub bookmaker: Box<str>,
    pub market: Market,
}

/// Looks at what happens from one to the other.
struct Passing {
    /// What one of them shows.
    records: HashSet<RecordId>,
    events: HashSet<EventId>,
    /// Whether everything is shown, or what is there at a publication.
    is_live: bool,
    /// Since the last publication.
    since: Passed,
    passed: Passed,
}

impl Passing {
    fn new(from: &Snapshot, to: &Snapshot, is_live: bool) -> Self {
        let (mut records, mut events) = (HashSet::new(), HashSet::new());
        for snapshot in [from, to] {
            for view in snapshot.catalogue().sports().map(|(id, _)| snapshot.sport(id)) {
                records.extend(view.records.iter().map(|row| row.id));
                events.extend(view.events.iter().map(|row| row.id));
            }
        }
        Self { records, events, is_live, since: Passed::default(), passed: Passed::default() }
    }

    fn note(&mut self, change: &Change) {
        let shown = if self.is_live { &mut self.passed } else { &mut self.since };
        if let Change::Quoted(quoted) = change {
            let market = &quoted.market;
            let group = market.group.as_deref();
            let id = RecordId::new(quoted.event, &market.bookmaker, market.market, group);
            if quoted.outcomes.is_empty() {
                self.since.records.remove(&id);
            } else if !self.records.contains(&id) {
                let (event, bookmaker) = (quoted.event, market.bookmaker.clone());
                let record = PassedRecord { event, bookmaker, market: market.market };
                shown.records.insert(id, record);
            }
        } else if let Change::Listed(listed) = change {
            if !self.events.contains(&listed.event) {
                shown.events.insert(listed.event, listed.sport.clone());
            }
        } else if matches!(change, Change::Cut { .. }) {
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.passed.records.append(&mut self.since.records);
        self.passed.events.append(&mut self.since.events);
    }
}

impl History {
    /// What was shown between two and is in neither. `is_live`: not only what was published.
    pub(crate) async fn passed(
        self: &Arc<Self>,
        from: &Arc<Snapshot>,
        to: &Arc<Snapshot>,
        is_live: bool,
    ) -> Arc<Passed> {
        let key = ((from.seq, from.cut_at), (to.seq, to.cut_at), is_live);
        let looked = self.passed.get(&key, async || {
            let passed = self.look_for_passed(from, to, is_live).await?;
            let bytes = (passed.records.len() + passed.events.len()) * PASSED_BYTES;
            Ok((passed, bytes))
        });
        looked.await.unwrap_or_else(|error: HistoryError| {
            // What a client holds is right without it.
            tracing::debug!(event = "history.passed_unknown", error = %Chain(&error), "what came and went since a cursor is not known");
            Arc::default()
        })
    }

    async fn look_for_passed(
        self: &Arc<Self>,
        from: &Arc<Snapshot>,
        to: &Arc<Snapshot>,
        is_live: bool,
    ) -> Result<Passed, HistoryError> {
        let (from, to) = (Arc::clone(from), Arc::clone(to));
        let look = move |source: &Source| {
            let mut passing = Passing::new(&from, &to, is_live);
            match source {
                Source::Simulated(past) => past.pass(&mut passing, &from, &to),
                Source::Logged(past) => past.pass(&mut passing, &from, to.seq)?,
                Source::Nothing => {}
            }
            Ok(passing.passed)
        };
        self.on_source_in_time(Work::Read, None, look).await
    }
}

impl LoggedPast {
    fn pass(&self, passing: &mut Passing, from: &Snapshot, to: u64) -> Result<(), HistoryError> {
        let found = Found { seq: from.seq, at: from.cut_at, previous: None, next: None };
        let book = Book::new(Arc::clone(&self.options.catalogue), Ids::Minted { salt: 0 });
        let mut steps = Steps::new(book, found);
        let mut entries = 0;
        while steps.at.seq < to {
            self.read_entries(&mut steps)?;
            if steps.waiting.is_empty() {
                return Err(HistoryError::Unreadable(None));
            }
            entries += steps.waiting.len();
            if entries > ENTRIES_MAX {
                passing.passed = Passed::default();
                return Ok(());
            }
            while let Some(entry) = steps.waiting.pop_front().filter(|entry| entry.seq <= to) {
                passing.note(&entry.change);
                (steps.at.seq, steps.at.at) = (entry.seq, entry.at);
            }
            // The rest is later.
            steps.waiting.clear();
        }
        Ok(())
    }
}

impl SimulatedPast {
    fn pass(&self, passing: &mut Passing, from: &Snapshot, to: &Snapshot) {
        if to.cut_at.since(from.cut_at) > SIMULATED_MAX {
            return;
        }
        let (mut book, mut at) = (self.book(from.cut_at), from.cut_at);
        while at < to.cut_at {
            let next = self.publication_after(at).min(to.cut_at);
            for message in self.simulation.between(at, next) {
                // What is refused now was refused then.
                let Ok(decision) = book.apply(SANDBOX_FEED, &message, arrival(&message, next))
                else {
                    continue;
                };
                let changes = decision.change.iter().chain(&decision.follow);
                changes.for_each(|change| passing.note(change));
            }
            passing.publish();
            at = next;
        }
    }
}
