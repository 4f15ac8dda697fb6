//! One node of a cluster: it follows every change of keys, and renews its key lease.

use std::{
    sync::{
        Arc, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::Clock;
use store::{KeyChange, Listed, Store};
use tokio::sync::{Mutex, Notify};

use crate::{
    AccountError, Accounts, Authorities, LeaseWorker, Need, RevocationRegister, SteadyClock,
    key::{hold, secret},
    revocation::key_lease::{Authority, KeyLease, SyncState},
};

/// How often the database is asked, unless the lease is short.
const ASK_EVERY_MAX: Duration = Duration::from_secs(1);
/// Number of questions within a lease: a few may be lost.
const ASKS_PER_LEASE: u32 = 5;
/// How often a node is listed again while nothing changes.
pub(crate) const LIST_EVERY_MS: u64 = 30_000;
/// How often the number is announced again, for a register that lost its data.
const ANNOUNCE_EVERY_MS: u64 = 30_000;

/// The parts that a node of a cluster needs in addition to the store.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub register: Arc<dyn RevocationRegister>,
    pub steady: Arc<dyn SteadyClock>,
    /// The length of a key lease.
    pub lease: Duration,
}

/// The key lease of a node, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLeaseStats {
    /// How long keys would be accepted if neither authority answered.
    pub left_ms: u64,
    /// The last change of keys that is in memory.
    pub number: i64,
    /// How often each authority renewed the lease.
    pub by_store: u64,
    pub by_register: u64,
    /// Changes of this node that were not confirmed.
    pub unconfirmed: u64,
}

#[derive(Debug)]
pub(crate) struct Member {
    id: String,
    authorities: Authorities,
    lease: Arc<KeyLease>,
    lease_ms: u64,
    /// Held while the store is read, which may take long.
    asking: Mutex<Asking>,
    state: std::sync::Mutex<State>,
    /// The greatest number that the register ever named.
    heard: AtomicI64,
    /// The register knows of a change that is not in memory.
    behind: Notify,
    by_store: AtomicU64,
    by_register: AtomicU64,
    unconfirmed: AtomicU64,
}

#[derive(Debug, Default)]
struct Asking {
    /// The last change read, with everything before it; `None` before the first read.
    read: Option<KeyChange>,
}

#[derive(Debug)]
struct State {
    /// `None` before the first read.
    holding: Option<SyncState>,
    listed_ms: Option<u64>,
    /// The node has left and accepts no keys any more.
    left: bool,
}

