//! Order and paging (D15): every record once, in order, with the filters kept and the key left out.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::harness::{TestApp, line};

const NAMES: [&str; 12] = [
    "Quentin Quill",
    "Rosalind Reyes",
    "Sebastian Stone",
    "Theodora Tan",
    "Ulysses Umber",
    "Valentina Voss",
    "Wolfgang Wirth",
    "Xanthe Xu",
    "Yolanda Yates",
    "Zebulon Zorn",
    "Bartholomew Bright",
    "Clementine Clay",
];

/// Six bouts, three of them at the same time, with three bookmakers and two markets each.
async fn start() -> (TestApp, String) {
    let app = TestApp::start().await;
    let (key, feed) = (app.live_key().await, app.any_feed().await);
    let mut lines = Vec::new();
    for (number, pair) in NAMES.chunks(2).enumerate() {
        let reference = format!("b-{number}");
        let commence = match number {
            0..3 => "2026-11-22T03:00:00Z".to_owned(),
            _ => format!("2026-11-{}T03:00:00Z", 30 - 2 * number),
        };
        lines.push(line::event_at(&reference, "mma", pair[0], pair[1], &commence));
        for bookmaker in ["fanduel", "draftkings", "caesars"] {
            lines.push(line::moneyline(&reference, bookmaker, (pair[0], 120), (pair[1], -140)));
            let rounds = json!([
                { "name": "Over", "price": -115, "point": 2.5 },
                { "name": "Under", "price": -105, "point": 2.5 },
            ]);
            lines.push(line::odds(&reference, bookmaker, "total_rounds", "american", &rounds));
        }
    }
    app.push_all(&feed, &lines).await;
    app.publish().await;
    (app, key)
}

/// Follows `Link` from page to page.
async fn walk(app: &TestApp, key: &str, path: &str, records: fn(&Value) -> &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let mut next = Some(path.to_owned());
    while let Some(page) = next {
        let answer = app.get(&page, key).await;
        assert_eq!(answer.status, 200, "{page}");
        let body = answer.json();
        let list = records(&body).as_array().unwrap().clone();
        assert!(!list.is_empty(), "{page} is an empty page");
        all.extend(list);
        next = answer.next_page();
        assert!(all.len() < 1000, "paging does not end");
    }
    all
}

fn list(body: &Value) -> &Value {
    body
}

fn bouts(body: &Value) -> &Value {
    &body["bouts"]
}

#[tokio::test]
async fn paging_gives_every_record_once_in_the_order_of_the_whole() {
    let (app, key) = start().await;
    for (path, records, count) in [
        ("/v1/sports/mma/odds", list as fn(&Value) -> &Value, 36),
        ("/v1/sports/mma/odds?market=total_rounds", list, 18),
        ("/v1/sports/mma/odds?bookmaker=caesars&odds_format=decimal", list, 12),
        ("/v1/sports/mma/odds?group_by=bout", bouts, 6),
        ("/v1/sports/mma/scores", list, 6),
        ("/v1/sports/mma/events", list, 6),
        ("/v1/sports/mma/events?commence_from=2026-11-22T03:00:00Z", list, 5),
    ] {
        let whole = app.get(path, &key).await;
        assert_eq!(whole.header("link"), None, "{path}");
        let whole = records(&whole.json()).as_array().unwrap().clone();
        assert_eq!(whole.len(), count, "{path}");
        let and = if path.contains('?') { '&' } else { '?' };
        for limit in [1, 2, 5, 35] {
            let paged = walk(&app, &key, &format!("{path}{and}limit={limit}"), records).await;
            assert_eq!(paged, whole, "{path} by {limit}");
        }
        let exact = app.get(&format!("{path}{and}limit={count}"), &key).await;
        assert_eq!(exact.header("link"), None, "{path}: the last page has no next");
    }
}

#[tokio::test]
async fn odds_are_ordered_by_time_event_bookmaker_market_and_record() {
    let (app, key) = start().await;
    let events = app.get("/v1/sports/mma/events", &key).await.json();
    let place: Vec<(String, String)> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            let text = |field: &str| event[field].as_str().unwrap().to_owned();
            (text("commence_time"), text("id"))
        })
        .collect();
    assert!(place.is_sorted(), "{place:?}");
    let odds = app.get("/v1/sports/mma/odds", &key).await.json();
    let keys: Vec<_> = odds
        .as_array()
        .unwrap()
        .iter()
        .map(|record| {
            let text = |field: &str| record[field].as_str().unwrap().to_owned();
            let event = place.iter().find(|(_, id)| *id == text("event_id")).unwrap().clone();
            (event, text("bookmaker"), text("market"), text("id"))
        })
        .collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let ids: HashSet<&String> = keys.iter().map(|key| &key.3).collect();
    assert_eq!(ids.len(), 36);
    let scores = app.get("/v1/sports/mma/scores", &key).await.json();
    let scored: Vec<&str> =
        scores.as_array().unwrap().iter().map(|s| s["event_id"].as_str().unwrap()).collect();
    let listed: Vec<&str> = place.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(scored, listed);
}

