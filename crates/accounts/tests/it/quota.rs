//! The limits are kept exactly, with any number of tasks and nodes, through crashes and restarts.

use std::sync::Arc;
use std::time::Instant;

use accounts::{Charge, KeyEntry, KeySecret, Owner, Refusal, Spend, Standing, Window};
use domain::Timestamp;

use crate::{DAY, MINUTE, SECOND, TEST_TIMEOUT, TestNode, TestStore, limits};

const NOON: &str = "2026-11-14T12:00:00Z";

/// Retries if no lease came in time: nothing was spent then, and a busy disk is no fault.
pub(crate) async fn insist(mut charge: impl AsyncFnMut() -> Charge) -> Result<Standing, Refusal> {
    let begun = Instant::now();
    loop {
        match charge().await {
            Charge::Granted(standing) => return Ok(standing),
            Charge::Refused(refusal) => return Err(refusal),
            Charge::Unavailable => assert!(begun.elapsed() < TEST_TIMEOUT, "no lease"),
        }
    }
}

async fn quota(node: &TestNode, entry: &KeyEntry, now: Timestamp) -> Result<Standing, Refusal> {
    insist(async || node.charge_quota(entry, now).await).await
}

async fn burst(node: &TestNode, entry: &KeyEntry, now: Timestamp) -> Result<Standing, Refusal> {
    insist(async || node.charge_burst(entry, now).await).await
}

/// Spends until refused, at most `at_most` times.
pub(crate) async fn drain(node: &TestNode, key: &KeySecret, now: Timestamp, at_most: u32) -> u32 {
    let entry = node.entry(key, now);
    for spent in 0..at_most {
        if quota(node, &entry, now).await.is_err() {
            return spent;
        }
    }
    at_most
}

/// Many tasks on each node spend until all of them are refused.
pub(crate) async fn hammer(nodes: &[&TestNode], key: &KeySecret, now: Timestamp) -> u32 {
    let mut tasks = Vec::new();
    for node in nodes {
        for _ in 0..8 {
            let (accounts, entry) = (Arc::clone(&node.accounts), node.entry(key, now));
            tasks.push(tokio::spawn(async move {
                let mut spent = 0;
                let begun = Instant::now();
                loop {
                    match accounts.charge_quota(&entry, now).await {
                        Charge::Granted(_) => spent += 1,
                        Charge::Refused(_) => return spent,
                        Charge::Unavailable => assert!(begun.elapsed() < TEST_TIMEOUT, "no lease"),
                    }
                }
            }));
        }
    }
    let mut spent = 0;
    for task in tasks {
        spent += task.await.unwrap();
    }
    spent
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_get_the_limit_and_not_one_more() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(1, 700, Some(2000))).await;
    let node = test.node().await;
    assert_eq!(hammer(&[&node], &key, test.now()).await, 700);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_together_never_pass_the_limit() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(1, 500, None)).await;
    let (one, other) = (test.node().await, test.node().await);
    // Neither node keeps units back: both spend until the store has none left.
    assert_eq!(hammer(&[&one, &other], &key, test.now()).await, 500);
}

