//! Limits are exact (D17, D27).

use std::time::Duration;

use tokio::task::JoinSet;

use crate::harness::{Answer, TestApp};
use crate::test_market::TestMarket;

/// The number of concurrent requests answered with each of two statuses.
async fn volley(app: &TestApp, key: &str, path: &str, count: usize) -> (usize, usize) {
    let requests: JoinSet<Answer> = (0..count)
        .map(|_| Answer::of(app.request(reqwest::Method::GET, path).header("X-API-Key", key)))
        .collect();
    let answers = requests.join_all().await;
    let with = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    let (granted, refused) = (with(200), with(429));
    assert_eq!(granted + refused, count, "{:?}", answers.iter().map(|a| a.status));
    (granted, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_five_lets_exactly_five_through() {
    let app = TestApp::start().await;
    let key = app.limited_key(5, 1000, None).await;
    assert_eq!(volley(&app, &key, "/v1/status", 40).await, (5, 35));
    app.advance(Duration::from_secs(54));
    assert_eq!(volley(&app, &key, "/v1/books", 10).await, (0, 10));
    // The windows are UTC minutes: at 12:01:00 a new one begins.
    app.advance(Duration::from_millis(750));
    assert_eq!(volley(&app, &key, "/v1/books", 40).await, (5, 35));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_of_seven_lets_exactly_seven_through() {
    let app = TestApp::start().await;
    let key = app.limited_key(1000, 7, None).await;
    assert_eq!(volley(&app, &key, "/v1/books", 40).await, (7, 33));
    let refused = app.get("/v1/books", &key).await;
    assert_eq!(refused.refusal(), (429, "quota_exceeded".to_owned()));
    assert!(refused.message().contains("7 requests per day"), "{}", refused.message());
    assert_eq!((refused.requests_used(), refused.requests_remaining()), (7, 0));
    app.advance(Duration::from_secs(12 * 3600));
    assert_eq!(volley(&app, &key, "/v1/books", 40).await, (7, 33));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_of_nine_lets_exactly_nine_through_and_is_named() {
    let app = TestApp::start().await;
    let key = app.limited_key(1000, 5, Some(9)).await;
    assert_eq!(volley(&app, &key, "/v1/books", 20).await, (5, 15));
    assert!(app.get("/v1/books", &key).await.message().contains("per day"));
    app.advance(Duration::from_secs(86_400));
    assert_eq!(volley(&app, &key, "/v1/books", 20).await, (4, 16));
    let refused = app.get("/v1/books", &key).await;
    assert_eq!(refused.refusal(), (429, "quota_exceeded".to_owned()));
    assert!(refused.message().contains("9 requests per month"), "{}", refused.message());
    // From the 15th, 12:00:05.250, to the end of November.
    assert_eq!(refused.header("retry-after"), Some("1339195"));
}

#[tokio::test]
async fn only_a_200_of_the_five_kinds_spends_quota() {
    let board = TestMarket::start().await;
    let app = &board.app;
    let key = app.limited_key(1000, 1000, None).await;
    let bout = board.bout_id().await;
    let event = format!("/v1/sports/mma/events/{bout}");
    let mut used = 0;
    for path in [
        "/v1/sports",
        "/v1/books",
        "/v1/sports/mma/odds",
        "/v1/sports/mma/scores",
        "/v1/sports/mma/events",
        &event,
    ] {
        used += 1;
        assert_eq!(app.get(path, &key).await.requests_used(), used, "{path}");
        let held = app.get_with(path, &key, &[("If-None-Match", "*")]).await;
        assert_eq!((held.status, held.requests_used()), (304, used), "{path}");
    }
    for (path, status) in [
        ("/v1/status", 200),
        ("/v1/nowhere", 404),
        ("/v1/sports/chess/odds", 404),
        ("/v1/sports/mma/events/evt_1", 404),
        ("/v1/sports/mma/odds?limit=0", 400),
    ] {
        let answer = app.get(path, &key).await;
        assert_eq!((answer.status, answer.requests_used()), (status, used), "{path}");
    }
    let method = app.request(reqwest::Method::DELETE, "/v1/books").header("X-API-Key", &key);
    assert_eq!(Answer::of(method).await.requests_used(), used);
}

#[tokio::test]
async fn everything_authenticated_counts_to_the_burst() {
    let app = TestApp::start().await;
    let key = app.limited_key(4, 1000, None).await;
    for (path, status) in [
        ("/v1/status", 200),
        ("/v1/nowhere", 404),
        ("/v1/books?x=1", 400),
        ("/v1/books", 200),
        ("/v1/status", 429),
    ] {
        assert_eq!(app.get(path, &key).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn what_was_used_is_remembered_over_a_restart_to_the_request() {
    let app = TestApp::start().await;
    let key = app.limited_key(100, 10, None).await;
    for _ in 0..4 {
        assert_eq!(app.get("/v1/books", &key).await.status, 200);
    }
    let now = app.now();
    let dir = app.stop().await;
    let app = TestApp::builder().starting_at(now).on(dir).start().await;
    let status = app.get("/v1/status", &key).await;
    assert_eq!((status.requests_used(), status.requests_remaining()), (4, 6));
    assert_eq!(volley(&app, &key, "/v1/books", 20).await, (6, 14));
}

#[tokio::test]
async fn after_a_crash_a_limit_is_not_exceeded() {
    let app = TestApp::start().await;
    let key = app.limited_key(100, 10, None).await;
    for _ in 0..4 {
        assert_eq!(app.get("/v1/books", &key).await.status, 200);
    }
    let (now, dir) = (app.now(), app.copy_of_disk());
    let app = TestApp::builder().starting_at(now).on(dir).start().await;
    let (granted, _) = volley(&app, &key, "/v1/books", 20).await;
    assert!(granted <= 6, "{granted}");
}

#[tokio::test]
async fn a_key_has_the_limits_of_the_interface_unless_told_otherwise() {
    let app = TestApp::start().await;
    let key = app.key(accounts::NewKey::of_kind(accounts::KeyKind::Sandbox)).await;
    let status = app.get("/v1/status", &key).await.json();
    let expected = serde_json::json!({ "burst_per_minute": 60, "requests_per_day": 10000 });
    assert_eq!(status["rate_limit"], expected);
}
