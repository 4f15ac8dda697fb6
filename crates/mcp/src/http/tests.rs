//! Every answer is a message of the official types, and matches the request.

use std::borrow::Cow;
use std::sync::Mutex;

use rmcp::model::{
    CallToolResult, DiscoverResult, GetPromptResult, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, ReadResourceResult,
};

use serde_json::{Value, json};

use super::*;
use crate::Call;
use crate::message::REFUSED;
use crate::page::{Page, Refused};
use crate::reader::Answering;
use crate::resource::Document;
use crate::version::VERSIONS;

/// Has MMA events and a burst limit.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<String>>,
    counted: Mutex<u32>,
    is_limited: bool,
}

impl Fake {
    fn limit(&self) -> Refused {
        let error = json!({ "code": "rate_limited", "message": "rate limit reached" });
        Refused { status: 429, error, retry_after_s: Some(7) }
    }
}

impl Reader for Fake {
    fn get<'a>(&'a self, call: &'a Call) -> Answering<'a, Result<Page, Refused>> {
        let target = call.target();
        self.asked.lock().unwrap().push(target.clone());
        Box::pin(async move {
            if self.is_limited {
                return Err(self.limit());
            }
            let body = match target.as_str() {
                "/v1/sports" => json!({ "sports": [{ "key": "golf" }, { "key": "mma" }] }),
                "/v1/sports/mma/events/evt_1" => json!({ "id": "evt_1" }),
                target if target.contains("/events/") => {
                    let error = json!({ "code": "event_not_found", "message": "no such event" });
                    return Err(Refused { status: 404, error, retry_after_s: None });
                }
                "/v1/sports/mma/odds?limit=20" => {
                    json!(vec![json!({ "id": "x".repeat(1000) }); 90])
                }
                _ => json!([]),
            };
            Ok(Page { body: body.to_string().into_bytes(), next_cursor: Some("c".to_owned()) })
        })
    }

    fn count(&self) -> Answering<'_, Result<(), Refused>> {
        *self.counted.lock().unwrap() += 1;
        Box::pin(async { if self.is_limited { Err(self.limit()) } else { Ok(()) } })
    }
}

fn server() -> Arc<Server> {
    let openapi = serde_json::from_str(include_str!("../../../../openapi.json")).unwrap();
    let document = Document {
        name: "docs/errors",
        title: "Errors",
        description: "What they mean.",
        mime_type: "text/markdown",
        text: Cow::Borrowed("# Errors"),
    };
    Arc::new(Server::new(&openapi, vec![document]))
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A request in one of the two forms.
fn request(form: Form, method: &str, mut params: Value) -> Vec<u8> {
    if form == Form::SelfContained {
        params["_meta"] = meta();
    }
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
        .to_string()
        .into_bytes()
}

/// Sends a message with the headers of its form.
async fn ask(reader: &Arc<Fake>, bytes: &[u8]) -> (Answer, Value) {
    let message: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).map(str::as_bytes);
    let version = text("/params/_meta/io.modelcontextprotocol~1protocolVersion");
    let headers = Headers {
        version,
        method: version.and(text("/method")),
        name: version.and(text("/params/name").or(text("/params/uri"))),
        is_ambiguous: false,
    };
    let reader: Arc<dyn Reader> = Arc::<Fake>::clone(reader);
    let answer = server().answer(reader, headers, bytes).await;
    let body = answer.body.as_deref().map(|body| serde_json::from_slice(body).unwrap());
    (answer, body.unwrap_or_default())
}

/// Checks that a result is a complete value of one of the official types.
fn check<T: serde::Serialize + serde::de::DeserializeOwned>(result: &Value) {
    let typed: T = serde_json::from_value(result.clone()).unwrap();
    assert_eq!(&serde_json::to_value(typed).unwrap(), result);
}

#[tokio::test]
async fn every_result_is_of_its_official_type_in_both_forms() {
    let event = json!({ "uri": "linesman://events/evt_1" });
    let prompt = json!({ "name": "compare_prices", "arguments": { "event": "evt_1" } });
    for form in [Form::WithInitialize, Form::SelfContained] {
        for (method, params, check) in [
            ("tools/list", json!({}), check::<ListToolsResult> as fn(&Value)),
            ("tools/call", json!({ "name": "get_status" }), check::<CallToolResult>),
            ("tools/call", json!({ "name": "get_odds" }), check::<CallToolResult>),
            ("resources/list", json!({}), check::<ListResourcesResult>),
            ("resources/templates/list", json!({}), check::<ListResourceTemplatesResult>),
            (
                "resources/read",
                json!({ "uri": "linesman://docs/errors" }),
                check::<ReadResourceResult>,
            ),
            ("resources/read", event.clone(), check::<ReadResourceResult>),
            ("prompts/list", json!({}), check::<ListPromptsResult>),
            ("prompts/get", prompt.clone(), check::<GetPromptResult>),
        ] {
            let (answer, body) = ask(&Arc::default(), &request(form, method, params)).await;
            assert_eq!(
                (answer.status, body["id"].clone(), answer.is_refused),
                (200, json!(7), false),
                "{body}"
            );
            let result = &body["result"];
            let is_kept = method.ends_with("list") || method == "resources/read";
            let is_new = form == Form::SelfContained;
            assert_eq!(result.get("resultType").is_some(), is_new, "{method}");
            assert_eq!(result.get("ttlMs").is_some(), is_new && is_kept, "{method}");
            check(result);
        }
    }
}

