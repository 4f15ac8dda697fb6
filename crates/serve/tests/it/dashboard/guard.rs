//! Protection of pages: access rights, forms from other sites, session fixation, open redirects, scripts.

use accounts::PeopleRules;
use domain::World;
use web::{RouteView, WebSettings, Who, routes as dashboard_routes};

use super::browser::{Browser, PASSWORD, account, account_id, between, cookies, machine, nowhere};
use crate::harness::{Answer, TestApp};

/// The ids of Ann's objects, for the `{id}` of any route.
struct Things {
    key: String,
    account: String,
    request: String,
    session: String,
    link: String,
    event: String,
}

impl Things {
    fn fill(&self, path: &str) -> String {
        let id = match path.split('/').nth(2) {
            _ if path.starts_with("/link/") => &self.link,
            _ if path.starts_with("/board/") => "mma",
            Some("keys") => &self.key,
            Some("accounts") => &self.account,
            Some("requests") => &self.request,
            Some("security") => &self.session,
            Some("feeds") => "one",
            Some("events") => &self.event,
            _ => "",
        };
        path.replace("{id}", id)
    }
}

/// Ann with one object of every kind that a route can name.
async fn ann(app: &TestApp) -> (Browser<'_>, Things) {
    let mut other = Browser::developer(app, "ann@example.com").await;
    let mut ann = Browser::new(app);
    ann.sign_in("ann@example.com").await;
    ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
    let purpose = [("purpose", "A comparison page for readers.")];
    assert_eq!(ann.post("/dashboard/access", &purpose).await.status, 303);
    let event = an_event(app).await;
    let people = &app.service.web.people;
    let page = ann.get("/dashboard").await;
    let security = ann.get("/dashboard/security").await;
    let things = Things {
        key: between(page.text(), "href=\"/dashboard/keys/", "\"").unwrap().to_owned(),
        account: account_id(app, "ann@example.com").await,
        request: people.access_requests(None).await.unwrap()[0].id.clone(),
        session: between(security.text(), "/sessions/", "/end").unwrap().to_owned(),
        link: people.invite(None, &machine()).await.unwrap().expose(),
        event,
    };
    assert_eq!(other.get("/dashboard").await.status, 200);
    (ann, things)
}

/// An event that a feed called `one` lists, as operators see it.
async fn an_event(app: &TestApp) -> String {
    let feed = app.feed("one", None).await;
    let listed = r#"{"type":"event","ref":"b-1","sport":"mma","competition":"UFC 331","commence_time":"2026-11-22T03:00:00Z","home":"Jiri Prochazka","away":"Alex Pereira"}"#;
    assert_eq!(app.post(&feed, listed.into(), None).await.status, 200);
    app.publish().await;
    let identities = app.service.api.world(World::Live).identities();
    identities.events().next().unwrap().id.to_string()
}

/// Requests a route, with the forms of this browser's own pages.
async fn ask(browser: &mut Browser<'_>, route: &RouteView, path: &str) -> Answer {
    match route.method {
        "POST" => browser.post(path, &[]).await,
        _ => browser.get(path).await,
    }
}

/// The current state of everything that could have been changed.
async fn standing(app: &TestApp) -> String {
    let (accounts, people) = (&app.service.api.accounts, &app.service.web.people);
    let keys = accounts.list_keys().await.unwrap();
    let feeds = accounts.list_feeds().await.unwrap();
    let requests = people.access_requests(None).await.unwrap();
    let audit = people.audit(None, None).await.unwrap().len();
    let maintenance = accounts.maintenance();
    let identities = app.service.api.world(World::Live).identities();
    let mut events: Vec<String> = identities.events().map(|event| format!("{event:?}")).collect();
    events.sort_unstable();
    format!(
        "{keys:?} {feeds:?} {requests:?} {:?} {audit} {maintenance:?} {events:?}",
        people.accounts().await
    )
}

