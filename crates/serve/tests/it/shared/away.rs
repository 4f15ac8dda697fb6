//! Servers that are not reachable yet, or not any more.

use std::time::{Duration, Instant};

use domain::{Clock as _, Timestamp, World};

use super::{Cluster, EPOCH, ODDS, cut_at, lead, one_push, publish, wait_for_push};
use crate::harness::{Joining, TestApp, TestLog, line, wait_for};
use crate::test_market::{ANN, BEA};

#[tokio::test]
async fn a_node_starts_without_servers_and_serves_once_they_are_there() {
    let mut test_log = TestLog::start();
    let joining = Joining::new(&test_log);
    let (electable, leadership) = joining.electable();
    let feed;
    {
        let writer = TestApp::builder().joining(electable).start().await;
        lead(&writer, &leadership, 1).await;
        feed = writer.any_feed().await;
        writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
        publish(&joining.clock, &[&writer]).await;
    }
    test_log.nats.kill(0).unwrap();
    let node = TestApp::builder().joining(joining).start().await;
    let key = node.live_key().await;
    assert_eq!(node.get_operator("/healthz").await.status, 200);
    let ready = node.get_operator("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("the log was not read yet"), "{}", ready.text());
    assert_eq!(
        node.get(ODDS, &key).await.status,
        503,
        "missing data is not shown as an empty market"
    );
    assert_eq!(node.get("/v1/status", &key).await.json()["status"], "degraded");
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    assert_eq!(one_push(&node, &node.any_feed().await, &price).await, 503, "not refused for good");
    test_log.nats.start_again(0).unwrap();
    // The snapshot is published a moment before the node reports it.
    let live = node.service.api.world(World::Live);
    wait_for("the log", || cut_at(&node) > Timestamp::from_secs(1) && live.has_begun()).await;
    let events = node.get("/v1/sports/mma/events", &key).await.json();
    assert_eq!(events.as_array().unwrap().len(), 1);
    assert_eq!(node.get_operator("/readyz").await.status, 200);
}

#[tokio::test]
async fn when_the_servers_come_back_every_node_catches_up_without_a_restart() {
    let mut cluster = Cluster::start().await;
    let feed = cluster.readers[0].any_feed().await;
    cluster.readers[0].push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    cluster.publish().await;
    cluster.test_log.nats.kill(0).unwrap();
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    assert_eq!(one_push(&cluster.readers[0], &feed, &price).await, 503);
    let keys = [cluster.readers[0].live_key().await, cluster.readers[1].live_key().await];
    for (node, key) in cluster.readers.iter().zip(&keys) {
        let events = node.get("/v1/sports/mma/events", key).await.json();
        assert_eq!(events.as_array().unwrap().len(), 1, "the last publication is still served");
    }
    // As far as these know, others may have a newer snapshot: after a while that is reported, and they are not ready.
    cluster.joining.clock.advance(4 * EPOCH);
    for (node, key) in cluster.readers.iter().zip(&keys) {
        assert_eq!(node.get_operator("/readyz").await.status, 503);
        assert_eq!(node.get("/v1/status", key).await.json()["status"], "degraded");
    }
    word_that_nobody_writes(&cluster, &keys[0]).await;
    let leads_still = || cluster.writer.service.api.world(World::Live).leads();
    wait_for("the writer to step down", || !leads_still()).await;
    cluster.test_log.nats.start_again(0).unwrap();
    lead(&cluster.writer, &cluster.leadership, 2).await;
    wait_for_push(&cluster.readers[0], &feed, &price).await;
    cluster.publish().await;
    for (node, key) in cluster.readers.iter().zip(&keys) {
        assert_eq!(node.get(ODDS, key).await.json()[0]["outcomes"][0]["price"], 135);
        assert_eq!(node.get_operator("/readyz").await.status, 200);
    }
}

/// Without a leader no node is ahead: a load balancer is not left without any node.
async fn word_that_nobody_writes(cluster: &Cluster, key: &str) {
    let (node, clock) = (&cluster.readers[0], &cluster.joining.clock);
    let [live, sandbox] = [World::Live, World::Sandbox].map(|world| node.service.api.world(world));
    wait_for("the sandbox", || sandbox.is_current(clock.now())).await;
    assert!(live.is_late(clock.now()));
    live.note_led(Some(false), clock.now());
    let ready = node.get_operator("/readyz").await;
    assert_eq!(ready.status, 200);
    assert!(ready.text().contains("no leader"), "{}", ready.text());
    assert_eq!(node.get("/v1/status", key).await.json()["status"], "degraded");
    // The report expires and must be repeated.
    clock.advance(Duration::from_secs(6));
    assert_eq!(node.get_operator("/readyz").await.status, 503);
    for said in [Some(true), None] {
        live.note_led(Some(false), clock.now());
        live.note_led(said, clock.now());
        assert_eq!(node.get_operator("/readyz").await.status, 503);
    }
    let begun = Instant::now();
    while !node.get_operator("/readyz").await.text().contains("does not follow the log") {
        assert!(begun.elapsed() < Duration::from_secs(60), "the reason is missing");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
