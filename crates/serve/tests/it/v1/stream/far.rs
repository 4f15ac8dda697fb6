//! A client that returns from a distant position is advanced in steps and reaches the current state, whatever it had
//! before (S7, S9).

use std::time::{Duration, Instant};

use accounts::KeyKind;
use api::v1::stream::StreamSettings;
use archive::Compact;
use domain::{Catalogue, World};
use serde_json::{Value, json};

use super::client::{Client, State, at_of, check, opened_on, pages, seen};
use super::ends::text;
use super::model::{Random, random_line};
use super::replay_live::shorten_log;
use crate::harness::{TestApp, line, ndjson, unlimited};

const LISTS: [(&str, &str); 3] = [("odds", "mma"), ("scores", "mma"), ("events", "mma")];
const QUERY: &str = "?sports=mma&channels=odds,scores,events";
/// A market of one sport and two bookmakers.
const SMALL: &str = r#"
[[sport]]
key = "mma"
title = "Mixed Martial Arts"
group = "combat"

[[bookmaker]]
key = "fanduel"
title = "FanDuel"
regions = ["us"]

[[bookmaker]]
key = "draftkings"
title = "DraftKings"
regions = ["us"]
"#;
const HEARTBEAT_S: u64 = 9;
/// A step of a stream has five times as many.
const ENTRIES_AT_ONCE: u64 = 1;

/// Reads the steps up to a publication, and returns their number.
async fn steps(client: &mut Client, last: &str) -> usize {
    let mut steps = 0;
    loop {
        let events = client.cut().await;
        assert!(events.iter().all(|event| event.name != "reset"), "{events:?}");
        steps += 1;
        if at_of(&events) == last {
            return steps;
        }
    }
}

/// Applies a list's changes since a cursor to a state, and compares that with all its pages.
async fn poll(app: &TestApp, key: &str, channel: &str, since: &str, (all, last): (&State, &str)) {
    let own = all.iter().filter(|((held, ..), _)| held == channel);
    let mut state: State = own.map(|(key, record)| (key.clone(), record.clone())).collect();
    let place = |id: &Value| {
        let id = id.as_str().unwrap().to_owned();
        (channel.to_owned(), "mma".to_owned(), id)
    };
    let answer = app.get(&format!("/v1/sports/mma/{channel}?since={since}"), key).await;
    assert_eq!(answer.status, 200, "{channel}: {}", answer.text());
    let delta = answer.json();
    for gone in delta["removed"].as_array().unwrap() {
        state.remove(&place(&gone["id"]));
    }
    for row in delta["upserts"].as_array().unwrap() {
        let id = if channel == "scores" { &row["event_id"] } else { &row["id"] };
        state.insert(place(id), seen(row, false));
    }
    assert!(state == pages(app, key, (channel, "mma"), last, false).await, "{channel}");
}

async fn comes_back(app: &TestApp, key: &str, cursor: &str, had: (&State, &State), last: &str) {
    let (then, all) = had;
    for mode in ["publication", "live"] {
        let query = format!("{QUERY}&mode={mode}");
        // A client with only the state at its cursor has the current state after every step.
        let (mut client, hello) = Client::open(app, key, &query, Some(cursor)).await;
        assert_eq!(hello["resumed"], true);
        client.state = then.clone();
        let events = client.cut().await;
        check(app, key, &client, &LISTS, &at_of(&events)).await;
        assert!(steps(&mut client, last).await > 3, "{mode}");
        check(app, key, &client, &LISTS, last).await;
        // A client that received any of the states in between, before its connection broke, loses them again.
        let (mut client, _) = Client::open(app, key, &query, Some(cursor)).await;
        (client.state, client.broken) = (all.clone(), true);
        steps(&mut client, last).await;
        check(app, key, &client, &LISTS, last).await;
    }
}

