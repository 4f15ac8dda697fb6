//! Any sequence of requests, crashes, restarts and clock steps on two nodes, each with its own clock: no window is ever
//! over-granted, on either database.

use std::{collections::HashMap, sync::Arc, time::Duration};

use accounts::KeySecret;
use domain::{Clock as _, ManualClock, Timestamp};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use rig::Postgres;

use crate::{Node, World, limits, quota::insist};

const BURST: u32 = 6;
const DAY: u32 = 11;
const MONTH: u32 = 25;

#[derive(Clone, Copy, Debug)]
enum Step {
    Burst {
        node: usize,
        times: u8,
    },
    Quota {
        node: usize,
        times: u8,
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
    /// All clocks go on alike.
    Pass {
        secs: u32,
    },
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
        1 => node.clone().prop_map(|node| Step::Reload { node }),
        1 => (node.clone(), secs()).prop_map(|(node, secs)| Step::Forward { node, secs }),
        1 => (node, secs()).prop_map(|(node, secs)| Step::Back { node, secs }),
        2 => secs().prop_map(|secs| Step::Pass { secs }),
    ]
}

/// A node, and the latest instant it has seen: the window it must be in.
struct Running {
    node: Node,
    clock: Arc<ManualClock>,
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
    async fn new(world: World) -> Self {
        let key = world.issue(limits(BURST, DAY, Some(MONTH))).await;
        let latest = world.now();
        let mut model = Self { world, key, nodes: Vec::new(), latest, granted: HashMap::new() };
        for _ in 0..2 {
            let clock = Arc::new(ManualClock::at(model.world.now()));
            let running = model.start(clock).await;
            model.nodes.push(running);
        }
        model
    }

    async fn start(&self, clock: Arc<ManualClock>) -> Running {
        Running { node: self.world.node_with(&clock).await, latest: clock.now(), clock }
    }

    async fn replace(&mut self, node: usize) -> Node {
        let fresh = self.start(Arc::clone(&self.nodes[node].clock)).await;
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

    fn forward(&mut self, node: usize, secs: u32) {
        let clock = &self.nodes[node].clock;
        clock.advance(Duration::from_secs(secs.into()));
        self.latest = self.latest.max(clock.now());
    }

    async fn burst(&mut self, node: usize) {
        let running = &mut self.nodes[node];
        let now = running.clock.now();
        running.latest = running.latest.max(now);
        // Minutes are forgotten after an hour: a clock that steps back further, with a restart, may
        // open one of them again. Days and months are kept for more than a year.
        if self.latest.since(running.latest) >= Duration::from_secs(3600) {
            return;
        }
        let window = running.latest.to_string()[..16].to_owned();
        let entry = running.node.entry(&self.key, now);
        match insist(async || running.node.charge_burst(&entry, now).await).await {
            Ok(standing) => {
                assert!(standing.burst.resets_at > running.latest);
                self.grant(&window, BURST);
            }
            Err(refusal) => assert!(refusal.retry_after_s >= 1),
        }
    }

    async fn quota(&mut self, node: usize) {
        let running = &mut self.nodes[node];
        let now = running.clock.now();
        running.latest = running.latest.max(now);
        let text = running.latest.to_string();
        let entry = running.node.entry(&self.key, now);
        match insist(async || running.node.charge_quota(&entry, now).await).await {
            Ok(standing) => {
                assert!(standing.quota.used >= 1 && standing.quota.used <= standing.quota.limit);
                self.grant(&text[..10], DAY);
                self.grant(&text[..7], MONTH);
            }
            Err(refusal) => assert!(refusal.retry_after_s >= 1),
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
        run(World::at(START), steps);
    }
}

const START: &str = "2026-11-14T23:38:00Z";

fn run(world: World, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut model = Model::new(world).await;
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
        run(World::on(url, START), steps);
        Ok(())
    });
    outcome.unwrap();
}
