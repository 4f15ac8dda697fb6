//! The last price changes of every outcome at every bookmaker, as they were published.
//!
//! Fed with snapshots, one after the other; an unchanged record is recognised by its pointer and costs a lookup. The
//! memory is bounded twice: by the number of outcomes, and by the number of changes of each.

mod look_back;

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;

use archive::RecordPath;
use domain::{EventId, Line, Quote, RecordId, Status, Timestamp};
use market::Snapshot;
use market::analysis::{Probability, implied_probability, main_outcome};
use market::book::{Outcome, OutcomeName, Record};

/// Maximum number of outcomes at bookmakers whose changes are kept; those of further records are not.
const PATHS_MAX: usize = 40_000;
/// Maximum number of changes kept for each; the eldest is dropped. With 16 bytes a change, the whole stays under 45
/// MB.
const POINTS_MAX: usize = 64;

/// A price from an instant on; without a probability, there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PricePoint {
    at_s: u32,
    pub probability: Option<Probability>,
    pub line: Option<Line>,
}

impl PricePoint {
    pub fn at(self) -> Timestamp {
        Timestamp::from_secs(i64::from(self.at_s))
    }
}

/// The changes of one outcome at one bookmaker, the eldest first.
#[derive(Clone, Debug)]
pub struct PricePath {
    /// The first price that was seen, exactly; it may be older than the eldest change kept.
    pub opened: Quote,
    pub points: VecDeque<PricePoint>,
}

#[derive(Debug)]
struct Followed {
    event: EventId,
    /// The last published state; `None` while there are no prices.
    record: Option<Arc<Record>>,
    paths: Vec<(OutcomeName, PricePath)>,
    round: u64,
}

/// All paths of one world.
#[derive(Debug, Default)]
pub struct PriceHistory {
    followed: HashMap<RecordId, Followed>,
    paths: usize,
    round: u64,
    /// The last publication that was noted.
    noted: Option<Timestamp>,
}

impl PriceHistory {
    pub fn path(&self, record: RecordId, name: OutcomeName) -> Option<&PricePath> {
        let paths = &self.followed.get(&record)?.paths;
        paths.iter().find(|(own, _)| *own == name).map(|(_, path)| path)
    }

    /// Number of paths.
    pub fn paths(&self) -> usize {
        self.paths
    }

    /// True if the publication of that time is in it.
    pub fn has_noted(&self, cut_at: Timestamp) -> bool {
        self.noted.is_some_and(|noted| noted >= cut_at)
    }

    /// Prepends earlier changes to those noted so far.
    pub fn lead_in(&mut self, mut past: Self) {
        for (id, followed) in &mut self.followed {
            let Some(before) = past.followed.remove(id) else { continue };
            for (name, eldest) in before.paths {
                let found = followed.paths.iter_mut().find(|(own, _)| *own == name);
                if let Some((_, path)) = found {
                    path.lead_in(eldest);
                }
            }
        }
    }

    /// Adds the changes of a snapshot, unless it is in it already.
    pub fn note(&mut self, snapshot: &Snapshot) {
        if self.has_noted(snapshot.cut_at) {
            return;
        }
        self.noted = Some(snapshot.cut_at);
        self.round += 1;
        let at_s = seconds_of(snapshot.cut_at);
        let mut open: HashSet<EventId> = HashSet::new();
        for (sport, _) in snapshot.catalogue().sports() {
            let view = snapshot.sport(sport);
            let unfinished = view.events.iter().filter(|event| event.status != Status::Final);
            open.extend(unfinished.map(|event| event.id));
            for row in &view.records {
                let event = usize::try_from(row.event).ok().and_then(|at| view.events.get(at));
                if let Some(event) = event {
                    self.note_record(row.id, event.id, &row.record, at_s);
                }
            }
        }
        self.close(&open, at_s);
    }

    fn note_record(&mut self, id: RecordId, event: EventId, record: &Arc<Record>, at_s: u32) {
        let room = PATHS_MAX.saturating_sub(self.paths);
        let known = self.followed.contains_key(&id);
        if !known && record.outcomes.len() > room {
            return;
        }
        let followed = self.followed.entry(id).or_insert_with(|| Followed {
            event,
            record: None,
            paths: Vec::new(),
            round: 0,
        });
        followed.round = self.round;
        if followed.record.as_ref().is_some_and(|held| Arc::ptr_eq(held, record)) {
            return;
        }
        followed.record = Some(Arc::clone(record));
        for (name, path) in &mut followed.paths {
            let point = main_outcome(&record.outcomes, *name);
            path.push(
                at_s,
                point.map(|offer| implied_probability(offer.quote.price)),
                point.and_then(|o| o.point),
            );
        }
        let mut added = 0;
        for outcome in &*record.outcomes {
            let is_new = !followed.paths.iter().any(|(name, _)| *name == outcome.name);
            let Some(offer) = main_outcome(&record.outcomes, outcome.name) else { continue };
            if is_new && added < room {
                followed.paths.push((outcome.name, PricePath::open(offer, at_s)));
                added += 1;
            }
        }
        self.paths += added;
    }

