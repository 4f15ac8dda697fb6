//! What a delivery to a subscriber of `/v1/stream` costs, beside nchan, which keeps messages for clients that come
//! back, too. Both get the same number of bytes at the same pace: one change, or ten, in every publication.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::epoll;
use rustix::net::RecvFlags;
use serde_json::Value;

use super::Effort;
use super::bar::{Bar, Better, Unit};
use super::machine::cpu_seconds;
use super::nchan::Nchan;
use super::rounds::median;
use super::service::{self, Market, Service, get, request};

/// Whose deliveries are counted.
const SUBSCRIBERS: usize = 5_000;
/// Whose last delivery is timed.
const SUBSCRIBERS_MANY: usize = 10_000;
const INTERVAL: &str = "1s";
const INTERVAL_MS: u128 = 1_000;
/// Publications in a round.
const PUBLICATIONS: usize = 10;
const RECORDS: usize = 3_000;
/// How long anything may take.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How events reach a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Sse,
    WebSocket,
}

impl Transport {
    /// The request of a subscriber.
    fn request(self, path: &str, headers: &str) -> Vec<u8> {
        match self {
            Self::Sse => request(path, &format!("{headers}Accept: text/event-stream\r\n")),
            Self::WebSocket => request(
                path,
                &format!(
                    "{headers}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                ),
            ),
        }
    }
}

/// Measures the lines of streams.
pub(super) fn bars(program: &Path, effort: Effort) -> Result<Vec<Bar>> {
    let folder = tempfile::tempdir()?;
    let setup = service::setup(program, &folder.path().join("service"), INTERVAL)?;
    let service = Service::start(&setup)?;
    let key = service.make_stream_key(2 * SUBSCRIBERS_MANY)?;
    let market = Market::fill(&service, &key, RECORDS)?;
    let nchan = Nchan::start(&folder.path().join("nchan"))?;
    let ours = Ours { path: selection(&service, &key)?, service, market, key };
    let mut bars = Vec::new();
    // Before anything else has made them grow.
    let (mine, theirs) = (ours.memory()?, nchan_memory(&nchan)?);
    let note = format!("{mine:.0} B, nchan {theirs:.0} B");
    let name = "stream: memory of an idle subscriber against nchan's";
    bars.push(bar(name, Unit::Times, Better::Less, (1.2, 0.6), mine / theirs, note));
    let name = "stream: connections in 1 GB, from that";
    let held = f64::from(1 << 30) / mine;
    bars.push(bar(name, Unit::Count, Better::More, (80_000.0, 160_000.0), held, String::new()));
    let kinds = [
        (Transport::Sse, 1, "stream, 0.3 KB over SSE: CPU of a delivery against nchan's"),
        (Transport::Sse, 10, "stream, 3 KB over SSE: the same"),
        (Transport::WebSocket, 1, "stream, 0.3 KB over WebSocket: the same"),
        (Transport::WebSocket, 10, "stream, 3 KB over WebSocket: the same"),
    ];
    let mut fastest = f64::INFINITY;
    for (transport, changes, name) in kinds {
        let (mut ratios, mut own, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..effort.rounds.div_ceil(3) {
            let (mine, bytes) = ours.cost(transport, changes)?;
            let theirs = nchan_cost(&nchan, transport, bytes)?;
            ratios.push(mine / theirs);
            own.push(mine);
            others.push(theirs);
        }
        let (measured, mine, theirs) = (median(ratios), median(own), median(others));
        fastest = fastest.min(mine);
        shell::say(&format!("{name}: {measured:.2}"));
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
fn selection(service: &Service, key: &str) -> Result<String> {
    let begun = Instant::now();
    loop {
        let listed = get(
            service.address,
            "/v1/sports/tennis/events?limit=1",
            &format!("x-api-key: {key}\r\n"),
        )?;
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

    /// Microseconds of a delivery, and its bytes.
    fn cost(&self, transport: Transport, changes: usize) -> Result<(f64, usize)> {
        let spent = |count: usize| {
            let mut subscribers = self.subscribe(transport, count)?;
            // What they begin with is not what is measured.
            subscribers.read_for(Duration::from_secs(2))?;
            let (before, read) = (cpu_seconds(self.service.pid())?, subscribers.read);
            self.play(&mut subscribers, changes)?;
            let spent = cpu_seconds(self.service.pid())? - before;
            anyhow::Ok((spent, (subscribers.read - read) / count / PUBLICATIONS))
        };
        let (alone, bytes) = spent(1)?;
        let (all, _) = spent(SUBSCRIBERS)?;
        Ok((per_delivery(all - alone), bytes))
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

/// The time of day: publications are at whole intervals of it.
#[expect(clippy::disallowed_methods, reason = "the service under test goes by the same clock")]
fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
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

fn nchan_cost(nchan: &Nchan, transport: Transport, bytes: usize) -> Result<f64> {
    let asked = transport.request("/sub", "");
    let spent = |count: usize| {
        let mut subscribers = Subscribers::open(nchan.address, &asked, count)?;
        subscribers.read_for(Duration::from_secs(1))?;
        let before = cpu_seconds(nchan.pid())?;
        for _ in 0..PUBLICATIONS {
            nchan.publish(bytes)?;
            subscribers.read_for(Duration::from_secs(1))?;
        }
        anyhow::Ok(cpu_seconds(nchan.pid())? - before)
    };
    let alone = spent(1)?;
    Ok(per_delivery(spent(SUBSCRIBERS)? - alone))
}

fn nchan_memory(nchan: &Nchan) -> Result<f64> {
    let asked = Transport::Sse.request("/sub", "");
    memory(nchan.worker()?, || Subscribers::open(nchan.address, &asked, SUBSCRIBERS))
}

/// Connections that only read; what they read is dropped in the kernel.
struct Subscribers {
    connections: Vec<TcpStream>,
    epoll: rustix::fd::OwnedFd,
    /// All bytes so far.
    read: usize,
    /// When the last came.
    last_ms: u128,
}

impl Subscribers {
    fn open(to: SocketAddr, request: &[u8], count: usize) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(count);
        for at in 0..count {
            let mut stream = TcpStream::connect(to).context("cannot connect")?;
            stream.set_read_timeout(Some(WAIT_MAX))?;
            stream.write_all(request)?;
            let mut head = [0; 12];
            stream.read_exact(&mut head).context("no answer to a subscriber")?;
            let accepted = head.ends_with(b"200") || head.ends_with(b"101");
            ensure!(accepted, "a subscriber was refused: {}", String::from_utf8_lossy(&head));
            stream.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(u64::try_from(at)?);
            epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
            connections.push(stream);
        }
        Ok(Self { connections, epoll, read: 0, last_ms: 0 })
    }

    /// Reads what comes for this long.
    fn read_for(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        let mut dropped = vec![0; 1 << 20];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let mut events: Vec<epoll::Event> = Vec::with_capacity(1024);
            let sleep = rustix::event::Timespec::try_from(left)?;
            let space = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, space, Some(&sleep)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("epoll"),
            }
            for event in events {
                let at = usize::try_from(event.data.u64())?;
                let stream = self.connections.get(at).context("there is no such connection")?;
                match rustix::net::recv(stream, &mut dropped[..], RecvFlags::TRUNC) {
                    Ok((_, 0)) => bail!("the server closed a subscriber's connection"),
                    Ok((_, read)) => {
                        self.read += read;
                        self.last_ms = now_ms();
                    }
                    Err(error) if std::io::Error::from(error).kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error).context("cannot read"),
                }
            }
        }
    }
}
