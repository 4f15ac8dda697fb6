//! Counts the open streams of each key over all nodes (S11).
//!
//! A single process counts in memory. A node of a cluster reserves its streams in the store, which counts those of
//! every node (`store::stream_slot`), before they open: the limit of a key is never exceeded. One task writes all
//! pending changes in one transaction, as for quota leases.
//!
//! A node's reservations count until its right expires. The node prolongs the right every few seconds; if it cannot,
//! it ends its streams itself, long before others may open them. It measures this with a monotonic clock, starting
//! before its request to the store.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use store::{Store, StoreError, StreamsWanted};
use tokio::{
    sync::{Notify, oneshot, watch},
    time::timeout,
};

use crate::{AccountError, KeyId, SteadyClock, key::secret, revocation::key_lease::KeyLease};

/// Time for which other nodes count the streams of a silent node: those of a killed node are free within 60 s.
const RIGHT_MS: u32 = 45_000;
/// Time for which the node itself relies on its right.
const OWN_RIGHT_MS: u64 = 30_000;
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// Delay before a failed write is retried.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// Maximum time a request waits for the store.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum duration of a write.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// Maximum number of keys in one transaction.
const BATCH_MAX: usize = 512;
/// Maximum number of requests that wait for the store, over all keys. Beyond it, requests are refused.
const WAITING_MAX: usize = 16_384;

/// Reason why a stream is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRefusal {
    /// The key has reached its limit of open streams.
    Limit,
    /// The store did not answer in time.
    Unavailable,
}

/// The streams of this node in the store, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSlotStats {
    /// Time for which streams would stay open if the store did not answer.
    pub left_ms: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Number of times the right expired, which ended all streams.
    pub lost: u64,
}

/// The streams of all keys on this node.
#[derive(Debug, Default)]
pub struct StreamSlots {
    state: Mutex<State>,
    /// Number of times that all streams were lost: the era.
    lost: watch::Sender<u64>,
    /// `None`: a single process.
    shared: Option<Shared>,
}

#[derive(Debug, Default)]
struct State {
    /// Incremented when all reservations are lost.
    era: u64,
    keys: HashMap<Box<str>, Count>,
    /// Keys whose row differs, or may differ, from the number of open streams.
    changed: HashSet<Box<str>>,
    waiting: usize,
}

/// The streams of one key.
#[derive(Debug, Default)]
struct Count {
    open: u32,
    waiting: Vec<Waiting>,
}

/// A request that waits for a stream of its key.
#[derive(Debug)]
struct Waiting {
    limit: u32,
    answer: oneshot::Sender<Result<StreamSlot, StreamRefusal>>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    steady: Arc<dyn SteadyClock>,
    right: KeyLease,
    /// The node in the store, as of the era; `None` before it has begun.
    node: tokio::sync::Mutex<Option<String>>,
    wake: Notify,
    failed: AtomicU64,
    /// True if the node is stopping and holds no streams any more.
    closed: AtomicBool,
}

/// A counted stream of a key; released when dropped.
#[derive(Debug)]
pub struct StreamSlot {
    of: Arc<StreamSlots>,
    key: Box<str>,
    era: u64,
}

impl StreamSlots {
    /// True if slots can be lost, because they are counted together with those of other nodes.
    pub fn may_lose(&self) -> bool {
        self.shared.is_some()
    }

    /// The slots of a node of a cluster.
    pub(crate) fn shared(store: Store, steady: Arc<dyn SteadyClock>) -> Self {
        let shared = Shared {
            store,
            right: KeyLease::none_yet(Arc::clone(&steady)),
            steady,
            node: tokio::sync::Mutex::default(),
            wake: Notify::new(),
            failed: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        };
        Self { shared: Some(shared), ..Self::default() }
    }

