//! What a contest between two is to the rest of the simulator: a course of play, and fair chances at any moment of it.
//!
//! Each sport's module plays the contest once, from a hash, by a model with a strength and a tempo; chances are
//! computed from the same model and the score so far. So prices follow the score, and end where the score ends.

use domain::{Period, Side, Status};

use super::noise::normal_cdf;

/// How the two compare, as the model of the sport takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Form {
    /// How much better the home side is: log-odds in fights and tennis, points in football.
    pub(crate) strength: f64,
    /// Added to what is usual for totals: log-odds in fights and tennis, points in football.
    pub(crate) tempo: f64,
}

/// The score from an instant on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) at: i64,
    pub(crate) status: Status,
    pub(crate) home: i32,
    pub(crate) away: i32,
    pub(crate) periods: Vec<Period>,
    pub(crate) winner: Option<Side>,
    /// Bookmakers suspend when it happens.
    pub(crate) incident: bool,
}

/// A contest as it is played, from its start to its end.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Never empty; the last is final.
    pub(crate) steps: Vec<Step>,
    /// Nobody takes bets from here on: the contest is decided, though perhaps not yet official.
    pub(crate) closed: i64,
    /// The instant of the final score.
    pub(crate) over: i64,
}

impl Timeline {
    /// The last step at or before an instant.
    pub(crate) fn step_at(&self, at: i64) -> Option<usize> {
        self.steps.partition_point(|step| step.at <= at).checked_sub(1)
    }

    /// Whether something happened after `from` and not after `to` for which bookmakers suspend.
    pub(crate) fn incident_within(&self, from: i64, to: i64) -> bool {
        self.steps.iter().any(|step| step.incident && from < step.at && step.at <= to)
    }
}

/// A contest under way as one who prices it sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) step: &'a Step,
    /// What comes next; those who watch have an inkling of it.
    pub(crate) next: Option<&'a Step>,
    pub(crate) at: i64,
    pub(crate) start: i64,
    /// What the watchers' impressions are made of.
    pub(crate) luck: u64,
}

/// Fair chances: the moneyline, and where margin and total may end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fair {
    pub(crate) home: f64,
    /// Home's lead at the end.
    pub(crate) margin: Spread,
    pub(crate) total: Spread,
}

/// A distribution over whole numbers, asked only at halves so that nothing ties.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Spread {
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// The chance of `low`, `low + 1`, …
    Mass {
        low: i32,
        mass: Vec<f64>,
    },
    /// Nothing is offered.
    Closed,
}

impl Spread {
    /// The chance of more than `half` halves (an odd number: 5 is 2.5).
    pub(crate) fn above(&self, half: i32) -> f64 {
        match self {
            Self::Normal { mean, deviation } => {
                normal_cdf((mean - f64::from(half) / 2.0) / deviation)
            }
            Self::Mass { low, mass } => {
                let from = half.div_euclid(2) + 1 - low;
                let skip = usize::try_from(from).unwrap_or(0);
                mass.iter().skip(skip).sum()
            }
            Self::Closed => 0.0,
        }
    }

    /// The line, in halves, that splits the chances most evenly; `None` where there is no doubt left to price.
    pub(crate) fn line(&self, shift: f64) -> Option<i32> {
        match self {
            Self::Normal { mean, .. } => {
                let below = super::noise::whole(mean + shift);
                i32::try_from(2 * below + 1).ok()
            }
            Self::Mass { low, mass } => {
                let mut left = 1.0;
                let mut best = (1.0, None);
                for (p, value) in mass.iter().zip(*low..) {
                    left -= p;
                    let off: f64 = (left - 0.5 + shift * 0.05).abs();
                    // Where no end lies between two lines they are the same bet; the favourite gives points.
                    let better = off < best.0 - 1e-9 || (off < best.0 + 1e-9 && left > 0.5);
                    if better && (0.1..=0.9).contains(&left) {
                        best = (off, Some(2 * value + 1));
                    }
                }
                best.1
            }
            Self::Closed => None,
        }
    }
}