#[tokio::test]
async fn whoever_comes_back_from_afar_has_what_is_there_whatever_it_had() {
    let builder = || TestApp::builder().archived().entries_at_once(ENTRIES_AT_ONCE);
    let (app, feed, key) = opened_on(builder().start().await).await;
    let (mut client, _) = Client::open(&app, &key, QUERY, None).await;
    client.cut().await;
    let (cursor, then) = (client.cursor.clone(), client.state.clone());
    let mut cursors = Vec::new();
    for (channel, _) in LISTS {
        let answer = app.get(&format!("/v1/sports/mma/{channel}"), &key).await;
        cursors.push((channel, answer.header("x-cursor").unwrap().to_owned()));
    }
    let (mut random, mut all, mut last) = (Random(11), then.clone(), String::new());
    for _ in 0..30 {
        let lines: Vec<_> = (0..random.below(6)).map(|_| random_line(&mut random)).collect();
        app.push(&feed, ndjson(&lines)).await;
        app.publish().await;
        let events = client.cut().await;
        last = at_of(&events);
        for (key, record) in &client.state {
            if random.below(2) == 0 || !all.contains_key(key) {
                all.insert(key.clone(), record.clone());
            }
        }
    }
    assert!(all.len() > client.state.len() + 5, "{} {}", all.len(), client.state.len());
    // From the kept publications; from the log only; from the archive only.
    comes_back(&app, &key, &cursor, (&then, &all), &last).await;
    let disk = app.copy_of_disk();
    let again = builder().starting_at(app.now()).on(disk).start().await;
    comes_back(&again, &key, &cursor, (&then, &all), &last).await;
    drop(again);
    assert!(app.service.api.world(World::Live).history.flush(Compact::Due).await.unwrap());
    drop(client);
    let (now, dir) = (app.now(), app.stop().await);
    shorten_log(&dir.path().join("live"));
    let app = builder().starting_at(now).on(dir).start().await;
    comes_back(&app, &key, &cursor, (&then, &all), &last).await;
    // A polling client gets everything at once.
    for (channel, since) in &cursors {
        poll(&app, &key, channel, since, (&all, &last)).await;
    }
}

/// Publications of which each has all the events of the previous one removed. Returns the client before them, and the
/// cursor of a list.
async fn move_far(app: &TestApp, feed: &str, key: &str, publications: usize) -> (Client, String) {
    let (mut client, _) = Client::open(app, key, QUERY, None).await;
    client.cut().await;
    let odds = app.get("/v1/sports/mma/odds", key).await;
    let since = odds.header("x-cursor").unwrap().to_owned();
    for n in 0..publications {
        let mut lines = Vec::new();
        for m in 0..4 {
            let (bout, home, away) =
                (format!("{n}-{m}"), format!("Ann{n} Ab{m}"), format!("Zed{n} Yx{m}"));
            lines.push(line::event(&bout, "mma", &home, &away));
            lines.push(line::moneyline(&bout, "fanduel", (&home, 120), (&away, -140)));
            if n > 0 {
                lines.push(json!({ "type": "remove", "ref": format!("{}-{m}", n - 1) }));
            }
        }
        app.push_all(feed, &lines).await;
        app.publish().await;
    }
    (client, since)
}

/// More was quoted in a step than there is memory to look through: the stream takes shorter ones.
#[tokio::test]
async fn whoever_is_too_far_for_one_step_comes_back_publication_by_publication() {
    const PUBLICATIONS: usize = 6;
    // A lookup holds 20 records and events.
    let builder = || TestApp::builder().history_memory(16 << 10);
    let (app, feed, key) = opened_on(builder().start().await).await;
    let (client, since) = move_far(&app, &feed, &key, PUBLICATIONS).await;
    let (cursor, then) = (client.cursor.clone(), client.state.clone());
    let last = text(app.now());
    let again = builder().starting_at(app.now()).on(app.copy_of_disk()).start().await;
    for (app, mode) in [(&app, "publication"), (&again, "publication"), (&again, "live")] {
        let query = format!("{QUERY}&mode={mode}");
        let (mut client, hello) = Client::open(app, &key, &query, Some(&cursor)).await;
        assert_eq!(hello["resumed"], true);
        client.state = then.clone();
        for n in 1..=PUBLICATIONS {
            let events = client.cut().await;
            assert!(events.iter().all(|event| event.name != "reset"), "{mode}: {events:?}");
            check(app, &key, &client, &LISTS, &at_of(&events)).await;
            assert_eq!(at_of(&events) == last, n == PUBLICATIONS, "{mode}");
        }
        // A list has everything in one answer.
        let delta = app.get(&format!("/v1/sports/mma/odds?since={since}"), &key).await;
        assert_eq!(delta.refusal(), (410, "cursor_expired".to_owned()));
    }
}

