//! Every bar, one after the other, on one service with a full market.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::bar::{Bar, Better, Unit};
use super::load::{self, Plan};
use super::machine::cpu_seconds;
use super::nginx::Nginx;
use super::rounds::{self, Comparison, Side, lower_quartile, median};
use super::service::{self, Answer, BATCH_LINES, Market, ODDS, Service, Setup, get, request};
use super::wrk::{self, Target};
use super::{Effort, instructions, v4};

/// Connections that keep a core busy.
pub(super) const CONNECTIONS: usize = 64;
/// How often the market under test is published: often enough for first answers, seldom enough not to be measured.
pub(super) const REFRESH: &str = "10s";
pub(super) const REFRESH_TIME: Duration = Duration::from_secs(10);
/// The largest `limit` of odds.
pub(super) const ODDS_MAX: usize = 500;
/// What eight clients ask.
const MIX: [&str; 8] = [
    "limit=100",
    "market=moneyline",
    "market=spread&odds_format=decimal",
    "bookmaker=fanduel",
    "regions=uk,eu&limit=200",
    "regions=us&limit=50",
    "odds_format=fractional&limit=150",
    "market=totals&limit=20",
];

/// A service with a market, and a key to it.
#[derive(Debug)]
pub(super) struct LoadedService {
    pub(super) service: Service,
    pub(super) setup: Setup,
    pub(super) market: Market,
    pub(super) key: String,
    pub(super) effort: Effort,
    /// Memory in use before there was a market.
    empty_bytes: u64,
    folder: TempDir,
}

impl LoadedService {
    pub(super) fn start(program: &Path, records: usize, effort: Effort) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let setup = service::setup(program, folder.path(), REFRESH)?;
        let service = Service::start(&setup)?;
        let key = service.make_keys(1)?.pop().context("no key")?;
        let empty_bytes = shell::resident_bytes(service.pid())?;
        let market = Market::fill(&service, &key, records)?;
        shell::sleep(REFRESH_TIME + Duration::from_secs(1));
        Ok(Self { service, setup, market, key, effort, empty_bytes, folder })
    }

    pub(super) fn auth(&self) -> String {
        format!("x-api-key: {}\r\n", self.key)
    }

    pub(super) fn ask(&self, query: &str) -> Vec<u8> {
        request(&format!("{ODDS}?{query}"), &self.auth())
    }

    fn answer(&self, query: &str, headers: &str) -> Result<Answer> {
        let answer =
            get(self.service.address, &format!("{ODDS}?{query}"), &(self.auth() + headers))?;
        ensure!(answer.status == 200, "{query}: {} {}", answer.status, answer.head);
        Ok(answer)
    }

    pub(super) fn side<'a>(&self, requests: &'a [Vec<u8>]) -> Side<'a> {
        let plan = Plan {
            to: self.service.address,
            requests,
            connections: CONNECTIONS,
            time: Duration::from_secs_f64(self.effort.seconds),
            rate: None,
            first: 0,
        };
        Side { plan, pid: self.service.pid() }
    }

    /// What wrk says of a hundred records.
    fn wrk_ratio(&self, body: &Answer) -> Result<f64> {
        let folder = tempfile::tempdir_in(self.folder.path())?;
        let nginx = Nginx::start(folder.path(), &[body])?;
        let path = format!("{ODDS}?limit=100");
        let service = Target { at: self.service.address, path: &path, pid: self.service.pid() };
        let measure = Target { at: nginx.address, path: "/0", pid: nginx.pid() };
        wrk::cpu_ratio(folder.path(), &self.key, service, measure)
    }

    /// Compares requests with what nginx needs for bodies of the same bytes.
    fn compare(
        &self,
        requests: &[Vec<u8>],
        bodies: &[&Answer],
        headers: &str,
    ) -> Result<Comparison> {
        let folder = tempfile::tempdir_in(self.folder.path())?;
        let nginx = Nginx::start(folder.path(), bodies)?;
        let mut asked = Vec::new();
        for number in 0..bodies.len() {
            // Both read the same request headers.
            let headers = match headers {
                NOT_MODIFIED => {
                    let tag = get(nginx.address, &format!("/{number}"), "")?;
                    let tag = tag.header("etag").context("nginx sends no tag")?.to_owned();
                    format!("{}if-none-match: {tag}\r\n", self.auth())
                }
                headers => self.auth() + headers,
            };
            asked.push(request(&format!("/{number}"), &headers));
        }
        let ours = self.side(requests);
        let plan = Plan { to: nginx.address, requests: &asked, ..ours.plan };
        rounds::compare(ours, Side { plan, pid: nginx.pid() }, self.effort.rounds)
    }
}

