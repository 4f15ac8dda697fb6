//! Which events of several recordings are the same, with all of them at hand.
//!
//! The service decides on each listing as it comes and keeps to it. Here everything is known at once, so more can
//! be told: which competitions of two sources are one (most of their events are), by how much the clocks of two
//! sources differ, whose name is written in another way throughout. The outcome does not depend on the order in
//! which files and lines are given.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::{Catalogue, SportId};

use super::index::{Index, Owner, QuickCheck};
use super::judge::{Doubt, Evidence, ListingView, Tie, Verdict};
use super::likeness::Likeness;

/// A listing of a feed.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) feed: usize,
    pub(crate) sport: SportId,
    pub(crate) view: ListingView<'a>,
}

/// Two listings of two feeds that may be the same.
#[derive(Clone, Copy, Debug)]
struct Edge {
    one: usize,
    other: usize,
    evidence: Evidence,
}

/// What came out for one listing.
#[derive(Clone, Debug)]
pub(crate) struct Solved {
    /// The first of the listings that are the same event.
    pub(crate) group: usize,
    /// The listing it agrees with best, if any.
    pub(crate) with: Option<(usize, Evidence)>,
    /// A listing it was nearly taken for.
    pub(crate) unsure: Option<(usize, Evidence, Doubt)>,
}

/// Feeds' competitions that were seen together so often count as known to go together, or not to.
const TIES_MIN: usize = 3;
/// A pair of feeds needs so many events in common before the habit of its clocks is known.
const CLOCKS_MIN: usize = 20;
/// What the clocks may be off beyond what was seen, in minutes.
const CLOCK_SLACK: i64 = 36 * 60;

/// Everything that is worked out on the way.
struct Solver<'a> {
    catalogue: &'a Catalogue,
    items: &'a [Item<'a>],
    edges: Vec<Edge>,
    ties: Ties,
    clocks: BTreeMap<(SportId, usize, usize), (i64, i64)>,
    groups: Groups,
}

/// How often competitions of two feeds had an event in common.
#[derive(Default)]
struct Ties {
    seen: HashMap<(usize, usize, u64, u64), usize>,
    most: HashMap<(usize, usize, u64), usize>,
}

/// Groups of listings that are one event, each with at most one listing of a feed.
struct Groups {
    group: Vec<usize>,
    members: Vec<Vec<usize>>,
    with: Vec<Option<(usize, Evidence)>>,
    unsure: Vec<Option<(usize, Evidence, Doubt)>>,
}