#[tokio::test]
async fn a_client_agrees_on_a_version() {
    for (wanted, agreed) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let params = json!({
            "protocolVersion": wanted,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let (_, body) =
            ask(&Arc::default(), &request(Form::WithInitialize, "initialize", params)).await;
        check::<InitializeResult>(&body["result"]);
        assert_eq!(body["result"]["protocolVersion"], agreed);
    }
    let (_, body) =
        ask(&Arc::default(), &request(Form::SelfContained, "server/discover", json!({}))).await;
    check::<DiscoverResult>(&body["result"]);
    assert_eq!(body["result"]["supportedVersions"], json!(VERSIONS));
}

#[tokio::test]
async fn a_call_is_one_request_and_everything_else_counts() {
    let cases = [
        ("tools/call", json!({ "name": "get_status" }), 1, 0),
        (
            "tools/call",
            json!({ "name": "get_odds", "arguments": { "sport_key": "mma", "limit": 101 } }),
            0,
            1,
        ),
        ("tools/call", json!({ "name": "drop_tables" }), 0, 1),
        ("tools/call", json!({ "name": "get_status", "arguments": [] }), 0, 1),
        ("tools/list", json!({}), 0, 1),
        ("ping", json!({}), 0, 1),
        ("nothing", json!({}), 0, 1),
        ("resources/read", json!({ "uri": "linesman://docs/errors" }), 0, 1),
        ("resources/read", json!({ "uri": "linesman://docs/nothing" }), 0, 1),
        ("resources/read", json!({ "uri": "linesman://events/a?b" }), 0, 1),
        // Three requests: the sports, golf, mma.
        ("resources/read", json!({ "uri": "linesman://events/evt_1" }), 3, 0),
    ];
    for (method, params, asked, counted) in cases {
        let reader = Arc::<Fake>::default();
        ask(&reader, &request(Form::WithInitialize, method, params)).await;
        let found = (reader.asked.lock().unwrap().len(), *reader.counted.lock().unwrap());
        assert_eq!(found, (asked, counted), "{method}");
    }
    for bytes in [&b"no JSON"[..], br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
        let reader = Arc::<Fake>::default();
        ask(&reader, bytes).await;
        assert_eq!(*reader.counted.lock().unwrap(), 1);
    }
}

#[tokio::test]
async fn what_is_wrong_has_a_code_and_a_status() {
    let old = Form::WithInitialize;
    let new = Form::SelfContained;
    let mut unknown_version = json!({ "_meta": meta() });
    unknown_version["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2031-01-01".into();
    let mut no_capabilities = json!({ "_meta": meta() });
    no_capabilities["_meta"]["io.modelcontextprotocol/clientCapabilities"] = Value::Null;
    for (bytes, code, status) in [
        (b"{".to_vec(), ErrorCode::PARSE_ERROR, 400),
        (vec![b' '; MESSAGE_BYTES_MAX + 1], ErrorCode::INVALID_REQUEST, 400),
        (request(old, "nothing", json!({})), ErrorCode::METHOD_NOT_FOUND, 200),
        (request(new, "nothing", json!({})), ErrorCode::METHOD_NOT_FOUND, 404),
        (request(new, "ping", json!({})), ErrorCode::METHOD_NOT_FOUND, 404),
        (request(old, "tools/list", unknown_version), ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, 400),
        (request(old, "tools/list", no_capabilities), ErrorCode::INVALID_PARAMS, 400),
        (request(old, "server/discover", json!({})), ErrorCode::INVALID_PARAMS, 400),
        (
            request(old, "resources/read", json!({ "uri": "file:///etc/passwd" })),
            ErrorCode::RESOURCE_NOT_FOUND,
            200,
        ),
        (
            request(new, "resources/read", json!({ "uri": "file:///etc/passwd" })),
            ErrorCode::INVALID_PARAMS,
            200,
        ),
        (
            request(old, "resources/read", json!({ "uri": "linesman://events/evt_9" })),
            ErrorCode::RESOURCE_NOT_FOUND,
            200,
        ),
        (
            request(old, "tools/call", json!({ "name": "drop_tables" })),
            ErrorCode::INVALID_PARAMS,
            200,
        ),
        (request(old, "prompts/get", json!({ "name": "nothing" })), ErrorCode::INVALID_PARAMS, 200),
        (request(old, "prompts/get", json!({ "name": 1 })), ErrorCode::INVALID_PARAMS, 200),
        (request(old, "initialize", json!({})), ErrorCode::INVALID_PARAMS, 200),
        (request(new, "completion/complete", json!({})), ErrorCode::METHOD_NOT_FOUND, 404),
    ] {
        let (answer, body) = ask(&Arc::default(), &bytes).await;
        assert_eq!(
            (body["error"]["code"].clone(), answer.status),
            (json!(code.0), status),
            "{body}"
        );
        assert!(answer.is_refused);
    }
}

#[tokio::test]
async fn a_limit_is_a_refusal_of_the_message_and_a_result_of_a_call() {
    let reader = Arc::new(Fake { is_limited: true, ..Fake::default() });
    let (answer, body) =
        ask(&reader, &request(Form::WithInitialize, "tools/list", json!({}))).await;
    assert_eq!((answer.status, answer.retry_after_s), (429, Some(7)));
    assert_eq!((&body["id"], &body["error"]["code"]), (&json!(7), &json!(REFUSED.0)));
    assert_eq!(body["error"]["data"]["error"]["code"], "rate_limited");
    let (answer, body) =
        ask(&reader, &request(Form::WithInitialize, "tools/call", json!({ "name": "get_status" })))
            .await;
    assert_eq!((answer.status, body["result"]["isError"].clone()), (200, json!(true)));
    let text = body["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("rate_limited") && text.contains("\"retry_after_s\":7"), "{text}");
}

#[tokio::test]
async fn a_long_answer_is_shortened_on_another_thread() {
    let params = json!({ "name": "get_odds", "arguments": { "sport_key": "mma" } });
    let (_, body) =
        ask(&Arc::default(), &request(Form::WithInitialize, "tools/call", params)).await;
    let structured = &body["result"]["structuredContent"];
    let kept = structured["answer"].as_array().unwrap().len();
    assert_eq!(structured["left_out"], 90 - kept);
    assert!(kept > 50);
}

#[tokio::test]
async fn headers_repeat_the_body_or_are_refused() {
    let server = server();
    let ask = async |headers: Headers<'_>, bytes: Vec<u8>| {
        let answer = server.answer(Arc::new(Fake::default()), headers, &bytes).await;
        let body: Value =
            serde_json::from_slice(&answer.body.unwrap_or_default()).unwrap_or_default();
        (answer.status, body["error"]["code"].as_i64())
    };
    let call = || request(Form::SelfContained, "tools/call", json!({ "name": "get_status" }));
    let whole = Headers {
        version: Some(b"2026-07-28"),
        method: Some(b"tools/call"),
        name: Some(b"get_status"),
        is_ambiguous: false,
    };
    assert_eq!(ask(whole, call()).await, (200, None));
    let packed = Headers { name: Some(b"=?base64?Z2V0X3N0YXR1cw==?="), ..whole };
    assert_eq!(ask(packed, call()).await, (200, None));
    let mismatch = (400, Some(i64::from(ErrorCode::HEADER_MISMATCH.0)));
    for headers in [
        Headers { version: None, ..whole },
        Headers { version: Some(b"2025-11-25"), ..whole },
        Headers { method: None, ..whole },
        Headers { method: Some(b"tools/list"), ..whole },
        Headers { name: None, ..whole },
        Headers { name: Some(b"get_odds"), ..whole },
        Headers { name: Some(b"=?base64?!?="), ..whole },
        Headers { is_ambiguous: true, ..whole },
    ] {
        assert_eq!(ask(headers, call()).await, mismatch, "{headers:?}");
    }
    let old = || request(Form::WithInitialize, "tools/list", json!({}));
    let of = |version| Headers { version: Some(version), ..Headers::default() };
    assert_eq!(ask(Headers::default(), old()).await, (200, None));
    assert_eq!(ask(of(b"2025-06-18"), old()).await, (200, None));
    assert_eq!(
        ask(of(b"2024-11-05"), old()).await,
        (400, Some(i64::from(ErrorCode::INVALID_REQUEST.0)))
    );
    assert_eq!(
        ask(of(b"2026-07-28"), old()).await,
        (400, Some(i64::from(ErrorCode::INVALID_PARAMS.0)))
    );
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let begin = || request(Form::WithInitialize, "initialize", params.clone());
    assert_eq!(ask(of(b"2025-06-18"), begin()).await, (200, None));
    assert_eq!(
        ask(of(b"2025-11-25"), begin()).await,
        (400, Some(i64::from(ErrorCode::INVALID_REQUEST.0)))
    );
    let told = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(ask(of(b"2025-11-25"), told.to_vec()).await, (202, None));
    let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(
        ask(of(b"2025-11-25"), response.to_vec()).await,
        (400, Some(i64::from(ErrorCode::INVALID_REQUEST.0)))
    );
}
