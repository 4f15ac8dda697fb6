//! Publications that are not archived yet, as rows: the end of every event's history.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive::{Archive, ArchiveError, Commit, Entry, EventPast, Part, Rows, Wanted};
use change_log::ReadLog;
use domain::{Catalogue, EventId};
use market::book::{Event, ImagePart};
use market::{Book, Change, Limits};

use super::{LoggedPast, unreadable};
use crate::archiver::{begin_archived, continues};
use crate::error::WorldError;
use crate::history::HistoryError;
use crate::history::paths::{EventPaths, PathError, PathRequest};
use crate::replay::{self, Logged, Replay};

/// Number of publications without a request after which it is dropped.
const IDLE_MAX: u32 = 20;
/// The part of history's memory that all kept tails may take, as a divisor.
const MEMORY_SHARE: usize = 2;
/// Bytes per unit of the weight of its book, which has no snapshot, and mostly names of feeds and aliases.
const BOOK_BYTES: usize = 600;
/// Maximum number of tails that are kept, each of some events.
const KEPT_MAX: usize = 16;
/// Maximum number of successive joins with an event since the book that its tail starts with.
const JOINED_MAX: usize = 64;

/// The ends of the histories of events, kept for a while. The one unused for longest is first.
#[derive(Debug, Default)]
pub(in crate::history) struct Tail(Mutex<VecDeque<Kept>>);

#[derive(Debug)]
struct Kept {
    /// The events whose prices are in it; if empty, it has all events without their prices.
    events: Vec<EventId>,
    part: Part,
    /// Approximate size of the part.
    bytes: usize,
    /// The commit that it follows.
    follows: Option<(usize, u64)>,
    /// Publications since the last request.
    idle: u32,
}

impl Tail {
    /// Notes that there was another publication.
    pub(in crate::history) fn age(&self) {
        let mut held = self.lock();
        held.retain(|kept| kept.idle < IDLE_MAX);
        held.iter_mut().for_each(|kept| kept.idle += 1);
    }

    /// One with these events that follows a commit. Drops those that follow another commit, which are useless now.
    fn take(&self, events: &[EventId], follows: Option<(usize, u64)>) -> Option<Kept> {
        let mut held = self.lock();
        held.retain(|kept| kept.follows == follows);
        let has = |kept: &Kept| {
            kept.events.is_empty() == events.is_empty()
                && events.iter().all(|event| kept.events.contains(event))
        };
        let at = held.iter().position(has)?;
        held.remove(at)
    }

    /// Keeps one if it fits, and drops others, those unused for longest first, until all fit.
    fn put(&self, kept: Kept, bytes_max: usize) {
        if kept.bytes > bytes_max {
            return;
        }
        // Dropped after the lock is released, because publications need it.
        let mut gone = Vec::new();
        let mut held = self.lock();
        held.push_back(kept);
        while (held.len() > KEPT_MAX || bytes_of(&held) > bytes_max)
            && let Some(oldest) = held.pop_front()
        {
            gone.push(oldest);
        }
    }

