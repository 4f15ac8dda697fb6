//! Availability: reads are answered during faults, a lost log is reported, and everything recovers by itself.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use super::Finding;
use crate::{
    cluster::unit::{APIS, Unit},
    faults::{
        load::STATUS,
        record::{Episode, Kind, Read, Records},
    },
};

/// One in this number of requests may fail.
const ONE_IN: usize = 1000;
/// Maximum time for a node to notice the loss of the log.
const NOTICED_MS: i64 = 10_000;

/// The results of the reads during one fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::faults) struct Score {
    pub(in crate::faults) requests: usize,
    pub(in crate::faults) failed: usize,
    pub(in crate::faults) slowest_ms: i64,
    why: BTreeMap<String, usize>,
}

impl Score {
    /// Reads through the load balancer with an unlimited key, sent between two instants.
    pub(in crate::faults) fn between(reads: &[Read], from_ms: i64, to_ms: i64) -> Self {
        let mut score = Self::default();
        let steady = reads.iter().filter(|read| read.balanced && read.key == "steady");
        for read in steady.filter(|read| (from_ms..=to_ms).contains(&read.sent_ms)) {
            score.requests += 1;
            score.slowest_ms = score.slowest_ms.max(read.done_ms - read.sent_ms);
            if !matches!(read.status, 200 | 304) {
                score.failed += 1;
                let error = read.error.as_deref().unwrap_or("no reason");
                *score.why.entry(format!("{} {error}", read.status)).or_default() += 1;
            }
        }
        score
    }

    fn is_enough(&self) -> bool {
        self.failed * ONE_IN <= self.requests
    }
}

/// During each fault of a kind, and until recovery, reads are answered.
pub(super) fn reads(records: &Records, kind: Kind, rule: &'static str) -> Finding {
    let mut finding = Finding::timed(rule);
    let mut total = Score::default();
    let episodes = records.episodes.iter().filter(|episode| episode.kind == kind);
    let mut count = 0;
    for episode in episodes {
        let end_ms = episode.caught_up_ms.unwrap_or(episode.healed_ms);
        let score = Score::between(&records.reads, episode.began_ms, end_ms);
        count += 1;
        total.requests += score.requests;
        total.failed += score.failed;
        total.slowest_ms = total.slowest_ms.max(score.slowest_ms);
        if !score.is_enough() {
            finding.violate(|| {
                let mut text =
                    format!("{}: {} of {} failed", episode.fault, score.failed, score.requests);
                for (why, count) in &score.why {
                    write!(text, "; {count} × {why}").unwrap_or_default();
                }
                text
            });
        }
    }
    finding.figures = format!(
        "{count} faults, {} requests, {} failed, the slowest took {} ms",
        total.requests, total.failed, total.slowest_ms
    );
    if count > 0 && total.requests == 0 {
        finding.violate(|| "there were no requests".to_owned());
    }
    finding
}

/// While the log is unreachable, every api node reports that it is degraded.
pub(super) fn degraded(records: &Records) -> Finding {
    let mut finding = Finding::timed("NATS down: /v1/status says degraded");
    let mut probes = 0;
    for episode in records.episodes.iter().filter(|episode| episode.kind == Kind::NoLog) {
        for api in APIS {
            let statuses = statuses(records, episode, api);
            probes += statuses.len();
            if statuses.is_empty() {
                finding.violate(|| format!("{}: {api} did not answer", episode.fault));
            }
            for status in statuses.iter().filter(|status| *status != "degraded") {
                finding.violate(|| format!("{}: {api} says {status}", episode.fault));
            }
        }
    }
    finding.figures = format!("{probes} looks, from {} s after the fault on", NOTICED_MS / 1000);
    finding
}

/// The status that a node reported after the time in which it must notice.
fn statuses(records: &Records, episode: &Episode, api: Unit) -> Vec<String> {
    let from_ms = episode.began_ms + NOTICED_MS;
    let own = records.reads.iter().filter(|read| read.node == Some(api) && read.path == STATUS);
    own.filter(|read| read.sent_ms >= from_ms && read.done_ms <= episode.healed_ms)
        .map(|read| {
            let body = read.body.and_then(|name| records.bodies.get(&name));
            let body: Option<Value> = body.and_then(|body| serde_json::from_slice(body).ok());
            let status = body.as_ref().and_then(|body| body.get("status")?.as_str());
            status.map_or_else(|| format!("nothing ({})", read.status), str::to_owned)
        })
        .collect()
}

/// After each fault everything recovers without a restart.
pub(super) fn caught_up(episodes: &[Episode]) -> Finding {
    let mut finding = Finding::timed("everything catches up by itself");
    let mut took: Vec<(i64, &str)> = Vec::new();
    for episode in episodes {
        match episode.caught_up_ms {
            Some(at_ms) => took.push((at_ms - episode.healed_ms, &episode.fault)),
            None => finding.violate(|| format!("not after `{}`", episode.fault)),
        }
    }
    let (most_ms, after) = took.iter().max().copied().unwrap_or_default();
    finding.figures =
        format!("{} faults; the longest took {most_ms} ms, after `{after}`", episodes.len());
    if episodes.is_empty() {
        finding.violate(|| "nothing was broken".to_owned());
    }
    finding
}

/// No process ended except by the campaign.
pub(super) fn no_process_ended(exits: &[String]) -> Finding {
    let mut finding = Finding::new("no process ends by itself");
    for exit in exits {
        finding.violate(|| exit.clone());
    }
    finding.figures = format!("{} exits", exits.len());
    finding
}

#[cfg(test)]
mod tests;
