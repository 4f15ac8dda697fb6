//! Errors: bodies, beginnings of messages, faults on request, large requests (V16).

use api::v4::{Code, V4Settings};

use super::{MMA, message, refusal};
use crate::harness::TestApp;
use crate::test_market::TestMarket;

#[tokio::test]
async fn every_invalid_parameter_has_its_code_and_names_itself() {
    let board = TestMarket::start().await;
    let event = "events/00000000000000000000000000000000";
    let many: Vec<String> = (0..201).map(|n| format!("evt_{n:011}")).collect();
    let many = format!("events?eventIds={}", many.join(","));
    for (path, code) in [
        ("odds", "MISSING_REGION"),
        ("odds?regions=", "MISSING_REGION"),
        ("odds?regions=mars", "INVALID_REGION"),
        ("odds?regions=US", "INVALID_REGION"),
        ("odds?regions=mars&bookmakers=fanduel", "INVALID_REGION"),
        ("odds?bookmakers=fan_dual", "INVALID_BOOKMAKERS"),
        ("odds?regions=us&markets=h2h,corners", "INVALID_MARKET"),
        ("odds?regions=us&markets=moneyline", "INVALID_MARKET"),
        ("odds?regions=us&markets=player_points", "INVALID_MARKET"),
        ("odds?regions=us&markets=outrights", "INVALID_MARKET_COMBO"),
        ("odds?regions=us&markets=h2h,outrights_lay", "INVALID_MARKET_COMBO"),
        ("odds?regions=us&oddsFormat=fractional", "INVALID_ODDS_FORMAT"),
        ("odds?regions=us&dateFormat=ISO", "INVALID_DATE_FORMAT"),
        ("odds?regions=us&eventIds=abc", "INVALID_EVENT_IDS"),
        (many.as_str(), "INVALID_EVENT_IDS"),
        ("odds?regions=us&commenceTimeFrom=2026-11-14", "INVALID_COMMENCE_TIME_FROM"),
        ("odds?regions=us&commenceTimeTo=2026-11-14T00:00:00.5Z", "INVALID_COMMENCE_TIME_TO"),
        ("odds?regions=us&commenceTimeTo=2026-11-14T01:00:00%2B01:00", "INVALID_COMMENCE_TIME_TO"),
        (
            "events?commenceTimeFrom=2026-11-14T00:00:00Z&commenceTimeTo=2026-11-14T00:00:00Z",
            "INVALID_COMMENCE_TIME_RANGE",
        ),
        ("odds?regions=us&includeLinks=1", "INVALID_INCLUDE_LINKS"),
        ("odds?regions=us&includeSids=True", "INVALID_INCLUDE_SIDS"),
        ("odds?regions=us&includeBetLimits=yes", "INVALID_INCLUDE_BET_LIMITS"),
        ("events?includeRotationNumbers=x", "INVALID_INCLUDE_ROTATION_NUMBERS"),
        (&format!("{event}/odds?regions=us&includeMultipliers=x"), "INVALID_INCLUDE_MULTIPLIERS"),
        ("scores?daysFrom=0", "INVALID_SCORES_DAYS_FROM"),
        ("scores?daysFrom=4", "INVALID_SCORES_DAYS_FROM"),
        ("odds?regions=%FF", "INVALID_REGION"),
    ] {
        let answer = board.app.get(&format!("{MMA}/{path}"), &board.key).await;
        assert_eq!(refusal(&answer), (422, code.to_owned()), "{path}");
        let known = Code::ALL.into_iter().find(|known| known.slug() == code).unwrap();
        assert!(message(&answer).starts_with(known.begins()), "{}", message(&answer));
    }
    let golf = "/v4/sports/golf_harbour_open_winner/odds?regions=us&markets=h2h";
    assert_eq!(refusal(&board.app.get(golf, &board.key).await).1, "INVALID_MARKET_COMBO");
    let sports = board.app.get("/v4/sports?all=1", &board.key).await;
    assert_eq!(refusal(&sports).1, "INVALID_ALL_SPORTS_PARAM");
    let unknown = board
        .app
        .get(&format!("{MMA}/odds?regions=us&markets=h2h,corners,cards"), &board.key)
        .await;
    assert!(
        message(&unknown).starts_with("Markets not supported by this endpoint: corners, cards")
    );
    let near = board.app.get(&format!("{MMA}/odds?bookmakers=draftkngs"), &board.key).await;
    assert!(message(&near).contains("draftkings"), "{}", message(&near));
}

#[tokio::test]
async fn a_fault_on_request_looks_like_the_real_one() {
    let app = TestApp::start().await;
    let key = app.sandbox_key().await;
    for (fault, status, code, retry) in [
        ("rate_limited", 429, "EXCEEDED_FREQ_LIMIT", true),
        ("quota_exceeded", 401, "OUT_OF_USAGE_CREDITS", true),
        ("maintenance", 503, "MAINTENANCE", true),
        ("internal", 500, "INTERNAL_ERROR", false),
        ("unavailable", 503, "UNAVAILABLE", true),
        ("fire", 422, "INVALID_SANDBOX_FAULT", false),
    ] {
        let answer = app.get_with("/v4/sports", &key, &[("X-Sandbox-Fault", fault)]).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()));
        assert_eq!(answer.header("retry-after").is_some(), retry, "{fault}");
    }
    let spent = app.get_with("/v4/sports", &key, &[("X-Sandbox-Fault", "quota_exceeded")]).await;
    assert_eq!(spent.requests_remaining(), 0);
    assert!(message(&spent).contains("usage limit"));
}

#[tokio::test]
async fn requests_that_are_too_large_are_refused_in_the_form_of_v4() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let long = app.get(&format!("/v4/sports?x={}", "a".repeat(9_000)), &key).await;
    assert_eq!(refusal(&long), (414, "REQUEST_TOO_LARGE".to_owned()));
    let heavy = format!(
        "GET /v4/sports?a=b HTTP/1.1\r\nhost: a\r\nx-heavy: {}\r\n\r\n",
        "a".repeat(17_000)
    );
    assert_eq!(refusal(&app.raw_one(heavy).await), (431, "REQUEST_TOO_LARGE".to_owned()));
    let elsewhere =
        format!("GET /v1/sports HTTP/1.1\r\nhost: a\r\nx-heavy: {}\r\n\r\n", "a".repeat(17_000));
    assert_eq!(app.raw_one(elsewhere).await.code(), "request_too_large");
}

#[tokio::test]
async fn details_are_at_the_services_own_address_where_it_is_known() {
    let docs_url = "https://odds.example.com/docs/v4".to_owned();
    let app = TestApp::builder().v4(V4Settings { docs_url, ..V4Settings::default() }).start().await;
    let url = app.get_without_key("/v4/sports").await.json()["details_url"].clone();
    assert_eq!(url, "https://odds.example.com/docs/v4#missing-key");
}

#[tokio::test]
async fn refusals_and_requests_are_counted_by_the_names_of_v4() {
    let board = TestMarket::start().await;
    board.app.get("/v4/sports", &board.key).await;
    board.app.get(&format!("{MMA}/odds"), &board.key).await;
    let metrics = board.app.get_operator("/metrics").await;
    for line in [
        "linesman_requests_total{endpoint=\"v4_sports\",outcome=\"ok\"} 1",
        "linesman_requests_total{endpoint=\"v4_odds\",outcome=\"refused\"} 1",
        "linesman_refusals_total{code=\"MISSING_REGION\",status=\"422\"} 1",
    ] {
        assert!(metrics.text().contains(line), "{line}");
    }
}
