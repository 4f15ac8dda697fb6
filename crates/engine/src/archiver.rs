//! Copies the log of the live world into its archive, independently of the writer.
//!
//! Published entries are copied a part at a time. The log keeps its entries until they are archived
//! ([`History::keep_from`]); nothing else waits for the archive, and failed writes are retried. When everything is
//! copied, files of days that are over are merged, and data past retention is removed.
//!
//! [`History::keep_from`]: crate::History::keep_from

mod lineage;
mod room;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use archive::{Archive, ArchiveError, Commit, Compact, Entry, Outcome, Part, Table};
use change_log::ReadLog;
use domain::Catalogue;
use market::{Book, Change};
use rustix::process::setpriority_process;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use self::lineage::common_publication;
pub(crate) use self::lineage::{begin_archived, book_at, book_from, continues};
use crate::begun::Begun;
use crate::catalogues::{Catalogues, Made};
use crate::error::{Chain, WorldError};
use crate::history::{HistoryStats, Order};
use crate::options::WorldOptions;
use crate::replay::{Logged, Replay, book_to};
use crate::world::WorldHandle;

/// Maximum time before a failed write of the archive is retried.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Time between checks whether this node has to store its catalogue.
const CATALOGUE_RETRY: Duration = Duration::from_secs(1);
/// The lowest scheduling priority.
const NICENESS: i32 = 19;

/// Writes the archive of a world.
#[derive(Debug)]
pub struct Archiver {
    options: WorldOptions,
    handle: Arc<WorldHandle>,
    archive: Option<Archive>,
    /// The book at the end of the archive, while there are more entries to copy.
    held: Option<Held>,
    catalogues: Arc<Catalogues>,
    begun: Arc<Begun>,
    /// True if the archive has the catalogue of this process.
    keeps_own: bool,
    /// True unless unused files could not be deleted the last time.
    cleans: bool,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Stores the catalogue of this process before it publishes anything that another process may have to show.
    Begin,
    Copy,
    /// Everything published is copied.
    Compact,
    Ended(Ended),
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    All,
    /// Everything was copied, but files could not be merged.
    NotCompacted,
    /// Another node writes the archive by now.
    NotWriter,
    Failed,
}

#[derive(Debug)]
struct Held {
    book: Book,
    commit: u64,
}

impl Archiver {
    /// `None`: the world has no archive.
    pub fn new(options: WorldOptions, handle: &Arc<WorldHandle>) -> Option<Self> {
        options.history.archive()?;
        let handle = Arc::clone(handle);
        let catalogues = Arc::new(Catalogues::new(&options));
        let begun = Arc::new(Begun::of(&options));
        let (archive, held, keeps_own, cleans) = (None, None, false, true);
        Some(Self { options, handle, archive, held, catalogues, begun, keeps_own, cleans })
    }

    /// Copies published entries whenever a part is due or ordered, until the service ends.
    pub async fn run(mut self) {
        let handle = Arc::clone(&self.handle);
        let options = self.options.clone();
        let interval = options.history.part_interval;
        let mut orders = handle.history.orders.lock().await;
        let mut due = Instant::now() + interval.min(RETRY_MAX);
        let mut begin_again = Some(Instant::now());
        let mut asked: Vec<Order> = Vec::new();
        loop {
            let until = begin_again.map_or(due, |again| again.min(due));
            match timeout_at(until, orders.recv()).await {
                Ok(Some(order)) => asked.push(order),
                Ok(None) => return,
                Err(_) => {}
            }
            let which = asked.iter().map(|order| &order.compact).max().cloned().unwrap_or_default();
            let begins = asked.is_empty() && Instant::now() < due;
            let mut step = if begins { Step::Begin } else { Step::Copy };
            let ended = loop {
                // One step at a time. Publications made after everything was copied wait for the next run; otherwise
                // merging would never finish.
                let (which, now) = (which.clone(), step);
                let work = move || {
                    let next = self.work_or_tell(now, &which);
                    (self, next)
                };
                (self, step) = match apart(&handle.history.stats, work).await {
                    Some(done) => done,
                    // The service does not depend on the archive: the archiver starts afresh.
                    None => match Self::new(options.clone(), &handle) {
                        Some(anew) => (anew, Step::Ended(Ended::Failed)),
                        None => return,
                    },
                };
                if let Step::Ended(ended) = step {
                    break ended;
                }
            };
            let pause = match ended {
                Ended::All | Ended::NotCompacted | Ended::NotWriter => interval,
                Ended::Failed => interval.min(RETRY_MAX),
            };
            let again = if ended == Ended::Failed { RETRY_MAX } else { CATALOGUE_RETRY };
            begin_again = (!self.keeps_own).then(|| Instant::now() + again);
            if begins {
                continue;
            }
            due = Instant::now() + pause;
            asked.drain(..).for_each(|order| {
                let done = match ended {
                    Ended::NotCompacted => order.compact == Compact::Due,
                    Ended::All => true,
                    Ended::NotWriter | Ended::Failed => false,
                };
                // The requester may be gone.
                order.done.send(done).unwrap_or_default();
            });
        }
    }

