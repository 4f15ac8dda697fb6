//! Any schedule of questions, network cuts, revocations, restarts and time on several nodes whose clocks differ in
//! speed: after a revocation has returned, no node accepts the key.
//!
//! The rules are the real ones ([`SyncState`], [`Wait`]); database, register and nodes are minimal, and every
//! question is split: it is asked at one time, answered at a second, and its answer arrives at a third.

use proptest::{collection::vec, prelude::*};

use crate::{
    Need,
    revocation::{
        confirm::{Verdict, Wait},
        key_lease::{Authority, SyncState},
        node::LIST_EVERY_MS,
    },
};

const NODES: usize = 3;
const TRUST_MS: u64 = 5000;

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask {
        node: usize,
        by: Authority,
    },
    Answer {
        node: usize,
        by: Authority,
    },
    Arrive {
        node: usize,
        by: Authority,
    },
    /// The node's report of its last read number reaches the database.
    Report {
        node: usize,
    },
    /// The node lists itself, as it does before it reads.
    List {
        node: usize,
    },
    Cut {
        node: usize,
        by: Authority,
        cut: bool,
    },
    Restart {
        node: usize,
        orderly: bool,
    },
    Revoke,
    Announce {
        revocation: usize,
        arrives: bool,
        acknowledged: bool,
    },
    Look {
        revocation: usize,
        store: bool,
    },
    Pass {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let node = || 0..NODES;
    let by = || prop_oneof![Just(Authority::Store), Just(Authority::Register)];
    let revocation = || 0..4_usize;
    let often = prop::bool::weighted(0.8);
    prop_oneof![
        6 => (node(), by()).prop_map(|(node, by)| Step::Ask { node, by }),
        6 => (node(), by()).prop_map(|(node, by)| Step::Answer { node, by }),
        6 => (node(), by()).prop_map(|(node, by)| Step::Arrive { node, by }),
        5 => node().prop_map(|node| Step::Report { node }),
        3 => node().prop_map(|node| Step::List { node }),
        3 => (node(), by(), any::<bool>()).prop_map(|(node, by, cut)| Step::Cut { node, by, cut }),
        1 => (node(), any::<bool>()).prop_map(|(node, orderly)| Step::Restart { node, orderly }),
        2 => Just(Step::Revoke),
        4 => (revocation(), often, often).prop_map(
            |(revocation, arrives, acknowledged)| Step::Announce { revocation, arrives, acknowledged }
        ),
        6 => (revocation(), often).prop_map(|(revocation, store)| Step::Look { revocation, store }),
        6 => prop_oneof![
            4 => 1..50_u64,
            4 => 500..2000_u64,
            4 => 4000..6000_u64,
            1 => 20_000..120_000_u64,
            1 => 230_000..300_000_u64,
        ]
        .prop_map(|ms| Step::Pass { ms }),
    ]
}

/// A question in transit.
#[derive(Clone, Copy, Debug)]
struct Question {
    asked_ms: u64,
    answer: Option<Answer>,
}

/// The answer of an authority; for the database, about the node's row.
#[derive(Clone, Copy, Debug)]
struct Answer {
    newest: i64,
    row: Row,
}

/// A node in the database.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    confirmed: i64,
    run_out: i64,
    seen_ms: u64,
}

#[derive(Debug)]
struct Node {
    /// Deviation of the clock, in milliseconds per 1000.
    drift: i64,
    /// The last change in the node's keys, whether it relies on them yet or not.
    in_force: i64,
    holding: Option<SyncState>,
    until_ms: u64,
    questions: [Option<Question>; 2],
    /// When it asked for its last listing.
    listed_ms: u64,
    /// A report of its last read number in transit; it may be abandoned and still arrive.
    word: Option<i64>,
    cut: [bool; 2],
    /// Its row in the database.
    row: usize,
}

impl Node {
    /// The time on its clock.
    fn clock(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(now_ms.cast_signed() * self.drift / 1000)
    }

    fn extend(&mut self, by: Authority, asked_ms: u64, newest: i64) {
        let until_ms = self.holding.and_then(|holding| holding.until_ms(by, asked_ms, newest));
        self.until_ms = self.until_ms.max(until_ms.unwrap_or(0));
    }

    /// Whether it accepts a key that ended with this number.
    fn lets_in(&self, number: i64, now_ms: u64) -> bool {
        self.clock(now_ms) < self.until_ms && self.in_force < number
    }
}

