//! The number of the last change of keys, and the nodes that have read up to it.

use std::{collections::BTreeMap, sync::Arc};

use store::{Allowance, Behind, KeyChange, KeyEnd, KeyInsert, KeyRow, KeyUse, Listed, Store};
use tokio::task::JoinSet;

use crate::test_database::{TestDatabase, account, ask, audit_entry, feed, key};

/// The ids of the keys that changed since the last call, and the increase of the number.
async fn news(store: &Store, seen: &mut i64) -> (i64, Vec<String>) {
    let newest = store.key_change().await.unwrap().number;
    let rows = store.keys_changed_after(*seen).await.unwrap();
    let raised = newest - *seen;
    *seen = newest;
    assert_eq!(store.keys_changed_after(newest).await.unwrap(), []);
    (raised, rows.into_iter().map(|row| row.id).collect())
}

fn named(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| String::from(*id)).collect()
}

pub(crate) async fn every_change_of_keys_raises_the_number_and_marks_what_changed(
    database: TestDatabase,
) {
    let store = database.open().await;
    let mut seen = store.key_change().await.unwrap().number;
    assert_eq!((seen, store.keys_changed_after(0).await.unwrap()), (0, Vec::new()));
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    assert_eq!(news(&store, &mut seen).await, (0, named(&[])));

    let own = |n| KeyRow { account_id: Some(String::from("ann")), ..key(n) };
    store.insert_keys(&[own(1), key(2), own(3)], &[]).await.unwrap();
    assert_eq!(news(&store, &mut seen).await, (1, named(&["key_1", "key_2", "key_3"])));
    store.revoke_key("key_2", 5, &audit_entry(1, None)).await.unwrap();
    assert_eq!(news(&store, &mut seen).await, (1, named(&["key_2"])));
    // A repeated revocation is reported again: a node that missed the first one gets it.
    store.revoke_key("key_2", 6, &audit_entry(1, None)).await.unwrap();
    assert_eq!(news(&store, &mut seen).await, (1, named(&["key_2"])));
    let successor = KeyRow { rotated_from: Some(String::from("key_3")), ..own(4) };
    assert_eq!(
        store
            .rotate_key(KeyEnd::AtOnce { now_ms: 7 }, &successor, None, &audit_entry(1, None))
            .await
            .unwrap(),
        KeyInsert::Inserted
    );
    assert_eq!(news(&store, &mut seen).await, (1, named(&["key_3", "key_4"])));
    store.suspend_account("ann", Some(8), &audit_entry(1, None)).await.unwrap();
    assert_eq!(news(&store, &mut seen).await, (1, named(&["key_1", "key_3", "key_4"])));
    store.suspend_account("ann", None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(news(&store, &mut seen).await.0, 1);
    store.allow_account("ann", &Allowance::default(), (5, 6), &audit_entry(1, None)).await.unwrap();
    assert_eq!(news(&store, &mut seen).await, (1, named(&["key_1", "key_4"])));

    store.insert_feed(&feed("acme", 9), &audit_entry(1, None)).await.unwrap();
    store.pause_feed("acme", Some(1), &audit_entry(1, None)).await.unwrap();
    store.revoke_feed("acme", 2, &audit_entry(1, None)).await.unwrap();
    store.set_setting("maintenance", Some("60")).await.unwrap();
    assert_eq!(news(&store, &mut seen).await, (4, named(&[])));

    // A write that does not affect authentication raises nothing.
    let used = KeyUse { id: String::from("key_1"), used_ms: 9, agent: None };
    store.record_key_uses(&[used]).await.unwrap();
    store.lease(&[ask(5)]).await.unwrap();
    assert_eq!(
        store
            .rotate_key(KeyEnd::AtOnce { now_ms: 7 }, &successor, None, &audit_entry(1, None))
            .await
            .unwrap(),
        KeyInsert::NothingToReplace
    );
    assert_eq!(news(&store, &mut seen).await, (0, named(&[])));
}

/// A follower that reads the number first and the changes after it never misses a revocation.
pub(crate) async fn who_change_keys_at_once_are_seen_by_whoever_follows_the_number(
    database: TestDatabase,
) {
    const WRITERS: u8 = 4;
    const EACH: u8 = 12;
    let database = Arc::new(database);
    let rows: Vec<KeyRow> = (0..WRITERS * EACH).map(key).collect();
    database.open().await.insert_keys(&rows, &[]).await.unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let database = Arc::clone(&database);
        writers.spawn(async move {
            let store = database.open().await;
            for n in 0..EACH {
                store
                    .revoke_key(&format!("key_{}", writer * EACH + n), 1, &audit_entry(1, None))
                    .await
                    .unwrap();
            }
            store.close().await;
        });
    }
    let store = database.open().await;
    let mut held: BTreeMap<String, bool> = BTreeMap::new();
    let mut number = 0;
    loop {
        while let Some(written) = writers.try_join_next() {
            written.unwrap();
        }
        let done = writers.is_empty();
        let newest = store.key_change().await.unwrap().number;
        for row in store.keys_changed_after(number).await.unwrap() {
            held.insert(row.id, row.revoked_ms.is_some());
        }
        number = newest;
        if done {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(held.len(), rows.len());
    assert!(held.values().all(|revoked| *revoked), "{held:?}");
    assert_eq!(number, 1 + i64::from(WRITERS * EACH));
}

pub(crate) async fn nodes_are_behind_until_they_confirm_or_go(database: TestDatabase) {
    let store = database.open().await;
    let behind = async |number| store.nodes_behind(number).await.unwrap();
    assert_eq!(behind(9).await, Behind { nodes: 0, lease_ms: 0 });
    store.confirm_node("one", 3, 5000).await.unwrap();
    store.confirm_node("two", 4, 7000).await.unwrap();
    assert_eq!(behind(3).await, Behind { nodes: 0, lease_ms: 0 });
    assert_eq!(behind(4).await, Behind { nodes: 1, lease_ms: 5000 });
    assert_eq!(behind(5).await, Behind { nodes: 2, lease_ms: 7000 });
    store.confirm_node("one", 5, 5000).await.unwrap();
    // An older confirmation that arrives late takes nothing back.
    store.confirm_node("one", 2, 5000).await.unwrap();
    assert_eq!(behind(5).await, Behind { nodes: 1, lease_ms: 7000 });
    store.delete_node("two").await.unwrap();
    store.delete_node("two").await.unwrap();
    assert_eq!(behind(5).await, Behind { nodes: 0, lease_ms: 0 });
    // A node that was not seen for a day is removed.
    database
        .run("INSERT INTO node (id, confirmed, trust_ms, seen_ms) VALUES ('dead', 0, 5000, 1)")
        .await
        .unwrap();
    assert_eq!(behind(5).await.nodes, 1);
    store.delete_dead_nodes().await.unwrap();
    assert_eq!((behind(5).await.nodes, behind(6).await.nodes), (0, 1));
}

pub(crate) async fn silent_nodes_whose_right_has_run_out_are_not_behind_until_they_confirm(
    database: TestDatabase,
) {
    let store = database.open().await;
    let behind = async |number| store.nodes_behind(number).await.unwrap().nodes;
    let listed = async |id| store.key_change_seen_by(id).await.unwrap().1;
    let row = |confirmed, run_out| Some(Listed { confirmed, run_out });
    for (id, number) in [("one", 6), ("two", 4), ("three", 3)] {
        store.confirm_node(id, number, 5000).await.unwrap();
    }
    store.mark_expired(5).await.unwrap();
    assert_eq!(behind(5).await, 2, "they were just there");
    database.run("UPDATE node SET seen_ms = seen_ms - 250000").await.unwrap();
    store.mark_expired(5).await.unwrap();
    store.mark_expired(4).await.unwrap();
    assert_eq!((behind(5).await, behind(6).await, behind(7).await), (0, 0, 1));
    assert_eq!((listed("one").await, listed("two").await), (row(6, 0), row(4, 5)));
    assert_eq!(listed("nobody").await, None);
    // Being listed is not enough; the node has to have read the change.
    store.confirm_node("two", 4, 5000).await.unwrap();
    assert_eq!(behind(7).await, 1);
    assert!(!listed("two").await.unwrap().is_waited_for());
    store.confirm_node("two", 5, 5000).await.unwrap();
    assert_eq!((behind(5).await, behind(6).await, behind(7).await), (0, 1, 2));
    assert!(listed("two").await.unwrap().is_waited_for());

    // An older program does not know of this, and changes always wait for it.
    database.run("INSERT INTO node (id, confirmed, trust_ms, seen_ms) SELECT 'older', 2, 5000, seen_ms FROM node WHERE id = 'one'")
        .await
        .unwrap();
    store.mark_expired(5).await.unwrap();
    assert_eq!((behind(5).await, listed("older").await), (1, row(2, 0)));

    // Marks from before a restore may be wrong.
    store.raise_key_change(9).await.unwrap();
    assert_eq!(behind(5).await, 2);
}

pub(crate) async fn a_number_that_was_set_back_is_raised_and_never_lowered(database: TestDatabase) {
    let store = database.open().await;
    store.raise_key_change(7).await.unwrap();
    store.raise_key_change(3).await.unwrap();
    store.raise_key_change(7).await.unwrap();
    assert_eq!(store.key_change().await.unwrap(), KeyChange { number: 7, era: 7 });
    store.insert_key(&key(1), None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(store.key_change().await.unwrap(), KeyChange { number: 8, era: 7 });
    assert_eq!(store.keys_changed_after(7).await.unwrap(), [key(1)]);
    store.raise_key_change(20).await.unwrap();
    assert_eq!(store.key_change().await.unwrap(), KeyChange { number: 20, era: 20 });
}
