//! One feed keeps the writer busy: other feeds, the clock, the operator and a stop do not wait for it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use domain::World;
use market::Operation;
use serde_json::json;
use tokio::task::JoinHandle;

use super::{metric, wait_for_metric};
use crate::harness::{Answer, TestApp, line, wait_for};

const SEQ: &str = "linesman_log_seq{world=\"live\"}";

/// Lines of a push that keeps the writer busy for seconds in a build without optimisation, and for hundreds of
/// scheduling turns in any build.
const LINES: usize = 90_000;
/// Concurrent pushes of the busy feed, each on its own connection.
const PUSHES: usize = 3;

/// Heartbeats that each change something: every one is a little later than the previous one.
fn heartbeats(push: usize) -> String {
    let bookmaker = ["caesars", "fanduel", "draftkings"][push];
    let head = format!(r#"{{"type":"heartbeat","bookmaker":"{bookmaker}","sport":"mma","ts":"#);
    let mut body = String::new();
    for ms in 0..LINES {
        let (minute, second, ms) = (ms / 60_000, ms / 1000 % 60, ms % 1000);
        let ts = format!("2026-11-14T11:{minute:02}:{second:02}.{ms:03}Z");
        writeln!(body, r#"{head}"{ts}"}}"#).unwrap();
    }
    body
}

/// Number of log entries.
async fn stored(app: &TestApp) -> u64 {
    metric(app, SEQ).await
}

/// Starts a feed that keeps the writer busy, and waits until the writer works on it.
async fn busy(app: &Arc<TestApp>, token: &str) -> Vec<JoinHandle<Answer>> {
    let pushes = (0..PUSHES).map(|push| {
        let (app, token) = (Arc::clone(app), token.to_owned());
        tokio::spawn(async move { app.post(&token, heartbeats(push).into_bytes(), None).await })
    });
    let pushes = pushes.collect();
    wait_for_metric(app, SEQ, |seq| seq > 100).await;
    pushes
}

fn is_busy(pushes: &[JoinHandle<Answer>]) -> bool {
    pushes.iter().any(|push| !push.is_finished())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_feed_an_operator_and_the_next_snapshot_do_not_wait_for_a_busy_feed() {
    let app = Arc::new(TestApp::start().await);
    let (busy_feed, other) = (app.any_feed().await, app.any_feed().await);
    // Its feed exists before the writer is busy.
    app.wake_writer().await;
    let pushes = busy(&app, &busy_feed).await;
    let beat = line::heartbeat("betmgm", "mma").to_string();
    assert_eq!(app.push(&other, beat).await["accepted"], 1);
    assert!(is_busy(&pushes), "it was answered behind the others");
    let unknown = domain::EventId::minted(1, 1);
    let nothing = Operation::Merge { one: unknown, other: unknown };
    assert!(app.service.api.world(World::Live).operate(nothing).await.is_err());
    assert!(is_busy(&pushes), "the operator waited for them");
    app.publish().await;
    assert!(is_busy(&pushes), "the snapshot was cut after them");
    // All of it is accepted in the end, in order: nothing was superseded by an earlier line.
    for push in pushes {
        assert_eq!(push.await.unwrap().json()["accepted"], LINES);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoking_or_pausing_a_feed_ends_its_pushes_between_two_messages() {
    for revoked in [true, false] {
        let app = Arc::new(TestApp::start().await);
        let token = app.feed("busy", None).await;
        let pushes = busy(&app, &token).await;
        let by = accounts::Actor::command_line();
        if revoked {
            app.service.api.accounts.revoke_feed("busy", &by).await.unwrap();
        } else {
            app.service.api.accounts.pause_feed("busy", true, &by).await.unwrap();
        }
        let mut refused = 0;
        for push in pushes {
            let answer = push.await.unwrap();
            // The store may have needed so long that some were taken before.
            if answer.status == 200 {
                continue;
            }
            refused += 1;
            let expected =
                if revoked { (401, "authentication_failed") } else { (409, "feed_paused") };
            assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()));
        }
        assert!(refused > 0, "all of them were answered before");
        assert!(stored(&app).await < (PUSHES * LINES) as u64, "all of it was taken");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_what_is_queued() {
    let app = Arc::new(TestApp::start().await);
    let token = app.any_feed().await;
    let pushes = busy(&app, &token).await;
    app.service.api.world(World::Live).end_pushes();
    for push in pushes {
        let answer = push.await.unwrap();
        assert_eq!(answer.refusal(), (503, "unavailable".to_owned()));
        assert!(answer.message().contains("idempotent"), "{}", answer.message());
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let kept = stored(&app).await;
    assert!(kept < (PUSHES * LINES) as u64, "all of it was taken");
    let late = app.post(&token, line::heartbeat("betmgm", "mma").to_string().into(), None).await;
    assert_eq!(late.refusal(), (503, "unavailable".to_owned()));
    // Snapshots continue until the writer has to end.
    let due = app.now().plus(Duration::from_secs(30));
    app.advance(Duration::from_secs(60));
    let cut_at = || app.service.api.world(World::Live).published().snapshot.cut_at;
    wait_for("the next snapshot", || cut_at() >= due).await;
    // The stored part of the pushes is intact, and sending them again completes them.
    let Ok(app) = Arc::try_unwrap(app) else { panic!("somebody still has it") };
    let (now, dir) = (app.now(), app.stop().await);
    let again = TestApp::builder().starting_at(now).on(dir).start().await;
    let receipt = again.push(&token, heartbeats(PUSHES - 1)).await;
    assert_eq!(receipt["rejected"], json!([]));
    assert!(receipt["accepted"].as_u64().unwrap() > 0, "{receipt}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_with_hundreds_of_pushes_at_once_shuts_nobody_out() {
    let app = Arc::new(TestApp::start().await);
    let (many, other) = (app.any_feed().await, app.any_feed().await);
    let pushes: Vec<JoinHandle<Answer>> = (0..300)
        .map(|_| {
            let (app, token) = (Arc::clone(&app), many.clone());
            let body = line::heartbeat("caesars", "mma").to_string();
            tokio::spawn(async move { app.post(&token, body.into_bytes(), None).await })
        })
        .collect();
    assert_eq!(app.push(&other, line::heartbeat("betmgm", "mma").to_string()).await["accepted"], 1);
    for push in pushes {
        assert_eq!(push.await.unwrap().status, 200, "they wait rather than being refused");
    }
}
