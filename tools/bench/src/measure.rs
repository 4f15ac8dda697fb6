//! Measures all bars in sequence, on one service with a full market.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::bar::{Bar, Better, Unit};
use super::load::{self, Plan};
use super::loaded::{
    CONNECTIONS, EVENTS, EVENTS_MANY, LoadedService, NOT_MODIFIED, REFRESH_TIME, distinct_requests,
};
use super::machine::cpu_seconds;
use super::rounds::{self, Comparison, lower_quartile, median};
use super::service::{Answer, BATCH_LINES, Market, ODDS, Service, get, request};
use super::{Effort, instructions, v4};

/// The requests of eight clients.
pub(super) const MIX: [&str; 8] = [
    "limit=100",
    "market=moneyline",
    "market=spread&odds_format=decimal",
    "bookmaker=fanduel",
    "regions=uk,eu&limit=200",
    "regions=us&limit=50",
    "odds_format=fractional&limit=150",
    "market=totals&limit=20",
];

/// Parts that can be measured separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Part {
    Memory,
    Ready,
    V4,
    First,
    Mix,
    Gzip,
    Unchanged,
    Changes,
    Overload,
    Ingest,
    Start,
    Instructions,
    /// All of the following.
    Stream,
    StreamCost,
    StreamLive,
    StreamRestart,
    StreamSelections,
    StreamBeside,
    History,
    /// The overhead of history for current requests; also part of `History`.
    HistoryPresent,
}

impl Part {
    /// True if it is measured with its own service.
    pub(super) fn is_apart(self) -> bool {
        matches!(self, Self::History | Self::HistoryPresent) || self.is_stream()
    }

    /// True if it is measured with streams.
    pub(super) fn is_stream(self) -> bool {
        match self {
            Self::Stream
            | Self::StreamCost
            | Self::StreamLive
            | Self::StreamRestart
            | Self::StreamSelections
            | Self::StreamBeside => true,
            Self::Memory
            | Self::Ready
            | Self::V4
            | Self::First
            | Self::Mix
            | Self::Gzip
            | Self::Unchanged
            | Self::Changes
            | Self::Overload
            | Self::Ingest
            | Self::Start
            | Self::Instructions
            | Self::History
            | Self::HistoryPresent => false,
        }
    }
}

/// Measures the bars of these parts, or of all if none is named.
pub(super) fn bars(program: &Path, effort: Effort, parts: &[Part]) -> Result<Vec<Bar>> {
    let wanted = |part: Part| parts.is_empty() || parts.contains(&part);
    shell::say(&format!("filling a market of {} records", effort.records));
    let loaded = LoadedService::start(program, effort.records, effort)?;
    let mut bars = Vec::new();
    type Measure = fn(&LoadedService, &mut Vec<Bar>) -> Result<()>;
    let measures: [(Part, &str, Measure); 10] = [
        // Before other measurements increase the memory.
        (Part::Memory, "memory", memory),
        (Part::Ready, "ready answers", ready),
        (Part::First, "first answers", first),
        (Part::V4, "the prior interface", v4::measure),
        (Part::Mix, "a mix", mix),
        (Part::Gzip, "gzip", gzip),
        (Part::Unchanged, "unchanged answers", unchanged),
        (Part::Changes, "changes while it answers", with_changes),
        (Part::Overload, "three times what it can answer", overload),
        (Part::Ingest, "ingest", ingest),
    ];
    for (part, name, measure) in measures {
        if wanted(part) {
            shell::say(name);
            measure(&loaded, &mut bars)?;
        }
    }
    if wanted(Part::Start) {
        shell::say("starts");
        bars.push(start(loaded)?);
    }
    if wanted(Part::Instructions) {
        shell::say("instructions");
        bars.push(Bar {
            name: "user instructions, ready answer of 100 records",
            unit: Unit::Count,
            better: Better::Less,
            must: 18_000.0,
            goal: 9_000.0,
            measured: instructions::count(program)?.total,
            note: "callgrind".to_owned(),
        });
    }
    Ok(bars)
}

