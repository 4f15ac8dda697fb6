//! Streams over a WebSocket (S1, S3, S13, S15, S16), tested byte by byte.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use accounts::{Actor, Maintenance};
use api::v1::stream::StreamSettings;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::client::{Client, Event, move_to, names, opened};
use crate::harness::{Answer, Raw, TestApp, by_fast_clock, line};

/// The example key of RFC 6455, and the answer to it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8A;

async fn ask(app: &TestApp, key: &str, query: &str, lines: &str) -> (Raw, Answer) {
    ask_over(Raw::connect(app.addr).await, key, query, lines).await
}

async fn ask_over(mut raw: Raw, key: &str, query: &str, lines: &str) -> (Raw, Answer) {
    let head =
        format!("GET /v1/stream{query} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n{lines}\r\n");
    raw.send(head.as_bytes()).await;
    let answer = raw.read_answer().await.expect("an answer");
    (raw, answer)
}

pub(super) fn upgrade() -> String {
    format!(
        "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Protocol: chat\r\nOrigin: https://elsewhere.test\r\n\
         Sec-WebSocket-Extensions: permessage-deflate\r\n"
    )
}

pub(super) async fn open(app: &TestApp, key: &str, query: &str) -> Raw {
    let (raw, answer) = ask(app, key, query, &upgrade()).await;
    assert_eq!(answer.status, 101, "{}", answer.text());
    assert_eq!(answer.header("sec-websocket-accept"), Some(ACCEPT));
    assert_eq!(
        (answer.header("connection"), answer.header("upgrade")),
        (Some("Upgrade"), Some("websocket"))
    );
    for none in ["sec-websocket-protocol", "sec-websocket-extensions", "content-length"] {
        assert_eq!(answer.header(none), None);
    }
    assert!(answer.header("x-requests-used").is_some());
    raw
}

/// The next frame of the service: whole and not masked.
async fn frame(raw: &mut Raw) -> Option<(u8, Vec<u8>)> {
    let head = raw.read_exactly(2).await?;
    let length = match head[1] {
        126 => raw.read_exactly(2).await?,
        127 => raw.read_exactly(8).await?,
        short => vec![short],
    };
    let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    Some((head[0], raw.read_exactly(length).await?))
}

pub(super) async fn event(raw: &mut Raw) -> Event {
    loop {
        let (kind, payload) = frame(raw).await.expect("an event");
        if kind == TEXT {
            let message: Value = serde_json::from_slice(&payload).unwrap();
            let id = message.get("id").map(|id| id.as_str().unwrap().to_owned());
            let name = message["event"].as_str().unwrap().to_owned();
            assert_eq!(message.as_object().unwrap().len(), 2 + usize::from(id.is_some()));
            return Event { name, id, data: message["data"].clone() };
        }
        assert_eq!(kind, PING);
    }
}

pub(super) async fn up_to_cut(raw: &mut Raw) -> Vec<Event> {
    let mut events = vec![event(raw).await];
    while events.last().unwrap().name != "cut" {
        events.push(event(raw).await);
    }
    events
}

/// The service's close code; checks that nothing follows.
pub(super) async fn closed_with(raw: &mut Raw) -> u16 {
    loop {
        let (kind, payload) = frame(raw).await.expect("a close");
        if kind == CLOSE {
            assert_eq!(raw.read_exactly(1).await, None);
            return u16::from_be_bytes([payload[0], payload[1]]);
        }
    }
}

