//! Refresh epochs (D14): between two publications the same request has the same answer, byte for byte.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::World;

use crate::harness::{TestApp, line, wait_for};
use crate::test_market::{ANN, BEA, TestMarket};

const PATHS: [&str; 6] = [
    "/v1/sports",
    "/v1/sports/mma/odds",
    "/v1/sports/mma/odds?group_by=bout",
    "/v1/sports/mma/odds?odds_format=decimal&regions=us,uk,eu,au",
    "/v1/sports/mma/scores",
    "/v1/sports/mma/events",
];

/// Bodies and tags of all paths.
async fn everything(board: &TestMarket) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    for path in PATHS {
        let answer = board.app.get(path, &board.key).await;
        assert_eq!(answer.status, 200, "{path}");
        seen.push((answer.header("etag").unwrap().to_owned(), answer.text().to_owned()));
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn within_an_epoch_answers_are_the_same_bytes_while_feeds_push() {
    let board = TestMarket::start().await;
    let first = everything(&board).await;
    let done = AtomicBool::new(false);
    let pushing = async {
        for price in 100..140 {
            board.push(&[line::moneyline("bout-1", "fanduel", (ANN, price), (BEA, -300))]).await;
        }
        board.push(&[line::score("bout-1", "live", 1, 0)]).await;
        done.store(true, Ordering::SeqCst);
    };
    let reading = async {
        let mut rounds = 0;
        while !done.load(Ordering::SeqCst) || rounds < 3 {
            assert_eq!(everything(&board).await, first);
            rounds += 1;
        }
    };
    tokio::join!(pushing, reading);
    assert_eq!(everything(&board).await, first);
    board.app.publish().await;
    let next = everything(&board).await;
    assert_ne!(next, first);
    assert!(next[1].1.contains("139"));
}

#[tokio::test]
async fn generated_at_is_the_epoch_with_milliseconds_and_stays_within_it() {
    let board = TestMarket::start().await;
    let path = "/v1/sports/mma/odds?group_by=bout";
    assert_eq!(board.get(path).await["generated_at"], "2026-11-14T12:00:30.000Z");
    board.app.advance(Duration::from_secs(29));
    assert_eq!(board.get(path).await["generated_at"], "2026-11-14T12:00:30.000Z");
    board.app.publish().await;
    assert_eq!(board.get(path).await["generated_at"], "2026-11-14T12:01:00.000Z");
}

#[tokio::test]
async fn snapshots_are_aligned_to_the_wall_clock_however_late_the_service_wakes() {
    let board = TestMarket::start().await;
    board.app.publish_after(Duration::from_secs(95)).await;
    // 12:00:30 and 95 s is 12:02:05, in the epoch of 12:02:00.
    let bouts = board.get("/v1/sports/mma/odds?group_by=bout").await;
    assert_eq!(bouts["generated_at"], "2026-11-14T12:02:00.000Z");
    let answer = board.app.get("/v1/books", &board.key).await;
    assert_eq!(answer.header("cache-control"), Some("private, max-age=25"));
}

#[tokio::test]
async fn a_clock_set_back_stops_neither_snapshots_nor_the_end_of_caching() {
    let board = TestMarket::start().await;
    board.app.set_back(Duration::from_secs(3600));
    board
        .push(&[line::moneyline(
            "bout-2",
            "draftkings",
            ("Carla Cruz", 101),
            ("Dorothea Dunn", -300),
        )])
        .await;
    wait_for("a snapshot of the time that is now", || {
        board.app.service.api.world(World::Live).published().snapshot.cut_at == board.app.now()
    })
    .await;
    board.app.publish().await;
    let answer = board.app.get("/v1/sports/mma/odds?bookmaker=draftkings", &board.key).await;
    assert!(answer.text().contains("\"price\":101"), "{}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("private, max-age=30"));
}

async fn reopened(board: TestMarket, dir: tempfile::TempDir) -> TestMarket {
    let now = board.app.now();
    let app = TestApp::builder().starting_at(now).on(dir).start().await;
    TestMarket { app, key: board.key.clone(), feed: board.feed.clone() }
}

#[tokio::test]
async fn after_a_crash_in_the_epoch_the_same_bytes_are_shown() {
    let board = TestMarket::start().await;
    board.app.advance(Duration::from_secs(7));
    board.push(&[line::moneyline("bout-1", "fanduel", (ANN, 101), (BEA, -300))]).await;
    let before = everything(&board).await;
    board.app.advance(Duration::from_secs(1));
    let dir = board.app.copy_of_disk();
    let again = reopened(board, dir).await;
    assert_eq!(everything(&again).await, before);
    // And pushed data is not lost.
    again.app.publish().await;
    assert!(again.get("/v1/sports/mma/odds").await.to_string().contains("\"price\":101"));
}

#[tokio::test]
async fn after_a_restart_in_the_epoch_the_same_bytes_are_shown() {
    let board = TestMarket::start().await;
    board.app.advance(Duration::from_secs(7));
    board.push(&[line::moneyline("bout-1", "fanduel", (ANN, 101), (BEA, -300))]).await;
    let before = everything(&board).await;
    board.app.advance(Duration::from_secs(1));
    let (now, key, feed) = (board.app.now(), board.key.clone(), board.feed.clone());
    let dir = board.app.stop().await;
    let app = TestApp::builder().starting_at(now).on(dir).start().await;
    let again = TestMarket { app, key, feed };
    assert_eq!(everything(&again).await, before);
    again.app.publish().await;
    assert!(again.get("/v1/sports/mma/odds").await.to_string().contains("\"price\":101"));
}

#[tokio::test]
async fn after_a_restart_in_a_later_epoch_what_was_pushed_is_shown() {
    let board = TestMarket::start().await;
    let ids = board.bout_id().await;
    board.push(&[line::moneyline("bout-1", "fanduel", (ANN, 101), (BEA, -300))]).await;
    board.app.advance(Duration::from_secs(60));
    let (now, key, feed) = (board.app.now(), board.key.clone(), board.feed.clone());
    let dir = board.app.stop().await;
    let app = TestApp::builder().starting_at(now).on(dir).start().await;
    let again = TestMarket { app, key, feed };
    assert!(again.get("/v1/sports/mma/odds").await.to_string().contains("\"price\":101"));
    assert_eq!(again.bout_id().await, ids);
}

#[tokio::test]
async fn by_the_machines_clock_a_push_is_seen_at_the_next_refresh() {
    let app = TestApp::builder().system_clock().start().await;
    let board = TestMarket::on(app).await;
    assert_eq!(board.list("/v1/sports/mma/odds?bookmaker=fanduel&market=moneyline").await.len(), 2);
}