/// nginx gets a tag of its own.
const NOT_MODIFIED: &str = "not modified";

/// What can be measured on its own.
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
    /// What the present costs with history, which is in `History`, too.
    HistoryPresent,
}

impl Part {
    /// Whether it is measured with a service of its own.
    pub(super) fn is_apart(self) -> bool {
        matches!(self, Self::History | Self::HistoryPresent) || self.is_stream()
    }

    /// Whether it is measured with streams.
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

/// Measures the bars of these parts, or of all where none is named.
pub(super) fn bars(program: &Path, effort: Effort, parts: &[Part]) -> Result<Vec<Bar>> {
    let wanted = |part: Part| parts.is_empty() || parts.contains(&part);
    shell::say(&format!("filling a market of {} records", effort.records));
    let loaded = LoadedService::start(program, effort.records, effort)?;
    let mut bars = Vec::new();
    type Measure = fn(&LoadedService, &mut Vec<Bar>) -> Result<()>;
    let measures: [(Part, &str, Measure); 10] = [
        // Before anything else has made it grow.
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
    let compare = |events| loaded.compare(&distinct_requests(loaded, events)?, &[&hundred], "");
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

/// More than can be asked in an epoch.
const DISTINCT_MAX: usize = 600_000;
/// Events that people ask for in any combination: as many as there were where the bar was set.
const EVENTS: usize = 80;
/// Far more than the processor's own memory holds.
const EVENTS_MANY: usize = 500;

/// Requests for about a hundred records each, of which no two are alike.
fn distinct_requests(loaded: &LoadedService, events: usize) -> Result<Vec<Vec<u8>>> {
    let path = format!("/v1/sports/tennis/events?limit={events}");
    let listed = get(loaded.service.address, &path, &loaded.auth())?;
    let listed: Vec<Value> = serde_json::from_slice(&listed.body)?;
    let id = |event: &Value| event.get("id").and_then(Value::as_str).map(str::to_owned);
    let ids: Vec<String> = listed.iter().filter_map(id).collect();
    let pairs = ids.iter().enumerate().flat_map(|(at, one)| {
        ids.iter().enumerate().skip(at + 1).map(move |(next, other)| (next, one, other))
    });
    let triples = pairs.flat_map(|(next, one, other)| {
        ids.iter().skip(next + 1).map(move |third| (one, other, third))
    });
    // Fewer events make fewer combinations, but a few fewer records are another answer, too.
    let asked = (93..=100).rev().flat_map(|limit| {
        // Spread out, as wishes are: the third changes with every request.
        triples.clone().map(move |(one, other, third)| {
            loaded.ask(&format!("event_ids={third},{other},{one}&limit={limit}"))
        })
    });
    Ok(asked.take(DISTINCT_MAX).collect())
}

/// Pushes a second: feeds send what has changed as soon as it has.
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

/// One round at half the rate that saturates, with changes coming in.
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
    // Written before: they are sent from the generator's core, which has no time for it.
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

/// Half of what the service can answer in a second.
pub(super) fn half_rate(loaded: &LoadedService, requests: &[Vec<u8>]) -> Result<f64> {
    Ok(rounds::round(loaded.side(requests))?.outcome.good_per_second() / 2.0)
}

/// Short rounds with and without changes, for each round of other bars.
const ROUNDS_WITH_CHANGES: usize = 5;
/// Beyond this, the half idle service was not left alone even in its best rounds.
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
    // A virtual machine is held still for tens of milliseconds now and then, whatever runs on it (nginx at half its
    // rate has a p99 of 2 to 60 ms then). It never is faster than it is: short rounds that were left alone tell.
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
    requests.extend(distinct_requests(loaded, EVENTS)?.into_iter().take(1));
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

/// Asks the operator's listener all the while, and says how long the slowest answer took.
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
    // What was pushed a moment ago is in the checkpoint that goes with the next snapshot.
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
