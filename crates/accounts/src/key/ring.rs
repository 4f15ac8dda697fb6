//! The key ring: every live key in memory, found by its digest, without SQL and without a lock.
//!
//! The store is authoritative. A change of a key is written to the store first; then the ring reads it
//! ([`KeyRing::reload`], [`KeyRing::refresh_key`]). Ended keys are not in memory, and neither are meters that no key
//! uses any more: their leases are returned.

#[cfg(test)]
mod test_entry;

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use domain::{Clock, Timestamp};
use store::{Digest, KeyRow, KeyUse, Store, StoreError, Unspent, UsageRow, WindowStarts};
use tokio::sync::{Mutex, mpsc, watch};

use crate::{
    Grant, KeySecret,
    key::{
        grant::{grant, limits, quota, shared_meter_id},
        hold::{Holders, KeyHold},
        meter::{Meters, Order},
        usage_counter::{Call, Failure, FailureCount, UsageCounter},
        window,
    },
    revocation::key_lease::KeyLease,
};

/// Up to this many rows, usage is read meter by meter; above it, all usage is read at once.
const FEW_ROWS: usize = 32;
/// The precision of the last use of a key.
const USE_STEP_MS: i64 = 1000;
const NEVER_MS: i64 = i64::MIN;
/// The end of a key without one.
const NEVER_ENDS_MS: i64 = i64::MAX;

/// A live key. Long-lived holders (streams) check [`KeyEntry::is_active`] repeatedly.
#[derive(Debug)]
pub struct KeyEntry {
    pub grant: Grant,
    pub meters: Arc<Meters>,
    /// The text that an interface sends about the grant with every response, rendered once.
    pub grant_text: OnceLock<Box<[u8]>>,
    revoked_from_ms: AtomicI64,
    /// The last use; [`NEVER_MS`] before the first.
    used_ms: AtomicI64,
    /// The last use that was stored.
    noted_ms: AtomicI64,
    /// Number of holders beyond a single request.
    pub(crate) held: AtomicUsize,
    /// Shared with the entry that replaces this one.
    pub(crate) counter: Arc<UsageCounter>,
}

impl KeyEntry {
    pub fn is_active(&self, now: Timestamp) -> bool {
        now.as_millis() < self.revoked_from_ms.load(Ordering::SeqCst)
    }

    /// When it ends, if that is known: a rotated key with an overlap.
    pub fn ends_at(&self) -> Option<Timestamp> {
        let from_ms = self.revoked_from_ms.load(Ordering::SeqCst);
        (from_ms != NEVER_ENDS_MS).then(|| Timestamp::from_millis(from_ms))
    }

    /// The last use, to the second.
    pub fn last_used(&self) -> Option<Timestamp> {
        let used_ms = self.used_ms.load(Ordering::Relaxed);
        (used_ms != NEVER_MS).then(|| Timestamp::from_millis(used_ms))
    }

    /// Counts a request with this key.
    pub fn count(&self, call: Call<'_>, now: Timestamp) {
        self.note_use(now);
        self.counter.count(call, now);
    }

    /// Keeps a failed request.
    pub fn note_failure(&self, failure: Failure) {
        self.counter.fail(failure);
    }

    /// One-second precision is enough, and saves a write to the cache line on every request of a busy key.
    fn note_use(&self, now: Timestamp) {
        let now_ms = now.as_millis();
        if now_ms.saturating_sub(self.used_ms.load(Ordering::Relaxed)) >= USE_STEP_MS {
            self.used_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// The last use if it is not stored yet; it is then marked as stored.
    fn take_unnoted_use(&self) -> Option<KeyUse> {
        let used_ms = self.used_ms.load(Ordering::Relaxed);
        (self.noted_ms.swap(used_ms, Ordering::Relaxed) != used_ms).then(|| KeyUse {
            id: self.grant.key_id.as_str().to_owned(),
            used_ms,
            agent: self.counter.agent(),
        })
    }

    /// Whether the last use is stored.
    fn is_noted(&self) -> bool {
        self.noted_ms.load(Ordering::Relaxed) == self.used_ms.load(Ordering::Relaxed)
    }

    /// Updates when the key ends. Returns whether that time changed.
    fn follow(&self, row: &KeyRow) -> bool {
        let from_ms = revoked_from_ms(row);
        self.revoked_from_ms.swap(from_ms, Ordering::SeqCst) != from_ms
    }
}

/// Why a key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRefusal {
    /// Malformed, unknown or ended; which of them is not disclosed.
    Unknown,
    /// This node has no key lease: another node can answer now, or this one after a renewal.
    Unconfirmed,
}

/// The last key used on a connection.
#[derive(Debug, Default)]
pub struct ConnectionKey(Option<(KeySecret, Arc<KeyEntry>)>);

/// Digests are random already: their first eight bytes serve as the hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrefixHasher(u64);

impl Hasher for PrefixHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(prefix) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*prefix);
        }
    }

    /// The length of the digest, which is constant.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) type DigestMap<T> = HashMap<Digest, T, BuildHasherDefault<PrefixHasher>>;

