//! Identities of events, as an operator sees and changes them: `events`, `aliases`, `match`, and the feeds' names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::harness::{Answer, Service, TestProgram, bout, moneyline, ndjson, wait_for};

/// Two feeds with two names for one fighter: only an operator can know.
async fn two_names(program: &TestProgram, service: &Service) {
    let (north, south) = (program.feed("north").await, program.feed("south").await);
    let said = [
        bout("n-1", "Bobby Vance", "Tom Reed"),
        moneyline("n-1", "fanduel", &[("Bobby Vance", 140), ("Tom Reed", -165)]),
    ];
    service.push_all(&north, &said).await;
    let mut swapped = bout("s-1", "Tom Reed", "King Vance");
    swapped["commence_time"] = said[0]["commence_time"].clone();
    let odds = moneyline("s-1", "bet365", &[("King Vance", 150), ("Tom Reed", -180)]);
    service.push_all(&south, &[swapped, odds]).await;
}

async fn events(service: &Service, key: &str, count: usize) -> Vec<Value> {
    wait_for(&format!("{count} events"), async || {
        let events = service.pages("/v1/sports/mma/events", key).await;
        (events.len() == count).then_some(events)
    })
    .await
}

fn id(event: &Value) -> &str {
    event["id"].as_str().unwrap()
}

