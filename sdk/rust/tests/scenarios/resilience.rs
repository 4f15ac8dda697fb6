//! Retries, the cache, errors.

use std::time::Duration;

use linesman_client::{Client, Error, ErrorCode};
use serde_json::{Value, json};

use crate::support::{FakeClock, Proxy, told, variable};

const DOCUMENT: &str = include_str!("../../../../openapi.json");

fn max_age() -> Value {
    json!({"Cache-Control": "private, max-age=20"})
}

async fn fail(script: Value) -> Error {
    Proxy::with_script(script).await.client().status().await.unwrap_err()
}

pub(crate) async fn retry_after_is_respected() {
    let limited =
        json!({"status": 429, "headers": {"Retry-After": "30"}, "body": told("rate_limited")});
    for (chance, least, most) in [(0.0, 30.0, 30.0), (0.999, 32.9, 33.0)] {
        let clock = FakeClock::new(chance);
        let proxy = Proxy::with_script(json!([limited, limited])).await;
        proxy.builder(&clock).build().unwrap().status().await.unwrap();
        assert_eq!(clock.waits().len(), 2);
        assert!(clock.waits().iter().all(|wait| (least..=most).contains(wait)));
        assert_eq!(proxy.statuses().await, [Some(429), Some(429), Some(200)]);
    }
    let clock = FakeClock::new(0.0);
    let dated = json!({
        "Retry-After": "Tue, 17 Nov 2026 10:00:09 GMT", "Date": "Tue, 17 Nov 2026 10:00:00 GMT",
    });
    let script = json!([{"fault": "unavailable"}, {"status": 503, "headers": dated}]);
    let proxy = Proxy::with_script(script).await;
    proxy.builder(&clock).build().unwrap().status().await.unwrap();
    assert_eq!(clock.waits(), [30.0, 9.0]);
}

pub(crate) async fn backoff_without_retry_after() {
    for status in [500, 502, 504] {
        for (chance, waits) in [(0.0, [0.375, 0.75]), (0.5, [0.5, 1.0])] {
            let clock = FakeClock::new(chance);
            let failure = json!({"status": status, "body": "no JSON"});
            let proxy = Proxy::with_script(json!([failure, failure, failure])).await;
            let error = proxy.builder(&clock).build().unwrap().status().await.unwrap_err();
            assert_eq!((error.status(), clock.waits()), (Some(status), waits.to_vec()));
            assert_eq!(proxy.requests().await.len(), 3);
        }
    }
    let proxy = Proxy::with_script(json!([{"fault": "internal"}])).await;
    proxy.client().status().await.unwrap();
    assert_eq!(proxy.statuses().await, [Some(500), Some(200)]);
}

pub(crate) async fn lost_connection_is_retried() {
    let clock = FakeClock::new(0.5);
    let drop = json!({"drop": true});
    let proxy = Proxy::with_script(json!([drop, drop])).await;
    proxy.builder(&clock).build().unwrap().status().await.unwrap();
    assert_eq!(clock.waits(), [0.5, 1.0]);
    let proxy = Proxy::with_script(json!([drop, drop, drop])).await;
    let error = proxy.client().status().await.unwrap_err();
    assert_eq!(proxy.requests().await.len(), 3);
    assert_eq!((error.code(), error.status()), (&ErrorCode::ConnectionFailed, None));
    assert!(error.to_string().contains(&proxy.url), "{error}");
}

pub(crate) async fn quota_exceeded_fails_at_once() {
    let clock = FakeClock::new(0.5);
    let answer =
        json!({"status": 429, "headers": {"Retry-After": "1"}, "body": told("quota_exceeded")});
    for step in [json!({"fault": "quota_exceeded"}), answer] {
        let proxy = Proxy::with_script(json!([step])).await;
        let error = proxy.builder(&clock).build().unwrap().sports().all().await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::QuotaExceeded);
        assert!(error.retry_after().unwrap() > 0.0);
        assert_eq!(proxy.requests().await.len(), 1);
    }
    assert!(clock.waits().is_empty());
}

pub(crate) async fn long_wait_fails_at_once() {
    let clock = FakeClock::new(0.999);
    let closed =
        json!([{"status": 503, "headers": {"Retry-After": "61"}, "body": told("maintenance")}]);
    let proxy = Proxy::with_script(closed.clone()).await;
    let error = proxy.builder(&clock).build().unwrap().status().await.unwrap_err();
    assert_eq!((error.code(), error.retry_after()), (&ErrorCode::Maintenance, Some(61.0)));
    assert!(clock.waits().is_empty());
    let proxy = Proxy::with_script(closed).await;
    let client = proxy.builder(&clock).max_wait(Duration::from_secs(61)).build().unwrap();
    client.status().await.unwrap();
    assert_eq!(clock.waits().len(), 1);
}

pub(crate) async fn cached_response_needs_no_request() {
    let clock = FakeClock::new(0.5);
    let proxy = Proxy::with_headers(max_age()).await;
    let key = variable("LINESMAN_TEST_QUOTA_KEY");
    let client = proxy.builder(&clock).key(key).build().unwrap();
    let first = client.odds("mma").limit(3).await.unwrap();
    clock.advance(19);
    let again = client.odds("mma").limit(3).await.unwrap();
    assert_eq!((first.meta.from_cache, again.meta.from_cache), (false, true));
    assert_eq!(again.data, first.data);
    assert_eq!(proxy.requests().await.len(), 1);
    let used = client.status().await.unwrap().meta.requests_used;
    assert_eq!(used, first.meta.requests_used, "a response from the cache costs quota");
}

