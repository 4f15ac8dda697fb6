//! Ingest: receipts, rejections by line, compression, tokens (`docs/ingest.md`).

use std::io::Write;

use serde_json::{Value, json};

use crate::harness::{Answer, INGEST_PATH, PushDoor, Raw, TestApp, line, mistyped, ndjson};
use crate::test_market::{ANN, BEA, TestMarket};

const BODY_BYTES_MAX: usize = 8 << 20;

fn receipt(accepted: u32, unchanged: u32, superseded: u32) -> Value {
    json!({
        "accepted": accepted, "unchanged": unchanged, "superseded": superseded,
        "rejected_total": 0, "rejected": [],
    })
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn event() -> Value {
    line::event("a", "mma", ANN, BEA)
}

fn price(home: i32) -> Value {
    line::moneyline("a", "fanduel", (ANN, home), (BEA, -140))
}

#[tokio::test]
async fn the_receipt_counts_what_was_accepted_unchanged_and_superseded() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let (old, new) = ("2026-11-14T11:00:00Z", "2026-11-14T11:59:00Z");
    assert_eq!(app.push(&feed, ndjson(&[event(), price(120)])).await, receipt(2, 0, 0));
    assert_eq!(app.push(&feed, ndjson(&[event(), price(120)])).await, receipt(0, 2, 0));
    app.advance(std::time::Duration::from_secs(1));
    assert_eq!(app.push(&feed, ndjson(&[price(120)])).await, receipt(0, 1, 0), "a newer ts");
    assert_eq!(app.push(&feed, ndjson(&[price(125)])).await, receipt(1, 0, 0));
    let stale = line::stamped(price(130), old);
    assert_eq!(app.push(&feed, ndjson(&[stale])).await, receipt(0, 0, 1));
    let beat = |ts: &str| line::stamped(line::heartbeat("caesars", "mma"), ts);
    assert_eq!(app.push(&feed, ndjson(&[beat(new)])).await, receipt(1, 0, 0));
    assert_eq!(app.push(&feed, ndjson(&[beat(new), beat(old)])).await, receipt(0, 1, 1));
    assert_eq!(app.push(&feed, "").await, receipt(0, 0, 0));
    assert_eq!(app.push(&feed, "\n\r\n \n").await, receipt(0, 0, 0));
}

