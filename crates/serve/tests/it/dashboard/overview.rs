//! The console's first page: its statements about history.

use std::time::{Duration, Instant};

use domain::World;
use engine::Compact;

use super::browser::{Browser, between};
use crate::harness::{TestApp, line};
use crate::test_market::{ANN, BEA};

/// The page's statements about history, once they contain a text: the page does not wait long for the archive.
async fn history_section(browser: &mut Browser<'_>, wanted: &str) -> String {
    let begun = Instant::now();
    loop {
        let page = browser.get("/console").await;
        let text =
            between(page.text(), "<section class=\"card\" id=\"history\">", "</section>").unwrap();
        if text.contains(wanted) {
            return text.to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no {wanted}: {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_overview_shows_how_far_history_reaches_and_what_is_archived() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    app.publish().await;
    let mut op = Browser::operator(&app).await;
    history_section(&mut op, "Nothing archived yet").await;
    assert!(app.service.api.world(World::Live).history.flush(Compact::Due).await.unwrap());
    app.publish().await;
    app.publish().await;
    let text = history_section(&mut op, "Archive <b class=\"num\">").await;
    let reach = app.get("/v1/history", &key).await.json();
    for instant in [&reach["from"], &reach["to"]] {
        let second = instant.as_str().unwrap().split('.').next().unwrap();
        assert!(text.contains(second), "{second}: {text}");
    }
    let publications = reach["publications"].as_u64().unwrap();
    assert!(text.contains(&format!("{publications}</b> publications")), "{text}");
    assert!(text.contains("Archive <b class=\"num\">30 s</b> behind"), "{text}");
    assert!(text.contains(" KB</b> in <b class=\"num\">"), "{text}");

    // A node that has not written it knows as much of it.
    let (now, dir) = (app.now(), app.stop().await);
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    let mut op = Browser::new(&app);
    op.sign_in("op@example.com").await;
    let text = history_section(&mut op, "Archive <b class=\"num\">").await;
    assert!(text.contains(" KB</b> in <b class=\"num\">"), "{text}");
}

#[tokio::test]
async fn the_overview_says_that_history_is_off() {
    let app = TestApp::builder().without_history().start().await;
    let mut op = Browser::operator(&app).await;
    assert!(op.get("/console").await.text().contains("History is off."));
}
