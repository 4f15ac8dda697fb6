//! Finds the same events in several recordings, with all data available.
//!
//! The service decides on each listing as it arrives and keeps the decision. Here everything is known at once, so
//! more can be decided: which competitions of two sources are one (most of their events are), by how much the clocks
//! of two sources differ, and which names a source always spells differently. The result does not depend on the order
//! of files and lines.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::{Catalogue, SportId};

use super::groups::{Edge, Groups, Item, players_in_common};
use super::habit::{Habit, Vote, are_by_day, competition_key, habit, minutes};
use super::index::{Index, Owner, QuickCheck};
use super::judge::{AT_ONCE, Doubt, Evidence, SESSION, Verdict};
use super::likeness::Likeness;
use super::name::Name;

/// The result for one listing.
#[derive(Clone, Debug)]
pub(crate) struct Solved {
    /// The first of the listings that are the same event.
    pub(crate) group: usize,
    /// The listing that it matches best, if any.
    pub(crate) with: Option<(usize, Evidence)>,
    /// A listing that it may be the same as.
    pub(crate) unsure: Option<(usize, Evidence, Doubt)>,
}

/// Minimum number of common events of two feeds for learning the difference of their clocks.
const CLOCKS_MIN: usize = 20;
/// Tolerance beyond the observed differences of clocks, in minutes.
const CLOCK_SLACK: i64 = 36 * 60;

/// The intermediate results.
struct Solver<'a> {
    catalogue: &'a Catalogue,
    items: &'a [Item<'a>],
    edges: Vec<Edge>,
    habits: Habits,
    clocks: BTreeMap<(SportId, usize, usize), (i64, i64)>,
    groups: Groups,
}

/// The common events of two feeds, by feed, its competition and the other feed, in the order of their starts.
#[derive(Default)]
struct Habits(HashMap<(usize, u64, usize), Vec<Common>>);

/// A listing with only one possible partner.
struct Common {
    partner: usize,
    vote: Vote,
}

