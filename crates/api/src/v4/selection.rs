//! Selections of a snapshot under `/v4`, in normal form.

use std::sync::Arc;

use domain::v4::BookmakerSet;
use domain::{EventId, Market, Sport, SportId, Timestamp};
use market::select::EventIds;

/// A selection in normal form: requests with the same response have equal selections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    pub(crate) what: What,
    pub(crate) sport: SportFilter,
    pub(crate) bookmakers: BookmakerSet,
    pub(crate) markets: Markets,
    pub(crate) style: Style,
    pub(crate) events: EventIds,
    /// Both bounds are inclusive.
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
    /// Set for historical data: the adjacent publications.
    pub(crate) neighbours: Option<Neighbours>,
}

/// The publications before and after one, in other seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Neighbours {
    pub(crate) previous: Option<Timestamp>,
    pub(crate) next: Option<Timestamp>,
}

impl Selection {
    /// All events of a sport, without prices.
    pub(crate) fn of_events(sport: SportFilter) -> Self {
        Self {
            what: What::Events,
            sport,
            bookmakers: BookmakerSet::default(),
            markets: Markets::default(),
            style: Style::default(),
            events: None,
            from: None,
            to: None,
            neighbours: None,
        }
    }
}

/// Kind of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// `all` includes sports that are out of season.
    Sports {
        all: bool,
    },
    Events,
    Odds,
    /// `days` includes final events that started at most this many days ago.
    Scores {
        days: u8,
    },
    /// `None` for an id that no event has.
    EventOdds(Option<EventId>),
    EventMarkets(Option<EventId>),
    Participants,
}

/// Filter of events by sport.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SportFilter {
    /// All sports, for lists of sports.
    All,
    /// One of our sports.
    Whole(SportId),
    /// A sport key of `/v4`.
    Key(SportId, Arc<str>),
    /// Live and upcoming events of these sports.
    Upcoming(SportSet),
}

/// A set of sports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SportSet(u64);

impl SportSet {
    pub(crate) fn insert(&mut self, sport: SportId) {
        self.0 |= 1_u64.checked_shl(u32::try_from(sport.index()).unwrap_or(u32::MAX)).unwrap_or(0);
    }

    pub(crate) fn contains(self, sport: SportId) -> bool {
        let mut just = Self::default();
        just.insert(sport);
        self.0 & just.0 != 0
    }
}

/// A set of markets. The meaning of `totals` depends on the sport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Markets(u16);

impl Markets {
    const TOTALS: u16 = 1 << 15;
    /// All markets.
    pub(crate) const ALL: Self = Self(Self::TOTALS - 1);

    pub(crate) fn insert(&mut self, market: Market) {
        self.0 |= 1 << market.index();
    }

    pub(crate) fn insert_totals(&mut self) {
        self.0 |= Self::TOTALS;
    }

    pub(crate) fn contains(self, market: Market) -> bool {
        self.0 >> market.index() & 1 == 1
    }

    pub(crate) fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Replaces `totals` by the sport's markets.
    #[must_use]
    pub(crate) fn of_sport(mut self, sport: &Sport) -> Self {
        if self.0 & Self::TOTALS != 0 {
            self.0 ^= Self::TOTALS;
            sport.totals.iter().for_each(|totals| self.insert(*totals));
        }
        self
    }
}

// Every market has a bit below that of the totals.
const _: () = assert!(Market::ALL.len() < 15);

/// Rendering options of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Style(u8);

impl Style {
    pub(crate) const AMERICAN: Self = Self(1);
    pub(crate) const UNIX: Self = Self(1 << 1);
    pub(crate) const LINKS: Self = Self(1 << 2);
    pub(crate) const SIDS: Self = Self(1 << 3);
    pub(crate) const BET_LIMITS: Self = Self(1 << 4);
    pub(crate) const ROTATION_NUMBERS: Self = Self(1 << 5);
    /// Event odds and event markets, whose bookmakers have no time.
    pub(crate) const OF_EVENT: Self = Self(1 << 6);
    /// Without outcomes.
    pub(crate) const MARKETS_ONLY: Self = Self(1 << 7);

    pub(crate) fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True if the texts rendered at the last change can be used.
    pub(crate) fn is_rendered(self) -> bool {
        let more = Self::LINKS.0 | Self::SIDS.0 | Self::BET_LIMITS.0 | Self::MARKETS_ONLY.0;
        self.0 & more == 0
    }
}

/// Price of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    Free,
    /// A number of credits, if the response has data.
    Credits(u32),
    /// A number of credits for each market in the response.
    EachMarket(u32),
}

impl Price {
    /// The credits for a response with this number of units of data.
    pub(crate) fn credits(self, units: u32, flat: bool) -> u32 {
        let credits = match self {
            Self::Free => 0,
            Self::Credits(_) if units == 0 => 0,
            Self::Credits(credits) => credits,
            Self::EachMarket(credits) => credits.saturating_mul(units),
        };
        if flat { credits.min(1) } else { credits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_data_is_free_and_flat_costs_one() {
        for (price, units, prior, flat) in [
            (Price::Free, 3, 0, 0),
            (Price::Credits(6), 0, 0, 0),
            (Price::Credits(6), 1, 6, 1),
            (Price::EachMarket(2), 0, 0, 0),
            (Price::EachMarket(2), 3, 6, 1),
            (Price::EachMarket(0), 3, 0, 0),
        ] {
            assert_eq!((price.credits(units, false), price.credits(units, true)), (prior, flat));
        }
    }
}
