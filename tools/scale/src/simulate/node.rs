//! One api node: real meters, the lease worker's batches, and the right to accept keys from memory.

use std::{collections::HashMap, sync::Arc};

use accounts::{KeyLeaseSimulation, Limits, MeterSimulation, Meters};
use domain::Timestamp;
use store::{LeaseRequest, UsageRow};

use super::clock::Clocks;

/// A request that waits for a lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) since_us: i64,
    /// The node's wall clock at arrival, which decides the window.
    pub(super) now: Timestamp,
    /// True if the burst is charged and the quota is not.
    pub(super) burst_paid: bool,
}

/// Meters with the number of requests for each.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) askers: Vec<(Arc<Meters>, usize)>,
    pub(super) asks: Vec<LeaseRequest>,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a node can be down, cut off, alone and leasing in every mixture"
)]
pub(super) struct Node {
    pub(super) clocks: Clocks,
    /// Number of starts: answers to an earlier life are ignored.
    pub(super) life: u32,
    pub(super) is_up: bool,
    /// Cut off from the database, but not from clients.
    pub(super) is_cut: bool,
    /// Cut off from the register, too.
    pub(super) is_alone: bool,
    /// The node is paused until this time.
    pub(super) paused_until_us: i64,
    pub(super) is_leasing: bool,
    pub(super) waiting: HashMap<u32, Vec<Waiting>>,
    simulation: MeterSimulation,
    meters: HashMap<u32, Arc<Meters>>,
    batch: Vec<Arc<Meters>>,
    /// Number of key changes it has read.
    pub(super) seen: u64,
    ended: std::collections::HashSet<u32>,
    /// Time, by its monotonic clock, until which it may accept keys from memory.
    pub(super) trusted_until_us: i64,
    /// Time of the last database query that is known to have listed the node.
    listed_ms: Option<u64>,
}

impl Node {
    pub(super) fn new(clocks: Clocks, life: u32) -> Self {
        Self {
            clocks,
            life,
            is_up: true,
            is_cut: false,
            is_alone: false,
            paused_until_us: 0,
            is_leasing: false,
            waiting: HashMap::new(),
            simulation: MeterSimulation::default(),
            meters: HashMap::new(),
            batch: Vec::new(),
            seen: 0,
            ended: std::collections::HashSet::new(),
            trusted_until_us: 0,
            listed_ms: None,
        }
    }

    /// The meters of a key, created at its first request.
    pub(super) fn meters(
        &mut self,
        key: u32,
        limits: Limits,
        now: Timestamp,
        usage: impl FnOnce() -> Vec<UsageRow>,
    ) -> Arc<Meters> {
        let simulation = &self.simulation;
        let made = || simulation.meters(&key.to_string(), limits, &usage(), now);
        Arc::clone(self.meters.entry(key).or_insert_with(made))
    }

    /// The next batch of the lease worker, unless it waits for an answer.
    pub(super) fn next_batch(&mut self) -> Option<Batch> {
        if self.is_leasing || !self.is_up {
            return None;
        }
        let mut batch = Batch::default();
        // Meters without further requests are skipped, as in the worker.
        while batch.asks.is_empty() {
            self.simulation.fill(&mut self.batch);
            if self.batch.is_empty() {
                return None;
            }
            for meters in self.batch.drain(..) {
                let asks = meters.asks();
                if !asks.is_empty() {
                    batch.askers.push((meters, asks.len()));
                    batch.asks.extend(asks);
                }
            }
        }
        self.is_leasing = true;
        Some(batch)
    }

    /// Meters that need more are added to the next batch.
    pub(super) fn want_more(&mut self, meters: Arc<Meters>) {
        self.batch.push(meters);
    }

    /// True if it may accept keys from memory.
    pub(super) fn is_trusted(&self, at_us: i64) -> bool {
        self.clocks.steady(at_us) < self.trusted_until_us
    }

    /// Records the answer of the database or the register to a query sent at `asked_us`.
    pub(super) fn extend(&mut self, by_database: bool, asked_us: i64, newest: u64, trust_us: i64) {
        let asked_ms = u64::try_from(asked_us / 1000).unwrap_or(0);
        if by_database {
            // The database lists a node before it answers.
            self.listed_ms = Some(asked_ms);
        }
        let trust_ms = u64::try_from(trust_us / 1000).unwrap_or(0);
        let rule = KeyLeaseSimulation { lease_ms: trust_ms, listed_ms: self.listed_ms };
        let number = |changes: u64| i64::try_from(changes).unwrap_or(i64::MAX);
        let until_ms = rule.until_ms(by_database, number(self.seen), asked_ms, number(newest));
        let until_us = until_ms.map_or(0, |until| i64::try_from(until * 1000).unwrap_or(i64::MAX));
        self.trusted_until_us = self.trusted_until_us.max(until_us);
    }

    pub(super) fn has_ended(&self, key: u32) -> bool {
        self.ended.contains(&key)
    }

    pub(super) fn read_changes(&mut self, changes: impl Iterator<Item = u32>, newest: u64) {
        self.ended.extend(changes);
        self.seen = newest;
    }

    /// Removes all meters from the node.
    pub(super) fn take_meters(&mut self) -> HashMap<u32, Arc<Meters>> {
        std::mem::take(&mut self.meters)
    }
}
