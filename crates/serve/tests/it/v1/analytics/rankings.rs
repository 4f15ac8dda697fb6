//! Arbitrage, expected value, middles: the results, their order and their numbers (N16 to N18).

use serde_json::{Value, json};

use super::{ANA, BEA, Board, aged, decimals, keys};
use crate::harness::line;

#[tokio::test]
async fn an_arbitrage_is_exact_to_the_cent() {
    let board = super::example().await;
    let found = board.get("/v1/sports/mma/arbitrage").await;
    assert_eq!(
        keys(&found),
        ["sport", "generated_at", "format", "max_age_s", "refused", "truncated", "arbitrages"]
    );
    let own = &found["arbitrages"][0];
    assert_eq!((&own["booksum"], &own["profit"]), (&json!(0.972222222), &json!(0.028571428)));
    assert_eq!((&own["push"], &own["suspect"]), (&json!(true), &json!(false)));
    assert_eq!((&own["oldest_age_s"], &own["skew_s"]), (&json!(12), &json!(8)));
    assert_eq!((&own["stake"], &own["returns_min"]), (&json!(100), &json!(102.85)));
    let leg = |at: usize| {
        let leg = &own["legs"][at];
        json!([leg["name"], leg["price"], leg["bookmaker"], leg["stake"], leg["returns"]])
    };
    assert_eq!(leg(0), json!([ANA, 140, "fanduel", 42.86, 102.86]));
    assert_eq!(leg(1), json!([BEA, -125, "bet365", 57.14, 102.85]));
    let shown = async |query: &str| {
        let found = board.get(&format!("/v1/sports/mma/arbitrage?{query}")).await;
        found["arbitrages"].as_array().unwrap().len()
    };
    assert_eq!(shown("min_profit=0.028571").await, 1);
    assert_eq!(shown("min_profit=0.028572").await, 0);
    assert_eq!(shown("stake=1").await, 1);
}

