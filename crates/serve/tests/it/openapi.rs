//! The OpenAPI document against the service it describes: each example is an actual answer of the service, and each
//! answer has the documented shape, headers and status.
//!
//! When an answer changes on purpose, the failing test writes the new files to a folder that it names; review the
//! difference, copy them over the old files, and run `cargo xtask openapi`.

pub(crate) mod conform;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use accounts::{Actor, KeyKind, Maintenance, NewKey};
use change_log::{ChangeLog, Options};
use domain::World;
use market::{CHANGE_VERSION, Change, Ids};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::harness::{Answer, INGEST_PATH, TestApp, at};

const START: &str = "2027-03-12T19:00:05.250Z";
/// Chosen once; another salt would give the scenario's events other ids. Ids are derived from the refs: minted ones
/// differ in every run.
const SALT: u64 = 2027;
/// Replaces, in examples, the id that differs between requests.
const REQUEST_ID: &str = "req_7hK2mQ9xL4t";
/// Replaces, in examples, the cursor of a log that differs in every run.
const CURSOR: &str = "QQEAAAGanEUZQAAAAABKXyHD";
/// Number of items shown of a long list.
const SHORTENED: usize = 4;

fn document() -> Value {
    serde_json::from_str(&api::openapi::document()).unwrap()
}

/// A service whose events get the same ids in every run, with the scenario published.
async fn start() -> (TestApp, Value) {
    let dir = TempDir::new().unwrap();
    found(&dir.path().join(World::Live.to_string()));
    let app = TestApp::builder().on(dir).starting_at(at(START)).start().await;
    let feed = app.feed("lines", None).await;
    let receipt =
        app.push(&feed, include_str!("../../../api/src/openapi/examples/push.ndjson")).await;
    let scenario = app.push(&feed, include_str!("openapi/scenario.ndjson")).await;
    assert_eq!(scenario["rejected"], json!([]));
    app.publish().await;
    (app, receipt)
}

fn found(folder: &Path) {
    let (mut log, _) = ChangeLog::open(folder, Options::default()).unwrap();
    let mut entry = Vec::new();
    Change::Founded { ids: Ids::Derived { salt: SALT } }.encode(&mut entry);
    log.append(at(START).as_millis(), [(CHANGE_VERSION, &*entry)]).unwrap();
}

/// Differences from the files in the repository, and the location of the new ones.
#[derive(Default)]
struct Differences(String);

impl Differences {
    fn compare(&mut self, file: &str, held: &Value, actual: &Value) {
        // Compared as text, so that the order of fields matters.
        let (held, actual) = (format!("{held:#}\n"), format!("{actual:#}\n"));
        if held != actual {
            self.note(file, &actual);
        }
    }

    fn note(&mut self, file: &str, text: &str) {
        let folder = folder();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
        writeln!(self.0, "{file} is now:\n{text}").unwrap();
    }

