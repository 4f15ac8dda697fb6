//! What a delivery to a subscriber of `/v1/stream` costs, beside nchan, which keeps messages for clients that come
//! back, too. Both get the same number of bytes at the same pace: one change, or ten, in every publication.

mod beside;
mod live;
mod restart;
mod selections;
mod subscribers;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use self::subscribers::{Subscribers, Transport, WAIT_MAX, now_ms};
use super::Effort;
use super::bar::{Bar, Better, Unit};
use super::machine::cpu_seconds;
use super::measure::{LoadedService, Part};
use super::nchan::Nchan;
use super::rounds::median;
use super::service::{self, Market, Service, get};

/// Whose deliveries are counted.
const SUBSCRIBERS: usize = 5_000;
/// Whose last delivery is timed.
const SUBSCRIBERS_MANY: usize = 10_000;
const INTERVAL: &str = "1s";
const INTERVAL_MS: u128 = 1_000;
/// Publications in a round.
const PUBLICATIONS: usize = 10;
const RECORDS: usize = 3_000;

/// Measures the lines of streams.
pub(super) fn bars(program: &Path, effort: Effort, parts: &[Part]) -> Result<Vec<Bar>> {
    let wanted =
        |part| parts.is_empty() || [Part::Stream, part].iter().any(|one| parts.contains(one));
    let folder = tempfile::tempdir()?;
    let mut bars = Vec::new();
    if [Part::StreamCost, Part::StreamLive, Part::StreamRestart].into_iter().any(wanted) {
        let setup = service::setup(program, &folder.path().join("service"), INTERVAL)?;
        let service = Service::start(&setup)?;
        let key = service.make_stream_key(2 * SUBSCRIBERS_MANY)?;
        let market = Market::fill(&service, &key, RECORDS)?;
        let ours = Ours { path: selection(service.address, &key)?, service, market, key };
        if wanted(Part::StreamCost) {
            let nchan = Nchan::start(&folder.path().join("nchan"))?;
            bars.extend(memory_bars(&ours, &nchan)?);
            bars.extend(cost_bars(&ours, &nchan, effort)?);
        }
        if wanted(Part::StreamLive) {
            bars.push(ours.live_bar(effort)?);
        }
        if wanted(Part::StreamRestart) {
            let Ours { service, path, key, .. } = ours;
            let measured = restart::resume(service, &setup, (&path, &key))?;
            let name = "stream: 10,000 clients reconnect after a restart, all resumed";
            let (unit, note) = (Unit::Seconds, "from the first to connect".to_owned());
            bars.push(bar(name, unit, Better::Less, (15.0, 5.0), measured, note));
        }
    }
    if wanted(Part::StreamSelections) {
        let place = folder.path().join("selections");
        let setup = service::setup(program, &place, selections::INTERVAL)?;
        let measured = selections::last_delivery(&setup, effort.rounds.div_ceil(3))?;
        let name = "stream: 10,000 different event_ids, 2,000 changed records: last delivery";
        bars.push(bar(name, Unit::Seconds, Better::Less, (1.5, 0.5), measured, String::new()));
    }
    if wanted(Part::StreamBeside) {
        bars.extend(beside_bars(program, effort)?);
    }
    Ok(bars)
}

fn beside_bars(program: &Path, effort: Effort) -> Result<[Bar; 2]> {
    let loaded = LoadedService::start(program, effort.records, effort)?;
    let key = loaded.service.make_stream_key(2 * SUBSCRIBERS)?;
    let path = selection(loaded.service.address, &key)?;
    let measured = beside::measure(&loaded, &path, &key)?;
    let bars = [
        ("ready answers with 5,000 streams, against none", measured.requests),
        ("odds messages pushed with 5,000 streams, against none", measured.pushes),
    ];
    let limits = (0.9, 0.97);
    Ok(bars.map(|(name, measured)| {
        bar(name, Unit::Times, Better::More, limits, measured, "a second".to_owned())
    }))
}

fn memory_bars(ours: &Ours, nchan: &Nchan) -> Result<[Bar; 2]> {
    // Before anything else has made them grow.
    let (mine, theirs) = (ours.memory()?, nchan_memory(nchan)?);
    let note = format!("{mine:.0} B, nchan {theirs:.0} B");
    let name = "stream: memory of an idle subscriber against nchan's";
    let memory = bar(name, Unit::Times, Better::Less, (1.2, 0.6), mine / theirs, note);
    let name = "stream: connections in 1 GB, from that";
    let held = f64::from(1 << 30) / mine;
    let held = bar(name, Unit::Count, Better::More, (80_000.0, 160_000.0), held, String::new());
    Ok([memory, held])
}

