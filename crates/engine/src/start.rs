//! The start of a world: from its checkpoint and log, or, for the sandbox, from its seed and the clock.

use std::sync::Arc;

use change_log::{Gap, Log, LogLocation, LogView, Losses};
use domain::Timestamp;
use market::{Book, Change, Configured, Ids};

use crate::entries::Entries;
use crate::error::Chain;
use crate::error::WorldError;
use crate::gap_note::LogGap;
use crate::options::{WorldOptions, epoch_start, new_salt};
use crate::publication::Published;
use crate::replay::{Base, Logged, Replay};
use crate::simulator::play;
use crate::world::WorldHandle;

/// Maximum number of entries after the last snapshot that are held decoded while a log is read.
const WAITING_MAX: usize = 50_000;

/// A book before its first snapshot.
pub(crate) struct Start {
    pub(crate) book: Book,
    pub(crate) checkpoint_seq: u64,
    /// The entry and the time of the last published snapshot, if the log has it.
    last_cut: Option<(u64, Timestamp)>,
    last_published: Option<Published>,
    /// Time of the log's last entry, if it was read.
    pub(crate) last_at: Option<Timestamp>,
    pub(crate) entries: Entries,
    /// Start of a gap in the log, up to the end of the process that published in it.
    unlogged_since: Option<Timestamp>,
    /// The configuration that the writer logs; `None` in a simulated world.
    pub(crate) configured: Option<Configured>,
    /// Entries after the checkpoint that are lost to damage.
    pub(crate) lost: u64,
}

impl Start {
    pub(crate) fn afresh(options: &WorldOptions, ids: Ids) -> Self {
        let mut entries = Entries::default();
        entries.push(&Change::Founded { ids });
        let mut book = Book::new(Arc::clone(&options.catalogue), ids);
        book.set_limits(options.limits);
        Self::with(book, 0, entries, options)
    }

    /// The checkpoint and the entries after it, to continue from, with a new salt for new ids.
    ///
    /// Entries after the last snapshot wait until it is known to be the last, or until they are too many to hold: then
    /// the snapshot is cut although another may follow.
    pub(crate) fn recover(log: &mut Log, options: &WorldOptions) -> Result<Self, WorldError> {
        let base = Base::newest(log, &options.catalogue)?;
        let mut replay = Replay::after(log, &base)?;
        let mut start = Self::from_checkpoint(base, options);
        let (mut waiting, mut read) = (Vec::new(), false);
        for logged in replay.by_ref() {
            let Logged { seq, at, change, .. } = logged?;
            read = true;
            start.last_at = Some(at);
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

    /// The same without the last snapshot, for a process that serves nothing.
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
        Self { lost: missing, ..Self::with(book, seq, entries, options) }
    }

    fn with(book: Book, checkpoint_seq: u64, entries: Entries, options: &WorldOptions) -> Self {
        let configured = options.simulation.is_none().then(|| options.configured());
        let (last_cut, last_published, last_at) = (None, None, None);
        let (unlogged_since, lost) = (None, 0);
        Self {
            book,
            checkpoint_seq,
            last_cut,
            last_published,
            last_at,
            entries,
            unlogged_since,
            configured,
            lost,
        }
    }

    /// Notes the gap that an ended process has recorded. If the log has a later publication, it has the gap too.
    pub(crate) fn note_gap(&mut self, gap: Option<LogGap>) {
        let open = gap.filter(|gap| self.last_cut.is_none_or(|(seq, _)| seq <= gap.seq));
        self.unlogged_since = open.map(|gap| gap.from);
    }

    fn cut_last(&mut self, options: &WorldOptions) {
        if let (Some((seq, at)), None) = (self.last_cut, &self.last_published) {
            self.last_published = Some(options.publication(&self.book, seq, at));
        }
    }

    /// Sets a new salt for new ids, and adds a first entry if the log has none that can be read.
    fn renewed(mut self, read: bool, replay: &Replay, options: &WorldOptions) -> Self {
        let lost = self.lost + report(&replay.losses());
        if self.checkpoint_seq == 0 && !read {
            return Self { lost, ..Self::afresh(options, new_ids(options)) };
        }
        self.book.renew_salt(new_salt(options));
        Self { lost, ..self }
    }

    /// The epoch's snapshot if it was cut already, so that a restart shows the same bytes; else a new one. `last_seq`:
    /// the last entry of the log, which `entries` will follow.
    pub(crate) fn first_snapshot(
        &mut self,
        options: &WorldOptions,
        now: Timestamp,
        last_seq: u64,
        entries: &mut Entries,
    ) -> (Published, Timestamp) {
        let epoch = epoch_start(now, options.refresh_interval);
        let until = epoch.plus(options.refresh_interval);
        if let (Some((_, cut)), Some(published)) = (self.last_cut, self.last_published.take())
            && cut >= epoch
            && cut < until
            && self.is_of_same_catalogue()
            && self.unlogged_since.is_none()
        {
            return (published, now);
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
        if let Some(from) = self.unlogged_since.filter(|from| *from < at) {
            entries.push(&Change::Unlogged { from, to: at });
        }
        if let Some(configured) = self.configured.clone() {
            let change = Change::Configured(configured);
            self.book.absorb(&change, at);
            entries.push(&change);
        }
        entries.push(&Change::Cut { at });
        let seq = last_seq + u64::try_from(entries.ends.len()).unwrap_or(0);
        (options.publication(&self.book, seq, at), at)
    }

    /// True if the last publication would be shown with the catalogue that it was made with.
    fn is_of_same_catalogue(&self) -> bool {
        let logged = self.book.configured().map(|logged| &logged.catalogue);
        let own = self.configured.as_ref().map(|own| &own.catalogue);
        logged.is_none() || own.is_none() || logged == own
    }
}

/// Ids for a new world.
pub(crate) fn new_ids(options: &WorldOptions) -> Ids {
    Ids::Minted { salt: new_salt(options) }
}

/// Reports damage of a log, keeps a copy of the damaged bytes, and returns the number of lost entries.
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

/// Checks the part of a folder's log that a start does not read, because its checkpoint covers it. Damage there
/// affects history and shows that the disk is bad: it is reported, while the service runs already.
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
