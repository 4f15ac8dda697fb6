//! Which events have started, so that their closing lines are known (H12).

use std::collections::{BTreeSet, HashMap};

use domain::{EventId, RecordId, Status, Timestamp};
use market::Book;
use market::book::Event;

/// What says that an event has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartBy {
    /// A publication shows it as live or final.
    Live,
    /// Nobody has reported a score, and its announced time has come.
    CommenceTime,
}

impl StartBy {
    pub const ALL: [Self; 2] = [Self::Live, Self::CommenceTime];

    pub const fn key(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::CommenceTime => "commence_time",
        }
    }

    pub(crate) fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.key() == key)
    }
}

/// How the last publication shows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting(Timestamp),
    Started(StartBy),
    /// It was live and is not; that its announced time has come means nothing any more.
    Corrected(Timestamp),
}

/// An event whose start a publication shows, or takes back.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) event: EventId,
    pub(crate) sport: Box<str>,
    /// The publication's entry, and its time.
    pub(crate) seq: u64,
    pub(crate) cut: Timestamp,
    pub(crate) commence_time: Timestamp,
    /// `None`: it has not started after all.
    pub(crate) start: Option<(Timestamp, StartBy)>,
    /// How fresh its prices were in the publication before.
    pub(crate) last_updates: HashMap<RecordId, Timestamp>,
}

/// The events of a book by how the last publication shows them.
#[derive(Debug)]
pub(crate) struct Starts {
    phases: HashMap<EventId, Phase>,
    /// When those that wait are announced for.
    due: BTreeSet<(Timestamp, EventId)>,
    last_cut: Timestamp,
}

impl Starts {
    /// Those of a book that was published at `last_cut`.
    pub(crate) fn of(book: &Book, last_cut: Timestamp) -> Self {
        let mut starts = Self { phases: HashMap::new(), due: BTreeSet::new(), last_cut };
        for event in book.events().filter(|event| event.is_listed()) {
            starts.put(event.id, Phase::next(None, event, last_cut));
        }
        starts
    }

    /// Events that `changed`, or whose time has come with a publication, where that starts them or takes it back; with
    /// the start.
    pub(crate) fn publish(
        &mut self,
        book: &Book,
        changed: impl Iterator<Item = EventId>,
        cut: Timestamp,
    ) -> Vec<(EventId, Option<(Timestamp, StartBy)>)> {
        let due = self.due.iter().take_while(|(commence, _)| *commence <= cut);
        let ids: BTreeSet<EventId> = due.map(|(_, id)| *id).chain(changed).collect();
        let mut started = Vec::new();
        for id in ids {
            let before = self.phases.get(&id).copied();
            let Some(event) = book.event(id).filter(|event| event.is_listed()) else {
                self.remove(id);
                continue;
            };
            let now = Phase::next(before, event, cut);
            self.put(id, now);
            match (before, now) {
                (Some(Phase::Started(held)), Phase::Started(by)) if held == by => {}
                (_, Phase::Started(StartBy::Live)) => {
                    started.push((id, Some((cut, StartBy::Live))));
                }
                (_, Phase::Started(StartBy::CommenceTime)) => {
                    // A time that was over before it was announced is not when it started.
                    let announced = Some(event.commence_time).filter(|at| *at > self.last_cut);
                    started.push((id, Some((announced.unwrap_or(cut), StartBy::CommenceTime))));
                }
                (Some(Phase::Started(_)), Phase::Waiting(_) | Phase::Corrected(_)) => {
                    started.push((id, None));
                }
                (_, Phase::Waiting(_) | Phase::Corrected(_)) => {}
            }
        }
        self.last_cut = cut;
        started
    }

    fn put(&mut self, id: EventId, phase: Phase) {
        self.remove(id);
        if let Phase::Waiting(commence) = phase {
            self.due.insert((commence, id));
        }
        self.phases.insert(id, phase);
    }

    fn remove(&mut self, id: EventId) {
        if let Some(Phase::Waiting(commence)) = self.phases.remove(&id) {
            self.due.remove(&(commence, id));
        }
    }
}

impl Phase {
    fn next(before: Option<Self>, event: &Event, cut: Timestamp) -> Self {
        let commence = event.commence_time;
        match (event.score.status, before) {
            (Status::Live | Status::Final, _) => Self::Started(StartBy::Live),
            (Status::Scheduled, _) if commence > cut => Self::Waiting(commence),
            (Status::Scheduled, Some(Self::Started(StartBy::Live))) => Self::Corrected(commence),
            (Status::Scheduled, Some(Self::Corrected(held))) if held == commence => {
                Self::Corrected(commence)
            }
            (Status::Scheduled, _) => Self::Started(StartBy::CommenceTime),
        }
    }
}
