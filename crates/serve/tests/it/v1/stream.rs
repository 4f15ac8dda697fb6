//! `/v1/stream`: changes as they are published (S1 to S15).

mod bounds;
mod catalogues;
mod client;
mod cluster;
mod ends;
mod far;
mod group;
mod live;
mod model;
mod replay;
pub(super) mod replay_live;
mod resume;
mod skipped;
mod unlogged;
mod websocket;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use accounts::{Actor, KeyKind, Maintenance, NewKey};
use api::v1::stream::StreamSettings;
use reqwest::Method;
use serde_json::{Value, json};

use self::client::{Client, PATIENCE, ask, at_of, check, move_to, names, opened, opened_on};
use crate::harness::{Answer, TestApp, line, ndjson, unlimited};

#[tokio::test]
async fn after_every_cut_the_folded_state_is_what_all_pages_have() {
    let app = TestApp::builder().sandbox(7).start().await;
    app.publish_both().await;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    for freshness in ["none", "records"] {
        follow_both(&app, &key, freshness).await;
    }
}

async fn follow_both(app: &TestApp, key: &str, freshness: &str) {
    let query = format!("?sports=tennis,mma&channels=odds,scores,events&freshness={freshness}");
    let lists = [
        ("odds", "mma"),
        ("scores", "mma"),
        ("events", "mma"),
        ("odds", "tennis"),
        ("scores", "tennis"),
        ("events", "tennis"),
    ];
    let (mut client, hello) = Client::open(app, key, &query, None).await;
    assert_eq!(hello["sports"], json!(["mma", "tennis"]));
    assert_eq!(hello["channels"], json!(["odds", "scores", "events"]));
    assert_eq!((&hello["resumed"], &hello["mode"]), (&json!(false), &json!("publication")));
    assert_eq!((&hello["heartbeat_s"], &hello["interval_ms"]), (&json!(15), &json!(30_000)));
    let first = client.cut().await;
    assert!(first.iter().any(|event| event.name == "snapshot" && event.data["parts"] != 1));
    check(app, key, &client, &lists, &at_of(&first)).await;
    let (cursor, state) = (client.cursor.clone(), client.state.clone());
    let mut deltas = 0;
    for _ in 0..12 {
        app.publish_both().await;
        let events = client.cut().await;
        deltas += events.iter().filter(|event| event.name == "delta").count();
        assert!(events.iter().all(|event| event.data.get("conflated").is_none()));
        check(app, key, &client, &lists, &at_of(&events)).await;
    }
    assert!(deltas > 12, "{deltas}");
    // A client that was away gets everything in one step.
    let (mut back, hello) = Client::open(app, key, &query, Some(&cursor)).await;
    assert_eq!(hello["resumed"], true);
    back.state = state;
    let events = back.cut().await;
    let deltas = events.iter().filter(|event| event.name == "delta");
    assert!(deltas.clone().all(|event| event.data["conflated"] == true) && deltas.count() > 0);
    assert_eq!(back.cursor, client.cursor);
    assert!(back.state == client.state);
}

#[tokio::test]
async fn events_are_as_the_contract_has_them() {
    let (app, feed, key) = opened().await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    let events = client.cut().await;
    assert_eq!(names(&events), ["snapshot", "cut"]);
    assert_eq!((&events[0].data["part"], &events[0].data["parts"]), (&json!(1), &json!(1)));
    let odds = app.get("/v1/sports/mma/odds", &key).await;
    assert_eq!(events[0].data["records"], odds.json(), "byte for byte, with freshness");
    // A cursor of the list is valid for the stream, and vice versa.
    assert_eq!(odds.header("x-cursor"), Some(&*client.cursor));
    move_to(&app, &feed, 140).await;
    let events = client.cut().await;
    assert_eq!(names(&events), ["delta", "fresh", "cut"]);
    assert_eq!(events[0].data["removed"], json!([]));
    let price = &events[0].data["upserts"][0]["outcomes"][0]["price"];
    assert_eq!((price, events[0].data.get("conflated")), (&json!(140), None));
    let source = &events[1].data["sources"][0];
    assert_eq!((&source["book"], &source["stale"]), (&json!("fanduel"), &json!(false)));
    // A price that is only confirmed is not a change.
    move_to(&app, &feed, 140).await;
    assert_eq!(names(&client.cut().await), ["fresh", "cut"]);
    app.push_all(&feed, &[json!({"type": "remove", "ref": "a"})]).await;
    app.publish().await;
    let events = client.cut().await;
    assert_eq!(events[0].data["removed"][0]["reason"], "removed");
    assert!(client.state.is_empty());
}

