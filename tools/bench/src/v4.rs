//! `/v4` against `/v1`: the cost of an answer with the same number of bytes.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::bar::{Bar, Better, Unit};
use super::loaded::{LoadedService, ODDS_MAX};
use super::rounds;
use super::service::{ODDS, get, request};

const V4_ODDS: &str = "/v4/sports/tennis/odds?regions=us&markets=h2h,spreads,totals";
/// Number of events that are combined in threes.
const EVENTS: usize = 80;

/// Measures ready and first answers.
pub(super) fn measure(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let ids = event_ids(loaded)?;
    let [one, other, third, ..] = &*ids else { anyhow::bail!("the market has no events") };
    let path = format!("{V4_ODDS}&eventIds={one},{other},{third}");
    let bytes = length(loaded, &path)?;
    let limit = same_length(loaded, bytes)?;
    let ready = [request(&path, &loaded.auth())];
    let of_v1 = [loaded.ask(&format!("limit={limit}"))];
    push(loaded, bars, ("`/v4` odds against `/v1`, ready", 1.1), (&ready, &of_v1), bytes)?;
    let (first, of_v1) = (distinct(loaded, &ids, &v4), distinct(loaded, &ids, &v1(limit)));
    push(
        loaded,
        bars,
        ("`/v4` odds against `/v1`, first of an epoch", 1.5),
        (&first, &of_v1),
        bytes,
    )
}

type Ask = dyn Fn(&str) -> String;

fn v4(ids: &str) -> String {
    format!("{V4_ODDS}&eventIds={ids}")
}

fn v1(limit: usize) -> impl Fn(&str) -> String {
    move |ids| format!("{ODDS}?regions=us&event_ids={ids}&limit={limit}")
}

fn push(
    loaded: &LoadedService,
    bars: &mut Vec<Bar>,
    (name, must): (&'static str, f64),
    (ours, of_v1): (&[Vec<u8>], &[Vec<u8>]),
    bytes: usize,
) -> Result<()> {
    let compared = rounds::compare(loaded.side(ours), loaded.side(of_v1), loaded.effort.rounds)?;
    let measured = 1.0 / compared.cpu_ratio;
    shell::say(&format!("{name}: {measured:.2}"));
    let (cpu, cpu_v1) = (compared.service_cpu_us, compared.measure_cpu_us);
    bars.push(Bar {
        name,
        unit: Unit::Times,
        better: Better::Less,
        must,
        goal: 1.0,
        measured,
        note: format!("{cpu:.1} µs, `/v1` {cpu_v1:.1} µs, of {bytes} bytes"),
    });
    Ok(())
}

fn event_ids(loaded: &LoadedService) -> Result<Vec<String>> {
    let path = format!("/v1/sports/tennis/events?limit={EVENTS}");
    let listed = get(loaded.service.address, &path, &loaded.auth())?;
    let listed: Vec<Value> = serde_json::from_slice(&listed.body)?;
    let id = |event: &Value| event.get("id").and_then(Value::as_str).map(str::to_owned);
    Ok(listed.iter().filter_map(id).collect())
}

fn length(loaded: &LoadedService, path: &str) -> Result<usize> {
    let answer = get(loaded.service.address, path, &loaded.auth())?;
    anyhow::ensure!(answer.status == 200, "{path}: {} {}", answer.status, answer.head);
    Ok(answer.body.len())
}

/// The `limit` for which `/v1` answers with about as many bytes.
fn same_length(loaded: &LoadedService, bytes: usize) -> Result<usize> {
    let mut lengths = Vec::new();
    for limit in 1..=ODDS_MAX {
        lengths.push((length(loaded, &format!("{ODDS}?limit={limit}"))?.abs_diff(bytes), limit));
    }
    lengths.into_iter().min().map(|(_, limit)| limit).context("no limit")
}

/// Distinct requests of three events each.
fn distinct(loaded: &LoadedService, ids: &[String], ask: &Ask) -> Vec<Vec<u8>> {
    let mut asked = Vec::new();
    for (at, one) in ids.iter().enumerate() {
        for (next, other) in ids.iter().enumerate().skip(at + 1) {
            for third in ids.iter().skip(next + 1) {
                let path = ask(&format!("{third},{other},{one}"));
                asked.push(request(&path, &loaded.auth()));
            }
        }
    }
    asked
}