    /// Copies a part or merges files, and returns the next step.
    fn work_or_tell(&mut self, step: Step, which: &Compact) -> Step {
        match step {
            Step::Begin => match self.keep_catalogue() {
                // The checkpoint that this process started from is not kept for long.
                Ok(true) => Step::Copy,
                Ok(false) => Step::Ended(Ended::All),
                Err(error) => {
                    tracing::warn!(event = "archive.failed", error = %Chain(&error), "the archive does not have the catalogue yet; it is tried again");
                    Step::Ended(Ended::Failed)
                }
            },
            Step::Copy => self.copy_or_tell(),
            Step::Compact => match self.compact(which) {
                Ok(true) => Step::Compact,
                Ok(false) if !self.is_writer() => Step::Ended(Ended::NotWriter),
                Ok(false) => Step::Ended(Ended::All),
                Err(error) => {
                    self.note_not_compacted(&error);
                    Step::Ended(Ended::NotCompacted)
                }
            },
            Step::Ended(_) => step,
        }
    }

    fn copy_or_tell(&mut self) -> Step {
        let copied = self.copy();
        if !matches!(copied, Ok(true)) {
            self.held = None;
        }
        match copied {
            Ok(true) => Step::Copy,
            Ok(false) => Step::Compact,
            Err(error) => {
                let stats = &self.handle.history.stats;
                stats.commit_failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(event = "archive.failed", error = %Chain(&error), "the archive is not written; the log keeps its entries until it is");
                // What is past retention makes room.
                if self.room().is_err()
                    && let Err(error) = self.retire()
                {
                    self.note_not_compacted(&error);
                }
                Step::Ended(Ended::Failed)
            }
        }
    }

    fn note_not_compacted(&self, error: &WorldError) {
        self.handle.history.stats.compaction_failures.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(event = "archive.compaction_failed", error = %Chain(error), "files of the archive could not be merged or removed");
    }

    /// Stores the catalogue that this process writes entries under, and returns whether the last archived publication
    /// has another.
    fn keep_catalogue(&mut self) -> Result<bool, WorldError> {
        if self.keeps_own {
            return Ok(false);
        }
        let Some(archive) = self.writable()? else { return Ok(false) };
        self.room()?;
        archive.keep_catalogue(&self.options.catalogue)?;
        self.begun.note();
        self.keeps_own = true;
        let mut last = archive.newest()?;
        let last_seq = last.lineages.last().map(|lineage| lineage.last_seq);
        last.files.retain(|file| file.table == Table::Epochs && Some(file.last_seq) == last_seq);
        let published = archive.publications(&last)?;
        let then = published.last().and_then(|last| last.catalogue.as_deref());
        Ok(then.is_some_and(|then| then != self.options.catalogue.version()))
    }

