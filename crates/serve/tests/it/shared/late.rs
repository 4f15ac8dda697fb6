//! A forwarded push that was delayed, while a copy of it was accepted and its sender continued.

use std::time::Duration;

use change_log::LeaderClient;
use domain::{Clock as _, World};
use serde_json::{Value, json};

use super::{Cluster, ODDS};
use crate::harness::{line, wait_for};
use crate::test_market::{ANN, BEA};

#[tokio::test]
async fn a_copy_that_comes_late_does_not_undo_what_was_taken_since() {
    let cluster = Cluster::start().await;
    let node = &cluster.readers[0];
    let feed = node.feed("north", None).await;
    let price = |price: i32| line::moneyline("a", "fanduel", (ANN, price), (BEA, -155));
    node.push_all(&feed, &[line::event("a", "mma", ANN, BEA), price(135)]).await;
    node.push_all(&feed, &[price(140)]).await;

    let clock = &cluster.joining.clock;
    let servers = &cluster.joining.servers;
    let caller = LeaderClient::open(&servers.place(World::Live)).await.unwrap();
    wait_for("the servers", || caller.bytes_max().is_some()).await;
    // `None`: like a request of an older program.
    let hand_over = async |price: Value, before_ms: Option<i64>| -> Value {
        let mut asked = json!({"push": {"feed": "north", "bookmaker": null, "lines": [1]}});
        if let Some(before_ms) = before_ms {
            asked["push"]["before_ms"] = json!(before_ms);
        }
        let question = format!("{asked}\n{price}").into_bytes();
        let answer = caller.ask(question, Duration::from_secs(30)).await.unwrap();
        serde_json::from_slice(&answer).unwrap()
    };
    let now_ms = clock.now().as_millis();
    assert_eq!(hand_over(price(135), Some(now_ms - 1)).await, json!("elsewhere"));
    assert_eq!(hand_over(price(140), Some(now_ms + 1)).await["taken"]["unchanged"], 1);
    assert_eq!(hand_over(price(140), None).await["taken"]["unchanged"], 1);
    cluster.publish().await;
    let key = node.live_key().await;
    assert_eq!(node.get(ODDS, &key).await.json()[0]["outcomes"][0]["price"], 140);
}