#[tokio::test]
async fn several_credits_are_charged_together_or_not_at_all() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(60, 11, Some(20))).await;
    let node = test.node().await;
    let (entry, now) = (node.entry(&key, test.now()), test.now());
    let charge =
        async |credits| insist(async || node.charge_credits(&entry, credits, now).await).await;
    // A lease of a sixteenth is smaller than one of these charges: the store grants the needed units in one step.
    assert_eq!(charge(9).await.unwrap().quota.remaining, 2);
    let refusal = charge(3).await.unwrap_err();
    assert_eq!((refusal.window, refusal.limit, refusal.remaining), (Window::Day, 11, 2));
    assert_eq!(entry.meters.standing(now).quota.remaining, 2, "a refusal charges nothing");
    assert_eq!(quota(&node, &entry, now).await.unwrap().quota.remaining, 1);
    assert_eq!(charge(1).await.unwrap().quota.remaining, 0);
    assert!(charge(1).await.is_err());
    // The next day has its own eleven, the month nine of its twenty.
    let tomorrow = now.plus(DAY);
    let charge =
        async |credits| insist(async || node.charge_credits(&entry, credits, tomorrow).await).await;
    assert_eq!(charge(10).await.unwrap_err().window, Window::Month);
    assert_eq!(charge(9).await.unwrap().quota.remaining, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_charge_several_credits_never_pass_the_limit() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(1, 500, None)).await;
    let (one, other) = (test.node().await, test.node().await);
    let now = test.now();
    let mut tasks = Vec::new();
    for (at, node) in [&one, &other].into_iter().cycle().take(8).enumerate() {
        let (accounts, entry) = (Arc::clone(&node.accounts), node.entry(&key, now));
        let credits = [1, 3, 7, 40][at / 2];
        tasks.push(tokio::spawn(async move {
            let (mut charged, begun) = (0, Instant::now());
            loop {
                match accounts.charge_credits(&entry, credits, now).await {
                    Charge::Granted(_) => charged += credits,
                    Charge::Refused(_) => return charged,
                    Charge::Unavailable => assert!(begun.elapsed() < TEST_TIMEOUT, "no lease"),
                }
            }
        }));
    }
    let mut charged = 0;
    for task in tasks {
        charged += task.await.unwrap();
    }
    // Charges of one credit take the rest.
    assert_eq!(charged, 500);
}

#[tokio::test]
async fn crashes_lose_requests_but_never_give_more() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(1, 200, Some(150))).await;
    let mut spent = 0;
    for round in 0.. {
        let node = test.node().await;
        let got = drain(&node, &key, test.now(), 1 + round % 7).await;
        node.crash().await;
        spent += got;
        if got == 0 {
            break;
        }
    }
    assert!((1..=150).contains(&spent), "{spent}");
}

#[tokio::test]
async fn a_graceful_restart_loses_nothing() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(1, 150, Some(200))).await;
    let mut spent = 0;
    for round in 0.. {
        let node = test.node().await;
        let standing = node.entry(&key, test.now()).meters.standing(test.now());
        assert_eq!((standing.quota.used, standing.quota.remaining), (spent, 150 - spent));
        let got = drain(&node, &key, test.now(), 1 + round % 23).await;
        node.shut_down().await;
        spent += got;
        if got == 0 {
            break;
        }
    }
    assert_eq!(spent, 150);
}

#[tokio::test]
async fn day_and_month_are_spent_together_and_the_refusal_names_which() {
    let test = TestStore::at("2026-11-14T23:59:58.500Z");
    let key = test.issue(limits(60, 3, Some(5))).await;
    let node = test.node().await;
    let entry = node.entry(&key, test.now());
    let mut tightest = Vec::new();
    for _ in 0..3 {
        tightest.push(quota(&node, &entry, test.now()).await.unwrap().quota);
    }
    assert_eq!(
        tightest.iter().map(|w| (w.window, w.remaining)).collect::<Vec<_>>(),
        [(Window::Day, 2), (Window::Day, 1), (Window::Day, 0)]
    );
    let refusal = quota(&node, &entry, test.now()).await.unwrap_err();
    assert_eq!(
        refusal,
        Refusal {
            owner: Owner::Key,
            window: Window::Day,
            limit: 3,
            remaining: 0,
            retry_after_s: 2
        }
    );

    test.clock.advance(2 * SECOND);
    assert_eq!(drain(&node, &key, test.now(), 9).await, 2, "a refused request spent no month");
    let refusal = quota(&node, &entry, test.now()).await.unwrap_err();
    assert_eq!((refusal.window, refusal.limit), (Window::Month, 5));
    let standing = entry.meters.standing(test.now());
    assert_eq!((standing.quota.window, standing.quota.used), (Window::Month, 5));
    assert_eq!(standing.quota.resets_at.to_string(), "2026-12-01T00:00:00Z");

    test.clock.set(Timestamp::parse("2026-12-01T00:00:00Z").unwrap());
    assert_eq!(drain(&node, &key, test.now(), 9).await, 3);
}

