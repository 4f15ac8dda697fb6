//! State of a waiting stream that it leaves with its group, so that the next events can be written to its client
//! without waking its task (`group`).
//!
//! While a stream is registered, its task writes nothing. The group holds the waiter's lock while it writes, and the
//! task unregisters before it sends anything or releases its key: so the two never write at the same time, and nothing
//! is written after the wait for a key's end (S14). Exceptional cases (a full socket, a key that has ended, a quota
//! that needs a lease) are left to the task.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use accounts::{Charge, Maintenance};
use bytes::Bytes;
use domain::Timestamp;
use http::DirectSocket;
use tokio::time::Instant;

use super::render::Rendered;
use super::slots::KeyRight;
use super::unread::Chunks;
use crate::context::Api;
use crate::position::LogPlace;

/// One stream of a group.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    state: Mutex<State>,
    /// Unset if only the task can write.
    socket: OnceLock<DirectSocket>,
}

/// State of a registered stream.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The key of the stream, if it has one.
    pub(super) right: Option<KeyRight>,
    /// Position of the stream.
    pub(super) place: LogPlace,
    /// The publication up to which the quota is paid.
    pub(super) paid: Timestamp,
    /// Time of the last write to its client.
    pub(super) sent_at: Instant,
}

/// Events that the task has to send.
#[derive(Debug)]
pub(super) enum Given {
    /// Events that the group has not handled.
    Events(Arc<Rendered>),
    /// Remaining bytes of events that are already paid for; the position is after them.
    Rest(Arc<Rendered>, Bytes),
}

#[derive(Debug, Default)]
struct State {
    /// Set while the stream is registered.
    waiting: Option<Waiting>,
    given: Option<Given>,
    waker: Option<Waker>,
    /// True if the task has to check for itself.
    called: bool,
    /// True while the task writes something of its own during the wait.
    paused: bool,
    /// Heartbeat to send while the next events are made.
    heartbeat: Option<Bytes>,
}

/// The next events of a group, on their way to its waiters.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    pub(super) api: &'a Api,
    pub(super) from: LogPlace,
    pub(super) rendered: &'a Arc<Rendered>,
    pub(super) now: Timestamp,
    pub(super) instant: Instant,
}

/// A registration; ends when dropped.
#[derive(Debug)]
pub(super) struct Registered<'a>(&'a Waiter);

impl Waiter {
    pub(super) fn set_socket(&self, socket: DirectSocket) {
        // A stream has one connection.
        self.socket.set(socket).unwrap_or_default();
    }

    pub(super) fn socket(&self) -> Option<&DirectSocket> {
        self.socket.get()
    }

    /// Lets the group write from now on.
    pub(super) fn register(&self, waiting: Waiting) -> Registered<'_> {
        let mut state = self.lock();
        (state.waiting, state.called, state.heartbeat) = (Some(waiting), false, None);
        Registered(self)
    }

    /// Keeps the group from writing, even while the stream is registered. False if the rest of an event was left to
    /// the task: it has to be sent first.
    pub(super) fn try_pause(&self) -> bool {
        let mut state = self.lock();
        state.paused = !matches!(state.given, Some(Given::Rest(..)));
        state.paused
    }

    pub(super) fn resume(&self) {
        self.lock().paused = false;
    }

    /// Adds a heartbeat to send while the task makes the next events.
    pub(super) fn put_heartbeat(&self, heartbeat: Bytes) {
        self.lock().heartbeat = Some(heartbeat);
    }

    /// Takes a heartbeat to send, and keeps the group from writing meanwhile.
    pub(super) fn take_heartbeat(&self) -> Option<Bytes> {
        let mut state = self.lock();
        let heartbeat = state.heartbeat.take();
        state.paused |= heartbeat.is_some();
        heartbeat
    }

    /// Wakes the task to check for itself.
    pub(super) fn call(&self) {
        let waker = {
            let mut state = self.lock();
            state.called = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Writes events to a registered stream, or leaves them to its task. True if they were written.
    pub(super) fn deliver(&self, delivery: &Delivery<'_>) -> bool {
        let mut state = self.lock();
        if state.write(self.socket.get(), delivery).is_some() {
            return true;
        }
        state.called = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        false
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under the lock panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes events. `None` if the task has to act.
    fn write(&mut self, socket: Option<&DirectSocket>, delivery: &Delivery<'_>) -> Option<()> {
        let Delivery { from, rendered, .. } = delivery;
        if self.called || self.paused {
            return None;
        }
        let waiting = self.waiting.as_mut().filter(|waiting| waiting.place == *from)?;
        let chunk = match &rendered.chunks {
            Chunks::None => None,
            Chunks::One(chunk, _) if socket.is_some() && delivery.may_go_to(waiting) => Some(chunk),
            Chunks::One(..) | Chunks::Many(_) => {
                self.given = Some(Given::Events(Arc::clone(rendered)));
                return None;
            }
        };
        if let (Some(chunk), Some(socket)) = (chunk, socket) {
            if !delivery.is_paid_by(waiting) {
                self.given = Some(Given::Events(Arc::clone(rendered)));
                return None;
            }
            let sent = socket.send_now(&chunk.bytes);
            waiting.sent_at = delivery.instant;
            if sent < chunk.bytes.len() {
                self.given = Some(Given::Rest(Arc::clone(rendered), chunk.bytes.slice(sent..)));
            }
        }
        waiting.place = rendered.to;
        self.given.is_none().then_some(())
    }
}

impl Delivery<'_> {
    /// True if the stream may be sent anything, as far as the group can check.
    fn may_go_to(&self, waiting: &Waiting) -> bool {
        let Some(KeyRight { entry, slot }) = &waiting.right else { return true };
        self.api.accounts.keys.is_confirmed(entry, self.now)
            // The slot is checked only if it can be lost: it is in memory that nothing else here needs.
            && (!self.api.accounts.streams.may_lose() || slot.is_held())
            && self.api.accounts.maintenance() == Maintenance::Off
    }

    /// Charges changes, once for each publication. If false, nothing was charged.
    fn is_paid_by(&self, waiting: &mut Waiting) -> bool {
        let Rendered { has_changes, paid_until, .. } = **self.rendered;
        let Some(KeyRight { entry, .. }) = &waiting.right else { return true };
        if !has_changes || paid_until <= waiting.paid {
            return true;
        }
        let spend = entry.meters.spend_quota(1, self.now);
        let paid = matches!(spend.settled(), Some(Charge::Granted(_)));
        if paid {
            waiting.paid = paid_until;
        }
        paid
    }
}

impl Registered<'_> {
    /// Waits until the task has something to do.
    pub(super) async fn called(&self) {
        poll_fn(|context| {
            let mut state = self.0.lock();
            if state.called {
                return Poll::Ready(());
            }
            match &mut state.waker {
                Some(waker) => waker.clone_from(context.waker()),
                none @ None => *none = Some(context.waker().clone()),
            }
            Poll::Pending
        })
        .await;
    }

    /// Ends the registration.
    pub(super) fn leave(self) -> (Option<Waiting>, Option<Given>) {
        let mut state = self.0.lock();
        (state.waiting.take(), state.given.take())
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.waiting, state.waker) = (None, None);
    }
}
