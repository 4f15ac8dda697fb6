//! Groups of listings that are one event, built pair by pair.

use std::collections::BTreeSet;

use domain::{Catalogue, SportId};

use super::judge::{Doubt, Evidence, ListingView};
use super::likeness::Likeness;

/// A listing of a feed.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) feed: usize,
    pub(crate) sport: SportId,
    pub(crate) view: ListingView<'a>,
    /// The players of its field, if odds name them.
    pub(crate) players: Option<&'a BTreeSet<String>>,
}

/// Two listings of two feeds that may be the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) one: usize,
    pub(super) other: usize,
    pub(super) evidence: Evidence,
}

/// Groups of listings that are one event, each with at most one listing of a feed.
pub(super) struct Groups {
    pub(super) group: Vec<usize>,
    members: Vec<Vec<usize>>,
    pub(super) with: Vec<Option<(usize, Evidence)>>,
    pub(super) unsure: Vec<Option<(usize, Evidence, Doubt)>>,
}

impl Groups {
    pub(super) fn new(items: usize) -> Self {
        Self {
            group: (0..items).collect(),
            members: (0..items).map(|at| vec![at]).collect(),
            with: vec![None; items],
            unsure: vec![None; items],
        }
    }

    fn members_of(&self, at: usize) -> &[usize] {
        self.group.get(at).and_then(|group| self.members.get(*group)).map_or(&[], Vec::as_slice)
    }

    /// True if no feed would have two listings in the group: those are two events.
    pub(super) fn may_join(&self, items: &[Item<'_>], edge: &Edge) -> bool {
        let feeds = |at: usize| -> Vec<usize> {
            self.members_of(at).iter().filter_map(|at| Some(items.get(*at)?.feed)).collect()
        };
        let theirs = feeds(edge.other);
        self.group.get(edge.one) != self.group.get(edge.other)
            && feeds(edge.one).iter().all(|feed| !theirs.contains(feed))
    }

    pub(super) fn join(&mut self, items: &[Item<'_>], catalogue: &Catalogue, edge: &Edge) {
        if self.group.get(edge.one) == self.group.get(edge.other) {
            self.note(edge);
            return;
        }
        if !self.may_join(items, edge) {
            return;
        }
        let fits = self.members_of(edge.one).iter().all(|ours| {
            self.members_of(edge.other).iter().all(|theirs| {
                let (Some(one), Some(other)) = (items.get(*ours), items.get(*theirs)) else {
                    return false;
                };
                let evidence = Evidence::gather(&one.view, &other.view);
                let sport = catalogue.sport(one.sport);
                let fields = || players_in_common(one, other);
                let mut evidence = evidence;
                evidence.mind_fields(&one.view, &other.view, fields);
                evidence.weaker() > Likeness::Conflict && evidence.gap() <= sport.other_event_after
            })
        });
        if fits {
            self.unite(edge);
        } else {
            self.doubt(edge, Doubt::Rival);
        }
    }

    pub(super) fn join_renamed(&mut self, items: &[Item<'_>], edge: &Edge) {
        if self.may_join(items, edge) {
            self.unite(edge);
        }
    }

    fn unite(&mut self, edge: &Edge) {
        let (Some(one), Some(other)) =
            (self.group.get(edge.one).copied(), self.group.get(edge.other).copied())
        else {
            return;
        };
        let (keep, give) = (one.min(other), one.max(other));
        let moved = self.members.get_mut(give).map(std::mem::take).unwrap_or_default();
        for at in &moved {
            if let Some(group) = self.group.get_mut(*at) {
                *group = keep;
            }
        }
        if let Some(members) = self.members.get_mut(keep) {
            members.extend(moved);
        }
        self.note(edge);
    }

    /// Notes the first, and so the best, match of each listing.
    fn note(&mut self, edge: &Edge) {
        for (at, with) in [(edge.one, edge.other), (edge.other, edge.one)] {
            if let Some(held @ None) = self.with.get_mut(at) {
                *held = Some((with, edge.evidence));
            }
        }
    }

    pub(super) fn doubt(&mut self, edge: &Edge, doubt: Doubt) {
        if self.group.get(edge.one) == self.group.get(edge.other) {
            return;
        }
        for (at, with) in [(edge.one, edge.other), (edge.other, edge.one)] {
            if let Some(held @ None) = self.unsure.get_mut(at) {
                *held = Some((with, edge.evidence, doubt));
            }
        }
    }
}

/// Number of players of the smaller field that are also in the other, and the size of the smaller one.
pub(super) fn players_in_common(one: &Item<'_>, other: &Item<'_>) -> (usize, usize) {
    match (one.players, other.players) {
        (Some(one), Some(other)) => (one.intersection(other).count(), one.len().min(other.len())),
        _ => (0, 0),
    }
}
