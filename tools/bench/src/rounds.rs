//! Alternating rounds of two sides. A machine shared with others has fast and slow minutes, so only neighbouring
//! rounds are compared, and the median of their ratios is taken.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::load::{self, Outcome, Plan};
use super::machine::cpu_seconds;

/// One of the two sides of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub(super) plan: Plan<'a>,
    pub(super) pid: u32,
}

/// One round of one side.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) outcome: Outcome,
    pub(super) cpu_us: f64,
}

/// Result of the rounds of a service and of its reference.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    /// The reference's processor time per request, divided by the service's.
    pub(super) cpu_ratio: f64,
    /// The service's p99, divided by the reference's.
    pub(super) p99_ratio: f64,
    pub(super) service_cpu_us: f64,
    pub(super) measure_cpu_us: f64,
}

/// Runs one round.
///
/// # Errors
/// The server refuses a request, or the generator fails.
pub(super) fn round(side: Side<'_>) -> Result<Round> {
    let before = cpu_seconds(side.pid)?;
    let outcome = load::run(side.plan)?;
    let cpu = cpu_seconds(side.pid)? - before;
    ensure!(outcome.bad == 0, "{} requests were refused", outcome.bad);
    let cpu_us = cpu * 1e6 / super::float(outcome.good.max(1));
    Ok(Round { outcome, cpu_us })
}

/// Runs alternating rounds of both sides.
pub(super) fn compare(
    mut service: Side<'_>,
    mut measure: Side<'_>,
    rounds: usize,
) -> Result<Comparison> {
    for side in [service, measure] {
        let warm_up = Plan { time: Duration::from_millis(300), ..side.plan };
        round(Side { plan: warm_up, ..side })?;
    }
    let (mut cpu, mut p99, mut own, mut others) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (ours, theirs) = (round(service)?, round(measure)?);
        service.plan.first = ours.outcome.next;
        measure.plan.first = theirs.outcome.next;
        cpu.push(theirs.cpu_us / ours.cpu_us);
        p99.push(ours.outcome.p99_us / theirs.outcome.p99_us.max(1.0));
        own.push(ours.cpu_us);
        others.push(theirs.cpu_us);
    }
    Ok(Comparison {
        cpu_ratio: median(cpu),
        p99_ratio: median(p99),
        service_cpu_us: median(own),
        measure_cpu_us: median(others),
    })
}

/// The median; 0 without figures.
pub(super) fn median(figures: Vec<f64>) -> f64 {
    at_part(figures, 2)
}

/// The lower quartile; 0 without figures.
pub(super) fn lower_quartile(figures: Vec<f64>) -> f64 {
    at_part(figures, 4)
}

fn at_part(mut figures: Vec<f64>, part: usize) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / part).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the figures are passed through as they are")]
    fn a_disturbed_round_does_not_move_the_median() {
        assert_eq!(median(vec![1.1, 0.2, 1.0, 1.2, 9.0]), 1.1);
        assert_eq!(median(Vec::new()), 0.0);
        assert_eq!(lower_quartile(vec![4.0, 1.0, 3.0, 2.0]), 2.0);
    }
}
