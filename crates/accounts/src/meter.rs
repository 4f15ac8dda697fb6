//! Spending: the burst of a minute, and the quota of a day and a month together.
//!
//! A [`Meters`] belongs to a line of rotated keys. The request path takes one short lock and never waits
//! while there is something in hand; when there is not, it waits for the [`crate::LeaseWorker`].

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::Timestamp;
use store::{Lease, LeaseAsk, Unspent, UsageRow, Window};
use tokio::sync::{Notify, mpsc};

use crate::{
    Limits,
    slice::{Readiness, Slice},
    worker::Order,
};

/// How long a request waits for a lease before it is told that the service cannot count it.
const LEASE_WAIT: Duration = Duration::from_secs(2);

/// Where one window stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStanding {
    pub window: Window,
    pub limit: u32,
    pub used: u32,
    pub remaining: u32,
    pub resets_at: Timestamp,
}

/// Where a key stands: its burst, and the tightest of its quota windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub burst: WindowStanding,
    pub quota: WindowStanding,
}

/// Which limit was reached and when it opens again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub window: Window,
    pub limit: u32,
    /// At least 1.
    pub retry_after_s: u32,
}

/// What came of trying to spend without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    Granted(Standing),
    Refused(Refusal),
    /// Nothing in hand; a lease has been asked for.
    Dry,
}

/// What came of spending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    Granted(Standing),
    Refused(Refusal),
    /// The store gave no lease in time. Nothing was spent.
    Unavailable,
}

/// The counters of a line of rotated keys.
#[derive(Debug)]
pub struct Meters {
    id: Box<str>,
    state: Mutex<State>,
    /// Told after every refill, good or bad.
    refilled: Notify,
    orders: mpsc::Sender<Order>,
}

#[derive(Debug)]
struct State {
    minute: Slice,
    day: Slice,
    month: Option<Slice>,
    /// An order for these meters is with the worker. There is never more than one.
    ordered: bool,
    failures: u64,
    /// Leases have been given back; nothing is handed out any more.
    closed: bool,
}

impl Meters {
    pub(crate) fn new(
        id: &str,
        limits: Limits,
        usage: &[UsageRow],
        now: Timestamp,
        orders: mpsc::Sender<Order>,
    ) -> Self {
        let slice = |window, limit| slice_of(id, window, limit, usage, now);
        let state = State {
            minute: slice(Window::Minute, limits.burst_per_minute),
            day: slice(Window::Day, limits.requests_per_day),
            month: limits.requests_per_month.map(|limit| slice(Window::Month, limit)),
            ordered: false,
            failures: 0,
            closed: false,
        };
        Self { id: id.into(), state: Mutex::new(state), refilled: Notify::new(), orders }
    }

    /// Counts one request to the burst, without waiting.
    pub fn spend_burst(self: &Arc<Self>, now: Timestamp) -> Spend {
        self.spend(now, State::spend_burst)
    }

    /// Counts one request to the day and the month, to both or to neither, without waiting.
    pub fn spend_quota(self: &Arc<Self>, now: Timestamp) -> Spend {
        self.spend(now, State::spend_quota)
    }

    /// Counts one request to the burst, waiting for a lease where it must.
    pub async fn charge_burst(self: &Arc<Self>, now: Timestamp) -> Charge {
        self.charge(now, State::spend_burst).await
    }

    /// Counts one request to the day and the month, waiting for a lease where it must.
    pub async fn charge_quota(self: &Arc<Self>, now: Timestamp) -> Charge {
        self.charge(now, State::spend_quota).await
    }

    /// Follows limits that were changed: what is in hand beyond them is not handed out any more.
    pub(crate) fn set_limits(&self, limits: Limits, usage: &[UsageRow], now: Timestamp) {
        let mut state = self.lock();
        state.roll(now);
        state.minute.set_limit(limits.burst_per_minute);
        state.day.set_limit(limits.requests_per_day);
        match (&mut state.month, limits.requests_per_month) {
            (Some(month), Some(limit)) => month.set_limit(limit),
            (month @ None, Some(limit)) => {
                *month = Some(slice_of(&self.id, Window::Month, limit, usage, now));
            }
            (month, None) => *month = None,
        }
        drop(state);
        // Who waits at a limit that was raised need not wait any longer.
        self.refilled.notify_waiters();
    }

    /// Where the key stands; spends nothing.
    pub fn standing(&self, now: Timestamp) -> Standing {
        let mut state = self.lock();
        state.roll(now);
        state.standing()
    }

    /// Where the day's window stands, whichever window is the tightest; spends nothing.
    pub fn day(&self, now: Timestamp) -> WindowStanding {
        let mut state = self.lock();
        state.roll(now);
        state.day.standing()
    }

    fn spend(self: &Arc<Self>, now: Timestamp, how: fn(&mut State, Timestamp) -> Spend) -> Spend {
        let mut state = self.lock();
        if state.closed {
            return Spend::Dry;
        }
        state.roll(now);
        let spend = how(&mut state, now);
        if state.is_wanting() && !state.ordered {
            // A full queue is no harm: who runs dry waits for room in it, see `order`.
            state.ordered = self.orders.try_send(Order::Refill(Arc::clone(self))).is_ok();
        }
        spend
    }