/// A masked frame, as clients send it.
fn masked(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = match u8::try_from(payload.len()) {
        Ok(short @ 0..=125) => vec![kind, 0x80 | short],
        _ => [&[kind, 0xFE][..], &u16::try_from(payload.len()).unwrap().to_be_bytes()].concat(),
    };
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

#[tokio::test]
async fn a_websocket_has_the_events_of_server_sent_events() {
    let (app, feed, key) = opened().await;
    let query = "?sports=mma&channels=odds,scores";
    let mut socket = open(&app, &key, query).await;
    let (mut client, _) = Client::open(&app, &key, query, None).await;
    assert_eq!(event(&mut socket).await.name, "hello");
    for price in [140, 150] {
        let (own, other) = (up_to_cut(&mut socket).await, client.cut().await);
        assert_eq!(names(&own), names(&other));
        for (own, other) in own.iter().zip(&other) {
            assert_eq!((&own.data, &own.id), (&other.data, &other.id));
        }
        move_to(&app, &feed, price).await;
    }
    let last = up_to_cut(&mut socket).await;
    // It continues from there, over either transport.
    let cursor = last.last().unwrap().id.clone().unwrap();
    let mut again = open(&app, &key, &format!("{query}&since={cursor}")).await;
    assert_eq!(event(&mut again).await.data["resumed"], true);
    let metrics = app.get_operator("/metrics").await;
    for (transport, open) in [("websocket", 2), ("sse", 1)] {
        let line = format!(
            "\nlinesman_stream_open{{mode=\"publication\",transport=\"{transport}\"}} {open}\n"
        );
        assert!(metrics.text().contains(&line), "{}", metrics.text());
    }
}

#[tokio::test]
async fn what_is_wrong_is_an_http_answer() {
    let (app, _, key) = opened().await;
    let wrong_version = upgrade().replace("Version: 13", "Version: 8");
    let (_, answer) = ask(&app, &key, "?sports=mma", &wrong_version).await;
    assert_eq!(answer.refusal(), (426, "upgrade_required".to_owned()));
    assert_eq!(answer.header("sec-websocket-version"), Some("13"));
    assert_eq!(answer.header("upgrade"), Some("websocket"));
    for bad in
        ["", "Sec-WebSocket-Key: c2hvcnQ=\r\n", &format!("Sec-WebSocket-Key: {KEY}\r\n").repeat(2)]
    {
        let lines = upgrade().replace(&format!("Sec-WebSocket-Key: {KEY}\r\n"), bad);
        let (_, answer) = ask(&app, &key, "?sports=mma", &lines).await;
        assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()), "{bad}");
    }
    for (query, key, status) in
        [("?sports=chess", &*key, 404), ("?nonsense=1", &key, 400), ("", "none", 401)]
    {
        assert_eq!(ask(&app, key, query, &upgrade()).await.1.status, status);
    }
    // An incomplete handshake gets Server-Sent Events.
    for part in [
        "Upgrade: websocket\r\n",
        "Connection: Upgrade\r\n",
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
    ] {
        let (_, answer) = ask(&app, &key, "?sports=mma", part).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/event-stream"))
        );
    }
}

#[tokio::test]
async fn what_a_client_sends_is_answered_or_closes_the_connection() {
    let (app, _, key) = opened().await;
    let mut socket = open(&app, &key, "?sports=mma").await;
    socket.send(&masked(PING, b"are you there")).await;
    loop {
        let (kind, payload) = frame(&mut socket).await.expect("a pong");
        if kind == PONG {
            assert_eq!(payload, b"are you there");
            break;
        }
    }
    socket.send(&masked(PONG, b"")).await;
    socket.send(&masked(CLOSE, &3001_u16.to_be_bytes())).await;
    assert_eq!(closed_with(&mut socket).await, 3001);
    for (sent, code) in [
        (masked(TEXT, b"{}"), 1008),
        (masked(0x82, &[0; 4096]), 1008),
        (masked(TEXT, &[b'x'; 4097]), 1009),
        (vec![TEXT, 2, b'n', b'o'], 1002),
        (masked(0x83, b""), 1002),
        (masked(0xC1, b""), 1002),
        (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(), 1002),
    ] {
        let mut socket = open(&app, &key, "?sports=mma").await;
        socket.send(&sent).await;
        assert_eq!(closed_with(&mut socket).await, code);
    }
    // Sent together with the head, before the answer.
    let mut raw = Raw::connect(app.addr).await;
    let head =
        format!("GET /v1/stream HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n{}\r\n", upgrade());
    raw.send(&[head.into_bytes(), masked(CLOSE, b"")].concat()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 101);
    while frame(&mut raw).await.expect("a close").0 != CLOSE {}
    assert_eq!(raw.read_exactly(1).await, None);
}

