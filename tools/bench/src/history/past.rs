//! A service that has recorded a past, and others that only have its archive.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::bucket::Bucket;
use super::folder::copy;
use super::{RECORDS_FEW, compared, seconds, times};
use crate::Effort;
use crate::bar::Bar;
use crate::rounds::median;
use crate::service::{self, Answer, Market, ODDS, Service, Setup, get, request};

const INTERVAL: &str = "1s";
const INTERVAL_TIME: Duration = Duration::from_secs(1);
/// Number of times every record of the smaller market changes.
const ROUNDS: usize = 10;
/// Number of publications in a walk.
const STEPS: usize = 9;
/// Number of price paths requested after the first one.
const PATHS: usize = 5;
/// Number of processes started without caches.
const COLD_STARTS: usize = 3;

/// A service with a recorded past.
pub(super) struct Past {
    service: Service,
    setup: Setup,
    market: Market,
    key: String,
}

/// An answer that was not cached.
pub(super) struct Cold {
    /// Time of its publication.
    pub(super) at: String,
    seconds: f64,
}

impl Past {
    pub(super) fn fill(program: &Path, folder: &Path, records: usize) -> Result<Self> {
        shell::say(&format!("history: filling a market of {records} records"));
        let setup = service::setup(program, folder, INTERVAL)?;
        let service = Service::start(&setup)?;
        let key = service.make_keys(1)?.pop().context("no key")?;
        let market = Market::fill(&service, &key, records)?;
        let past = Self { service, setup, market, key };
        // The smaller market has a longer past.
        for round in 1..=if records > RECORDS_FEW { 0 } else { ROUNDS } {
            past.market.push(&past.market.moves(0, records, 100 * round))?;
            shell::sleep(INTERVAL_TIME);
        }
        // Further publications, each with changes.
        for round in 1..=2 * STEPS {
            past.market.push(&past.market.moves(0, 1_000, round))?;
            shell::sleep(INTERVAL_TIME);
        }
        Ok(past)
    }

    fn get(&self, path: &str) -> Result<Answer> {
        let answer = get(self.service.address, path, &format!("x-api-key: {}\r\n", self.key))?;
        ensure!(answer.status == 200, "{path}: {} {}", answer.status, answer.head);
        Ok(answer)
    }

    fn timed(&self, path: &str) -> Result<(Answer, f64)> {
        let begun = Instant::now();
        let answer = self.get(path)?;
        Ok((answer, begun.elapsed().as_secs_f64()))
    }

    /// The time of an uncached answer.
    pub(super) fn cold(
        &self,
        bars: &mut Vec<Bar>,
        name: &'static str,
        lines: (f64, f64),
    ) -> Result<Cold> {
        self.service.verb(&["history", "flush"])?;
        let reach: Value = serde_json::from_slice(&self.get("/v1/history")?.body)?;
        let to = reach.get("to").and_then(Value::as_str).context("no end of history")?.to_owned();
        // Back from the end, so that publications to walk to remain.
        let mut at = to;
        for _ in 0..=STEPS {
            let answer = self.get(&format!("{ODDS}?limit=1&as_of={at}"))?;
            at = answer.header("x-previous-publication").context("no history")?.to_owned();
        }
        let mut cold = Vec::new();
        for _ in 0..COLD_STARTS {
            let folder = tempfile::tempdir()?;
            let other = self.other(folder.path(), Log::Gone)?;
            cold.push(other.timed(&format!("{ODDS}?limit=100&as_of={at}"))?.1);
        }
        let cold = Cold { at, seconds: median(cold) };
        shell::say(&format!("{name}: {:.3} s", cold.seconds));
        let note = format!("median of {COLD_STARTS} processes, from the archive in a folder alone");
        bars.push(seconds(name, lines, cold.seconds, note));
        Ok(cold)
    }

