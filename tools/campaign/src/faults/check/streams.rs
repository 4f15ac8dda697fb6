//! Streams sent the content of the log, no key had more streams than its limit, and none outlived its key.

use std::collections::{BTreeMap, HashMap};

use super::{
    Finding, ObservedLog,
    answers::{homes, shown},
};
use crate::faults::record::{Limits, Revocation, StreamCut, StreamRun};

/// S4 and S6: with every publication a stream has exactly the log's state at that time, on every node and in both
/// modes; and changes sent before a publication are in the log.
pub(super) fn as_the_log(
    cuts: &[StreamCut],
    bodies: &HashMap<u64, Vec<u8>>,
    log: &ObservedLog,
) -> Finding {
    let mut finding = Finding::new("streams have what the log has, and nothing else");
    let homes = homes(bodies);
    let published: HashMap<i64, Vec<_>> = log.cuts.iter().fold(HashMap::new(), |mut all, cut| {
        all.entry(cut.at_ms).or_insert_with(Vec::new).push(&cut.shows);
        all
    });
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for cut in cuts {
        *counts.entry((cut.mode, cut.published)).or_default() += 1;
        let at = || format!("{} ({}) at {}", cut.node, cut.mode, cut.at_ms);
        let Some(shown) = bodies.get(&cut.body).and_then(|body| shown(body, &homes)) else {
            finding.violate(|| format!("{} has records that cannot be parsed", at()));
            continue;
        };
        let is_held = match published.get(&cut.at_ms) {
            Some(epochs) if cut.published => epochs.iter().any(|shows| **shows == shown.numbers),
            None if cut.published => false,
            _ => shown.numbers.iter().all(|(series, n)| {
                log.quoted.get(series).is_some_and(|numbers| numbers.contains(n))
            }),
        };
        if !is_held {
            finding
                .violate(|| format!("{} has a state that the log lacks: {:016x}", at(), cut.body));
        }
    }
    let figures = counts.iter().map(|((mode, published), count)| {
        let what = if *published { "publications" } else { "batches between" };
        format!("{count} {what} ({mode})")
    });
    finding.figures = figures.collect::<Vec<_>>().join(", ");
    if counts.len() < 3 {
        finding.violate(|| "not every kind of cut was seen, so nothing is shown".to_owned());
    }
    finding
}

/// S11: at no instant a key had more streams than its limit. A stream was open at least from its first byte to its
/// last.
pub(super) fn within_limit(runs: &[StreamRun], key: &str, limit: u32) -> Finding {
    let mut finding = Finding::new("no key has more streams than it may, over all nodes");
    let own: Vec<&StreamRun> = runs.iter().filter(|run| run.key == key).collect();
    // If a stream ends another may begin in the same millisecond.
    let mut edges: Vec<(i64, i32)> = Vec::new();
    for run in own.iter().filter(|run| run.last_ms > run.opened_ms) {
        edges.extend([(run.opened_ms, 1), (run.last_ms, -1)]);
    }
    edges.sort_unstable();
    let (mut open, mut most) = (0, 0);
    for (at_ms, step) in edges {
        open += step;
        most = most.max(open);
        if u32::try_from(open).is_ok_and(|open| open > limit) && step > 0 {
            finding.violate(|| format!("{open} streams at {at_ms}, allowed {limit}"));
        }
    }
    finding.figures = format!("{} streams, at most {most} at a time of {limit}", own.len());
    if u32::try_from(most).is_ok_and(|most| most < limit) {
        finding.violate(|| "the limit was never met, so nothing is shown".to_owned());
    }
    finding
}

/// S12: a stream costs one request, and one for each publication with changes.
pub(super) fn within_quota(runs: &[StreamRun], limits: &[Limits]) -> Finding {
    let mut finding = Finding::new("no key is sent more by streams than its day allows");
    let mut ended = 0;
    for Limits { key, per_day, .. } in limits {
        let own = runs.iter().filter(|run| run.key == *key);
        let spent: u64 = own.clone().map(|run| 1 + run.changes).sum();
        ended += own.filter(|run| run.end.as_deref() == Some("quota_exceeded")).count();
        if spent > *per_day {
            finding.violate(|| format!("{key}: {spent} requests' worth, allowed {per_day}"));
        }
    }
    finding.figures = format!("{} keys, {ended} streams ended by their quota", limits.len());
    if ended == 0 {
        finding.violate(|| "no stream ended by its quota, so nothing is shown".to_owned());
    }
    finding
}

