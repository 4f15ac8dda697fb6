//! Streams of every publication of the past (S2, S11, S12).

use std::time::Duration;

use accounts::KeyKind;
use api::v1::stream::StreamSettings;
use domain::{Timestamp, World};
use engine::Compact;

use super::client::{Client, ask, at_of, check, move_to, names, opened, opened_on, quote};
use crate::harness::{TestApp, unlimited};

fn text(at: Timestamp) -> String {
    String::from_utf8(at.millis_text().to_vec()).unwrap()
}

#[tokio::test]
async fn every_publication_since_a_cursor_comes_one_after_the_other() {
    let (app, feed, key) = opened().await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let (cursor, state) = (client.cursor.clone(), client.state.clone());
    let mut seen = Vec::new();
    for price in [140, 150, 150, 160, 170] {
        move_to(&app, &feed, price).await;
        seen.push((at_of(&client.cut().await), client.cursor.clone(), client.state.clone()));
    }
    let again = TestApp::builder().starting_at(app.now()).on(app.copy_of_disk()).start().await;
    for app in [&app, &again] {
        let query = format!("?sports=mma&replay=all&since={cursor}");
        let (mut replay, hello) = Client::open(app, &key, &query, None).await;
        assert_eq!(hello["resumed"], true);
        replay.state = state.clone();
        for (at, cursor, state) in &seen {
            let events = replay.cut().await;
            assert!(events.iter().all(|event| event.data.get("conflated").is_none()));
            assert_eq!((&at_of(&events), &replay.cursor, &replay.state), (at, cursor, state));
        }
        // From then on it is a stream like any other.
        app.publish().await;
        assert_eq!(names(&replay.cut().await), ["fresh", "cut"]);
    }
}

#[tokio::test]
async fn a_span_of_the_past_is_replayed_and_then_the_stream_is_done() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let since = app.now().minus(Duration::from_secs(24 * 3600));
    let until = since.plus(Duration::from_secs(60));
    let (since, until) = (text(since), text(until));
    let query = format!(
        "?sports=mma&channels=odds,events&freshness=records&replay=all&since={since}&until={until}"
    );
    let lists = [("odds", "mma"), ("events", "mma")];
    let (mut replay, hello) = Client::open(&app, &key, &query, None).await;
    assert_eq!(hello["resumed"], false);
    let mut ats = Vec::new();
    for _ in 0..3 {
        let at = at_of(&replay.cut().await);
        check(&app, &key, &replay, &lists, &at).await;
        ats.push(at);
    }
    assert!(ats.is_sorted() && ats[0] <= since && ats[2] <= until, "{ats:?}");
    assert_eq!(replay.end().await["code"], "done");
}

#[tokio::test]
async fn a_replay_costs_a_request_and_waits_for_its_turn() {
    let (app, feed, _) = opened().await;
    let key = app.limited_key(100, 100, None).await;
    let cursor = app.get("/v1/sports/mma/odds", &key).await;
    let cursor = cursor.header("x-cursor").unwrap().to_owned();
    for price in [140, 150, 160] {
        move_to(&app, &feed, price).await;
    }
    let query = format!("?sports=mma&replay=all&since={cursor}");
    let used = async || app.get("/v1/status", &key).await.requests_used();
    let before = used().await;
    let (mut replay, _) = Client::open(&app, &key, &query, None).await;
    for _ in 0..3 {
        replay.cut().await;
    }
    assert_eq!(used().await, before + 2, "to begin, and for the first 500 publications");
    // If there is no turn, the request is refused.
    let settings = StreamSettings { replays_max: 0, ..StreamSettings::default() };
    let (app, _, key) = opened_on(TestApp::builder().streams(settings).start().await).await;
    let odds = app.get("/v1/sports/mma/odds", &key).await;
    let cursor = odds.header("x-cursor").unwrap();
    let refused = app.get(&format!("/v1/stream?sports=mma&replay=all&since={cursor}"), &key).await;
    assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
}

