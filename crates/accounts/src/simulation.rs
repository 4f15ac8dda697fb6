//! A node's meters without a store and without a task, and its rule of trust without a clock: whoever drives them plays
//! the lease worker and says what time it is. Simulations run the real arithmetic so, a thousand nodes in one thread.

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

/// What a node goes by that wants to let keys in from memory.
#[derive(Clone, Copy, Debug)]
pub struct KeyLeaseSimulation {
    pub lease_ms: u64,
    /// When the database was asked that last was known to list the node.
    pub listed_ms: Option<u64>,
}

impl KeyLeaseSimulation {
    /// How long a revocation waits beyond the trust for a node that does not confirm it.
    pub const MARGIN_MS: u64 = MARGIN_MS;

    /// Until when keys may be let in by who has every change up to `held`, now that the database (or else the register)
    /// has named the newest.
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
    /// Meters as a node makes them for a key that it has read from the store.
    pub fn meters(
        &self,
        id: &str,
        limits: Limits,
        usage: &[UsageRow],
        now: Timestamp,
    ) -> Arc<Meters> {
        Arc::new(Meters::new(id, limits, None, usage, now, self.sender.clone()))
    }

    /// Adds the meters that have ordered leases since, until the worker's batch is full.
    pub fn fill(&mut self, batch: &mut Vec<Arc<Meters>>) {
        while batch.len() < BATCH_MAX
            && let Ok(Order::Refill(meters)) = self.orders.try_recv()
        {
            batch.push(meters);
        }
    }
}
