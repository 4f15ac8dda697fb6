//! Every change of the past in the order of the log: batches of entries accepted together, and publications (S2).

use std::sync::Arc;

use domain::{Timestamp, World};
use feeds::sandbox::Simulation;
use market::{Change, Touched};

use super::logged::LoggedPast;
use super::simulated::SimulatedPast;
use super::steps::Steps;
use super::turns::{TurnWait, Work};
use super::{HistoryError, Place, Source, Walk};
use crate::live::{LiveStep, ShownSteps};
use crate::options::WorldOptions;
use crate::publication::Published;

/// Maximum size of the parts since a whole snapshot; beyond it, another whole one follows.
const PARTS_BYTES_MAX: usize = 64 << 20;
/// Maximum number of entries shown together because they were accepted together.
const BATCH_MAX: usize = 20_000;

/// The position of a reader of every change.
#[derive(Debug)]
pub struct ChangeWalk {
    walk: Walk,
    shown: Box<ShownSteps>,
    /// True if whole snapshots are compared: freshness may differ without any event being touched.
    whole: bool,
}

/// The point up to which changes can be shown.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The last durable entry.
    pub seq: u64,
    /// The time of the present publication; below, the present time.
    pub published: Timestamp,
    pub now: Timestamp,
}

/// A change, and the state after it.
#[derive(Debug)]
pub struct WalkedChange {
    pub step: LiveStep,
    pub shown: Arc<Published>,
}

impl ChangeWalk {
    /// Starts at a walk's position; `base` is shown there.
    pub fn new(mut walk: Walk, base: &Published, whole: bool) -> Self {
        walk.steps.book.take_touched();
        let mut shown = Box::<ShownSteps>::default();
        shown.push(base.of_the_past(0), PARTS_BYTES_MAX);
        Self { walk, shown, whole }
    }

    /// The last entry or instant read: nothing that clients see has changed between the last shown state and this.
    pub fn place(&self, world: World) -> Place {
        let at = self.walk.steps.at;
        match world {
            World::Live => Place::Entry(at.seq),
            World::Sandbox => Place::Time(at.at),
        }
    }

    /// The next change or publication; `None`: there is none yet.
    ///
    /// # Errors
    /// It cannot be rebuilt now, or history ends here.
    pub async fn next(
        self,
        reached: Reached,
    ) -> Result<(Self, Option<WalkedChange>), HistoryError> {
        let Self { walk: Walk { history, mut steps }, mut shown, whole } = self;
        let work = move |source: &Source| {
            let next = match source {
                Source::Simulated(past) => Ok(past.next_change(&mut steps, reached, whole)),
                Source::Logged(past) => past.next_change(&mut steps, reached.seq, whole),
                Source::Nothing => Err(HistoryError::Off),
            }?;
            let walked = match next {
                Some(next) => Some(shown.walk_to(next).ok_or(HistoryError::Unreadable(None))?),
                None => None,
            };
            Ok((steps, shown, walked))
        };
        let wait = &mut TurnWait::default();
        let (steps, shown, walked) = history.on_source(Work::Read, None, wait, work).await?;
        Ok((Self { walk: Walk { history, steps }, shown, whole }, walked))
    }
}

impl ShownSteps {
    /// Adds the next state and returns the change that leads to it.
    fn walk_to(&mut self, next: Published) -> Option<WalkedChange> {
        let shown = Arc::new(next.of_the_past(0));
        let step = if next.is_between && !next.is_whole() {
            self.push(next, PARTS_BYTES_MAX);
            self.last_step()?
        } else {
            let from = Arc::clone(&self.newest()?.snapshot);
            *self = Self::default();
            self.push(next, PARTS_BYTES_MAX);
            LiveStep { from, to: Arc::clone(&shown.snapshot), skipped: Vec::new() }
        };
        Some(WalkedChange { step, shown })
    }
}

impl WorldOptions {
    /// The state shown of a book after a change; `None`: nothing that clients see has changed.
    fn shown_after(&self, steps: &mut Steps, whole: bool) -> Option<Published> {
        let at = (steps.at.seq, steps.at.at);
        match steps.book.take_touched() {
            Touched::Events(ids) if whole => {
                Some(self.whole_between(&steps.book, at, Touched::Events(ids)))
            }
            Touched::Events(ids) if ids.is_empty() => None,
            Touched::Events(ids) => Some(self.part_between(&steps.book, at, ids)),
            all @ Touched::All => Some(self.whole_between(&steps.book, at, all)),
        }
    }
}

impl LoggedPast {
    /// The next state after the reader's position, up to entry `last`.
    fn next_change(
        &self,
        steps: &mut Steps,
        last: u64,
        whole: bool,
    ) -> Result<Option<Published>, HistoryError> {
        loop {
            let Some(count) = steps.batch(last) else {
                let from = steps.waiting.back().map_or(steps.at.seq, |entry| entry.seq);
                if from >= last {
                    return Ok(None);
                }
                let held = steps.waiting.len();
                self.read_entries(steps)?;
                if steps.waiting.len() == held {
                    return Err(HistoryError::Unreadable(None));
                }
                continue;
            };
            self.follow_catalogue(steps)?;
            let next = match steps.take_batch(count, self)? {
                Some(published) => Some(published),
                None => self.options.shown_after(steps, whole),
            };
            if next.is_some() {
                return Ok(next);
            }
        }
    }
}

impl Steps {
    /// Number of waiting entries that were accepted together, up to entry `last` and up to a publication; `None`: more
    /// have to be read to know.
    fn batch(&self, last: u64) -> Option<usize> {
        let at = self.waiting.front().filter(|first| first.seq <= last)?.at;
        let mut count = 0;
        for entry in &self.waiting {
            if entry.at != at || entry.seq > last || count >= BATCH_MAX {
                return Some(count);
            }
            count += 1;
            if matches!(entry.change, Change::Cut { .. }) {
                return Some(count);
            }
        }
        let ends = self.waiting.back().is_some_and(|entry| entry.seq >= last);
        (ends || count >= BATCH_MAX).then_some(count)
    }

    /// Rolls the book forward by some entries. Returns a publication if they end with one.
    fn take_batch(
        &mut self,
        count: usize,
        past: &LoggedPast,
    ) -> Result<Option<Published>, HistoryError> {
        for _ in 0..count {
            if let Some(published) = self.take_entry(&past.catalogues, &past.options)? {
                self.book.take_touched();
                return Ok(Some(published));
            }
        }
        Ok(None)
    }
}

impl SimulatedPast {
    /// The next state after the reader's position.
    fn next_change(&self, steps: &mut Steps, reached: Reached, whole: bool) -> Option<Published> {
        loop {
            let from = steps.at.at;
            let at = Simulation::next_step(from);
            if at >= self.publication_after(from) {
                let next = self.next(steps, reached.published);
                steps.book.take_touched();
                return next;
            }
            if at > reached.now {
                return None;
            }
            self.play_to(steps, at);
            if let Some(shown) = self.options.shown_after(steps, whole) {
                return Some(shown);
            }
        }
    }
}
