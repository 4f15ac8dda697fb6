//! Paths that need no key.

use serde_json::{Map, Value, json};

use crate::error::ErrorCode;
use crate::openapi::caller::Caller;
use crate::openapi::header::headers_for_anyone;
use crate::openapi::object;
use crate::openapi::response::Responses;

/// A public page.
struct Page {
    path: &'static str,
    name: &'static str,
    title: &'static str,
    meaning: &'static str,
    content_type: &'static str,
    schema: fn() -> Value,
    refusals: &'static [ErrorCode],
}

const EVERYWHERE: [ErrorCode; 4] = [
    ErrorCode::MethodNotAllowed,
    ErrorCode::TargetTooLong,
    ErrorCode::HeadTooLarge,
    ErrorCode::Internal,
];

const PAGES: [Page; 6] = [
    Page {
        path: "/healthz",
        name: "get_health",
        title: "Health",
        meaning: "200 while the process is running.",
        content_type: "text/plain; charset=utf-8",
        schema: || json!({ "type": "string", "const": "ok\n" }),
        refusals: &[],
    },
    Page {
        path: "/readyz",
        name: "get_readiness",
        title: "Readiness",
        meaning: "200 while current snapshots are served; otherwise 503 `unavailable`.",
        content_type: "text/plain; charset=utf-8",
        schema: || json!({ "type": "string", "const": "ready\n" }),
        refusals: &[ErrorCode::Unavailable],
    },
    Page {
        path: "/openapi.json",
        name: "get_openapi",
        title: "This document",
        meaning: "The OpenAPI document of the running service, with its own sports and bookmakers.",
        content_type: "application/json",
        schema: || json!({ "type": "object" }),
        refusals: &[],
    },
    Page {
        path: "/docs",
        name: "get_docs",
        title: "Documentation",
        meaning: "The documentation as web pages, also at `/`.",
        content_type: "text/html; charset=utf-8",
        schema: || json!({ "type": "string" }),
        refusals: &[],
    },
    Page {
        path: "/llms.txt",
        name: "get_llms",
        title: "Documentation for language models",
        meaning: "The pages of the documentation as a list in Markdown.",
        content_type: "text/plain; charset=utf-8",
        schema: || json!({ "type": "string" }),
        refusals: &[],
    },
    Page {
        path: "/llms-full.txt",
        name: "get_llms_full",
        title: "Documentation in one text",
        meaning: "All that is needed to write a client, in one text of at most 100 KB.",
        content_type: "text/plain; charset=utf-8",
        schema: || json!({ "type": "string" }),
        refusals: &[],
    },
];

/// Path items of the paths that need no key.
pub(crate) fn paths(responses: &mut Responses) -> Map<String, Value> {
    PAGES.iter().map(|page| (page.path.to_owned(), path_item(page, responses))).collect()
}

fn path_item(page: &Page, responses: &mut Responses) -> Value {
    let codes = EVERYWHERE.iter().chain(page.refusals).copied();
    let success = json!({
        "description": page.meaning,
        "headers": headers_for_anyone(),
        "content": { (page.content_type): { "schema": (page.schema)() } },
    });
    let mut answers = vec![("200".to_owned(), success)];
    answers.extend(responses.refusals(Caller::Anyone, codes));
    json!({
        "get": {
            "tags": ["Service"],
            "operationId": page.name,
            "summary": page.title,
            "description": page.meaning,
            "security": [],
            "responses": object(answers),
        },
    })
}
