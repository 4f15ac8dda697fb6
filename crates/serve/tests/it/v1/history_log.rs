//! `as_of` where retention has shortened the log.

use std::time::Duration;

use engine::Compact;

use super::history::{Seen, live, published, text};
use super::stream::replay_live::shorten_log_to;
use crate::harness::{TestApp, at, line};
use crate::test_market::ANN;

/// Publications that are not archived yet, before the only checkpoint that the log still has.
#[tokio::test]
async fn what_is_not_archived_is_answered_from_the_archive_and_what_follows_it_in_the_log() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let archived = published(&app, &feed, &key).await;
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let archived_to = live(&app).history.keep_from();
    let mut logged = Vec::new();
    app.push_all(&feed, &[line::event("b", "mma", ANN, "Cy Roe")]).await;
    for price in [110, 120, 130] {
        app.push_all(&feed, &[line::moneyline("b", "fanduel", (ANN, price), ("Cy Roe", -150))])
            .await;
        app.publish().await;
        logged.push(Seen::all(&app, &key).await);
    }
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    shorten_log_to(&dir.path().join("live"), archived_to);
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    assert!(live(&app).history.keep_from() <= archived_to, "it was archived meanwhile");
    let seen: Vec<_> = archived.iter().chain(&logged).collect();
    let ends: Vec<_> = seen.iter().skip(1).map(|next| &next[0].published_at).collect();
    for (of_round, next) in seen.iter().zip(ends) {
        let last = text(at(next).minus(Duration::from_millis(1)));
        for one in *of_round {
            one.check(&app, &key, &[one.published_at.clone(), last.clone()]).await;
        }
    }
    // One at each start, too.
    let reach = app.get("/v1/history", &key).await.json();
    assert_eq!(reach["publications"], seen.len() + 2, "{reach}");
}
