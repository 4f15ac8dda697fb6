//! The lists that can be followed: each of their answers has a position, from which changes can be asked for (S2, S9).

use domain::{Format, SportId};
use market::{EventSelection, OddsSelection, ScoreSelection};

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
