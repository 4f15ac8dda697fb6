//! Tasks of developers and operators, from the first page to the last.

use std::time::Duration;

use accounts::{PeopleRules, SignUp};
use reqwest::Method;
use web::WebSettings;

use super::browser::{Browser, PASSWORD, account, account_id, between, nowhere};
use crate::harness::TestApp;

/// The secret on a page that shows one.
fn secret(page: &str) -> String {
    between(page, "<code id=\"secret\">", "</code>").expect("a secret").to_owned()
}

fn first_key_id(page: &str) -> String {
    between(page, "href=\"/dashboard/keys/", "\"").expect("a key").to_owned()
}

#[tokio::test]
async fn a_stranger_signs_up_and_has_a_sandbox_key_that_works() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    browser.get("/signup").await;
    let fields = [("name", "Ann"), ("email", "Ann@Example.com"), ("password", PASSWORD)];
    let done = browser.post("/signup", &fields).await;
    assert_eq!((done.status, done.header("location")), (303, Some("/dashboard")), "signed in");
    assert!(browser.get("/dashboard").await.text().contains("No keys yet"));
    let made = browser.post("/dashboard/keys", &[("name", "laptop"), ("kind", "sandbox")]).await;
    let key = secret(made.text());
    assert!(key.starts_with("sk_test_"));
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    let listed = browser.get("/dashboard").await;
    assert!(listed.text().contains("laptop") && !listed.text().contains(&key), "shown once");
    assert!(listed.text().contains("just now"), "it was used");
}

#[tokio::test]
async fn who_signs_up_again_signs_in_with_the_password_they_have() {
    let app = TestApp::start().await;
    Browser::developer(&app, "ann@example.com").await;
    let mut browser = Browser::new(&app);
    browser.get("/signup").await;
    let own = [("name", "Ann"), ("email", "ann@example.com"), ("password", PASSWORD)];
    let other =
        [("name", "Ann"), ("email", "ann@example.com"), ("password", "quite another phrase")];
    let page = browser.post("/signup", &other).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("Use your existing password"), "{}", page.text());
    assert!(page.text().contains("value=\"ann@example.com\""), "the address is filled in");
    assert_eq!(browser.get("/dashboard").await.status, 303, "nobody is signed in by that");
    browser.get("/signup").await;
    assert_eq!(browser.post("/signup", &own).await.header("location"), Some("/dashboard"));
    assert_eq!(app.service.web.people.accounts().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_form_for_a_key_that_is_sent_twice_makes_one_key() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    for kept in 1..=2 {
        let page = ann.get("/dashboard").await;
        let newest = between(page.text(), "name=\"newest\" value=\"", "\"").unwrap().to_owned();
        let form = [("kind", "sandbox"), ("newest", newest.as_str())];
        app.advance(Duration::from_secs(1));
        assert_eq!(ann.post("/dashboard/keys", &form).await.status, 200);
        let again = ann.post("/dashboard/keys", &form).await;
        assert_eq!(again.header("location"), Some("/dashboard?done=key-made"), "{}", again.text());
        assert_eq!(app.service.api.accounts.list_keys().await.unwrap().len(), kept);
    }
}