#[tokio::test]
async fn a_bad_line_never_harms_the_others_and_is_named_by_its_number() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let body = format!(
        "\u{feff}{}\r\n\n{{broken\n{}\n{}\n{}",
        event(),
        json!({ "type": "odd" }),
        price(120),
        line::moneyline("a", "draftkings", (ANN, 50), (BEA, -140)),
    );
    let got = app.push(&feed, body).await;
    assert_eq!((&got["accepted"], &got["unchanged"]), (&json!(2), &json!(0)));
    let rejected: Vec<(u64, &str)> = got["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reject| {
            assert!(!reject["message"].as_str().unwrap().is_empty());
            assert_eq!(reject.as_object().unwrap().len(), 3);
            (reject["line"].as_u64().unwrap(), reject["code"].as_str().unwrap())
        })
        .collect();
    assert_eq!(rejected, [(3, "invalid_json"), (4, "unknown_type"), (6, "invalid_price")]);
    assert_eq!(got["rejected_total"], 3);
    app.publish().await;
    let odds = app.get("/v1/sports/mma/odds", &key).await.json();
    assert_eq!(odds.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_code_of_a_refused_line_can_be_had() {
    let board = TestMarket::start().await;
    let bound = board.app.feed("bound", Some("fanduel")).await;
    let with = |mut line: Value, field: &str, value: Value| {
        line[field] = value;
        line.to_string()
    };
    let spread = |points: Value| {
        let outcomes = json!([
            { "name": "Ingrid Ivanova", "price": -110, "point": points },
            { "name": "Jessamine Jones", "price": -110, "point": 3.5 },
        ]);
        line::odds("match-1", "fanduel", "spread", "american", &outcomes).to_string()
    };
    let moneyline = |home: i32| line::moneyline("bout-1", "fanduel", (ANN, home), (BEA, -140));
    let cases = [
        ("{", "invalid_json"),
        ("[1]", "invalid_json"),
        (r#"{"type":"remove"}"#, "invalid_message"),
        (r#"{"type":"odd"}"#, "unknown_type"),
        (&with(event(), "sport", json!("chess")), "unknown_sport"),
        (&with(moneyline(120), "bookmaker", json!("corner")), "unknown_bookmaker"),
        (&with(moneyline(120), "market", json!("winner")), "unknown_market"),
        (&with(moneyline(120), "market", json!("h2h")), "unknown_market"),
        (&with(moneyline(120), "market", json!("outright")), "market_not_in_sport"),
        (&moneyline(99).to_string(), "invalid_price"),
        (&moneyline(0).to_string(), "invalid_price"),
        (&spread(Value::Null), "invalid_point"),
        (&spread(json!(3.1)), "invalid_point"),
        (&line::score("nobody", "live", 0, 0).to_string(), "unknown_ref"),
        (
            &line::moneyline("bout-1", "fanduel", (ANN, 120), ("Zoe Zed", -140)).to_string(),
            "unknown_outcome",
        ),
        (&line::stamped(moneyline(130), "2026-11-14T12:00:36Z").to_string(), "future_ts"),
        (&with(event(), "competition", json!("x".repeat(2 << 20))), "too_large"),
    ];
    for (line, code) in cases {
        let got = board.app.push(&board.feed, line).await;
        let shown: String = line.chars().take(90).collect();
        assert_eq!(got["rejected"][0]["code"], code, "{shown}: {got}");
        assert_eq!(got["rejected"][0]["line"], 1);
        assert_eq!(got["accepted"], 0, "{shown}");
    }
    // Five seconds ahead is still accepted.
    let near = line::stamped(moneyline(130), "2026-11-14T12:00:35Z").to_string();
    assert_eq!(board.app.push(&board.feed, near).await, receipt(1, 0, 0));
    let other = line::heartbeat("draftkings", "mma").to_string();
    assert_eq!(board.app.push(&bound, other).await["rejected"][0]["code"], "wrong_bookmaker");
    board.push(&[line::score("bout-1", "live", 1, 0)]).await;
    let back = line::score("bout-1", "scheduled", 1, 0).to_string();
    assert_eq!(
        board.app.push(&board.feed, back).await["rejected"][0]["code"],
        "illegal_transition"
    );
}

#[tokio::test]
async fn what_is_no_price_is_refused() {
    let board = TestMarket::start().await;
    for (format, price) in [
        ("decimal", "1"),
        ("decimal", "1.0"),
        ("decimal", "0.5"),
        ("decimal", "-2"),
        ("american", "99"),
        ("american", "-99"),
        ("american", "0"),
        ("american", "120.5"),
        ("american", "NaN"),
        ("american", "\"120\""),
        ("fractional", "\"0/1\""),
        ("fractional", "\"1/0\""),
        ("fractional", "\"-1/2\""),
        ("fractional", "\"5\""),
        ("fractional", "1.5"),
        ("decimal", "1e999"),
        ("decimal", "null"),
    ] {
        let line = format!(
            r#"{{"type":"odds","ref":"bout-1","bookmaker":"fanduel","market":"moneyline","format":"{format}","outcomes":[{{"name":"{ANN}","price":{price}}},{{"name":"{BEA}","price":{price}}}]}}"#
        );
        let got = board.app.push(&board.feed, line).await;
        assert_eq!(got["accepted"], 0, "{format} {price}: {got}");
        let code = got["rejected"][0]["code"].as_str().unwrap();
        assert!(["invalid_price", "invalid_json", "invalid_message"].contains(&code), "{code}");
    }
}

#[tokio::test]
async fn a_body_whose_every_line_is_bad_is_answered_with_the_list() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let got = app.push(&feed, "what\nis\nthis").await;
    assert_eq!(got["accepted"], 0);
    let lines: Vec<&Value> =
        got["rejected"].as_array().unwrap().iter().map(|reject| &reject["line"]).collect();
    assert_eq!(lines, [1, 2, 3]);
}

#[tokio::test]
async fn packed_bodies_are_taken() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let lines = ndjson(&[event(), price(120)]);
    let first = app.post(&feed, gzip(lines.as_bytes()), Some("gzip")).await;
    assert_eq!(first.json(), receipt(2, 0, 0));
    let zstd = zstd::bulk::compress(lines.as_bytes(), 3).unwrap();
    assert_eq!(app.post(&feed, zstd, Some("zstd")).await.json(), receipt(0, 2, 0));
    // Names of encodings are case-insensitive; identity means none.
    let again = gzip(lines.as_bytes());
    assert_eq!(app.post(&feed, again.clone(), Some("GZip")).await.json(), receipt(0, 2, 0));
    // Several gzip members form one body.
    let both = [again.clone(), again].concat();
    assert_eq!(app.post(&feed, both, Some("gzip")).await.json(), receipt(0, 4, 0));
}

#[tokio::test]
async fn what_is_not_what_its_encoding_says_is_refused_whole() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let lines = ndjson(&[event(), price(120)]);
    let packed = gzip(lines.as_bytes());
    let cut = packed[..packed.len() - 5].to_vec();
    let zstd = zstd::bulk::compress(lines.as_bytes(), 3).unwrap();
    let cut_zstd = zstd[..zstd.len() - 5].to_vec();
    for (body, encoding) in [
        (lines.clone().into_bytes(), "gzip"),
        (lines.clone().into_bytes(), "zstd"),
        (packed.clone(), "zstd"),
        (cut, "gzip"),
        (cut_zstd, "zstd"),
        (packed.clone(), "br"),
        (packed.clone(), "deflate"),
        (packed.clone(), "gzip, gzip"),
    ] {
        let answer = app.post(&feed, body, Some(encoding)).await;
        assert_eq!(answer.refusal(), (400, "invalid_body".to_owned()), "{encoding}");
    }
    // A compressed body without Content-Encoding is not text.
    let answer = app.post(&feed, packed, None).await;
    assert_eq!(answer.refusal(), (400, "invalid_body".to_owned()));
    assert_eq!(app.push(&feed, lines).await, receipt(2, 0, 0), "nothing of all that was taken");
}

