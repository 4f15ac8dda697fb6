//! Odds: shapes, prices, filters (D5 to D7, D11, D12, D16, D28, D30).

use serde_json::{Value, json};

use crate::harness::line;
use crate::test_market::{ANN, BEA, TestMarket};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The prices of one bookmaker's moneyline of the first bout.
async fn prices(board: &TestMarket, bookmaker: &str, format: &str) -> (Value, Value) {
    let id = board.bout_id().await;
    let path = format!(
        "/v1/sports/mma/odds?bookmaker={bookmaker}&odds_format={format}&event_ids={id}&market=moneyline"
    );
    let record = board.list(&path).await.remove(0);
    assert_eq!(record["format"], format);
    let price = |at: usize| record["outcomes"][at]["price"].clone();
    (price(0), price(1))
}

#[tokio::test]
async fn an_odds_record_has_exactly_the_fields_of_the_interface_in_order() {
    let board = TestMarket::start().await;
    let record = board.list("/v1/sports/mma/odds?bookmaker=fanduel").await.remove(0);
    let fields =
        ["id", "sport_key", "event_id", "bookmaker", "market", "format", "last_update", "outcomes"];
    assert_eq!(keys(&record), fields);
    assert_eq!(keys(&record["outcomes"][0]), ["name", "price", "point"]);
    assert_eq!(record["market"], "moneyline");
    assert_eq!(record["last_update"], "2026-11-14T12:00:05Z");
    assert_eq!(record["outcomes"][0]["point"], Value::Null);
    assert_eq!(record["format"], "american");
    for id in [&record["id"], &record["event_id"]] {
        let id = id.as_str().unwrap();
        assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{id}");
    }
    let spread = board.list("/v1/sports/tennis/odds?market=spread").await.remove(0);
    assert_eq!(spread["outcomes"][0]["point"], json!(-3.5));
    assert_eq!(spread["outcomes"][1]["point"], json!(3.5));
}

#[tokio::test]
async fn a_fractional_price_is_text_in_lowest_terms() {
    let board = TestMarket::start().await;
    assert_eq!(prices(&board, "bet365", "fractional").await, (json!("5/4"), json!("2/3")));
    assert_eq!(prices(&board, "fanduel", "fractional").await, (json!("6/5"), json!("5/7")));
    assert_eq!(prices(&board, "draftkings", "fractional").await, (json!("5/4"), json!("7/10")));
}

