//! Event fragments kept for one publication: the part of an answer about one event, under one of the first filters of
//! the epoch.
//!
//! Most clients use one of a few filters. The first answer that needs an event under such a filter renders its
//! fragment; every further one reuses it. The number of filters and the bytes kept are both bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use domain::SportId;
use market::Snapshot;

/// A part of an answer that can be kept.
pub(crate) trait Fragment {
    /// Approximate memory, in bytes.
    fn bytes(&self) -> usize;
}

/// The fragments kept for one publication.
#[derive(Debug)]
pub(crate) struct FragmentCache<F, T>(OnceLock<Box<[SportFragments<F, T>]>>);

/// The fragments kept for each of the first filters of an epoch.
#[derive(Debug)]
pub(crate) struct SportFragments<F, T> {
    layers: [OnceLock<Layer<F, T>>; LAYERS],
    kept_bytes: AtomicUsize,
}

#[derive(Debug)]
struct Layer<F, T> {
    filter: F,
    /// One for each event of the sport.
    fragments: Box<[OnceLock<Arc<T>>]>,
}

/// The slot of one event's fragment.
#[derive(Debug)]
pub(crate) struct Cell<'a, F, T> {
    kept: &'a SportFragments<F, T>,
    cell: &'a OnceLock<Arc<T>>,
    bytes_max: usize,
}

/// Maximum number of filters for which fragments are kept.
const LAYERS: usize = 16;
/// Maximum bytes kept for each record of the sport. A record's texts take about twice as much.
const KEPT_BYTES_PER_RECORD: usize = 512;

impl<F, T> Default for FragmentCache<F, T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<F, T> Default for SportFragments<F, T> {
    fn default() -> Self {
        Self { layers: Default::default(), kept_bytes: AtomicUsize::new(0) }
    }
}

impl<F: Copy + PartialEq, T: Fragment> FragmentCache<F, T> {
    pub(crate) fn of_sport(
        &self,
        snapshot: &Snapshot,
        sport: SportId,
    ) -> Option<&SportFragments<F, T>> {
        let sports = || snapshot.catalogue().sports().map(|_| SportFragments::default()).collect();
        self.0.get_or_init(sports).get(sport.index())
    }

    /// For operators.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.0.get().into_iter().flatten().map(SportFragments::kept_bytes).sum()
    }
}

impl<F: Copy + PartialEq, T: Fragment> SportFragments<F, T> {
    /// The slot of an event's fragment under a filter, if the filter is, or becomes, one for which fragments are kept.
    /// `events` and `records` are their numbers in the sport.
    pub(crate) fn cell(
        &self,
        filter: &F,
        (events, records): (usize, usize),
        event: usize,
    ) -> Option<Cell<'_, F, T>> {
        let make = || {
            let fragments: Box<[_]> = std::iter::repeat_with(OnceLock::new).take(events).collect();
            self.kept_bytes.fetch_add(size_of_val(&*fragments), Ordering::Relaxed);
            Layer { filter: *filter, fragments }
        };
        let mut layers = self.layers.iter().map(|cell| cell.get_or_init(make));
        let layer = layers.find(|layer| layer.filter == *filter)?;
        let bytes_max = KEPT_BYTES_PER_RECORD * records;
        Some(Cell { kept: self, cell: layer.fragments.get(event)?, bytes_max })
    }

    fn kept_bytes(&self) -> usize {
        self.kept_bytes.load(Ordering::Relaxed)
    }
}

impl<F: Copy + PartialEq, T: Fragment> Cell<'_, F, T> {
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.cell.get().cloned()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.kept.kept_bytes() < self.bytes_max
    }

    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let fragment = self.cell.get_or_init(|| {
            let whole = make();
            self.kept.kept_bytes.fetch_add(whole.bytes(), Ordering::Relaxed);
            Arc::new(whole)
        });
        Arc::clone(fragment)
    }
}