    /// Copies a part of the published entries, and returns whether there is more.
    ///
    /// # Errors
    /// The log cannot be read, or the archive cannot be written. Earlier parts stay.
    pub fn copy(&mut self) -> Result<bool, WorldError> {
        let Some(archive) = self.writable()? else { return Ok(false) };
        let published = self.handle.published().snapshot.seq;
        let commit = archive.newest()?;
        let Some(mut log) = self.options.log.view()? else { return Ok(false) };
        // Keeps the entries from being deleted while they are read.
        let _position = log.register()?;
        let part = match commit.lineages.last() {
            Some(last) if continues(&*log, last)? => {
                self.note(&commit);
                if last.last_seq >= published {
                    return Ok(false);
                }
                self.room()?;
                self.note_unarchived(&*log, last.last_seq)?;
                let book = match self.book_at_end(&archive, &commit) {
                    Ok(book) => book,
                    // A file is damaged. The log nearly always has the same entries, and would grow until a person
                    // restores the file.
                    Err(error) => {
                        let logged = self.book_in_log(&mut *log, &archive, last.last_seq)?;
                        logged.ok_or(error)?
                    }
                };
                match self.catalogue_from(&*log, &archive, last.last_seq + 1)? {
                    Some((begun, next)) if !Arc::ptr_eq(&next, book.catalogue()) => {
                        let held = (&archive, &commit);
                        let carried = self.carried_over(&book, (begun, next), &mut *log, held)?;
                        Part::carried(&commit, &book, carried)
                    }
                    Some(_) | None => Part::after(&commit, book),
                }
            }
            _ => {
                self.room()?;
                Some(self.found(&mut *log, &archive, &commit)?)
            }
        };
        match part {
            Some(part) => self.copy_part(part, &archive, &commit, &*log, published),
            None => Ok(false),
        }
    }

    /// True if this node has to write the archive. Other nodes only read.
    fn is_writer(&self) -> bool {
        self.handle.leads() && self.handle.has_begun()
    }

    /// The archive, if this node has to write it.
    fn writable(&mut self) -> Result<Option<Archive>, WorldError> {
        let Some(place) = self.options.history.archive() else { return Ok(None) };
        if !self.is_writer() {
            return Ok(None);
        }
        let archive = match self.archive.take() {
            Some(archive) => archive,
            None => self.begun.open(&place)?,
        };
        Ok(Some(self.archive.insert(archive).clone()))
    }

    /// Merges some files and removes data past retention, and returns whether there may be more to do.
    ///
    /// # Errors
    /// The archive cannot be read or written.
    pub fn compact(&mut self, which: &Compact) -> Result<bool, WorldError> {
        let Some(archive) = self.writable()? else { return Ok(false) };
        if let Err(full) = self.room() {
            self.retire()?;
            return Err(full.into());
        }
        let commit = archive.newest()?;
        let Some(end) = commit.settled_end() else { return Ok(false) };
        let oldest = end.minus(self.options.history.retention);
        let Some(compacted) = archive.compact(&commit, which, oldest)? else { return Ok(false) };
        if compacted.outcome == Outcome::Committed {
            self.note(&compacted.commit);
            self.handle.history.stats.compactions.fetch_add(1, Ordering::Relaxed);
            self.clean(&archive, &compacted.commit);
        }
        Ok(true)
    }

    fn copy_part(
        &mut self,
        mut part: Part,
        archive: &Archive,
        commit: &Commit,
        log: &dyn ReadLog,
        published: u64,
    ) -> Result<bool, WorldError> {
        let mut other_follows = false;
        for logged in Replay::from(log, part.next_seq())? {
            let logged = logged?;
            if logged.seq > published || part.is_full() {
                break;
            }
            // Publications with another catalogue go into another part; this one ends with its last publication.
            if let Change::Configured(next) = &logged.change
                && !part.is_empty()
                && !self.catalogues.is_of(part.book(), &next.catalogue)
                && self.catalogues.get(Some(archive), &next.catalogue)?.is_some()
            {
                other_follows = true;
                break;
            }
            let entry = Entry { seq: logged.seq, at: logged.at, change: logged.change };
            part.push(&entry, logged.checksum);
        }
        if part.is_empty() {
            return Ok(false);
        }
        let more = other_follows || (part.is_full() && part.next_seq() <= published);
        let (next, outcome, book) = part.commit(archive, commit)?;
        if outcome == Outcome::Lost {
            self.held = None;
            return Ok(true);
        }
        self.held = book.map(|book| Held { book, commit: next.commit });
        self.note(&next);
        self.handle.history.stats.commits.fetch_add(1, Ordering::Relaxed);
        self.clean(archive, &next);
        Ok(more)
    }