#[tokio::test]
async fn the_push_on_a_new_feeds_page_works_as_it_stands() {
    let app = TestApp::start().await;
    let mut op = Browser::operator(&app).await;
    let page = op.post("/console/feeds", &[("name", "mine"), ("bookmaker", "")]).await;
    let token = secret(page.text());
    let body = |id: &str| {
        let line = between(page.text(), &format!("id=\"{id}\">"), "</code>").unwrap();
        let body = between(line, "--data-binary '", "'").unwrap_or_else(|| panic!("{line}"));
        body.replace("&#34;", "\"")
    };
    let receipt = app.post(&token, body("push").into_bytes(), None).await.json();
    assert_eq!(
        (&receipt["accepted"], &receipt["rejected"]),
        (&2.into(), &serde_json::json!([])),
        "{receipt}"
    );
    app.publish().await;
    let key = app.live_key().await;
    let read = between(page.text(), "id=\"read\">", "</code>").unwrap();
    let read = format!("/v1/{}", between(read, "/v1/", "'").unwrap());
    assert_eq!(app.get(&read, &key).await.json().as_array().unwrap().len(), 1, "{read}");
    assert_eq!(app.post(&token, body("remove").into_bytes(), None).await.json()["accepted"], 1);
    app.publish().await;
    assert_eq!(app.get(&read, &key).await.json().as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn a_key_is_rotated_with_and_without_overlap_and_revoked() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let made = ann.post("/dashboard/keys", &[("name", "site"), ("kind", "sandbox")]).await;
    let first = secret(made.text());
    let id = first_key_id(ann.get("/dashboard").await.text());
    let rotate = format!("/dashboard/keys/{id}/rotate");
    assert_eq!(ann.post(&rotate, &[("overlap", "forever")]).await.status, 400);
    // The newest key is listed first.
    app.advance(Duration::from_secs(1));
    let second = secret(ann.post(&rotate, &[("overlap", "24h")]).await.text());
    assert_eq!(app.get("/v1/books", &first).await.status, 200, "the overlap");
    assert_eq!(app.get("/v1/books", &second).await.status, 200);
    assert_eq!(ann.post(&rotate, &[("overlap", "none")]).await.status, 400, "rotated already");

    let id = first_key_id(ann.get("/dashboard").await.text());
    let rotate = format!("/dashboard/keys/{id}/rotate");
    app.advance(Duration::from_secs(1));
    let third = secret(ann.post(&rotate, &[("overlap", "none")]).await.text());
    assert_eq!(app.get("/v1/books", &second).await.status, 401, "ended at once");

    let id = first_key_id(ann.get("/dashboard").await.text());
    let revoke = format!("/dashboard/keys/{id}/revoke");
    let confirm = ann.get(&revoke).await;
    assert!(confirm.text().contains("is refused with <strong>401</strong>"));
    assert_eq!(app.get("/v1/books", &third).await.status, 200, "asking changes nothing");
    let done = ann.post(&revoke, &[]).await;
    assert_eq!(done.header("location"), Some("/dashboard?done=key-revoked"));
    assert_eq!(app.get("/v1/books", &third).await.status, 401);
}

#[tokio::test]
async fn production_keys_come_after_an_operators_approval() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let mut op = Browser::operator(&app).await;
    let wish = [("name", "live"), ("kind", "production"), ("group", "combat")];
    assert_eq!(ann.post("/dashboard/keys", &wish).await.status, 400);
    assert_eq!(ann.post("/dashboard/access", &[("purpose", "short")]).await.status, 400);
    let purpose = [("purpose", "A comparison page for readers.")];
    assert_eq!(ann.post("/dashboard/access", &purpose).await.status, 303);
    let requests = op.get("/console/requests").await;
    assert!(requests.text().contains("A comparison page for readers."));
    let id = between(requests.text(), "/console/requests/", "/approve").unwrap().to_owned();
    let approve = format!("/console/requests/{id}/approve");
    assert_eq!(op.post(&approve, &[("note", "welcome")]).await.status, 303);
    assert!(ann.get("/dashboard/access").await.text().contains("welcome"));
    let key = secret(ann.post("/dashboard/keys", &wish).await.text());
    assert!(key.starts_with("sk_live_"));
    assert_eq!(app.get("/v1/sports/mma/events", &key).await.status, 200);
    assert_eq!(app.get("/v1/sports/golf/events", &key).await.status, 403, "restricted to combat");
    let log = op.get("/console/audit").await;
    for action in ["access.requested", "access.approved", "key.created", "session.started"] {
        assert!(log.text().contains(action), "{action}");
    }
    assert!(log.text().contains("127.0.0.1") && !log.text().contains(&key));
}

#[tokio::test]
async fn an_account_without_room_for_more_keys_is_told_so() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    for _ in 0..20 {
        assert_eq!(ann.post("/dashboard/keys", &[("kind", "sandbox")]).await.status, 200);
    }
    let refused = ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("at most 20 active keys"));
    let id = first_key_id(ann.get("/dashboard").await.text());
    let rotate = format!("/dashboard/keys/{id}/rotate");
    assert_eq!(ann.post(&rotate, &[("overlap", "7d")]).await.status, 400, "both would be in force");
    assert_eq!(ann.post(&rotate, &[("overlap", "none")]).await.status, 200);
}

