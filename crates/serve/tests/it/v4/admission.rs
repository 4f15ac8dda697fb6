//! Keys, paths, the order of checks, browsers, and `/v4` switched off (V1, V2, V4, configuration).

use accounts::{Actor, KeyKind, Maintenance, NewKey};
use api::v4::{Origins, V4Settings};
use reqwest::Method;

use super::{MMA, message, refusal};
use crate::harness::{Answer, TestApp, mistyped, unlimited};
use crate::test_market::TestMarket;

#[tokio::test]
async fn a_key_comes_as_either_parameter_or_in_the_header() {
    let board = TestMarket::start().await;
    let (app, key) = (&board.app, &board.key);
    let wrong = mistyped(key);
    let status = async |query: String, header: Option<&str>| {
        let mut request = app.request(Method::GET, &format!("/v4/sports?{query}"));
        if let Some(header) = header {
            request = request.header("X-API-Key", header);
        }
        Answer::of(request).await.status
    };
    assert_eq!(status(format!("apiKey={key}"), None).await, 200);
    assert_eq!(status(format!("api_key={key}"), None).await, 200);
    assert_eq!(status(format!("apiKey={key}&api_key={wrong}"), None).await, 200);
    assert_eq!(status(format!("apiKey={wrong}&api_key={key}"), None).await, 401);
    assert_eq!(status(format!("apiKey=&api_key={key}"), None).await, 200, "empty is not sent");
    assert_eq!(status(format!("apiKey=&apiKey={key}"), None).await, 200, "empty is not sent");
    assert_eq!(status(format!("apiKey={wrong}"), Some(key)).await, 200, "the header wins");
    assert_eq!(status(format!("apiKey={key}"), Some(&wrong)).await, 401);
    let answer = app.get_without_key(&format!("/v4/sports?apiKey={key}")).await;
    assert!(answer.header("deprecation").is_none() && answer.header("sunset").is_none());
    for (path, code) in [
        ("/v4/sports".to_owned(), "MISSING_KEY"),
        ("/v4/sports?apiKey=".to_owned(), "MISSING_KEY"),
        (format!("/v4/sports?apiKey={wrong}"), "INVALID_KEY"),
        ("/v4/nowhere?apiKey=abc".to_owned(), "INVALID_KEY"),
    ] {
        let answer = app.get_without_key(&path).await;
        assert_eq!(refusal(&answer), (401, code.to_owned()), "{path}");
        assert!(answer.header("x-requests-last").is_none());
    }
    let answer = app.get_without_key("/v4/sports").await;
    assert!(message(&answer).starts_with("API key is missing"));
}

#[tokio::test]
async fn the_order_of_checks_is_that_of_the_contract() {
    let board = TestMarket::start().await;
    let app = &board.app;
    let hasty = app.limited_key(2, 100, None).await;
    let golfer = app.key_for_groups(&["golf"]).await;
    let blind = app.key(NewKey { odds_read: false, ..unlimited(KeyKind::Production) }).await;
    let code = async |path: &str, key: &str| refusal(&app.get(path, key).await).1;
    // The parameters and the event are wrong throughout: faults that are checked earlier are reported first.
    let wrong = "?oddsFormat=x";
    assert_eq!(code(&format!("/v4/nowhere{wrong}"), &board.key).await, "NOT_FOUND");
    let delete = app.request(Method::DELETE, &format!("/v4/sports/x/odds{wrong}"));
    let answer = Answer::of(delete.header("X-API-Key", &board.key)).await;
    assert_eq!(refusal(&answer), (405, "METHOD_NOT_ALLOWED".to_owned()));
    assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    assert_eq!(code(&format!("/v4/sports/x/odds{wrong}"), &golfer).await, "UNKNOWN_SPORT");
    assert_eq!(code(&format!("{MMA}/odds{wrong}"), &golfer).await, "FORBIDDEN");
    assert_eq!(code(&format!("{MMA}/odds{wrong}"), &blind).await, "FORBIDDEN");
    assert_eq!(code("/v4/sports/upcoming/events", &blind).await, "FORBIDDEN");
    let history = "/v4/historical/sports/mma_mixed_martial_arts/odds";
    assert_eq!(code(history, &golfer).await, "FORBIDDEN");
    let missing = "MISSING_HISTORICAL_TIMESTAMP";
    assert_eq!(code(&format!("{history}{wrong}"), &board.key).await, missing);
    let zeros = "0".repeat(32);
    let event = format!("{MMA}/events/{zeros}/odds");
    assert_eq!(code(&format!("{event}{wrong}"), &board.key).await, "MISSING_REGION");
    assert_eq!(code(&format!("{event}?regions=us"), &board.key).await, "EVENT_NOT_FOUND");
    for _ in 0..2 {
        app.get("/v4/nowhere", &hasty).await;
    }
    let answer = app.get("/v4/nowhere", &hasty).await;
    assert_eq!(refusal(&answer), (429, "EXCEEDED_FREQ_LIMIT".to_owned()));
    assert!(message(&answer).starts_with("Requests are being sent too frequently"));
    assert!(answer.header("retry-after").is_some());
    let closed = Maintenance::On { retry_after_s: 60 };
    app.service.api.accounts.set_maintenance(closed, &Actor::command_line()).await.unwrap();
    let answer = app.get("/v4/sports/x/odds", &board.key).await;
    assert_eq!(refusal(&answer), (503, "MAINTENANCE".to_owned()));
    assert_eq!(answer.header("retry-after"), Some("60"));
    assert_eq!(code("/v4/nowhere", &board.key).await, "NOT_FOUND");
}