    /// Notes the content of the archive.
    fn note(&self, commit: &Commit) {
        let Some(last) = commit.lineages.last() else { return };
        self.note_size(commit);
        self.handle.history.note_archived(last.last_seq);
    }

    fn note_size(&self, commit: &Commit) {
        let stats = &self.handle.history.stats;
        stats.archive_bytes.store(commit.bytes(), Ordering::Relaxed);
        let files = u64::try_from(commit.paths().count()).unwrap_or(u64::MAX);
        stats.archive_files.store(files, Ordering::Relaxed);
        self.handle.history.note_archive_changed();
    }

    /// Notes the first publication after an archived entry, which an earlier process or leader may have made, so that
    /// the lag does not begin at zero.
    fn note_unarchived(&self, log: &dyn ReadLog, archived: u64) -> Result<(), WorldError> {
        for logged in Replay::from(log, archived + 1)? {
            let Logged { seq, change, .. } = logged?;
            if let Change::Cut { at } = change {
                self.handle.history.note_unarchived(seq, at);
                break;
            }
        }
        Ok(())
    }

    /// The book after the last archived entry.
    fn book_at_end(&mut self, archive: &Archive, commit: &Commit) -> Result<Book, WorldError> {
        if let Some(held) = self.held.take().filter(|held| held.commit == commit.commit) {
            return Ok(held.book);
        }
        let lineage = commit.lineages.len().saturating_sub(1);
        let make =
            |catalogue| book_at(archive, commit, (lineage, u64::MAX), (&self.options, catalogue));
        self.catalogues.make(Some(archive), None, make).map(Made::into_book)
    }

    /// The same from the log; `None` if the log no longer has everything it is built from.
    fn book_in_log(
        &self,
        log: &mut dyn ReadLog,
        archive: &Archive,
        last: u64,
    ) -> Result<Option<Book>, WorldError> {
        let checkpoint = log.checkpoint_up_to(last)?;
        if checkpoint.is_none() && log.first_seq() != 1 {
            return Ok(None);
        }
        let log = &*log;
        let from = (checkpoint.as_ref(), last);
        let make = |catalogue| match book_to(log, from, (self.options.limits, catalogue))? {
            (book, true) => Ok(book),
            (_, false) => Err(ArchiveError::Entry { seq: last }.into()),
        };
        self.catalogues.make(Some(archive), None, make).map(|made| Some(made.into_book()))
    }

    /// The catalogue of the first publication from an entry on, and the entry that names it, if the log names it in
    /// between and it is stored.
    fn catalogue_from(
        &self,
        log: &dyn ReadLog,
        archive: &Archive,
        seq: u64,
    ) -> Result<Option<(u64, Arc<Catalogue>)>, WorldError> {
        let mut last = None;
        for logged in Replay::from(log, seq)? {
            let Logged { seq, change, .. } = logged?;
            if let Change::Configured(configured) = change {
                last = Some((seq, configured.catalogue));
            } else if matches!(change, Change::Cut { .. }) {
                break;
            }
        }
        let Some((seq, version)) = last else { return Ok(None) };
        let kept = self.catalogues.get(Some(archive), &version)?;
        Ok(kept.map(|catalogue| (seq, catalogue)))
    }

