//! Cases about clients that try to exceed their share, concurrently or repeatedly.

use std::sync::Arc;

use store::{
    AccountRow, AuditEntry, KeyCountLimit, KeyEnd, KeyInsert, KeyKind, KeyRow, LinkPurpose, Role,
};

use crate::test_database::{TestDatabase, account, audit_entry, digest, key, link};

const HOUR_MS: i64 = 3_600_000;

fn room(now_ms: i64) -> KeyCountLimit {
    KeyCountLimit { now_ms, keys_max: 5, made_max: 8, since_ms: now_ms - HOUR_MS }
}

fn own(n: u8, at_ms: i64) -> KeyRow {
    KeyRow {
        account_id: Some(String::from("ann")),
        meter_id: format!("key_{n}"),
        created_ms: at_ms,
        ..key(n)
    }
}

pub(crate) async fn hostile_keys_made_at_once_never_pass_what_the_account_may_have(
    database: TestDatabase,
) {
    let database = Arc::new(database);
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    for n in 1..=3 {
        let made =
            store.insert_key(&own(n, 10), Some(&room(10)), &audit_entry(1, None)).await.unwrap();
        assert_eq!(made, KeyInsert::Inserted);
    }
    let mut nodes = Vec::new();
    for node in 0..4_u8 {
        let database = Arc::clone(&database);
        nodes.push(tokio::spawn(async move {
            let store = database.open().await;
            let mut made = 0;
            for n in 0..5 {
                let key = own(20 + node * 10 + n, 20);
                let outcome =
                    store.insert_key(&key, Some(&room(20)), &audit_entry(1, None)).await.unwrap();
                assert!(matches!(outcome, KeyInsert::Inserted | KeyInsert::Full { keys_max: 5 }));
                made += usize::from(outcome == KeyInsert::Inserted);
                // Each rotation also counts.
                let next = KeyRow {
                    rotated_from: Some(String::from("key_1")),
                    ..own(100 + node * 10 + n, 20)
                };
                let end = KeyEnd::At { expires_ms: 1000 };
                let outcome = store
                    .rotate_key(end, &next, Some(&room(20)), &audit_entry(1, None))
                    .await
                    .unwrap();
                made += usize::from(outcome == KeyInsert::Inserted);
            }
            store.close().await;
            made
        }));
    }
    let mut made = 0;
    for node in nodes {
        made += node.await.unwrap();
    }
    assert_eq!((made, store.live_keys(20).await.unwrap().len()), (2, 5));
    // A key that is replaced at once takes no place, and an operator's allowance applies.
    let next = KeyRow { rotated_from: Some(String::from("key_2")), ..own(200, 20) };
    let end = KeyEnd::AtOnce { now_ms: 20 };
    let outcome =
        store.rotate_key(end, &next, Some(&room(20)), &audit_entry(1, None)).await.unwrap();
    assert_eq!(outcome, KeyInsert::Inserted);
    let allowance = store::Allowance { keys_max: Some(6), ..store::Allowance::default() };
    store.allow_account("ann", &allowance, (60, 100), &audit_entry(1, None)).await.unwrap();
    let outcome =
        store.insert_key(&own(201, 20), Some(&room(20)), &audit_entry(1, None)).await.unwrap();
    assert_eq!(outcome, KeyInsert::Inserted);
    let outcome =
        store.insert_key(&own(202, 20), Some(&room(20)), &audit_entry(1, None)).await.unwrap();
    assert_eq!(outcome, KeyInsert::Full { keys_max: 6 });
}

pub(crate) async fn hostile_keys_made_again_and_again_are_counted_by_the_hour(
    database: TestDatabase,
) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    for n in 1..=8 {
        let at_ms = HOUR_MS + i64::from(n);
        let made = store
            .insert_key(&own(n, at_ms), Some(&room(at_ms)), &audit_entry(1, None))
            .await
            .unwrap();
        assert_eq!(made, KeyInsert::Inserted, "{n}");
        store.revoke_key(&format!("key_{n}"), at_ms, &audit_entry(1, None)).await.unwrap();
    }
    let later = HOUR_MS + 50;
    let refused = KeyInsert::TooMany { made_max: 8, first_ms: HOUR_MS + 1 };
    let made =
        store.insert_key(&own(9, later), Some(&room(later)), &audit_entry(1, None)).await.unwrap();
    assert_eq!(made, refused);
    // An operator at the machine has no limit, but the key counts for the account.
    let made = store.insert_key(&own(10, later), None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(made, KeyInsert::Inserted);
    let next = KeyRow { rotated_from: Some(String::from("key_10")), ..own(11, later) };
    let end = KeyEnd::AtOnce { now_ms: later };
    let made =
        store.rotate_key(end, &next, Some(&room(later)), &audit_entry(1, None)).await.unwrap();
    assert_eq!(made, refused, "a successor is one more");
    let next_hour = 2 * HOUR_MS + 60;
    let made =
        store.rotate_key(end, &next, Some(&room(next_hour)), &audit_entry(1, None)).await.unwrap();
    assert_eq!(made, KeyInsert::Inserted);
}

