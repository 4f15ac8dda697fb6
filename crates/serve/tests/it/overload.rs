//! Slow clients, too many clients, too much work: their effects on other clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::World;
use tokio::time::Instant;

use crate::harness::{INGEST_PATH, Raw, TestApp, by_fast_clock};
use crate::test_market::TestMarket;

/// The value of a series without labels.
async fn series(app: &TestApp, name: &str) -> u64 {
    let page = app.get_operator("/metrics").await;
    let line = page.text().lines().find(|line| line.split(' ').next() == Some(name));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

const SLOW_READER: &str = "linesman_connections_cut_slow_reader_total";
const SLOW_HEAD: &str = "linesman_connections_cut_slow_head_total";

/// Advances the time for all tasks; it jumps whenever all of them wait.
async fn wait_out(time: Duration) {
    tokio::time::pause();
    tokio::time::sleep(time).await;
    tokio::time::resume();
}

/// More than the socket buffers of both sides hold.
fn flood(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n").repeat(400).into_bytes()
}

fn push(feed: &str) -> String {
    format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ncontent-length: 1\r\n\r\n\n"
    )
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_after_a_minute() {
    let app = TestApp::start().await;
    let mut raw = Raw::connect_narrow(app.addr).await;
    raw.send(&flood("/openapi.json")).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    wait_out(Duration::from_secs(40)).await;
    assert_eq!(series(&app, SLOW_READER).await, 0);
    wait_out(Duration::from_secs(30)).await;
    assert_eq!(series(&app, SLOW_READER).await, 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_behind_a_push_too() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let mut raw = Raw::connect_narrow(app.addr).await;
    raw.send(push(&feed).as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    raw.send(&flood("/openapi.json")).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    wait_out(Duration::from_secs(40)).await;
    assert_eq!(series(&app, SLOW_READER).await, 0);
    wait_out(Duration::from_secs(30)).await;
    assert_eq!(series(&app, SLOW_READER).await, 1);
}

#[tokio::test]
async fn an_http_2_client_that_never_gives_leave_to_send_is_cut_too() {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let app = TestApp::start().await;
    let mut raw = Raw::connect(app.addr).await;
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE is 0: no byte of a body may be sent.
    sent.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    // GET, http, the path and the authority, in HPACK without a table.
    let head = [&[0x82, 0x86, 0x04, 13][..], b"/openapi.json", &[0x01, 1], b"a"].concat();
    sent.extend(frame(1, 0x5, 1, &head));
    raw.send(&sent).await;
    let begun = std::time::Instant::now();
    while series(&app, "linesman_connections_total").await < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
    wait_out(Duration::from_secs(65)).await;
    assert_eq!(series(&app, SLOW_READER).await, 1);
}

#[tokio::test]
async fn a_client_that_is_slow_to_read_holds_no_snapshot() {
    let board = TestMarket::start().await;
    let request =
        format!("GET /v1/sports/mma/odds HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\n\r\n", board.key);
    let mut slow = Raw::connect_narrow(board.app.addr).await;
    slow.send(request.repeat(20_000).as_bytes()).await;
    let ok = "linesman_requests_total{endpoint=\"get_odds\",outcome=\"ok\"}";
    let mut answered = (0, series(&board.app, ok).await);
    while answered.1 == 0 || answered.0 != answered.1 {
        answered = (answered.1, series(&board.app, ok).await);
    }
    assert!(answered.1 < 20_000, "the service was never held up");
    let held = Arc::downgrade(&board.app.service.api.world(World::Live).published());
    assert!(held.upgrade().is_some());
    // The writer releases a snapshot when its successor is retired.
    for _ in 0..3 {
        board.app.publish().await;
    }
    assert!(held.upgrade().is_none(), "somebody holds a snapshot of three epochs ago");
}

#[tokio::test]
async fn a_head_is_waited_for_ten_seconds_behind_a_push_too() {
    let app = TestApp::start().await;
    let feed = app.any_feed().await;
    let mut raw = Raw::connect(app.addr).await;
    raw.send(push(&feed).as_bytes()).await;
    assert_eq!(raw.read_answer().await.unwrap().status, 200);
    let begun = Instant::now();
    by_fast_clock(async {
        raw.send(b"GET /healthz HTTP/1.1\r\nhost:").await;
        assert!(raw.is_closed().await);
    })
    .await;
    let kept = begun.elapsed();
    assert!((10..70).contains(&kept.as_secs()), "kept for {kept:?}");
    assert_eq!(series(&app, SLOW_HEAD).await, 1);
}

#[tokio::test]
async fn a_head_that_is_cut_for_being_slow_is_counted() {
    let app = TestApp::start().await;
    let mut raw = Raw::connect(app.addr).await;
    raw.send(b"GET /healthz").await;
    assert!(by_fast_clock(raw.is_closed()).await);
    assert_eq!(series(&app, SLOW_HEAD).await, 1);
}

#[tokio::test]
async fn newcomers_are_answered_while_others_keep_the_service_busy() {
    let board = TestMarket::start().await;
    let request =
        format!("GET /v1/sports/mma/odds HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\n\r\n", board.key);
    let answered = Arc::new(AtomicUsize::new(0));
    let mut busy = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (answered, request, addr) = (Arc::clone(&answered), request.clone(), board.app.addr);
        busy.spawn(async move {
            let mut raw = Raw::connect(addr).await;
            loop {
                raw.send(request.as_bytes()).await;
                assert_eq!(raw.read_answer().await.unwrap().status, 200);
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for _ in 0..20 {
        let before = answered.load(Ordering::Relaxed);
        assert_eq!(board.app.raw_one(&request).await.status, 200);
        let meanwhile = answered.load(Ordering::Relaxed) - before;
        // A few turns of every task: to be accepted, to be read, to be answered.
        assert!(meanwhile < 50 * 40, "{meanwhile} others were answered first");
    }
    busy.abort_all();
}

#[tokio::test]
async fn a_service_that_is_late_refuses_what_is_not_ready_and_gives_what_is() {
    let app = TestApp::builder().shed_after(Duration::from_millis(20)).start().await;
    let board = TestMarket::on(app).await;
    let ready = "/v1/sports/mma/odds";
    assert_eq!(board.app.get(ready, &board.key).await.status, 200);
    // Many clients send requests repeatedly, and each turn takes long: one task blocks the only thread of this test.
    let request = format!("GET {ready} HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\n\r\n", board.key);
    let mut busy = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (request, addr) = (request.clone(), board.app.addr);
        busy.spawn(async move {
            let mut raw = Raw::connect(addr).await;
            loop {
                raw.send(request.as_bytes()).await;
                assert_eq!(raw.read_answer().await.unwrap().status, 200, "that is ready");
            }
        });
    }
    busy.spawn(async {
        loop {
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_millis(250) {
                std::hint::spin_loop();
            }
            tokio::task::yield_now().await;
        }
    });
    let mut refused = None;
    for limit in 3..103 {
        let other = format!("{ready}?limit={limit}");
        let answer = board.app.get(&other, &board.key).await;
        if answer.status != 200 {
            refused = Some((other, answer));
            break;
        }
    }
    let lag = board.app.get_operator("/metrics").await;
    let lag = lag.text().lines().find(|line| line.starts_with("linesman_lag")).unwrap().to_owned();
    let (other, refused) = refused.unwrap_or_else(|| panic!("it never refused anything: {lag}"));
    assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(board.app.get("/v1/status", &board.key).await.status, 200);
    assert_eq!(board.app.get_without_key("/readyz").await.status, 200);
    assert!(series(&board.app, "linesman_requests_shed_total").await >= 1);
    // A repeated request is not one of a million: it is computed, and then kept ready.
    assert_eq!(board.app.get(&other, &board.key).await.status, 200);
    busy.abort_all();
    let begun = Instant::now();
    while board.app.get("/v1/sports/mma/odds?limit=299", &board.key).await.status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never recovers");
    }
}
