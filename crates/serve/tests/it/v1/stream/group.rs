//! Streams of the same selection are written to together (S4, S6, S14, S16).

use accounts::Actor;
use api::v1::stream::StreamSettings;
use serde_json::json;

use super::client::{Client, move_to, names, opened_on};
use crate::harness::TestApp;

/// More than are written to in one turn.
const MANY: usize = 150;

async fn opened_for_many() -> (TestApp, String, String) {
    let per_key_max = 2 * MANY;
    let settings = StreamSettings { per_key_max, ..StreamSettings::default() };
    opened_on(TestApp::builder().streams(settings).start().await).await
}

#[tokio::test]
async fn all_of_a_group_get_every_publication_and_pay_for_it() {
    let (app, feed, key) = opened_for_many().await;
    let mut clients = Vec::new();
    for _ in 0..MANY {
        let (mut client, _) = Client::open(&app, &key, "?sports=mma", None).await;
        client.cut().await;
        clients.push(client);
    }
    // Streams that end do not affect the others.
    clients.drain(10..40);
    let used = app.get("/v1/books", &key).await.requests_used();
    for price in 140..145 {
        move_to(&app, &feed, price).await;
        let mut cursors = Vec::new();
        for client in &mut clients {
            assert_eq!(names(&client.cut().await), ["delta", "fresh", "cut"]);
            cursors.push(client.cursor.clone());
        }
        cursors.dedup();
        assert_eq!(cursors.len(), 1);
    }
    let (first, others) = clients.split_first().unwrap();
    assert!(others.iter().all(|client| client.state == first.state));
    let paid = u32::try_from(5 * clients.len()).unwrap();
    assert_eq!(app.get("/v1/books", &key).await.requests_used(), used + paid + 1);
    let metrics = app.get_operator("/metrics").await;
    let name = "\nlinesman_stream_lag_seconds_count{mode=\"publication\",transport=\"sse\"} ";
    let count = metrics.text().split(name).nth(1).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(count, (u32::try_from(MANY).unwrap() + paid).to_string());
}

#[tokio::test]
async fn a_key_that_ends_in_a_group_ends_alone() {
    let (app, feed, key) = opened_for_many().await;
    let other = app.live_key().await;
    let mut clients = Vec::new();
    for key in [&key, &other, &key, &other] {
        let (mut client, _) = Client::open(&app, key, "?sports=mma", None).await;
        client.cut().await;
        clients.push(client);
    }
    move_to(&app, &feed, 150).await;
    for client in &mut clients {
        client.cut().await;
    }
    app.service.api.accounts.revoke_key(&key, &Actor::command_line()).await.unwrap();
    move_to(&app, &feed, 151).await;
    for (n, client) in clients.iter_mut().enumerate() {
        if n % 2 == 0 {
            assert_eq!(client.end().await["code"], json!("authentication_failed"));
        } else {
            assert_eq!(names(&client.cut().await), ["delta", "fresh", "cut"]);
        }
    }
}
