//! The queue of the writer: operations of operators, and batches of pushes in one line for each feed.
//!
//! The writer takes the feeds in turn, so that one with a backlog delays another by one turn at most. The amount that
//! a feed may have parsed and not yet stored is bounded by its room; further pushes of it wait, and delay no other
//! feed.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use market::{Book, Operation};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::batch::{Batch, Lines, Outcome, Terms};
use crate::error::{NotTaken, OperateError};

/// Maximum amount of parsed and waiting data of a feed: bytes of text, plus a constant for each line. A parsed message
/// takes two to five times that.
const ROOM: usize = 2 << 20;
const LINE_ROOM: usize = 64;
/// Maximum number of waiting operations; further ones are asked to retry.
const OPERATIONS_MAX: usize = 32;
/// Maximum number of requests of other nodes for one feed that are processed at once.
const REQUESTS_MAX: usize = 32;
/// Maximum number of feeds whose limits are kept without a user.
const IDLE_FEEDS_MAX: usize = 64;

/// An operation, and the channel for its outcome.
pub(crate) type QueuedOperation = (Operation, oneshot::Sender<Result<usize, OperateError>>);

/// A read of the book on the thread that writes it.
pub(crate) struct Look(pub(crate) Box<dyn FnOnce(&Book) + Send>);

impl std::fmt::Debug for Look {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Look")
    }
}

/// The queue of one world.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    woken: Condvar,
    feed_limits: Mutex<HashMap<String, Arc<FeedLimits>>>,
}

#[derive(Debug, Default)]
struct State {
    operations: VecDeque<QueuedOperation>,
    looks: VecDeque<Look>,
    /// Feeds with waiting batches; the first has the next turn.
    feeds: VecDeque<Line>,
    stopping: bool,
    /// No batch is accepted any more.
    ended: bool,
    log_failed: bool,
}

/// The batches of one feed in their order.
#[derive(Debug)]
pub(crate) struct Line {
    feed: String,
    pub(crate) batches: VecDeque<Batch>,
}

/// The limits of what a feed may have on the way to the writer.
#[derive(Debug)]
pub(crate) struct FeedLimits {
    /// Held while a push is unpacked, parsed and queued: one push of the feed at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
    room: Arc<Semaphore>,
    requests: Arc<Semaphore>,
}

/// The turn of a push, and room for one of its batches.
#[derive(Debug)]
pub struct Reserved {
    _turn: OwnedMutexGuard<()>,
    room: OwnedSemaphorePermit,
    feed: String,
    queue: Arc<Queue>,
}

