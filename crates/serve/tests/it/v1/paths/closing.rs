//! `/v1/sports/{sport_key}/odds/closing`: closing lines (H12, H13).

use std::collections::BTreeSet;
use std::time::Duration;

use engine::Compact;
use serde_json::{Value, json};

use super::super::history::live;
use super::{FightHistory, all_pages, next};
use crate::harness::{TestApp, line};
use crate::test_market::{ANN, BEA};

#[tokio::test]
async fn closing_lines_are_those_of_paths_page_by_page() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let history = FightHistory::new(&app, &feed, &key).await;
    // An event that has not started has none.
    let waiting = [
        line::event("b", "mma", "Cleo Crane", "Dora Dale"),
        line::moneyline("b", "fanduel", ("Cleo Crane", 120), ("Dora Dale", -140)),
    ];
    app.push_all(&feed, &waiting).await;
    app.publish().await;
    let closing = "/v1/sports/mma/odds/closing";
    for flushed in [false, true] {
        if flushed {
            assert!(live(&app).history.flush(Compact::All).await.unwrap());
            app.publish().await;
        }
        let mut expected = history.get(&app, &key, "").await;
        for path in expected.as_array_mut().unwrap() {
            path.as_object_mut().unwrap().remove("points");
        }
        let answer = app.get(closing, &key).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json(), expected);
        let first = app.get(&format!("{closing}?limit=1"), &key).await;
        let second = app.get(&next(&first).unwrap(), &key).await;
        assert_eq!((&first.json()[0], &second.json()[0]), (&expected[0], &expected[1]));
        assert_eq!(next(&second), None);
        let event = &history.event;
        let some = |query: String| {
            let (app, key) = (&app, &key);
            async move { app.get(&format!("{closing}?{query}"), key).await.json() }
        };
        assert_eq!(some(format!("event_ids={event}")).await, expected);
        assert_eq!(some("event_ids=evt_00000000001".to_owned()).await, json!([]));
        assert_eq!(some("bookmaker=fanduel".to_owned()).await, json!([expected[1]]));
        for (query, is_there) in [
            ("regions=uk,eu", false),
            ("regions=uk,us", true),
            ("region=us", true),
            ("market=h2h", true),
            ("market=total_rounds", false),
            ("commence_from=2026-11-22T03:00:01Z", false),
            ("commence_to=2026-11-22T03:00:00Z", false),
            ("commence_from=2026-11-22T03:00:00Z&commence_to=2026-11-22T03:00:01Z", true),
        ] {
            let wanted = if is_there { expected.clone() } else { json!([]) };
            assert_eq!(some(query.to_owned()).await, wanted, "{query}");
        }
    }
    for (query, param) in
        [("limit=501", "limit"), ("group_by=bout", "group_by"), ("commence_to=x", "commence_to")]
    {
        let answer = app.get(&format!("{closing}?{query}"), &key).await;
        assert_eq!((answer.status, &*answer.code()), (400, "invalid_parameter"), "{query}");
        assert_eq!(answer.json()["error"]["param"], param);
    }
}

#[tokio::test]
async fn closing_lines_of_the_sandbox_follow_from_its_seed() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.sandbox_key().await;
    app.publish_both().await;
    let from = app.now().minus(Duration::from_secs(3 * 3600));
    let from = String::from_utf8(from.millis_text().to_vec()).unwrap();
    let target = format!("/v1/sports/boxing/odds/closing?commence_from={from}&limit=20");
    let records = app.get(&target, &key).await.json();
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 20);
    for record in records {
        assert!(record["close"]["start"].as_str().is_some(), "{record}");
        assert!(record["close"]["published_at"].as_str() < record["close"]["start"].as_str());
    }
    let id = records[0]["event_id"].as_str().unwrap();
    let path = format!("/v1/sports/boxing/events/{id}/odds/history");
    let (_, paths) = all_pages(&app, &key, &path).await;
    assert_eq!(paths[0]["close"], records[0]["close"]);
}

/// H12: as long as no score has reported the start, it is the scheduled one.
#[tokio::test]
async fn an_event_without_a_score_starts_at_its_scheduled_time() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let price = |price: i32| line::moneyline("a", "fanduel", (ANN, price), (BEA, -155));
    let listed = line::event_at("a", "mma", ANN, BEA, "2026-11-14T12:01:10Z");
    app.push_all(&feed, &[listed, price(135)]).await;
    app.publish().await;
    let events = app.get("/v1/sports/mma/events", &key).await.json();
    let path = format!("/v1/sports/mma/events/{}/odds/history", events[0]["id"].as_str().unwrap());
    assert_eq!(app.get(&path, &key).await.json()[0]["close"], Value::Null);
    app.publish_after(Duration::from_secs(60)).await;
    app.push_all(&feed, &[price(140)]).await;
    app.publish().await;
    for flushed in [false, true] {
        let close = app.get(&path, &key).await.json()[0]["close"].clone();
        let start = json!("2026-11-14T12:01:10.000Z");
        assert_eq!((&close["by"], &close["start"]), (&json!("commence_time"), &start));
        assert_eq!(close["outcomes"][0]["price"], 135, "flushed: {flushed}: {close}");
        let lines = app.get("/v1/sports/mma/odds/closing", &key).await.json();
        assert_eq!((lines.as_array().unwrap().len(), &lines[0]["close"]), (1, &close));
        assert!(live(&app).history.flush(Compact::Due).await.unwrap());
        app.publish().await;
    }
}

/// A field may have hundreds of players.
#[tokio::test]
async fn a_page_of_large_closing_lines_ends_before_its_limit() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    // Names that are unlike each other.
    let word = |mut seed: u64| {
        let letter = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from((seed >> 33) % 26).unwrap())
        };
        (0..9).map(letter).collect::<String>()
    };
    let name = |n: u64| format!("{} {}", word(2 * n), word(2 * n + 1));
    let field: Value = (0..250).map(|n| json!({ "name": name(n), "price": 900 + n })).collect();
    for (n, title) in ["Harbour Open", "Valley Classic", "Desert Trophy", "Island Masters"]
        .into_iter()
        .enumerate()
    {
        let listing = format!("open{n}");
        let mut tournament = line::tournament(&listing, title);
        tournament["commence_time"] = "2026-11-14T12:01:00Z".into();
        let mut lines = vec![tournament];
        for bookmaker in [
            "bet365",
            "betmgm",
            "betonline",
            "betrivers",
            "bovada",
            "caesars",
            "draftkings",
            "espnbet",
            "fanatics",
            "fanduel",
            "hardrock",
            "kalshi",
            "lowvig",
        ] {
            for market in ["outright", "top5", "top10", "top20"] {
                lines.push(line::odds(&listing, bookmaker, market, "american", &field));
            }
        }
        app.push_all(&feed, &lines).await;
    }
    app.publish().await;
    app.publish_after(Duration::from_secs(60)).await;
    let target = "/v1/sports/golf/odds/closing?limit=500";
    let bytes = app.get(target, &key).await.text().len();
    assert!((4 << 20..5 << 20).contains(&bytes), "{bytes}");
    let (pages, records) = all_pages(&app, &key, target).await;
    let ids: BTreeSet<&str> = records.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!((pages, records.len(), ids.len()), (2, 208, 208));
}
