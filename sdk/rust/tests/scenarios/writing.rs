//! Pushes.

use std::io::Read as _;

use flate2::read::GzDecoder;
use linesman_client::ErrorCode;
use serde_json::{Value, json};

use crate::support::{FakeClock, Proxy, body_of, told};

fn heartbeat() -> Value {
    json!({"type": "heartbeat", "bookmaker": "fanduel", "sport": "mma"})
}

pub(crate) async fn push_counts_lines_of_whole_input() {
    let proxy = Proxy::new(json!({})).await;
    let feed = proxy.feed(&FakeClock::new(0.5));
    // Three messages are rejected: the 7th, the first of the second body and the last.
    let wrong = [7, 5_001, 12_000];
    let messages = (1..=12_000_u64).map(|number| match wrong.contains(&number) {
        true => json!({"type": "unheard_of"}),
        false => heartbeat(),
    });
    let receipt = feed.push(messages).await.unwrap();
    assert_eq!(receipt.accepted + receipt.unchanged + receipt.superseded, 11_997);
    assert_eq!(receipt.rejected_total, 3);
    let lines: Vec<u64> = receipt.rejected.iter().map(|line| line.line).collect();
    assert_eq!(lines, wrong);
    let mut counts = Vec::new();
    for request in proxy.requests().await {
        assert_eq!(request["headers"]["content-encoding"], "gzip");
        let mut text = String::new();
        GzDecoder::new(body_of(&request).as_slice()).read_to_string(&mut text).unwrap();
        counts.push(text.lines().count());
    }
    assert_eq!(counts, [5_000, 5_000, 2_000]);
    // Long messages: the limit is 4 MiB, and a longer message is rejected here.
    let long = |letters: usize| json!({"type": "x", "text": "é".repeat(letters)});
    let receipt = feed.push([long(1 << 20), long(1 << 20), long(1 << 20), long(1 << 22)]).await;
    let lines: Vec<u64> = receipt.unwrap().rejected.iter().map(|line| line.line).collect();
    assert_eq!((lines, proxy.requests().await.len()), (vec![1, 2, 3, 4], 6));
}

pub(crate) async fn push_retries_unavailable() {
    let clock = FakeClock::new(0.0);
    let unavailable =
        json!({"status": 503, "headers": {"Retry-After": "7"}, "body": told("unavailable")});
    let proxy = Proxy::with_script(json!([unavailable])).await;
    let receipt = proxy.feed(&clock).push([heartbeat()]).await.unwrap();
    assert_eq!((receipt.rejected_total, clock.waits()), (0, vec![7.0]));
    assert_eq!(proxy.statuses().await, [Some(503), Some(200)]);
    // The second body fails permanently: the error contains the receipt of the first.
    let paused = json!([{}, {"status": 409, "body": told("feed_paused")}]);
    let proxy = Proxy::with_script(paused).await;
    let messages = (0..5_001).map(|_| heartbeat());
    let error = proxy.feed(&clock).push(messages).await.unwrap_err();
    let receipt = error.receipt().unwrap();
    assert_eq!(*error.code(), ErrorCode::FeedPaused);
    assert_eq!(receipt.accepted + receipt.unchanged, 5_000);
}
