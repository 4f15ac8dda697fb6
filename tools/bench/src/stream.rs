//! The cost of streams (`/v1/stream`), and the delay from a publication to its clients.

mod beside;
mod cost;
mod live;
mod restart;
mod selections;
mod subscribers;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use self::cost::Other;
use self::subscribers::{Subscribers, Transport, WAIT_MAX, now_ms};
use super::Effort;
use super::bar::{Bar, Better, Unit};
use super::loaded::LoadedService;
use super::measure::Part;
use super::nats::Nats;
use super::nchan::Nchan;
use super::rounds::median;
use super::service::{self, Market, Service, get};

/// Number of subscribers whose deliveries are counted.
const SUBSCRIBERS: usize = 5_000;
/// Number of subscribers when the last delivery is timed.
const SUBSCRIBERS_MANY: usize = 10_000;
const INTERVAL: &str = "1s";
const INTERVAL_MS: u128 = 1_000;
const RECORDS: usize = 3_000;

/// Measures the bars of streams.
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
        let ours = Followed::new(&service, &market, &key)?;
        if wanted(Part::StreamCost) {
            let place = |name: &str| folder.path().join(name);
            let nchan = Nchan::start(&place("nchan"))?;
            bars.extend(cost::memory_bars(&ours, &nchan)?);
            let counted = cost::count(service::setup(program, &place("counted"), INTERVAL)?)?;
            let others = [Other::Nchan(nchan), Other::Nats(Nats::start(&place("nats"))?)];
            bars.extend(cost::bars(&ours, others, &counted, effort)?);
            bars.push(ours.last_bar()?);
        }
        if wanted(Part::StreamLive) {
            bars.push(ours.live_bar(effort)?);
        }
        if wanted(Part::StreamRestart) {
            let path = ours.path;
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

fn beside_bars(program: &Path, effort: Effort) -> Result<[Bar; 5]> {
    let loaded = LoadedService::start(program, effort.records, effort)?;
    let key = loaded.service.make_stream_key(2 * SUBSCRIBERS)?;
    let path = selection(loaded.service.address, &key)?;
    let measured = beside::measure(&loaded, &path, &key)?;
    let [ready, mix, gzip, unchanged] = measured.requests;
    let bars = [
        ("ready answers with 5,000 streams, against none", ready),
        ("mix of 8 selections, the same", mix),
        ("gzip, the same", gzip),
        ("304, the same", unchanged),
        ("odds messages pushed with 5,000 streams, against none", measured.pushes),
    ];
    let limits = (0.9, 0.97);
    Ok(bars.map(|(name, measured)| {
        let note = format!("a second; {measured:.3}");
        bar(name, Unit::Times, Better::More, limits, measured, note)
    }))
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

/// A service and the selection that is followed.
struct Followed<'a> {
    service: &'a Service,
    market: &'a Market,
    key: &'a str,
    path: String,
    /// The bookmakers of its records: not all are in the default region.
    bookmakers: Vec<String>,
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

impl<'a> Followed<'a> {
    fn new(service: &'a Service, market: &'a Market, key: &'a str) -> Result<Self> {
        let (path, bookmakers) = (selection(service.address, key)?, bookmakers(service, key)?);
        Ok(Self { service, market, key, path, bookmakers })
    }

    fn subscribe(&self, transport: Transport, count: usize) -> Result<Subscribers> {
        let headers = format!("x-api-key: {}\r\n", self.key);
        let request = transport.request(&self.path, &headers);
        Subscribers::open(self.service.address, &request, count)
    }

    /// Changes some records of the selection.
    fn change(&self, changes: usize, round: usize) -> Result<()> {
        let price = 100 + round % 200;
        let changed = self.bookmakers.iter().take(changes);
        let lines: Vec<String> = changed.map(|key| self.market.winner(key, price)).collect();
        self.market.push(&lines).map(drop)
    }

    fn live_bar(&self, effort: Effort) -> Result<Bar> {
        let headers = format!("x-api-key: {}\r\n", self.key);
        let request = Transport::Sse.request(&format!("{}&mode=live", self.path), &headers);
        let time = Duration::from_secs_f64(20.0 * effort.seconds);
        let measured =
            live::measure(self.service, (self.market, &self.bookmakers), &request, time)?;
        let name = "stream, live, 200 changes/s, 1,000 subscribers: feed to client, p99 less the log's write";
        let p99 = measured.p99_less_write();
        Ok(bar(name, Unit::Seconds, Better::Less, (0.025, 0.005), p99, measured.note()))
    }

    fn last_bar(&self) -> Result<Bar> {
        let name = "stream: publication to the last of 10,000 subscribers";
        let last = self.last_delivery()?;
        Ok(bar(name, Unit::Seconds, Better::Less, (0.25, 0.08), last, String::new()))
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
            self.change(1, 1_000 + round)?;
            subscribers.read_for(Duration::from_millis(900))?;
            let last = subscribers.last_ms % INTERVAL_MS;
            times.push(super::float(u64::try_from(last)?) / 1e3);
        }
        Ok(median(times))
    }
}

/// The bookmakers of the followed records.
fn bookmakers(service: &Service, key: &str) -> Result<Vec<String>> {
    let headers = format!("x-api-key: {key}\r\n");
    let path = format!("{}?market=moneyline&limit=500", service::ODDS);
    let odds: Vec<Value> = serde_json::from_slice(&get(service.address, &path, &headers)?.body)?;
    let key = |record: &Value| record.get("bookmaker")?.as_str().map(str::to_owned);
    let keys: std::collections::BTreeSet<String> = odds.iter().filter_map(key).collect();
    ensure!(keys.len() >= 10, "there are too few odds to follow");
    Ok(keys.into_iter().collect())
}
