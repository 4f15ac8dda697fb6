//! The bytes of a connection, and its time limits.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use domain::Timestamp;
use rustix::net::connect_unspec;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::date::http_date_bytes;
use crate::reply::{BodyStream, LongBody, Reply, SWITCHES, Unsent};
use crate::request::Method;
use crate::sendfile::Socket;
use crate::server::{self, Counters, Phase};
use crate::shared_socket::DirectSocket;
use crate::timeout::{FIRST_TIME_AT_CLOSE, HEAD_TIME_MAX, IDLE_TIME_MAX, LINGER_TIME_MAX, Timeout};
use crate::unread::WRITE_TIME_MAX;
use crate::vanished::{Looks, PeerWatch};

/// Bytes read at a time: more than nearly every head, and little for a stack.
const READ_BYTES: usize = 4 << 10;
/// Maximum number of reads from a client after it was asked to close.
const LINGER_READS_MAX: usize = 4_096;
/// Maximum number of an answer's pieces in one write.
const PIECES_AT_ONCE: usize = 16;

/// An answer and its way of sending.
pub(super) struct Outgoing {
    pub(super) reply: Reply,
    pub(super) method: Method,
    pub(super) close: bool,
    pub(super) at: Timestamp,
}

impl Outgoing {
    /// The last answer before the connection is closed.
    pub(super) fn last(reply: Reply, at: Timestamp) -> Self {
        Self { reply, method: Method::Get, close: true, at }
    }
}

/// A connection.
pub(super) struct Wire<S> {
    pub(super) stream: S,
    pub(super) timeout: Timeout,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    phase: watch::Receiver<Phase>,
    listens: bool,
    /// True if a request was answered.
    pub(super) was_asked: bool,
}

impl<S: Socket> Wire<S> {
    pub(super) fn new(stream: S, phase: watch::Receiver<Phase>) -> Self {
        let mut signal = phase.clone();
        let closing = Box::pin(async move { server::reached(&mut signal, Phase::Closing).await });
        let timeout = Timeout::new(IDLE_TIME_MAX);
        Self { stream, timeout, closing, phase, listens: false, was_asked: false }
    }

    /// True if answers are the last on their connection.
    pub(super) fn is_stopping(&self) -> bool {
        *self.phase.borrow() >= Phase::Draining
    }

    /// True if the service closes; otherwise the task is woken when it does. A task keeps the same waker all its life,
    /// so it registers once while the service runs, and only checks from then on. The wake-up of the drain uses up
    /// that registration.
    fn is_closing(&mut self, context: &mut Context<'_>) -> bool {
        if self.listens && *self.phase.borrow() == Phase::Serving {
            return false;
        }
        self.listens = true;
        self.closing.as_mut().poll(context).is_ready()
    }

    /// Waits for more bytes. Returns false if the connection ended or took too long, or if the service closes between
    /// two requests: one that has begun to arrive is still answered.
    pub(super) async fn fill(&mut self, held: &mut Vec<u8>, counters: &Counters) -> bool {
        let idle = held.is_empty();
        if idle {
            // An idle connection holds no buffer.
            *held = Vec::new();
        }
        let mut hurried = false;
        poll_fn(|context| {
            if let Poll::Ready(read) = self.stream.poll_receive::<READ_BYTES>(held, context) {
                return Poll::Ready(read.is_ok_and(|read| read > 0));
            }
            if idle && !hurried && self.is_closing(context) {
                if self.was_asked && !self.stream.has_unread() {
                    return Poll::Ready(false);
                }
                // A client that has just connected has not had the time to send a request.
                hurried = true;
                self.timeout.allow(FIRST_TIME_AT_CLOSE);
            }
            if self.timeout.is_over(context) {
                if !idle {
                    counters.cut_slow_head.fetch_add(1, Ordering::Relaxed);
                }
                return Poll::Ready(false);
            }
            Poll::Pending
        })
        .await
    }

