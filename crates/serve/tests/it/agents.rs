//! `/mcp` over HTTP: keys, limits, names, statuses; the protocol itself is tested in `mcp`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, TestApp, mistyped};
use crate::test_market::TestMarket;

fn message(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

async fn send(app: &TestApp, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> Answer {
    let request = app.request(Method::POST, "/mcp").body(body);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Answer::of(request.header("content-type", "application/json")).await
}

async fn ask(app: &TestApp, key: &str, method: &str, params: Value) -> Answer {
    send(app, &[("x-api-key", key)], message(method, &params).to_string()).await
}

/// The result of a call that must not fail.
async fn call(app: &TestApp, key: &str, tool: &str, arguments: Value) -> Value {
    let answer = ask(app, key, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let result = answer.json()["result"].clone();
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"].clone()
}

/// The error of a call that must fail.
async fn failure(app: &TestApp, key: &str, tool: &str, arguments: Value) -> Value {
    let answer = ask(app, key, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    let result = answer.json()["result"].clone();
    assert_eq!((answer.status, &result["isError"]), (200, &json!(true)), "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str::<Value>(text).unwrap()["error"].clone()
}

#[tokio::test]
async fn a_call_gives_what_the_api_gives() {
    let market = TestMarket::start().await;
    let (app, key) = (&market.app, market.key.as_str());
    for (tool, arguments, path) in [
        ("list_sports", json!({}), "/v1/sports"),
        ("list_books", json!({}), "/v1/books"),
        ("list_events", json!({ "sport_key": "mma" }), "/v1/sports/mma/events?limit=20"),
        (
            "get_odds",
            json!({ "sport_key": "mma", "regions": ["us", "uk"], "limit": 2 }),
            "/v1/sports/mma/odds?regions=us,uk&limit=2",
        ),
        ("get_best", json!({ "sport_key": "mma" }), "/v1/sports/mma/best?limit=20"),
    ] {
        let expected = app.get(path, key).await;
        let result = call(app, key, tool, arguments).await;
        assert_eq!(result["answer"], expected.json(), "{tool}");
        let next = expected.next_page();
        let cursor =
            next.as_deref().and_then(|next| next.split_once("cursor=")).map(|(_, cursor)| cursor);
        assert_eq!(result.get("next_cursor").and_then(Value::as_str), cursor, "{tool}");
    }
    let first = call(app, key, "get_odds", json!({ "sport_key": "mma", "limit": 1 })).await;
    let next = json!({ "sport_key": "mma", "limit": 1, "cursor": first["next_cursor"] });
    let second = call(app, key, "get_odds", next).await;
    assert_ne!(first["answer"][0]["id"], second["answer"][0]["id"]);
    let error = failure(app, key, "get_odds", json!({ "sport_key": "chess?x=/../" })).await;
    assert_eq!(error["code"], "sport_not_found");
    assert!(error["request_id"].is_string(), "{error}");
}

#[tokio::test]
async fn the_key_comes_in_either_header_and_is_needed() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let list = || message("tools/list", &json!({})).to_string();
    let bearer = format!("Bearer {key}");
    assert_eq!(send(&app, &[("x-api-key", &key)], list()).await.status, 200);
    assert_eq!(send(&app, &[("authorization", &bearer)], list()).await.status, 200);
    let wrong = mistyped(&key);
    for headers in [
        vec![],
        vec![("x-api-key", wrong.as_str())],
        vec![("authorization", "Bearer nothing")],
        vec![("authorization", key.as_str())],
        vec![("x-api-key", key.as_str()), ("x-api-key", key.as_str())],
        vec![("x-api-key", wrong.as_str()), ("authorization", bearer.as_str())],
    ] {
        let refused = send(&app, &headers, list()).await;
        assert_eq!(refused.refusal(), (401, "authentication_failed".to_owned()));
        assert!(refused.header("www-authenticate").is_some());
        assert!(!refused.text().contains(&key) && !refused.text().contains(&wrong));
    }
    let actor = accounts::Actor::command_line();
    app.service.api.accounts.revoke_key(&key, &actor).await.unwrap();
    assert_eq!(send(&app, &[("x-api-key", &key)], list()).await.status, 401);
}

#[tokio::test]
async fn a_call_costs_a_request_and_other_messages_count_towards_the_burst_alone() {
    let app = TestApp::start().await;
    let key = app.limited_key(6, 2, None).await;
    assert_eq!(ask(&app, &key, "tools/list", json!({})).await.status, 200);
    assert_eq!(ask(&app, &key, "ping", json!({})).await.status, 200);
    call(&app, &key, "list_books", json!({})).await;
    call(&app, &key, "list_books", json!({})).await;
    let error = failure(&app, &key, "list_books", json!({})).await;
    assert_eq!(error["code"], "quota_exceeded");
    assert!(error["retry_after_s"].as_u64().is_some_and(|wait| wait > 0), "{error}");
    // The sixth of the minute; get_status costs no quota, but counts towards the burst.
    call(&app, &key, "get_status", json!({})).await;
    let error = failure(&app, &key, "get_status", json!({})).await;
    assert_eq!(error["code"], "rate_limited");
    let refused = ask(&app, &key, "prompts/list", json!({})).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.json()["error"]["data"]["error"]["code"], "rate_limited");
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(send(&app, &[("x-api-key", &key)], told).await.status, 429);
    let usage = app.get("/v1/status", &key).await;
    assert_eq!((usage.status, usage.requests_used()), (429, 2));
}

#[tokio::test]
async fn only_posts_for_this_service_are_taken() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    for method in [Method::GET, Method::DELETE, Method::PUT, Method::HEAD] {
        let answer =
            Answer::of(app.request(method.clone(), "/mcp").header("x-api-key", &key)).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}");
    }
    let list = message("tools/list", &json!({})).to_string();
    let host = app.addr.to_string();
    let own = format!("http://{host}");
    for (name, value, status) in [
        ("host", "evil.example", 403),
        ("host", "localhost:1", 200),
        ("origin", "http://evil.example", 403),
        ("origin", "null", 403),
        ("origin", own.as_str(), 200),
        ("content-encoding", "gzip", 400),
        ("content-encoding", "identity", 200),
    ] {
        let answer = send(&app, &[("x-api-key", &key), (name, value)], list.clone()).await;
        assert_eq!(answer.status, status, "{name}: {value}: {}", answer.text());
    }
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let told = send(&app, &[("x-api-key", &key)], told).await;
    assert_eq!((told.status, told.text()), (202, ""));
    let answer = send(&app, &[("x-api-key", &key)], list).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.header("mcp-session-id").is_none());
}

