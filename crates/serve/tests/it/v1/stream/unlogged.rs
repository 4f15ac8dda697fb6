//! Streams and polls while publications cannot be logged.

use std::time::Duration;

use domain::World;
use tokio::signal::unix::{SignalKind, signal};

use super::client::{Client, names, opened_on, quote};
use crate::harness::{TestApp, wait_for};
use crate::hostile::failing_log::{SIGXFSZ, fill_disk};

/// S8, S12: such publications have the position of the last one that was logged. Clients continue from each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_polls_go_on_while_publications_cannot_be_logged() {
    let _caught = signal(SignalKind::from_raw(SIGXFSZ)).unwrap();
    // All within one minute, because the requests of the next one could not be leased.
    let interval = Duration::from_secs(10);
    let app = TestApp::builder().refresh_interval(interval).start().await;
    let (app, feed, key) = opened_on(app).await;
    let world = app.service.api.world(World::Live);
    let odds = app.get("/v1/sports/mma/odds", &key).await;
    let logged = odds.header("x-cursor").unwrap().to_owned();
    let mut clients = Vec::new();
    for mode in ["publication", "live", "live&replay=all"] {
        let query = format!("?sports=mma&mode={mode}");
        clients.push(Client::open(&app, &key, &query, Some(&logged)).await.0);
    }
    // The last entry before is a change, which is a state of its own for those that follow live.
    quote(&app, &feed, 140).await;
    for client in &mut clients[1..] {
        assert_eq!(names(&client.cut().await), ["delta", "cut"]);
    }
    let last_entry = world.last_entry();
    fill_disk(true);
    let mut polled = logged.clone();
    for n in 0..3 {
        app.advance(interval);
        let due = app.now();
        wait_for("a publication", || world.published().snapshot.cut_at == due).await;
        for (at, client) in clients.iter_mut().enumerate() {
            let events = client.cut().await;
            let expected = match (n, at) {
                (0, 0) => &["delta", "fresh", "cut"][..],
                _ => &["fresh", "cut"],
            };
            assert_eq!(names(&events), expected, "{at}");
        }
        let mut next = String::new();
        for (since, status) in [(&polled, if n == 0 { 200 } else { 204 }), (&logged, 200)] {
            let answer = app.get(&format!("/v1/sports/mma/odds?since={since}"), &key).await;
            assert_eq!(answer.status, status, "{}", answer.text());
            next = answer.header("x-cursor").unwrap().to_owned();
        }
        assert!(clients.iter().all(|client| client.cursor == next));
        polled = next;
    }
    assert_eq!(world.last_entry(), last_entry, "no publication was logged");
    fill_disk(false);
}
