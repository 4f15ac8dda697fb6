//! Every refusal has the one body, the right status and the right code (D1, D2).

use std::collections::HashSet;

use reqwest::Method;

use crate::harness::{Answer, INGEST_PATH, TestApp};
use crate::test_market::TestMarket;

#[tokio::test]
async fn every_kind_of_failure_has_the_error_body_and_a_request_id_of_its_own() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let auth = format!("host: a\r\nx-api-key: {key}\r\n");
    let long = "a".repeat(9 << 10);
    let endless = "a".repeat(20 << 10);
    let many: String = (0..65).map(|n| format!("x-{n}: 1\r\n")).collect();
    let cases: Vec<(String, u16, &str)> = vec![
        ("GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n".into(), 404, "not_found"),
        (format!("GET /v1/nowhere HTTP/1.1\r\n{auth}\r\n"), 404, "not_found"),
        (format!("GET /v1 HTTP/1.1\r\n{auth}\r\n"), 404, "not_found"),
        ("GET /v1/sports HTTP/1.1\r\nhost: a\r\n\r\n".into(), 401, "authentication_failed"),
        (format!("GET /v1/sports/chess/odds HTTP/1.1\r\n{auth}\r\n"), 404, "sport_not_found"),
        (format!("GET /v1/sports/mma/events/evt_1 HTTP/1.1\r\n{auth}\r\n"), 404, "event_not_found"),
        (format!("GET /v1/sports?x=1 HTTP/1.1\r\n{auth}\r\n"), 400, "invalid_parameter"),
        (format!("GET /v1/{long} HTTP/1.1\r\n{auth}\r\n"), 414, "request_too_large"),
        (format!("GET /v1/sports?x={long} HTTP/1.1\r\n{auth}\r\n"), 414, "request_too_large"),
        (format!("GET /{endless} HTTP/1.1\r\n{auth}\r\n"), 414, "request_too_large"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\nx: {endless}\r\n\r\n"), 431, "request_too_large"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n"), 431, "request_too_large"),
        ("nonsense\r\n\r\n".into(), 400, "invalid_parameter"),
        ("GET / HTTP/7.1\r\nhost: a\r\n\r\n".into(), 400, "invalid_parameter"),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400, "invalid_parameter"),
        ("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".into(), 400, "invalid_parameter"),
        ("GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n".into(), 400, "invalid_parameter"),
        (
            "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: abc\r\n\r\n".into(),
            400,
            "invalid_parameter",
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".into(),
            400,
            "invalid_parameter",
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\nab".into(),
            400,
            "invalid_parameter",
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n"
                .into(),
            400,
            "invalid_parameter",
        ),
        (format!("POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\n\r\n"), 401, "authentication_failed"),
        (format!("GET {INGEST_PATH} HTTP/1.1\r\nhost: a\r\n\r\n"), 405, "method_not_allowed"),
        ("\0\0\0\0\0\0\r\n\r\n".into(), 400, "invalid_parameter"),
        ("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n".into(), 404, "not_found"),
    ];
    let mut ids = HashSet::new();
    for (request, status, code) in cases {
        let shown: String = request.chars().take(60).collect();
        let answer = app.raw(request.as_bytes(), 1).await.pop();
        let answer = answer.unwrap_or_else(|| panic!("no answer to {shown:?}"));
        assert!(!answer.body.is_empty(), "{shown:?}: {answer:?}");
        assert_eq!(answer.refusal(), (status, code.to_owned()), "{shown:?}");
        assert!(ids.insert(answer.header("x-request-id").unwrap().to_owned()), "an id came twice");
    }
}

#[tokio::test]
async fn other_methods_are_refused_with_allow_with_and_without_a_body() {
    let board = TestMarket::start().await;
    let event = format!("/v1/sports/mma/events/{}", board.bout_id().await);
    let paths = [
        "/v1/sports",
        "/v1/books",
        "/v1/status",
        "/v1/sports/mma/odds",
        "/v1/sports/mma/scores",
        "/v1/sports/mma/events",
        &event,
    ];
    for path in paths {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            for body in [None, Some("{\"a\":1}")] {
                let mut request =
                    board.app.request(method.clone(), path).header("X-API-Key", &board.key);
                if let Some(body) = body {
                    request = request.body(body);
                }
                let answer = Answer::of(request).await;
                assert_eq!(answer.refusal(), (405, "method_not_allowed".to_owned()), "{method}");
                assert_eq!(answer.header("allow"), Some("GET, HEAD"), "{method} {path}");
                assert!(answer.header("x-requests-used").is_some());
            }
        }
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs", "/llms.txt"] {
        let answer = Answer::of(board.app.request(Method::POST, path).body("x")).await;
        assert_eq!(answer.refusal(), (405, "method_not_allowed".to_owned()), "{path}");
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
    let door = Answer::of(board.app.request(Method::PUT, INGEST_PATH).body("x")).await;
    assert_eq!(door.refusal(), (405, "method_not_allowed".to_owned()));
    assert_eq!(door.header("allow"), Some("POST"));
}

#[tokio::test]
async fn refusals_of_429_and_503_say_when_to_come_back_and_others_do_not() {
    let app = TestApp::start().await;
    let key = app.limited_key(2, 1, None).await;
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    let quota = app.get("/v1/books", &key).await;
    assert_eq!(quota.refusal(), (429, "quota_exceeded".to_owned()));
    // From 12:00:05.250 until midnight, rounded up: a client that waits this long is not refused again.
    assert_eq!(quota.header("retry-after"), Some("43195"));
    let burst = app.get("/v1/books", &key).await;
    assert_eq!(burst.refusal(), (429, "rate_limited".to_owned()));
    assert_eq!(burst.header("retry-after"), Some("55"));
    for path in ["/v1/books?x=1", "/nowhere"] {
        let other = app.get(path, &app.live_key().await).await;
        assert!(other.status >= 400 && other.header("retry-after").is_none(), "{path}");
    }
}

#[tokio::test]
async fn a_refused_head_request_has_the_headers_and_no_body() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let (get, head) =
        (app.get("/v1/sports?x=1", &key).await, app.head("/v1/sports?x=1", &key).await);
    assert_eq!((get.status, head.status), (400, 400));
    assert_eq!(head.header("content-length"), get.header("content-length"));
    assert!(head.body.is_empty() && !get.body.is_empty());
    assert!(head.header("x-request-id").is_some());
}

#[tokio::test]
async fn refusals_are_never_kept_by_caches() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    for path in ["/v1/nowhere", "/v1/sports/chess/odds", "/v1/sports?x=1", "/nowhere"] {
        assert_eq!(app.get(path, &key).await.header("cache-control"), Some("no-store"), "{path}");
    }
}
