//! What a world is run with, and what is published of its book under that.

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

/// What a world is run with.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    pub world: World,
    /// Where its log is kept.
    pub log: LogLocation,
    pub catalogue: Arc<Catalogue>,
    pub refresh_interval: Duration,
    pub stale_after: Duration,
    /// What snapshots are rendered for when they are cut.
    pub wires: &'static [&'static dyn Wire],
    pub lifetimes: Lifetimes,
    /// How much it may hold.
    pub limits: Limits,
    /// How long log entries are kept once a checkpoint covers them.
    pub log_retention: Duration,
    /// What plays in it, for the sandbox.
    pub simulation: Option<Simulation>,
    /// A folder for what is worth keeping over a restart and is no part of the world.
    pub notes: Option<PathBuf>,
    pub history: HistoryOptions,
    /// How often it is shown between publications at the most, to those who follow it live.
    pub live_tick: Duration,
}

impl WorldOptions {
    /// What a writer says about itself before its first publication.
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

    /// What is published of a book as it is after log entry `seq`. What it depends on is what the log says, so that
    /// every node publishes the same, then and later.
    pub(crate) fn publication(&self, book: &Book, seq: u64, at: Timestamp) -> Published {
        self.cut(book, seq, at, self.wires)
    }

    /// The same of the past: of all its rows few are asked for, and only those are rendered.
    pub(crate) fn past_publication(&self, book: &Book, seq: u64, at: Timestamp) -> Published {
        self.cut(book, seq, at, &[])
    }

    fn cut(&self, book: &Book, seq: u64, at: Timestamp, wires: &[&dyn Wire]) -> Published {
        self.published(Snapshot::cut(book, seq, at, self.stale_after(book), wires))
    }

    /// All of a book, to be shown between publications.
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

    /// What was touched of a book, to be shown between publications.
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

    /// When the publication is due that follows an instant.
    fn until(&self, at: Timestamp) -> Timestamp {
        epoch_start(at, self.refresh_interval).plus(self.refresh_interval)
    }
}

/// What history is kept with.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// Times of the past can be asked for. Where not, positions that clients hold are still found in the log.
    pub by_time: bool,
    /// Where archives are, with one for each world; `None`: nothing is archived.
    pub store: Option<Location>,
    /// How often what was published is added to the archive.
    pub part_interval: Duration,
    /// For how long publications stay answerable.
    pub retention: Duration,
    /// What books made again and their answers may take, in bytes.
    pub memory_max: usize,
    /// Entries that are looked through at a time for what came and went.
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
    /// The archive of the live world, where there is one.
    pub fn archive(&self) -> Option<Location> {
        self.store.as_ref().map(|store| store.join(World::Live.key()))
    }
}

/// A salt for ids. It need not be secret, only different each time a process begins to write a world.
pub(crate) fn new_salt(options: &WorldOptions) -> u64 {
    RandomState::new().hash_one(options.world.key())
}

pub(crate) fn epoch_start(now: Timestamp, interval: Duration) -> Timestamp {
    let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
    Timestamp::from_millis(now.as_millis().div_euclid(interval_ms) * interval_ms)
}