    /// Sends an answer, in one write if the socket takes it. Returns false if the client did not take it.
    pub(super) async fn send(&mut self, answer: Outgoing, counters: &Counters) -> bool {
        let Outgoing { mut reply, method, close, at } = answer;
        if !matches!(reply.status, 204 | 304) {
            reply.head.put_number("content-length", reply.length());
        }
        let long = reply.long.take().filter(|_| method != Method::Head);
        put_end(&mut reply, at, close);
        let body = if method == Method::Head { &[] } else { reply.body.pieces() };
        let mut lines = reply.head.begin_with(reply.status);
        let mut file = reply.file.as_deref().map(|body| (body, 0));
        let mut rest = (&mut lines).chain(Unsent { pieces: body, sent: 0 });
        let mut waiting = None;
        let sent = poll_fn(|context| {
            let sent = match &mut file {
                Some((body, sent)) => {
                    self.stream.poll_send_file(rest.first_mut(), body, sent, context)
                }
                None => poll_write_all(&mut self.stream, &mut rest, context),
            };
            if sent.is_ready() {
                return sent;
            }
            if waiting.is_none() {
                waiting = Some(Waiting::begin(counters, reply.body.unshared_bytes()));
                self.timeout.allow(counters.unread.write_time());
            }
            self.poll_lost(counters, context)
        });
        match (sent.await, long) {
            (Ok(()), None) => true,
            // Boxed, or every connection would be as large as one that sends such a body.
            (Ok(()), Some(long)) => Box::pin(self.send_long(long, counters)).await,
            (Err(_), _) => false,
        }
    }

    /// Sends a body while it is produced. Returns false if the client did not take it, or if the body ended too early.
    async fn send_long(&mut self, long: LongBody, counters: &Counters) -> bool {
        let LongBody { length, mut pieces } = long;
        let mut left = length;
        while left > 0 {
            let next = poll_fn(|context| pieces.poll_next(context)).await;
            let Some(mut piece) = next else { return false };
            let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            let Some(rest) = left.checked_sub(bytes) else { return false };
            left = rest;
            self.timeout.allow(counters.unread.write_time());
            let _waiting = Waiting::begin(counters, piece.len());
            let sent = poll_fn(|context| {
                let sent = poll_write_all(&mut self.stream, &mut piece, context);
                if sent.is_ready() { sent } else { self.poll_lost(counters, context) }
            });
            if let Err(error) = sent.await {
                if error.kind() == io::ErrorKind::TimedOut {
                    pieces.note_slow();
                }
                return false;
            }
        }
        true
    }

