//! The state of an event, and its legal transitions.

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;

/// Scheduled, live or final: the status of a score and of an event (D9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    Scheduled,
    Live,
    Final,
}

keyed!(Status, key {
    Scheduled = "scheduled",
    Live = "live",
    Final = "final",
});

/// One period: a round, a set, a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Period {
    pub number: u32,
    pub home: i32,
    pub away: i32,
}

/// One of the two participants of a head-to-head event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    Home,
    Away,
}

impl Side {
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Home => Self::Away,
            Self::Away => Self::Home,
        }
    }
}

/// The score of a head-to-head event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Score {
    pub status: Status,
    pub home: Option<i32>,
    pub away: Option<i32>,
    pub periods: Vec<Period>,
    pub winner: Option<Side>,
    /// Golf only: the leaders in the order sent, each an index into the event's entrants.
    pub leaders: Vec<Leader>,
}

/// A golfer's place on the leaderboard with the totals of the rounds played.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leader {
    pub entrant: u16,
    pub rounds: Vec<i32>,
}

/// A score went backwards without being marked as a correction (D24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalTransition {
    #[error("the event is {} and cannot go back to {}; send `correction: true` if the earlier report was wrong", from.key(), to.key())]
    Status { from: Status, to: Status },
    #[error("the score went down; send `correction: true` if the earlier report was wrong")]
    Lower,
    #[error(
        "the event ended with another winner; send `correction: true` if the earlier report was wrong"
    )]
    Winner,
}

impl Score {
    /// The score of every event before a source reports one (D31).
    pub const fn none_yet() -> Self {
        Self {
            status: Status::Scheduled,
            home: None,
            away: None,
            periods: Vec::new(),
            winner: None,
            leaders: Vec::new(),
        }
    }

    /// Checks that `next` may follow this score without a correction.
    ///
    /// # Errors
    /// The status or the score goes backwards, or a finished event changes its winner.
    pub fn may_become(&self, next: &Self) -> Result<(), IllegalTransition> {
        if next.status < self.status {
            return Err(IllegalTransition::Status { from: self.status, to: next.status });
        }
        let lower = |held: Option<i32>, new: Option<i32>| held.is_some() && new < held;
        if lower(self.home, next.home) || lower(self.away, next.away) {
            return Err(IllegalTransition::Lower);
        }
        if self.status == Status::Final && self.winner.is_some() && next.winner != self.winner {
            return Err(IllegalTransition::Winner);
        }
        Ok(())
    }

    /// The same score seen from the other side.
    #[must_use]
    pub fn swapped(mut self) -> Self {
        std::mem::swap(&mut self.home, &mut self.away);
        for period in &mut self.periods {
            std::mem::swap(&mut period.home, &mut period.away);
        }
        self.winner = self.winner.map(Side::other);
        self
    }
}

#[cfg(test)]
mod tests;
