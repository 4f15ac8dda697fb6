//! HTTP/2 connections that send requests slowly or not at all: they time out like any other (D32), even if they
//! answer pings.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::harness::{INGEST_PATH, TestApp, by_fast_clock};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// A frame of HTTP/2.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of a request in HPACK without a table.
pub(super) fn head(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let mut head = vec![0x86];
    for (name, value) in [(":method", method), (":path", path), (":authority", "a")] {
        head.extend([vec![0], text(name), text(value)].concat());
    }
    for (name, value) in more {
        head.extend([vec![0], text(name), text(value)].concat());
    }
    head
}

pub(super) fn get(stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &head("GET", path, more))
}

/// A client that follows the rules as far as a connection needs to stay open.
pub(super) struct Client {
    stream: TcpStream,
    held: Vec<u8>,
    /// Whether pings and settings are answered, which is not allowed in the middle of another frame.
    answers: bool,
}

/// Kind, flags, stream and payload of a frame.
pub(super) type Frame = (u8, u8, u32, Vec<u8>);

impl Client {
    /// Connects and sends these settings.
    pub(super) async fn connect(addr: SocketAddr, settings: &[u8]) -> Self {
        let mut client = Self {
            stream: TcpStream::connect(addr).await.unwrap(),
            held: Vec::new(),
            answers: true,
        };
        client.send(PREFACE).await;
        client.send(&frame(SETTINGS, 0, 0, settings)).await;
        client
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) {
        // The service may have closed.
        drop(self.stream.write_all(bytes).await);
    }

    /// The next frame; answers pings and settings. `None` if the connection has ended.
    pub(super) async fn read(&mut self) -> Option<Frame> {
        loop {
            if let Some((length, rest)) = self.held.split_first_chunk::<3>() {
                let [a, b, c] = length.map(usize::from);
                let length = a << 16 | b << 8 | c;
                if rest.len() >= 6 + length {
                    let frame: Vec<u8> = self.held.drain(..9 + length).collect();
                    let (kind, flags) = (frame[3], frame[4]);
                    let stream = u32::from_be_bytes(frame[5..9].try_into().unwrap());
                    let payload = frame[9..].to_vec();
                    if self.answers && flags & ACK == 0 && (kind == PING || kind == SETTINGS) {
                        let echo: &[u8] = [&[], &*payload][usize::from(kind == PING)];
                        self.send(&self::frame(kind, ACK, 0, echo)).await;
                    }
                    return Some((kind, flags, stream, payload));
                }
            }
            if self.stream.read_buf(&mut self.held).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// Reads until the answer of that stream is complete.
    pub(super) async fn read_answer(&mut self, wanted: u32) {
        loop {
            let (kind, flags, stream, _) = self.read().await.expect("an answer");
            if stream == wanted && (kind == HEADERS || kind == DATA) && flags & END_STREAM != 0 {
                return;
            }
        }
    }

    /// The same for a client that sends only these bytes.
    async fn kept_after(mut self, bytes: &[u8]) -> Duration {
        self.answers = false;
        self.kept(bytes).await
    }

    /// Waits until the service closes, and returns how long that took by a clock that runs fifty times as fast.
    async fn kept(mut self, bytes: &[u8]) -> Duration {
        let begun = Instant::now();
        by_fast_clock(async {
            self.send(bytes).await;
            while self.read().await.is_some() {}
            begun.elapsed()
        })
        .await
    }
}

async fn asked_once(app: &TestApp) -> Client {
    let mut client = Client::connect(app.addr, &[]).await;
    client.send(&get(1, "/healthz", &[])).await;
    client.read_answer(1).await;
    client
}

/// On a busy machine, some time passes before a sent byte arrives.
fn assert_about(kept: Duration, seconds: u64) {
    assert!((seconds..seconds + 60).contains(&kept.as_secs()), "kept for {kept:?}");
}

#[tokio::test]
async fn who_never_asks_is_closed_after_ten_seconds() {
    let app = TestApp::start().await;
    let kept = Client::connect(app.addr, &[]).await.kept(&[]).await;
    assert_about(kept, 10);
    // Its own pings are not requests either.
    let pings = frame(PING, 0, 0, b"everyone").repeat(3);
    let kept = Client::connect(app.addr, &[]).await.kept(&pings).await;
    assert_about(kept, 10);
}

#[tokio::test]
async fn who_asks_no_more_is_closed_after_seventy_five_seconds() {
    let app = TestApp::start().await;
    assert_about(asked_once(&app).await.kept(&[]).await, 75);
}

#[tokio::test]
async fn a_head_that_never_ends_is_waited_for_ten_seconds() {
    let app = TestApp::start().await;
    let part = frame(HEADERS, END_STREAM, 1, &head("GET", "/healthz", &[]));
    let kept = Client::connect(app.addr, &[]).await.kept_after(&part).await;
    assert_about(kept, 10);
    // Later on a connection, in one more frame, and in the middle of a frame.
    let part = frame(HEADERS, END_STREAM, 3, &head("GET", "/healthz", &[]));
    let more = frame(CONTINUATION, 0, 3, &[]);
    for part in [part.clone(), [part.clone(), more].concat(), part[..20].to_vec()] {
        assert_about(asked_once(&app).await.kept_after(&part).await, 10);
    }
}

#[tokio::test]
async fn a_preface_that_never_ends_is_waited_for_ten_seconds() {
    let app = TestApp::start().await;
    for length in [3, 16, 20, 24] {
        let stream = TcpStream::connect(app.addr).await.unwrap();
        let client = Client { stream, held: Vec::new(), answers: false };
        assert_about(client.kept_after(&PREFACE[..length]).await, 10);
    }
}

#[tokio::test]
async fn requests_that_were_given_up_keep_no_connection() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let mut client = asked_once(&app).await;
    let bearer = format!("Bearer {feed}");
    for stream in [3, 5, 7] {
        let push = head("POST", INGEST_PATH, &[("authorization", &bearer)]);
        client.send(&frame(HEADERS, END_HEADERS, stream, &push)).await;
        client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await;
    }
    // A body may take half a minute if its client has not disconnected.
    let kept = client.kept(&[]).await;
    assert!((75..130).contains(&kept.as_secs()), "kept for {kept:?}");
}
