//! Adapters in a cluster: they run on the leader alone, whoever that is (A4).

use serde_json::Value;

use super::{TestServers, leads, shows};
use crate::adapters::{BOUT, adapters};
use crate::harness::{Service, TestProgram, moneyline, wait_for};

/// A node whose adapter says a price of its own, so that what is shown says who runs it.
fn node(servers: &TestServers, american: i64) -> TestProgram {
    let program = servers.program().set("LINESMAN_CLUSTER__KEY_TRUST", "10m");
    let odds = moneyline("b1", "fanduel", &[("Jiri Prochazka", american), ("Alex Pereira", -165)]);
    let script = format!("printf '%s\\n' '{BOUT}' '{odds}'");
    let text = format!(
        "[adapters.mine]\nkind = \"exec\"\nenabled = true\nterms_accepted_by = \"me\"\n\
         command = [\"sh\", \"-c\", {}]\nevery = \"1s\"\ncomplete = true\n",
        Value::from(script)
    );
    program.write("linesman.toml", &text);
    program
}

async fn is(service: &Service, state: &str) {
    wait_for(&format!("the adapter to be {state}"), async || {
        let shown = adapters(service.metrics()).await;
        (shown.len() == 1 && shown[0]["state"] == state).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adapters_run_on_the_leader_alone_and_on_whoever_follows_it() {
    let servers = TestServers::start();
    let (program_one, program_two) = (node(&servers, 141), node(&servers, 142));
    let key = program_one.live_key().await;
    let one = program_one.start_as("ingest").await;
    leads(&one).await;
    let two = program_two.start_as("ingest").await;
    let program_three = servers.program();
    let api = program_three.start_as("api").await;
    shows(&api, &key, 141).await;
    is(&one, "ok").await;
    is(&two, "waiting").await;

    one.kill().await;
    leads(&two).await;
    is(&two, "ok").await;
    shows(&api, &key, 142).await;

    // Held still, it is replaced; when it goes on, its adapters stop and what they read goes nowhere.
    let one = program_one.start_as("ingest").await;
    is(&one, "waiting").await;
    two.signal("STOP").await;
    leads(&one).await;
    shows(&api, &key, 141).await;
    two.signal("CONT").await;
    is(&two, "waiting").await;
    is(&one, "ok").await;
    shows(&api, &key, 141).await;
    for service in [one, two, api] {
        service.stop().await;
    }
}