#[tokio::test]
async fn the_link_keeps_the_filters_and_leaves_the_key_out() {
    let (app, key) = start().await;
    let query = "market=moneyline&regions=us%2Cuk&odds_format=decimal&limit=2";
    for way in ["api_key", "api%5Fkey", "api%5fke%79"] {
        let path = format!("/v1/sports/mma/odds?{way}={key}&{query}");
        let first = app.get(&path, &key).await;
        assert_eq!(first.status, 200);
        let next = first.next_page().unwrap();
        let kept = next.strip_prefix("/v1/sports/mma/odds?").unwrap();
        assert!(kept.starts_with(query), "{kept}");
        assert!(!next.contains(key.as_str()) && !next.contains("key"), "{way}: {next}");
        let second = app.get(&next, &key).await;
        assert_eq!(second.status, 200, "{next}");
        assert_eq!(second.json().as_array().unwrap().len(), 2);
        // The cursor is replaced, not added, however it is spelt.
        let third = second.next_page().unwrap();
        assert_eq!(third.matches("cursor=").count(), 1, "{third}");
        let spelt =
            app.get(&third.replace("cursor=", "%63ursor="), &key).await.next_page().unwrap();
        assert_eq!(app.get(&spelt, &key).await.status, 200, "{spelt}");
    }
}

#[tokio::test]
async fn the_link_is_that_of_the_own_request_whoever_asked_before() {
    let (app, key) = start().await;
    let path = "/v1/sports/mma/odds?";
    let with_key = format!("limit=2&api_key={key}&market=moneyline");
    // The same answer, asked for in three ways, again and again.
    for query in
        [with_key.as_str(), "limit=2&market=moneyline", "market=moneyline&limit=2"].repeat(3)
    {
        let next = app.get(&format!("{path}{query}"), &key).await.next_page().unwrap();
        let own = query.replace(&format!("api_key={key}&"), "");
        assert!(next.starts_with(&format!("{path}{own}&cursor=")), "{query}: {next}");
    }
}

#[tokio::test]
async fn a_cursor_stays_valid_across_epochs() {
    let (app, key) = start().await;
    let path = "/v1/sports/mma/odds?limit=10";
    let whole = app.get("/v1/sports/mma/odds", &key).await.json();
    let next = app.get(path, &key).await.next_page().unwrap();
    app.publish().await;
    app.publish().await;
    let second = app.get(&next, &key).await.json();
    let ids = |list: &[Value]| -> Vec<Value> { list.iter().map(|r| r["id"].clone()).collect() };
    assert_eq!(ids(second.as_array().unwrap()), ids(&whole.as_array().unwrap()[10..20]));
}

#[tokio::test]
async fn a_cursor_of_another_kind_of_list_is_refused() {
    let (app, key) = start().await;
    let cursor_of = async |path: &str| {
        let next = app.get(path, &key).await.next_page().unwrap();
        next.rsplit_once("cursor=").unwrap().1.to_owned()
    };
    let records = cursor_of("/v1/sports/mma/odds?limit=1").await;
    let events = cursor_of("/v1/sports/mma/events?limit=1").await;
    for (path, cursor) in [
        ("/v1/sports/mma/odds?", &events),
        ("/v1/sports/mma/odds?group_by=bout&", &records),
        ("/v1/sports/mma/scores?", &records),
        ("/v1/sports/mma/events?", &records),
    ] {
        let answer = app.get(&format!("{path}cursor={cursor}"), &key).await;
        assert_eq!(answer.refusal(), (400, "invalid_parameter".to_owned()), "{path}");
        assert_eq!(answer.param().as_deref(), Some("cursor"));
    }
}

#[tokio::test]
async fn a_page_that_has_a_next_one_is_not_tagged_as_one_that_has_none() {
    let (app, key) = start().await;
    let one = app.get("/v1/sports/mma/events?limit=5", &key).await;
    assert!(one.next_page().is_some());
    let ids: Vec<String> = one
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect();
    let path = format!("/v1/sports/mma/events?event_ids={}", ids.join(","));
    let same = app.get(&path, &key).await;
    assert_eq!((same.text(), same.next_page()), (one.text(), None));
    assert_ne!(same.header("etag"), one.header("etag"));
}