#[tokio::test]
async fn every_end_is_said_and_has_its_close_code() {
    let (app, feed, key) = opened().await;
    let until = String::from_utf8(app.now().millis_text().to_vec()).unwrap();
    let mut done = open(&app, &key, &format!("?sports=mma&since={until}&until={until}")).await;
    assert_eq!((end(&mut done).await, closed_with(&mut done).await), (json!("done"), 1000));
    let poor = app.limited_key(100, 1, None).await;
    let mut spent = open(&app, &poor, "?sports=mma").await;
    up_to_cut(&mut spent).await;
    move_to(&app, &feed, 140).await;
    let code = end(&mut spent).await;
    assert_eq!((code, closed_with(&mut spent).await), (json!("quota_exceeded"), 4429));
    let mut revoked = open(&app, &key, "?sports=mma").await;
    let other = app.live_key().await;
    let (mut closed, mut stopped) = (open(&app, &other, "").await, open(&app, &other, "").await);
    let accounts = &app.service.api.accounts;
    accounts.revoke_key(&key, &Actor::command_line()).await.unwrap();
    let code = end(&mut revoked).await;
    assert_eq!((code, closed_with(&mut revoked).await), (json!("authentication_failed"), 4401));
    let on = Maintenance::On { retry_after_s: 77 };
    accounts.set_maintenance(on, &Actor::command_line()).await.unwrap();
    assert_eq!(
        (end(&mut closed).await, closed_with(&mut closed).await),
        (json!("maintenance"), 4503)
    );
    drop(stopped);
    accounts.set_maintenance(Maintenance::Off, &Actor::command_line()).await.unwrap();
    stopped = open(&app, &other, "").await;
    up_to_cut(&mut stopped).await;
    let stopping = tokio::spawn(async move { app.stop().await });
    assert_eq!(
        (end(&mut stopped).await, closed_with(&mut stopped).await),
        (json!("unavailable"), 1001)
    );
    drop(stopped);
    stopping.await.unwrap();
}

async fn end(socket: &mut Raw) -> Value {
    end_data(socket).await["code"].clone()
}

async fn end_data(socket: &mut Raw) -> Value {
    loop {
        let event = event(socket).await;
        if event.name == "end" {
            return event.data;
        }
    }
}

