//! Rendered events, made once for all who need them and kept within a bound of memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::Timestamp;
use engine::{HistoryError, Published, WorldHandle};
use tokio::sync::{OnceCell, Semaphore};

use super::render::Rendered;
use super::selection::Selection;
use crate::position::LogPlace;
use crate::v1::changes::Base;
use crate::v1::wire::stream::{Mode, Reset};

/// What is rendered at a time: each takes a processor for some milliseconds.
const RENDERS_MAX: usize = 2;
/// Entries that are kept or waited for, whatever they take.
const ENTRIES_MAX: usize = 16_384;

/// Which events: from where to where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    selection: Arc<Selection>,
    from: Option<LogPlace>,
    to: LogPlace,
}

type Cell = Arc<OnceCell<Arc<Rendered>>>;

#[derive(Debug)]
struct Entry {
    cell: Cell,
    /// 0 while it is made.
    bytes: usize,
    used: u64,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    /// Counts uses, so that the longest unused is known.
    now: u64,
}

/// The events of all streams.
#[derive(Debug)]
pub(super) struct Renders {
    kept: Mutex<Kept>,
    turns: Arc<Semaphore>,
    /// What is kept, and what clients have not read yet.
    held: Arc<AtomicUsize>,
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
    Failed,
}

impl Renders {
    pub(super) fn new(held_max: usize) -> Self {
        let turns = Arc::new(Semaphore::new(RENDERS_MAX));
        Self { kept: Mutex::default(), turns, held: Arc::default(), held_max }
    }

    /// The events from a place, or from nothing, to a publication. `key`: for whom a past publication is made again.
    pub(super) async fn events(
        &self,
        handle: &WorldHandle,
        selection: &Arc<Selection>,
        from: Option<LogPlace>,
        to: &Arc<Published>,
        key: u64,
    ) -> Result<Arc<Rendered>, NotRendered> {
        let to_place = selection.place_of(&to.snapshot);
        let name = Key { selection: Arc::clone(selection), from, to: to_place };
        let cell = self.lock().cell(&name);
        let made = cell.get_or_try_init(async || {
            self.make_room()?;
            let base = match from {
                Some(place) => Some(base(handle, place, selection.mode, key).await?),
                None => None,
            };
            let rendered = Arc::new(self.make(selection, base, to).await?);
            // Half is for what is kept, the other half for what clients have not read.
            self.lock().note(&name, rendered.bytes(), self.held_max / 2);
            Ok(rendered)
        });
        made.await.map(Arc::clone)
    }

    /// Events for one client alone, which are not kept.
    pub(super) async fn render(
        &self,
        selection: &Arc<Selection>,
        base: Option<Held>,
        to: &Arc<Published>,
    ) -> Result<Rendered, NotRendered> {
        self.make_room()?;
        self.make(selection, base, to).await
    }

    /// Makes sure that there is memory for some events more.
    fn make_room(&self) -> Result<(), NotRendered> {
        if self.held.load(Ordering::Relaxed) >= self.held_max {
            self.lock().make_room(0);
            if self.held.load(Ordering::Relaxed) >= self.held_max {
                return Err(NotRendered::Later);
            }
        }
        Ok(())
    }

    async fn make(
        &self,
        selection: &Arc<Selection>,
        base: Option<Held>,
        to: &Arc<Published>,
    ) -> Result<Rendered, NotRendered> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| NotRendered::Failed)?;
        let (selection, held) = (Arc::clone(selection), Arc::clone(&self.held));
        let to = Arc::clone(to);
        let rendering = tokio::task::spawn_blocking(move || {
            // The turn ends with the work, also where nobody waits for it any more.
            let _turn = turn;
            let from = base.as_ref().map(|(base, next)| (&*base.snapshot, *next));
            Rendered::new(&selection, from, &to, &held)
        });
        rendering.await.map_err(|_| NotRendered::Failed)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing in there panics half-way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        Ok(Base::Ahead) => Err(NotRendered::Later),
        Err(error) => Err(error.into()),
    }
}

impl From<HistoryError> for NotRendered {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Busy | HistoryError::Unreadable(_) => Self::Later,
            HistoryError::Off | HistoryError::NotKept(_) => Self::Reset(Reset::Expired),
        }
    }
}

impl Kept {
    fn cell(&mut self, key: &Key) -> Cell {
        self.now += 1;
        let used = self.now;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.used = used;
            return Arc::clone(&entry.cell);
        }
        if self.entries.len() >= ENTRIES_MAX {
            self.drop_oldest();
        }
        let cell = Cell::default();
        self.entries.insert(key.clone(), Entry { cell: Arc::clone(&cell), bytes: 0, used });
        cell
    }

    /// Notes what an entry takes; those unused for longest go until all is within the bound.
    fn note(&mut self, key: &Key, bytes: usize, max: usize) {
        if let Some(entry) = self.entries.get_mut(key) {
            self.bytes = self.bytes - entry.bytes + bytes;
            entry.bytes = bytes;
        }
        self.make_room(max);
    }

    fn make_room(&mut self, max: usize) {
        while self.bytes > max && self.drop_oldest() {}
    }

    /// Many go at once, so that the search for them is seldom.
    fn drop_oldest(&mut self) -> bool {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let some = uses.len() / 8;
        if uses.is_empty() {
            return false;
        }
        let (_, last, _) = uses.select_nth_unstable(some);
        let last = *last;
        self.entries.retain(|_, entry| entry.used > last);
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
        true
    }
}
