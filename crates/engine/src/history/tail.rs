//! What was published and is not archived yet, as rows: the end of every event's past.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive::{Archive, Commit, Entry, EventPast, Part, Rows};
use change_log::ReadLog;
use domain::EventId;
use market::{Book, Ids};

use super::logged::{LoggedPast, unreadable};
use super::paths::{EventPaths, PathError, PathRequest};
use super::{HistoryError, WEIGHT_BYTES};
use crate::archiver::{book_at, continues};
use crate::error::WorldError;
use crate::replay::Replay;

/// Publications without a question after which it is not kept any longer.
const IDLE_MAX: u32 = 20;
/// Entries whose rows are kept for the next question. Where there are more, rows are made for each question, and only
/// of its event.
const KEPT_ENTRIES_MAX: u64 = 300_000;

/// The end of the past, kept for a while.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    part: Part,
    /// The commit that it follows.
    follows: Option<(usize, u64)>,
    /// Publications since somebody asked.
    idle: u32,
}

impl Tail {
    /// Notes that there was another publication.
    pub(super) fn age(&self) {
        // Whoever has it is asking.
        let Ok(mut held) = self.0.try_lock() else { return };
        if let Some(kept) = held.as_mut() {
            kept.idle += 1;
        }
        if held.as_ref().is_some_and(|kept| kept.idle > IDLE_MAX) {
            *held = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoggedPast {
    /// What became of an event's prices up to the publication of entry `seq`.
    pub(super) fn event_paths(
        &self,
        request: &PathRequest,
        seq: u64,
    ) -> Result<EventPaths, PathError> {
        let commit = self.newest_commit()?;
        let past = self.event_past(request, commit.as_ref(), seq)?;
        let begin = self.begin(commit.as_ref())?;
        EventPaths::new(past, begin)
    }

    /// What the archive consists of, where there is one.
    pub(super) fn newest_commit(&self) -> Result<Option<Commit>, HistoryError> {
        let Some(archive) = &self.archive else { return Ok(None) };
        // A new service writes its first part a while later; until then its log has all there is.
        if !archive.is_begun() && self.open()?.first_seq() <= 1 {
            return Ok(None);
        }
        archive.newest().map(Some).map_err(unreadable)
    }

    /// The first publication of history, unless that is the first of all.
    pub(super) fn begin(
        &self,
        commit: Option<&Commit>,
    ) -> Result<Option<domain::Timestamp>, HistoryError> {
        let reach = self.reach()?;
        let archived = commit.and_then(|commit| commit.lineages.first());
        let first = match archived {
            Some(lineage) => lineage.first_seq,
            None => self.open()?.first_seq(),
        };
        Ok((first > 1).then_some(reach.from))
    }

    pub(super) fn event_past(
        &self,
        request: &PathRequest,
        commit: Option<&Commit>,
        seq: u64,
    ) -> Result<EventPast, HistoryError> {
        let catalogue = &self.options.catalogue;
        let sport = &catalogue.sport(request.sport).key;
        let archive = self.archive.as_ref().zip(commit);
        request.wanted(catalogue, |wanted| {
            let mut past = EventPast::default();
            if let Some((archive, commit)) = archive {
                archive.event_past(commit, sport, wanted, &mut past).map_err(unreadable)?;
            }
            self.on_tail(archive, seq, Some(request.event), |part| {
                let held = part.book().event(request.event);
                // The event may be another sport's.
                if held.is_none_or(|event| event.sport == request.sport) || !past.is_unknown() {
                    part.event_past(archive, wanted, &mut past).map_err(unreadable)?;
                }
                Ok(())
            })?;
            Ok(past)
        })
    }

    /// Looks at the rows of what is not archived, up to the publication of entry `seq`.
    pub(super) fn on_tail<T>(
        &self,
        archive: Option<(&Archive, &Commit)>,
        seq: u64,
        event: Option<EventId>,
        look: impl FnOnce(&Part) -> Result<T, HistoryError>,
    ) -> Result<T, HistoryError> {
        let mut log = self.open()?;
        // Nothing that is to be read is deleted meanwhile.
        let _position = log.register().map_err(unreadable)?;
        let last = archive.and_then(|(_, commit)| commit.lineages.last());
        let continued = match last {
            Some(last) => continues(&*log, last).map_err(unreadable)?,
            None => false,
        };
        let follows =
            archive.map(|(_, commit)| commit.lineages.len()).zip(last.filter(|_| continued));
        let follows = follows.map(|(lineages, last)| (lineages, last.last_seq));
        let mut held = self.tail.lock();
        if let Some(kept) = held.as_mut().filter(|kept| kept.follows == follows) {
            kept.idle = 0;
            roll(&mut kept.part, &*log, seq)?;
            return look(&kept.part);
        }
        *held = None;
        let part = self.begin_tail(&mut *log, archive.filter(|_| continued), archive)?;
        let entries = (seq + 1).saturating_sub(part.next_seq());
        let bytes = usize::try_from(part.book().weight()).unwrap_or(usize::MAX);
        let fits = bytes.saturating_mul(WEIGHT_BYTES) <= self.options.history.memory_max / 2;
        if entries > KEPT_ENTRIES_MAX || !fits {
            drop(held);
            // Of all events that is too much; the archive catches up.
            let Some(event) = event else { return Err(HistoryError::Unreadable(None)) };
            let mut part = part.of_rows(Rows::PricesOf(event));
            roll(&mut part, &*log, seq)?;
            return look(&part);
        }
        let mut part = part.of_rows(Rows::Prices);
        roll(&mut part, &*log, seq)?;
        let looked = look(&part);
        *held = Some(Kept { part, follows, idle: 0 });
        looked
    }

    /// The book that the archive ends with or, where the log does not continue the archive, the first that the log has.
    fn begin_tail(
        &self,
        log: &mut dyn ReadLog,
        continued: Option<(&Archive, &Commit)>,
        archive: Option<(&Archive, &Commit)>,
    ) -> Result<Part, HistoryError> {
        let options = &self.options;
        if let Some((archive, commit)) = continued {
            let lineage = commit.lineages.len().saturating_sub(1);
            let book = book_at(
                archive,
                commit,
                (lineage, u64::MAX),
                (options, Arc::clone(&options.catalogue)),
            )
            .map_err(unreadable)?;
            if let Some(part) = Part::after(commit, book) {
                return Ok(part);
            }
        }
        let catalogue = || Arc::clone(&options.catalogue);
        let first = log.first_seq();
        let checkpoint = match log.oldest_checkpoint() {
            Some(oldest) if first > 1 => log.checkpoint_up_to(oldest).map_err(unreadable)?,
            Some(_) | None => None,
        };
        let (mut book, base) = match checkpoint {
            Some(held) => {
                let book = Book::from_image(held.version, &held.payload, catalogue());
                (book.map_err(unreadable)?, held.seq)
            }
            None if first == 1 => (Book::new(catalogue(), Ids::Minted { salt: 0 }), 0),
            None => return Err(unreadable(WorldError::MissingPrefix { first })),
        };
        book.set_limits(options.limits);
        let none = Commit::none();
        Ok(Part::founding(archive.map_or(&none, |(_, commit)| commit), book, base))
    }
}

/// Adds the entries up to a publication.
fn roll(part: &mut Part, log: &dyn ReadLog, seq: u64) -> Result<(), HistoryError> {
    if part.next_seq() > seq {
        return Ok(());
    }
    for logged in Replay::from(log, part.next_seq()).map_err(unreadable)? {
        let logged = logged.map_err(unreadable)?;
        if logged.seq > seq {
            break;
        }
        let entry = Entry { seq: logged.seq, at: logged.at, change: logged.change };
        part.push(&entry, logged.checksum);
    }
    Ok(())
}
