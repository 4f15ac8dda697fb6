//! Functions that send email, and their replacements without a mail server.

use std::time::Duration;

use super::browser::{Browser, PASSWORD, account, between, nowhere};
use crate::harness::TestApp;

const ANN: &str = "ann@example.com";

/// The path of the link in an email.
fn path(email: &accounts::Email) -> String {
    let token = between(&email.body, "https://odds.example.com/link/", "\n").expect("a link");
    format!("/link/{token}")
}

async fn sign_up(browser: &mut Browser<'_>, email: &str) {
    browser.get("/signup").await;
    let fields = [("name", "Ann"), ("email", email), ("password", PASSWORD)];
    let done = browser.post("/signup", &fields).await;
    assert_eq!(done.header("location"), Some("/signin?done=signed-up-mail"));
}

/// A page's status and notice.
fn said(page: &crate::harness::Answer) -> (u16, &str) {
    let notice = between(page.text(), "role=\"alert\"", "</").unwrap_or_default();
    assert!(notice.contains("Wrong email or password"), "{}", page.text());
    (page.status, notice)
}

#[tokio::test]
async fn a_new_address_is_confirmed_before_anybody_gets_in() {
    let app = TestApp::builder().mail().start().await;
    let mut ann = Browser::new(&app);
    sign_up(&mut ann, ANN).await;
    let first = path(&app.email().await);
    ann.get("/signin").await;
    let fields = [("email", ANN), ("password", PASSWORD)];
    let refused = ann.post("/signin", &fields).await;
    assert_eq!(refused.status, 403);
    let wrong = ann.post("/signin", &[("email", ANN), ("password", "wrong words here")]).await;
    assert_eq!(said(&wrong), said(&refused), "nobody learns whose address it is");
    assert_eq!(ann.get("/dashboard").await.status, 303, "the password alone opens nothing");
    let email = app.email().await;
    assert!(email.subject.contains("Confirm"), "it is sent again");
    let link = path(&email);
    assert_eq!(ann.get(&first).await.status, 400, "only the newest works");
    let page = ann.get(&link).await;
    assert!(page.text().contains("Confirm ann@example.com"));
    assert_eq!(
        ann.get("/dashboard").await.status,
        303,
        "a mail scanner that follows links changes nothing"
    );
    ann.get(&link).await;
    assert_eq!(ann.post(&link, &[]).await.header("location"), Some("/signin?done=confirmed"));
    assert_eq!(ann.post(&link, &[]).await.status, 400, "once");
    ann.sign_in(ANN).await;
    assert_eq!(ann.get("/dashboard").await.status, 200);
}

#[tokio::test]
async fn a_wrong_password_is_told_nothing_of_confirmation() {
    let app = TestApp::builder().mail().start().await;
    let mut ann = Browser::new(&app);
    sign_up(&mut ann, ANN).await;
    app.email().await;
    ann.get("/signin").await;
    let refused = ann.post("/signin", &[("email", ANN), ("password", "wrong words here")]).await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("Wrong email or password"));
}

#[tokio::test]
async fn an_address_with_an_account_is_written_to_and_the_page_says_the_same() {
    let app = TestApp::builder().mail().start().await;
    let mut browser = Browser::new(&app);
    sign_up(&mut browser, ANN).await;
    assert!(app.email().await.subject.starts_with("Confirm"));
    sign_up(&mut browser, ANN).await;
    let email = app.email().await;
    assert!(email.subject.starts_with("You have an account") && !email.body.contains("/link/"));
}

#[tokio::test]
async fn a_forgotten_password_is_set_by_mail_and_strangers_learn_nothing() {
    let app = TestApp::builder().mail().start().await;
    app.service.web.people.sign_up(account(ANN, "Ann"), &nowhere()).await.unwrap();
    app.email().await;
    let mut browser = Browser::new(&app);
    assert!(browser.get("/signin").await.text().contains("href=\"/forgot\""));
    let mut pages = Vec::new();
    for email in ["nobody@example.com", ANN] {
        browser.get("/forgot").await;
        let done = browser.post("/forgot", &[("email", email)]).await;
        pages.push((
            done.status,
            done.header("location").map(str::to_owned),
            done.text().to_owned(),
        ));
    }
    assert_eq!(pages[0], pages[1]);
    let email = app.email().await;
    assert_eq!(email.to.as_str(), ANN, "nobody else was written to");
    let link = path(&email);
    browser.get(&link).await;
    let new = "another battery staple";
    assert_eq!(
        browser.post(&link, &[("password", new)]).await.header("location"),
        Some("/signin?done=password-reset")
    );
    browser.get("/signin").await;
    let entered = browser.post("/signin", &[("email", ANN), ("password", new)]).await;
    assert_eq!(
        entered.header("location"),
        Some("/dashboard"),
        "and the address is confirmed with it"
    );
    app.advance(Duration::from_secs(86_400));
    assert_eq!(browser.get(&link).await.status, 400);
}

#[tokio::test]
async fn nobodys_mailbox_is_filled_from_here() {
    let app = TestApp::builder().mail().start().await;
    app.service.web.people.sign_up(account(ANN, "Ann"), &nowhere()).await.unwrap();
    for n in 0..20 {
        let from = accounts::Origin {
            address: Some(std::net::IpAddr::from([10, 0, 0, n])),
            agent: String::new(),
            device: None,
        };
        assert_eq!(app.service.web.people.admit_reset(&from), accounts::Attempt::Done);
        app.service
            .web
            .people
            .mail_reset(&accounts::EmailAddress::parse(ANN).unwrap(), &from)
            .await
            .unwrap();
    }
    assert_eq!(app.service.web.people.mail_stats().queued, 3);
    let from = nowhere();
    let attempts: Vec<_> = (0..6).map(|_| app.service.web.people.admit_reset(&from)).collect();
    assert!(matches!(attempts[5], accounts::Attempt::Throttled { .. }), "{attempts:?}");
}

#[tokio::test]
async fn without_mail_the_operator_hands_out_the_link() {
    let app = TestApp::start().await;
    let mut ann = Browser::developer(&app, ANN).await;
    assert_eq!(
        ann.get("/dashboard").await.status,
        200,
        "there is nobody to ask for a confirmation"
    );
    let mut stranger = Browser::new(&app);
    assert!(stranger.get("/forgot").await.text().contains("sends no email"));
    let refused = stranger.post("/forgot", &[("email", ANN)]).await;
    assert_eq!(refused.status, 403);
    let mut op = Browser::operator(&app).await;
    let id = super::browser::account_id(&app, ANN).await;
    op.get("/console/accounts").await;
    let issued = op.post(&format!("/console/accounts/{id}/reset"), &[]).await;
    assert!(issued.text().contains("/link/"));
    assert!(app.no_email());
}

#[tokio::test]
async fn a_decision_about_access_is_written() {
    let app = TestApp::builder().mail().start().await;
    let mut op = Browser::operator(&app).await;
    let purpose = [("purpose", "A comparison page for readers.")];
    assert_eq!(op.post("/dashboard/access", &purpose).await.status, 303);
    let id = app.service.web.people.access_requests(None).await.unwrap()[0].id.clone();
    op.get("/console/requests").await;
    assert_eq!(
        op.post(&format!("/console/requests/{id}/approve"), &[("note", "")]).await.status,
        303
    );
    assert_eq!(app.email().await.subject, "Production access: approved");
}
