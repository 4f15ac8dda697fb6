//! Keys, grants, quota, feed tokens and people. Logic only: SQL is in `store`, HTTP in `serve`.
//!
//! [`Accounts`] is for a server: live keys and feeds in memory, and meters that spend from leases. [`Registry`] is
//! for a command-line process: the same operations on the store alone. [`People`] is for developers and operators:
//! sign-in, access requests and decisions.
//!
//! Every function that uses the store fails if the store does; `# Errors` lists the other cases.

mod error;
mod feed;
mod key;
mod people;
mod registry;
mod revocation;
mod simulation;

use std::{collections::HashSet, sync::Arc, time::Duration};

use domain::{Clock, Timestamp};
use store::{KeyRow, Store};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

pub use crate::{
    error::AccountError,
    feed::{FeedGrant, Feeds},
    key::{
        grant::{Grant, Limits},
        hold::KeyHold,
        lease_worker::{LeaseStats, LeaseWorker},
        meter::{Charge, Meters, Owner, Refusal, Spend, Standing, WindowStanding},
        ring::{ConnectionKey, KeyEntry, KeyRefusal, KeyRing},
        secret::{FeedToken, KeyId, KeySecret},
        stream_slots::{StreamRefusal, StreamSlot, StreamSlotStats, StreamSlots},
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
        key_lease::{MonotonicClock, SteadyClock},
        node::{Cluster, KeyLeaseStats},
        register::{RegisterError, RegisterFuture, RevocationRegister},
    },
    simulation::{KeyLeaseSimulation, MeterSimulation},
};
use crate::{
    key::{lease_worker::LeaseCounters, meter::Order, usage},
    registry::MaintenanceState,
    revocation::{key_lease::KeyLease, node::Member},
};
pub use store::{
    AccessState, Allowance, AuditFilter, CountRow, Digest as KeyDigest, KeyKind, LinkPurpose,
    Outcome, Role, Stage, Step, Window,
};

/// How long a release waits for the worker's last transaction: longer than the store waits for a lock.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// A key with its use and quota at this moment.
#[derive(Clone, Debug)]
pub struct KeyView {
    pub record: KeyRecord,
    pub last_used: Option<Timestamp>,
    /// The last `User-Agent` of its client.
    pub last_agent: Option<String>,
    /// Its burst and its tightest quota; `None` if the key is not active.
    pub standing: Option<Standing>,
    /// Requests spent of its day; `None` if the key is not active.
    pub today: Option<WindowStanding>,
    /// Refused while its account is suspended.
    pub suspended: bool,
}

/// A key that replaces another one.
#[derive(Debug)]
pub struct Rotated {
    pub secret: KeySecret,
    pub record: KeyRecord,
    /// Why the end of the old key may not be known to every node. The new key is valid, and shown only here.
    pub unconfirmed: Option<AccountError>,
}

/// The keys, feeds and maintenance of a server, in memory.
///
/// Each operation writes the store first and then memory: when it returns, the change holds here and on every other
/// node of a cluster.
#[derive(Debug)]
pub struct Accounts {
    pub keys: KeyRing,
    pub feeds: Feeds,
    /// The open streams of keys.
    pub streams: Arc<StreamSlots>,
    registry: Registry,
    maintenance: MaintenanceState,
    store: Store,
    orders: mpsc::Sender<Order>,
    counters: Arc<LeaseCounters>,
    writing: Mutex<usage::WriteState>,
    /// Alerts that are already stored, so that the store is not queried every minute.
    alerted: Mutex<HashSet<usage::AlertKey>>,
    /// `None`: a single process.
    member: Option<Member>,
}

impl Accounts {
    /// Loads everything from the store. Requests can be counted only while the worker runs.
    pub async fn load(
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, LeaseWorker), AccountError> {
        let (accounts, worker) =
            Self::assemble(store, clock, Arc::new(KeyLease::unbounded()), None);
        accounts.read_all().await?;
        Ok((accounts, worker))
    }

