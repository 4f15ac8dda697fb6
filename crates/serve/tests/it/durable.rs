//! Acknowledged data is on the disk: a crash loses nothing that has a receipt.

use serde_json::json;

use crate::harness::{TestApp, line};
use crate::test_market::{ANN, BEA};

#[tokio::test]
async fn once_a_push_is_answered_its_prices_survive_a_crash() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(
        &feed,
        &[
            line::event("a", "mma", ANN, BEA),
            line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
            line::score("a", "live", 1, 0),
        ],
    )
    .await;
    // Nothing was published since; the copy is made while the service runs, in the state that a crash would leave.
    let disk = app.copy_of_disk();
    let again = TestApp::builder().starting_at(app.now()).on(disk).start().await;
    again.publish().await;
    let odds = again.get("/v1/sports/mma/odds", &key).await.json();
    assert_eq!(odds[0]["outcomes"][0]["price"], 135);
    let scores = again.get("/v1/sports/mma/scores", &key).await.json();
    assert_eq!((&scores[0]["status"], &scores[0]["home_score"]), (&json!("live"), &json!(1)));
    // The feed continues: its refs are known, and a repetition is recognised.
    let repeated = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)).to_string();
    assert_eq!(again.push(&feed, repeated).await["unchanged"], 1);
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_write_loses_only_what_was_not_answered() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    let disk = app.copy_of_disk();
    let folder = disk.path().join("live");
    let newest = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .max_by_key(|path| std::fs::metadata(path).unwrap().len())
        .unwrap();
    // A torn entry.
    let torn = [std::fs::read(&newest).unwrap(), vec![0x17; 9]].concat();
    std::fs::write(&newest, torn).unwrap();
    let again = TestApp::builder().starting_at(app.now()).on(disk).start().await;
    again.publish().await;
    let events = again.get("/v1/sports/mma/events", &key).await.json();
    assert_eq!(events.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_checkpoint_changes_nothing_of_what_a_restart_shows() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(
        &feed,
        &[
            line::event("a", "mma", ANN, BEA),
            line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
        ],
    )
    .await;
    // A checkpoint is due after 25,000 entries, and every newer heartbeat is one.
    let beats: String = (0..26_000)
        .map(|ms| {
            let ts = format!("2026-11-14T11:58:{:02}.{:03}Z", ms / 1000, ms % 1000);
            format!(r#"{{"type":"heartbeat","bookmaker":"caesars","sport":"mma","ts":"{ts}"}}"#)
                + "\n"
        })
        .collect();
    assert_eq!(app.push(&feed, beats).await["accepted"], 26_000);
    app.publish().await;
    // The writer processes this after everything else.
    app.push_all(&feed, &[line::moneyline("a", "fanduel", (ANN, 140), (BEA, -160))]).await;
    let metrics = app.get_operator("/metrics").await;
    assert!(metrics.text().contains("linesman_log_checkpoints_total{world=\"live\"} 1\n"));
    let paths = ["/v1/sports/mma/odds", "/v1/sports/mma/odds?group_by=bout", "/v1/sports"];
    let disk = app.copy_of_disk();
    let again = TestApp::builder().starting_at(app.now()).on(disk).start().await;
    for path in paths {
        let (before, after) = (app.get(path, &key).await, again.get(path, &key).await);
        assert_eq!(before.text(), after.text(), "{path}");
    }
    again.publish().await;
    let odds = again.get("/v1/sports/mma/odds", &key).await.json();
    assert_eq!(odds[0]["outcomes"][0]["price"], 140);
}

#[tokio::test]
async fn ids_and_freshness_are_the_same_after_a_restart() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(
        &feed,
        &[
            line::event("a", "mma", ANN, BEA),
            line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
        ],
    )
    .await;
    app.publish().await;
    let before = app.get("/v1/sports/mma/odds", &key).await;
    let (now, dir) = (app.now().plus(std::time::Duration::from_secs(300)), app.stop().await);
    let again = TestApp::builder().starting_at(now).on(dir).start().await;
    let after = again.get("/v1/sports/mma/odds", &key).await;
    assert_eq!(after.text(), before.text());
    assert_eq!(after.header("etag"), before.header("etag"), "the tag names the bytes");
    let status = again.get("/v1/status", &key).await.json();
    assert_eq!(status["status"], "degraded", "a restart makes nothing fresh");
}
