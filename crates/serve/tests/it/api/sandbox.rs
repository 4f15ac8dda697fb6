//! The sandbox is a separate world, always running, the same everywhere (D14, D19).

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use domain::Market;
use serde_json::{Value, json};

use crate::harness::TestApp;

const SPORTS: [&str; 5] = ["mma", "boxing", "tennis", "american_football", "golf"];
const ALL_REGIONS: &str = "regions=us,uk,eu,au&limit=500";

/// Follows `Link` to the end and returns all bodies.
async fn pages(app: &TestApp, key: &str, path: &str) -> Vec<String> {
    let mut bodies = Vec::new();
    let mut next = Some(path.to_owned());
    while let Some(page) = next {
        let answer = app.get(&page, key).await;
        assert_eq!(answer.status, 200, "{page}");
        next = answer.next_page();
        bodies.push(answer.text().to_owned());
    }
    bodies
}

async fn list(app: &TestApp, key: &str, path: &str) -> Vec<Value> {
    let bodies = pages(app, key, path).await;
    bodies.iter().flat_map(|body| serde_json::from_str::<Vec<Value>>(body).unwrap()).collect()
}

/// The pages of each path.
type Seen = BTreeMap<String, Vec<String>>;

/// All pages, by path.
async fn everything(app: &TestApp, key: &str) -> Seen {
    let mut paths = vec!["/v1/sports".to_owned(), "/v1/books".to_owned()];
    for sport in SPORTS {
        paths.push(format!("/v1/sports/{sport}/odds?{ALL_REGIONS}"));
        paths.push(format!("/v1/sports/{sport}/scores?limit=500"));
        paths.push(format!("/v1/sports/{sport}/events?limit=500"));
    }
    for sport in ["mma", "boxing"] {
        paths.push(format!("/v1/sports/{sport}/odds?group_by=bout&{ALL_REGIONS}"));
    }
    let mut seen = BTreeMap::new();
    for path in paths {
        let bodies = pages(app, key, &path).await;
        seen.insert(path, bodies);
    }
    seen
}

fn assert_same(one: &Seen, other: &Seen) {
    for (path, bodies) in one {
        for (page, (one, other)) in bodies.iter().zip(&other[path]).enumerate() {
            let differs = one.bytes().zip(other.bytes()).position(|(a, b)| a != b);
            let from = differs.unwrap_or(one.len().min(other.len())).saturating_sub(200);
            let around = |text: &str| {
                let bytes: Vec<u8> = text.bytes().skip(from).take(400).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            };
            assert!(one == other, "{path} page {page}:\n{}\n{}", around(one), around(other));
        }
        assert_eq!(bodies.len(), other[path].len(), "{path}");
    }
}

#[tokio::test]
async fn the_sandbox_has_every_sport_status_and_market_and_a_stale_bookmaker() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.sandbox_key().await;
    let (mut statuses, mut markets) = (HashSet::new(), HashSet::new());
    for sport in SPORTS {
        let events = list(&app, &key, &format!("/v1/sports/{sport}/events?limit=500")).await;
        assert!(events.iter().any(|event| event["status"] == "scheduled"), "{sport}");
        for event in &events {
            statuses.insert(event["status"].as_str().unwrap().to_owned());
        }
        for record in list(&app, &key, &format!("/v1/sports/{sport}/odds?{ALL_REGIONS}")).await {
            markets.insert(record["market"].as_str().unwrap().to_owned());
        }
        let usual = app.get(&format!("/v1/sports/{sport}/odds"), &key).await.json();
        assert!(!usual.as_array().unwrap().is_empty(), "{sport} has odds without any parameter");
    }
    assert_eq!(statuses.len(), 3, "{statuses:?}");
    assert_eq!(markets, Market::ALL.map(|market| market.key().to_owned()).into());
    let status = app.get("/v1/status", &key).await.json();
    assert_eq!(status["status"], "degraded", "one bookmaker is always stale");
    assert_eq!(status["sports_active"], 5);
    // And nothing of it reaches a live key.
    let live = app.live_key().await;
    for sport in SPORTS {
        for kind in ["odds", "events", "scores"] {
            let answer = app.get(&format!("/v1/sports/{sport}/{kind}"), &live).await;
            assert_eq!(answer.json(), json!([]), "{sport} {kind}");
        }
    }
}

#[tokio::test]
async fn every_node_shows_the_same_sandbox_whenever_it_was_started() {
    let old = TestApp::builder().sandbox(7).start().await;
    let key = old.sandbox_key().await;
    let before = everything(&old, &key).await;
    for _ in 0..2 {
        old.publish_both().await;
    }
    let now = old.now().plus(Duration::from_secs(9));
    let young = TestApp::builder().sandbox(7).starting_at(now).start().await;
    let shown = everything(&old, &key).await;
    let theirs = everything(&young, &young.sandbox_key().await).await;
    assert_same(&shown, &theirs);
    assert!(shown != before, "something plays");
}

#[tokio::test]
async fn nodes_started_days_apart_show_the_same_sandbox() {
    let old = TestApp::builder().sandbox(7).start().await;
    let key = old.sandbox_key().await;
    // Continuously for a while, asleep for days, continuously again.
    for by in [10 * 60, 4 * 86_400 + 17 * 60, 5 * 60] {
        old.advance(Duration::from_secs(by));
        old.publish_both().await;
    }
    let young = TestApp::builder().sandbox(7).starting_at(old.now()).start().await;
    let theirs = everything(&young, &young.sandbox_key().await).await;
    assert_same(&everything(&old, &key).await, &theirs);
}

#[tokio::test]
async fn the_sandbox_is_the_same_after_a_restart() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.sandbox_key().await;
    app.publish_both().await;
    let before = everything(&app, &key).await;
    let now = app.now().plus(Duration::from_secs(3));
    let dir = app.stop().await;
    let again = TestApp::builder().sandbox(7).starting_at(now).on(dir).start().await;
    assert_same(&before, &everything(&again, &key).await);
}