pub(crate) fn solve(catalogue: &Catalogue, items: &[Item<'_>]) -> Vec<Solved> {
    let edges = candidates(catalogue, items);
    let mut solver = Solver {
        catalogue,
        items,
        edges,
        habits: Habits::default(),
        clocks: BTreeMap::new(),
        groups: Groups::new(items.len()),
    };
    solver.learn_habits();
    solver.join_agreed();
    solver.join_known_otherwise();
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

/// All pairs of listings of two feeds that are similar enough to be examined.
fn candidates(catalogue: &Catalogue, items: &[Item<'_>]) -> Vec<Edge> {
    let mut index: Index<usize> = Index::default();
    let mut edges = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let within = catalogue.sport(item.sport).other_event_after;
        let keys = index.keys(item.sport, &item.view.contest, item.view.commence_time);
        let check = QuickCheck { at: item.view.commence_time, signature: item.view.signature };
        for found in index.find(&keys, check, within) {
            let Some(other) = items.get(found).filter(|other| other.feed != item.feed) else {
                continue;
            };
            let mut evidence = Evidence::gather(&other.view, &item.view);
            evidence.mind_fields(&other.view, &item.view, || players_in_common(other, item));
            if evidence.sides.iter().max() >= Some(&Likeness::Near) {
                edges.push(Edge { one: found, other: at, evidence });
            }
        }
        // A recording covers years: the same two meet often, and nobody floods the index.
        index.set(at, check, Owner::Anybody, keys);
    }
    edges
}

impl Solver<'_> {
    fn item(&self, at: usize) -> Option<&Item<'_>> {
        self.items.get(at)
    }

    /// Learns from listings with only one possible partner.
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
                self.habits.note((edge.one, one), (edge.other, other));
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
        for held in self.habits.0.values_mut() {
            held.sort_unstable_by_key(|common| (common.vote.at, common.partner));
        }
    }

    /// The conclusion from the events around the two.
    fn habit(&self, edge: &Edge) -> Habit {
        let (Some(one), Some(other)) = (self.item(edge.one), self.item(edge.other)) else {
            return Habit::Unknown;
        };
        let sport = self.catalogue.sport(one.sport);
        let within = minutes(sport.other_event_after);
        let ours = self.habits.around(one, other.feed, edge.other, within);
        let theirs = self.habits.around(other, one.feed, edge.one, within);
        let later = start_minutes(other) - start_minutes(one);
        habit((&ours, competition_of(one)), (&theirs, competition_of(other)), later, sport)
    }

    /// True if the evidence beyond the names and starts allows the match.
    fn habits_allow(&self, edge: &Edge) -> bool {
        let (Some(one), Some(other)) = (self.item(edge.one), self.item(edge.other)) else {
            return false;
        };
        let sport = self.catalogue.sport(one.sport);
        let (key, gap) = signed_gap(one, other);
        let on_time =
            || self.clocks.get(&key).is_none_or(|(least, most)| (least..=most).contains(&&gap));
        match self.habit(edge) {
            Habit::Same => true,
            // Two fighters do not meet again within a short time, so only the date is in question.
            Habit::OffTime if sport.bouts => true,
            Habit::Unknown if sport.bouts || edge.evidence.gap() <= sport.same_event_within => {
                on_time()
            }
            Habit::OffTime if edge.evidence.gap() <= SESSION => on_time(),
            Habit::Elsewhere if edge.evidence.gap() <= AT_ONCE => on_time(),
            Habit::Elsewhere if sport.bouts => on_time(),
            Habit::Unknown | Habit::OffTime | Habit::Elsewhere | Habit::Other => false,
        }
    }

    /// Joins pairs that agree in both names, the most certain first.
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
        Rank {
            names: u16::MAX - edge.evidence.weaker().weight().min(920),
            strangers: self.habit(edge) != Habit::Same,
            gap: edge.evidence.gap_minutes,
            rest: u16::MAX - edge.evidence.sides.iter().map(|side| side.weight()).sum::<u16>(),
            pair: (edge.one, edge.other),
        }
    }

    /// Joins listings of one match that have a player under two names: another given name, a nickname, a married
    /// name.
    ///
    /// The opponent, the tournament and the day agree, and the names share a word that nobody else in the draw has.
    fn join_known_otherwise(&mut self) {
        let mut draws: Draws<'_> = HashMap::new();
        for item in self.items {
            for side in item.view.contest.sides() {
                let Some(spelling) = side.spelling() else { continue };
                let held = (start_minutes(item), spelling);
                for word in side.person().into_iter().flat_map(Name::keys) {
                    let key = (item.feed, competition_of(item), word);
                    draws.entry(key).or_default().push(held.clone());
                }
            }
        }
        let known: Vec<Edge> = self
            .edges
            .iter()
            .filter(|edge| self.is_known_otherwise(edge, &draws))
            .copied()
            .collect();
        for edge in known {
            self.groups.join_renamed(self.items, &edge);
        }
    }

    fn is_known_otherwise(&self, edge: &Edge, draws: &Draws<'_>) -> bool {
        let [home, away] = edge.evidence.sides;
        let (weaker, stronger) = (home.min(away), home.max(away));
        let (Some(one), Some(other)) = (self.item(edge.one), self.item(edge.other)) else {
            return false;
        };
        let sport = self.catalogue.sport(one.sport);
        let differs = matches!(weaker, Likeness::Shared | Likeness::Conflict);
        if sport.bouts || !differs || !stronger.is_firm() || edge.evidence.gap() > SESSION {
            return false;
        }
        let at = usize::from(away < home);
        let their_at = if edge.evidence.swapped { 1 - at } else { at };
        let sides = (one.view.contest.sides().get(at), other.view.contest.sides().get(their_at));
        let (Some(party), Some(their_party)) = sides else { return false };
        let words = party.words_in_common(their_party);
        let within = minutes(sport.other_event_after);
        // Two brothers may both meet the opponent in one tournament, but not on one day.
        let by_day = |item: &Item<'_>, feed: usize, partner: usize| {
            are_by_day(&self.habits.around(item, feed, partner, within))
        };
        if words.is_empty()
            || self.habit(edge) != Habit::Same
            || !by_day(one, other.feed, edge.other)
            || !by_day(other, one.feed, edge.one)
        {
            return false;
        }
        [(one, party), (other, their_party)].iter().all(|(item, party)| {
            let spelling = party.spelling();
            let at = start_minutes(item);
            words.iter().all(|word| {
                let held = draws.get(&(item.feed, competition_of(item), *word));
                held.into_iter().flatten().all(|(start, held)| {
                    start.abs_diff(at) > within.unsigned_abs() || Some(held) == spelling.as_ref()
                })
            })
        })
    }

    /// Joins listings of one session that share a participant, if the two names of the other one mean the same person.
    ///
    /// They do if neither source ever uses the other's name, and the names share a word or the pair of names recurs.
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

    /// The two names of the participant in which an otherwise matching pair differs.
    fn renamed(&self, edge: &Edge) -> Option<(String, String)> {
        let (one, other) = (self.item(edge.one)?, self.item(edge.other)?);
        let sport = self.catalogue.sport(one.sport);
        let session = edge.evidence.gap() <= SESSION.min(sport.same_event_within);
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

/// Players with a given word in their name in the draw of a feed's competition: start and spelling.
type Draws<'a> = HashMap<(usize, u64, &'a str), Vec<(i64, String)>>;

/// A feed's name for a person, and another feed's.
type Renaming = (usize, String, usize, String);

/// The order of joining: smaller is earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    names: u16,
    strangers: bool,
    gap: u32,
    rest: u16,
    pair: (usize, usize),
}

fn signed_gap(one: &Item<'_>, other: &Item<'_>) -> ((SportId, usize, usize), i64) {
    let later = start_minutes(other) - start_minutes(one);
    if one.feed < other.feed {
        ((one.sport, one.feed, other.feed), later)
    } else {
        ((one.sport, other.feed, one.feed), -later)
    }
}

fn start_minutes(item: &Item<'_>) -> i64 {
    item.view.commence_time.as_millis() / 60_000
}

fn competition_of(item: &Item<'_>) -> u64 {
    competition_key(item.view.competition)
}

impl Habits {
    fn note(&mut self, one: (usize, &Item<'_>), other: (usize, &Item<'_>)) {
        for ((_, one), (partner, other)) in [(one, other), (other, one)] {
            let at = start_minutes(one);
            let later_minutes = start_minutes(other) - at;
            let vote = Vote { at, competition: competition_of(other), later_minutes };
            let key = (one.feed, competition_of(one), other.feed);
            self.0.entry(key).or_default().push(Common { partner, vote });
        }
    }

    /// The common events of a listing's competition and another feed around it, except one partner.
    fn around(&self, item: &Item<'_>, feed: usize, partner: usize, within: i64) -> Vec<Vote> {
        let held = self.0.get(&(item.feed, competition_of(item), feed));
        let held = held.map_or(&[][..], Vec::as_slice);
        let at = start_minutes(item);
        let from = held.partition_point(|common| common.vote.at < at - within);
        let near = held.iter().skip(from).take_while(|common| common.vote.at <= at + within);
        near.filter(|common| common.partner != partner).map(|common| common.vote).collect()
    }
}
