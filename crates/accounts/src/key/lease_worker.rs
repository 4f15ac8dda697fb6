//! The task that leases quota from the store: all pending requests go into one transaction, so that a thousand keys
//! at the start of a minute cost one commit, not a thousand.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Timestamp};
use store::{Store, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::key::meter::{Meters, Order};

/// Maximum number of orders waiting for the worker, at most one per meter; beyond it, requests wait.
pub(crate) const ORDERS_MAX: usize = 4096;
/// Maximum number of meters per transaction: short commits let other processes write in between.
pub(crate) const BATCH_MAX: usize = 512;
/// After this long without a lease the store is probed: readiness depends on it, and without requests a failure or
/// recovery of the store would go unnoticed.
const PROBE_AFTER: Duration = Duration::from_secs(5);
/// How often old usage is deleted.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);
/// Minutes are useless once over; the hour allows for clocks that step back.
const KEEP_MINUTES: Duration = Duration::from_secs(3600);
/// More than a year, so that a month can be compared with the one a year ago.
const KEEP_DAYS: Duration = Duration::from_secs(400 * 86_400);

/// Counts of quota leases, for operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseStats {
    pub granted: u64,
    pub failed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LeaseCounters {
    granted: AtomicU64,
    failed: AtomicU64,
    /// The last attempt failed.
    failing: AtomicBool,
}

impl LeaseCounters {
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    pub(crate) fn figures(&self) -> LeaseStats {
        LeaseStats {
            granted: self.granted.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

/// Leases quota from the store for all meters. Without the worker, requests are `Unavailable` as soon as their leases
/// are spent.
#[derive(Debug)]
#[must_use = "no request can be counted unless the worker runs"]
pub struct LeaseWorker {
    store: Store,
    clock: Arc<dyn Clock>,
    orders: mpsc::Receiver<Order>,
    counters: Arc<LeaseCounters>,
    pruned_at: Option<Timestamp>,
}

impl LeaseWorker {
    pub(crate) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        counters: Arc<LeaseCounters>,
    ) -> (Self, mpsc::Sender<Order>) {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        (Self { store, clock, orders, counters, pruned_at: None }, sender)
    }

    /// Works until [`crate::Accounts::release`] is called or the accounts are dropped.
    pub async fn run(mut self) {
        let mut orders = Vec::new();
        let mut batch: Vec<Arc<Meters>> = Vec::new();
        loop {
            // Meters that already need more do not wait for another order.
            if batch.is_empty() {
                let waited = self.orders.recv_many(&mut orders, BATCH_MAX);
                match tokio::time::timeout(PROBE_AFTER, waited).await {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(_) => {
                        let probed = self.store.probe().await;
                        self.report(probed.as_ref().err());
                    }
                }
            }
            while batch.len() + orders.len() < BATCH_MAX
                && let Ok(order) = self.orders.try_recv()
            {
                orders.push(order);
            }
            if let Some(stopped) = sort(&mut orders, &mut batch) {
                // The receiver is closed first: no lease can be ordered after the answer.
                drop(self);
                if stopped.send(()).is_err() {
                    tracing::debug!(
                        event = "lease_worker.stopped",
                        "caller did not wait for the stop"
                    );
                }
                return;
            }
            batch = self.refill(batch).await;
            self.prune().await;
        }
    }

    /// Leases for the batch and returns the meters that already need more.
    async fn refill(&mut self, batch: Vec<Arc<Meters>>) -> Vec<Arc<Meters>> {
        let mut asks = Vec::new();
        let mut askers = Vec::with_capacity(batch.len());
        for meters in batch {
            let from = asks.len();
            asks.extend(meters.asks());
            if asks.len() > from {
                askers.push((meters, from..asks.len()));
            }
        }
        if asks.is_empty() {
            return Vec::new();
        }
        let leased = self.store.lease(&asks).await;
        let now = self.clock.now();
        self.report(leased.as_ref().err());
        let leases = leased.unwrap_or_default();
        let granted = u64::try_from(leases.len()).unwrap_or(u64::MAX);
        self.counters.granted.fetch_add(granted, Ordering::Relaxed);
        askers.retain(|(meters, range)| {
            match (asks.get(range.clone()), leases.get(range.clone())) {
                (Some(asks), Some(leases)) => meters.refill(asks, leases, now),
                _ => {
                    meters.fail();
                    false
                }
            }
        });
        askers.into_iter().map(|(meters, _)| meters).collect()
    }

    /// Logs a failure once: keys that need leases ask many times a second.
    fn report(&self, failed: Option<&StoreError>) {
        let was_failing = self.counters.failing.swap(failed.is_some(), Ordering::Relaxed);
        if let Some(error) = failed {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            if !was_failing {
                tracing::error!(
                    event = "quota_store.failed",
                    error = error as &dyn std::error::Error,
                    "requests cannot be counted: the account store cannot be written"
                );
            }
        } else if was_failing {
            tracing::info!(event = "quota_store.restored", "requests are counted again");
        }
    }

    async fn prune(&mut self) {
        let now = self.clock.now();
        if self.pruned_at.is_some_and(|at| now.since(at) < PRUNE_EVERY) {
            return;
        }
        self.pruned_at = Some(now);
        let (minutes, days) = (now.minus(KEEP_MINUTES), now.minus(KEEP_DAYS));
        if let Err(error) = self.store.prune_usage(minutes.as_millis(), days.as_millis()).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(event = "usage.prune_failed", error, "old usage not deleted");
        }
    }
}

/// Adds refills to the batch; returns the sender of an order to stop, if there is one.
fn sort(orders: &mut Vec<Order>, batch: &mut Vec<Arc<Meters>>) -> Option<oneshot::Sender<()>> {
    for order in orders.drain(..) {
        match order {
            Order::Refill(meters) => batch.push(meters),
            Order::Stop(stopped) => return Some(stopped),
        }
    }
    None
}