#[tokio::test]
async fn a_record_that_is_only_confirmed_is_named_where_that_is_wanted() {
    let (app, feed, key) = opened().await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma&freshness=records", None).await;
    client.cut().await;
    app.advance(Duration::from_secs(5));
    move_to(&app, &feed, 135).await;
    let events = client.cut().await;
    assert_eq!(names(&events), ["fresh", "cut"]);
    let touched = events[0].data["touched"].as_object().unwrap();
    assert_eq!(touched.len(), 1);
    let odds = app.get("/v1/sports/mma/odds", &key).await;
    let record = &odds.json()[0];
    assert_eq!(touched[record["last_update"].as_str().unwrap()], json!([record["id"]]));
    check(&app, &key, &client, &[("odds", "mma")], &at_of(&events)).await;
    // Records in a delta have their own time.
    move_to(&app, &feed, 140).await;
    let events = client.cut().await;
    assert_eq!(
        (names(&events), &events[1].data["touched"]),
        (vec!["delta", "fresh", "cut"], &json!({}))
    );
    check(&app, &key, &client, &[("odds", "mma")], &at_of(&events)).await;
}

#[tokio::test]
async fn http_2_has_the_same_streams_several_on_a_connection() {
    let (app, feed, key) = opened().await;
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let ask = async |query: &str| {
        let url = format!("http://{}/v1/stream{query}", app.addr);
        let response = http2.get(url).header("X-API-Key", &key).send().await.unwrap();
        assert_eq!(response.version(), reqwest::Version::HTTP_2);
        Client::begin(response).await.0
    };
    let (mut odds, mut scores) = (ask("?sports=mma").await, ask("?channels=scores").await);
    let (mut plain, _) = Client::open(&app, &key, "?sports=mma", None).await;
    for client in [&mut odds, &mut scores, &mut plain] {
        client.cut().await;
    }
    move_to(&app, &feed, 140).await;
    assert_eq!(names(&odds.cut().await), ["delta", "fresh", "cut"]);
    assert_eq!(names(&scores.cut().await), ["cut"]);
    plain.cut().await;
    assert_eq!((&odds.state, &odds.cursor), (&plain.state, &plain.cursor));
    // A closed stream does not affect the others, and frees its slot.
    drop(odds);
    move_to(&app, &feed, 150).await;
    assert_eq!(names(&scores.cut().await), ["cut"]);
    let begun = Instant::now();
    while open_streams(&app).await != 2 {
        assert!(begun.elapsed() < PATIENCE, "no place came free");
    }
    app.service.api.accounts.revoke_key(&key, &Actor::command_line()).await.unwrap();
    assert_eq!(scores.end().await["code"], "authentication_failed");
}

