//! Scores: shape, golf, times of change (D10, D12, D29, D31).

use serde_json::{Value, json};

use crate::harness::line;
use crate::test_market::{ANN, BEA, TestMarket};

async fn score_of(board: &TestMarket, sport: &str, name: &str) -> Value {
    let id = board.event_of(sport, name).await["id"].as_str().unwrap().to_owned();
    board.list(&format!("/v1/sports/{sport}/scores?event_ids={id}")).await.remove(0)
}

#[tokio::test]
async fn every_event_has_a_score_record_before_any_source_reports() {
    let board = TestMarket::start().await;
    let score = score_of(&board, "mma", ANN).await;
    let expected = json!({
        "event_id": score["event_id"], "sport_key": "mma", "status": "scheduled",
        "home_team": ANN, "away_team": BEA, "home_score": null, "away_score": null, "periods": [],
        "updated_at": "2026-11-14T12:00:05Z",
    });
    assert_eq!(score.to_string(), expected.to_string());
}

#[tokio::test]
async fn a_finished_fight_names_its_winner_and_nothing_else_does() {
    let board = TestMarket::start().await;
    board.push(&[line::score("bout-1", "live", 0, 0)]).await;
    board.app.publish().await;
    assert_eq!(score_of(&board, "mma", ANN).await.get("winner"), None);
    let mut result = line::score("bout-1", "final", 0, 1);
    result["winner"] = BEA.into();
    let mut sets = line::score("match-1", "final", 2, 0);
    sets["periods"] = json!([
        { "number": 1, "home_score": 6, "away_score": 3 },
        { "number": 2, "home_score": 7, "away_score": 5 },
    ]);
    board.push(&[result, sets.clone()]).await;
    board.app.publish().await;
    let fight = score_of(&board, "mma", ANN).await;
    assert_eq!(fight["winner"], BEA);
    assert_eq!(fight.as_object().unwrap().keys().next_back().unwrap(), "winner");
    let tennis = score_of(&board, "tennis", "Ingrid Ivanova").await;
    assert_eq!(tennis.get("winner"), None);
    assert_eq!((&tennis["home_score"], &tennis["away_score"]), (&json!(2), &json!(0)));
    assert_eq!(tennis["periods"].to_string(), sets["periods"].to_string());
}

#[tokio::test]
async fn updated_at_is_when_the_score_last_changed() {
    let board = TestMarket::start().await;
    board.push(&[line::score("bout-1", "live", 0, 0)]).await;
    board.app.publish().await;
    assert_eq!(score_of(&board, "mma", ANN).await["updated_at"], "2026-11-14T12:00:30Z");
    let again = line::score("bout-1", "live", 0, 0).to_string();
    assert_eq!(board.app.push(&board.feed, again).await["unchanged"], 1);
    board.app.publish().await;
    assert_eq!(score_of(&board, "mma", ANN).await["updated_at"], "2026-11-14T12:00:30Z");
    board.push(&[line::score("bout-1", "live", 1, 0)]).await;
    board.app.publish().await;
    assert_eq!(score_of(&board, "mma", ANN).await["updated_at"], "2026-11-14T12:01:30Z");
}

#[tokio::test]
async fn a_golf_score_shows_the_leader_and_the_runner_up_round_by_round() {
    let board = TestMarket::start().await;
    let score = score_of(&board, "golf", "Harbour Open").await;
    assert_eq!((&score["home_team"], &score["away_team"]), (&json!("TBD"), &json!("TBD")));
    assert_eq!(score["periods"], json!([]));
    let leaders = json!([
        { "name": "Ned Noble", "rounds": [66, 70] },
        { "name": "Max Moor", "rounds": [68, 69] },
        { "name": "Otis Orr", "rounds": [71, 70] },
    ]);
    let report = json!({ "type": "score", "ref": "open-1", "status": "live", "leaders": leaders });
    board.push(&[report]).await;
    board.app.publish().await;
    let score = score_of(&board, "golf", "Harbour Open").await;
    let expected = json!({
        "event_id": score["event_id"], "sport_key": "golf", "status": "live",
        "home_team": "Ned Noble", "away_team": "Max Moor", "home_score": null, "away_score": null,
        "periods": [
            { "number": 1, "home_score": 66, "away_score": 68 },
            { "number": 2, "home_score": 70, "away_score": 69 },
        ],
        "updated_at": "2026-11-14T12:00:30Z",
    });
    assert_eq!(score.to_string(), expected.to_string());
}