#[tokio::test]
async fn nobody_without_a_session_gets_to_what_needs_one() {
    let app = TestApp::start().await;
    let (_ann, things) = ann(&app).await;
    let before = standing(&app).await;
    for route in dashboard_routes().filter(|route| route.who != Who::Anyone) {
        let mut anonymous = Browser::new(&app);
        anonymous.get("/signin").await;
        let path = things.fill(route.path);
        let answer = ask(&mut anonymous, &route, &path).await;
        assert_eq!(answer.status, 303, "{} {path}", route.method);
        let to = answer.header("location").unwrap();
        assert!(to == "/signin" || to.starts_with("/signin?next=/"), "{path} leads to {to}");
    }
    assert_eq!(standing(&app).await, before);
}

#[tokio::test]
async fn a_developer_gets_to_nothing_of_the_operators_and_to_nobody_elses_things() {
    let app = TestApp::start().await;
    let (mut ann, things) = ann(&app).await;
    let mut bob = Browser::developer(&app, "bob@example.com").await;
    let before = standing(&app).await;
    for route in dashboard_routes() {
        let path = things.fill(route.path);
        match route.who {
            Who::Operator => {
                for browser in [&mut ann, &mut bob] {
                    let answer = ask(browser, &route, &path).await;
                    assert_eq!(answer.status, 403, "{} {path}", route.method);
                }
            }
            Who::Developer if route.path.contains("{id}") => {
                let answer = ask(&mut bob, &route, &path).await;
                assert_eq!(answer.status, 404, "{} {path}", route.method);
            }
            Who::Developer | Who::HalfSignedIn | Who::Anyone => {}
        }
    }
    assert_eq!(standing(&app).await, before);
    assert_eq!(ann.get("/dashboard").await.status, 200);
}

#[tokio::test]
async fn every_page_opens_for_whom_it_is() {
    let app = TestApp::start().await;
    let (mut ann, things) = ann(&app).await;
    let mut op = Browser::operator(&app).await;
    for route in dashboard_routes().filter(|route| route.method == "GET") {
        let path = things.fill(route.path);
        let answer = match route.who {
            Who::Operator => op.get(&path).await,
            Who::Developer => ann.get(&path).await,
            Who::Anyone if path == "/board" => {
                let front = Browser::new(&app).get(&path).await;
                assert!(front.header("location").unwrap().starts_with("/board/"));
                continue;
            }
            // These need an event, or are endless; other tests open them.
            Who::Anyone if path.starts_with("/board/event/") || path.ends_with("/stream") => {
                continue;
            }
            Who::Anyone => Browser::new(&app).get(&path).await,
            // A signed-in person is redirected.
            Who::HalfSignedIn => {
                assert_eq!(ann.get(&path).await.header("location"), Some("/dashboard"));
                continue;
            }
        };
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        if answer.header("content-type").unwrap().starts_with("text/html") {
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            // A board is public: it may be cached, and is revalidated each time.
            let kept = if path.starts_with("/board/") { "no-cache" } else { "no-store" };
            assert_eq!(answer.header("cache-control"), Some(kept));
            for inline in ["<style", " style=", "onclick", "javascript:"] {
                assert!(!answer.text().contains(inline), "{path} has {inline}");
            }
        }
    }
}

#[tokio::test]
async fn a_form_of_another_site_or_session_does_nothing() {
    let app = TestApp::start().await;
    let (ann, things) = ann(&app).await;
    let mut op = Browser::operator(&app).await;
    op.get("/console").await;
    let before = standing(&app).await;
    let own = format!("http://{}", app.addr);
    for route in dashboard_routes().filter(|route| route.method == "POST") {
        let browser = if route.who == Who::Operator { &op } else { &ann };
        if route.who == Who::HalfSignedIn {
            continue;
        }
        let path = things.fill(route.path);
        let token = browser.form_token().to_owned();
        let stranger = Browser::new(&app);
        let theirs = "A".repeat(43);
        for (what, token, headers) in [
            ("another origin", token.as_str(), vec![("origin", "https://evil.example".to_owned())]),
            ("no origin", token.as_str(), vec![("origin", "null".to_owned())]),
            ("another site", token.as_str(), vec![("sec-fetch-site", "cross-site".to_owned())]),
            ("a sister site", token.as_str(), vec![("sec-fetch-site", "same-site".to_owned())]),
            ("no token", "", vec![("origin", own.clone())]),
            ("another token", theirs.as_str(), vec![("origin", own.clone())]),
        ] {
            let answer = browser.post_as(&path, &[("form_token", token)], &headers).await;
            assert_eq!(answer.status, 403, "{path} with {what}");
        }
        drop(stranger);
    }
    assert_eq!(standing(&app).await, before);
}

