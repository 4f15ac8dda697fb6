//! Cursors that were given out under another catalogue (S7, S9).

use std::time::Duration;

use engine::Compact;

use super::client::Client;
use crate::harness::{Answer, TestApp, line};
use crate::test_market::{ANN, BEA};
use crate::v1::catalogues::wider;
use crate::v1::history::live;

#[tokio::test]
async fn who_follows_goes_on_under_another_catalogue() {
    const OF_ONE: &str = "/v1/sports/mma/odds?bookmaker=fanduel";
    let price = |american| line::moneyline("a", "fanduel", (ANN, american), (BEA, -155));
    for (archived, status) in [(true, 204), (false, 410)] {
        let builder = |archived| match archived {
            true => TestApp::builder().archived(),
            false => TestApp::builder(),
        };
        let app = builder(archived).catalogue(wider()).start().await;
        let (feed, key) = (app.any_feed().await, app.live_key().await);
        let lines = [
            line::event("a", "mma", ANN, BEA),
            price(135),
            line::moneyline("a", "aaabet", (ANN, 150), (BEA, -170)),
        ];
        app.push_all(&feed, &lines).await;
        app.publish().await;
        let first = app.get(OF_ONE, &key).await;
        let whole = app.get("/v1/sports/mma/odds", &key).await;
        assert_eq!(whole.json().as_array().unwrap().len(), 2);
        let cursor = |answer: &Answer| answer.header("x-cursor").unwrap().to_owned();
        let (of_one, of_all) = (cursor(&first), cursor(&whole));
        if archived {
            assert!(live(&app).history.flush(Compact::Due).await.unwrap());
        }
        let (now, dir) = (app.now().plus(Duration::from_secs(30)), app.stop().await);
        let app = builder(archived).starting_at(now).on(dir).start().await;
        app.publish().await;
        let since = format!("{OF_ONE}&since={of_one}");
        let answer = app.get(&since, &key).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        // A region has other bookmakers now.
        let changed = app.get(&format!("/v1/sports/mma/odds?since={of_all}"), &key).await;
        assert_eq!(changed.refusal(), (410, "cursor_expired".to_owned()));
        if !archived {
            continue;
        }
        app.push_all(&feed, &[price(140)]).await;
        app.publish().await;
        let delta = app.get(&since, &key).await.json();
        assert_eq!(delta["upserts"], app.get(OF_ONE, &key).await.json());
        assert_eq!(delta["removed"].as_array().unwrap().len(), 0);
        let query = format!("?sports=mma&bookmaker=fanduel&freshness=none&since={of_one}");
        let (mut client, hello) = Client::open(&app, &key, &query, None).await;
        assert_eq!(hello["resumed"], true);
        let events = client.cut().await;
        assert_eq!(events[0].data["upserts"][0]["outcomes"][0]["price"], 140);
    }
}
