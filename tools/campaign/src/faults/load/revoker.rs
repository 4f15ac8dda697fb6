//! Creates and revokes keys, while other threads use them on every node, before and after.
//!
//! Each node has a client of its own with a long timeout: a paused node answers when it resumes, and that answer
//! counts.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;

use super::{LoadContext, reader::Requester};
use crate::{
    cluster::unit::Unit,
    faults::record::{Revocation, now_ms},
};

const PATH: &str = "/v1/sports";
/// Pause between two uses of a key at a node.
const PAUSE: Duration = Duration::from_millis(40);
/// Time for which a key is used before it is revoked, and again until the next one is created.
const LIFE: Duration = Duration::from_millis(1500);
/// Longer than any fault.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The current key, and revoked ones that are tried again, also after the next faults.
const KEYS: usize = 12;
/// Concurrent revokers: a call waits for an unreachable node, and others should continue meanwhile.
pub(super) const REVOKERS: usize = 3;

/// Names and secrets, the newest first.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyPool(Arc<Mutex<VecDeque<(String, String)>>>);

impl KeyPool {
    fn add(&self, name: String, key: String) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push_front((name, key));
        keys.truncate(KEYS);
    }

    pub(super) fn all(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

pub(super) struct Revoker {
    context: LoadContext,
    pool: KeyPool,
    number: usize,
}

impl Revoker {
    pub(super) fn new(context: &LoadContext, pool: &KeyPool, number: usize) -> Self {
        Self { context: context.clone(), pool: pool.clone(), number }
    }

    pub(super) fn run(&mut self) {
        let mut made = 0_u32;
        while self.context.goes_on() {
            made += 1;
            let name = format!("revoked-{}-{made}", self.number);
            // While the database is unreachable there are no new keys.
            if let Ok(key) = self.context.new_key(&name, 100_000, 100_000) {
                self.pool.add(name.clone(), key.clone());
                shell::sleep(LIFE);
                self.revoke(&name, &key);
            }
            shell::sleep(LIFE);
        }
    }

    /// Repeats the call until it succeeds: a failed call promises nothing.
    fn revoke(&self, name: &str, key: &str) {
        while self.context.goes_on() && revoke(&self.context, name, key).is_err() {
            shell::sleep(LIFE);
        }
    }
}

/// Revokes a key and records the call if it succeeds.
pub(super) fn revoke(context: &LoadContext, name: &str, key: &str) -> Result<()> {
    let called_ms = now_ms();
    context.verb(&["keys", "revoke", key])?;
    let revocation = Revocation { key: name.to_owned(), called_ms, returned_ms: now_ms() };
    context.journal.note("revocation", revocation, |records| &mut records.revocations);
    Ok(())
}

/// Uses all keys of the pool at one node, or through the load balancer.
pub(super) struct KeyUser {
    context: LoadContext,
    pool: KeyPool,
    requester: Requester,
}

impl KeyUser {
    pub(super) fn new(context: &LoadContext, pool: &KeyPool, node: Option<Unit>) -> Self {
        let requester = Requester::new(context, node, TIMEOUT);
        Self { context: context.clone(), pool: pool.clone(), requester }
    }

    pub(super) fn run(&mut self) {
        while self.context.goes_on() {
            for (name, key) in self.pool.all() {
                self.requester.ask(PATH, (&name, &key), None);
                shell::sleep(PAUSE);
            }
            shell::sleep(PAUSE);
        }
    }
}