pub(crate) async fn unchanged_response_is_reused() {
    let clock = FakeClock::new(0.5);
    let proxy = Proxy::with_headers(max_age()).await;
    let client = proxy.builder(&clock).build().unwrap();
    let first = client.books().await.unwrap();
    clock.advance(20);
    let again = client.books().await.unwrap();
    let sent = &proxy.requests().await[1];
    assert_eq!(sent["status"], 304);
    assert_eq!(sent["headers"]["if-none-match"], json!(first.meta.etag));
    assert_eq!(again.data, first.data);
    assert!(again.meta.from_cache && again.meta.request_id != first.meta.request_id);
    clock.advance(19);
    assert_eq!(client.books().await.unwrap().data, first.data);
    assert_eq!(proxy.requests().await.len(), 2, "a 304 renews the response");
    let odd = Proxy::with_script(json!([{"status": 304}])).await;
    assert_eq!(*odd.client().books().await.unwrap_err().code(), ErrorCode::UnexpectedResponse);
}

pub(crate) async fn status_is_never_cached() {
    // Even if an intermediary allows it.
    let headers = json!({"Cache-Control": "private, max-age=20", "ETag": "\"1\""});
    let proxy = Proxy::with_headers(headers).await;
    let client = proxy.client();
    for _ in 0..2 {
        assert!(!client.status().await.unwrap().meta.from_cache);
    }
    let sent = proxy.requests().await;
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|request| request["headers"]["if-none-match"].is_null()));
}

pub(crate) async fn cache_can_be_disabled() {
    let proxy = Proxy::with_headers(max_age()).await;
    let client = proxy.builder(&FakeClock::new(0.5)).cache(false).build().unwrap();
    for _ in 0..2 {
        assert!(!client.books().await.unwrap().meta.from_cache);
    }
    let sent = proxy.requests().await;
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|request| request["headers"]["if-none-match"].is_null()));
}

pub(crate) async fn cache_is_bounded() {
    let proxy = Proxy::with_headers(max_age()).await;
    let client = proxy.client();
    let is_kept =
        async |limit: u32| client.events("mma").limit(limit).await.unwrap().meta.from_cache;
    for limit in 1..=128 {
        is_kept(limit).await;
    }
    assert!(is_kept(1).await);
    assert_eq!(proxy.requests().await.len(), 128);
    is_kept(129).await;
    assert!(is_kept(1).await && !is_kept(2).await, "the one unused longest goes first");
}

pub(crate) async fn errors_have_types() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let error = &document["components"]["schemas"]["Error"]["properties"]["error"];
    for code in error["properties"]["code"]["enum"].as_array().unwrap() {
        let code = code.as_str().unwrap();
        let answer = json!({"status": 400, "headers": {"Retry-After": "5"}, "body": told(code)});
        // Each attempt gets the same answer.
        let error = fail(json!([answer, answer, answer])).await;
        let words = code.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        assert_eq!(format!("{:?}", error.code()), words.collect::<String>());
        assert_eq!((error.code().as_str(), error.message()), (code, "for people"));
        assert_eq!((error.param(), error.request_id()), (Some("limit"), Some("req_1")));
        assert_eq!((error.status(), error.retry_after()), (Some(400), Some(5.0)));
    }
    let client = Client::new().unwrap();
    let refused = client.odds("mma").limit(501).await.unwrap_err();
    assert_eq!(*refused.code(), ErrorCode::InvalidParameter);
    assert_eq!((refused.param(), refused.status()), (Some("limit"), Some(400)));
    assert!(refused.to_string().contains(refused.request_id().unwrap()));
    let error = client.odds("a/b?c#d").await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::SportNotFound);
    let error = client.event("mma", "evt_none").await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::EventNotFound);
    let error = Client::builder().key("").build().unwrap().status().await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::AuthenticationFailed);
}

pub(crate) async fn unknown_code_gives_base_type() {
    let wanted = json!({"script": [{"fault": "quota_exceeded"}], "unknown": ["codes"]});
    let error = Proxy::new(wanted).await.client().status().await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::Other("unknown_code".to_owned()));
    for text in ["<html>", "[]", r#"{"error": 1}"#, r#"{"error": {"code": "x"}}"#, ""] {
        let error = fail(json!([{"status": 404, "body": text}])).await;
        let found = (error.code(), error.status());
        assert_eq!(found, (&ErrorCode::UnexpectedResponse, Some(404)));
    }
    let deep = "[".repeat(100_000);
    for text in ["<html>", "[]", "1", "null", &deep] {
        let error = fail(json!([{"status": 200, "body": text}])).await;
        assert_eq!(*error.code(), ErrorCode::UnexpectedResponse);
    }
    let odd = Proxy::with_script(json!([{"status": 200, "body": "{}"}])).await;
    odd.client().odds("mma").await.unwrap_err();
    // A redirect is not followed: the key belongs to one server.
    let moved = json!([{"status": 302, "headers": {"Location": "/v1/status"}}]);
    let moved = Proxy::with_script(moved).await;
    moved.client().status().await.unwrap_err();
    assert_eq!(moved.requests().await.len(), 1);
    // A compressed body must have the announced encoding.
    let packed = json!([{"status": 200, "headers": {"Content-Encoding": "gzip"}, "body": "x"}]);
    assert_eq!(*fail(packed).await.code(), ErrorCode::UnexpectedResponse);
}
