//! Orderly stops and second starts.

use std::fs::File;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{DAY, TestProgram, bout, clear_of_the_turn_of, moneyline, ndjson, wait_for};

const ODDS: &str = "/v1/sports/mma/odds";
const EVENTS: &str = "/v1/sports/mma/events";

#[tokio::test]
async fn a_second_start_keeps_ids_prices_keys_feeds_and_maintenance() {
    let program = TestProgram::new();
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    let revoked = program.live_key().await;
    program.ok(&["keys", "revoke", &revoked]).await;
    let lines = [
        bout("a", "Jiri Prochazka", "Alex Pereira"),
        bout("b", "Zhang Weili", "Rose Namajunas"),
        moneyline("a", "fanduel", &[("Jiri Prochazka", 140), ("Alex Pereira", -165)]),
        moneyline("b", "draftkings", &[("Zhang Weili", -333), ("Rose Namajunas", 260)]),
    ];
    service.push_all(&token, &lines).await;
    let odds = service.records(ODDS, &key, 2).await;
    let events = service.records(EVENTS, &key, 2).await;
    program.ok(&["maintenance", "on", "--retry-after", "90s"]).await;
    service.stop().await;

    let service = program.start().await;
    assert_eq!(service.first_key(), None, "a second start makes no key");
    let closed = service.get(ODDS, &key).await;
    assert_eq!((closed.status, closed.code().as_str()), (503, "maintenance"));
    assert_eq!(closed.header("retry-after"), Some("90"));
    let status = service.get("/v1/status", &key).await;
    assert_eq!((status.status, &status.json()["status"]), (200, &Value::from("maintenance")));
    program.ok(&["maintenance", "off"]).await;
    assert_eq!(service.pages(ODDS, &key).await, odds);
    assert_eq!(service.pages(EVENTS, &key).await, events);
    assert_eq!(service.get("/v1/status", &revoked).await.status, 401);
    // The feed's refs are still known: repeating the same messages changes nothing.
    let again = service.post(&token, ndjson(&lines)).await.unwrap();
    assert_eq!(again.json()["unchanged"], 4, "{}", again.text());
    service.stop().await;

    // After the orderly stops, a kill.
    let service = program.start().await;
    service.kill().await;
    let service = program.start().await;
    let ids = |records: &[Value]| records.iter().map(|r| r["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&service.pages(ODDS, &key).await), ids(&odds));
    assert_eq!(service.pages(EVENTS, &key).await, events);
}

#[tokio::test]
async fn a_request_under_way_is_finished_before_an_orderly_stop() {
    let program = TestProgram::new();
    let mut service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    let body = ndjson(&[bout("a", "Home Side", "Away Side")]);
    let (first, second) = body.split_at(body.len() / 2);
    let mut stream = TcpStream::connect(service.address()).await.unwrap();
    let head = format!(
        "POST /ingest/v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(first.as_bytes()).await.unwrap();
    // An idle connection does not delay the stop.
    let mut idle = TcpStream::connect(service.address()).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(idle.read(&mut [0; 4096]).await.unwrap() > 0);

    service.terminate().await;
    wait_for("the listener to close", async || {
        TcpStream::connect(service.address()).await.err().map(drop)
    })
    .await;
    assert_eq!(idle.read(&mut [0; 16]).await.unwrap(), 0, "the idle connection is closed");
    stream.write_all(second.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.contains(
            r#"{"accepted":1,"unchanged":0,"superseded":0,"rejected_total":0,"rejected":[]}"#
        ),
        "{answer}"
    );
    assert_eq!(service.ended().await.code(), Some(0), "{}", service.stderr());
    assert!(service.stderr().contains("SIGTERM"));

    let service = program.start().await;
    assert_eq!(service.records(EVENTS, &key, 1).await[0]["home_team"], "Home Side");
}

#[tokio::test]
async fn an_orderly_stop_gives_unspent_leases_back() {
    clear_of_the_turn_of(DAY).await;
    let program = TestProgram::new();
    program.init().await;
    let mut create = vec!["keys", "create", "--kind", "production", "--burst-per-minute", "100000"];
    create.extend(["--requests-per-day", "1000", "--requests-per-month", "1500"]);
    let key = program.ok(&create).await;
    let mut used = 0;
    for requests in [7, 5, 0] {
        let service = program.start().await;
        let standing = service.get("/v1/status", &key).await;
        assert_eq!((standing.requests_used(), standing.requests_remaining()), (used, 1000 - used));
        for _ in 0..requests {
            let answer = service.get("/v1/books", &key).await;
            used += 1;
            assert_eq!((answer.status, answer.requests_used()), (200, used));
        }
        service.stop().await;
    }
}

#[tokio::test]
async fn a_second_server_on_a_folder_is_refused() {
    let program = TestProgram::new();
    let service = program.start().await;
    let second = program.run(&["--listen", "127.0.0.1:0"]).await;
    let sentence = second.sentence(1);
    assert!(sentence.starts_with("another linesman server runs on "), "{sentence}");
    assert!(sentence.contains("--data"), "{sentence}");
    // The first one is not affected: command lines still reach it.
    let key = program.live_key().await;
    assert_eq!(service.get("/v1/status", &key).await.status, 200);
}

#[tokio::test]
async fn an_address_that_is_taken_is_told() {
    let (program, other) = (TestProgram::new(), TestProgram::new());
    let service = program.start().await;
    let second = other.run(&["--listen", service.address()]).await;
    assert_eq!(second.code, Some(1));
    let sentence = second.stderr.lines().find(|line| line.starts_with("linesman: ")).unwrap();
    assert!(
        sentence.contains("server.listen") && sentence.contains(service.address()),
        "{sentence}"
    );
}

#[tokio::test]
async fn a_metrics_address_that_nobody_chose_gives_way() {
    let program = TestProgram::new().unset("LINESMAN_SERVER__OPS_LISTEN");
    // If this fails, another program has the port, which is equivalent.
    let _taken = TcpListener::bind("127.0.0.1:9464").await;
    let service = program.start().await;
    let address = service.metrics();
    assert!(!address.contains(":9464"), "{address}");
    let metrics = service.client.get(address).send().await.unwrap();
    assert!(metrics.text().await.unwrap().contains("linesman_"));
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_told() {
    let program = TestProgram::new();
    std::fs::write(program.data(), "a file where the folder should be").unwrap();
    for verb in [&["keys", "list"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        assert!(program.run(verb).await.sentence(1).contains("the data"), "{verb:?}");
    }
    std::fs::remove_file(program.data()).unwrap();
    std::fs::create_dir(program.data()).unwrap();
    std::fs::write(program.data().join("accounts.db"), "no database at all\n".repeat(100)).unwrap();
    for verb in [&["keys", "list"][..], &["feeds", "list"], &["serve", "--listen", "127.0.0.1:0"]] {
        let done = program.run(verb).await;
        assert!(done.sentence(1).contains("accounts.db"), "{verb:?}: {}", done.stderr);
    }
}

#[tokio::test]
async fn what_a_killed_service_left_behind_misleads_no_command_line() {
    let program = TestProgram::new();
    program.start().await.kill().await;
    assert!(program.data().join("control.sock").exists(), "a killed service cannot tidy up");
    std::fs::write(program.data().join("control.json"), "an older version's").unwrap();
    let key = program.live_key().await;
    let service = program.start().await;
    assert_eq!(service.get("/v1/status", &key).await.status, 200);
    assert!(!program.data().join("control.json").exists());
    let other = program.live_key().await;
    assert_eq!(service.get("/v1/status", &other).await.status, 200);
}

#[tokio::test]
async fn a_command_line_that_looks_for_a_server_does_not_keep_one_from_starting() {
    let program = TestProgram::new();
    program.live_key().await;
    let looking = File::open(program.data().join("lock")).unwrap();
    looking.lock_shared().unwrap();
    let look = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        drop(looking);
    };
    let (service, ()) = tokio::join!(program.start(), look);
    service.stop().await;
}
