//! `linesman get` and `linesman why` against the running program.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::harness::{
    Done, HOUR, Service, TIMEOUT, TestProgram, assert_no_secret, bout, clear_of_the_turn_of,
    moneyline, wait_for,
};

/// Runs a query with the key in the environment.
async fn get(program: &TestProgram, service: &Service, key: &str, arguments: &[&str]) -> Done {
    let mut command = program.command(arguments);
    command.env("LINESMAN_URL", &service.base).env("LINESMAN_KEY", key);
    Done::of(command).await
}

/// The columns of a table, and its number of rows.
fn shape(table: &str) -> (Vec<&str>, usize) {
    let mut lines = table.lines();
    (lines.next().unwrap_or_default().split(',').collect(), lines.count())
}

#[tokio::test]
async fn everything_can_be_read_from_the_command_line() {
    // One publication for all commands.
    clear_of_the_turn_of(HOUR).await;
    let program = TestProgram::new()
        .set("LINESMAN_SANDBOX__ENABLED", "true")
        .set("LINESMAN_MARKET__REFRESH_INTERVAL", "1h")
        .set("LINESMAN_MARKET__STALE_AFTER", "3h");
    let service = program.start().await;
    let key = service.first_key().expect("a sandbox key");
    let read = async |arguments: &[&str]| {
        let done = get(&program, &service, key, arguments).await;
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        done.stdout
    };
    for (what, column) in [
        ("sports", "key"),
        ("books", "regions"),
        ("status", "rate_limit.burst_per_minute"),
        ("history", "publications"),
    ] {
        let table = read(&["get", what]).await;
        let (columns, rows) = shape(&table);
        assert!(columns.contains(&column) && rows > 0, "{what}: {table}");
    }
    for what in
        ["odds", "scores", "events", "best", "fair", "arbitrage", "ev", "middles", "coverage"]
    {
        let table = read(&["get", what, "mma"]).await;
        assert!(shape(&table).0.len() > 5, "{what}: {table}");
    }
    // All pages, under one header.
    let table = read(&["get", "odds", "mma", "--odds-format", "decimal"]).await;
    assert_eq!(table.matches("event_id,").count(), 1);
    assert!(shape(&table).1 > 1_000, "{} rows", shape(&table).1);
    let page = read(&["get", "odds", "mma", "--limit", "2", "--odds_format", "decimal"]).await;
    assert!(table.starts_with(&page) && shape(&page).1 < 10, "{page}");
    // The response as it is received.
    let page = read(&["get", "events", "mma", "--limit", "3", "--json"]).await;
    let answer = service.get("/v1/sports/mma/events?limit=3", key).await;
    assert_eq!(page.trim_end().as_bytes(), answer.body.as_slice());
    let events: Value = serde_json::from_str(&page).unwrap();
    let event = events[0]["id"].as_str().unwrap();
    assert!(read(&["get", "event", "mma", event]).await.contains(event));
    let table = read(&["get", "closing", "mma", "--market", "moneyline", "--limit", "5"]).await;
    let (columns, rows) = shape(&table);
    assert!(columns.contains(&"close.price") && columns.contains(&"open.point"), "{table}");
    assert!((5..=15).contains(&rows), "{table}");
    let table = read(&["get", "price-path", "mma", event, "--market", "moneyline"]).await;
    let (columns, rows) = shape(&table);
    assert!(columns.contains(&"published_at") && columns.contains(&"price") && rows > 0, "{table}");
    let explained = read(&["get", "explain", "mma", event]).await;
    assert_eq!(read(&["why", event]).await, explained);
    assert!(shape(&explained).0.contains(&"state"));
    let explained = read(&["why", event, "--json", "--market", "moneyline"]).await;
    let explained: Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(explained["event_id"], event);
    service.stop().await;
}

#[tokio::test]
async fn a_query_that_fails_says_why_and_what_to_do() {
    let program = TestProgram::new();
    let service = program.start().await;
    let key = program.live_key().await;
    let file = program.write("the.key", &format!("{key}\n"));
    let file = file.to_str().unwrap();
    let by_file = ["get", "status", "--url", &service.base, "--key-file", file];
    let table = program.ok(&by_file).await;
    assert!(table.contains("burst_per_minute"), "{table}");
    for (arguments, code, told) in [
        (&["get", "odds"][..], 2, "`linesman get sports` lists them"),
        (&["get", "oods", "mma"], 2, "a similar value exists: 'odds'"),
        (&["get", "sports", "mma"], 2, "is of no sport"),
        (&["get", "odds", "mma", "evt_1"], 2, "--event-ids"),
        (&["get", "explain", "mma"], 2, "a sport and an event are needed"),
        (&["get", "odds", "mma", "--markt", "moneyline"], 2, "'--market'"),
        (&["get", "status", "--url", "nowhere"], 2, "http://127.0.0.1:8080"),
        (&["get", "odds", "chess"], 1, "`linesman get sports` lists the sports"),
        (&["get", "odds", "mma", "--stake", "5"], 1, "param stake"),
        (&["get", "status", "--key-file", "none.key"], 1, "cannot read none.key"),
        (&["get", "status", "--url", "http://127.0.0.1:1"], 1, "--url or LINESMAN_URL"),
        (&["why", "evt_none"], 1, "`linesman get events SPORT` lists events"),
    ] {
        let done = get(&program, &service, &key, arguments).await;
        let sentence = done.sentence(code);
        assert!(sentence.contains(told), "{arguments:?}: {sentence}");
        assert_no_secret(sentence);
    }
    let done = get(&program, &service, "sk_live_x", &["get", "status"]).await;
    assert!(done.sentence(1).contains("--key-file or LINESMAN_KEY"), "{}", done.stderr);
    service.stop().await;
}

#[tokio::test]
async fn a_watched_list_shows_what_changes() {
    let program = TestProgram::new();
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("watch").await);
    service.push_all(&token, &[bout("w-1", "Ana Testa", "Bea Probe")]).await;
    let price =
        |price: i64| moneyline("w-1", "fanduel", &[("Ana Testa", price), ("Bea Probe", -200)]);
    service.push_all(&token, &[price(150)]).await;
    wait_for("the price", async || {
        let odds = service.get("/v1/sports/mma/odds", &key).await;
        (odds.json().as_array()?.len() == 1).then_some(())
    })
    .await;
    let mut command = program.command(&["get", "odds", "mma", "--watch"]);
    command.env("LINESMAN_URL", &service.base).env("LINESMAN_KEY", &key);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("a line");
        line.unwrap().expect("more")
    };
    assert!(next().await.starts_with("change,event_id,"));
    for name in ["Ana Testa", "Bea Probe"] {
        let line = next().await;
        assert!(line.starts_with("new,evt_") && line.contains(name), "{line}");
    }
    service.push_all(&token, &[price(160)]).await;
    let line = next().await;
    assert!(line.starts_with("changed,evt_") && line.ends_with(",Ana Testa,,160"), "{line}");
    service.push_all(&token, &[json!({"type": "remove", "ref": "w-1"})]).await;
    assert!(next().await.starts_with("gone,evt_"));
    child.kill().await.unwrap();
    service.stop().await;
}
