//! How a world begins: from its checkpoint and log, or, for the sandbox, from its seed and the clock.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use change_log::{Gap, Log, LogLocation, LogView, Losses};
use domain::Timestamp;
use domain::message::{Body, FeedMessage};
use market::{Book, Change, Ids, Snapshot};

use crate::entries::Entries;
use crate::error::Chain;
use crate::error::WorldError;
use crate::publication::Published;
use crate::replay::{Base, Logged, Replay};
use crate::world::{WorldHandle, WorldOptions};

/// The feed name of the simulator; pushed feeds live in the other world.
const SANDBOX_FEED: &str = "sandbox";

/// So many entries after the last snapshot are held decoded while a log is read.
const WAITING_MAX: usize = 50_000;

/// The sandbox's ids come from the refs of the seed's schedule alone, so that they are the same everywhere.
pub const SANDBOX_IDS: Ids = Ids::Derived { salt: 0x5a4d_b0c5 };

/// A book on its way to its first snapshot.
pub(crate) struct Start {
    pub(crate) book: Book,
    pub(crate) checkpoint_seq: u64,
    /// The entry and the time of the snapshot that was published last, if the log has it.
    last_cut: Option<(u64, Timestamp)>,
    last_published: Option<Snapshot>,
    pub(crate) entries: Entries,
    /// Entries after the checkpoint that are lost to damage.
    pub(crate) lost: u64,
}

impl Start {
    pub(crate) fn afresh(options: &WorldOptions, ids: Ids) -> Self {
        let mut entries = Entries::default();
        entries.push(&Change::Founded { ids });
        let mut book = Book::new(Arc::clone(&options.catalogue), ids);
        book.set_limits(options.limits);
        Self { book, checkpoint_seq: 0, last_cut: None, last_published: None, entries, lost: 0 }
    }

    /// The checkpoint and what the log holds after it, to go on from: with a salt of its own for new ids.
    ///
    /// Entries after the last snapshot wait until it is known to be the last, or until they are too many to hold:
    /// then the snapshot is cut although another may follow.
    pub(crate) fn recover(log: &mut Log, options: &WorldOptions) -> Result<Self, WorldError> {
        let base = Base::newest(log, &options.catalogue)?;
        let mut replay = Replay::after(log, &base)?;
        let mut start = Self::from_checkpoint(base, options);
        let (mut waiting, mut read) = (Vec::new(), false);
        for logged in replay.by_ref() {
            let Logged { seq, at, change, .. } = logged?;
            read = true;
            let cut = if let Change::Cut { at } = change { Some((seq, at)) } else { None };
            waiting.push((at, change));
            if cut.is_none() && waiting.len() < WAITING_MAX {
                continue;
            }
            if cut.is_none() {
                start.cut_last(options);
            }
            waiting.drain(..).for_each(|(at, change)| start.book.absorb(&change, at));
            if cut.is_some() {
                (start.last_cut, start.last_published) = (cut, None);
            }
        }
        start.cut_last(options);
        waiting.drain(..).for_each(|(at, change)| start.book.absorb(&change, at));
        Ok(start.renewed(read, &replay, options))
    }

    /// The same for who serves nothing: without the last snapshot.
    pub(crate) fn recover_book(log: &mut Log, options: &WorldOptions) -> Result<Self, WorldError> {
        let base = Base::newest(log, &options.catalogue)?;
        let mut replay = Replay::after(log, &base)?;
        let mut start = Self::from_checkpoint(base, options);
        let mut read = false;
        for logged in replay.by_ref() {
            let logged = logged?;
            read = true;
            start.book.absorb(&logged.change, logged.at);
        }
        Ok(start.renewed(read, &replay, options))
    }

    fn from_checkpoint(base: Base, options: &WorldOptions) -> Self {
        let Base { mut book, seq, missing, position: _ } = base;
        if missing > 0 {
            tracing::error!(
                event = "log.prefix_missing",
                checkpoint = seq,
                missing,
                "the log no longer holds the entries after its checkpoint"
            );
        }
        book.set_limits(options.limits);
        let entries = Entries::default();
        let (checkpoint_seq, lost) = (seq, missing);
        Self { book, checkpoint_seq, last_cut: None, last_published: None, entries, lost }
    }

    fn cut_last(&mut self, options: &WorldOptions) {
        if let (Some((seq, at)), None) = (self.last_cut, &self.last_published) {
            self.last_published =
                Some(Snapshot::cut(&self.book, seq, at, options.stale_after, options.wires));
        }
    }

    /// Ids of its own for what comes, and a first entry where the log has none that can be read.
    fn renewed(mut self, read: bool, replay: &Replay, options: &WorldOptions) -> Self {
        let lost = self.lost + report(&replay.losses());
        if self.checkpoint_seq == 0 && !read {
            return Self { lost, ..Self::afresh(options, new_ids(options)) };
        }
        self.book.renew_salt(new_salt(options));
        Self { lost, ..self }
    }

