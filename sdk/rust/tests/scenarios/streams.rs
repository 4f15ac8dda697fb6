//! Changes: streams, and lists since a cursor.

use std::collections::BTreeMap;

use linesman_client::types::{Event, Market, OddsRecord, ScoreRecord, StreamRecord};
use linesman_client::{Changes, Client, ErrorCode, StreamEvent, StreamRequest, Update};
use serde_json::{Value, json};

use crate::support::{FakeClock, Proxy, ago, told, variable};

/// A stream of three past hours: it ends by itself.
fn in_the_past(client: &Client) -> StreamRequest {
    client.stream().sports(["boxing"]).since(ago(5)).until(ago(2))
}

async fn next(changes: &mut Changes) -> Update {
    changes.next().await.unwrap().unwrap()
}

/// The cursors of the updates up to the end.
async fn rest(changes: &mut Changes) -> Vec<String> {
    let mut cursors = Vec::new();
    while let Some(update) = changes.next().await {
        cursors.push(update.unwrap().cut.cursor);
    }
    cursors
}

fn known(changes: &Changes) -> Vec<&str> {
    changes.state().odds.keys().map(String::as_str).collect()
}

pub(crate) async fn stream_folds_to_the_lists() {
    let client = Client::builder().cache(false).build().unwrap();
    let channels = ["odds", "scores", "events"];
    let past = in_the_past(&client).channels(channels).market("moneyline").freshness("records");
    let mut changes = past.open();
    let mut deltas = 0;
    while let Some(update) = changes.next().await {
        let Update { cut, events, reset, .. } = update.unwrap();
        assert!(reset.is_none() && cut.published);
        assert_eq!(changes.cursor(), Some(cut.cursor.as_str()));
        deltas += events.iter().filter(|event| matches!(event, StreamEvent::Delta(_))).count();
        let odds = client.odds("boxing").market("moneyline").as_of(&cut.at).limit(500);
        let odds = odds.all().await.unwrap().into_iter().map(|one| (one.id.clone(), one));
        assert_eq!(changes.state().odds, odds.collect::<BTreeMap<String, OddsRecord>>());
        let scores = client.scores("boxing").as_of(&cut.at).limit(500).all().await.unwrap();
        let scores = scores.into_iter().map(|one| (one.event_id.clone(), one));
        assert_eq!(changes.state().scores, scores.collect::<BTreeMap<String, ScoreRecord>>());
        let events = client.events("boxing").as_of(&cut.at).limit(500).all().await.unwrap();
        let events = events.into_iter().map(|one| (one.id.clone(), one));
        assert_eq!(changes.state().events, events.collect::<BTreeMap<String, Event>>());
    }
    assert!(deltas > 0 && !changes.state().odds.is_empty());
    // And from now on.
    let mut changes = client.stream().sports(["boxing"]).bookmaker("fanduel").heartbeat(5).open();
    let update = next(&mut changes).await;
    assert!(matches!(
        update.events.as_slice(),
        [StreamEvent::Hello(_), StreamEvent::Snapshot(_), ..]
    ));
    let odds = client.odds("boxing").bookmaker("fanduel").as_of(&update.cut.at).limit(500);
    let mut ids: Vec<String> = odds.all().await.unwrap().into_iter().map(|one| one.id).collect();
    ids.sort();
    assert_eq!(known(&changes), ids);
}

/// A response with these events.
fn answer(blocks: &[(&str, Value)]) -> Value {
    let blocks = blocks.iter().map(|(event, data)| format!("event: {event}\ndata: {data}\n\n"));
    body(&format!("retry: 2000\n{}", blocks.collect::<String>()))
}

/// A response with the media type of a stream.
fn body(text: &str) -> Value {
    json!({"status": 200, "headers": {"Content-Type": "text/event-stream"}, "body": text})
}

/// A step of the proxy's script with one more field.
fn with(mut step: Value, name: &str, value: impl Into<Value>) -> Value {
    step[name] = value.into();
    step
}

fn broken(blocks: &[(&str, Value)]) -> Value {
    with(answer(blocks), "broken", true)
}