#[tokio::test]
async fn what_is_not_text_lines_is_refused_whole() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let nul = [event().to_string().into_bytes(), vec![b'\n', 0]].concat();
    for body in [nul, vec![0xff, 0xfe, 0x00], vec![0xff, 0xfd], vec![0; 100]] {
        let answer = app.post(&feed, body, None).await;
        assert_eq!(answer.refusal(), (400, "invalid_body".to_owned()));
    }
    assert_eq!(app.push(&feed, event().to_string()).await, receipt(1, 0, 0));
}

#[tokio::test]
async fn bodies_of_more_than_eight_mebibytes_are_refused_packed_or_not_and_nothing_is_taken() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let fill = |bytes: usize| {
        let mut body = format!("{}\n", event()).into_bytes();
        body.resize(bytes, b'\n');
        body
    };
    let too_large = (413, "request_too_large".to_owned());
    let over = fill(BODY_BYTES_MAX + 1);
    let zstd = zstd::bulk::compress(&over, 3).unwrap();
    for (body, encoding) in
        [(gzip(&over), Some("gzip")), (zstd, Some("zstd")), (over, None), (fill(20 << 20), None)]
    {
        let answer = app.post(&feed, body, encoding).await;
        assert_eq!(answer.refusal(), too_large, "{encoding:?}");
    }
    // A decompression bomb: 256 MiB of newlines in a few kilobytes.
    let bomb = zstd::stream::encode_all(std::io::Read::take(std::io::repeat(b'\n'), 256 << 20), 1);
    let answer = app.post(&feed, bomb.unwrap(), Some("zstd")).await;
    assert_eq!(answer.refusal(), too_large);
    // More lines than a receipt can list.
    let answer = app.post(&feed, fill(BODY_BYTES_MAX), None).await;
    assert_eq!(answer.refusal(), too_large);
    let mut exact = format!("{}\n", event()).into_bytes();
    exact.resize(BODY_BYTES_MAX, b' ');
    let answer = app.post(&feed, exact, None).await;
    assert_eq!(answer.json(), receipt(1, 0, 0), "to the byte, and nothing was taken before");
}

