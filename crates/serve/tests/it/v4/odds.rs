//! Odds: shape, order, prices, times, filters (V9, V12, V13).

use serde_json::{Value, json};

use super::{MMA, bout, keys};
use crate::harness::line;
use crate::test_market::{ANN, BEA, TestMarket};

fn bookmakers(event: &Value) -> Vec<&str> {
    let list = event["bookmakers"].as_array().unwrap();
    list.iter().map(|bookmaker| bookmaker["key"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_event_has_exactly_these_fields_in_order() {
    let board = TestMarket::start().await;
    let path = format!("{MMA}/odds?regions=us&markets=h2h,totals");
    let answer = board.app.get(&path, &board.key).await;
    let id = bout(&board).await;
    let first = format!(
        r#"[{{"id":"{id}","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"2026-11-22T03:00:00Z","home_team":"{ANN}","away_team":"{BEA}","bookmakers":[{{"key":"bet365","title":"bet365","last_update":"2026-11-14T12:00:05Z","markets":[{{"key":"h2h","last_update":"2026-11-14T12:00:05Z","outcomes":[{{"name":"{ANN}","price":2.25}},{{"name":"{BEA}","price":1.667}}]}}]}},{{"key":"draftkings","#
    );
    assert!(answer.text().starts_with(&first), "{}", answer.text());
    let totals = r#"{"key":"totals","last_update":"2026-11-14T12:00:05Z","outcomes":[{"name":"Over","price":1.87,"point":2.5},{"name":"Under","price":1.952,"point":2.5}]}]}]},"#;
    assert!(answer.text().contains(totals), "{}", answer.text());
    let events = answer.json();
    assert_eq!(bookmakers(&events[0]), ["bet365", "draftkings", "fanduel"]);
    assert_eq!(bookmakers(&events[1]), ["fanduel"]);
}

#[tokio::test]
async fn prices_are_decimal_unless_american_is_asked_for() {
    let board = TestMarket::start().await;
    let price = async |query: &str| {
        let odds = board.get(&format!("{MMA}/odds?bookmakers=fanduel{query}")).await;
        odds[0]["bookmakers"][0]["markets"][0]["outcomes"][0]["price"].clone()
    };
    assert_eq!(price("").await, json!(2.2));
    assert_eq!(price("&oddsFormat=decimal").await, json!(2.2));
    assert_eq!(price("&oddsFormat=american").await, json!(120));
}

#[tokio::test]
async fn times_are_text_or_whole_seconds() {
    let board = TestMarket::start().await;
    let odds = board.get(&format!("{MMA}/odds?regions=us&dateFormat=unix")).await;
    assert_eq!(odds[0]["commence_time"], 1_795_316_400);
    let bookmaker = &odds[0]["bookmakers"][0];
    assert_eq!(bookmaker["last_update"], 1_794_657_605);
    assert_eq!(bookmaker["markets"][0]["last_update"], 1_794_657_605);
}

#[tokio::test]
async fn what_is_not_offered_is_null_where_it_is_asked_for() {
    let board = TestMarket::start().await;
    let include =
        "includeLinks=true&includeSids=true&includeBetLimits=true&includeRotationNumbers=true";
    let odds = board.get(&format!("{MMA}/odds?regions=us&{include}")).await;
    let event = &odds[0];
    let fields = [
        "id",
        "sport_key",
        "sport_title",
        "commence_time",
        "home_team",
        "away_team",
        "home_rotation",
        "away_rotation",
        "bookmakers",
    ];
    assert_eq!(keys(event), fields);
    let bookmaker = &event["bookmakers"][0];
    assert_eq!(keys(bookmaker), ["key", "title", "last_update", "markets", "link", "sid"]);
    let market = &bookmaker["markets"][0];
    assert_eq!(keys(market), ["key", "last_update", "outcomes", "link", "sid"]);
    let outcome = &market["outcomes"][0];
    assert_eq!(keys(outcome), ["name", "price", "link", "sid", "bet_limit"]);
    assert_eq!(outcome["bet_limit"], Value::Null);
    let plain = board.get(&format!("{MMA}/odds?regions=us&includeLinks=false")).await;
    assert_eq!(keys(&plain[0]["bookmakers"][0]), ["key", "title", "last_update", "markets"]);
}

#[tokio::test]
async fn outcomes_are_ordered_by_name_with_the_draw_last() {
    let board = TestMarket::start().await;
    let outcomes = json!([
        { "name": ANN, "price": 120 }, { "name": BEA, "price": -140 }, { "name": "Draw", "price": 5000 },
    ]);
    let zoe = line::event("bout-9", "mma", "Zoe Zimmer", "Eve Early");
    let reversed = line::moneyline("bout-9", "fanduel", ("Zoe Zimmer", 150), ("Eve Early", -170));
    let draw = line::odds("bout-1", "fanduel", "moneyline", "american", &outcomes);
    board.push(&[draw, zoe, reversed]).await;
    board.app.publish().await;
    let odds = board.get(&format!("{MMA}/odds?bookmakers=fanduel")).await;
    let names = |home: &str| -> Vec<String> {
        let mut events = odds.as_array().unwrap().iter();
        let event = events.find(|event| event["home_team"] == home).unwrap();
        let outcomes = event["bookmakers"][0]["markets"][0]["outcomes"].as_array().unwrap();
        outcomes.iter().map(|outcome| outcome["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(ANN), [ANN, BEA, "Draw"]);
    assert_eq!(names("Zoe Zimmer"), ["Eve Early", "Zoe Zimmer"]);
}

#[tokio::test]
async fn events_without_a_price_stay_and_final_ones_go() {
    let board = TestMarket::start().await;
    let odds = board.get(&format!("{MMA}/odds?bookmakers=pinnacle")).await;
    assert_eq!(odds.as_array().unwrap().len(), 2);
    assert!(odds.as_array().unwrap().iter().all(|event| event["bookmakers"] == json!([])));
    board.push(&[line::score("bout-1", "live", 0, 0), line::score("bout-1", "final", 1, 0)]).await;
    board.app.publish().await;
    let odds = board.get(&format!("{MMA}/odds?regions=us")).await;
    assert_eq!(odds.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_golf_tournament_has_no_sides_and_its_market_is_outrights() {
    let board = TestMarket::start().await;
    let odds = board.get("/v4/sports/golf_harbour_open_winner/odds?regions=us").await;
    let event = &odds[0];
    assert_eq!((&event["home_team"], &event["away_team"]), (&Value::Null, &Value::Null));
    assert_eq!(event["sport_title"], "Harbour Open Winner");
    let market = &event["bookmakers"][0]["markets"][0];
    assert_eq!(market["key"], "outrights");
    assert_eq!(market["outcomes"][0], json!({ "name": "Max Moor", "price": 10 }));
}

#[tokio::test]
async fn events_are_chosen_by_id_and_start_both_ends_included() {
    let board = TestMarket::start().await;
    let count = async |query: &str| {
        let events = board.get(&format!("{MMA}/events?{query}")).await;
        events.as_array().unwrap().len()
    };
    let (id, v1) = (bout(&board).await, board.bout_id().await);
    assert_eq!(id.len(), 32);
    for (query, expected) in [
        (format!("eventIds={id}"), 1),
        (format!("eventIds={v1}"), 1),
        (format!("eventIds={v1},{id}"), 1),
        (format!("eventIds={}", "0".repeat(32)), 0),
        ("commenceTimeFrom=2026-11-22T03:00:00Z".to_owned(), 2),
        ("commenceTimeFrom=2026-11-22T03:00:01Z".to_owned(), 1),
        ("commenceTimeTo=2026-11-22T03:00:00Z".to_owned(), 1),
        ("commenceTimeTo=2026-11-22T02:59:59Z".to_owned(), 0),
    ] {
        assert_eq!(count(&query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn a_bookmaker_of_ours_may_be_several_with_the_same_prices() {
    let board = TestMarket::start().await;
    board
        .push(&[line::moneyline("bout-2", "betfair", ("Carla Cruz", -310), ("Dorothea Dunn", 250))])
        .await;
    board.app.publish().await;
    let of = async |query: &str| {
        let odds = board.get(&format!("{MMA}/odds?{query}")).await;
        let events = odds.as_array().unwrap().clone();
        let all: Vec<String> = events.iter().flat_map(bookmakers).map(str::to_owned).collect();
        all
    };
    assert_eq!(of("bookmakers=betfair").await, ["betfair_ex_au", "betfair_ex_eu", "betfair_ex_uk"]);
    assert_eq!(of("bookmakers=betfair_ex_eu").await, ["betfair_ex_eu"]);
    assert_eq!(of("bookmakers=888sport,kalshi").await, ["sport888"]);
    // No bookmaker is in both; each region has its own entry, ordered by the keys of `/v4`.
    assert_eq!(of("regions=uk").await, ["bet365", "sport888", "betfair_ex_uk"]);
    assert_eq!(of("regions=au").await, ["bet365_au", "sportsbet", "betfair_ex_au"]);
    assert_eq!(of("regions=us_ex").await, [""; 0]);
    assert_eq!(of("regions=us2&bookmakers=sport888").await, ["sport888"], "bookmakers win");
}