fn hello(resumed: bool) -> (&'static str, Value) {
    let hello = json!({
        "stream": "str_1", "mode": "publication", "sports": ["mma"], "channels": ["odds"], "resumed": resumed,
        "heartbeat_s": 15, "interval_ms": 1000,
    });
    ("hello", hello)
}

fn cut(cursor: &str) -> (&'static str, Value) {
    ("cut", json!({"cursor": cursor, "at": "2026-11-14T23:38:00.000Z", "published": true}))
}

fn end(code: &str, retry_after_s: u64) -> (&'static str, Value) {
    ("end", json!({"code": code, "message": "for people", "retry_after_s": retry_after_s}))
}

fn done() -> Value {
    answer(&[hello(true), end("done", 0)])
}

fn record(id: &str) -> Value {
    json!({
        "id": id, "sport_key": "mma", "event_id": "evt_1", "bookmaker": "fanduel", "market": "moneyline",
        "format": "american", "last_update": "2026-11-14T23:38:00Z",
        "outcomes": [{"name": "A", "price": 120, "point": null}],
    })
}

fn snapshot(ids: &[&str]) -> (&'static str, Value) {
    let records: Vec<Value> = ids.iter().map(|id| record(id)).collect();
    let snapshot =
        json!({"channel": "odds", "sport": "mma", "part": 1, "parts": 1, "records": records});
    ("snapshot", snapshot)
}

/// The cursors sent with the requests; empty for none.
async fn cursors(proxy: &Proxy) -> Vec<String> {
    let cursor = |one: &Value| one["headers"]["last-event-id"].as_str().unwrap_or("").to_owned();
    proxy.requests().await.iter().map(cursor).collect()
}

pub(crate) async fn stream_resumes_after_a_lost_connection() {
    let removed = json!([{"id": "odd_1", "event_id": "evt_1", "reason": "no_prices"}]);
    let delta = json!({"channel": "odds", "sport": "mma", "upserts": [record("odd_3")], "removed": removed});
    let touched = json!({"2026-11-14T23:39:00Z": ["odd_2", "odd_unknown"]});
    let fresh = json!({"sport": "mma", "sources": [], "touched": touched});
    let proxy = Proxy::with_script(json!([
        broken(&[hello(false), snapshot(&["odd_1", "odd_2"]), cut("c1"), snapshot(&["odd_9"])]),
        {"drop": true},
        answer(&[hello(true), ("delta", delta), ("fresh", fresh), cut("c2")]),
        done(),
    ]))
    .await;
    let clock = FakeClock::new(0.5);
    let mut changes = proxy.builder(&clock).build().unwrap().stream().sports(["mma"]).open();
    let first = next(&mut changes).await;
    assert!(matches!(
        &first.events[1],
        StreamEvent::Snapshot(snapshot) if matches!(snapshot.records[0], StreamRecord::Odds(_))
    ));
    assert_eq!(known(&changes), ["odd_1", "odd_2"]);
    next(&mut changes).await;
    assert_eq!(known(&changes), ["odd_2", "odd_3"]);
    assert_eq!(changes.state().odds["odd_2"].last_update, "2026-11-14T23:39:00Z");
    // The server's `retry`, then a retry of the request.
    assert_eq!(clock.waits(), [2.0, 0.5]);
    assert!(changes.next().await.is_none());
    assert_eq!(
        (changes.cursor(), cursors(&proxy).await),
        (Some("c2"), ["", "c1", "c1", "c2"].map(str::to_owned).to_vec())
    );
    let lost = broken(&[hello(true), snapshot(&["odd_9"])]);
    let start = broken(&[hello(false), snapshot(&["odd_1"]), cut("c1")]);
    let script = json!([start, lost, lost, answer(&[hello(true), cut("c2")]), done()]);
    let proxy = Proxy::with_script(script).await;
    let mut changes = proxy.client().stream().open();
    next(&mut changes).await;
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!(*error.code(), ErrorCode::ConnectionFailed);
    assert_eq!(rest(&mut changes).await, ["c2"]);
    assert_eq!(known(&changes), ["odd_1"]);
    assert_eq!(cursors(&proxy).await, ["", "c1", "c1", "c1", "c2"]);
}

