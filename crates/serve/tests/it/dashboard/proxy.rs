//! The source of requests: behind a trusted proxy, and otherwise; and the recognition of browsers.

use accounts::PeopleRules;
use reqwest::{Client, Method};
use web::WebSettings;

use super::browser::{Browser, PASSWORD, account, cookies, nowhere};
use crate::harness::{Answer, TestApp};

const ANN: &str = "ann@example.com";

/// Tries to sign in through a proxy that names the client's address.
async fn sign_in(browser: &Browser<'_>, password: &str, from: &str) -> Answer {
    let fields = [("form_token", browser.form_token()), ("email", ANN), ("password", password)];
    let origin = format!("http://{}", browser.app.addr);
    let headers = [("origin", origin), ("x-forwarded-for", from.to_owned())];
    browser.post_as("/signin", &fields, &headers).await
}

/// Guesses until the throttle refuses; returns the number of attempts that were let through.
async fn guess(browser: &Browser<'_>, from: impl Fn(usize) -> String) -> usize {
    for n in 0..20 {
        let answer = sign_in(browser, "wrong words here", &from(n)).await;
        match answer.status {
            403 => {}
            429 => return n,
            other => panic!("{other}: {}", answer.text()),
        }
    }
    20
}

#[tokio::test]
async fn behind_a_proxy_each_client_is_a_source_of_its_own() {
    let app = TestApp::builder().behind_a_proxy().start().await;
    app.service.web.people.sign_up(account(ANN, "Ann"), &nowhere()).await.unwrap();
    let mut browser = Browser::new(&app);
    browser.get("/signin").await;
    // Whatever addresses a client claims, the proxy appends the real one.
    assert_eq!(guess(&browser, |n| format!("198.51.100.{n}, 203.0.113.9")).await, 10);
    let entered = sign_in(&browser, PASSWORD, "192.0.2.7").await;
    assert_eq!(entered.status, 303, "somebody else's guesses are not theirs: {}", entered.text());
    let log = app.service.web.people.audit(None, None).await.unwrap();
    let entry = log.iter().find(|entry| entry.action == "session.started").unwrap();
    assert_eq!(entry.address, "192.0.2.7");
}

#[tokio::test]
async fn behind_a_proxy_that_ends_tls_forms_work_or_the_page_says_which_setting_is_missing() {
    let app = TestApp::start().await;
    app.service.web.people.sign_up(account(ANN, "Ann"), &nowhere()).await.unwrap();
    let mut browser = Browser::new(&app);
    browser.get("/signin").await;
    let fields = [("form_token", browser.form_token()), ("email", ANN), ("password", PASSWORD)];
    let origin = || ("origin", "https://odds.example.com".to_owned());
    // A browser that compares the two itself is trusted; no page can set that header.
    let compared = [origin(), ("sec-fetch-site", "same-origin".to_owned())];
    assert_eq!(browser.post_as("/signin", &fields, &compared).await.status, 303);
    let old = browser.post_as("/signin", &fields, &[origin()]).await;
    assert_eq!(old.status, 403);
    let own = format!("http://{}", app.addr);
    for told in ["https://odds.example.com", &own, "dashboard.public_url", "server.trusted_proxies"]
    {
        assert!(old.text().contains(told), "{told} is not in {}", old.text());
    }
    let foreign = [origin(), ("sec-fetch-site", "cross-site".to_owned())];
    let foreign = browser.post_as("/signin", &fields, &foreign).await;
    assert!(foreign.status == 403 && foreign.text().contains("a page of another site"));
}

#[tokio::test]
async fn an_address_that_the_operator_set_is_not_overruled_by_a_browser() {
    let pages = WebSettings {
        public_url: Some("https://odds.example.com".to_owned()),
        ..WebSettings::default()
    };
    let app = TestApp::builder().pages(PeopleRules::default(), pages).start().await;
    let mut browser = Browser::new(&app);
    browser.get("/signin").await;
    let fields = [("form_token", browser.form_token()), ("email", ANN), ("password", PASSWORD)];
    let headers = [
        ("origin", "https://other.example".to_owned()),
        ("sec-fetch-site", "same-origin".to_owned()),
    ];
    let refused = browser.post_as("/signin", &fields, &headers).await;
    assert!(
        refused.text().contains("believes to be at https://odds.example.com"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn nobody_else_is_believed_about_where_they_are() {
    let app = TestApp::start().await;
    app.service.web.people.sign_up(account(ANN, "Ann"), &nowhere()).await.unwrap();
    let mut browser = Browser::new(&app);
    browser.get("/signin").await;
    assert_eq!(guess(&browser, |n| format!("203.0.113.{n}")).await, 10);
    let other = sign_in(&browser, PASSWORD, "192.0.2.7").await;
    assert_eq!(other.status, 429);
}

#[tokio::test]
async fn a_browser_that_somebody_signed_in_with_is_not_kept_out_by_strangers() {
    let app = TestApp::start().await;
    app.service.web.people.sign_up(account(ANN, "Ann"), &nowhere()).await.unwrap();
    let mut own = Browser::new(&app);
    own.sign_in(ANN).await;
    assert_eq!(own.post("/signout", &[]).await.status, 303);
    let mut stranger = Browser::new(&app);
    stranger.get("/signin").await;
    assert_eq!(guess(&stranger, |_| String::new()).await, 10);
    own.sign_in(ANN).await;
    // A new password resets every known browser except the one that set it.
    let words = "quite another phrase";
    let fields = [("old", PASSWORD), ("password", words)];
    let device = own.device.clone();
    assert_eq!(own.post("/dashboard/security/password", &fields).await.status, 303);
    assert_ne!(own.device, device);
    own.post("/signout", &[]).await;
    own.get("/signin").await;
    stranger.device = device;
    let tried = sign_in(&stranger, words, "").await;
    assert_eq!(tried.status, 429, "what it was known by is of the old password");
    let entered = own.post("/signin", &[("email", ANN), ("password", words)]).await;
    assert_eq!(entered.status, 303);
}

#[tokio::test]
async fn cookies_that_come_in_lines_of_their_own_are_all_read() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, ANN).await;
    ann.get("/dashboard").await;
    let client = Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let crumbs = [ann.cookie.clone().unwrap(), ann.device.clone().unwrap(), "a=b".to_owned()];
    for turned in 0..3 {
        let url = format!("http://{}/dashboard", app.addr);
        let mut request = client.request(Method::GET, url);
        for n in 0..3 {
            request = request.header("cookie", &crumbs[(n + turned) % 3]);
        }
        let page = Answer::of(request).await;
        assert!(page.text().contains(ANN), "{}", page.text());
        assert!(cookies(&page).is_empty());
    }
}
