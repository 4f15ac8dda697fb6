//! A client that folds the events of a stream, and the lists it is compared with.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::Value;

use crate::harness::{TestApp, line, ndjson};
use crate::test_market::{ANN, BEA};

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) id: Option<String>,
    pub(super) data: Value,
}

/// The records known to a client, by channel, sport and id.
pub(super) type State = BTreeMap<(String, String, String), Value>;

/// A client that folds the events of a stream.
pub(super) struct Client {
    response: Response,
    held: Vec<u8>,
    /// True if it knows the freshness of each record.
    exact: bool,
    /// True if it also follows changes between publications.
    live: bool,
    /// True if it has a part of what came before its connection broke, which may be sent again.
    pub(super) broken: bool,
    pub(super) state: State,
    pub(super) cursor: String,
}

pub(super) async fn ask(app: &TestApp, key: &str, query: &str, last: Option<&str>) -> Response {
    let request = app.request(Method::GET, &format!("/v1/stream{query}"));
    let request = request.header("X-API-Key", key);
    let request = match last {
        Some(last) => request.header("Last-Event-ID", last),
        None => request,
    };
    request.send().await.unwrap()
}

impl Client {
    /// Opens a stream, and reads its first event.
    pub(super) async fn open(
        app: &TestApp,
        key: &str,
        query: &str,
        last: Option<&str>,
    ) -> (Self, Value) {
        Self::begin(ask(app, key, query, last).await).await
    }

    /// Reads the first event of a stream.
    pub(super) async fn begin(response: Response) -> (Self, Value) {
        assert_eq!(response.status(), 200, "{:?}", response.text().await);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let asks = |what| response.url().query().unwrap_or_default().contains(what);
        let (exact, live) = (asks("freshness=records"), asks("mode=live"));
        let (held, state, cursor) = (Vec::new(), State::new(), String::new());
        let mut client = Self { response, held, exact, live, broken: false, state, cursor };
        let hello = client.event().await.expect("hello");
        assert_eq!(hello.name, "hello");
        assert!(hello.data["stream"].as_str().unwrap().starts_with("str_"), "{hello:?}");
        (client, hello.data)
    }

    /// The next block of text; `None` at the end.
    pub(super) async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.held.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.held.drain(..end + 2).take(end).collect();
                return Some(String::from_utf8(block).unwrap());
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
            self.held.extend_from_slice(&chunk.expect("an event").ok()??);
        }
    }

    /// The text of everything up to the next cut, without comments.
    pub(super) async fn blocks_to_cut(&mut self) -> String {
        let mut text = String::new();
        loop {
            let block = self.block().await.expect("a cut");
            if block.starts_with(':') {
                continue;
            }
            text.push_str(&block);
            let event = Event::parse(&block);
            if event.name == "cut" {
                self.fold(&event);
                return text;
            }
        }
    }

    /// The next event, skipping comments; `None` at the end.
    pub(super) async fn event(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            if !block.starts_with(':') {
                return Some(Event::parse(&block));
            }
        }
    }

    /// Folds the events up to the cut of a publication, but at most some bytes of them, as if the connection broke
    /// then. True if that cut was among them.
    pub(super) async fn break_off(&mut self, mut bytes: usize, at: &str) -> bool {
        self.broken = true;
        loop {
            let block = self.block().await.expect("a cut");
            let Some(left) = bytes.checked_sub(block.len() + 2) else { return false };
            bytes = left;
            if block.starts_with(':') {
                continue;
            }
            let event = Event::parse(&block);
            self.fold(&event);
            if event.name == "cut" && is_publication(&[event], at) {
                return true;
            }
        }
    }
}

impl Event {
    fn parse(block: &str) -> Self {
        let field = |name: &str| {
            let mut lines = block.lines().filter_map(|line| line.strip_prefix(name));
            let value = lines.next().map(str::to_owned);
            assert_eq!(lines.next(), None, "{block}");
            value
        };
        let name = field("event: ").unwrap_or_else(|| panic!("no event in {block}"));
        let id = field("id: ");
        assert_eq!(id.is_some(), name == "cut", "{block}");
        let data = serde_json::from_str(&field("data: ").unwrap()).unwrap();
        Self { name, id, data }
    }
}

