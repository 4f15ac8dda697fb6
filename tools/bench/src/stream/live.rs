//! From a feed to the clients of live streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::subscribers::{Subscribers, Transport};
use crate::rounds::median;
use crate::service::Market;

const SUBSCRIBERS: usize = 1_000;
/// Of this many subscribers one parses what it reads; the others only drop it.
const PROBE_EVERY: usize = 50;
/// Pushes a second, and changes in each.
const PUSHES: u32 = 50;
const CHANGES: usize = 4;
/// Prices that changes go round in: seconds pass before one comes again.
const PRICES: usize = 200;

/// What was measured, in seconds.
#[derive(Debug)]
pub(super) struct Measured {
    /// From the beginning of a push to the clients, for all but a hundredth.
    pub(super) p99: f64,
    pub(super) median: f64,
    /// From the beginning of a push to its receipt, which is the log's write and what comes before it.
    pub(super) push: f64,
    pub(super) seen: usize,
}

/// Pushes 200 changes a second and looks when clients have them.
pub(super) fn measure(
    market: &Market,
    open: impl FnOnce(Transport, usize) -> Result<Subscribers>,
    time: Duration,
) -> Result<Measured> {
    let mut subscribers = open(Transport::Sse, SUBSCRIBERS)?;
    subscribers.read_for(Duration::from_secs(3))?;
    // When a change with this price was pushed.
    let pushed: Mutex<HashMap<usize, Instant>> = Mutex::default();
    let stop = AtomicBool::new(false);
    let mut delays = Vec::new();
    let pushes = thread::scope(|scope| {
        let pushing = scope.spawn(|| push(market, &pushed, &stop));
        let reading = subscribers.look_for(time, PROBE_EVERY, |text| {
            let now = Instant::now();
            let pushed = pushed.lock().unwrap_or_else(PoisonError::into_inner);
            let at = prices(text).filter_map(|price| pushed.get(&price));
            delays.extend(at.map(|at| now.saturating_duration_since(*at).as_secs_f64()));
        });
        stop.store(true, Ordering::Relaxed);
        let pushes = pushing.join().map_err(|_| anyhow::anyhow!("the pushing thread died"))??;
        reading.map(|()| pushes)
    })?;
    ensure!(!delays.is_empty(), "no change reached a client");
    delays.sort_by(f64::total_cmp);
    let seen = delays.len();
    let p99 = delays.get(seen * 99 / 100).copied().unwrap_or_default();
    Ok(Measured { p99, median: median(delays), push: median(pushes), seen })
}

/// Pushes until it is told to stop, and says how long each push took.
fn push(
    market: &Market,
    pushed: &Mutex<HashMap<usize, Instant>>,
    stop: &AtomicBool,
) -> Result<Vec<f64>> {
    let (mut took, mut next, mut number) = (Vec::new(), Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        let mut lines = Vec::new();
        let begun = Instant::now();
        for _ in 0..CHANGES {
            number += 1;
            // The first market of one bookmaker after the other, all of the first event.
            let record = number % 50 * 3;
            let price = number % PRICES;
            lines.extend(market.moves(record, 1, PRICES + price - record % PRICES));
            pushed.lock().unwrap_or_else(PoisonError::into_inner).insert(100 + price, begun);
        }
        took.push(market.push(&lines)?.as_secs_f64());
        next += Duration::from_secs(1) / PUSHES;
        shell::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(took)
}

/// The prices above zero in what a client has read: one of each change.
fn prices(text: &str) -> impl Iterator<Item = usize> {
    let after = text.split("\"price\":").skip(1);
    after.filter_map(|rest| rest.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok())
}
