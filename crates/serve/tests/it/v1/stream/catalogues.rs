//! Cursors that were issued under another catalogue, and streams that begin there (S2, S7, S9).

use std::time::Duration;

use domain::Catalogue;
use engine::Compact;

use super::client::{Client, at_of, names};
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
        if !archived {
            assert_eq!(changed.refusal(), (410, "cursor_expired".to_owned()));
            continue;
        }
        let changed = changed.json();
        assert_eq!(changed["upserts"].as_array().unwrap().len(), 0, "{changed}");
        assert_eq!(changed["removed"].as_array().unwrap().len(), 1, "{changed}");
        assert_eq!(changed["removed"][0]["reason"], "removed", "{changed}");
        let query = format!("?sports=mma&since={of_all}");
        let (mut client, hello) = Client::open(&app, &key, &query, None).await;
        assert_eq!(hello["resumed"], true);
        for record in whole.json().as_array().unwrap() {
            client.hold("odds", "mma", record);
        }
        assert_eq!(client.cut().await[0].data["removed"], changed["removed"]);
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

/// The price of the client's first record.
fn price_of(client: &Client) -> i64 {
    assert_eq!(client.state.len(), 1, "{:?}", client.state);
    client.state.values().next().unwrap()["outcomes"][0]["price"].as_i64().unwrap()
}

#[tokio::test]
async fn every_publication_comes_as_it_was_under_the_catalogue_of_its_time() {
    let price = |american| line::moneyline("a", "fanduel", (ANN, american), (BEA, -155));
    let usual = || Catalogue::load(None).unwrap();
    for (then, now, sports) in [(wider(), usual(), "mma"), (usual(), wider(), "aikido,mma")] {
        let app = TestApp::builder().archived().catalogue(then).start().await;
        let (feed, key) = (app.any_feed().await, app.live_key().await);
        app.push_all(&feed, &[line::event("a", "mma", ANN, BEA), price(135)]).await;
        app.publish().await;
        let whole = app.get("/v1/sports/mma/odds", &key).await;
        let first = whole.header("x-published-at").unwrap().to_owned();
        app.push_all(&feed, &[price(140)]).await;
        app.publish().await;
        assert!(live(&app).history.flush(Compact::Due).await.unwrap());
        let (later, dir) = (app.now().plus(Duration::from_secs(30)), app.stop().await);
        let app = TestApp::builder().archived().catalogue(now).starting_at(later).on(dir);
        let app = app.start().await;
        for american in [150, 160] {
            app.push_all(&feed, &[price(american)]).await;
            app.publish().await;
        }
        let filter = format!("?sports={sports}&bookmaker=fanduel");
        for mode in ["publication", "live"] {
            let query = format!("{filter}&mode={mode}&replay=all&since={first}");
            let (mut client, hello) = Client::open(&app, &key, &query, None).await;
            assert_eq!(hello["resumed"], false);
            let (mut prices, mut middle) = (Vec::new(), None);
            while prices.last() != Some(&160) {
                let events = client.cut().await;
                prices.push(price_of(&client));
                if events.last().unwrap().data["published"] == true {
                    let path = "/v1/sports/mma/odds?bookmaker=fanduel";
                    let path = format!("{path}&as_of={}", at_of(&events));
                    let asked = app.get(&path, &key).await.json();
                    let (asked, held) = (&asked[0], client.state.values().next().unwrap());
                    assert_eq!(
                        (&asked["id"], &asked["outcomes"]),
                        (&held["id"], &held["outcomes"])
                    );
                    middle.get_or_insert_with(|| client.cursor.clone());
                }
            }
            prices.dedup();
            assert_eq!(prices, [135, 140, 150, 160], "{mode}");
            // A key has one replay at a time.
            drop(client);
            // From a cursor of that time: every publication, and all changes in one step.
            let query = format!("{filter}&mode={mode}&since={}", middle.unwrap());
            let (mut all, _) = Client::open(&app, &key, &format!("{query}&replay=all"), None).await;
            let events = all.cut().await;
            assert_eq!(events[0].data["upserts"][0]["outcomes"][0]["price"], 140, "{mode}");
            drop(all);
            let (mut net, _) = Client::open(&app, &key, &query, None).await;
            let events = net.cut().await;
            assert_eq!(events[0].data["upserts"][0]["outcomes"][0]["price"], 160, "{mode}");
        }
        // Until an end at that time.
        let query = format!("{filter}&freshness=none&since={first}&until={first}");
        let (mut ended, _) = Client::open(&app, &key, &query, None).await;
        let events = ended.cut().await;
        assert_eq!(names(&events).last(), Some(&"cut"));
        assert_eq!((price_of(&ended), &ended.end().await["code"]), (135, &"done".into()));
    }
}

