//! Counting requests: the burst of a minute, and the quota of a day and a month together.
//!
//! A [`Meters`] belongs to a key and its rotated successors, or to an account, whose day and month its keys of one
//! kind share. A request takes a short lock on each of the two and does not wait while a lease is left; otherwise it
//! waits for the [`crate::LeaseWorker`]. A key is always locked before its account.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::Timestamp;
use store::{Lease, LeaseRequest, Unspent, UsageRow, Window};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::{
    Limits,
    key::{grant::Quota, lease::WindowLease},
};

/// How long a request waits for a lease before it is `Unavailable`.
const LEASE_WAIT: Duration = Duration::from_secs(5);

/// The owner of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Key,
    /// All keys of one kind of the account together.
    Account,
}

/// The state of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStanding {
    pub owner: Owner,
    pub window: Window,
    pub limit: u32,
    pub used: u32,
    pub remaining: u32,
    pub resets_at: Timestamp,
}

/// The state of a key: its burst, and the tightest of its quota windows, those of its account included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub burst: WindowStanding,
    pub quota: WindowStanding,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub owner: Owner,
    pub window: Window,
    pub limit: u32,
    /// Remaining units of the window; fewer than were requested.
    pub remaining: u32,
    /// At least 1.
    pub retry_after_s: u32,
}

/// The result of spending without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    Granted(Standing),
    Refused(Refusal),
    /// No lease is left; one has been requested.
    NeedsLease,
}

impl Spend {
    /// The result, unless it depends on a lease.
    #[inline]
    pub fn settled(self) -> Option<Charge> {
        match self {
            Self::Granted(standing) => Some(Charge::Granted(standing)),
            Self::Refused(refusal) => Some(Charge::Refused(refusal)),
            Self::NeedsLease => None,
        }
    }
}

/// The result of spending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    Granted(Standing),
    Refused(Refusal),
    /// The store gave no lease in time. Nothing was spent.
    Unavailable,
}

/// A message to the [`crate::LeaseWorker`].
#[derive(Debug)]
pub(crate) enum Order {
    Refill(Arc<Meters>),
    Stop(oneshot::Sender<()>),
}

/// The counters of a key and its rotated successors, or of an account.
#[derive(Debug)]
pub struct Meters {
    id: Box<str>,
    /// The meters of the account, charged together with these.
    account: Option<Arc<Meters>>,
    state: Mutex<State>,
    /// Notified after every refill and every failure.
    refilled: Notify,
    orders: mpsc::Sender<Order>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Burst,
    /// This number of units.
    Quota(u32),
}

impl Count {
    /// Whether the account's windows also count it.
    fn is_shared(self) -> bool {
        matches!(self, Self::Quota(_))
    }
}

#[derive(Debug)]
struct State {
    /// `None` for the meters of an account.
    minute: Option<WindowLease>,
    day: WindowLease,
    month: Option<WindowLease>,
    /// An order for these meters is queued. There is never more than one.
    ordered: bool,
    failures: u64,
    /// Leases have been returned; nothing is granted any more.
    closed: bool,
}

impl Meters {
    pub(crate) fn new(
        id: &str,
        limits: Limits,
        account: Option<Arc<Self>>,
        usage: &[UsageRow],
        now: Timestamp,
        orders: mpsc::Sender<Order>,
    ) -> Self {
        let lease = |window, limit| window_lease(id, (Owner::Key, window), limit, usage, now);
        let minute = Some(lease(Window::Minute, limits.burst_per_minute));
        let day = lease(Window::Day, limits.requests_per_day);
        let month = limits.requests_per_month.map(|limit| lease(Window::Month, limit));
        Self::of_leases(id, account, (minute, day, month), orders)
    }

    /// The meters of an account.
    pub(crate) fn of_account(
        id: &str,
        quota: Quota,
        usage: &[UsageRow],
        now: Timestamp,
        orders: mpsc::Sender<Order>,
    ) -> Self {
        let lease = |window, limit| window_lease(id, (Owner::Account, window), limit, usage, now);
        let day = lease(Window::Day, quota.requests_per_day);
        let month = quota.requests_per_month.map(|limit| lease(Window::Month, limit));
        Self::of_leases(id, None, (None, day, month), orders)
    }

