//! Servers that were reset to an earlier state, and had lost entries with ids.

use std::collections::BTreeMap;

use domain::World;
use serde_json::Value;

use super::{lead, publish, wait_for_push};
use crate::harness::{Joining, TestApp, TestLog, line, wait_for};
use crate::test_market::{ANN, BEA};

const EVENTS: &str = "/v1/sports/mma/events";

/// Home sides by id.
async fn shown(app: &TestApp) -> BTreeMap<String, String> {
    let events: Vec<Value> =
        app.get(EVENTS, &app.live_key().await).await.json().as_array().unwrap().clone();
    let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
    events.iter().map(|event| (text(event, "id"), text(event, "home_team"))).collect()
}

#[tokio::test]
async fn an_id_that_was_lost_with_the_log_is_not_given_again() {
    let mut test_log = TestLog::start();
    let joining = Joining::new(&test_log);
    let (electable, leadership) = joining.electable();
    let writer = TestApp::builder().joining(electable).start().await;
    lead(&writer, &leadership, 1).await;
    let feed = writer.any_feed().await;
    writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    publish(&joining.clock, &[&writer]).await;

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
    wait_for_push(&writer, &feed, &line::event("b", "mma", "Milan Dray", "Pavel Orsk")).await;
    publish(&joining.clock, &[&writer]).await;
    let before = shown(&writer).await;

    take_away(&mut test_log);
    test_log.nats.restore_data(0, &copy).unwrap();
    lead_again(&mut test_log, 3).await;
    wait_for_push(&writer, &feed, &line::event("c", "mma", "Tomas Veldt", "Oren Castellane")).await;
    publish(&joining.clock, &[&writer]).await;
    let after = shown(&writer).await;
    assert_eq!((before.len(), after.len()), (2, 2));
    for (id, home) in &after {
        assert_eq!(before.get(id).unwrap_or(home), home, "{id} was given twice");
    }
}
