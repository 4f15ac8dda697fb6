//! `linesman match` and `linesman replay` on small recordings.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{TestProgram, assert_no_secret, moneyline, ndjson, wait_for};

fn event(reference: &str, commence_time: &str, home: &str, away: &str) -> Value {
    json!({
        "type": "event", "ref": reference, "sport": "mma", "competition": "Card",
        "commence_time": commence_time, "home": home, "away": away, "ts": "2027-02-01T10:00:00Z",
    })
}

#[tokio::test]
async fn events_of_two_recordings_are_matched_without_a_server() {
    let program = TestProgram::new();
    let one = [
        event("p-1", "2027-02-06T22:00:00Z", "Jiří Procházka", "Alex Pereira"),
        moneyline("p-1", "pinnacle", &[("Jiří Procházka", 140), ("Alex Pereira", -165)]),
        event("p-2", "2027-02-06T22:00:00Z", "Only Here", "Nobody Else"),
    ];
    let other = [
        event("f-9", "2027-02-06T23:00:00Z", "Alex Pereira", "JIRI PROCHAZKA"),
        event("f-8", "2027-06-06T23:00:00Z", "Alex Pereira", "Jiri Prochazka"),
    ];
    program.write("pinnacle.ndjson", &ndjson(&one));
    program.write("fanduel.ndjson", &ndjson(&other));
    let printed = program.ok(&["match", "pinnacle.ndjson", "fanduel.ndjson", "--json"]).await;
    let lines: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut events = BTreeMap::new();
    for line in &lines {
        let field = |name: &str| line[name].as_str().unwrap().to_owned();
        assert!((0.0..=1.0).contains(&line["confidence"].as_f64().unwrap()), "{line}");
        assert!(!field("why").is_empty());
        events.insert((field("feed"), field("ref")), field("event_id"));
    }
    assert_eq!((lines.len(), events.len()), (4, 4), "one line for each feed and ref: {printed}");
    let id = |feed: &str, reference: &str| &events[&(feed.to_owned(), reference.to_owned())];
    assert_eq!(id("pinnacle", "p-1"), id("fanduel", "f-9"), "swapped, folded, an hour off");
    assert_ne!(id("pinnacle", "p-1"), id("fanduel", "f-8"), "another date");
    assert_ne!(id("pinnacle", "p-1"), id("pinnacle", "p-2"));
    let plain = program.ok(&["match", "pinnacle.ndjson", "fanduel.ndjson"]).await;
    assert_eq!(plain.lines().count(), 4);
    assert!(!program.data().join("accounts.db").exists(), "matching is offline");

    std::fs::create_dir(program.path().join("again")).unwrap();
    program.write("again/pinnacle.ndjson", &ndjson(&one));
    let twice = program.run(&["match", "pinnacle.ndjson", "again/pinnacle.ndjson"]).await;
    assert!(twice.sentence(1).contains("`pinnacle`"), "{}", twice.stderr);
}

#[tokio::test]
async fn a_recording_is_replayed_into_a_running_service() {
    let program = TestProgram::new();
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("replayed").await);
    let mut lines = vec![event("a", "2027-02-06T22:00:00Z", "Home Side", "Away Side")];
    // The recording is of the past; a price every second for most of an hour.
    for second in 0..3000 {
        let mut odds =
            moneyline("a", "fanduel", &[("Home Side", 150 + second), ("Away Side", -190)]);
        odds["ts"] = json!(format!("2026-02-01T10:{:02}:{:02}Z", second / 60, second % 60));
        lines.push(odds);
    }
    lines[0]["ts"] = json!("2026-02-01T10:00:00Z");
    lines.push(
        json!({ "type": "odds", "ref": "unheard of", "bookmaker": "fanduel", "market": "moneyline",
        "format": "american", "outcomes": [], "ts": "2026-02-01T10:59:00Z" }),
    );
    // Lines are numbered as in an editor.
    program.write("saturday.ndjson", &format!("\n{}", ndjson(&lines)));
    let replay = |to: &str, token: &str| {
        let words = ["replay", "saturday.ndjson", "--to", to, "--token", token, "--speed", "max"];
        words.map(str::to_owned)
    };
    let done = program.run(&replay(&service.base, &token)).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.stdout, "3002 lines: 3001 accepted, 0 unchanged, 0 superseded, 1 rejected\n");
    assert!(done.stderr.contains("saturday.ndjson:3003: unknown_ref"), "{}", done.stderr);
    assert_no_secret(&done.stderr);
    let last = wait_for("the last price", async || {
        let odds = service.get("/v1/sports/mma/odds", &key).await.json();
        (odds[0]["outcomes"][0]["price"] == 3149).then(|| odds[0]["last_update"].clone())
    })
    .await;
    assert_eq!(last, "2026-02-01T10:49:59Z");
    // Replayed again: nothing is newer than the stored state.
    let again = program.run(&replay(&service.base, &token)).await;
    assert_eq!(again.stdout, "3002 lines: 0 accepted, 2 unchanged, 2999 superseded, 1 rejected\n");

    let wrong = format!("fk_{}", "A".repeat(token.len() - 3));
    let refused = program.run(&replay(&service.base, &wrong)).await;
    let sentence = refused.sentence(1);
    assert!(sentence.contains("401") && sentence.contains("feed token"), "{sentence}");
    assert_no_secret(&refused.stderr);
    assert_no_secret(&program.logs());
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_is_told() {
    let program = TestProgram::new();
    program.write("x.ndjson", "{}\n");
    let to = format!("http://127.0.0.1:{}", test_servers::free_port().unwrap());
    let token = format!("fk_{}", "A".repeat(32));
    let words = ["replay", "x.ndjson", "--to", &to, "--token", &token, "--speed", "max"];
    let done = program.run(&words).await;
    assert!(done.sentence(1).contains("cannot reach"), "{}", done.stderr);
    assert_no_secret(&done.stderr);
    let empty = program.write("empty.ndjson", "\n");
    let words = ["replay", empty.to_str().unwrap(), "--to", &to, "--token", &token];
    assert!(program.run(&words).await.sentence(1).contains("are empty"));
}