    /// Approximate size of all.
    pub(in crate::history) fn bytes(&self) -> usize {
        bytes_of(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn new(events: Vec<EventId>, part: Part, follows: Option<(usize, u64)>) -> Self {
        let weight = usize::try_from(part.book().weight()).unwrap_or(usize::MAX);
        let bytes = weight.saturating_mul(BOOK_BYTES).saturating_add(part.row_bytes());
        Self { events, part, bytes, follows, idle: 0 }
    }
}

fn bytes_of(held: &VecDeque<Kept>) -> usize {
    held.iter().map(|kept| kept.bytes).sum()
}

/// The result of reading some events alone.
enum Alone<T> {
    Done(T),
    /// One of them was joined with this event, or separated from it.
    Joins(EventId),
}

impl LoggedPast {
    /// The price paths of an event up to the publication of entry `seq`.
    pub(in crate::history) fn event_paths(
        &self,
        request: &PathRequest,
        seq: u64,
    ) -> Result<EventPaths, PathError> {
        let commit = self.newest_commit()?;
        let past = self.event_past(request, commit.as_ref(), (seq, &[request.event]))?;
        let begin = self.begin(commit.as_ref())?;
        EventPaths::new(past, begin)
    }

    /// The newest commit of the archive, if there is one.
    pub(in crate::history) fn newest_commit(&self) -> Result<Option<Commit>, HistoryError> {
        let Some(archive) = &self.archive else { return Ok(None) };
        if self.begun.is_missing() {
            return Err(HistoryError::Unreadable(None));
        }
        // A new service writes its first part a while later; until then its log has everything.
        if !archive.is_begun() && self.open()?.first_seq() <= 1 {
            return Ok(None);
        }
        archive.newest().map(Some).map_err(unreadable)
    }

    /// The first publication of history, unless that is the first of all.
    pub(in crate::history) fn begin(
        &self,
        commit: Option<&Commit>,
    ) -> Result<Option<domain::Timestamp>, HistoryError> {
        self.look_again()?;
        let reach = self.reach()?;
        let archived = commit.and_then(|commit| commit.lineages.first());
        let first = match archived {
            Some(lineage) => lineage.first_seq,
            None => self.open()?.first_seq(),
        };
        Ok((first > 1).then_some(reach.from))
    }

    /// The past of an event, from the archive and from the tail of some events up to the publication of entry `seq`;
    /// from the archive alone if there are none.
    pub(in crate::history) fn event_past(
        &self,
        request: &PathRequest,
        commit: Option<&Commit>,
        (seq, events): (u64, &[EventId]),
    ) -> Result<EventPast, HistoryError> {
        let catalogue = &self.options.catalogue;
        let sport = &*request.sport;
        let is_of = |event: &Event| *catalogue.sport(event.sport).key == *sport;
        let archive = self.archive.as_ref().zip(commit);
        request.wanted(|wanted| {
            let mut past = EventPast::default();
            if let Some((archive, commit)) = archive {
                archive.event_past(commit, sport, wanted, &mut past).map_err(unreadable)?;
            }
            if events.is_empty() {
                return Ok(past);
            }
            self.on_tail(archive, seq, events, |part| {
                let held = part.book().event(request.event);
                let is_unknown = past.is_unknown();
                // The event may be of another sport, also if it was merged or removed and the book has it no more.
                let is_own = || match held {
                    Some(event) => is_of(event),
                    None => part.sport_of(request.event) == Some(sport),
                };
                if is_unknown && !is_own() {
                    return Ok(());
                }
                part.event_past(archive, wanted, &mut past).map_err(unreadable)?;
                if let Some((archive, commit)) = archive
                    && held.is_some()
                    && is_unknown
                    && past.new_at().is_none()
                {
                    // It was listed before everything that the archive holds.
                    archive
                        .known_event_past(commit, sport, wanted, &mut past)
                        .map_err(unreadable)?;
                }
                Ok(())
            })?;
            self.add_base(archive, vec![(request.event, &mut past)], wanted)?;
            Ok(past)
        })
    }

    /// Adds prices of events that existed before everything that the archive has of them.
    pub(in crate::history) fn add_base(
        &self,
        archive: Option<(&Archive, &Commit)>,
        mut pasts: Vec<(EventId, &mut EventPast)>,
        wanted: &Wanted<'_>,
    ) -> Result<(), HistoryError> {
        pasts.retain(|(_, past)| past.new_at().is_none() && !past.is_unknown());
        let Some((archive, commit)) = archive.filter(|_| !pasts.is_empty()) else { return Ok(()) };
        let events: Vec<EventId> = pasts.iter().map(|(event, _)| *event).collect();
        let base = match archive.base_prices(commit, &self.known()?, &events) {
            Err(error) if error.is_damage() => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(
                    event = "archive.base_unreadable",
                    error,
                    "paths begin with what their rows say"
                );
                None
            }
            read => read.map_err(unreadable)?,
        };
        for (event, past) in pasts {
            base.iter().for_each(|base| past.take_base(base, &Wanted { event, ..*wanted }));
        }
        Ok(())
    }

    /// Reads the rows that are not archived, up to the publication of entry `seq`: those of some events or, if none is
    /// named, all that do not concern prices.
    pub(in crate::history) fn on_tail<T>(
        &self,
        archive: Option<(&Archive, &Commit)>,
        seq: u64,
        events: &[EventId],
        look: impl FnOnce(&Part) -> Result<T, HistoryError>,
    ) -> Result<T, HistoryError> {
        let mut log = self.open()?;
        // Keeps the entries from being deleted while they are read.
        let _position = log.register().map_err(unreadable)?;
        let last = archive.and_then(|(_, commit)| commit.lineages.last());
        let continued = match last {
            Some(last) => continues(&*log, last).map_err(unreadable)?,
            None => false,
        };
        let follows =
            archive.map(|(_, commit)| commit.lineages.len()).zip(last.filter(|_| continued));
        let follows = follows.map(|(lineages, last)| (lineages, last.last_seq));
        let mut events = events.to_vec();
        let mut held = self.tail.take(&events, follows);
        for _ in 0..JOINED_MAX {
            let begun = match held.take() {
                Some(kept) => Alone::Done((kept.events, kept.part)),
                None => {
                    let continued = archive.filter(|_| continued);
                    let part = self.begin_tail(&mut *log, continued, archive, &events)?;
                    part.with(|part| (events.clone(), part))
                }
            };
            let rolled = match begun {
                Alone::Done((own, mut part)) => {
                    let rolled = roll(&mut part, &own, &*log, seq)?;
                    events = own;
                    rolled.with(|()| part)
                }
                Alone::Joins(other) => Alone::Joins(other),
            };
            match rolled {
                Alone::Done(part) => {
                    let looked = look(&part);
                    let bytes_max = self.options.history.memory_max / MEMORY_SHARE;
                    self.tail.put(Kept::new(events, part, follows), bytes_max);
                    return looked;
                }
                Alone::Joins(other) => events.push(other),
            }
        }
        Err(HistoryError::Unreadable(None))
    }

    /// The book at the end of the archive or, if the log does not continue the archive, the first book of the log: of
    /// some events or, if none is named, of all without their prices.
    fn begin_tail(
        &self,
        log: &mut dyn ReadLog,
        continued: Option<(&Archive, &Commit)>,
        archive: Option<(&Archive, &Commit)>,
        events: &[EventId],
    ) -> Result<Alone<Part>, HistoryError> {
        let rows = || Rows::PricesOf(events.into());
        if let Some((archive, commit)) = continued {
            let book = match self.book_of(archive, commit, events) {
                Ok(book) => book,
                // A file is damaged, or the store is unreachable. The log nearly always has the same entries.
                Err(error) => {
                    let last = commit.lineages.last().map_or(0, |last| last.last_seq);
                    let logged = self.logged_book_of(log, last, events).map_err(unreadable)?;
                    logged.ok_or_else(|| unreadable(error))?
                }
            };
            match book {
                Alone::Joins(other) => return Ok(Alone::Joins(other)),
                Alone::Done(book) => {
                    if let Some(part) = Part::after(commit, book) {
                        return Ok(Alone::Done(part.of_rows(rows())));
                    }
                }
            }
        }
        let first = log.first_seq();
        let checkpoint = match log.oldest_checkpoint() {
            Some(oldest) if first > 1 => log.checkpoint_up_to(oldest).map_err(unreadable)?,
            Some(_) | None => None,
        };
        if checkpoint.is_none() && first != 1 {
            return Err(unreadable(WorldError::MissingPrefix { first }));
        }
        let begun = replay::begin(checkpoint.as_ref(), part_of(events), self.limited());
        let (book, base) = begun.map_err(unreadable)?;
        let Some((archive, commit)) = archive.filter(|(_, commit)| !commit.lineages.is_empty())
        else {
            let part = Part::founding(&Commit::none(), book, base);
            return Ok(Alone::Done(part.of_rows(rows())));
        };
        // Of a log that was lost or replaced since.
        let part = Part::founding(commit, book, base);
        match self.book_of(archive, commit, events) {
            Ok(before) => Ok(before.with(|before| part.replacing(commit, &before).of_rows(rows()))),
            // The archiver continues without it, too: price paths lost with the log get no end.
            Err(WorldError::Archive(error)) if error.is_damage() => {
                Ok(Alone::Done(part.of_rows(rows())))
            }
            Err(error) => Err(unreadable(error)),
        }
    }

    /// The limits and the catalogue of books.
    fn limited(&self) -> (Limits, Arc<Catalogue>) {
        (self.options.limits, Arc::clone(&self.options.catalogue))
    }

    /// The book after entry `last` according to the log; `None` if the log does not have all of its entries.
    fn logged_book_of(
        &self,
        log: &mut dyn ReadLog,
        last: u64,
        events: &[EventId],
    ) -> Result<Option<Alone<Book>>, WorldError> {
        let checkpoint = log.checkpoint_up_to(last)?;
        if checkpoint.is_none() && log.first_seq() != 1 {
            return Ok(None);
        }
        let (mut book, base) = replay::begin(checkpoint.as_ref(), part_of(events), self.limited())?;
        let mut replay = Replay::from(log, base + 1)?;
        for logged in replay.by_ref() {
            let Logged { seq, at, change, .. } = logged?;
            if seq > last {
                break;
            }
            if let Some(other) = joins(&change, events) {
                return Ok(Some(Alone::Joins(other)));
            }
            book.absorb(&change, at);
        }
        Ok((replay.losses().entries == 0).then_some(Alone::Done(book)))
    }

    /// The book at the end of the archive, of some events or of all without their prices.
    fn book_of(
        &self,
        archive: &Archive,
        commit: &Commit,
        events: &[EventId],
    ) -> Result<Alone<Book>, WorldError> {
        let lineage = commit.lineages.len().saturating_sub(1);
        let first = commit.lineages.get(lineage).map_or(1, |lineage| lineage.first_seq);
        let image = commit.image_up_to(lineage, u64::MAX);
        let (mut book, base) = begin_archived(archive, image, part_of(events), self.limited())?;
        if base + 1 < first {
            return Err(ArchiveError::Entry { seq: base + 1 }.into());
        }
        for entry in archive.entries(commit, lineage, base + 1..=u64::MAX).of_events(events) {
            let entry = entry?;
            if let Some(other) = joins(&entry.change, events) {
                return Ok(Alone::Joins(other));
            }
            book.absorb(&entry.change, entry.at);
        }
        Ok(Alone::Done(book))
    }
}

impl<T> Alone<T> {
    fn with<U>(self, then: impl FnOnce(T) -> U) -> Alone<U> {
        match self {
            Self::Done(done) => Alone::Done(then(done)),
            Self::Joins(other) => Alone::Joins(other),
        }
    }
}

fn part_of(events: &[EventId]) -> ImagePart<'_> {
    match events {
        [] => ImagePart::WithoutPrices,
        events => ImagePart::Events(events),
    }
}

/// The event besides these whose prices a change moves to or from one of them.
fn joins(change: &Change, events: &[EventId]) -> Option<EventId> {
    let (one, other) = if let Change::Merged { elder, younger, .. } = change {
        (*elder, *younger)
    } else if let Change::Split { event, into, .. } = change {
        (*event, *into)
    } else {
        return None;
    };
    match (events.contains(&one), events.contains(&other)) {
        (true, false) => Some(other),
        (false, true) => Some(one),
        (true, true) | (false, false) => None,
    }
}

/// Adds the entries up to a publication.
fn roll(
    part: &mut Part,
    events: &[EventId],
    log: &dyn ReadLog,
    seq: u64,
) -> Result<Alone<()>, HistoryError> {
    if part.next_seq() > seq {
        return Ok(Alone::Done(()));
    }
    for logged in Replay::from(log, part.next_seq()).map_err(unreadable)? {
        let logged = logged.map_err(unreadable)?;
        if logged.seq > seq {
            break;
        }
        if let Some(other) = joins(&logged.change, events) {
            return Ok(Alone::Joins(other));
        }
        let entry = Entry { seq: logged.seq, at: logged.at, change: logged.change };
        part.push(&entry, logged.checksum);
    }
    Ok(Alone::Done(()))
}