    /// The same from a bucket, minus the time from a folder.
    pub(super) fn cold_in_bucket(&self, bars: &mut Vec<Bar>, folder: &Cold) -> Result<()> {
        let bucket = Bucket::with(&self.setup.folder.join("data/archive"))?;
        let (mut cold, mut requests) = (Vec::new(), 0);
        for _ in 0..COLD_STARTS {
            let place = tempfile::tempdir()?;
            let other = self.other_with(place.path(), Log::Gone, bucket.settings())?;
            let before = bucket.requests();
            cold.push(other.timed(&format!("{ODDS}?limit=100&as_of={}", folder.at))?.1);
            requests = bucket.requests() - before;
        }
        let (name, cold) = ("history: a bucket with 20 ms adds to that", median(cold));
        let note =
            format!("{cold:.2} s with {requests} requests, {:.2} s in a folder", folder.seconds);
        shell::say(&format!("{name}: {note}"));
        bars.push(seconds(name, (0.4, 0.4), cold - folder.seconds, note));
        Ok(())
    }

    /// A new process on a copy, without caches, with or without the log.
    fn other(&self, folder: &Path, log: Log) -> Result<Self> {
        self.other_with(folder, log, Vec::new())
    }

    fn other_with(
        &self,
        folder: &Path,
        log: Log,
        env: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        copy(&self.setup.folder, folder)?;
        if log == Log::Gone {
            fs::remove_dir_all(folder.join("data/live"))?;
        }
        let setup = Setup { folder: folder.to_owned(), env, ..self.setup.clone() };
        let service = Service::start(&setup)?;
        Ok(Self { service, setup, market: self.market.clone(), key: self.key.clone() })
    }

    /// Successive publications, starting from one that has the whole market.
    pub(super) fn walk(&self, bars: &mut Vec<Bar>, begin: &Cold) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let other = self.other(folder.path(), Log::Gone)?;
        let mut at = begin.at.clone();
        let mut took = Vec::new();
        for _ in 0..STEPS {
            let (answer, time) = other.timed(&format!("{ODDS}?limit=100&as_of={at}"))?;
            took.push(time);
            let Some(next) = answer.header("x-next-publication") else { break };
            at = next.to_owned();
        }
        // The first answer is not a step of the walk.
        took.remove(0);
        let slowest = took.iter().copied().fold(0.0, f64::max);
        let note = format!("1,000 changes each, the slowest of {} {slowest:.2} s", took.len());
        let name = "history: next publication of a walk, the large market";
        shell::say(&format!("{name}: {took:.3?}"));
        bars.push(seconds(name, (0.15, 0.15), median(took), note));
        Ok(())
    }

    /// Repeated requests, and price paths.
    pub(super) fn others(&self, bars: &mut Vec<Bar>, at: &str, effort: Effort) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let other = self.other(folder.path(), Log::Whole)?;
        let listed = other.get(&format!("/v1/sports/tennis/events?limit={}", PATHS + 1))?;
        let listed: Vec<Value> = serde_json::from_slice(&listed.body)?;
        let mut took = Vec::new();
        let mut points = String::new();
        for id in listed.iter().filter_map(|event| event.get("id")?.as_str()) {
            let path = format!("/v1/sports/tennis/events/{id}/odds/history?bookmaker=fanduel");
            let (answer, time) = other.timed(&path)?;
            took.push(time);
            points = points_of(&answer)?;
        }
        ensure!(took.len() == PATHS + 1, "there are too few events");
        let first = took.remove(0);
        let note = format!("{points}; the first question {first:.2} s");
        bars.push(seconds("history: price paths of an event", (0.1, 0.1), median(took), note));
        other.get(&format!("{ODDS}?limit=100&as_of={at}"))?;
        let headers = format!("x-api-key: {}\r\n", other.key);
        let past = [request(&format!("{ODDS}?limit=100&as_of={at}"), &headers)];
        let present = [request(&format!("{ODDS}?limit=100"), &headers)];
        let name = "history: the same publication again, against a ready answer of the present";
        let found = compared((&other.service, &past), (&other.service, &present), effort)?;
        bars.push(times(name, (2.0, 1.2), 1.0 / found.cpu_ratio, found.note()));
        Ok(())
    }
}

/// Numbers of paths and points in an answer.
pub(super) fn points_of(answer: &Answer) -> Result<String> {
    let paths: Vec<Value> = serde_json::from_slice(&answer.body)?;
    let points = |path: &Value| path.get("points").and_then(Value::as_array).map(Vec::len);
    let points: usize = paths.iter().filter_map(points).sum();
    Ok(format!("{} paths, {points} points", paths.len()))
}

/// State of the log in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Whole,
    Gone,
}
