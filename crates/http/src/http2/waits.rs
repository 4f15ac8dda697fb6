//! The waits of an HTTP/2 connection and their start times: the time limits of HTTP/1.1 apply here, too (D32).
//!
//! Hyper keeps a connection for as long as it answers pings, and never gives up on a client that does not read. So the
//! stream reports reads and blocked writes, every request is counted while it is answered, and every outgoing body
//! holds a mark until hyper has written all of it, whether it waits for the socket or for flow control.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Buf;
use tokio::time::Instant;

use super::frames::Frames;
use crate::reply::{Body, Unsent};
use crate::server::Server;
use crate::timeout::{FIRST_TIME_AT_CLOSE, HEAD_TIME_MAX, IDLE_TIME_MAX, LINGER_TIME_MAX};
use crate::unread::WRITE_TIME_MAX;

/// Shared by a connection's stream, its requests and its answers.
#[derive(Debug)]
pub(crate) struct Waits {
    server: Arc<Server>,
    state: Mutex<State>,
    /// True if the client was given up because it did not read.
    slow: AtomicBool,
    /// True if an answer without an end was begun.
    streamed: AtomicBool,
}

#[derive(Debug)]
struct State {
    frames: Frames,
    /// Deadline of the first request; `None` once it has arrived.
    first_until: Option<Instant>,
    /// Requests being answered.
    answering: u64,
    /// Number of them that were counted as clients, and the interval of that.
    counted: u64,
    interval: u64,
    /// Time since when nothing has been under way, if nothing is.
    idle_since: Instant,
    idle_max: Duration,
    write_since: Option<Instant>,
    /// Deadlines of the bodies.
    bodies: BTreeMap<u64, Instant>,
    bodies_ever: u64,
    /// Number of answers without an end.
    streams: u64,
}

/// The wait whose limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    Head,
    Reader,
    /// Nothing was under way.
    Idle,
}

impl Waits {
    /// A connection whose first byte arrived at that time.
    pub(super) fn new(server: &Arc<Server>, begun: Instant) -> Arc<Self> {
        let state = State {
            frames: Frames::default(),
            first_until: Some(begun + HEAD_TIME_MAX),
            answering: 0,
            counted: 0,
            interval: 0,
            idle_since: begun,
            idle_max: IDLE_TIME_MAX,
            write_since: None,
            bodies: BTreeMap::new(),
            bodies_ever: 0,
            streams: 0,
        };
        let (server, state) = (Arc::clone(server), Mutex::new(state));
        let (slow, streamed) = Default::default();
        Arc::new(Self { server, state, slow, streamed })
    }

    pub(super) fn note_read(&self, bytes: &[u8]) {
        self.lock().frames.note(bytes, Instant::now());
    }

    pub(super) fn note_write(&self, done: bool) {
        let mut state = self.lock();
        if done {
            state.write_since = None;
        } else if state.write_since.is_none() {
            state.write_since = Some(Instant::now());
        }
    }

    /// Notes that a head is complete; the request is under way until the returned value is dropped.
    pub(super) fn begin_answer(self: &Arc<Self>) -> Answering {
        let mut state = self.lock();
        state.first_until = None;
        state.answering += 1;
        // Requests that overlap count as several clients; those that follow each other count as one.
        let interval = self.server.load.interval();
        if state.interval != interval {
            (state.interval, state.counted) = (interval, 0);
        }
        if state.answering > state.counted {
            self.server.load.add_clients(state.answering - state.counted);
            state.counted = state.answering;
        }
        Answering(Arc::clone(self))
    }

    /// An outgoing body, of which this number of bytes is not shared; its time limit applies until the mark is
    /// dropped.
    pub(super) fn mark(self: &Arc<Self>, bytes: usize) -> Mark {
        let unread = &self.server.counters.unread;
        unread.add(bytes);
        let number = self.begin_wait(unread.write_time());
        Mark { waits: Arc::clone(self), number, bytes, renews: false }
    }