    /// The book of the last publication, as restored by the process that started with another catalogue and wrote entry
    /// `begun`: built from the newest checkpoint at that time.
    ///
    /// It lacks anything unknown to the catalogue of the checkpoint's writer, unless it was logged later.
    fn carried_over(
        &self,
        book: &Book,
        (begun, next): (u64, Arc<Catalogue>),
        log: &mut dyn ReadLog,
        (archive, commit): (&Archive, &Commit),
    ) -> Result<Book, WorldError> {
        let lineage = commit.lineages.len().saturating_sub(1);
        let last = commit.lineages.last().map_or(0, |last| last.last_seq);
        let checkpoint = log.checkpoint_up_to(begun.saturating_sub(1))?;
        let base = checkpoint.as_ref().map_or(0, |held| held.seq);
        if base > last {
            return Catalogues::carry_over(book, &next, &self.options);
        }
        if base + 1 < log.first_seq() {
            let image = commit.image_up_to(lineage, last);
            return book_from(archive, commit, image, (lineage, last), (&self.options, next));
        }
        Ok(book_to(log, (checkpoint.as_ref(), last), (self.options.limits, next))?.0)
    }

    /// Begins a new lineage: after the last publication that is already archived, or with the first book of the log.
    fn found(
        &mut self,
        log: &mut dyn ReadLog,
        archive: &Archive,
        commit: &Commit,
    ) -> Result<Part, WorldError> {
        let first = log.first_seq();
        let held = match log.oldest_checkpoint() {
            Some(oldest) if first > 1 => log.checkpoint_up_to(oldest)?,
            Some(_) | None => None,
        };
        let base = match &held {
            Some(held) => held.seq,
            None if first == 1 => 0,
            None => return Err(WorldError::MissingPrefix { first }),
        };
        let log = &*log;
        let common = common_publication(log, archive, commit, base)?;
        self.note_unarchived(log, common)?;
        let next = self.catalogue_from(log, archive, common + 1)?.map(|(_, next)| next);
        let make = |catalogue: Arc<Catalogue>| {
            let catalogue = next.clone().unwrap_or(catalogue);
            Ok(book_to(log, (held.as_ref(), common), (self.options.limits, catalogue))?.0)
        };
        let book = match next {
            Some(_) => make(Arc::clone(self.catalogues.own()))?,
            None => self.catalogues.make::<WorldError>(Some(archive), None, make)?.into_book(),
        };
        let part = Part::founding(commit, book, common);
        if commit.lineages.is_empty() {
            return Ok(part);
        }
        tracing::warn!(
            event = "archive.lineage_begun",
            after = common,
            "the log is not the one that was archived until now; the archive goes on with it and keeps what it has"
        );
        Ok(match self.book_at_end(archive, commit) {
            Ok(before) => part.replacing(commit, &before),
            // It is damaged or past retention. Archiving new entries is more important.
            Err(error) => {
                tracing::warn!(event = "archive.lineage_unfinished", error = %Chain(&error), "what the last publication of the lost log showed cannot be read; price paths of what is gone with it have no end");
                part
            }
        })
    }
}

/// Runs work on a separate low-priority thread. A stopping service does not wait for it: the archive is consistent at
/// any time. `None`: it did not finish, which is counted and logged.
async fn apart<T: Send + 'static>(
    stats: &HistoryStats,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, result) = oneshot::channel();
    let run = move || {
        // On Linux this is the priority of the thread.
        if let Err(error) = setpriority_process(None, NICENESS) {
            tracing::debug!(event = "archive.priority_failed", %error, "the archive is written at normal priority");
        }
        done.send(work()).ok();
    };
    let begun = std::thread::Builder::new().name("archive".to_owned()).spawn(run);
    if let Ok(done) = result.await {
        return Some(done);
    }
    stats.archive_panics.fetch_add(1, Ordering::Relaxed);
    let error = begun.err();
    tracing::error!(
        event = "archive.panicked",
        ?error,
        "the archiver ended by itself; it is started again"
    );
    None
}

#[cfg(test)]
mod tests;
