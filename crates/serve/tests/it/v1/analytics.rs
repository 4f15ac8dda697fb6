//! Best and fair prices, arbitrage, expected value and middles, rule by rule (N1 to N18, N22).

mod fair;
mod params;
mod rankings;

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{TestApp, line};

pub(crate) const ANA: &str = "Ana Testa";
pub(crate) const BEA: &str = "Bea Probe";

/// A service whose publication is at 12:00:30, and the lines of its feed.
pub(crate) struct Board {
    pub(crate) app: TestApp,
    pub(crate) key: String,
    feed: String,
}

impl Board {
    /// At 12:00:28, before anything is pushed.
    pub(crate) async fn open() -> Self {
        let app = TestApp::start().await;
        app.advance(Duration::from_millis(22_750));
        let (key, feed) = (app.live_key().await, app.any_feed().await);
        Self { app, key, feed }
    }

    /// With one bout.
    pub(crate) async fn with_bout() -> Self {
        let board = Self::open().await;
        board.send(&[line::event("bout", "mma", ANA, BEA)]).await;
        board
    }

    pub(crate) async fn send(&self, lines: &[Value]) {
        self.app.push_all(&self.feed, lines).await;
    }

    /// A bookmaker's moneyline of the bout, some seconds before the publication.
    pub(crate) async fn moneyline(&self, bookmaker: &str, age_s: i64, prices: [i32; 2]) {
        let odds = line::moneyline("bout", bookmaker, (ANA, prices[0]), (BEA, prices[1]));
        self.send(&[aged(odds, age_s)]).await;
    }

    pub(crate) async fn publish(&self) {
        self.app.publish().await;
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.app.get(path, &self.key).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }
}

/// A line with a time some seconds before 12:00:30.
pub(crate) fn aged(line: Value, age_s: i64) -> Value {
    let second = 12 * 3600 + 30 - age_s;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    line::stamped(line, &format!("2026-11-14T{hour:02}:{minute:02}:{second:02}Z"))
}

pub(crate) fn decimals(prices: &[(&str, f64)]) -> Value {
    prices.iter().map(|(name, price)| json!({ "name": name, "price": price })).collect()
}

pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The example of N14.
async fn example() -> Board {
    let board = Board::with_bout().await;
    board.moneyline("fanduel", 4, [140, -165]).await;
    board.moneyline("bet365", 12, [105, -125]).await;
    board.moneyline("caesars", 120, [300, 300]).await;
    board.publish().await;
    board
}

