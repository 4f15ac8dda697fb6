//! Usage over time: nothing is counted twice or lost on its way to the store, and quotas are reported once.

use std::sync::Arc;
use std::time::Duration;

use accounts::{
    Actor, Call, CountRow, EmailAddress, Failure, KeyKind, KeySecret, NewAccount, NewKey, Origin,
    Outcome, Password, People, PeopleRules, Profile, Step, UsageQuery,
};
use domain::{Clock, Timestamp};

use crate::{DAY, TestNode, TestStore, limits, quota::insist};

const NOON: &str = "2026-11-14T12:59:30Z";
const NONE: [u32; 0] = [];
const ENDPOINTS: [&str; 3] = ["get_odds", "list_books", "unknown"];

fn call(operation: usize, outcome: Outcome) -> Call<'static> {
    Call { operation, outcome, agent: Some(b"curl/8.5.0") }
}

/// Creates an account with this number of keys.
async fn account(test: &TestStore, keys: usize) -> (String, Vec<KeySecret>) {
    account_of(test, "ann@example.com", keys).await
}

async fn people(test: &TestStore) -> People {
    let clock = Arc::clone(&test.clock) as Arc<dyn Clock>;
    People::new(test.store().await, clock, PeopleRules::default()).unwrap()
}

async fn account_of(test: &TestStore, address: &str, keys: usize) -> (String, Vec<KeySecret>) {
    let people = people(test).await;
    let email = EmailAddress::parse(address).unwrap();
    let password = Password::choose("correct horse battery".to_owned(), &email).unwrap();
    let profile = Profile::try_new(email, "Ann").unwrap();
    let from = Origin { address: None, agent: String::new(), device: None };
    people.sign_up(NewAccount { profile, password }, &from).await.unwrap();
    let accounts = people.accounts().await.unwrap();
    let id = accounts.iter().find(|own| own.email == address).unwrap().id.clone();
    let registry = test.command_line().await;
    let mut secrets = Vec::new();
    for _ in 0..keys {
        let new = NewKey {
            account_id: Some(id.clone()),
            limits: limits(1000, 20, None),
            ..NewKey::of_kind(KeyKind::Sandbox)
        };
        secrets.push(registry.create_key(new, &Actor::command_line()).await.unwrap().0);
    }
    (id, secrets)
}

async fn told(node: &TestNode, account_id: &str, step: Step) -> Vec<CountRow> {
    let from = Timestamp::from_secs(0);
    node.usage(UsageQuery { account_id, key_id: None, step, from }, &ENDPOINTS).await.unwrap()
}

