//! Rebuilds of past publications take turns (H22).

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use engine::Compact;
use reqwest::Method;
use tokio::task::JoinSet;

use super::history::{live, published, text};
use crate::harness::{Answer, TestApp};

/// Time after which a request is refused although it has its turns.
const REBUILD_TIME_MAX: Duration = Duration::from_secs(20);

#[tokio::test]
async fn while_all_turns_to_rebuild_are_taken_further_requests_are_refused() {
    let app = TestApp::builder().archived().start().await;
    let (feed, key, other) = (app.any_feed().await, app.live_key().await, app.live_key().await);
    let mut times: Vec<String> =
        published(&app, &feed, &key).await.iter().map(|all| all[2].published_at.clone()).collect();
    for _ in 0..3 {
        app.publish().await;
        times.push(text(app.now()));
    }
    assert!(live(&app).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    fs::remove_dir_all(dir.path().join("live")).unwrap();
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    assert_eq!(app.get("/v1/history", &key).await.json()["to"], text(now));
    for item in fs::read_dir(app.dir().join("archive/live")).unwrap() {
        let folder = item.unwrap().path();
        // Which publications there are is known without a turn.
        let is_known = ["commit", "epochs"].iter().any(|known| folder.ends_with(known));
        if folder.is_dir() && !is_known {
            block_files(&folder);
        }
    }

    // Two of the first key and one of the other take all turns.
    let mut asked = JoinSet::new();
    for (key, times) in [(&key, &times[..3]), (&other, &times[3..])] {
        for at in times {
            let target = format!("/v1/sports/mma/odds?as_of={at}");
            let request = app.request(Method::GET, &target).header("X-API-Key", key);
            asked.spawn(async move {
                let begun = Instant::now();
                (Answer::of(request).await, begun.elapsed())
            });
        }
    }
    for _ in 0..3 {
        let (refused, took) = asked.join_next().await.unwrap().unwrap();
        assert!(took < REBUILD_TIME_MAX, "it had turns for {took:?}");
        assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
        let message = "too many lookups of past times are running; retry shortly";
        assert_eq!(refused.message(), message);
    }
    let present = app.get("/v1/sports/mma/odds", &key).await;
    assert_eq!(present.status, 200, "{}", present.text());
}

/// Replaces all files of a folder by pipes: opening one blocks until something is written to it.
fn block_files(folder: &Path) {
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            block_files(&path);
            continue;
        }
        fs::remove_file(&path).unwrap();
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
    }
}