#[tokio::test]
async fn an_operator_suspends_an_account_with_its_keys_and_streams_and_lets_it_in_again() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let mut op = Browser::operator(&app).await;
    let key = secret(ann.post("/dashboard/keys", &[("kind", "sandbox")]).await.text());
    let id = account_id(&app, "ann@example.com").await;
    op.get("/console/accounts").await;
    let suspend = format!("/console/accounts/{id}/suspend");
    let stream = app.request(Method::GET, "/v1/stream").header("X-API-Key", &key);
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let told = ["Suspend ann@example.com?", "1 active keys"];
    assert_eq!(op.confirm(&suspend, &[], &told).await.status, 303);
    let metrics = app.get_operator("/metrics").await;
    let open = metrics.text().lines().filter(|line| line.starts_with("linesman_stream_open{"));
    assert!(
        open.clone().count() > 0 && open.clone().all(|line| line.ends_with(" 0")),
        "{}",
        metrics.text()
    );
    let sent = stream.text().await.unwrap();
    assert!(sent.contains("\nevent: end\ndata: {\"code\":\"authentication_failed\","), "{sent}");
    assert_eq!(app.get("/v1/books", &key).await.status, 401);
    assert_eq!(ann.get("/dashboard").await.header("location"), Some("/signin?next=/dashboard"));
    assert_eq!(op.post(&format!("/console/accounts/{id}/resume"), &[]).await.status, 303);
    assert_eq!(app.get("/v1/books", &key).await.status, 200);
    let own = account_id(&app, "op@example.com").await;
    assert_eq!(op.post(&format!("/console/accounts/{own}/suspend"), &[]).await.status, 400);
}

#[tokio::test]
async fn an_operator_closes_and_opens_the_service_and_makes_feed_tokens() {
    let app = TestApp::start().await;
    let mut op = Browser::operator(&app).await;
    let key = app.live_key().await;
    let on = [("state", "on"), ("minutes", "5")];
    op.post("/console/maintenance", &on).await;
    assert_eq!(app.get("/v1/books", &key).await.status, 200, "asking changes nothing");
    assert_eq!(op.confirm("/console/maintenance", &on, &["503", "5 min"]).await.status, 303);
    let closed = app.get("/v1/books", &key).await;
    assert_eq!((closed.status, closed.header("retry-after")), (503, Some("300")));
    assert!(op.get("/console").await.text().contains("Closed for maintenance"));
    assert_eq!(
        op.post("/console/maintenance", &[("state", "on"), ("minutes", "0")]).await.status,
        400
    );
    assert_eq!(op.post("/console/maintenance", &[("state", "off")]).await.status, 303);
    assert_eq!(app.get("/v1/books", &key).await.status, 200);

    let feed = [("name", "one"), ("bookmaker", "pinnacle")];
    let token = secret(op.post("/console/feeds", &feed).await.text());
    assert_eq!(app.post(&token, b"\n".to_vec(), None).await.status, 200);
    assert_eq!(op.post("/console/feeds", &feed).await.status, 400, "there is one already");
    let told = ["Revoke the token of one?", "cannot be undone"];
    assert_eq!(op.confirm("/console/feeds/one/revoke", &[], &told).await.status, 303);
    assert_eq!(app.post(&token, b"\n".to_vec(), None).await.status, 401);
}

#[tokio::test]
async fn the_second_factor_is_set_up_and_asked_for() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let page = ann.get("/dashboard/security/second-factor").await;
    let shown = secret(page.text()).replace(' ', "");
    let key = data_encoding::BASE32_NOPAD.decode(shown.as_bytes()).unwrap();
    let code = |step: i64| accounts::TotpSecret::from_shared(key.clone()).code(step);
    let step = app.now().as_secs() / 30;
    assert_eq!(ann.post("/dashboard/security/second-factor", &[("code", "12")]).await.status, 403);
    let on = ann.post("/dashboard/security/second-factor", &[("code", &code(step))]).await;
    let recovery = between(on.text(), "id=\"codes\">", "\n").unwrap().to_owned();
    assert_eq!(ann.post("/signout", &[]).await.status, 303);

    ann.get("/signin").await;
    let fields =
        [("email", "ann@example.com"), ("password", PASSWORD), ("next", "/dashboard/access")];
    let half = ann.post("/signin", &fields).await;
    assert_eq!(half.header("location"), Some("/signin/code?next=/dashboard/access"));
    let owed = ann.get("/dashboard").await;
    assert_eq!(owed.header("location"), Some("/signin/code"), "the password alone opens nothing");
    ann.get("/signin/code?next=/dashboard/access").await;
    assert_eq!(ann.post("/signin/code", &[("code", "000000")]).await.status, 403);
    let before = ann.cookie.clone();
    let done =
        ann.post("/signin/code", &[("code", &recovery), ("next", "/dashboard/access")]).await;
    assert_eq!(done.header("location"), Some("/dashboard/access"));
    assert_ne!(ann.cookie, before, "a new session");
    assert_eq!(ann.get("/dashboard/access").await.status, 200);
}

