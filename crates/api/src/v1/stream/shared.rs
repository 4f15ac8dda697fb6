//! Rendered events, made once for all streams that need them and kept within a bound of memory.

use std::sync::Arc;
use std::time::Instant;

use domain::{Catalogue, Timestamp};
use engine::{HistoryError, LiveStep, MadeOnce, Passed, Published, WalkedChange, WorldHandle};
use tokio::sync::Semaphore;

use super::render::{Common, Rendered};
use super::selection::{Followed, Selection};
use crate::position::{LogPlace, place_of, sought};
use crate::v1::changes::Base;
use crate::v1::wire::stream::{Mode, Reset};

/// Maximum number of concurrent renders: each takes a processor for some milliseconds.
const RENDERS_MAX: usize = 2;
/// Maximum number of rows of both sides of a live step that are compared on a request thread: at most half a
/// millisecond.
const ROWS_HERE_MAX: usize = 2048;
/// Maximum number of entries that are kept or waited for, regardless of their size.
const ENTRIES_MAX: usize = 16_384;

/// Identifies events by selection, start and end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    selection: Arc<Selection>,
    from: StartFrom,
    to: LogPlace,
}

/// The starting point of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StartFrom {
    Nothing,
    /// Everything that this node has sent, up to the position.
    Here(LogPlace),
    /// Everything that another connection of this node or of another has sent, perhaps with a part of what follows.
    Elsewhere(LogPlace),
}

impl StartFrom {
    fn place(self) -> Option<LogPlace> {
        match self {
            Self::Nothing => None,
            Self::Here(place) | Self::Elsewhere(place) => Some(place),
        }
    }
}

/// The events of all streams.
#[derive(Debug)]
pub(super) struct Renders {
    kept: MadeOnce<Key, Rendered>,
    turns: Arc<Semaphore>,
    common: Common,
    held_max: usize,
}

/// The starting point of events, and the time of the next state of its kind.
type Held = (Arc<Published>, Option<Timestamp>);

/// Reason why there are no events.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotRendered {
    /// The client has to restart from a snapshot.
    Reset(Reset),
    /// It may be possible in a moment: the node is behind, or history or memory is in use.
    Later,
    /// The same: the node has not reached the position yet, if it ever does.
    Ahead,
    /// More was quoted in the step than can be looked through.
    TooMuch,
    Failed,
}

impl Renders {
    pub(super) fn new(held_max: usize, catalogue: Arc<Catalogue>) -> Self {
        let turns = Arc::new(Semaphore::new(RENDERS_MAX));
        // Half is for kept events, the other half for events that clients have not read.
        let kept = MadeOnce::new(held_max / 2, ENTRIES_MAX);
        Self { kept, turns, common: Common { catalogue, unread: Arc::default() }, held_max }
    }

    /// The events from a position, or from nothing, to a publication. `key`: the key for which a past publication is
    /// rebuilt.
    pub(super) async fn events(
        &self,
        handle: &WorldHandle,
        selection: &Arc<Selection>,
        from: StartFrom,
        to: &Arc<Published>,
        key: u64,
    ) -> Result<Arc<Rendered>, NotRendered> {
        let to_place = selection.place_of(&to.snapshot);
        let name = Key { selection: Arc::clone(selection), from, to: to_place };
        let made = self.kept.get(&name, async || {
            self.make_room()?;
            let rendered = match &selection.followed {
                Followed::Lists(..) => self.make_lists(handle, selection, from, to, key).await?,
                Followed::Screen(screen) => {
                    let step = screen.step(from.place(), to).await.ok_or(NotRendered::Later)?;
                    Rendered::of_screen(selection, step, to, &self.common)
                }
            };
            let bytes = rendered.chunks.bytes();
            Ok((rendered, bytes))
        });
        made.await
    }

    async fn make_lists(
        &self,
        handle: &WorldHandle,
        selection: &Arc<Selection>,
        from: StartFrom,
        to: &Arc<Published>,
        key: u64,
    ) -> Result<Rendered, NotRendered> {
        if let StartFrom::Here(place) = from
            && !selection.wants_whole()
            && let Some(step) = live_step(handle, place, to)
        {
            return self.make_step(selection, step, to).await;
        }
        let base = match from.place() {
            Some(place) => Some(base_of(handle, selection, place, key).await?),
            None => None,
        };
        let to = handle.whole(to).await.ok_or(NotRendered::Later)?;
        let passed = match &base {
            Some(base) => passed(handle, selection, (from, base), &to, key).await?,
            None => None,
        };
        self.make(selection, base, &to, passed).await
    }

    /// Events for one client only, which are not kept.
    pub(super) async fn render(
        &self,
        selection: &Arc<Selection>,
        base: Option<Held>,
        to: &Arc<Published>,
    ) -> Result<Rendered, NotRendered> {
        self.make_room()?;
        self.make(selection, base, to, None).await
    }

    /// The events of a past change, for one client only.
    pub(super) async fn render_change(
        &self,
        selection: &Arc<Selection>,
        WalkedChange { step, shown }: WalkedChange,
    ) -> Result<Rendered, NotRendered> {
        self.make_room()?;
        self.make_step(selection, Arc::new(step), &shown).await
    }

    /// No events, only another position.
    pub(super) fn moved(&self, selection: &Selection, shown: &Published) -> Rendered {
        Rendered::moved(selection, shown)
    }

    /// Ensures that there is memory for more events: clients that do not read delay nobody.
    fn make_room(&self) -> Result<(), NotRendered> {
        let unread = &self.common.unread;
        let is_full = || unread.bytes() >= self.held_max;
        if is_full() {
            self.kept.clear();
            unread.give_up_slow(self.held_max, Instant::now());
            if is_full() {
                return Err(NotRendered::Later);
            }
        }
        Ok(())
    }

