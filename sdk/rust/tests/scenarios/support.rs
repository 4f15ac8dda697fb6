//! Shared parts of the scenarios: proxies, and a clock that does not wait.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use data_encoding::BASE64;
use linesman_client::{Client, ClientBuilder, Clock, Error, Feed, FeedBuilder, Waiting};
use serde_json::{Value, json};

/// A variable that `cargo xtask sdk --test` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::vars_os()
        .find(|(known, _)| known == name)
        .unwrap_or_else(|| panic!("{name} is not set"))
        .1
        .into_string()
        .unwrap()
}

/// The instant `hours` before now.
pub(crate) fn ago(hours: i64) -> String {
    let then = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours);
    format!("{then:.0}")
}

/// A proxy in front of the program, created by sdk/testing/proxy.py.
pub(crate) struct Proxy {
    pub(crate) url: String,
    requests: String,
}

impl Proxy {
    pub(crate) async fn new(wanted: Value) -> Self {
        let http = reqwest::Client::new();
        let maker = format!("{}/proxies", variable("LINESMAN_TEST_PROXY"));
        let answer = http.post(maker).body(wanted.to_string()).send().await.unwrap();
        let made: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        let text = |name: &str| made[name].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        Self { url: text("url"), requests: text("requests") }
    }

    pub(crate) async fn with_script(script: Value) -> Self {
        Self::new(json!({ "script": script })).await
    }

    pub(crate) async fn with_headers(headers: Value) -> Self {
        Self::new(json!({ "headers": headers })).await
    }

    /// The requests seen so far.
    pub(crate) async fn requests(&self) -> Vec<Value> {
        let text = reqwest::get(&self.requests).await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn statuses(&self) -> Vec<Option<u64>> {
        self.requests().await.iter().map(|request| request["status"].as_u64()).collect()
    }

    /// A client that uses this proxy.
    pub(crate) fn client(&self) -> Client {
        self.builder(&FakeClock::new(0.5)).build().unwrap()
    }

    pub(crate) fn builder(&self, clock: &Arc<FakeClock>) -> ClientBuilder {
        Client::builder().url(&self.url).clock(Arc::clone(clock) as Arc<dyn Clock>)
    }

    pub(crate) fn feed(&self, clock: &Arc<FakeClock>) -> Feed {
        let builder: FeedBuilder = Feed::builder(&self.url, variable("LINESMAN_TEST_FEED_TOKEN"));
        builder.clock(Arc::clone(clock) as Arc<dyn Clock>).build().unwrap()
    }
}

/// The body of a recorded request.
pub(crate) fn body_of(request: &Value) -> Vec<u8> {
    BASE64.decode(request["body"].as_str().unwrap().as_bytes()).unwrap()
}

/// The body of an error.
pub(crate) fn told(code: &str) -> String {
    let error =
        json!({ "code": code, "message": "for people", "request_id": "req_1", "param": "limit" });
    json!({ "error": error }).to_string()
}

/// A clock that advances when the client waits or the test moves it.
#[derive(Debug)]
pub(crate) struct FakeClock {
    chance: f64,
    state: Mutex<(Duration, Vec<f64>)>,
}

impl FakeClock {
    pub(crate) fn new(chance: f64) -> Arc<Self> {
        Arc::new(Self { chance, state: Mutex::new((Duration::from_secs(1000), Vec::new())) })
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.state.lock().unwrap().0 += Duration::from_secs(seconds);
    }

    /// The durations of all waits.
    pub(crate) fn waits(&self) -> Vec<f64> {
        self.state.lock().unwrap().1.clone()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        self.state.lock().unwrap().0
    }

    fn sleep(&self, time: Duration) -> Waiting {
        let mut state = self.state.lock().unwrap();
        state.0 += time;
        state.1.push(time.as_secs_f64());
        Box::pin(ready(()))
    }

    fn random(&self) -> f64 {
        self.chance
    }
}

/// All visible representations of an error.
pub(crate) fn shown(error: &Error) -> [String; 2] {
    [error.to_string(), format!("{error:?}")]
}
