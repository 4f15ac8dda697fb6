//! The events that have started, to find their closing lines (H12).

use std::collections::{BTreeSet, HashMap};

use domain::{EventId, RecordId, Status, Timestamp};
use market::Book;
use market::book::Event;
use serde::{Deserialize, Serialize};

/// The evidence that an event has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartBy {
    /// A publication shows it as live or final.
    Live,
    /// No score was reported and the scheduled start has passed.
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

/// The state of an event in the last publication that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting(Timestamp),
    Started(StartBy),
    /// It was live and is not; the passing of its scheduled start means nothing any more.
    Corrected(Timestamp),
}

/// An event whose start a publication shows or withdraws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub(crate) event: EventId,
    pub(crate) sport: Box<str>,
    /// The publication's entry, and its time.
    pub(crate) seq: u64,
    pub(crate) cut: Timestamp,
    pub(crate) commence_time: Timestamp,
    /// `None`: the start was withdrawn.
    pub(crate) start: Option<(Timestamp, StartBy)>,
    /// The freshness of its prices in the publication before.
    #[serde(with = "pairs")]
    pub(crate) last_updates: HashMap<RecordId, Timestamp>,
}

/// Numbers are no keys of JSON.
mod pairs {
    use super::{Deserialize, HashMap, RecordId, Serialize, Timestamp};

    pub(super) fn serialize<S: serde::Serializer>(
        map: &HashMap<RecordId, Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut pairs: Vec<(&RecordId, &Timestamp)> = map.iter().collect();
        pairs.sort_unstable();
        pairs.serialize(serializer)
    }

    pub(super) fn deserialize<'a, D: serde::Deserializer<'a>>(
        deserializer: D,
    ) -> Result<HashMap<RecordId, Timestamp>, D::Error> {
        let pairs = Vec::<(RecordId, Timestamp)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

impl Started {
    /// Its closing lines are the last prices published before this.
    pub(crate) fn before(&self) -> Timestamp {
        self.start.map_or(self.cut, |(start, _)| start)
    }
}

/// The events of a book by their state in the last publication that shows them. Events that are no longer listed are
/// kept for as long as the book has them: if they are listed again, they keep their id and their first start.
#[derive(Debug)]
pub(crate) struct Starts {
    phases: HashMap<EventId, Phase>,
    /// The scheduled starts of events that wait and are listed.
    due: BTreeSet<(Timestamp, EventId)>,
    last_cut: Timestamp,
}

impl Starts {
    /// The states of a book that was published at `last_cut`.
    pub(crate) fn of(book: &Book, last_cut: Timestamp) -> Self {
        let mut starts = Self { phases: HashMap::new(), due: BTreeSet::new(), last_cut };
        for event in book.events() {
            let shown_until = event.unlisted_at().map_or(last_cut, |at| at.min(last_cut));
            starts.put(event, Phase::next(None, event, shown_until));
        }
        starts
    }

    /// The same after a publication of another book: events of both keep the state that that one showed.
    pub(crate) fn continuing(mut self, before: &Self, book: &Book) -> Self {
        for event in book.events() {
            if let Some(phase) = before.phases.get(&event.id) {
                self.put(event, *phase);
            }
        }
        self
    }

    /// The events that start with a publication or whose start it withdraws, with the start. Only those that were
    /// `touched` or whose scheduled start has passed are examined.
    pub(crate) fn publish(
        &mut self,
        book: &Book,
        touched: impl Iterator<Item = EventId>,
        cut: Timestamp,
    ) -> Vec<(EventId, Option<(Timestamp, StartBy)>)> {
        let due = self.due.iter().take_while(|(commence, _)| *commence <= cut);
        let ids: BTreeSet<EventId> = due.map(|(_, id)| *id).chain(touched).collect();
        let mut started = Vec::new();
        for id in ids {
            let before = self.phases.get(&id).copied();
            let Some(event) = book.event(id) else {
                self.remove(id);
                continue;
            };
            let now = match (event.is_listed(), before) {
                (true, _) => Phase::next(before, event, cut),
                (false, Some(before)) => before,
                (false, None) => continue,
            };
            self.put(event, now);
            match (before, now) {
                (Some(Phase::Started(held)), Phase::Started(by)) if held == by => {}
                (_, Phase::Started(StartBy::Live)) => {
                    started.push((id, Some((cut, StartBy::Live))));
                }
                (_, Phase::Started(StartBy::CommenceTime)) => {
                    // A scheduled start that had passed before it was announced is not the time of the start.
                    let commence = event.commence_time;
                    let announced = Some(commence).filter(|at| {
                        *at > self.last_cut || before == Some(Phase::Waiting(commence))
                    });
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

    fn put(&mut self, event: &Event, phase: Phase) {
        self.remove(event.id);
        if let Phase::Waiting(commence) = phase
            && event.is_listed()
        {
            self.due.insert((commence, event.id));
        }
        self.phases.insert(event.id, phase);
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