fn sum(rows: &[CountRow]) -> u64 {
    rows.iter().map(|row| row.requests).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sums_are_what_was_asked_however_counting_and_writing_meet() {
    const EACH: u64 = 20_000;
    let test = TestStore::at(NOON);
    let (id, keys) = account(&test, 2).await;
    let node = test.node().await;
    let counting: Vec<_> = (0..4)
        .map(|n: usize| {
            let (entry, clock) = (node.entry(&keys[n % 2], test.now()), Arc::clone(&test.clock));
            tokio::task::spawn_blocking(move || {
                for _ in 0..EACH {
                    entry.count(call(n % 2, Outcome::Ok), clock.now());
                }
            })
        })
        .collect();
    while !counting.iter().all(tokio::task::JoinHandle::is_finished) {
        node.write_usage(&ENDPOINTS).await.unwrap();
        assert!(sum(&told(&node, &id, Step::Hour).await) <= 4 * EACH);
        // Also across the end of an hour.
        test.clock.advance(Duration::from_secs(1));
    }
    for counted in counting {
        counted.await.unwrap();
    }
    // Reported before it is written, and unchanged after.
    for _ in 0..2 {
        for step in [Step::Hour, Step::Day] {
            assert_eq!(sum(&told(&node, &id, step).await), 4 * EACH);
        }
        node.write_usage(&ENDPOINTS).await.unwrap();
    }
    node.shut_down().await;
    let again = test.node().await;
    let rows = told(&again, &id, Step::Day).await;
    assert_eq!(sum(&rows), 4 * EACH, "it outlives a restart");
    let of = |name: &str| {
        rows.iter().filter(|row| row.endpoint == name).map(|row| row.requests).sum::<u64>()
    };
    assert_eq!((of("get_odds"), of("list_books")), (2 * EACH, 2 * EACH));
}

#[tokio::test]
async fn what_the_store_did_not_take_is_counted_again() {
    let test = TestStore::at(NOON);
    let (id, keys) = account(&test, 1).await;
    let node = test.node().await;
    let entry = node.entry(&keys[0], test.now());
    entry.count(call(0, Outcome::Ok), test.now());
    entry.count(call(0, Outcome::Failed), test.now());
    test.sql("ALTER TABLE usage_day RENAME TO out_of_reach").await;
    assert!(node.write_usage(&ENDPOINTS).await.is_err());
    entry.count(call(0, Outcome::Ok), test.now());
    assert!(node.write_usage(&ENDPOINTS).await.is_err());
    test.sql("ALTER TABLE out_of_reach RENAME TO usage_day").await;
    node.write_usage(&ENDPOINTS).await.unwrap();
    node.write_usage(&ENDPOINTS).await.unwrap();
    for step in [Step::Hour, Step::Day] {
        assert_eq!(sum(&told(&node, &id, step).await), 3);
    }
}

#[tokio::test]
async fn a_revoked_keys_last_requests_are_written_too() {
    let test = TestStore::at(NOON);
    let (id, keys) = account(&test, 1).await;
    let node = test.node().await;
    let entry = node.entry(&keys[0], test.now());
    entry.count(call(0, Outcome::Ok), test.now());
    node.revoke_key(keys[0].expose(), &Actor::command_line()).await.unwrap();
    // A request in progress.
    entry.count(call(0, Outcome::Ok), test.now());
    node.write_usage(&ENDPOINTS).await.unwrap();
    entry.count(call(0, Outcome::Ok), test.now());
    drop(entry);
    node.write_usage(&ENDPOINTS).await.unwrap();
    assert_eq!(sum(&told(&node, &id, Step::Hour).await), 3);
}

#[tokio::test]
async fn hours_are_kept_for_a_week_and_days_for_a_year() {
    let test = TestStore::at(NOON);
    let (id, keys) = account(&test, 1).await;
    let node = test.node().await;
    let entry = node.entry(&keys[0], test.now());
    entry.count(call(0, Outcome::Ok), test.now());
    node.write_usage(&ENDPOINTS).await.unwrap();
    test.clock.advance(9 * DAY);
    node.write_usage(&ENDPOINTS).await.unwrap();
    assert_eq!(sum(&told(&node, &id, Step::Hour).await), 0);
    assert_eq!(sum(&told(&node, &id, Step::Day).await), 1);
    test.clock.advance(400 * DAY);
    node.write_usage(&ENDPOINTS).await.unwrap();
    assert_eq!(sum(&told(&node, &id, Step::Day).await), 0);
}

#[tokio::test]
async fn the_client_is_known_after_a_restart() {
    let test = TestStore::at(NOON);
    let (id, keys) = account(&test, 1).await;
    let node = test.node().await;
    node.entry(&keys[0], test.now()).count(call(0, Outcome::Ok), test.now());
    assert_eq!(node.keys_of(&id).await.unwrap()[0].last_agent.as_deref(), Some("curl/8.5.0"));
    node.record_key_uses().await.unwrap();
    node.shut_down().await;
    let again = test.node().await;
    assert_eq!(again.keys_of(&id).await.unwrap()[0].last_agent.as_deref(), Some("curl/8.5.0"));
}

#[tokio::test]
async fn failures_are_told_newest_first_and_of_the_keys_that_are_meant() {
    let test = TestStore::at(NOON);
    let (id, keys) = account(&test, 2).await;
    let node = test.node().await;
    for (n, key) in [(1, &keys[0]), (2, &keys[1]), (3, &keys[0])] {
        node.entry(key, test.now()).note_failure(Failure {
            at: Timestamp::from_secs(n),
            request_id: format!("req_{n}").into(),
            endpoint: "odds",
            method: "GET",
            target: format!("/v1/{n}").into(),
            status: 400,
            code: "invalid_parameter",
            message: "no".into(),
            times: 1,
        });
    }
    let ids = async |key_id: Option<&str>, max| -> Vec<String> {
        let failures = node.failures(&id, key_id, max).await.unwrap();
        failures.into_iter().map(|(_, failure)| failure.request_id.into()).collect()
    };
    assert_eq!(ids(None, 100).await, ["req_3", "req_2", "req_1"]);
    assert_eq!(ids(None, 2).await, ["req_3", "req_2"]);
    let views = node.keys_of(&id).await.unwrap();
    let is_first = |hint: &str| keys[0].expose().starts_with(hint.trim_end_matches('…'));
    let first = views.iter().find(|view| is_first(&view.record.hint)).unwrap();
    assert_eq!(ids(Some(first.record.id.as_str()), 100).await, ["req_3", "req_1"]);
    assert_eq!(ids(Some("key_of_nobody"), 100).await, Vec::<String>::new());
    assert!(node.failures("acc_of_nobody", None, 100).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_key_whose_overlap_is_over_leaves_with_everything_written_down() {
    let test = TestStore::at(NOON);
    let (id, keys) = account(&test, 1).await;
    let node = test.node().await;
    let entry = node.entry(&keys[0], test.now());
    node.rotate_key(keys[0].expose(), Some(DAY), &Actor::command_line()).await.unwrap();
    assert_eq!(node.keys.len(), 2, "both are let in");
    test.clock.advance(DAY / 2);
    entry.count(call(0, Outcome::Ok), test.now());
    let used = test.now();
    test.clock.advance(DAY);
    // A request in progress.
    entry.count(call(0, Outcome::Failed), test.now());
    node.write_usage(&ENDPOINTS).await.unwrap();
    assert_eq!(node.keys.len(), 1);
    assert_eq!(sum(&told(&node, &id, Step::Day).await), 2);
    entry.count(call(0, Outcome::Ok), test.now());
    drop(entry);
    assert_eq!(sum(&told(&node, &id, Step::Day).await), 3, "before it is written");
    node.write_usage(&ENDPOINTS).await.unwrap();
    node.record_key_uses().await.unwrap();
    node.write_usage(&ENDPOINTS).await.unwrap();
    assert_eq!(sum(&told(&node, &id, Step::Day).await), 3);
    let views = node.keys_of(&id).await.unwrap();
    assert!(views.iter().any(|view| view.last_used.is_some_and(|at| at >= used)));
    node.shut_down().await;
    assert_eq!(test.node().await.keys.len(), 1, "nor does it come back");
}

/// Spends half of each key's day.
async fn spend_half(node: &TestNode, keys: &[KeySecret], now: Timestamp) {
    for key in keys {
        let entry = node.entry(key, now);
        for _ in 0..10 {
            assert!(insist(async || node.charge_quota(&entry, now).await).await.is_ok());
        }
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_told_of_loses_no_other() {
    let test = TestStore::at(NOON);
    let (_, keys) = account(&test, 3).await;
    let node = test.node().await;
    spend_half(&node, &keys, test.now()).await;
    let ids = node.list_keys().await.unwrap().into_iter().map(|key| key.id.to_string());
    let bad = ids.min().unwrap();
    let damage =
        "UPDATE api_key SET burst_per_minute = 9999999999 WHERE id = (SELECT MIN(id) FROM api_key)";
    test.sql(damage).await;
    let told = node.take_quota_alerts().await;
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|alert| alert.key.id.as_str() != bad));
    assert!(node.take_quota_alerts().await.is_empty());
    test.sql("UPDATE api_key SET burst_per_minute = 1000").await;
    let told = node.take_quota_alerts().await;
    assert_eq!(told.len(), 1, "as soon as it can be told");
    assert_eq!(told[0].key.id.as_str(), bad);
}

#[tokio::test]
async fn an_owner_who_cannot_be_told_is_told_later_and_the_others_now() {
    let test = TestStore::at(NOON);
    let (_, mut keys) = account_of(&test, "ann@example.com", 1).await;
    keys.extend(account_of(&test, "bea@example.com", 2).await.1);
    test.sql("UPDATE account SET confirmed_ms = 1").await;
    let node = test.node().await;
    spend_half(&node, &keys, test.now()).await;
    let (outbox, mut email_queue) = accounts::outbox("https://odds.example.com");
    let people = people(&test).await.with_mail(Some(outbox));
    let alerts = node.take_quota_alerts().await;
    assert_eq!(alerts.len(), 3);
    test.sql("UPDATE account SET keys_max = 9999999999 WHERE email = 'ann@example.com'").await;
    let untold = people.mail_alerts(alerts).await;
    assert_eq!((untold.len(), people.mail_stats().queued), (1, 2));
    for _ in 0..2 {
        assert_eq!(email_queue.next().await.unwrap().to.as_str(), "bea@example.com");
    }
    test.sql("UPDATE account SET keys_max = NULL").await;
    assert!(people.mail_alerts(untold).await.is_empty());
    assert_eq!(email_queue.next().await.unwrap().to.as_str(), "ann@example.com");
}

#[tokio::test]
async fn each_share_of_a_quota_is_told_once_a_day_whatever_restarts() {
    let test = TestStore::at(NOON);
    let (_, keys) = account(&test, 1).await;
    let node = test.node().await;
    let spend = async |node: &TestNode, n: usize| {
        let entry = node.entry(&keys[0], test.now());
        for _ in 0..n {
            assert!(insist(async || node.charge_quota(&entry, test.now()).await).await.is_ok());
        }
    };
    let alerts = async |node: &TestNode| -> Vec<u32> {
        node.take_quota_alerts().await.iter().map(|alert| alert.percent).collect()
    };
    spend(&node, 9).await;
    assert_eq!(alerts(&node).await, NONE);
    spend(&node, 1).await;
    assert_eq!(alerts(&node).await, [50]);
    assert_eq!(alerts(&node).await, NONE);
    spend(&node, 10).await;
    assert_eq!(alerts(&node).await, [95], "the largest alone");
    node.shut_down().await;
    let node = test.node().await;
    assert_eq!(alerts(&node).await, NONE, "told before the restart");
    test.clock.advance(DAY);
    spend(&node, 16).await;
    assert_eq!(alerts(&node).await, [80], "another day");
}
