//! Live streams of nodes that share a log.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use accounts::{Actor, Cluster, Maintenance, MonotonicClock};
use api::v1::stream::StreamSettings;
use serde_json::json;
use tempfile::TempDir;
use test_servers::Proxy;

use super::client::{Client, Event, at_of, move_to, names, opened, quote};
use super::ends::{all_open, text};
use crate::api::key_authority::Silence;
use crate::harness::{TestApp, line, ndjson, wait_for};
use crate::shared::{Pair, publish};
use crate::test_market::{ANN, BEA, lines};

const LIVE: &str = "?sports=mma&mode=live";

#[tokio::test]
async fn every_node_sends_what_is_stored_before_it_is_published_and_goes_on_from_anothers_cursor() {
    let pair = Pair::start(TestApp::builder).await;
    let Pair { writer, reader, joining, .. } = &pair;
    let feed = writer.any_feed().await;
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
    ];
    writer.push_all(&feed, &lines).await;
    pair.publish().await;
    let (written_key, read_key) = (writer.live_key().await, reader.live_key().await);
    let (mut written, _) = Client::open(writer, &written_key, LIVE, None).await;
    let (mut read, _) = Client::open(reader, &read_key, LIVE, None).await;
    let (mut ends, _) = Client::open(reader, &read_key, LIVE, None).await;
    for client in [&mut written, &mut read, &mut ends] {
        client.cut().await;
    }
    joining.clock.advance(Duration::from_secs(1));
    quote(writer, &feed, 140).await;
    for client in [&mut written, &mut read, &mut ends] {
        let events = client.cut().await;
        assert_eq!(names(&events), ["delta", "cut"]);
        assert_eq!(events[1].data["published"], false);
    }
    // Both have sent the same entry, and each continues from the other's position.
    assert_eq!((&written.cursor, &written.state), (&read.cursor, &read.state));
    let (cursor, state) = (ends.cursor.clone(), ends.state.clone());
    drop(ends);
    quote(writer, &feed, 150).await;
    written.cut().await;
    let (mut moved, hello) = Client::open(writer, &written_key, LIVE, Some(&cursor)).await;
    assert_eq!(hello["resumed"], true);
    moved.state = state;
    moved.cut().await;
    assert_eq!(moved.state, written.state);
    pair.publish().await;
    for client in [&mut written, &mut moved] {
        assert_eq!(names(&client.cut().await), ["fresh", "cut"]);
    }
    while read.cursor != written.cursor {
        read.cut().await;
    }
    assert_eq!(read.state, written.state);
}

/// S4, S7: a client has a part of a live state from one node, whose records came and went before the next live state
/// of the node on which it goes on. It is no matter whether that is the first one sent there, nor how it is sent.
#[tokio::test]
async fn what_a_broken_connection_brought_is_taken_back_on_another_node() {
    // The node that reads shows a change at once, and the following ones together after half a tick.
    let tick = Cell::new(Duration::from_millis(1));
    let node = || TestApp::builder().live_tick(tick.replace(Duration::from_secs(12)));
    let pair = Pair::start(node).await;
    let Pair { writer, reader, .. } = &pair;
    let feed = writer.any_feed().await;
    let odds = |bookmaker, price| line::moneyline("a", bookmaker, (ANN, price), (BEA, -155));
    writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA), odds("fanduel", 135)]).await;
    pair.publish().await;
    let (written_key, read_key) = (writer.live_key().await, reader.live_key().await);
    let (mut written, _) = Client::open(writer, &written_key, LIVE, None).await;
    let (mut read, _) = Client::open(reader, &read_key, LIVE, None).await;
    written.cut().await;
    read.cut().await;
    // With followers, a node keeps a publication among its live states.
    pair.publish().await;
    for client in [&mut written, &mut read] {
        assert_eq!(at_of(&client.cut().await), text(writer.now()));
    }
    let cursor = read.cursor.clone();
    quote(writer, &feed, 140).await;
    written.cut().await;
    read.cut().await;
    let mut backs = Vec::new();
    for replay in ["", "&replay=all"] {
        let query = format!("{LIVE}{replay}");
        let (mut back, hello) = Client::open(reader, &read_key, &query, Some(&cursor)).await;
        assert_eq!(hello["resumed"], true);
        back.state = read.state.clone();
        back.cut().await;
        assert_eq!(back.cursor, read.cursor);
        backs.push(back);
    }
    writer.push(&feed, ndjson(&[odds("betmgm", 140), odds("fanduel", 150)])).await;
    while written.state.len() < 2 {
        written.cut().await;
    }
    let empty = json!({"type": "odds", "ref": "a", "bookmaker": "betmgm", "market": "moneyline", "outcomes": []});
    writer.push(&feed, ndjson(&[empty, odds("fanduel", 160)])).await;
    let price = |events: &[Event]| events[0].data["upserts"][0]["outcomes"][0]["price"].clone();
    while price(&read.cut().await) != 160 {}
    assert_eq!(read.state.len(), 1);
    for back in &mut backs {
        back.state = written.state.clone();
        back.broken = true;
        while back.cursor != read.cursor {
            back.cut().await;
        }
        assert_eq!(back.state, read.state);
    }
}

