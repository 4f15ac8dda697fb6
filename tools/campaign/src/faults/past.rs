//! The readers' answers, requested again as of their time: every node answers with the same bytes and the same tag
//! (H4), the archive has every entry once (H17), and every node reads it (H20).

use std::{
    collections::BTreeMap,
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use serde_json::Value;

use super::{
    CATCH_UP_MAX,
    check::Finding,
    cluster_setup::ARCHIVE,
    record::{Read, Records, now_ms},
};
use crate::cluster::{
    http::{Answer, Client},
    layout::ClusterLayout,
    unit::{APIS, Unit},
};

/// Number of answers that are requested from every node; the others are requested from one node each.
const OF_EVERY_NODE: usize = 150;
/// Maximum number of requests without an answer before a node is skipped.
const UNANSWERED_MAX: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(250);

/// An answer that a reader got, with its publication.
#[derive(Clone, Copy)]
struct Seen<'a> {
    path: &'a str,
    published_at: &'a str,
    etag: &'a str,
    body: &'a [u8],
}

/// Checks the rules of history. `key` must not reach its own limits; `entries` is the length of the log, or less.
pub(super) fn judge(
    layout: &ClusterLayout,
    key: &str,
    records: &Records,
    entries: u64,
) -> Vec<Finding> {
    vec![as_seen(layout, key, records), once(layout, entries), known_everywhere(layout, key)]
}

/// All distinct answers, in the order of publications.
fn different(records: &Records) -> Vec<Seen<'_>> {
    // A clock that was stepped ahead may have made publications of the future.
    let now = jiff::Timestamp::from_millisecond(now_ms()).map(|now| now.to_string());
    let now = now.unwrap_or_default();
    let mut different: BTreeMap<(&str, &str), Seen<'_>> = BTreeMap::new();
    let reads = records.reads.iter().filter(|read| read.status == 200);
    for Read { path, published_at, etag, body, .. } in reads {
        let body = body.and_then(|body| records.bodies.get(&body));
        let (Some(published_at), Some(etag), Some(body)) = (published_at, etag, body) else {
            continue;
        };
        if published_at.as_str() < now.as_str() {
            different.insert((published_at, path), Seen { path, published_at, etag, body });
        }
    }
    different.into_values().collect()
}

/// The answers to request from each node: each publication from one node, alternating, so that it is rebuilt once, and
/// a sample over the whole campaign from all nodes.
fn divide<'a>(different: &[Seen<'a>], nodes: usize) -> Vec<Vec<Seen<'a>>> {
    let step = different.len().div_ceil(OF_EVERY_NODE).max(1);
    let mut asked = vec![Vec::new(); nodes];
    let publications = different.chunk_by(|one, other| one.published_at == other.published_at);
    let mut at = 0;
    for (publication, answers) in publications.enumerate() {
        for seen in answers {
            for (node, asked) in asked.iter_mut().enumerate() {
                if publication % nodes == node || at % step == 0 {
                    asked.push(*seen);
                }
            }
            at += 1;
        }
    }
    asked
}

/// The path of the answer of a publication.
pub(super) fn as_of(path: &str, published_at: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}as_of={published_at}")
}

fn as_seen(layout: &ClusterLayout, key: &str, records: &Records) -> Finding {
    let mut finding = Finding::new("as_of gives every node's readers what was seen then");
    let different = different(records);
    let asked = divide(&different, APIS.len());
    // The nodes in parallel, each with one request at a time: the past is rebuilt one publication after the other.
    let compared: Vec<(usize, Vec<String>)> = thread::scope(|scope| {
        let node = |(api, asked)| scope.spawn(move || compare(layout, api, key, asked));
        let nodes: Vec<_> =
            APIS.into_iter().zip(asked.iter().map(Vec::as_slice)).map(node).collect();
        let failed = |_| (0, vec!["the comparison has failed".to_owned()]);
        nodes.into_iter().map(|node| node.join().unwrap_or_else(failed)).collect()
    });
    let count: usize = compared.iter().map(|(compared, _)| compared).sum();
    for violation in compared.into_iter().flat_map(|(_, violations)| violations) {
        finding.violate(|| violation);
    }
    finding.figures = format!("{} answers, {count} compared", different.len());
    if different.is_empty() {
        finding.violate(|| "nothing was seen".to_owned());
    }
    finding
}

