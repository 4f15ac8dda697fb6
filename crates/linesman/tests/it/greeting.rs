//! The output of a start works when it is tried.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::process::Command;

use crate::harness::{Answer, Done, TestProgram, assert_no_secret, bout, ndjson, wait_for};

/// Runs a line like a user who copied it into a shell.
async fn try_line(line: &str, program: &TestProgram) -> Value {
    let mut shell = Command::new("bash");
    // Options that an operator's shell would have set when the service was started.
    shell.args(["-c", &format!("{line} --silent --show-error --fail --noproxy '*'")]);
    shell.current_dir(program.path());
    let done = Done::of(shell).await;
    assert_eq!(done.code, Some(0), "{line}: {}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stdout))
}

#[tokio::test]
async fn the_curl_line_of_a_first_and_of_a_later_start_gives_records() {
    let program = TestProgram::new().set("LINESMAN_SANDBOX__ENABLED", "true");
    let service = program.start().await;
    let key = service.first_key().expect("a sandbox key").to_owned();
    assert!(service.curl_line().contains(&key) && service.curl_line().contains(&service.base));
    let records = try_line(service.curl_line(), &program).await;
    assert!(!records.as_array().unwrap().is_empty(), "the sandbox has odds from the first moment");
    assert_eq!(records[0]["sport_key"], "mma");
    assert_eq!(service.get("/v1/status", &key).await.json()["status"], "degraded");
    service.stop().await;

    let service = program.start().await;
    assert_eq!(service.first_key(), None);
    assert!(!service.greeting.contains(&key), "a key is shown once");
    let again = try_line(service.curl_line(), &program).await;
    assert!(!again.as_array().unwrap().is_empty());
    // The seed's events have the same ids at every start; the first of them may have ended meanwhile.
    let ids = |records: &Value| -> BTreeSet<String> {
        let records = records.as_array().unwrap().iter();
        records.map(|record| record["event_id"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!ids(&again).is_disjoint(&ids(&records)), "{again}");
    for address in ["/docs", "/healthz"] {
        assert_eq!(service.client.get(service.url(address)).send().await.unwrap().status(), 200);
    }
    // The service is ready while it publishes on time, which a busy machine may not always do.
    wait_for("a service that is ready", async || {
        let answer = service.client.get(service.url("/readyz")).send().await.unwrap();
        (answer.status() == 200).then_some(())
    })
    .await;
    service.stop().await;
    assert_no_secret(&program.logs());
}

#[tokio::test]
async fn the_greeting_names_every_page_where_a_browser_reaches_it() {
    let program = TestProgram::new();
    let place = |greeting: &str, name: &str| {
        let line = greeting.lines().find_map(|line| line.strip_prefix(name));
        line.map(|url| url.trim().to_owned())
    };
    let service = program.start_at("0.0.0.0:0", "all").await;
    assert!(service.base.starts_with("http://localhost:"), "{}", service.greeting);
    assert!(!service.greeting.contains("0.0.0.0"), "{}", service.greeting);
    for (name, path) in [("Board", "/board"), ("Status", "/status"), ("Docs", "/docs")] {
        let url = place(&service.greeting, name).unwrap();
        assert_eq!(url, service.url(path));
        assert_eq!(service.client.get(url).send().await.unwrap().status(), 200, "{name}");
    }
    assert_eq!(place(&service.greeting, "Console"), Some(service.url("/console")));
    let link = program.run(&["operators", "link", "--new"]).await.stdout;
    assert!(link.starts_with("http://localhost:"), "{link}");
    service.stop().await;

    let program = TestProgram::new()
        .set("LINESMAN_DASHBOARD__PUBLIC_URL", "https://odds.example.com")
        .set("LINESMAN_DASHBOARD__BOARD", "off");
    let service = program.start().await;
    for (name, path) in [("Status", "/status"), ("Dashboard", "/dashboard"), ("Docs", "/docs")] {
        let url = format!("https://odds.example.com{path}");
        assert_eq!(place(&service.greeting, name), Some(url));
    }
    assert_eq!(place(&service.greeting, "Board"), None);
}

#[tokio::test]
async fn a_push_door_of_its_own_is_where_the_greeting_says() {
    let program = TestProgram::new().set("LINESMAN_SERVER__INGEST_LISTEN", "127.0.0.1:0");
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    let door = service.greeting.lines().find_map(|line| line.strip_prefix("Ingest"));
    let door = door.unwrap().trim();
    assert!(!door.starts_with(&service.base), "{door}");
    let push = |url: &str| {
        let request = service.client.post(url).bearer_auth(&token);
        Answer::of(request.body(ndjson(&[bout("a", "Home Side", "Away Side")])))
    };
    assert_eq!(push(door).await.unwrap().json()["accepted"], 1);
    let elsewhere = push(&service.url("/ingest/v1/messages")).await.unwrap();
    assert_eq!((elsewhere.status, elsewhere.code().as_str()), (404, "not_found"));
    service.records("/v1/sports/mma/events", &key, 1).await;
    // The listener of ingest does not serve the API.
    let books = door.replace("/ingest/v1/messages", "/v1/books");
    let refused = Answer::of(service.client.get(books).header("X-API-Key", &key)).await.unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (404, "not_found"));
}

#[tokio::test]
async fn a_start_without_an_operator_prints_a_link_that_makes_one_and_only_the_newest_works() {
    let program = TestProgram::new();
    let link = |greeting: &str| {
        greeting.lines().map(str::trim).find(|line| line.contains("/link/")).map(str::to_owned)
    };
    let service = program.start().await;
    let older = link(&service.greeting).expect("a link");
    assert!(older.starts_with(&service.base), "{older}");
    assert_eq!(service.client.get(&older).send().await.unwrap().status(), 200);
    service.stop().await;

    let service = program.start().await;
    let newer = link(&service.greeting).expect("a link");
    let token = older.rsplit('/').next().unwrap().to_owned();
    let gone = service.client.get(service.url(&format!("/link/{token}"))).send().await.unwrap();
    assert_eq!(gone.status(), 400, "the one before has ended");
    assert_eq!(service.client.get(&newer).send().await.unwrap().status(), 200);
    service.stop().await;
    let token = newer.rsplit('/').next().unwrap();
    assert!(
        !program.logs().contains(token),
        "a link is for whoever started the service, not for its log"
    );

    let program = TestProgram::new().set("LINESMAN_DASHBOARD__ENABLED", "false");
    let service = program.start().await;
    assert_eq!(link(&service.greeting), None);
    assert!(!service.greeting.contains("Dashboard"));
    service.stop().await;
}
