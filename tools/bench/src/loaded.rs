//! A service with a full market, and the requests to it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::Effort;
use super::load::Plan;
use super::nginx::Nginx;
use super::rounds::{self, Comparison, Side};
use super::service::{self, Answer, Market, ODDS, Service, Setup, get, request};
use super::wrk::{self, Target};

/// Enough connections to saturate a core.
pub(super) const CONNECTIONS: usize = 64;
/// Publication interval of the market under test: short enough to measure first answers, long enough not to distort
/// the others.
pub(super) const REFRESH: &str = "10s";
pub(super) const REFRESH_TIME: Duration = Duration::from_secs(10);
/// The largest `limit` of odds.
pub(super) const ODDS_MAX: usize = 500;
/// A service with a market, and a key to it.
#[derive(Debug)]
pub(super) struct LoadedService {
    pub(super) service: Service,
    pub(super) setup: Setup,
    pub(super) market: Market,
    pub(super) key: String,
    pub(super) effort: Effort,
    /// Memory in use before the market was filled.
    pub(super) empty_bytes: u64,
    pub(super) folder: TempDir,
}

impl LoadedService {
    pub(super) fn start(program: &Path, records: usize, effort: Effort) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let setup = service::setup(program, folder.path(), REFRESH)?;
        let service = Service::start(&setup)?;
        let key = service.make_keys(1)?.pop().context("no key")?;
        let empty_bytes = shell::resident_bytes(service.pid())?;
        let market = Market::fill(&service, &key, records)?;
        shell::sleep(REFRESH_TIME + Duration::from_secs(1));
        Ok(Self { service, setup, market, key, effort, empty_bytes, folder })
    }

    pub(super) fn auth(&self) -> String {
        format!("x-api-key: {}\r\n", self.key)
    }

    pub(super) fn ask(&self, query: &str) -> Vec<u8> {
        request(&format!("{ODDS}?{query}"), &self.auth())
    }

    pub(super) fn answer(&self, query: &str, headers: &str) -> Result<Answer> {
        let answer =
            get(self.service.address, &format!("{ODDS}?{query}"), &(self.auth() + headers))?;
        ensure!(answer.status == 200, "{query}: {} {}", answer.status, answer.head);
        Ok(answer)
    }

    pub(super) fn side<'a>(&self, requests: &'a [Vec<u8>]) -> Side<'a> {
        let plan = Plan {
            to: self.service.address,
            requests,
            connections: CONNECTIONS,
            time: Duration::from_secs_f64(self.effort.seconds),
            rate: None,
            first: 0,
        };
        Side { plan, pid: self.service.pid() }
    }

    /// The ratio to nginx for a hundred records, measured by wrk.
    pub(super) fn wrk_ratio(&self, body: &Answer) -> Result<f64> {
        let folder = tempfile::tempdir_in(self.folder.path())?;
        let nginx = Nginx::start(folder.path(), &[body])?;
        let path = format!("{ODDS}?limit=100");
        let service = Target { at: self.service.address, path: &path, pid: self.service.pid() };
        let measure = Target { at: nginx.address, path: "/0", pid: nginx.pid() };
        wrk::cpu_ratio(folder.path(), &self.key, service, measure)
    }

    /// Compares requests with nginx serving bodies of the same bytes.
    pub(super) fn compare(
        &self,
        requests: &[Vec<u8>],
        bodies: &[&Answer],
        headers: &str,
    ) -> Result<Comparison> {
        let folder = tempfile::tempdir_in(self.folder.path())?;
        let nginx = Nginx::start(folder.path(), bodies)?;
        let mut asked = Vec::new();
        for number in 0..bodies.len() {
            // Both receive the same request headers.
            let headers = match headers {
                NOT_MODIFIED => {
                    let tag = get(nginx.address, &format!("/{number}"), "")?;
                    let tag = tag.header("etag").context("nginx sends no tag")?.to_owned();
                    format!("{}if-none-match: {tag}\r\n", self.auth())
                }
                headers => self.auth() + headers,
            };
            asked.push(request(&format!("/{number}"), &headers));
        }
        let ours = self.side(requests);
        let plan = Plan { to: nginx.address, requests: &asked, ..ours.plan };
        rounds::compare(ours, Side { plan, pid: nginx.pid() }, self.effort.rounds)
    }
}

/// Marker for `if-none-match` with nginx's own tag.
pub(super) const NOT_MODIFIED: &str = "not modified";

/// More than can be requested in an epoch.
const DISTINCT_MAX: usize = 600_000;
/// Number of events combined in requests: as many as there were when the bar was set.
pub(super) const EVENTS: usize = 80;
/// Far more than the processor's caches hold.
pub(super) const EVENTS_MANY: usize = 500;

/// Distinct requests for about a hundred records each.
pub(super) fn distinct_requests(at: SocketAddr, auth: &str, events: usize) -> Result<Vec<Vec<u8>>> {
    let path = format!("/v1/sports/tennis/events?limit={events}");
    let listed = get(at, &path, auth)?;
    let listed: Vec<Value> = serde_json::from_slice(&listed.body)?;
    let id = |event: &Value| event.get("id").and_then(Value::as_str).map(str::to_owned);
    let ids: Vec<String> = listed.iter().filter_map(id).collect();
    let pairs = ids.iter().enumerate().flat_map(|(at, one)| {
        ids.iter().enumerate().skip(at + 1).map(move |(next, other)| (next, one, other))
    });
    let triples = pairs.flat_map(|(next, one, other)| {
        ids.iter().skip(next + 1).map(move |third| (one, other, third))
    });
    // Fewer events give fewer combinations, but a slightly different limit gives another answer, too.
    let asked = (93..=100).rev().flat_map(|limit| {
        // Spread out like real requests: the third id changes with every request.
        triples.clone().map(move |(one, other, third)| {
            let query = format!("event_ids={third},{other},{one}&limit={limit}");
            request(&format!("{ODDS}?{query}"), auth)
        })
    });
    Ok(asked.take(DISTINCT_MAX).collect())
}