/// S11: only whoever reads the past has a turn.
#[tokio::test]
async fn a_replay_that_has_caught_up_gives_its_turn_to_the_next() {
    let settings = StreamSettings { replays_max: 1, ..StreamSettings::default() };
    let (app, _, key) = opened_on(TestApp::builder().streams(settings).start().await).await;
    let odds = app.get("/v1/sports/mma/odds", &key).await;
    let cursor = odds.header("x-cursor").unwrap();
    let mut clients = Vec::new();
    for mode in ["publication", "live", "publication", "live"] {
        let query = format!("?sports=mma&mode={mode}&replay=all&since={cursor}");
        clients.push(Client::open(&app, &key, &query, None).await.0);
    }
    app.publish().await;
    let last = text(app.now());
    for client in &mut clients {
        while at_of(&client.cut().await) != last {}
    }
}

/// S10, S11: nor does it go on reading what it began to read in its turn.
#[tokio::test]
async fn a_live_replay_that_has_caught_up_reads_what_follows_in_another_turn() {
    let (app, feed, key) = opened().await;
    let odds = app.get("/v1/sports/mma/odds", &key).await;
    let cursor = odds.header("x-cursor").unwrap();
    // A confirmation is something to read, and not a change.
    quote(&app, &feed, 135).await;
    let query = format!("?sports=mma&mode=live&freshness=none&replay=all&since={cursor}");
    let (mut replay, _) = Client::open(&app, &key, &query, None).await;
    let accounts = &app.service.api.accounts;
    let entry = accounts.keys.authenticate(key.as_bytes(), app.now()).unwrap();
    // Like a stream on another node, as soon as this one has caught up.
    let turn = loop {
        match accounts.streams.open_replay(&entry.grant.key_id).await {
            Ok(turn) => break turn,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    quote(&app, &feed, 150).await;
    let waiting = tokio::time::timeout(Duration::from_secs(2), replay.event()).await;
    assert!(waiting.is_err(), "without a turn: {waiting:?}");
    drop(turn);
    let events = replay.cut().await;
    assert_eq!(names(&events), ["delta", "cut"]);
    assert_eq!(events[0].data["upserts"][0]["outcomes"][0]["price"], 150);
}

/// S13: its client gets a 204, even if there is no turn and no slot.
#[tokio::test]
async fn whoever_comes_back_after_a_whole_replay_waits_for_no_turn() {
    let settings = StreamSettings { per_key_max: 1, replays_max: 0, ..StreamSettings::default() };
    let (app, feed, key) = opened_on(TestApp::builder().streams(settings).start().await).await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let (cursor, until) = (client.cursor.clone(), text(app.now()));
    move_to(&app, &feed, 140).await;
    client.cut().await;
    for mode in ["publication", "live"] {
        let query = format!("?sports=mma&mode={mode}&replay=all&until={until}");
        assert_eq!(ask(&app, &key, &query, Some(&cursor)).await.status(), 204, "{mode}");
    }
}

#[tokio::test]
async fn a_position_that_is_in_the_archive_alone_waits_for_its_turn() {
    let (app, feed, key) = opened_on(TestApp::builder().archived().start().await).await;
    let then = text(app.now());
    move_to(&app, &feed, 140).await;
    assert!(app.service.api.world(World::Live).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    std::fs::remove_dir_all(dir.path().join("live")).unwrap();
    let none = StreamSettings { replays_max: 0, ..StreamSettings::default() };
    let again = TestApp::builder().archived().starting_at(now);
    let app = again.on(dir).streams(none).start().await;
    app.publish().await;
    let query = format!("?sports=mma&since={then}");
    let refused = app.get(&format!("/v1/stream{query}"), &key).await;
    assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
    // Positions in the log need no turn.
    let present = format!("?sports=mma&since={}", text(now));
    let (mut client, _) = Client::open(&app, &key, &present, None).await;
    client.cut().await;
    drop(client);
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    // In sequence: the right to read it ends with the stream, if not before.
    for _ in 0..2 {
        let (mut client, _) = Client::open(&app, &key, &query, None).await;
        client.cut().await;
    }
}