pub(crate) async fn stream_reset_is_reported() {
    let reset = ("reset", json!({"reason": "expired"}));
    let proxy = Proxy::with_script(json!([
        answer(&[hello(false), snapshot(&["odd_1", "odd_2"]), cut("c1")]),
        answer(&[hello(false), reset, snapshot(&["odd_4"]), cut("c2")]),
        done(),
    ]))
    .await;
    let mut changes = proxy.client().stream().open();
    assert!(next(&mut changes).await.reset.is_none());
    assert_eq!(next(&mut changes).await.reset.unwrap().as_str(), "expired");
    assert_eq!(known(&changes), ["odd_4"]);
    assert!(changes.next().await.is_none());
}

pub(crate) async fn stream_accepts_what_is_unknown() {
    let (novel, comment) = (("novel", json!([1])), ("", json!("no event")));
    let other = json!({"channel": "odd", "sport": "mma", "part": 1, "parts": 1, "records": [{"id": "x_1"}]});
    let blocks =
        [hello(false), novel, comment, ("snapshot", other), snapshot(&["odd_1"]), cut("c1")];
    let proxy = Proxy::with_script(json!([answer(&blocks), done()])).await;
    let mut changes = proxy.client().stream().open();
    let events = next(&mut changes).await.events;
    assert_eq!(events[1], StreamEvent::Other("novel".to_owned(), "[1]".to_owned()));
    assert_eq!(events[2], StreamEvent::Other(String::new(), "\"no event\"".to_owned()));
    assert_eq!((events.len(), known(&changes)), (5, vec!["odd_1"]));
    assert!(changes.next().await.is_none());
    let proxy = Proxy::new(json!({ "unknown": ["fields", "values"] })).await;
    let mut changes = in_the_past(&proxy.client()).open();
    let new = json!({"new": true});
    while let Some(update) = changes.next().await {
        assert_eq!(update.unwrap().cut.other["unknown_field"], new);
    }
    assert!(!changes.state().odds.is_empty());
    for record in changes.state().odds.values() {
        assert_eq!(record.market, Market::Other("unknown_value".to_owned()));
        assert_eq!(record.outcomes[0].other["unknown_field"], new);
    }
}

pub(crate) async fn stream_is_bounded() {
    let huge = |text: &str| with(body(text), "repeat", 300);
    let touched = json!({"sport": "mma", "sources": [], "touched": {"now": [1]}});
    let removed = json!({"channel": "scores", "sport": "mma", "upserts": [], "removed": [null]});
    let wrong = [
        huge(&"x".repeat(65_536)),
        huge(&format!("data: {}\n", "x".repeat(65_000))),
        body("event: cut\ndata: {}\n\n"),
        body("event: snapshot\ndata: [[[\n\n"),
        answer(&[("snapshot", json!({"channel": "odds", "records": [{"id": 1}]}))]),
        answer(&[("delta", removed)]),
        answer(&[("fresh", touched)]),
        json!({"status": 200, "body": "{}"}),
    ];
    let mut script = vec![answer(&[hello(false), snapshot(&["odd_1"]), cut("c1")])];
    script.extend(wrong.iter().cloned());
    script.extend([answer(&[hello(true), cut("c2")]), done()]);
    let proxy = Proxy::with_script(script.into()).await;
    let mut changes = proxy.client().stream().open();
    next(&mut changes).await;
    for _ in &wrong {
        let error = changes.next().await.unwrap().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::UnexpectedResponse);
    }
    assert_eq!(rest(&mut changes).await, ["c2"]);
    assert_eq!(known(&changes), ["odd_1"]);
    let mut expected = vec!["c1"; wrong.len() + 3];
    expected[0] = "";
    expected[wrong.len() + 2] = "c2";
    assert_eq!(cursors(&proxy).await, expected);
}

