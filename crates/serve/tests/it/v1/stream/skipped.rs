//! Streams on a node that did not show every publication, because it was cut off from the log.

use domain::{Clock as _, World};

use super::client::Client;
use crate::harness::{TestApp, line, wait_for};
use crate::shared::{Pair, publish};
use crate::test_market::{ANN, BEA, lines};

/// Everything that a stream sends up to a cursor, cut by cut.
async fn sent(app: &TestApp, key: &str, query: &str, end: &str) -> Vec<String> {
    let (mut client, hello) = Client::open(app, key, query, None).await;
    assert_eq!(hello["resumed"], true);
    let mut cuts = Vec::new();
    while client.cursor != end {
        cuts.push(client.blocks_to_cut().await);
    }
    cuts
}

async fn cursor(app: &TestApp, key: &str) -> String {
    let odds = app.get("/v1/sports/mma/odds", key).await;
    odds.header("x-cursor").unwrap().to_owned()
}

/// S2, S4: it reads all of them at once and shows the last one. Streams are sent what other nodes send.
#[tokio::test]
async fn publications_that_a_node_did_not_show_are_replayed_there_as_on_any_other() {
    let (pair, proxy) = Pair::start_with_proxy().await;
    let Pair { writer, reader, joining, .. } = &pair;
    let feed = writer.any_feed().await;
    writer.push_all(&feed, &lines()).await;
    pair.publish().await;
    let (written_key, read_key) = (writer.live_key().await, reader.live_key().await);
    // While somebody follows live, the node keeps what it has shown.
    let (mut live, _) = Client::open(reader, &read_key, "?sports=mma&mode=live", None).await;
    live.cut().await;
    pair.publish().await;
    live.cut().await;
    let begin = cursor(reader, &read_key).await;
    assert_eq!(live.cursor, begin);

    proxy.cut();
    for price in [140, 150, 160] {
        let moved = line::moneyline("bout-1", "fanduel", (ANN, price), (BEA, -155));
        writer.push_all(&feed, &[moved]).await;
        publish(&joining.clock, &[writer]).await;
    }
    let end = cursor(writer, &written_key).await;
    let [written, read] = [writer, reader].map(|app| app.service.api.world(World::Live));
    // Otherwise it might continue where it was, with one publication after the other.
    let is_cut_off = || {
        let why = read.lateness(joining.clock.now());
        why.is_some_and(|why| why.contains("does not follow the log"))
    };
    wait_for("the node to give up its connection", is_cut_off).await;
    proxy.restore();
    wait_for("the last publication", || read.published().seq() == written.published().seq()).await;

    let net = live.cut().await;
    assert_eq!((&net[0].data["conflated"], &live.cursor), (&true.into(), &end));
    for (mode, replay, cuts) in
        [("publication", "net", 1), ("publication", "all", 3), ("live", "all", 6)]
    {
        let query = format!("?sports=mma&freshness=none&mode={mode}&replay={replay}&since={begin}");
        let expected = sent(writer, &written_key, &query, &end).await;
        assert_eq!(expected.len(), cuts, "{query}: {expected:?}");
        assert_eq!(sent(reader, &read_key, &query, &end).await, expected, "{query}");
    }
}
