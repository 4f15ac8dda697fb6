//! Replays: every publication of the past or, in `live`, every change, in order and at the pace of a client (S2, S10,
//! S11, S12).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use accounts::{KeyEntry, StreamRefusal, StreamSlot};
use domain::Timestamp;
use engine::{ChangeWalk, Published, Reached, Walk, WorldHandle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use xxhash_rust::xxh3::xxh3_64;

use super::render::Rendered;
use super::selection::Selection;
use super::shared::{NotRendered, StartFrom, base};
use crate::context::Api;
use crate::position::{LogPlace, place_of, sought};
use crate::v1::wire::stream::Mode;

/// Maximum time a replay waits for its turn.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);
/// Interval of attempts to get the turn of a key, which a stream on another node may hold.
const TURN_ASKED_EVERY: Duration = Duration::from_millis(500);
/// Publications of the past that cost one request.
pub(super) const PUBLICATIONS_PER_REQUEST: u64 = 500;

/// Limits replays on this node, of all keys together. Each key has at most one over all nodes.
#[derive(Debug)]
pub(super) struct Replays {
    turns: Arc<Semaphore>,
    /// Queue of each key for its turn on this node; only keys that hold the turn or wait for it.
    keys: Mutex<HashMap<u64, Arc<Semaphore>>>,
}

/// The right to replay; released when dropped.
#[derive(Debug)]
pub(super) struct ReplayTurn {
    _of_key: (OwnedSemaphorePermit, StreamSlot),
    _of_all: OwnedSemaphorePermit,
}

/// The API and key of a replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replayer<'a> {
    pub(super) api: &'a Api,
    pub(super) entry: &'a KeyEntry,
}

impl Replayer<'_> {
    pub(super) fn key(&self) -> u64 {
        key_number(self.entry)
    }

    /// Waits for a turn; `None` on timeout, or if the store is unavailable.
    pub(super) async fn take_turn(&self) -> Option<ReplayTurn> {
        let Replays { turns, keys } = &self.api.streams.replays;
        let of_key = {
            let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.retain(|_, turns| Arc::strong_count(turns) > 1);
            Arc::clone(keys.entry(self.key()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        let taking = async {
            let of_key = of_key.acquire_owned().await.ok()?;
            loop {
                // While it waits for one of the two, a stream does not hold the other.
                let _of_all = Arc::clone(turns).acquire_owned().await.ok()?;
                let slots = &self.api.accounts.streams;
                match slots.open_replay(&self.entry.grant.key_id).await {
                    Ok(slot) => return Some(ReplayTurn { _of_key: (of_key, slot), _of_all }),
                    Err(StreamRefusal::Limit) => {}
                    Err(StreamRefusal::Unavailable) => return None,
                }
                drop(_of_all);
                sleep(TURN_ASKED_EVERY).await;
            }
        };
        timeout(TURN_WAIT_MAX, taking).await.ok().flatten()
    }
}

impl Replays {
    pub(super) fn new(max: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(max)), keys: Mutex::default() }
    }
}

/// The replay state of a stream.
#[derive(Debug)]
pub(super) struct Replay {
    turn: Option<ReplayTurn>,
    /// The walk, and the publication that it has reached.
    walk: Option<(Walk, Arc<Published>)>,
    /// The walk over every change, in `live`.
    changes: Option<ChangeWalk>,
    /// True if the last events came from what is shown live, not from the past.
    is_live: bool,
    /// Number of past publications sent.
    sent: u64,
    /// True if the first of them are paid for.
    paid: bool,
}

/// The next step of a replay.
pub(super) struct Step {
    pub(super) rendered: Arc<Rendered>,
    /// True if another request has to be charged.
    pub(super) costs: bool,
}

impl Replay {
    pub(super) fn new(turn: ReplayTurn) -> Self {
        Self { turn: Some(turn), walk: None, changes: None, is_live: false, sent: 0, paid: false }
    }

    /// Gives the turn back while there is nothing to send, and what is only held during it.
    pub(super) fn rest(&mut self) {
        (self.turn, self.walk, self.changes) = (None, None, None);
    }