fn cost_bars(ours: &Ours, nchan: &Nchan, effort: Effort) -> Result<Vec<Bar>> {
    let kinds = [
        (Transport::Sse, 1, "stream, 0.3 KB over SSE: CPU of a delivery against nchan's"),
        (Transport::Sse, 10, "stream, 3 KB over SSE: the same"),
        (Transport::WebSocket, 1, "stream, 0.3 KB over WebSocket: the same"),
        (Transport::WebSocket, 10, "stream, 3 KB over WebSocket: the same"),
    ];
    let (mut bars, mut fastest) = (Vec::new(), f64::INFINITY);
    for (transport, changes, name) in kinds {
        let (mut ratios, mut own, mut others) = (Vec::new(), Vec::new(), Vec::new());
        // What one subscriber costs is the same in all rounds.
        let (own_alone, bytes) = ours.spent((transport, changes), 1)?;
        let other_alone = nchan_spent(nchan, (transport, bytes), 1)?;
        for _ in 0..effort.rounds {
            let (mine, _) = ours.spent((transport, changes), SUBSCRIBERS)?;
            let theirs = nchan_spent(nchan, (transport, bytes), SUBSCRIBERS)?;
            let (mine, theirs) =
                (per_delivery(mine - own_alone), per_delivery(theirs - other_alone));
            ratios.push(mine / theirs);
            own.push(mine);
            others.push(theirs);
        }
        let (measured, mine, theirs) = (median(ratios), median(own), median(others));
        fastest = fastest.min(mine);
        shell::say(&format!("{name}: {measured:.2} ({mine:.2} µs, nchan {theirs:.2} µs)"));
        let note = format!("{mine:.2} µs, nchan {theirs:.2} µs");
        bars.push(bar(name, Unit::Times, Better::Less, (1.0, 0.6), measured, note));
    }
    let name = "stream: deliveries a second and core, from the cheapest";
    let rate = 1e6 / fastest;
    bars.push(bar(name, Unit::PerSecond, Better::More, (1e5, 2.5e5), rate, String::new()));
    let last = ours.last_delivery()?;
    let name = "stream: publication to the last of 10,000 subscribers";
    bars.push(bar(name, Unit::Seconds, Better::Less, (0.25, 0.08), last, String::new()));
    Ok(bars)
}

fn bar(
    name: &'static str,
    unit: Unit,
    better: Better,
    (must, goal): (f64, f64),
    measured: f64,
    note: String,
) -> Bar {
    Bar { name, unit, better, must, goal, measured, note }
}

/// The service under test and what is followed.
struct Ours {
    service: Service,
    market: Market,
    key: String,
    path: String,
}

/// One event's winner market: fifty records.
fn selection(at: SocketAddr, key: &str) -> Result<String> {
    let begun = Instant::now();
    loop {
        let listed = get(at, "/v1/sports/tennis/events?limit=1", &format!("x-api-key: {key}\r\n"))?;
        let listed: Vec<Value> = serde_json::from_slice(&listed.body)?;
        let id = listed.first().and_then(|event| event.get("id")?.as_str());
        if let Some(id) = id {
            return Ok(format!(
                "/v1/stream?sports=tennis&market=moneyline&event_ids={id}&freshness=none&heartbeat=60"
            ));
        }
        ensure!(begun.elapsed() < WAIT_MAX, "the market has no events");
        shell::sleep(Duration::from_millis(100));
    }
}

impl Ours {
    fn subscribe(&self, transport: Transport, count: usize) -> Result<Subscribers> {
        let headers = format!("x-api-key: {}\r\n", self.key);
        let request = transport.request(&self.path, &headers);
        Subscribers::open(self.service.address, &request, count)
    }

    /// Changes some records, once in each publication, and reads what comes of it.
    fn play(&self, subscribers: &mut Subscribers, changes: usize) -> Result<()> {
        for _ in 0..PUBLICATIONS {
            // In the first half of an interval, so that each has its own.
            let now = now_ms();
            let wait = INTERVAL_MS - now % INTERVAL_MS + INTERVAL_MS / 10;
            subscribers.read_for(Duration::from_millis(u64::try_from(wait)?))?;
            let round = usize::try_from(now / INTERVAL_MS)?;
            let lines: Vec<String> =
                (0..changes).flat_map(|record| self.market.moves(3 * record, 1, round)).collect();
            self.market.push(&lines)?;
        }
        subscribers.read_for(Duration::from_millis(1_500))
    }

