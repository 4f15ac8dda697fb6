//! Headers of answers for caches; answers are identical bytes until the next publication (V1).

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{MMA, bout, last};
use crate::test_market::TestMarket;

#[tokio::test]
async fn answers_have_tags_ages_and_encodings_and_a_304_is_free() {
    let board = TestMarket::start().await;
    let id = bout(&board).await;
    for path in [
        "/v4/sports".to_owned(),
        format!("{MMA}/events"),
        format!("{MMA}/odds?regions=us"),
        format!("{MMA}/scores"),
        format!("{MMA}/participants"),
        format!("{MMA}/events/{id}/odds?regions=us"),
        format!("{MMA}/events/{id}/markets?regions=us"),
    ] {
        let first = board.app.get(&path, &board.key).await;
        assert_eq!(first.header("cache-control"), Some("private, max-age=30"));
        assert_eq!(first.header("vary"), Some("X-API-Key, Accept-Encoding"));
        assert_eq!(first.header("link"), None);
        let again = board.app.get(&path, &board.key).await;
        assert_eq!((again.text(), again.header("etag")), (first.text(), first.header("etag")));
        let tag = first.header("etag").unwrap();
        let held = board.app.get_with(&path, &board.key, &[("If-None-Match", tag)]).await;
        assert_eq!((held.status, last(&held)), (304, 0), "{path}");
        assert_eq!(held.requests_used(), again.requests_used());
        let packed = board.app.get_with(&path, &board.key, &[("Accept-Encoding", "gzip")]).await;
        assert_ne!(packed.header("etag"), Some(tag), "{path}");
        let head = board.app.head(&path, &board.key).await;
        assert_eq!((head.header("etag"), last(&head)), (Some(tag), last(&first)), "{path}");
    }
}

#[tokio::test]
async fn header_names_are_sent_in_lower_case_and_figures_as_integers() {
    let board = TestMarket::start().await;
    let request = format!(
        "GET /v4/sports?apiKey={} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        board.key
    );
    let mut connection = TcpStream::connect(board.app.addr).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, _) = answer.split_once("\r\n\r\n").unwrap();
    for name in ["x-requests-remaining", "x-requests-used", "x-requests-last"] {
        let line = head.lines().find(|line| line.starts_with(&format!("{name}: "))).unwrap();
        let value = line.split_once(": ").unwrap().1;
        assert!(value.parse::<u32>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn the_same_request_on_one_connection_follows_the_key_and_the_publication() {
    let board = TestMarket::start().await;
    let golfer = board.app.key_for_groups(&["golf"]).await;
    let path = format!("{MMA}/odds?regions=us");
    // One connection, as polling clients use.
    for _ in 0..2 {
        assert_eq!(board.app.get(&path, &board.key).await.status, 200);
        assert_eq!(board.app.get(&path, &golfer).await.status, 403);
        assert_eq!(board.app.get("/v4/sports/upcoming/events", &golfer).await.text(), "[]");
        assert_ne!(board.app.get("/v4/sports/upcoming/events", &board.key).await.text(), "[]");
    }
}