impl Client {
    /// Folds everything up to the next cut; returns the events.
    pub(super) async fn cut(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await.expect("a cut");
            let is_cut = event.name == "cut";
            self.fold(&event);
            events.push(event);
            if is_cut {
                return events;
            }
        }
    }

    /// Adds a record from an earlier answer.
    pub(super) fn hold(&mut self, channel: &str, sport: &str, row: &Value) {
        let id = row["id"].as_str().unwrap().to_owned();
        self.state.insert((channel.to_owned(), sport.to_owned(), id), seen(row, self.exact));
    }

    pub(super) fn fold(&mut self, event: &Event) {
        let data = &event.data;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (channel, sport) = (text(&data["channel"]), text(&data["sport"]));
        let key = |id: &Value| (channel.clone(), sport.clone(), text(id));
        match event.name.as_str() {
            "reset" => self.state.clear(),
            "snapshot" | "delta" => {
                let list = if event.name == "delta" { "upserts" } else { "records" };
                let rows = data[list].as_array().unwrap();
                assert!(rows.len() <= 500);
                for row in rows {
                    let id = if channel == "scores" { &row["event_id"] } else { &row["id"] };
                    self.state.insert(key(id), seen(row, self.exact));
                }
                for gone in data["removed"].as_array().into_iter().flatten() {
                    let held = self.state.remove(&key(&gone["id"]));
                    // It may have appeared and disappeared in between.
                    let may = self.broken || data["conflated"] == true;
                    assert!(held.is_some() || may, "{gone}");
                }
            }
            "cut" => {
                self.cursor = text(&data["cursor"]);
                assert_eq!(event.id.as_deref(), Some(&*self.cursor));
                assert!(self.live || data["published"] == true, "{data}");
            }
            "fresh" => {
                assert_eq!(data.get("touched").is_some(), self.exact);
                for (at, ids) in data["touched"].as_object().into_iter().flatten() {
                    for id in ids.as_array().unwrap() {
                        let held = ("odds".to_owned(), sport.clone(), text(id));
                        let held = self.state.get_mut(&held).expect("a record that is known");
                        assert!(held["last_update"].as_str().unwrap() < at.as_str());
                        held["last_update"] = at.as_str().into();
                    }
                }
            }
            other => panic!("{other} in {event:?}"),
        }
    }

    /// The last event; checks that nothing follows.
    pub(super) async fn end(&mut self) -> Value {
        loop {
            let event = self.event().await.expect("an end");
            if event.name == "end" {
                assert_eq!(self.block().await, None);
                return event.data;
            }
        }
    }
}

/// The part of a record that a client can know.
pub(super) fn seen(row: &Value, exact: bool) -> Value {
    let mut row = row.clone();
    if !exact {
        row.as_object_mut().unwrap().remove("last_update");
    }
    row
}

/// All pages of a list, as of an instant. A filter may follow the name of the list: `odds?&bookmaker=fanduel`.
pub(super) async fn pages(
    app: &TestApp,
    key: &str,
    (channel, sport): (&str, &str),
    at: &str,
    exact: bool,
) -> State {
    let mut state = State::new();
    let (list, filter) = channel.split_once('?').unwrap_or((channel, ""));
    let mut next = Some(format!("/v1/sports/{sport}/{list}?limit=500&as_of={at}{filter}"));
    while let Some(page) = next {
        let answer = app.get(&page, key).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        for row in answer.json().as_array().unwrap() {
            let id = if list == "scores" { &row["event_id"] } else { &row["id"] };
            let id = id.as_str().unwrap().to_owned();
            state.insert((list.to_owned(), sport.to_owned(), id), seen(row, exact));
        }
        next = answer.next_page();
    }
    state
}

/// Checks that a client's state equals the lists.
pub(super) async fn check(
    app: &TestApp,
    key: &str,
    client: &Client,
    lists: &[(&str, &str)],
    at: &str,
) {
    let mut all = State::new();
    for (channel, sport) in lists {
        all.extend(pages(app, key, (channel, sport), at, client.exact).await);
    }
    assert_eq!(client.state.len(), all.len());
    assert!(client.state == all, "the state differs at {at}");
}

/// True if the events end with the cut of a publication.
pub(super) fn is_publication(events: &[Event], at: &str) -> bool {
    let cut = &events.last().unwrap().data;
    cut["published"] == true && cut["at"] == at
}

pub(super) fn at_of(events: &[Event]) -> String {
    events.last().unwrap().data["at"].as_str().unwrap().to_owned()
}

pub(super) async fn opened() -> (TestApp, String, String) {
    opened_on(TestApp::start().await).await
}

pub(super) async fn opened_on(app: TestApp) -> (TestApp, String, String) {
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
    ];
    app.push_all(&feed, &lines).await;
    app.publish().await;
    (app, feed, key)
}

pub(super) async fn move_to(app: &TestApp, feed: &str, price: i32) {
    quote(app, feed, price).await;
    app.publish().await;
}

/// Pushes a price. Repeating the same price is a read without a change.
pub(super) async fn quote(app: &TestApp, feed: &str, price: i32) {
    app.push(feed, ndjson(&[line::moneyline("a", "fanduel", (ANN, price), (BEA, -155))])).await;
}

pub(super) fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}
