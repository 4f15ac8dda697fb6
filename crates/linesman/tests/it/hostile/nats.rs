//! NATS that requires a password, as in `deploy/`.

use std::process::Command;

use change_log::{LogError, StreamLocation, StreamLog};
use test_servers::{Nats, Postgres};
use tokio::runtime::Handle;

use crate::harness::{TestProgram, bout, ndjson, wait_for};

const EVENTS: &str = "/v1/sports/mma/events";

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_the_password_works_and_a_client_without_it_is_refused() {
    let postgres = Postgres::start().unwrap();
    let nats = Nats::start_guarded("linesman", "a-long-secret").unwrap();
    let program = TestProgram::new()
        .set("LINESMAN_DATABASE__URL", postgres.create_database("linesman").unwrap())
        .set("LINESMAN_CLUSTER__NATS_URL", nats.url())
        .set("LINESMAN_MARKET__REFRESH_INTERVAL", "1s");
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    wait_for("a push to be taken", async || {
        let lines = ndjson(&[bout("r", "Anderson", "Opponent")]);
        let answer = service.post(&token, lines).await.unwrap();
        (answer.status == 200).then_some(())
    })
    .await;
    assert_eq!(service.records(EVENTS, &key, 1).await.len(), 1);
    assert!(!program.logs().contains("a-long-secret"));
    let shown = program.ok(&["config"]).await;
    assert!(shown.contains("nats_url") && !shown.contains("a-long-secret"), "{shown}");

    let port = nats.port(0).unwrap();
    for url in
        [format!("nats://127.0.0.1:{port}"), format!("nats://linesman:guess@127.0.0.1:{port}")]
    {
        let place =
            StreamLocation { url, name: "live".into(), replicas: None, entry_bytes_max: 9999 };
        let runtime = Handle::current();
        let refused = tokio::task::spawn_blocking(move || StreamLog::find(&runtime, &place));
        let refused = refused.await.unwrap();
        assert!(matches!(refused, Err(LogError::Unavailable(_))), "{refused:?}");
    }
    service.stop().await;
}

/// NATS accepts the example in `deploy/`, and requires a password from clients and for routes.
#[test]
fn the_example_configuration_is_right_and_guarded() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/nats/nats.conf");
    let check = |password: Option<&str>| {
        let mut command = Command::new(test_servers::nats_program().unwrap().path);
        command.args(["-t", "-c", path]).env("NATS_NAME", "nats-0");
        command.envs(password.map(|password| ("NATS_PASSWORD", password)));
        command.env("NATS_ROUTE_PASSWORD", "secret");
        for route in 0..3 {
            let url = format!("nats://route:secret@nats-{route}:6222");
            command.env(format!("NATS_ROUTE_{route}"), url);
        }
        command.status().unwrap().success()
    };
    assert!(check(Some("secret")) && !check(None), "none is run without a password by mistake");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.matches("authorization {").count(), 2);
}
