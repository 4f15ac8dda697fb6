//! Earlier price changes, read when a service starts.

use std::sync::Arc;
use std::time::Duration;

use domain::{Catalogue, Timestamp};
use market::{Book, Change, Snapshot};

use super::PriceHistory;
use crate::error::WorldError;
use crate::replay::{Base, Logged, Replay};
use crate::simulator::{SANDBOX_IDS, play_back};
use crate::world::WorldHandle;

/// Maximum number of records of a book that is built a second time to look back: memory is planned for one.
const RECORDS_MAX: u64 = 100_000;
/// Interval between the snapshots read from a log, which has only the publications since its last checkpoint.
const LOG_STEP: Duration = Duration::from_secs(60);

impl PriceHistory {
    /// Notes the state of a simulated world at an instant.
    pub fn note_simulated(
        &mut self,
        handle: &WorldHandle,
        catalogue: &Arc<Catalogue>,
        at: Timestamp,
    ) {
        let Some(simulation) = &handle.past.simulation else { return };
        let mut book = Book::new(Arc::clone(catalogue), SANDBOX_IDS);
        for message in simulation.world_at(at) {
            play_back(&mut book, &message, at);
        }
        self.note(&Snapshot::cut(&book, 0, at, handle.stale_after(), &[]));
    }

    /// Notes the publications of a world before `until`, since the last checkpoint of its log.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn read_log(
        &mut self,
        handle: &WorldHandle,
        catalogue: &Arc<Catalogue>,
        until: Timestamp,
    ) -> Result<(), WorldError> {
        if handle.stats.load.load().records > RECORDS_MAX {
            let world = handle.world;
            tracing::info!(event = "board.past_skipped", %world, "price paths begin now: the book is too large to be built a second time");
            return Ok(());
        }
        let Some(mut log) = handle.past.log.view()? else { return Ok(()) };
        let mut base = Base::newest(&mut *log, catalogue)?;
        let mut noted: Option<Timestamp> = None;
        for logged in Replay::after(&*log, &base)? {
            let Logged { seq, at, change, .. } = logged?;
            base.book.absorb(&change, at);
            if let Change::Cut { at } = change {
                let due = noted.is_none_or(|noted| at.since(noted) >= LOG_STEP);
                if due && at < until {
                    self.note(&Snapshot::cut(&base.book, seq, at, handle.stale_after(), &[]));
                    noted = Some(at);
                }
            }
        }
        Ok(())
    }
}
