//! Many clients with distinct selections.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::subscribers::{Subscribers, Transport, now_ms};
use crate::rounds::median;
use crate::service::{Market, Service, Setup, get};

const SUBSCRIBERS: usize = 10_000;
/// Records of the market: 150 events of tennis have 11,175 pairs.
const RECORDS: usize = 45_000;
const CHANGES: usize = 2_000;
pub(super) const INTERVAL: &str = "10s";
const INTERVAL_MS: u128 = 10_000;

/// Seconds from a publication with 2,000 changed records to the last delivery, to 10,000 clients that each follow two
/// events.
pub(super) fn last_delivery(setup: &Setup, rounds: usize) -> Result<f64> {
    let service = Service::start(setup)?;
    let key = service.make_stream_key(2 * SUBSCRIBERS)?;
    let market = Market::fill(&service, &key, RECORDS)?;
    let headers = format!("x-api-key: {key}\r\n");
    let requests = requests(&service, &headers)?;
    let mut subscribers = Subscribers::open_each(service.address, &requests)?;
    let (mut times, mut round) = (Vec::new(), 0);
    while round < rounds {
        // In the first half of an interval.
        let wait = INTERVAL_MS - now_ms() % INTERVAL_MS + INTERVAL_MS / 10;
        subscribers.read_for(Duration::from_millis(u64::try_from(wait)?))?;
        round += 1;
        let step = RECORDS / CHANGES;
        let changes =
            (0..CHANGES).flat_map(|at| market.moves(at * step + round % 3, 1, 1_000 + round));
        market.push(&changes.collect::<Vec<_>>())?;
        let before = subscribers.read;
        let left = INTERVAL_MS - now_ms() % INTERVAL_MS + INTERVAL_MS / 2;
        subscribers.read_for(Duration::from_millis(u64::try_from(left)?))?;
        ensure!(
            subscribers.read - before > SUBSCRIBERS * 1_000,
            "changes did not reach all clients"
        );
        times.push(crate::float(u64::try_from(subscribers.last_ms % INTERVAL_MS)?) / 1e3);
    }
    Ok(median(times))
}

/// One request for each pair of events.
fn requests(service: &Service, headers: &str) -> Result<Vec<Vec<u8>>> {
    let path = "/v1/sports/tennis/events?limit=500";
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..300 {
        let listed = get(service.address, path, headers)?;
        let listed: Vec<Value> = serde_json::from_slice(&listed.body)?;
        let id = |event: &Value| event.get("id").and_then(Value::as_str).map(str::to_owned);
        ids = listed.iter().filter_map(id).collect();
        if ids.len() >= 150 {
            break;
        }
        shell::sleep(Duration::from_millis(100));
    }
    let pairs = ids
        .iter()
        .enumerate()
        .flat_map(|(at, one)| ids.iter().skip(at + 1).map(move |other| (one, other)));
    let requests: Vec<Vec<u8>> = pairs
        .take(SUBSCRIBERS)
        .map(|(one, other)| {
            let path = format!(
                "/v1/stream?sports=tennis&event_ids={one},{other}&freshness=none&heartbeat=60"
            );
            Transport::Sse.request(&path, headers)
        })
        .collect();
    ensure!(requests.len() == SUBSCRIBERS, "the market has too few events: {}", ids.len());
    Ok(requests)
}
