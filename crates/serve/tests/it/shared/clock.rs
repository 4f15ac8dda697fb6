//! The shared clock of the nodes is the database's, and it may be set.

use std::time::Duration;

use domain::{Clock as _, Timestamp, World};

use super::{Cluster, EPOCH, ODDS, cut_at, lead, publish};
use crate::harness::{TestApp, line, wait_for};
use crate::test_market::{ANN, BEA};

/// Waits until all nodes show a snapshot of this instant, and returns the common body.
async fn shown_at(nodes: &[&TestApp], at: Timestamp) -> String {
    let mut bodies = Vec::new();
    for node in nodes {
        wait_for("a snapshot of the instant", || cut_at(node) == at).await;
        bodies.push(node.get(ODDS, &node.live_key().await).await.text().to_owned());
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "one body on all nodes");
    bodies.remove(0)
}

async fn status(nodes: &[&TestApp]) -> Vec<String> {
    let mut told = Vec::new();
    for node in nodes {
        let status = node.get("/v1/status", &node.live_key().await).await.json()["status"].clone();
        told.push(status.as_str().unwrap().to_owned());
    }
    told
}

#[tokio::test]
async fn a_clock_set_back_stops_no_node_and_no_epoch_is_shown_differently() {
    let cluster = Cluster::start().await;
    let clock = &cluster.joining.clock;
    let (electable, heirs_seat) = cluster.joining.electable();
    let heir = TestApp::builder().joining(electable).start().await;
    let [writer, one, two] = cluster.nodes();
    let nodes = [writer, one, two, &heir];
    let feed = writer.feed("one", None).await;
    let price = |price: i32| line::moneyline("a", "fanduel", (ANN, price), (BEA, -155));
    writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA), price(135)]).await;
    publish(clock, &nodes).await;
    let right = clock.now();
    clock.advance(20 * EPOCH);
    publish(clock, &nodes).await;
    let ahead = clock.now();

    // Set back to the true time: that epoch was shown already, so the new snapshot is of another instant.
    clock.set(right);
    shown_at(&nodes, right.plus(Duration::from_millis(1))).await;
    assert_eq!(status(&nodes).await, ["ok"; 4]);
    writer.push_all(&feed, &[price(140)]).await;
    let later = right.plus(EPOCH).plus(Duration::from_millis(1234));
    clock.set(later);
    assert!(shown_at(&nodes, later).await.contains("140"));

    // Set back once more, without a leader.
    cluster.leadership.withdraw();
    wait_for("the writer to step down", || !writer.service.api.world(World::Live).leads()).await;
    clock.set(right);
    assert_eq!(status(&nodes).await, ["degraded"; 4]);
    clock.set(later);

    // A new leader knows which epochs were shown; once the clock has caught up, all is as before.
    lead(&heir, &heirs_seat, 2).await;
    heir.push_all(&heir.feed("one", None).await, &[price(145)]).await;
    let second_time = ahead.plus(Duration::from_millis(5));
    clock.set(second_time);
    assert!(shown_at(&nodes, second_time).await.contains("145"));
    publish(clock, &nodes).await;
    assert_eq!(cut_at(one), ahead.plus(EPOCH));
}
