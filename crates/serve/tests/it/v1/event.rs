//! Events: shape, list, life (D8, D9, D12, D13, D24).

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::line;
use crate::test_market::{ANN, BEA, TestMarket};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

async fn odds_count(board: &TestMarket, id: &str) -> usize {
    let path = format!("/v1/sports/mma/odds?regions=us,uk,eu,au&event_ids={id}");
    board.get(&path).await.as_array().unwrap().len()
}

#[tokio::test]
async fn an_event_has_exactly_the_fields_of_the_interface_in_order() {
    let board = TestMarket::start().await;
    let bout = board.event_of("mma", ANN).await;
    let expected = json!({
        "id": bout["id"], "sport_key": "mma", "competition": "Cup",
        "commence_time": "2026-11-22T03:00:00Z", "home_team": ANN, "away_team": BEA,
        "status": "scheduled", "markets": ["moneyline", "total_rounds"],
    });
    assert_eq!(bout.to_string(), expected.to_string());
    let open = board.event_of("golf", "Harbour Open").await;
    assert_eq!(
        keys(&open),
        [
            "id",
            "sport_key",
            "title",
            "competition",
            "commence_time",
            "home_team",
            "away_team",
            "status",
            "markets",
        ]
    );
    assert_eq!((&open["home_team"], &open["away_team"]), (&Value::Null, &Value::Null));
    let id = bout["id"].as_str().unwrap();
    assert_eq!(board.get(&format!("/v1/sports/mma/events/{id}")).await, bout);
}

#[tokio::test]
async fn an_event_of_another_sport_is_not_found() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    let answer = board.app.get(&format!("/v1/sports/boxing/events/{id}"), &board.key).await;
    assert_eq!(answer.refusal(), (404, "event_not_found".to_owned()));
}

#[tokio::test]
async fn the_status_of_an_event_is_that_of_its_score() {
    let board = TestMarket::start().await;
    for (status, home) in [("scheduled", 0), ("live", 1), ("final", 2)] {
        if status != "scheduled" {
            board.push(&[line::score("bout-1", status, home, 0)]).await;
            board.app.publish().await;
        }
        for list in ["events", "scores"] {
            let path = format!("/v1/sports/mma/{list}?status={status}&limit=1");
            let records = board.list(&path).await;
            assert_eq!(records[0]["status"], status, "{list}");
        }
        assert_eq!(board.event_of("mma", ANN).await["status"], status);
    }
}

#[tokio::test]
async fn a_postponed_event_is_the_same_event_at_another_time() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    board.push(&[line::event_at("bout-1", "mma", ANN, BEA, "2027-01-10T03:00:00Z")]).await;
    board.app.publish().await;
    let event = board.get(&format!("/v1/sports/mma/events/{id}")).await;
    assert_eq!(event["commence_time"], "2027-01-10T03:00:00Z");
    assert_eq!(event["status"], "scheduled");
}

#[tokio::test]
async fn another_feeds_listing_of_the_same_bout_is_the_same_event_under_the_first_names() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    let other = board.app.any_feed().await;
    let swapped =
        line::event_at("x-9", "mma", "BÉATRIX BOWEN", "ANN ARCHER", "2026-11-22T04:00:00Z");
    let odds = line::moneyline("x-9", "caesars", ("BÉATRIX BOWEN", -150), ("ANN ARCHER", 130));
    board.app.push_all(&other, &[swapped, odds]).await;
    board.app.publish().await;
    assert_eq!(board.list("/v1/sports/mma/events").await.len(), 2);
    let records = board.list("/v1/sports/mma/odds?bookmaker=caesars").await;
    assert_eq!(records[0]["event_id"], id.as_str());
    let outcome = |at: usize| {
        let outcome = &records[0]["outcomes"][at];
        (outcome["name"].clone(), outcome["price"].clone())
    };
    assert_eq!(outcome(0), (json!(ANN), json!(130)));
    assert_eq!(outcome(1), (json!(BEA), json!(-150)));
}

#[tokio::test]
async fn a_removed_event_is_gone_when_the_last_feed_has_removed_it() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    let path = format!("/v1/sports/mma/events/{id}");
    let other = board.app.any_feed().await;
    board.app.push_all(&other, &[line::event("y-1", "mma", ANN, BEA)]).await;
    board.push(&[json!({ "type": "remove", "ref": "bout-1" })]).await;
    board.app.publish().await;
    assert_eq!(board.get(&path).await["id"], id.as_str(), "another feed still lists it");
    assert_eq!(odds_count(&board, &id).await, 0, "the feed's odds went with its offer");
    board.app.push_all(&other, &[json!({ "type": "remove", "ref": "y-1" })]).await;
    board.app.publish().await;
    let gone = board.app.get(&path, &board.key).await;
    assert_eq!(gone.refusal(), (404, "event_not_found".to_owned()));
    let scores = board.get(&format!("/v1/sports/mma/scores?event_ids={id}")).await;
    assert_eq!(scores, json!([]));
}

#[tokio::test]
async fn odds_leave_when_the_event_is_final_and_come_back_only_with_new_ones_after_a_correction() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    assert_eq!(odds_count(&board, &id).await, 6);
    board.push(&[line::score("bout-1", "final", 0, 1)]).await;
    board.app.publish().await;
    assert_eq!(odds_count(&board, &id).await, 0);
    assert_eq!(board.event_of("mma", ANN).await["markets"], json!([]));
    // No way back without a correction.
    let back = line::score("bout-1", "live", 0, 1);
    let receipt = board.app.push(&board.feed, back.to_string()).await;
    assert_eq!(receipt["rejected"][0]["code"], "illegal_transition");
    let mut correction = back;
    correction["correction"] = true.into();
    board.push(&[correction]).await;
    board.app.publish().await;
    assert_eq!(board.event_of("mma", ANN).await["status"], "live");
    assert_eq!(odds_count(&board, &id).await, 0);
    board.push(&[line::moneyline("bout-1", "fanduel", (ANN, 120), (BEA, -140))]).await;
    board.app.publish().await;
    assert_eq!(odds_count(&board, &id).await, 1);
}

#[tokio::test]
async fn a_suspended_or_withdrawn_market_has_no_record() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    let mut suspended = line::moneyline("bout-1", "fanduel", (ANN, 120), (BEA, -140));
    suspended["suspended"] = true.into();
    let withdrawn = line::odds("bout-1", "draftkings", "moneyline", "american", &json!([]));
    board.push(&[suspended, withdrawn]).await;
    board.app.publish().await;
    let left = board.list(&format!("/v1/sports/mma/odds?event_ids={id}")).await;
    let held: Vec<(&str, &str)> = left
        .iter()
        .map(|r| (r["bookmaker"].as_str().unwrap(), r["market"].as_str().unwrap()))
        .collect();
    assert_eq!(held, [("bet365", "moneyline"), ("fanduel", "total_rounds")]);
}

#[tokio::test]
async fn a_final_event_stays_seventy_two_hours_and_is_then_removed() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    let path = format!("/v1/sports/mma/events/{id}");
    board.push(&[line::score("bout-1", "final", 0, 1)]).await;
    board.app.publish_after(Duration::from_secs(72 * 3600 - 30)).await;
    assert_eq!(board.get(&path).await["status"], "final");
    board.app.publish().await;
    let gone = board.app.get(&path, &board.key).await;
    assert_eq!(gone.refusal(), (404, "event_not_found".to_owned()));
    let scores = board.get(&format!("/v1/sports/mma/scores?event_ids={id}")).await;
    assert_eq!(scores, json!([]));
}
