//! Pushes and streams.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use linesman_client::types::{OddsRecord, StreamRecord};
use linesman_client::{Client, ErrorCode, StreamEvent, Update};
use serde_json::{Value, json};

use crate::support::{FakeClock, Proxy, body_of, told};

fn heartbeat() -> Value {
    json!({"type": "heartbeat", "bookmaker": "fanduel", "sport": "mma"})
}

pub(crate) async fn push_counts_lines_of_whole_input() {
    let proxy = Proxy::new(json!({})).await;
    let feed = proxy.feed(&FakeClock::new(0.5));
    // Three messages are refused: the 7th, the first of the second body and the last.
    let wrong = [7, 5_001, 12_000];
    let messages = (1..=12_000_u64).map(|number| match wrong.contains(&number) {
        true => json!({"type": "unheard_of"}),
        false => heartbeat(),
    });
    let receipt = feed.push(messages).await.unwrap();
    assert_eq!(receipt.accepted + receipt.unchanged + receipt.superseded, 11_997);
    assert_eq!(receipt.rejected_total, 3);
    let lines: Vec<u64> = receipt.rejected.iter().map(|line| line.line).collect();
    assert_eq!(lines, wrong);
    let mut counts = Vec::new();
    for request in proxy.requests().await {
        assert_eq!(request["headers"]["content-encoding"], "gzip");
        let mut text = String::new();
        GzDecoder::new(body_of(&request).as_slice()).read_to_string(&mut text).unwrap();
        counts.push(text.lines().count());
    }
    assert_eq!(counts, [5_000, 5_000, 2_000]);
    // Long messages: 4 MiB are the bound, and one that is longer is refused here.
    let long = |letters: usize| json!({"type": "x", "text": "é".repeat(letters)});
    let receipt = feed.push([long(1 << 20), long(1 << 20), long(1 << 20), long(1 << 22)]).await;
    let lines: Vec<u64> = receipt.unwrap().rejected.iter().map(|line| line.line).collect();
    assert_eq!((lines, proxy.requests().await.len()), (vec![1, 2, 3, 4], 6));
}

pub(crate) async fn push_retries_unavailable() {
    let clock = FakeClock::new(0.0);
    let unavailable =
        json!({"status": 503, "headers": {"Retry-After": "7"}, "body": told("unavailable")});
    let proxy = Proxy::with_script(json!([unavailable])).await;
    let receipt = proxy.feed(&clock).push([heartbeat()]).await.unwrap();
    assert_eq!((receipt.rejected_total, clock.waits()), (0, vec![7.0]));
    assert_eq!(proxy.statuses().await, [Some(503), Some(200)]);
    // The second body fails for good: the error has the receipt of the first.
    let paused = json!([{}, {"status": 409, "body": told("feed_paused")}]);
    let proxy = Proxy::with_script(paused).await;
    let messages = (0..5_001).map(|_| heartbeat());
    let error = proxy.feed(&clock).push(messages).await.unwrap_err();
    let receipt = error.receipt().unwrap();
    assert_eq!(*error.code(), ErrorCode::FeedPaused);
    assert_eq!(receipt.accepted + receipt.unchanged, 5_000);
}

pub(crate) async fn stream_folds_to_the_lists() {
    let client = Client::builder().cache(false).build().unwrap();
    let mut changes = client
        .stream()
        .sports(["boxing"])
        .channels(["odds", "scores", "events"])
        .market("moneyline")
        .heartbeat(5)
        .open();
    let update = changes.next().await.unwrap().unwrap();
    assert!(update.reset.is_none() && update.cut.published);
    assert_eq!(changes.cursor(), Some(update.cut.cursor.as_str()));
    let at = &update.cut.at;
    let odds = client.odds("boxing").market("moneyline").as_of(at).limit(500).all().await.unwrap();
    let by_id = |records: Vec<OddsRecord>| -> BTreeMap<String, OddsRecord> {
        records.into_iter().map(|record| (record.id.clone(), record)).collect()
    };
    assert!(!odds.is_empty());
    assert_eq!(changes.state().odds, by_id(odds));
    let scores = client.scores("boxing").as_of(at).limit(500).all().await.unwrap();
    assert!(
        scores.iter().eq(scores.iter().filter_map(|one| changes.state().scores.get(&one.event_id)))
    );
    assert_eq!(changes.state().scores.len(), scores.len());
    let events = client.events("boxing").as_of(at).limit(500).all().await.unwrap();
    assert_eq!(changes.state().events.len(), events.len());
    let error = client.stream().sports(["chess"]).open().next().await.unwrap().unwrap_err();
    assert_eq!(*error.code(), ErrorCode::SportNotFound);
}

