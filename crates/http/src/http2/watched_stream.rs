//! A stream passed to hyper. Hyper does not poll it while the client does not take the last part, so the stream could
//! not end then: a task of its own ends it.
//!
//! The connection may be shared by other streams, and stays. Hyper resets the ended stream as soon as it polls again.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::reply::BodyStream;

#[derive(Debug)]
pub(super) struct WatchedStream {
    shared: Arc<Shared>,
    /// The watching task, which ends with this.
    _watching: JoinSet<()>,
}

#[derive(Debug)]
struct Shared(Mutex<State>);

#[derive(Debug)]
struct State {
    /// `None` after its end.
    stream: Option<BodyStream>,
    /// Wakes the task.
    waker: Option<Waker>,
    /// Wakes hyper, which waits for the next part.
    reader: Option<Waker>,
}

impl WatchedStream {
    pub(super) fn new(stream: BodyStream) -> Self {
        let state = State { stream: Some(stream), waker: None, reader: None };
        let shared = Arc::new(Shared(Mutex::new(state)));
        let mut watching = JoinSet::new();
        watching.spawn(Arc::clone(&shared).watch());
        Self { shared, _watching: watching }
    }

    /// The next part.
    ///
    /// # Errors
    /// The stream was ended while its client took nothing.
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut state = self.shared.lock();
        let Some(stream) = &mut state.stream else {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        };
        let next = stream.poll_next(context);
        // The task watches whether this part is taken.
        let waker = state.waker.take_if(|_| next.is_ready());
        state.reader = next.is_pending().then(|| context.waker().clone());
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        next.map(|part| part.map(Ok))
    }

    pub(super) fn note_slow(&self) {
        if let Some(stream) = &mut self.shared.lock().stream {
            stream.note_slow();
        }
    }
}

impl Shared {
    /// Ends the stream if it is overdue while its client does not take the last part.
    async fn watch(self: Arc<Self>) {
        let overdue = poll_fn(|context| {
            let mut state = self.lock();
            state.waker = Some(context.waker().clone());
            // The stream may have continued here, and wakes only who polled it last.
            if let Some(reader) = state.reader.take() {
                reader.wake();
            }
            state.stream.as_mut().map_or(Poll::Ready(()), |stream| stream.poll_overdue(context))
        });
        overdue.await;
        let ended = self.lock().stream.take();
        drop(ended);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A stream that has panicked ends with its task.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::{mpsc, watch};
    use tokio::time::sleep;

    use super::*;
    use crate::byte_source::{ByteSource, SourceBody};

    struct Received(mpsc::Receiver<Bytes>);

    impl ByteSource for Received {
        async fn next_bytes(&mut self) -> Option<Bytes> {
            self.0.recv().await
        }
    }

    #[tokio::test]
    async fn a_reader_is_woken_for_bytes_that_come_after_the_task_has_looked() {
        let (sender, receiver) = mpsc::channel(1);
        let body = SourceBody::new(Received(receiver), watch::Sender::new(false));
        let stream = WatchedStream::new(Box::new(body));
        for part in ["one", "two", "three"] {
            let sender = sender.clone();
            // After the watching task has run.
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                sender.try_send(Bytes::from_static(part.as_bytes())).unwrap();
            });
            let read = tokio::select! {
                biased;
                read = poll_fn(|context| stream.poll_next(context)) => read,
                () = sleep(Duration::from_secs(60)) => None,
            };
            assert_eq!(read.expect("the reader was not woken").unwrap(), part);
        }
    }
}