impl Member {
    fn new(id: String, authorities: Authorities, lease: Arc<KeyLease>) -> Self {
        Self {
            id,
            lease,
            lease_ms: u64::try_from(authorities.lease.as_millis()).unwrap_or(u64::MAX / 2),
            authorities,
            asking: Mutex::default(),
            state: std::sync::Mutex::new(State { holding: None, listed_ms: None, left: false }),
            heard: AtomicI64::new(0),
            behind: Notify::new(),
            by_store: AtomicU64::new(0),
            by_register: AtomicU64::new(0),
            unconfirmed: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Plain values: a poisoned lock still holds correct ones.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last change that is in memory; 0 before the first read.
    fn number(&self) -> i64 {
        self.state().holding.map_or(0, |holding| holding.number)
    }

    fn set_listed(&self, asked_ms: u64) {
        let mut state = self.state();
        state.listed_ms = Some(asked_ms);
        if let Some(holding) = &mut state.holding {
            holding.listed_ms = Some(asked_ms);
        }
    }

    /// Every change up to `number` is in memory, and confirmed in the store up to `confirmed`.
    fn set_number(&self, number: i64, confirmed: i64) {
        let mut state = self.state();
        let listed_ms = state.listed_ms;
        state.holding = Some(SyncState { number, confirmed, listed_ms, lease_ms: self.lease_ms });
    }

    fn extend(&self, by: Authority, asked_ms: u64, newest: i64) {
        let state = self.state();
        let holding = state.holding.filter(|_| !state.left);
        let until_ms = holding.and_then(|holding| holding.until_ms(by, asked_ms, newest));
        let Some(until_ms) = until_ms else { return };
        // Under the lock: a node that leaves ends its lease for good.
        self.lease.extend(until_ms);
        let counter = match by {
            Authority::Store => &self.by_store,
            Authority::Register => &self.by_register,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.authorities.steady.now_ms()
    }

    pub(crate) fn steady(&self) -> Arc<dyn SteadyClock> {
        Arc::clone(&self.authorities.steady)
    }

    /// Whether the database renewed the lease recently, so that the register need not.
    fn is_sure(&self) -> bool {
        let left_ms = self.lease.left_ms().unwrap_or(u64::MAX);
        left_ms
            > self
                .lease_ms
                .saturating_sub(self.lease_ms.saturating_mul(2) / u64::from(ASKS_PER_LEASE))
    }
}

impl Accounts {
    /// As [`Accounts::load`], for one of several nodes on the same database. [`Accounts::follow`] has to run to renew
    /// the lease.
    pub async fn load_node(
        store: Store,
        clock: Arc<dyn Clock>,
        cluster: Cluster,
    ) -> Result<(Self, LeaseWorker), AccountError> {
        let Cluster { register, steady, lease } = cluster;
        let key_lease = Arc::new(KeyLease::none_yet(Arc::clone(&steady)));
        let authorities = Authorities { store: store.clone(), register, steady, lease };
        let member = Member::new(secret::public_id("node_")?, authorities, Arc::clone(&key_lease));
        let (accounts, worker) = Self::assemble(store, clock, key_lease, Some(member));
        accounts.renew_from_store().await?;
        Ok((accounts, worker))
    }

    /// Renews the key lease, and the right to hold streams, for as long as the node serves. Returns at once in a single
    /// process.
    pub async fn follow(&self) {
        if let Some(member) = &self.member {
            tokio::join!(
                self.follow_store(member),
                self.follow_register(member),
                self.streams.keep()
            );
        }
    }

    async fn follow_store(&self, member: &Member) {
        let every = ASK_EVERY_MAX.min(member.authorities.lease / ASKS_PER_LEASE);
        let mut failing = false;
        loop {
            // All branches are safe to cancel.
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = member.authorities.register.wait_for_hint() => {}
                () = member.behind.notified() => {}
            }
            let asked = self.renew_from_store().await;
            if let Err(error) = &asked
                && !failing
            {
                tracing::warn!(
                    event = "key_lease.database_lost",
                    error = error as &dyn std::error::Error,
                    "changes of keys cannot be read; renewing the key lease by NATS"
                );
            }
            failing = asked.is_err();
        }
    }

    async fn follow_register(&self, member: &Member) {
        let every = ASK_EVERY_MAX.min(member.authorities.lease / ASKS_PER_LEASE);
        let mut announced_ms = None;
        let mut failing = false;
        loop {
            if member.is_sure() {
                let now_ms = member.now_ms();
                if announced_ms.is_none_or(|at| now_ms.saturating_sub(at) >= ANNOUNCE_EVERY_MS) {
                    let announced = member.authorities.register.announce(member.number()).await;
                    announced_ms = announced.is_ok().then_some(now_ms);
                }
            } else {
                let asked = self.renew_from_register().await;
                if let Err(error) = &asked
                    && !failing
                {
                    tracing::warn!(
                        event = "key_lease.authority_lost",
                        error = &**error as &dyn std::error::Error,
                        "key authority lost (database and NATS unreachable); refusing keys when the lease expires"
                    );
                }
                failing = asked.is_err();
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Follows every change of keys in the store, which renews the key lease. [`Accounts::follow`] does it
    /// repeatedly.
    pub async fn renew_from_store(&self) -> Result<(), AccountError> {
        let Some(member) = &self.member else {
            return Ok(());
        };
        let mut asking = member.asking.lock().await;
        if member.state().left {
            return Ok(());
        }
        // Repeated if changes did not wait for this node while it read.
        while !self.renew_from_store_once(member, &mut asking).await? {}
        Ok(())
    }

    /// `false`: changes did not wait for this node until now, so it may have missed changes since it read.
    async fn renew_from_store_once(
        &self,
        member: &Member,
        asking: &mut Asking,
    ) -> Result<bool, AccountError> {
        let store = &member.authorities.store;
        let listed_ms = member.state().listed_ms;
        let asked_ms = member.now_ms();
        let heard = member.heard.load(Ordering::SeqCst);
        // Listed before reading: a change either waits for this node, or the node reads it.
        if listed_ms.is_none_or(|at| asked_ms.saturating_sub(at) >= LIST_EVERY_MS) {
            let read = asking.read.map_or(0, |read| read.number);
            store.confirm_node(&member.id, read, member.lease_ms).await?;
            member.set_listed(asked_ms);
            store.delete_dead_nodes().await?;
        }
        let (mut change, mut listed) = store.key_change_seen_by(&member.id).await?;
        // A number that was read or announced was in the database before.
        let known = heard.max(asking.read.map_or(0, |read| read.number));
        if change.number < known {
            tracing::error!(
                event = "keys.database_restored",
                newest = change.number,
                known,
                "database restored to a state before a known change of keys; keys revoked since may be valid again"
            );
            store.raise_key_change(known.saturating_add(1)).await?;
            (change, listed) = store.key_change_seen_by(&member.id).await?;
        }
        let newest = change.number;
        match asking.read.filter(|read| read.era == change.era) {
            Some(read) if read.number >= newest => {}
            Some(read) => self.catch_up(read.number).await?,
            None => self.read_all().await?,
        }
        // The confirmation covers streams, too. The lease runs on meanwhile: a third of it is for the wait, the rest
        // for the database and for the pause between two renewals.
        let wait_max = Duration::from_millis(member.lease_ms / 3).min(hold::WAIT_MAX);
        self.keys.holders.wait(wait_max).await;
        asking.read = Some(change);
        let waited_for = listed.filter(Listed::is_waited_for);
        if let Some(listed) = waited_for {
            member.set_number(newest, listed.confirmed.min(newest));
            member.extend(Authority::Store, asked_ms, newest);
        }
        if waited_for.is_none_or(|listed| listed.confirmed < newest) {
            // Whether it was confirmed is read with the next number, in one statement.
            store.confirm_node(&member.id, newest, member.lease_ms).await?;
        }
        Ok(waited_for.is_some())
    }

    /// Renews the key lease by the register if this node knows every change. [`Accounts::follow`] does this if the
    /// store does not answer.
    ///
    /// # Errors
    /// The register does not answer.
    pub async fn renew_from_register(&self) -> Result<(), crate::RegisterError> {
        let Some(member) = &self.member else {
            return Ok(());
        };
        let asked_ms = member.now_ms();
        let newest = member.authorities.register.confirm(member.number()).await?;
        member.heard.fetch_max(newest, Ordering::SeqCst);
        member.extend(Authority::Register, asked_ms, newest);
        if newest > member.number() {
            member.behind.notify_one();
        }
        Ok(())
    }

    /// Ends the key lease, and removes this node from the list of nodes that changes wait for.
    pub(crate) async fn leave(&self) -> Result<(), AccountError> {
        let Some(member) = &self.member else {
            return Ok(());
        };
        {
            let mut state = member.state();
            state.left = true;
            member.lease.end();
        }
        // A call in progress would list the node again.
        let _asked = member.asking.lock().await;
        Ok(member.authorities.store.delete_node(&member.id).await?)
    }

    /// Waits until a change in the store holds on the other nodes, too.
    pub(crate) async fn confirm(&self, need: Need) -> Result<(), AccountError> {
        self.keys.holders.wait(hold::WAIT_MAX).await;
        let Some(member) = &self.member else {
            return Ok(());
        };
        if let Err(error) = self.renew_from_store().await {
            tracing::debug!(event = "keys.follow_failed", %error, "own change of keys not followed yet");
        }
        let confirmed = member.authorities.confirm(need).await;
        if let Err(error) = &confirmed {
            let error = error as &dyn std::error::Error;
            tracing::warn!(
                event = "keys.unconfirmed",
                error,
                "change of keys not confirmed by every node"
            );
            member.unconfirmed.fetch_add(1, Ordering::Relaxed);
        }
        match need {
            Need::Everywhere => confirmed,
            Need::Soon => Ok(()),
        }
    }

    /// The key lease; `None` in a single process.
    pub fn key_lease(&self) -> Option<KeyLeaseStats> {
        let member = self.member.as_ref()?;
        Some(KeyLeaseStats {
            left_ms: member.lease.left_ms().unwrap_or(u64::MAX),
            number: member.number(),
            by_store: member.by_store.load(Ordering::Relaxed),
            by_register: member.by_register.load(Ordering::Relaxed),
            unconfirmed: member.unconfirmed.load(Ordering::Relaxed),
        })
    }
}
