//! Acknowledged batches are in the log, once and in order.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, ObservedLog};
use crate::faults::{
    market,
    record::{Outcome, Push},
};

/// Every acknowledged batch is in the log with all its lines, and the log has none that was never sent.
pub(super) fn none_lost(pushes: &[Push], log: &ObservedLog) -> Finding {
    let mut finding = Finding::new("no acknowledged push is lost");
    let mut sent: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
    let mut taken: BTreeMap<(usize, u32), &Push> = BTreeMap::new();
    for push in pushes {
        sent.entry(push.pusher).or_default().insert(push.n);
        if push.outcome == Outcome::Taken {
            taken.insert((push.pusher, push.n), push);
        }
    }
    for series in market::all_series() {
        let logged: BTreeSet<u32> =
            log.quoted.get(&series).into_iter().flatten().copied().collect();
        let own = taken.range((series.pusher, 0)..=(series.pusher, u32::MAX));
        for ((_, n), push) in own.filter(|((_, n), _)| !logged.contains(n)) {
            finding.violate(|| {
                let to = push.node.map_or("nginx".to_owned(), |node| node.to_string());
                format!(
                    "{series:?} number {n}, acknowledged at {} by {to}, is not in the log",
                    push.done_ms
                )
            });
        }
        let known = sent.get(&series.pusher);
        for n in logged.iter().filter(|n| known.is_none_or(|known| !known.contains(n))) {
            finding.violate(|| format!("{series:?} number {n} is in the log and was never sent"));
        }
    }
    let count = |is: fn(&Outcome) -> bool| pushes.iter().filter(|push| is(&push.outcome)).count();
    finding.figures = format!(
        "{} batches acknowledged, {} refused, {} not answered, {} with lines refused; {} entries",
        count(|it| *it == Outcome::Taken),
        count(|it| matches!(it, Outcome::Refused(_))),
        count(|it| matches!(it, Outcome::Unknown(_))),
        count(|it| matches!(it, Outcome::Partly(_))),
        log.entries
    );
    if taken.is_empty() {
        finding.violate(|| "nothing was acknowledged at all".to_owned());
    }
    finding
}

/// No number of a series is in the log twice.
pub(super) fn none_twice(log: &ObservedLog) -> Finding {
    let mut finding = Finding::new("no push is applied twice");
    let mut prices = 0;
    for (series, numbers) in &log.quoted {
        let mut seen = BTreeSet::new();
        for n in numbers.iter().filter(|n| !seen.insert(**n)) {
            finding.violate(|| format!("{series:?} number {n} is in the log twice"));
        }
        prices += numbers.len();
    }
    finding.figures = format!("{prices} prices in the log");
    finding
}

/// The numbers of a series increase.
pub(super) fn in_order(log: &ObservedLog) -> Finding {
    let mut finding = Finding::new("order per (bookmaker, event, market) is kept");
    for (series, numbers) in &log.quoted {
        for (before, after) in numbers.iter().zip(numbers.iter().skip(1)) {
            if after < before {
                finding.violate(|| format!("{series:?}: {after} comes after {before}"));
            }
        }
    }
    finding.figures = format!("{} series", log.quoted.len());
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::market::Series;

    fn push(n: u32, outcome: Outcome) -> Push {
        Push { pusher: 0, n, sent_ms: 0, done_ms: 1, node: None, outcome }
    }

    /// The log of all series of the first pusher.
    fn log(numbers: &[u32]) -> ObservedLog {
        let own = market::all_series().into_iter().filter(|series| series.pusher == 0);
        ObservedLog {
            quoted: own.map(|it| (it, numbers.to_vec())).collect(),
            ..ObservedLog::default()
        }
    }

    #[test]
    fn what_was_not_acknowledged_may_be_there_or_not() {
        let unknown = || Outcome::Unknown("gone".to_owned());
        let pushes = [
            push(1, Outcome::Taken),
            push(2, unknown()),
            push(3, unknown()),
            push(4, Outcome::Taken),
        ];
        let log = log(&[1, 3, 4]);
        assert!(
            none_lost(&pushes, &log).holds() && none_twice(&log).holds() && in_order(&log).holds()
        );
    }

    #[test]
    fn a_lost_line_is_told_and_so_is_one_that_nobody_sent() {
        let pushes = [push(1, Outcome::Taken), push(2, Outcome::Taken)];
        let mut lost = log(&[1, 2]);
        lost.quoted.insert(Series { pusher: 0, line: 3 }, vec![1]);
        assert_eq!(none_lost(&pushes, &lost).broken_count, 1);
        assert!(!none_lost(&pushes, &log(&[1, 2, 3])).holds());
        assert!(
            !none_lost(&[], &ObservedLog::default()).holds(),
            "no accepted push proves nothing"
        );
    }

    #[test]
    fn a_second_application_and_a_wrong_order_are_told() {
        assert!(!none_twice(&log(&[1, 2, 1])).holds());
        assert!(!in_order(&log(&[1, 3, 2])).holds());
    }
}
