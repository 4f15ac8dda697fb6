//! Revoked keys are refused, and no limit is exceeded.

use std::collections::{BTreeMap, HashMap};

use super::Finding;
use crate::faults::record::{Limits, Read, Revocation};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
/// Tolerance of the `date` header, which has a resolution of a second and may be written a moment after the decision.
const DATE_SLACK_MS: i64 = 1000;

/// No request that was sent after the return of a revocation succeeded.
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

/// By the windows of the answering servers, no key exceeded its limits.
pub(super) fn within_limits(reads: &[Read], limits: &[Limits]) -> Finding {
    let mut finding = Finding::new("no key exceeds a limit in any window");
    let mut by_key: BTreeMap<&str, Vec<&Read>> = BTreeMap::new();
    for read in reads.iter().filter(|read| matches!(read.status, 200 | 304)) {
        by_key.entry(&read.key).or_default().push(read);
    }
    let mut reached = 0;
    for limit in limits {
        let own = by_key.get(limit.key.as_str()).map(Vec::as_slice).unwrap_or_default();
        // Every answer counts toward the minute, a 304 not toward the day.
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

/// A run of windows that must have had more answers than allowed: its start, the answers, and the number of windows.
/// An answer at the edge of two may belong to either, so only answers count that cannot be elsewhere.
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
mod tests;
