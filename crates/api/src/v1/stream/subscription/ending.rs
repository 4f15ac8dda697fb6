//! When a stream has to end though it has nothing to send, or its client takes nothing (S14).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use accounts::{KeyEntry, KeyHold, KeyRefusal, Maintenance};
use http::Slot;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::Subscription;
use crate::context::Api;
use crate::error::{ApiError, ErrorCode};
use crate::v1::stream::end::End;
use crate::v1::stream::selection::Selection;
use crate::v1::stream::slots::StreamSlot;
use crate::v1::wire::stream::EndCode;
use crate::v1::{admit, closed, key_status_unknown};

/// How long a client that does not read may take to read that its stream has ended: whoever ended it waits meanwhile.
const END_TIME_MAX: Duration = Duration::from_secs(1);

/// What gives the right to a stream.
#[derive(Clone, Debug)]
pub(in crate::v1::stream) struct KeyRight {
    pub(in crate::v1::stream) entry: Arc<KeyEntry>,
    pub(in crate::v1::stream) slot: Arc<StreamSlot>,
}

/// What ends with a stream, and others wait for.
#[derive(Debug)]
pub(in crate::v1::stream) enum Held {
    /// Who ends the key waits for the stream.
    Key { _hold: KeyHold },
    /// A viewer's place.
    Place { _slot: Slot },
}

/// What is waited for while a client does not take what it was sent.
pub(super) enum Overdue {
    /// That the right to the stream may have changed.
    Change(Pin<Box<dyn Future<Output = ()> + Send + Sync>>),
    /// The stream has to end: that the client is given up.
    End(EndCode, Pin<Box<Sleep>>),
}

/// What gives the right to a stream, and says when that may have changed.
struct Right {
    api: Arc<Api>,
    key: Option<KeyRight>,
    endings: watch::Receiver<()>,
    losses: watch::Receiver<u64>,
}

impl Right {
    /// Takes the key as it is now.
    fn check(&mut self, selection: &Selection) -> Result<(), End> {
        if let Some(key) = &mut self.key {
            key.entry = key.check(&self.api, selection)?;
        }
        Ok(())
    }

    /// Waits until it may have changed.
    async fn change(&mut self) {
        let end = key_end(&self.api, self.key.as_ref());
        let expiry = async {
            match end {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        // A sender that went away is the end of the service.
        tokio::select! {
            _ = self.endings.changed() => {}
            _ = self.losses.changed() => {}
            () = expiry => {}
        }
    }
}

impl Subscription {
    /// Whether the key, its place among the key's streams, and maintenance allow the stream to go on.
    pub(super) fn check_right(&mut self) -> Result<(), End> {
        let Some(right) = &mut self.right else { return Ok(()) };
        let entry = right.check(&self.api, &self.selection)?;
        if !Arc::ptr_eq(&entry, &right.entry) {
            self._held = Held::Key { _hold: self.api.accounts.keys.hold(&entry) };
            right.entry = entry;
        }
        // It had to end, and may go on: maintenance was turned off again, or the key is confirmed again.
        self.overdue.take_if(|overdue| matches!(overdue, Overdue::End(..)));
        Ok(())
    }

    /// When the key ends, where that is known.
    pub(super) fn key_end(&self) -> Option<Instant> {
        key_end(&self.api, self.right.as_ref())
    }

    /// Comes back when the stream has to end. Heartbeats go on meanwhile.
    pub(super) fn ended(&self) -> impl Future<Output = End> + Send + use<> {
        let (mut right, selection) = (self.now_right(), Arc::clone(&self.selection));
        let (waiter, seconds) = (self.waiter(), self.heartbeat_s);
        let mut heartbeat_at = self.heartbeat_at();
        async move {
            loop {
                if let Err(end) = right.check(&selection) {
                    return end;
                }
                let now = Instant::now();
                if heartbeat_at <= now {
                    waiter.put_heartbeat(selection.transport.heartbeat(seconds));
                    heartbeat_at = now + Duration::from_secs(seconds.into());
                }
                tokio::select! {
                    () = right.change() => {}
                    () = sleep_until(heartbeat_at) => {}
                }
            }
        }
    }

    /// Ready when the stream had to end, and its client has taken neither that nor what came before for too long.
    pub(super) fn poll_end_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.overdue {
                Some(Overdue::Change(change)) => {
                    ready!(change.as_mut().poll(context));
                    self.overdue = None;
                }
                Some(Overdue::End(code, time)) => {
                    ready!(time.as_mut().poll(context));
                    self.end_code = Some(*code);
                    return Poll::Ready(());
                }
                None => {
                    // Before it is looked at: what changes afterwards is noticed.
                    let mut right = self.now_right();
                    self.overdue = Some(match self.check_right() {
                        Ok(()) => Overdue::Change(Box::pin(async move { right.change().await })),
                        Err(end) => Overdue::End(end.code, Box::pin(sleep(END_TIME_MAX))),
                    });
                }
            }
        }
    }

    /// The client has taken what it was sent. The time that it has for the end goes on.
    pub(super) fn note_taken(&mut self) {
        self.overdue.take_if(|overdue| matches!(overdue, Overdue::Change(_)));
    }

    fn now_right(&self) -> Right {
        let accounts = &self.api.accounts;
        Right {
            api: Arc::clone(&self.api),
            key: self.right.clone(),
            endings: accounts.endings(),
            losses: accounts.streams.losses(),
        }
    }
}

fn key_end(api: &Api, key: Option<&KeyRight>) -> Option<Instant> {
    let end = key?.entry.ends_at()?;
    Some(Instant::now() + end.since(api.clock.now()))
}

impl KeyRight {
    /// The key as it is now, where it still gives the right to a selection.
    fn check(&self, api: &Api, selection: &Selection) -> Result<Arc<KeyEntry>, End> {
        let Self { entry, slot } = self;
        if !slot.is_held() {
            return Err(End::uncounted());
        }
        if let Maintenance::On { retry_after_s } = api.accounts.maintenance() {
            return Err(closed(retry_after_s).into());
        }
        match api.accounts.keys.confirm(entry, api.clock.now()) {
            Ok(same) if Arc::ptr_eq(&same, entry) => Ok(same),
            Ok(other) => {
                for sport in selection.sports() {
                    admit(&other.grant, &api.catalogue, sport)?;
                }
                Ok(other)
            }
            Err(KeyRefusal::Unconfirmed) => Err(key_status_unknown().into()),
            Err(KeyRefusal::Unknown) => {
                let text = "the API key has ended";
                Err(ApiError::new(ErrorCode::AuthenticationFailed, text).into())
            }
        }
    }
}