fn push(bars: &mut Vec<Bar>, name: &'static str, (must, goal): (f64, f64), compared: &Comparison) {
    let (ours, theirs) = (compared.service_cpu_us, compared.measure_cpu_us);
    shell::say(&format!("{name}: {:.2}", compared.cpu_ratio));
    bars.push(Bar {
        name,
        unit: Unit::Times,
        better: Better::More,
        must,
        goal,
        measured: compared.cpu_ratio,
        note: format!("{ours:.1} µs, nginx {theirs:.1} µs"),
    });
}

fn ready(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let compare = |query: &str| {
        let answer = loaded.answer(query, "")?;
        anyhow::Ok((loaded.compare(&[loaded.ask(query)], &[&answer], "")?, answer))
    };
    push(bars, "ready, 10 records", (1.0, 1.3), &compare("limit=10")?.0);
    let (saturated, hundred) = compare("limit=100")?;
    push(bars, "ready, 100 records", (0.85, 1.1), &saturated);
    bars.push(Bar {
        name: "the same, as wrk sees it",
        unit: Unit::Times,
        better: Better::More,
        must: 0.85,
        goal: 1.1,
        measured: loaded.wrk_ratio(&hundred)?,
        note: String::new(),
    });
    push(bars, "ready, 500 records", (0.75, 1.0), &compare("limit=500")?.0);
    bars.push(Bar {
        name: "p99 at saturation against nginx's",
        unit: Unit::Times,
        better: Better::Less,
        must: 1.5,
        goal: 1.0,
        measured: saturated.p99_ratio,
        note: "100 records".to_owned(),
    });
    Ok(())
}

fn first(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let hundred = loaded.answer("limit=100", "")?;
    let compare = |events| {
        loaded.compare(
            &distinct_requests(loaded.service.address, &loaded.auth(), events)?,
            &[&hundred],
            "",
        )
    };
    push(bars, "first of an epoch, 100 records", (0.75, 0.95), &compare(EVENTS)?);
    push(bars, "the same, of events all over the market", (0.75, 0.95), &compare(EVENTS_MANY)?);
    Ok(())
}

fn mix(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let mixed: Vec<Answer> =
        MIX.iter().map(|query| loaded.answer(query, "")).collect::<Result<_>>()?;
    let asked: Vec<Vec<u8>> = MIX.iter().map(|query| loaded.ask(query)).collect();
    let compared = loaded.compare(&asked, &mixed.iter().collect::<Vec<_>>(), "")?;
    push(bars, "mix of 8 selections", (0.75, 1.1), &compared);
    Ok(())
}

fn gzip(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let accept = "accept-encoding: gzip\r\n";
    let packed = loaded.answer("limit=100", accept)?;
    let asked = request(&format!("{ODDS}?limit=100"), &(loaded.auth() + accept));
    push(bars, "gzip, 100 records", (1.0, 1.3), &loaded.compare(&[asked], &[&packed], accept)?);
    Ok(())
}

fn unchanged(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let hundred = loaded.answer("limit=100", "")?;
    let tag = hundred.header("etag").context("no tag")?;
    let condition = format!("{}if-none-match: {tag}\r\n", loaded.auth());
    let asked = request(&format!("{ODDS}?limit=100"), &condition);
    let compared = loaded.compare(&[asked], &[&hundred], NOT_MODIFIED)?;
    let still = get(loaded.service.address, &format!("{ODDS}?limit=100"), &condition)?;
    ensure!(still.status == 304, "the market changed under the conditional requests");
    push(bars, "304 against nginx's 304", (0.95, 1.25), &compared);
    Ok(())
}

/// Pushes a second: feeds push changes immediately.
const PUSHES: usize = 50;

