//! The board: a live odds screen. Events are rows, bookmakers columns; the best price of each outcome is marked, prices
//! that are too old are greyed with their age. Each event has a page of its own with the paths of its prices.
//!
//! Made from the current snapshot, as the API's answers are, once for everybody who looks at the same. The pages
//! work as they stand; a script lets them renew themselves with every publication ([`live`]).

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

/// What the boards are made from and who looks at them.
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

    /// How many paths of prices are kept.
    pub(crate) fn paths(&self) -> usize {
        self.history.read().unwrap_or_else(PoisonError::into_inner).paths()
    }

    /// Takes note of the prices of a publication.
    fn note(&self, snapshot: &Snapshot) {
        let noted = self.history.read().unwrap_or_else(PoisonError::into_inner);
        if !noted.has_noted(snapshot.cut_at) {
            drop(noted);
            self.history.write().unwrap_or_else(PoisonError::into_inner).note(snapshot);
        }
    }
}