#[tokio::test]
async fn the_burst_is_a_minute_and_costs_no_quota() {
    let test = TestStore::at("2026-11-14T12:00:59.999Z");
    let key = test.issue(limits(5, 10, None)).await;
    let node = test.node().await;
    let entry = node.entry(&key, test.now());
    for used in 1..=5 {
        assert_eq!(burst(&node, &entry, test.now()).await.unwrap().burst.used, used);
    }
    let refusal = burst(&node, &entry, test.now()).await.unwrap_err();
    assert_eq!(
        refusal,
        Refusal {
            owner: Owner::Key,
            window: Window::Minute,
            limit: 5,
            remaining: 0,
            retry_after_s: 1
        }
    );
    assert_eq!(entry.meters.standing(test.now()).quota.used, 0);

    // A clock that steps back does not reopen an earlier minute.
    test.clock.set(test.now().minus(2 * MINUTE));
    assert_eq!(burst(&node, &entry, test.now()).await.unwrap_err().retry_after_s, 121);
    test.clock.advance(3 * MINUTE);
    assert_eq!(burst(&node, &entry, test.now()).await.unwrap().burst.remaining, 4);
}

#[tokio::test]
async fn figures_are_right_after_a_crash_before_anything_is_leased() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(8, 16, None)).await;
    let node = test.node().await;
    let entry = node.entry(&key, test.now());
    burst(&node, &entry, test.now()).await.unwrap();
    drain(&node, &key, test.now(), 16).await;
    node.crash().await;

    let node = test.node().await;
    let standing = node.entry(&key, test.now()).meters.standing(test.now());
    assert_eq!((standing.quota.used, standing.quota.remaining), (16, 0));
    // The crashed node's unspent leases are lost, so they count as used.
    assert!((1..=4).contains(&standing.burst.used), "{standing:?}");
    test.clock.advance(DAY);
    let standing = node.entry(&key, test.now()).meters.standing(test.now());
    assert_eq!((standing.burst.used, standing.quota.used), (0, 0));
}

#[tokio::test]
async fn what_another_node_gave_back_is_found_again() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(1, 40, None)).await;
    let (one, other) = (test.node().await, test.node().await);
    let spent = drain(&one, &key, test.now(), 1).await;
    let drained = drain(&other, &key, test.now(), 100).await;
    assert!(spent + drained < 40, "one node holds an unspent lease");
    one.shut_down().await;

    test.clock.advance(5 * SECOND);
    let entry = other.entry(&key, test.now());
    let found = async {
        while quota(&other, &entry, test.now()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, found).await.unwrap();
    assert_eq!(spent + drained + 1 + drain(&other, &key, test.now(), 100).await, 40);
}

#[tokio::test]
async fn a_store_that_cannot_be_written_makes_the_request_unavailable() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(4, 4, None)).await;
    let node = test.node().await;
    let entry = node.entry(&key, test.now());
    node.store.close().await;
    assert_eq!(entry.meters.spend_burst(test.now()), Spend::NeedsLease);
    assert_eq!(node.charge_burst(&entry, test.now()).await, Charge::Unavailable);
    assert_eq!(node.charge_quota(&entry, test.now()).await, Charge::Unavailable);
    assert_eq!(entry.meters.standing(test.now()).quota.used, 0);
}

#[tokio::test]
async fn nothing_is_handed_out_after_the_release() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(60, 60, None)).await;
    let node = test.node().await;
    let entry = node.entry(&key, test.now());
    burst(&node, &entry, test.now()).await.unwrap();
    node.release().await.unwrap();
    assert_eq!(node.charge_burst(&entry, test.now()).await, Charge::Unavailable);
    assert_eq!(entry.meters.standing(test.now()).burst.used, 1);
}

#[tokio::test]
async fn a_reload_keeps_what_is_in_hand() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(60, 64, None)).await;
    let node = test.node().await;
    let mut spent = 0;
    while spent < 64 {
        spent += drain(&node, &key, test.now(), 3).await;
        node.reload().await.unwrap();
    }
    assert_eq!((spent, drain(&node, &key, test.now(), 1).await), (64, 0));
}
