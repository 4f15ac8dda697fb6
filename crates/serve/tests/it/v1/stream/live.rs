//! Streams of changes before they are published (S6).

use std::time::Duration;

use accounts::KeyKind;
use api::v1::stream::StreamSettings;
use domain::{Timestamp, World};
use serde_json::{Value, json};

use super::client::{Client, ask, at_of, check, is_publication, names, opened, quote};
use super::ends::text;
use super::model::Random;
use crate::harness::{TestApp, line, ndjson, unlimited, wait_for};
use crate::test_market::{ANN, BEA};

const LIVE: &str = "?sports=mma&mode=live";

#[tokio::test]
async fn a_change_is_sent_before_it_is_published_and_publications_are_in_their_places() {
    let (app, feed, key) = opened().await;
    let (mut live, hello) = Client::open(&app, &key, LIVE, None).await;
    assert_eq!(hello["mode"], "live");
    let (mut waits, _) = Client::open(&app, &key, "?sports=mma", None).await;
    assert_eq!(names(&live.cut().await), ["snapshot", "cut"]);
    waits.cut().await;
    for price in [140, 150, 160] {
        quote(&app, &feed, price).await;
        let events = live.cut().await;
        assert_eq!(names(&events), ["delta", "cut"]);
        assert_eq!(events[0].data["upserts"][0]["outcomes"][0]["price"], price);
        assert_eq!(events[0].data.get("conflated"), None);
        assert_eq!(events[1].data["published"], false);
    }
    app.publish().await;
    let events = live.cut().await;
    assert_eq!(names(&events), ["fresh", "cut"], "there is nothing left to say");
    check(&app, &key, &live, &[("odds", "mma")], &at_of(&events)).await;
    // A stream that follows publications gets the last state, and both are at the same position.
    let events = waits.cut().await;
    assert_eq!(names(&events), ["delta", "fresh", "cut"]);
    assert_eq!(events[0].data["upserts"][0]["outcomes"][0]["price"], 160);
    assert_eq!((&waits.cursor, &waits.state), (&live.cursor, &live.state));
    // A price that is only confirmed is not a change, and records outside the selection cause no events.
    quote(&app, &feed, 160).await;
    app.push_all(&feed, &[line::event("g", "boxing", "Cy Young", "Di Zeta")]).await;
    quote(&app, &feed, 170).await;
    let events = live.cut().await;
    assert_eq!(events[0].data["upserts"][0]["outcomes"][0]["price"], 170);
    let metrics = app.get_operator("/metrics").await;
    let open = "\nlinesman_stream_open{mode=\"live\",transport=\"sse\"} 1\n";
    assert!(metrics.text().contains(open), "{}", metrics.text());
}

/// S2: what was stored between the last publication and `until` belongs to the stream. A client that has all of it gets
/// 204 when it comes back.
#[tokio::test]
async fn whoever_comes_back_gets_what_was_stored_before_the_end() {
    let (app, feed, key) = opened().await;
    let (mut live, _) = Client::open(&app, &key, LIVE, None).await;
    live.cut().await;
    let begun = live.cursor.clone();
    app.advance(Duration::from_secs(2));
    quote(&app, &feed, 140).await;
    live.cut().await;
    app.advance(Duration::from_secs(2));
    let query = format!("{LIVE}&until={}", text(app.now()));
    app.advance(Duration::from_secs(1));
    let (mut back, hello) = Client::open(&app, &key, &query, Some(&begun)).await;
    assert_eq!(hello["resumed"], true);
    let events = back.cut().await;
    assert_eq!(names(&events), ["delta", "cut"]);
    assert_eq!((events[1].data["published"].as_bool(), &back.cursor), (Some(false), &live.cursor));
    assert_eq!(back.end().await["code"], "done");
    assert_eq!(ask(&app, &key, &query, Some(&live.cursor)).await.status(), 204);
}