#[tokio::test]
async fn best_prices_are_compared_exactly_and_what_is_stale_is_counted() {
    let board = example().await;
    let best = board.get("/v1/sports/mma/best").await;
    assert_eq!(keys(&best), ["sport", "generated_at", "format", "max_age_s", "refused", "lines"]);
    assert_eq!(best["generated_at"], "2026-11-14T12:00:30.000Z");
    assert_eq!(best["max_age_s"], 90);
    assert_eq!(best["refused"], json!({ "stale": 1, "incomplete": 0, "underround": 0 }));
    let lines = best["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!((&line["ways"], &line["point"]), (&json!(2), &Value::Null));
    assert_eq!(line["booksum"], json!(0.972222222));
    assert_eq!(line["hold"], json!(-0.028571429));
    assert_eq!(line["oldest_age_s"], 12);
    let outcome = &line["outcomes"][0];
    assert_eq!(
        keys(outcome),
        ["name", "point", "price", "bookmaker", "record_id", "last_update", "age_s", "also"]
    );
    assert_eq!((&outcome["name"], &outcome["price"]), (&json!(ANA), &json!(140)));
    assert_eq!((&outcome["bookmaker"], &outcome["age_s"]), (&json!("fanduel"), &json!(4)));
    assert_eq!(outcome["last_update"], "2026-11-14T12:00:26Z");
    assert_eq!(line["outcomes"][1]["bookmaker"], "bet365");
}

#[tokio::test]
async fn the_freshest_of_equal_prices_is_shown_and_the_others_beside_it() {
    let board = Board::with_bout().await;
    board.moneyline("betmgm", 9, [140, -160]).await;
    board.moneyline("caesars", 3, [140, -160]).await;
    board.moneyline("fanduel", 3, [140, -170]).await;
    board.publish().await;
    let best = board.get("/v1/sports/mma/best").await;
    let outcomes = &best["lines"][0]["outcomes"];
    assert_eq!(outcomes[0]["bookmaker"], "caesars");
    assert_eq!(outcomes[0]["also"], json!(["betmgm", "fanduel"]));
    assert_eq!(outcomes[1]["bookmaker"], "caesars");
    assert_eq!(outcomes[1]["also"], json!(["betmgm"]));
}

#[tokio::test]
async fn bets_with_and_without_a_draw_are_two_lines_and_pairings_go_by_their_players() {
    let board = Board::with_bout().await;
    board.moneyline("fanduel", 3, [110, -120]).await;
    let three = decimals(&[(ANA, 2.6), (BEA, 1.7), ("Draw", 30.0)]);
    board.send(&[line::odds("bout", "betmgm", "moneyline", "decimal", &three)]).await;
    let (max, ned, ole) = ("Max Moor", "Ned Noble", "Ole Oakes");
    let pair = |bookmaker, group: &str, outcomes: &[(&str, f64)]| {
        let mut odds = line::odds("open", bookmaker, "matchup", "decimal", &decimals(outcomes));
        odds["group"] = group.into();
        odds
    };
    board
        .send(&[
            line::tournament("open", "Harbour Open"),
            pair("fanduel", "r1-7", &[(ned, 1.9), (max, 1.9)]),
            pair("betmgm", "A", &[(max, 1.95), (ned, 1.85)]),
            pair("caesars", "x", &[(max, 2.1), (ned, 2.0), ("Tie", 9.0)]),
            pair("draftkings", "y", &[(max, 1.7), (ole, 2.1)]),
        ])
        .await;
    board.publish().await;
    let mma = board.get("/v1/sports/mma/best").await;
    let ways: Vec<&Value> = mma["lines"].as_array().unwrap().iter().map(|l| &l["ways"]).collect();
    assert_eq!(ways, [2, 3]);
    let golf = board.get("/v1/sports/golf/best?odds_format=decimal").await;
    let names: Vec<Vec<&str>> = golf["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| {
            l["outcomes"].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect()
        })
        .collect();
    assert_eq!(names, [vec![max, ned], vec![max, ned, "Draw"], vec![max, ole]]);
    let prices = &golf["lines"][0]["outcomes"];
    assert_eq!((&prices[0]["price"], &prices[1]["price"]), (&json!(1.95), &json!(1.9)));
}

#[tokio::test]
async fn partial_sets_are_refused_and_prices_that_are_too_good_are_shown_as_that() {
    let board = Board::with_bout().await;
    board.moneyline("fanduel", 3, [110, -120]).await;
    // This bookmaker's own prices add up to less than 1: a mistake.
    board.moneyline("betmgm", 3, [150, 150]).await;
    let half = json!([{ "name": ANA, "price": 130 }]);
    let two_totals = json!([
        { "name": "Over", "price": -110, "point": 2.5 },
        { "name": "Under", "price": -110, "point": 2.5 },
        { "name": "Over", "price": 130, "point": 3.5 },
    ]);
    board
        .send(&[
            line::odds("bout", "caesars", "moneyline", "american", &half),
            line::odds("bout", "caesars", "total_rounds", "american", &two_totals),
        ])
        .await;
    board.publish().await;
    let best = board.get("/v1/sports/mma/best").await;
    assert_eq!(best["refused"], json!({ "stale": 0, "incomplete": 2, "underround": 0 }));
    let outcome = &best["lines"][0]["outcomes"][0];
    assert_eq!((&outcome["bookmaker"], &outcome["underround"]), (&json!("betmgm"), &json!(true)));
    assert_eq!(best["lines"][1]["point"], json!(2.5));
    assert_eq!(best["lines"].as_array().unwrap().len(), 2);
    let arbitrage = board.get("/v1/sports/mma/arbitrage").await;
    assert_eq!(arbitrage["refused"], json!({ "stale": 0, "incomplete": 2, "underround": 1 }));
    assert_eq!(arbitrage["arbitrages"], json!([]));
}