    async fn charge(
        self: &Arc<Self>,
        now: Timestamp,
        how: fn(&mut State, Timestamp) -> Spend,
    ) -> Charge {
        match self.spend(now, how) {
            Spend::Granted(standing) => Charge::Granted(standing),
            Spend::Refused(refusal) => Charge::Refused(refusal),
            Spend::Dry => tokio::time::timeout(LEASE_WAIT, self.charge_when_refilled(now, how))
                .await
                .unwrap_or(Charge::Unavailable),
        }
    }

    async fn charge_when_refilled(
        self: &Arc<Self>,
        now: Timestamp,
        how: fn(&mut State, Timestamp) -> Spend,
    ) -> Charge {
        let failures = self.lock().failures;
        loop {
            let mut refilled = pin!(self.refilled.notified());
            // Listening starts before looking, so that a refill in between is not missed.
            refilled.as_mut().enable();
            match self.spend(now, how) {
                Spend::Granted(standing) => return Charge::Granted(standing),
                Spend::Refused(refusal) => return Charge::Refused(refusal),
                Spend::Dry => {}
            }
            if self.lock().failures != failures || !self.order().await {
                return Charge::Unavailable;
            }
            refilled.await;
        }
    }

    /// Makes sure an order is with the worker, waiting for room in its queue. `false`: none can be.
    async fn order(self: &Arc<Self>) -> bool {
        {
            let state = self.lock();
            if state.closed || state.ordered {
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

    /// What the worker should lease for these meters.
    pub fn asks(&self) -> Vec<LeaseAsk> {
        let mut state = self.lock();
        let asks: Vec<_> = state.slices().flat_map(|slice| slice.asks(&self.id)).collect();
        // Nothing to ask for any more (the window was refilled or left): the order is done.
        state.ordered = !asks.is_empty();
        drop(state);
        if asks.is_empty() {
            self.refilled.notify_waiters();
        }
        asks
    }

    /// Takes in what the worker leased, and says whether more is wanted by now.
    pub fn refill(&self, asks: &[LeaseAsk], leases: &[Lease], now: Timestamp) -> bool {
        let mut state = self.lock();
        for (ask, lease) in asks.iter().zip(leases) {
            state.slices().for_each(|slice| slice.refill(ask, *lease, now));
        }
        let again = state.is_wanting() && !state.closed;
        state.ordered = again;
        drop(state);
        self.refilled.notify_waiters();
        again
    }

    /// Lets everyone who waits know that there was no lease.
    pub fn fail(&self) {
        let mut state = self.lock();
        state.ordered = false;
        state.failures = state.failures.wrapping_add(1);
        drop(state);
        self.refilled.notify_waiters();
    }

    /// Stops handing out and gives up what is left.
    pub fn close(&self) -> Vec<Unspent> {
        let mut state = self.lock();
        state.closed = true;
        let unspent = state.slices().flat_map(|slice| slice.drain(&self.id)).collect();
        drop(state);
        self.refilled.notify_waiters();
        unspent
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change; a poisoned lock still holds true counts.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn slice_of(id: &str, window: Window, limit: u32, usage: &[UsageRow], now: Timestamp) -> Slice {
    let row = usage.iter().find(|row| row.meter_id == id && row.window == window);
    Slice::new(window, limit, row.map_or(0, |row| row.granted), now)
}

impl State {
    fn slices(&mut self) -> impl Iterator<Item = &mut Slice> {
        [&mut self.minute, &mut self.day].into_iter().chain(self.month.as_mut())
    }

    fn roll(&mut self, now: Timestamp) {
        self.slices().for_each(|slice| slice.roll(now));
    }

    fn is_wanting(&mut self) -> bool {
        self.slices().any(|slice| slice.is_wanted())
    }

    fn spend_burst(&mut self, now: Timestamp) -> Spend {
        match self.minute.readiness(now) {
            Readiness::Dry => Spend::Dry,
            Readiness::Spent => Spend::Refused(self.minute.refusal(now)),
            Readiness::Ready => {
                self.minute.take(now);
                Spend::Granted(self.standing())
            }
        }
    }

    fn spend_quota(&mut self, now: Timestamp) -> Spend {
        let day = self.day.readiness(now);
        let month = self.month.as_mut().map_or(Readiness::Ready, |month| month.readiness(now));
        match (&mut self.month, month, day) {
            // Both may be spent; the month is the one to wait for.
            (Some(slice), Readiness::Spent, _) => Spend::Refused(slice.refusal(now)),
            (_, _, Readiness::Spent) => Spend::Refused(self.day.refusal(now)),
            (_, Readiness::Ready, Readiness::Ready) => {
                self.day.take(now);
                if let Some(month) = &mut self.month {
                    month.take(now);
                }
                Spend::Granted(self.standing())
            }
            (_, Readiness::Dry, _) | (_, _, Readiness::Dry) | (None, Readiness::Spent, _) => {
                Spend::Dry
            }
        }
    }

    fn standing(&self) -> Standing {
        let day = self.day.standing();
        let month = self.month.as_ref().map(Slice::standing);
        let quota = month.filter(|month| month.remaining < day.remaining).unwrap_or(day);
        Standing { burst: self.minute.standing(), quota }
    }
}