#[tokio::test]
async fn signing_in_never_keeps_the_token_that_the_browser_came_with() {
    let app = TestApp::start().await;
    app.service.web.people.sign_up(account("ann@example.com", "Ann"), &nowhere()).await.unwrap();
    let mut browser = Browser::new(&app);
    browser.get("/signin").await;
    let planted = browser.cookie.clone().unwrap();
    let entered =
        browser.post("/signin", &[("email", "ann@example.com"), ("password", PASSWORD)]).await;
    let set = cookies(&entered);
    assert_eq!(set.len(), 2, "the session, and what the browser is known by: {set:?}");
    for cookie in set {
        assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Lax"), "{cookie}");
        assert!(cookie.contains("; Path=/") && !cookie.contains("Domain"), "{cookie}");
    }
    assert_ne!(browser.cookie.as_deref(), Some(planted.as_str()));
    let mut attacker = Browser::new(&app);
    attacker.cookie = Some(planted);
    assert_eq!(attacker.get("/dashboard").await.status, 303);
    let kept = browser.cookie.clone();
    browser.get("/dashboard").await;
    browser.post("/signout", &[]).await;
    browser.cookie = kept;
    assert_eq!(browser.get("/dashboard").await.status, 303, "signed out is out");
}

#[tokio::test]
async fn over_tls_the_cookie_is_bound_to_it() {
    let pages = WebSettings {
        public_url: Some("https://odds.example.com".to_owned()),
        ..WebSettings::default()
    };
    let app = TestApp::builder().pages(PeopleRules::default(), pages).start().await;
    let mut browser = Browser::new(&app);
    let page = browser.get("/signin").await;
    let cookie = page.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-linesman_session=") && cookie.contains("; Secure"),
        "{cookie}"
    );
    assert!(page.header("strict-transport-security").is_some());
    // The browser's origin is the public one, not the address of the service.
    let fields = [("form_token", browser.form_token()), ("email", "a@b.c"), ("password", "x")];
    for (origin, status) in [("https://odds.example.com", 403), ("https://evil.example", 403)] {
        let answer = browser.post_as("/signin", &fields, &[("origin", origin.to_owned())]).await;
        assert_eq!(answer.status, status);
        let from_here = answer.text().contains("Wrong email or password");
        assert_eq!(from_here, origin == "https://odds.example.com", "{origin}");
    }
}

#[tokio::test]
async fn nobody_is_sent_to_another_site_after_signing_in() {
    let app = TestApp::start().await;
    app.service.web.people.sign_up(account("ann@example.com", "Ann"), &nowhere()).await.unwrap();
    for next in
        ["https://evil.example", "//evil.example", "/\\evil.example", "/signout", "/dashboard/../x"]
    {
        let mut browser = Browser::new(&app);
        let page = browser.get(&format!("/signin?next={next}")).await;
        assert!(!page.text().contains("evil"), "{next}");
        let fields = [("email", "ann@example.com"), ("password", PASSWORD), ("next", next)];
        let entered = browser.post("/signin", &fields).await;
        assert_eq!(entered.header("location"), Some("/dashboard"), "{next}");
    }
}

