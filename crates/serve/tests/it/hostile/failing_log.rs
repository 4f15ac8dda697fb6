//! A disk that refuses the log for a while, and then accepts it again.

use std::time::Instant;

use domain::{Timestamp, World};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use super::metric;
use crate::harness::{TestApp, line, ndjson, wait_for};
use crate::test_market::{ANN, BEA};

/// The signal for a write beyond the limit; a process that handles it is not killed.
pub(crate) const SIGXFSZ: i32 = 25;

/// Maximum size of a file that may be overwritten on a full disk: the note of a gap. All other relevant files are
/// longer.
const OVERWRITTEN_MAX: u64 = 64;

/// Prevents files from growing, like a full disk. Every test is a separate process.
pub(crate) fn fill_disk(full: bool) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = if full { Some(OVERWRITTEN_MAX) } else { maximum };
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).unwrap();
}

fn cut_at(app: &TestApp) -> i64 {
    app.service.api.world(World::Live).published().snapshot.cut_at.as_millis()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_log_cannot_be_written_pushes_get_503_snapshots_go_on_and_it_recovers_by_itself()
{
    let _caught = signal(SignalKind::from_raw(SIGXFSZ)).unwrap();
    let app = TestApp::builder().system_clock().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let price = |home: i32| line::moneyline("a", "fanduel", (ANN, home), (BEA, -140));
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA), price(120)]).await;
    app.publish().await;
    // With a lease, requests are counted without the disk.
    assert_eq!(app.get("/v1/sports/mma/odds", &key).await.status, 200);
    let read_backs = "linesman_log_read_backs_total{world=\"live\"}";
    fill_disk(true);
    // Only snapshots: every change is in the log, so nothing is read back.
    let before = cut_at(&app);
    wait_for("ten snapshots", || cut_at(&app) > before + 1000).await;
    assert_eq!(metric(&app, read_backs).await, 0);
    let begun = Instant::now();
    for _ in 0..20 {
        let refused = app.post(&feed, ndjson(&[price(150)]).into_bytes(), None).await;
        assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
        assert!(refused.header("retry-after").is_some());
    }
    // Far above the duration of twenty refusals, far below that of waiting for the disk.
    assert!(begun.elapsed().as_secs() < 30);
    let before = cut_at(&app);
    wait_for("more snapshots", || cut_at(&app) > before + 1000).await;
    // A publication during that time cannot be rebuilt; the last logged one is not shown in its place.
    let path = format!("/v1/sports/mma/odds?as_of={}", Timestamp::from_millis(before));
    assert_eq!(app.get(&path, &key).await.refusal(), (503, "unavailable".to_owned()));
    assert!(metric(&app, read_backs).await <= 1);
    fill_disk(false);
    let begun = Instant::now();
    while app.post(&feed, ndjson(&[price(150)]).into_bytes(), None).await.status != 200 {
        assert!(begun.elapsed().as_secs() < 60, "it did not recover");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    app.publish().await;
    let odds = app.get("/v1/sports/mma/odds", &key).await.json();
    assert_eq!(odds[0]["outcomes"][0]["price"], 150);
    let again = TestApp::builder().system_clock().on(app.copy_of_disk()).start().await;
    let odds = again.get("/v1/sports/mma/odds", &key).await.json();
    assert_eq!(odds[0]["outcomes"][0]["price"], 150, "and the log has it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_fails_leaves_nothing_in_what_is_shown() {
    let _caught = signal(SignalKind::from_raw(SIGXFSZ)).unwrap();
    let app = TestApp::builder().system_clock().start().await;
    let feed = app.any_feed().await;
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA)]).await;
    app.publish().await;
    fill_disk(true);
    // The first failed write is a batch: it is in the book, but not in the log.
    let body = ndjson(&[line::event("b", "mma", "Cleo Clark", "Dora Dunn")]);
    let refused = app.post(&feed, body.into_bytes(), None).await;
    assert_eq!(refused.status, 503);
    let before = cut_at(&app);
    wait_for("more snapshots", || cut_at(&app) > before + 500).await;
    assert_eq!(app.service.api.world(World::Live).published().snapshot.events(), 1);
    fill_disk(false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publications_that_were_not_logged_are_a_gap_also_where_the_process_ended_meanwhile() {
    let _caught = signal(SignalKind::from_raw(SIGXFSZ)).unwrap();
    let mut app = TestApp::builder().system_clock().start().await;
    let (feed, key) = (app.any_feed().await, app.live_key().await);
    let price = line::moneyline("a", "fanduel", (ANN, 120), (BEA, -140));
    app.push_all(&feed, &[line::event("a", "mma", ANN, BEA), price]).await;
    app.publish().await;
    let logged = cut_at(&app);
    fill_disk(true);
    let failures = "linesman_log_failures_total{world=\"live\"}";
    let begun = Instant::now();
    while metric(&app, failures).await == 0 {
        assert!(begun.elapsed().as_secs() < 60, "the log does not fail");
    }
    let before = cut_at(&app);
    wait_for("publications that are not logged", || cut_at(&app) > before + 500).await;
    let unlogged = cut_at(&app);
    // As with kill -9, it ends without another log entry.
    app.stop_writer(World::Live);
    fill_disk(false);
    let again = TestApp::builder().system_clock().on(app.copy_of_disk()).start().await;
    let as_of = |at: i64| {
        let text = Timestamp::from_millis(at).millis_text();
        format!("/v1/sports/mma/odds?as_of={}", String::from_utf8_lossy(&text))
    };
    assert_eq!(again.get(&as_of(logged), &key).await.status, 200);
    let refused = again.get(&as_of(unlogged), &key).await.refusal();
    assert_eq!(refused, (404, "not_in_history".to_owned()));
    let gaps = again.get("/v1/history", &key).await.json()["gaps"].clone();
    assert_eq!(gaps.as_array().unwrap().len(), 1, "{gaps}");
    // The next start finds it only in the log.
    let dir = again.stop().await;
    let third = TestApp::builder().system_clock().on(dir).start().await;
    assert_eq!(third.get("/v1/history", &key).await.json()["gaps"], gaps);
}