/// The next task of the writer.
#[derive(Debug)]
pub(crate) enum Waiting {
    Stop,
    Operation(QueuedOperation),
    Look(Look),
    Batches,
    Nothing,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits_of(&self, feed: &str) -> Arc<FeedLimits> {
        let mut all = self.feed_limits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limits) = all.get(feed) {
            return Arc::clone(limits);
        }
        if all.len() >= IDLE_FEEDS_MAX {
            // Every waiting push and every queued batch holds a part of the limits of its feed.
            all.retain(|_, limits| {
                Arc::strong_count(limits) > 1
                    || Arc::strong_count(&limits.turn) > 1
                    || Arc::strong_count(&limits.room) > 1
                    || Arc::strong_count(&limits.requests) > 1
            });
        }
        let limits = Arc::new(FeedLimits {
            turn: Arc::default(),
            room: Arc::new(Semaphore::new(ROOM)),
            requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
        });
        all.insert(feed.to_owned(), Arc::clone(&limits));
        limits
    }

    /// Waits for the feed's turn.
    pub(crate) async fn turn(&self, feed: &str) -> OwnedMutexGuard<()> {
        let limits = self.limits_of(feed);
        Arc::clone(&limits.turn).lock_owned().await
    }

    /// A permit to process another node's request for the feed.
    pub(crate) fn admit_request(&self, feed: &str) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.limits_of(feed).requests).try_acquire_owned().ok()
    }

    /// Waits for the feed's turn, and for room for a batch of these bytes and lines.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        feed: &str,
        bytes: usize,
        lines: usize,
    ) -> Result<Reserved, NotTaken> {
        let limits = self.limits_of(feed);
        let turn = Arc::clone(&limits.turn).lock_owned().await;
        self.check()?;
        let weight = bytes.saturating_add(lines.saturating_mul(LINE_ROOM)).min(ROOM);
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        let room = Arc::clone(&limits.room).acquire_many_owned(weight).await;
        let room = room.map_err(|_| NotTaken::Stopped)?;
        self.check()?;
        Ok(Reserved { _turn: turn, room, feed: feed.to_owned(), queue: Arc::clone(self) })
    }

    /// Checks that batches are accepted at present.
    fn check(&self) -> Result<(), NotTaken> {
        self.lock().check()
    }

    pub(crate) fn operate(
        &self,
        operation: Operation,
    ) -> Result<oneshot::Receiver<Result<usize, OperateError>>, OperateError> {
        let mut state = self.lock();
        if state.ended || state.operations.len() >= OPERATIONS_MAX {
            return Err(OperateError::Busy);
        }
        let (answer, done) = oneshot::channel();
        state.operations.push_back((operation, answer));
        self.woken.notify_one();
        Ok(done)
    }

    /// Queues a read of the book for the writer.
    pub(crate) fn look(&self, look: Look) -> Result<(), OperateError> {
        let mut state = self.lock();
        if state.ended || state.looks.len() >= OPERATIONS_MAX {
            return Err(OperateError::Busy);
        }
        state.looks.push_back(look);
        self.woken.notify_one();
        Ok(())
    }

    /// Tells the writer to stop.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.woken.notify_one();
    }

    /// Accepts no more batches; those that wait are refused.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.refuse_batches(NotTaken::Stopped);
    }

    /// While the log cannot be written, batches are refused without waiting for the writer.
    pub(crate) fn set_log_failed(&self, failed: bool) {
        self.lock().log_failed = failed;
    }

    /// Waits for something to do.
    pub(crate) fn wait(&self, time: Duration) -> Waiting {
        let until = Instant::now() + time;
        let mut state = self.lock();
        loop {
            if state.stopping {
                return Waiting::Stop;
            }
            if let Some(queued) = state.operations.pop_front() {
                return Waiting::Operation(queued);
            }
            if let Some(look) = state.looks.pop_front() {
                return Waiting::Look(look);
            }
            if !state.feeds.is_empty() {
                return Waiting::Batches;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waiting::Nothing;
            }
            let woken = self.woken.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// True if something waits that has priority over turns.
    pub(crate) fn is_urgent(&self) -> bool {
        let state = self.lock();
        state.stopping || !state.operations.is_empty()
    }

    /// The batches of the feed whose turn it is.
    pub(crate) fn next_line(&self) -> Option<Line> {
        self.lock().feeds.pop_front()
    }

    /// Puts back the batches that a feed's turn was too short for: before those that arrived meanwhile, and after the
    /// other feeds.
    pub(crate) fn put_back(&self, mut line: Line) {
        let mut state = self.lock();
        if state.ended {
            drop(state);
            line.batches.into_iter().for_each(|batch| batch.refuse(NotTaken::Stopped));
            return;
        }
        let newer = state.feeds.iter().position(|held| held.feed == line.feed);
        if let Some(newer) = newer.and_then(|at| state.feeds.remove(at)) {
            line.batches.extend(newer.batches);
        }
        if !line.batches.is_empty() {
            state.feeds.push_back(line);
        }
    }

    /// Refuses every batch that waits.
    pub(crate) fn refuse_batches(&self, why: NotTaken) {
        let lines = std::mem::take(&mut self.lock().feeds);
        lines.into_iter().flat_map(|line| line.batches).for_each(|batch| batch.refuse(why));
    }

    /// Refuses the batches that were begun in this round.
    pub(crate) fn refuse_begun(&self, round: u64, why: NotTaken) {
        // Only a feed's first batch can be begun and not finished.
        let of_round = |batch: &mut Batch| batch.round == round;
        let feeds = &mut self.lock().feeds;
        let begun: Vec<Batch> =
            feeds.iter_mut().filter_map(|line| line.batches.pop_front_if(of_round)).collect();
        feeds.retain(|line| !line.batches.is_empty());
        begun.into_iter().for_each(|batch| batch.refuse(why));
    }
}

/// Answers an operation that came to a node which does not write.
pub(crate) fn refuse_operation(answer: oneshot::Sender<Result<usize, OperateError>>) {
    if answer.send(Err(OperateError::Overtaken)).is_err() {
        tracing::debug!(event = "operator.abandoned", "an operator did not wait for the answer");
    }
}

impl State {
    fn check(&self) -> Result<(), NotTaken> {
        match (self.ended, self.log_failed) {
            (true, _) => Err(NotTaken::Stopped),
            (false, true) => Err(NotTaken::LogFailed),
            (false, false) => Ok(()),
        }
    }
}

impl Reserved {
    /// Puts a batch into the queue, and returns the channel for its receipt.
    pub fn put(self, lines: Lines, terms: Terms) -> Result<oneshot::Receiver<Outcome>, NotTaken> {
        let Self { room, feed, queue, _turn } = self;
        let (answer, taken) = oneshot::channel();
        let batch = Batch::new(lines, terms, answer, room);
        let mut state = queue.lock();
        state.check()?;
        match state.feeds.iter_mut().find(|line| line.feed == feed) {
            Some(line) => line.batches.push_back(batch),
            None => state.feeds.push_back(Line { feed, batches: VecDeque::from([batch]) }),
        }
        queue.woken.notify_one();
        Ok(taken)
    }
}

impl Line {
    pub(crate) fn feed(&self) -> &str {
        &self.feed
    }
}

/// The writer's side of the queue: when it is dropped, nothing is accepted any more.
#[derive(Debug)]
pub(crate) struct Intake(pub(crate) Arc<Queue>);

impl Deref for Intake {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.0
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.0.end();
        // Callers that wait for an operation find their channel closed.
        let mut state = self.0.lock();
        state.operations.clear();
        state.looks.clear();
    }
}