#[tokio::test]
async fn an_operators_merge_and_split_hold_at_once_and_after_a_kill() {
    let program = TestProgram::new();
    let service = program.start().await;
    let key = program.live_key().await;
    two_names(&program, &service).await;
    let listed = events(&service, &key, 2).await;
    let elder = listed.iter().find(|event| event["home_team"] == "Bobby Vance").unwrap();
    let younger = listed.iter().find(|event| event["home_team"] == "Tom Reed").unwrap();
    let (elder, younger) = (id(elder).to_owned(), id(younger).to_owned());

    let unsure = program.ok(&["events", "unsure"]).await;
    assert!(unsure.contains(&elder) && unsure.contains(&younger), "{unsure}");
    assert!(unsure.contains("the other may be somebody else"), "{unsure}");

    program.ok(&["events", "merge", &younger, &elder]).await;
    let one = events(&service, &key, 1).await;
    assert_eq!(id(&one[0]), elder, "lists show the elder");
    // Both ids return the older event's record.
    let path = format!("/v1/sports/mma/events/{younger}");
    assert_eq!(service.get(&path, &key).await.json()["id"], elder.as_str());
    let odds = format!("/v1/sports/mma/odds?event_ids={younger},{elder}");
    let records = service.pages(&odds, &key).await;
    let prices: BTreeSet<String> = records.iter().map(priced).collect();
    let expected =
        ["bet365 Bobby Vance 150 Tom Reed -180", "fanduel Bobby Vance 140 Tom Reed -165"];
    assert_eq!(prices, expected.map(str::to_owned).into());
    assert_eq!(program.ok(&["events", "unsure"]).await, "no possible duplicates");
    let profile: Value =
        serde_json::from_str(&program.ok(&["events", "show", &younger, "--json"]).await).unwrap();
    assert_eq!((&profile["id"], &profile["also"]), (&json!(elder), &json!([younger])));
    assert_eq!(profile["refs"][1]["ref"], "s-1");
    let learnt = program.ok(&["aliases", "export"]).await;
    assert!(learnt.contains(r#""name":"King Vance","is":"Bobby Vance"}"#), "{learnt}");

    service.kill().await;
    let service = program.start().await;
    assert_eq!(id(&events(&service, &key, 1).await[0]), elder);
    assert_eq!(service.get(&path, &key).await.json()["id"], elder.as_str());
    let shown = program.ok(&["events", "show", &elder]).await;
    assert!(shown.contains("\n  fanduel moneyline: priced, last update "), "{shown}");
    assert!(shown.contains("\n  bet365 spread: not offered, last read "), "{shown}");
    let path = format!("/v1/sports/mma/events/{elder}/explain?regions=us,uk,eu,au");
    let explained = service.get(&path, &key).await.json();
    let shown: Value =
        serde_json::from_str(&program.ok(&["events", "show", &elder, "--json"]).await).unwrap();
    assert_eq!(shown["cells"]["no_source"], explained["no_source"]);
    assert_eq!(shown["cells"]["books"].as_array().unwrap().len(), 2);
    program.ok(&["events", "split", &elder, "south:s-1"]).await;
    let two = events(&service, &key, 2).await;
    let ids: BTreeSet<&str> = two.iter().map(id).collect();
    assert_eq!(ids, [elder.as_str(), younger.as_str()].into(), "the former id is back");
    assert!(!program.ok(&["aliases", "export"]).await.contains(r#""is":"Bobby Vance""#));
    // And it stays separate, whatever the feeds send again.
    let south = program.ok(&["feeds", "create", "west"]).await;
    service.push_all(&south, &[bout("w-1", "Tom Reed", "Bobby Vance")]).await;
    service.stop().await;
    let shown = program.ok(&["events", "show", &elder]).await;
    assert!(shown.contains("north:n-1") && shown.contains("west:w-1"), "{shown}");
    assert!(!shown.contains("south:s-1"), "{shown}");
    // The cells too, from the log: they were not read since the server stopped.
    assert!(shown.contains("\n  fanduel moneyline: priced, last update "), "{shown}");
    assert!(shown.contains("\n  no feed delivers "), "{shown}");
}

/// Bookmaker, then each outcome with its price.
fn priced(record: &Value) -> String {
    let outcomes = record["outcomes"].as_array().unwrap().iter();
    let outcomes: Vec<String> = outcomes
        .map(|outcome| format!("{} {}", outcome["name"].as_str().unwrap(), outcome["price"]))
        .collect();
    format!("{} {}", record["bookmaker"].as_str().unwrap(), outcomes.join(" "))
}

#[tokio::test]
async fn identities_are_changed_without_a_server_too_and_aliases_move_to_another_folder() {
    let program = TestProgram::new();
    let service = program.start().await;
    let key = program.live_key().await;
    two_names(&program, &service).await;
    let listed = events(&service, &key, 2).await;
    service.stop().await;
    program.ok(&["events", "merge", id(&listed[0]), id(&listed[1])]).await;
    let again = program.run(&["events", "merge", id(&listed[0]), id(&listed[1])]).await;
    assert!(again.sentence(1).contains("both ids are event"), "{}", again.stderr);
    let nobody = program.run(&["events", "show", "evt_00000000001"]).await;
    assert!(nobody.sentence(1).contains("there is no event"), "{}", nobody.stderr);
    let learnt = program.ok(&["aliases", "export"]).await;

    // A decision in one installation settles the same question in another by itself.
    let other = TestProgram::new();
    let service = other.start().await;
    let key = other.live_key().await;
    other.write("learnt.ndjson", &format!("{learnt}\n"));
    assert_eq!(other.ok(&["aliases", "import", "learnt.ndjson"]).await, "1 aliases imported");
    two_names(&other, &service).await;
    let one = events(&service, &key, 1).await;
    assert_eq!(one[0]["markets"], json!(["moneyline"]));
    assert_eq!(other.ok(&["events", "unsure"]).await, "no possible duplicates");
    other.write("wrong.ndjson", "{\"sport\":\"mma\",\"name\":\"x\"}\n");
    let wrong = other.run(&["aliases", "import", "wrong.ndjson"]).await;
    assert!(wrong.sentence(1).contains("either `is` or `is_not` is required"), "{}", wrong.stderr);
    other.write("curling.ndjson", "{\"sport\":\"curling\",\"name\":\"x\",\"is\":\"y\"}\n");
    let wrong = other.run(&["aliases", "import", "curling.ndjson"]).await;
    assert!(wrong.sentence(1).contains("there is no sport `curling`"), "{}", wrong.stderr);
}

#[tokio::test]
async fn a_later_word_settles_what_was_unsure_and_an_operator_may_say_that_two_are_two() {
    let program = TestProgram::new();
    let service = program.start().await;
    let key = program.live_key().await;
    let (north, south) = (program.feed("north").await, program.feed("south").await);
    let at = |reference: &str, start: &str| {
        let mut event = bout(reference, "Milan Dray", "Pavel Orsk");
        event["commence_time"] = json!(start);
        event
    };
    service.push_all(&north, &[at("n-1", "2027-03-06T20:00:00Z")]).await;
    service.push_all(&south, &[at("s-1", "2027-03-31T20:00:00Z")]).await;
    let listed = events(&service, &key, 2).await;
    let unsure = program.ok(&["events", "unsure"]).await;
    assert!(unsure.contains("too far apart"), "{unsure}");
    service.push_all(&south, &[at("s-1", "2027-03-06T21:00:00Z")]).await;
    events(&service, &key, 1).await;
    assert_eq!(program.ok(&["events", "unsure"]).await, "no possible duplicates");

    service.push_all(&north, &[at("n-2", "2027-08-01T20:00:00Z")]).await;
    service.push_all(&south, &[at("s-2", "2027-08-30T20:00:00Z")]).await;
    let listed: Vec<Value> =
        events(&service, &key, 3).await.into_iter().filter(|e| !listed.contains(e)).collect();
    let ids: Vec<&str> = listed.iter().rev().take(2).map(id).collect();
    program.ok(&["events", "apart", ids[0], ids[1]]).await;
    assert_eq!(program.ok(&["events", "unsure"]).await, "no possible duplicates");
    service.push_all(&south, &[at("s-2", "2027-08-01T20:00:00Z")]).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(
        events(&service, &key, 3).await.len(),
        3,
        "an operator's decision outranks the names"
    );
}

#[tokio::test]
async fn what_a_bad_feed_does_is_in_the_metrics_and_the_samples() {
    let program = TestProgram::new();
    let service = program.start().await;
    let (north, bad) = (program.feed("north").await, program.feed("bad").await);
    service.push_all(&north, &[bout("n-1", "Milan Dray", "Pavel Orsk")]).await;
    let lines = [
        bout("b-1", "Milan Dray", "Pavel Orsk"),
        bout("b-2", "Milan Dray", "Pavel Orsk"),
        bout("b-1", "Pavel Orsk", "Milan Dray"),
        bout("b-1", "Emil Roth", "Jan Sever"),
        json!({ "type": "remove", "ref": "never" }),
    ];
    service.post(&bad, ndjson(&lines)).await.unwrap();
    let page = service.metrics().to_owned();
    let get = async |url: &str| Answer::of(service.client.get(url)).await.unwrap();
    let metrics = get(&page).await;
    for kind in ["duplicate_event", "turned_sides", "reused_ref"] {
        let series = format!("linesman_feed_oddities_total{{feed=\"bad\",kind=\"{kind}\"}} 1\n");
        assert!(metrics.text().contains(&series), "{series} in {}", metrics.text());
    }
    assert!(metrics.text().contains("linesman_matching_joins_total{world=\"live\"} 1\n"));
    let feeds = get(&page.replace("/metrics", "/feeds")).await.json();
    let account = feeds["feeds"].as_array().unwrap().iter().find(|f| f["feed"] == "bad").unwrap();
    assert_eq!(account["rejected"], json!({ "unknown_ref": 1 }));
    let samples: Vec<&str> = account["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sample| sample["code"].as_str().unwrap())
        .collect();
    assert_eq!(samples, ["unknown_ref", "reused_ref", "turned_sides", "duplicate_event"]);
}

/// The groups of refs that are the same event, regardless of the events' ids.
fn partition(output: &str) -> BTreeSet<BTreeSet<(String, String)>> {
    let mut groups: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for line in output.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| line[field].as_str().unwrap().to_owned();
        assert!((0.0..=1.0).contains(&line["confidence"].as_f64().unwrap()), "{line}");
        assert!(!text("why").is_empty());
        groups.entry(text("event_id")).or_default().insert((text("feed"), text("ref")));
    }
    groups.into_values().collect()
}

#[tokio::test]
async fn match_gives_the_same_whichever_file_and_line_comes_first() {
    let program = TestProgram::new();
    let north = [
        bout("1", "Milan Dray", "Pavel Orsk"),
        bout("2", "Emil Roth", "Jan Sever"),
        bout("3", "Jiří Novák", "Tom Reed"),
    ];
    let south = [bout("a", "Orsk, Pavel", "Dray M."), bout("b", "Jan Sever", "Ivo Kral")];
    let west = [bout("x", "Reed T.", "Novak J."), bout("y", "Sever J.", "Roth, Emil")];
    let mut seen = BTreeSet::new();
    for turn in 0..3 {
        let mut files =
            [("north", north.to_vec()), ("south", south.to_vec()), ("west", west.to_vec())];
        for (name, lines) in &mut files {
            let by = turn % lines.len();
            lines.rotate_left(by);
            program.write(&format!("{name}.ndjson"), &ndjson(lines));
        }
        let mut words = vec!["match".to_owned(), "--json".to_owned()];
        words.extend(files.iter().map(|(name, _)| format!("{name}.ndjson")));
        words[2..].rotate_left(turn);
        seen.insert(partition(&program.ok(&words).await));
    }
    let expected = [
        vec![("north", "1"), ("south", "a")],
        vec![("north", "2"), ("west", "y")],
        vec![("north", "3"), ("west", "x")],
        vec![("south", "b")],
    ];
    let owned = |refs: &Vec<(&str, &str)>| {
        refs.iter().map(|(feed, held)| ((*feed).to_owned(), (*held).to_owned())).collect()
    };
    assert_eq!(seen, [expected.iter().map(owned).collect()].into());
}