    fn of_leases(
        id: &str,
        account: Option<Arc<Self>>,
        (minute, day, month): (Option<WindowLease>, WindowLease, Option<WindowLease>),
        orders: mpsc::Sender<Order>,
    ) -> Self {
        let state = State { minute, day, month, ordered: false, failures: 0, closed: false };
        let (id, state) = (id.into(), Mutex::new(state));
        Self { id, account, state, refilled: Notify::new(), orders }
    }

    /// Counts one request to the burst without waiting. The result excludes the account.
    pub fn spend_burst(self: &Arc<Self>, now: Timestamp) -> Spend {
        self.spend(now, Count::Burst)
    }

    /// Counts `units` to the day and the month of the key and of its account: to all windows or to none. Never waits.
    pub fn spend_quota(self: &Arc<Self>, units: u32, now: Timestamp) -> Spend {
        self.spend(now, Count::Quota(units))
    }

    /// As [`Meters::spend_burst`]; waits for a lease if needed.
    pub async fn charge_burst(self: &Arc<Self>, now: Timestamp) -> Charge {
        self.charge(now, Count::Burst).await
    }

    /// As [`Meters::spend_quota`]; waits for a lease if needed.
    pub async fn charge_quota(self: &Arc<Self>, units: u32, now: Timestamp) -> Charge {
        self.charge(now, Count::Quota(units)).await
    }

    /// Applies changed limits: leased units beyond them are no longer granted.
    pub(crate) fn set_limits(&self, limits: Limits, usage: &[UsageRow], now: Timestamp) {
        let Limits { burst_per_minute, requests_per_day, requests_per_month } = limits;
        let quota = Quota { requests_per_day, requests_per_month };
        self.set(Some(burst_per_minute), quota, usage, now);
    }

    /// As [`Meters::set_limits`], for an account.
    pub(crate) fn set_quota(&self, quota: Quota, usage: &[UsageRow], now: Timestamp) {
        self.set(None, quota, usage, now);
    }

    fn set(&self, burst: Option<u32>, quota: Quota, usage: &[UsageRow], now: Timestamp) {
        let mut state = self.lock();
        state.roll(now);
        if let (Some(minute), Some(limit)) = (&mut state.minute, burst) {
            minute.set_limit(limit);
        }
        state.day.set_limit(quota.requests_per_day);
        let owner = state.day.owner();
        match (&mut state.month, quota.requests_per_month) {
            (Some(month), Some(limit)) => month.set_limit(limit),
            (month @ None, Some(limit)) => {
                *month = Some(window_lease(&self.id, (owner, Window::Month), limit, usage, now));
            }
            (month, None) => *month = None,
        }
        drop(state);
        // Requests that wait at a limit that was raised can continue.
        self.refilled.notify_waiters();
    }

    /// The state of the key; charges nothing.
    pub fn standing(&self, now: Timestamp) -> Standing {
        let mut state = self.lock();
        state.roll(now);
        let standing = state.standing();
        match &self.account {
            Some(account) => {
                let mut shared = account.lock();
                shared.roll(now);
                tightest(standing, shared.quota())
            }
            None => standing,
        }
    }

    /// The state of the key's own day; charges nothing.
    pub fn day(&self, now: Timestamp) -> WindowStanding {
        let mut state = self.lock();
        state.roll(now);
        state.day.standing()
    }