    /// The events from a position to the publication after it, if `present` is not at that position. After a failure,
    /// the walk restarts at the position.
    pub(super) async fn step(
        &mut self,
        by: Replayer<'_>,
        handle: &WorldHandle,
        selection: &Arc<Selection>,
        place: LogPlace,
        present: &Arc<Published>,
    ) -> Result<Step, NotRendered> {
        let (renders, key) = (&by.api.streams.renders, by.key());
        let current = present.snapshot.cut_at;
        let (walk, last) = match self.walk.take() {
            Some(walk) => walk,
            None => {
                let (held, next) = base(handle, place, Mode::Publication, key).await?;
                if next == Some(current) {
                    let rendered =
                        renders.events(handle, selection, StartFrom::Here(place), present, key);
                    let rendered = rendered.await?;
                    self.turn = None;
                    return Ok(Step { rendered, costs: false });
                }
                if self.turn.is_none() {
                    self.turn = Some(by.take_turn().await.ok_or(NotRendered::Later)?);
                }
                let walk = handle.walk(sought(handle.world, place.0), key).await?;
                (walk.ok_or(NotRendered::Later)?, held)
            }
        };
        let (walk, next) = walk.next(current).await?;
        let next = next.ok_or(NotRendered::Later)?;
        let base = Some((last, Some(next.snapshot.cut_at)));
        let rendered = renders.render(selection, base, &next).await?;
        let costs = self.costs(&next);
        if rendered.to == selection.place_of(&present.snapshot) {
            self.turn = None;
        } else {
            self.walk = Some((walk, next));
        }
        Ok(Step { rendered: Arc::new(rendered), costs })
    }

    /// The events from a position to the next accepted change or publication; `None` if there is nothing yet. They
    /// come from the live states if those are still kept, otherwise from the log or the archive; also where the next
    /// live state is later than `until`, because it may contain changes from before. `from`: the position, and whether
    /// the client may have more.
    pub(super) async fn change(
        &mut self,
        by: Replayer<'_>,
        (handle, reached): (&WorldHandle, Reached),
        selection: &Arc<Selection>,
        (place, from): (LogPlace, StartFrom),
        until: Option<Timestamp>,
    ) -> Result<Option<Step>, NotRendered> {
        let (renders, key) = (&by.api.streams.renders, by.key());
        let (world, whole) = (handle.world, selection.wants_whole());
        let at = sought(world, place.0);
        // A stream that has caught up is sent the same as other live streams. Before that, each change is sent
        // separately.
        let shown = handle.shown_after(at, whole && self.is_live).filter(|(held, next)| {
            // Freshness is exact after a publication, and in whole snapshots.
            let is_exact = self.is_live
                || (!held.is_between && next.as_ref().is_none_or(|next| next.is_exact()));
            let is_later =
                until.zip(next.as_ref()).is_some_and(|(end, next)| end < next.snapshot.cut_at);
            place_of(world, &held.snapshot) == place && (!whole || is_exact) && !is_later
        });
        self.is_live = shown.is_some();
        if let Some((_, next)) = shown {
            (self.changes, self.turn) = (None, None);
            let Some(next) = next else { return Ok(None) };
            let rendered = renders.events(handle, selection, from, &next, key).await?;
            return Ok(Some(Step { rendered, costs: false }));
        }
        let walk = match self.changes.take() {
            Some(walk) => walk,
            None => {
                let (held, next) = base(handle, place, Mode::Live, key).await?;
                let present = Arc::clone(&handle.published());
                let (current, _) = place_of(world, &present.snapshot);
                if place.0 == handle.last_place(reached.now).max(current) {
                    // There is nothing to read, for which no turn is needed. A publication that could not be logged has
                    // the position of the one before.
                    if next != Some(present.snapshot.cut_at) {
                        return Ok(None);
                    }
                    let rendered = renders.events(handle, selection, from, &present, key).await?;
                    return Ok(Some(Step { rendered, costs: false }));
                }
                if self.turn.is_none() {
                    self.turn = Some(by.take_turn().await.ok_or(NotRendered::Later)?);
                }
                let walk = handle.walk_changes(at, &held, whole, key).await?;
                walk.ok_or(NotRendered::Later)?
            }
        };
        let (walk, next) = walk.next(reached).await?;
        let Some(next) = next else {
            // Up to date. If the live state is at another position, nothing has changed up to it.
            let same = handle.shown_between(at, walk.place(world)).filter(|_| !whole);
            self.changes = Some(walk);
            let same = same.filter(|same| place_of(world, &same.snapshot) != place);
            return Ok(same.map(|same| {
                let rendered = Arc::new(renders.moved(selection, &same));
                Step { rendered, costs: false }
            }));
        };
        let costs = self.costs(&next.shown);
        let rendered = Arc::new(renders.render_change(selection, next).await?);
        self.changes = Some(walk);
        Ok(Some(Step { rendered, costs }))
    }

    /// Counts a past publication as sent, and returns true if it costs a request.
    fn costs(&mut self, shown: &Published) -> bool {
        let is_next = !shown.is_between && self.sent.is_multiple_of(PUBLICATIONS_PER_REQUEST);
        self.sent += u64::from(!shown.is_between);
        let is_first = !std::mem::replace(&mut self.paid, true);
        is_first || (is_next && self.sent > 1)
    }
}

/// Identifies a key where past publications are rebuilt.
pub(super) fn key_number(entry: &KeyEntry) -> u64 {
    xxh3_64(entry.grant.key_id.as_str().as_bytes())
}
