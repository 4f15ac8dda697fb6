//! Bounds of streams and deltas (S9, S11, S12).

use std::time::{Duration, Instant};

use accounts::KeyKind;
use api::v1::stream::StreamSettings;
use domain::Catalogue;
use serde_json::{Value, json};

use super::client::{Client, PATIENCE, ask, at_of, move_to, opened, opened_on};
use super::ends::text;
use crate::harness::{Raw, TestApp, line, unlimited};

/// A client that is refused a slot has not waited for the replay turn, of which there is none here.
#[tokio::test]
async fn a_stream_without_a_place_waits_for_no_turn() {
    let settings = StreamSettings { per_key_max: 1, replays_max: 0, ..StreamSettings::default() };
    let (app, _, key) = opened_on(TestApp::builder().streams(settings).start().await).await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let query = format!("/v1/stream?sports=mma&replay=all&since={}", client.cursor);
    assert_eq!(app.get(&query, &key).await.refusal(), (429, "too_many_streams".to_owned()));
}

/// What is wrong with a request is said whether there is a slot or not.
#[tokio::test]
async fn a_bad_start_is_refused_before_a_slot_is_taken() {
    let settings = StreamSettings { per_key_max: 1, ..StreamSettings::default() };
    let (app, _, key) = opened_on(TestApp::builder().streams(settings).start().await).await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let later = text(app.now().plus(Duration::from_secs(1)));
    for query in [
        format!("sports=mma,golf&since={}", client.cursor),
        format!("sports=mma&since={later}"),
        "sports=mma&replay=all".to_owned(),
    ] {
        let refused = app.get(&format!("/v1/stream?{query}"), &key).await;
        assert_eq!(refused.refusal(), (400, "invalid_parameter".to_owned()), "{query}");
    }
    let refused = app.get("/v1/stream?sports=mma", &key).await;
    assert_eq!(refused.refusal(), (429, "too_many_streams".to_owned()));
}

#[tokio::test]
async fn a_key_is_sent_one_past_at_a_time_and_keeps_nobody_else_from_theirs() {
    let settings = StreamSettings { replays_max: 2, ..StreamSettings::default() };
    let app = TestApp::builder().sandbox(7).streams(settings).start().await;
    let [key, other] = [KeyKind::Sandbox; 2].map(|kind| app.key(unlimited(kind)));
    let (key, other) = (key.await, other.await);
    let since = text(app.now().minus(Duration::from_secs(24 * 3600)));
    let query = format!("?replay=all&since={since}");
    // A client that reads nothing does not reach the current publication.
    let mut first = Raw::connect_narrow(app.addr).await;
    let head = format!("GET /v1/stream{query} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    first.send(head.as_bytes()).await;
    assert_eq!(first.read_answer().await.unwrap().status, 200);
    let path = format!("/v1/stream{query}");
    let second = app.get(&path, &key);
    // While the first stream waits.
    let others = async { Client::open(&app, &other, &query, None).await.0.cut().await };
    let (second, _) = tokio::join!(second, others);
    assert_eq!(second.refusal(), (503, "unavailable".to_owned()));
    drop(first);
    let begun = Instant::now();
    while ask(&app, &key, &query, None).await.status() != 200 {
        assert!(begun.elapsed() < PATIENCE, "no turn came free");
    }
}

/// S9: a polling client reads everything again, and a stream continues.
#[tokio::test]
async fn a_delta_of_more_than_ten_thousand_records_is_refused() {
    const LIMIT: usize = 10_000;
    let (app, feed, key) = opened().await;
    // All bookmakers.
    let filter = "regions=us,uk,eu,au";
    let cursor = app.get(&format!("/v1/sports/mma/odds?{filter}"), &key).await;
    let cursor = cursor.header("x-cursor").unwrap().to_owned();
    let bout = |n: usize| (format!("b-{n}"), format!("Adam Ab{n}"), format!("Zed Yx{n}"));
    let catalogue = Catalogue::load(None).unwrap();
    let bookmakers: Vec<&str> = catalogue.bookmakers().map(|(_, own)| &*own.key).collect();
    let bouts: Vec<_> = (0..LIMIT.div_ceil(bookmakers.len())).map(bout).collect();
    let mut lines: Vec<Value> =
        bouts.iter().map(|(bout, home, away)| line::event(bout, "mma", home, away)).collect();
    for (bout, home, away) in &bouts {
        let of_bout = |book: &&str| line::moneyline(bout, book, (home, 120), (away, -140));
        lines.extend(bookmakers.iter().map(of_bout));
    }
    // As many as allowed; the next is one too many.
    lines.truncate(bouts.len() + LIMIT);
    for part in lines.chunks(2000) {
        app.push_all(&feed, part).await;
    }
    app.publish().await;
    let since = format!("/v1/sports/mma/odds?{filter}&since={cursor}");
    let delta = app.get(&since, &key).await;
    assert_eq!(delta.status, 200, "{}", delta.text());
    assert_eq!(delta.json()["upserts"].as_array().unwrap().len(), LIMIT);
    move_to(&app, &feed, 140).await;
    assert_eq!(app.get(&since, &key).await.refusal(), (410, "cursor_expired".to_owned()));
    let query = format!("?sports=mma&{filter}&since={cursor}");
    let (mut client, hello) = Client::open(&app, &key, &query, None).await;
    assert_eq!(hello["resumed"], true);
    client.cut().await;
    assert_eq!(client.state.len(), LIMIT + 1);
}

/// S12: a replay costs a request for every 500 publications, and ends where the quota does.
#[tokio::test]
async fn the_501st_publication_of_a_replay_costs_another_request() {
    let (app, feed, _) = opened().await;
    let key = app.limited_key(100, 100, None).await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let (cursor, state) = (client.cursor.clone(), client.state.clone());
    drop(client);
    for n in 0..501 {
        move_to(&app, &feed, 140 + n).await;
    }
    let until = text(app.now());
    // The last publication is the current one, which is free.
    app.publish().await;
    let used = async || app.get("/v1/status", &key).await.requests_used();
    let before = used().await;
    let replay = async |key: &str, cursor: &str| {
        let query = format!("?sports=mma&freshness=none&replay=all&since={cursor}&until={until}");
        Client::open(&app, key, &query, None).await.0
    };
    let mut whole = replay(&key, &cursor).await;
    whole.state.clone_from(&state);
    let mut sent = Vec::new();
    while sent.last().is_none_or(|(at, _)| *at != until) {
        let at = at_of(&whole.cut().await);
        sent.push((at, whole.state.clone()));
    }
    assert_eq!((sent.len(), &whole.end().await["code"]), (501, &json!("done")));
    assert_eq!(used().await, before + 3, "to begin, for the first 500 and for the next");
    // With a quota of two requests, the last one is not sent; with another key the client goes on from there.
    let poor = app.limited_key(100, 2, None).await;
    let mut part = replay(&poor, &cursor).await;
    part.state = state;
    for expected in &sent[..500] {
        let at = at_of(&part.cut().await);
        assert_eq!((&at, &part.state), (&expected.0, &expected.1));
    }
    let end = part.event().await.unwrap();
    assert_eq!((end.name.as_str(), &end.data["code"]), ("end", &json!("quota_exceeded")));
    let mut rest = replay(&key, &part.cursor).await;
    rest.state = part.state;
    let at = at_of(&rest.cut().await);
    assert_eq!((&at, &rest.state), (&sent[500].0, &sent[500].1));
    assert_eq!(rest.end().await["code"], "done");
}
