//! Malformed requests, first on a connection and after others: each is refused with the body of D1, and a path under
//! `/v1` reveals nothing without a key (D3).

use crate::harness::{Answer, INGEST_PATH, Raw, TestApp};
use crate::test_market::TestMarket;

/// Requests, and the status of their refusal.
fn requests() -> Vec<(String, u16)> {
    let many: String = (0..65).map(|n| format!("x-{n}: 1\r\n")).collect();
    let (heavy, long) = ("a".repeat(20_000), "a".repeat(9_000));
    let post = format!("POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\n");
    let mut requests = vec![
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.2\r\nhost: a\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/2.0\r\nhost: a\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nhost: a\r\n x: folded\r\n\r\n".to_owned(), 400),
        ("G(T / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), 400),
        ("\u{0}\u{1}\u{2}\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nhost: a\r\nx: {heavy}\r\n\r\n"), 431),
        (format!("GET /{heavy} HTTP/1.1\r\nhost: a\r\n\r\n"), 414),
        (format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"), 414),
        (format!("GET /v1/{long} HTTP/1.1\r\nhost: a\r\n\r\n"), 401),
        (format!("GET /v1/books?x={long} HTTP/1.1\r\nhost: a\r\n\r\n"), 401),
        ("BREW /nowhere HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), 404),
        ("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), 404),
        ("CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), 404),
        ("DELETE /healthz HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n".to_owned(), 405),
    ];
    for (framing, status) in [
        ("content-length: 99999999999999999999999\r\n\r\n", 413),
        ("content-length: -1\r\n\r\n", 400),
        ("content-length: +1\r\n\r\nx", 400),
        ("content-length: 1, 1\r\n\r\nx", 400),
        ("content-length: 1\r\ncontent-length: 2\r\n\r\nx", 400),
        ("content-length: \r\n\r\n", 400),
        ("content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("transfer-encoding: identity\r\n\r\n", 400),
        ("transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("expect: 100-continue\r\ncontent-length: 10\r\n\r\n", 401),
        ("expect: something\r\ncontent-length: 1\r\n\r\nx", 401),
        ("content-length: 1\r\n\r\nx", 401),
    ] {
        requests.push((format!("{post}{framing}"), status));
    }
    requests
}

/// Earlier requests on the connection.
fn beginnings(feed: &str) -> [String; 4] {
    let get = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    let push =
        format!("POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\n");
    let body = "GET /healthz HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc";
    let length = format!("{push}content-length: 1\r\n\r\n\n");
    let chunks = format!("{push}transfer-encoding: chunked\r\n\r\n1\r\n\n\r\n0\r\n\r\n");
    [get.to_owned(), length, chunks, body.to_owned()]
}

async fn refusal(raw: &mut Raw, request: &str) -> Answer {
    raw.send(request.as_bytes()).await;
    let shown: String = request.chars().take(100).collect();
    raw.read_answer().await.unwrap_or_else(|| panic!("no answer to {shown:?}"))
}

#[tokio::test]
async fn every_refusal_has_its_body_first_and_later_on_a_connection() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    for (request, status) in requests() {
        let shown: String = request.chars().take(100).collect();
        let first = refusal(&mut Raw::connect(app.addr).await, &request).await;
        let (refused, code) = first.refusal();
        assert_eq!(refused, status, "{shown:?}");
        for beginning in beginnings(&feed) {
            let mut raw = Raw::connect(app.addr).await;
            raw.send(beginning.as_bytes()).await;
            assert_eq!(raw.read_answer().await.unwrap().status, 200, "{beginning:?}");
            let later = refusal(&mut raw, &request).await;
            assert_eq!(later.refusal(), (status, code.clone()), "{beginning:?} then {shown:?}");
        }
    }
}

#[tokio::test]
async fn a_body_in_chunks_that_are_none_is_refused_and_ends_the_connection() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let push = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let smuggled = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    for chunks in ["x\r\n", "-1\r\n", "1\r\nab\r\n", "1\nx\r\n", "fffffffffffffffff\r\n"] {
        let request = format!("{push}{chunks}0\r\n\r\n{smuggled}");
        let answers = app.raw(request.as_bytes(), 9).await;
        let refusals: Vec<_> = answers.iter().map(Answer::refusal).collect();
        assert_eq!(refusals, [(400, "invalid_body".to_owned())], "{chunks:?}");
    }
}

#[tokio::test]
async fn who_waits_to_be_asked_for_a_body_is_asked_once_it_is_wanted() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let mut raw = Raw::connect(app.addr).await;
    let head = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n"
    );
    for _ in 0..2 {
        raw.send(head.as_bytes()).await;
        assert_eq!(raw.read_answer().await.unwrap().status, 100);
        raw.send(b"\n").await;
        assert_eq!(raw.read_answer().await.unwrap().status, 200);
    }
    // A client without a valid token is answered at once, and need not send the announced body.
    raw.send(head.replace(&feed, "nobody").as_bytes()).await;
    let answer = raw.read_answer().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (401, Some("close")));
}

#[tokio::test]
async fn a_path_that_is_too_long_reveals_nothing_without_a_key() {
    let board = TestMarket::start().await;
    let target = format!("/v1/books?x={}", "a".repeat(9_000));
    assert_eq!(board.app.get_without_key(&target).await.status, 401);
    assert_eq!(board.app.get(&target, "sk_live_wrong").await.status, 401);
    let before = board.app.get("/v1/status", &board.key).await;
    let refused = board.app.get(&target, &board.key).await;
    assert_eq!(refused.refusal(), (414, "request_too_large".to_owned()));
    // It still counts as a request, but spends nothing.
    assert_eq!(refused.requests_used(), before.requests_used());
}

#[tokio::test]
async fn no_part_of_a_key_comes_back_however_it_is_written() {
    let board = TestMarket::start().await;
    let key = &board.key;
    let secret = key.trim_start_matches("sk_live_").to_owned();
    for text in [
        secret.clone(),
        secret.to_uppercase(),
        secret.to_lowercase(),
        format!("live_{secret}"),
        format!("SK_LIVE_{secret}"),
        secret[..24].to_owned(),
        format!("a,{}", &secret[8..]),
        format!("x%20{secret}"),
    ] {
        for query in [format!("bookmaker={text}"), format!("{text}=1"), format!("market={text}")] {
            let answer = board.app.get(&format!("/v1/sports/mma/odds?{query}"), key).await;
            assert_eq!(answer.status, 400, "{query}");
            let shown = format!("{:?} {}", answer.headers, answer.text()).to_lowercase();
            for part in [&secret[..8], &secret[8..16], &secret[16..24]] {
                assert!(!shown.contains(&part.to_lowercase()), "{query}: {shown}");
            }
        }
    }
    let usual = board.app.get("/v1/sports/mma/odds?bookmaker=fandul", key).await;
    assert!(usual.message().contains("`fandul`"), "{}", usual.message());
}
