//! The simulated database: the counts of windows, the numbers of key changes, and a queue.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use store::{Lease, LeaseRequest, Unspent, UsageRow, Window};

use super::clock::SECOND_US;

/// A window of a key: its kind and its start.
pub(super) type Place = (u32, Window, i64);

/// Times of the database, as measured by `cargo xtask scale measure`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// A transaction without rows, as its share of the server's time.
    pub(crate) transaction_us: i64,
    /// A leased row in a transaction.
    pub(crate) row_us: i64,
    /// A query that writes nothing.
    pub(crate) read_us: i64,
}

#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) lease_transactions: u64,
    pub(super) lease_rows: u64,
    /// Queries of nodes for the newest change of keys.
    pub(super) questions: u64,
    /// Confirmations of nodes that they have read up to a change.
    pub(super) confirmations: u64,
    /// Polls of these confirmations by revocations.
    pub(super) looks: u64,
    /// Transactions in each second of the run.
    pub(super) by_second: Vec<u64>,
    pub(super) busy_us: i64,
    pub(super) queued_us_max: i64,
}

#[derive(Debug)]
pub(super) struct Database {
    costs: Costs,
    free_at_us: i64,
    granted: HashMap<Place, u32>,
    pub(super) load: Load,
    /// Changes of keys in the order of their numbers: time of commit, and the key that ended.
    ended: Vec<(i64, u32)>,
    /// The change that each listed node has confirmed. A killed node stays listed.
    confirmed: HashMap<(usize, u32), u64>,
}

impl Database {
    pub(super) fn new(costs: Costs) -> Self {
        Self {
            costs,
            free_at_us: 0,
            granted: HashMap::new(),
            load: Load::default(),
            ended: Vec::new(),
            confirmed: HashMap::new(),
        }
    }

    /// Queues a transaction with some rows; returns its commit time.
    fn work(&mut self, at_us: i64, rows: usize) -> i64 {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        self.queue(at_us, self.costs.transaction_us + rows * self.costs.row_us)
    }

    fn queue(&mut self, at_us: i64, cost_us: i64) -> i64 {
        let begin_us = self.free_at_us.max(at_us);
        self.free_at_us = begin_us + cost_us;
        self.load.busy_us += cost_us;
        self.load.queued_us_max = self.load.queued_us_max.max(begin_us - at_us);
        let second = usize::try_from(self.free_at_us / SECOND_US).unwrap_or_default();
        if self.load.by_second.len() <= second {
            self.load.by_second.resize(second + 1, 0);
        }
        if let Some(count) = self.load.by_second.get_mut(second) {
            *count += 1;
        }
        self.free_at_us
    }

    /// Like `Store::lease`: the size of a lease is computed by the store's own code.
    pub(super) fn lease(&mut self, at_us: i64, asks: &[LeaseRequest]) -> Result<(i64, Vec<Lease>)> {
        let mut leases = Vec::with_capacity(asks.len());
        for ask in asks {
            let place = (key_of(&ask.meter_id)?, ask.window, ask.start_ms);
            let granted = self.granted.entry(place).or_default();
            let given = ask.grant(*granted);
            *granted += given;
            leases.push(Lease { given, granted: *granted });
        }
        self.load.lease_transactions += 1;
        self.load.lease_rows += u64::try_from(asks.len()).unwrap_or_default();
        Ok((self.work(at_us, asks.len()), leases))
    }

    /// Like `Store::release`.
    pub(super) fn release(&mut self, at_us: i64, unspent: &[Unspent]) -> Result<()> {
        for lease in unspent {
            let place = (key_of(&lease.meter_id)?, lease.window, lease.start_ms);
            let granted = self.granted.get_mut(&place).context("given back, but never leased")?;
            *granted = granted.checked_sub(lease.left).context("more given back than leased")?;
        }
        self.work(at_us, unspent.len());
        Ok(())
    }

    /// The usage of a key that a starting node reads.
    pub(super) fn usage(&self, key: u32, starts: [(Window, i64); 3]) -> Vec<UsageRow> {
        starts
            .into_iter()
            .filter_map(|(window, start_ms)| {
                let granted = *self.granted.get(&(key, window, start_ms))?;
                Some(UsageRow { meter_id: key.to_string(), window, granted })
            })
            .collect()
    }

    pub(super) fn granted(&self) -> &HashMap<Place, u32> {
        &self.granted
    }

    /// Ends a key; returns the number of the change and its commit time.
    pub(super) fn end_key(&mut self, at_us: i64, key: u32) -> (u64, i64) {
        let done_us = self.work(at_us, 1);
        self.ended.push((done_us, key));
        (u64::try_from(self.ended.len()).unwrap_or(u64::MAX), done_us)
    }

    /// The newest change, and the time when the answer is sent.
    pub(super) fn newest(&mut self, at_us: i64) -> (u64, i64) {
        self.load.questions += 1;
        let done_us = self.queue(at_us, self.costs.read_us);
        let seen = self.ended.partition_point(|(committed_us, _)| *committed_us <= done_us);
        (u64::try_from(seen).unwrap_or(u64::MAX), done_us)
    }

    /// Keys that ended with the changes after `held` up to `newest`.
    pub(super) fn changes(&self, held: u64, newest: u64) -> impl Iterator<Item = u32> {
        let range = usize::try_from(held).ok().zip(usize::try_from(newest).ok());
        let changes = range.and_then(|(held, newest)| self.ended.get(held..newest));
        changes.unwrap_or_default().iter().map(|(_, key)| *key)
    }

    /// Records the change up to which a node has read.
    pub(super) fn confirm(&mut self, at_us: i64, node: (usize, u32), number: u64) -> i64 {
        self.load.confirmations += 1;
        let number_read = self.confirmed.entry(node).or_default();
        *number_read = number.max(*number_read);
        self.work(at_us, 1)
    }

    pub(super) fn lists(&self, node: (usize, u32)) -> bool {
        self.confirmed.contains_key(&node)
    }

    /// Removes a node that stops in order: no call waits for it.
    pub(super) fn forget(&mut self, node: (usize, u32)) {
        self.confirmed.remove(&node);
    }

    /// True if every listed node has confirmed a change.
    pub(super) fn is_known_everywhere(&mut self, at_us: i64, number: u64) -> bool {
        self.load.looks += 1;
        self.queue(at_us, self.costs.read_us);
        self.confirmed.values().all(|number_read| *number_read >= number)
    }
}

pub(super) fn key_of(meter_id: &str) -> Result<u32> {
    meter_id.parse().with_context(|| format!("{meter_id} is no key of this run"))
}
