//! A stop loses nothing: every earlier request is answered, even of a client that was just connecting.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serve::{ListenerRole, ListenerService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::http2::{PREFACE, SETTINGS, frame, get};
use crate::harness::{INGEST_PATH, Raw, TestApp, let_arrive, wait_for};

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

/// A separate listener of a service, which can be stopped.
struct Listener {
    addr: SocketAddr,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

async fn listen(app: &TestApp) -> Listener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let listener = http::Listener { socket: listener, tls: None, measures_load: true };
    let entrance = ListenerService { service: Arc::clone(&app.service), role: ListenerRole::Main };
    let running = tokio::spawn(http::run(Arc::new(entrance), listener, stop.clone()));
    Listener { addr, stop, running }
}

/// Connects and sends without letting the service run: both use the same thread.
fn ask(addr: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// All bytes that the service sent until it closed.
fn read_all(mut stream: TcpStream) -> std::io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut read = Vec::new();
    stream.read_to_end(&mut read)?;
    Ok(read)
}

/// The number of these that ended in a reset or without an answer.
fn unanswered(asked: Vec<TcpStream>, is_answer: impl Fn(&[u8]) -> bool) -> usize {
    let is_lost = |stream| read_all(stream).map_or(true, |read| !is_answer(&read));
    asked.into_iter().map(is_lost).filter(|lost| *lost).count()
}

fn is_last_answer(read: &[u8]) -> bool {
    let text = String::from_utf8_lossy(read);
    text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("connection: close\r\n")
}

#[tokio::test]
async fn a_hundred_stops_reset_nobody_who_has_asked() {
    let app = TestApp::start().await;
    let http2 = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[]), get(1, "/healthz", &[])].concat();
    for stop in 0..100 {
        let listener = listen(&app).await;
        let mut kept = Vec::new();
        for _ in 0..3 {
            let mut raw = Raw::connect(listener.addr).await;
            raw.send(REQUEST).await;
            assert_eq!(raw.read_answer().await.unwrap().status, 200);
            kept.push(raw.into_std());
        }
        for mut stream in &kept {
            stream.write_all(REQUEST).unwrap();
        }
        let new: Vec<TcpStream> = (0..10).map(|_| ask(listener.addr, REQUEST)).collect();
        let streams: Vec<TcpStream> = (0..2).map(|_| ask(listener.addr, &http2)).collect();
        listener.stop.cancel();
        // The runtime may process the stop first, or the requests.
        for _ in 0..stop % 5 {
            tokio::task::yield_now().await;
        }
        // These clients read only afterwards; the paused clock skips the wait for them, but not for their requests.
        let_arrive().await;
        tokio::time::pause();
        listener.running.await.unwrap();
        tokio::time::resume();
        for asked in [kept, new] {
            assert_eq!(unanswered(asked, is_last_answer), 0, "stop {stop}");
        }
        let is_answered = |read: &[u8]| read.windows(3).any(|three| three == b"ok\n");
        assert_eq!(unanswered(streams, is_answered), 0, "stop {stop}");
    }
}

#[tokio::test]
async fn a_stop_takes_pushes_that_were_sent_before_it() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let push = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ncontent-length: 1\r\n\r\n\n"
    );
    let listener = listen(&app).await;
    let pushes: Vec<TcpStream> = (0..20).map(|_| ask(listener.addr, push.as_bytes())).collect();
    listener.stop.cancel();
    listener.running.await.unwrap();
    assert_eq!(unanswered(pushes, is_last_answer), 0);
}

#[tokio::test]
async fn while_it_drains_it_is_not_ready_and_answers_everybody() {
    let app = TestApp::builder().drain(Duration::from_secs(30)).start().await;
    let mut kept = Raw::connect(app.addr).await;
    kept.send(REQUEST).await;
    assert_eq!(kept.read_answer().await.unwrap().status, 200);
    app.begin_stop();
    wait_for("/readyz", || !app.service.is_ready()).await;
    let refused = app.raw_one("GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
    assert!(refused.message().contains("stopping"), "{}", refused.message());
    for mut raw in [kept, Raw::connect(app.addr).await] {
        raw.send(REQUEST).await;
        let answer = raw.read_answer().await.unwrap();
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
        assert!(raw.is_closed().await);
    }
    // After that it accepts no connections.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(31)).await;
    tokio::time::resume();
    wait_for("the listener's end", || TcpStream::connect(app.addr).is_err()).await;
}

#[tokio::test]
async fn who_holds_on_to_a_connection_does_not_hold_up_a_stop() {
    let app = TestApp::start().await;
    let listener = listen(&app).await;
    // A silent client, one that was answered, one that never reads, one that sends half a head, two of HTTP/2.
    let mut held = vec![ask(listener.addr, b""), ask(listener.addr, REQUEST)];
    let flood = b"GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(200);
    held.extend([ask(listener.addr, &flood), ask(listener.addr, b"GET /")]);
    let settings = frame(SETTINGS, 0, 0, &[]);
    held.push(ask(listener.addr, &[PREFACE, &settings].concat()));
    let first = get(1, "/healthz", &[]);
    held.push(ask(listener.addr, &[PREFACE, &settings, &first].concat()));
    tokio::time::sleep(Duration::from_millis(50)).await;
    listener.stop.cancel();
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    listener.running.await.unwrap();
    let took = begun.elapsed();
    tokio::time::resume();
    assert!(took < Duration::from_secs(26), "{took:?}");
}
