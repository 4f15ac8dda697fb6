//! Delay from a feed to the clients of live streams.
//!
//! Every change has a unique price, so that it is recognized wherever it is read. Some of the subscribers are probes,
//! read by a dedicated thread, so that the measurement is of the service and not of a client that reads the other
//! subscribers. Every probe has to see every change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::subscribers::Subscribers;
use crate::machine::cpu_seconds;
use crate::rounds::median;
use crate::service::{Feeder, Market, Service, get};

const SUBSCRIBERS: usize = 1_000;
/// One of this many subscribers is a probe.
const PROBE_EVERY: usize = 50;
/// Number of pushes a second, and of changes in each.
const PUSHES: u32 = 50;
const CHANGES: usize = 4;
/// The price of the first change; each next one is one higher. No initial price is as high.
const FIRST_PRICE: usize = 10_000;
/// Maximum delay of the last changes.
const LAST_MAX: Duration = Duration::from_secs(2);

/// Results in seconds.
#[derive(Debug)]
pub(super) struct Measured {
    /// Delays from the beginning of a push to a probe, sorted.
    delays: Vec<f64>,
    /// Median time from the beginning of a push to its receipt.
    push: f64,
    /// Average time of a write of the log.
    write: f64,
    /// Number of times a probe should have seen a change.
    expected: usize,
    /// Processor time of the service per second.
    busy: f64,
}

impl Measured {
    fn at(&self, part: f64) -> f64 {
        let place = (crate::float(u64::try_from(self.delays.len()).unwrap_or(0)) * part).floor();
        let mut later = self.delays.iter().zip(0_u32..).skip_while(|(_, n)| f64::from(*n) < place);
        later.next().or_else(|| self.delays.last().zip(Some(0))).map_or(0.0, |(delay, _)| *delay)
    }

    pub(super) fn p99_less_write(&self) -> f64 {
        (self.at(0.99) - self.write).max(0.0)
    }

    pub(super) fn note(&self) -> String {
        let ms = |seconds: f64| format!("{:.1}", seconds * 1e3);
        format!(
            "p99 {} ms, p90 {}, median {}, less the {} ms of a write; push to receipt {} ms; {} of {} seen; {:.0} % of a core",
            ms(self.at(0.99)),
            ms(self.at(0.9)),
            ms(self.at(0.5)),
            ms(self.write),
            ms(self.push),
            self.delays.len(),
            self.expected,
            self.busy * 1e2
        )
    }
}

/// Pushes 200 changes a second, of these bookmakers, and measures when clients receive them.
pub(super) fn measure(
    service: &Service,
    market: (&Market, &[String]),
    request: &[u8],
    time: Duration,
) -> Result<Measured> {
    let (mut crowd, probes) =
        Subscribers::open_apart(service.address, request, SUBSCRIBERS, PROBE_EVERY)?;
    let count = probes.count();
    crowd.read_for(Duration::from_secs(3))?;
    let (pushed, stop) = (Mutex::default(), AtomicBool::new(false));
    let (before, cpu) = (writes(service)?, cpu_seconds(service.pid())?);
    let (reading, pushing, probing) = thread::scope(|scope| {
        let pushing = scope.spawn(|| push(market, &pushed, &stop));
        let probing = scope.spawn(|| Probes::new(probes).look(&pushed, &stop));
        let reading = crowd.read_for(time);
        stop.store(true, Ordering::Relaxed);
        let reading = reading.and_then(|()| crowd.read_for(LAST_MAX));
        (reading, pushing.join(), probing.join())
    });
    reading?;
    let pushes = pushing.map_err(|_| anyhow::anyhow!("the pushing thread died"))??;
    let mut delays = probing.map_err(|_| anyhow::anyhow!("the reading thread died"))??;
    let (after, spent) = (writes(service)?, cpu_seconds(service.pid())? - cpu);
    let expected = count * pushes.len() * CHANGES;
    let seen = delays.len();
    // A change that a probe did not see was replaced by a later one of the same record and is not measured.
    ensure!(seen <= expected && seen * 1000 >= expected * 999, "{seen} of {expected} were seen");
    delays.sort_by(f64::total_cmp);
    let write = (after.0 - before.0) / (after.1 - before.1).max(1.0);
    let busy = spent / (time + LAST_MAX).as_secs_f64();
    Ok(Measured { delays, push: median(pushes), write, expected, busy })
}

