//! Streams that continue from a cursor, and those that cannot (S7, S8).

use serde_json::{Value, json};

use super::client::{Client, ask, at_of, move_to, names, opened, opened_on};
use super::ends::text;
use super::replay_live::shorten_log;
use crate::harness::{TestApp, line};
use crate::test_market::{ANN, BEA};

#[tokio::test]
async fn a_stream_goes_on_after_a_restart_and_says_where_it_cannot() {
    let (app, feed, key) = opened().await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let (cursor, state) = (client.cursor.clone(), client.state.clone());
    move_to(&app, &feed, 140).await;
    move_to(&app, &feed, 150).await;
    client.cut().await;
    client.cut().await;
    let disk = app.copy_of_disk();
    let again = TestApp::builder().starting_at(app.now()).on(disk).start().await;
    for last in [true, false] {
        let query = format!("?sports=mma{}", if last { "" } else { "&since=" });
        let query = if last { query } else { query + &cursor };
        let (mut back, hello) = Client::open(&again, &key, &query, last.then_some(&*cursor)).await;
        assert_eq!(hello["resumed"], true);
        back.state = state.clone();
        let events = back.cut().await;
        assert_eq!(names(&events), ["delta", "fresh", "cut"]);
        assert_eq!(events[0].data["conflated"], true, "two publications in one");
        assert_eq!((&back.state, &back.cursor), (&client.state, &client.cursor));
    }
    // A time begins with the publication of that time, and the stream continues from there.
    let at = app.now().minus(app.refresh_interval).minus(app.refresh_interval);
    let at = String::from_utf8(at.millis_text().to_vec()).unwrap();
    let (mut past, hello) =
        Client::open(&again, &key, &format!("?sports=mma&since={at}"), None).await;
    assert_eq!(hello["resumed"], false);
    assert_eq!((at_of(&past.cut().await), &past.state), (at, &state));
    past.cut().await;
    assert_eq!((&past.state, &past.cursor), (&client.state, &client.cursor));
    // If a cursor cannot be used, the stream restarts and reports the reason.
    let other = TestApp::start().await;
    let foreign = other.get("/v1/sports/mma/odds", &other.live_key().await).await;
    let foreign = foreign.header("x-cursor").unwrap().to_owned();
    let scores = again.get("/v1/sports/mma/scores", &key).await;
    let scores = scores.header("x-cursor").unwrap();
    for (last, reason) in [(&*foreign, "unknown"), (scores, "selection"), ("nonsense", "unknown")] {
        let (mut fresh, hello) = Client::open(&again, &key, "?sports=mma", Some(last)).await;
        assert_eq!(hello["resumed"], false);
        let events = fresh.cut().await;
        assert_eq!(names(&events), ["reset", "snapshot", "cut"], "{last}");
        assert_eq!(events[0].data["reason"], reason);
        assert_eq!(fresh.state, client.state);
    }
    let (mut fresh, _) =
        Client::open(&again, &key, &format!("?sports=mma&since={foreign}"), None).await;
    assert_eq!(names(&fresh.cut().await), ["reset", "snapshot", "cut"]);
    assert_eq!(fresh.state, client.state);
}

/// S7: without an archive, streams continue from the log.
#[tokio::test]
async fn a_stream_goes_on_after_a_restart_without_history() {
    let app = TestApp::builder().without_history().start().await;
    let (app, feed, key) = opened_on(app).await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let (cursor, state) = (client.cursor.clone(), client.state.clone());
    move_to(&app, &feed, 140).await;
    move_to(&app, &feed, 150).await;
    client.cut().await;
    client.cut().await;
    let disk = app.copy_of_disk();
    let builder = TestApp::builder().without_history().starting_at(app.now());
    let again = builder.on(disk).start().await;
    for (replay, cuts) in [("", 1), ("&replay=all", 2)] {
        let query = format!("?sports=mma&since={cursor}{replay}");
        let (mut back, hello) = Client::open(&again, &key, &query, None).await;
        assert_eq!(hello["resumed"], true, "{query}");
        back.state = state.clone();
        for _ in 0..cuts {
            assert_eq!(names(&back.cut().await), ["delta", "fresh", "cut"], "{query}");
        }
        assert_eq!((&back.state, &back.cursor), (&client.state, &client.cursor));
    }
    let delta = again.get(&format!("/v1/sports/mma/odds?since={cursor}"), &key).await;
    assert_eq!(delta.status, 200, "{}", delta.text());
}