/// A response with these events.
fn events(blocks: &[(&str, Value)]) -> Value {
    let blocks = blocks.iter().map(|(event, data)| format!("event: {event}\ndata: {data}\n\n"));
    let body = format!("retry: 2000\n{}", blocks.collect::<String>());
    json!({"status": 200, "headers": {"Content-Type": "text/event-stream"}, "body": body})
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

fn record(id: &str, price: i64) -> Value {
    json!({
        "id": id, "sport_key": "mma", "event_id": "evt_1", "bookmaker": "fanduel", "market": "moneyline",
        "format": "american", "last_update": "2026-11-14T23:38:00Z",
        "outcomes": [{"name": "A", "price": price, "point": null}],
    })
}

fn snapshot(records: &[Value]) -> (&'static str, Value) {
    let snapshot =
        json!({"channel": "odds", "sport": "mma", "part": 1, "parts": 1, "records": records});
    ("snapshot", snapshot)
}

pub(crate) async fn stream_goes_on_after_a_lost_connection() {
    let removed = json!([{"id": "odd_1", "event_id": "evt_1", "reason": "no_prices"}]);
    let delta = json!({
        "channel": "odds", "sport": "mma", "upserts": [record("odd_2", 130), record("odd_3", 140)],
        "removed": removed,
    });
    let ending = json!({"code": "unavailable", "message": "restarts", "retry_after_s": 3});
    let done = json!({"code": "done", "message": "until", "retry_after_s": 0});
    let script = json!([
        // Lost after a cut and half an update, which comes again.
        events(&[
            hello(false),
            snapshot(&[record("odd_1", 110), record("odd_2", 120)]),
            cut("c1"),
            snapshot(&[record("odd_9", 900)]),
        ]),
        {"drop": true},
        events(&[hello(true), ("delta", delta), ("novel", json!(1)), cut("c2"), ("end", ending)]),
        events(&[hello(false), ("reset", json!({"reason": "expired"})), snapshot(&[record("odd_4", 150)]), cut("c3")]),
        events(&[hello(true), ("end", done)]),
    ]);
    let proxy = Proxy::with_script(script).await;
    let clock = FakeClock::new(0.5);
    let client = proxy.builder(&clock).build().unwrap();
    let mut changes = client.stream().sports(["mma"]).open();
    let known = |changes: &linesman_client::Changes| -> Vec<String> {
        changes.state().odds.keys().cloned().collect()
    };
    let first: Update = changes.next().await.unwrap().unwrap();
    assert!(
        matches!(&first.events[1], StreamEvent::Snapshot(snapshot) if matches!(snapshot.records[0], StreamRecord::Odds(_)))
    );
    assert_eq!(known(&changes), ["odd_1", "odd_2"]);
    let second = changes.next().await.unwrap().unwrap();
    assert_eq!(known(&changes), ["odd_2", "odd_3"]);
    assert_eq!(second.events[2], StreamEvent::Other("novel".to_owned(), "1".to_owned()));
    // The server's `retry`, then a retry of the request.
    assert_eq!(clock.waits(), [2.0, 0.5]);
    let third = changes.next().await.unwrap().unwrap();
    assert_eq!(third.reset.unwrap().as_str(), "expired");
    assert_eq!(known(&changes), ["odd_4"]);
    assert!(changes.next().await.is_none(), "`done` ends it");
    assert_eq!(clock.waits(), [2.0, 0.5, 3.0, 2.0]);
    let sent = proxy.requests().await;
    let cursors: Vec<&Value> = sent.iter().map(|one| &one["headers"]["last-event-id"]).collect();
    assert_eq!(cursors, [&Value::Null, &json!("c1"), &json!("c1"), &json!("c2"), &json!("c3")]);
    // What the caller must know ends it.
    let revoked =
        json!({"code": "authentication_failed", "message": "revoked", "retry_after_s": 0});
    let proxy = Proxy::with_script(json!([events(&[hello(false), ("end", revoked)])])).await;
    let mut changes = proxy.client().stream().open();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!(*error.code(), ErrorCode::AuthenticationFailed);
    assert!(changes.next().await.is_none());
}
