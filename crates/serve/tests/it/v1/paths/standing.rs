//! Prices that stand for longer than history reaches back.

use std::time::Duration;

use engine::Compact;
use serde_json::{Value, json};

use super::super::history::live;
use super::all_pages;
use crate::harness::{TestApp, line};
use crate::test_market::{ANN, BEA};

/// H10, H12 and H13: what brought prices is past retention, while they are shown as they always were.
#[tokio::test]
async fn prices_that_stand_for_longer_than_retention_have_a_path_and_close() {
    let day = Duration::from_secs(24 * 3600);
    let app = TestApp::builder().archived().history_retention(day * 2).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let listing = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "fanduel", (ANN, 135), (BEA, -155)),
        line::moneyline("a", "betmgm", (ANN, 110), (BEA, -130)),
    ];
    app.push_all(&feed, &listing).await;
    for price in [135, 140, 145, 150, 155] {
        app.push_all(&feed, &[line::moneyline("a", "draftkings", (ANN, price), (BEA, -190))]).await;
        app.publish_after(day).await;
        assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    }
    let events = app.get("/v1/sports/mma/events", &key).await.json();
    let target =
        format!("/v1/sports/mma/events/{}/odds/history", events[0]["id"].as_str().unwrap());
    let told = |paths: &Value| -> Vec<(String, Vec<i64>, bool)> {
        let paths = paths.as_array().unwrap().iter();
        let price = |point: &Value| point["outcomes"][0]["price"].as_i64().unwrap();
        let told = paths.map(|path| {
            let points = path["points"].as_array().unwrap().iter().map(price).collect();
            (path["bookmaker"].as_str().unwrap().to_owned(), points, path["open"]["exact"] == true)
        });
        told.collect()
    };
    let paths = app.get(&target, &key).await.json();
    let [betmgm, draftkings, fanduel] = &told(&paths)[..] else { panic!("{paths}") };
    assert_eq!(betmgm, &("betmgm".to_owned(), vec![110], false));
    assert_eq!(fanduel, &("fanduel".to_owned(), vec![135], false));
    assert_eq!(draftkings.1.last(), Some(&155));
    assert!(!draftkings.2 && draftkings.1.len() < 5, "{paths}");
    // From the first to the last of it, page by page.
    let (_, pages) = all_pages(&app, &key, &format!("{target}?limit=1")).await;
    assert_eq!(json!(pages), paths);
    let later = format!("{target}?bookmaker=fanduel&from=2100-01-01T00:00:00Z");
    assert_eq!(app.get(&later, &key).await.json()[0]["points"], json!([]));

    app.push_all(&feed, &[line::moneyline("a", "betmgm", (ANN, 115), (BEA, -135))]).await;
    app.push_all(&feed, &[line::score("a", "live", 1, 0)]).await;
    app.publish().await;
    for flushed in [false, true] {
        let mut paths = app.get(&target, &key).await.json();
        let closes = [110, 155, 135].map(|price| json!(price));
        for (path, price) in paths.as_array_mut().unwrap().iter_mut().zip(&closes) {
            assert_eq!(&path["close"]["outcomes"][0]["price"], price, "flushed: {flushed}: {path}");
            path.as_object_mut().unwrap().remove("points");
        }
        assert_eq!(app.get("/v1/sports/mma/odds/closing", &key).await.json(), paths);
        assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    }
}
