//! Streams of every change of the past (S2).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use accounts::KeyKind;
use change_log::{ChangeLog, Options};
use domain::{Catalogue, Timestamp, World};
use engine::Compact;
use market::book::IMAGE_VERSION;
use market::{Book, Change, Ids};

use super::client::{Client, Event, State, at_of, check, opened, opened_on, quote};
use crate::harness::{TestApp, unlimited};

const LIVE: &str = "?sports=mma&mode=live&freshness=none";

/// A client's state after a cut.
#[derive(Debug, PartialEq)]
struct Seen {
    at: String,
    published: bool,
    cursor: String,
    state: State,
}

fn seen(client: &Client, events: &[Event]) -> Seen {
    assert!(events.iter().all(|event| event.data.get("conflated").is_none()), "{events:?}");
    Seen {
        at: at_of(events),
        published: events.last().unwrap().data["published"] == true,
        cursor: client.cursor.clone(),
        state: client.state.clone(),
    }
}

fn text(at: Timestamp) -> String {
    String::from_utf8(at.millis_text().to_vec()).unwrap()
}

/// A live stream, and everything that it sees while prices change within intervals and across them.
async fn follow(app: &TestApp, feed: &str, key: &str) -> (Client, Vec<Seen>) {
    let (mut live, _) = Client::open(app, key, LIVE, None).await;
    let events = live.cut().await;
    let mut all = vec![seen(&live, &events)];
    for interval in [&[140, 150, 140][..], &[], &[160], &[170, 180]] {
        for price in interval {
            app.advance(Duration::from_millis(1500));
            quote(app, feed, *price).await;
            let events = live.cut().await;
            all.push(seen(&live, &events));
        }
        app.publish().await;
        let events = live.cut().await;
        all.push(seen(&live, &events));
    }
    // The last change is not published.
    app.advance(Duration::from_millis(1500));
    quote(app, feed, 190).await;
    let events = live.cut().await;
    all.push(seen(&live, &events));
    assert_eq!(all.iter().filter(|seen| seen.published).count(), 5);
    (live, all)
}

async fn replay_from(app: &TestApp, key: &str, all: &[Seen], first: usize) -> Client {
    let query = format!("{LIVE}&replay=all&since={}", all[first].cursor);
    let (mut replay, hello) = Client::open(app, key, &query, None).await;
    assert_eq!((&hello["resumed"], &hello["mode"]), (&true.into(), &"live".into()));
    replay.state = all[first].state.clone();
    for expected in &all[first + 1..] {
        let events = replay.cut().await;
        assert_eq!(&seen(&replay, &events), expected);
    }
    replay
}

#[tokio::test]
async fn every_change_since_a_cursor_comes_one_after_the_other_and_then_the_stream_is_live() {
    let (app, feed, key) = opened().await;
    let (mut live, all) = follow(&app, &feed, &key).await;
    let again = TestApp::builder().starting_at(app.now()).on(app.copy_of_disk()).start().await;
    for first in [0, 2, all.len() - 2] {
        drop(replay_from(&app, &key, &all, first).await);
        drop(replay_from(&again, &key, &all, first).await);
    }
    // Changes in memory seamlessly continue those read from the log.
    let mut replays = [replay_from(&app, &key, &all, 1).await];
    for price in [200, 210] {
        app.advance(Duration::from_millis(1500));
        quote(&app, &feed, price).await;
        let events = live.cut().await;
        let expected = seen(&live, &events);
        for replay in &mut replays {
            let events = replay.cut().await;
            assert_eq!(seen(replay, &events), expected);
        }
    }
    // After a restart, without any other live stream.
    let mut replay = replay_from(&again, &key, &all, 0).await;
    for price in [220, 230, 240] {
        again.advance(Duration::from_millis(1500));
        quote(&again, &feed, price).await;
        let events = replay.cut().await;
        assert!(!seen(&replay, &events).published);
        let price_now = &events[0].data["upserts"][0]["outcomes"][0]["price"];
        assert_eq!(price_now, price);
    }
    again.publish().await;
    let events = replay.cut().await;
    check(&again, &key, &replay, &[("odds", "mma")], &at_of(&events)).await;
}

/// Removes all entries of a log but the last, as retention does.
pub(super) fn shorten_log(folder: &Path) {
    shorten_log_to(folder, u64::MAX);
}

/// The same, but keeps the entries from `keep_from` on.
pub(in crate::v1) fn shorten_log_to(folder: &Path, keep_from: u64) {
    let (long, _) = ChangeLog::open(folder, Options::default()).unwrap();
    let kept = folder.with_extension("kept");
    let options = Options { segment_bytes: 1, ..Options::default() };
    let (mut short, _) = ChangeLog::open(&kept, options).unwrap();
    let catalogue = Arc::new(Catalogue::load(None).unwrap());
    let mut book = Book::new(catalogue, Ids::Minted { salt: 0 });
    for entry in long.read_from(1).unwrap().map(Result::unwrap) {
        short.append(entry.at_ms, [(entry.version, &*entry.payload)]).unwrap();
        let change = Change::decode(entry.version, &entry.payload).unwrap();
        book.absorb(&change, Timestamp::from_millis(entry.at_ms));
        // The last entry is a cut, which a checkpoint does not cover.
        if entry.seq < long.last_seq() && entry.seq + 2 >= long.last_seq() {
            short.write_checkpoint(entry.seq, IMAGE_VERSION, &book.to_image()).unwrap();
        }
    }
    let keep_from = keep_from.min(short.last_seq());
    assert!(short.retain(i64::MAX, keep_from).unwrap() > 10);
    drop((long, short));
    std::fs::remove_dir_all(folder).unwrap();
    std::fs::rename(kept, folder).unwrap();
}

