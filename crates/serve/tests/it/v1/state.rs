//! The service's own state: sports, bookmakers, staleness, maintenance (D22, D23, D26, D31).

use std::time::Duration;

use accounts::{Actor, Maintenance};
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
async fn books_are_every_covered_bookmaker_with_its_regions() {
    let board = TestMarket::start().await;
    let books = board.list("/v1/books").await;
    let catalogue = &board.app.service.api.catalogue;
    assert_eq!(books.len(), catalogue.bookmakers().count());
    let bet365 = books.iter().find(|book| book["key"] == "bet365").unwrap();
    let expected =
        json!({ "key": "bet365", "title": "bet365", "regions": ["us", "uk", "eu", "au"] });
    assert_eq!(bet365.to_string(), expected.to_string());
}

#[tokio::test]
async fn status_has_exactly_the_fields_of_the_interface_in_order() {
    let board = TestMarket::start().await;
    let status = board.get("/v1/status").await;
    let expected = json!({
        "status": "ok", "api_version": "v1", "server_time": "2026-11-14T12:00:30Z",
        "rate_limit": { "burst_per_minute": 1_000_000, "requests_per_day": 10_000_000 },
        "sports_active": 5,
    });
    assert_eq!(status.to_string(), expected.to_string());
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
    // One world's trouble is not the other's.
    let sandbox = board.app.sandbox_key().await;
    assert_eq!(board.app.get("/v1/status", &sandbox).await.json()["status"], "ok");
}

#[tokio::test]
async fn how_long_a_source_stays_fresh_is_the_operators_to_say() {
    let app = TestApp::builder()
        .stale_after(Duration::from_secs(20))
        .refresh_interval(Duration::from_secs(10))
        .start()
        .await;
    let board = TestMarket::on(app).await;
    assert_eq!(board.get("/v1/status").await["status"], "ok");
    board.app.publish_after(Duration::from_secs(20)).await;
    assert_eq!(board.get("/v1/status").await["status"], "degraded");
}

#[tokio::test]
async fn maintenance_closes_everything_but_status_and_outlives_a_restart() {
    let board = TestMarket::start().await;
    let key = board.key.clone();
    let event = format!("/v1/sports/mma/events/{}", board.bout_id().await);
    let closed = Maintenance::On { retry_after_s: 300 };
    board.app.service.api.accounts.set_maintenance(closed, &Actor::command_line()).await.unwrap();
    let now = board.app.now();
    let dir = board.app.stop().await;
    let app = TestApp::builder().starting_at(now).on(dir).start().await;
    for path in [
        "/v1/sports",
        "/v1/books",
        "/v1/sports/mma/odds",
        "/v1/sports/mma/scores",
        "/v1/sports/mma/events",
        &event,
    ] {
        let answer = app.get(path, &key).await;
        assert_eq!(answer.refusal(), (503, "maintenance".to_owned()), "{path}");
        assert_eq!(answer.header("retry-after"), Some("300"));
        assert!(answer.header("x-requests-used").is_some());
    }
    assert_eq!(app.get("/v1/status", &key).await.json()["status"], "maintenance");
    app.service
        .api
        .accounts
        .set_maintenance(Maintenance::Off, &Actor::command_line())
        .await
        .unwrap();
    assert_eq!(app.get("/v1/sports", &key).await.status, 200);
}
