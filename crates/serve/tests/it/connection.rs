//! Connections: HTTP/1.0, 1.1 and 2, pipelining, timeouts, the limit, stopping (D25, D32).

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Client, Method, Version};
use serde_json::json;
use tokio::time::Instant;

use crate::harness::{Answer, INGEST_PATH, Raw, TestApp, by_fast_clock, client, line, wait_for};
use crate::test_market::{ANN, BEA, TestMarket};

fn http2() -> Client {
    Client::builder().no_proxy().http2_prior_knowledge().build().unwrap()
}

/// The parts of an answer that must be the same on every transport: all but counters, ids and the date.
fn essence(answer: &Answer) -> (u16, BTreeMap<String, String>, String) {
    let varying = ["x-request-id", "ratelimit", "x-requests-used", "x-requests-remaining"];
    let headers = answer
        .headers
        .iter()
        .filter(|(name, _)| !varying.contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let mut body = format!("{:?}", answer.body);
    if let Some(id) = answer.header("x-request-id") {
        body = body.replace(id, "");
    }
    (answer.status, headers, body)
}

/// Method, path and headers of a request.
type Sketch<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>);

#[tokio::test]
async fn http_1_and_http_2_and_requests_with_a_body_have_the_same_answers() {
    let board = TestMarket::start().await;
    let event = format!("/v1/sports/mma/events/{}", board.bout_id().await);
    let books = board.app.get("/v1/books", &board.key).await;
    let tag = books.header("etag").unwrap().to_owned();
    let by_query = format!("/v1/sports/mma/odds?limit=1&api_key={}", board.key);
    let key = board.key.as_str();
    let long = format!("/v1/sports?x={}", "a".repeat(9 << 10));
    let heavy = "a".repeat(17 << 10);
    let requests: Vec<Sketch<'_>> = vec![
        ("GET", "/v1/sports", vec![("x-api-key", key)]),
        ("HEAD", "/v1/sports", vec![("x-api-key", key)]),
        ("GET", "/v1/sports/mma/odds", vec![("x-api-key", key)]),
        ("GET", "/v1/sports/mma/odds", vec![("x-api-key", key), ("accept-encoding", "gzip")]),
        ("GET", "/v1/sports/mma/odds", vec![("x-api-key", key), ("accept-encoding", "br")]),
        ("GET", "/v1/sports/mma/odds?limit=2", vec![("x-api-key", key)]),
        ("GET", "/v1/sports/mma/odds?group_by=bout", vec![("x-api-key", key)]),
        ("GET", "/v1/sports/mma/scores", vec![("x-api-key", key)]),
        ("GET", "/v1/status", vec![("x-api-key", key)]),
        ("GET", &event, vec![("x-api-key", key)]),
        ("GET", "/v1/books", vec![("x-api-key", key), ("if-none-match", &tag)]),
        ("GET", "/v1/books", vec![("x-api-key", key), ("if-none-match", "W/\"x\", *")]),
        ("GET", &by_query, vec![]),
        ("GET", "/v1/sports/mma/odds?limit=0", vec![("x-api-key", key)]),
        ("GET", "/v1/sports/mma/odds?%ff", vec![("x-api-key", key)]),
        ("GET", "/v1/sports/chess/odds", vec![("x-api-key", key)]),
        ("GET", "/v1/nowhere", vec![("x-api-key", key)]),
        ("GET", "/v1/nowhere", vec![]),
        ("GET", "/v1/nowhere", vec![("x-api-key", key), ("x-api-key", key)]),
        ("DELETE", "/v1/books", vec![("x-api-key", key)]),
        ("GET", "/nowhere", vec![]),
        ("GET", "/healthz", vec![]),
        ("GET", INGEST_PATH, vec![]),
        ("GET", &long, vec![("x-api-key", key)]),
        ("GET", "/v1/books", vec![("x-api-key", key), ("x-heavy", &heavy)]),
    ];
    let ways =
        [(client(), None), (http2(), None), (client(), Some("a body")), (http2(), Some("x"))];
    for (method, path, headers) in requests {
        let mut answers = Vec::new();
        for (client, body) in &ways {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let mut request = client.request(method, format!("http://{}{path}", board.app.addr));
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            if let Some(body) = body {
                request = request.body(*body);
            }
            answers.push(essence(&Answer::of(request).await));
        }
        let shown: String = path.chars().take(60).collect();
        for answer in &mut answers {
            // After refusing a head that it did not read completely, HTTP/1.1 announces that it closes.
            answer.1.remove("connection");
        }
        for (number, answer) in answers.iter().enumerate().skip(1) {
            assert_eq!(*answer, answers[0], "{method} {shown}, way {number}");
        }
    }
}