    fn spend(self: &Arc<Self>, now: Timestamp, count: Count) -> Spend {
        let mut state = self.lock();
        let account = self.account.as_ref().filter(|_| count.is_shared());
        let mut shared = account.map(|account| account.lock());
        if state.closed || shared.as_ref().is_some_and(|shared| shared.closed) {
            return Spend::NeedsLease;
        }
        state.roll(now);
        let spend = match (count, shared.as_deref_mut()) {
            (Count::Burst, _) => state.spend_burst(now),
            (Count::Quota(units), None) => state.spend_quota(units, now),
            (Count::Quota(units), Some(shared)) => {
                shared.roll(now);
                state.spend_both(shared, units, now)
            }
        };
        self.order_wanted(&mut state);
        if let (Some(account), Some(shared)) = (account, &mut shared) {
            account.order_wanted(shared);
        }
        spend
    }

    fn order_wanted(self: &Arc<Self>, state: &mut State) {
        if state.is_wanting() && !state.ordered {
            // A full queue does no harm: a request that needs a lease waits for a place, see `order`.
            state.ordered = self.orders.try_send(Order::Refill(Arc::clone(self))).is_ok();
        }
    }

    async fn charge(self: &Arc<Self>, now: Timestamp, count: Count) -> Charge {
        match self.spend(now, count).settled() {
            Some(charge) => charge,
            None => {
                let refilled = self.charge_when_refilled(now, count);
                tokio::time::timeout(LEASE_WAIT, refilled).await.unwrap_or(Charge::Unavailable)
            }
        }
    }

    async fn charge_when_refilled(self: &Arc<Self>, now: Timestamp, count: Count) -> Charge {
        let account = self.account.as_ref().filter(|_| count.is_shared());
        // Without an account, both are the key's own meters.
        let shared = account.unwrap_or(self);
        let failures = || [self, shared].map(|meters| meters.lock().failures);
        let failed_before = failures();
        loop {
            let (mut own, mut theirs) =
                (pin!(self.refilled.notified()), pin!(shared.refilled.notified()));
            // Listening starts before spending, so that a refill in between is not missed.
            own.as_mut().enable();
            theirs.as_mut().enable();
            if let Some(charge) = self.spend(now, count).settled() {
                return charge;
            }
            if failures() != failed_before || !self.order().await || !shared.order().await {
                return Charge::Unavailable;
            }
            tokio::select! {
                () = own => {}
                () = theirs => {}
            }
        }
    }

    /// Makes sure that an order is queued if a lease is needed; waits for a place in the queue. `false`: these meters
    /// or the worker are closed.
    async fn order(self: &Arc<Self>) -> bool {
        {
            let mut state = self.lock();
            if state.closed || state.ordered || !state.is_wanting() {
                return !state.closed;
            }
        }
        let Ok(room) = self.orders.reserve().await else {
            return false;
        };
        let mut state = self.lock();
        if !state.ordered {
            state.ordered = true;
            room.send(Order::Refill(Arc::clone(self)));
        }
        !state.closed
    }

    /// The leases that these meters need.
    pub fn asks(&self) -> Vec<LeaseRequest> {
        let mut state = self.lock();
        let asks: Vec<_> = state.leases().flat_map(|lease| lease.asks(&self.id)).collect();
        // No lease is needed any more (the window was refilled or is over): the order is done.
        state.ordered = !asks.is_empty();
        drop(state);
        if asks.is_empty() {
            self.refilled.notify_waiters();
        }
        asks
    }

    /// Adds leases and returns whether more are already needed.
    pub fn refill(&self, asks: &[LeaseRequest], leases: &[Lease], now: Timestamp) -> bool {
        let mut state = self.lock();
        for (ask, granted) in asks.iter().zip(leases) {
            state.leases().for_each(|lease| lease.refill(ask, *granted, now));
        }
        let again = state.is_wanting() && !state.closed;
        state.ordered = again;
        drop(state);
        self.refilled.notify_waiters();
        again
    }

    /// Wakes all waiting requests after a failed lease.
    pub fn fail(&self) {
        let mut state = self.lock();
        state.ordered = false;
        state.failures = state.failures.wrapping_add(1);
        drop(state);
        self.refilled.notify_waiters();
    }

