//! Event fragments that are kept for one publication: what an answer has of one event, under one of the first filters
//! of the epoch.
//!
//! Most clients use one of a few filters. The first answer that needs an event under such a filter makes its fragment;
//! every further one takes it as it is. Both the filters and the bytes that are kept are bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use domain::SportId;
use market::Snapshot;

/// A part of answers that can be kept.
pub(crate) trait Fragment {
    /// What it takes in memory.
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
    /// For each event of the sport.
    fragments: Box<[OnceLock<Arc<T>>]>,
}

/// The place of one event's fragment.
#[derive(Debug)]
pub(crate) struct Cell<'a, F, T> {
    kept: &'a SportFragments<F, T>,
    cell: &'a OnceLock<Arc<T>>,
    bytes_max: usize,
}

/// Filters that fragments are kept for.
const LAYERS: usize = 16;
/// What may be kept for each record of the sport. A record's texts take about twice as much.
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

    /// For an operator to watch.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.0.get().into_iter().flatten().map(SportFragments::kept_bytes).sum()
    }
}

impl<F: Copy + PartialEq, T: Fragment> SportFragments<F, T> {
    /// The place of an event's fragment under a filter, if it is or becomes one of those that fragments are kept for.
    /// `events` and `records` are how many the sport has.
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
