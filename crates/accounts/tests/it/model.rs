//! Any sequence of requests, crashes, restarts, clock steps and new keys on two nodes, each with its own clock: no
//! window of a key or of its account is ever exceeded, on either database.

use std::{collections::HashMap, sync::Arc, time::Duration};

use accounts::{Actor, KeyKind, KeySecret, NewKey};
use domain::{Clock as _, ManualClock, Timestamp};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use test_servers::Postgres;

use crate::{TestNode, TestStore, limits, quota::insist};

const BURST: u32 = 6;
const DAY: u32 = 11;
const MONTH: u32 = 25;
/// Keys of one account, which share its day and its month.
const KEYS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Step {
    Burst {
        node: usize,
        key: usize,
        times: u8,
    },
    Quota {
        node: usize,
        key: usize,
        times: u8,
        /// Units of each charge: all or none.
        units: u32,
    },
    /// Revokes a key and creates another one.
    Renew {
        node: usize,
        key: usize,
    },
    Crash {
        node: usize,
    },
    Restart {
        node: usize,
    },
    Reload {
        node: usize,
    },
    Forward {
        node: usize,
        secs: u32,
    },
    Back {
        node: usize,
        secs: u32,
    },
    /// Advances all clocks alike.
    Pass {
        secs: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (node, key) = (0..2_usize, 0..KEYS);
    // Durations that cross a minute often, a day now and then, a month sometimes.
    let secs =
        || prop_oneof![4 => 1..90_u32, 2 => 20_000..100_000_u32, 1 => 1_000_000..3_000_000_u32];
    prop_oneof![
        5 => (node.clone(), key.clone(), 1..9_u8)
            .prop_map(|(node, key, times)| Step::Burst { node, key, times }),
        6 => (node.clone(), key.clone(), 1..9_u8, prop_oneof![2 => Just(1), 1 => 2..7_u32])
            .prop_map(|(node, key, times, units)| Step::Quota { node, key, times, units }),
        2 => (node.clone(), key).prop_map(|(node, key)| Step::Renew { node, key }),
        2 => node.clone().prop_map(|node| Step::Crash { node }),
        2 => node.clone().prop_map(|node| Step::Restart { node }),
        1 => node.clone().prop_map(|node| Step::Reload { node }),
        1 => (node.clone(), secs()).prop_map(|(node, secs)| Step::Forward { node, secs }),
        1 => (node, secs()).prop_map(|(node, secs)| Step::Back { node, secs }),
        2 => secs().prop_map(|secs| Step::Pass { secs }),
    ]
}

/// A node, and the latest instant at which it counted a request to the account: the account's window is at least that
/// of this instant.
struct Running {
    node: TestNode,
    clock: Arc<ManualClock>,
    latest: Timestamp,
}

struct Model {
    test: TestStore,
    keys: Vec<KeySecret>,
    nodes: Vec<Running>,
    /// The latest instant so far.
    latest: Timestamp,
    /// Granted units by the text of the window: minute, day and month are prefixes of the timestamp.
    granted: HashMap<String, u32>,
}

impl Model {
    async fn new(test: TestStore) -> Self {
        let latest = test.now();
        test.account("acc_1", limits(BURST, DAY, Some(MONTH))).await;
        let registry = test.command_line().await;
        let mut keys = Vec::new();
        for _ in 0..KEYS {
            keys.push(registry.create_key(new_key(), &Actor::command_line()).await.unwrap().0);
        }
        let mut model = Self { test, keys, nodes: Vec::new(), latest, granted: HashMap::new() };
        for _ in 0..2 {
            let clock = Arc::new(ManualClock::at(model.test.now()));
            let running = model.start(clock).await;
            model.nodes.push(running);
        }
        model
    }

    async fn start(&self, clock: Arc<ManualClock>) -> Running {
        Running { node: self.test.node_with(&clock).await, latest: clock.now(), clock }
    }

    async fn replace(&mut self, node: usize) -> TestNode {
        let fresh = self.start(Arc::clone(&self.nodes[node].clock)).await;
        std::mem::replace(&mut self.nodes[node], fresh).node
    }

    async fn apply(&mut self, step: Step) {
        match step {
            Step::Burst { node, key, times } => {
                for _ in 0..times {
                    self.burst(node, key).await;
                }
            }
            Step::Quota { node, key, times, units } => {
                for _ in 0..times {
                    self.quota(node, key, units).await;
                }
            }
            Step::Renew { node, key } => self.renew(node, key).await,
            Step::Crash { node } => self.replace(node).await.crash().await,
            Step::Restart { node } => self.replace(node).await.shut_down().await,
            Step::Reload { node } => {
                let running = &mut self.nodes[node];
                running.node.reload().await.unwrap();
                // Reading the store's limits enters the window of the day, as spending does.
                running.latest = running.latest.max(running.clock.now());
            }
            Step::Forward { node, secs } => self.forward(node, secs),
            Step::Back { node, secs } => {
                let clock = &self.nodes[node].clock;
                clock.set(clock.now().minus(Duration::from_secs(secs.into())));
            }
            Step::Pass { secs } => {
                for node in 0..self.nodes.len() {
                    self.forward(node, secs);
                }
            }
        }
    }

    async fn renew(&mut self, node: usize, key: usize) {
        let by = Actor::command_line();
        let accounts = &self.nodes[node].node;
        accounts.revoke_key(self.keys[key].expose(), &by).await.unwrap();
        // Sometimes the meters' unspent leases are returned first.
        if key == 0 {
            accounts.write_usage(&["odds"]).await.unwrap();
        }
        self.keys[key] = accounts.create_key(new_key(), &by).await.unwrap().0;
        for running in &mut self.nodes {
            running.node.reload().await.unwrap();
            running.latest = running.latest.max(running.clock.now());
        }
    }

    fn forward(&mut self, node: usize, secs: u32) {
        let clock = &self.nodes[node].clock;
        clock.advance(Duration::from_secs(secs.into()));
        self.latest = self.latest.max(clock.now());
    }

    async fn burst(&mut self, node: usize, key: usize) {
        let running = &self.nodes[node];
        let now = running.clock.now();
        let entry = running.node.entry(&self.keys[key], now);
        match insist(async || running.node.charge_burst(&entry, now).await).await {
            Ok(standing) => {
                let minute = standing.burst.resets_at.minus(Duration::from_secs(60));
                // Minutes are deleted after an hour: a clock that steps back further, with a restart, may reopen one
                // of them. Days and months are kept for more than a year.
                if self.latest.since(minute) < Duration::from_secs(3600) {
                    self.grant(&format!("{key} {minute}"), 1, BURST);
                }
            }
            Err(refusal) => assert!(refusal.retry_after_s >= 1),
        }
    }

    async fn quota(&mut self, node: usize, key: usize, units: u32) {
        let running = &mut self.nodes[node];
        let now = running.clock.now();
        running.latest = running.latest.max(now);
        let text = running.latest.to_string();
        let entry = running.node.entry(&self.keys[key], now);
        let before = entry.meters.standing(now).quota;
        match insist(async || running.node.charge_credits(&entry, units, now).await).await {
            Ok(standing) => {
                let quota = standing.quota;
                assert!(quota.used >= units && quota.used <= quota.limit);
                self.grant(&text[..10], units, DAY);
                self.grant(&text[..7], units, MONTH);
            }
            Err(refusal) => {
                assert!(refusal.retry_after_s >= 1 && refusal.remaining < units);
                // A refused charge takes nothing. Reading the store may show more use, by the other node.
                let after = entry.meters.standing(now).quota;
                assert!(after.used >= before.used || after.window != before.window);
            }
        }
    }

    fn grant(&mut self, window: &str, units: u32, limit: u32) {
        let granted = self.granted.entry(window.to_owned()).or_default();
        *granted += units;
        assert!(*granted <= limit, "{window} gave {granted} of {limit}");
    }
}

fn new_key() -> NewKey {
    NewKey {
        limits: limits(BURST, DAY, Some(MONTH)),
        account_id: Some("acc_1".to_owned()),
        ..NewKey::of_kind(KeyKind::Production)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_window_is_ever_over_granted(steps in vec(step(), 1..40)) {
        run(TestStore::at(START), steps);
    }
}

const START: &str = "2026-11-14T23:38:00Z";

fn run(test: TestStore, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut model = Model::new(test).await;
        for step in steps {
            model.apply(step).await;
        }
        for running in model.nodes {
            running.node.shut_down().await;
        }
    });
}

#[test]
fn no_window_is_ever_over_granted_by_nodes_that_share_a_database() {
    let server = Postgres::start().unwrap();
    let config = ProptestConfig { cases: 8, max_shrink_iters: 40, ..ProptestConfig::default() };
    let made = std::cell::Cell::new(0);
    let outcome = TestRunner::new(config).run(&vec(step(), 1..40), |steps| {
        made.set(made.get() + 1);
        let url = server.create_database(&format!("case_{}", made.get())).unwrap();
        run(TestStore::on(url, START), steps);
        Ok(())
    });
    outcome.unwrap();
}
