//! Requests over the last hour, from the counters of `/metrics`, sampled every few seconds.
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::metrics::{Metrics, Totals};
use domain::Timestamp;

/// Minimum interval between samples.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Maximum number of samples: slightly more than an hour.
const LOOKS_MAX: usize = 370;
/// Number of bars of the chart, one per minute.
const MINUTES: usize = 60;
/// Height in the drawing's own units, which the page scales.
const HEIGHT: u64 = 60;
const BAR_WIDTH: usize = 10;

/// Samples of the counters.
#[derive(Debug, Default)]
pub(crate) struct Traffic(Mutex<VecDeque<(Timestamp, Totals)>>);

/// A segment of a bar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) outcome: &'static str,
    pub(super) x: usize,
    pub(super) y: u64,
    pub(super) height: u64,
}

/// The last hour as a chart and in numbers.
#[derive(Debug)]
pub(super) struct Hour {
    pub(super) pieces: Vec<Piece>,
    pub(super) total: Totals,
    /// Counts of the last minute.
    pub(super) minute: Totals,
    /// Requests in the busiest minute.
    pub(super) peak: u64,
}

impl Traffic {
    /// Samples the counters if that is due.
    pub(crate) fn look(&self, metrics: &Metrics, now: Timestamp) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.back().is_some_and(|(at, _)| now.since(*at) < LOOK_EVERY) {
            return;
        }
        if looks.len() >= LOOKS_MAX {
            looks.pop_front();
        }
        looks.push_back((now, metrics.totals()));
    }

    /// The hour up to now. Counts between two samples belong to the minute of the later one.
    pub(super) fn hour(&self, metrics: &Metrics, now: Timestamp) -> Hour {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        looks.push_back((now, metrics.totals()));
        let mut bins = [Totals::default(); MINUTES];
        for (one, other) in looks.iter().zip(looks.iter().skip(1)) {
            let minutes_ago = usize::try_from(now.since(other.0).as_secs() / 60).unwrap_or(MINUTES);
            let bin = MINUTES.checked_sub(minutes_ago + 1).and_then(|at| bins.get_mut(at));
            if let Some(bin) = bin {
                *bin = bin.plus(other.1.minus(one.1));
            }
        }
        let peak = bins.iter().map(|bin| bin.all()).max().unwrap_or_default();
        let pieces = bins.iter().enumerate().flat_map(|(n, bin)| pieces(n * BAR_WIDTH, *bin, peak));
        Hour {
            pieces: pieces.collect(),
            total: bins.iter().fold(Totals::default(), |sum, bin| sum.plus(*bin)),
            minute: bins.last().copied().unwrap_or_default(),
            peak,
        }
    }
}

/// A stacked bar; every non-zero count is visible.
fn pieces(x: usize, bin: Totals, peak: u64) -> Vec<Piece> {
    let mut below = 0;
    let counts = [("ok", bin.answered), ("refused", bin.refused), ("failed", bin.failed)];
    let counted = counts.into_iter().filter(|(_, count)| *count > 0);
    counted
        .map(|(outcome, count)| {
            let height = (count.saturating_mul(HEIGHT) / peak.max(1)).max(1);
            below = (below + height).min(HEIGHT);
            Piece { outcome, x, y: HEIGHT - below, height }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_there_were_requests_and_errors_are_always_seen() {
        let bin = Totals { answered: 500, refused: 1, failed: 0 };
        let drawn = pieces(20, bin, 1000);
        let expected = [("ok", 30, 30), ("refused", 29, 1)];
        assert_eq!(
            drawn.iter().map(|own| (own.outcome, own.y, own.height)).collect::<Vec<_>>(),
            expected
        );
        assert!(pieces(0, Totals::default(), 0).is_empty());
    }

    #[test]
    fn looks_are_bounded_and_not_more_often_than_needed() {
        let (traffic, metrics) = (Traffic::default(), Metrics::default());
        for second in 0..10_000 {
            traffic.look(&metrics, Timestamp::from_secs(second));
        }
        let looks = traffic.0.lock().unwrap();
        assert_eq!(looks.len(), LOOKS_MAX);
        assert_eq!(looks.back().unwrap().0, Timestamp::from_secs(9990));
    }
}