    fn assert_none(self) {
        let folder = folder();
        assert!(
            self.0.is_empty(),
            "{}what is new lies in {}; if it is right, copy it to crates/api/src/openapi/examples",
            self.0,
            folder.display()
        );
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi-examples")
}

/// Path, response and examples of each GET operation under `/v1`.
fn operations(document: &Value) -> Vec<(&String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .filter(|(path, _)| path.starts_with("/v1/"))
        .map(|(path, item)| (path, &item["get"]["responses"]["200"]))
        .filter(|(_, response)| response["content"].get("application/json").is_some())
        .collect()
}

#[tokio::test]
async fn every_example_is_what_the_service_answers() {
    let (document, (app, receipt)) = (document(), start().await);
    let key = app.key(NewKey::of_kind(KeyKind::Production)).await;
    let mut differences = Differences::default();
    for (path, response) in operations(&document) {
        let content = &response["content"]["application/json"];
        let examples = content["examples"].as_object().unwrap();
        assert!(!examples.is_empty(), "{path} has no example");
        for (name, example) in examples {
            let target = example["x-request"].as_str().unwrap().strip_prefix("GET ").unwrap();
            let answer = app.get(target, &key).await;
            assert_eq!(answer.status, 200, "{target}: {}", answer.text());
            let body = answer.json();
            assert_eq!(body.to_string(), answer.text(), "{target}");
            conform::check(&document, &content["schema"], &body).unwrap();
            conform::check_headers(&document, response, &answer);
            let shown = if example["x-shortened"] == true {
                body.as_array().unwrap().iter().take(SHORTENED).cloned().collect()
            } else {
                body
            };
            differences.compare(&format!("{name}.json"), &example["value"], &shown);
        }
    }
    let door =
        &document["paths"][INGEST_PATH]["post"]["responses"]["200"]["content"]["application/json"];
    differences.compare("push_receipt.json", &door["examples"]["receipt"]["value"], &receipt);
    conform::check(&document, &door["schema"], &receipt).unwrap();
    differences.assert_none();
}

#[tokio::test]
async fn the_example_of_a_stream_is_what_the_service_sends() {
    let (document, (app, _)) = (document(), start().await);
    let key = app.key(NewKey::of_kind(KeyKind::Production)).await;
    let stream = &document["paths"]["/v1/stream"]["get"]["responses"]["200"]["content"];
    let stream = &stream["text/event-stream"];
    let example = &stream["examples"]["stream"];
    let target = example["x-request"].as_str().unwrap().strip_prefix("GET ").unwrap();
    let request = app.request(Method::GET, target).header("X-API-Key", &key);
    let mut response = request.send().await.unwrap();
    let mut text = String::new();
    while !text.contains("event: cut") || !text.ends_with("\n\n") {
        let chunk = response.chunk().await.unwrap().expect("a cut");
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let id = text.split("\"stream\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let text = text.replace(&id, &REQUEST_ID.replace("req_", "str_"));
    let cursor = text.split("\nid: ").nth(1).unwrap().split('\n').next().unwrap().to_owned();
    let text = text.replace(&cursor, CURSOR);
    for block in text.split_terminator("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let data: Value = serde_json::from_str(field("data: ")).unwrap();
        conform::check(&document, &stream["x-event-schemas"][field("event: ")], &data).unwrap();
    }
    let mut differences = Differences::default();
    if example["value"] != *text {
        differences.note("stream.txt", &text);
    }
    differences.assert_none();
}

/// Error responses by their name in the document.
type Refusals = Map<String, Value>;

fn keep(refusals: &mut Refusals, document: &Value, response: &str, code: &str, answer: &Answer) {
    let described = &document["components"]["responses"][response];
    assert!(described.is_object(), "{response}");
    let mut body = answer.json();
    conform::check(document, &described["content"]["application/json"]["schema"], &body)
        .unwrap_or_else(|error| panic!("{response}: {error}"));
    conform::check_headers(document, described, answer);
    body["error"]["request_id"] = REQUEST_ID.into();
    refusals.insert(code.to_owned(), body);
}

#[tokio::test]
async fn every_refusal_is_what_the_service_answers() {
    let (document, (app, _)) = (document(), start().await);
    let mut refusals = Refusals::new();
    refuse_clients(&app, &document, &mut refusals).await;
    refuse_large_requests(&app, &document, &mut refusals).await;
    refuse_feeds(&app, &document, &mut refusals).await;
    refuse_ranges(&document, &mut refusals).await;
    refuse_everybody(&app, &document, &mut refusals).await;
    refusals.sort_keys();

    let held: Value =
        serde_json::from_str(include_str!("../../../api/src/openapi/examples/refusals.json"))
            .unwrap();
    let mut differences = Differences::default();
    differences.compare("refusals.json", &held, &Value::Object(refusals));
    differences.assert_none();
}

async fn refuse_clients(app: &TestApp, document: &Value, refusals: &mut Refusals) {
    let mut keep = |response: &str, code: &str, answer: &Answer| {
        keep(refusals, document, response, code, answer);
    };
    let key = app.live_key().await;
    let answer = app.get("/v1/sports/mma/odds?limit=501", &key).await;
    keep("InvalidParameter", "InvalidParameter", &answer);
    let answer = app.get_without_key("/v1/books").await;
    keep("AuthenticationFailed", "AuthenticationFailed", &answer);
    let golfer = app.key_for_groups(&["golf"]).await;
    keep("Forbidden", "Forbidden", &app.get("/v1/sports/mma/odds", &golfer).await);
    let answer = app.get("/v1/sports/chess/odds", &key).await;
    keep("SportNotFoundOrNotInHistoryOrNotFound", "SportNotFound", &answer);
    let answer = app.get("/v1/sports/mma/events/evt_unknown", &key).await;
    keep("SportNotFoundOrEventNotFoundOrNotInHistoryOrNotFound", "EventNotFound", &answer);
    let answer = app.get("/v1/sports/mma/odds?as_of=2020-01-01T00:00:00Z", &key).await;
    keep("SportNotFoundOrNotInHistoryOrNotFound", "NotInHistory", &answer);
    let elsewhere = TestApp::start().await;
    let cursor = elsewhere.get("/v1/sports/mma/odds", &elsewhere.live_key().await).await;
    let cursor = cursor.header("x-cursor").unwrap();
    let answer = app.get(&format!("/v1/sports/mma/odds?since={cursor}"), &key).await;
    keep("CursorExpired", "CursorExpired", &answer);
    let answer = app.get("/v1/sports//odds", &key).await;
    keep("SportNotFoundOrNotInHistoryOrNotFound", "NotFound", &answer);
    let request = app.request(Method::DELETE, "/v1/books").header("X-API-Key", &key);
    keep("MethodNotAllowed", "MethodNotAllowed", &Answer::of(request).await);
    let answer = Answer::of(app.request(Method::DELETE, "/healthz")).await;
    keep("OpenMethodNotAllowed", "MethodNotAllowed", &answer);
    let hasty = app.limited_key(60, 10_000, None).await;
    let answer = ask_until_refused(app, "/v1/status", &hasty).await;
    keep("RateLimited", "RateLimited", &answer);
    let busy = app.limited_key(60, 50, None).await;
    let answer = ask_until_refused(app, "/v1/books", &busy).await;
    keep("RateLimitedOrQuotaExceeded", "QuotaExceeded", &answer);
    let mut streams = Vec::new();
    while streams.len() < 5 {
        let request = app.request(Method::GET, "/v1/stream").header("X-API-Key", &key);
        streams.push(request.send().await.unwrap());
    }
    let answer = app.get("/v1/stream", &key).await;
    keep("RateLimitedOrQuotaExceededOrTooManyStreams", "TooManyStreams", &answer);
    drop(streams);
    let request = app.request(Method::GET, "/v1/stream").header("X-API-Key", &key);
    let request = request.header("Connection", "upgrade").header("Upgrade", "websocket");
    let answer = Answer::of(request.header("Sec-WebSocket-Version", "8")).await;
    keep("UpgradeRequired", "UpgradeRequired", &answer);
    app.service
        .api
        .accounts
        .set_maintenance(Maintenance::On { retry_after_s: 600 }, &Actor::command_line())
        .await
        .unwrap();
    let answer = app.get("/v1/books", &key).await;
    keep("MaintenanceOrUnavailable", "Maintenance", &answer);
    app.service
        .api
        .accounts
        .set_maintenance(Maintenance::Off, &Actor::command_line())
        .await
        .unwrap();
}

async fn ask_until_refused(app: &TestApp, path: &str, key: &str) -> Answer {
    let mut answer = app.get(path, key).await;
    while answer.status == 200 {
        answer = app.get(path, key).await;
    }
    answer
}

async fn refuse_ranges(document: &Value, refusals: &mut Refusals) {
    let (app, key) = crate::v1::export::a_day_later(None).await;
    let range = [("Range", "bytes=1000000-")];
    let answer = app.get_with(crate::v1::export::ODDS, &key, &range).await;
    let mut body = answer.json();
    // The length of a file depends on the ids in it.
    let length = answer.header("content-range").unwrap().strip_prefix("bytes */").unwrap();
    let message = body["error"]["message"].as_str().unwrap().replace(length, "146515");
    body["error"]["message"] = message.into();
    let answer = Answer { body: body.to_string().into(), ..answer.clone() };
    keep(refusals, document, "RangeNotSatisfiable", "RangeNotSatisfiable", &answer);
}

async fn refuse_large_requests(app: &TestApp, document: &Value, refusals: &mut Refusals) {
    let path = "a".repeat(9_000);
    let key = app.live_key().await;
    let answer = app.get(&format!("/v1/{path}"), &key).await;
    keep(refusals, document, "TargetTooLong", "TargetTooLong", &answer);
    let heavy =
        format!("GET /v1/books HTTP/1.1\r\nhost: a\r\nx-heavy: {}\r\n\r\n", "a".repeat(17_000));
    let answer = app.raw_one(heavy).await;
    keep(refusals, document, "HeadTooLarge", "HeadTooLarge", &answer);
}

async fn refuse_feeds(app: &TestApp, document: &Value, refusals: &mut Refusals) {
    let mut keep = |response: &str, code: &str, answer: &Answer| {
        keep(refusals, document, response, code, answer);
    };
    let feed = app.any_feed().await;
    let answer = app.post(&feed, vec![0; 64], None).await;
    keep("PushInvalidBody", "InvalidBody", &answer);
    let answer = app.post("fk_unknown", b"\n".to_vec(), None).await;
    keep("PushAuthenticationFailed", "PushAuthenticationFailed", &answer);
    let left = app.feed("left", Some("corner_shop")).await;
    let answer = app.post(&left, b"{}\n".to_vec(), None).await;
    keep("PushForbidden", "PushForbidden", &answer);
    let resting = app.feed("resting", None).await;
    app.service.api.accounts.pause_feed("resting", true, &Actor::command_line()).await.unwrap();
    keep("PushFeedPaused", "FeedPaused", &app.post(&resting, b"{}\n".to_vec(), None).await);
    let answer = Answer::of(app.request(Method::GET, INGEST_PATH)).await;
    keep("PushMethodNotAllowed", "PushMethodNotAllowed", &answer);
    let answer = app.post(&feed, vec![b'\n'; 9 << 20], None).await;
    keep("PushBodyTooLarge", "BodyTooLarge", &answer);
}

/// Shuts the service down step by step.
async fn refuse_everybody(app: &TestApp, document: &Value, refusals: &mut Refusals) {
    let (key, feed) = (app.live_key().await, app.any_feed().await);
    app.service.api.accounts.release().await.unwrap();
    let answer = app.get("/v1/books", &key).await;
    keep(refusals, document, "MaintenanceOrUnavailable", "Unavailable", &answer);
    app.service.api.world(World::Live).stop();
    let mut answer = app.post(&feed, b"\n".to_vec(), None).await;
    while answer.status == 200 {
        answer = app.post(&feed, b"\n".to_vec(), None).await;
    }
    keep(refusals, document, "PushUnavailable", "PushUnavailable", &answer);
    app.advance(Duration::from_secs(300));
    let answer = app.get_without_key("/readyz").await;
    keep(refusals, document, "OpenUnavailable", "OpenUnavailable", &answer);
}

#[tokio::test]
async fn what_is_unchanged_is_told_with_the_headers_of_the_document() {
    let (document, (app, _)) = (document(), start().await);
    let key = app.live_key().await;
    let target = "/v1/sports/mma/odds?limit=1";
    let etag = app.get(target, &key).await.header("etag").unwrap().to_owned();
    let answer = app.get_with(target, &key, &[("If-None-Match", &etag)]).await;
    assert_eq!(answer.status, 304);
    conform::check_headers(&document, &document["components"]["responses"]["NotModified"], &answer);
}

#[tokio::test]
async fn the_document_and_the_docs_are_served_to_anybody() {
    let app = TestApp::start().await;
    let answer = app.get_without_key("/openapi.json").await;
    assert_eq!(answer.text(), api::openapi::document());
    let etag = answer.header("etag").unwrap();
    let again = app.request(Method::GET, "/openapi.json").header("If-None-Match", etag);
    assert_eq!(Answer::of(again).await.status, 304);
    for path in ["/", "/docs"] {
        let page = app.get_without_key(path).await;
        assert_eq!(page.status, 200);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert_eq!(page.header("set-cookie"), None, "who only reads is not marked");
        assert!(page.text().contains("<h1>Documentation</h1>"));
        assert!(!page.text().contains("<script>") && !page.text().contains(" style="));
    }
    assert_eq!(app.get_without_key("/docs/nothing").await.status, 404);
}

#[tokio::test]
async fn the_documentation_for_language_models_is_whole_small_and_served_to_anybody() {
    let app = TestApp::start().await;
    let mut links = BTreeSet::new();
    for path in ["/llms.txt", "/llms-full.txt"] {
        let answer = app.get_without_key(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/plain; charset=utf-8"))
        );
        assert!(answer.body.len() <= 100_000, "{path} has {} bytes", answer.body.len());
        assert_eq!(answer.header("set-cookie"), None, "who only reads is not marked");
        let held =
            app.request(Method::GET, path).header("If-None-Match", answer.header("etag").unwrap());
        assert_eq!(Answer::of(held).await.status, 304, "{path}");
        let post = Answer::of(app.request(Method::POST, path)).await;
        assert_eq!(post.refusal(), (405, "method_not_allowed".to_owned()), "{path}");
        assert!(answer.text().starts_with("# Linesman\n\n"), "{path}");
        let targets = answer
            .text()
            .split("](/")
            .skip(1)
            .map(|rest| rest.split([')', '#']).next().unwrap().to_owned());
        links.extend(targets);
    }
    assert!(links.len() > 40, "{links:?}");
    for link in links {
        assert_eq!(app.get_without_key(&format!("/{link}")).await.status, 200, "/{link}");
    }
    let full = app.get_without_key("/llms-full.txt").await;
    let document = document();
    for (path, _) in
        document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/v1/"))
    {
        assert!(full.text().contains(&format!("`GET {path}`")), "{path}");
    }
    for part in [
        "## Error codes",
        "### OddsRecord",
        "- `odds_format`",
        "## Getting started",
        "## Polling and paging",
        "## The sandbox",
    ] {
        assert!(full.text().contains(&format!("\n{part}")), "{part}");
    }
}

#[test]
fn the_committed_document_is_what_the_program_prints() {
    let committed = include_str!("../../../../openapi.json");
    if committed != api::openapi::document() {
        let mut differences = Differences::default();
        differences.note("openapi.json", &api::openapi::document());
        panic!("openapi.json at the root is out of date: run `cargo xtask openapi`");
    }
}
