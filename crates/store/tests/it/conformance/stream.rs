//! The streams of keys, counted over nodes.

use std::sync::Arc;

use store::{Store, StreamsWanted};
use tokio::task::JoinSet;

use crate::test_database::{TestDatabase, audit_entry, key};

const FOR_MS: u32 = 45_000;

fn wanted(key: &str, open: u32, wanted: u32, limit: u32) -> StreamsWanted {
    StreamsWanted { key_id: key.into(), open, wanted, limit }
}

async fn hold(store: &Store, node: &str, all: &[StreamsWanted]) -> Option<Vec<u32>> {
    store.hold_streams(node, FOR_MS, all).await.unwrap()
}

pub(crate) async fn streams_of_a_key_are_counted_over_nodes_and_never_beyond_its_limit(
    database: TestDatabase,
) {
    let store = database.open().await;
    for node in ["one", "two"] {
        store.begin_stream_node(node, FOR_MS).await.unwrap();
    }
    assert_eq!(hold(&store, "one", &[]).await, Some(vec![]));
    let both = [wanted("a", 0, 3, 5), wanted("b", 0, 1, 1)];
    assert_eq!(hold(&store, "one", &both).await, Some(vec![3, 1]));
    let both = [wanted("b", 0, 1, 1), wanted("a", 0, 3, 5), wanted("c", 0, 2, 9)];
    assert_eq!(hold(&store, "two", &both).await, Some(vec![0, 2, 2]));
    assert_eq!(store.streams_of("a").await.unwrap(), 5);
    // A lowered limit ends no stream, and lets none begin.
    assert_eq!(hold(&store, "two", &[wanted("a", 2, 3, 1)]).await, Some(vec![2]));
    // When one node closes a stream, another may open one.
    assert_eq!(hold(&store, "one", &[wanted("a", 1, 1, 0)]).await, Some(vec![1]));
    assert_eq!(hold(&store, "two", &[wanted("a", 2, 9, 5)]).await, Some(vec![4]));
    assert_eq!(hold(&store, "one", &[wanted("a", 0, 0, 0)]).await, Some(vec![0]));
    assert_eq!(store.streams_of("a").await.unwrap(), 4);
    store.end_stream_node("two").await.unwrap();
    assert_eq!(store.streams_of("a").await.unwrap(), 0);
    assert_eq!(store.streams_of("b").await.unwrap(), 1);
    assert_eq!(hold(&store, "two", &[wanted("a", 0, 1, 5)]).await, None, "it has ended");
}

pub(crate) async fn streams_of_a_node_whose_right_has_expired_are_free(database: TestDatabase) {
    let store = database.open().await;
    for node in ["one", "two", "three"] {
        store.begin_stream_node(node, FOR_MS).await.unwrap();
        assert_eq!(hold(&store, node, &[wanted("a", 0, 1, 3)]).await, Some(vec![1]));
    }
    assert_eq!(hold(&store, "one", &[wanted("a", 1, 2, 3)]).await, Some(vec![1]));
    // One node's instant has passed, and another's was given when the clock was ahead.
    database.run("UPDATE stream_node SET until_ms = 1 WHERE id = 'two'").await.unwrap();
    database
        .run("UPDATE stream_node SET until_ms = until_ms + 3600000 WHERE id = 'three'")
        .await
        .unwrap();
    assert_eq!(hold(&store, "one", &[wanted("a", 1, 9, 3)]).await, Some(vec![3]));
    for node in ["two", "three"] {
        assert_eq!(hold(&store, node, &[]).await, None, "{node} has to begin anew");
        store.begin_stream_node(node, FOR_MS).await.unwrap();
        assert_eq!(hold(&store, node, &[wanted("a", 0, 1, 3)]).await, Some(vec![0]));
    }
}

pub(crate) async fn who_open_streams_at_once_get_the_limit_and_not_one_more(
    database: TestDatabase,
) {
    const LIMIT: u32 = 7;
    let database = Arc::new(database);
    let mut nodes = JoinSet::new();
    for node in 0..4 {
        let database = Arc::clone(&database);
        nodes.spawn(async move {
            let (store, node) = (database.open().await, format!("node_{node}"));
            store.begin_stream_node(&node, FOR_MS).await.unwrap();
            let mut held = 0;
            for _ in 0..10 {
                held = hold(&store, &node, &[wanted("a", held, held + 1, LIMIT)]).await.unwrap()[0];
            }
            held
        });
    }
    let held: u32 = nodes.join_all().await.iter().sum();
    assert_eq!(held, LIMIT);
    assert_eq!(database.open().await.streams_of("a").await.unwrap(), LIMIT);
}

pub(crate) async fn a_key_is_given_a_number_of_streams(database: TestDatabase) {
    let store = database.open().await;
    store.insert_key(&key(1), None, &audit_entry(1, None)).await.unwrap();
    let before = store.key_change().await.unwrap().number;
    for streams in [Some(9), None] {
        let row = store.limit_key_streams("key_1", streams, &audit_entry(1, None)).await.unwrap();
        assert_eq!(row.unwrap().streams, streams);
    }
    assert_eq!(store.key_change().await.unwrap().number, before + 2, "nodes follow it");
    let none = store.limit_key_streams("key_2", Some(9), &audit_entry(1, None)).await.unwrap();
    assert_eq!(none, None);
}