#[tokio::test]
async fn what_people_type_is_shown_as_text() {
    const EVIL: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";
    let app = TestApp::start().await;
    app.service.web.people.sign_up(account("ann@example.com", EVIL), &nowhere()).await.unwrap();
    let mut ann = Browser::new(&app);
    ann.sign_in("ann@example.com").await;
    let made = ann.post("/dashboard/keys", &[("name", EVIL), ("kind", "sandbox")]).await;
    assert_eq!(made.status, 200);
    ann.post("/dashboard/access", &[("purpose", EVIL)]).await;
    let mut op = Browser::operator(&app).await;
    let mut pages = Vec::new();
    for path in ["/dashboard", "/dashboard/access", "/dashboard/security"] {
        pages.push((path, ann.get(path).await));
    }
    for path in ["/console/accounts", "/console/requests", "/console/keys", "/console/audit"] {
        pages.push((path, op.get(path).await));
    }
    let mut stranger = Browser::new(&app);
    stranger.get("/signup").await;
    pages.push(("reflected", stranger.post("/signup", &[("name", EVIL), ("email", EVIL)]).await));
    pages
        .push(("reflected", stranger.post("/signin", &[("email", EVIL), ("password", "x")]).await));
    pages.push(("path", stranger.get("/link/%3Cscript%3Ealert(1)%3C/script%3E").await));
    pages.push(("done", stranger.get("/signin?done=%3Cscript%3Ealert(1)").await));
    for (path, page) in pages {
        let text = page.text();
        assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "{path}");
    }
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_account_are_answered_with_the_same_page() {
    let app = TestApp::start().await;
    app.service.web.people.sign_up(account("ann@example.com", "Ann"), &nowhere()).await.unwrap();
    let mut pages = Vec::new();
    for email in ["ann@example.com", "bob@example.com"] {
        let mut browser = Browser::new(&app);
        browser.get("/signin").await;
        let answer =
            browser.post("/signin", &[("email", email), ("password", "wrong words here")]).await;
        assert_eq!(answer.status, 403);
        pages.push(answer.text().replace(email, "").replace(browser.form_token(), ""));
    }
    assert_eq!(pages[0], pages[1]);
    let mut browser = Browser::new(&app);
    browser.get("/signin").await;
    let mut last = 403;
    for _ in 0..11 {
        let fields = [("email", "ann@example.com"), ("password", "wrong words here")];
        let answer = browser.post("/signin", &fields).await;
        last = answer.status;
        assert_eq!(answer.header("retry-after").is_some(), last == 429);
    }
    assert_eq!(last, 429);
}

#[tokio::test]
async fn a_form_that_is_none_or_too_large_is_refused() {
    let app = TestApp::start().await;
    let mut browser = Browser::new(&app);
    browser.get("/signin").await;
    let large = "a".repeat(12 << 10);
    let answer = browser.post("/signin", &[("email", &large)]).await;
    assert_eq!(answer.refusal(), (413, "request_too_large".to_owned()));
    let request = browser.app.request(reqwest::Method::POST, "/signin").body("a=%ff");
    assert_eq!(Answer::of(request).await.refusal(), (400, "invalid_body".to_owned()));
    assert_eq!(browser.get("/dashboard/nothing").await.status, 404);
}

#[tokio::test]
async fn a_page_that_takes_another_method_says_which() {
    let app = TestApp::start().await;
    let page = app.get_without_key("/signin").await;
    let style = between(page.text(), "<link rel=\"stylesheet\" href=\"", "\"").unwrap();
    for (method, path, allow) in [
        ("GET", "/signout", "POST"),
        ("PUT", "/signin", "GET, HEAD, POST"),
        ("DELETE", "/status", "GET, HEAD"),
        ("POST", "/status.json", "GET, HEAD"),
        ("PUT", "/dashboard/keys/key_1/rotate", "POST"),
        ("DELETE", "/board/mma/stream", "GET, HEAD"),
        ("POST", style, "GET, HEAD"),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let answer = Answer::of(app.request(method.clone(), path)).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {path}");
    }
}
