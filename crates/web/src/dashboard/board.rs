//! The board: a live odds screen. Events are rows, bookmakers are columns; the best price of each outcome is marked,
//! and stale prices are grey with their age. Each event has its own page with its price history.
//!
//! Rendered from the current snapshot, like the API's answers, once for all readers with the same choice. The pages
//! work without scripts; a script updates them at every publication ([`live`]).

mod chart;
mod choice;
mod delta;
mod event;
mod filter;
mod frame;
mod keeper;
mod live;
mod pages;
mod past;
mod screen;
mod sparkline;
mod text;
mod value;
mod worker_slots;

use std::sync::{Arc, PoisonError, RwLock};

use api::Api;
use engine::PriceHistory;
use http::SlotLimits;
use market::Snapshot;

use self::live::BoardHub;
use self::past::EventPasts;
use self::worker_slots::WorkerSlots;

pub use self::keeper::keep_pages;
pub(crate) use self::live::NotWatched;
pub(crate) use self::pages::{answer, watch};

/// Shared state of the boards.
#[derive(Debug)]
pub(crate) struct Board {
    api: Arc<Api>,
    watchers_max: SlotLimits,
    pub(crate) history: RwLock<PriceHistory>,
    pub(crate) hub: BoardHub,
    pasts: EventPasts,
    workers: WorkerSlots,
}

impl Board {
    pub(crate) fn new(api: Arc<Api>, watchers_max: SlotLimits) -> Self {
        Self {
            api,
            watchers_max,
            history: RwLock::default(),
            hub: BoardHub::default(),
            pasts: EventPasts::default(),
            workers: WorkerSlots::default(),
        }
    }

    /// Number of price paths in memory.
    pub(crate) fn paths(&self) -> usize {
        self.history.read().unwrap_or_else(PoisonError::into_inner).paths()
    }

    /// Records the prices of a publication.
    fn note(&self, snapshot: &Snapshot) {
        let noted = self.history.read().unwrap_or_else(PoisonError::into_inner);
        if !noted.has_noted(snapshot.cut_at) {
            drop(noted);
            self.history.write().unwrap_or_else(PoisonError::into_inner).note(snapshot);
        }
    }
}
