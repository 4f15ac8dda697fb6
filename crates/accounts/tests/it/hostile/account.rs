//! Limits of an account hold whatever happens to its keys.

use accounts::{AccountError, Charge, Owner, Refusal, Window};

use crate::quota::insist;
use crate::*;

const MORNING: &str = "2026-11-14T09:00:10Z";

fn of_ann() -> Actor {
    Actor {
        account_id: Some("acc_ann".to_owned()),
        who: "ann@example.com".to_owned(),
        address: String::new(),
    }
}

fn key_of_ann(limits: Limits) -> NewKey {
    let account_id = Some("acc_ann".to_owned());
    NewKey { limits, account_id, ..NewKey::of_kind(KeyKind::Production) }
}

async fn make(node: &TestNode, limits: Limits) -> KeySecret {
    node.create_key(key_of_ann(limits), &Actor::command_line()).await.unwrap().0
}

/// The number of answers until a key is refused, and the limit that was reached.
async fn drain(node: &TestNode, key: &KeySecret, now: Timestamp) -> (u32, Refusal) {
    let entry = node.entry(key, now);
    let mut answers = 0;
    loop {
        match insist(async || node.charge_quota(&entry, now).await).await {
            Ok(_) => answers += 1,
            Err(refusal) => return (answers, refusal),
        }
    }
}

async fn drain_burst(node: &TestNode, key: &KeySecret, now: Timestamp) -> u32 {
    let entry = node.entry(key, now);
    let mut passed = 0;
    while insist(async || node.charge_burst(&entry, now).await).await.is_ok() {
        passed += 1;
    }
    passed
}

#[tokio::test]
async fn keys_of_an_account_share_its_day_and_its_month() {
    let test = TestStore::at(MORNING);
    let own = limits(100, 5, Some(7));
    test.account("acc_ann", own).await;
    let node = test.node().await;
    let (one, two) = (make(&node, own).await, make(&node, own).await);
    let others = test.issue(own).await;
    node.reload().await.unwrap();
    let entry = node.entry(&one, test.now());
    for used in 1..=3 {
        let Charge::Granted(standing) = node.charge_quota(&entry, test.now()).await else {
            panic!("refused");
        };
        assert_eq!((standing.quota.used, standing.quota.remaining), (used, 5 - used));
    }
    // The other key has spent nothing of its own limits.
    let standing = node.entry(&two, test.now()).meters.standing(test.now());
    assert_eq!(
        (standing.quota.owner, standing.quota.used, standing.quota.remaining),
        (Owner::Account, 3, 2)
    );
    let (answers, refusal) = drain(&node, &two, test.now()).await;
    assert_eq!(answers, 2);
    assert_eq!((refusal.owner, refusal.window, refusal.limit), (Owner::Account, Window::Day, 5));
    assert_eq!(drain(&node, &one, test.now()).await.0, 0);
    assert_eq!(drain(&node, &others, test.now()).await.0, 5, "other accounts are not affected");
    test.clock.advance(DAY);
    let (answers, refusal) = drain(&node, &two, test.now()).await;
    assert_eq!((answers, refusal.owner, refusal.window), (2, Owner::Account, Window::Month));
    // An operator allows more, and every key of the account gets it.
    test.allow("acc_ann", limits(100, 9, Some(11))).await;
    node.reload().await.unwrap();
    let after = [drain(&node, &one, test.now()).await.0, drain(&node, &two, test.now()).await.0];
    assert_eq!(after, [4, 0]);
}

#[tokio::test]
async fn sandbox_keys_share_a_day_of_their_own() {
    let test = TestStore::at(MORNING);
    test.account("acc_ann", limits(100, 5, None)).await;
    let node = test.node().await;
    let production = make(&node, limits(100, 5, None)).await;
    let mut sandbox = Vec::new();
    for _ in 0..2 {
        let new = NewKey { kind: KeyKind::Sandbox, ..key_of_ann(limits(100, 10_000, None)) };
        sandbox.push(node.create_key(new, &Actor::command_line()).await.unwrap().0);
    }
    let entry = node.entry(&sandbox[0], test.now());
    for _ in 0..7 {
        insist(async || node.charge_quota(&entry, test.now()).await).await.unwrap();
    }
    let other = node.entry(&sandbox[1], test.now()).meters.standing(test.now()).quota;
    assert_eq!((other.owner, other.used, other.limit), (Owner::Account, 7, 10_000));
    assert_eq!(drain(&node, &production, test.now()).await.0, 5);
}