#[tokio::test]
async fn the_limit_of_age_can_be_sent() {
    let board = example().await;
    let refused = |max_age: u32| format!("/v1/sports/mma/best?max_age={max_age}");
    let stale = async |max_age| board.get(&refused(max_age)).await["refused"]["stale"].clone();
    assert_eq!(stale(3).await, 3);
    assert_eq!(stale(4).await, 2, "as old as the limit is not older");
    assert_eq!(stale(12).await, 1);
    assert_eq!(stale(86_400).await, 0);
    let none = board.get(&refused(3)).await;
    assert_eq!((&none["lines"], &none["max_age_s"]), (&json!([]), &json!(3)));
}

#[tokio::test]
async fn pages_of_lines_hold_every_line_once() {
    let board = Board::open().await;
    let mut lines = Vec::new();
    for at in 0..7 {
        let (home, away) = (format!("Home{at} Archer{at}"), format!("Away{at} Bowen{at}"));
        let reference = format!("bout-{at}");
        lines.push(line::event(&reference, "mma", &home, &away));
        lines.push(line::moneyline(&reference, "fanduel", (&home, -110), (&away, -110)));
        let totals: Value = [1.5, 2.5, 3.5]
            .iter()
            .flat_map(|point| {
                ["Over", "Under"].map(|name| json!({ "name": name, "price": -110, "point": point }))
            })
            .collect();
        lines.push(line::odds(&reference, "fanduel", "total_rounds", "american", &totals));
    }
    board.send(&lines).await;
    board.publish().await;
    let whole = board.get("/v1/sports/mma/best").await["lines"].as_array().unwrap().clone();
    assert_eq!(whole.len(), 28);
    let mut paged = Vec::new();
    let mut path = "/v1/sports/mma/best?limit=5".to_owned();
    loop {
        let answer = board.app.get(&path, &board.key).await;
        paged.extend(answer.json()["lines"].as_array().unwrap().clone());
        let Some(link) = answer.header("link") else { break };
        path = link.trim_start_matches('<').split('>').next().unwrap().to_owned();
    }
    assert_eq!(paged, whole);
    let fair = board.get("/v1/sports/mma/fair?reference=fanduel&limit=3").await;
    assert_eq!(fair["lines"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn prices_to_bet_on_are_those_of_the_regions_and_the_bookmakers_named() {
    let board = Board::with_bout().await;
    // Pinnacle is not offered in the United States.
    board.moneyline("pinnacle", 3, [120, -125]).await;
    board.moneyline("fanduel", 3, [110, -130]).await;
    board.publish().await;
    let bookmaker = async |query: &str| {
        let best = board.get(&format!("/v1/sports/mma/best?{query}")).await;
        best["lines"][0]["outcomes"][0]["bookmaker"].clone()
    };
    assert_eq!(bookmaker("").await, "fanduel");
    assert_eq!(bookmaker("regions=us,eu").await, "pinnacle");
    assert_eq!(bookmaker("region=eu").await, "pinnacle");
    assert_eq!(bookmaker("bookmakers=pinnacle,fanduel").await, "pinnacle", "no default region");
    assert_eq!(bookmaker("bookmakers=pinnacle,fanduel&regions=us").await, "fanduel");
    assert_eq!(bookmaker("bookmakers=pinnacle&regions=us").await, Value::Null);
}
