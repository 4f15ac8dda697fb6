//! Ends of streams that have nothing to send, or whose client does not read (S14).

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
use crate::admission::refusal::{admit, closed, key_status_unknown};
use crate::context::Api;
use crate::error::{ApiError, ErrorCode};
use crate::v1::stream::end::End;
use crate::v1::stream::selection::Selection;
use crate::v1::stream::slots::KeyRight;

/// Maximum time for a client that does not read to receive the end: the request that ended it waits for this.
const END_TIME_MAX: Duration = Duration::from_secs(1);

/// Resources released with a stream, for which other tasks wait.
#[derive(Debug)]
pub(in crate::v1::stream) enum Held {
    /// The revocation of the key waits for the stream.
    Key { _hold: KeyHold },
    /// A viewer's slot.
    Place { _slot: Slot },
}

/// Pending event while a client does not accept bytes.
pub(super) enum Overdue {
    /// The right to the stream may change.
    Change(Pin<Box<dyn Future<Output = ()> + Send + Sync>>),
    /// The stream has to end: its client is dropped after the sleep, unless the right has returned.
    End(Pin<Box<Sleep>>),
}

/// The right to a stream, with notifications of changes.
struct Right {
    api: Arc<Api>,
    key: Option<KeyRight>,
    endings: watch::Receiver<()>,
    losses: watch::Receiver<u64>,
}

impl Right {
    /// Replaces the key with its current state.
    fn check(&mut self, selection: &Selection) -> Result<(), End> {
        if let Some(key) = &mut self.key {
            key.entry = key.check(&self.api, selection)?;
        }
        Ok(())
    }

    /// Waits until the right may have changed.
    async fn change(&mut self) {
        let end = key_end(&self.api, self.key.as_ref());
        let expiry = async {
            match end {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        // A closed channel means that the service ends.
        tokio::select! {
            _ = self.endings.changed() => {}
            _ = self.losses.changed() => {}
            () = expiry => {}
        }
    }
}

impl Subscription {
    /// Checks that the key, its slot and maintenance allow the stream to continue.
    pub(super) fn check_right(&mut self) -> Result<(), End> {
        let Some(right) = &mut self.right else { return Ok(()) };
        let entry = right.check(&self.api, &self.selection)?;
        if !Arc::ptr_eq(&entry, &right.entry) {
            self._held = Held::Key { _hold: self.api.accounts.keys.hold(&entry) };
            right.entry = entry;
        }
        // A pending end is cancelled: maintenance was turned off, or the key is confirmed again.
        self.overdue.take_if(|overdue| matches!(overdue, Overdue::End(..)));
        Ok(())
    }

    /// Expiry of the key, if it is known.
    pub(super) fn key_end(&self) -> Option<Instant> {
        key_end(&self.api, self.right.as_ref())
    }

    /// Resolves when the stream has to end. Heartbeats continue meanwhile. `sent_at`: time of the last bytes sent.
    pub(super) fn ended<'a>(
        &self,
        sent_at: &'a mut Instant,
    ) -> impl Future<Output = End> + Send + use<'a> {
        let (mut right, selection) = (self.now_right(), Arc::clone(&self.selection));
        let (waiter, seconds) = (self.waiter(), self.heartbeat_s);
        let (mut stopping, number) = (self.stopping.clone(), self.number);
        let interval = Duration::from_secs(seconds.into());
        async move {
            loop {
                // A connection of a service that stops is closed if its stream has nothing to send then.
                if *stopping.borrow() {
                    return End::stopping(number);
                }
                if let Err(end) = right.check(&selection) {
                    return end;
                }
                let now = Instant::now();
                if *sent_at + interval <= now {
                    waiter.put_heartbeat(selection.transport.heartbeat(seconds));
                    *sent_at = now;
                }
                tokio::select! {
                    () = right.change() => {}
                    _ = stopping.changed() => {}
                    () = sleep_until(*sent_at + interval) => {}
                }
            }
        }
    }

    /// Ready if the stream had to end and its client has not accepted the end, nor earlier bytes, for too long.
    pub(super) fn poll_end_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.overdue {
                Some(Overdue::Change(change)) => {
                    ready!(change.as_mut().poll(context));
                    self.overdue = None;
                }
                Some(Overdue::End(time)) => {
                    ready!(time.as_mut().poll(context));
                    // The right may have returned: maintenance was turned off, or the key is confirmed again.
                    if let Err(end) = self.check_right() {
                        self.end_code = Some(end.code);
                        return Poll::Ready(());
                    }
                    self.overdue = None;
                }
                None => {
                    // Subscribed before the check, so that later changes are noticed.
                    let mut right = self.now_right();
                    self.overdue = Some(match self.check_right() {
                        Ok(()) => Overdue::Change(Box::pin(async move { right.change().await })),
                        Err(_) => Overdue::End(Box::pin(sleep(END_TIME_MAX))),
                    });
                }
            }
        }
    }

    /// The client has accepted bytes. The time limit of a pending end continues.
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
    /// The current state of the key, if it still gives the right to a selection.
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
