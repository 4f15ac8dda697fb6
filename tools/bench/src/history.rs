//! What history costs: bytes in the archive, the time of answers of the past, and what the present pays for it (H23,
//! H24).

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::bar::{Bar, Better, Unit};
use super::load::Plan;
use super::rounds::{self, Side, median};
use super::service::{self, Answer, BATCH_LINES, Market, ODDS, Service, Setup, get, request};
use super::{Effort, float};

const INTERVAL: &str = "1s";
const INTERVAL_TIME: Duration = Duration::from_secs(1);
/// The smaller of the two markets.
const RECORDS_FEW: usize = 10_000;
/// Every record of the smaller market changes this often, and is confirmed this often.
const ROUNDS: usize = 20;
/// Publications of a walk.
const STEPS: usize = 9;
/// Processes that begin with nothing.
const COLD_STARTS: usize = 3;
/// How long anything may take.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Measures the lines of history.
pub(super) fn bars(program: &Path, effort: Effort) -> Result<Vec<Bar>> {
    let mut bars = Vec::new();
    let folder = tempfile::tempdir()?;
    let few = Past::fill(program, &folder.path().join("few"), RECORDS_FEW)?;
    few.storage(&mut bars)?;
    let name = "history: as_of in a new process, 10,000 records";
    let at = few.cold(&mut bars, name, (0.15, 0.15))?;
    few.others(&mut bars, &at, effort)?;
    drop(few);
    let many = Past::fill(program, &folder.path().join("many"), effort.records)?;
    let name = "history: as_of in a new process, the large market";
    many.cold(&mut bars, name, (1.5, 0.5))?;
    many.walk(&mut bars)?;
    drop(many);
    present(program, folder.path(), effort, &mut bars)?;
    Ok(bars)
}

/// A service with a past.
struct Past {
    service: Service,
    setup: Setup,
    market: Market,
    key: String,
}

