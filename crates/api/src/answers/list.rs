//! The lists that can be followed: each of their answers has a position, from which changes can be asked for (S2, S9).

use std::borrow::Cow;
use std::sync::Arc;

use domain::{BookmakerSet, Catalogue, Format, SportId};
use market::snapshot::{EventRow, RecordRow};
use market::{EventSelection, OddsSelection, ScoreSelection, Snapshot};

/// A page of a list of one sport, or the whole of it where it is followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum List {
    Odds(OddsSelection, Format),
    Scores(ScoreSelection),
    Events(EventSelection),
}

impl List {
    pub(crate) fn sport(&self) -> SportId {
        match self {
            Self::Odds(odds, _) => odds.sport,
            Self::Scores(scores) => scores.sport,
            Self::Events(events) => events.sport,
        }
    }

    /// The same list in another catalogue, where sports and bookmakers have other numbers; `None`: nothing of it is in
    /// there.
    pub(crate) fn in_catalogue(
        &self,
        own: &Arc<Catalogue>,
        other: &Arc<Catalogue>,
    ) -> Option<Cow<'_, Self>> {
        if Arc::ptr_eq(own, other) {
            return Some(Cow::Borrowed(self));
        }
        let sport = other.sport_id(&own.sport(self.sport()).key)?;
        Some(Cow::Owned(match self.clone() {
            Self::Odds(odds, format) => {
                let mut bookmakers = BookmakerSet::default();
                let held = own.bookmakers().filter(|(id, _)| odds.bookmakers.contains(*id));
                for id in held.filter_map(|(_, bookmaker)| other.bookmaker_id(&bookmaker.key)) {
                    bookmakers.insert(id);
                }
                let bookmaker = match odds.bookmaker {
                    Some(id) => Some(other.bookmaker_id(&own.bookmaker(id).key)?),
                    None => None,
                };
                Self::Odds(OddsSelection { sport, bookmakers, bookmaker, ..odds }, format)
            }
            Self::Scores(scores) => Self::Scores(ScoreSelection { sport, ..scores }),
            Self::Events(events) => Self::Events(EventSelection { sport, ..events }),
        }))
    }

    /// All records of a list of odds.
    pub(crate) fn records<'a>(&self, snapshot: &'a Snapshot) -> Vec<&'a RecordRow> {
        let Self::Odds(odds, _) = self else { return Vec::new() };
        let all = OddsSelection { limit: usize::MAX - 1, after: None, ..odds.clone() };
        all.select(snapshot).items
    }

    /// All events of a list of scores or events.
    pub(crate) fn events<'a>(&self, snapshot: &'a Snapshot) -> Vec<&'a EventRow> {
        match self {
            Self::Odds(..) => Vec::new(),
            Self::Scores(scores) => {
                let all = ScoreSelection { limit: usize::MAX, after: None, ..scores.clone() };
                all.select(snapshot).items
            }
            Self::Events(events) => {
                let all = EventSelection { limit: usize::MAX, after: None, ..events.clone() };
                all.select(snapshot).items
            }
        }
    }

    /// What its events and its name take beside it.
    pub(super) fn bytes(&self) -> usize {
        let (events, name) = match self {
            Self::Odds(odds, _) => (&odds.events, None),
            Self::Scores(scores) => (&scores.events, None),
            Self::Events(events) => (&events.events, events.name.as_ref()),
        };
        name.map_or(0, |name| name.as_str().len())
            + events.as_ref().map_or(0, |events| size_of_val(&**events))
    }
}