#[tokio::test]
async fn only_a_live_token_opens_the_door() {
    let app = TestApp::start().await;
    let feed = app.feed("acme", None).await;
    let key = app.live_key().await;
    let refused = (401, "authentication_failed".to_owned());
    for token in ["", "fk_", "nonsense", &key, &mistyped(&feed), &feed.to_uppercase()] {
        let answer = app.post(token, event().to_string().into_bytes(), None).await;
        assert_eq!(answer.refusal(), refused, "{token}");
        assert!(token.len() < 8 || !answer.text().contains(token));
    }
    let url = format!("http://{}{INGEST_PATH}", app.push_addr);
    for (name, value) in [
        ("X-API-Key", feed.clone()),
        ("Authorization", feed.clone()),
        ("Authorization", format!("Basic {feed}")),
    ] {
        let request = app.client.post(&url).header(name, value).body("x");
        assert_eq!(Answer::of(request).await.refusal(), refused, "{name}");
    }
    let lower = app.client.post(&url).header("Authorization", format!("bearer {feed}"));
    assert_eq!(Answer::of(lower.body(event().to_string())).await.json(), receipt(1, 0, 0));
    app.service.api.accounts.revoke_feed("acme", &accounts::Actor::command_line()).await.unwrap();
    assert_eq!(app.post(&feed, b"x".to_vec(), None).await.refusal(), refused);
}

#[tokio::test]
async fn a_bound_token_speaks_for_its_bookmaker_alone() {
    let app = TestApp::start().await;
    let (bound, key) = (app.feed("bound", Some("fanduel")).await, app.live_key().await);
    let mut unnamed = price(120);
    unnamed.as_object_mut().unwrap().remove("bookmaker");
    let theirs = line::moneyline("a", "draftkings", (ANN, 120), (BEA, -140));
    let got = app.push(&bound, ndjson(&[event(), unnamed.clone(), theirs])).await;
    assert_eq!(got["accepted"], 2);
    assert_eq!(got["rejected"][0]["code"], "wrong_bookmaker");
    assert_eq!(got["rejected"][0]["line"], 3);
    app.publish().await;
    let odds = app.get("/v1/sports/mma/odds", &key).await.json();
    assert_eq!(odds.as_array().unwrap().len(), 1);
    assert_eq!(odds[0]["bookmaker"], "fanduel");
    let free = app.any_feed().await;
    let got = app.push(&free, ndjson(&[event(), unnamed])).await;
    assert_eq!(got["rejected"][0]["code"], "invalid_message", "nobody to speak for");
}

#[tokio::test]
async fn a_ref_is_the_feeds_own() {
    let board = TestMarket::start().await;
    let other = board.app.any_feed().await;
    let odds = line::moneyline("bout-1", "caesars", (ANN, 120), (BEA, -140)).to_string();
    let got = board.app.push(&other, odds).await;
    assert_eq!(got["rejected"][0]["code"], "unknown_ref");
}