/// Pushes changes until `stop` is set.
fn keep_changing(market: &Market, changes: &[Vec<String>], stop: &AtomicBool) -> Result<()> {
    let mut next = Instant::now();
    for lines in changes {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        market.push(lines)?;
        next += Duration::from_secs(1) / u32::try_from(PUSHES)?;
        shell::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// One round at half the saturating rate, with concurrent changes.
pub(super) fn round_with_changes(
    loaded: &LoadedService,
    requests: &[Vec<u8>],
    rate: f64,
    per_second: usize,
    time: Duration,
) -> Result<rounds::Round> {
    let mut side = loaded.side(requests);
    side.plan.rate = Some(rate);
    side.plan.time = time;
    // Prepared in advance: they are sent from the generator's core, which has no time for it.
    let count = per_second / PUSHES;
    let seconds = side.plan.time.as_secs() + 1;
    let pushes = 1..=PUSHES * usize::try_from(seconds)?;
    let changes: Vec<_> = pushes.map(|n| loaded.market.moves(n * count, count, n)).collect();
    let changes = if count > 0 { &*changes } else { &[] };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let changing = scope.spawn(|| keep_changing(&loaded.market, changes, &stop));
        let round = rounds::round(side);
        stop.store(true, Ordering::Relaxed);
        changing.join().map_err(|_| anyhow::anyhow!("the pushing thread died"))??;
        round
    })
}

/// Half of the service's maximum rate.
pub(super) fn half_rate(loaded: &LoadedService, requests: &[Vec<u8>]) -> Result<f64> {
    Ok(rounds::round(loaded.side(requests))?.outcome.good_per_second() / 2.0)
}

/// Short rounds with and without changes per round of other bars.
const ROUNDS_WITH_CHANGES: usize = 5;
/// Above this, the half idle service was disturbed even in its best rounds.
const QUIET_P99_MAX_US: f64 = 5_000.0;

fn with_changes(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let requests = [loaded.ask("limit=100")];
    let rate = half_rate(loaded, &requests)?;
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    let time = Duration::from_secs_f64(loaded.effort.seconds / 4.0);
    let p99 = |changes| {
        anyhow::Ok(round_with_changes(loaded, &requests, rate, changes, time)?.outcome.p99_us)
    };
    for _ in 0..ROUNDS_WITH_CHANGES * loaded.effort.rounds {
        quiet.push(p99(0)?);
        busy.push(p99(10_000)?);
    }
    // A virtual machine is paused for tens of milliseconds now and then, regardless of its load (nginx at half its
    // rate has a p99 of 2 to 60 ms then). It is never faster than normal, so short undisturbed rounds are reliable.
    let (quiet, busy) = (lower_quartile(quiet), lower_quartile(busy));
    let disturbed = quiet > QUIET_P99_MAX_US;
    bars.push(Bar {
        name: "p99 at half the saturating rate with 10,000 changes/s, against none",
        unit: Unit::Times,
        better: Better::Less,
        must: 2.0,
        goal: 1.2,
        measured: if disturbed { f64::NAN } else { busy / quiet.max(1.0) },
        note: format!("{busy:.0} µs, without {quiet:.0} µs; one core for both"),
    });
    Ok(())
}

fn overload(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let mut requests: Vec<Vec<u8>> = MIX.iter().map(|query| loaded.ask(query)).collect();
    requests.extend(
        distinct_requests(loaded.service.address, &loaded.auth(), EVENTS)?.into_iter().take(1),
    );
    let side = loaded.side(&requests);
    let peak = rounds::round(side)?.outcome.good_per_second();
    let stop = AtomicBool::new(false);
    let (ratio, slowest) = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(loaded, &stop));
        let mut ratios = Vec::new();
        for _ in 0..loaded.effort.rounds {
            let mut plan = side.plan;
            plan.connections = 16 * CONNECTIONS;
            plan.rate = Some(3.0 * peak);
            let under = load::run(plan)?.good_per_second();
            let again = rounds::round(side)?.outcome.good_per_second();
            ratios.push(under / again);
        }
        stop.store(true, Ordering::Relaxed);
        let slowest =
            watching.join().map_err(|_| anyhow::anyhow!("the watching thread died"))??;
        anyhow::Ok((median(ratios), slowest))
    })?;
    bars.push(Bar {
        name: "good answers at three times the saturating load, against the peak",
        unit: Unit::Times,
        better: Better::More,
        must: 0.9,
        goal: 0.95,
        measured: ratio,
        note: format!("1,024 connections; `/readyz` took {} ms at the most", slowest.as_millis()),
    });
    Ok(())
}

