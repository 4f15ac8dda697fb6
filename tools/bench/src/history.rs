//! The cost of history: bytes in the archive, the time of answers of the past, and the overhead for current requests
//! (H23, H24).

mod bucket;
mod folder;
mod made;
mod past;
pub(super) mod present;
mod week;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::bar::{Bar, Better, Unit};
use super::load::Plan;
use super::rounds::{self, Comparison, Side};
use super::service::Service;
use super::{Effort, float};
use past::Past;

/// The smaller of the two markets.
const RECORDS_FEW: usize = 10_000;

/// Measures the bars of history.
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
    present::bars(program, folder.path(), effort, &mut bars)?;
    Ok(bars)
}

/// Alternates requests to two services, or to one.
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
        connections: super::loaded::CONNECTIONS,
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