#[tokio::test]
async fn the_door_is_on_the_main_listener_unless_it_has_its_own() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let push = |app: &TestApp, feed: &str| {
        let request = app.request(reqwest::Method::POST, INGEST_PATH);
        request.header("Authorization", format!("Bearer {feed}")).body(event().to_string())
    };
    assert_eq!(Answer::of(push(&app, &feed)).await.json(), receipt(1, 0, 0));
    let apart = TestApp::builder().push_door(PushDoor::Apart).start().await;
    let feed = apart.any_feed().await;
    assert_eq!(Answer::of(push(&apart, &feed)).await.refusal(), (404, "not_found".to_owned()));
    assert_eq!(apart.push(&feed, event().to_string()).await, receipt(1, 0, 0));
    let url = format!("http://{}/v1/books", apart.push_addr);
    let read = apart.client.get(&url).header("X-API-Key", apart.live_key().await);
    assert_eq!(Answer::of(read).await.refusal(), (404, "not_found".to_owned()));
    let other = apart.client.get(format!("http://{}{INGEST_PATH}", apart.operator_addr));
    assert_eq!(Answer::of(other).await.refusal(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_push_of_nothing_at_all_is_still_a_push() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    for length in ["", "content-length: 0\r\n"] {
        let head = format!("POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\n{length}");
        let unknown = app.raw_one(format!("{head}\r\n")).await;
        assert_eq!(unknown.refusal(), (401, "authentication_failed".to_owned()));
        let known = app.raw_one(format!("{head}authorization: Bearer {feed}\r\n\r\n")).await;
        assert_eq!((known.status, known.json()), (200, receipt(0, 0, 0)));
        assert!(known.header("x-request-id").is_some());
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_not_taken() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let lines = ndjson(&[event(), price(120)]);
    let mut raw = Raw::connect(app.addr).await;
    let head = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ncontent-length: {}\r\n\r\n",
        lines.len() + 10
    );
    raw.send(head.as_bytes()).await;
    raw.send(lines.as_bytes()).await;
    drop(raw);
    app.publish().await;
    assert_eq!(app.get("/v1/sports/mma/events", &key).await.json(), json!([]));
}

#[tokio::test]
async fn a_body_still_arriving_is_refused_when_its_feed_is_paused_or_revoked_meanwhile() {
    let app = TestApp::start().await;
    let feed = app.feed("slow", None).await;
    let lines = ndjson(&[event(), price(120)]);
    let (first, rest) = lines.split_at(20);
    let begin = async || {
        let mut raw = Raw::connect(app.addr).await;
        let head = format!(
            "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\n\
             expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            lines.len()
        );
        raw.send(head.as_bytes()).await;
        // The body is requested once the token was accepted.
        assert_eq!(raw.read_answer().await.unwrap().status, 100);
        raw.send(first.as_bytes()).await;
        raw
    };
    let mut raw = begin().await;
    app.service
        .api
        .accounts
        .pause_feed("slow", true, &accounts::Actor::command_line())
        .await
        .unwrap();
    raw.send(rest.as_bytes()).await;
    let refused = raw.read_answer().await.unwrap();
    assert_eq!(refused.refusal(), (409, "feed_paused".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("60"));
    let counted = "linesman_feed_pushes_paused_total{feed=\"slow\"} 1";
    assert!(app.get_operator("/metrics").await.text().contains(counted));
    app.service
        .api
        .accounts
        .pause_feed("slow", false, &accounts::Actor::command_line())
        .await
        .unwrap();
    assert_eq!(app.push(&feed, &*lines).await, receipt(2, 0, 0), "nothing of it was taken");
    // A pause that ends before the body is complete refuses nothing.
    let mut raw = begin().await;
    app.service
        .api
        .accounts
        .pause_feed("slow", true, &accounts::Actor::command_line())
        .await
        .unwrap();
    app.service
        .api
        .accounts
        .pause_feed("slow", false, &accounts::Actor::command_line())
        .await
        .unwrap();
    raw.send(rest.as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().json(), receipt(0, 2, 0));
    let mut raw = begin().await;
    app.service.api.accounts.revoke_feed("slow", &accounts::Actor::command_line()).await.unwrap();
    raw.send(rest.as_bytes()).await;
    let refused = raw.read_answer().await.unwrap();
    assert_eq!(refused.refusal(), (401, "authentication_failed".to_owned()));
}

#[tokio::test]
async fn chunked_and_expected_bodies_are_taken() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let line = format!("{}\n", event());
    let head =
        format!("POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\n");
    let chunked =
        format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{line}\r\n0\r\n\r\n", line.len());
    assert_eq!(app.raw_one(chunked).await.json(), receipt(1, 0, 0));
    let mut raw = Raw::connect(app.addr).await;
    let expecting = format!("{head}expect: 100-continue\r\ncontent-length: {}\r\n\r\n", line.len());
    raw.send(expecting.as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 100);
    raw.send(line.as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().json(), receipt(0, 1, 0));
    // A client without a valid token need not send the body.
    let mut raw = Raw::connect(app.addr).await;
    let unknown = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 9000000\r\n\r\n"
    );
    raw.send(unknown.as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_are_answered_while_ten_thousand_lines_are_taken() {
    let board = TestMarket::start().await;
    let mut lines = String::new();
    for number in 0..5_000 {
        let (home, away) = (format!("Home{number:05} Alpha"), format!("Away{number:05} Omega"));
        let reference = format!("r-{number}");
        lines.push_str(&ndjson(&[
            line::event(&reference, "tennis", &home, &away),
            line::moneyline(&reference, "fanduel", (&home, 120), (&away, -140)),
        ]));
    }
    let pushing = board.app.push(&board.feed, lines);
    let reading = async {
        for _ in 0..50 {
            assert_eq!(board.list("/v1/sports/mma/odds").await.len(), 5);
        }
    };
    let (got, ()) = tokio::join!(pushing, reading);
    assert_eq!(got, receipt(10_000, 0, 0));
    board.app.publish().await;
    let answer = board.app.get("/v1/sports/tennis/odds?limit=500", &board.key).await;
    assert_eq!(answer.json().as_array().unwrap().len(), 500);
    assert!(answer.next_page().is_some());
}
