//! Every node gives the same answers, and they equal the state of the log when the snapshot was cut.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use serde_json::Value;

use super::{Finding, ObservedLog};
use crate::{
    cluster::unit::Unit,
    faults::{
        market::{self, Series},
        record::{Read, Walk},
    },
};

/// For one `ETag` of one selection there is one body, whichever node answered. (The `ETag` is derived from the body,
/// so two bodies of one epoch under two tags are found by [`as_the_log`].)
pub(super) fn one_body(reads: &[Read]) -> Finding {
    let mut finding = Finding::new("one body for each selection and ETag");
    let mut first: HashMap<(&str, &str), &Read> = HashMap::new();
    let mut answers = 0;
    for read in reads.iter().filter(|read| read.body.is_some()) {
        let Some(etag) = read.etag.as_deref() else { continue };
        answers += 1;
        let kept = first.entry((&read.path, etag)).or_insert(read);
        if kept.body != read.body {
            finding.violate(|| {
                format!(
                    "{} {etag}: {:?} and {:?} answer differently",
                    read.path, kept.node, read.node
                )
            });
        }
    }
    finding.figures = format!("{answers} answers, {} different", first.len());
    finding
}

/// For one body of a selection there is one `ETag`, whichever node answered. Two builds may derive their tags
/// differently: a client then gets a body again that it has already, which is reported and costs nothing else. The
/// existence of a next page is part of the tag and not of the body, so pages are not checked.
pub(super) fn one_tag(reads: &[Read], walks: &[Walk], builds: usize) -> Finding {
    let mut finding = Finding::new("one ETag for each selection and body");
    let paged: BTreeSet<&str> = walks.iter().map(|walk| walk.path.as_str()).collect();
    let is_page = |read: &Read| {
        let begin = read.path.split_once("&cursor=").map_or(&*read.path, |(begin, _)| begin);
        paged.contains(begin)
    };
    let mut first: HashMap<(&str, u64), &Read> = HashMap::new();
    let mut two: BTreeSet<(&str, u64)> = BTreeSet::new();
    for read in reads.iter().filter(|read| read.etag.is_some() && !is_page(read)) {
        let Some(body) = read.body else { continue };
        let kept = first.entry((&read.path, body)).or_insert(read);
        if kept.etag != read.etag && two.insert((&read.path, body)) && builds == 1 {
            finding.violate(|| {
                format!(
                    "{}: body {body:016x} is {:?} at {:?} and {:?} at {:?}",
                    read.path, kept.etag, kept.node, read.etag, read.node
                )
            });
        }
    }
    let judged = if builds == 1 { "" } else { "; not judged, since two builds may differ in it" };
    finding.figures = format!("{} bodies, {} under two ETags{judged}", first.len(), two.len());
    finding
}

/// The pushed prices in a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// The instant of the epoch, if the body has it.
    generated_at_ms: Option<i64>,
    pub(super) numbers: BTreeMap<Series, u32>,
}

/// A [`Shown`] as a key for lookups.
type State = (Option<i64>, Vec<(Series, u32)>);

/// Every answer with prices is a snapshot that the log cut: one epoch has one state, the log's, on every node; and one
/// state of a selection has one body.
pub(super) fn as_the_log(
    reads: &[Read],
    bodies: &HashMap<u64, Vec<u8>>,
    log: &ObservedLog,
) -> Finding {
    let mut finding = Finding::new("each epoch is the log's, on every node");
    let homes = homes(bodies);
    let mut seen: HashMap<(&str, u64), &Read> = HashMap::new();
    for read in reads.iter().filter(|read| read.path.contains("/odds")) {
        if let Some(body) = read.body {
            seen.entry((&read.path, body)).or_insert(read);
        }
    }
    let mut states: HashMap<(&str, State), &Read> = HashMap::new();
    for ((path, name), read) in &seen {
        let shown = bodies.get(name).and_then(|body| shown(body, &homes));
        let Some(shown) = shown else {
            finding.violate(|| format!("{path}: body {name:016x} cannot be parsed"));
            continue;
        };
        if !is_cut(&shown, log) {
            finding.violate(|| {
                let node = read.node.map_or("nobody known".to_owned(), |node| node.to_string());
                format!(
                    "{path} at {} from {node} shows a state that the log never cut: body {name:016x}",
                    read.done_ms
                )
            });
        }
        let state = (shown.generated_at_ms, shown.numbers.into_iter().collect());
        let other = states.entry((path, state)).or_insert(read);
        if other.body != read.body {
            finding.violate(|| {
                format!(
                    "{path}: the same prices in two bodies, {:?} and {:?}",
                    other.node, read.node
                )
            });
        }
    }
    finding.figures = format!("{} different bodies, {} epochs", seen.len(), log.cuts.len());
    finding
}