#[derive(Clone, Copy, Debug)]
struct Revocation {
    number: i64,
    wait: Option<Wait>,
    returned: bool,
}

struct Model {
    now_ms: u64,
    number: i64,
    announced: Option<i64>,
    /// The rows of all nodes ever listed; `None` if the node left in good order.
    rows: Vec<Option<Row>>,
    nodes: Vec<Node>,
    revocations: Vec<Revocation>,
}

fn at(by: Authority) -> usize {
    match by {
        Authority::Store => 0,
        Authority::Register => 1,
    }
}

impl Model {
    fn new(drifts: [i64; NODES]) -> Self {
        let mut model = Self {
            now_ms: 1_000_000,
            number: 1,
            announced: Some(1),
            rows: Vec::new(),
            nodes: Vec::new(),
            revocations: Vec::new(),
        };
        for drift in drifts {
            let node = model.fresh(drift);
            model.nodes.push(node);
        }
        model
    }

    /// A node that is listed and has read nothing.
    fn fresh(&mut self, drift: i64) -> Node {
        let seen_ms = self.now_ms;
        self.rows.push(Some(Row { confirmed: 0, run_out: 0, seen_ms }));
        let row = self.rows.len() - 1;
        let (questions, cut) = ([None; 2], [false; 2]);
        let mut node = Node {
            drift,
            in_force: 0,
            holding: None,
            until_ms: 0,
            questions,
            listed_ms: 0,
            word: None,
            cut,
            row,
        };
        node.listed_ms = node.clock(self.now_ms);
        node
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Ask { node, by } => {
                let node = &mut self.nodes[node];
                let asked_ms = node.clock(self.now_ms);
                node.questions[at(by)] = Some(Question { asked_ms, answer: None });
            }
            Step::Answer { node, by } => {
                let newest = match by {
                    Authority::Store => Some(self.number),
                    Authority::Register => self.announced,
                };
                let node = &mut self.nodes[node];
                let row = self.rows[node.row].unwrap_or_default();
                if let Some(question) = &mut node.questions[at(by)]
                    && !node.cut[at(by)]
                    && question.answer.is_none()
                {
                    question.answer = newest.map(|newest| Answer { newest, row });
                }
            }
            Step::Arrive { node, by } => self.arrive(node, by),
            Step::Report { node } => {
                let node = &mut self.nodes[node];
                if let (Some(row), false) =
                    (&mut self.rows[node.row], node.cut[at(Authority::Store)])
                    && let Some(word) = node.word.take()
                {
                    row.confirmed = row.confirmed.max(word);
                    row.seen_ms = self.now_ms;
                }
            }
            Step::List { node } => {
                let node = &mut self.nodes[node];
                if let (Some(row), false) =
                    (&mut self.rows[node.row], node.cut[at(Authority::Store)])
                {
                    row.confirmed = row.confirmed.max(node.in_force);
                    row.seen_ms = self.now_ms;
                    node.listed_ms = node.clock(self.now_ms);
                    // A node asks only after it is listed: an answer still in transit was abandoned.
                    node.questions[at(Authority::Store)] = None;
                }
            }
            Step::Cut { node, by, cut } => self.nodes[node].cut[at(by)] = cut,
            Step::Restart { node, orderly } => {
                let old = &self.nodes[node];
                // A node that cannot reach the database can neither leave nor start.
                if old.cut[at(Authority::Store)] {
                    return;
                }
                if orderly {
                    self.rows[old.row] = None;
                }
                let drift = old.drift;
                self.nodes[node] = self.fresh(drift);
            }
            Step::Revoke => {
                self.number += 1;
                let number = self.number;
                self.revocations.push(Revocation { number, wait: None, returned: false });
            }
            Step::Announce { revocation, arrives, acknowledged } => {
                self.announce(revocation, arrives, acknowledged);
            }
            Step::Look { revocation, store } => self.look(revocation, store),
            Step::Pass { ms } => self.now_ms += ms,
        }
    }

    /// An answer arrives and, from the database, everything up to it. A node that was listed too long ago did not
    /// ask, and a node that changes did not wait for ignores the answer.
    fn arrive(&mut self, node: usize, by: Authority) {
        let node = &mut self.nodes[node];
        let answered = node.questions[at(by)].filter(|question| question.answer.is_some());
        let Some(Question { asked_ms, answer: Some(Answer { newest, row }) }) = answered else {
            return;
        };
        node.questions[at(by)] = None;
        if by == Authority::Store {
            if asked_ms.saturating_sub(node.listed_ms) >= LIST_EVERY_MS {
                return;
            }
            node.in_force = node.in_force.max(newest);
            if row.confirmed < newest {
                node.word = Some(newest);
            }
            if row.confirmed < row.run_out {
                node.word = Some(newest);
                return;
            }
            let (confirmed, listed_ms) = (row.confirmed.min(newest), Some(node.listed_ms));
            let number = node.in_force;
            node.holding = Some(SyncState { number, confirmed, listed_ms, lease_ms: TRUST_MS });
        }
        node.extend(by, asked_ms, newest);
    }

    /// The announcement may arrive without an acknowledgement.
    fn announce(&mut self, revocation: usize, arrives: bool, acknowledged: bool) {
        let Some(revocation) = self.revocations.iter_mut().rev().nth(revocation) else {
            return;
        };
        if arrives {
            self.announced = self.announced.max(Some(revocation.number));
        }
        if revocation.wait.is_none() {
            revocation.wait = Some(Wait {
                need: Need::Everywhere,
                begun_ms: self.now_ms,
                announced: arrives && acknowledged,
                lease_ms: TRUST_MS,
            });
        }
    }

    fn look(&mut self, revocation: usize, store: bool) {
        let (now_ms, rows) = (self.now_ms, &mut self.rows);
        let Some(revocation) = self.revocations.iter_mut().rev().nth(revocation) else {
            return;
        };
        let is_behind =
            |row: &&Row| row.confirmed < revocation.number && row.confirmed >= row.run_out;
        let behind = rows.iter().flatten().filter(is_behind).count();
        let behind = store.then(|| u64::try_from(behind).unwrap());
        // Before the announcement, only the rows can confirm it.
        let by_rows = (behind == Some(0)).then_some(Verdict::Done);
        let verdict = revocation.wait.map(|wait| wait.verdict(now_ms, behind)).or(by_rows);
        if verdict == Some(Verdict::Expired) && store {
            let is_silent = |row: &&mut Row| {
                row.confirmed < revocation.number && row.seen_ms + store::NODE_SILENT_MS < now_ms
            };
            for row in rows.iter_mut().flatten().filter(is_silent) {
                row.run_out = row.run_out.max(revocation.number);
            }
        }
        revocation.returned |= matches!(verdict, Some(Verdict::Done | Verdict::Expired));
    }

    fn check(&self) {
        for revocation in self.revocations.iter().filter(|revocation| revocation.returned) {
            for node in &self.nodes {
                assert!(
                    !node.lets_in(revocation.number, self.now_ms),
                    "{revocation:?} returned and {node:?} lets the key in at {}",
                    self.now_ms
                );
            }
        }
    }

    /// With one authority that answers, every node that has all changes that the authority knows accepts keys.
    fn check_alive(&mut self, by: Authority) {
        for node in 0..NODES {
            for other in [Authority::Store, Authority::Register] {
                self.apply(Step::Cut { node, by: other, cut: other != by });
            }
            let ask = [
                Step::List { node },
                Step::Ask { node, by },
                Step::Answer { node, by },
                Step::Arrive { node, by },
                Step::Report { node },
            ];
            // Twice: a node that changes did not wait for reads once more.
            for step in ask.into_iter().chain(ask) {
                self.apply(step);
                self.check();
            }
            let node = &self.nodes[node];
            let newest = if by == Authority::Store { Some(self.number) } else { self.announced };
            let has_all = node.holding.is_some_and(|holding| Some(holding.number) >= newest);
            assert_eq!(node.clock(self.now_ms) < node.until_ms, has_all, "{node:?} by {by:?}");
            assert!(has_all || by == Authority::Register);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn no_key_is_let_in_once_its_revocation_has_returned(
        drifts in [-10..=10_i64, -10..=10_i64, -10..=10_i64],
        steps in vec(step(), 1..160),
    ) {
        let mut model = Model::new(drifts);
        for step in steps {
            model.apply(step);
            model.check();
        }
        // Every result stays correct, also as time passes and questions arrive late.
        model.now_ms += 2 * TRUST_MS;
        model.check();
        model.check_alive(Authority::Store);
        model.now_ms += 2 * TRUST_MS;
        model.check_alive(Authority::Register);
    }
}