impl Past {
    fn fill(program: &Path, folder: &Path, records: usize) -> Result<Self> {
        shell::say(&format!("history: filling a market of {records} records"));
        let setup = service::setup(program, folder, INTERVAL)?;
        let service = Service::start(&setup)?;
        let key = service.make_keys(1)?.pop().context("no key")?;
        let market = Market::fill(&service, &key, records)?;
        let past = Self { service, setup, market, key };
        // Some more publications, of which each has changes.
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

    /// Bytes and rows of tables, all files put together.
    fn archived(&self) -> Result<Archived> {
        // What was pushed last is published first.
        shell::sleep(2 * INTERVAL_TIME);
        self.service.verb(&["history", "compact"])?;
        let list = self.setup.folder.join("data/archive/live/files.json");
        let list: Value = serde_json::from_slice(&fs::read(list)?)?;
        let files = list.get("files").and_then(Value::as_array).context("no files")?;
        let number = |file: &Value, name: &str| file.get(name).and_then(Value::as_u64);
        let of = |table: &str, name: &str| {
            let own = files.iter().filter(|file| file.get("table").is_some_and(|own| own == table));
            own.filter_map(|file| number(file, name)).sum()
        };
        let all = files.iter().filter_map(|file| number(file, "bytes")).sum();
        Ok(Archived { bytes: all, odds: of("odds", "rows"), reads: of("reads", "rows") })
    }

    /// What changes and confirmations take.
    fn storage(&self, bars: &mut Vec<Bar>) -> Result<()> {
        let begun = self.archived()?;
        let all = RECORDS_FEW;
        for round in 1..=ROUNDS {
            self.push(all, 100 * round)?;
        }
        let changed = self.archived()?;
        let records = (changed.odds - begun.odds) / 2;
        let each = float(changed.bytes - begun.bytes) / float(records);
        bars.push(Bar {
            name: "history: archive for each changed record with two outcomes",
            unit: Unit::Bytes,
            better: Better::Less,
            must: 25.0,
            goal: 25.0,
            measured: each,
            note: format!("{} changes, files put together, all tables", shell::thousands(records)),
        });
        for _ in 0..ROUNDS {
            // The same prices as before.
            self.push(all, 100 * ROUNDS)?;
        }
        let confirmed = self.archived()?;
        let reads = confirmed.reads - changed.reads;
        ensure!(reads > 0, "nothing was confirmed");
        bars.push(Bar {
            name: "history: archive for each confirmation",
            unit: Unit::Bytes,
            better: Better::Less,
            must: 2.0,
            goal: 2.0,
            measured: float(confirmed.bytes - changed.bytes) / float(reads),
            note: format!("{} of them", shell::thousands(reads)),
        });
        Ok(())
    }

    fn push(&self, all: usize, round: usize) -> Result<()> {
        for first in (0..all).step_by(BATCH_LINES) {
            let count = BATCH_LINES.min(all - first);
            self.market.push(&self.market.moves(first, count, round))?;
        }
        shell::sleep(INTERVAL_TIME);
        Ok(())
    }

    /// The time of an answer that nothing is ready for, and of which publication it is.
    fn cold(&self, bars: &mut Vec<Bar>, name: &'static str, lines: (f64, f64)) -> Result<String> {
        self.service.verb(&["history", "flush"])?;
        let reach: Value = serde_json::from_slice(&self.get("/v1/history")?.body)?;
        let to = reach.get("to").and_then(Value::as_str).context("no end of history")?.to_owned();
        // Back from the end, so that there are publications to walk to.
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
        let cold = median(cold);
        shell::say(&format!("{name}: {cold:.3} s"));
        let note = format!("median of {COLD_STARTS} processes, from the archive in a folder alone");
        bars.push(seconds(name, lines, cold, note));
        Ok(at)
    }

    /// A process of its own on a copy, which has nothing ready, with the log or without.
    fn other(&self, folder: &Path, log: Log) -> Result<Self> {
        copy(&self.setup.folder, folder)?;
        if log == Log::Gone {
            fs::remove_dir_all(folder.join("data/live"))?;
        }
        let setup = Setup { folder: folder.to_owned(), ..self.setup.clone() };
        let service = Service::start(&setup)?;
        Ok(Self { service, setup, market: self.market.clone(), key: self.key.clone() })
    }

    /// The next publication, again and again.
    fn walk(&self, bars: &mut Vec<Bar>) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let other = self.other(folder.path(), Log::Gone)?;
        let reach: Value = serde_json::from_slice(&other.get("/v1/history")?.body)?;
        let at = reach.get("from").and_then(Value::as_str).context("no begin of history")?;
        let mut at = at.to_owned();
        let mut took = Vec::new();
        for _ in 0..STEPS {
            let (answer, time) = other.timed(&format!("{ODDS}?limit=100&as_of={at}"))?;
            took.push(time);
            let Some(next) = answer.header("x-next-publication") else { break };
            at = next.to_owned();
        }
        // The first one is no next one.
        took.remove(0);
        let name = "history: next publication of a walk, the large market";
        bars.push(seconds(name, (0.15, 0.15), median(took), String::new()));
        Ok(())
    }

    /// What is asked again, and price paths.
    fn others(&self, bars: &mut Vec<Bar>, at: &str, effort: Effort) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let other = self.other(folder.path(), Log::Whole)?;
        other.get(&format!("{ODDS}?limit=100&as_of={at}"))?;
        let headers = format!("x-api-key: {}\r\n", other.key);
        let side = |requests| {
            let plan = Plan {
                to: other.service.address,
                requests,
                connections: super::measure::CONNECTIONS,
                time: Duration::from_secs_f64(effort.seconds),
                rate: None,
                first: 0,
            };
            Side { plan, pid: other.service.pid() }
        };
        let past = [request(&format!("{ODDS}?limit=100&as_of={at}"), &headers)];
        let present = [request(&format!("{ODDS}?limit=100"), &headers)];
        let compared = rounds::compare(side(&past), side(&present), effort.rounds)?;
        bars.push(Bar {
            name: "history: the same publication again, against a ready answer of the present",
            unit: Unit::Times,
            better: Better::Less,
            must: 2.0,
            goal: 1.2,
            measured: 1.0 / compared.cpu_ratio,
            note: format!("{:.1} µs, {:.1} µs", compared.service_cpu_us, compared.measure_cpu_us),
        });
        let listed = other.get("/v1/sports/tennis/events?limit=1")?;
        let listed: Vec<Value> = serde_json::from_slice(&listed.body)?;
        let id = listed.first().and_then(|event| event.get("id")?.as_str()).context("no event")?;
        let path = format!("/v1/sports/tennis/events/{id}/odds/history?bookmaker=fanduel");
        let (answer, took) = other.timed(&path)?;
        let paths: Vec<Value> = serde_json::from_slice(&answer.body)?;
        let points = |path: &Value| path.get("points").and_then(Value::as_array).map(Vec::len);
        let points: usize = paths.iter().filter_map(points).sum();
        let note = format!("{} paths, {points} points, the first question", paths.len());
        bars.push(seconds("history: price paths of an event", (0.1, 0.1), took, note));
        Ok(())
    }
}