#[tokio::test]
async fn the_clients_of_a_node_that_stops_are_asked_to_come_back_one_after_the_other() {
    let (app, _, key) = opened().await;
    let other = app.live_key().await;
    let (mut sockets, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        sockets.push(open(&app, &key, "?sports=mma").await);
        clients.push(Client::open(&app, &other, "?sports=mma", None).await.0);
    }
    let stopping = tokio::spawn(async move { app.stop().await });
    let mut waits = [Vec::new(), Vec::new()];
    for (socket, client) in sockets.iter_mut().zip(&mut clients) {
        for (waits, end) in waits.iter_mut().zip([end_data(socket).await, client.end().await]) {
            assert_eq!(end["code"], "unavailable");
            waits.push(end["retry_after_s"].as_u64().unwrap());
        }
    }
    for mut waits in waits {
        waits.sort_unstable();
        assert_eq!(waits, [1, 2, 3, 4, 5]);
    }
    drop((sockets, clients));
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_given_up_and_one_that_does_is_not() {
    let (app, _, key) = opened().await;
    let begun = tokio::time::Instant::now();
    let mut silent = open(&app, &key, "?sports=mma&heartbeat=60").await;
    let mut there = open(&app, &key, "?sports=mma&heartbeat=60").await;
    for socket in [&mut silent, &mut there] {
        up_to_cut(socket).await;
    }
    by_fast_clock(async {
        for _ in 0..2 {
            assert_eq!(frame(&mut there).await, Some((PING, Vec::new())));
            there.send(&masked(PONG, b"")).await;
        }
        assert_eq!(end(&mut silent).await, "slow");
        assert!(begun.elapsed() >= Duration::from_secs(120));
        assert_eq!(closed_with(&mut silent).await, 4408);
        assert_eq!(frame(&mut there).await, Some((PING, Vec::new())));
    })
    .await;
}

/// Shared events are not written by the connection's own task, which answers pings.
#[tokio::test]
async fn pings_between_publications_break_no_frame() {
    let (app, feed, key) = opened().await;
    let mut sockets = Vec::new();
    for _ in 0..4 {
        let mut socket = open(&app, &key, "?sports=mma").await;
        up_to_cut(&mut socket).await;
        sockets.push(socket);
    }
    for round in 0..30 {
        for socket in &mut sockets {
            socket.send(&masked(PING, &[b'p'; 100])).await;
        }
        move_to(&app, &feed, 140 + round).await;
        for socket in &mut sockets {
            let (mut cut, mut pong) = (false, false);
            while !(cut && pong) {
                let (kind, payload) = frame(socket).await.expect("a frame");
                if kind == PONG {
                    assert_eq!(payload, [b'p'; 100]);
                    pong = true;
                } else {
                    assert_eq!(kind, TEXT);
                    let message: Value = serde_json::from_slice(&payload).unwrap();
                    cut |= message["event"] == "cut";
                }
            }
        }
    }
}

/// A client that stops reading for a while and continues to send pings: each socket accepts only a part of an event,
/// and a ping may arrive before the rest is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_break_no_frame_of_which_the_socket_took_a_part() {
    const SOCKETS: usize = 24;
    const PUBLICATIONS: i32 = 12;
    let settings = StreamSettings { per_key_max: SOCKETS, ..StreamSettings::default() };
    let app = TestApp::builder().streams(settings).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let bout = |n: i32| (format!("b-{n}"), format!("Adam Ab{n}"), format!("Zed Yx{n}"));
    let bouts: Vec<_> = (0..60).map(bout).collect();
    let events = bouts.iter().map(|(bout, home, away)| line::event(bout, "mma", home, away));
    app.push_all(&feed, &events.collect::<Vec<_>>()).await;
    app.publish().await;
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        let narrow = Raw::connect_narrow(app.addr).await;
        let (mut socket, answer) = ask_over(narrow, &key, "?sports=mma", &upgrade()).await;
        assert_eq!(answer.status, 101, "{}", answer.text());
        up_to_cut(&mut socket).await;
        sockets.push(socket.into_std());
    }
    let pings = Pings::begin(&sockets);
    for price in 0..PUBLICATIONS {
        let quotes = bouts.iter().map(|(bout, home, away)| {
            line::moneyline(bout, "fanduel", (home, 120 + price), (away, -140))
        });
        app.push_all(&feed, &quotes.collect::<Vec<_>>()).await;
        app.publish().await;
    }
    pings.end();
    let last = app.now().millis_text().to_vec();
    for socket in sockets {
        socket.set_nonblocking(true).unwrap();
        let mut socket = Raw::over(TcpStream::from_std(socket).unwrap());
        loop {
            let (kind, payload) = frame(&mut socket).await.expect("a frame");
            if kind != TEXT {
                assert!(matches!(kind, PING | PONG), "{kind}");
                assert_eq!(payload, b"");
                continue;
            }
            let message: Value = serde_json::from_slice(&payload).unwrap();
            if message["event"] == "cut"
                && message["data"]["at"].as_str().unwrap().as_bytes() == last
            {
                break;
            }
        }
    }
}

/// Pings sent continuously over many connections, without waiting for answers.
struct Pings {
    ends: Arc<AtomicBool>,
    sending: JoinHandle<()>,
}

impl Pings {
    /// Fewer than an unread connection holds.
    const EACH_MAX: usize = 2_000;

    fn begin(sockets: &[std::net::TcpStream]) -> Self {
        let mut sockets: Vec<_> = sockets.iter().map(|one| one.try_clone().unwrap()).collect();
        let ends = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ends);
        let sending = std::thread::spawn(move || {
            for _ in 0..Self::EACH_MAX {
                for socket in &mut sockets {
                    socket.write_all(&masked(PING, b"")).unwrap();
                }
                if asked.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        Self { ends, sending }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.sending.join().unwrap();
    }
}