#[tokio::test]
async fn the_changes_of_a_span_are_replayed_from_the_archive_and_then_the_stream_is_done() {
    let (app, feed, key) = opened_on(TestApp::builder().archived().start().await).await;
    let (live, all) = follow(&app, &feed, &key).await;
    drop(live);
    app.publish().await;
    assert!(app.service.api.world(World::Live).history.flush(Compact::Due).await.unwrap());
    let (now, dir) = (app.now().plus(Duration::from_secs(600)), app.stop().await);
    shorten_log(&dir.path().join("live"));
    let app = TestApp::builder().archived().starting_at(now).on(dir).start().await;
    // From a time it begins with the publication of that time.
    let until = &all[all.len() - 1].at;
    let query = format!("{LIVE}&replay=all&since={}&until={until}", all[0].at);
    let (mut replay, hello) = Client::open(&app, &key, &query, None).await;
    assert_eq!(hello["resumed"], false);
    for expected in &all {
        let events = replay.cut().await;
        assert_eq!(&seen(&replay, &events), expected);
    }
    assert_eq!(replay.end().await["code"], "done");
}

/// S2: also where `until` is between changes that live streams were shown together.
#[tokio::test]
async fn a_replay_of_changes_ends_between_two_that_were_shown_together() {
    let app = TestApp::builder().live_tick(Duration::from_secs(8)).start().await;
    let (app, feed, key) = opened_on(app).await;
    let (mut live, _) = Client::open(&app, &key, LIVE, None).await;
    live.cut().await;
    // Shown at once, and the following ones together after half a tick.
    quote(&app, &feed, 140).await;
    live.cut().await;
    let since = live.cursor.clone();
    app.advance(Duration::from_secs(1));
    quote(&app, &feed, 150).await;
    app.advance(Duration::from_secs(1));
    let until = text(app.now());
    app.advance(Duration::from_secs(1));
    quote(&app, &feed, 160).await;
    let price = |events: &[Event]| events[0].data["upserts"][0]["outcomes"][0]["price"].clone();
    while price(&live.cut().await) != 160 {}
    let query = format!("{LIVE}&replay=all&since={since}&until={until}");
    let (mut replay, _) = Client::open(&app, &key, &query, None).await;
    assert_eq!(price(&replay.cut().await), 150);
    assert_eq!(replay.end().await["code"], "done");
}

#[tokio::test]
async fn the_sandbox_is_replayed_with_what_happens_between_its_publications() {
    let app = TestApp::builder().sandbox(7).start().await;
    let key = app.key(unlimited(KeyKind::Sandbox)).await;
    let since = app.now().minus(Duration::from_secs(24 * 3600));
    let until = since.plus(Duration::from_secs(60));
    let (since, until) = (text(since), text(until));
    let lists = [("odds", "mma"), ("odds", "tennis"), ("events", "mma"), ("events", "tennis")];
    for freshness in ["records", "none"] {
        let query = format!(
            "?sports=mma,tennis&channels=odds,events&mode=live&freshness={freshness}&replay=all\
             &since={since}&until={until}"
        );
        let (mut replay, _) = Client::open(&app, &key, &query, None).await;
        let (mut ats, mut between) = (Vec::new(), 0);
        while ats.len() < 3 {
            let events = replay.cut().await;
            let seen = seen(&replay, &events);
            if seen.published {
                check(&app, &key, &replay, &lists, &seen.at).await;
                ats.push(seen.at);
            } else {
                between += 1;
            }
        }
        assert!(ats.is_sorted() && between > 0, "{ats:?} {between}");
        assert_eq!(replay.end().await["code"], "done");
    }
}

#[tokio::test]
async fn a_replay_of_changes_costs_what_a_replay_of_publications_costs() {
    let (app, feed, open) = opened().await;
    let (live, all) = follow(&app, &feed, &open).await;
    drop(live);
    let key = app.limited_key(100, 100, None).await;
    let again = TestApp::builder().starting_at(app.now()).on(app.copy_of_disk()).start().await;
    let used = async || again.get("/v1/status", &key).await.requests_used();
    let before = used().await;
    // Up to the last publication, and then on to unpublished changes.
    let last = all.iter().rfind(|seen| seen.published).unwrap();
    let query = format!("{LIVE}&replay=all&since={}&until={}", all[0].cursor, last.at);
    let (mut replay, _) = Client::open(&again, &key, &query, None).await;
    for _ in 1..all.len() - 1 {
        replay.cut().await;
    }
    assert_eq!(replay.end().await["code"], "done");
    assert_eq!(used().await, before + 2, "to begin, and for the first 500 publications");
    drop(replay_from(&again, &key, &all, 0).await);
    assert_eq!(used().await, before + 2 + 3, "the same, and for a change in this interval");
}