pub(crate) async fn hostile_a_key_made_after_one_ended_goes_on_with_its_meters(
    database: TestDatabase,
) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    store.insert_account(&account("bob"), &audit_entry(1, None)).await.unwrap();
    let meters_of = async |n: u8| store.key(&format!("key_{n}")).await.unwrap().unwrap().meter_id;
    for n in 1..=3 {
        store.insert_key(&own(n, 10), None, &audit_entry(1, None)).await.unwrap();
        assert_eq!(meters_of(n).await, format!("key_{n}"), "nothing has ended yet");
    }
    store.revoke_key("key_2", 11, &audit_entry(1, None)).await.unwrap();
    store.revoke_key("key_1", 12, &audit_entry(1, None)).await.unwrap();
    let sandbox = KeyRow { kind: KeyKind::Sandbox, ..own(4, 20) };
    let bobs = KeyRow { account_id: Some(String::from("bob")), ..own(5, 20) };
    let nobodys = KeyRow { account_id: None, ..own(6, 20) };
    for (n, key) in [(4, sandbox), (5, bobs), (6, nobodys)] {
        store.insert_key(&key, None, &audit_entry(1, None)).await.unwrap();
        assert_eq!(meters_of(n).await, format!("key_{n}"), "another's meters are not for it");
    }
    for (n, meters) in [(7, "key_1"), (8, "key_2"), (9, "key_9")] {
        store.insert_key(&own(n, 20), None, &audit_entry(1, None)).await.unwrap();
        assert_eq!(meters_of(n).await, meters, "those that ended last come first");
    }
    // A key that continues during the overlap with its successor, and then ends by the clock.
    let next = KeyRow {
        rotated_from: Some(String::from("key_9")),
        meter_id: String::from("key_9"),
        ..own(10, 30)
    };
    let end = KeyEnd::At { expires_ms: 100 };
    store.rotate_key(end, &next, None, &audit_entry(1, None)).await.unwrap();
    store.revoke_key("key_10", 40, &audit_entry(1, None)).await.unwrap();
    store.insert_key(&own(11, 50), None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(meters_of(11).await, "key_11", "somebody spends from them");
    store.insert_key(&own(12, 150), None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(meters_of(12).await, "key_9");
}

pub(crate) async fn hostile_ended_keys_are_not_read_at_a_start_and_go_in_time(
    database: TestDatabase,
) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let ended: Vec<KeyRow> = (0..450_u32)
        .map(|n| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&n.to_be_bytes());
            KeyRow {
                id: format!("old_{n:04}"),
                digest: store::Digest::from_bytes(bytes),
                revoked_ms: (n % 2 == 0).then_some(i64::from(n)),
                expires_ms: (n % 2 == 1).then_some(i64::from(n)),
                rotated_from: (n > 0).then(|| format!("old_{:04}", n - 1)),
                ..own(1, i64::from(n))
            }
        })
        .collect();
    store.insert_keys(&ended, &[]).await.unwrap();
    let count = store::CountRow {
        key_id: String::from("old_0000"),
        start_ms: 0,
        endpoint: String::from("get_odds"),
        outcome: store::Outcome::Ok,
        requests: 5,
    };
    store.add_counts(&[count]).await.unwrap();
    store.insert_key(&key(250), None, &audit_entry(1, None)).await.unwrap();
    store.revoke_key("key_250", 1, &audit_entry(1, None)).await.unwrap();
    store.insert_key(&own(251, 500), None, &audit_entry(1, None)).await.unwrap();
    let live: Vec<String> =
        store.live_keys(1000).await.unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(live, ["key_251"]);

    assert_eq!(store.delete_ended_keys(1000).await.unwrap(), 0, "all ended within a day");
    let later = 40 * 86_400_000;
    let mut gone = 0;
    loop {
        match store.delete_ended_keys(later).await.unwrap() {
            0 => break,
            some => gone += some,
        }
    }
    assert_eq!(gone, 250);
    let kept = store.keys_of("ann").await.unwrap();
    assert_eq!(kept.len(), 201, "the newest, and the one in force");
    assert_eq!(kept[0].id, "old_0250");
    assert_eq!(kept[0].rotated_from, None);
    assert!(store.key("key_250").await.unwrap().is_some(), "nobody's are the operator's own");
    assert_eq!(store.live_keys_of("ann", 1000).await.unwrap().len(), 1);
    let page = store.ended_keys_of("ann", 1000, (198, 50)).await.unwrap();
    let page: Vec<&str> = page.iter().map(|key| key.id.as_str()).collect();
    assert_eq!(page, ["old_0251", "old_0250"]);
    let found = store.find_keys("OLD_04", 1000, 3).await.unwrap();
    let found: Vec<&str> = found.iter().map(|key| key.id.as_str()).collect();
    assert_eq!(found, ["old_0449", "old_0448", "old_0447"]);
    for (text, count) in [
        ("suspended", 0),
        ("revoked", 100),
        ("ann@example.com", 100),
        ("command LINE", 1),
        ("%", 0),
    ] {
        assert_eq!(store.find_keys(text, 1000, 100).await.unwrap().len(), count, "{text}");
    }
}

