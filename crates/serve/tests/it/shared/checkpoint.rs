//! A node that starts late, or was away for long, starts from a checkpoint.

use std::sync::Arc;

use change_log::StreamLog;
use domain::{Catalogue, Timestamp, World};
use market::book::IMAGE_VERSION;
use market::{Book, Change, Ids};
use test_servers::Proxy;

use super::{Cluster, ODDS, cut_at, publish};
use crate::harness::{LogServers, TestApp, line, wait_for};
use crate::test_market::{ANN, BEA};

/// Writes two checkpoints, as the writer does from time to time, and deletes all entries before them.
fn shorten_log(servers: &LogServers) {
    let mut log = StreamLog::open(&servers.runtime, &servers.place(World::Live)).unwrap();
    let catalogue = Arc::new(Catalogue::load(None).unwrap());
    let mut book = Book::new(catalogue, Ids::Minted { salt: 0 });
    let last = log.last_seq();
    for entry in log.read_from(1).unwrap().map(Result::unwrap) {
        let change = Change::decode(entry.version, &entry.payload).unwrap();
        book.absorb(&change, Timestamp::from_millis(entry.at_ms));
        // The last entry is a cut, which a checkpoint leaves to be read.
        if entry.seq < last && entry.seq + 2 >= last {
            log.write_checkpoint(entry.seq, IMAGE_VERSION, &book.to_image()).unwrap();
        }
    }
    assert!(log.retain(i64::MAX, last).unwrap() > 0, "something goes");
    assert!(log.first_seq() > 5);
}

#[tokio::test]
async fn a_node_that_was_away_for_longer_than_the_log_reaches_begins_again_from_the_checkpoint() {
    let cluster = Cluster::start().await;
    let proxy = Proxy::start(cluster.test_log.nats.port(0).unwrap()).await.unwrap();
    let mut joining = cluster.joining.clone();
    joining.servers.url = format!("nats://127.0.0.1:{}", proxy.port());
    let away = TestApp::builder().joining(joining).start().await;
    let [one, _] = &cluster.readers;
    let feed = one.any_feed().await;
    one.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    publish(&cluster.joining.clock, &[one, &away]).await;
    proxy.stall();
    for american in 101..110 {
        let price = line::moneyline("a", "fanduel", (ANN, american), (BEA, -155));
        one.push_all(&feed, &[price]).await;
        cluster.publish().await;
    }
    let servers = cluster.joining.servers.clone();
    std::thread::spawn(move || shorten_log(&servers)).join().unwrap();
    proxy.restore();
    wait_for("the present", || cut_at(&away) == cut_at(one)).await;
    let shown = away.get(ODDS, &away.live_key().await).await;
    assert_eq!(shown.json()[0]["outcomes"][0]["price"], 109);
    assert_eq!(shown.text(), one.get(ODDS, &one.live_key().await).await.text());
    // And it follows from there.
    publish(&cluster.joining.clock, &[one, &away]).await;
}

/// Makes the writer accept many entries.
async fn fill(cluster: &Cluster, entries: u32) {
    let feed = cluster.writer.any_feed().await;
    let beats: String = (0..entries)
        .map(|ms| {
            let ts = format!("2026-11-14T11:58:{:02}.{:03}Z", ms / 1000, ms % 1000);
            format!(r#"{{"type":"heartbeat","bookmaker":"caesars","sport":"mma","ts":"{ts}"}}"#)
                + "\n"
        })
        .collect();
    assert_eq!(cluster.writer.push(&feed, beats).await["accepted"], entries);
}

async fn checkpoints(app: &TestApp) -> String {
    let page = app.get_operator("/metrics").await.text().to_owned();
    let series = "linesman_log_checkpoints_total{world=\"live\"} ";
    page.lines().find_map(|line| line.strip_prefix(series)).unwrap().to_owned()
}

#[tokio::test]
async fn whoever_starts_reads_a_checkpoint_that_is_not_much_older_than_a_minute() {
    let cluster = Cluster::start().await;
    let feed = cluster.writer.any_feed().await;
    let price = line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155));
    cluster.writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA), price]).await;
    for _ in 0..5 {
        cluster.publish().await;
    }
    assert_eq!(checkpoints(&cluster.writer).await, "0", "not for a handful of entries");
    fill(&cluster, 1200).await;
    for _ in 0..3 {
        cluster.publish().await;
    }
    // The writer accepts this once it has done everything else.
    cluster.writer.push_all(&feed, &[line::event("b", "mma", "Cleo Cruz", "Dora Dunn")]).await;
    assert_eq!(checkpoints(&cluster.writer).await, "1");
    let servers = cluster.joining.servers.clone();
    let left = std::thread::spawn(move || {
        let log = StreamLog::open(&servers.runtime, &servers.place(World::Live)).unwrap();
        log.last_seq() - log.checkpoint_seq()
    });
    assert!(left.join().unwrap() < 10, "few entries are left to read");
    let late = TestApp::builder().joining(cluster.joining.clone()).start().await;
    wait_for("what was published", || cut_at(&late) == cut_at(&cluster.writer)).await;
    let [writer, ..] = cluster.nodes();
    let bodies = [
        late.get(ODDS, &late.live_key().await).await.text().to_owned(),
        writer.get(ODDS, &writer.live_key().await).await.text().to_owned(),
    ];
    assert!(bodies[0].contains("135") && bodies[0] == bodies[1], "{bodies:?}");
    let metrics = late.get_operator("/metrics").await;
    assert!(metrics.text().contains("linesman_follower_catch_up_seconds{world=\"live\"} "));
}

/// More than one batch of entries that wait for a snapshot after them (`BATCH` of the follower).
const AFTER_THE_SNAPSHOT: u32 = 40_000;

#[tokio::test]
async fn a_node_that_starts_after_many_changes_within_an_epoch_shows_the_same_snapshot() {
    let cluster = Cluster::start().await;
    let feed = cluster.writer.any_feed().await;
    let price = |american| line::moneyline("a", "fanduel", (ANN, american), (BEA, -155));
    cluster.writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA), price(135)]).await;
    cluster.publish().await;
    cluster.writer.push_all(&feed, &[price(140)]).await;
    fill(&cluster, AFTER_THE_SNAPSHOT).await;
    let late = TestApp::builder().joining(cluster.joining.clone()).start().await;
    wait_for("what was published", || cut_at(&late) == cut_at(&cluster.writer)).await;
    let key = late.live_key().await;
    let shown = late.get(ODDS, &key).await;
    assert_eq!(shown.json()[0]["outcomes"][0]["price"], 135);
    let writer = &cluster.writer;
    assert_eq!(shown.text(), writer.get(ODDS, &writer.live_key().await).await.text());
    publish(&cluster.joining.clock, &[writer, &late]).await;
    assert_eq!(late.get(ODDS, &key).await.json()[0]["outcomes"][0]["price"], 140);
}
