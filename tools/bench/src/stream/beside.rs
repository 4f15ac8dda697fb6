//! Slowdown of pushes and requests while streams are open.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::subscribers::{Subscribers, Transport};
use crate::loaded::{LoadedService, REFRESH_TIME};
use crate::measure::MIX;
use crate::rounds::{self, median};
use crate::service::{BATCH_LINES, ODDS, request};

const SUBSCRIBERS: usize = 5_000;
/// Number of pushes in a round, enough for several publications.
const BATCHES: usize = 100;

/// Requests that are repeated.
const KINDS: usize = 4;

/// Rates with streams open, divided by rates without.
#[derive(Debug)]
pub(super) struct Measured {
    /// Ready answers of 100 records, a mix of selections, gzip, 304.
    pub(super) requests: [f64; KINDS],
    pub(super) pushes: f64,
}

/// Alternates rounds with and without streams.
pub(super) fn measure(loaded: &LoadedService, path: &str, key: &str) -> Result<Measured> {
    let asked = Transport::Sse.request(path, &format!("x-api-key: {key}\r\n"));
    let mut number = 0;
    let mut rates = || {
        // The pushes of the last round are published: the tag stays valid.
        shell::sleep(REFRESH_TIME + Duration::from_secs(1));
        let mut answered = [0.0; KINDS];
        for (rate, requests) in answered.iter_mut().zip(kinds(loaded)?) {
            *rate = rounds::round(loaded.side(&requests))?.outcome.good_per_second();
        }
        let mut took = Duration::ZERO;
        for _ in 0..BATCHES {
            number += 1;
            let lines = loaded.market.moves(number * BATCH_LINES, BATCH_LINES, 1_000 + number);
            took += loaded.market.push(&lines)?;
        }
        let pushed = crate::float(u64::try_from(BATCHES * BATCH_LINES)?) / took.as_secs_f64();
        anyhow::Ok((answered, pushed))
    };
    let (mut answered, mut pushed) = ([const { Vec::new() }; KINDS], Vec::new());
    for _ in 0..loaded.effort.rounds {
        let alone = rates()?;
        let mut subscribers = Subscribers::open(loaded.service.address, &asked, SUBSCRIBERS)?;
        subscribers.read_for(Duration::from_secs(1))?;
        let beside = rates()?;
        for (ratios, (beside, alone)) in answered.iter_mut().zip(beside.0.iter().zip(alone.0)) {
            ratios.push(beside / alone);
        }
        pushed.push(beside.1 / alone.1);
    }
    Ok(Measured { requests: answered.map(median), pushes: median(pushed) })
}

fn kinds(loaded: &LoadedService) -> Result<[Vec<Vec<u8>>; KINDS]> {
    let hundred = loaded.answer("limit=100", "")?;
    let tag = hundred.header("etag").context("no tag")?;
    let with = |header: &str| {
        vec![request(&format!("{ODDS}?limit=100"), &format!("{}{header}\r\n", loaded.auth()))]
    };
    Ok([
        vec![loaded.ask("limit=100")],
        MIX.iter().map(|query| loaded.ask(query)).collect(),
        with("accept-encoding: gzip"),
        with(&format!("if-none-match: {tag}")),
    ])
}
