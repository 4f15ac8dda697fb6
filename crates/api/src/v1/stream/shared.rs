//! Rendered events, made once for all who need them and kept within a bound of memory.

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

/// What is rendered at a time: each takes a processor for some milliseconds.
const RENDERS_MAX: usize = 2;
/// Rows of both sides of a live step that are compared at once: at most half a millisecond.
const ROWS_HERE_MAX: usize = 2048;
/// Entries that are kept or waited for, whatever they take.
const ENTRIES_MAX: usize = 16_384;

/// Which events: from where to where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    selection: Arc<Selection>,
    from: StartFrom,
    to: LogPlace,
}

/// What events begin from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StartFrom {
    Nothing,
    /// What this node has sent, up to there.
    Here(LogPlace),
    /// What another connection has sent, of this node or of another, perhaps with a part of what follows.
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

/// What events begin from, and when the next of its kind was made.
type Held = (Arc<Published>, Option<Timestamp>);

/// Why there are no events.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotRendered {
    /// The client has to begin anew.
    Reset(Reset),
    /// It may be possible in a moment: the node is behind, or history or memory is in use.
    Later,
    /// The same: the node has not come to the position yet, if it ever does.
    Ahead,
    Failed,
}

impl Renders {
    pub(super) fn new(held_max: usize, catalogue: Arc<Catalogue>) -> Self {
        let turns = Arc::new(Semaphore::new(RENDERS_MAX));
        // Half is for what is kept, the other half for what clients have not read.
        let kept = MadeOnce::new(held_max / 2, ENTRIES_MAX);
        Self { kept, turns, common: Common { catalogue, unread: Arc::default() }, held_max }
    }

    /// The events from a place, or from nothing, to a publication. `key`: for whom a past publication is made again.
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

    /// Events for one client alone, which are not kept.
    pub(super) async fn render(
        &self,
        selection: &Arc<Selection>,
        base: Option<Held>,
        to: &Arc<Published>,
    ) -> Result<Rendered, NotRendered> {
        self.make_room()?;
        self.make(selection, base, to, None).await
    }

    /// The events of a change of the past, for one client alone.
    pub(super) async fn render_change(
        &self,
        selection: &Arc<Selection>,
        WalkedChange { step, shown }: WalkedChange,
    ) -> Result<Rendered, NotRendered> {
        self.make_room()?;
        self.make_step(selection, Arc::new(step), &shown).await
    }

    /// No events, but another place.
    pub(super) fn moved(&self, selection: &Selection, shown: &Published) -> Rendered {
        Rendered::moved(selection, shown)
    }

    /// Makes sure that there is memory for some events more: nobody waits for those who do not read.
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

    /// The events of what changed live: here where it is little, on another thread where it is not.
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
        // Those before it may have taken what there was.
        self.make_room()?;
        let (selection, common) = (Arc::clone(selection), self.common.clone());
        let rendering = tokio::task::spawn_blocking(move || {
            // The turn ends with the work, also where nobody waits for it any more.
            let _turn = turn;
            render(&selection, &common)
        });
        rendering.await.map_err(|_| NotRendered::Failed)
    }
}

/// Whether something was shown between the two. What is shown live comes when it comes: only what is known to be left
/// out was.
fn is_conflated(selection: &Selection, (_, next): &Held, to: &Published) -> bool {
    let is_next = *next == Some(to.snapshot.cut_at);
    !(is_next || selection.mode == Mode::Live && next.is_none())
}

/// What may have come and gone between the two; `None`: nothing was shown in between to anybody who follows this. What
/// is shown live differs from node to node, and a part of it may have got to the client from another one.
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

/// What leads from a place to something shown live, where that is known without a look at whole snapshots.
fn live_step(handle: &WorldHandle, place: LogPlace, to: &Published) -> Option<Arc<LiveStep>> {
    let step = handle.live_step(sought(handle.world, place.0), to)?;
    (place_of(handle.world, &step.from) == place).then_some(step)
}

/// What was shown at a place to who follows a selection, and when what is shown next was made.
async fn base_of(
    handle: &WorldHandle,
    selection: &Selection,
    place: LogPlace,
    key: u64,
) -> Result<Held, NotRendered> {
    let (held, next) = base(handle, place, selection.mode, key).await?;
    // What is between two whole snapshots is not left out: it is for others.
    let exact = selection.wants_whole();
    let after = exact.then(|| handle.shown_after(sought(handle.world, place.0), exact)).flatten();
    let next = after.map_or(next, |(_, next)| Some(next?.snapshot.cut_at));
    Ok((held, next))
}

/// What was shown at a place, and when the next of the mode was made.
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
        }
    }
}