    /// Ends the paths of records that disappeared, and removes those of events that are over.
    fn close(&mut self, open: &HashSet<EventId>, at_s: u32) {
        let round = self.round;
        self.followed.retain(|_, followed| {
            if !open.contains(&followed.event) {
                return false;
            }
            if followed.round != round && followed.record.take().is_some() {
                for (_, path) in &mut followed.paths {
                    path.push(at_s, None, None);
                }
            }
            true
        });
        self.paths = self.followed.values().map(|followed| followed.paths.len()).sum();
    }
}

impl PricePath {
    /// The path of one outcome, from all publications of its record; `None` if it was never priced.
    pub fn of_record(
        path: &RecordPath,
        is: impl Fn(&archive::PointOutcome) -> bool,
    ) -> Option<Self> {
        let main = |outcomes: &[archive::PointOutcome]| {
            let offers: Vec<Outcome> = outcomes
                .iter()
                .filter(|outcome| is(outcome))
                .map(|own| Outcome { name: OutcomeName::Home, quote: own.quote, point: own.point })
                .collect();
            main_outcome(&offers, OutcomeName::Home).copied()
        };
        let opened = path.open.iter().chain(&path.points);
        let opened = opened.filter_map(|point| main(&point.outcomes)).next()?.quote;
        let changes = path.points.iter().map(|point| {
            let offer = main(&point.outcomes);
            PricePoint {
                at_s: seconds_of(point.published_at),
                probability: offer.as_ref().map(|offer| implied_probability(offer.quote.price)),
                line: offer.and_then(|offer| offer.point),
            }
        });
        Some(Self { opened, points: VecDeque::new() }.followed_by(changes))
    }

    /// The same with later changes; those that are not later, or change nothing, are left out.
    pub fn followed_by(mut self, changes: impl Iterator<Item = PricePoint>) -> Self {
        for change in changes {
            let adds = |last: &PricePoint| {
                last.at_s < change.at_s
                    && (last.probability, last.line) != (change.probability, change.line)
            };
            if self.points.back().is_none_or(adds) {
                self.points.push_back(change);
            }
        }
        self
    }

    fn open(offer: &Outcome, at_s: u32) -> Self {
        let mut path = Self { opened: offer.quote, points: VecDeque::new() };
        path.push(at_s, Some(implied_probability(offer.quote.price)), offer.point);
        path
    }

    fn push(&mut self, at_s: u32, probability: Option<NonZeroU32>, line: Option<Line>) {
        let same = |last: &PricePoint| last.probability == probability && last.line == line;
        if self.points.back().is_some_and(same) {
            return;
        }
        if self.points.len() >= POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(PricePoint { at_s, probability, line });
    }

    fn lead_in(&mut self, before: Self) {
        let Some(first) = self.points.front().copied() else { return };
        self.opened = before.opened;
        let mut points: VecDeque<PricePoint> =
            before.points.into_iter().filter(|point| point.at_s < first.at_s).collect();
        let same =
            |last: &PricePoint| last.probability == first.probability && last.line == first.line;
        if points.back().is_some_and(same) {
            self.points.pop_front();
        }
        points.append(&mut self.points);
        while points.len() > POINTS_MAX {
            points.pop_front();
        }
        self.points = points;
    }

    /// The price at an instant.
    pub fn at(&self, at: Timestamp) -> Option<PricePoint> {
        self.points.iter().rev().find(|point| point.at() <= at).copied()
    }
}

fn seconds_of(at: Timestamp) -> u32 {
    u32::try_from(at.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use domain::{Format, Quote};

    use super::*;

    fn offer(price: &str) -> Outcome {
        let quote = Quote::parse(price, Format::Decimal).unwrap();
        Outcome { name: OutcomeName::Home, quote, point: None }
    }

    #[test]
    fn a_path_keeps_changes_only_and_no_more_than_its_share() {
        let mut path = PricePath::open(&offer("2"), 0);
        for at_s in 1..10 {
            path.push(at_s, Some(implied_probability(offer("2").quote.price)), None);
        }
        assert_eq!(path.points.len(), 1);
        for at_s in 10..10 + 2 * u32::try_from(POINTS_MAX).unwrap() {
            path.push(at_s, NonZeroU32::new(at_s), None);
        }
        assert_eq!(path.points.len(), POINTS_MAX);
        assert_eq!(path.opened, offer("2").quote, "the opening price stays");
        assert_eq!(path.at(Timestamp::from_secs(0)), None, "it is not known any more");
        let last = path.at(Timestamp::from_secs(1_000_000)).unwrap();
        assert_eq!(
            last.probability.map(NonZeroU32::get),
            Some(9 + 2 * u32::try_from(POINTS_MAX).unwrap())
        );
    }

    #[test]
    fn what_was_before_comes_in_front() {
        let mut before = PricePath::open(&offer("2"), 0);
        for (at_s, price) in [(10, "2.1"), (20, "2.2"), (90, "9")] {
            before.push(at_s, Some(implied_probability(offer(price).quote.price)), None);
        }
        let mut path = PricePath::open(&offer("2.2"), 50);
        path.push(60, Some(implied_probability(offer("2.3").quote.price)), None);
        path.lead_in(before);
        let times: Vec<u32> = path.points.iter().map(|point| point.at_s).collect();
        assert_eq!(times, [0, 10, 20, 60], "the same price is not a change");
        assert_eq!(path.opened, offer("2").quote);
    }
}
