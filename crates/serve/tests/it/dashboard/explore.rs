//! The explorer: it queries the real service with a sandbox key of the visitor, and shows the answer.

use accounts::{Actor, KeyKind};

use super::browser::{Browser, account_id, percent};
use crate::harness::TestApp;

async fn start() -> TestApp {
    let app = TestApp::builder().sandbox(7).start().await;
    app.publish_both().await;
    app
}

async fn run(browser: &mut Browser<'_>, fields: &[(&str, &str)]) -> crate::harness::Answer {
    let mut all = vec![("act", "run"), ("touched", "yes")];
    all.extend_from_slice(fields);
    browser.post("/dashboard/explore", &all).await
}

#[tokio::test]
async fn every_endpoint_can_be_run_as_it_is_offered() {
    let app = start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
    for endpoint in [
        "list_sports",
        "get_odds",
        "get_scores",
        "list_events",
        "get_event",
        "list_books",
        "get_status",
    ] {
        let page = ann.get(&format!("/dashboard/explore?endpoint={endpoint}")).await;
        assert_eq!(page.status, 200);
        for language in
            ["curl -H", "from linesman import Linesman", "new Linesman({", "use linesman_client::"]
        {
            assert!(page.text().contains(language), "{endpoint}: {language}");
        }
        assert!(!page.text().contains("http://localhost/"), "the address is the one asked");
        let event = super::browser::between(page.text(), "name=\"p_event_id\" value=\"", "\"")
            .unwrap_or("");
        let ran = run(&mut ann, &[("endpoint", endpoint), ("p_event_id", event)]).await;
        assert!(ran.text().contains("status-code good\">200<"), "{endpoint}: {}", ran.text());
        assert!(ran.text().contains("x-requests-remaining"), "{endpoint}");
    }
    let usage = ann.get("/dashboard/usage").await;
    assert!(
        usage.text().contains("Requests <span class=\"soft num\">7<"),
        "it counts like any request"
    );
    let keys = ann.get("/dashboard").await;
    assert!(keys.text().contains("Linesman explorer"));
}

#[tokio::test]
async fn a_refusal_is_explained_on_the_spot() {
    let app = start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
    let ran =
        run(&mut ann, &[("endpoint", "get_odds"), ("p_sport_key", "mma"), ("p_limit", "501")])
            .await;
    assert!(ran.text().contains("status-code bad\">400<"));
    assert!(ran.text().contains("href=\"/docs/errors#error-invalid_parameter\""));
    assert!(ran.text().contains("GET /v1/sports/mma/odds?limit=501"));
    let long = "x".repeat(9000);
    let ran = run(&mut ann, &[("endpoint", "get_odds"), ("p_sport_key", &long)]).await;
    assert!(ran.text().contains("status-code bad\">414<"));
    let nowhere = ann.get("/dashboard/explore?endpoint=unknown").await;
    assert_eq!(nowhere.status, 404);
}

#[tokio::test]
async fn a_production_key_is_never_used_and_a_restricted_one_only_for_what_it_may() {
    let app = start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    let id = account_id(&app, "ann@example.com").await;
    let new = accounts::NewKey {
        account_id: Some(id.clone()),
        ..accounts::NewKey::of_kind(KeyKind::Production)
    };
    let (_, live) = app.service.api.accounts.create_key(new, &Actor::command_line()).await.unwrap();
    let fields = [("endpoint", "list_books"), ("key", live.id.as_str())];
    let ran = run(&mut ann, &fields).await;
    assert_eq!(ran.status, 400, "there is no sandbox key");
    let views = app.service.api.accounts.keys_of(&id).await.unwrap();
    assert_eq!((views[0].last_used, views[0].today.map(|day| day.used)), (None, Some(0)));
    ann.post("/dashboard/keys", &[("kind", "sandbox"), ("group", "golf")]).await;
    let ran = run(
        &mut ann,
        &[("endpoint", "get_odds"), ("p_sport_key", "mma"), ("key", live.id.as_str())],
    )
    .await;
    assert!(
        ran.text().contains("status-code bad\">403<"),
        "its own sandbox key, which is for golf"
    );
}

#[tokio::test]
async fn what_is_filled_in_is_shown_as_text() {
    const EVIL: &str = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'`$(id)";
    let app = start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
    let mut pages = Vec::new();
    for field in ["p_sport_key", "p_market", "p_regions", "p_limit", "p_cursor", "p_event_ids"] {
        pages.push(run(&mut ann, &[("endpoint", "get_odds"), (field, EVIL)]).await);
        pages.push(ann.get(&format!("/dashboard/explore?{field}={}", percent(EVIL))).await);
    }
    pages.push(run(&mut ann, &[("endpoint", EVIL), ("key", EVIL)]).await);
    pages.push(ann.get("/dashboard/usage").await);
    for page in pages {
        assert_eq!(page.status, 200);
        let text = page.text();
        assert!(!text.contains("<script>alert") && !text.contains("<img src=x"));
        assert!(!text.contains("$(id)'"), "no line lets it out of its quotes");
    }
}

#[tokio::test]
async fn running_is_throttled_and_showing_is_not() {
    let app = start().await;
    let mut ann = Browser::developer(&app, "ann@example.com").await;
    ann.post("/dashboard/keys", &[("kind", "sandbox")]).await;
    let mut last = 200;
    for _ in 0..21 {
        last = run(&mut ann, &[("endpoint", "list_books")]).await.status;
    }
    assert_eq!(last, 429);
    let shown =
        ann.post("/dashboard/explore", &[("endpoint", "list_books"), ("act", "show")]).await;
    assert_eq!(shown.status, 200);
}
