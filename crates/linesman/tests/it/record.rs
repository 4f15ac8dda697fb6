//! `linesman record` next to a running server, and its recording replayed into another one.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Done, Service, TestProgram, bout, moneyline, now, wait_for};

/// Odds, scores and events of a sport, with ids replaced by what they identify.
async fn shown(service: &Service, key: &str, sport: &str) -> BTreeSet<String> {
    let events = service.pages(&format!("/v1/sports/{sport}/events"), key).await;
    let named = |id: &Value| {
        let event = events.iter().find(|event| event["id"] == *id);
        event.map_or(Value::Null, |event| json!([event["home_team"], event["commence_time"]]))
    };
    let mut shown = BTreeSet::new();
    for path in ["events", "scores", "odds"] {
        for mut row in service.pages(&format!("/v1/sports/{sport}/{path}"), key).await {
            let fields = row.as_object_mut().unwrap();
            if let Some(id) = fields.remove("event_id") {
                fields.insert("event".to_owned(), named(&id));
            }
            fields.remove("id");
            shown.insert(format!("{path} {row}"));
        }
    }
    shown
}

/// Pushes two feeds' messages about two bouts.
async fn speak(program: &TestProgram, service: &Service) {
    let (north, south) = (program.feed("north").await, program.feed("south").await);
    let said = [
        bout("n-1", "Tomas Veldt", "Oren Castellane"),
        bout("n-2", "Ida \"Ace\" Vale", "Ana Sömmer"),
        moneyline("n-1", "fanduel", &[("Tomas Veldt", 140), ("Oren Castellane", -165)]),
        moneyline("n-2", "fanduel", &[("Ida \"Ace\" Vale", 110), ("Ana Sömmer", -130)]),
    ];
    service.push_all(&north, &said).await;
    let mut swapped = bout("s-1", "OREN CASTELLANE", "Tomás Veldt");
    swapped["commence_time"] = said[0]["commence_time"].clone();
    let total = json!({
        "type": "odds", "ref": "s-1", "bookmaker": "bet365", "market": "total_rounds", "format": "decimal",
        "outcomes": [{ "name": "Over", "price": 1.91, "point": 2.5 }, { "name": "Under", "price": 1.91, "point": 2.5 }],
    });
    let score = json!({
        "type": "score", "ref": "n-2", "status": "live", "home_score": 1, "away_score": 0,
        "periods": [{ "number": 1, "home_score": 10, "away_score": 9 }],
    });
    service.push_all(&south, &[swapped, total]).await;
    service
        .push_all(&north, &[score, json!({ "type": "heartbeat", "bookmaker": "fanduel" })])
        .await;
}

#[tokio::test]
async fn a_recording_of_a_running_service_shows_the_same_in_an_empty_one() {
    let program = TestProgram::new();
    let service = program.start().await;
    let key = program.live_key().await;
    speak(&program, &service).await;
    wait_for("both bouts with their prices", async || {
        let shown = shown(&service, &key, "mma").await;
        let live = shown.iter().any(|row| row.contains(r#""status":"live""#));
        (shown.len() == 7 && live).then_some(())
    })
    .await;

    let recording = program.ok(&["record", "--world", "live"]).await;
    let later = program.ok(&["record", "--world", "live", "--from", &now().to_string()]).await;
    let original = (&service, &key);
    for recording in [recording, later] {
        let other = TestProgram::new();
        let replayed = other.start().await;
        let (key, token) = (other.live_key().await, other.feed("tape").await);
        other.write("tape.ndjson", &format!("{recording}\n"));
        let words = ["replay", "tape.ndjson", "--to", &replayed.base, "--token", &token];
        let said = other.ok(&[&words[..], &["--speed", "max"]].concat()).await;
        assert!(said.ends_with("0 superseded, 0 rejected"), "{said}");
        // Read again each time: the last change may not have been published yet when the others were.
        wait_for("the same to be shown", async || {
            let expected = shown(original.0, original.1, "mma").await;
            (shown(&replayed, &key, "mma").await == expected).then_some(())
        })
        .await;
        replayed.stop().await;
    }
    // The server is not affected, and the log is intact.
    service
        .push_all(&program.feed("west").await, &[bout("w-1", "Late Comer", "Last Minute")])
        .await;
    service.stop().await;
    let again = program.start().await;
    assert_eq!(again.records("/v1/sports/mma/events", &key, 3).await.len(), 3);
}

#[tokio::test]
async fn what_cannot_be_recorded_is_told_and_a_reader_that_leaves_is_no_error() {
    let program = TestProgram::new();
    let nothing = program.run(&["record", "--world", "sandbox"]).await;
    assert!(nothing.sentence(1).contains("there is no data folder at"), "{}", nothing.stderr);
    assert!(!program.data().exists(), "looking makes nothing");
    program.init().await;
    let nothing = program.run(&["record", "--world", "sandbox"]).await;
    assert!(nothing.sentence(1).contains("there is no log at"), "{}", nothing.stderr);
    let service = program.start().await;
    speak(&program, &service).await;
    let mut command = program.command(&["record", "--world", "live"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    let help = Done::of(program.command(&["record", "--help"])).await;
    assert!(help.stdout.contains("linesman record --world live --from"), "{}", help.stdout);
    assert!(help.stdout.contains("stale"), "{}", help.stdout);
}
