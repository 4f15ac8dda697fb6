//! The interface between head-to-head contests and the rest of the simulator: a course of play, and fair chances at
//! any moment.
//!
//! Each sport's module plays the contest once, from a hash, by a model with a strength and a tempo; chances are
//! computed from the same model and the score so far. So prices follow the score, and agree with the final score.

use domain::{Period, Side, Status};

use super::noise::normal_cdf;

/// The parameters of a contest, in the units of the sport's model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Form {
    /// Advantage of the home side: log-odds in fights and tennis, points in football.
    pub(crate) strength: f64,
    /// Deviation from the usual total: log-odds in fights and tennis, points in football.
    pub(crate) tempo: f64,
}

/// The score from an instant until the next step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) at: i64,
    pub(crate) status: Status,
    pub(crate) home: i32,
    pub(crate) away: i32,
    pub(crate) periods: Vec<Period>,
    pub(crate) winner: Option<Side>,
    /// True if bookmakers suspend when it happens.
    pub(crate) incident: bool,
}

/// The course of a contest from its start to its end.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Never empty; the last one is final.
    pub(crate) steps: Vec<Step>,
    /// Time from which nobody takes bets: the contest is decided, though perhaps not yet official.
    pub(crate) closed: i64,
    /// The instant of the final score.
    pub(crate) over: i64,
}

impl Timeline {
    /// The last step at or before an instant.
    pub(crate) fn step_at(&self, at: i64) -> Option<usize> {
        self.steps.partition_point(|step| step.at <= at).checked_sub(1)
    }

    /// True if an incident for which bookmakers suspend happened after `from` and not after `to`.
    pub(crate) fn incident_within(&self, from: i64, to: i64) -> bool {
        self.steps.iter().any(|step| step.incident && from < step.at && step.at <= to)
    }
}

/// The state of a live contest as a bookmaker sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) step: &'a Step,
    /// The next step; observers have a vague impression of it.
    pub(crate) next: Option<&'a Step>,
    pub(crate) at: i64,
    pub(crate) start: i64,
    /// Seed of the observers' impressions.
    pub(crate) luck: u64,
}

/// Fair chances: the moneyline, and the distributions of margin and total.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fair {
    pub(crate) home: f64,
    /// Home's lead at the end.
    pub(crate) margin: Spread,
    pub(crate) total: Spread,
}

/// A distribution over whole numbers, evaluated only at halves, so that there are no ties.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Spread {
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// The chances of `low`, `low + 1`, …
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

    /// The line, in halves, that splits the chances most evenly; `None` if the outcome is no longer in doubt.
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
                    // Lines with no possible result between them are the same bet; choose the one where the favourite
                    // gives points.
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
