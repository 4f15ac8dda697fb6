//! The past of a simulated world: a function of its seed and the time, on every node, whenever it was started.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use archive::{Commit, Entry, EventPast, Part, Rows};
use domain::message::FeedMessage;
use domain::{EventId, SportId, Timestamp};
use feeds::sandbox::{Life, LifeRequest, Lives, Simulation};
use market::{Book, Change, Ids, Lifetimes};

use super::logged::unreadable;
use super::paths::{EventPaths, PathError, PathRequest};
use super::steps::Steps;
use super::{Found, HistoryError, Reach};
use crate::options::WorldOptions;
use crate::options::epoch_start;
use crate::publication::Published;
use crate::simulator::{SANDBOX_FEED, SANDBOX_IDS, arrival, play_back};

/// Time that it reaches back.
const REACH: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Debug)]
pub(super) struct SimulatedPast {
    pub(super) simulation: Simulation,
    pub(super) options: WorldOptions,
}

impl SimulatedPast {
    pub(super) fn new(simulation: Simulation, options: WorldOptions) -> Self {
        Self { simulation, options }
    }

    pub(super) fn interval(&self) -> Duration {
        self.options.refresh_interval
    }

    pub(super) fn find(&self, at: Timestamp, current: Timestamp) -> Result<Found, HistoryError> {
        let from = self.first(current);
        if at < from {
            return Err(HistoryError::NotKept(Box::new(self.reach(current))));
        }
        let at = epoch_start(at, self.interval());
        let previous = Some(at.minus(self.interval())).filter(|previous| *previous >= from);
        let next = Some(at.plus(self.interval())).filter(|next| *next <= current);
        Ok(Found { seq: 0, at, previous, next })
    }

    /// Finds a client's position: a publication, or a moment between two at which the world changes.
    pub(super) fn find_place(
        &self,
        at: Timestamp,
        current: Timestamp,
    ) -> Result<Found, HistoryError> {
        let found = self.find(at, current)?;
        if found.at == at || Simulation::last_step(at) != at {
            return Ok(found);
        }
        let next = Some(found.at.plus(self.interval())).filter(|next| *next <= current);
        Ok(Found { at, previous: Some(found.at), next, ..found })
    }

    pub(super) fn before(&self, current: Timestamp) -> Option<Timestamp> {
        Some(current.minus(self.interval())).filter(|before| *before >= self.first(current))
    }

    pub(super) fn reach(&self, current: Timestamp) -> Reach {
        let from = self.first(current);
        let publications = current.since(from).as_millis() / self.interval().as_millis().max(1);
        Reach {
            archive: None,
            from,
            to: current,
            publications: u64::try_from(publications).unwrap_or(u64::MAX).saturating_add(1),
            retention: REACH,
            exported_to: None,
            gaps: Vec::new(),
        }
    }

    /// The oldest publication that is rebuilt.
    pub(super) fn first(&self, current: Timestamp) -> Timestamp {
        epoch_start(current.minus(REACH), self.interval())
    }

    /// The state shown at an instant.
    pub(super) fn rebuild(&self, at: Timestamp) -> Published {
        self.options.publication(&self.book(at), 0, at)
    }

    /// The book at an instant.
    pub(super) fn book(&self, at: Timestamp) -> Book {
        let mut book = Book::new(Arc::clone(&self.options.catalogue), SANDBOX_IDS);
        book.set_limits(self.options.limits);
        let published = epoch_start(at, self.interval());
        for message in self.simulation.world_at(published) {
            play_back(&mut book, &message, published);
        }
        for change in book.overdue(published, self.options.lifetimes) {
            book.absorb(&change, published);
        }
        // Between publications, the writer only plays messages.
        for message in self.simulation.between(published, at) {
            play_back(&mut book, &message, at);
        }
        book
    }

    /// The publication after the reader's position.
    pub(super) fn next(&self, steps: &mut Steps, current: Timestamp) -> Option<Published> {
        let at = self.publication_after(steps.at.at);
        if at > current {
            return None;
        }
        self.play_to(steps, at);
        for change in steps.book.overdue(at, self.options.lifetimes) {
            steps.book.absorb(&change, at);
        }
        Some(self.options.publication(&steps.book, 0, at))
    }

    /// Time of the publication after an instant.
    pub(super) fn publication_after(&self, at: Timestamp) -> Timestamp {
        epoch_start(at, self.interval()).plus(self.interval())
    }

    /// Plays the messages up to an instant.
    pub(super) fn play_to(&self, steps: &mut Steps, at: Timestamp) {
        for message in self.simulation.between(steps.at.at, at) {
            play_back(&mut steps.book, &message, at);
        }
        steps.at.at = at;
    }

    /// The price history of an event: the event is replayed alone.
    pub(super) fn event_paths(
        &self,
        request: &PathRequest,
        current: Timestamp,
    ) -> Result<EventPaths, PathError> {
        let sport = self.options.catalogue.sport_id(&request.sport).ok_or(PathError::Unknown)?;
        self.paths_of(&self.lives(sport, current), (request, sport), current, false)
    }

