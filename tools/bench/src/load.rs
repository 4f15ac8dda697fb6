//! The load generator: keep-alive connections from one thread, with one request in flight on each.
//!
//! It only reads heads; bodies are dropped in the kernel (`MSG_TRUNC`), so that a request costs the generator less
//! than the server and the server remains the bottleneck. wrk copies every body and saturates first.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::epoll;
use rustix::net::RecvFlags;

/// Latencies are counted in microseconds, up to a second.
const LATENCY_MAX_US: usize = 1_000_000;
/// Maximum bytes of an answer read as its head.
const HEAD_BYTES: usize = 2 << 10;
/// Maximum bytes of a body dropped at once.
const DROP_BYTES: usize = 1 << 20;

/// Requests, target, rate and duration of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'a> {
    pub(super) to: SocketAddr,
    /// Complete requests, sent in rotation.
    pub(super) requests: &'a [Vec<u8>],
    pub(super) connections: usize,
    pub(super) time: Duration,
    /// Requests a second, regardless of the answers; `None` sends each request after the previous answer.
    pub(super) rate: Option<f64>,
    /// Index of the first request.
    pub(super) first: usize,
}

/// Result of a load.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Number of answers with 200 or 304.
    pub(super) good: u64,
    pub(super) bad: u64,
    pub(super) seconds: f64,
    pub(super) p99_us: f64,
    /// Index of the next request.
    pub(super) next: usize,
}

impl Outcome {
    pub(super) fn good_per_second(&self) -> f64 {
        super::float(self.good) / self.seconds
    }
}

struct Connection {
    stream: TcpStream,
    head: Vec<u8>,
    /// Remaining bytes of the answer, once its head has arrived.
    left: Option<usize>,
    since: Instant,
    busy: bool,
}

/// Sends requests until the time is over.
///
/// # Errors
/// A connection cannot be made, or the server closes one.
pub(super) fn run(plan: Plan<'_>) -> Result<Outcome> {
    let mut run = Run::open(plan)?;
    let begun = Instant::now();
    let end = begun + plan.time;
    let interval = plan.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
    let mut due = begun;
    if interval.is_none() {
        for at in 0..plan.connections {
            run.send(at, begun)?;
        }
    }
    let mut events = Vec::with_capacity(1024);
    loop {
        let now = Instant::now();
        if now >= end {
            break;
        }
        if let Some(interval) = interval {
            while due <= now {
                let Some(at) = run.idle.pop() else { break };
                // Measured from the due time: waiting for a free connection counts.
                run.send(at, due)?;
                due += interval;
            }
        }
        // Paced requests must be sent without delay; the generator has its own core.
        let sleep = if interval.is_some() { Duration::ZERO } else { Duration::from_millis(100) };
        run.wait(&mut events, sleep)?;
        for at in events.drain(..) {
            if run.receive(at)? {
                match interval {
                    None => run.send(at, Instant::now())?,
                    Some(_) => run.idle.push(at),
                }
            }
        }
    }
    Ok(run.outcome(begun.elapsed().as_secs_f64()))
}

/// Opens all connections, sends one request on each, and takes a measurement while they are idle.
///
/// # Errors
/// A connection cannot be made, or an answer does not come.
pub(super) fn while_idle<T>(plan: Plan<'_>, look: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut run = Run::open(plan)?;
    run.ask_all()?;
    look()
}

/// Open connections with their counters.
pub(super) struct Run<'a> {
    plan: Plan<'a>,
    epoll: rustix::fd::OwnedFd,
    connections: Vec<Connection>,
    idle: Vec<usize>,
    next: usize,
    discarded: Vec<u8>,
    good: u64,
    bad: u64,
    latency: Vec<u32>,
}

impl<'a> Run<'a> {
    pub(super) fn open(plan: Plan<'a>) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(plan.connections);
        for at in 0..plan.connections {
            let stream = TcpStream::connect(plan.to).context("cannot connect")?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(u64::try_from(at)?);
            epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
            let since = Instant::now();
            connections.push(Connection {
                stream,
                head: Vec::new(),
                left: None,
                since,
                busy: false,
            });
        }
        Ok(Self {
            plan,
            epoll,
            idle: (0..plan.connections).collect(),
            connections,
            next: plan.first % plan.requests.len().max(1),
            discarded: vec![0; DROP_BYTES],
            good: 0,
            bad: 0,
            latency: vec![0; LATENCY_MAX_US + 1],
        })
    }

