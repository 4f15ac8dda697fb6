//! Keys, grants, quota, feed tokens and people. Logic only: SQL is in `store`, HTTP in `serve`.
//!
//! [`Accounts`] is what a server holds: live keys and feeds in memory, and meters that spend from leases.
//! [`Registry`] is what a command-line process needs: the same verbs, on the store alone.
//! [`People`] knows developers and operators: how they sign in, and what they ask for and decide.

mod error;
mod feed;
mod key;
mod people;
mod registry;
mod revocation;
mod simulation;

use std::{collections::HashSet, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use domain::{Clock, Timestamp};
use store::{KeyRow, Store};
use tokio::sync::{Mutex, mpsc, oneshot};

pub use crate::{
    error::AccountError,
    feed::{FeedGrant, Feeds},
    key::{
        grant::{Grant, Limits},
        lease_worker::{LeaseStats, LeaseWorker},
        meter::{Charge, Meters, Owner, Refusal, Spend, Standing, WindowStanding},
        ring::{ConnectionKey, KeyEntry, KeyRefusal, KeyRing},
        secret::{FeedToken, KeyId, KeySecret},
        usage::{ALERT_PERCENTS, QuotaAlert, UsageQuery, alert_percent},
        usage_counter::{Call, FAILURES_MAX, Failure, OPERATIONS_MAX},
    },
    people::{
        AUDIT_ROWS_MAX, AccessDecision, AccessRecord, AccountRecord, Actor, Attempt, AuditAction,
        AuditRecord, DeviceToken, Email, EmailAddress, EmailQueue, LinkToken, MailStats,
        NewAccount, Origin, Outbox, Password, PasswordFault, People, PeopleError, PeopleRules,
        Profile, RecoveryCode, Session, SessionRecord, SessionToken, SignIn, SignUp, TotpSecret,
        outbox, source_of,
    },
    registry::{FeedRecord, KeyRecord, Maintenance, NewKey, Registry, Scores},
    revocation::{
        confirm::{Authorities, Need, not_confirmed},
        key_lease::{
            MonotonicClock, RegisterError, RegisterFuture, RevocationRegister, SteadyClock,
        },
        node::{Cluster, KeyLeaseStats},
    },
    simulation::{KeyLeaseSimulation, MeterSimulation},
};
use crate::{
    key::{lease_worker::LeaseCounters, meter::Order, usage},
    revocation::{key_lease::KeyLease, node::Member},
};
pub use store::{
    AccessState, Allowance, AuditFilter, CountRow, Digest as KeyDigest, KeyKind, LinkPurpose,
    Outcome, Role, Stage, Step, Window,
};

/// How long a release waits for the worker's last transaction: longer than the store waits for a lock.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// A key with how it stands at this moment.
#[derive(Clone, Debug)]
pub struct KeyView {
    pub record: KeyRecord,
    pub last_used: Option<Timestamp>,
    /// What its client last called itself.
    pub last_agent: Option<String>,
    /// Where its day and its tightest window stand; `None` for a key that is not let in.
    pub standing: Option<Standing>,
    /// What it has spent of its day; `None` for a key that is not let in.
    pub today: Option<WindowStanding>,
    /// Out of force while its account is suspended.
    pub suspended: bool,
}

/// A key that took another one's place.
#[derive(Debug)]
pub struct Rotated {
    pub secret: KeySecret,
    pub record: KeyRecord,
    /// Why the old key may not have ended on every node yet. The new one is good all the same, and shown only here.
    pub unconfirmed: Option<AccountError>,
}

/// Everything a server knows about who may ask for what, in memory.
///
/// Each verb writes the store first and then memory: when it returns, it is in force here, and on every other node of
/// a cluster.
#[derive(Debug)]
pub struct Accounts {
    pub keys: KeyRing,
    pub feeds: Feeds,
    registry: Registry,
    maintenance: ArcSwap<Maintenance>,
    store: Store,
    orders: mpsc::Sender<Order>,
    counters: Arc<LeaseCounters>,
    writing: Mutex<usage::WriteState>,
    /// Alerts that the store knows of, so that it is not asked every minute.
    alerted: Mutex<HashSet<usage::AlertKey>>,
    /// `None`: this process is alone.
    member: Option<Member>,
}

impl Accounts {
    /// Loads everything from the store. The worker has to be run for requests to be counted.
    pub async fn load(
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, LeaseWorker), AccountError> {
        let (accounts, worker) =
            Self::assemble(store, clock, Arc::new(KeyLease::unbounded()), None);
        accounts.read_all().await?;
        Ok((accounts, worker))
    }

    /// With nothing read yet.
    fn assemble(
        store: Store,
        clock: Arc<dyn Clock>,
        lease: Arc<KeyLease>,
        member: Option<Member>,
    ) -> (Self, LeaseWorker) {
        let counters = Arc::new(LeaseCounters::default());
        let (worker, orders) =
            LeaseWorker::new(store.clone(), Arc::clone(&clock), Arc::clone(&counters));
        let ring =
            KeyRing::new(store.clone(), Arc::clone(&clock), orders.clone(), Arc::clone(&lease));
        let accounts = Self {
            keys: ring,
            feeds: Feeds::new(store.clone(), lease),
            registry: Registry::new(store.clone(), clock),
            maintenance: ArcSwap::default(),
            store,
            orders,
            counters,
            writing: Mutex::default(),
            alerted: Mutex::default(),
            member,
        };
        (accounts, worker)
    }

    /// Follows the store in everything: it was written past these accounts. When this returns, every other node of a
    /// cluster does, too.
    ///
    /// # Errors
    /// The store cannot be read, or other nodes may not have followed.
    pub async fn reload(&self) -> Result<(), AccountError> {
        self.read_all().await?;
        self.confirm(Need::Everywhere).await
    }

    async fn read_all(&self) -> Result<(), AccountError> {
        self.keys.reload().await?;
        self.read_rest().await
    }

    /// Follows the changes after a number.
    async fn catch_up(&self, number: i64) -> Result<(), AccountError> {
        self.keys.catch_up(number).await?;
        self.read_rest().await
    }

    /// What there is little of is read whole.
    async fn read_rest(&self) -> Result<(), AccountError> {
        self.feeds.reload().await?;
        self.maintenance.store(Arc::new(self.registry.maintenance().await?));
        Ok(())
    }

    /// How leasing goes.
    pub fn leases(&self) -> LeaseStats {
        self.counters.figures()
    }

    /// Whether requests can be counted as far as is known: a process that is alone could write its store when it last
    /// tried. One of several nodes is judged by its right to let keys in.
    pub fn can_count(&self) -> bool {
        self.member.is_some() || !self.counters.is_failing()
    }

    /// Counts one request to the key's burst. Waits only where a lease has to be taken first. Where the key stands is
    /// told without its account.
    pub async fn charge_burst(&self, entry: &KeyEntry, now: Timestamp) -> Charge {
        entry.meters.charge_burst(now).await
    }

    /// Counts one request to the key's day and month and its account's, to all or to none.
    pub async fn charge_quota(&self, entry: &KeyEntry, now: Timestamp) -> Charge {
        entry.meters.charge_quota(now).await
    }

    /// Stops the worker and gives unspent leases back. From here on nothing can be charged, and a node of a cluster
    /// lets nobody in.
    ///
    /// # Errors
    /// The store cannot be written: what was left is lost to its windows.
    pub async fn release(&self) -> Result<(), AccountError> {
        if let Err(error) = self.leave().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "this node could not sign off; others wait for it for a while when keys change"
            );
        }
        let (stopped, stop) = oneshot::channel();
        if self.orders.send(Order::Stop(stopped)).await.is_ok()
            && tokio::time::timeout(STOP_WAIT, stop).await.is_err()
        {
            tracing::warn!("the lease worker did not stop in time; its last leases are lost");
        }
        let unspent = self.keys.close().await;
        Ok(self.store.release(&unspent).await?)
    }

    /// As [`Registry::create_key`].
    ///
    /// # Errors
    /// A field is out of its bounds, the account has or made too many keys.
    pub async fn create_key(
        &self,
        new: NewKey,
        by: &Actor,
    ) -> Result<(KeySecret, KeyRecord), AccountError> {
        let (secret, record) = self.registry.create_key(new, by).await?;
        self.keys.refresh_key(record.id.as_str()).await?;
        self.confirm(Need::Soon).await?;
        Ok((secret, record))
    }

    /// As [`Registry::list_keys`].
    pub async fn list_keys(&self) -> Result<Vec<KeyRecord>, AccountError> {
        self.registry.list_keys().await
    }

    /// Whether any key was ever issued.
    pub async fn has_keys(&self) -> Result<bool, AccountError> {
        Ok(self.store.has_keys().await?)
    }

    /// As [`Registry::revoke_key`]; no request with that key passes on any node once this has returned.
    ///
    /// # Errors
    /// There is no such key, the store cannot be written, or other nodes may let the key in for a while.
    pub async fn revoke_key(&self, id_or_key: &str, by: &Actor) -> Result<KeyRecord, AccountError> {
        let row = self.registry.revoke_row(id_or_key, by).await?;
        self.keys.revoke(&row).await;
        self.confirm_or_note(Need::Everywhere, by, (AuditAction::KeyRevoked, &row.id, &row.hint))
            .await?;
        Ok(registry::key_record(row))
    }

    /// As [`Registry::rotate_key`].
    ///
    /// # Errors
    /// There is no such key, it has ended or is ending, the overlap is longer than 7 days, the account has or made too
    /// many keys.
    pub async fn rotate_key(
        &self,
        id_or_key: &str,
        overlap: Option<Duration>,
        by: &Actor,
    ) -> Result<Rotated, AccountError> {
        let overlap = overlap.filter(|overlap| !overlap.is_zero());
        let (secret, record) = self.registry.rotate_key(id_or_key, overlap, by).await?;
        let mut unread = None;
        for id in [Some(&record.id), record.rotated_from.as_ref()].into_iter().flatten() {
            unread = self.keys.refresh_key(id.as_str()).await.err().or(unread);
        }
        let need = overlap.map_or(Need::Everywhere, |_| Need::Soon);
        let old = record.rotated_from.as_ref().map_or("", |id| id.as_str());
        let done = registry::rotated(overlap, record.id.as_str());
        let confirmed = self.confirm_or_note(need, by, (AuditAction::KeyRotated, old, &done)).await;
        // The new key is shown once, so it is not lost over the old one's end.
        let unconfirmed = confirmed.err().or(unread.map(AccountError::from));
        Ok(Rotated { secret, record, unconfirmed })
    }

    /// Waits until a change is in force everywhere, and writes down where that is not known.
    async fn confirm_or_note(
        &self,
        need: Need,
        by: &Actor,
        (action, subject, detail): (AuditAction, &str, &str),
    ) -> Result<(), AccountError> {
        let confirmed = self.confirm(need).await;
        if confirmed.is_err()
            && let Err(error) =
                self.registry.note(by, action, subject, &not_confirmed(detail)).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "that a change is not confirmed is not in the audit log");
        }
        confirmed
    }

    /// An account's keys, oldest first, with how they stand.
    pub async fn keys_of(&self, account_id: &str) -> Result<Vec<KeyView>, AccountError> {
        let rows = self.store.keys_of(account_id).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// An account's keys that have not ended, oldest first, with how they stand.
    pub async fn live_keys_of(&self, account_id: &str) -> Result<Vec<KeyView>, AccountError> {
        let rows = self.store.live_keys_of(account_id, self.registry.now().as_millis()).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// An account's keys that have ended, those that ended last first, from one on and at most so many.
    pub async fn ended_keys_of(
        &self,
        account_id: &str,
        part: (u32, u32),
    ) -> Result<Vec<KeyView>, AccountError> {
        let now_ms = self.registry.now().as_millis();
        let rows = self.store.ended_keys_of(account_id, now_ms, part).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// A key of an account that is let in; `None` where it is not, or is somebody else's.
    pub async fn own_entry(
        &self,
        account_id: &str,
        key_id: &str,
    ) -> Result<Option<Arc<KeyEntry>>, AccountError> {
        let row = self.store.key(key_id).await?;
        let own = row.filter(|row| row.account_id.as_deref() == Some(account_id));
        let now = self.registry.now();
        // What the store says just now comes before what is in memory.
        let own = own.filter(|row| row.revoked_ms.or(row.suspended_ms).is_none());
        Ok(own.and_then(|row| self.keys.entry(&row.digest)).filter(|entry| entry.is_active(now)))
    }

    /// A key of anybody's with how it stands.
    pub async fn view_key(&self, id: &str) -> Result<Option<KeyView>, AccountError> {
        Ok(self.store.key(id).await?.map(|row| self.view(row)))
    }

    /// Keys with a text in what people know them by, the newest first, with how they stand; at most so many.
    pub async fn find_keys(&self, text: &str, max: u32) -> Result<Vec<KeyView>, AccountError> {
        let rows = self.store.find_keys(text, self.registry.now().as_millis(), max).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// The keys with the most requests today, the busiest first; none without any.
    pub async fn busiest_keys(&self, max: usize) -> Result<Vec<KeyView>, AccountError> {
        let now = self.registry.now();
        let mut used: Vec<(u32, KeyId)> = self
            .keys
            .to_write_down()
            .iter()
            .filter(|entry| entry.is_active(now))
            .map(|entry| (entry.meters.day(now).used, entry.grant.key_id.clone()))
            .filter(|(used, _)| *used > 0)
            .collect();
        used.sort_by(|one, other| (other.0, one.1.as_str()).cmp(&(one.0, other.1.as_str())));
        let mut views = Vec::new();
        for (_, id) in used.into_iter().take(max) {
            views.extend(self.view_key(id.as_str()).await?);
        }
        Ok(views)
    }

    fn view(&self, row: KeyRow) -> KeyView {
        let entry = self.keys.entry(&row.digest);
        let stored = row.last_used_ms.map(Timestamp::from_millis);
        let now = self.registry.now();
        let live = entry.as_ref().filter(|entry| entry.is_active(now));
        KeyView {
            last_used: entry.as_ref().and_then(|entry| entry.last_used()).or(stored),
            last_agent: entry
                .as_ref()
                .and_then(|entry| entry.counter.agent())
                .or_else(|| row.last_agent.clone()),
            standing: live.map(|entry| entry.meters.standing(now)),
            today: live.map(|entry| entry.meters.day(now)),
            suspended: row.suspended_ms.is_some(),
            record: registry::key_record(row),
        }
    }

    /// Writes down when keys were last used, so that a restart does not forget it.
    pub async fn record_key_uses(&self) -> Result<(), AccountError> {
        let uses = self.keys.take_unnoted_uses();
        if uses.is_empty() {
            return Ok(());
        }
        Ok(self.store.record_key_uses(&uses).await?)
    }

    /// As [`Registry::create_feed`].
    ///
    /// # Errors
    /// The name is out of its bounds or has a live token.
    pub async fn create_feed(
        &self,
        name: &str,
        bookmaker: Option<&str>,
        scores: Scores,
        by: &Actor,
    ) -> Result<(FeedToken, FeedRecord), AccountError> {
        let made = self.registry.create_feed(name, bookmaker, scores, by).await?;
        self.feeds.reload().await?;
        self.confirm(Need::Soon).await?;
        Ok(made)
    }

    /// As [`Registry::list_feeds`].
    pub async fn list_feeds(&self) -> Result<Vec<FeedRecord>, AccountError> {
        self.registry.list_feeds().await
    }

    /// As [`Registry::revoke_feed`]; the token lets nobody in once this has returned.
    ///
    /// # Errors
    /// There is no such feed.
    pub async fn revoke_feed(&self, name: &str, by: &Actor) -> Result<FeedRecord, AccountError> {
        let record = self.registry.revoke_feed(name, by).await?;
        self.feeds.reload().await?;
        self.confirm_or_note(Need::Everywhere, by, (AuditAction::FeedRevoked, name, "")).await?;
        Ok(record)
    }

    /// As [`Registry::pause_feed`]; in force once this has returned.
    ///
    /// # Errors
    /// There is no live feed of that name.
    pub async fn pause_feed(
        &self,
        name: &str,
        paused: bool,
        by: &Actor,
    ) -> Result<FeedRecord, AccountError> {
        let record = self.registry.pause_feed(name, paused, by).await?;
        self.feeds.reload().await?;
        let need = if paused { Need::Everywhere } else { Need::Soon };
        self.confirm_or_note(need, by, (registry::pause_deed(paused), name, "")).await?;
        Ok(record)
    }

    /// Whether the service is closed for maintenance, as last loaded or set.
    pub fn maintenance(&self) -> Maintenance {
        **self.maintenance.load()
    }

    /// Closes or opens the service.
    pub async fn set_maintenance(
        &self,
        maintenance: Maintenance,
        by: &Actor,
    ) -> Result<(), AccountError> {
        self.registry.set_maintenance(maintenance, by).await?;
        self.maintenance.store(Arc::new(maintenance));
        let need = match maintenance {
            Maintenance::On { .. } => Need::Everywhere,
            Maintenance::Off => Need::Soon,
        };
        let (action, detail) = maintenance.action();
        self.confirm_or_note(need, by, (action, "service", &detail)).await
    }
}
