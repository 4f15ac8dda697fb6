//! Bodies whose next bytes are produced asynchronously.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::watch;

use crate::reply::StreamBody;

/// A source of a body's bytes.
pub trait ByteSource: Send + Sized + 'static {
    /// The next bytes; `None` after the last.
    fn next_bytes(&mut self) -> impl Future<Output = Option<Bytes>> + Send;

    /// The same as [`StreamBody::poll_overdue`].
    fn poll_overdue(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

type Next<S> = Pin<Box<dyn Future<Output = (Box<S>, Option<Bytes>)> + Send>>;

/// A source as the body of a connection; nothing follows its end.
pub struct SourceBody<S> {
    state: State<S>,
    slow: watch::Sender<bool>,
}

/// The state of a source. Boxed, so that it is never moved as a whole.
enum State<S> {
    /// The last bytes are being sent.
    Idle(Box<S>),
    /// It produces the next bytes.
    Next(Next<S>),
    /// It has produced the next bytes before they were requested.
    Ahead(Box<S>, Bytes),
    Done,
}

impl<S: ByteSource> SourceBody<S> {
    /// `slow` tells the source that its client was given up because it does not read.
    pub fn new(source: S, slow: watch::Sender<bool>) -> Self {
        Self { state: State::Idle(Box::new(source)), slow }
    }
}

fn advance<S: ByteSource>(mut source: Box<S>) -> Next<S> {
    Box::pin(async move {
        let bytes = source.next_bytes().await;
        (source, bytes)
    })
}

impl<S: ByteSource> StreamBody for SourceBody<S> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut next = match std::mem::replace(&mut self.state, State::Done) {
            State::Idle(source) => advance(source),
            State::Next(next) => next,
            State::Ahead(source, bytes) => {
                self.state = State::Idle(source);
                return Poll::Ready(Some(bytes));
            }
            State::Done => return Poll::Ready(None),
        };
        match next.as_mut().poll(context) {
            Poll::Ready((source, bytes)) => {
                if bytes.is_some() {
                    self.state = State::Idle(source);
                }
                Poll::Ready(bytes)
            }
            Poll::Pending => {
                self.state = State::Next(next);
                Poll::Pending
            }
        }
    }

    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // It notices its end only while it is polled. Its bytes are kept for the next call of `poll_next`.
        if let State::Next(next) = &mut self.state
            && let Poll::Ready((source, bytes)) = next.as_mut().poll(context)
        {
            self.state = bytes.map_or(State::Done, |bytes| State::Ahead(source, bytes));
        }
        match &mut self.state {
            State::Idle(source) | State::Ahead(source, _) => source.poll_overdue(context),
            State::Next(_) | State::Done => Poll::Pending,
        }
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Waker;

    use tokio::sync::mpsc;

    use super::*;

    /// Yields what it receives, and is overdue after the first bytes.
    struct Source(mpsc::Receiver<Bytes>, bool);

    impl ByteSource for Source {
        async fn next_bytes(&mut self) -> Option<Bytes> {
            let next = self.0.recv().await;
            self.1 = true;
            next
        }

        fn poll_overdue(&mut self, _context: &mut Context<'_>) -> Poll<()> {
            if self.1 { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    #[tokio::test]
    async fn a_source_goes_on_while_something_else_is_sent_and_nothing_of_it_is_lost() {
        let (sender, receiver) = mpsc::channel(4);
        let mut body = SourceBody::new(Source(receiver, false), watch::Sender::new(false));
        let mut context = Context::from_waker(Waker::noop());
        assert!(body.poll_next(&mut context).is_pending());
        assert!(body.poll_overdue(&mut context).is_pending());
        sender.try_send(Bytes::from_static(b"one")).unwrap();
        assert!(body.poll_overdue(&mut context).is_ready(), "it has gone on");
        sender.try_send(Bytes::from_static(b"two")).unwrap();
        drop(sender);
        // One part is produced ahead.
        assert!(body.poll_overdue(&mut context).is_ready());
        let mut read = Vec::new();
        while let Some(part) = poll_fn(|context| body.poll_next(context)).await {
            read.push(part);
        }
        assert_eq!(read, ["one", "two"]);
        assert!(body.poll_overdue(&mut context).is_pending(), "it has ended");
    }
}
