//! What a stream follows, in normal form: streams of the same selection share their events.

use domain::{SportId, World};
use market::{OddsSelection, Snapshot};

use crate::answers::Selector;
use crate::context::Api;
use crate::position::{LogPlace, LogPosition, lists_check, place_of};
use crate::v1::wire::stream::Channel;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Selection {
    pub(super) world: World,
    /// By sport and then by channel, in the order in which they are sent.
    pub(super) lists: Vec<(Channel, Selector)>,
    /// Whether the freshness of sources is sent.
    pub(super) sources: bool,
    /// What tells its cursors from those of others.
    pub(super) check: u32,
}

impl Selection {
    /// `None` where positions mean nothing to one of the lists.
    pub(super) fn new(
        world: World,
        lists: Vec<(Channel, Selector)>,
        sources: bool,
        api: &Api,
    ) -> Option<Self> {
        let check = lists_check(lists.iter().map(|(_, selector)| selector), &api.catalogue)?;
        Some(Self { world, lists, sources, check })
    }

    pub(super) fn place_of(&self, snapshot: &Snapshot) -> LogPlace {
        place_of(self.world, snapshot)
    }

    /// The cursor of a publication.
    pub(super) fn cursor(&self, snapshot: &Snapshot) -> String {
        let (at, check) = self.place_of(snapshot);
        LogPosition { world: self.world, at, check, selection: self.check }.encode()
    }

    /// The sport of each list.
    pub(super) fn sports(&self) -> impl Iterator<Item = SportId> {
        self.lists.iter().filter_map(|(_, selector)| sport_of(selector))
    }

    /// The odds that it follows.
    pub(super) fn odds(&self) -> impl Iterator<Item = &OddsSelection> {
        self.lists.iter().filter_map(|(_, selector)| {
            if let Selector::Odds(odds, _) = selector { Some(odds) } else { None }
        })
    }
}

/// The sport of a list that can be followed.
pub(super) fn sport_of(selector: &Selector) -> Option<SportId> {
    match selector {
        Selector::Odds(odds, _) => Some(odds.sport),
        Selector::Scores(scores) => Some(scores.sport),
        Selector::Events(events) => Some(events.sport),
        Selector::Sports
        | Selector::Books
        | Selector::Bouts(..)
        | Selector::Event(..)
        | Selector::Coverage(_)
        | Selector::Explain(_)
        | Selector::Analysis(..)
        | Selector::Delta(..)
        | Selector::Csv(_)
        | Selector::V4(_) => None,
    }
}
