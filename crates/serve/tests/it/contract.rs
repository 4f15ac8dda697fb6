//! The matrix read from the OpenAPI document: every operation, with every kind of unsuitable key.

use accounts::{Actor, KeyKind, Maintenance, NewKey};
use bytes::Bytes;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::harness::{Answer, TestApp, unlimited};
use crate::test_market::TestMarket;

/// An operation of the document, with a path to existing data.
#[derive(Debug)]
struct Operation {
    method: Method,
    path: String,
    security: Security,
    in_sport: bool,
    is_status: bool,
    /// Its answer is endless, and HEAD is refused.
    is_stream: bool,
    statuses: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Security {
    ApiKey,
    FeedToken,
    Nothing,
}

fn operations(bout: &str) -> Vec<Operation> {
    let document: Value = serde_json::from_str(&api::openapi::document()).unwrap();
    let mut operations = Vec::new();
    for (template, item) in document["paths"].as_object().unwrap() {
        for method in ["get", "head", "post", "put", "patch", "delete", "options"] {
            // HEAD is GET without the body, and the document does not repeat it.
            let described =
                if method == "head" && template.starts_with("/v1/") { "get" } else { method };
            let Some(operation) = item.get(described) else { continue };
            let content = &operation["responses"]["200"]["content"];
            let is_stream = content.get("text/event-stream").is_some();
            if is_stream && method == "head" {
                continue;
            }
            let security = operation.get("security").unwrap_or(&document["security"]).to_string();
            let security = match &*security {
                "[]" => Security::Nothing,
                text if text.contains("FeedToken") => Security::FeedToken,
                text if text.contains("ApiKeyHeader") => Security::ApiKey,
                other => panic!("{template}: unknown security {other}"),
            };
            operations.push(Operation {
                method: Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(),
                path: template
                    .replace("{sport_key}", "mma")
                    .replace("{event_id}", bout)
                    .replace("{table}", "odds")
                    .replace("{date}", "2026-11-13"),
                security,
                in_sport: template.contains("{sport_key}"),
                is_status: template == "/v1/status",
                is_stream,
                statuses: operation["responses"].as_object().unwrap().keys().cloned().collect(),
            });
        }
    }
    operations
}

impl Operation {
    fn request(&self, app: &TestApp, key: Option<&str>) -> RequestBuilder {
        let request = app.request(self.method.clone(), &self.path);
        match key {
            Some(key) => request.header("X-API-Key", key),
            None => request,
        }
    }

    /// Sends a request, and checks that the answer is as expected and documented.
    async fn check(&self, app: &TestApp, key: Option<&str>, status: u16, code: &str, why: &str) {
        let response = self.request(app, key).send().await.unwrap();
        let (got, headers) = (response.status().as_u16(), response.headers().clone());
        // An endless answer is not read.
        let endless = self.is_stream && got == 200;
        let body = if endless { Bytes::new() } else { response.bytes().await.unwrap() };
        self.check_answer(&Answer { status: got, headers, body }, status, code, why);
    }

    /// Whether it needs a permission that ordinary keys lack.
    fn is_export(&self) -> bool {
        self.path.contains("/export/")
    }

    /// Sends a request with a key that has every default permission.
    async fn check_good(&self, app: &TestApp, key: &str, why: &str) {
        let status = if self.is_export() { 403 } else { 200 };
        self.check(app, Some(key), status, "forbidden", why).await;
    }

    /// Whether it costs no quota, because it reports the state of the service rather than data.
    fn is_free(&self) -> bool {
        let free = ["/v1/history", "/coverage", "/explain"];
        self.is_status || free.iter().any(|end| self.path.ends_with(end))
    }

