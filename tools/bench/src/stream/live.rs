//! From a feed to the clients of live streams.
//!
//! Every change has a price that no other has, so that it is known wherever it is read. Some of the subscribers are
//! probes: they are read by a thread of their own, which does nothing else, so that what is measured is the service and
//! not how long a client takes to read the others. Every probe has to see every change.

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
/// Of this many subscribers one is a probe.
const PROBE_EVERY: usize = 50;
/// Pushes a second, and changes in each.
const PUSHES: u32 = 50;
const CHANGES: usize = 4;
/// The price of the first change; the next has the next price. None that the market was filled with is as high.
const FIRST_PRICE: usize = 10_000;
/// How long the last changes may be on their way.
const LAST_MAX: Duration = Duration::from_secs(2);

/// What was measured, in seconds.
#[derive(Debug)]
pub(super) struct Measured {
    /// From the beginning of a push to a probe, sorted.
    delays: Vec<f64>,
    /// From the beginning of a push to its receipt, in the middle.
    push: f64,
    /// A write of the log, on average.
    write: f64,
    /// How often a change should have been seen by a probe.
    expected: usize,
    /// Processor time of the service in a second.
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

/// Pushes 200 changes a second, of these bookmakers, and looks when clients have them.
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
    // What a probe did not see was replaced by a later change of the same record: it is not measured.
    ensure!(seen <= expected && seen * 1000 >= expected * 999, "{seen} of {expected} were seen");
    delays.sort_by(f64::total_cmp);
    let write = (after.0 - before.0) / (after.1 - before.1).max(1.0);
    let busy = spent / (time + LAST_MAX).as_secs_f64();
    Ok(Measured { delays, push: median(pushes), write, expected, busy })
}

/// The time that writes of the log took so far, and how many there were.
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

/// When each change was pushed, by its number.
type Pushed = Mutex<Vec<Instant>>;

/// Pushes changes of these bookmakers until it has to stop, and says how long each push took.
fn push(
    (market, bookmakers): (&Market, &[String]),
    pushed: &Pushed,
    stop: &AtomicBool,
) -> Result<Vec<f64>> {
    let mut feeder = Feeder::connect(market)?;
    let (mut took, mut next, mut number) = (Vec::new(), Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        // One bookmaker after the other, all of the first event.
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

/// Subscribers of which each event is looked at.
struct Probes {
    subscribers: Subscribers,
    /// What each has read of an event that has not ended.
    begun: Vec<Vec<u8>>,
    /// Which changes each has seen.
    seen: Vec<Vec<bool>>,
}

impl Probes {
    fn new(subscribers: Subscribers) -> Self {
        let count = subscribers.count();
        Self { subscribers, begun: vec![Vec::new(); count], seen: vec![Vec::new(); count] }
    }

    /// Looks until all that was pushed has come, and says how long each change took.
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
                    // One that was not pushed yet is of an earlier measurement.
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

/// The numbers of the changes in what a client has read.
fn changes(text: &str) -> impl Iterator<Item = usize> {
    let deltas = text.split("event: ").filter(|event| event.starts_with("delta"));
    let prices = deltas.flat_map(|delta| delta.split("\"price\":").skip(1));
    let prices = prices.filter_map(|rest| {
        rest.split(|byte: char| !byte.is_ascii_digit()).next()?.parse::<usize>().ok()
    });
    prices.filter_map(|price| price.checked_sub(FIRST_PRICE))
}
