//! Any body of an agent is answered by one message of the protocol, or by nothing, and requests from the API only what
//! tools and events need.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use mcp::{Answering, Call, Headers, Page, Reader, Refused, Server};
use serde_json::Value;

static SERVER: LazyLock<Arc<Server>> = LazyLock::new(|| {
    let openapi = serde_json::from_str(include_str!("../../openapi.json")).expect("is JSON");
    Arc::new(Server::new(&openapi, Vec::new()))
});

static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().build().expect("a runtime"));

/// An API that answers at once.
struct Api;

impl Reader for Api {
    fn get<'a>(&'a self, call: &'a Call) -> Answering<'a, Result<Page, Refused>> {
        let target = call.target();
        assert!(target.starts_with("/v1/") && !target.contains("/../") && target.is_ascii());
        let body = br#"{"sports":[{"key":"mma"}]}"#.to_vec();
        Box::pin(std::future::ready(Ok(Page { body, next_cursor: None })))
    }

    fn count(&self) -> Answering<'_, Result<(), Refused>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fuzz_target!(|input: ((Option<&[u8]>, Option<&[u8]>, Option<&[u8]>, bool), &[u8])| {
    let ((version, method, name, is_ambiguous), body) = input;
    let headers = Headers { version, method, name, is_ambiguous };
    let answer = RUNTIME.block_on(SERVER.answer(Arc::new(Api), headers, body));
    assert!(matches!(answer.status, 200 | 202 | 400 | 404), "{}", answer.status);
    let Some(body) = answer.body else { return };
    let message: Value = serde_json::from_slice(&body).expect("an answer is JSON");
    assert_eq!(message["jsonrpc"], "2.0");
    assert!(message.get("result").is_some() != message.get("error").is_some());
    assert_eq!(message.get("error").is_some(), answer.is_refused);
});