/// S8: a cursor of a longer log, such as one that was lost, is beyond the end of this one. The stream waits only as
/// long as a node may take to reach it.
#[tokio::test]
async fn a_cursor_past_the_end_of_the_log_is_unknown_on_a_node_that_has_all_of_it() {
    let (other, feed, other_key) = opened().await;
    for n in 0..20 {
        move_to(&other, &feed, 140 + n).await;
    }
    let foreign = other.get("/v1/sports/mma/odds", &other_key).await;
    let foreign = foreign.header("x-cursor").unwrap();

    let pair = Pair::start(TestApp::builder).await;
    let Pair { writer, reader, .. } = &pair;
    writer.push_all(&writer.any_feed().await, &lines()).await;
    pair.publish().await;
    let key = reader.live_key().await;
    let list = async {
        let path = format!("/v1/sports/mma/odds?since={foreign}");
        assert_eq!(reader.get(&path, &key).await.code(), "cursor_expired");
    };
    let stream = async {
        let (mut client, _) = Client::open(reader, &key, "?sports=mma", Some(foreign)).await;
        let events = client.cut().await;
        assert_eq!(names(&events), ["reset", "snapshot", "cut"]);
        assert_eq!(events[0].data["reason"], "unknown");
    };
    tokio::join!(list, stream);
}

/// Two nodes, one of which was cut off from the log before the last publication.
struct CutOff {
    pair: Pair,
    proxy: Proxy,
    /// The last publication's position in the odds.
    cursor: String,
}

impl CutOff {
    async fn start() -> Self {
        let (pair, proxy) = Pair::start_with_proxy().await;
        let Pair { writer, joining, .. } = &pair;
        let feed = writer.any_feed().await;
        writer.push_all(&feed, &lines()).await;
        pair.publish().await;

        proxy.cut();
        let moved = line::moneyline("bout-1", "fanduel", (ANN, 150), (BEA, -155));
        writer.push_all(&feed, &[moved]).await;
        publish(&joining.clock, &[writer]).await;
        let odds = writer.get("/v1/sports/mma/odds", &writer.live_key().await).await;
        let cursor = odds.header("x-cursor").unwrap().to_owned();
        Self { pair, proxy, cursor }
    }
}

/// S8: the same for as long as the node is only behind, but then the client is sent to another one.
#[tokio::test]
async fn a_stream_on_a_node_that_is_behind_its_cursor_waits_ten_seconds_and_ends() {
    let CutOff { pair, proxy, cursor } = &CutOff::start().await;
    let reader = &pair.reader;
    let key = reader.live_key().await;
    let list = async {
        let path = format!("/v1/sports/mma/odds?since={cursor}");
        assert_eq!(reader.get(&path, &key).await.refusal(), (503, "unavailable".to_owned()));
    };
    let stream = async {
        let begun = Instant::now();
        let (mut client, hello) = Client::open(reader, &key, "?sports=mma", Some(cursor)).await;
        assert_eq!(hello["resumed"], true);
        let end = client.event().await.unwrap();
        assert_eq!((end.name.as_str(), &end.data["code"]), ("end", &json!("unavailable")));
        assert!(end.data["retry_after_s"].as_u64() > Some(0), "{end:?}");
        assert!(begun.elapsed() >= Duration::from_secs(10), "{:?}", begun.elapsed());
    };
    tokio::join!(list, stream);
    // Once the node has caught up, the stream goes on there.
    proxy.restore();
    pair.publish().await;
    let (mut client, _) = Client::open(reader, &key, "?sports=mma", Some(cursor)).await;
    assert_eq!(names(&client.cut().await), ["fresh", "cut"]);
}

