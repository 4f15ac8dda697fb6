//! Fair probabilities: methods, consensus, fields (N9 to N13, N15, N22).

use serde_json::{Value, json};

use super::{ANA, BEA, Board, aged, decimals, keys};
use crate::harness::line;

async fn three_way(prices: [f64; 3]) -> Board {
    let board = Board::with_bout().await;
    let [home, away, draw] = prices;
    let outcomes = decimals(&[(ANA, home), (BEA, away), ("Draw", draw)]);
    board.send(&[aged(line::odds("bout", "fanduel", "moneyline", "decimal", &outcomes), 7)]).await;
    board.publish().await;
    board
}

fn probabilities(fair: &Value) -> Vec<f64> {
    let outcomes = fair["lines"][0]["outcomes"].as_array().unwrap();
    outcomes.iter().map(|outcome| outcome["probability"].as_f64().unwrap()).collect()
}

#[tokio::test]
async fn each_method_gives_the_published_probabilities() {
    let board = three_way([2.6, 2.4, 4.3]).await;
    for (method, published, parameter) in [
        ("power", [0.372984404, 0.405107167, 0.221908428], None),
        ("shin", [0.372994060, 0.404779411, 0.222226529], Some(0.016942513)),
        ("odds_ratio", [0.372428651, 0.404131304, 0.223440045], None),
    ] {
        let path = format!("/v1/sports/mma/fair?reference=fanduel&method={method}");
        let fair = board.get(&path).await;
        let ours = probabilities(&fair);
        assert!(
            ours.iter().zip(published).all(|(p, q)| (p - q).abs() < 1.5e-9),
            "{method}: {ours:?}"
        );
        if let Some(z) = parameter {
            assert_eq!(fair["lines"][0]["sources"][0]["parameter"], json!(z));
        }
    }
    let power = board.get("/v1/sports/mma/fair?reference=fanduel&odds_format=decimal").await;
    assert_eq!(
        keys(&power),
        ["sport", "generated_at", "format", "method", "reference", "max_age_s", "refused", "lines"]
    );
    assert_eq!((&power["method"], &power["reference"]), (&json!("power"), &json!("fanduel")));
    let line = &power["lines"][0];
    assert_eq!(
        (&line["ways"], &line["winners"], &line["field"]),
        (&json!(3), &json!(1), &json!(3))
    );
    assert_eq!(keys(&line["outcomes"][0]), ["name", "point", "probability", "price", "books"]);
    // 1 / 0.372984404 is 2.68107...
    assert_eq!(line["outcomes"][0]["price"], json!(2.681));
    let source = &line["sources"][0];
    assert_eq!(
        keys(source),
        [
            "bookmaker",
            "record_id",
            "booksum",
            "hold",
            "parameter",
            "priced",
            "last_update",
            "age_s"
        ]
    );
    assert_eq!((&source["priced"], &source["age_s"]), (&json!(3), &json!(7)));
    assert_eq!(source["booksum"], json!(1.033840191));
    assert_eq!(source["hold"], json!(0.032732516));
}

#[tokio::test]
async fn the_consensus_is_the_median_of_the_sources_and_needs_two() {
    let board = Board::with_bout().await;
    board.moneyline("fanduel", 3, [100, 100]).await;
    board.publish().await;
    let fair = board.get("/v1/sports/mma/fair").await;
    assert_eq!((&fair["reference"], &fair["refused"]["thin"]), (&json!("consensus"), &json!(1)));
    assert_eq!(fair["lines"], json!([]));
    // Fair prices, so that every method returns their probabilities: 0.5, 0.6 and 0.8.
    board.moneyline("pinnacle", 3, [-150, 150]).await;
    board.moneyline("betmgm", 3, [-400, 400]).await;
    board.moneyline("caesars", 3, [110, 110]).await;
    board.publish().await;
    let fair = board.get("/v1/sports/mma/fair").await;
    assert_eq!(fair["refused"]["underround"], 1);
    assert_eq!(probabilities(&fair), [0.6, 0.4]);
    assert_eq!(fair["lines"][0]["outcomes"][0]["books"], 3);
    // For an even number, the mean of the two in the middle.
    let two = board.get("/v1/sports/mma/fair?reference=betmgm,pinnacle").await;
    assert_eq!(two["reference"], "betmgm,pinnacle");
    assert_eq!(probabilities(&two), [0.7, 0.3]);
    let four = board.get("/v1/sports/mma/fair?min_books=4").await;
    assert_eq!(four["refused"]["thin"], 1);
}

