//! Bodies that wait for what they send next.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::watch;

use crate::reply::StreamBody;

/// Where the bytes of a body come from.
pub trait ByteSource: Send + Sized + 'static {
    /// The next bytes; `None` after the last.
    fn next_bytes(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

type Next<S> = Pin<Box<dyn Future<Output = (S, Option<Bytes>)> + Send>>;

/// A source as a connection sends it; nothing after its end.
pub struct SourceBody<S> {
    next: Option<Next<S>>,
    slow: watch::Sender<bool>,
}

impl<S: ByteSource> SourceBody<S> {
    /// `slow` tells the source that its client is given up, because it does not read.
    pub fn new(source: S, slow: watch::Sender<bool>) -> Self {
        Self { next: Some(advance(source)), slow }
    }
}

fn advance<S: ByteSource>(mut source: S) -> Next<S> {
    Box::pin(async move {
        let bytes = source.next_bytes().await;
        (source, bytes)
    })
}

impl<S: ByteSource> StreamBody for SourceBody<S> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let (source, bytes) = ready!(next.as_mut().poll(context));
        self.next = bytes.is_some().then(|| advance(source));
        Poll::Ready(bytes)
    }

    fn note_slow(&mut self) {
        self.slow.send_replace(true);
    }
}

impl<S> fmt::Debug for SourceBody<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceBody")
    }
}