/// S14: nothing that was published after the return of a revocation is sent on a stream of the key.
pub(super) fn revoked_are_silent(runs: &[StreamRun], revocations: &[Revocation]) -> Finding {
    let mut finding = Finding::new("nothing later is sent on a stream of a revoked key");
    let returned: HashMap<&str, i64> =
        revocations.iter().map(|it| (it.key.as_str(), it.returned_ms)).collect();
    let mut ended = 0;
    for run in runs {
        let Some(returned_ms) = returned.get(run.key.as_str()) else { continue };
        ended += usize::from(run.end.as_deref() == Some("authentication_failed"));
        // The publication's own time may be of a clock that was stepped: it must also have arrived later.
        let is_late = run.last_cut_ms.is_some_and(|at_ms| at_ms > *returned_ms);
        if is_late && run.last_ms > *returned_ms {
            finding.violate(|| {
                format!(
                    "{} sent {} a cut of {:?}, after its revocation ({returned_ms})",
                    run.node, run.key, run.last_cut_ms
                )
            });
        }
    }
    finding.figures = format!("{ended} streams ended with their key");
    if ended == 0 {
        finding.violate(|| "no stream ended with its key, so nothing is shown".to_owned());
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::unit::Unit,
        faults::{check::observed_log::tests::log, market::Series},
    };

    const SERIES: Series = Series { pusher: 0, line: 0 };

    fn body(price: f64) -> Vec<u8> {
        let record = serde_json::json!([{
            "id": "odd_1", "event_id": "evt_1", "bookmaker": "fanduel", "market": "moneyline",
            "outcomes": [{ "name": "Anton Berger", "price": price }, { "name": "Luis Calderon", "price": 1.5 }],
        }]);
        record.to_string().into_bytes()
    }

    fn cut(mode: &'static str, at_ms: i64, published: bool, body: u64) -> StreamCut {
        StreamCut { node: Unit::Api(1), mode, at_ms, published, body }
    }

    fn run(key: &str, opened_ms: i64, last_ms: i64) -> StreamRun {
        StreamRun {
            key: key.to_owned(),
            node: Unit::Api(1),
            mode: "live",
            opened_ms,
            last_ms,
            last_cut_ms: Some(last_ms),
            changes: 3,
            end: None,
        }
    }

    #[test]
    fn a_cut_that_the_log_does_not_have_is_found() {
        let bodies = HashMap::from([(1, body(2.001)), (2, body(2.002)), (9, body(2.009))]);
        let log = log(SERIES, &[1, 2]);
        let good = [
            cut("publication", 1000, true, 1),
            cut("live", 1500, false, 2),
            cut("live", 2000, true, 2),
        ];
        let finding = as_the_log(&good, &bodies, &log);
        assert!(finding.holds(), "{finding:?}");
        for bad in [
            cut("live", 2000, true, 1),
            cut("live", 2001, true, 2),
            cut("live", 2500, false, 9),
            cut("live", 2500, false, 7),
        ] {
            let all = [&good[..], &[bad]].concat();
            assert_eq!(as_the_log(&all, &bodies, &log).broken_count, 1);
        }
        assert!(!as_the_log(&[], &bodies, &log).holds(), "nothing was seen");
    }

    #[test]
    fn a_stream_too_many_is_found() {
        let runs = [run("few", 0, 10), run("few", 10, 20), run("few", 5, 15), run("a", 0, 99)];
        assert!(within_limit(&runs, "few", 2).holds());
        assert_eq!(within_limit(&runs, "few", 1).broken_count, 2);
        assert!(!within_limit(&runs, "few", 3).holds(), "never met");
    }

    #[test]
    fn a_quota_that_was_passed_and_a_key_that_was_sent_more_are_found() {
        let limit = |per_day| Limits { key: "a".to_owned(), per_minute: 1, per_day };
        let ended = |code: &str| {
            let end = Some(code.to_owned());
            [run("a", 0, 10), StreamRun { end, ..run("a", 0, 20) }]
        };
        let runs = ended("quota_exceeded");
        assert!(within_quota(&runs, &[limit(8)]).holds());
        assert!(!within_quota(&runs, &[limit(7)]).holds());
        let revoked = |returned_ms| Revocation { key: "a".to_owned(), called_ms: 0, returned_ms };
        let runs = ended("authentication_failed");
        assert!(revoked_are_silent(&runs, &[revoked(20)]).holds());
        assert_eq!(revoked_are_silent(&runs, &[revoked(15)]).broken_count, 1);
        let runs = ended("unavailable");
        assert!(!within_quota(&runs, &[limit(8)]).holds(), "none ended so");
        assert!(!revoked_are_silent(&runs, &[revoked(20)]).holds(), "none ended so");
    }
}
