//! A service whose change log is on NATS servers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{TestApp, TestLog, line, ndjson};
use crate::test_market::{ANN, BEA};

const ODDS: &str = "/v1/sports/mma/odds";

async fn status_of(app: &TestApp, feed: &str, message: Value) -> u16 {
    app.post(feed, ndjson(&[message]).into_bytes(), None).await.status
}

#[tokio::test]
async fn a_restart_from_servers_shows_the_same_bytes_and_goes_on() {
    let test_log = TestLog::start();
    let app = TestApp::builder().log_on(test_log.servers()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA), price.clone()]).await;
    app.publish().await;
    let before = app.get(ODDS, &key).await;
    assert_eq!(before.json()[0]["outcomes"][0]["price"], 135);
    let now = app.now();
    let disk = app.stop().await;

    let again =
        TestApp::builder().log_on(test_log.servers()).starting_at(now).on(disk).start().await;
    let after = again.get(ODDS, &key).await;
    assert_eq!((after.text(), after.header("etag")), (before.text(), before.header("etag")));
    assert_eq!(again.push(&feed, ndjson(&[price])).await["unchanged"], 1);
}

#[tokio::test]
async fn a_writer_that_was_overtaken_refuses_reads_on_and_then_takes_the_repetition_once() {
    let test_log = TestLog::start();
    let one = TestApp::builder().log_on(test_log.servers()).start().await;
    let feed_one = one.any_feed().await;
    one.push_all(&feed_one, &[line::event("a", "mma", ANN, BEA)]).await;
    // Another process writes to the same log; only the log itself prevents conflicts.
    let two = TestApp::builder().log_on(test_log.servers()).starting_at(one.now()).start().await;
    let feed_two = two.any_feed().await;
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    two.push_all(&feed_two, std::slice::from_ref(&price)).await;

    let score = line::score("a", "live", 1, 0);
    assert_eq!(status_of(&one, &feed_one, score.clone()).await, 503, "not from an old book");
    // It reads the new entries, and accepts pushes again after a pause.
    let begun = Instant::now();
    let taken = loop {
        let body = ndjson(std::slice::from_ref(&score)).into_bytes();
        let answer = one.post(&feed_one, body, None).await;
        if answer.status == 200 {
            break answer.json();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it takes nothing any more");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(taken["accepted"], 1);
    assert_eq!(one.push(&feed_one, ndjson(&[score])).await["accepted"], 0);

    let three = TestApp::builder().log_on(test_log.servers()).starting_at(one.now()).start().await;
    let key = three.live_key().await;
    three.publish().await;
    let odds = three.get(ODDS, &key).await.json();
    assert_eq!((odds.as_array().unwrap().len(), &odds[0]["bookmaker"]), (1, &json!("fanduel")));
    let scores = three.get("/v1/sports/mma/scores", &key).await.json();
    assert_eq!((&scores[0]["status"], &scores[0]["home_score"]), (&json!("live"), &json!(1)));
}

#[tokio::test]
async fn without_servers_reads_go_on_pushes_are_refused_and_both_are_well_once_they_are_back() {
    let mut test_log = TestLog::start();
    let app = TestApp::builder().log_on(test_log.servers()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    app.publish().await;
    test_log.nats.kill(0).unwrap();
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    assert_eq!(status_of(&app, &feed, price.clone()).await, 503);
    assert_eq!(app.get("/v1/sports/mma/events", &key).await.json().as_array().unwrap().len(), 1);
    test_log.nats.start_again(0).unwrap();
    let begun = Instant::now();
    while status_of(&app, &feed, price.clone()).await != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the log is back, and not the writer");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    app.publish().await;
    assert_eq!(app.get(ODDS, &key).await.json()[0]["outcomes"][0]["price"], 135);
}