    /// Stops granting and returns unspent units.
    pub fn close(&self) -> Vec<Unspent> {
        let mut state = self.lock();
        state.closed = true;
        let unspent = state.leases().flat_map(|lease| lease.drain(&self.id)).collect();
        drop(state);
        self.refilled.notify_waiters();
        unspent
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under the lock panics half-way through a change; a poisoned lock still holds correct counts.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn window_lease(
    id: &str,
    (owner, window): (Owner, Window),
    limit: u32,
    usage: &[UsageRow],
    now: Timestamp,
) -> WindowLease {
    let row = usage.iter().find(|row| row.meter_id == id && row.window == window);
    WindowLease::new((owner, window), limit, row.map_or(0, |row| row.granted), now)
}

fn not_granted(refusal: Option<Refusal>) -> Spend {
    refusal.map_or(Spend::NeedsLease, Spend::Refused)
}

/// The key's own window takes precedence when the account's is as tight.
fn tightest(standing: Standing, shared: WindowStanding) -> Standing {
    let own = standing.quota;
    Standing { quota: if shared.remaining < own.remaining { shared } else { own }, ..standing }
}

impl State {
    fn leases(&mut self) -> impl Iterator<Item = &mut WindowLease> {
        self.minute.iter_mut().chain([&mut self.day]).chain(self.month.as_mut())
    }

    fn roll(&mut self, now: Timestamp) {
        self.leases().for_each(|lease| lease.roll(now));
    }

    fn is_wanting(&mut self) -> bool {
        self.leases().any(|lease| lease.is_wanted())
    }

    fn spend_burst(&mut self, now: Timestamp) -> Spend {
        let ready = self.minute.as_mut().map_or(Ok(()), |minute| minute.check(1, now));
        ready.map_or_else(not_granted, |()| {
            self.minute.iter_mut().for_each(|minute| minute.take(1, now));
            Spend::Granted(self.standing())
        })
    }

    fn spend_quota(&mut self, units: u32, now: Timestamp) -> Spend {
        self.check(units, now).map_or_else(not_granted, |()| {
            self.take(units, now);
            Spend::Granted(self.standing())
        })
    }

    /// Charges both or neither.
    fn spend_both(&mut self, shared: &mut Self, units: u32, now: Timestamp) -> Spend {
        match (self.check(units, now), shared.check(units, now)) {
            // If both are exhausted, the one that resets last is reported.
            (Err(Some(own)), Err(Some(other))) => {
                let later = other.retry_after_s > own.retry_after_s;
                Spend::Refused(if later { other } else { own })
            }
            (Err(Some(refusal)), _) | (_, Err(Some(refusal))) => Spend::Refused(refusal),
            (Err(None), _) | (_, Err(None)) => Spend::NeedsLease,
            (Ok(()), Ok(())) => {
                self.take(units, now);
                shared.take(units, now);
                Spend::Granted(tightest(self.standing(), shared.quota()))
            }
        }
    }

    /// Whether the day and the month have `units` left. Requests a lease if that may help.
    fn check(&mut self, units: u32, now: Timestamp) -> Result<(), Option<Refusal>> {
        let day = self.day.check(units, now);
        let month = self.month.as_mut().map_or(Ok(()), |month| month.check(units, now));
        match (month, day) {
            // If both are exhausted, the month is reported.
            (Err(Some(refusal)), _) | (_, Err(Some(refusal))) => Err(Some(refusal)),
            (month, day) => month.and(day),
        }
    }

    fn take(&mut self, units: u32, now: Timestamp) {
        self.day.take(units, now);
        if let Some(month) = &mut self.month {
            month.take(units, now);
        }
    }

    /// The tighter of day and month.
    fn quota(&self) -> WindowStanding {
        let day = self.day.standing();
        let month = self.month.as_ref().map(WindowLease::standing);
        month.filter(|month| month.remaining < day.remaining).unwrap_or(day)
    }

    fn standing(&self) -> Standing {
        let burst = self.minute.as_ref().map_or_else(|| self.day.standing(), WindowLease::standing);
        Standing { burst, quota: self.quota() }
    }
}
