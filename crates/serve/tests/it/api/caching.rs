//! Headers of answers for caches and clients: tags, ages, encodings, quota (D14, D17, D25).

use std::io::Read;
use std::time::Duration;

use crate::harness::{Answer, TestApp};
use crate::test_market::TestMarket;

const PATHS: [&str; 6] = [
    "/v1/sports",
    "/v1/books",
    "/v1/sports/mma/odds",
    "/v1/sports/mma/odds?group_by=bout",
    "/v1/sports/mma/scores",
    "/v1/sports/mma/events",
];

fn unpack(answer: &Answer) -> Vec<u8> {
    let mut body = Vec::new();
    let packed = &*answer.body;
    match answer.header("content-encoding") {
        None => body.extend_from_slice(packed),
        Some("gzip") => {
            flate2::read::GzDecoder::new(packed).read_to_end(&mut body).unwrap();
        }
        Some("br") => {
            brotli::Decompressor::new(packed, 4096).read_to_end(&mut body).unwrap();
        }
        Some("zstd") => body = zstd::stream::decode_all(packed).unwrap(),
        Some(other) => panic!("{other}"),
    }
    body
}

#[tokio::test]
async fn every_encoding_unpacks_to_the_same_body_and_has_a_strong_tag_of_its_own() {
    let board = TestMarket::start().await;
    for path in PATHS {
        let plain = board.app.get(path, &board.key).await;
        assert_eq!(plain.header("content-encoding"), None);
        let mut tags = vec![plain.header("etag").unwrap().to_owned()];
        for encoding in ["gzip", "br", "zstd"] {
            let packed =
                board.app.get_with(path, &board.key, &[("Accept-Encoding", encoding)]).await;
            assert_eq!(packed.header("content-encoding"), Some(encoding), "{path}");
            assert_eq!(unpack(&packed), plain.body, "{path} {encoding}");
            tags.push(packed.header("etag").unwrap().to_owned());
        }
        assert!(tags.iter().all(|tag| tag.starts_with('"') && tag.ends_with('"')), "{tags:?}");
        let count = tags.len();
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), count, "{path}");
    }
}

#[tokio::test]
async fn what_the_client_holds_is_confirmed_with_304_and_spends_nothing() {
    let board = TestMarket::start().await;
    for path in PATHS {
        let first = board.app.get(path, &board.key).await;
        let tag = first.header("etag").unwrap();
        for held in [
            tag.to_owned(),
            format!("W/{tag}"),
            "*".to_owned(),
            format!("\"other\", {tag}"),
            format!("\"other\",W/{tag} , \"more\""),
        ] {
            let headers = [("If-None-Match", held.as_str())];
            let answer = board.app.get_with(path, &board.key, &headers).await;
            assert_eq!(answer.status, 304, "{path} {held}");
            assert!(answer.body.is_empty());
            assert_eq!(answer.requests_used(), first.requests_used(), "{path} {held}");
            for name in ["etag", "cache-control", "vary", "link"] {
                assert_eq!(answer.header(name), first.header(name), "{path} {name}");
            }
            assert!(answer.header("content-length").is_none_or(|length| length != "0"));
        }
        for other in ["\"other\"", "", "nonsense", tag.trim_matches('"')] {
            let answer = board.app.get_with(path, &board.key, &[("If-None-Match", other)]).await;
            assert_eq!(answer.status, 200, "{path} {other}");
        }
        // Each encoding has its own tag.
        let packed = [("If-None-Match", tag), ("Accept-Encoding", "gzip")];
        assert_eq!(board.app.get_with(path, &board.key, &packed).await.status, 200);
    }
}

#[tokio::test]
async fn answers_may_be_kept_for_the_rest_of_the_epoch_in_whole_seconds_rounded_down() {
    let board = TestMarket::start().await;
    let age = async || {
        let answer = board.app.get("/v1/sports/mma/odds", &board.key).await;
        assert_eq!(answer.header("vary"), Some("X-API-Key, Accept-Encoding"));
        answer.header("cache-control").unwrap().to_owned()
    };
    assert_eq!(age().await, "private, max-age=30");
    board.app.advance(Duration::from_millis(1));
    assert_eq!(age().await, "private, max-age=29");
    board.app.advance(Duration::from_millis(28_999));
    assert_eq!(age().await, "private, max-age=1");
    board.app.advance(Duration::from_millis(999));
    assert_eq!(age().await, "private, max-age=0");
}

