//! Ends of streams that their clients did not close (S2, S13, S14).

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use accounts::{Actor, KeyKind, Maintenance};
use api::v1::stream::StreamSettings;
use domain::Timestamp;
use serde_json::json;

use super::client::{Client, PATIENCE, at_of, move_to, names, opened};
use super::websocket::{self, upgrade};
use crate::harness::{Raw, TestApp, line, unlimited, wait_for};

/// More than the first event, so that the snapshot is partly sent.
const STALLED_BYTES: u64 = 16 << 10;
const EVERYTHING: &str = "/v1/stream?channels=odds,scores,events";

pub(super) fn text(at: Timestamp) -> String {
    String::from_utf8(at.millis_text().to_vec()).unwrap()
}

async fn ended(app: &TestApp, code: &str) -> u64 {
    sum(app, "linesman_stream_ended_total{", &format!("code=\"{code}\"}}")).await
}

/// The sum of a metric over all streams.
async fn sum(app: &TestApp, name: &str, label: &str) -> u64 {
    let metrics = app.get_operator("/metrics").await;
    let lines = metrics.text().lines();
    let lines = lines.filter(|line| line.starts_with(name) && line.contains(label));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Waits until nothing more is sent to a client that reads nothing.
async fn stall(app: &TestApp, before: u64) {
    let (begun, mut last, mut same) = (Instant::now(), before, 0);
    // Once its snapshot is made, the service continues to send it until it cannot.
    while same < 10 || last < before + STALLED_BYTES {
        assert!(begun.elapsed() < PATIENCE, "{last} bytes after {before}");
        let sent = sum(app, "linesman_stream_bytes_total{", "").await;
        same = if sent == last { same + 1 } else { 0 };
        last = sent;
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_last_publication_up_to_its_end() {
    let (app, feed, key) = opened().await;
    let until = app.now().plus(app.refresh_interval);
    let query = format!("?sports=mma&until={}", text(until));
    let (mut client, _) = Client::open(&app, &key, &query, None).await;
    client.cut().await;
    move_to(&app, &feed, 140).await;
    let events = client.cut().await;
    assert_eq!((names(&events), at_of(&events)), (vec!["delta", "fresh", "cut"], text(until)));
    let end = client.end().await;
    assert_eq!((&end["code"], &end["retry_after_s"]), (&json!("done"), &json!(0)));
    assert_eq!(ended(&app, "done").await, 1);
}

#[tokio::test]
async fn a_stream_of_the_past_ends_there_and_nothing_later_is_in_it() {
    let (app, feed, key) = opened().await;
    let begun = app.now();
    let (mut live, _) = Client::open(&app, &key, "?sports=mma", None).await;
    live.cut().await;
    let first = live.cursor.clone();
    let mut middle = (begun, live.state.clone(), String::new());
    for price in [140, 150, 160, 170] {
        move_to(&app, &feed, price).await;
        live.cut().await;
        if price == 150 {
            middle = (app.now(), live.state.clone(), live.cursor.clone());
        }
    }
    let (until, state, cursor) = middle;
    // Between two publications, the earlier one is the last.
    let until = text(until.plus(Duration::from_secs(1)));
    for since in [first, text(begun)] {
        let query = format!("?sports=mma&since={since}&until={until}");
        let (mut past, _) = Client::open(&app, &key, &query, None).await;
        past.state.clone_from(&live.state);
        while past.cursor != cursor {
            past.cut().await;
        }
        assert_eq!(past.state, state);
        assert_eq!(past.end().await["code"], "done");
    }
    // After the end there is nothing, and before history there is no end.
    let query = format!("?sports=mma&since={}&until={until}", live.cursor);
    let (mut behind, hello) = Client::open(&app, &key, &query, None).await;
    assert_eq!((&hello["resumed"], &behind.end().await["code"]), (&json!(true), &json!("done")));
    let query = "/v1/stream?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z";
    assert_eq!(app.get(query, &key).await.refusal(), (404, "not_in_history".to_owned()));
}

#[tokio::test]
async fn a_client_that_reads_nothing_for_a_minute_is_counted_as_slow() {
    let app = TestApp::builder().sandbox(7).start().await;
    app.publish_both().await;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let mut raw = Raw::connect_narrow(app.addr).await;
    let request = format!("GET {EVERYTHING} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    raw.send(request.as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    let begun = Instant::now();
    while ended(&app, "slow").await == 0 {
        assert!(begun.elapsed() < PATIENCE, "never given up");
        // Sooner or later more than the socket buffers of both sides hold.
        app.publish_both().await;
        tokio::time::pause();
        tokio::time::sleep(Duration::from_secs(10)).await;
        tokio::time::resume();
    }
    assert_eq!((ended(&app, "slow").await, ended(&app, "closed").await), (1, 0));
}

/// Reading the bytes sent at once takes longer than a minute, but always makes progress.
#[tokio::test]
async fn a_client_that_is_slow_to_read_is_not_one_that_does_not() {
    let (app, feed, key) = opened().await;
    for n in 0..28 {
        let (reference, day) = (format!("t-{n}"), n + 1);
        let mut tournament = line::tournament(&reference, &format!("Open of Harbour {n}"));
        tournament["commence_time"] = json!(format!("2026-12-{day:02}T03:00:00Z"));
        let outcomes =
            (0..300).map(|n| json!({ "name": format!("Max Moor{n}"), "price": 900 + n }));
        let outcomes = outcomes.collect::<Vec<_>>().into();
        let odds = line::odds(&reference, "fanduel", "outright", "american", &outcomes);
        app.push_all(&feed, &[tournament, odds]).await;
    }
    app.publish().await;
    let mut raw = Raw::connect_narrow(app.addr).await;
    let request =
        format!("GET /v1/stream?sports=golf HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    raw.send(request.as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    raw.read_exactly(16 << 10).await.expect("a hello");
    for _ in 0..4 {
        // More than the socket buffers of both sides hold.
        let read = raw.read_exactly(80 << 10).await.expect("more of the snapshot");
        assert!(!read.windows(7).any(|text| text == b"\nevent:"), "the snapshot has ended");
        pass(25).await;
    }
    assert_eq!((ended(&app, "slow").await, all_open(&app).await), (0, 1));
    // The socket may have accepted some more since, and each time the minute starts again.
    let mut minutes = 0;
    while ended(&app, "slow").await == 0 {
        minutes += 1;
        assert!(minutes < 10, "it reads nothing, and is not ended");
        pass(70).await;
    }
    assert_eq!((ended(&app, "slow").await, all_open(&app).await), (1, 0));
}

/// Advances the time by some seconds.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// A client that reads nothing after the head of its answer.
async fn stalled(app: &TestApp, key: &str, lines: &str) -> Raw {
    let before = sum(app, "linesman_stream_bytes_total{", "").await;
    let mut raw = Raw::connect_narrow(app.addr).await;
    let request =
        format!("GET {EVERYTHING} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n{lines}\r\n");
    raw.send(request.as_bytes()).await;
    assert!(matches!(raw.read_answer().await.unwrap().status, 200 | 101));
    stall(app, before).await;
    raw
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_before_the_call_that_ends_its_key_returns() {
    let app = TestApp::builder().sandbox(7).start().await;
    app.publish_both().await;
    let accounts = &app.service.api.accounts;
    for lines in ["", &upgrade()] {
        let key = app.key(unlimited(KeyKind::Sandbox)).await;
        let mut raw = stalled(&app, &key, lines).await;
        assert_eq!(all_open(&app).await, 1);
        accounts.revoke_key(&key, &Actor::command_line()).await.unwrap();
        assert_eq!(all_open(&app).await, 0, "the call has returned");
        let end = raw.read_to_end().await.map(|read| read.len());
        assert_eq!(end.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    }
    assert_eq!(ended(&app, "authentication_failed").await, 2);
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let mut raw = stalled(&app, &key, "").await;
    let closed = Maintenance::On { retry_after_s: 77 };
    accounts.set_maintenance(closed, &Actor::command_line()).await.unwrap();
    assert_eq!((all_open(&app).await, ended(&app, "maintenance").await), (0, 1));
    assert!(raw.read_to_end().await.is_err());
}

/// Every such call, not only the first one, which has marked the key as ended.
#[tokio::test]
async fn every_call_that_ends_a_key_returns_when_its_streams_have_ended() {
    let app = TestApp::builder().sandbox(7).start().await;
    app.publish_both().await;
    let accounts = &app.service.api.accounts;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let _raw = stalled(&app, &key, "").await;
    assert_eq!(all_open(&app).await, 1);
    let revoke = async || {
        accounts.revoke_key(&key, &Actor::command_line()).await.unwrap();
        assert_eq!(all_open(&app).await, 0, "the call has returned");
    };
    let reload = async {
        let ended = || accounts.keys.authenticate(key.as_bytes(), app.now()).is_err();
        wait_for("the end of the key", ended).await;
        accounts.reload().await.unwrap();
        assert_eq!(all_open(&app).await, 0, "what is in the store holds");
    };
    tokio::join!(revoke(), revoke(), reload);
}

/// S14: over both transports, before the call returns that has the service read the change.
#[tokio::test]
async fn streams_of_sports_or_data_that_a_key_may_no_longer_read_end_as_forbidden() {
    let (app, feed, key) = opened().await;
    let (mut bouts, _) = Client::open(&app, &key, "?sports=mma", None).await;
    let (mut golf, _) = Client::open(&app, &key, "?sports=golf", None).await;
    let mut socket = websocket::open(&app, &key, "?sports=mma").await;
    bouts.cut().await;
    golf.cut().await;
    websocket::up_to_cut(&mut socket).await;
    let accounts = &app.service.api.accounts;
    app.sql("UPDATE api_key SET sport_groups = 'golf', change_number = NULL").await;
    accounts.reload().await.unwrap();
    assert_eq!(all_open(&app).await, 1, "the call has returned");
    move_to(&app, &feed, 140).await;
    let last = [bouts.event().await.unwrap(), websocket::event(&mut socket).await];
    for end in last {
        assert_eq!((end.name.as_str(), &end.data["code"]), ("end", &json!("forbidden")));
    }
    assert_eq!(websocket::closed_with(&mut socket).await, 4403);
    // A stream of what it may still read goes on.
    golf.cut().await;
    app.sql("UPDATE api_key SET permissions = '', change_number = NULL").await;
    accounts.reload().await.unwrap();
    assert_eq!((all_open(&app).await, ended(&app, "forbidden").await), (0, 3));
    let end = golf.event().await.unwrap();
    assert_eq!((end.name.as_str(), &end.data["code"]), ("end", &json!("forbidden")));
    for path in ["/v1/stream?sports=golf", "/v1/sports/golf/odds"] {
        assert_eq!(app.get(path, &key).await.refusal(), (403, "forbidden".to_owned()), "{path}");
    }
    assert_eq!(app.get("/v1/books", &key).await.status, 200, "it is still a key");
}

/// S10: unread events are dropped if other streams need the memory.
#[tokio::test]
async fn clients_that_do_not_read_take_no_memory_from_those_that_do() {
    let settings = StreamSettings { memory_max: 64 << 10, ..StreamSettings::default() };
    let app = TestApp::builder().sandbox(7).streams(settings).start().await;
    app.publish_both().await;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let (mut reads, _) = Client::open(&app, &key, "?sports=mma", None).await;
    reads.cut().await;
    let mut unread = [stalled(&app, &key, "").await, stalled(&app, &key, &upgrade()).await];
    for _ in 0..3 {
        app.publish_both().await;
        reads.cut().await;
    }
    let (mut new, _) = Client::open(&app, &key, "?sports=tennis", None).await;
    new.cut().await;
    for raw in &mut unread {
        let rest = raw.read_to_end().await.unwrap();
        let end = String::from_utf8_lossy(&rest[rest.len().saturating_sub(1000)..]).into_owned();
        assert!(end.contains("\"code\":\"slow\""), "{end}");
    }
    let begun = Instant::now();
    while ended(&app, "slow").await < 2 {
        assert!(begun.elapsed() < PATIENCE, "not counted");
    }
    assert_eq!(ended(&app, "unavailable").await, 0);
}

pub(super) async fn all_open(app: &TestApp) -> u64 {
    sum(app, "linesman_stream_open{", "").await
}

#[tokio::test]
async fn a_stream_of_http_2_that_is_not_read_ends_with_its_key_and_its_connection_stays() {
    let app = TestApp::builder().sandbox(7).start().await;
    app.publish_both().await;
    let (key, other) =
        (app.key(unlimited(KeyKind::Sandbox)).await, app.key(unlimited(KeyKind::Sandbox)).await);
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
    let http2 = http2.http2_initial_stream_window_size(1 << 16).build().unwrap();
    let ask = async |key: &str, target: &str| {
        let url = format!("http://{}{target}", app.addr);
        http2.get(url).header("X-API-Key", key).send().await.unwrap()
    };
    let (mut stays, _) = Client::begin(ask(&other, "/v1/stream?sports=mma").await).await;
    stays.cut().await;
    let before = sum(&app, "linesman_stream_bytes_total{", "").await;
    let mut unread = ask(&key, EVERYTHING).await;
    stall(&app, before).await;
    assert_eq!(all_open(&app).await, 2);
    app.service.api.accounts.revoke_key(&key, &Actor::command_line()).await.unwrap();
    assert_eq!(all_open(&app).await, 1, "the call has returned");
    app.publish_both().await;
    stays.cut().await;
    let reading = async {
        loop {
            match unread.chunk().await {
                Ok(chunk) => assert!(chunk.is_some(), "an end that was never sent"),
                Err(_) => return,
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("a reset");
}

/// Nothing is published and no heartbeat is due for a minute.
#[tokio::test]
async fn streams_of_a_rotated_key_end_at_the_end_of_its_overlap() {
    let (app, _, key) = opened().await;
    let until = text(app.now().plus(Duration::from_secs(3600)));
    // One waits in a group, the other alone.
    let (mut one, _) = Client::open(&app, &key, "?sports=mma&heartbeat=60", None).await;
    let query = format!("?sports=mma&heartbeat=60&until={until}");
    let (mut other, _) = Client::open(&app, &key, &query, None).await;
    for client in [&mut one, &mut other] {
        client.cut().await;
    }
    let overlap = Some(Duration::from_secs(1));
    app.service.api.accounts.rotate_key(&key, overlap, &Actor::command_line()).await.unwrap();
    // They were notified of it, and the key is still valid.
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    assert_eq!(all_open(&app).await, 2);
    app.advance(Duration::from_secs(1));
    for client in [&mut one, &mut other] {
        let end = tokio::time::timeout(Duration::from_secs(30), client.end()).await;
        assert_eq!(end.expect("long before a comment is due")["code"], "authentication_failed");
    }
}