#[tokio::test]
async fn prices_that_add_up_to_exactly_one_are_no_arbitrage() {
    let board = Board::with_bout().await;
    // In floating point, +170 and -170 add up to 0.9999999999999999.
    board.moneyline("fanduel", 3, [170, -250]).await;
    board.moneyline("betmgm", 3, [120, -170]).await;
    board.publish().await;
    let found = board.get("/v1/sports/mma/arbitrage").await;
    assert_eq!(found["arbitrages"], json!([]));
    let best = board.get("/v1/sports/mma/best").await;
    assert_eq!((&best["lines"][0]["booksum"], &best["lines"][0]["hold"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn the_largest_profit_comes_first_and_what_is_left_out_is_counted() {
    let board = Board::open().await;
    let mut lines = Vec::new();
    for (at, price) in [(1, 2.05), (2, 2.4), (3, 2.1)] {
        let (home, away) = (format!("Home{at} Archer{at}"), format!("Away{at} Bowen{at}"));
        let reference = format!("match-{at}");
        lines.push(line::event(&reference, "tennis", &home, &away));
        for (bookmaker, prices) in [("fanduel", (price, 1.5)), ("betmgm", (1.5, price))] {
            let outcomes = decimals(&[(&home, prices.0), (&away, prices.1)]);
            lines.push(line::odds(&reference, bookmaker, "moneyline", "decimal", &outcomes));
        }
    }
    board.send(&lines).await;
    board.publish().await;
    let found = board.get("/v1/sports/tennis/arbitrage?limit=2").await;
    let profits: Vec<&Value> =
        found["arbitrages"].as_array().unwrap().iter().map(|own| &own["profit"]).collect();
    assert_eq!(profits, [&json!(0.2), &json!(0.05)]);
    assert_eq!(found["truncated"], 1);
    assert_eq!(found["arbitrages"][0]["suspect"], true);
    assert_eq!(found["arbitrages"][0]["push"], false, "tennis has no draws");
    let all = board.get("/v1/sports/tennis/arbitrage?stake=1").await;
    // In floating point: 0.024999999.
    assert_eq!(all["arbitrages"][2]["profit"], json!(0.025));
    assert_eq!(all["arbitrages"][2]["legs"][0]["stake"], json!(0.5));
    assert_eq!(all["arbitrages"][2]["returns_min"], json!(1.02));
}

#[tokio::test]
async fn rankings_are_of_scheduled_events_unless_asked_otherwise() {
    let board = super::example().await;
    board.send(&[line::score("bout", "live", 0, 0)]).await;
    board.publish().await;
    let count = async |path: &str, field: &str| {
        board.get(&format!("/v1/sports/mma/{path}")).await[field].as_array().unwrap().len()
    };
    assert_eq!(count("arbitrage", "arbitrages").await, 0);
    assert_eq!(count("arbitrage?status=live", "arbitrages").await, 1);
    assert_eq!(count("best", "lines").await, 1);
    assert_eq!(count("best?status=scheduled", "lines").await, 0);
}

#[tokio::test]
async fn an_expected_value_is_against_the_others_without_that_bookmaker() {
    let board = Board::with_bout().await;
    // Two imply 0.5 without a margin; the third pays 2.2 for it.
    board.moneyline("pinnacle", 8, [100, 100]).await;
    board.moneyline("betmgm", 3, [100, 100]).await;
    board.moneyline("fanduel", 4, [120, -140]).await;
    board.publish().await;
    let found = board.get("/v1/sports/mma/ev").await;
    assert_eq!(found["refused"]["thin"], 0);
    let values = found["values"].as_array().unwrap();
    let value = &values[0];
    assert_eq!(
        keys(value),
        [
            "event_id",
            "commence_time",
            "market",
            "ways",
            "name",
            "point",
            "price",
            "bookmaker",
            "record_id",
            "last_update",
            "age_s",
            "probability",
            "fair_price",
            "ev",
            "books",
            "oldest_age_s",
            "suspect"
        ]
    );
    assert_eq!((&value["bookmaker"], &value["name"]), (&json!("fanduel"), &json!(ANA)));
    assert_eq!((&value["probability"], &value["fair_price"]), (&json!(0.5), &json!(100)));
    assert_eq!((&value["ev"], &value["books"]), (&json!(0.1), &json!(2)));
    assert_eq!((&value["age_s"], &value["oldest_age_s"]), (&json!(4), &json!(8)));
    assert_eq!(value["suspect"], false);
    // The reference is not filtered, and may be in another region; its own prices are not compared with themselves.
    let named = board.get("/v1/sports/mma/ev?reference=pinnacle&regions=us,eu").await;
    let bookmakers: Vec<&Value> =
        named["values"].as_array().unwrap().iter().map(|own| &own["bookmaker"]).collect();
    assert_eq!(bookmakers, ["fanduel"]);
    let own = board.get("/v1/sports/mma/ev?reference=pinnacle&bookmakers=pinnacle").await;
    assert_eq!((&own["values"], &own["refused"]["thin"]), (&json!([]), &json!(1)));
    let above = board.get("/v1/sports/mma/ev?min_ev=0.1").await;
    assert_eq!(
        above["values"].as_array().unwrap().iter().filter(|own| own["ev"] == 0.1).count(),
        0
    );
}

/// A game with three spreads and a bout with two totals.
async fn points() -> Board {
    let board = Board::open().await;
    let (kites, larks) = ("Kingston Kites", "Lancaster Larks");
    let spread = |bookmaker, point: f64, home: i32, away: i32| {
        let outcomes = json!([
            { "name": kites, "price": home, "point": point },
            { "name": larks, "price": away, "point": -point },
        ]);
        line::odds("game", bookmaker, "spread", "american", &outcomes)
    };
    let total = |bookmaker, point: f64, over: i32, under: i32| {
        let outcomes = json!([
            { "name": "Over", "price": over, "point": point },
            { "name": "Under", "price": under, "point": point },
        ]);
        line::odds("bout", bookmaker, "total_rounds", "american", &outcomes)
    };
    board
        .send(&[
            line::event("game", "american_football", kites, larks),
            aged(spread("fanduel", -2.5, -105, -115), 4),
            aged(spread("betmgm", -3.5, -112, -108), 12),
            spread("caesars", -3.0, -110, -110),
            line::event("bout", "mma", ANA, BEA),
            total("fanduel", 2.5, 105, -130),
            total("betmgm", 3.5, -130, 105),
        ])
        .await;
    board.publish().await;
    board
}

#[tokio::test]
async fn a_middle_is_between_two_points_and_costs_what_it_says() {
    let board = points().await;
    let found = board.get("/v1/sports/american_football/middles").await;
    let middles = found["middles"].as_array().unwrap();
    let bounds: Vec<Value> = middles
        .iter()
        .map(|own| json!([own["from"], own["to"], own["landing"], own["pushes"]]))
        .collect();
    // The home side at -2.5 with the away side at +3.5: a margin of 3 wins both.
    assert_eq!(
        bounds,
        [json!([2.5, 3.5, [3], []]), json!([2.5, 3, [], [3]]), json!([3, 3.5, [], [3]])]
    );
    let own = &middles[0];
    assert_eq!(own["gap"], 1);
    // 105/205 + 108/208 - 1, rounded up.
    assert_eq!((&own["booksum"], &own["break_even"]), (&json!(1.031425891), &json!(0.031425892)));
    assert_eq!((&own["oldest_age_s"], &own["skew_s"]), (&json!(12), &json!(8)));
    assert_eq!(
        keys(&own["legs"][0]),
        ["name", "point", "price", "bookmaker", "record_id", "last_update", "age_s"]
    );
    assert_eq!((&own["legs"][0]["point"], &own["legs"][1]["point"]), (&json!(-2.5), &json!(3.5)));
    let cheap = board.get("/v1/sports/american_football/middles?max_cost=0.031425").await;
    assert_eq!(cheap["middles"], json!([]));
    let rounds = board.get("/v1/sports/mma/middles").await;
    let own = &rounds["middles"][0];
    assert_eq!((&own["landing"], &own["pushes"]), (&Value::Null, &Value::Null));
    assert_eq!((&own["from"], &own["to"]), (&json!(2.5), &json!(3.5)));
    assert_eq!(own["break_even"], json!(-0.024390243));
}
