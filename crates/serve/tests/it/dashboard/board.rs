//! The board: what it shows is what the API answers, quickly and small.

use std::time::{Duration, Instant};

use accounts::PeopleRules;
use domain::World;
use serde_json::Value;
use serve::DashboardSettings;

use super::browser::{Browser, between};
use crate::harness::{Answer, TestApp};

async fn sandbox() -> TestApp {
    let app = TestApp::builder().sandbox(7).start().await;
    app.publish_both().await;
    app
}

#[tokio::test]
async fn the_board_shows_the_prices_that_the_api_answers_and_marks_the_best() {
    let app = sandbox().await;
    let key = app.sandbox_key().await;
    let path =
        "/v1/sports/mma/odds?market=moneyline&odds_format=decimal&regions=us,uk,eu,au&limit=100";
    let records = app.get(path, &key).await.json();
    let shown = Answer::of(app.request(reqwest::Method::GET, "/board/mma/prices")).await.json();
    let cells = shown["cells"].as_object().unwrap();
    assert!(cells.len() > 50, "{}", cells.len());
    let priced = |cell: &Value| cell[0].as_str().unwrap().to_owned();
    // Each record has two outcomes, each of which is a cell with that price.
    let mut answered = 0;
    for record in records.as_array().unwrap() {
        let event = record["event_id"].as_str().unwrap();
        for outcome in record["outcomes"].as_array().unwrap() {
            // The board writes 1.9 as 1.90.
            let price = outcome["price"].as_f64().unwrap();
            let there = |(key, cell): (&String, &Value)| {
                key.starts_with(event)
                    && (priced(cell).parse::<f64>().unwrap() - price).abs() < f64::EPSILON
            };
            assert!(cells.iter().any(there), "{event} {price}");
            answered += 1;
        }
    }
    assert!(answered > 50);
    for (key, cell) in cells.iter().filter(|(_, cell)| cell[2] == true) {
        assert_eq!(cell[3], false, "a late price is never the best");
        let row = key.rsplit_once('-').unwrap().0;
        let others = cells.iter().filter(|(other, _)| other.rsplit_once('-').unwrap().0 == row);
        let best = others
            .filter(|(_, other)| other[3] == false)
            .map(|(_, other)| priced(other).parse::<f64>().unwrap())
            .fold(0.0, f64::max);
        assert!((priced(cell).parse::<f64>().unwrap() - best).abs() < 1e-9, "{key}");
    }
}

#[tokio::test]
async fn an_unchanged_board_is_told_in_a_few_bytes_and_a_whole_one_is_small_and_quick() {
    let app = sandbox().await;
    let page = app.get_with("/board/football", "", &[("accept-encoding", "br")]).await;
    let page = if page.status == 200 {
        page
    } else {
        app.get_with("/board/mma", "", &[("accept-encoding", "br")]).await
    };
    assert_eq!((page.status, page.header("content-encoding")), (200, Some("br")));
    assert!(page.body.len() < 150_000, "{}", page.body.len());
    let begun = Instant::now();
    let prices = Answer::of(app.request(reqwest::Method::GET, "/board/mma/prices")).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let tag = prices.header("etag").unwrap().to_owned();
    let again = app.get_with("/board/mma/prices", "", &[("if-none-match", &tag)]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    app.publish_both().await;
    let later = app.get_with("/board/mma/prices", "", &[("if-none-match", &tag)]).await;
    assert_eq!(later.status, 200);
}

#[tokio::test]
async fn whatever_the_address_asks_the_board_shows_something_sensible() {
    let app = sandbox().await;
    let mut browser = Browser::new(&app);
    for query in ["?market=nonsense", "?format=<script>", "?region=mars", "?market=outright&x=y"] {
        let page = browser.get(&format!("/board/mma{query}")).await;
        assert_eq!(page.status, 200, "{query}");
        assert!(!page.text().contains("<script>\"") && !page.text().contains("nonsense"));
    }
    assert_eq!(browser.get("/board/chess").await.status, 404);
    let american = browser.get("/board/mma?format=american").await;
    let first = between(american.text(), "<b>", "</b>").unwrap();
    assert!(first.starts_with(['+', '-']), "{first}");
}

#[tokio::test]
async fn the_board_is_of_the_world_that_the_operator_opened() {
    for (board, status) in [(None, 404), (Some(World::Live), 200)] {
        let pages = DashboardSettings { board, ..DashboardSettings::default() };
        let app = TestApp::builder().sandbox(7).pages(PeopleRules::default(), pages).start().await;
        app.publish_both().await;
        let mut browser = Browser::new(&app);
        let page = browser.get("/board/mma").await;
        assert_eq!(page.status, status);
        assert!(!page.text().contains("<b>"), "the live market is empty here");
        let in_bar = browser.get("/signin").await.text().contains("href=\"/board\"");
        assert_eq!(in_bar, board.is_some());
    }
}
