//! Every change of the past, one after the other, as the log has them: what was accepted together, and publications in
//! their places (S2).

use std::sync::Arc;

use domain::{Timestamp, World};
use feeds::sandbox::Simulation;
use market::{Change, Touched};

use super::logged::LoggedPast;
use super::simulated::SimulatedPast;
use super::turns::{TurnWait, Work};
use super::walk::Steps;
use super::{HistoryError, Place, Source, Walk};
use crate::live::{LiveStep, ShownSteps};
use crate::options::WorldOptions;
use crate::publication::Published;

/// What the parts since a whole snapshot may take before another follows.
const PARTS_BYTES_MAX: usize = 64 << 20;
/// Entries that were accepted together are shown together, up to this many.
const BATCH_MAX: usize = 20_000;

/// Where somebody is who is shown every change.
#[derive(Debug)]
pub struct ChangeWalk {
    walk: Walk,
    shown: Box<ShownSteps>,
    /// Whether whole snapshots are compared: freshness differs without any event being touched.
    whole: bool,
}

/// How far there is anything to show.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The last entry that is durable.
    pub seq: u64,
    /// The time of the present publication, and the present.
    pub published: Timestamp,
    pub now: Timestamp,
}

/// A change and what it leads to.
#[derive(Debug)]
pub struct WalkedChange {
    pub step: LiveStep,
    pub shown: Arc<Published>,
}

impl ChangeWalk {
    /// From where a walk is, which is what `base` shows.
    pub fn new(mut walk: Walk, base: &Published, whole: bool) -> Self {
        walk.steps.book.take_touched();
        let mut shown = Box::<ShownSteps>::default();
        shown.push(base.of_the_past(0), PARTS_BYTES_MAX);
        Self { walk, shown, whole }
    }

    /// The last entry or instant that was looked at: nothing that clients see has changed between what was shown last
    /// and that.
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
    /// It cannot be made again now, or history does not go on.
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
    /// Adds what is shown next, and says what leads to it.
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
    /// What is shown of a book after a change; `None`: nothing that clients see has changed.
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
    /// What follows what somebody is at, up to entry `last`.
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
    /// How many of the entries that wait were accepted together, up to entry `last` and up to a publication; `None`:
    /// that cannot be said before more are read.
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

    /// Rolls the book forward by some entries. Gives a publication where they end with one.
    fn take_batch(
        &mut self,
        count: usize,
        past: &LoggedPast,
    ) -> Result<Option<Published>, HistoryError> {
        for _ in 0..count {
            if let Some(published) = self.take_entry(past)? {
                self.book.take_touched();
                return Ok(Some(published));
            }
        }
        Ok(None)
    }
}

impl SimulatedPast {
    /// What follows what somebody is at.
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
