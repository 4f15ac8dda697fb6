//! Lists that can be followed: each of their answers has a position from which changes can be requested (S2, S9).

use std::borrow::Cow;
use std::sync::Arc;

use domain::{BookmakerId, BookmakerSet, Catalogue, Format, SportId};
use market::snapshot::{EventRow, RecordRow};
use market::{EventSelection, OddsSelection, ScoreSelection, Snapshot};

use crate::v1::region::{self, Regions};

/// A page of a list of one sport, or the whole list if it is followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum List {
    Odds(OddsSelection, Format, CatalogueTerms),
    Scores(ScoreSelection),
    Events(EventSelection),
}

/// Parts of a request whose meaning may differ in another catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CatalogueTerms {
    /// The regions of its bookmakers; `None`: the one bookmaker is listed wherever it is offered.
    pub(crate) regions: Option<Regions>,
    /// True if its market is the one the sport lists as `totals`.
    pub(crate) is_totals: bool,
}

impl CatalogueTerms {
    /// The bookmakers of a list (D16).
    fn bookmakers(self, bookmaker: Option<BookmakerId>, catalogue: &Catalogue) -> BookmakerSet {
        let of_regions = self.regions.map(|regions| regions.bookmakers_in(catalogue));
        region::among(bookmaker.map(BookmakerSet::just), of_regions)
    }
}

impl List {
    pub(crate) fn sport(&self) -> SportId {
        match self {
            Self::Odds(odds, ..) => odds.sport,
            Self::Scores(scores) => scores.sport,
            Self::Events(events) => events.sport,
        }
    }

    /// The same request in another catalogue, where sports and bookmakers have other numbers and regions have other
    /// bookmakers; `None` if no part of it exists there.
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
            Self::Odds(odds, format, terms) => {
                let bookmaker = match odds.bookmaker {
                    Some(id) => Some(other.bookmaker_id(&own.bookmaker(id).key)?),
                    None => None,
                };
                let market = match terms.is_totals {
                    true => Some(other.sport(sport).totals?),
                    false => odds.market,
                };
                let bookmakers = terms.bookmakers(bookmaker, other);
                let odds = OddsSelection { sport, bookmakers, bookmaker, market, ..odds };
                Self::Odds(odds, format, terms)
            }
            Self::Scores(scores) => Self::Scores(ScoreSelection { sport, ..scores }),
            Self::Events(events) => Self::Events(EventSelection { sport, ..events }),
        }))
    }

    /// All records of a list of odds.
    pub(crate) fn records<'a>(&self, snapshot: &'a Snapshot) -> Vec<&'a RecordRow> {
        let Self::Odds(odds, ..) = self else { return Vec::new() };
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

    /// Heap memory of its events and its name.
    pub(super) fn bytes(&self) -> usize {
        let (events, name) = match self {
            Self::Odds(odds, ..) => (&odds.events, None),
            Self::Scores(scores) => (&scores.events, None),
            Self::Events(events) => (&events.events, events.name.as_ref()),
        };
        name.map_or(0, |name| name.as_str().len())
            + events.as_ref().map_or(0, |events| size_of_val(&**events))
    }
}
