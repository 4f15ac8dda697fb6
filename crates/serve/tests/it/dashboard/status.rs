//! The status page, the assets, and switching pages off.

use std::sync::Arc;
use std::time::Duration;

use accounts::PeopleRules;
use web::WebSettings;

use super::browser::{Browser, between};
use crate::harness::TestApp;
use crate::test_market::{TestMarket, lines};

/// Keeps all sources fresh for three quarters of an hour: brief use of the sandbox causes no incident.
async fn keep_fresh(board: &TestMarket, browser: &mut Browser<'_>) {
    for _ in 0..3 {
        board.app.advance(Duration::from_secs(900));
        let again: String = lines().iter().map(|line| format!("{line}\n")).collect();
        board.app.push(&board.feed, again).await;
        board.app.publish().await;
        browser.get("/status.json").await;
    }
}

#[tokio::test]
async fn a_source_that_falls_silent_is_shown_as_delayed_with_since_when() {
    let board = TestMarket::start().await;
    board.app.publish().await;
    let mut browser = Browser::new(&board.app);
    keep_fresh(&board, &mut browser).await;
    let json = browser.get("/status.json").await.json();
    assert_eq!(json["status"], "operational");
    let sport = &json["live"][0];
    assert_eq!(sport["sources"][0]["state"], "fresh");
    let read_at = domain::Timestamp::parse(sport["sources"][0]["last_read_at"].as_str().unwrap());
    let read_at = read_at.unwrap();
    board.app.advance(Duration::from_secs(600));
    let json = browser.get("/status.json").await.json();
    assert_eq!(json["status"], "degraded");
    let source = &json["live"][0]["sources"][0];
    assert_eq!(source["state"], "delayed");
    let since = read_at.plus(Duration::from_secs(90)).to_string();
    assert_eq!(source["since"].as_str(), Some(since.as_str()));
    let page = browser.get("/status").await;
    assert!(page.text().contains("Some sources are delayed"));
    let incidents = page.text().split_once("<h2>Incidents").unwrap().1;
    assert_eq!(incidents.matches("<tr>").count(), 2, "a head and one incident: {incidents}");
    assert!(
        !page.text().contains("<h2>Sandbox</h2>") && page.text().contains("/status?sandbox=yes")
    );
    assert!(browser.get("/status?sandbox=yes").await.text().contains("<h2>Sandbox</h2>"));
    let feed = browser.get("/status.atom").await;
    assert!(feed.text().contains("is delayed</title>") && feed.text().contains(&since));
    assert_eq!(feed.header("content-type"), Some("application/atom+xml; charset=utf-8"));
}

#[tokio::test]
async fn a_day_is_told_in_quarters_of_an_hour_and_outlives_a_restart() {
    // Opening the page also updates the record. Nothing else does here, so the times in it do not depend on chance.
    let board = TestMarket::start().await;
    let mut browser = Browser::new(&board.app);
    keep_fresh(&board, &mut browser).await;
    board.app.advance(Duration::from_secs(1800));
    browser.get("/status.json").await;
    board.push(&[serde_json::json!({ "type": "heartbeat", "bookmaker": "fanduel" })]).await;
    board.app.advance(Duration::from_secs(900));
    board.push(&[serde_json::json!({ "type": "heartbeat", "bookmaker": "fanduel" })]).await;
    let fanduel = |json: &serde_json::Value| {
        let sources = json["live"][0]["sources"].as_array().unwrap().clone();
        sources.into_iter().find(|source| source["bookmaker"] == "fanduel").unwrap()
    };
    let json = browser.get("/status.json").await.json();
    let day = fanduel(&json)["last_24h"].as_array().unwrap().clone();
    assert_eq!(day.len(), 96);
    assert_eq!(day[92..], ["fresh", "unknown", "delayed", "fresh"]);
    let incident = |json: &serde_json::Value| {
        let incidents = json["incidents"].as_array().unwrap().clone();
        incidents.into_iter().find(|own| own["bookmaker"] == "fanduel" && own["sport"] == "mma")
    };
    assert!(incident(&json).unwrap()["ended_at"].is_string());
    let page = browser.get("/status").await;
    assert!(page.text().contains("class=\"day\"") && page.text().contains("was delayed for"));
    let feed = browser.get("/status.atom").await;
    assert!(feed.text().contains("was delayed for") && feed.text().contains("is delayed</title>"));
    let now = board.app.now();
    let stopping = tokio_util::sync::CancellationToken::new();
    stopping.cancel();
    web::keep_pages(Arc::clone(&board.app.service.web), stopping).await;
    let dir = board.app.stop().await;
    let app = TestApp::builder().on(dir).starting_at(now).keeping_pages().start().await;
    let mut browser = Browser::new(&app);
    let begun = std::time::Instant::now();
    loop {
        let json = browser.get("/status.json").await.json();
        let day = fanduel(&json)["last_24h"].clone();
        if day[92] == "fresh" && incident(&json).is_some() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{day}");
    }
}

#[tokio::test]
async fn assets_are_kept_for_good_under_names_of_their_content_and_packed() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    let page = browser.get("/signin").await;
    let path = between(page.text(), "rel=\"stylesheet\" href=\"", "\"").unwrap().to_owned();
    let plain = browser.get(&path).await;
    assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert!(plain.header("set-cookie").is_none());
    let packed = app.get_with(&path, "", &[("accept-encoding", "br")]).await;
    assert_eq!(packed.header("content-encoding"), Some("br"));
    assert!(packed.body.len() * 3 < plain.body.len());
    assert_eq!(browser.get("/assets/app.0000000000000000.css").await.status, 404);
}

#[tokio::test]
async fn pages_that_are_switched_off_are_not_there() {
    let off = WebSettings { enabled: false, ..WebSettings::default() };
    let app = TestApp::builder().pages(PeopleRules::default(), off).start().await;
    for path in ["/signin", "/dashboard", "/status", "/console"] {
        assert_eq!(app.get_without_key(path).await.refusal(), (404, "not_found".to_owned()));
    }
    let private = WebSettings { status_page: false, ..WebSettings::default() };
    let app = TestApp::builder().pages(PeopleRules::default(), private).start().await;
    let mut browser = Browser::new(&app);
    let closed = WebSettings { docs: false, ..WebSettings::default() };
    let quiet = TestApp::builder().pages(PeopleRules::default(), closed).start().await;
    assert_eq!(quiet.get_without_key("/docs").await.status, 404);
    assert_eq!(quiet.get_without_key("/openapi.json").await.status, 200);
    assert!(!Browser::new(&quiet).get("/signin").await.text().contains("href=\"/docs\""));
    for path in ["/status", "/status.json", "/status.atom"] {
        assert_eq!(browser.get(path).await.status, 404);
    }
    assert!(!browser.get("/signin").await.text().contains("href=\"/status\""));
}
