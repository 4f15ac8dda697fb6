//! Slowdown of pushes and requests while streams are open.

use std::time::Duration;

use anyhow::Result;

use super::subscribers::{Subscribers, Transport};
use crate::loaded::LoadedService;
use crate::rounds::{self, median};
use crate::service::BATCH_LINES;

const SUBSCRIBERS: usize = 5_000;
/// Number of pushes in a round, enough for several publications.
const BATCHES: usize = 100;

/// Rates with streams open, divided by rates without.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) requests: f64,
    pub(super) pushes: f64,
}

/// Alternates rounds with and without streams.
pub(super) fn measure(loaded: &LoadedService, path: &str, key: &str) -> Result<Measured> {
    let asked = Transport::Sse.request(path, &format!("x-api-key: {key}\r\n"));
    let requests = [loaded.ask("limit=100")];
    let mut number = 0;
    let mut rates = || {
        let answered = rounds::round(loaded.side(&requests))?.outcome.good_per_second();
        let mut took = Duration::ZERO;
        for _ in 0..BATCHES {
            number += 1;
            let lines = loaded.market.moves(number * BATCH_LINES, BATCH_LINES, 1_000 + number);
            took += loaded.market.push(&lines)?;
        }
        let pushed = crate::float(u64::try_from(BATCHES * BATCH_LINES)?) / took.as_secs_f64();
        anyhow::Ok((answered, pushed))
    };
    let (mut answered, mut pushed) = (Vec::new(), Vec::new());
    for _ in 0..loaded.effort.rounds {
        let alone = rates()?;
        let mut subscribers = Subscribers::open(loaded.service.address, &asked, SUBSCRIBERS)?;
        subscribers.read_for(Duration::from_secs(1))?;
        let beside = rates()?;
        answered.push(beside.0 / alone.0);
        pushed.push(beside.1 / alone.1);
    }
    Ok(Measured { requests: median(answered), pushes: median(pushed) })
}
