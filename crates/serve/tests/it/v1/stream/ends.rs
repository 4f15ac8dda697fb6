//! How streams end that nobody closes (S2, S13).

use std::time::{Duration, Instant};

use accounts::KeyKind;
use domain::Timestamp;
use serde_json::json;

use super::client::{Client, PATIENCE, at_of, move_to, names, opened};
use crate::harness::{Raw, TestApp, unlimited};

fn text(at: Timestamp) -> String {
    String::from_utf8(at.millis_text().to_vec()).unwrap()
}

async fn ended(app: &TestApp, code: &str) -> u32 {
    let metrics = app.get_operator("/metrics").await;
    let label = format!("code=\"{code}\"}}");
    let mut lines = metrics.text().lines();
    let line =
        lines.find(|line| line.starts_with("linesman_stream_ended") && line.contains(&label));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
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
    // From behind the end there is nothing, and before history there is no end.
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
    let target = "/v1/stream?channels=odds,scores,events";
    let request = format!("GET {target} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    raw.send(request.as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    let begun = Instant::now();
    while ended(&app, "slow").await == 0 {
        assert!(begun.elapsed() < PATIENCE, "never given up");
        // More than the systems of both sides hold between them, sooner or later.
        app.publish_both().await;
        tokio::time::pause();
        tokio::time::sleep(Duration::from_secs(10)).await;
        tokio::time::resume();
    }
    assert_eq!((ended(&app, "slow").await, ended(&app, "closed").await), (1, 0));
}
