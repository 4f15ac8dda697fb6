//! Revoked keys are out, and no limit is passed.

use std::collections::{BTreeMap, HashMap};

use super::Finding;
use crate::faults::record::{Limits, Read, Revocation};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
/// The header tells the second, and may be written a moment after the decision.
const DATE_SLACK_MS: i64 = 1000;

/// No request that was sent after a revocation had returned succeeded.
pub(super) fn revoked_are_out(reads: &[Read], revocations: &[Revocation]) -> Finding {
    let mut finding = Finding::new("no request with a revoked key succeeds");
    let returned: HashMap<&str, i64> =
        revocations.iter().map(|it| (it.key.as_str(), it.returned_ms)).collect();
    let (mut before, mut after) = (0, 0);
    for read in reads {
        let Some(returned_ms) = returned.get(read.key.as_str()) else { continue };
        let succeeded = matches!(read.status, 200 | 304);
        if read.sent_ms <= *returned_ms {
            before += usize::from(succeeded);
            continue;
        }
        after += 1;
        if succeeded {
            finding.violate(|| {
                let node = read.node.map_or("nobody known".to_owned(), |node| node.to_string());
                let late = read.sent_ms - returned_ms;
                format!(
                    "{} let {} in, {late} ms after its revocation ({returned_ms})",
                    node, read.key
                )
            });
        }
    }
    let mut took: Vec<i64> = revocations.iter().map(|it| it.returned_ms - it.called_ms).collect();
    took.sort_unstable();
    let (median, most) = (took.get(took.len() / 2), took.last());
    finding.figures = format!(
        "{} revocations, {before} answers before, {after} requests after; a call took {} ms, at most {} ms",
        revocations.len(),
        median.copied().unwrap_or_default(),
        most.copied().unwrap_or_default()
    );
    if before == 0 || after == 0 {
        finding.violate(|| "no key was seen to work before and not after".to_owned());
    }
    finding
}

/// By the windows of the server that answered, no key got more than its limits.
pub(super) fn within_limits(reads: &[Read], limits: &[Limits]) -> Finding {
    let mut finding = Finding::new("no key exceeds a limit in any window");
    let mut by_key: BTreeMap<&str, Vec<&Read>> = BTreeMap::new();
    for read in reads.iter().filter(|read| matches!(read.status, 200 | 304)) {
        by_key.entry(&read.key).or_default().push(read);
    }
    let mut reached = 0;
    for limit in limits {
        let own = by_key.get(limit.key.as_str()).map(Vec::as_slice).unwrap_or_default();
        // Everything counts to the minute, a 304 does not to the day.
        let minute: Vec<i64> = own.iter().filter_map(|read| read.date_ms).collect();
        let fresh = own.iter().filter(|read| read.status == 200);
        let day: Vec<i64> = fresh.filter_map(|read| read.date_ms).collect();
        for (what, dates, window_ms, most) in
            [("minute", minute, MINUTE_MS, limit.per_minute), ("day", day, DAY_MS, limit.per_day)]
        {
            if let Some((begin, count, windows)) = excess(dates, window_ms, most) {
                finding.violate(|| {
                    format!(
                        "{}: {count} answers in {windows} {what} window(s) from {begin} on, allowed {most} each",
                        limit.key
                    )
                });
            }
        }
        for read in own.iter().filter(|read| read.used.is_some_and(|used| used > limit.per_day)) {
            finding.violate(|| format!("{}: x-requests-used is {:?}", limit.key, read.used));
        }
        reached += usize::from(reads.iter().any(|it| it.key == limit.key && it.status == 429));
    }
    finding.figures = format!("{} keys, {reached} of them met a limit", limits.len());
    if reached == 0 {
        finding.violate(|| "no limit was ever met, so nothing is shown".to_owned());
    }
    finding
}

/// Where more answers must lie in a run of windows than those windows allow: the run's begin, the answers, and how
/// many windows it has. An answer at the edge of two may belong to either, so what counts is what cannot be elsewhere.
fn excess(mut dates: Vec<i64>, window_ms: i64, most: u64) -> Option<(i64, usize, i64)> {
    dates.sort_unstable();
    let window = |at_ms: i64| at_ms.div_euclid(window_ms);
    let mut firsts: Vec<i64> = dates.iter().map(|date| window(date - DATE_SLACK_MS)).collect();
    firsts.dedup();
    for first in &firsts {
        let mut lasts: Vec<i64> = dates.iter().map(|date| window(date + DATE_SLACK_MS)).collect();
        lasts.dedup();
        for last in lasts.iter().filter(|last| *last >= first) {
            let lies = |date: &&i64| {
                window(**date - DATE_SLACK_MS) >= *first && window(**date + DATE_SLACK_MS) <= *last
            };
            let count = dates.iter().filter(lies).count();
            let windows = last - first + 1;
            let allowed = most.saturating_mul(u64::try_from(windows).unwrap_or_default());
            if u64::try_from(count).unwrap_or(u64::MAX) > allowed {
                return Some((first * window_ms, count, windows));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, sent_ms: i64, status: u16) -> Read {
        Read { sent_ms, key: key.to_owned(), status, date_ms: Some(sent_ms), ..Read::default() }
    }

    #[test]
    fn a_revoked_key_that_gets_in_is_told() {
        let revoked = [Revocation { key: "k".to_owned(), called_ms: 90, returned_ms: 100 }];
        let good =
            [read("k", 50, 200), read("k", 100, 200), read("k", 101, 401), read("other", 200, 200)];
        assert!(revoked_are_out(&good, &revoked).holds());
        for status in [200, 304] {
            let bad = [good.as_slice(), &[read("k", 101, status)]].concat();
            assert_eq!(revoked_are_out(&bad, &revoked).broken_count, 1);
        }
        assert!(
            !revoked_are_out(&good[..2], &revoked).holds(),
            "nothing asked after shows nothing"
        );
    }

    fn limits(per_minute: u64, per_day: u64) -> [Limits; 1] {
        [Limits { key: "k".to_owned(), per_minute, per_day }]
    }

    /// So many answers at this second, and a refusal.
    fn answers(at_s: &[i64], status: u16) -> Vec<Read> {
        let mut reads: Vec<Read> = at_s.iter().map(|at| read("k", at * 1000, status)).collect();
        reads.push(read("k", 59_000, 429));
        reads
    }

    #[test]
    fn a_limit_is_met_and_not_passed() {
        assert!(within_limits(&answers(&[10, 20, 30, 70, 80, 90], 200), &limits(3, 6)).holds());
        assert!(!within_limits(&answers(&[10, 20, 30, 40], 200), &limits(3, 100)).holds());
        assert!(
            !within_limits(&answers(&[10, 20, 30, 40], 304), &limits(3, 1)).holds(),
            "304s count to the minute"
        );
        assert!(
            within_limits(&answers(&[10, 20, 30], 304), &limits(3, 1)).holds(),
            "and not to the day"
        );
        assert!(!within_limits(&answers(&[10, 20, 100, 200], 200), &limits(100, 3)).holds());
    }

    #[test]
    fn answers_at_the_edge_of_two_minutes_may_belong_to_either() {
        assert!(within_limits(&answers(&[57, 58, 60, 62], 200), &limits(2, 100)).holds());
        assert!(!within_limits(&answers(&[57, 58, 60, 60, 62], 200), &limits(2, 100)).holds());
    }

    #[test]
    fn limits_that_nobody_met_show_nothing() {
        assert!(!within_limits(&[read("k", 1, 200)], &limits(3, 3)).holds());
    }
}
