//! Answers that are not read: their memory and its duration are bounded.

use std::time::Duration;

use super::http2::{Client, get};
use super::{metric, wait_for_metric};
use crate::harness::TestApp;
use crate::test_market::TestMarket;

/// `SETTINGS_INITIAL_WINDOW_SIZE`: the number of bytes of each body that may be sent.
fn window(bytes: u32) -> Vec<u8> {
    [&[0, 4][..], &bytes.to_be_bytes()].concat()
}

const UNREAD: &str = "linesman_answers_unread_bytes";

#[tokio::test]
async fn ready_answers_that_nobody_reads_are_held_once() {
    let board = TestMarket::start().await;
    let path = "/v1/sports/mma/odds";
    let length = board.app.get(path, &board.key).await.body.len();
    let mut clients = Vec::new();
    for _ in 0..4 {
        // Either no byte or one may be sent.
        let bytes = u32::from(clients.len() % 2 == 1);
        let mut client = Client::connect(board.app.addr, &window(bytes)).await;
        for stream in 0..100 {
            client.send(&get(2 * stream + 1, path, &[("x-api-key", &board.key)])).await;
        }
        clients.push(client);
    }
    let answered = "linesman_requests_total{endpoint=\"get_odds\",outcome=\"ok\"}";
    wait_for_metric(&board.app, answered, |count| count == 401).await;
    let held = metric(&board.app, UNREAD).await;
    assert!(held < u64::try_from(4 * length).unwrap(), "{held} for answers of {length}");
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(65)).await;
    tokio::time::resume();
    wait_for_metric(&board.app, UNREAD, |bytes| bytes == 0).await;
    for client in &mut clients {
        while client.read().await.is_some() {}
    }
}

#[tokio::test]
async fn the_bytes_of_a_client_that_hangs_up_are_free_at_once() {
    let app = TestApp::start().await;
    let mut client = Client::connect(app.addr, &window(0)).await;
    // Pages are generated per request.
    for stream in 0..50 {
        client.send(&get(2 * stream + 1, "/signin", &[])).await;
    }
    wait_for_metric(&app, UNREAD, |bytes| bytes > 10_000).await;
    drop(client);
    wait_for_metric(&app, UNREAD, |bytes| bytes == 0).await;
}
