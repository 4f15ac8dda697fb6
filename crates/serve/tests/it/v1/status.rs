//! `/v1/status`: its fields, stale sources, maintenance (D22, D26).

use std::time::Duration;

use accounts::{Actor, Maintenance};
use serde_json::json;

use crate::harness::TestApp;
use crate::test_market::TestMarket;

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
