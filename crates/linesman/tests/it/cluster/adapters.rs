//! An adapter that is configured on every node runs only on the leader.

use std::path::Path;

use serde_json::Value;

use super::{TestServers, figure, leads, shows};
use crate::harness::{TestProgram, bout, moneyline, wait_for};

/// A node whose adapter records in `ran` that this node ran it, and offers the price in `price`.
fn node(servers: &TestServers, name: &str, shared: &Path) -> TestProgram {
    let (ran, price) = (shared.join("ran"), shared.join("price"));
    let listing = bout("a", "Ann Archer", "Bea Bowen");
    let odds = moneyline("a", "fanduel", &[("Ann Archer", 12_345), ("Bea Bowen", -155)]);
    let script = format!(
        "echo {name} >> '{}'; printf '%s\\n' '{listing}'; printf '%s\\n' '{odds}' | sed \"s/12345/$(cat '{}')/\"",
        ran.display(),
        price.display()
    );
    let program = servers.program();
    program.write(
        "linesman.toml",
        &format!(
            "[adapters.mine]\nkind = \"exec\"\nenabled = true\nterms_accepted_by = \"me\"\n\
             command = [\"sh\", \"-c\", {}]\nevery = \"1s\"\ncomplete = true\n",
            Value::from(script)
        ),
    );
    program
}

/// Waits until a node alone runs the adapter: three times in a row, from now on. A leader may lose the lead for a
/// moment, and a run of another node that had begun before may still end.
async fn runs_on(shared: &Path, node: &str) {
    let runs = || -> Vec<String> {
        let text = std::fs::read_to_string(shared.join("ran")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let before = runs().len();
    wait_for(&format!("three runs on node {node}"), async || {
        let new = runs().split_off(before);
        (new.len() >= 3 && new.iter().rev().take(3).all(|run| run == node)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_follows_the_leader_through_a_kill_and_a_lost_leadership() {
    let servers = TestServers::start();
    let shared = tempfile::tempdir().unwrap();
    let offer =
        |price: i64| std::fs::write(shared.path().join("price"), price.to_string()).unwrap();
    offer(101);
    let [program_one, program_two] = ["one", "two"].map(|name| node(&servers, name, shared.path()));
    let program_api = servers.program();
    let key = program_one.live_key().await;
    let one = program_one.start_as("ingest").await;
    leads(&one).await;
    let two = program_two.start_as("ingest").await;
    let api = program_api.start_as("api").await;
    shows(&api, &key, 101).await;
    runs_on(shared.path(), "one").await;

    // After a kill, the other node continues reading.
    one.kill().await;
    leads(&two).await;
    offer(102);
    shows(&api, &key, 102).await;
    runs_on(shared.path(), "two").await;

    // Paused, and resumed after another node took over: it no longer reads.
    let one = program_one.start_as("ingest").await;
    wait_for("a standby", async || (one.get("/readyz", &key).await.status == 200).then_some(()))
        .await;
    two.signal("STOP").await;
    leads(&one).await;
    two.signal("CONT").await;
    wait_for("it to follow", async || {
        (figure(&two, "linesman_leader").await? == "0").then_some(())
    })
    .await;
    runs_on(shared.path(), "one").await;
    offer(103);
    shows(&api, &key, 103).await;
    for service in [one, two, api] {
        service.stop().await;
    }
}
