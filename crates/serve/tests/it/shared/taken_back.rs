//! The servers lose acknowledged entries, and other entries take their place, before a node that had read them is
//! back.

use domain::World;

use super::{ODDS, Pair, lead, publish, wait_for_push};
use crate::harness::{TestLog, line, wait_for};
use crate::test_market::{ANN, BEA};

#[tokio::test]
async fn a_node_whose_log_was_rewritten_shows_what_is_in_it_now() {
    let (pair, proxy) = Pair::start_with_proxy().await;
    // The log is the last to go.
    let Pair { mut test_log, joining, leadership, reader, writer } = pair;
    let feed = writer.any_feed().await;
    writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    publish(&joining.clock, &[&writer, &reader]).await;

    let take_away = |test_log: &mut TestLog| {
        leadership.withdraw();
        test_log.nats.kill(0).unwrap();
    };
    let lead_again = async |test_log: &mut TestLog, term| {
        test_log.nats.start_again(0).unwrap();
        wait_for("the writer to step down", || !writer.service.api.world(World::Live).leads())
            .await;
        lead(&writer, &leadership, term).await;
    };
    take_away(&mut test_log);
    let copy = test_log.nats.copy_data(0).unwrap();
    lead_again(&mut test_log, 2).await;
    let price = |price: i32| line::moneyline("a", "fanduel", (ANN, price), (BEA, -155));
    wait_for_push(&writer, &feed, &price(135)).await;
    publish(&joining.clock, &[&writer, &reader]).await;

    proxy.cut();
    take_away(&mut test_log);
    test_log.nats.restore_data(0, &copy).unwrap();
    lead_again(&mut test_log, 3).await;
    // At least as many entries as were lost.
    for n in 140..150 {
        wait_for_push(&writer, &feed, &price(n)).await;
    }
    publish(&joining.clock, &[&writer]).await;
    proxy.restore();
    publish(&joining.clock, &[&writer, &reader]).await;
    let bodies = [
        writer.get(ODDS, &writer.live_key().await).await.text().to_owned(),
        reader.get(ODDS, &reader.live_key().await).await.text().to_owned(),
    ];
    assert!(bodies[0].contains("149") && bodies[0] == bodies[1], "{bodies:?}");
}
