//! Live streams of nodes that share a log.

use std::time::Duration;

use super::client::{Client, move_to, names, opened, quote};
use crate::harness::{Bed, Joining, TestApp, line};
use crate::shared::{lead, publish};
use crate::test_market::{ANN, BEA, lines};

const LIVE: &str = "?sports=mma&mode=live";

#[tokio::test]
async fn every_node_sends_what_is_stored_before_it_is_published_and_goes_on_from_anothers_cursor() {
    // The last to go: the nodes speak with it until they have stopped.
    let bed = Bed::start();
    let joining = Joining::new(&bed);
    let (electable, leadership) = joining.electable();
    let writer = TestApp::builder().joining(electable).start().await;
    lead(&writer, &leadership, 1).await;
    let reader = TestApp::builder().joining(joining.clone()).start().await;
    let nodes = [&writer, &reader];
    let feed = writer.any_feed().await;
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
    ];
    writer.push_all(&feed, &lines).await;
    publish(&joining.clock, &nodes).await;
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
    publish(&joining.clock, &nodes).await;
    for client in [&mut written, &mut moved] {
        assert_eq!(names(&client.cut().await), ["fresh", "cut"]);
    }
    while read.cursor != written.cursor {
        read.cut().await;
    }
    assert_eq!(read.state, written.state);
}

/// S8: a cursor of a longer log, such as one that was lost, is past the end of this one. It is waited for only as long
/// as a node may take to come to it.
#[tokio::test]
async fn a_cursor_past_the_end_of_the_log_is_unknown_on_a_node_that_has_all_of_it() {
    let (other, feed, other_key) = opened().await;
    for n in 0..20 {
        move_to(&other, &feed, 140 + n).await;
    }
    let foreign = other.get("/v1/sports/mma/odds", &other_key).await;
    let foreign = foreign.header("x-cursor").unwrap();

    // The last to go: the nodes speak with it until they have stopped.
    let bed = Bed::start();
    let joining = Joining::new(&bed);
    let (electable, leadership) = joining.electable();
    let writer = TestApp::builder().joining(electable).start().await;
    lead(&writer, &leadership, 1).await;
    let reader = TestApp::builder().joining(joining.clone()).start().await;
    writer.push_all(&writer.any_feed().await, &lines()).await;
    publish(&joining.clock, &[&writer, &reader]).await;
    let key = reader.live_key().await;
    let list = async {
        let path = format!("/v1/sports/mma/odds?since={foreign}");
        assert_eq!(reader.get(&path, &key).await.code(), "cursor_expired");
    };
    let stream = async {
        let (mut client, _) = Client::open(&reader, &key, "?sports=mma", Some(foreign)).await;
        let events = client.cut().await;
        assert_eq!(names(&events), ["reset", "snapshot", "cut"]);
        assert_eq!(events[0].data["reason"], "unknown");
    };
    tokio::join!(list, stream);
}
