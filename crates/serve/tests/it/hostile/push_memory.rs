//! Memory of pushes: bodies that are large, compressed or endless, and receipts that contain only rejections.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Frame;
use serde_json::json;

use super::{metric, wait_for_metric};
use crate::harness::{INGEST_PATH, Raw, TestApp, line};

const MIB: usize = 1 << 20;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// The memory used by pushes.
const HELD: &str = "linesman_push_bytes";

/// Waits until pushes use no memory.
async fn let_go(app: &TestApp) {
    wait_for_metric(app, HELD, |bytes| bytes == 0).await;
}

#[tokio::test]
async fn a_receipt_lists_a_thousand_refusals_and_counts_all() {
    let app = TestApp::start().await;
    let feed = app.feed("noise", None).await;
    let body = gzip(&b"[]\n".repeat(199_000));
    assert!(body.len() < 1000, "{}", body.len());
    let answer = app.post(&feed, body, Some("gzip")).await;
    assert!(answer.body.len() < 200_000, "{}", answer.body.len());
    let receipt = answer.json();
    assert_eq!(receipt["rejected_total"], 199_000);
    let listed = receipt["rejected"].as_array().unwrap();
    assert_eq!(listed.len(), 1000);
    for (position, reject) in listed.iter().enumerate() {
        assert_eq!(
            (&reject["line"], &reject["code"]),
            (&json!(position + 1), &json!("invalid_json"))
        );
    }
    let counted = "linesman_feed_rejects_total{feed=\"noise\",code=\"invalid_json\"}";
    assert_eq!(metric(&app, counted).await, 199_000);
    let_go(&app).await;
}

#[tokio::test]
async fn a_body_for_which_there_is_no_room_is_refused_before_it_is_sent() {
    let app = TestApp::builder().push_bytes(16 * MIB, 4 * MIB).start().await;
    let (feed, other) = (app.any_feed().await, app.any_feed().await);
    let head = |bytes: usize| {
        format!(
            "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ncontent-length: {bytes}\r\n\r\n"
        )
    };
    let mut first = Raw::connect(app.addr).await;
    first.send(head(3 * MIB).as_bytes()).await;
    wait_for_metric(&app, HELD, |bytes| bytes > 3 * MIB as u64).await;
    let refused = app.raw_one(head(2 * MIB)).await;
    assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("2"));
    assert_eq!(metric(&app, "linesman_pushes_refused_total{reason=\"feed_memory\"}").await, 1);
    let beat = line::heartbeat("fanduel", "mma").to_string();
    assert_eq!(app.push(&other, beat.clone()).await["accepted"], 1);
    assert_eq!(app.push(&feed, beat).await["unchanged"], 1, "there is room for small ones");
    drop(first);
    let_go(&app).await;
}

#[tokio::test]
async fn bodies_that_never_end_hold_no_more_than_their_feeds_share() {
    let app = TestApp::builder().push_bytes(16 * MIB, 4 * MIB).start().await;
    let (feed, other) = (app.any_feed().await, app.any_feed().await);
    let head = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let chunk = [format!("{MIB:x}\r\n").into_bytes(), vec![b' '; MIB], b"\r\n".to_vec()].concat();
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::connect(app.addr).await;
        raw.send(head.as_bytes()).await;
        raw.send(&chunk).await;
        open.push(raw);
    }
    wait_for_metric(&app, HELD, |bytes| bytes > 3 * MIB as u64).await;
    let mut one_more = Raw::connect(app.addr).await;
    one_more.send(head.as_bytes()).await;
    one_more.send(&chunk).await;
    assert_eq!(one_more.read_answer().await.unwrap().refusal(), (503, "unavailable".to_owned()));
    assert!(metric(&app, HELD).await <= 4 * MIB as u64);
    // The same over HTTP/2, many on one connection.
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let pushing = |_| {
        let body = reqwest::Body::wrap(Endless { piece: Some(Bytes::from(vec![b' '; MIB])) });
        client
            .post(format!("http://{}{INGEST_PATH}", app.addr))
            .bearer_auth(&feed)
            .body(body)
            .send()
    };
    for answer in futures_join(5, pushing).await {
        assert_eq!(answer.unwrap().status(), 503);
    }
    // Without a valid token, no part of the body is read.
    let unknown = head.replace(&feed, "fk_nobody");
    let mut nobody = Raw::connect(app.addr).await;
    nobody.send(unknown.as_bytes()).await;
    assert_eq!(nobody.read_answer().await.unwrap().status, 401);
    let beat = line::heartbeat("fanduel", "mma").to_string();
    assert_eq!(app.push(&other, beat).await["accepted"], 1);
    drop(open);
    let_go(&app).await;
}

/// Sends a little and then nothing.
struct Endless {
    piece: Option<Bytes>,
}

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.piece.take() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None => Poll::Pending,
        }
    }
}

async fn futures_join<F: Future + Send + 'static>(
    count: usize,
    make: impl Fn(usize) -> F,
) -> Vec<F::Output>
where
    F::Output: Send,
{
    let tasks: Vec<_> = (0..count).map(|at| tokio::spawn(make(at))).collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

#[tokio::test]
async fn what_a_body_unpacks_to_counts_as_it_unpacks() {
    let app = TestApp::builder().push_bytes(16 * MIB, 4 * MIB).start().await;
    let feed = app.any_feed().await;
    let large = b"[]          \n".repeat(MIB / 2);
    for (body, encoding) in
        [(gzip(&large), "gzip"), (zstd::bulk::compress(&large, 3).unwrap(), "zstd")]
    {
        assert!(body.len() < 100_000);
        let refused = app.post(&feed, body, Some(encoding)).await;
        assert_eq!(refused.refusal(), (503, "unavailable".to_owned()), "{encoding}");
    }
    let_go(&app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_pushes_at_once_leave_no_memory_held_and_lose_no_line() {
    let app = std::sync::Arc::new(TestApp::start().await);
    let feed = app.any_feed().await;
    let body = gzip(&b"[]\n".repeat(50_000));
    let pushes: Vec<_> = (0..10)
        .map(|_| {
            let (app, feed, body) = (std::sync::Arc::clone(&app), feed.clone(), body.clone());
            tokio::spawn(async move { app.post(&feed, body, Some("gzip")).await })
        })
        .collect();
    for push in pushes {
        assert_eq!(push.await.unwrap().json()["rejected_total"], 50_000);
    }
    let_go(&app).await;
}