#[tokio::test]
async fn http_2_is_spoken_without_an_upgrade() {
    let board = TestMarket::start().await;
    let request =
        http2().get(format!("http://{}/v1/books", board.app.addr)).header("X-API-Key", &board.key);
    let response = request.send().await.unwrap();
    assert_eq!((response.version(), response.status().as_u16()), (Version::HTTP_2, 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_of_one_http_2_connection_are_answered() {
    let board = TestMarket::start().await;
    let client = http2();
    let url = format!("http://{}/v1/sports/mma/odds", board.app.addr);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..300 {
        let request = client.get(&url).header("X-API-Key", &board.key);
        tasks.spawn(async { Answer::of(request).await.status });
    }
    assert!(tasks.join_all().await.iter().all(|status| *status == 200));
}

#[tokio::test]
async fn pipelined_requests_in_one_segment_are_answered_in_order() {
    let board = TestMarket::start().await;
    let auth = format!("host: a\r\nx-api-key: {}\r\n", board.key);
    let push = line::heartbeat("fanduel", "mma").to_string();
    let segment = format!(
        "GET /v1/books HTTP/1.1\r\n{auth}\r\n\
         GET /v1/nowhere HTTP/1.1\r\n{auth}\r\n\
         GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n\
         POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{push}\
         GET /v1/status HTTP/1.1\r\n{auth}\r\n\
         GET /v1/sports HTTP/1.1\r\n{auth}connection: close\r\n\r\n",
        board.feed,
        push.len(),
    );
    let answers = board.app.raw(segment.as_bytes(), 99).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 404, 200, 200, 200, 200]);
    assert!(answers[0].json().is_array());
    assert_eq!(answers[2].text(), "ok\n");
    assert_eq!(answers[3].json()["accepted"], 1);
    assert_eq!(answers[4].json()["api_version"], "v1");
    assert!(answers[5].json()["sports"].is_array());
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_read() {
    let board = TestMarket::start().await;
    let mut raw = Raw::connect(board.app.addr).await;
    let request = format!("GET /v1/books HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\n\r\n", board.key);
    for _ in 0..2 {
        for byte in request.as_bytes() {
            raw.send(&[*byte]).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(raw.read_answer().await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed_unless_it_asks_to_stay() {
    let board = TestMarket::start().await;
    let auth = format!("x-api-key: {}\r\n", board.key);
    let mut raw = Raw::connect(board.app.addr).await;
    raw.send(format!("GET /v1/books HTTP/1.0\r\n{auth}\r\n").as_bytes()).await;
    let answer = raw.read_answer().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(raw.is_closed().await);
    let staying = format!("GET /v1/books HTTP/1.0\r\n{auth}connection: keep-alive\r\n\r\n");
    let answers = board.app.raw(staying.repeat(2).as_bytes(), 2).await;
    assert_eq!(answers.len(), 2);
}

#[tokio::test]
async fn a_whole_address_as_target_means_its_path() {
    let board = TestMarket::start().await;
    for target in ["http://example.com/v1/books", "https://example.com/v1/books"] {
        let request =
            format!("GET {target} HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\n\r\n", board.key);
        assert_eq!(board.app.raw_one(request).await.status, 200, "{target}");
    }
}

#[tokio::test]
async fn after_a_refused_head_the_connection_is_closed() {
    let app = TestApp::start().await;
    let mut raw = Raw::connect(app.addr).await;
    raw.send(b"nonsense\r\n\r\nGET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(raw.read_answer().await.unwrap().status, 400);
    assert!(raw.read_answer().await.is_none(), "what follows cannot be told apart any more");
}

#[tokio::test]
async fn after_a_push_a_refused_head_ends_the_connection_too() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let push = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ncontent-length: 1\r\n\r\n\n"
    );
    let many: String = (0..65).map(|n| format!("x-{n}: 1\r\n")).collect();
    let heavy = format!("GET /healthz HTTP/1.1\r\nhost: a\r\n{many}\r\n");
    let answers = app.raw(format!("{push}{heavy}nonsense\r\n\r\n").as_bytes(), 9).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 431]);
    assert_eq!(answers[1].code(), "request_too_large");
}

#[tokio::test]
async fn connections_beyond_the_cap_get_a_clear_answer_and_the_operator_gets_in() {
    let app = TestApp::builder().connections_max(2).start().await;
    let key = app.live_key().await;
    let request = format!("GET /v1/books HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut raw = Raw::connect(app.addr).await;
        raw.send(request.as_bytes()).await;
        assert_eq!(raw.read_answer().await.unwrap().status, 200);
        held.push(raw);
    }
    for _ in 0..5 {
        let mut over = Raw::connect(app.addr).await;
        over.send(request.as_bytes()).await;
        let answer = over.read_answer().await.unwrap();
        assert_eq!(answer.refusal(), (503, "unavailable".to_owned()));
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(over.is_closed().await);
    }
    assert_eq!(app.get_operator("/readyz").await.status, 200);
    let metrics = app.get_operator("/metrics").await;
    assert!(metrics.text().contains("linesman_connections_refused_total 5\n"));
    // Existing connections stay, and closed ones free a place.
    held[0].send(request.as_bytes()).await;
    assert_eq!(held[0].read_answer().await.unwrap().status, 200);
    held.clear();
    let begun = Instant::now();
    while app.raw_one(&request).await.status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no place came free");
    }
}

/// Statuses of the answers, and how long the connection was kept.
async fn kept_for(addr: std::net::SocketAddr, sent: &[u8]) -> (Vec<u16>, Duration) {
    // The service counts from accepting the connection, which may be before the clock is fast.
    let begun = Instant::now();
    let mut raw = Raw::connect(addr).await;
    by_fast_clock(async {
        raw.send(sent).await;
        let mut statuses = Vec::new();
        while let Some(answer) = raw.read_answer().await {
            statuses.push(answer.status);
        }
        (statuses, begun.elapsed())
    })
    .await
}

#[tokio::test]
async fn a_head_that_takes_longer_than_ten_seconds_is_cut() {
    let app = TestApp::start().await;
    for part in ["G", "GET /healthz HTTP/1.1\r\nhost: a\r\n", "PRI * HTTP"] {
        let (statuses, kept) = kept_for(app.addr, part.as_bytes()).await;
        assert!(statuses.is_empty(), "{part:?}");
        assert!((10..70).contains(&kept.as_secs()), "{part:?} was kept for {kept:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_seventy_five_seconds() {
    let app = TestApp::start().await;
    for (sent, expected) in [("", vec![]), ("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n", vec![200])]
    {
        let (statuses, kept) = kept_for(app.addr, sent.as_bytes()).await;
        assert_eq!(statuses, expected);
        assert!((75..135).contains(&kept.as_secs()), "kept for {kept:?}");
    }
}

#[tokio::test]
async fn a_connection_that_pushes_is_kept_as_long_between_pushes() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let push = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ncontent-length: 1\r\n\r\n\n"
    );
    let mut raw = Raw::connect(app.addr).await;
    // The timeout starts with the answer, which comes after this.
    let begun = Instant::now();
    raw.send(push.as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    assert!(by_fast_clock(raw.is_closed()).await);
    let kept = begun.elapsed();
    assert!((75..135).contains(&kept.as_secs()), "kept for {kept:?}");
}

#[tokio::test]
async fn a_body_that_takes_longer_than_thirty_seconds_is_refused() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let head = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ncontent-length: 100\r\n\r\n{{"
    );
    let mut raw = Raw::connect(app.addr).await;
    let begun = Instant::now();
    let answer = by_fast_clock(async {
        raw.send(head.as_bytes()).await;
        raw.read_answer().await.unwrap()
    })
    .await;
    let waited = begun.elapsed();
    assert_eq!(answer.refusal(), (400, "invalid_body".to_owned()));
    assert!((30..75).contains(&waited.as_secs()), "{waited:?}");
}

#[tokio::test]
async fn when_the_service_stops_idle_connections_end_and_new_ones_are_not_taken() {
    let board = TestMarket::start().await;
    let addr = board.app.addr;
    let mut raw = Raw::connect(addr).await;
    raw.send(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    drop(board.app.stop().await);
    assert!(raw.is_closed().await);
    wait_for("the listener's end", || std::net::TcpStream::connect(addr).is_err()).await;
}

#[tokio::test]
async fn an_answer_to_head_has_no_body_on_the_wire() {
    let board = TestMarket::start().await;
    let auth = format!("host: a\r\nx-api-key: {}\r\n", board.key);
    let mut raw = Raw::connect(board.app.addr).await;
    let both =
        format!("HEAD /v1/books HTTP/1.1\r\n{auth}\r\nGET /v1/status HTTP/1.1\r\n{auth}\r\n");
    raw.send(both.as_bytes()).await;
    let head = raw.read_answer_to("HEAD").await.unwrap();
    assert!(head.header("content-length").unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(raw.read_answer().await.unwrap().json()["api_version"], "v1");
}

#[tokio::test]
async fn pushes_over_http_2_are_taken() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let request = http2()
        .post(format!("http://{}{INGEST_PATH}", app.addr))
        .header("Authorization", format!("Bearer {feed}"))
        .body(line::event("a", "mma", ANN, BEA).to_string());
    let receipt = Answer::of(request).await.json();
    assert_eq!(
        receipt,
        json!({ "accepted": 1, "unchanged": 0, "superseded": 0, "rejected_total": 0, "rejected": [] })
    );
}