    /// The epoch's snapshot if it was cut already, so that a restart shows the same bytes; else a new one.
    /// `last_seq`: the last entry of the log, which `entries` will follow.
    pub(crate) fn first_snapshot(
        &mut self,
        options: &WorldOptions,
        now: Timestamp,
        last_seq: u64,
        entries: &mut Entries,
    ) -> (Published, Timestamp) {
        let epoch = epoch_start(now, options.refresh_interval);
        let until = epoch.plus(options.refresh_interval);
        if let (Some((_, cut)), Some(snapshot)) = (self.last_cut, self.last_published.take())
            && cut >= epoch
            && cut < until
        {
            return (Published::new(snapshot, until), now);
        }
        // The simulator is a function of the epoch; real data is as of now.
        let at = if options.simulation.is_some() { epoch } else { now };
        if let Some(simulation) = &options.simulation {
            for message in simulation.world_at(at) {
                play(&mut self.book, &message, at, entries);
            }
        }
        for change in self.book.overdue(at, options.lifetimes) {
            self.book.absorb(&change, at);
            entries.push(&change);
        }
        entries.push(&Change::Cut { at });
        let seq = last_seq + u64::try_from(entries.ends.len()).unwrap_or(0);
        let snapshot = Snapshot::cut(&self.book, seq, at, options.stale_after, options.wires);
        (Published::new(snapshot, until), at)
    }
}

/// Ids for a world that begins.
pub(crate) fn new_ids(options: &WorldOptions) -> Ids {
    Ids::Minted { salt: new_salt(options) }
}

/// A salt for ids. It need not be secret, only different each time a process begins to write a world.
pub(crate) fn new_salt(options: &WorldOptions) -> u64 {
    RandomState::new().hash_one(options.world.key())
}

/// Says what of a log is damaged, keeps a copy of it, and gives the number of entries that are lost.
fn report(losses: &Losses) -> u64 {
    for gap in &losses.gaps {
        let Gap { path, offset, bytes, seqs, reason } = gap;
        tracing::error!(event = "log.damaged",
            path = %path.display(), offset, bytes, %reason,
            first_lost = seqs.start(), last_lost = seqs.end(), lost = seqs.clone().count(),
            "the log is damaged; all that is whole before and after it is used"
        );
        if let Err(error) = gap.save_aside() {
            tracing::warn!(event = "log.damage_copy_failed", error = %Chain(&error), "damaged bytes could not be copied");
        }
    }
    losses.entries
}

/// Looks through the part of a folder's log that a start does not read, because its checkpoint covers it. What is
/// damaged there is missed by who looks back, and shows that the disk is bad: it is told, while the service runs
/// already.
pub(crate) fn check_older(handle: &Arc<WorldHandle>, covered: u64) {
    let LogLocation::Folder { dir, .. } = &handle.past.log else { return };
    if covered == 0 {
        return;
    }
    let (dir, handle) = (dir.clone(), Arc::clone(handle));
    let check = move || match LogView::open(&dir).and_then(|log| log.losses_until(covered)) {
        Ok(losses) => WorldHandle::count(&handle.stats.log_lost, report(&losses)),
        Err(error) => {
            tracing::warn!(event = "log.check_failed", dir = %dir.display(), error = %Chain(&error), "old log entries could not be checked");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("log-check".to_owned()).spawn(check) {
        tracing::warn!(event = "log.check_failed", %error, "old log entries could not be checked");
    }
}

/// One message of the simulator. What it refuses is a fault of ours, worth a line in the log.
pub(crate) fn play(book: &mut Book, message: &FeedMessage, at: Timestamp, entries: &mut Entries) {
    match book.apply(SANDBOX_FEED, message, arrival(message, at)) {
        Ok(decision) => {
            for change in decision.change.iter().chain(&decision.follow) {
                entries.push(change);
            }
        }
        Err(reject) => {
            tracing::warn!(event = "sandbox.message_refused", code = reject.code.slug(), %reject, "sandbox message refused");
        }
    }
}

/// One message of the simulator, for a book that is only looked at.
pub fn play_back(book: &mut Book, message: &FeedMessage, at: Timestamp) {
    play(book, message, at, &mut Entries::default());
}

/// When a simulated message arrives: a function of the message, like everything in the sandbox. Each
/// bookmaker has a delay of its own.
pub(crate) fn arrival(message: &FeedMessage, at: Timestamp) -> Timestamp {
    let delay_ms = match &message.body {
        Body::Odds(odds) => 40 + 37 * odds.bookmaker.index() % 400,
        Body::Heartbeat { bookmaker, .. } => 40 + 37 * bookmaker.index() % 400,
        Body::Event { .. } | Body::Score(_) | Body::Remove { .. } => 0,
    };
    let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0));
    message.ts.map_or(at, |ts| ts.plus(delay))
}

pub(crate) fn epoch_start(now: Timestamp, interval: Duration) -> Timestamp {
    let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
    Timestamp::from_millis(now.as_millis().div_euclid(interval_ms) * interval_ms)
}
