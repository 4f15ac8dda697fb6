//! From a data folder to PostgreSQL, from the command line.

use store::Store;
use test_servers::{Nats, Postgres};

use crate::harness::{TestProgram, assert_no_secret, bout, moneyline, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_moves_into_an_empty_database_once_no_server_runs_on_it() {
    let server = Postgres::start().unwrap();
    let url = server.create_database("db").unwrap();
    let nats = Nats::start(1).unwrap();
    let bus = nats.url();
    let program = TestProgram::new();
    let data = program.data().display().to_string();
    let without = ["migrate", "--from", data.as_str(), "--to", url.as_str()];
    let migrate = [&without[..], &["--nats", bus.as_str()]].concat();
    assert!(program.run(&migrate).await.sentence(1).contains("not a linesman data folder"));

    let service = program.start().await;
    let key = service.first_key().unwrap().to_owned();
    assert_eq!(service.get("/v1/sports", &key).await.status, 200);
    assert!(program.run(&migrate).await.sentence(1).contains("another linesman server runs on"));
    let (live_key, feed) = (program.live_key().await, program.feed("one").await);
    let lines = [
        bout("a", "Ann Archer", "Bea Bowen"),
        moneyline("a", "fanduel", &[("Ann Archer", 135), ("Bea Bowen", -155)]),
    ];
    service.push_all(&feed, &lines).await;
    service.records("/v1/sports/mma/odds", &live_key, 1).await;
    let before = service.records("/v1/sports/mma/events", &live_key, 1).await;
    service.stop().await;
    let id = program.ok(&["keys", "list", "--json"]).await;

    assert!(program.run(&without).await.sentence(1).contains("--nats"));
    let moved = program.ok(&migrate).await;
    assert!(moved.contains(" log entries and ") && moved.ends_with(" rows"), "{moved}");
    let store = Store::connect(&url).await.unwrap();
    assert_eq!(store.setting("live_log_begun").await.unwrap().as_deref(), Some("yes"));
    let keys = store.keys().await.unwrap();
    assert!(keys.len() == 2 && keys.iter().all(|key| id.contains(&key.id)), "{id}");
    // It continues as a node of a cluster, with the same ids and the pushed data.
    let there = TestProgram::new()
        .set("LINESMAN_DATABASE__URL", url.clone())
        .set("LINESMAN_CLUSTER__NATS_URL", bus.clone());
    let service = there.start().await;
    let after = wait_for("the moved market", async || {
        let answer = service.get("/v1/sports/mma/events", &live_key).await;
        (answer.status == 200).then(|| answer.json())
    });
    assert_eq!(after.await.as_array().unwrap(), &before);
    let again = wait_for("a writer", async || {
        let answer = service.post(&feed, format!("{}\n", lines[1])).await.unwrap();
        (answer.status == 200).then(|| answer.json())
    });
    assert_eq!(again.await["unchanged"], 1);
    service.stop().await;
    let again = program.run(&migrate).await;
    // The log has continued on the servers.
    assert!(again.sentence(1).contains("the servers hold another log already"));
    assert_no_secret(&program.logs());

    let wrong = ["migrate", "--from", &data, "--nats", &bus, "--to", "mysql://u:hushhush@h/d"];
    let wrong = program.run(&wrong).await;
    let told = wrong.sentence(1);
    assert!(told.contains("postgres://") && !told.contains("hushhush"), "{told}");
}