/// What a process on a copy has beside the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Whole,
    Gone,
}

/// What the archive holds.
struct Archived {
    bytes: u64,
    odds: u64,
    reads: u64,
}

/// What the present costs with history, against the same without.
fn present(program: &Path, folder: &Path, effort: Effort, bars: &mut Vec<Bar>) -> Result<()> {
    shell::say("history: the present with it and without");
    let mut started = Vec::new();
    for (name, on) in [("with", "true"), ("without", "false")] {
        let mut setup = service::setup(program, &folder.join(name), "10s")?;
        setup.env = vec![("LINESMAN_HISTORY__ENABLED", on.to_owned())];
        let service = Service::start(&setup)?;
        let key = service.make_keys(1)?.pop().context("no key")?;
        let market = Market::fill(&service, &key, RECORDS_FEW)?;
        started.push((service, key, market));
    }
    shell::sleep(Duration::from_secs(11));
    let requests: Vec<[Vec<u8>; 1]> = started
        .iter()
        .map(|(_, key, _)| {
            [request(&format!("{ODDS}?limit=100"), &format!("x-api-key: {key}\r\n"))]
        })
        .collect();
    let sides: Vec<Side<'_>> = started
        .iter()
        .zip(&requests)
        .map(|((service, _, _), requests)| Side {
            plan: Plan {
                to: service.address,
                requests,
                connections: super::measure::CONNECTIONS,
                time: Duration::from_secs_f64(effort.seconds),
                rate: None,
                first: 0,
            },
            pid: service.pid(),
        })
        .collect();
    let [with, without] = &sides[..] else { return Ok(()) };
    let compared = rounds::compare(*with, *without, effort.rounds)?;
    bars.push(Bar {
        name: "history: ready, 100 records, against the same without history",
        unit: Unit::Times,
        better: Better::Less,
        must: 1.03,
        goal: 1.03,
        measured: 1.0 / compared.cpu_ratio,
        note: format!("{:.1} µs, {:.1} µs", compared.service_cpu_us, compared.measure_cpu_us),
    });
    let mut ratios = Vec::new();
    for round in 1..=effort.rounds {
        let mut took = Vec::new();
        for (service, _, market) in &started {
            let before = super::machine::cpu_seconds(service.pid())?;
            market.push(&market.moves(0, RECORDS_FEW, round))?;
            took.push(super::machine::cpu_seconds(service.pid())? - before);
        }
        if let [with, without] = took[..] {
            ratios.push(with / without.max(1e-6));
        }
    }
    bars.push(Bar {
        name: "history: odds messages pushed, against the same without history",
        unit: Unit::Times,
        better: Better::Less,
        must: 1.03,
        goal: 1.03,
        measured: median(ratios),
        note: "processor time, at the end of the push".to_owned(),
    });
    Ok(())
}

fn seconds(name: &'static str, (must, goal): (f64, f64), measured: f64, note: String) -> Bar {
    Bar { name, unit: Unit::Seconds, better: Better::Less, must, goal, measured, note }
}

/// Copies what a service holds.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let begun = Instant::now();
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    ensure!(begun.elapsed() < WAIT_MAX, "the folder is too large to be copied");
    Ok(())
}
