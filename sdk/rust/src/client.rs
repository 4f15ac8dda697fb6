//! The client of the API: one method for each operation.

use std::env;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::Cache;
use crate::clock::Clock;
use crate::error::Result;
use crate::export::ExportRequest;
use crate::http::{Http, Secret, Settings};
use crate::query::encode;
use crate::reader::{Reader, STATUS};
use crate::request::{Raw, Request};
use crate::stream::StreamRequest;
use crate::types::{
    Arbitrages, BestLines, Bookmaker, ClosingRecord, Coverage, Event, Explanation, FairLines,
    HistoryReach, Middles, OddsRecord, PricePath, ScoreRecord, ServiceStatus, SportList, Values,
};

const URL: &str = "http://127.0.0.1:8080";

/// Settings of a client; those that are not given are read from the environment.
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    url: Option<String>,
    key: Option<String>,
    cache: bool,
    settings: Settings,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key.
        text.debug_struct("ClientBuilder").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// The address of the service.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// The API key. It is sent in `X-API-Key` and nowhere else.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Whether responses are cached; the default is true.
    pub fn cache(mut self, cache: bool) -> Self {
        self.cache = cache;
        self
    }

    /// Maximum wait before a retry: if the server asks for a longer one, the call fails at once. Default: one minute.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.settings.max_wait = max_wait;
        self
    }

    /// Timeout of each step of a request. Default: 30 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// A header that is added to every request, such as `X-Sandbox-Fault`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.headers.push((name.into(), value.into()));
        self
    }

    /// Uses another clock, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    /// The address is invalid, or the key has characters that a key cannot have.
    #[expect(
        clippy::disallowed_methods,
        reason = "a client of its own, for programs without our configuration"
    )]
    pub fn build(self) -> Result<Client> {
        let url = self.url.or_else(|| env::var("LINESMAN_URL").ok());
        let url = url.filter(|url| !url.is_empty()).unwrap_or_else(|| URL.to_owned());
        let key = self.key.or_else(|| env::var("LINESMAN_KEY").ok()).unwrap_or_default();
        let http = Http::new(&url, Secret::key(&key)?, self.settings)?;
        let cache = self.cache.then(Cache::default);
        Ok(Client { reader: Arc::new(Reader { http, cache }) })
    }
}

/// A client of the API. Cloning it is cheap; the clones share connections and cached responses.
#[derive(Clone)]
pub struct Client {
    reader: Arc<Reader>,
}

impl fmt::Debug for Client {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "Client({:?})", self.reader.http.url)
    }
}

impl Client {
    /// A client for `LINESMAN_URL` (`http://127.0.0.1:8080` unless set) with the key in `LINESMAN_KEY`.
    ///
    /// # Errors
    /// As [`ClientBuilder::build`].
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// A client with other settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder { url: None, key: None, cache: true, settings: Settings::default() }
    }

    /// All sports.
    pub fn sports(&self) -> Request<SportList> {
        self.request("/v1/sports".to_owned())
    }

    /// All bookmakers.
    pub fn books(&self) -> Request<Vec<Bookmaker>> {
        self.request("/v1/books".to_owned())
    }

    /// The state of the service, and the limits of the key. Never cached.
    pub fn status(&self) -> Request<ServiceStatus> {
        self.request(STATUS.to_owned())
    }

    /// The time range for which `as_of` finds publications.
    pub fn history(&self) -> Request<HistoryReach> {
        self.request("/v1/history".to_owned())
    }

    /// The odds of a sport.
    pub fn odds(&self, sport_key: &str) -> Request<Vec<OddsRecord>> {
        self.of_sport(sport_key, "odds")
    }

    /// The state of events.
    pub fn scores(&self, sport_key: &str) -> Request<Vec<ScoreRecord>> {
        self.of_sport(sport_key, "scores")
    }

    /// The events of a sport.
    pub fn events(&self, sport_key: &str) -> Request<Vec<Event>> {
        self.of_sport(sport_key, "events")
    }

    /// One event.
    pub fn event(&self, sport_key: &str, event_id: &str) -> Request<Event> {
        self.of_sport(sport_key, &format!("events/{}", encode(event_id)))
    }

    /// The best price of every outcome, line by line.
    pub fn best(&self, sport_key: &str) -> Request<BestLines> {
        self.of_sport(sport_key, "best")
    }

    /// Prices without the bookmakers' margins, line by line.
    pub fn fair(&self, sport_key: &str) -> Request<FairLines> {
        self.of_sport(sport_key, "fair")
    }

    /// Lines whose best prices leave a profit on every outcome.
    pub fn arbitrage(&self, sport_key: &str) -> Request<Arbitrages> {
        self.of_sport(sport_key, "arbitrage")
    }

    /// Prices above the fair ones.
    pub fn ev(&self, sport_key: &str) -> Request<Values> {
        self.of_sport(sport_key, "ev")
    }

    /// Pairs of prices that can both win.
    pub fn middles(&self, sport_key: &str) -> Request<Middles> {
        self.of_sport(sport_key, "middles")
    }

    /// The number of prices of a sport, and the reasons for missing ones.
    pub fn coverage(&self, sport_key: &str) -> Request<Coverage> {
        self.of_sport(sport_key, "coverage")
    }

    /// Why each price of an event is present or missing.
    pub fn explain(&self, sport_key: &str, event_id: &str) -> Request<Explanation> {
        self.of_sport(sport_key, &format!("events/{}/explain", encode(event_id)))
    }

    /// The price history of an event: opening lines, closing lines, and every change.
    pub fn price_path(&self, sport_key: &str, event_id: &str) -> Request<Vec<PricePath>> {
        self.of_sport(sport_key, &format!("events/{}/odds/history", encode(event_id)))
    }

    /// The closing lines of events that have started.
    pub fn closing(&self, sport_key: &str) -> Request<Vec<ClosingRecord>> {
        self.of_sport(sport_key, "odds/closing")
    }

    /// The file of the archive for a table and a day (UTC) such as `2026-11-14`. It requires a key with
    /// `export:read`.
    pub fn export(&self, sport_key: &str, table: &str, date: &str) -> ExportRequest {
        let [sport, table, date] = [sport_key, table, date].map(encode);
        ExportRequest::new(&self.reader, format!("/v1/sports/{sport}/export/{table}/{date}"))
    }

    /// Changes as they are published, and the resulting state.
    pub fn stream(&self) -> StreamRequest {
        StreamRequest::new(&self.reader)
    }

    /// Any path under `/v1`, such as `["sports", "mma", "odds"]`, as bytes: for other formats, and for paths that
    /// this version does not know.
    pub fn path(&self, parts: &[&str]) -> Request<Raw> {
        let parts = parts.iter().map(|part| format!("/{}", encode(part)));
        self.request(parts.fold("/v1".to_owned(), |path, part| path + &part))
    }

    fn of_sport<B>(&self, sport_key: &str, rest: &str) -> Request<B> {
        self.request(format!("/v1/sports/{}/{rest}", encode(sport_key)))
    }

    fn request<B>(&self, path: String) -> Request<B> {
        Request::new(&self.reader, path)
    }
}