/// Number of open streams according to the service.
async fn open_streams(app: &TestApp) -> u32 {
    let metrics = app.get_operator("/metrics").await;
    let mut lines = metrics.text().lines();
    let open = lines.find(|line| line.starts_with("linesman_stream_open{")).unwrap();
    open.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_is_wrong_is_refused_before_the_first_event() {
    let (app, _feed, key) = opened().await;
    let golfer = app.key_for_groups(&["golf"]).await;
    let no_read = app.key(NewKey { odds_read: false, ..unlimited(KeyKind::Production) }).await;
    let scores = app.get("/v1/sports/mma/scores", &key).await;
    let scores = format!("?sports=mma&since={}", scores.header("x-cursor").unwrap());
    let earlier = "?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z";
    for (query, key, status, param) in [
        ("?sports=chess", &key, 404, None),
        ("?sports=mma,chess&nonsense=1", &key, 404, None),
        ("?sports=mma", &golfer, 403, None),
        ("?sports=mma,chess", &golfer, 404, None),
        ("", &no_read, 403, None),
        ("?nonsense=1", &key, 400, Some("nonsense")),
        ("?sports=mma&sports=golf", &key, 400, Some("sports")),
        ("?sports=", &key, 400, Some("sports")),
        ("?channels=prices", &key, 400, Some("channels")),
        ("?mode=quick", &key, 400, Some("mode")),
        ("?freshness=all", &key, 400, Some("freshness")),
        ("?until=nonsense", &key, 400, Some("until")),
        ("?until=2020-01-01T00:00:00Z", &key, 400, Some("until")),
        (earlier, &key, 400, Some("until")),
        ("?heartbeat=4", &key, 400, Some("heartbeat")),
        ("?heartbeat=61", &key, 400, Some("heartbeat")),
        ("?replay=all", &key, 400, Some("replay")),
        ("?replay=some", &key, 400, Some("replay")),
        ("?replay=all&mode=live", &key, 400, Some("replay")),
        ("?status=live", &key, 400, Some("status")),
        ("?channels=scores&market=moneyline", &key, 400, Some("market")),
        ("?sports=golf&market=totals", &key, 400, Some("market")),
        ("?since=nonsense", &key, 400, Some("since")),
        ("?since=2099-01-01T00:00:00Z", &key, 400, Some("since")),
        (&scores, &key, 400, Some("since")),
        ("?since=2020-01-01T00:00:00Z", &key, 404, None),
    ] {
        let request = app.request(Method::GET, &format!("/v1/stream{query}"));
        let answer = Answer::of(request.header("X-API-Key", key)).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
        assert_eq!(answer.param().as_deref(), param, "{query}: {}", answer.text());
    }
    let markets = app.get("/v1/stream?sports=mma,golf&market=nonsense", &key).await;
    let text = markets.text();
    assert!(text.contains("moneyline") && text.contains("outright"), "of both sports: {text}");
    for method in [Method::HEAD, Method::POST] {
        let request = app.request(method, "/v1/stream").header("X-API-Key", &key);
        let answer = Answer::of(request).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET")));
    }
    // A sport without the requested market contributes nothing; the others do.
    let (mut client, _) = Client::open(&app, &key, "?sports=golf,mma&market=totals", None).await;
    assert_eq!(names(&client.cut().await), ["snapshot", "cut"]);
    let off = StreamSettings { enabled: false, ..StreamSettings::default() };
    let closed = TestApp::builder().streams(off).start().await;
    assert_eq!(closed.get("/v1/stream", &closed.live_key().await).await.status, 404);
}

#[tokio::test]
async fn streams_are_bounded_for_a_key_and_for_all_and_come_free_again() {
    let settings =
        StreamSettings { per_key_max: 2, connections_max: 3, ..StreamSettings::default() };
    let (app, _, key) = opened_on(TestApp::builder().streams(settings).start().await).await;
    let other = app.live_key().await;
    let open = async |key: &str| Client::open(&app, key, "?sports=mma", None).await.0;
    let (first, _second) = (open(&key).await, open(&key).await);
    let used = app.get("/v1/books", &key).await.requests_used();
    let refused = app.get("/v1/stream?sports=mma", &key).await;
    assert_eq!(refused.refusal(), (429, "too_many_streams".to_owned()));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.requests_used(), used, "what is refused costs nothing");
    let _third = open(&other).await;
    let refused = app.get("/v1/stream?sports=mma", &other).await;
    assert_eq!(refused.refusal(), (503, "unavailable".to_owned()));
    let metrics = app.get_operator("/metrics").await;
    let open_now = "\nlinesman_stream_open{mode=\"publication\",transport=\"sse\"} 3\n";
    assert!(metrics.text().contains(open_now), "{}", metrics.text());
    // A key may have its own limit.
    let own = NewKey { streams: Some(1), ..unlimited(KeyKind::Production) };
    let own = app.key(own).await;
    drop(first);
    let begun = Instant::now();
    let held = loop {
        let response = ask(&app, &own, "?sports=mma", None).await;
        if response.status() == 200 {
            break response;
        }
        assert!(begun.elapsed() < PATIENCE, "no place came free");
    };
    let refused = app.get("/v1/stream?sports=mma", &own).await;
    assert_eq!(refused.refusal(), (429, "too_many_streams".to_owned()));
    drop(held);
    let begun = Instant::now();
    while ask(&app, &other, "?sports=mma", None).await.status() != 200 {
        assert!(begun.elapsed() < PATIENCE, "no place came free");
    }
}

