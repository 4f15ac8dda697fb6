//! The past of a simulated world: a function of its seed and the time, on every node, whenever it was started.

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use feeds::sandbox::Simulation;
use market::Book;

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

    /// The publication of an instant, and the weight of its book.
    pub(super) fn rebuild(&self, at: Timestamp) -> (Published, u64) {
        let mut book = Book::new(Arc::clone(&self.options.catalogue), SANDBOX_IDS);
        book.set_limits(self.options.limits);
        for message in self.simulation.world_at(at) {
            play_back(&mut book, &message, at);
        }
        for change in book.overdue(at, self.options.lifetimes) {
            book.absorb(&change, at);
        }
        (self.options.publication(&book, 0, at), book.weight())
    }
}
