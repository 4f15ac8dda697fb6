//! One event: its prices and its markets (V10, V12, V14).

use serde_json::{Value, json};

use super::{MMA, bout, keys, last, refusal};
use crate::harness::line;
use crate::test_market::TestMarket;

#[tokio::test]
async fn event_odds_are_one_object_whose_bookmakers_have_no_time() {
    let board = TestMarket::start().await;
    let id = bout(&board).await;
    let path = format!("{MMA}/events/{id}/odds?regions=us&markets=h2h,totals");
    let answer = board.app.get(&path, &board.key).await;
    assert_eq!(last(&answer), 2, "two markets are in it");
    let event = answer.json();
    assert_eq!(event["id"], id.as_str());
    assert_eq!(keys(&event["bookmakers"][0]), ["key", "title", "markets"]);
    assert_eq!(keys(&event["bookmakers"][0]["markets"][0]), ["key", "last_update", "outcomes"]);
    let both = format!("{MMA}/events/{id}/odds/?regions=us,uk&markets=h2h,player_points,btts");
    assert_eq!(last(&board.app.get(&both, &board.key).await), 2, "one market, two regions");
    let none = format!("{MMA}/events/{id}/odds?regions=us&markets=alternate_totals,h2h_q1,h2h_lay");
    let answer = board.app.get(&none, &board.key).await;
    assert_eq!((last(&answer), &answer.json()["bookmakers"]), (0, &json!([])));
}

#[tokio::test]
async fn event_markets_are_the_markets_without_outcomes() {
    let board = TestMarket::start().await;
    let id = bout(&board).await;
    let path = format!("{MMA}/events/{id}/markets?bookmakers=fanduel");
    let answer = board.app.get(&path, &board.key).await;
    assert_eq!(last(&answer), 1);
    let time = "2026-11-14T12:00:05Z";
    assert_eq!(
        answer.json()["bookmakers"],
        json!([{ "key": "fanduel", "title": "FanDuel", "markets": [
            { "key": "h2h", "last_update": time }, { "key": "totals", "last_update": time },
        ] }])
    );
    let none = board.app.get(&format!("{MMA}/events/{id}/markets?regions=fr"), &board.key).await;
    assert_eq!((last(&none), &none.json()["bookmakers"]), (0, &json!([])));
}

#[tokio::test]
async fn all_pairings_of_a_tournament_are_one_market_with_descriptions() {
    let board = TestMarket::start().await;
    let pairing = |group: &str, one: (&str, i32), two: (&str, i32)| {
        let outcomes =
            json!([{ "name": one.0, "price": one.1 }, { "name": two.0, "price": two.1 }]);
        let mut odds = line::odds("open-1", "fanduel", "matchup", "american", &outcomes);
        odds["group"] = group.into();
        odds
    };
    board
        .push(&[
            pairing("p1", ("Otis Orr", 110), ("Max Moor", -130)),
            pairing("p2", ("Percy Pike", 105), ("Ned Noble", -125)),
        ])
        .await;
    board.app.publish().await;
    let sport = "/v4/sports/golf_harbour_open_winner";
    let id = board.get(&format!("{sport}/events")).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("{sport}/events/{id}/odds?regions=us&markets=outrights,matchup,top5");
    let answer = board.app.get(&path, &board.key).await;
    assert_eq!(last(&answer), 2, "matchup and outrights");
    let markets = &answer.json()["bookmakers"][0]["markets"];
    assert_eq!((&markets[0]["key"], &markets[1]["key"]), (&json!("matchup"), &json!("outrights")));
    assert_eq!(
        markets[0]["outcomes"],
        json!([
            { "name": "Max Moor", "description": "Max Moor / Otis Orr", "price": 1.769 },
            { "name": "Ned Noble", "description": "Ned Noble / Percy Pike", "price": 1.8 },
            { "name": "Otis Orr", "description": "Max Moor / Otis Orr", "price": 2.1 },
            { "name": "Percy Pike", "description": "Ned Noble / Percy Pike", "price": 2.05 },
        ])
    );
    assert_eq!(keys(&markets[1]["outcomes"][0]), ["name", "price"]);
    let refused =
        board.app.get(&format!("{sport}/odds?regions=us&markets=matchup"), &board.key).await;
    assert_eq!(refusal(&refused), (422, "INVALID_MARKET".to_owned()));
    let of_mma = format!("{MMA}/events/{}/odds?regions=us&markets=top5", bout(&board).await);
    assert_eq!(refusal(&board.app.get(&of_mma, &board.key).await).1, "INVALID_MARKET");
}

#[tokio::test]
async fn only_an_open_event_of_the_sport_is_found() {
    let board = TestMarket::start().await;
    let (id, v1) = (bout(&board).await, board.bout_id().await);
    let code = async |path: &str| {
        let answer = board.app.get(path, &board.key).await;
        if answer.status == 200 { (200, String::new()) } else { refusal(&answer) }
    };
    for what in ["odds", "markets"] {
        let at =
            |sport: &str, id: &str| format!("/v4/sports/{sport}/events/{id}/{what}?regions=us");
        let not_found = (404, "EVENT_NOT_FOUND".to_owned());
        assert_eq!(code(&at("mma_mixed_martial_arts", &id)).await.0, 200);
        assert_eq!(code(&at("mma", &id)).await.0, 200, "our own key");
        assert_eq!(code(&at("mma", &v1)).await.0, 200, "our own id");
        assert_eq!(code(&at("boxing_boxing", &id)).await, not_found);
        assert_eq!(code(&at("mma", &"0".repeat(32))).await, not_found);
        for wrong in ["abc", &id.to_uppercase(), &id[..31], "evt_1"] {
            let refused = (422, "INVALID_EVENT_ID".to_owned());
            assert_eq!(code(&at("mma", wrong)).await, refused, "{wrong}");
        }
        assert_eq!(code(&at("upcoming", &id)).await.1, "UNKNOWN_SPORT");
    }
    board.push(&[line::score("bout-1", "live", 0, 0), line::score("bout-1", "final", 1, 0)]).await;
    board.app.publish().await;
    assert_eq!(code(&format!("{MMA}/events/{id}/odds?regions=us")).await.1, "EVENT_NOT_FOUND");
    let scores = board.get(&format!("{MMA}/scores?daysFrom=3&eventIds={id}")).await;
    assert_eq!(scores[0]["completed"], Value::Bool(true));
}