const HISTORICAL: &str = "HISTORICAL_UNAVAILABLE_ON_FREE_USAGE_PLAN";

#[tokio::test]
async fn without_history_there_is_no_past() {
    let app = TestApp::builder().without_history().start().await;
    let key = app.live_key().await;
    for path in [
        "/v4/historical/sports/mma/odds?date=2026-11-14T00:00:00Z&regions=us",
        "/v4/sports/mma_mixed_martial_arts/odds-history/?date=x",
        "/v4/historical/sports/boxing_boxing/events",
        "/v4/historical/sports/boxing_boxing/events/abc/odds",
    ] {
        let answer = app.get(path, &key).await;
        assert_eq!(refusal(&answer), (401, HISTORICAL.to_owned()), "{path}");
        assert!(message(&answer).starts_with("Historical data is not available"));
    }
    let unknown = app.get("/v4/historical/sports/upcoming/odds", &key).await;
    assert_eq!(refusal(&unknown).1, "UNKNOWN_SPORT");
}

#[tokio::test]
async fn only_allowed_origins_may_read_answers() {
    let listed = ["https://app.example.com".to_owned()];
    for (origins, origin, expected) in [
        (Vec::new(), "https://app.example.com", None),
        (listed.to_vec(), "https://app.example.com", Some("https://app.example.com")),
        (listed.to_vec(), "https://evil.example.com", None),
        (vec!["*".to_owned()], "https://evil.example.com", Some("*")),
    ] {
        let settings_depend = origins == listed;
        let settings = V4Settings { allow_origins: Origins(origins), ..V4Settings::default() };
        let app = TestApp::builder().v4(settings).start().await;
        let key = app.live_key().await;
        for path in [format!("/v4/sports?apiKey={key}"), "/v4/sports".to_owned()] {
            let answer = Answer::of(app.request(Method::GET, &path).header("Origin", origin)).await;
            assert_eq!(answer.header("access-control-allow-origin"), expected, "{path}");
            let exposed = answer.header("access-control-expose-headers");
            let three = "x-requests-remaining, x-requests-used, x-requests-last";
            assert_eq!(exposed, expected.map(|_| three), "{path}");
            let varies = answer.headers("vary").any(|value| value == "Origin");
            assert_eq!(varies, settings_depend, "{path}");
        }
        let of_v1 = app.get_with("/v1/sports", &key, &[("Origin", origin)]).await;
        assert_eq!(of_v1.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn switched_off_there_is_no_such_path() {
    let settings = V4Settings { enabled: false, ..V4Settings::default() };
    let app = TestApp::builder().v4(settings).start().await;
    let key = app.live_key().await;
    for path in ["/v4/sports", "/v4", "/openapi/v4.json"] {
        assert_eq!(app.get(path, &key).await.refusal(), (404, "not_found".to_owned()), "{path}");
    }
}