    /// A part of a stream, whose bytes are shared by all its clients. The time limit restarts whenever some of it is
    /// taken.
    pub(super) fn mark_part(self: &Arc<Self>) -> Mark {
        let number = self.begin_wait(WRITE_TIME_MAX);
        Mark { waits: Arc::clone(self), number, bytes: 0, renews: true }
    }

    fn begin_wait(&self, time: Duration) -> u64 {
        let mut state = self.lock();
        state.bodies_ever += 1;
        let number = state.bodies_ever;
        state.bodies.insert(number, Instant::now() + time);
        number
    }

    /// Notes that an answer without an end begins.
    pub(super) fn begin_stream(&self) {
        self.lock().streams += 1;
        self.streamed.store(true, Ordering::Relaxed);
    }

    pub(super) fn end_stream(&self) {
        let mut state = self.lock();
        state.streams = state.streams.saturating_sub(1);
    }

    /// True if an answer without an end was begun, even if it has ended.
    pub(super) fn has_streamed(&self) -> bool {
        self.streamed.load(Ordering::Relaxed)
    }

    /// True if a request has arrived.
    pub(super) fn was_asked(&self) -> bool {
        self.lock().first_until.is_none()
    }

    /// Notes that the service stops: a client without a request has little time left to send one.
    pub(super) fn shorten_waits(&self) {
        let mut state = self.lock();
        let soon = Instant::now() + FIRST_TIME_AT_CLOSE;
        state.first_until = state.first_until.map(|until| until.min(soon));
    }

    /// The client was notified that the connection ends; if nothing is under way, it is not waited for.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        state.idle_since = Instant::now();
        state.idle_max = LINGER_TIME_MAX;
    }

    /// The earliest deadline, and the wait that it limits.
    pub(super) fn deadline(&self) -> Option<(Instant, Late)> {
        let state = self.lock();
        let rest = state.frames.incomplete_since().map(|since| since + HEAD_TIME_MAX);
        let head = [state.first_until, rest].into_iter().flatten().min();
        let write_time = match state.streams {
            0 => self.server.counters.unread.write_time(),
            // Each of the other bodies has its own limit.
            _ => WRITE_TIME_MAX,
        };
        let write = state.write_since.map(|since| since + write_time);
        let reader = state.bodies.values().copied().chain(write).min();
        let under_way = state.answering > 0 || !state.bodies.is_empty();
        let idle = (!under_way).then(|| state.idle_since + state.idle_max);
        let named = |until: Option<Instant>, late| until.map(|until| (until, late));
        [named(head, Late::Head), named(reader, Late::Reader), named(idle, Late::Idle)]
            .into_iter()
            .flatten()
            .min_by_key(|(until, _)| *until)
    }

    /// Notes the exceeded limit: the connection ends.
    pub(super) fn note_late(&self, late: Late) {
        self.slow.store(late == Late::Reader, Ordering::Relaxed);
    }

    /// True if the client was given up because it did not read.
    pub(super) fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered, even if its client has given it up.
#[derive(Debug)]
pub(super) struct Answering(Arc<Waits>);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.answering = state.answering.saturating_sub(1);
        state.idle_since = Instant::now();
    }
}

/// Stands for a body until hyper has written all of it.
#[derive(Debug)]
pub(super) struct Mark {
    waits: Arc<Waits>,
    number: u64,
    /// Number of its bytes that are not shared.
    bytes: usize,
    renews: bool,
}

impl Mark {
    /// Notes that some of the body was taken.
    fn note_taken(&self) {
        if self.renews
            && let Some(until) = self.waits.lock().bodies.get_mut(&self.number)
        {
            *until = Instant::now() + WRITE_TIME_MAX;
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.waits.server.counters.unread.take(self.bytes);
        let mut state = self.waits.lock();
        state.bodies.remove(&self.number);
        state.idle_since = Instant::now();
    }
}

/// A body passed to hyper. It holds the bytes, which others may share, and their mark; it holds no snapshot.
#[derive(Debug)]
pub(super) struct Piece {
    body: Body,
    /// Index of the current piece, and the number of its bytes already sent.
    at: usize,
    sent: usize,
    mark: Mark,
}

impl Piece {
    pub(super) fn new(body: Body, mark: Mark) -> Self {
        let mut piece = Self { body, at: 0, sent: 0, mark };
        // Skips empty pieces.
        piece.advance(0);
        piece
    }

