//! What a connection in hyper's hands is waited for, and since when: the time-outs of the lane hold there, too.
//!
//! Hyper counts a head from the end of the request before it and never gives up on a client that does not read. So the
//! stream says when bytes come and when none can go, and every body on its way out holds a mark until hyper has written
//! all of it, whatever it waits for: the socket, or, in HTTP/2, the client's leave.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use tokio::time::Instant;

use crate::lane::{HEAD_TIME_MAX, WRITE_TIME_MAX};

/// Shared by a connection's stream, its requests and its answers.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Requests may overlap, so that bytes in between say nothing about a head.
    overlaps: bool,
    /// Requests being answered.
    answering: usize,
    head_since: Option<Instant>,
    write_since: Option<Instant>,
    /// Since when each body is on its way.
    bodies: BTreeMap<u64, Instant>,
    bodies_ever: u64,
}

/// What was waited for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    Head,
    Reader,
}

impl Waits {
    pub(super) fn set_overlapping(&self) {
        self.lock().overlaps = true;
    }

    pub(super) fn note_read(&self) {
        let mut state = self.lock();
        if !state.overlaps && state.answering == 0 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    pub(super) fn note_write(&self, done: bool) {
        let mut state = self.lock();
        if done {
            state.write_since = None;
        } else if state.write_since.is_none() {
            state.write_since = Some(Instant::now());
        }
    }

    /// A head was whole.
    pub(super) fn begin_answer(&self) {
        let mut state = self.lock();
        state.answering += 1;
        state.head_since = None;
    }

    /// An answer was made; its body is waited for until it is dropped.
    pub(super) fn end_answer(self: &Arc<Self>, body: Bytes) -> Piece {
        let mut state = self.lock();
        state.answering = state.answering.saturating_sub(1);
        drop(state);
        self.piece(body)
    }

    /// A part of a body; it is waited for until it is dropped.
    pub(super) fn piece(self: &Arc<Self>, body: Bytes) -> Piece {
        let mut state = self.lock();
        let mark = (!body.is_empty()).then(|| {
            state.bodies_ever += 1;
            let number = state.bodies_ever;
            state.bodies.insert(number, Instant::now());
            Mark { waits: Arc::clone(self), number }
        });
        Piece { bytes: body, _mark: mark }
    }

    /// When what is waited for longest is late, and what that is.
    pub(super) fn deadline(&self) -> Option<(Instant, Late)> {
        let state = self.lock();
        // Bodies are numbered as they come, so the first is the oldest.
        let body = state.bodies.first_key_value().map(|(_, since)| *since);
        let head = state.head_since.map(|since| (since + HEAD_TIME_MAX, Late::Head));
        let writes = [body, state.write_since].into_iter().flatten();
        let reader = writes.min().map(|since| (since + WRITE_TIME_MAX, Late::Reader));
        [head, reader].into_iter().flatten().min_by_key(|(until, _)| *until)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body on its way. It holds the bytes and its mark; no snapshot.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    _mark: Option<Mark>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

#[derive(Debug)]
struct Mark {
    waits: Arc<Waits>,
    number: u64,
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.waits.lock().bodies.remove(&self.number);
    }
}
