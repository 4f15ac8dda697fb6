//! The same guarantees with nodes that share a PostgreSQL database, and across a move from a file to a database.

use std::sync::Arc;

use accounts::{Accounts, Actor, Charge, Spend};
use domain::Clock;
use store::{Store, transfer};
use test_servers::Postgres;

use crate::{
    DAY, TestNode, TestStore, limits,
    quota::{drain, hammer},
};

const NOON: &str = "2026-11-14T12:00:00Z";

async fn node_on(test: &TestStore, url: &str) -> TestNode {
    let clock = Arc::clone(&test.clock) as Arc<dyn Clock>;
    let store = Store::connect(url).await.unwrap();
    let (accounts, worker) = Accounts::load(store.clone(), clock).await.unwrap();
    TestNode { accounts: Arc::new(accounts), worker: tokio::spawn(worker.run()), store }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_to_postgres_changes_nothing_for_whoever_holds_a_key() {
    const LIMIT: u32 = 500;
    let test = TestStore::at(NOON);
    let now = test.now();
    let key = test.issue(limits(1_000_000, LIMIT, None)).await;
    let ended = test.issue(limits(1_000_000, LIMIT, None)).await;
    let old = test.node().await;
    old.revoke_key(ended.expose(), &Actor::command_line()).await.unwrap();
    assert_eq!(drain(&old, &key, now, 123).await, 123);
    let records = old.list_keys().await.unwrap();
    old.shut_down().await;

    let server = Postgres::start().unwrap();
    let url = server.create_database("db").unwrap();
    transfer(test.database().as_ref(), &url, &[], &mut |_| {}).await.unwrap();

    let nodes =
        [node_on(&test, &url).await, node_on(&test, &url).await, node_on(&test, &url).await];
    let moved = nodes[0].list_keys().await.unwrap();
    assert_eq!(serde_json::to_value(moved).unwrap(), serde_json::to_value(records).unwrap());
    assert!(nodes[1].keys.authenticate(ended.expose().as_bytes(), now).is_err());
    // Earlier use counts, and all nodes together grant exactly the rest.
    let [one, two, three] = &nodes;
    assert_eq!(hammer(&[one, two, three], &key, now).await, LIMIT - 123);

    // A node that crashes loses only its unspent leases; the limit is never exceeded.
    let tomorrow = now.plus(DAY);
    let [one, two, three] = nodes;
    assert_eq!(drain(&three, &key, tomorrow, 10).await, 10);
    three.crash().await;
    let rest = hammer(&[&one, &two], &key, tomorrow).await;
    assert!((LIMIT - 10 - LIMIT / 4..=LIMIT - 10).contains(&rest), "{rest}");
    one.shut_down().await;
    two.shut_down().await;
}

/// Leases in memory are spent exactly; then the service reports that it cannot count, and continues when it can.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_database_away_keys_go_on_within_their_leases_and_no_further() {
    const LIMIT: u32 = 400;
    let mut server = Postgres::start().unwrap();
    let url = server.create_database("db").unwrap();
    let test = TestStore::on(url.clone(), NOON);
    let now = test.now();
    let key = test.issue(limits(1_000_000, LIMIT, None)).await;
    let nodes = [node_on(&test, &url).await, node_on(&test, &url).await];
    let mut spent = 0;
    for node in &nodes {
        spent += drain(node, &key, now, 10).await;
    }
    server.stop().unwrap();
    for node in &nodes {
        let entry = node.entry(&key, now);
        let mut in_hand = 0;
        while let Spend::Granted(_) = entry.meters.spend_quota(1, now) {
            in_hand += 1;
        }
        assert!((1..=LIMIT / 2).contains(&in_hand), "{in_hand}");
        spent += in_hand;
        assert_eq!(node.charge_quota(&entry, now).await, Charge::Unavailable);
    }
    server.start_again().unwrap();
    let [one, two] = &nodes;
    // The first try may still use a connection that has ended.
    let entry = one.entry(&key, now);
    let back = async {
        while !matches!(one.charge_quota(&entry, now).await, Charge::Granted(_)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::TEST_TIMEOUT, back).await.unwrap();
    let entry = two.entry(&key, now);
    let back = async {
        while two.charge_quota(&entry, now).await == Charge::Unavailable {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::TEST_TIMEOUT, back).await.unwrap();
    let rest = hammer(&[one, two], &key, now).await;
    assert!(spent + rest + 2 <= LIMIT && spent + rest + 2 >= LIMIT - 1, "{spent} and {rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_of_the_database_has_keys_and_quotas() {
    const LIMIT: u32 = 160;
    let test = TestStore::at(NOON);
    let now = test.now();
    let key = test.issue(limits(1_000_000, LIMIT, None)).await;
    let ended = test.issue(limits(1_000_000, LIMIT, None)).await;
    let server = Postgres::start().unwrap();
    let url = server.create_database("db").unwrap();
    transfer(test.database().as_ref(), &url, &[], &mut |_| {}).await.unwrap();
    let node = node_on(&test, &url).await;
    node.revoke_key(ended.expose(), &Actor::command_line()).await.unwrap();
    assert_eq!(drain(&node, &key, now, 20).await, 20);

    // The node continues meanwhile, and holds a lease.
    let restored = server.dump_and_restore("db", "restored").unwrap();
    assert_eq!(drain(&node, &key, now, 20).await, 20);
    let other = node_on(&test, &restored).await;
    assert!(other.keys.authenticate(ended.expose().as_bytes(), now).is_err());
    // Leased units count as spent: less than two slices of the limit.
    let rest = hammer(&[&other], &key, now).await;
    let slice = LIMIT / 16;
    assert!((LIMIT - 20 - slice * 2..=LIMIT - 20).contains(&rest), "{rest}");
    node.shut_down().await;
    other.shut_down().await;
}