    fn check_answer(&self, answer: &Answer, status: u16, code: &str, why: &str) {
        let what = format!("{} {}, {why}", self.method, self.path);
        assert_eq!(answer.status, status, "{what}");
        let told = |held: &String| *held == status.to_string() || held == "default";
        assert!(self.statuses.iter().any(told), "{what}: {status} is not in the document");
        if self.method == Method::HEAD {
            assert!(answer.body.is_empty(), "{what}");
        } else if status >= 400 {
            assert_eq!(answer.code(), code, "{what}");
        }
        assert!(answer.header("x-request-id").is_some(), "{what}");
    }
}

async fn under_v1(board: &TestMarket) -> Vec<Operation> {
    let mut operations = operations(&board.bout_id().await);
    operations.retain(|operation| operation.security == Security::ApiKey);
    assert_eq!(operations.len(), 37, "eighteen operations with GET and HEAD, and the stream");
    operations
}

#[tokio::test]
async fn every_operation_refuses_whoever_has_no_valid_key() {
    let board = TestMarket::start().await;
    let app = &board.app;
    // Well-formed, with a correct checksum, but unknown here.
    let elsewhere = TestApp::start().await;
    let unknown = elsewhere.live_key().await;
    let revoked = app.live_key().await;
    app.service.api.accounts.revoke_key(&revoked, &Actor::command_line()).await.unwrap();
    let rotated = app.live_key().await;
    app.service.api.accounts.rotate_key(&rotated, None, &Actor::command_line()).await.unwrap();
    let refused = "authentication_failed";
    for operation in under_v1(&board).await {
        operation.check(app, None, 401, refused, "without a key").await;
        for (why, key) in [
            ("empty", ""),
            ("malformed", "sk_live_short"),
            ("of a feed", &board.feed),
            ("unknown", &unknown),
            ("revoked", &revoked),
            ("rotated", &rotated),
        ] {
            operation.check(app, Some(key), 401, refused, why).await;
        }
        operation.check_good(app, &board.key, "valid").await;
    }
}

#[tokio::test]
async fn every_operation_in_a_sport_refuses_a_key_out_of_scope_and_no_other_does() {
    let board = TestMarket::start().await;
    let app = &board.app;
    let other_group = app.key_for_groups(&["golf"]).await;
    let no_read = app.key(NewKey { odds_read: false, ..unlimited(KeyKind::Production) }).await;
    for operation in under_v1(&board).await {
        for (why, key) in [("of another group", &other_group), ("without odds:read", &no_read)] {
            // Without sports, a stream covers those that the key covers.
            let refused = operation.in_sport || (operation.is_stream && key == &no_read);
            let status = if refused { 403 } else { 200 };
            operation.check(app, Some(key), status, "forbidden", why).await;
        }
    }
}

#[tokio::test]
async fn every_operation_holds_to_the_limits() {
    let board = TestMarket::start().await;
    let app = &board.app;
    for operation in under_v1(&board).await {
        let burst = app.limited_key(1, 100, None).await;
        operation.check_good(app, &burst, "the only one of the minute").await;
        operation.check(app, Some(&burst), 429, "rate_limited", "with the burst spent").await;
        for (day, month) in [(1, None), (100, Some(1))] {
            let quota = app.limited_key(100, day, month).await;
            assert_eq!(app.get("/v1/books", &quota).await.status, 200);
            if operation.is_export() {
                operation.check_good(app, &quota, "with it spent").await;
                continue;
            }
            let status = if operation.is_free() { 200 } else { 429 };
            operation.check(app, Some(&quota), status, "quota_exceeded", "with it spent").await;
        }
    }
}

#[tokio::test]
async fn every_operation_but_status_is_closed_in_maintenance() {
    let board = TestMarket::start().await;
    let operations = under_v1(&board).await;
    let closed = Maintenance::On { retry_after_s: 60 };
    board.app.service.api.accounts.set_maintenance(closed, &Actor::command_line()).await.unwrap();
    for operation in operations {
        let status = if operation.is_status { 200 } else { 503 };
        operation.check(&board.app, Some(&board.key), status, "maintenance", "closed").await;
    }
}

#[tokio::test]
async fn every_operation_refuses_a_parameter_it_does_not_have() {
    let board = TestMarket::start().await;
    for mut operation in under_v1(&board).await {
        operation.path.push_str("?nonsense=1");
        if operation.is_export() {
            // Scope comes before parameters (D3).
            operation.check_good(&board.app, &board.key, "nonsense").await;
            continue;
        }
        let answer = Answer::of(operation.request(&board.app, Some(&board.key))).await;
        operation.check_answer(&answer, 400, "invalid_parameter", "nonsense");
        operation.path = operation.path.replace("nonsense=1", "api_key=1");
        operation.check(&board.app, None, 401, "authentication_failed", "by query").await;
    }
}

#[tokio::test]
async fn operations_without_security_need_no_key_and_mind_none() {
    let board = TestMarket::start().await;
    let mut operations = operations(&board.bout_id().await);
    operations.retain(|operation| operation.security == Security::Nothing);
    assert!(operations.len() >= 4);
    for operation in operations {
        operation.check(&board.app, None, 200, "", "without a key").await;
        operation.check(&board.app, Some("nonsense"), 200, "", "with nonsense").await;
    }
}

#[tokio::test]
async fn the_push_operation_refuses_whoever_has_no_live_token() {
    let board = TestMarket::start().await;
    let mut operations = operations(&board.bout_id().await);
    operations.retain(|operation| operation.security == Security::FeedToken);
    assert_eq!(operations.len(), 1);
    let elsewhere = TestApp::start().await;
    let unknown = elsewhere.any_feed().await;
    let revoked = board.app.feed("gone", None).await;
    board.app.service.api.accounts.revoke_feed("gone", &Actor::command_line()).await.unwrap();
    for (why, token, status) in [
        ("malformed", "fk_short", 401),
        ("an API key", &board.key, 401),
        ("unknown", &unknown, 401),
        ("revoked", &revoked, 401),
        ("live", &board.feed, 200),
    ] {
        let request = operations[0].request(&board.app, None);
        let request = request.header("Authorization", format!("Bearer {token}")).body("\n");
        let answer = Answer::of(request).await;
        operations[0].check_answer(&answer, status, "authentication_failed", why);
    }
    operations[0].check(&board.app, None, 401, "authentication_failed", "without").await;
}
