//! Where a stream waits: what it leaves with its group, so that the next events can be written to its client without
//! waking its task (`group`).
//!
//! While a stream is registered, its task writes nothing. Who writes for it holds the waiter's lock, and the task
//! leaves before it sends anything or lets go of its key: so the two never write at the same time, and nothing is
//! written after a key's end was waited for (S14). What is out of the ordinary (a socket that takes no more, a key that
//! has ended, a quota that needs a lease) is left to the task.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use accounts::{Charge, Maintenance};
use bytes::Bytes;
use domain::Timestamp;
use http::DirectSocket;
use tokio::time::Instant;

use super::render::Rendered;
use super::subscription::KeyRight;
use super::unread::Chunks;
use crate::context::Api;
use crate::position::LogPlace;

/// One of those who follow the same.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    state: Mutex<State>,
    /// Absent where only the task can write.
    socket: OnceLock<DirectSocket>,
}

/// What a stream leaves while it waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The key that it goes by, where it does.
    pub(super) right: Option<KeyRight>,
    /// Where it is.
    pub(super) place: LogPlace,
    /// The publication up to which the quota is paid.
    pub(super) paid: Timestamp,
    /// When its client was last sent something.
    pub(super) sent_at: Instant,
}

/// What its task has to send.
#[derive(Debug)]
pub(super) enum Given {
    /// Events that nothing was done about.
    Events(Arc<Rendered>),
    /// What a socket did not take of events that are paid for; the stream is where they lead to.
    Rest(Arc<Rendered>, Bytes),
}

#[derive(Debug, Default)]
struct State {
    /// While the stream is registered.
    waiting: Option<Waiting>,
    given: Option<Given>,
    waker: Option<Waker>,
    /// Whether the task has to look for itself.
    called: bool,
    /// Whether the task writes something of its own in the middle of the wait.
    paused: bool,
    /// What says that nothing happened, while the next events are made.
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

/// A stream that is registered, until this goes.
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

    /// Lets others write from now on.
    pub(super) fn register(&self, waiting: Waiting) -> Registered<'_> {
        let mut state = self.lock();
        (state.waiting, state.called, state.heartbeat) = (Some(waiting), false, None);
        Registered(self)
    }

    /// Keeps others from writing, also while the stream is registered. False where they have left the end of an event
    /// to the task: it has to be sent before anything else.
    pub(super) fn try_pause(&self) -> bool {
        let mut state = self.lock();
        state.paused = !matches!(state.given, Some(Given::Rest(..)));
        state.paused
    }

    pub(super) fn resume(&self) {
        self.lock().paused = false;
    }

    /// Has a heartbeat sent while the task makes the next events.
    pub(super) fn put_heartbeat(&self, heartbeat: Bytes) {
        self.lock().heartbeat = Some(heartbeat);
    }

    /// A heartbeat to send. Others are kept from writing meanwhile.
    pub(super) fn take_heartbeat(&self) -> Option<Bytes> {
        let mut state = self.lock();
        let heartbeat = state.heartbeat.take();
        state.paused |= heartbeat.is_some();
        heartbeat
    }

    /// Has the task look for itself.
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

    /// Writes events to who waits for them, or has the task do what is to be done. Whether they were written.
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
        // Nothing in there panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes events. `None`: the task has to do something.
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
    /// Whether the stream may be sent anything, as far as can be said here.
    fn may_go_to(&self, waiting: &Waiting) -> bool {
        let Some(KeyRight { entry, slot }) = &waiting.right else { return true };
        self.api.accounts.keys.is_confirmed(entry, self.now)
            // The slot is asked only where it matters: it is in memory that nothing else here needs.
            && (!self.api.accounts.streams.may_lose() || slot.is_held())
            && self.api.accounts.maintenance() == Maintenance::Off
    }

    /// Pays for changes, once for each publication. If not, nothing was spent.
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

    /// Lets nobody write any more.
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