/// The same if nobody followed when it was stored, so that it was not shown yet. What is stored later is not part of
/// the stream, and costs a client that comes back nothing.
#[tokio::test]
async fn what_was_stored_before_the_end_while_nobody_followed_is_sent_before_it() {
    let (app, feed, key) = opened().await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    app.advance(Duration::from_secs(2));
    quote(&app, &feed, 140).await;
    let query = format!("{LIVE}&until={}", text(app.now()));
    // Longer ago than the stream would wait for a publication.
    app.advance(Duration::from_secs(11));
    for replay in ["net", "all"] {
        let query = format!("{query}&replay={replay}");
        let (mut back, _) = Client::open(&app, &key, &query, Some(&client.cursor)).await;
        let events = back.cut().await;
        assert_eq!(names(&events)[0], "delta");
        assert_eq!(events[0].data["upserts"][0]["outcomes"][0]["price"], 140);
        assert_eq!(back.end().await["code"], "done");
        assert_eq!(ask(&app, &key, &query, Some(&back.cursor)).await.status(), 204, "{replay}");
    }
    let until = text(app.now());
    app.publish().await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    app.advance(Duration::from_secs(1));
    let query = format!("{LIVE}&until={}", text(app.now()));
    app.advance(Duration::from_secs(1));
    quote(&app, &feed, 150).await;
    // The first time it is not known yet what was stored.
    let first = ask(&app, &key, &query, Some(&client.cursor)).await;
    if first.status() == 200 {
        let (mut first, _) = Client::begin(first).await;
        assert_eq!(first.end().await["code"], "done");
    }
    assert_eq!(ask(&app, &key, &query, Some(&client.cursor)).await.status(), 204);
    // Long past, and there is a publication after it.
    let query = format!("{LIVE}&until={until}");
    assert_eq!(ask(&app, &key, &query, Some(&client.cursor)).await.status(), 204);
}

/// Nothing happens in the sandbox between two of its steps.
#[tokio::test]
async fn whoever_comes_back_to_the_sandbox_after_the_end_gets_no_more() {
    let app = TestApp::builder().sandbox(7).start().await;
    app.publish_both().await;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
    client.cut().await;
    app.advance(Duration::from_secs(2));
    let query = format!("{LIVE}&until={}", text(app.now()));
    app.advance(Duration::from_secs(1));
    assert_eq!(ask(&app, &key, &query, Some(&client.cursor)).await.status(), 204);
}

#[tokio::test]
async fn the_changes_of_an_interval_cost_one_request() {
    let (app, feed, _) = opened().await;
    let key = app.limited_key(100, 3, None).await;
    let used = async || app.get("/v1/status", &key).await.requests_used();
    let (mut live, _) = Client::open(&app, &key, LIVE, None).await;
    live.cut().await;
    assert_eq!(used().await, 1, "to begin");
    for price in [140, 150] {
        quote(&app, &feed, price).await;
        live.cut().await;
        assert_eq!(used().await, 2, "changes of the same interval");
    }
    app.publish().await;
    live.cut().await;
    assert_eq!(used().await, 2);
    quote(&app, &feed, 160).await;
    live.cut().await;
    assert_eq!(used().await, 3);
    app.publish().await;
    live.cut().await;
    quote(&app, &feed, 170).await;
    assert_eq!(live.end().await["code"], "quota_exceeded");
}