#[tokio::test]
async fn a_message_has_at_most_64_kib() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let padded = |bytes: usize| {
        let list = message("tools/list", &json!({})).to_string();
        format!("{list}{}", " ".repeat(bytes - list.len()))
    };
    assert_eq!(send(&app, &[("x-api-key", &key)], padded(64 << 10)).await.status, 200);
    let refused = send(&app, &[("x-api-key", &key)], padded((64 << 10) + 1)).await;
    assert_eq!(refused.refusal(), (413, "request_too_large".to_owned()));
    // Without a valid key, the body is not read.
    assert_eq!(send(&app, &[], padded(1 << 20)).await.status, 401);
    for body in ["", "[]", "{", "\u{0}", "1", "\"\""] {
        let refused = send(&app, &[("x-api-key", &key)], body).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.json()["error"]["code"].is_i64());
    }
    let deep = "[".repeat(60_000);
    assert_eq!(send(&app, &[("x-api-key", &key)], deep).await.status, 400);
}

#[tokio::test]
async fn requests_of_the_new_version_repeat_themselves_in_headers() {
    let app = TestApp::start().await;
    let key = app.live_key().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = message("tools/call", &json!({ "name": "get_status", "_meta": meta })).to_string();
    let mut headers = vec![
        ("x-api-key", key.as_str()),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "get_status"),
    ];
    let answer = send(&app, &headers, body.clone()).await;
    assert_eq!(answer.json()["result"]["resultType"], "complete", "{}", answer.text());
    headers.push(("mcp-name", "get_odds"));
    let refused = send(&app, &headers, body).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32020)));
}

#[tokio::test]
async fn documents_and_events_are_resources() {
    let market = TestMarket::start().await;
    let (app, key) = (&market.app, market.key.as_str());
    let listed = ask(app, key, "resources/list", json!({})).await.json();
    let listed = listed["result"]["resources"].as_array().unwrap();
    let uris: Vec<&str> = listed.iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(
        uris,
        [
            "linesman://openapi",
            "linesman://docs/errors",
            "linesman://docs/analytics",
            "linesman://docs/coverage",
            "linesman://docs/sandbox"
        ]
    );
    let read = async |uri: &str| {
        let answer = ask(app, key, "resources/read", json!({ "uri": uri })).await.json();
        answer["result"]["contents"][0]["text"].as_str().map(str::to_owned)
    };
    for uri in uris {
        assert!(read(uri).await.is_some_and(|text| text.len() > 500), "{uri}");
    }
    let openapi: Value = serde_json::from_str(&read("linesman://openapi").await.unwrap()).unwrap();
    assert_eq!(openapi, app.get_without_key("/openapi.json").await.json());
    let events = app.get("/v1/sports/mma/events", key).await.json();
    let id = events[0]["id"].as_str().unwrap();
    let event = read(&format!("linesman://events/{id}")).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&event).unwrap(), events[0]);
    assert_eq!(read("linesman://events/evt_nothing").await, None);
}

#[tokio::test]
async fn messages_are_counted_and_a_fault_can_be_asked_for() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.sandbox_key().await;
    call(&app, &key, "get_status", json!({})).await;
    ask(&app, &key, "nothing", json!({})).await;
    let page = app.get_operator("/metrics").await;
    for line in [
        "linesman_mcp_messages_total{method=\"tools/call\",outcome=\"answered\"} 1",
        "linesman_mcp_messages_total{method=\"other\",outcome=\"refused\"} 1",
        "linesman_requests_total{endpoint=\"get_status\",outcome=\"ok\"} 1",
    ] {
        assert!(page.text().lines().any(|found| found == line), "{line}");
    }
    let params = json!({ "name": "list_books", "arguments": {} });
    let headers = [("x-api-key", key.as_str()), ("x-sandbox-fault", "503")];
    let answer = send(&app, &headers, message("tools/call", &params).to_string()).await;
    assert_eq!(answer.json()["result"]["isError"], true, "{}", answer.text());
}
