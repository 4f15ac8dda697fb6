//! The past of a simulated world: a function of its seed and the time, on every node, whenever it was started.

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use feeds::sandbox::Simulation;
use market::Book;

use super::walk::Steps;
use super::{Found, HistoryError, Reach};
use crate::options::WorldOptions;
use crate::options::epoch_start;
use crate::publication::Published;
use crate::simulator::{SANDBOX_IDS, play_back};

/// How far back it goes.
const REACH: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Debug)]
pub(super) struct SimulatedPast {
    simulation: Simulation,
    options: WorldOptions,
}

impl SimulatedPast {
    pub(super) fn new(simulation: Simulation, options: WorldOptions) -> Self {
        Self { simulation, options }
    }

    fn interval(&self) -> Duration {
        self.options.refresh_interval
    }

    pub(super) fn find(&self, at: Timestamp, current: Timestamp) -> Result<Found, HistoryError> {
        let from = self.first(current);
        if at < from {
            return Err(HistoryError::NotKept(Box::new(self.reach(current))));
        }
        let at = epoch_start(at, self.interval());
        let previous = Some(at.minus(self.interval())).filter(|previous| *previous >= from);
        let next = Some(at.plus(self.interval())).filter(|next| *next <= current);
        Ok(Found { seq: 0, at, previous, next })
    }

    /// Where a position is that clients hold: a publication, or a moment between two at which the world moves.
    pub(super) fn find_place(
        &self,
        at: Timestamp,
        current: Timestamp,
    ) -> Result<Found, HistoryError> {
        let found = self.find(at, current)?;
        if found.at == at || Simulation::last_step(at) != at {
            return Ok(found);
        }
        let next = Some(found.at.plus(self.interval())).filter(|next| *next <= current);
        Ok(Found { at, previous: Some(found.at), next, ..found })
    }

    pub(super) fn before(&self, current: Timestamp) -> Option<Timestamp> {
        Some(current.minus(self.interval())).filter(|before| *before >= self.first(current))
    }

    pub(super) fn reach(&self, current: Timestamp) -> Reach {
        let from = self.first(current);
        let publications = current.since(from).as_millis() / self.interval().as_millis().max(1);
        Reach {
            from,
            to: current,
            publications: u64::try_from(publications).unwrap_or(u64::MAX).saturating_add(1),
            retention: REACH,
            exported_to: None,
            gaps: Vec::new(),
        }
    }

    /// The oldest publication that is made again.
    fn first(&self, current: Timestamp) -> Timestamp {
        epoch_start(current.minus(REACH), self.interval())
    }

    /// What was shown at an instant, and the weight of its book.
    pub(super) fn rebuild(&self, at: Timestamp) -> (Published, u64) {
        let book = self.book(at);
        (self.options.publication(&book, 0, at), book.weight())
    }

    /// The book of an instant.
    pub(super) fn book(&self, at: Timestamp) -> Book {
        let mut book = Book::new(Arc::clone(&self.options.catalogue), SANDBOX_IDS);
        book.set_limits(self.options.limits);
        let published = epoch_start(at, self.interval());
        for message in self.simulation.world_at(published) {
            play_back(&mut book, &message, published);
        }
        for change in book.overdue(published, self.options.lifetimes) {
            book.absorb(&change, published);
        }
        // Between two publications the writer only plays.
        for message in self.simulation.between(published, at) {
            play_back(&mut book, &message, at);
        }
        book
    }

    /// The publication after the one that somebody is at.
    pub(super) fn next(&self, steps: &mut Steps, current: Timestamp) -> Option<Published> {
        let from = steps.at.at;
        let at = epoch_start(from, self.interval()).plus(self.interval());
        if at > current {
            return None;
        }
        for message in self.simulation.between(from, at) {
            play_back(&mut steps.book, &message, at);
        }
        for change in steps.book.overdue(at, self.options.lifetimes) {
            steps.book.absorb(&change, at);
        }
        steps.at.at = at;
        Some(self.options.publication(&steps.book, 0, at))
    }
}
