//! The overhead of history for current requests: their bars with history, relative to those without (H24).
//!
//! Requests are measured in instructions, which are the same in every run. Everything else is measured in processor
//! time, in alternating rounds.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{RECORDS_FEW, compared, times};
use crate::bar::{Bar, Better, Unit};
use crate::instructions::{Callgrind, Counts};
use crate::loaded::{EVENTS, REFRESH, REFRESH_TIME, distinct_requests};
use crate::machine::cpu_seconds;
use crate::measure::MIX;
use crate::rounds::median;
use crate::service::{self, Market, ODDS, Service, Setup, get, request};
use crate::{Effort, float};

/// Path prefix of the code for cursors.
const CURSORS: &str = "api::position::";
/// Maximum ratio of any bar.
const LIMITS: (f64, f64) = (1.03, 1.03);

/// A service with history or without.
struct Side {
    service: Service,
    setup: Setup,
    market: Market,
    requests: [Vec<u8>; 1],
    /// Memory per record, in bytes.
    record_bytes: f64,
}

/// Measures the bars of current requests with and without history.
pub(crate) fn bars(
    program: &Path,
    folder: &Path,
    effort: Effort,
    bars: &mut Vec<Bar>,
) -> Result<()> {
    shell::say("history: the present with it and without");
    let setup = |name: &str, interval, on: bool| {
        let mut setup = service::setup(program, &folder.join(name), interval)?;
        setup.env = vec![("LINESMAN_HISTORY__ENABLED", on.to_string())];
        anyhow::Ok(setup)
    };
    counted(setup("counted-with", "1h", true)?, setup("counted-without", "1h", false)?, bars)?;
    let with = Side::start(setup("with", REFRESH, true)?, effort)?;
    let without = Side::start(setup("without", REFRESH, false)?, effort)?;
    shell::sleep(REFRESH_TIME + Duration::from_secs(1));
    let note = format!("{:.0} B, {:.0} B", with.record_bytes, without.record_bytes);
    let ratio = with.record_bytes / without.record_bytes;
    bars.push(times("history: memory for each odds record, against none", LIMITS, ratio, note));
    // The difference is smaller than that between two rounds.
    let more = Effort { rounds: 3 * effort.rounds, ..effort };
    let found =
        compared((&with.service, &with.requests), (&without.service, &without.requests), more)?;
    let name = "history: ready, 100 records, against the same without history";
    bars.push(times(name, LIMITS, 1.0 / found.cpu_ratio, found.note()));
    let mut ratios = Vec::new();
    for round in 1..=effort.rounds {
        ratios.push(with.push(round)? / without.push(round)?.max(1e-6));
    }
    let name = "history: odds messages pushed, against the same without history";
    let note = "processor time, at the end of the push".to_owned();
    bars.push(times(name, LIMITS, median(ratios), note));
    starts(with, without, effort, bars)
}

/// Instructions of requests.
fn counted(with: Setup, without: Setup, bars: &mut Vec<Bar>) -> Result<()> {
    let (with, without) = (requests_counted(with)?, requests_counted(without)?);
    let names = [
        "history: instructions of a ready answer of 100 records, against the same without",
        "history: the same, first of an epoch",
        "history: the same, mix of 8 selections",
        "history: the same, gzip",
        "history: the same, 304",
    ];
    for (name, (with, without)) in names.into_iter().zip(with.iter().zip(&without)) {
        let note = format!("{:.0}, {:.0}", with.total, without.total);
        shell::say(&format!("{name}: {note}"));
        bars.push(times(name, LIMITS, with.total / without.total, note));
    }
    let ready = with.first().context("nothing was counted")?;
    bars.push(Bar {
        name: "history: instructions of cursors in a ready answer",
        unit: Unit::Count,
        better: Better::Less,
        must: 200.0,
        goal: 200.0,
        measured: ready.of(CURSORS),
        note: "they are written once for a publication and a selection".to_owned(),
    });
    Ok(())
}

/// A ready answer, first answers, a mix, a compressed one and an unchanged one.
fn requests_counted(setup: Setup) -> Result<[Counts; 5]> {
    let (callgrind, _, key) = Callgrind::with_market(setup, RECORDS_FEW)?;
    let (at, auth) = (callgrind.service.address, format!("x-api-key: {key}\r\n"));
    let ask = |query: &str, headers: &str| {
        request(&format!("{ODDS}?{query}"), &format!("{auth}{headers}"))
    };
    let hundred = get(at, &format!("{ODDS}?limit=100"), &auth)?;
    let tag = hundred.header("etag").context("no tag")?.to_owned();
    let count = |requests: &[Vec<u8>]| callgrind.count_requests(requests);
    Ok([
        count(&[ask("limit=100", "")])?,
        count(&distinct_requests(at, &auth, EVENTS)?)?,
        count(&MIX.map(|query| ask(query, "")))?,
        count(&[ask("limit=100", "accept-encoding: gzip\r\n")])?,
        count(&[ask("limit=100", &format!("if-none-match: {tag}\r\n"))])?,
    ])
}

impl Side {
    fn start(setup: Setup, effort: Effort) -> Result<Self> {
        let service = Service::start(&setup)?;
        let key = service.make_keys(1)?.pop().context("no key")?;
        let empty = shell::resident_bytes(service.pid())?;
        let market = Market::fill(&service, &key, effort.records)?;
        // With two snapshots in memory.
        shell::sleep(REFRESH_TIME + Duration::from_secs(1));
        let held = shell::resident_bytes(service.pid())?.saturating_sub(empty);
        let record_bytes = float(held) / float(u64::try_from(effort.records)?);
        let headers = format!("x-api-key: {key}\r\n");
        let requests = [request(&format!("{ODDS}?limit=100"), &headers)];
        Ok(Self { service, setup, market, requests, record_bytes })
    }

    /// Processor time of pushing changes.
    fn push(&self, round: usize) -> Result<f64> {
        let before = cpu_seconds(self.service.pid())?;
        self.market.push(&self.market.moves(0, RECORDS_FEW, round))?;
        Ok(cpu_seconds(self.service.pid())? - before)
    }
}

/// Processor time from start to `/readyz`.
fn starts(with: Side, without: Side, effort: Effort, bars: &mut Vec<Bar>) -> Result<()> {
    // The last pushes are in the checkpoint that is written with the next snapshot.
    shell::sleep(REFRESH_TIME + Duration::from_secs(1));
    let setups = [with.setup, without.setup];
    for service in [with.service, without.service] {
        service.stop()?;
    }
    let mut ratios = Vec::new();
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let mut took = [0.0; 2];
        for (setup, took) in setups.iter().zip(&mut took) {
            let service = Service::start(setup)?;
            *took = cpu_seconds(service.pid())?;
            service.stop()?;
        }
        let [mine, other] = took;
        ratios.push(mine / other.max(1e-6));
        own.push(mine);
        others.push(other);
    }
    let name = "history: start to `/readyz`, against the same without history";
    let note = format!("processor time, {:.2} s, {:.2} s", median(own), median(others));
    bars.push(times(name, LIMITS, median(ratios), note));
    Ok(())
}