/// Requests answers from a node again. Returns the number compared, and the differences.
fn compare(
    layout: &ClusterLayout,
    api: Unit,
    key: &str,
    asked: &[Seen<'_>],
) -> (usize, Vec<String>) {
    let mut client = Client::new(layout.port(api), TIMEOUT);
    let (mut compared, mut unanswered, mut violations) = (0, 0, Vec::new());
    for seen in asked {
        let path = as_of(seen.path, seen.published_at);
        let Some(answer) = ask(&mut client, key, &path) else {
            violations.push(format!("{api} does not answer {path}"));
            unanswered += 1;
            if unanswered == UNANSWERED_MAX {
                break;
            }
            continue;
        };
        compared += 1;
        let tag = answer.header("etag");
        if answer.status != 200 || answer.body != seen.body || tag != Some(seen.etag) {
            let status = answer.status;
            violations.push(format!("{api}: {path} is another: {status}, tag {tag:?}"));
        }
    }
    (compared, violations)
}

/// Every entry is in the archive once, regardless of processes killed while it was written.
fn once(layout: &ClusterLayout, entries: u64) -> Finding {
    let mut finding = Finding::new("the archive has every entry once");
    let begun = Instant::now();
    while last_archived(layout).is_none_or(|last| last < entries) {
        if begun.elapsed() > CATCH_UP_MAX {
            finding.violate(|| format!("it does not catch up with entry {entries} of the log"));
            break;
        }
        shell::sleep(RETRY);
    }
    let verify = || -> Result<String> {
        Ok(shell::output(&mut layout.verb(&["history", "verify"])?)?.trim().to_owned())
    };
    match verify() {
        Ok(report) => finding.figures = report.lines().next().unwrap_or_default().to_owned(),
        Err(error) => finding.violate(|| format!("{error:#}")),
    }
    finding
}

/// The last archived entry.
fn last_archived(layout: &ClusterLayout) -> Option<u64> {
    let files = fs::read(layout.folder.join(ARCHIVE).join("live/files.json")).ok()?;
    let files: Value = serde_json::from_slice(&files).ok()?;
    let last = |file: &Value| file.get("last_seq")?.as_u64();
    files.get("files")?.as_array()?.iter().filter_map(last).max()
}

/// Every node reports the same start of history.
fn known_everywhere(layout: &ClusterLayout, key: &str) -> Finding {
    let mut finding = Finding::new("every node reads the archive that the leader writes");
    let mut begins: BTreeMap<Unit, String> = BTreeMap::new();
    let mut publications = 0;
    for api in APIS {
        let mut client = Client::new(layout.port(api), TIMEOUT);
        let answer = ask(&mut client, key, "/v1/history").filter(|answer| answer.status == 200);
        let reach: Option<Value> =
            answer.and_then(|answer| serde_json::from_slice(&answer.body).ok());
        let from = reach.as_ref().and_then(|reach| reach.get("from")?.as_str());
        match from {
            Some(from) => drop(begins.insert(api, from.to_owned())),
            None => finding.violate(|| format!("{api} does not report the start of history")),
        }
        let count = reach.as_ref().and_then(|reach| reach.get("publications")?.as_u64());
        publications = publications.max(count.unwrap_or_default());
    }
    let mut different: Vec<&String> = begins.values().collect();
    different.dedup();
    if different.len() > 1 {
        finding.violate(|| format!("history begins at different times: {begins:?}"));
    }
    finding.figures = format!("{} nodes, {publications} publications", begins.len());
    finding
}

/// Repeats a request until a node can answer: past publications are rebuilt one at a time.
fn ask(client: &mut Client, key: &str, path: &str) -> Option<Answer> {
    let begun = Instant::now();
    loop {
        let headers = format!("x-api-key: {key}\r\n");
        let answer = client.get(path, &headers).ok();
        let again = answer.as_ref().is_none_or(|answer| answer.status == 503);
        if !again || begun.elapsed() > CATCH_UP_MAX {
            return answer;
        }
        shell::sleep(RETRY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_was_seen_is_asked_for_again_and_a_sample_of_every_node() {
        let mut records = Records::default();
        records.bodies.insert(7, b"[]".to_vec());
        for n in 0..500 {
            let at = 1_700_000_000_000 + n * 1000;
            let at = jiff::Timestamp::from_millisecond(at).unwrap().to_string();
            let (etag, body) = (Some("\"a\"".to_owned()), Some(7));
            let read = Read { status: 200, published_at: Some(at), etag, body, ..Read::default() };
            // The same answer twice counts once.
            let other = Read { path: "/v1/books".to_owned(), ..read.clone() };
            records.reads.extend([read.clone(), read, other]);
        }
        let unknown = Read { status: 200, body: Some(7), ..Read::default() };
        records.reads.push(unknown);
        let different = different(&records);
        assert_eq!(different.len(), 1000);
        let asked = divide(&different, 3);
        let mut nodes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for seen in asked.iter().flatten() {
            *nodes.entry((seen.published_at, seen.path)).or_default() += 1;
        }
        assert_eq!(nodes.len(), different.len());
        let of_all = nodes.values().filter(|nodes| **nodes == 3).count();
        assert!((OF_EVERY_NODE / 2..=OF_EVERY_NODE).contains(&of_all), "{of_all}");
        assert!(nodes.values().all(|nodes| [1, 3].contains(nodes)));
        let [least, most] = [asked.iter().map(Vec::len).min(), asked.iter().map(Vec::len).max()];
        assert!(most.unwrap() - least.unwrap() < 10, "{least:?} {most:?}");
    }
}
