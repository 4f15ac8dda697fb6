//! `/v1/sports/{sport_key}/events`: order and filters (D13).

use serde_json::Value;

use crate::test_market::{ANN, TestMarket};

#[tokio::test]
async fn events_are_listed_by_start_with_inclusive_from_and_exclusive_to() {
    let board = TestMarket::start().await;
    let homes = async |query: &str| -> Vec<String> {
        let events = board.get(&format!("/v1/sports/mma/events?{query}")).await;
        let home = |event: &Value| event["home_team"].as_str().unwrap().to_owned();
        events.as_array().unwrap().iter().map(home).collect()
    };
    let (first, second) = ("2026-11-22T03:00:00Z", "2026-11-29T03:00:00Z");
    assert_eq!(homes("").await, [ANN, "Carla Cruz"]);
    assert_eq!(homes(&format!("commence_from={first}")).await, [ANN, "Carla Cruz"]);
    assert_eq!(homes(&format!("commence_to={second}")).await, [ANN]);
    assert_eq!(homes(&format!("commence_from={first}&commence_to={first}")).await, [""; 0]);
    assert_eq!(homes("commence_from=2026-11-22T03:00:00.001Z").await, ["Carla Cruz"]);
    assert_eq!(homes("commence_to=2026-11-22T04:00:01%2B01:00").await, [ANN], "offsets are taken");
    assert_eq!(homes("status=scheduled&limit=1").await, [ANN]);
    assert_eq!(homes("status=live").await, [""; 0]);
}
