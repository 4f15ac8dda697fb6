//! The event queue, ordered by time; events at the same instant keep the order in which they were planned.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use store::Lease;

use super::node::Batch;

#[derive(Debug)]
pub(super) enum Event {
    /// A client's next request.
    Request {
        client: usize,
    },
    /// A request with a key that was just revoked.
    Probe {
        key: u32,
        node: u32,
    },
    /// A batch reaches the database.
    LeaseAt {
        node: usize,
        life: u32,
        batch: Batch,
    },
    /// Its answer reaches the node.
    LeaseBack {
        node: usize,
        life: u32,
        batch: Batch,
        leases: Vec<Lease>,
    },
    /// No answer arrived in time.
    LeaseLost {
        node: usize,
        life: u32,
        batch: Batch,
    },
    /// A node has to ask for changes of keys.
    Due {
        node: usize,
        life: u32,
    },
    /// A node asks the database, because it is due or got a hint.
    Ask {
        node: usize,
        life: u32,
    },
    AskAt {
        node: usize,
        life: u32,
        asked_us: i64,
    },
    AskBack {
        node: usize,
        life: u32,
        newest: u64,
        asked_us: i64,
    },
    /// A node's confirmation reaches the database.
    ConfirmAt {
        node: usize,
        life: u32,
        number: u64,
    },
    /// The register's answer reaches a node.
    RegisterBack {
        node: usize,
        life: u32,
        newest: u64,
        asked_us: i64,
    },
    /// A hint reaches the nodes.
    Hint {
        revocation: usize,
    },
    /// A change that some node has not read reaches the register.
    Announce {
        revocation: usize,
    },
    /// A key is revoked.
    Revoke,
    /// A revocation checks whether every node knows the change.
    Look {
        revocation: usize,
        pause_us: i64,
    },
    /// A fault occurs.
    Fault,
    Restart {
        node: usize,
    },
    Reconnect {
        node: usize,
    },
}

#[derive(Debug)]
struct Planned {
    at_us: i64,
    order: u64,
    event: Event,
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_us, self.order).cmp(&(other.at_us, other.order))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Planned {}

#[derive(Debug, Default)]
pub(super) struct Queue {
    planned: BinaryHeap<Reverse<Planned>>,
    order: u64,
}

impl Queue {
    pub(super) fn plan(&mut self, at_us: i64, event: Event) {
        self.order += 1;
        self.planned.push(Reverse(Planned { at_us, order: self.order, event }));
    }

    pub(super) fn next(&mut self) -> Option<(i64, Event)> {
        self.planned.pop().map(|Reverse(planned)| (planned.at_us, planned.event))
    }
}
