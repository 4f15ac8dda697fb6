//! The prior interface by route (V1 to V17).

mod admission;
mod caching;
mod credits;
mod errors;
mod event_odds;
mod history;
mod lists;
mod names;
mod odds;
mod params;
mod sandbox;

use serde_json::Value;

use crate::harness::Answer;
use crate::test_market::TestMarket;

const MMA: &str = "/v4/sports/mma_mixed_martial_arts";

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Status and code of an error, after checking that the body has the form of V16.
fn refusal(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    assert_eq!(keys(&body), ["message", "error_code", "details_url"], "{body}");
    let code = body["error_code"].as_str().unwrap().to_owned();
    let anchor = code.to_lowercase().replace('_', "-");
    assert!(body["details_url"].as_str().unwrap().ends_with(&format!("#{anchor}")), "{body}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("x-request-id").is_some());
    (answer.status, code)
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap().to_owned()
}

fn last(answer: &Answer) -> u32 {
    answer.header("x-requests-last").unwrap().parse().unwrap()
}

/// The id of the bout between Ann and Bea, in the form of `/v4`.
async fn bout(board: &TestMarket) -> String {
    let events = board.list(&format!("{MMA}/events")).await;
    events[0]["id"].as_str().unwrap().to_owned()
}
