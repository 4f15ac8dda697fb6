//! A node's meters without a store and a task, and the rule of the key lease without a clock, for simulations: the
//! caller does the work of the lease worker and passes the time. A thousand nodes run in one thread with the real
//! arithmetic.

use std::sync::Arc;

use domain::Timestamp;
use store::UsageRow;
use tokio::sync::mpsc;

use crate::{
    Limits, Meters,
    key::{
        lease_worker::{BATCH_MAX, ORDERS_MAX},
        meter::Order,
    },
    revocation::{
        confirm::MARGIN_MS,
        key_lease::{Authority, SyncState},
    },
};

/// The queue of orders that the meters of one node share.
#[derive(Debug)]
pub struct MeterSimulation {
    sender: mpsc::Sender<Order>,
    orders: mpsc::Receiver<Order>,
}

/// The key lease of a node.
#[derive(Clone, Copy, Debug)]
pub struct KeyLeaseSimulation {
    pub lease_ms: u64,
    /// When the node asked for its last listing by the database.
    pub listed_ms: Option<u64>,
}

impl KeyLeaseSimulation {
    /// How long a revocation waits beyond the lease of a node that does not confirm it.
    pub const MARGIN_MS: u64 = MARGIN_MS;

    /// Until when a node that has every change up to `held` may accept keys, given that the database (or else the
    /// register) has named the newest number.
    pub fn until_ms(
        &self,
        by_database: bool,
        held: i64,
        asked_ms: u64,
        newest: i64,
    ) -> Option<u64> {
        let by = if by_database { Authority::Store } else { Authority::Register };
        let Self { lease_ms, listed_ms } = *self;
        SyncState { number: held, confirmed: held, listed_ms, lease_ms }
            .until_ms(by, asked_ms, newest)
    }
}

impl Default for MeterSimulation {
    fn default() -> Self {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        Self { sender, orders }
    }
}

impl MeterSimulation {
    /// Meters of a key that was read from the store.
    pub fn meters(
        &self,
        id: &str,
        limits: Limits,
        usage: &[UsageRow],
        now: Timestamp,
    ) -> Arc<Meters> {
        Arc::new(Meters::new(id, limits, None, usage, now, self.sender.clone()))
    }

    /// Adds the meters that have since ordered leases, up to the worker's batch.
    pub fn fill(&mut self, batch: &mut Vec<Arc<Meters>>) {
        while batch.len() < BATCH_MAX
            && let Ok(Order::Refill(meters)) = self.orders.try_recv()
        {
            batch.push(meters);
        }
    }
}