type MeterMap = HashMap<String, Arc<Meters>>;

/// Every live key.
#[derive(Debug)]
pub struct KeyRing {
    keys: ArcSwap<DigestMap<Arc<KeyEntry>>>,
    store: Store,
    clock: Arc<dyn Clock>,
    orders: mpsc::Sender<Order>,
    /// Meters of keys and of accounts. Locked while the store is read, so that an older read never overwrites a newer
    /// one.
    meters: Mutex<MeterMap>,
    /// Ended keys whose usage is not stored yet.
    retired: std::sync::Mutex<Vec<Arc<KeyEntry>>>,
    failures: Arc<FailureCount>,
    lease: Arc<KeyLease>,
    /// Notified after keys have ended, or their end times have changed.
    pub(crate) endings: watch::Sender<()>,
    pub(crate) holders: Holders,
}

impl KeyRing {
    pub(crate) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        orders: mpsc::Sender<Order>,
        lease: Arc<KeyLease>,
    ) -> Self {
        Self {
            lease,
            keys: ArcSwap::default(),
            store,
            clock,
            orders,
            meters: Mutex::new(HashMap::new()),
            retired: std::sync::Mutex::default(),
            failures: Arc::default(),
            endings: watch::Sender::new(()),
            holders: Holders::default(),
        }
    }

    /// Finds a key by its text.
    ///
    /// The lookup does not compare digests in constant time: it could disclose the first bytes of a digest, and a
    /// client cannot choose a key with a given digest.
    ///
    /// # Errors
    /// It is not a live key, or this node has no key lease.
    pub fn authenticate(&self, text: &[u8], now: Timestamp) -> Result<Arc<KeyEntry>, KeyRefusal> {
        let digest = KeySecret::parse(text).ok_or(KeyRefusal::Unknown)?.digest();
        // Checked before the keys are read: see `KeyLease::holds`.
        if !self.lease.holds() {
            return Err(KeyRefusal::Unconfirmed);
        }
        let keys = self.keys.load();
        let entry = keys.get(&digest).filter(|entry| entry.is_active(now));
        let entry = entry.ok_or(KeyRefusal::Unknown)?;
        entry.note_use(now);
        Ok(Arc::clone(entry))
    }

    /// The live key with this digest, without counting a use.
    pub(crate) fn entry(&self, digest: &Digest) -> Option<Arc<KeyEntry>> {
        self.keys.load().get(digest).map(Arc::clone)
    }

    /// The last uses that are not stored yet.
    pub(crate) fn take_unnoted_uses(&self) -> Vec<KeyUse> {
        self.with_usage().iter().filter_map(|entry| entry.take_unnoted_use()).collect()
    }

    /// As [`KeyRing::authenticate`], for a connection: a repeated key needs no digest and no lookup, since the entry
    /// itself shows when the key ends.
    ///
    /// # Errors
    /// As [`KeyRing::authenticate`].
    pub fn authenticate_again(
        &self,
        text: &[u8],
        now: Timestamp,
        last: &mut ConnectionKey,
    ) -> Result<Arc<KeyEntry>, KeyRefusal> {
        // An ended entry may have a successor with another grant.
        if let Some((secret, entry)) = &last.0
            && secret.is(text)
            && self.lease.holds()
            && entry.is_active(now)
        {
            return Ok(Arc::clone(entry));
        }
        let entry = self.authenticate(text, now)?;
        last.0 = KeySecret::parse(text).map(|secret| (secret, Arc::clone(&entry)));
        Ok(entry)
    }

    /// Checks a key that was accepted before, for a long-lived holder: returns the same entry, or the one that
    /// replaced it with another grant.
    ///
    /// # Errors
    /// As [`KeyRing::authenticate`].
    pub fn confirm(
        &self,
        entry: &Arc<KeyEntry>,
        now: Timestamp,
    ) -> Result<Arc<KeyEntry>, KeyRefusal> {
        if self.is_confirmed(entry, now) {
            return Ok(Arc::clone(entry));
        }
        if !self.lease.holds() {
            return Err(KeyRefusal::Unconfirmed);
        }
        let is_same = |held: &&Arc<KeyEntry>| held.grant.key_id == entry.grant.key_id;
        let keys = self.keys.load();
        let held = keys.values().find(is_same).filter(|held| held.is_active(now));
        held.map(Arc::clone).ok_or(KeyRefusal::Unknown)
    }

    /// Whether [`KeyRing::confirm`] would give the same entry, without looking for one that replaced it.
    pub fn is_confirmed(&self, entry: &KeyEntry, now: Timestamp) -> bool {
        self.lease.holds() && entry.is_active(now)
    }

    /// The number of live keys.
    pub fn len(&self) -> usize {
        self.keys.load().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads all keys from the store. On failure nothing changes.
    pub async fn reload(&self) -> Result<(), StoreError> {
        let mut meters = self.meters.lock().await;
        let now = self.clock.now();
        let rows = self.store.live_keys(now.as_millis()).await?;
        let usage = self.store.usage(window::starts(now), None).await?;
        let live: HashSet<Digest> = rows.iter().map(|row| row.digest).collect();
        self.follow(&mut meters, &rows, &usage, now);
        self.remove_ended(|entry_digest, _| !live.contains(entry_digest));
        Ok(())
    }

    /// Reads the keys that were changed after a number. On failure nothing changes.
    pub(crate) async fn catch_up(&self, number: i64) -> Result<(), StoreError> {
        let mut meters = self.meters.lock().await;
        let rows = self.store.keys_changed_after(number).await?;
        let now = self.clock.now();
        let starts = window::starts(now);
        let mut usage = Vec::new();
        if rows.len() > FEW_ROWS {
            usage = self.store.usage(starts, None).await?;
        } else {
            for row in &rows {
                usage.extend(self.usage_of(row, starts).await?);
            }
        }
        self.follow(&mut meters, &rows, &usage, now);
        Ok(())
    }

    /// The usage of the meters of a key.
    async fn usage_of(
        &self,
        row: &KeyRow,
        starts: WindowStarts,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let mut usage = self.store.usage(starts, Some(&row.meter_id)).await?;
        if let Some(shared) = shared_meter_id(row) {
            usage.extend(self.store.usage(starts, Some(&shared)).await?);
        }
        Ok(usage)
    }

    /// Applies rows, all at once.
    fn follow(&self, meters: &mut MeterMap, rows: &[KeyRow], usage: &[UsageRow], now: Timestamp) {
        if rows.is_empty() {
            return;
        }
        // Grouped by meter, or every new meter would search all usage.
        let mut by_meter: HashMap<&str, Vec<UsageRow>> = HashMap::new();
        for row in usage {
            by_meter.entry(row.meter_id.as_str()).or_default().push(row.clone());
        }
        let mut keys = DigestMap::clone(&self.keys.load());
        let (mut replaced, mut changed) = (Vec::new(), false);
        for row in rows {
            if now.as_millis() >= revoked_from_ms(row) {
                if let Some(entry) = keys.remove(&row.digest) {
                    changed = true;
                    // The entry is updated too: a stream may hold it.
                    entry.follow(row);
                    self.holders.note([&entry]);
                    self.retire(entry);
                }
            } else {
                let own = self.meters_for(meters, row, &by_meter, now);
                match self.apply(&mut keys, row, own) {
                    Applied::Ends { otherwise } => changed |= otherwise,
                    Applied::New => {}
                    Applied::Replaced(entry) => replaced.push(entry),
                }
            }
        }
        self.keys.store(Arc::new(keys));
        end_all(&replaced);
        self.holders.note(&replaced);
        if changed || !replaced.is_empty() {
            self.endings.send_replace(());
        }
    }

    /// Reads one key from the store. On failure nothing changes.
    pub async fn refresh_key(&self, id: &str) -> Result<(), StoreError> {
        let mut meters = self.meters.lock().await;
        let Some(row) = self.store.key(id).await? else {
            return Ok(());
        };
        let now = self.clock.now();
        let usage = self.usage_of(&row, window::starts(now)).await?;
        self.follow(&mut meters, &[row], &usage, now);
        Ok(())
    }

    /// Removes a key that is revoked in the store. Cannot fail, since it reads nothing.
    pub(crate) async fn revoke(&self, row: &KeyRow) {
        let _following = self.meters.lock().await;
        let mut keys = DigestMap::clone(&self.keys.load());
        if let Some(entry) = keys.remove(&row.digest) {
            entry.follow(row);
            self.keys.store(Arc::new(keys));
            self.holders.note([&entry]);
            self.retire(entry);
            self.endings.send_replace(());
        }
    }

    /// Registers a holder that uses a key for longer than one request: a change that ends the key waits until this is
    /// dropped.
    pub fn hold(&self, entry: &Arc<KeyEntry>) -> KeyHold {
        self.holders.hold(entry)
    }

    /// Notes every held key: all holders have to notice a change.
    pub(crate) fn note_all_held(&self) {
        self.holders.note(self.keys.load().values());
    }

    /// Removes keys that have expired.
    pub(crate) async fn drop_expired(&self) {
        let now = self.clock.now();
        if self.keys.load().values().all(|entry| entry.is_active(now)) {
            return;
        }
        let _following = self.meters.lock().await;
        self.remove_ended(|_, entry| !entry.is_active(now));
    }

    /// Removes ended keys. The caller holds the lock on the meters.
    fn remove_ended(&self, ended: impl Fn(&Digest, &KeyEntry) -> bool) {
        let mut keys = DigestMap::clone(&self.keys.load());
        let out: Vec<Arc<KeyEntry>> =
            keys.extract_if(|digest, entry| ended(digest, entry)).map(|(_, entry)| entry).collect();
        if out.is_empty() {
            return;
        }
        // Added to the retired keys first: a concurrent reader of both finds each key in at least one.
        self.retired().extend(out.iter().map(Arc::clone));
        self.keys.store(Arc::new(keys));
        end_all(&out);
        self.holders.note(&out);
        self.endings.send_replace(());
    }

    /// Removes meters that no key uses any more, and returns their unspent leases.
    pub(crate) async fn drop_idle_meters(&self) -> Vec<Unspent> {
        let mut meters = self.meters.lock().await;
        let mut unspent = Vec::new();
        // A second pass for accounts: the meters of their last key hold them.
        for _ in 0..2 {
            let idle = meters.extract_if(|_, meters| Arc::strong_count(meters) == 1);
            unspent.extend(idle.flat_map(|(_, meters)| meters.close()));
        }
        unspent
    }

    /// The number of meters in memory, of keys and of accounts.
    pub async fn meter_count(&self) -> usize {
        self.meters.lock().await.len()
    }

    /// Every key that may have usage to store.
    pub(crate) fn with_usage(&self) -> Vec<Arc<KeyEntry>> {
        let entries = self.keys.load().values().map(Arc::clone).collect();
        self.with_retired(entries, |_| true)
    }

    /// The entries that may have usage to store and belong to these rows.
    pub(crate) fn with_usage_of(&self, rows: &[KeyRow]) -> Vec<Arc<KeyEntry>> {
        let keys = self.keys.load();
        let entries = rows.iter().filter_map(|row| keys.get(&row.digest)).map(Arc::clone).collect();
        let ids: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        self.with_retired(entries, |entry| ids.contains(entry.grant.key_id.as_str()))
    }

    fn with_retired(
        &self,
        mut entries: Vec<Arc<KeyEntry>>,
        wanted: impl Fn(&KeyEntry) -> bool,
    ) -> Vec<Arc<KeyEntry>> {
        let retired = self.retired();
        // A key that retires between the two reads is in both, and would be counted twice.
        let held: HashSet<*const KeyEntry> = match retired.is_empty() {
            true => HashSet::new(),
            false => entries.iter().map(Arc::as_ptr).collect(),
        };
        let more = retired.iter().filter(|entry| !held.contains(&Arc::as_ptr(entry)));
        entries.extend(more.filter(|entry| wanted(entry)).map(Arc::clone));
        entries
    }

    /// Removes retired keys without holders, whose counts can no longer change.
    pub(crate) fn forget_retired(&self) {
        let now = self.clock.now();
        let is_idle = |entry: &Arc<KeyEntry>| {
            Arc::strong_count(entry) == 1
                && entry.is_noted()
                && entry.counter.pending(now).is_empty()
        };
        self.retired().retain(|entry| !is_idle(entry));
    }

    fn retired(&self) -> std::sync::MutexGuard<'_, Vec<Arc<KeyEntry>>> {
        self.retired.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn retire(&self, entry: Arc<KeyEntry>) {
        self.retired().push(entry);
    }

    /// Stops all meters and returns their unspent leases.
    pub(crate) async fn close(&self) -> Vec<Unspent> {
        self.meters.lock().await.values().flat_map(|meters| meters.close()).collect()
    }

    fn meters_for(
        &self,
        meters: &mut MeterMap,
        row: &KeyRow,
        usage: &HashMap<&str, Vec<UsageRow>>,
        now: Timestamp,
    ) -> Arc<Meters> {
        let usage = |id: &str| usage.get(id).map_or(&[][..], Vec::as_slice);
        let shared = shared_meter_id(row).zip(quota(row)).map(|(id, quota)| {
            let id = id.as_str();
            let new = || Meters::of_account(id, quota, usage(id), now, self.orders.clone()).into();
            let shared = meters.entry(id.to_owned()).or_insert_with(new);
            shared.set_quota(quota, usage(id), now);
            Arc::clone(shared)
        });
        let (id, limits) = (row.meter_id.as_str(), limits(row));
        let new = || Meters::new(id, limits, shared, usage(id), now, self.orders.clone()).into();
        let own = meters.entry(id.to_owned()).or_insert_with(new);
        own.set_limits(limits, usage(id), now);
        Arc::clone(own)
    }

    /// Adds a live key of the store to the map.
    fn apply(
        &self,
        keys: &mut DigestMap<Arc<KeyEntry>>,
        row: &KeyRow,
        meters: Arc<Meters>,
    ) -> Applied {
        let held = keys.get(&row.digest).map(Arc::clone);
        let now_granted = grant(row);
        let replaced = match held {
            Some(entry) if entry.grant == now_granted => {
                // The entry is updated too: a stream may hold it.
                return Applied::Ends { otherwise: entry.follow(row) };
            }
            held => held,
        };
        let used_ms = replaced.as_ref().and_then(|entry| entry.last_used());
        let used_ms = used_ms.map(Timestamp::as_millis).or(row.last_used_ms);
        let counter = replaced.as_ref().map(|entry| Arc::clone(&entry.counter));
        let entry = KeyEntry {
            grant: now_granted,
            meters,
            grant_text: OnceLock::new(),
            revoked_from_ms: AtomicI64::new(revoked_from_ms(row)),
            used_ms: AtomicI64::new(used_ms.unwrap_or(NEVER_MS)),
            held: AtomicUsize::new(0),
            noted_ms: AtomicI64::new(row.last_used_ms.unwrap_or(NEVER_MS)),
            counter: counter
                .unwrap_or_else(|| Arc::new(UsageCounter::new(Arc::clone(&self.failures)))),
        };
        keys.insert(row.digest, Arc::new(entry));
        replaced.map_or(Applied::New, Applied::Replaced)
    }
}

/// The result of applying a live key of the store.
enum Applied {
    New,
    /// It is unchanged, except perhaps for the time at which it ends.
    Ends {
        otherwise: bool,
    },
    /// Its grant changed: this entry has to be ended once the new map is stored.
    Replaced(Arc<KeyEntry>),
}

/// Ends these entries: their holders have to look up their key again.
fn end_all(entries: &[Arc<KeyEntry>]) {
    for entry in entries {
        entry.revoked_from_ms.store(i64::MIN, Ordering::SeqCst);
    }
}

/// A revocation applies regardless of the clock: the clock that stamped it may be ahead of ours.
fn revoked_from_ms(row: &KeyRow) -> i64 {
    match (row.revoked_ms.or(row.suspended_ms), row.expires_ms) {
        (Some(_), _) => i64::MIN,
        (None, Some(expires_ms)) => expires_ms,
        (None, None) => NEVER_ENDS_MS,
    }
}