pub(crate) fn solve(catalogue: &Catalogue, items: &[Item<'_>]) -> Vec<Solved> {
    let edges = candidates(catalogue, items);
    let mut solver = Solver {
        catalogue,
        items,
        edges,
        ties: Ties::default(),
        clocks: BTreeMap::new(),
        groups: Groups::new(items.len()),
    };
    solver.learn_habits();
    solver.join_agreed();
    solver.join_renamed();
    let groups = solver.groups;
    (0..items.len())
        .map(|at| Solved {
            group: groups.group.get(at).copied().unwrap_or(at),
            with: groups.with.get(at).copied().flatten(),
            unsure: groups.unsure.get(at).copied().flatten(),
        })
        .collect()
}

/// Every two listings of two feeds with enough in common to be worth a look.
fn candidates(catalogue: &Catalogue, items: &[Item<'_>]) -> Vec<Edge> {
    let mut index: Index<usize> = Index::default();
    let mut edges = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let within = catalogue.sport(item.sport).other_event_after;
        let keys = index.keys(item.sport, &item.view.contest);
        let check = QuickCheck { at: item.view.commence_time, signature: item.view.signature };
        for found in index.find(&keys, check, within) {
            let Some(other) = items.get(found).filter(|other| other.feed != item.feed) else {
                continue;
            };
            let evidence = Evidence::gather(&other.view, &item.view);
            if evidence.sides.iter().max() >= Some(&Likeness::Near) {
                edges.push(Edge { one: found, other: at, evidence });
            }
        }
        // A recording holds years: the same two meet often, and nobody floods us.
        index.set(at, check, Owner::Anybody, keys);
    }
    edges
}

impl Solver<'_> {
    fn item(&self, at: usize) -> Option<&Item<'_>> {
        self.items.get(at)
    }

    /// Learns from listings that have one possible partner only.
    fn learn_habits(&mut self) {
        let mut partners: HashMap<(usize, usize), usize> = HashMap::new();
        let firm: Vec<Edge> =
            self.edges.iter().filter(|edge| edge.evidence.weaker().is_firm()).copied().collect();
        let feed = |at: usize| self.items.get(at).map_or(usize::MAX, |item| item.feed);
        for edge in &firm {
            *partners.entry((edge.one, feed(edge.other))).or_default() += 1;
            *partners.entry((edge.other, feed(edge.one))).or_default() += 1;
        }
        let mut gaps: BTreeMap<(SportId, usize, usize), Vec<i64>> = BTreeMap::new();
        for edge in &firm {
            let alone = partners.get(&(edge.one, feed(edge.other))) == Some(&1)
                && partners.get(&(edge.other, feed(edge.one))) == Some(&1);
            let (Some(one), Some(other)) = (self.items.get(edge.one), self.items.get(edge.other))
            else {
                continue;
            };
            if alone {
                self.ties.note(one, other);
                let (key, gap) = signed_gap(one, other);
                gaps.entry(key).or_default().push(gap);
            }
        }
        for (key, mut gaps) in gaps {
            if gaps.len() >= CLOCKS_MIN {
                gaps.sort_unstable();
                let at =
                    |part: usize| gaps.get(part * (gaps.len() - 1) / 100).copied().unwrap_or(0);
                self.clocks.insert(key, (at(2) - CLOCK_SLACK, at(98) + CLOCK_SLACK));
            }
        }
    }

    /// What is known of the two beyond their own words.
    fn habits_allow(&self, edge: &Edge) -> bool {
        let (Some(one), Some(other)) = (self.item(edge.one), self.item(edge.other)) else {
            return false;
        };
        let (key, gap) = signed_gap(one, other);
        let on_time =
            self.clocks.get(&key).is_none_or(|(least, most)| (least..=most).contains(&&gap));
        match self.ties.tie(one, other) {
            Tie::Same => true,
            Tie::Unknown => on_time,
            Tie::Other => false,
        }
    }

    /// Joins what agrees in both names, the surest first.
    fn join_agreed(&mut self) {
        let mut agreed: Vec<(Rank, Edge)> = Vec::new();
        let mut doubtful = Vec::new();
        for edge in &self.edges {
            let Some(item) = self.item(edge.one) else { continue };
            let sport = self.catalogue.sport(item.sport);
            match edge.evidence.verdict(sport) {
                Verdict::Same | Verdict::Unsure(Doubt::Time) if self.habits_allow(edge) => {
                    agreed.push((self.rank(edge), *edge));
                }
                Verdict::Same | Verdict::Unsure(Doubt::Time) => doubtful.push((*edge, Doubt::Time)),
                Verdict::Unsure(doubt) => doubtful.push((*edge, doubt)),
                Verdict::Different => {}
            }
        }
        agreed.sort_unstable_by_key(|(rank, _)| *rank);
        for (_, edge) in agreed {
            self.groups.join(self.items, self.catalogue, &edge);
        }
        for (edge, doubt) in doubtful {
            self.groups.doubt(&edge, doubt);
        }
    }

    fn rank(&self, edge: &Edge) -> Rank {
        let tie = match (self.item(edge.one), self.item(edge.other)) {
            (Some(one), Some(other)) => self.ties.tie(one, other),
            _ => Tie::Unknown,
        };
        Rank {
            names: u16::MAX - edge.evidence.weaker().weight().min(920),
            strangers: tie != Tie::Same,
            gap: edge.evidence.gap_minutes,
            rest: u16::MAX - edge.evidence.sides.iter().map(|side| side.weight()).sum::<u16>(),
            pair: (edge.one, edge.other),
        }
    }

    /// Joins listings of one session that share a participant, where the other's two names are the same person's:
    /// neither source ever uses the other's name, and they have a word in common or the same happens again.
    fn join_renamed(&mut self) {
        let used: HashSet<(usize, SportId, String)> = self
            .items
            .iter()
            .flat_map(|item| {
                let spelt =
                    item.view.contest.sides().iter().filter_map(super::contest::Party::spelling);
                spelt.map(|spelling| (item.feed, item.sport, spelling))
            })
            .collect();
        let mut hypotheses: BTreeMap<Renaming, BTreeSet<(usize, usize)>> = BTreeMap::new();
        let mut found: Vec<(Edge, Renaming)> = Vec::new();
        for edge in &self.edges {
            let Some(renamed) = self.renamed(edge) else { continue };
            let (Some(one), Some(other)) = (self.item(edge.one), self.item(edge.other)) else {
                continue;
            };
            if used.contains(&(other.feed, one.sport, renamed.0.clone()))
                || used.contains(&(one.feed, one.sport, renamed.1.clone()))
                || !self.groups.may_join(self.items, edge)
            {
                continue;
            }
            let key = (one.feed, renamed.0, other.feed, renamed.1);
            hypotheses.entry(key.clone()).or_default().insert((edge.one, edge.other));
            found.push((*edge, key));
        }
        for (edge, key) in found {
            let times = hypotheses.get(&key).map_or(0, BTreeSet::len);
            let weaker = edge.evidence.weaker();
            if times >= 2 || weaker >= Likeness::Shared {
                self.groups.join_renamed(self.items, &edge);
            } else {
                self.groups.doubt(&edge, Doubt::Name);
            }
        }
    }

    /// The two names of the participant on whom an otherwise agreeing pair differs.
    fn renamed(&self, edge: &Edge) -> Option<(String, String)> {
        let (one, other) = (self.item(edge.one)?, self.item(edge.other)?);
        let sport = self.catalogue.sport(one.sport);
        let session = edge.evidence.gap() <= super::judge::SESSION.min(sport.same_event_within);
        let [home, away] = edge.evidence.sides;
        let (weaker, stronger) = (home.min(away), home.max(away));
        if !session
            || !stronger.is_firm()
            || weaker >= Likeness::Kin
            || weaker == Likeness::Conflict
        {
            return None;
        }
        let at = usize::from(away < home);
        let their_at = if edge.evidence.swapped { 1 - at } else { at };
        let name = one.view.contest.sides().get(at)?;
        let their_name = other.view.contest.sides().get(their_at)?;
        (name.is_full() || their_name.is_full()).then_some(())?;
        Some((name.spelling()?, their_name.spelling()?))
    }
}

