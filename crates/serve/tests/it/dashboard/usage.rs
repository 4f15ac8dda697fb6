//! Usage, failures and alerts as their owner sees them, and nobody else.

use std::time::Duration;

use accounts::{Actor, KeyKind, Limits, NewKey};

use super::browser::{Browser, account_id, between};
use crate::harness::TestApp;

/// A key of an account with these limits.
async fn key_of(app: &TestApp, email: &str, name: &str, per_day: u32) -> (String, String) {
    let limits =
        Limits { burst_per_minute: 1000, requests_per_day: per_day, requests_per_month: None };
    let new = NewKey {
        name: name.to_owned(),
        limits,
        account_id: Some(account_id(app, email).await),
        ..NewKey::of_kind(KeyKind::Sandbox)
    };
    let (secret, record) =
        app.service.api.accounts.create_key(new, &Actor::command_line()).await.unwrap();
    (secret.expose().to_owned(), record.id.as_str().to_owned())
}

/// The total number of requests on the page.
fn total(page: &str) -> String {
    between(page, "Requests <span class=\"soft num\">", "<").unwrap().replace('\u{202f}', "")
}

#[tokio::test]
async fn every_request_is_shown_once_before_and_after_it_is_written_and_after_a_restart() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let (key, id) = key_of(&app, "ann@example.com", "site", 1000).await;
    for _ in 0..7 {
        assert_eq!(app.get("/v1/books", &key).await.status, 200);
    }
    assert_eq!(app.get("/v1/status", &key).await.status, 200);
    assert_eq!(app.get("/v1/sports/mma/odds?limit=0", &key).await.status, 400);
    let page = ann.get("/dashboard/usage").await;
    assert_eq!(total(page.text()), "9");
    for there in ["List bookmakers", "Get odds", "API status", "Answered", "site"] {
        assert!(page.text().contains(there), "{there}");
    }
    app.service.api.write_usage().await.unwrap();
    app.service.api.write_usage().await.unwrap();
    assert_eq!(total(ann.get("/dashboard/usage").await.text()), "9");
    for range in ["24h", "7d", "30d", "1y"] {
        let path = format!("/dashboard/usage?range={range}&key={id}");
        assert_eq!(total(ann.get(&path).await.text()), "9", "{range}");
    }
    // Two hours later the day still includes them.
    app.advance(Duration::from_secs(7200));
    assert_eq!(total(ann.get("/dashboard/usage").await.text()), "9");
    let dir = app.stop().await;
    let app = TestApp::builder().on(dir).start().await;
    let mut ann = Browser::new(&app);
    ann.sign_in("ann@example.com").await;
    assert_eq!(total(ann.get("/dashboard/usage").await.text()), "9");
}

#[tokio::test]
async fn a_failed_call_is_explained_with_its_request_id_and_without_secrets() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let (key, id) = key_of(&app, "ann@example.com", "site", 1000).await;
    let bad = app.get_without_key(&format!("/v1/sports/mma/odds?limit=0&api_key={key}")).await;
    assert_eq!(bad.status, 400);
    let request_id = bad.header("x-request-id").unwrap().to_owned();
    for _ in 0..3 {
        app.get("/v1/sports/cricket/odds", &key).await;
    }
    let page = ann.get("/dashboard/usage").await;
    let text = page.text();
    assert!(
        text.contains(&request_id)
            && text.contains("GET /v1/sports/mma/odds?limit=0&#38;api_key=***")
    );
    assert!(
        text.contains("/docs/errors#error-invalid_parameter")
            && text.contains("error-sport_not_found")
    );
    assert!(text.contains("3 times"), "the same again is one line");
    assert!(!text.contains(&key) && !text.contains(key.get(8..).unwrap()), "no key is shown");
    let of_key = ann.get(&format!("/dashboard/usage?key={id}")).await;
    assert!(of_key.text().contains(&request_id));
    app.get("/v4/sports/mma/odds", &key).await;
    let page = ann.get("/dashboard/usage").await;
    assert!(page.text().contains("/docs/v4#missing-region"));
    assert_eq!(page.text().matches("v4_odds").count(), 2, "of the endpoint and of the failure");
}