    /// Opens a stream of a key that may have at most `limit` of them.
    ///
    /// # Errors
    /// The limit is reached, or the store did not confirm the slot in time.
    pub async fn open(
        self: &Arc<Self>,
        key: &KeyId,
        limit: u32,
    ) -> Result<StreamSlot, StreamRefusal> {
        let Some(shared) = &self.shared else { return self.open_alone(key, limit) };
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.lock();
            let own = state.keys.get(key.as_str()).map_or(0, |count| count.open);
            if own >= limit {
                return Err(StreamRefusal::Limit);
            }
            if state.waiting >= WAITING_MAX {
                return Err(StreamRefusal::Unavailable);
            }
            state.waiting += 1;
            let count = state.keys.entry(key.as_str().into()).or_default();
            count.waiting.push(Waiting { limit, answer });
            state.changed.insert(key.as_str().into());
        }
        shared.wake.notify_one();
        // If the caller is dropped meanwhile, the slot is released with the answer.
        match timeout(WAIT_MAX, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(StreamRefusal::Unavailable),
        }
    }

    /// Takes the replay turn of a key, of which it has one over all nodes. It is counted as a stream under a name of
    /// its own.
    ///
    /// # Errors
    /// The turn is taken, or the store does not answer in time.
    pub async fn open_replay(self: &Arc<Self>, key: &KeyId) -> Result<StreamSlot, StreamRefusal> {
        self.open(&KeyId::from_stored(&format!("{}/replay", key.as_str())), 1).await
    }

    fn open_alone(self: &Arc<Self>, key: &KeyId, limit: u32) -> Result<StreamSlot, StreamRefusal> {
        let mut state = self.lock();
        let own = state.keys.get(key.as_str()).map_or(0, |count| count.open);
        if own >= limit {
            return Err(StreamRefusal::Limit);
        }
        let era = state.era;
        state.keys.entry(key.as_str().into()).or_default().open += 1;
        Ok(StreamSlot { of: Arc::clone(self), key: key.as_str().into(), era })
    }

    /// Notifies when streams may have been lost: their holders then check [`StreamSlot::is_held`].
    pub fn losses(&self) -> watch::Receiver<u64> {
        self.lost.subscribe()
    }

    /// `None` in a single process.
    pub fn stats(&self) -> Option<StreamSlotStats> {
        let shared = self.shared.as_ref()?;
        Some(StreamSlotStats {
            left_ms: shared.right.left_ms().unwrap_or(u64::MAX),
            failed: shared.failed.load(Ordering::Relaxed),
            lost: *self.lost.borrow(),
        })
    }

    /// Keeps the store up to date while the node serves. Returns at once in a single process.
    pub(crate) async fn keep(self: &Arc<Self>) {
        let Some(shared) = &self.shared else { return };
        let mut failing = false;
        loop {
            let wait = if failing { RETRY_AFTER } else { RENEW_EVERY };
            let renews = timeout(wait, shared.wake.notified()).await.is_err();
            if failing && !renews {
                // Retries are limited, regardless of how often clients ask.
                tokio::time::sleep(RETRY_AFTER).await;
            }
            // If the right expires meanwhile, streams end then, not when the store answers.
            let left = match shared.right.left_ms() {
                Some(0) | None => WRITE_MAX,
                Some(left_ms) => WRITE_MAX.min(Duration::from_millis(left_ms)),
            };
            let written = timeout(left, self.write()).await;
            let written = written.unwrap_or_else(|elapsed| {
                self.refuse_all();
                Err(StoreError::Unavailable(elapsed.into()).into())
            });
            if let Err(error) = &written
                && !failing
            {
                tracing::warn!(
                    event = "streams.store_failed",
                    error = error as &dyn std::error::Error,
                    "streams cannot be counted; none is opened, and those open end in half a minute"
                );
            }
            failing = written.is_err();
        }
    }

    /// Writes pending changes and prolongs the right.
    pub(crate) async fn write(self: &Arc<Self>) -> Result<(), AccountError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let mut node = shared.node.lock().await;
        if shared.closed.load(Ordering::SeqCst) {
            self.refuse_all();
            return Ok(());
        }
        if node.is_some() && !shared.right.holds() {
            self.lose(shared);
            *node = None;
        }
        let written = self.write_as(shared, &mut node).await;
        if written.is_err() {
            shared.failed.fetch_add(1, Ordering::Relaxed);
            self.refuse_all();
        }
        written
    }

    async fn write_as(
        self: &Arc<Self>,
        shared: &Shared,
        node: &mut Option<String>,
    ) -> Result<(), AccountError> {
        loop {
            let asked_ms = shared.steady.now_ms();
            let id = match node {
                Some(id) => id,
                None => {
                    let id = secret::public_id("node_")?;
                    shared.store.begin_stream_node(&id, RIGHT_MS).await?;
                    shared.right.extend(asked_ms.saturating_add(OWN_RIGHT_MS));
                    node.insert(id)
                }
            };
            let (wanted, more) = self.wanted();
            let mut batch = Batch { of: self, wanted };
            match shared.store.hold_streams(id, RIGHT_MS, &batch.wanted).await? {
                Some(held) => {
                    shared.right.extend(asked_ms.saturating_add(OWN_RIGHT_MS));
                    self.settle(&std::mem::take(&mut batch.wanted), &held);
                    if !more {
                        return Ok(());
                    }
                }
                None => {
                    self.lose(shared);
                    *node = None;
                }
            }
        }
    }

    /// The pending changes of one batch, and true if there are more.
    fn wanted(&self) -> (Vec<StreamsWanted>, bool) {
        let mut state = self.lock();
        let keys: Vec<Box<str>> = state.changed.iter().take(BATCH_MAX).cloned().collect();
        let mut wanted = Vec::with_capacity(keys.len());
        for key in keys {
            state.changed.remove(&key);
            let (open, waiting, limit) = match state.keys.get(&key) {
                Some(count) => {
                    let limits = count.waiting.iter().map(|waiting| waiting.limit);
                    let waiting = u32::try_from(count.waiting.len()).unwrap_or(u32::MAX);
                    // Concurrent requests of a key carry the same limit, except during a change of it.
                    (count.open, waiting, limits.min().unwrap_or(0))
                }
                None => (0, 0, 0),
            };
            let wants = open.saturating_add(waiting);
            wanted.push(StreamsWanted { key_id: key, open, wanted: wants, limit });
        }
        (wanted, !state.changed.is_empty())
    }

    /// Answers waiting requests with the slots that the store granted.
    fn settle(self: &Arc<Self>, wanted: &[StreamsWanted], held: &[u32]) {
        let mut answers = Vec::new();
        let mut state = self.lock();
        for (asked, held) in wanted.iter().zip(held) {
            let era = state.era;
            let Some(count) = state.keys.get_mut(&asked.key_id) else { continue };
            // Requests that arrived after this write are not included.
            let asking = usize::try_from(asked.wanted.saturating_sub(asked.open)).unwrap_or(0);
            let asking = asking.min(count.waiting.len());
            let waiting: Vec<Waiting> = count.waiting.drain(..asking).collect();
            for Waiting { answer, .. } in waiting {
                let granted = count.open < *held;
                count.open += u32::from(granted);
                let slot = || StreamSlot { of: Arc::clone(self), key: asked.key_id.clone(), era };
                let slot = if granted { Ok(slot()) } else { Err(StreamRefusal::Limit) };
                answers.push((answer, slot));
            }
            let is_less = count.open < *held;
            let is_done = count.open == 0 && count.waiting.is_empty();
            state.waiting = state.waiting.saturating_sub(asking);
            // Some streams were closed meanwhile.
            if is_less {
                state.changed.insert(asked.key_id.clone());
            }
            if is_done {
                state.keys.remove(&asked.key_id);
            }
        }
        drop(state);
        // Sent without the lock: a slot whose request was dropped is released here.
        for (answer, slot) in answers {
            drop(answer.send(slot));
        }
    }

    /// Refuses all waiting requests when the store does not answer.
    fn refuse_all(&self) {
        let mut answers = Vec::new();
        let mut state = self.lock();
        for count in state.keys.values_mut() {
            answers.append(&mut count.waiting);
        }
        state.waiting = 0;
        state.keys.retain(|_, count| count.open > 0);
        drop(state);
        for Waiting { answer, .. } in answers {
            drop(answer.send(Err(StreamRefusal::Unavailable)));
        }
    }

    /// Ends all streams: other nodes may soon open theirs.
    fn lose(&self, shared: &Shared) {
        shared.right.end();
        let mut state = self.lock();
        let had_any = state.keys.values().any(|count| count.open > 0);
        state.era += 1;
        for count in state.keys.values_mut() {
            count.open = 0;
        }
        state.keys.retain(|_, count| !count.waiting.is_empty());
        state.changed = state.keys.keys().cloned().collect();
        drop(state);
        self.lost.send_modify(|lost| *lost += 1);
        if had_any {
            tracing::warn!(
                event = "streams.right_expired",
                "the database was not reached for half a minute; all streams of this node end"
            );
        }
    }

    /// Ends the node's right; no stream can be opened after this.
    pub(crate) async fn close(&self) -> Result<(), AccountError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let mut node = shared.node.lock().await;
        shared.closed.store(true, Ordering::SeqCst);
        shared.right.end();
        match node.take() {
            Some(id) => Ok(shared.store.end_stream_node(&id).await?),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Only counts: no code under the lock panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch that is being written. If the write fails or is abandoned, the rows may be in either state, so they are
/// written again.
struct Batch<'a> {
    of: &'a StreamSlots,
    wanted: Vec<StreamsWanted>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.wanted.is_empty() {
            self.of.lock().changed.extend(self.wanted.drain(..).map(|key| key.key_id));
        }
    }
}

impl StreamSlot {
    /// True if the stream is still counted; if not, nothing may be sent on it.
    pub fn is_held(&self) -> bool {
        let Some(shared) = &self.of.shared else { return true };
        shared.right.holds() && *self.of.lost.borrow() == self.era
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        if state.era != self.era {
            return;
        }
        if let Some(count) = state.keys.get_mut(&self.key) {
            count.open = count.open.saturating_sub(1);
            if count.open == 0 && count.waiting.is_empty() {
                state.keys.remove(&self.key);
            }
        }
        if let Some(shared) = &self.of.shared {
            state.changed.insert(self.key.clone());
            drop(state);
            shared.wake.notify_one();
        }
    }
}