fn is_cut(shown: &Shown, log: &ObservedLog) -> bool {
    log.cuts.iter().any(|cut| {
        shown.generated_at_ms.is_none_or(|at_ms| at_ms == cut.at_ms)
            && shown.numbers.iter().all(|(series, n)| cut.shows.get(series) == Some(n))
    })
}

/// At the end every api node shows everything in the log.
pub(in crate::faults) fn ends_alike(last: &[(Unit, Value)], log: &ObservedLog) -> Finding {
    let mut finding = Finding::new("in the end every node shows all that the log holds");
    let texts = last.iter().map(|(_, body)| body.to_string().into_bytes());
    let homes = homes(&texts.enumerate().map(|(at, body)| (at as u64, body)).collect());
    let mut nodes: BTreeMap<Unit, BTreeMap<Series, u32>> = BTreeMap::new();
    for (node, body) in last {
        let shown = shown(body.to_string().as_bytes(), &homes).unwrap_or_default();
        nodes.entry(*node).or_default().extend(shown.numbers);
    }
    let held = log.quoted.iter().filter_map(|(series, all)| Some((*series, *all.last()?)));
    let held: BTreeMap<Series, u32> = held.collect();
    for (node, shown) in &nodes {
        for (series, n) in held.iter().filter(|(series, n)| shown.get(series) != Some(n)) {
            finding.violate(|| {
                format!("{node} shows {:?} of {series:?}, the log has {n}", shown.get(series))
            });
        }
    }
    finding.figures = format!("{} nodes, {} series", nodes.len(), held.len());
    if nodes.is_empty() || held.is_empty() {
        finding.violate(|| "there is nothing to compare".to_owned());
    }
    finding
}

/// Home sides of events by id, taken from the winner markets.
pub(super) fn homes(bodies: &HashMap<u64, Vec<u8>>) -> HashMap<String, String> {
    let mut homes = HashMap::new();
    for body in bodies.values() {
        let Ok(Value::Array(records)) = serde_json::from_slice(body) else { continue };
        for record in records.iter().filter(|it| text(it, "market") == Some("moneyline")) {
            let outcomes = record.get("outcomes").and_then(Value::as_array).into_iter().flatten();
            let names = outcomes.filter_map(|outcome| text(outcome, "name"));
            let home = names.into_iter().find(|name| is_home(name));
            if let (Some(event), Some(home)) = (text(record, "event_id"), home) {
                homes.insert(event.to_owned(), home.to_owned());
            }
        }
    }
    homes
}

fn is_home(name: &str) -> bool {
    market::BOOKMAKERS
        .first()
        .is_some_and(|any| market::series_of(name, any, "moneyline").is_some())
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str()
}

pub(super) fn shown(body: &[u8], homes: &HashMap<String, String>) -> Option<Shown> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let mut shown = Shown::default();
    if let Some(records) = body.as_array() {
        for record in records {
            let home = homes.get(text(record, "event_id")?)?;
            let series =
                market::series_of(home, text(record, "bookmaker")?, text(record, "market")?)?;
            shown.numbers.insert(series, number(record)?);
        }
        return Some(shown);
    }
    let at: Timestamp = text(&body, "generated_at")?.parse().ok()?;
    shown.generated_at_ms = Some(at.as_millisecond());
    for bout in body.get("bouts")?.as_array()? {
        for book in bout.get("books")?.as_array()? {
            let series = market::series_of(text(bout, "home")?, text(book, "book")?, "moneyline")?;
            shown.numbers.insert(series, number(book)?);
        }
    }
    Some(shown)
}

/// The first outcome's price contains the number; the other price is too low for one.
fn number(record: &Value) -> Option<u32> {
    let outcomes = record.get("outcomes")?.as_array()?;
    outcomes.iter().find_map(|outcome| market::number_in(outcome.get("price")?))
}

/// Reading all pages, whichever node each comes from, gives every record once, in the only order.
pub(super) fn whole_walks(walks: &[Walk]) -> Finding {
    let mut finding = Finding::new("paging across nodes is whole");
    let mut first: BTreeMap<&str, &Walk> = BTreeMap::new();
    for walk in walks {
        let mut ids = walk.ids.clone();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() < walk.ids.len() {
            finding.violate(|| format!("{} at {}: a record comes twice", walk.path, walk.begun_ms));
        }
        let kept = first.entry(&walk.path).or_insert(walk);
        if kept.ids != walk.ids {
            finding.violate(|| {
                let (own, other) = (walk.ids.len(), kept.ids.len());
                format!(
                    "{} at {}: {own} records, before {other}, or in another order",
                    walk.path, walk.begun_ms
                )
            });
        }
    }
    finding.figures = format!("{} walks", walks.len());
    finding
}

#[cfg(test)]
mod tests;