#[tokio::test]
async fn nobody_sees_anybody_elses_usage_or_failures() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let mut bob = Browser::developer(&app, "bob@example.com").await;
    let (key, id) = key_of(&app, "ann@example.com", "anns secret project", 10).await;
    for _ in 0..10 {
        app.get("/v1/books", &key).await;
    }
    let failed = app.get("/v1/sports/mma/odds?limit=0", &key).await;
    let request_id = failed.header("x-request-id").unwrap().to_owned();
    assert_eq!(total(ann.get(&format!("/dashboard/usage?key={id}")).await.text()), "11");
    assert_eq!(bob.get(&format!("/dashboard/usage?key={id}")).await.status, 404);
    for path in [
        "/dashboard/usage",
        "/dashboard/explore",
        "/dashboard",
        &format!("/dashboard/explore?key={id}"),
    ] {
        let page = bob.get(path).await;
        for secret in [&request_id, &id, "secret project"] {
            assert!(!page.text().contains(secret), "{path} has {secret}");
        }
    }
    let run =
        [("endpoint", "list_books"), ("key", id.as_str()), ("act", "run"), ("touched", "yes")];
    let ran = bob.post("/dashboard/explore", &run).await;
    assert_eq!(ran.status, 400, "he has no key to run it with");
    assert_eq!(total(ann.get("/dashboard/usage").await.text()), "11");
}

#[tokio::test]
async fn a_quota_running_low_is_told_on_every_page_and_by_mail_once() {
    let app = TestApp::builder().mail().start().await;
    let people = &app.service.web.people;
    let mut ann = Browser::operator(&app).await;
    let (key, _) = key_of(&app, "op@example.com", "site", 20).await;
    let spend = async |n: usize| {
        for _ in 0..n {
            assert_eq!(app.get("/v1/books", &key).await.status, 200);
        }
        app.service.web.send_quota_alerts().await;
    };
    spend(9).await;
    assert!(!ann.get("/dashboard/usage").await.text().contains("has used"));
    assert_eq!(people.mail_stats().queued, 0);
    spend(1).await;
    let email = app.email().await;
    assert_eq!(email.to.as_str(), "op@example.com");
    assert!(email.subject.starts_with("50 % of the day") && email.subject.contains("site"));
    assert!(email.body.contains("https://odds.example.com/dashboard/usage?key="));
    for path in ["/dashboard", "/dashboard/usage", "/dashboard/security"] {
        assert!(
            ann.get(path).await.text().contains("has used 50 % of its requests for the day"),
            "{path}"
        );
    }
    spend(5).await;
    assert_eq!(people.mail_stats().queued, 1, "nothing new: the first email is all there was");
    spend(1).await;
    assert!(app.email().await.subject.starts_with("80 %"));
    spend(4).await;
    assert!(app.email().await.subject.starts_with("95 %"));
    assert!(
        ann.get("/dashboard/usage").await.text().contains("Used up: requests are answered 429")
    );
    app.service.web.send_quota_alerts().await;
    assert_eq!(people.mail_stats().queued, 3);
}

#[tokio::test]
async fn a_hostile_client_is_shown_as_text() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let (key, id) = key_of(&app, "ann@example.com", "site", 1000).await;
    let evil = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>";
    let hostile = format!("/v1/sports/mma/odds?limit={}", super::browser::percent(evil));
    for path in ["/v1/books", hostile.as_str(), "/v1/%3Cscript%3Ealert(1)"] {
        app.get_with(path, &key, &[("user-agent", evil)]).await;
    }
    let key_path = format!("/dashboard/keys/{id}");
    let revoke = format!("{key_path}/revoke");
    for path in ["/dashboard", "/dashboard/usage", &key_path, &revoke] {
        let page = ann.get(path).await;
        assert!(page.text().contains("alert(1)"), "{path} does not show it at all");
        assert!(
            !page.text().contains("<script>alert") && !page.text().contains("<img src=x"),
            "{path}"
        );
    }
}
