//! Options of a world, and how they determine its publications.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive::Location;
use change_log::LogLocation;
use domain::{Catalogue, EventId, Timestamp, World};
use feeds::sandbox::Simulation;
use market::{Book, Configured, Lifetimes, Limits, Snapshot, Touched, Wire};

use crate::publication::Published;

/// Options of a world.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    pub world: World,
    /// Location of its log.
    pub log: LogLocation,
    pub catalogue: Arc<Catalogue>,
    pub refresh_interval: Duration,
    pub stale_after: Duration,
    /// Formats in which snapshots are rendered when they are cut.
    pub wires: &'static [&'static dyn Wire],
    pub lifetimes: Lifetimes,
    /// Maximum sizes of the world.
    pub limits: Limits,
    /// Time for which log entries are kept once a checkpoint covers them.
    pub log_retention: Duration,
    /// The simulation of the sandbox.
    pub simulation: Option<Simulation>,
    /// A folder for notes that survive a restart but are not part of the world.
    pub notes: Option<PathBuf>,
    pub history: HistoryOptions,
    /// Minimum time between states that live followers are shown between publications.
    pub live_tick: Duration,
}

impl WorldOptions {
    /// The writer's settings, logged before its first publication.
    pub(crate) fn configured(&self) -> Configured {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Configured {
            writer: new_salt(self),
            refresh_interval_ms: millis(self.refresh_interval),
            stale_after_ms: millis(self.stale_after),
            catalogue: self.catalogue.version().into(),
            program: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// The publication of a book after log entry `seq`. It depends only on the log, so every node publishes the same,
    /// also later.
    pub(crate) fn publication(&self, book: &Book, seq: u64, at: Timestamp) -> Published {
        self.cut(book, seq, at, self.wires)
    }

    /// The same for the past: few of its rows are requested, so only those are rendered.
    pub(crate) fn past_publication(&self, book: &Book, seq: u64, at: Timestamp) -> Published {
        self.cut(book, seq, at, &[])
    }

    fn cut(&self, book: &Book, seq: u64, at: Timestamp, wires: &[&dyn Wire]) -> Published {
        let snapshot = Snapshot::cut(book, seq, at, self.stale_after(book), wires);
        self.published(snapshot).of_weight(book.weight())
    }

    /// A whole book, shown between publications.
    pub(crate) fn whole_between(
        &self,
        book: &Book,
        (seq, at): (u64, Timestamp),
        touched: Touched,
    ) -> Published {
        let touched = match touched {
            Touched::All => None,
            Touched::Events(ids) => Some(ids),
        };
        self.publication(book, seq, at).between(touched)
    }

    /// The touched part of a book, shown between publications.
    pub(crate) fn part_between(
        &self,
        book: &Book,
        (seq, at): (u64, Timestamp),
        touched: BTreeSet<EventId>,
    ) -> Published {
        let stale_after = self.stale_after(book);
        let part = Snapshot::cut_events(book, &touched, (seq, at), stale_after, self.wires);
        self.published(part).between(Some(touched)).into_part()
    }

    fn published(&self, mut snapshot: Snapshot) -> Published {
        if let Some(simulation) = &self.simulation {
            snapshot.writer = simulation.hash;
        }
        let until = self.until(snapshot.cut_at);
        Published::new(snapshot, until)
    }

    fn stale_after(&self, book: &Book) -> Duration {
        let logged = book.configured();
        logged.map_or(self.stale_after, |logged| Duration::from_millis(logged.stale_after_ms))
    }

    /// Due time of the publication that follows an instant.
    fn until(&self, at: Timestamp) -> Timestamp {
        epoch_start(at, self.refresh_interval).plus(self.refresh_interval)
    }
}

/// Options of history.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// True if times of the past can be requested. Otherwise client positions are still found in the log.
    pub by_time: bool,
    /// Location of the archives, one for each world; `None`: nothing is archived.
    pub store: Option<Location>,
    /// Time between additions to the archive.
    pub part_interval: Duration,
    /// Time for which publications can be answered.
    pub retention: Duration,
    /// Maximum memory of rebuilt books and their answers, in bytes.
    pub memory_max: usize,
    /// Number of entries read at a time to find records that appeared and disappeared.
    pub entries_at_once: u64,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        let retention = Duration::from_secs(400 * 24 * 3600);
        let part_interval = Duration::from_secs(15 * 60);
        let (memory_max, entries_at_once) = (512 << 20, 1_000_000);
        let (by_time, store) = (true, None);
        Self { by_time, store, part_interval, retention, memory_max, entries_at_once }
    }
}

impl HistoryOptions {
    /// The archive of the live world, if it has one.
    pub fn archive(&self) -> Option<Location> {
        self.store.as_ref().map(|store| store.join(World::Live.key()))
    }
}

/// A salt for ids. It need not be secret, only different each time a process starts writing a world.
pub(crate) fn new_salt(options: &WorldOptions) -> u64 {
    RandomState::new().hash_one(options.world.key())
}

pub(crate) fn epoch_start(now: Timestamp, interval: Duration) -> Timestamp {
    let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
    Timestamp::from_millis(now.as_millis().div_euclid(interval_ms) * interval_ms)
}