/// A client that is too far behind for one step, of a service without turns for shorter ones, and the time at which it
/// came back.
async fn back_without_a_turn() -> (TestApp, Client, Instant) {
    let settings = StreamSettings { replays_max: 0, ..StreamSettings::default() };
    let builder = TestApp::builder().history_memory(16 << 10).streams(settings);
    let (app, feed, key) = opened_on(builder.start().await).await;
    let (client, _) = move_far(&app, &feed, &key, 6).await;
    // The first attempt takes ten seconds.
    let (query, begun) = (format!("{QUERY}&heartbeat={HEARTBEAT_S}"), Instant::now());
    let (back, hello) = Client::open(&app, &key, &query, Some(&client.cursor)).await;
    assert_eq!(hello["resumed"], true);
    (app, back, begun)
}

/// S11: publication by publication is a replay. S15: comments come once in an interval, whatever it waits for.
#[tokio::test]
async fn whoever_is_too_far_for_one_step_gets_nothing_without_a_turn() {
    let (_app, mut back, begun) = back_without_a_turn().await;
    let mut comments = 0_u32;
    let end = loop {
        let block = back.block().await.expect("an end");
        if !block.starts_with(':') {
            break block;
        }
        comments += 1;
    };
    assert!(end.contains("event: end\n") && end.contains("\"code\":\"unavailable\""), "{end}");
    let elapsed = begun.elapsed();
    assert!(elapsed >= Duration::from_secs(HEARTBEAT_S) * comments, "{comments} in {elapsed:?}");
}

/// S13: while it waits for its turn, its client still receives the end of the service.
#[tokio::test]
async fn a_service_that_stops_says_so_while_events_are_made() {
    let (app, mut back, _) = back_without_a_turn().await;
    let stopping = tokio::spawn(async move { app.stop().await });
    let end = back.event().await.expect("an end");
    assert_eq!((end.name.as_str(), &end.data["code"]), ("end", &json!("unavailable")));
    drop(back);
    stopping.await.unwrap();
}

/// The sandbox has no log, and its past is simulated again.
#[tokio::test]
async fn whoever_comes_back_to_the_sandbox_after_most_of_a_day_has_what_is_there() {
    // Small, because most of a day takes long.
    let catalogue = Catalogue::from_source(SMALL).unwrap();
    let app = TestApp::builder().catalogue(catalogue).sandbox(7).start().await;
    app.publish_both().await;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let then = text(app.now().minus(Duration::from_secs(20 * 3600)));
    let odds = app.get(&format!("/v1/sports/mma/odds?as_of={then}"), &key).await;
    let cursor = odds.header("x-cursor").unwrap();
    let lists = [("odds", "mma")];
    let (mut client, hello) = Client::open(&app, &key, "?sports=mma", Some(cursor)).await;
    assert_eq!(hello["resumed"], true);
    client.state = pages(&app, &key, lists[0], &then, false).await;
    assert!(!client.state.is_empty());
    let (last, mut cuts) = (text(app.now()), 0);
    loop {
        let events = client.cut().await;
        assert!(events.iter().all(|event| event.name != "reset"), "{events:?}");
        let at = at_of(&events);
        check(&app, &key, &client, &lists, &at).await;
        cuts += 1;
        if at == last {
            break;
        }
    }
    assert!(cuts >= 4, "{cuts}");
}