/// S9: a list waits likewise. It does not answer with what leads back to an earlier publication.
#[tokio::test]
async fn a_poll_on_a_node_that_comes_to_its_cursor_meanwhile_has_nothing_to_add() {
    let CutOff { pair, proxy, cursor } = &CutOff::start().await;
    let reader = &pair.reader;
    let key = reader.live_key().await;
    let path = format!("/v1/sports/mma/odds?since={cursor}");
    let poll = async {
        let mut answer = reader.get(&path, &key).await;
        // The node may take longer than one request waits.
        for _ in 0..5 {
            if answer.status == 503 {
                answer = reader.get(&path, &key).await;
            }
        }
        answer
    };
    let restore = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        proxy.restore();
    };
    let (answer, ()) = tokio::join!(poll, restore);
    assert_eq!((answer.status, answer.header("x-cursor")), (204, Some(&**cursor)));
}

/// S4: the events between the same two cuts are the same, regardless of the node and of the transport.
#[tokio::test]
async fn the_events_between_two_cuts_are_the_same_bytes_on_every_node() {
    let pair = Pair::start(TestApp::builder).await;
    let Pair { writer, reader, .. } = &pair;
    let feed = writer.any_feed().await;
    writer.push_all(&feed, &lines()).await;
    pair.publish().await;
    let keys = [writer.live_key().await, reader.live_key().await];
    let query = "?channels=odds,scores,events&freshness=records";
    let (mut here, _) = Client::open(writer, &keys[0], query, None).await;
    let (mut there, _) = Client::open(reader, &keys[1], query, None).await;
    let begun = here.blocks_to_cut().await;
    assert_eq!(there.blocks_to_cut().await, begun);
    let cursor = here.cursor.clone();
    let mut last = String::new();
    for price in [140, 150] {
        let moved = line::moneyline("bout-1", "fanduel", (ANN, price), (BEA, -155));
        writer.push_all(&feed, &[moved]).await;
        pair.publish().await;
        last = here.blocks_to_cut().await;
        assert!(last.contains(&format!("\"price\":{price}")), "{last}");
        assert_eq!(there.blocks_to_cut().await, last);
    }
    // From the first cut to the last: the sum, computed by each node separately.
    let (mut here, _) = Client::open(writer, &keys[0], query, Some(&cursor)).await;
    let (mut there, _) = Client::open(reader, &keys[1], query, Some(&cursor)).await;
    let sum = here.blocks_to_cut().await;
    assert!(sum.contains("\"conflated\":true") && sum != last, "{sum}");
    assert_eq!(there.blocks_to_cut().await, sum);
}

/// S11, S14: on nodes with the same accounts, the streams of a key are counted together, and have ended together when
/// the call that revokes it on one of them returns.
#[tokio::test]
async fn streams_of_a_key_are_limited_over_all_nodes_and_end_on_all_of_them() {
    let accounts = TempDir::new().unwrap();
    let node = async || {
        let cluster = Cluster {
            register: Arc::new(Silence),
            steady: Arc::new(MonotonicClock::default()),
            lease: Duration::from_secs(60),
        };
        let settings = StreamSettings { per_key_max: 2, ..StreamSettings::default() };
        let node = TestApp::builder().accounts_in(accounts.path()).one_of(cluster);
        let node = node.streams(settings).start().await;
        let service = Arc::clone(&node.service);
        tokio::spawn(async move { service.api.accounts.follow().await });
        node
    };
    let nodes = [node().await, node().await];
    let key = nodes[0].live_key().await;
    // The other node follows a new key a moment later.
    let keys = &nodes[1].service.api.accounts.keys;
    wait_for("the key", || keys.authenticate(key.as_bytes(), nodes[1].now()).is_ok()).await;
    let mut clients = Vec::new();
    for node in &nodes {
        clients.push(Client::open(node, &key, "?sports=mma", None).await.0);
    }
    for node in &nodes {
        let refused = node.get("/v1/stream?sports=mma", &key).await;
        assert_eq!(refused.refusal(), (429, "too_many_streams".to_owned()));
    }
    let accounts = &nodes[0].service.api.accounts;
    accounts.revoke_key(&key, &Actor::command_line()).await.unwrap();
    for node in &nodes {
        assert_eq!(all_open(node).await, 0, "the call has returned");
    }
    for client in &mut clients {
        assert_eq!(client.end().await["code"], "authentication_failed");
    }
    let key = nodes[0].live_key().await;
    wait_for("the key", || keys.authenticate(key.as_bytes(), nodes[1].now()).is_ok()).await;
    let mut clients = Vec::new();
    for node in &nodes {
        clients.push(Client::open(node, &key, "?sports=mma", None).await.0);
    }
    let maintenance = Maintenance::On { retry_after_s: 77 };
    accounts.set_maintenance(maintenance, &Actor::command_line()).await.unwrap();
    for (node, client) in nodes.iter().zip(&mut clients) {
        assert_eq!(all_open(node).await, 0, "the call has returned");
        assert_eq!(client.end().await["code"], "maintenance");
    }
}
