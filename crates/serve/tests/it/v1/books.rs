//! `/v1/books`: every bookmaker with its regions (D23).

use serde_json::json;

use crate::test_market::TestMarket;

#[tokio::test]
async fn books_are_every_covered_bookmaker_with_its_regions() {
    let board = TestMarket::start().await;
    let books = board.list("/v1/books").await;
    let catalogue = &board.app.service.api.catalogue;
    assert_eq!(books.len(), catalogue.bookmakers().count());
    let bet365 = books.iter().find(|book| book["key"] == "bet365").unwrap();
    let expected =
        json!({ "key": "bet365", "title": "bet365", "regions": ["us", "uk", "eu", "au"] });
    assert_eq!(bet365.to_string(), expected.to_string());
}