#[tokio::test]
async fn what_was_sent_live_is_there_after_a_restart_and_goes_on_in_either_mode() {
    let (app, feed, key) = opened().await;
    let (mut live, _) = Client::open(&app, &key, LIVE, None).await;
    live.cut().await;
    quote(&app, &feed, 140).await;
    live.cut().await;
    let (cursor, state) = (live.cursor.clone(), live.state.clone());
    quote(&app, &feed, 150).await;
    live.cut().await;
    let again = TestApp::builder().starting_at(app.now()).on(app.copy_of_disk()).start().await;
    let (mut back, hello) = Client::open(&again, &key, LIVE, Some(&cursor)).await;
    assert_eq!(hello["resumed"], true);
    back.state = state.clone();
    let events = back.cut().await;
    assert_eq!(
        (names(&events), &events[1].data["published"]),
        (vec!["delta", "cut"], &json!(false))
    );
    assert_eq!((&back.state, &back.cursor), (&live.state, &live.cursor));
    // A stream of publications continues from it, too, with the next one; and so does a list.
    let since = format!("?sports=mma&since={cursor}");
    let (mut waits, hello) = Client::open(&again, &key, &since, None).await;
    assert_eq!(hello["resumed"], true);
    waits.state = state;
    again.publish().await;
    let events = waits.cut().await;
    assert_eq!(names(&events), ["delta", "fresh", "cut"]);
    assert_eq!(events[0].data.get("conflated"), None, "it is the next publication");
    assert_eq!(names(&back.cut().await), ["fresh", "cut"]);
    assert_eq!((&waits.state, &waits.cursor), (&back.state, &back.cursor));
    let delta = again.get(&format!("/v1/sports/mma/odds?since={cursor}"), &key).await;
    assert_eq!(delta.json()["upserts"][0]["outcomes"][0]["price"], 150);
    // With a cursor of another log, the stream starts from a snapshot.
    let (other, feed, other_key) = opened().await;
    let (mut foreign, _) = Client::open(&other, &other_key, LIVE, None).await;
    foreign.cut().await;
    quote(&other, &feed, 140).await;
    foreign.cut().await;
    let (mut anew, _) = Client::open(&again, &key, LIVE, Some(&foreign.cursor)).await;
    assert_eq!(names(&anew.cut().await)[..2], ["reset", "snapshot"]);
}

/// S7: a connection breaks between two cuts, and changes sent on it are superseded when the client continues.
#[tokio::test]
async fn what_a_broken_connection_brought_is_taken_back_where_the_stream_goes_on() {
    let (app, feed, key) = opened().await;
    let (mut stays, _) = Client::open(&app, &key, LIVE, None).await;
    let (mut breaks, _) = Client::open(&app, &key, LIVE, None).await;
    stays.cut().await;
    breaks.cut().await;
    let (cursor, before) = (breaks.cursor.clone(), breaks.state.clone());
    let odds = |bookmaker, price| line::moneyline("a", bookmaker, (ANN, price), (BEA, -155));
    app.push(&feed, ndjson(&[odds("betmgm", 140), odds("fanduel", 150)])).await;
    let delta = breaks.event().await.unwrap();
    assert_eq!(delta.name, "delta");
    breaks.fold(&delta);
    assert_eq!(breaks.state.len(), before.len() + 1);
    stays.cut().await;
    let empty = json!({"type": "odds", "ref": "a", "bookmaker": "betmgm", "market": "moneyline", "outcomes": []});
    app.push(&feed, ndjson(&[empty, odds("fanduel", 135)])).await;
    stays.cut().await;
    assert_eq!(stays.state, before, "nothing is left of it");
    // The same node has it in memory, a restarted one in the log.
    let again = TestApp::builder().starting_at(app.now()).on(app.copy_of_disk()).start().await;
    for app in [&app, &again] {
        let (mut back, hello) = Client::open(app, &key, LIVE, Some(&cursor)).await;
        assert_eq!(hello["resumed"], true);
        back.state = breaks.state.clone();
        back.broken = true;
        let events = back.cut().await;
        assert_eq!(back.state, before, "{events:?}");
    }
}

#[tokio::test]
async fn the_sandbox_moves_between_publications_the_same_everywhere() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let query = "?sports=mma,tennis&mode=live&freshness=records";
    let (mut live, _) = Client::open(&app, &key, query, None).await;
    live.cut().await;
    let mut between = None;
    for _ in 0..2 {
        for step in [10, 20] {
            let due = app.service.api.world(World::Sandbox).published().snapshot.cut_at;
            let due = due.plus(Duration::from_secs(step));
            app.advance(due.plus(Duration::from_secs(1)).since(app.now()));
            wait_for("the sandbox", || shown(&app) >= Some(due)).await;
        }
        app.publish_both().await;
        let mut events = live.cut().await;
        while events.last().unwrap().data["published"] == false {
            between = Some((live.cursor.clone(), live.state.clone()));
            events = live.cut().await;
        }
        let lists = [("odds", "mma"), ("odds", "tennis")];
        check(&app, &key, &live, &lists, &at_of(&events)).await;
    }
    let (cursor, state) = between.expect("nothing moved between publications");
    // Another service with the same seed shows the same between the same publications.
    let other = TestApp::builder().sandbox(7).starting_at(app.now()).start().await;
    let other_key = other.key(unlimited(KeyKind::Sandbox)).await;
    let (mut back, hello) = Client::open(&other, &other_key, query, Some(&cursor)).await;
    assert_eq!(hello["resumed"], true);
    back.state = state;
    back.cut().await;
    assert_eq!(back.cursor, live.cursor);
    assert!(back.state == live.state);
}