#[tokio::test]
async fn revoking_and_creating_keys_brings_nothing() {
    let test = TestStore::at(MORNING);
    let own = limits(3, 5, Some(7));
    test.account("acc_ann", own).await;
    let mut node = test.node().await;
    let (mut answers, mut burst) = (0, 0);
    for round in 0..12 {
        let key = make(&node, own).await;
        burst += drain_burst(&node, &key, test.now()).await;
        answers += drain(&node, &key, test.now()).await.0;
        node.revoke_key(key.expose(), &Actor::command_line()).await.unwrap();
        // In memory, after a return of leases, over an orderly restart and over a crash.
        match round % 4 {
            0 => {}
            1 => node.write_usage(&["odds"]).await.unwrap(),
            2 => {
                node.shut_down().await;
                node = test.node().await;
            }
            _ => {
                node.crash().await;
                node = test.node().await;
            }
        }
    }
    assert_eq!((burst, answers), (3, 5));
    // The same with another key active throughout.
    let kept = make(&node, own).await;
    assert_eq!(drain_burst(&node, &kept, test.now()).await, 0);
    let second = make(&node, own).await;
    assert_eq!(
        drain_burst(&node, &second, test.now()).await,
        3,
        "two keys in force have two minutes"
    );
    for _ in 0..4 {
        node.revoke_key(second.expose(), &Actor::command_line()).await.unwrap();
        let second = make(&node, own).await;
        assert_eq!(drain_burst(&node, &second, test.now()).await, 0);
        node.revoke_key(second.expose(), &Actor::command_line()).await.unwrap();
    }
    test.clock.advance(MINUTE);
    assert_eq!(
        drain_burst(&node, &kept, test.now()).await,
        3,
        "a minute later it has its own again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_accounts_day_is_exact_from_many_keys_threads_and_nodes() {
    let test = TestStore::at(MORNING);
    let own = limits(10_000, 300, None);
    test.account("acc_ann", own).await;
    let nodes = [test.node().await, test.node().await];
    let mut keys = Vec::new();
    for _ in 0..4 {
        keys.push(make(&nodes[0], own).await);
    }
    nodes[1].reload().await.unwrap();
    let now = test.now();
    let mut tasks = Vec::new();
    for node in &nodes {
        for key in &keys {
            let (accounts, entry) = (Arc::clone(&node.accounts), node.entry(key, now));
            let charge = async move || accounts.charge_quota(&entry, now).await;
            tasks.push(tokio::spawn(count_granted(charge)));
        }
    }
    let mut answers = 0;
    for task in tasks {
        answers += task.await.unwrap();
    }
    assert_eq!(answers, 300);
}

/// The number of requests granted until one is refused.
async fn count_granted(charge: impl AsyncFn() -> Charge) -> u32 {
    let mut granted = 0;
    loop {
        match charge().await {
            Charge::Granted(_) => granted += 1,
            Charge::Refused(_) => return granted,
            Charge::Unavailable => {}
        }
    }
}

#[tokio::test]
async fn making_keys_is_throttled_for_people_and_not_for_the_machine() {
    let test = TestStore::at(MORNING);
    test.account("acc_ann", Limits::DEFAULT).await;
    let node = test.node().await;
    let new = || key_of_ann(Limits::DEFAULT);
    let mut made = 0;
    let refused = loop {
        match node.create_key(new(), &of_ann()).await {
            Ok((key, _)) => {
                made += 1;
                node.revoke_key(key.expose(), &of_ann()).await.unwrap();
            }
            Err(refused) => break refused,
        }
        assert!(made < 100);
    };
    assert!(
        matches!(refused, AccountError::KeysTooMany { retry_after_s: 3601, .. }),
        "{refused:?}"
    );
    assert_eq!(made, 30);
    // A restart keeps the count, and a rotation counts as a created key.
    node.shut_down().await;
    let node = test.node().await;
    assert!(matches!(
        node.create_key(new(), &of_ann()).await,
        Err(AccountError::KeysTooMany { .. })
    ));
    let (key, record) = node.create_key(new(), &Actor::command_line()).await.unwrap();
    let rotated = node.rotate_key(record.id.as_str(), None, &of_ann()).await;
    assert!(matches!(rotated, Err(AccountError::KeysTooMany { .. })));
    node.entry(&key, test.now());
    test.clock.advance(Duration::from_secs(3601));
    node.create_key(new(), &of_ann()).await.unwrap();
}

#[tokio::test]
async fn keys_made_at_once_never_pass_keys_max() {
    let test = TestStore::at(MORNING);
    test.account("acc_ann", Limits::DEFAULT).await;
    let node = test.node().await;
    let accounts = &node.accounts;
    for _ in 0..18 {
        accounts.create_key(key_of_ann(Limits::DEFAULT), &of_ann()).await.unwrap();
    }
    let racing = (0..40).map(|_| {
        let accounts = Arc::clone(accounts);
        tokio::spawn(
            async move { accounts.create_key(key_of_ann(Limits::DEFAULT), &of_ann()).await },
        )
    });
    let mut made = 0;
    for one in racing.collect::<Vec<_>>() {
        match one.await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => {
                assert!(matches!(error, AccountError::KeysFull { keys_max: 20 }), "{error:?}");
            }
        }
    }
    assert_eq!((made, node.keys.len()), (2, 20));
}