    /// Sends one request on each connection, a few at a time.
    pub(super) fn ask_all(&mut self) -> Result<()> {
        let mut events = Vec::new();
        for first in (0..self.plan.connections).step_by(64) {
            let last = self.plan.connections.min(first + 64);
            for at in first..last {
                self.send(at, Instant::now())?;
            }
            let mut left = last - first;
            while left > 0 {
                self.wait(&mut events, Duration::from_millis(100))?;
                for at in events.drain(..) {
                    left -= usize::from(self.receive(at)?);
                }
            }
        }
        ensure!(self.bad == 0, "{} requests were refused", self.bad);
        Ok(())
    }

    fn send(&mut self, at: usize, since: Instant) -> Result<()> {
        let request = self.plan.requests.get(self.next).context("there is nothing to send")?;
        self.next = (self.next + 1) % self.plan.requests.len();
        let connection = self.connections.get_mut(at).context("there is no such connection")?;
        connection.since = since;
        connection.busy = true;
        connection.stream.write_all(request).context("cannot send")
    }

    fn wait(&self, ready: &mut Vec<usize>, sleep: Duration) -> Result<()> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(1024);
        let sleep = rustix::event::Timespec::try_from(sleep)?;
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&sleep)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll"),
        }
        for event in events {
            ready.push(usize::try_from(event.data.u64())?);
        }
        Ok(())
    }

    /// Reads the available bytes. True if they complete an answer.
    fn receive(&mut self, at: usize) -> Result<bool> {
        let connection = self.connections.get_mut(at).context("there is no such connection")?;
        loop {
            let read = match connection.left {
                None => {
                    let mut head = [0; HEAD_BYTES];
                    let read = connection.stream.read(&mut head);
                    connection.head.extend(head.iter().take(*read.as_ref().unwrap_or(&0)));
                    read
                }
                Some(left) => {
                    let discarded =
                        self.discarded.get_mut(..left.min(DROP_BYTES)).unwrap_or_default();
                    let dropped =
                        rustix::net::recv(&connection.stream, discarded, RecvFlags::TRUNC);
                    dropped.map(|(_, read)| read).map_err(Into::into)
                }
            };
            let read = match read {
                Ok(0) => bail!("the server closed a connection"),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("cannot read"),
            };
            if let Some(left) = &mut connection.left {
                *left = left.saturating_sub(read);
            } else if let Some((status, left)) = parse(&connection.head)? {
                let good = matches!(status, 200 | 304);
                self.good += u64::from(good);
                self.bad += u64::from(!good);
                connection.left = Some(left);
                connection.head.clear();
            }
            if connection.left == Some(0) {
                connection.left = None;
                connection.busy = false;
                let took = usize::try_from(connection.since.elapsed().as_micros())?;
                if let Some(count) = self.latency.get_mut(took.min(LATENCY_MAX_US)) {
                    *count += 1;
                }
                return Ok(true);
            }
        }
    }

    fn outcome(&self, seconds: f64) -> Outcome {
        let quantile = |share: f64| {
            let all: u64 = self.latency.iter().map(|count| u64::from(*count)).sum();
            let mut left = super::float(all) * share;
            let at = self.latency.iter().position(|count| {
                left -= f64::from(*count);
                left <= 0.0
            });
            super::float(u64::try_from(at.unwrap_or(LATENCY_MAX_US)).unwrap_or(u64::MAX))
        };
        let p99_us = quantile(0.99);
        Outcome { good: self.good, bad: self.bad, seconds, p99_us, next: self.next }
    }
}

/// Status and remaining bytes of the body, if the head is complete.
fn parse(held: &[u8]) -> Result<Option<(u16, usize)>> {
    let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(held.get(..end).unwrap_or_default())?;
    let status = head.get(9..12).and_then(|digits| digits.parse().ok());
    let status: u16 = status.context("an answer has no status")?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = if status == 304 { 0 } else { length.context("an answer has no length")? };
    Ok(Some((status, (end + 4 + length).saturating_sub(held.len()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_say_how_much_is_to_come() {
        let parsed = |text: &str| parse(text.as_bytes()).unwrap();
        assert_eq!(parsed("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n"), None);
        assert_eq!(parsed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), Some((200, 7)));
        assert_eq!(parsed("HTTP/1.1 304 Not Modified\r\nx: y\r\n\r\n"), Some((304, 0)));
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
