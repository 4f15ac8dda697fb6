//! Clients that want more keys and answers than they may have, and anonymous clients that attack their accounts.

use std::time::Duration;

use crate::dashboard::browser::{Browser, account_id, between};
use crate::harness::{Answer, TestApp};

fn secret(page: &Answer) -> String {
    between(page.text(), "id=\"secret\">", "<").unwrap().to_owned()
}

/// A developer with production access and these limits.
async fn limited<'a>(app: &'a TestApp, limits: &[(&str, &str)]) -> (Browser<'a>, Browser<'a>) {
    let mut ann = Browser::developer(app, "ann@example.com").await;
    let mut op = Browser::operator(app).await;
    ann.post("/dashboard/access", &[("purpose", "A comparison page for readers.")]).await;
    let request = app.service.web.people.access_requests(None).await.unwrap()[0].id.clone();
    assert_eq!(op.post(&format!("/console/requests/{request}/approve"), &[]).await.status, 303);
    let id = account_id(app, "ann@example.com").await;
    let set = op.post(&format!("/console/accounts/{id}/limits"), limits).await;
    assert_eq!(set.status, 303, "{}", set.text());
    (ann, op)
}

async fn revoke_all(app: &TestApp, browser: &mut Browser<'_>) {
    let id = account_id(app, "ann@example.com").await;
    for key in app.service.api.accounts.live_keys_of(&id).await.unwrap() {
        let path = format!("/dashboard/keys/{}/revoke", key.record.id);
        assert_eq!(browser.post(&path, &[]).await.status, 303);
    }
}

/// Sends requests until a limit is reached, and returns the number of answers. A busy machine may defer some.
async fn ask_until_limited(app: &TestApp, path: &str, key: &str) -> (u32, Answer) {
    let mut answers = 0;
    loop {
        let answer = app.get(path, key).await;
        match answer.status {
            200 => answers += 1,
            503 => {}
            _ => return (answers, answer),
        }
    }
}

#[tokio::test]
async fn keys_made_anew_bring_neither_a_day_nor_a_month_nor_a_minute() {
    let app = TestApp::start().await;
    let limits = [("keys_max", "1"), ("requests_per_day", "5"), ("requests_per_month", "7")];
    let (mut ann, _op) = limited(&app, &limits).await;
    let mut answers = 0;
    for day in 0..2 {
        for _ in 0..4 {
            let key = secret(&ann.post("/dashboard/keys", &[("kind", "production")]).await);
            let (more, refused) = ask_until_limited(&app, "/v1/books", &key).await;
            assert_eq!(refused.refusal(), (429, "quota_exceeded".to_owned()));
            assert_eq!(refused.header("x-requests-remaining"), Some("0"));
            answers += more;
            revoke_all(&app, &mut ann).await;
        }
        assert_eq!(answers, [5, 7][day]);
        app.advance(Duration::from_secs(86_400));
        ann.sign_in("ann@example.com").await;
    }
    // A minute of sandbox keys, sixty requests for each active key.
    let mut passed = 0;
    for _ in 0..3 {
        let key = secret(&ann.post("/dashboard/keys", &[("kind", "sandbox")]).await);
        let (more, refused) = ask_until_limited(&app, "/v1/status", &key).await;
        assert_eq!(refused.refusal(), (429, "rate_limited".to_owned()));
        passed += more;
        revoke_all(&app, &mut ann).await;
    }
    // Deferred requests are counted, too.
    assert!((30..=60).contains(&passed), "{passed}");
}

#[tokio::test]
async fn a_refusal_says_that_the_day_is_the_accounts() {
    let app = TestApp::start().await;
    let (mut ann, _op) = limited(&app, &[("requests_per_day", "3")]).await;
    let one = secret(&ann.post("/dashboard/keys", &[("kind", "production")]).await);
    let two = secret(&ann.post("/dashboard/keys", &[("kind", "production")]).await);
    for _ in 0..3 {
        assert_eq!(app.get("/v1/books", &one).await.status, 200);
    }
    let refused = app.get("/v1/books", &two).await;
    assert_eq!(refused.refusal(), (429, "quota_exceeded".to_owned()));
    let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(said, "quota of the account reached: 3 requests per day (UTC)");
    assert_eq!(refused.header("x-requests-used"), Some("3"));
    assert_eq!(app.get("/v1/status", &two).await.status, 200, "it answers all the same");
}

#[tokio::test]
async fn making_keys_without_end_is_refused_and_the_page_stays_small() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let mut made = 0;
    let refused = loop {
        let page = ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
        if page.status != 200 {
            break page;
        }
        made += 1;
        assert!(made < 100, "keys without end");
        revoke_all(&app, &mut ann).await;
    };
    assert_eq!((refused.status, made), (429, 30));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3601).contains(&wait), "{wait}");
    for _ in 0..3 {
        app.advance(Duration::from_secs(3601));
        for _ in 0..30 {
            ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
            revoke_all(&app, &mut ann).await;
        }
    }
    let first = ann.get("/dashboard").await;
    assert_eq!(first.text().matches("<li><code>").count(), 50);
    assert!(first.text().contains("/dashboard?ended=50"));
    let last = ann.get("/dashboard?ended=100").await;
    assert_eq!(last.text().matches("<li><code>").count(), 20);
    assert!(!last.text().contains("ended=150"));
}

#[tokio::test]
async fn a_strangers_tries_are_on_the_audit_page() {
    let app = TestApp::start().await;
    let _ann = Browser::developer(&app, "ann@example.com").await;
    let mut op = Browser::operator(&app).await;
    let mut stranger = Browser::new(&app);
    stranger.get("/signin").await;
    let tried = [("email", "ann@example.com"), ("password", "not her password")];
    let refused = stranger.post("/signin", &tried).await;
    assert!(refused.text().contains("Wrong email or password"), "{}", refused.text());
    let page = op.get("/console/audit?action=session.refused").await;
    assert!(page.text().contains("somebody not signed in"), "{}", page.text());
    assert!(page.text().contains("ann@example.com"));
    let page = op.get("/console/audit?action=link.issued").await;
    assert!(page.text().contains("the first operator"), "{}", page.text());
}
