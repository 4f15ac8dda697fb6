//! Live streams of nodes that share a log.

use std::time::Duration;

use domain::{Clock as _, Timestamp, World};

use super::client::{Client, names, quote};
use crate::harness::{Bed, Joining, TestApp, line, wait_for};
use crate::test_market::{ANN, BEA};

const LIVE: &str = "?sports=mma&mode=live";

#[tokio::test]
async fn every_node_sends_what_is_stored_before_it_is_published_and_goes_on_from_anothers_cursor() {
    // The last to go: the nodes speak with it until they have stopped.
    let bed = Bed::start();
    let joining = Joining::new(&bed);
    let (electable, leadership) = joining.electable();
    let writer = TestApp::builder().joining(electable).start().await;
    let keep = || {
        if leadership.is_healthy() && leadership.term().is_none() {
            leadership.grant(1);
        }
        writer.service.api.world(World::Live).leads()
    };
    wait_for("its turn", keep).await;
    let reader = TestApp::builder().joining(joining.clone()).start().await;
    let publish = async || {
        let now = joining.clock.now().as_millis();
        let due = Timestamp::from_millis((now.div_euclid(30_000) + 1) * 30_000);
        joining.clock.set(due);
        for node in [&writer, &reader] {
            let cut_at = || node.service.api.world(World::Live).published().snapshot.cut_at;
            wait_for("a snapshot of the epoch", || cut_at() == due).await;
        }
    };
    let feed = writer.any_feed().await;
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
    ];
    writer.push_all(&feed, &lines).await;
    publish().await;
    let (written_key, read_key) = (writer.live_key().await, reader.live_key().await);
    let (mut written, _) = Client::open(&writer, &written_key, LIVE, None).await;
    let (mut read, _) = Client::open(&reader, &read_key, LIVE, None).await;
    let (mut ends, _) = Client::open(&reader, &read_key, LIVE, None).await;
    for client in [&mut written, &mut read, &mut ends] {
        client.cut().await;
    }
    joining.clock.advance(Duration::from_secs(1));
    quote(&writer, &feed, 140).await;
    for client in [&mut written, &mut read, &mut ends] {
        let events = client.cut().await;
        assert_eq!(names(&events), ["delta", "cut"]);
        assert_eq!(events[1].data["published"], false);
    }
    // Both have shown the same entry, and each goes on from where the other was.
    assert_eq!((&written.cursor, &written.state), (&read.cursor, &read.state));
    let (cursor, state) = (ends.cursor.clone(), ends.state.clone());
    drop(ends);
    quote(&writer, &feed, 150).await;
    written.cut().await;
    let (mut moved, hello) = Client::open(&writer, &written_key, LIVE, Some(&cursor)).await;
    assert_eq!(hello["resumed"], true);
    moved.state = state;
    moved.cut().await;
    assert_eq!(moved.state, written.state);
    publish().await;
    for client in [&mut written, &mut moved] {
        assert_eq!(names(&client.cut().await), ["fresh", "cut"]);
    }
    while read.cursor != written.cursor {
        read.cut().await;
    }
    assert_eq!(read.state, written.state);
}
