//! A node's meters without a store and without a task: whoever drives them plays the lease worker and says what time it
//! is. Simulations run the real arithmetic of limits so, a thousand nodes in one thread.

use std::sync::Arc;

use domain::Timestamp;
use store::UsageRow;
use tokio::sync::mpsc;

use crate::{
    Limits, Meters,
    worker::{BATCH_MAX, ORDERS_MAX, Order},
};

/// The queue of orders that the meters of one node share.
#[derive(Debug)]
pub struct Rehearsal {
    sender: mpsc::Sender<Order>,
    orders: mpsc::Receiver<Order>,
}

impl Default for Rehearsal {
    fn default() -> Self {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        Self { sender, orders }
    }
}

impl Rehearsal {
    /// Meters as a node makes them for a key that it has read from the store.
    pub fn meters(
        &self,
        id: &str,
        limits: Limits,
        usage: &[UsageRow],
        now: Timestamp,
    ) -> Arc<Meters> {
        Arc::new(Meters::new(id, limits, usage, now, self.sender.clone()))
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
