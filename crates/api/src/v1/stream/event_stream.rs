//! A stream as the body of a connection.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{DirectSocket, SourceBody, StreamBody};
use tokio::sync::watch;

use super::subscription::Subscription;
use super::waiter::Waiter;

#[derive(Debug)]
pub(super) struct EventStream {
    body: SourceBody<Subscription>,
    waiter: Arc<Waiter>,
}

impl EventStream {
    pub(super) fn new(subscription: Subscription) -> Self {
        let (sender, slow) = watch::channel(false);
        let waiter = subscription.waiter();
        Self { body: SourceBody::new(subscription.noting(slow), sender), waiter }
    }

    /// Keeps other tasks from writing while something other than events is sent. False if an event is partly sent: its
    /// rest comes first. Other tasks may continue with the next call of `poll_next`.
    pub(super) fn try_pause(&self) -> bool {
        self.waiter.try_pause()
    }
}

impl StreamBody for EventStream {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.waiter.resume();
        let next = self.body.poll_next(context);
        if next.is_pending()
            && let Some(heartbeat) = self.waiter.take_heartbeat()
        {
            return Poll::Ready(Some(heartbeat));
        }
        next
    }

    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.body.poll_overdue(context)
    }

    fn note_slow(&mut self) {
        self.body.note_slow();
    }

    fn take_socket(&mut self, socket: DirectSocket) {
        self.waiter.set_socket(socket);
    }
}