    /// Sends an answer without an end; the connection ends with it. The socket reports if the client is gone.
    pub(super) async fn send_stream(
        self,
        mut head: Reply,
        at: Timestamp,
        mut stream: BodyStream,
        counters: &Counters,
    ) {
        let close = head.status != SWITCHES;
        put_end(&mut head, at, close);
        let lines = head.head.begin_with(head.status).to_vec();
        drop(head);
        let mut phase = self.phase.clone();
        let mut stop = Box::pin(server::reached(&mut phase, Phase::Draining));
        let mut stops = false;
        let mut next = Some(Bytes::from(lines));
        let watch = Arc::new(PeerWatch::begin(self.stream.tcp()));
        let (mut own, shared) = self.share();
        let mut looks = Looks::new(Arc::clone(&watch));
        if let Some(shared) = shared {
            stream.take_socket(DirectSocket::new(shared, watch));
        }
        while let Some(mut part) = next {
            own.timeout.allow(WRITE_TIME_MAX);
            let mut left = part.len();
            let sent = poll_fn(|context| {
                let sent = poll_write_all(&mut own.stream, &mut part, context);
                looks.note_write(own.stream.tcp(), context);
                if sent.is_ready() {
                    return sent.map_err(|error| error.kind());
                }
                // A client that reads slowly is not one that does not read.
                if part.len() < left {
                    left = part.len();
                    own.timeout.allow(WRITE_TIME_MAX);
                }
                if stream.poll_overdue(context).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted));
                }
                own.poll_lost(counters, context).map_err(|error| error.kind())
            });
            match sent.await {
                Ok(()) => {}
                Err(io::ErrorKind::TimedOut) => return stream.note_slow(),
                // Before the stream is dropped: a task that waits for its end finds the connection closed.
                Err(io::ErrorKind::ConnectionAborted) => return break_off(own.stream.tcp()),
                Err(_) => return,
            }
            let mut scrap = Vec::new();
            next = poll_fn(|context| {
                looks.poll(own.stream.tcp(), context);
                let read = own.stream.poll_receive::<READ_BYTES>(&mut scrap, context);
                let gone = match read {
                    Poll::Ready(Ok(0) | Err(_)) => true,
                    Poll::Ready(Ok(_)) => {
                        // Requests after one without an end are not answered.
                        stream.receive(&scrap);
                        scrap.clear();
                        context.waker().wake_by_ref();
                        false
                    }
                    Poll::Pending => false,
                };
                if gone {
                    return Poll::Ready(None);
                }
                // The stream's last bytes at its end are still sent.
                stops = stops || stop.as_mut().poll(context).is_ready();
                match stream.poll_next(context) {
                    Poll::Pending if stops => Poll::Ready(None),
                    next @ (Poll::Ready(_) | Poll::Pending) => next,
                }
            })
            .await;
        }
        drop(stop);
        // No other task writes any more.
        drop(stream);
        own.finish().await;
    }

    /// The same connection with a socket that others can write to as well, if it is of such a kind.
    fn share(self) -> (Wire<S::Shared>, Option<Arc<TcpStream>>) {
        let Self { stream, timeout, closing, phase, listens, was_asked } = self;
        let (stream, shared) = stream.share();
        (Wire { stream, timeout, closing, phase, listens, was_asked }, shared)
    }

    /// Returns an error once the time limit for the client to read is over.
    fn poll_lost(
        &mut self,
        counters: &Counters,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.timeout.is_over(context) {
            counters.cut_slow_reader.fetch_add(1, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }

    /// Starts the time limit for an unneeded rest of a body.
    pub(super) fn wait_for_rest(&mut self) {
        self.timeout.allow(HEAD_TIME_MAX);
    }

    /// Lets the client read what was written before the connection is closed: closing with unread bytes would reset
    /// it.
    pub(super) async fn finish(mut self) {
        self.timeout.allow(LINGER_TIME_MAX);
        let shut = poll_fn(|context| match Pin::new(&mut self.stream).poll_shutdown(context) {
            Poll::Pending if self.timeout.is_over(context) => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            shut @ (Poll::Ready(_) | Poll::Pending) => shut,
        });
        if shut.await.is_err() {
            return;
        }
        let mut scrap = Vec::new();
        // A client that keeps sending is read for a bounded time.
        for _ in 0..LINGER_READS_MAX {
            scrap.clear();
            let heard = poll_fn(|context| {
                // Checked first: a client that always has more to send would never be late.
                if self.timeout.is_over(context) {
                    return Poll::Ready(false);
                }
                self.stream
                    .poll_receive::<READ_BYTES>(&mut scrap, context)
                    .map(|read| read.is_ok_and(|read| read > 0))
            });
            if !heard.await {
                return;
            }
        }
    }
}

/// Ends a connection at once. Bytes that its client has not taken are lost, and the client notices that.
fn break_off(stream: &TcpStream) {
    if let Err(error) = connect_unspec(stream) {
        tracing::debug!(event = "connection.not_broken_off", %error, "a connection is closed in the ordinary way");
    }
}

/// Appends the last header lines, and the end of the head.
fn put_end(reply: &mut Reply, at: Timestamp, close: bool) {
    reply.head.put_bytes("date", &http_date_bytes(at));
    if close {
        reply.head.put("connection", "close");
    }
    reply.head.end();
}

/// Counts the bytes that a client occupies by not reading them.
struct Waiting<'a> {
    counters: &'a Counters,
    bytes: usize,
}

impl<'a> Waiting<'a> {
    fn begin(counters: &'a Counters, bytes: usize) -> Self {
        counters.unread.add(bytes);
        Self { counters, bytes }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.counters.unread.take(self.bytes);
    }
}

fn poll_write_all<S: Socket>(
    stream: &mut S,
    rest: &mut impl Buf,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while rest.has_remaining() {
        let written = if rest.chunk().len() == rest.remaining() {
            ready!(stream.poll_send(rest.chunk(), context))?
        } else {
            let mut slices = [IoSlice::new(&[]); PIECES_AT_ONCE];
            let filled = rest.chunks_vectored(&mut slices);
            let slices = slices.get(..filled).unwrap_or_default();
            ready!(stream.poll_send_pieces(slices, context))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        rest.advance(written);
    }
    Pin::new(stream).poll_flush(context)
}