/// Time of the sandbox's last state shown to live streams.
fn shown(app: &TestApp) -> Option<Timestamp> {
    let shown = app.service.api.world(World::Sandbox).shown_live();
    shown.map(|shown| shown.snapshot.cut_at)
}

/// The law of streams, over worlds that change at random: regardless of when changes are sent and where a client
/// continues, its state equals the lists after every publication.
#[tokio::test]
async fn whatever_happens_the_folded_state_is_what_the_lists_have_after_each_publication() {
    let app = TestApp::start().await;
    let (feed, key) = (app.any_feed().await, app.key(unlimited(KeyKind::Production)).await);
    let lists = [("odds", "mma"), ("scores", "mma"), ("events", "mma")];
    for (seed, freshness) in [(1, "records"), (2, "none"), (3, "records")] {
        // The changes are the same in every run. How often a client is sent them is not, and need not be.
        let (mut random, mut luck) = (Random(seed), Random(seed));
        let query = format!("?sports=mma&channels=odds,scores,events&freshness={freshness}&mode=");
        let mut modes = ["live", "publication"].into_iter().cycle();
        let open = async |mode: &str, last: Option<&str>| {
            Client::open(&app, &key, &(query.clone() + mode), last).await.0
        };
        let mut client = open("live", None).await;
        client.cut().await;
        // Streams with and without the freshness of each record follow the same at different paces.
        let other = if freshness == "none" { "records" } else { "none" };
        let query = format!("?sports=mma&channels=odds,scores,events&freshness={other}&mode=live");
        let (mut other, _) = Client::open(&app, &key, &query, None).await;
        other.cut().await;
        for _ in 0..8 {
            for _ in 0..random.below(6) {
                app.push(&feed, ndjson(&random_lines(&mut random))).await;
                if random.below(3) == 0 {
                    app.advance(Duration::from_secs(1));
                }
            }
            app.publish().await;
            let at = app.service.api.world(World::Live).published().snapshot.cut_at;
            let at = String::from_utf8(at.millis_text().to_vec()).unwrap();
            while !is_publication(&client.cut().await, &at) {
                // Sometimes it reconnects, from its current position.
                if luck.below(3) == 0 {
                    let last = client;
                    client = open(modes.next().unwrap(), Some(&last.cursor)).await;
                    client.state = last.state;
                }
            }
            while !is_publication(&other.cut().await, &at) {}
            for client in [&client, &other] {
                check(&app, &key, client, &lists, &at).await;
            }
            if luck.below(2) == 0 {
                let last = client;
                client = open("live", Some(&last.cursor)).await;
                client.state = last.state;
            }
        }
    }
}

/// Some messages about a few events.
fn random_lines(random: &mut Random) -> Vec<Value> {
    let mut lines = Vec::new();
    for _ in 0..=random.below(5) {
        let n = random.below(4);
        let (reference, one, other) =
            (format!("r-{n}"), format!("Ann{n} Aberg{n}"), format!("Bea{n} Bryant{n}"));
        let price = i32::try_from(105 + random.below(3) * 10).unwrap();
        lines.push(match random.below(6) {
            0 => line::event(&reference, "mma", &one, &other),
            1 => json!({"type": "remove", "ref": reference}),
            2 => json!({"type": "heartbeat", "bookmaker": "fanduel", "sport": "mma"}),
            _ => line::moneyline(&reference, "fanduel", (&one, price), (&other, -155)),
        });
    }
    lines
}

#[tokio::test]
async fn a_service_without_live_streams_says_so() {
    let settings = StreamSettings { live: false, ..StreamSettings::default() };
    let app = TestApp::builder().streams(settings).start().await;
    let key = app.live_key().await;
    let refused = app.get("/v1/stream?sports=mma&mode=live", &key).await;
    assert_eq!(refused.refusal(), (403, "forbidden".to_owned()));
}