    /// The events of a live step: computed here if it is small, otherwise on another thread.
    async fn make_step(
        &self,
        selection: &Arc<Selection>,
        step: Arc<LiveStep>,
        to: &Arc<Published>,
    ) -> Result<Rendered, NotRendered> {
        let rows = step.from.records() + step.to.records();
        if rows <= ROWS_HERE_MAX {
            return Ok(Rendered::of_step(selection, &step, to, &self.common));
        }
        let to = Arc::clone(to);
        self.on_a_thread(selection, move |selection, common| {
            Rendered::of_step(selection, &step, &to, common)
        })
        .await
    }

    async fn make(
        &self,
        selection: &Arc<Selection>,
        base: Option<Held>,
        to: &Arc<Published>,
        passed: Option<Arc<Passed>>,
    ) -> Result<Rendered, NotRendered> {
        let to = Arc::clone(to);
        self.on_a_thread(selection, move |selection, common| {
            let conflated = base.as_ref().is_some_and(|base| is_conflated(selection, base, &to));
            let from = base.as_ref().map(|(base, _)| &*base.snapshot);
            Rendered::new(selection, from, &to, (conflated, passed.as_deref()), common)
        })
        .await
    }

    async fn on_a_thread(
        &self,
        selection: &Arc<Selection>,
        render: impl FnOnce(&Selection, &Common) -> Rendered + Send + 'static,
    ) -> Result<Rendered, NotRendered> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| NotRendered::Failed)?;
        // Earlier holders of the turn may have taken the memory.
        self.make_room()?;
        let (selection, common) = (Arc::clone(selection), self.common.clone());
        let rendering = tokio::task::spawn_blocking(move || {
            // The turn ends with the work, even if nobody waits for the result any more.
            let _turn = turn;
            render(&selection, &common)
        });
        rendering.await.map_err(|_| NotRendered::Failed)
    }
}

/// True if something was shown between the two. Live changes have no schedule: only states known to be skipped count.
fn is_conflated(selection: &Selection, (_, next): &Held, to: &Published) -> bool {
    let is_next = *next == Some(to.snapshot.cut_at);
    !(is_next || selection.mode == Mode::Live && next.is_none())
}

/// Records that may have appeared and disappeared between the two; `None` if this selection was sent nothing in
/// between.
///
/// Live states differ from node to node, and the client may have a part of one from another node.
async fn passed(
    handle: &WorldHandle,
    selection: &Selection,
    (from, base): (StartFrom, &Held),
    to: &Arc<Published>,
    key: u64,
) -> Result<Option<Arc<Passed>>, NotRendered> {
    let (held, _) = base;
    let is_live = selection.mode == Mode::Live || held.is_between;
    let is_looked_up = match (from, selection.mode) {
        (StartFrom::Nothing, _) => false,
        (StartFrom::Elsewhere(_), Mode::Live) => true,
        (StartFrom::Here(place), Mode::Live) => {
            let at = sought(handle.world, place.0);
            let after = handle.shown_after(at, selection.wants_whole());
            after.and_then(|(_, next)| next).is_none_or(|next| {
                selection.place_of(&next.snapshot) != selection.place_of(&to.snapshot)
            })
        }
        (StartFrom::Here(_) | StartFrom::Elsewhere(_), Mode::Publication) => {
            held.is_between || is_conflated(selection, base, to)
        }
    };
    if !is_looked_up {
        return Ok(None);
    }
    Ok(Some(handle.passed(&held.snapshot, &to.snapshot, is_live, key).await?))
}

/// The step from a position to a live state, if that is known without comparing whole snapshots.
fn live_step(handle: &WorldHandle, place: LogPlace, to: &Published) -> Option<Arc<LiveStep>> {
    let step = handle.live_step(sought(handle.world, place.0), to)?;
    (place_of(handle.world, &step.from) == place).then_some(step)
}

/// The state at a position for streams of a selection, and the time of the next state.
async fn base_of(
    handle: &WorldHandle,
    selection: &Selection,
    place: LogPlace,
    key: u64,
) -> Result<Held, NotRendered> {
    let (held, next) = base(handle, place, selection.mode, key).await?;
    // States between two whole snapshots are not skipped: they are for other streams.
    let exact = selection.wants_whole();
    let after = exact.then(|| handle.shown_after(sought(handle.world, place.0), exact)).flatten();
    let next = after.map_or(next, |(_, next)| Some(next?.snapshot.cut_at));
    Ok((held, next))
}

/// The state at a position, and the time of the next one of the mode.
pub(super) async fn base(
    handle: &WorldHandle,
    place: LogPlace,
    mode: Mode,
    key: u64,
) -> Result<Held, NotRendered> {
    match Base::find(handle, place, mode, key).await {
        Ok(Base::Held(held, next)) => Ok((held, next)),
        Ok(Base::Expired) => Err(NotRendered::Reset(Reset::Expired)),
        Ok(Base::Unknown) => Err(NotRendered::Reset(Reset::Unknown)),
        Ok(Base::Ahead) => Err(NotRendered::Ahead),
        Err(error) => Err(error.into()),
    }
}

impl From<HistoryError> for NotRendered {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Busy | HistoryError::Unreadable(_) => Self::Later,
            HistoryError::Off
            | HistoryError::NotKept(_)
            | HistoryError::NoCatalogue
            | HistoryError::TooFar => Self::Reset(Reset::Expired),
            HistoryError::TooMuch => Self::TooMuch,
        }
    }
}
