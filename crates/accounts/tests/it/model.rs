//! Any sequence of requests, crashes, restarts and clock steps on two nodes: no window is ever over-granted.

use std::{collections::HashMap, time::Duration};

use accounts::{Charge, KeySecret};
use domain::Timestamp;
use proptest::{collection::vec, prelude::*};

use crate::{Node, World, limits};

const BURST: u32 = 6;
const DAY: u32 = 11;
const MONTH: u32 = 25;

#[derive(Clone, Copy, Debug)]
enum Step {
    Burst { node: usize, times: u8 },
    Quota { node: usize, times: u8 },
    Crash { node: usize },
    Restart { node: usize },
    Reload { node: usize },
    Forward { secs: u32 },
    Back { secs: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..2_usize;
    // Sizes that cross a minute often, a day now and then, a month sometimes.
    let secs =
        || prop_oneof![4 => 1..90_u32, 2 => 20_000..100_000_u32, 1 => 1_000_000..3_000_000_u32];
    prop_oneof![
        5 => (node.clone(), 1..9_u8).prop_map(|(node, times)| Step::Burst { node, times }),
        6 => (node.clone(), 1..9_u8).prop_map(|(node, times)| Step::Quota { node, times }),
        2 => node.clone().prop_map(|node| Step::Crash { node }),
        2 => node.clone().prop_map(|node| Step::Restart { node }),
        1 => node.prop_map(|node| Step::Reload { node }),
        2 => secs().prop_map(|secs| Step::Forward { secs }),
        1 => secs().prop_map(|secs| Step::Back { secs }),
    ]
}

/// A node, and the latest instant it has seen: the window it must be in.
struct Running {
    node: Node,
    latest: Timestamp,
}

struct Model {
    world: World,
    key: KeySecret,
    nodes: Vec<Running>,
    /// The latest instant there has been.
    latest: Timestamp,
    /// Granted by the text of the window: minute, day and month are prefixes of the timestamp.
    granted: HashMap<String, u32>,
}

impl Model {
    async fn new() -> Self {
        let world = World::at("2026-11-14T23:38:00Z");
        let key = world.issue(limits(BURST, DAY, Some(MONTH))).await;
        let latest = world.now();
        let mut model = Self { world, key, nodes: Vec::new(), latest, granted: HashMap::new() };
        for _ in 0..2 {
            let running = model.start().await;
            model.nodes.push(running);
        }
        model
    }

    async fn start(&self) -> Running {
        Running { node: self.world.node().await, latest: self.world.now() }
    }

    async fn replace(&mut self, node: usize) -> Node {
        let fresh = self.start().await;
        std::mem::replace(&mut self.nodes[node], fresh).node
    }

    async fn apply(&mut self, step: Step) {
        match step {
            Step::Burst { node, times } => {
                for _ in 0..times {
                    self.burst(node).await;
                }
            }
            Step::Quota { node, times } => {
                for _ in 0..times {
                    self.quota(node).await;
                }
            }
            Step::Crash { node } => self.replace(node).await.crash().await,
            Step::Restart { node } => self.replace(node).await.shut_down().await,
            Step::Reload { node } => {
                let running = &mut self.nodes[node];
                running.node.reload().await.unwrap();
                // Following the store's limits enters the window of the day, as spending does.
                running.latest = running.latest.max(self.world.now());
            }
            Step::Forward { secs } => {
                self.world.clock.advance(Duration::from_secs(secs.into()));
                self.latest = self.latest.max(self.world.now());
            }
            Step::Back { secs } => {
                let back = self.world.now().minus(Duration::from_secs(secs.into()));
                self.world.clock.set(back);
            }
        }
    }

    async fn burst(&mut self, node: usize) {
        let now = self.world.now();
        let running = &mut self.nodes[node];
        running.latest = running.latest.max(now);
        // Minutes are forgotten after an hour: a clock that steps back further, with a restart, may
        // open one of them again. Days and months are kept for more than a year.
        if self.latest.since(running.latest) >= Duration::from_secs(3600) {
            return;
        }
        let window = running.latest.to_string()[..16].to_owned();
        let entry = running.node.entry(&self.key, now);
        match running.node.charge_burst(&entry, now).await {
            Charge::Granted(standing) => {
                assert!(standing.burst.resets_at > running.latest);
                self.grant(&window, BURST);
            }
            Charge::Refused(refusal) => assert!(refusal.retry_after_s >= 1),
            Charge::Unavailable => panic!("no lease"),
        }
    }

    async fn quota(&mut self, node: usize) {
        let now = self.world.now();
        let running = &mut self.nodes[node];
        running.latest = running.latest.max(now);
        let text = running.latest.to_string();
        let entry = running.node.entry(&self.key, now);
        match running.node.charge_quota(&entry, now).await {
            Charge::Granted(standing) => {
                assert!(standing.quota.used >= 1 && standing.quota.used <= standing.quota.limit);
                self.grant(&text[..10], DAY);
                self.grant(&text[..7], MONTH);
            }
            Charge::Refused(refusal) => assert!(refusal.retry_after_s >= 1),
            Charge::Unavailable => panic!("no lease"),
        }
    }

    fn grant(&mut self, window: &str, limit: u32) {
        let granted = self.granted.entry(window.to_owned()).or_default();
        *granted += 1;
        assert!(*granted <= limit, "{window} gave {granted} of {limit}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_window_is_ever_over_granted(steps in vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut model = Model::new().await;
            for step in steps {
                model.apply(step).await;
            }
        });
    }
}
