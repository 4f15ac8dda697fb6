//! Servers that were reset to an earlier state, and had lost entries with ids.

use std::collections::BTreeMap;

use domain::World;
use serde_json::Value;

use super::{lead, publish, wait_for_push};
use crate::harness::{Bed, Joining, TestApp, line, wait_for};
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
    let mut bed = Bed::start();
    let joining = Joining::new(&bed);
    let (electable, leadership) = joining.electable();
    let writer = TestApp::builder().joining(electable).start().await;
    lead(&writer, &leadership, 1).await;
    let feed = writer.any_feed().await;
    writer.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    publish(&joining.clock, &[&writer]).await;

    let take_away = |bed: &mut Bed| {
        leadership.withdraw();
        bed.nats.kill(0).unwrap();
    };
    let lead_again = async |bed: &mut Bed, term| {
        bed.nats.start_again(0).unwrap();
        wait_for("the writer to step down", || !writer.service.api.world(World::Live).leads())
            .await;
        lead(&writer, &leadership, term).await;
    };
    take_away(&mut bed);
    let copy = bed.nats.copy_data(0).unwrap();
    lead_again(&mut bed, 2).await;
    wait_for_push(&writer, &feed, &line::event("b", "mma", "Milan Dray", "Pavel Orsk")).await;
    publish(&joining.clock, &[&writer]).await;
    let before = shown(&writer).await;

    take_away(&mut bed);
    bed.nats.restore_data(0, &copy).unwrap();
    lead_again(&mut bed, 3).await;
    wait_for_push(&writer, &feed, &line::event("c", "mma", "Tomas Veldt", "Oren Castellane")).await;
    publish(&joining.clock, &[&writer]).await;
    let after = shown(&writer).await;
    assert_eq!((before.len(), after.len()), (2, 2));
    for (id, home) in &after {
        assert_eq!(before.get(id).unwrap_or(home), home, "{id} was given twice");
    }
}
