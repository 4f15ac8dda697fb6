//! Many clients that reconnect at the same moment.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::subscribers::{Subscribers, Transport};
use crate::service::{Service, Setup};

const SUBSCRIBERS: usize = 10_000;

/// Seconds until 10,000 clients have read up to their first cut, after the service was stopped and started.
pub(super) fn resume(service: Service, setup: &Setup, (path, key): (&str, &str)) -> Result<f64> {
    let headers = format!("x-api-key: {key}\r\n");
    let asked = Transport::Sse.request(path, &headers);
    let cursor = {
        let mut one = Subscribers::open(service.address, &asked, 1)?;
        let mut text = String::new();
        one.look_for(Duration::from_secs(2), |_, read| {
            text.push_str(&String::from_utf8_lossy(read));
        })?;
        let id = text.rsplit("\nid: ").next().and_then(|rest| rest.lines().next());
        id.context("a stream has no cursor")?.to_owned()
    };
    let mut subscribers = Subscribers::open(service.address, &asked, SUBSCRIBERS)?;
    subscribers.read_for(Duration::from_secs(3))?;
    service.stop()?;
    drop(subscribers);
    let service = Service::start(setup)?;
    let headers = format!("{headers}last-event-id: {cursor}\r\n");
    let asked = Transport::Sse.request(path, &headers);
    let begun = Instant::now();
    Subscribers::open_at_once(service.address, &asked, SUBSCRIBERS, "event: cut\n")?;
    Ok(begun.elapsed().as_secs_f64())
}