#[tokio::test]
async fn prices_are_exact_in_every_format() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    let path = |format: &str| {
        format!(
            "/v1/sports/mma/odds?event_ids={id}&bookmaker=fanduel&market=moneyline&odds_format={format}"
        )
    };
    for (format, quoted, american, decimal, fractional) in [
        ("american", json!(-110), "-110", "1.909", "\"10/11\""),
        ("american", json!(150), "150", "2.5", "\"3/2\""),
        ("american", json!(-100), "100", "2", "\"1/1\""),
        ("american", json!(100), "100", "2", "\"1/1\""),
        ("american", json!(-200_000), "-200000", "1.0005", "\"1/2000\""),
        ("decimal", json!(2.0), "100", "2", "\"1/1\""),
        ("decimal", json!(1.91), "-110", "1.91", "\"91/100\""),
        ("fractional", json!("2/4"), "-200", "1.5", "\"1/2\""),
        ("fractional", json!("1/3"), "-300", "1.333", "\"1/3\""),
    ] {
        let outcomes = json!([{ "name": ANN, "price": quoted }, { "name": BEA, "price": quoted }]);
        let odds = line::odds("bout-1", "fanduel", "moneyline", format, &outcomes);
        board.app.push(&board.feed, odds.to_string()).await;
        board.app.publish().await;
        for (asked, expected) in
            [("american", american), ("decimal", decimal), ("fractional", fractional)]
        {
            let answer = board.app.get(&path(asked), &board.key).await;
            let price = format!("\"name\":\"{ANN}\",\"price\":{expected},");
            assert!(answer.text().contains(&price), "{quoted} as {asked}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn decimal_differs_from_american_in_format_and_price_alone() {
    let board = TestMarket::start().await;
    let american = board.list("/v1/sports/mma/odds").await;
    let mut decimal = board.list("/v1/sports/mma/odds?odds_format=decimal").await;
    assert_eq!(american.len(), decimal.len());
    for (american, decimal) in american.iter().zip(&mut decimal) {
        assert_eq!(decimal["format"], "decimal");
        decimal["format"] = american["format"].clone();
        for at in 0..american["outcomes"].as_array().unwrap().len() {
            assert!(decimal["outcomes"][at]["price"].as_f64().unwrap() > 1.0);
            decimal["outcomes"][at]["price"] = american["outcomes"][at]["price"].clone();
        }
        assert_eq!(american, decimal);
    }
}

#[tokio::test]
async fn grouped_by_bout_the_moneyline_comes_bout_by_bout() {
    let board = TestMarket::start().await;
    let grouped = board.get("/v1/sports/mma/odds?group_by=bout").await;
    assert_eq!(keys(&grouped), ["sport", "generated_at", "sources", "bouts"]);
    assert_eq!(grouped["sport"], "mma");
    let books: Vec<&str> = grouped["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["book"].as_str().unwrap())
        .collect();
    assert_eq!(books, ["bet365", "draftkings", "fanduel"], "the region's sources");
    assert_eq!(keys(&grouped["sources"][0]), ["book", "last_update", "stale", "latency_ms"]);
    let bouts = grouped["bouts"].as_array().unwrap();
    assert_eq!(bouts.len(), 2);
    assert_eq!(keys(&bouts[0]), ["home", "away", "commence_time", "books"]);
    assert_eq!((&bouts[0]["home"], &bouts[0]["away"]), (&json!(ANN), &json!(BEA)));
    assert_eq!(keys(&bouts[0]["books"][0]), ["book", "last_update", "outcomes"]);
    assert_eq!(keys(&bouts[0]["books"][0]["outcomes"][0]), ["name", "price"]);
    let uk = board.get("/v1/sports/mma/odds?group_by=bout&bookmaker=888sport&market=h2h").await;
    assert_eq!(uk["sources"].as_array().unwrap().len(), 1);
    assert_eq!(uk["bouts"].as_array().unwrap().len(), 1, "bouts without a price are left out");
    let flat = board.list("/v1/sports/mma/odds").await;
    assert!(flat.len() > 2, "without group_by a fight sport has the flat list");
    let one = board.app.get("/v1/sports/mma/odds?group_by=bout&limit=1", &board.key).await;
    assert_eq!(one.json()["bouts"].as_array().unwrap().len(), 1);
    assert!(one.next_page().is_some(), "`limit` counts bouts");
    assert_eq!(
        board.get("/v1/sports/boxing/odds?group_by=bout").await["bouts"][0]["home"],
        "Edith Evans"
    );
}

#[tokio::test]
async fn latency_is_how_late_a_pushed_read_arrived() {
    let board = TestMarket::start().await;
    let late = line::stamped(line::heartbeat("fanduel", "mma"), "2026-11-14T12:00:28.500Z");
    board.push(&[late]).await;
    board.app.publish().await;
    let grouped = board.get("/v1/sports/mma/odds?group_by=bout&bookmaker=fanduel").await;
    assert_eq!(grouped["sources"][0]["latency_ms"], 1500);
}

async fn bookmakers(board: &TestMarket, query: &str) -> Vec<String> {
    let records = board.get(&format!("/v1/sports/mma/odds?market=moneyline&{query}")).await;
    let mut keys: Vec<String> = records
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["bookmaker"].as_str().unwrap().to_owned())
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

#[tokio::test]
async fn regions_default_to_us_and_win_over_their_alias() {
    let board = TestMarket::start().await;
    let us = ["bet365", "draftkings", "fanduel"];
    assert_eq!(bookmakers(&board, "").await, us);
    assert_eq!(bookmakers(&board, "regions=us").await, us);
    assert_eq!(bookmakers(&board, "region=uk").await, ["888sport", "bet365"]);
    assert_eq!(bookmakers(&board, "regions=au&region=uk").await, ["bet365", "sportsbet"]);
    assert_eq!(bookmakers(&board, "regions=uk,au").await, ["888sport", "bet365", "sportsbet"]);
    assert_eq!(bookmakers(&board, "regions=us,us").await, us, "twice counts once");
    assert_eq!(bookmakers(&board, "bookmaker=888sport").await, ["888sport"], "no region filter");
    assert_eq!(bookmakers(&board, "bookmaker=888sport&regions=us").await, [""; 0]);
}

#[tokio::test]
async fn prior_market_names_are_accepted_and_never_given() {
    let board = TestMarket::start().await;
    for (sport, alias, own) in [
        ("mma", "h2h", "moneyline"),
        ("mma", "totals", "total_rounds"),
        ("boxing", "h2h", "moneyline"),
        ("tennis", "totals", "total_points"),
        ("tennis", "spreads", "spread"),
        ("american_football", "totals", "total_points"),
        ("american_football", "spreads", "spread"),
        ("golf", "outrights", "outright"),
    ] {
        let by_alias = board.list(&format!("/v1/sports/{sport}/odds?market={alias}")).await;
        let by_own = board.list(&format!("/v1/sports/{sport}/odds?market={own}")).await;
        assert_eq!(by_alias, by_own, "{sport} {alias}");
        assert!(by_alias.iter().all(|record| record["market"] == own));
    }
}

async fn last_update(board: &TestMarket, query: &str) -> String {
    let records = board.list(&format!("/v1/sports/mma/odds?{query}")).await;
    records[0]["last_update"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn last_update_is_when_the_price_was_last_confirmed() {
    let board = TestMarket::start().await;
    let (fanduel, draftkings) = ("bookmaker=fanduel", "bookmaker=draftkings");
    assert_eq!(last_update(&board, fanduel).await, "2026-11-14T12:00:05Z");
    // The same prices again: unchanged, and fresher.
    let again = line::moneyline("bout-1", "fanduel", (ANN, 120), (BEA, -140));
    let receipt = board.app.push(&board.feed, again.to_string()).await;
    assert_eq!(receipt["unchanged"], 1);
    board.app.publish().await;
    assert_eq!(last_update(&board, fanduel).await, "2026-11-14T12:00:30Z");
    assert_eq!(last_update(&board, draftkings).await, "2026-11-14T12:00:05Z");
    let rounds = "bookmaker=fanduel&market=total_rounds";
    assert_eq!(last_update(&board, rounds).await, "2026-11-14T12:00:05Z");
    // A heartbeat confirms every open market of the bookmaker in the sport, and none of other sports.
    board.push(&[line::heartbeat("fanduel", "mma")]).await;
    board.app.publish().await;
    for query in [fanduel, rounds] {
        assert_eq!(last_update(&board, query).await, "2026-11-14T12:01:00Z");
    }
    assert_eq!(last_update(&board, draftkings).await, "2026-11-14T12:00:05Z");
    let tennis = board.list("/v1/sports/tennis/odds").await;
    assert_eq!(tennis[0]["last_update"], "2026-11-14T12:00:05Z");
}

#[tokio::test]
async fn every_pairing_of_a_tournament_has_a_record_of_its_own() {
    let board = TestMarket::start().await;
    let pairing = |group: &str, one: &str, two: &str, price: i32| {
        let outcomes = json!([{ "name": one, "price": price }, { "name": two, "price": -130 }]);
        let mut odds = line::odds("open-1", "fanduel", "matchup", "american", &outcomes);
        odds["group"] = group.into();
        odds
    };
    let (first, second) = (("Max Moor", "Ned Noble"), ("Otis Orr", "Percy Pike"));
    let both = [pairing("p1", first.0, first.1, 110), pairing("p2", second.0, second.1, 105)];
    board.push(&both).await;
    board.app.publish().await;
    let before = board.list("/v1/sports/golf/odds?market=matchup").await;
    assert_eq!(before.len(), 2);
    assert_ne!(before[0]["id"], before[1]["id"]);
    board.push(&[pairing("p1", first.0, first.1, 125)]).await;
    board.app.publish().await;
    let after = board.list("/v1/sports/golf/odds?market=matchup").await;
    let ids = |list: &[Value]| -> Vec<Value> { list.iter().map(|r| r["id"].clone()).collect() };
    assert_eq!(ids(&after), ids(&before), "an id stays while its price moves");
    assert!(after.iter().any(|record| record["outcomes"][0]["price"] == 125));
}

#[tokio::test]
async fn a_record_keeps_its_id_while_price_and_line_move() {
    let board = TestMarket::start().await;
    let path = "/v1/sports/american_football/odds?market=total_points";
    let before = board.list(path).await.remove(0);
    let moved = json!([
        { "name": "Over", "price": -120, "point": 47.5 },
        { "name": "Under", "price": 100, "point": 47.5 },
    ]);
    board.push(&[line::odds("game-1", "fanduel", "total_points", "american", &moved)]).await;
    board.app.publish().await;
    let after = board.list(path).await.remove(0);
    assert_eq!(after["id"], before["id"]);
    assert_eq!(after["outcomes"][0]["point"], json!(47.5));
}