#[tokio::test]
async fn sessions_are_listed_and_ended_and_the_password_changed() {
    let app = TestApp::start().await;
    let mut phone = Browser::developer(&app, "ann@example.com").await;
    let mut laptop = Browser::new(&app);
    laptop.sign_in("ann@example.com").await;
    let page = laptop.get("/dashboard/security").await;
    let other = between(page.text(), "/dashboard/security/sessions/", "/end").unwrap().to_owned();
    let end = format!("/dashboard/security/sessions/{other}/end");
    assert_eq!(laptop.post(&end, &[]).await.status, 303);
    assert_eq!(phone.get("/dashboard").await.status, 303);

    phone.sign_in("ann@example.com").await;
    let new = "quite another phrase";
    let change = [("old", "wrong words here"), ("password", new)];
    assert_eq!(laptop.post("/dashboard/security/password", &change).await.status, 403);
    let change = [("old", PASSWORD), ("password", new)];
    assert_eq!(laptop.post("/dashboard/security/password", &change).await.status, 303);
    assert_eq!(phone.get("/dashboard").await.status, 303, "other sessions are signed out");
    assert_eq!(laptop.get("/dashboard/security").await.status, 200);
    assert_eq!(laptop.post("/dashboard/security/sessions", &[]).await.status, 303);
    assert_eq!(laptop.get("/dashboard").await.status, 303, "everywhere is here too");
}

#[tokio::test]
async fn an_invitation_makes_an_account_where_sign_up_is_not_open() {
    let rules = PeopleRules { sign_up: SignUp::Invitation, ..PeopleRules::default() };
    let app = TestApp::builder().pages(rules, WebSettings::default()).start().await;
    let mut op = Browser::operator(&app).await;
    let issued = op.post("/console/accounts/invite", &[("email", "ann@example.com")]).await;
    let url = secret(issued.text());
    let path = url.strip_prefix(&format!("http://{}", app.addr)).unwrap().to_owned();
    let mut ann = Browser::new(&app);
    ann.get("/signup").await;
    let fields = [("name", "Ann"), ("email", "ann@example.com"), ("password", PASSWORD)];
    assert_eq!(ann.post("/signup", &fields).await.status, 403);
    assert!(ann.get(&path).await.text().contains("value=\"ann@example.com\""));
    let short = [("name", "Ann"), ("email", "ann@example.com"), ("password", "short")];
    assert_eq!(ann.post(&path, &short).await.status, 400);
    let done = ann.post(&path, &fields).await;
    assert_eq!((done.status, done.header("location")), (303, Some("/dashboard")));
    assert_eq!(Browser::new(&app).get(&path).await.status, 400, "used");
}

#[tokio::test]
async fn an_operators_link_sets_a_forgotten_password() {
    let app = TestApp::start().await;
    app.service.web.people.sign_up(account("ann@example.com", "Ann"), &nowhere()).await.unwrap();
    let mut op = Browser::operator(&app).await;
    let id = account_id(&app, "ann@example.com").await;
    let issued = op.post(&format!("/console/accounts/{id}/reset"), &[]).await;
    let url = secret(issued.text());
    let path = url.strip_prefix(&format!("http://{}", app.addr)).unwrap().to_owned();
    let mut ann = Browser::new(&app);
    ann.get(&path).await;
    let done = ann.post(&path, &[("password", "quite another phrase")]).await;
    assert_eq!(done.header("location"), Some("/signin?done=password-reset"));
    ann.get("/signin").await;
    let fields = [("email", "ann@example.com"), ("password", "quite another phrase")];
    assert_eq!(ann.post("/signin", &fields).await.status, 303);
}