#[tokio::test]
async fn a_revoked_key_and_maintenance_end_streams_at_once() {
    let (app, feed, key) = opened().await;
    let other = app.live_key().await;
    let (mut ended, _) = Client::open(&app, &key, "?sports=mma", None).await;
    let (mut stays, _) = Client::open(&app, &other, "?sports=mma", None).await;
    ended.cut().await;
    stays.cut().await;
    let accounts = &app.service.api.accounts;
    accounts.revoke_key(&key, &Actor::command_line()).await.unwrap();
    // After that its stream has ended, whether or not its client has read the end.
    assert_eq!(open_streams(&app).await, 1);
    // It ends without a publication, and later publications are not sent.
    move_to(&app, &feed, 140).await;
    let end = ended.event().await.expect("the end");
    assert_eq!((end.name.as_str(), &end.data["code"]), ("end", &json!("authentication_failed")));
    assert_eq!(ended.block().await, None);
    assert_eq!(names(&stays.cut().await), ["delta", "fresh", "cut"]);
    let closed = Maintenance::On { retry_after_s: 77 };
    accounts.set_maintenance(closed, &Actor::command_line()).await.unwrap();
    assert_eq!(open_streams(&app).await, 0);
    let end = stays.end().await;
    assert_eq!((&end["code"], &end["retry_after_s"]), (&json!("maintenance"), &json!(77)));
    let metrics = app.get_operator("/metrics").await;
    for code in ["authentication_failed", "maintenance"] {
        let line = format!(
            "\nlinesman_stream_ended_total{{mode=\"publication\",transport=\"sse\",code=\"{code}\"}} 1\n"
        );
        assert!(metrics.text().contains(&line), "{}", metrics.text());
    }
}

#[tokio::test]
async fn a_rotated_key_ends_with_its_overlap() {
    let (app, _, key) = opened().await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    let accounts = &app.service.api.accounts;
    let overlap = Some(Duration::from_secs(60));
    accounts.rotate_key(&key, overlap, &Actor::command_line()).await.unwrap();
    app.publish().await;
    assert_eq!(names(&client.cut().await), ["fresh", "cut"]);
    app.advance(Duration::from_secs(120));
    app.publish().await;
    assert_eq!(client.end().await["code"], "authentication_failed");
}

#[tokio::test]
async fn a_stream_costs_what_polling_would_and_ends_with_the_quota() {
    let (app, feed, _) = opened().await;
    let key = app.limited_key(100, 3, None).await;
    let used = async || app.get("/v1/status", &key).await.requests_used();
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    assert_eq!(used().await, 1, "to begin");
    move_to(&app, &feed, 140).await;
    client.cut().await;
    assert_eq!(used().await, 2, "a change");
    move_to(&app, &feed, 140).await;
    client.cut().await;
    assert_eq!(used().await, 2, "nothing changed");
    move_to(&app, &feed, 150).await;
    client.cut().await;
    assert_eq!(used().await, 3);
    let cursor = client.cursor.clone();
    move_to(&app, &feed, 160).await;
    assert_eq!(client.end().await["code"], "quota_exceeded");
    let refused = app.get(&format!("/v1/stream?sports=mma&since={cursor}"), &key).await;
    assert_eq!(refused.refusal(), (429, "quota_exceeded".to_owned()));
}