    /// Seconds of processor time of a round with some subscribers, and the bytes of a delivery.
    fn spent(
        &self,
        (transport, changes): (Transport, usize),
        count: usize,
    ) -> Result<(f64, usize)> {
        let mut subscribers = self.subscribe(transport, count)?;
        // What they begin with is not what is measured.
        subscribers.read_for(Duration::from_secs(2))?;
        let (before, read) = (cpu_seconds(self.service.pid())?, subscribers.read);
        self.play(&mut subscribers, changes)?;
        let spent = cpu_seconds(self.service.pid())? - before;
        Ok((spent, (subscribers.read - read) / count / PUBLICATIONS))
    }

    fn live_bar(&self, effort: Effort) -> Result<Bar> {
        let headers = format!("x-api-key: {}\r\n", self.key);
        let request = Transport::Sse.request(&format!("{}&mode=live", self.path), &headers);
        let time = Duration::from_secs_f64(20.0 * effort.seconds);
        let shown = self.bookmakers()?;
        let measured = live::measure(&self.service, (&self.market, &shown), &request, time)?;
        let name = "stream, live, 200 changes/s, 1,000 subscribers: feed to client, p99 less the log's write";
        let p99 = measured.p99_less_write();
        Ok(bar(name, Unit::Seconds, Better::Less, (0.025, 0.005), p99, measured.note()))
    }

    /// The bookmakers of the records that are followed: not all are of the region that is shown where none is named.
    fn bookmakers(&self) -> Result<Vec<String>> {
        let headers = format!("x-api-key: {}\r\n", self.key);
        let path = format!("{}?market=moneyline&limit=500", service::ODDS);
        let odds: Vec<Value> =
            serde_json::from_slice(&get(self.service.address, &path, &headers)?.body)?;
        let key = |record: &Value| record.get("bookmaker")?.as_str().map(str::to_owned);
        let keys: std::collections::BTreeSet<String> = odds.iter().filter_map(key).collect();
        ensure!(!keys.is_empty(), "there are no odds to follow");
        Ok(keys.into_iter().collect())
    }

    fn memory(&self) -> Result<f64> {
        memory(self.service.pid(), || self.subscribe(Transport::Sse, SUBSCRIBERS))
    }

    /// Seconds from the time of a publication to its last delivery.
    fn last_delivery(&self) -> Result<f64> {
        let mut subscribers = self.subscribe(Transport::Sse, SUBSCRIBERS_MANY)?;
        subscribers.read_for(Duration::from_secs(3))?;
        let mut times = Vec::new();
        for round in 0..5 {
            let now = now_ms();
            let wait = INTERVAL_MS - now % INTERVAL_MS + INTERVAL_MS / 2;
            subscribers.read_for(Duration::from_millis(u64::try_from(wait)?))?;
            self.market.push(&self.market.moves(0, 1, 1_000 + round))?;
            subscribers.read_for(Duration::from_millis(900))?;
            let last = subscribers.last_ms % INTERVAL_MS;
            times.push(super::float(u64::try_from(last)?) / 1e3);
        }
        Ok(median(times))
    }
}

fn per_delivery(seconds: f64) -> f64 {
    let deliveries = super::float(u64::try_from(SUBSCRIBERS * PUBLICATIONS).unwrap_or(u64::MAX));
    seconds.max(0.0) * 1e6 / deliveries
}

/// Bytes of an idle subscriber.
fn memory(pid: u32, subscribe: impl FnOnce() -> Result<Subscribers>) -> Result<f64> {
    let before = shell::resident_bytes(pid)?;
    let mut subscribers = subscribe()?;
    subscribers.read_for(Duration::from_secs(5))?;
    let bytes = shell::resident_bytes(pid)?.saturating_sub(before);
    Ok(super::float(bytes) / super::float(u64::try_from(SUBSCRIBERS)?))
}

/// Seconds of processor time of a round with some subscribers.
fn nchan_spent(nchan: &Nchan, (transport, bytes): (Transport, usize), count: usize) -> Result<f64> {
    let asked = transport.request("/sub", "");
    let mut subscribers = Subscribers::open(nchan.address, &asked, count)?;
    subscribers.read_for(Duration::from_secs(1))?;
    let before = cpu_seconds(nchan.pid())?;
    for _ in 0..PUBLICATIONS {
        nchan.publish(bytes)?;
        subscribers.read_for(Duration::from_secs(1))?;
    }
    Ok(cpu_seconds(nchan.pid())? - before)
}

fn nchan_memory(nchan: &Nchan) -> Result<f64> {
    let asked = Transport::Sse.request("/sub", "");
    memory(nchan.worker()?, || Subscribers::open(nchan.address, &asked, SUBSCRIBERS))
}
