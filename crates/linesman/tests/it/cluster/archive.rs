//! The archive that the nodes of a cluster share, accessed from the command line.

use serde_json::Value;

use super::{TestServers, leads, price, push_until_taken, shows};
use crate::harness::{TestProgram, bout, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_of_a_cluster_is_compared_with_the_log_on_the_servers() {
    let servers = TestServers::start();
    let shared = tempfile::tempdir().unwrap();
    let program = || {
        let store = shared.path().display().to_string();
        servers.program().set("LINESMAN_HISTORY__STORE", store)
    };
    let (program_one, program_two): (TestProgram, TestProgram) = (program(), program());
    let (key, feed) = (program_one.live_key().await, program_one.feed("one").await);
    let one = program_one.start_as("all").await;
    leads(&one).await;
    let two = program_two.start_as("api").await;
    push_until_taken(&one, &feed, &[bout("a", "Ann Archer", "Bea Bowen")]).await;
    for number in 1..4 {
        push_until_taken(&one, &feed, &[price(number)]).await;
        // Unpublished changes are not archived.
        shows(&one, &key, 100 + number).await;
        wait_for("a flush", async || {
            (program_one.run(&["history", "flush"]).await.code == Some(0)).then_some(())
        })
        .await;
    }
    let sampled = program_one.ok(&["history", "verify", "--sample", "3"]).await;
    assert!(sampled.contains(" are the same as in the log, 0 are older than the log"), "{sampled}");

    // On the leader's machine everything in the log is exported; on others the command reports that rows are missing.
    let times = ["--from", "2020-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"];
    let export = [&["export", "--table", "odds"][..], &times].concat();
    assert!(program_one.ok(&export).await.contains("Ann Archer"));
    push_until_taken(&one, &feed, &[price(4)]).await;
    shows(&one, &key, 104).await;
    one.stop().await;
    let told = program_two.run(&export).await;
    assert!(told.sentence(1).contains("another node writes the archive"), "{told:?}");
    let status = program_two.ok(&["history", "status", "--json"]).await;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert!(status["lag_s"].is_u64(), "{status}");
    let until = ["--from", "2020-01-01T00:00:00Z", "--to", status["to"].as_str().unwrap()];
    program_two.ok(&[&["export", "--table", "odds"][..], &until].concat()).await;
    two.stop().await;
}

/// H20: nodes that share no archive have no history, and say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_names_no_archive_has_no_history_and_reports_that() {
    let servers = TestServers::start();
    let program = servers.program();
    let (key, feed) = (program.live_key().await, program.feed("one").await);
    let node = program.start_as("all").await;
    leads(&node).await;
    push_until_taken(&node, &feed, &[bout("a", "Ann Archer", "Bea Bowen"), price(1)]).await;
    shows(&node, &key, 101).await;
    let present = node.answered("/v1/sports/mma/odds", &key).await;
    let at = present.headers["x-published-at"].to_str().unwrap();
    for path in ["/v1/history".to_owned(), format!("/v1/sports/mma/odds?as_of={at}")] {
        let refused = node.answered(&path, &key).await;
        assert_eq!(refused.status, 404, "{path}: {}", refused.text());
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "not_in_history", "{path}");
        assert_eq!(error["message"], "this service keeps no history of this data", "{path}");
    }
    let told = program.run(&["history", "status"]).await;
    let sentence = "a cluster has no archive unless `history.store` names a bucket, or a folder that all nodes share";
    assert_eq!(told.sentence(1), sentence);
    assert!(!program.data().join("archive").exists(), "none was begun");
    node.stop().await;
}