#[tokio::test]
async fn head_has_the_headers_of_get_without_the_body_and_costs_the_same() {
    let board = TestMarket::start().await;
    for path in PATHS {
        let get = board.app.get(path, &board.key).await;
        let head = board.app.head(path, &board.key).await;
        assert_eq!((get.status, head.status), (200, 200));
        assert!(head.body.is_empty(), "{path}");
        assert_eq!(head.requests_used(), get.requests_used() + 1, "{path}");
        for name in ["etag", "cache-control", "vary", "content-type", "content-length", "link"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
}

#[tokio::test]
async fn status_reports_the_present_and_is_not_for_keeping() {
    let board = TestMarket::start().await;
    let status = board.app.get("/v1/status", &board.key).await;
    assert_eq!(status.header("cache-control"), Some("no-store"));
    assert_eq!(status.header("etag"), None);
    assert_eq!(status.json()["server_time"], "2026-11-14T12:00:30Z");
    board.app.advance(Duration::from_secs(3));
    let later = board.app.get_with("/v1/status", &board.key, &[("If-None-Match", "*")]).await;
    assert_eq!(later.status, 200);
    assert_eq!(later.json()["server_time"], "2026-11-14T12:00:33Z");
}

#[tokio::test]
async fn every_authenticated_answer_says_where_the_key_stands() {
    let app = TestApp::start().await;
    let key = app.limited_key(60, 10, Some(1000)).await;
    let first = app.get("/v1/books", &key).await;
    assert_eq!((first.requests_used(), first.requests_remaining()), (1, 9));
    assert_eq!(first.header("ratelimit"), Some("\"burst\";r=59;t=55, \"daily\";r=9;t=43195"));
    assert_eq!(
        first.header("ratelimit-policy"),
        Some("\"burst\";q=60;w=60, \"daily\";q=10;w=86400, \"monthly\";q=1000;w=2678400")
    );
    let paths = ["/v1/nowhere", "/v1/status", "/v1/sports/chess/odds", "/v1/sports?x=1"];
    for (path, left) in paths.into_iter().zip((0..59).rev()) {
        let answer = app.get(path, &key).await;
        assert_eq!((answer.requests_used(), answer.requests_remaining()), (1, 9), "{path}");
        let burst = format!("\"burst\";r={left};t=55, \"daily\";r=9;t=43195");
        assert_eq!(answer.header("ratelimit"), Some(burst.as_str()), "{path}");
        assert!(answer.header("ratelimit-policy").is_some());
    }
}

#[tokio::test]
async fn the_standing_is_of_the_tightest_quota_window() {
    let app = TestApp::start().await;
    let key = app.limited_key(60, 100, Some(3)).await;
    let answer = app.get("/v1/books", &key).await;
    assert_eq!((answer.requests_used(), answer.requests_remaining()), (1, 2));
    assert!(answer.header("ratelimit").unwrap().contains("\"monthly\";r=2;t="));
}

#[tokio::test]
async fn no_answer_under_v1_invites_browsers() {
    let board = TestMarket::start().await;
    let origin = ("Origin", "https://example.com");
    for path in PATHS.into_iter().chain(["/v1/status", "/v1/nowhere"]) {
        let answer = board.app.get_with(path, &board.key, &[origin]).await;
        let cors = answer.headers.keys().find(|name| name.as_str().starts_with("access-control"));
        assert_eq!(cors, None, "{path}");
    }
    let preflight = board
        .app
        .request(reqwest::Method::OPTIONS, "/v1/sports")
        .header(origin.0, origin.1)
        .header("Access-Control-Request-Method", "GET");
    let answer = Answer::of(preflight).await;
    assert_eq!(answer.status, 401);
    assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
}