    fn unsent(&self) -> Unsent<'_> {
        let pieces = self.body.pieces().get(self.at..).unwrap_or_default();
        Unsent { pieces, sent: self.sent }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.unsent().remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.body.pieces().get(self.at).and_then(|piece| piece.get(self.sent..)).unwrap_or_default()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let unsent = self.body.pieces().iter().skip(self.at).enumerate();
        let unsent = unsent.filter_map(|(nth, piece)| {
            let from = if nth == 0 { self.sent } else { 0 };
            piece.get(from..).filter(|rest| !rest.is_empty())
        });
        slices.iter_mut().zip(unsent).map(|(slice, rest)| *slice = IoSlice::new(rest)).count()
    }

    fn advance(&mut self, count: usize) {
        let mut unsent = self.unsent();
        unsent.advance(count);
        let (left, sent) = (unsent.pieces.len(), unsent.sent);
        self.at = self.body.pieces().len().saturating_sub(left);
        self.sent = sent;
        if count > 0 {
            self.mark.note_taken();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use bytes::Bytes;
    use domain::{ManualClock, Timestamp};

    use super::*;
    use crate::proxy::Proxies;
    use crate::server::ServerSettings;

    pub(in crate::http2) fn waits() -> Arc<Waits> {
        let settings = ServerSettings {
            connections_max: 1,
            connections_per_source_max: 1,
            drain: Duration::ZERO,
            proxies: Proxies::default(),
            shed_after: Duration::from_secs(1),
        };
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(0)));
        Waits::new(&Server::new(clock, settings), Instant::now())
    }

    fn reader_until(waits: &Waits) -> Option<Instant> {
        waits.deadline().filter(|(_, late)| *late == Late::Reader).map(|(until, _)| until)
    }

    #[test]
    fn a_part_of_a_stream_is_waited_for_as_long_as_some_of_it_is_taken() {
        let waits = waits();
        drop(waits.begin_answer());
        let part = Body::Whole(Bytes::from_static(b"some events"));
        let mut piece = Piece::new(part, waits.mark_part());
        let first = reader_until(&waits).unwrap();
        while Instant::now() + WRITE_TIME_MAX <= first {
            std::hint::spin_loop();
        }
        piece.advance(4);
        assert!(reader_until(&waits).unwrap() > first);
        drop(piece);
        assert_eq!(reader_until(&waits), None);
        // An answer has one time limit for all of it.
        let whole = Body::Whole(Bytes::from_static(b"an answer"));
        let mut piece = Piece::new(whole, waits.mark(9));
        let first = reader_until(&waits).unwrap();
        while Instant::now() + WRITE_TIME_MAX <= first {
            std::hint::spin_loop();
        }
        piece.advance(4);
        assert_eq!(reader_until(&waits), Some(first));
    }

    #[test]
    fn streams_are_waited_for_also_while_others_hold_too_much() {
        let waits = waits();
        drop(waits.begin_answer());
        waits.server.counters.unread.add(1 << 40);
        waits.begin_stream();
        waits.note_write(false);
        let part = waits.mark_part();
        let long = Instant::now() + WRITE_TIME_MAX / 2;
        assert!(reader_until(&waits).is_some_and(|until| until > long));
        // Another answer on the same connection has its own.
        let answer = waits.mark(100);
        assert!(reader_until(&waits).is_some_and(|until| until < long));
        drop((part, answer));
        waits.end_stream();
        assert!(reader_until(&waits).is_some_and(|until| until < long));
    }
}