pub(crate) async fn stream_ends() {
    let clock = FakeClock::new(0.5);
    let proxy = Proxy::with_script(json!([
        answer(&[hello(false), end("unavailable", 3)]),
        answer(&[hello(false), snapshot(&[]), cut("c1"), end("slow", 0)]),
        done(),
    ]))
    .await;
    let mut changes = proxy.builder(&clock).build().unwrap().stream().open();
    assert_eq!(rest(&mut changes).await, ["c1"]);
    assert!(changes.next().await.is_none());
    assert_eq!(clock.waits(), [3.0, 0.5]);
    // The connection was lost before the end came.
    let lost = broken(&[hello(false), snapshot(&[]), cut("c1")]);
    let proxy = Proxy::with_script(json!([lost, {"status": 204}])).await;
    let mut changes = proxy.builder(&FakeClock::new(0.5)).build().unwrap().stream().open();
    assert_eq!(rest(&mut changes).await, ["c1"]);
    assert!(changes.next().await.is_none());
    assert_eq!(proxy.requests().await.len(), 2);
    let revoked = json!([answer(&[hello(false), end("authentication_failed", 0)])]);
    let proxy = Proxy::with_script(revoked).await;
    let mut changes = proxy.client().stream().open();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!((error.code(), error.message()), (&ErrorCode::AuthenticationFailed, "for people"));
    assert!(changes.next().await.is_none());
    assert_eq!(proxy.requests().await.len(), 1);
    // Longer than the client waits by itself; the caller decides.
    let clock = FakeClock::new(0.5);
    let closed = json!([answer(&[hello(false), end("maintenance", 61)]), done()]);
    let proxy = Proxy::with_script(closed).await;
    let mut changes = proxy.builder(&clock).build().unwrap().stream().open();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!((error.code(), error.retry_after()), (&ErrorCode::Maintenance, Some(61.0)));
    assert!(clock.waits().is_empty());
    assert!(changes.next().await.is_none());
    assert_eq!(clock.waits(), [61.0]);
    let mut changes = Client::new().unwrap().stream().sports(["chess"]).open();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!(*error.code(), ErrorCode::SportNotFound);
}

pub(crate) async fn since_brings_only_changes() {
    let client = Client::builder().cache(false).build().unwrap();
    let odds = || client.odds("boxing").market("moneyline").bookmaker("fanduel").limit(500);
    let before = odds().as_of(ago(5)).await.unwrap();
    let cursor = before.meta.cursor.unwrap();
    let mut known: BTreeMap<String, OddsRecord> =
        before.data.into_iter().map(|one| (one.id.clone(), one)).collect();
    let proxy = Proxy::new(json!({})).await;
    let quota = variable("LINESMAN_TEST_QUOTA_KEY");
    let quota = proxy.builder(&FakeClock::new(0.5)).key(quota).build().unwrap();
    let changing = quota.odds("boxing").limit(3).market("moneyline").bookmaker("fanduel");
    let delta = changing.clone().since(cursor).await.unwrap();
    assert!(!delta.data.upserts.is_empty());
    known.extend(delta.data.upserts.into_iter().map(|one| (one.id.clone(), one)));
    for gone in &delta.data.removed {
        // It may have come and gone in between.
        known.remove(&gone.id);
    }
    let now = odds().all().await.unwrap();
    assert_eq!(now.len(), known.len());
    assert!(now.iter().all(|one| known[&one.id].outcomes == one.outcomes));
    let nothing = changing.since(&delta.data.cursor).await.unwrap();
    assert!(nothing.data.upserts.is_empty() && nothing.data.removed.is_empty());
    assert_eq!(nothing.meta.requests_used, delta.meta.requests_used);
    let sent = proxy.requests().await;
    let target = sent[0]["target"].as_str().unwrap();
    assert!(target.contains("since=") && !target.contains("limit"), "{target}");
    assert_eq!(proxy.statuses().await, [Some(200), Some(204)]);
    let expired = json!({"status": 410, "body": told("cursor_expired")});
    let proxy = Proxy::with_script(json!([expired, {"status": 200, "body": "[]"}])).await;
    let scores = proxy.client().scores("mma");
    let error = scores.clone().since("A1").await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::CursorExpired);
    let error = scores.since("A1").await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::UnexpectedResponse);
}