#[tokio::test]
async fn a_method_without_a_result_leaves_a_line_undefined() {
    let board = three_way([1.02, 6.0, 50.0]).await;
    let additive = board.get("/v1/sports/mma/fair?reference=fanduel&method=additive").await;
    assert_eq!((&additive["lines"], &additive["refused"]["undefined"]), (&json!([]), &json!(1)));
    assert_eq!(additive["refused"]["thin"], 0);
    let power = board.get("/v1/sports/mma/fair?reference=fanduel").await;
    assert_eq!(power["lines"].as_array().unwrap().len(), 1);
}

/// Twenty players, with prices of several bookmakers.
async fn tournament() -> Board {
    let board = Board::open().await;
    let players: Vec<String> = (10..30).map(|at| format!("Player{at} Oakes{at}")).collect();
    let field = |count: usize, price: f64| -> Value {
        players.iter().take(count).map(|name| json!({ "name": name, "price": price })).collect()
    };
    let odds = |bookmaker, market, outcomes: &Value| {
        line::odds("open", bookmaker, market, "decimal", outcomes)
    };
    board
        .send(&[
            line::tournament("open", "Harbour Open"),
            odds("fanduel", "outright", &field(20, 15.0)),
            odds("betmgm", "outright", &field(19, 15.0)),
            odds("caesars", "outright", &field(18, 14.0)),
            // Less than nine tenths of a field of 19.
            odds("draftkings", "outright", &field(17, 14.0)),
            odds("fanduel", "top5", &field(20, 3.0)),
            odds("betmgm", "top5", &field(20, 3.2)),
        ])
        .await;
    board.publish().await;
    board
}

#[tokio::test]
async fn a_field_is_what_half_of_the_offers_price_and_a_source_prices_nine_tenths_of_it() {
    let board = tournament().await;
    let fair = board.get("/v1/sports/golf/fair?market=outright").await;
    let line = &fair["lines"][0];
    assert_eq!(line["field"], 19, "the twentieth is priced by one of four");
    assert_eq!(line["outcomes"].as_array().unwrap().len(), 19);
    assert_eq!(line["ways"], 20);
    assert_eq!(fair["refused"]["incomplete"], 1);
    let priced: Vec<(&str, u64)> = line["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| (own["bookmaker"].as_str().unwrap(), own["priced"].as_u64().unwrap()))
        .collect();
    assert_eq!(priced, [("betmgm", 19), ("caesars", 18), ("fanduel", 19)]);
    let sum: f64 = probabilities(&fair).iter().sum();
    assert!((sum - 1.0).abs() < 1e-7, "{sum}");
    let top = board.get("/v1/sports/golf/fair?market=top5").await;
    assert_eq!(top["lines"][0]["winners"], 5);
    assert_eq!(probabilities(&top), vec![0.25; 20]);
    let shin = board.get("/v1/sports/golf/fair?method=shin").await;
    assert_eq!(shin["refused"]["undefined"], 1, "top5 has five winners");
    assert_eq!(shin["lines"].as_array().unwrap().len(), 1);
    let best = board.get("/v1/sports/golf/best?market=outright").await;
    assert_eq!(best["lines"][0]["outcomes"].as_array().unwrap().len(), 20);
    let values = board.get("/v1/sports/golf/ev?market=outright").await;
    let twentieth = |value: &&Value| value["name"] == "Player29 Oakes29";
    assert_eq!(values["values"].as_array().unwrap().iter().find(twentieth), None);
}