/// A feed's name for somebody, and another feed's.
type Renaming = (usize, String, usize, String);

/// What is joined first: smaller is sooner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    names: u16,
    strangers: bool,
    gap: u32,
    rest: u16,
    pair: (usize, usize),
}

fn signed_gap(one: &Item<'_>, other: &Item<'_>) -> ((SportId, usize, usize), i64) {
    let minutes = |item: &Item<'_>| item.view.commence_time.as_millis() / 60_000;
    if one.feed < other.feed {
        ((one.sport, one.feed, other.feed), minutes(other) - minutes(one))
    } else {
        ((one.sport, other.feed, one.feed), minutes(one) - minutes(other))
    }
}

impl Ties {
    fn key(item: &Item<'_>) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (item.sport, &item.view.competition).hash(&mut hasher);
        hasher.finish()
    }

    fn note(&mut self, one: &Item<'_>, other: &Item<'_>) {
        for (one, other) in [(one, other), (other, one)] {
            let (mine, theirs) = (Self::key(one), Self::key(other));
            let seen = self.seen.entry((one.feed, other.feed, mine, theirs)).or_default();
            *seen += 1;
            let most = self.most.entry((one.feed, other.feed, mine)).or_default();
            *most = (*most).max(*seen);
        }
    }

    /// Whether the competitions go together; they do not when each has another with which it does.
    fn tie(&self, one: &Item<'_>, other: &Item<'_>) -> Tie {
        let ways = [(one, other), (other, one)].map(|(one, other)| {
            let (mine, theirs) = (Self::key(one), Self::key(other));
            let seen = self.seen.get(&(one.feed, other.feed, mine, theirs)).copied().unwrap_or(0);
            let most = self.most.get(&(one.feed, other.feed, mine)).copied().unwrap_or(0);
            (seen, most)
        });
        if ways.iter().all(|(seen, most)| *most >= TIES_MIN && seen * 4 < *most) {
            Tie::Other
        } else if ways.iter().all(|(seen, most)| *most >= TIES_MIN && seen * 4 >= *most) {
            Tie::Same
        } else {
            Tie::Unknown
        }
    }
}

impl Groups {
    fn new(items: usize) -> Self {
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

    /// Two listings of one feed are two events.
    fn may_join(&self, items: &[Item<'_>], edge: &Edge) -> bool {
        let feeds = |at: usize| -> Vec<usize> {
            self.members_of(at).iter().filter_map(|at| Some(items.get(*at)?.feed)).collect()
        };
        let theirs = feeds(edge.other);
        self.group.get(edge.one) != self.group.get(edge.other)
            && feeds(edge.one).iter().all(|feed| !theirs.contains(feed))
    }

    fn join(&mut self, items: &[Item<'_>], catalogue: &Catalogue, edge: &Edge) {
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
                evidence.weaker() > Likeness::Conflict && evidence.gap() <= sport.other_event_after
            })
        });
        if fits {
            self.unite(edge);
        } else {
            self.doubt(edge, Doubt::Rival);
        }
    }

    fn join_renamed(&mut self, items: &[Item<'_>], edge: &Edge) {
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

    /// Keeps the better of what a listing agrees with.
    fn note(&mut self, edge: &Edge) {
        for (at, with) in [(edge.one, edge.other), (edge.other, edge.one)] {
            if let Some(held @ None) = self.with.get_mut(at) {
                *held = Some((with, edge.evidence));
            }
        }
    }

    fn doubt(&mut self, edge: &Edge, doubt: Doubt) {
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