pub(crate) async fn hostile_the_last_operators_cannot_suspend_each_other(database: TestDatabase) {
    let store = database.open().await;
    for id in ["ann", "bob"] {
        let row = AccountRow { role: Role::Operator, ..account(id) };
        store.insert_account(&row, &audit_entry(1, None)).await.unwrap();
    }
    let other = database.open().await;
    let entry = audit_entry(1, None);
    let (ann, bob) = tokio::join!(
        store.suspend_account("ann", Some(5), &entry),
        other.suspend_account("bob", Some(5), &entry)
    );
    assert_ne!(ann.unwrap(), bob.unwrap());
    assert_eq!(store.count_accounts(Role::Operator).await.unwrap(), 1);
}

pub(crate) async fn hostile_an_action_that_is_not_written_down_is_not_done(database: TestDatabase) {
    let store = database.open().await;
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    store.insert_key(&own(1, 10), None, &audit_entry(1, None)).await.unwrap();
    let lines = async || store.audit(None, None, 99).await.unwrap().len();
    assert_eq!(lines().await, 2);
    // As if the process died between the two: from here on no audit entry can be written.
    database.run("ALTER TABLE audit RENAME TO audit_gone").await.unwrap();
    let entry = audit_entry(9, None);
    assert!(store.revoke_key("key_1", 20, &entry).await.is_err());
    assert!(store.insert_key(&own(2, 20), None, &entry).await.is_err());
    let next = KeyRow { rotated_from: Some(String::from("key_1")), ..own(3, 20) };
    let end = KeyEnd::AtOnce { now_ms: 20 };
    assert!(store.rotate_key(end, &next, None, &entry).await.is_err());
    assert!(store.insert_account(&account("bob"), &entry).await.is_err());
    assert!(store.suspend_account("ann", Some(20), &entry).await.is_err());
    assert!(store.set_password("ann", "new", None, &entry).await.is_err());
    assert!(store.decide_setting("maintenance", Some("5"), &entry).await.is_err());
    assert!(store.insert_feed(&crate::test_database::feed("acme", 9), &entry).await.is_err());
    database.run("ALTER TABLE audit_gone RENAME TO audit").await.unwrap();
    assert_eq!(lines().await, 2);
    assert_eq!(store.key("key_1").await.unwrap().unwrap().revoked_ms, None);
    assert_eq!(store.keys().await.unwrap().len(), 1);
    assert_eq!(store.accounts(9).await.unwrap(), [account("ann")]);
    assert_eq!(store.setting("maintenance").await.unwrap(), None);
    assert_eq!(store.feeds().await.unwrap(), []);
    // And a change that succeeds has its entry.
    store.revoke_key("key_1", 20, &AuditEntry { at_ms: 20, ..entry }).await.unwrap();
    assert_eq!(store.audit(None, None, 1).await.unwrap()[0].entry.at_ms, 20);
}

pub(crate) async fn hostile_accounts_that_nobody_confirmed_go_in_time(database: TestDatabase) {
    let store = database.open().await;
    let made = |id: &str, created_ms| AccountRow { created_ms, ..account(id) };
    let known = AccountRow { confirmed_ms: Some(1), ..made("known", 1) };
    let operator = AccountRow { role: Role::Operator, ..made("operator", 1) };
    for row in [made("old", 1), made("new", 50), made("holder", 1), known, operator] {
        store.insert_account(&row, &audit_entry(1, None)).await.unwrap();
    }
    for (n, id) in [(1, "old"), (2, "new")] {
        store.insert_link(&link(n, LinkPurpose::Confirmation, Some(id)), None).await.unwrap();
    }
    let own = KeyRow { account_id: Some(String::from("holder")), ..key(1) };
    store.insert_key(&own, None, &audit_entry(1, None)).await.unwrap();
    assert_eq!(store.delete_unconfirmed(49).await.unwrap(), 1);
    assert!(store.account("old").await.unwrap().is_none());
    assert_eq!(store.accounts(9).await.unwrap().len(), 4);
    assert!(store.link(&digest(1)).await.unwrap().is_none());
    assert!(store.link(&digest(2)).await.unwrap().is_some());
}
