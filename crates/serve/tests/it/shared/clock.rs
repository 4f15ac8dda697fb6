//! The clock that nodes share is the database's, and somebody may set that.

use domain::Clock as _;

use super::{Cluster, EPOCH};

#[tokio::test]
async fn a_clock_set_back_behind_the_last_snapshot_is_told_by_every_node() {
    let cluster = Cluster::start().await;
    let clock = &cluster.joining.clock;
    cluster.publish().await;
    let right = clock.now();
    clock.advance(20 * EPOCH);
    cluster.publish().await;
    let ahead = clock.now();
    for node in cluster.nodes() {
        let key = node.live_key().await;
        let status = async || node.get("/v1/status", &key).await.json()["status"].clone();
        assert_eq!(status().await, "ok");
        clock.set(right);
        assert_eq!(status().await, "degraded", "nothing new is shown for ten minutes");
        clock.set(ahead);
    }
}