#[tokio::test]
async fn who_is_slow_gets_the_sum_of_what_was_missed_and_nobody_waits() {
    let (app, feed, key) = opened().await;
    let crowd: Vec<String> = (0..90).map(|n| format!("Crowd{n} {}", "x".repeat(90))).collect();
    let lines = |round: i32| -> Vec<Value> {
        let mut lines = Vec::new();
        for (n, name) in crowd.iter().enumerate() {
            let (reference, other) = (format!("c-{n}"), format!("Other{n} Side{n}"));
            if round == 0 {
                lines.push(line::event(&reference, "mma", name, &other));
            }
            lines.push(line::moneyline(&reference, "fanduel", (name, 150 + round), (&other, -180)));
        }
        lines
    };
    app.push(&feed, ndjson(&lines(0))).await;
    app.publish().await;
    let (mut slow, _) = Client::open(&app, &key, "?sports=mma", None).await;
    slow.cut().await;
    let (mut quick, _) = Client::open(&app, &key, "?sports=mma", None).await;
    quick.cut().await;
    let conflated = async || {
        let metrics = app.get_operator("/metrics").await;
        let name = "\nlinesman_stream_conflated_total{mode=\"publication\",transport=\"sse\"} ";
        let count =
            metrics.text().split(name).nth(1).unwrap().split('\n').next().unwrap().to_owned();
        count.parse::<u32>().unwrap()
    };
    // The slow client reads nothing: its socket fills, and its position stays behind.
    for round in 1..=120 {
        app.push(&feed, ndjson(&lines(round))).await;
        app.publish().await;
        quick.cut().await;
    }
    assert_eq!(conflated().await, 0, "who keeps up gets every publication");
    let mut cuts = 0;
    while slow.cursor != quick.cursor {
        slow.cut().await;
        cuts += 1;
    }
    assert!(cuts < 120, "{cuts}");
    assert!(conflated().await >= 1);
    assert_eq!(slow.state, quick.state);
}

/// S15: also while its first events are made, which may take long.
#[test]
fn a_comment_comes_while_events_are_made() {
    // The only thread for such work is occupied until the test releases it.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (app, _, key) = opened().await;
        let (release, released) = mpsc::channel::<()>();
        let stall = tokio::task::spawn_blocking(move || released.recv());
        let (mut client, _) = Client::open(&app, &key, "?sports=mma&heartbeat=5", None).await;
        for _ in 0..2 {
            assert_eq!(client.block().await.as_deref(), Some(": 5"));
        }
        drop(release);
        assert!(stall.await.unwrap().is_err());
        assert_eq!(names(&client.cut().await), ["snapshot", "cut"]);
        app.publish().await;
        assert_eq!(names(&client.cut().await), ["fresh", "cut"]);
    });
}

#[tokio::test]
async fn a_comment_comes_where_nothing_else_does_and_a_stop_is_said() {
    let (app, _, key) = opened().await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma&heartbeat=5", None).await;
    client.cut().await;
    assert_eq!(client.block().await.as_deref(), Some(": 5"));
    let stopping = tokio::spawn(async move { app.stop().await });
    let block = client.block().await.expect("the end");
    let retry = block.lines().next().unwrap().strip_prefix("retry: ").unwrap();
    assert!(retry.parse::<u32>().unwrap() < 5000, "{block}");
    assert!(block.contains("\nevent: end\n") && block.contains("\"unavailable\""), "{block}");
    assert_eq!(client.block().await, None);
    stopping.await.unwrap();
}