    /// Creates the value without reading the store.
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
        let streams = match &member {
            Some(member) => StreamSlots::shared(store.clone(), member.steady()),
            None => StreamSlots::default(),
        };
        let accounts = Self {
            streams: Arc::new(streams),
            keys: ring,
            feeds: Feeds::new(store.clone(), lease),
            registry: Registry::new(store.clone(), clock),
            maintenance: MaintenanceState::default(),
            store,
            orders,
            counters,
            writing: Mutex::default(),
            alerted: Mutex::default(),
            member,
        };
        (accounts, worker)
    }

    /// Reads the store again after another process wrote it. When this returns, every other node of a cluster has
    /// read it, too.
    ///
    /// # Errors
    /// Other nodes may not have read the change.
    pub async fn reload(&self) -> Result<(), AccountError> {
        self.read_all().await?;
        self.confirm(Need::Everywhere).await
    }

    async fn read_all(&self) -> Result<(), AccountError> {
        self.keys.reload().await?;
        self.read_rest().await
    }

    /// Reads the changes after a number.
    async fn catch_up(&self, number: i64) -> Result<(), AccountError> {
        self.keys.catch_up(number).await?;
        self.read_rest().await
    }

    /// Reads feeds and maintenance, which are few, as a whole.
    async fn read_rest(&self) -> Result<(), AccountError> {
        self.feeds.reload().await?;
        self.store_maintenance(self.registry.maintenance().await?);
        Ok(())
    }

    fn store_maintenance(&self, maintenance: Maintenance) {
        self.maintenance.set(maintenance);
        if maintenance != Maintenance::Off {
            self.keys.note_all_held();
            self.keys.endings.send_replace(());
        }
    }

    /// Notifies when keys have ended, their end times have changed, or maintenance has begun: holders of keys check
    /// them again.
    pub fn endings(&self) -> watch::Receiver<()> {
        self.keys.endings.subscribe()
    }

    pub fn leases(&self) -> LeaseStats {
        self.counters.figures()
    }

    /// Whether requests can be counted, as far as is known: for a single process, whether its last write to the store
    /// succeeded. A node of a cluster is judged by its key lease.
    pub fn can_count(&self) -> bool {
        self.member.is_some() || !self.counters.is_failing()
    }

    /// Counts one request to the key's burst. Waits only if it needs a lease.
    pub async fn charge_burst(&self, entry: &KeyEntry, now: Timestamp) -> Charge {
        match entry.meters.spend_burst(now).settled() {
            Some(charge) => charge,
            // Boxed, or every request would carry state that only the first of many needs.
            None => Box::pin(entry.meters.charge_burst(now)).await,
        }
    }

    /// Counts one request to the day and month of the key and of its account: to all windows or to none.
    pub async fn charge_quota(&self, entry: &KeyEntry, now: Timestamp) -> Charge {
        self.charge_credits(entry, 1, now).await
    }

    /// Counts several requests to the day and month of the key and of its account: all of them to all windows, or
    /// none.
    pub async fn charge_credits(&self, entry: &KeyEntry, credits: u32, now: Timestamp) -> Charge {
        match entry.meters.spend_quota(credits, now).settled() {
            Some(charge) => charge,
            None => Box::pin(entry.meters.charge_quota(credits, now)).await,
        }
    }

    /// Stops the worker and returns unspent leases, which are lost if the store fails. After this, no request can be
    /// charged, and a node of a cluster accepts no keys.
    pub async fn release(&self) -> Result<(), AccountError> {
        if let Err(error) = self.leave().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                event = "node.leave_failed",
                error,
                "node still listed; changes of keys wait for it a while"
            );
        }
        if let Err(error) = self.streams.close().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                event = "streams.release_failed",
                error,
                "streams of this node stay counted until its right expires"
            );
        }
        let (stopped, stop) = oneshot::channel();
        if self.orders.send(Order::Stop(stopped)).await.is_ok()
            && tokio::time::timeout(STOP_WAIT, stop).await.is_err()
        {
            tracing::warn!(
                event = "lease_worker.stop_timed_out",
                "lease worker did not stop in time; its last leases are lost"
            );
        }
        let unspent = self.keys.close().await;
        Ok(self.store.release(&unspent).await?)
    }

    /// As [`Registry::create_key`].
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

    /// Whether any key was ever created.
    pub async fn has_keys(&self) -> Result<bool, AccountError> {
        Ok(self.store.has_keys().await?)
    }

    /// As [`Registry::revoke_key`]; no node accepts the key once this has returned.
    pub async fn revoke_key(&self, id_or_key: &str, by: &Actor) -> Result<KeyRecord, AccountError> {
        let row = self.registry.revoke_row(id_or_key, by).await?;
        self.keys.revoke(&row).await;
        self.confirm_or_note(Need::Everywhere, by, (AuditAction::KeyRevoked, &row.id, &row.hint))
            .await?;
        Ok(registry::key_record(row))
    }

    /// As [`Registry::rotate_key`].
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
        // The new key is shown only once, so it is returned even if the old one's end is not confirmed.
        let unconfirmed = confirmed.err().or(unread.map(AccountError::from));
        Ok(Rotated { secret, record, unconfirmed })
    }

    /// As [`Registry::limit_key_streams`]; applies to streams opened after this has returned.
    pub async fn limit_key_streams(
        &self,
        id: &str,
        streams: Option<u32>,
        by: &Actor,
    ) -> Result<KeyRecord, AccountError> {
        let record = self.registry.limit_key_streams(id, streams, by).await?;
        self.keys.refresh_key(id).await?;
        let detail = registry::streams_text(streams);
        self.confirm_or_note(Need::Everywhere, by, (AuditAction::KeyLimited, id, &detail)).await?;
        Ok(record)
    }

    /// Waits until a change holds everywhere; logs it if that cannot be confirmed.
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
            tracing::warn!(
                event = "audit.failed",
                error,
                "unconfirmed change not in the audit log"
            );
        }
        confirmed
    }

    /// An account's keys, oldest first.
    pub async fn keys_of(&self, account_id: &str) -> Result<Vec<KeyView>, AccountError> {
        let rows = self.store.keys_of(account_id).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// An account's keys that have not ended, oldest first.
    pub async fn live_keys_of(&self, account_id: &str) -> Result<Vec<KeyView>, AccountError> {
        let rows = self.store.live_keys_of(account_id, self.registry.now().as_millis()).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// A range of an account's ended keys, latest end first: (first, number).
    pub async fn ended_keys_of(
        &self,
        account_id: &str,
        part: (u32, u32),
    ) -> Result<Vec<KeyView>, AccountError> {
        let now_ms = self.registry.now().as_millis();
        let rows = self.store.ended_keys_of(account_id, now_ms, part).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// An active key of an account; `None` if it is not active or belongs to another account.
    pub async fn own_entry(
        &self,
        account_id: &str,
        key_id: &str,
    ) -> Result<Option<Arc<KeyEntry>>, AccountError> {
        let row = self.store.key(key_id).await?;
        let own = row.filter(|row| row.account_id.as_deref() == Some(account_id));
        let now = self.registry.now();
        // The store may be newer than memory.
        let own = own.filter(|row| row.revoked_ms.or(row.suspended_ms).is_none());
        Ok(own.and_then(|row| self.keys.entry(&row.digest)).filter(|entry| entry.is_active(now)))
    }

    /// The key with this id, of any account.
    pub async fn view_key(&self, id: &str) -> Result<Option<KeyView>, AccountError> {
        Ok(self.store.key(id).await?.map(|row| self.view(row)))
    }

    /// At most `max` keys that match a text, newest first.
    pub async fn find_keys(&self, text: &str, max: u32) -> Result<Vec<KeyView>, AccountError> {
        let rows = self.store.find_keys(text, self.registry.now().as_millis(), max).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// The keys with the most requests today, busiest first; keys without requests are left out.
    pub async fn busiest_keys(&self, max: usize) -> Result<Vec<KeyView>, AccountError> {
        let now = self.registry.now();
        let mut used: Vec<(u32, KeyId)> = self
            .keys
            .with_usage()
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

    /// Stores when keys were last used.
    pub async fn record_key_uses(&self) -> Result<(), AccountError> {
        let uses = self.keys.take_unnoted_uses();
        if uses.is_empty() {
            return Ok(());
        }
        Ok(self.store.record_key_uses(&uses).await?)
    }

    /// As [`Registry::create_feed`].
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

    /// As [`Registry::revoke_feed`]; no node accepts the token once this has returned.
    pub async fn revoke_feed(&self, name: &str, by: &Actor) -> Result<FeedRecord, AccountError> {
        let record = self.registry.revoke_feed(name, by).await?;
        self.feeds.reload().await?;
        self.confirm_or_note(Need::Everywhere, by, (AuditAction::FeedRevoked, name, "")).await?;
        Ok(record)
    }

    /// As [`Registry::pause_feed`].
    pub async fn pause_feed(
        &self,
        name: &str,
        paused: bool,
        by: &Actor,
    ) -> Result<FeedRecord, AccountError> {
        let record = self.registry.pause_feed(name, paused, by).await?;
        self.feeds.reload().await?;
        let need = if paused { Need::Everywhere } else { Need::Soon };
        self.confirm_or_note(need, by, (registry::pause_action(paused), name, "")).await?;
        Ok(record)
    }

    /// As [`Registry::pause_adapter`]; the leader checks for it every second.
    pub async fn pause_adapter(
        &self,
        name: &str,
        paused: bool,
        by: &Actor,
    ) -> Result<(), AccountError> {
        self.registry.pause_adapter(name, paused, by).await
    }

    /// As [`Registry::ask_adapter_read`].
    pub async fn ask_adapter_read(&self, name: &str, by: &Actor) -> Result<(), AccountError> {
        self.registry.ask_adapter_read(name, by).await
    }

    /// Whether maintenance is on, as last loaded or set.
    pub fn maintenance(&self) -> Maintenance {
        self.maintenance.get()
    }

    /// Starts or ends maintenance.
    pub async fn set_maintenance(
        &self,
        maintenance: Maintenance,
        by: &Actor,
    ) -> Result<(), AccountError> {
        self.registry.set_maintenance(maintenance, by).await?;
        self.store_maintenance(maintenance);
        let need = match maintenance {
            Maintenance::On { .. } => Need::Everywhere,
            Maintenance::Off => Need::Soon,
        };
        let (action, detail) = maintenance.action();
        self.confirm_or_note(need, by, (action, "service", &detail)).await
    }
}