/// Total time of writes of the log so far, and their number.
fn writes(service: &Service) -> Result<(f64, f64)> {
    let page = get(service.operator, "/metrics", "")?;
    let page = String::from_utf8(page.body)?;
    let read = |name: &str| {
        let line = page.lines().find(|line| line.starts_with(name) && line.contains("\"live\""));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        value.with_context(|| format!("/metrics has no {name}"))
    };
    Ok((read("linesman_log_append_seconds_total{")?, read("linesman_log_appends_total{")?))
}

/// Time of each change's push, by its number.
type Pushed = Mutex<Vec<Instant>>;

/// Pushes changes of these bookmakers until stopped, and returns the time of each push.
fn push(
    (market, bookmakers): (&Market, &[String]),
    pushed: &Pushed,
    stop: &AtomicBool,
) -> Result<Vec<f64>> {
    let mut feeder = Feeder::connect(market)?;
    let (mut took, mut next, mut number) = (Vec::new(), Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        // The bookmakers in rotation, all for the first event.
        let prices = (number..number + CHANGES).map(|number| FIRST_PRICE + number);
        let turns = bookmakers.iter().cycle().skip(number % bookmakers.len().max(1));
        let lines: Vec<String> =
            turns.zip(prices).map(|(bookmaker, price)| market.winner(bookmaker, price)).collect();
        number += CHANGES;
        let begun = Instant::now();
        pushed.lock().unwrap_or_else(PoisonError::into_inner).extend([begun; CHANGES]);
        feeder.push(&lines)?;
        took.push(begun.elapsed().as_secs_f64());
        next += Duration::from_secs(1) / PUSHES;
        shell::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(took)
}

/// Subscribers whose events are parsed.
struct Probes {
    subscribers: Subscribers,
    /// Bytes of incomplete events, per probe.
    begun: Vec<Vec<u8>>,
    /// Changes seen, per probe.
    seen: Vec<Vec<bool>>,
}

impl Probes {
    fn new(subscribers: Subscribers) -> Self {
        let count = subscribers.count();
        Self { subscribers, begun: vec![Vec::new(); count], seen: vec![Vec::new(); count] }
    }

    /// Reads until all changes have arrived, and returns the delay of each.
    fn look(mut self, pushed: &Pushed, stop: &AtomicBool) -> Result<Vec<f64>> {
        let mut delays = Vec::new();
        let mut stopped: Option<Instant> = None;
        while stopped.is_none_or(|at| at.elapsed() < LAST_MAX) {
            if stop.load(Ordering::Relaxed) {
                stopped.get_or_insert_with(Instant::now);
            }
            let Self { subscribers, begun, seen } = &mut self;
            let mut twice = 0;
            subscribers.look_for(Duration::from_millis(100), |at, bytes| {
                let now = Instant::now();
                let (Some(held), Some(seen)) = (begun.get_mut(at), seen.get_mut(at)) else {
                    return;
                };
                held.extend_from_slice(bytes);
                let Some(end) = held.windows(2).rposition(|two| two == b"\n\n") else { return };
                let whole: Vec<u8> = held.drain(..end + 2).collect();
                let pushed = pushed.lock().unwrap_or_else(PoisonError::into_inner);
                for number in changes(&String::from_utf8_lossy(&whole)) {
                    // A number that was not pushed yet belongs to an earlier measurement.
                    let Some(at) = pushed.get(number) else { continue };
                    seen.resize(seen.len().max(number + 1), false);
                    let Some(seen) = seen.get_mut(number) else { continue };
                    twice += usize::from(std::mem::replace(seen, true));
                    delays.push(now.saturating_duration_since(*at).as_secs_f64());
                }
            })?;
            ensure!(twice == 0, "{twice} changes were sent twice");
        }
        Ok(delays)
    }
}

/// The numbers of the changes in the received text.
fn changes(text: &str) -> impl Iterator<Item = usize> {
    let deltas = text.split("event: ").filter(|event| event.starts_with("delta"));
    let prices = deltas.flat_map(|delta| delta.split("\"price\":").skip(1));
    let prices = prices.filter_map(|rest| {
        rest.split(|byte: char| !byte.is_ascii_digit()).next()?.parse::<usize>().ok()
    });
    prices.filter_map(|price| price.checked_sub(FIRST_PRICE))
}