#[tokio::test]
async fn what_a_catalogue_did_not_know_for_a_while_comes_back_in_a_replay_as_it_did() {
    let lines = [
        line::event("a", "mma", ANN, BEA),
        line::moneyline("a", "aaabet", (ANN, 150), (BEA, -170)),
    ];
    let app = TestApp::builder().archived().catalogue(wider()).start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(&feed, &lines).await;
    app.publish().await;
    let first = app.get("/v1/sports/mma/odds", &key).await;
    let first = first.header("x-published-at").unwrap().to_owned();
    let mut app = app;
    for catalogue in [Catalogue::load(None).unwrap(), wider()] {
        assert!(live(&app).history.flush(Compact::Due).await.unwrap());
        let (later, dir) = (app.now().plus(Duration::from_secs(30)), app.stop().await);
        let next = TestApp::builder().archived().catalogue(catalogue).starting_at(later).on(dir);
        app = next.start().await;
        app.publish().await;
    }
    let present = app.get("/v1/sports/mma/odds?bookmaker=aaabet", &key).await.json();
    let until = app.get("/v1/sports/mma/odds", &key).await;
    let until = until.header("x-published-at").unwrap();
    let query = format!("?sports=mma&bookmaker=aaabet&replay=all&since={first}&until={until}");
    let (mut client, _) = Client::open(&app, &key, &query, None).await;
    let mut held = Vec::new();
    loop {
        let events = client.cut().await;
        held.push(client.state.len());
        if at_of(&events) == until {
            break;
        }
    }
    held.dedup();
    assert_eq!(held, [1, 0, 1], "{present}");
    assert_eq!(present.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_region_has_the_bookmakers_of_its_time_in_a_replay() {
    let usual = || Catalogue::load(None).unwrap();
    let price = |bookmaker, american| line::moneyline("a", bookmaker, (ANN, american), (BEA, -155));
    for (then, now, bookmakers) in [(wider(), usual(), [2, 1]), (usual(), wider(), [1, 2])] {
        let app = TestApp::builder().archived().catalogue(then).start().await;
        let (feed, key) = (app.any_feed().await, app.live_key().await);
        let quote = async |app: &TestApp, bookmakers: i64, american| {
            let is_new = american == 135;
            let mut lines: Vec<serde_json::Value> =
                is_new.then(|| line::event("a", "mma", ANN, BEA)).into_iter().collect();
            lines.push(price("fanduel", american));
            lines.extend((bookmakers > 1).then(|| price("aaabet", american + 5)));
            app.push_all(&feed, &lines).await;
            app.publish().await;
        };
        quote(&app, bookmakers[0], 135).await;
        let first = app.get("/v1/sports/mma/odds", &key).await;
        let first = first.header("x-published-at").unwrap().to_owned();
        quote(&app, bookmakers[0], 140).await;
        assert!(live(&app).history.flush(Compact::Due).await.unwrap());
        let (later, dir) = (app.now().plus(Duration::from_secs(30)), app.stop().await);
        let app = TestApp::builder().archived().catalogue(now).starting_at(later).on(dir);
        let app = app.start().await;
        quote(&app, bookmakers[1], 150).await;
        let until = app.get("/v1/sports/mma/odds", &key).await;
        let until = until.header("x-published-at").unwrap();
        for mode in ["publication", "live"] {
            let query = format!("?sports=mma&mode={mode}&replay=all&since={first}&until={until}");
            let (mut client, _) = Client::open(&app, &key, &query, None).await;
            let mut counts = Vec::new();
            loop {
                let events = client.cut().await;
                if events.last().unwrap().data["published"] != true {
                    continue;
                }
                let at = at_of(&events);
                let path = format!("/v1/sports/mma/odds?as_of={at}");
                let asked = app.get(&path, &key).await.json();
                let asked = asked.as_array().unwrap();
                let prices = |record: &serde_json::Value| record["outcomes"].clone();
                for record in asked {
                    let held = client.state.values().find(|held| held["id"] == record["id"]);
                    assert_eq!(held.map(prices), Some(prices(record)), "{mode} at {at}");
                }
                assert_eq!(client.state.len(), asked.len(), "{mode} at {at}");
                counts.push(i64::try_from(asked.len()).unwrap());
                if at == until {
                    break;
                }
            }
            counts.dedup();
            assert_eq!(counts, bookmakers, "{mode}");
        }
    }
}
