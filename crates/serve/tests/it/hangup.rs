//! Clients that disconnect after requesting a change: the change is completed, so that the store, the state in memory
//! and the audit log agree.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;

use crate::dashboard::browser::{Browser, PASSWORD, account, nowhere, percent};
use crate::harness::{Answer, INGEST_PATH, Raw, TestApp, line, ndjson};

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the operator's listener shows this number of lines accepted from a feed.
async fn wait_for_lines(app: &TestApp, feed: &str, lines: usize) {
    let begun = Instant::now();
    loop {
        let told = app.get_operator("/feeds").await.json();
        let own = told["feeds"].as_array().unwrap().iter().find(|own| own["feed"] == feed);
        if own.is_some_and(|own| own["accepted"] == lines) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "not all of {feed} was taken: {told}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_push_whose_client_hangs_up_is_taken_to_its_end() {
    let app = TestApp::start().await;
    let (feed, key) = (app.feed("hasty", None).await, app.live_key().await);
    // Enough lines that the client has disconnected before they are read.
    let lines: Vec<Value> = (0..3000)
        .map(|n| {
            let (home, away) = (format!("Home{n:05} Alpha"), format!("Away{n:05} Omega"));
            line::event(&format!("r-{n}"), "tennis", &home, &away)
        })
        .collect();
    let body = ndjson(&lines);
    let mut raw = Raw::connect(app.addr).await;
    let head = format!(
        "POST {INGEST_PATH} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {feed}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    raw.send(head.as_bytes()).await;
    raw.send(body.as_bytes()).await;
    drop(raw);
    wait_for_lines(&app, "hasty", 3000).await;
    app.publish().await;
    let events = app.get("/v1/sports/tennis/events?limit=500", &key).await.json();
    assert_eq!(events.as_array().unwrap().len(), 500);
}

#[tokio::test]
async fn a_form_whose_browser_hangs_up_is_taken_to_its_end() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    browser.get("/signup").await;
    // All places for hashing passwords are taken: the form waits while its browser disconnects.
    let others = ["one@example.com", "two@example.com"];
    let busy = others.map(|email| {
        let app = std::sync::Arc::clone(&app.service.web);
        let new = account(email, "Somebody");
        tokio::spawn(async move { app.people.sign_up(new, &nowhere()).await })
    });
    let fields = [
        ("form_token", browser.form_token()),
        ("name", "Ann"),
        ("email", "ann@example.com"),
        ("password", PASSWORD),
    ];
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", percent(value))).collect();
    let form = fields.join("&");
    let mut raw = Raw::connect(app.addr).await;
    let head = format!(
        "POST /signup HTTP/1.1\r\nhost: {0}\r\norigin: http://{0}\r\ncookie: {1}\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {2}\r\n\r\n",
        app.addr,
        browser.cookie.as_deref().unwrap(),
        form.len()
    );
    raw.send(head.as_bytes()).await;
    raw.send(form.as_bytes()).await;
    drop(raw);
    for other in busy {
        other.await.unwrap().unwrap();
    }
    // The account and its audit entry.
    let begun = Instant::now();
    let made = async || {
        let log = app.service.web.people.audit(None, None).await.unwrap();
        log.iter().any(|line| line.action == "account.created" && line.who == "ann@example.com")
    };
    while !made().await {
        assert!(begun.elapsed() < PATIENCE, "the account was not made");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let fields = [("email", "ann@example.com"), ("password", PASSWORD)];
    assert_eq!(browser.post("/signin", &fields).await.status, 303);
    // A request that changes nothing may be dropped with its client.
    assert_eq!(Answer::of(app.request(Method::GET, "/signin")).await.status, 200);
}