#[tokio::test]
async fn ended_keys_are_not_held_in_memory() {
    let test = TestStore::at(MORNING);
    let own = limits(100, 1000, None);
    test.account("acc_ann", own).await;
    let node = test.node().await;
    let kept = make(&node, own).await;
    for _ in 0..40 {
        let keys = [make(&node, own).await, make(&node, own).await];
        let lone = NewKey { account_id: None, ..key_of_ann(own) };
        let lone = node.create_key(lone, &Actor::command_line()).await.unwrap().0;
        for key in keys.iter().chain([&lone]) {
            let entry = node.entry(key, test.now());
            insist(async || node.charge_quota(&entry, test.now()).await).await.unwrap();
            node.revoke_key(key.expose(), &Actor::command_line()).await.unwrap();
        }
    }
    // Three lines and the account; the other keys' leases are not returned yet.
    node.record_key_uses().await.unwrap();
    node.write_usage(&["odds"]).await.unwrap();
    node.write_usage(&["odds"]).await.unwrap();
    assert_eq!((node.keys.len(), node.keys.meter_count().await), (1, 2));
    // Their unspent leases are available again.
    let entry = node.entry(&kept, test.now());
    assert_eq!(entry.meters.standing(test.now()).quota.used, 80);
    node.crash().await;
    let node = test.node().await;
    assert_eq!((node.keys.len(), node.keys.meter_count().await), (1, 2));
    let fresh = make(&node, own).await;
    let used = node.entry(&fresh, test.now()).meters.day(test.now()).used;
    assert_eq!(used, 40, "its line's");
}

#[tokio::test]
async fn that_nothing_can_be_counted_is_known_and_that_it_can_again_without_a_request() {
    let test = TestStore::at(MORNING);
    let key = test.issue(limits(5, 5, None)).await;
    let node = test.node().await;
    let entry = node.entry(&key, test.now());
    assert!(node.can_count());
    test.sql("ALTER TABLE usage RENAME TO usage_gone").await;
    assert_eq!(node.charge_quota(&entry, test.now()).await, Charge::Unavailable);
    assert!(!node.can_count());
    test.sql("ALTER TABLE usage_gone RENAME TO usage").await;
    let deadline = tokio::time::Instant::now() + TEST_TIMEOUT;
    while !node.can_count() {
        assert!(tokio::time::Instant::now() < deadline, "it is not tried again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Without any request, the failure is still detected.
    test.sql("ALTER TABLE usage RENAME TO usage_gone").await;
    while node.can_count() {
        assert!(tokio::time::Instant::now() < deadline, "it is not tried");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