/// S7: a record that appeared and disappeared while a client was away is removed.
#[tokio::test]
async fn what_came_and_went_in_between_is_removed() {
    let (app, feed, key) = opened().await;
    let query = "?sports=mma&channels=odds,events";
    let (mut client, _) = Client::open(&app, &key, query, None).await;
    client.cut().await;
    let (cursor, state) = (client.cursor.clone(), client.state.clone());
    let betmgm = line::moneyline("a", "betmgm", (ANN, 140), (BEA, -160));
    app.push_all(&feed, &[betmgm, line::event("b", "mma", "Cid Cole", "Dan Dorn")]).await;
    app.publish().await;
    client.cut().await;
    let passing: Vec<_> = client.state.keys().filter(|key| !state.contains_key(*key)).collect();
    let passing: Vec<String> = passing.into_iter().map(|(_, _, id)| id.clone()).collect();
    assert_eq!(passing.len(), 2, "a record and an event: {passing:?}");
    // Never published.
    let unseen = line::moneyline("a", "caesars", (ANN, 140), (BEA, -160));
    let empty = |bookmaker| json!({"type": "odds", "ref": "a", "bookmaker": bookmaker, "market": "moneyline", "outcomes": []});
    let gone = [unseen, empty("caesars"), empty("betmgm"), json!({"type": "remove", "ref": "b"})];
    app.push_all(&feed, &gone).await;
    app.publish().await;
    client.cut().await;
    assert_eq!(client.state, state);
    let disk = app.copy_of_disk();
    let again = TestApp::builder().starting_at(app.now()).on(disk).start().await;
    for app in [&app, &again] {
        let (mut back, _) = Client::open(app, &key, query, Some(&cursor)).await;
        back.state = state.clone();
        let events = back.cut().await;
        let removed = events.iter().flat_map(|event| event.data["removed"].as_array());
        let removed: Vec<&Value> = removed.flatten().collect();
        let mut ids: Vec<_> = removed.iter().map(|gone| gone["id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        let mut expected: Vec<_> = passing.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(ids, expected, "{events:?}");
        let mut why: Vec<_> = removed.iter().map(|gone| gone["reason"].as_str().unwrap()).collect();
        why.sort_unstable();
        assert_eq!(why, ["no_prices", "removed"]);
        assert_eq!(back.state, state);
    }
}

/// S8: the sandbox of another seed is another world.
#[tokio::test]
async fn a_cursor_of_another_sandbox_begins_anew() {
    let app = TestApp::builder().sandbox(7).start().await;
    let odds = app.get("/v1/sports/mma/odds", &app.sandbox_key().await).await;
    let cursor = odds.header("x-cursor").unwrap();
    for (seed, resumes) in [(7, true), (8, false)] {
        let other = TestApp::builder().sandbox(seed).starting_at(app.now()).start().await;
        let key = other.sandbox_key().await;
        let (mut client, _) = Client::open(&other, &key, "?sports=mma", Some(cursor)).await;
        other.publish_both().await;
        let first = client.event().await.unwrap();
        assert_eq!(first.name != "reset", resumes, "{seed}: {}", first.name);
        if !resumes {
            assert_eq!(first.data["reason"], "unknown");
        }
        let delta = other.get(&format!("/v1/sports/mma/odds?since={cursor}"), &key).await;
        assert_eq!(delta.status != 410, resumes, "{seed}: {}", delta.text());
    }
}

/// S8: the entries after a cursor of this log may be gone: here there is no archive, and the log is shortened.
#[tokio::test]
async fn a_cursor_that_is_too_old_begins_anew() {
    let app = TestApp::builder().without_history().start().await;
    let (app, feed, key) = opened_on(app).await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let cursor = client.cursor.clone();
    for price in 140..152 {
        move_to(&app, &feed, price).await;
    }
    let (now, dir) = (app.now(), app.stop().await);
    shorten_log(&dir.path().join("live"));
    let again = TestApp::builder().without_history().starting_at(now).on(dir).start().await;
    again.publish().await;
    for last in [true, false] {
        let query = format!("?sports=mma{}", if last { "" } else { "&since=" });
        let query = if last { query } else { query + &cursor };
        let (mut back, hello) = Client::open(&again, &key, &query, last.then_some(&*cursor)).await;
        assert_eq!(hello["resumed"], false);
        let events = back.cut().await;
        assert_eq!(names(&events), ["reset", "snapshot", "cut"], "{query}");
        assert_eq!(events[0].data["reason"], "expired");
        assert_eq!(back.state.values().next().unwrap()["outcomes"][0]["price"], 151);
    }
    let delta = again.get(&format!("/v1/sports/mma/odds?since={cursor}"), &key).await;
    assert_eq!(delta.refusal(), (410, "cursor_expired".to_owned()));
}

/// S2, S13: `done` is sent once. An `EventSource`, which reconnects by itself, gets 204, which stops it, at no cost.
#[tokio::test]
async fn who_comes_back_after_the_end_gets_no_more_and_pays_nothing() {
    let (app, feed, _) = opened().await;
    let key = app.limited_key(1000, 1000, None).await;
    let begun = text(app.now());
    for price in [140, 150] {
        move_to(&app, &feed, price).await;
    }
    let until = text(app.now());
    move_to(&app, &feed, 160).await;
    let (mut later, _) = Client::open(&app, &key, "?sports=mma", None).await;
    later.cut().await;
    for replay in ["net", "all"] {
        let query = format!("?sports=mma&replay={replay}&since={begun}&until={until}");
        let (mut past, _) = Client::open(&app, &key, &query, None).await;
        past.cut().await;
        let first = past.cursor.clone();
        while at_of(&past.cut().await) != until {}
        let last = past.cursor.clone();
        assert_eq!(past.end().await["code"], "done");
        let used = app.get("/v1/status", &key).await.requests_used();
        for cursor in [&last, &later.cursor] {
            let over = ask(&app, &key, &query, Some(cursor)).await;
            assert_eq!(
                (over.status(), over.text().await.unwrap()),
                (204.try_into().unwrap(), String::new())
            );
        }
        assert_eq!(app.get("/v1/status", &key).await.requests_used(), used);
        // A client that lacks something gets it, and one that requests `since` gets the end.
        let (mut back, hello) = Client::open(&app, &key, &query, Some(&first)).await;
        assert_eq!(hello["resumed"], true);
        back.state.clone_from(&past.state);
        while at_of(&back.cut().await) != until {}
        drop(back);
        let since = format!("?sports=mma&replay={replay}&since={last}&until={until}");
        let (mut since, _) = Client::open(&app, &key, &since, None).await;
        assert_eq!(since.end().await["code"], "done");
    }
    // The end is in the future.
    let until = text(app.now().plus(app.refresh_interval));
    let query = format!("?sports=mma&until={until}");
    let (_waits, hello) = Client::open(&app, &key, &query, Some(&later.cursor)).await;
    assert_eq!(hello["resumed"], true);
}
