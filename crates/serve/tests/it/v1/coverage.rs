//! `/v1/sports/{sport_key}/coverage` and `…/events/{event_id}/explain`: one reason for every price that is missing.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{TestApp, line};
use crate::test_market::{ANN, BEA, TestMarket};

/// The cells of a bookmaker, by market.
fn cells<'a>(explained: &'a Value, bookmaker: &str) -> &'a [Value] {
    let books = explained["books"].as_array().unwrap();
    let own = books.iter().find(|book| book["bookmaker"] == bookmaker);
    own.unwrap_or_else(|| panic!("no {bookmaker}: {explained}"))["cells"].as_array().unwrap()
}

fn cell<'a>(explained: &'a Value, bookmaker: &str, market: &str) -> &'a Value {
    cells(explained, bookmaker).iter().find(|cell| cell["market"] == market).unwrap()
}

#[tokio::test]
async fn every_state_is_reported_with_its_time() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    let other = board.app.any_feed().await;
    let (carla, dora) = ("Carla Cruz", "Dorothea Dunn");
    // A second feed lists only the other bout, and another one that it then withdraws.
    board
        .app
        .push_all(
            &other,
            &[
                line::event_at("x-2", "mma", carla, dora, "2026-11-29T03:00:00Z"),
                line::moneyline("x-2", "pinnacle", (carla, -290), (dora, 230)),
                line::event("x-1", "mma", ANN, BEA),
                line::moneyline("x-1", "betmgm", (ANN, 121), (BEA, -141)),
            ],
        )
        .await;
    board.push(&[line::odds("bout-1", "fanduel", "moneyline", "american", &json!([]))]).await;
    board.app.push_all(&other, &[json!({ "type": "remove", "ref": "x-1" })]).await;
    board.app.publish().await;

    let path = format!("/v1/sports/mma/events/{id}/explain");
    let explained = board.get(&path).await;
    assert_eq!(explained["event_id"], *id);
    assert_eq!(explained["status"], "scheduled");
    let priced = cell(&explained, "draftkings", "moneyline");
    assert_eq!((&priced["state"], &priced["records"]), (&json!("priced"), &json!(1)));
    assert_eq!((&priced["stale"], &priced["age_s"]), (&json!(false), &json!(54)));
    assert_eq!(cell(&explained, "888sport", "moneyline")["by"], "regions", "{explained}");
    let suspended = cell(&explained, "fanduel", "moneyline");
    assert_eq!(suspended["state"], "suspended");
    assert!(suspended["since"].is_string(), "{suspended}");
    assert_eq!(cell(&explained, "betmgm", "moneyline")["state"], "withdrawn");
    assert_eq!(cell(&explained, "pinnacle", "moneyline")["state"], "not_listed");
    assert_eq!(cell(&explained, "draftkings", "total_rounds")["state"], "not_offered");
    let none = explained["no_source"].as_array().unwrap();
    assert!(none.contains(&json!("caesars")) && !none.contains(&json!("fanduel")), "{none:?}");

    board.app.publish_after(Duration::from_secs(600)).await;
    let explained = board.get(&path).await;
    assert_eq!(cell(&explained, "pinnacle", "moneyline")["state"], "source_stale");
    assert_eq!(cell(&explained, "draftkings", "moneyline")["stale"], true);
    assert_eq!(cell(&explained, "fanduel", "moneyline")["state"], "suspended");

    let tonight = line::event_at("bout-1", "mma", ANN, BEA, "2026-11-15T03:00:00Z");
    board.push(&[tonight, line::score("bout-1", "final", 1, 0)]).await;
    board.app.publish().await;
    let explained = board.get(&path).await;
    let states: BTreeSet<&str> = explained["books"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|book| book["cells"].as_array().unwrap())
        .map(|cell| cell["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, BTreeSet::from(["ended"]));
}

/// C3: the priced cells are the bookmakers and markets of Get Odds with the same parameters.
#[tokio::test]
async fn priced_cells_are_what_odds_show() {
    let board = TestMarket::start().await;
    let id = board.bout_id().await;
    for query in [
        "",
        "regions=us,uk,eu,au",
        "bookmaker=888sport",
        "market=total_rounds",
        "market=h2h&region=uk",
        "bookmaker=fanduel&regions=uk",
        "market=outright",
    ] {
        let explained = board.get(&format!("/v1/sports/mma/events/{id}/explain?{query}")).await;
        let mut priced: Vec<(String, String)> = Vec::new();
        for book in explained["books"].as_array().unwrap() {
            for cell in book["cells"].as_array().unwrap() {
                if cell["state"] == "priced" {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    priced.push((text(&book["bookmaker"]), text(&cell["market"])));
                }
            }
        }
        let odds = board.get(&format!("/v1/sports/mma/odds?event_ids={id}&{query}")).await;
        let quoted: Vec<(String, String)> = odds
            .as_array()
            .unwrap()
            .iter()
            .map(|record| {
                let text = |name: &str| record[name].as_str().unwrap().to_owned();
                (text("bookmaker"), text("market"))
            })
            .collect();
        assert_eq!(priced, quoted, "{query}");
    }
}

#[tokio::test]
async fn counts_of_a_market_add_up_to_the_events() {
    let board = TestMarket::start().await;
    let coverage = board.get("/v1/sports/mma/coverage").await;
    assert_eq!(coverage["events"], 2);
    let states =
        ["priced", "suspended", "withdrawn", "source_stale", "unsure", "not_listed", "not_offered"];
    for book in coverage["books"].as_array().unwrap() {
        for market in book["markets"].as_array().unwrap() {
            let sum: u64 = states.iter().map(|state| market[*state].as_u64().unwrap()).sum();
            assert_eq!(sum, 2, "{book}");
        }
    }
    let one = board.get("/v1/sports/mma/coverage?bookmaker=fanduel&market=moneyline").await;
    let markets = &one["books"][0]["markets"];
    assert_eq!(markets.as_array().unwrap().len(), 1);
    assert_eq!((&markets[0]["priced"], &markets[0]["not_offered"]), (&json!(2), &json!(0)));
    assert_eq!(one["no_source"], json!([]));
    let text = coverage.to_string();
    assert!(!text.contains("feed-") && !text.contains("bout-1"), "no operator data: {text}");
}

#[tokio::test]
async fn they_cost_no_quota_and_are_kept_like_other_answers() {
    let board = TestMarket::start().await;
    let key = board.app.limited_key(100, 1, None).await;
    let id = board.bout_id().await;
    for path in
        ["/v1/sports/mma/coverage".to_owned(), format!("/v1/sports/mma/events/{id}/explain")]
    {
        let first = board.app.get(&path, &key).await;
        assert_eq!((first.status, first.header("x-requests-remaining")), (200, Some("1")));
        let tag = first.header("etag").unwrap().to_owned();
        let again = board.app.get_with(&path, &key, &[("If-None-Match", &tag)]).await;
        assert_eq!(again.status, 304);
    }
    assert_eq!(board.app.get("/v1/sports/mma/odds", &key).await.status, 200);
    assert_eq!(board.app.get("/v1/sports/mma/odds", &key).await.status, 429);
    assert_eq!(board.app.get("/v1/sports/mma/coverage", &key).await.status, 200);
    let golf = board.app.key_for_groups(&["golf"]).await;
    assert_eq!(board.app.get("/v1/sports/mma/coverage", &golf).await.status, 403);
    let wrong = board.app.get("/v1/sports/mma/coverage?limit=1", &key).await;
    assert_eq!((wrong.status, &wrong.json()["error"]["param"]), (400, &json!("limit")));
    let nowhere = board.app.get("/v1/sports/mma/events/evt_1/explain", &key).await;
    assert_eq!(
        (nowhere.status, &nowhere.json()["error"]["code"]),
        (404, &json!("event_not_found"))
    );
}

/// C6: an answer without a price links to the reason, and repeats no key.
#[tokio::test]
async fn an_empty_answer_links_to_its_coverage() {
    let board = TestMarket::start().await;
    let link = async |path: &str| {
        let answer = board.app.get(path, &board.key).await;
        answer.header("link").map(str::to_owned)
    };
    let query = "market=spread&regions=uk,eu&odds_format=decimal&limit=5";
    assert_eq!(
        link(&format!("/v1/sports/mma/odds?{query}")).await.as_deref(),
        Some("</v1/sports/mma/coverage?market=spread&regions=uk,eu>; rel=\"help\"")
    );
    assert_eq!(
        link("/v1/sports/boxing/odds?group_by=bout&bookmaker=888sport").await.as_deref(),
        Some("</v1/sports/boxing/coverage?bookmaker=888sport>; rel=\"help\"")
    );
    for operation in ["best", "fair"] {
        let query = "market=spread&max_age=60&odds_format=decimal&event_ids=evt_7eVAtwEndLM";
        assert_eq!(
            link(&format!("/v1/sports/mma/{operation}?{query}")).await.as_deref(),
            Some("</v1/sports/mma/coverage?market=spread>; rel=\"help\""),
            "{operation}"
        );
        assert_eq!(link(&format!("/v1/sports/mma/{operation}")).await, None, "{operation}");
    }
    assert_eq!(
        link("/v1/sports/boxing/best?regions=uk,eu&bookmakers=888sport").await.as_deref(),
        Some("</v1/sports/boxing/coverage?regions=uk,eu>; rel=\"help\"")
    );
    // A past answer links to the coverage of its publication, with and without a filter.
    let past = board.app.get("/v1/sports", &board.key).await;
    let published = past.header("x-published-at").unwrap();
    board.app.publish().await;
    let later = board.app.now().minus(Duration::from_secs(1));
    for (filter, coverage) in [("market=spread&", "market=spread&"), ("event_ids=evt_1&", "")] {
        let target = format!("</v1/sports/mma/coverage?{coverage}as_of={published}>; rel=\"help\"");
        let odds = format!("/v1/sports/mma/odds?{filter}as_of={later}");
        assert_eq!(link(&odds).await, Some(target), "{odds}");
    }
    assert_eq!(link("/v1/sports/mma/odds").await, None);
    assert_eq!(link("/v1/sports/boxing/middles").await, None, "no price is missing in a ranking");
    let with_key = format!("/v1/sports/mma/odds?market=spread&api_key={}", board.key);
    let answer = board.app.get_without_key(&with_key).await;
    assert_eq!(
        answer.header("link"),
        Some("</v1/sports/mma/coverage?market=spread>; rel=\"help\"")
    );
}

#[tokio::test]
async fn a_restart_shows_the_same_bytes() {
    let board = TestMarket::start().await;
    board.push(&[line::odds("bout-1", "fanduel", "moneyline", "american", &json!([]))]).await;
    board.app.publish().await;
    let id = board.bout_id().await;
    let paths = [
        "/v1/sports/mma/coverage".to_owned(),
        format!("/v1/sports/mma/events/{id}/explain?regions=us,uk,eu,au"),
    ];
    let mut before = Vec::new();
    for path in &paths {
        before.push(board.app.get(path, &board.key).await.text().to_owned());
    }
    let TestMarket { app, key, .. } = board;
    let now = app.now();
    let app = TestApp::builder().on(app.stop().await).starting_at(now).start().await;
    for (path, before) in paths.iter().zip(before) {
        assert_eq!(app.get(path, &key).await.text(), before);
    }
}