    /// The events that have paths.
    pub(super) fn lives(&self, sport: SportId, current: Timestamp) -> Lives<'_> {
        self.simulation.lives(sport, self.first(current), current)
    }

    /// `until_start`: later changes are not needed.
    pub(super) fn paths_of(
        &self,
        lives: &Lives<'_>,
        (request, sport): (&PathRequest, SportId),
        current: Timestamp,
        until_start: bool,
    ) -> Result<EventPaths, PathError> {
        let first = self.first(current);
        let is = |reference: &str| self.id_of(reference) == request.event;
        let bookmaker = |id| request.has(&self.options.catalogue.bookmaker(id).key);
        let wanted = LifeRequest { bookmaker: &bookmaker, interval: self.interval(), until_start };
        let life = lives.find(is, &wanted).ok_or(PathError::Unknown)?;
        if life.sport != sport {
            return Err(PathError::Unknown);
        }
        let begin = Some(first).filter(|_| life.listed < first);
        let part = self.replay(life, first, current, until_start);
        let past = request.wanted(|wanted| {
            let mut past = EventPast::default();
            let added = part.event_past(None, wanted, &mut past);
            added.map(|()| past).map_err(unreadable)
        })?;
        EventPaths::new(past, begin)
    }

    /// The events of a sport that have started, with their scheduled starts.
    pub(super) fn started(&self, sport: SportId, current: Timestamp) -> Vec<(Timestamp, EventId)> {
        let started = self.simulation.started(sport, self.first(current), current).into_iter();
        started.map(|(reference, commence)| (commence, self.id_of(&reference))).collect()
    }

    fn id_of(&self, reference: &str) -> EventId {
        match SANDBOX_IDS {
            Ids::Derived { salt } => EventId::derived(salt, reference),
            Ids::Minted { salt } => EventId::minted(salt, 0),
        }
    }

    /// The rows of an event for its publications from `first` to `current`.
    fn replay(&self, life: Life, first: Timestamp, current: Timestamp, until_start: bool) -> Part {
        let new_book = || {
            let mut book = Book::new(Arc::clone(&self.options.catalogue), SANDBOX_IDS);
            book.set_limits(self.options.limits);
            book
        };
        let mut played = Played {
            book: new_book(),
            part: Part::founding(&Commit::none(), new_book(), 0).of_rows(Rows::Prices),
            seq: 0,
        };
        let interval = self.interval();
        let begin = epoch_start(life.listed, interval).max(first);
        let mut cut = begin;
        let cuts = self.publications_around(&life, begin, current);
        let mut messages = life.messages.into_iter().peekable();
        for at in cuts {
            cut = at;
            while let Some((out, message)) = messages.next_if(|(out, _)| *out <= cut) {
                played.play(&message, out);
            }
            played.publish(cut, self.options.lifetimes);
        }
        if until_start {
            return played.part;
        }
        // Nothing happens after this until its lifetime is over.
        let over = |at: Timestamp| !played.book.overdue(at, self.options.lifetimes).is_empty();
        if over(current) {
            let step = |n: i64| {
                let ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(cut.as_millis().saturating_add(ms.saturating_mul(n)))
            };
            let (mut before, mut after) = (0_i64, 1_i64);
            while !over(step(after)) && step(after) < current {
                after = after.saturating_mul(2);
            }
            while before + 1 < after {
                let middle = before + (after - before) / 2;
                if over(step(middle)) { after = middle } else { before = middle }
            }
            if step(after) <= current {
                played.publish(step(after), self.options.lifetimes);
            }
        }
        played.part
    }

    /// The publications from `begin` to `current` that are the first to show a message about an event or its start,
    /// each with the one before it. Every other publication shows the same as its predecessor.
    fn publications_around(
        &self,
        life: &Life,
        begin: Timestamp,
        current: Timestamp,
    ) -> BTreeSet<Timestamp> {
        let interval = self.interval();
        let said = life.messages.iter().map(|(out, _)| *out);
        let around = said.chain(life.starts.iter().copied()).flat_map(|at| {
            let before = epoch_start(at, interval);
            let shown = if before < at { before.plus(interval) } else { at };
            [shown.minus(interval), shown]
        });
        around.chain([begin]).filter(|at| (begin..=current).contains(at)).collect()
    }
}

/// An event that is replayed.
struct Played {
    book: Book,
    part: Part,
    seq: u64,
}

impl Played {
    fn play(&mut self, message: &FeedMessage, out: Timestamp) {
        let at = arrival(message, out);
        // Messages refused now were refused at that time, too.
        let Ok(decision) = self.book.apply(SANDBOX_FEED, message, at) else { return };
        for change in decision.change.into_iter().chain(decision.follow) {
            self.push(change, at);
        }
    }

    fn publish(&mut self, cut: Timestamp, lifetimes: Lifetimes) {
        for change in self.book.overdue(cut, lifetimes) {
            self.book.absorb(&change, cut);
            self.push(change, cut);
        }
        self.push(Change::Cut { at: cut }, cut);
    }

    fn push(&mut self, change: Change, at: Timestamp) {
        self.seq += 1;
        self.part.push(&Entry { seq: self.seq, at, change }, 0);
    }
}
