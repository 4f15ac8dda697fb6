//! `/v1/sports`: the sports, their counts, and when a sport is active (D22, D31).

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{TestApp, line};
use crate::test_market::TestMarket;

async fn sport(board: &TestMarket, key: &str) -> Value {
    let sports = board.get("/v1/sports").await;
    let sports = sports["sports"].as_array().unwrap();
    sports.iter().find(|sport| sport["key"] == key).unwrap().clone()
}

#[tokio::test]
async fn the_sports_are_the_five_with_their_groups() {
    let board = TestMarket::start().await;
    let sports = board.get("/v1/sports").await;
    let sport = |key: &str, title: &str, group: &str, events: u32, books: u32| {
        json!({
            "key": key, "title": title, "group": group, "active": true, "events": events,
            "books": books,
        })
    };
    let expected = json!({ "sports": [
        sport("mma", "Mixed Martial Arts", "combat", 2, 5),
        sport("boxing", "Boxing", "combat", 1, 1),
        sport("tennis", "Tennis", "tennis", 1, 1),
        sport("american_football", "American Football", "football", 1, 1),
        sport("golf", "Golf", "golf", 1, 1),
    ]});
    assert_eq!(sports.to_string(), expected.to_string());
}

#[tokio::test]
async fn a_sport_without_any_source_is_not_active() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let sports = app.get("/v1/sports", &key).await.json();
    for sport in sports["sports"].as_array().unwrap() {
        assert_eq!(sport["active"], false);
        assert_eq!((&sport["events"], &sport["books"]), (&json!(0), &json!(0)));
    }
    let status = app.get("/v1/status", &key).await.json();
    assert_eq!((&status["status"], &status["sports_active"]), (&json!("ok"), &json!(0)));
}

#[tokio::test]
async fn a_sport_counts_scheduled_and_live_events_and_not_final_ones() {
    let board = TestMarket::start().await;
    assert_eq!(sport(&board, "mma").await["events"], 2);
    board.push(&[line::score("bout-1", "live", 0, 0)]).await;
    board.app.publish().await;
    assert_eq!(sport(&board, "mma").await["events"], 2);
    board.push(&[line::score("bout-1", "final", 0, 1)]).await;
    board.app.publish().await;
    assert_eq!(sport(&board, "mma").await["events"], 1);
}

#[tokio::test]
async fn a_source_is_stale_after_ninety_seconds_without_a_good_read_and_its_odds_stay() {
    let board = TestMarket::start().await;
    let degraded = async || board.get("/v1/status").await["status"].as_str().unwrap() == "degraded";
    // Everything was read at 12:00:05.250; exactly 90 s later it is still fresh.
    board.app.publish_after(Duration::from_millis(65_250)).await;
    assert!(!degraded().await);
    board.app.advance(Duration::from_millis(1));
    assert!(degraded().await, "status tells the present");
    for name in ["fanduel", "bet365", "sportsbet"] {
        board.push(&[line::heartbeat(name, "mma")]).await;
    }
    board.app.publish().await;
    assert!(degraded().await, "any stale source degrades the world");
    assert_eq!(board.get("/v1/status").await["sports_active"], 1);
    assert_eq!(sport(&board, "mma").await["active"], true);
    assert_eq!(sport(&board, "tennis").await["active"], false, "all its sources are stale");
    let grouped = board.get("/v1/sports/mma/odds?group_by=bout").await;
    let stale: Vec<(&str, bool)> = grouped["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["book"].as_str().unwrap(), s["stale"].as_bool().unwrap()))
        .collect();
    assert_eq!(stale, [("bet365", false), ("draftkings", true), ("fanduel", false)]);
    let odds = board.list("/v1/sports/mma/odds?bookmaker=draftkings").await;
    assert_eq!(odds[0]["last_update"], "2026-11-14T12:00:05Z", "old odds stay, with their age");
    // A fault of one world does not affect the other.
    let sandbox = board.app.sandbox_key().await;
    assert_eq!(board.app.get("/v1/status", &sandbox).await.json()["status"], "ok");
}