/// Polls the operator's listener during the load, and returns the time of the slowest answer.
fn watch(loaded: &LoadedService, stop: &AtomicBool) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let answer = get(loaded.service.operator, "/readyz", "")?;
        ensure!(answer.status == 200, "/readyz says {}", answer.status);
        slowest = slowest.max(begun.elapsed());
        shell::sleep(Duration::from_millis(100));
    }
    Ok(slowest)
}

fn memory(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let held = shell::resident_bytes(loaded.service.pid())?;
    let records = super::float(u64::try_from(loaded.effort.records)?);
    bars.push(Bar {
        name: "memory for each odds record, all formats",
        unit: Unit::Bytes,
        better: Better::Less,
        must: 3_000.0,
        goal: 1_500.0,
        measured: super::float(held.saturating_sub(loaded.empty_bytes)) / records,
        note: "with two snapshots".to_owned(),
    });
    let requests = [loaded.ask("limit=100")];
    let connections = if loaded.effort.records < 200_000 { 2_000 } else { 10_000 };
    let plan = Plan { connections, ..loaded.side(&requests).plan };
    let with = load::while_idle(plan, || shell::resident_bytes(loaded.service.pid()))?;
    bars.push(Bar {
        name: "memory for each idle connection",
        unit: Unit::Bytes,
        better: Better::Less,
        must: 20_000.0,
        goal: 2_000.0,
        measured: super::float(with.saturating_sub(held))
            / super::float(u64::try_from(connections)?),
        note: format!(
            "{} open, one answer each",
            shell::thousands(super::float(u64::try_from(connections)?))
        ),
    });
    Ok(())
}

fn ingest(loaded: &LoadedService, bars: &mut Vec<Bar>) -> Result<()> {
    let batches = if loaded.effort.records < 200_000 { 5 } else { 20 };
    let mut took = Duration::ZERO;
    let before = cpu_seconds(loaded.service.pid())?;
    for batch in 0..batches {
        let lines = loaded.market.moves(batch * BATCH_LINES, BATCH_LINES, 1_000 + batch);
        took += loaded.market.push(&lines)?;
    }
    let cpu = cpu_seconds(loaded.service.pid())? - before;
    let lines = super::float(u64::try_from(batches * BATCH_LINES)?);
    let mut push = |name, must, goal, measured, note: &str| {
        let note = note.to_owned();
        let (unit, better) = (Unit::PerSecond, Better::More);
        bars.push(Bar { name, unit, better, must, goal, measured, note });
    };
    let note = "by processor time, sync and snapshots included";
    push("odds messages pushed, applied", 200_000.0, 400_000.0, lines / cpu, note);
    let durable = lines / took.as_secs_f64();
    push("the same, durable before the answer", 60_000.0, 150_000.0, durable, "one client");
    Ok(())
}

fn start(loaded: LoadedService) -> Result<Bar> {
    let LoadedService { service, setup, folder, .. } = loaded;
    // The last pushes are in the checkpoint that is written with the next snapshot.
    shell::sleep(REFRESH_TIME + Duration::from_secs(1));
    service.stop()?;
    let mut starts = Vec::new();
    for _ in 0..3 {
        let service = Service::start(&setup)?;
        starts.push(service.start_seconds);
        service.stop()?;
    }
    folder.close()?;
    Ok(Bar {
        name: "start to `/readyz`",
        unit: Unit::Seconds,
        better: Better::Less,
        must: 1.0,
        goal: 0.3,
        measured: median(starts),
        note: "checkpoint and the log after it".to_owned(),
    })
}
