//! What history costs: bytes in the archive, the time of answers of the past, and what the present pays for it (H23,
//! H24).

mod bucket;
mod made;
mod past;
mod week;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::bar::{Bar, Better, Unit};
use super::load::Plan;
use super::rounds::{self, Comparison, Side, median};
use super::service::{self, Market, ODDS, Service, request};
use super::{Effort, float, instructions};
use past::Past;

/// The smaller of the two markets.
const RECORDS_FEW: usize = 10_000;
/// What the code of cursors is called.
const CURSORS: &str = "api::position::";

/// Measures the lines of history.
pub(super) fn bars(program: &Path, effort: Effort) -> Result<Vec<Bar>> {
    let mut bars = Vec::new();
    let folder = tempfile::tempdir()?;
    week::storage(folder.path(), effort, &mut bars)?;
    let few = Past::fill(program, &folder.path().join("few"), RECORDS_FEW)?;
    let name = "history: as_of in a new process, 10,000 records";
    let cold = few.cold(&mut bars, name, (0.15, 0.15))?;
    few.others(&mut bars, &cold.at, effort)?;
    drop(few);
    let many = Past::fill(program, &folder.path().join("many"), effort.records)?;
    let name = "history: as_of in a new process, the large market";
    let cold = many.cold(&mut bars, name, (1.5, 0.5))?;
    many.cold_in_bucket(&mut bars, &cold)?;
    many.walk(&mut bars, &cold)?;
    drop(many);
    week::answers(program, folder.path(), effort, &mut bars)?;
    present(program, folder.path(), effort, &mut bars)?;
    bars.push(Bar {
        name: "history: instructions of cursors in a ready answer",
        unit: Unit::Count,
        better: Better::Less,
        must: 200.0,
        goal: 200.0,
        measured: instructions::count(program)?.of(CURSORS),
        note: "they are written once for a publication and a selection".to_owned(),
    });
    Ok(bars)
}

/// What the present costs with history, against the same without.
pub(super) fn present(
    program: &Path,
    folder: &Path,
    effort: Effort,
    bars: &mut Vec<Bar>,
) -> Result<()> {
    shell::say("history: the present with it and without");
    let start = |name: &str, on: &str| {
        let mut setup = service::setup(program, &folder.join(name), "10s")?;
        setup.env = vec![("LINESMAN_HISTORY__ENABLED", on.to_owned())];
        let service = Service::start(&setup)?;
        let key = service.make_keys(1)?.pop().context("no key")?;
        let market = Market::fill(&service, &key, RECORDS_FEW)?;
        let headers = format!("x-api-key: {key}\r\n");
        let requests = [request(&format!("{ODDS}?limit=100"), &headers)];
        Ok::<_, anyhow::Error>((service, market, requests))
    };
    let (with, without) = (start("with", "true")?, start("without", "false")?);
    shell::sleep(Duration::from_secs(11));
    // What differs is less than one round differs from the next.
    let more = Effort { rounds: 3 * effort.rounds, ..effort };
    let found = compared((&with.0, &with.2), (&without.0, &without.2), more)?;
    let name = "history: ready, 100 records, against the same without history";
    bars.push(times(name, (1.03, 1.03), 1.0 / found.cpu_ratio, found.note()));
    let mut ratios = Vec::new();
    for round in 1..=effort.rounds {
        let took = |(service, market, _): &(Service, Market, [Vec<u8>; 1])| {
            let before = super::machine::cpu_seconds(service.pid())?;
            market.push(&market.moves(0, RECORDS_FEW, round))?;
            Ok::<_, anyhow::Error>(super::machine::cpu_seconds(service.pid())? - before)
        };
        ratios.push(took(&with)? / took(&without)?.max(1e-6));
    }
    let name = "history: odds messages pushed, against the same without history";
    let note = "processor time, at the end of the push".to_owned();
    bars.push(times(name, (1.03, 1.03), median(ratios), note));
    Ok(())
}

/// Lets requests of two services, or of one, take turns.
fn compared(
    own: (&Service, &[Vec<u8>]),
    other: (&Service, &[Vec<u8>]),
    effort: Effort,
) -> Result<Comparison> {
    rounds::compare(side(own, effort), side(other, effort), effort.rounds)
}

fn side<'a>((service, requests): (&Service, &'a [Vec<u8>]), effort: Effort) -> Side<'a> {
    let plan = Plan {
        to: service.address,
        requests,
        connections: super::measure::CONNECTIONS,
        time: Duration::from_secs_f64(effort.seconds),
        rate: None,
        first: 0,
    };
    Side { plan, pid: service.pid() }
}

impl Comparison {
    fn note(&self) -> String {
        format!("{:.1} µs, {:.1} µs", self.service_cpu_us, self.measure_cpu_us)
    }
}

fn bar(
    name: &'static str,
    unit: Unit,
    (must, goal): (f64, f64),
    measured: f64,
    note: String,
) -> Bar {
    Bar { name, unit, better: Better::Less, must, goal, measured, note }
}

fn seconds(name: &'static str, lines: (f64, f64), measured: f64, note: String) -> Bar {
    bar(name, Unit::Seconds, lines, measured, note)
}

fn times(name: &'static str, lines: (f64, f64), measured: f64, note: String) -> Bar {
    bar(name, Unit::Times, lines, measured, note)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
