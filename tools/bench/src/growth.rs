//! Growth of cost: one quantity increases, all others stay.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Effort;
use super::load::{self, Plan};
use super::loaded::LoadedService;
use super::measure::{half_rate, round_with_changes};
use super::plot::Plot;
use super::rounds::{Side, median, round};
use super::service::{ODDS, request};

const UP: &str = "µs of processor time a request";

pub(super) fn plots(program: &Path, effort: Effort) -> Result<Vec<Plot>> {
    shell::say("how cost grows");
    let loaded = LoadedService::start(program, effort.records, effort)?;
    let mut plots = vec![
        by_answer(&loaded)?,
        by_market(program, &loaded)?,
        by_keys(&loaded)?,
        by_connections(&loaded)?,
    ];
    plots.push(by_changes(&loaded)?);
    Ok(plots)
}

/// The median of several rounds.
fn cost(loaded: &LoadedService, plan: Plan<'_>) -> Result<f64> {
    let side = Side { plan, pid: loaded.service.pid() };
    let mut costs = Vec::new();
    for _ in 0..3 {
        costs.push(round(side)?.cpu_us);
    }
    Ok(median(costs))
}

fn by_answer(loaded: &LoadedService) -> Result<Plot> {
    let mut points = Vec::new();
    for records in [10_u32, 25, 50, 100, 250, 500] {
        let requests = [loaded.ask(&format!("limit={records}"))];
        points.push((f64::from(records), cost(loaded, loaded.side(&requests).plan)?));
    }
    let (title, across) = ("Records in the answer", "records in a ready answer");
    Ok(Plot { file: "by-answer", title, across, up: UP, points })
}

fn by_market(program: &Path, loaded: &LoadedService) -> Result<Plot> {
    let mut points = Vec::new();
    for records in [2_000_usize, 20_000] {
        let small = LoadedService::start(program, records, loaded.effort)?;
        let requests = [small.ask("limit=100")];
        points.push((
            super::float(u64::try_from(records)?),
            cost(&small, small.side(&requests).plan)?,
        ));
    }
    let requests = [loaded.ask("limit=100")];
    let records = super::float(u64::try_from(loaded.effort.records)?);
    points.push((records, cost(loaded, loaded.side(&requests).plan)?));
    points.dedup_by_key(|(records, _)| records.to_bits());
    let (title, across) = ("Records in the market", "records in the market");
    Ok(Plot { file: "by-market", title, across, up: UP, points })
}

/// Each request on a connection has another key than the one before, so each key is hashed and looked up.
fn by_keys(loaded: &LoadedService) -> Result<Plot> {
    let mut points = Vec::new();
    let mut keys = vec![loaded.key.clone()];
    for count in [1_usize, 10, 100, 1_000, 10_000, 100_000] {
        if count > keys.len() {
            keys.extend(loaded.service.make_keys(count - keys.len())?);
        }
        let target = format!("{ODDS}?limit=100");
        let requests: Vec<Vec<u8>> =
            keys.iter().map(|key| request(&target, &format!("x-api-key: {key}\r\n"))).collect();
        let plan = loaded.side(&requests).plan;
        // A key's first request waits for its lease, so each key is used once before the measurement.
        load::while_idle(Plan { connections: 64, ..plan }, || Ok(()))?;
        let warm_up = Plan { time: Duration::from_secs_f64(4.0 * loaded.effort.seconds), ..plan };
        let warmed = load::run(warm_up)?;
        let plan = Plan { first: warmed.next, ..plan };
        points.push((super::float(u64::try_from(count)?), cost(loaded, plan)?));
    }
    let (title, across) = ("Keys", "keys that take turns");
    Ok(Plot { file: "by-keys", title, across, up: UP, points })
}

fn by_connections(loaded: &LoadedService) -> Result<Plot> {
    let requests = [loaded.ask("limit=100")];
    let mut points = Vec::new();
    for connections in [1_u32, 10, 100, 1_000, 10_000] {
        let plan = loaded.side(&requests).plan;
        let plan = Plan { connections: usize::try_from(connections)?, ..plan };
        points.push((f64::from(connections), cost(loaded, plan)?));
    }
    let (title, across) = ("Connections", "connections, each with a request under way");
    Ok(Plot { file: "by-connections", title, across, up: UP, points })
}

fn by_changes(loaded: &LoadedService) -> Result<Plot> {
    let requests = [loaded.ask("limit=100")];
    let rate = half_rate(loaded, &requests)?;
    let mut points = Vec::new();
    for changes in [0_u32, 1_000, 5_000, 10_000, 25_000, 50_000] {
        let mut costs = Vec::new();
        for _ in 0..3 {
            let per_second = usize::try_from(changes)?;
            let time = Duration::from_secs_f64(loaded.effort.seconds);
            costs.push(round_with_changes(loaded, &requests, rate, per_second, time)?.cpu_us);
        }
        points.push((f64::from(changes), median(costs)));
    }
    points.first().context("nothing was measured")?;
    let (title, across) = ("Changes", "changes a second coming in, their own cost included");
    Ok(Plot { file: "by-changes", title, across, up: UP, points })
}
