//! Where each price came from: the last changes of every outcome at every bookmaker, as they were published.
//!
//! Fed with snapshots, one after the other; a record that did not change is known by its pointer and costs a
//! look-up. What is kept is bounded twice: so many outcomes, and so many changes of each.

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;

use domain::{EventId, Line, Quote, RecordId, Status, Timestamp};
use market::Snapshot;
use market::book::{Outcome, OutcomeName, Record};

use crate::dashboard::board::chance::{Chance, chance};

/// Outcomes at bookmakers whose changes are kept; those of further records are not.
const PATHS_MAX: usize = 40_000;
/// Changes kept of each; the eldest goes. With 16 bytes a change, the whole stays under 45 MB.
const POINTS_MAX: usize = 64;

/// A price from an instant on; without a chance, there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    at_s: u32,
    pub(crate) chance: Option<Chance>,
    pub(crate) line: Option<Line>,
}

impl Point {
    pub(crate) fn at(self) -> Timestamp {
        Timestamp::from_secs(i64::from(self.at_s))
    }
}

/// The changes of one outcome at one bookmaker, the eldest first.
#[derive(Debug)]
pub(crate) struct Path {
    /// The first price that was seen, exactly; it may be older than the eldest change kept.
    pub(crate) opened: Quote,
    pub(crate) points: VecDeque<Point>,
}

#[derive(Debug)]
struct Followed {
    event: EventId,
    /// What was published last; `None` while there are no prices.
    record: Option<Arc<Record>>,
    paths: Vec<(OutcomeName, Path)>,
    round: u64,
}

/// All paths of one world.
#[derive(Debug, Default)]
pub(crate) struct History {
    followed: HashMap<RecordId, Followed>,
    paths: usize,
    round: u64,
}

impl History {
    pub(crate) fn path(&self, record: RecordId, name: OutcomeName) -> Option<&Path> {
        let paths = &self.followed.get(&record)?.paths;
        paths.iter().find(|(own, _)| *own == name).map(|(_, path)| path)
    }

    /// How many paths there are.
    pub(crate) fn len(&self) -> usize {
        self.paths
    }

    /// Puts what was before in front of what was noted so far.
    pub(crate) fn lead_in(&mut self, mut past: Self) {
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

    /// Takes note of what a snapshot shows.
    pub(crate) fn note(&mut self, snapshot: &Snapshot) {
        self.round += 1;
        let at_s = u32::try_from(snapshot.cut_at.as_secs()).unwrap_or(u32::MAX);
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
            let point = main_offer(&record.outcomes, *name);
            path.push(
                at_s,
                point.map(|offer| chance(offer.quote.price)),
                point.and_then(|o| o.point),
            );
        }
        let mut added = 0;
        for outcome in &*record.outcomes {
            let is_new = !followed.paths.iter().any(|(name, _)| *name == outcome.name);
            let Some(offer) = main_offer(&record.outcomes, outcome.name) else { continue };
            if is_new && added < room {
                followed.paths.push((outcome.name, Path::open(offer, at_s)));
                added += 1;
            }
        }
        self.paths += added;
    }

    /// Ends the paths of records that are not there any more, and forgets those of events that are over.
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

impl Path {
    fn open(offer: &Outcome, at_s: u32) -> Self {
        let mut path = Self { opened: offer.quote, points: VecDeque::new() };
        path.push(at_s, Some(chance(offer.quote.price)), offer.point);
        path
    }

    fn push(&mut self, at_s: u32, chance: Option<NonZeroU32>, line: Option<Line>) {
        let same = |last: &Point| last.chance == chance && last.line == line;
        if self.points.back().is_some_and(same) {
            return;
        }
        if self.points.len() >= POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(Point { at_s, chance, line });
    }

    fn lead_in(&mut self, before: Self) {
        let Some(first) = self.points.front().copied() else { return };
        self.opened = before.opened;
        let mut points: VecDeque<Point> =
            before.points.into_iter().filter(|point| point.at_s < first.at_s).collect();
        let same = |last: &Point| last.chance == first.chance && last.line == first.line;
        if points.back().is_some_and(same) {
            self.points.pop_front();
        }
        points.append(&mut self.points);
        while points.len() > POINTS_MAX {
            points.pop_front();
        }
        self.points = points;
    }

    /// What stood at an instant.
    pub(crate) fn at(&self, at: Timestamp) -> Option<Point> {
        self.points.iter().rev().find(|point| point.at() <= at).copied()
    }
}

/// A record may have several lines for one outcome; its main line is the one nearest to even money.
pub(crate) fn main_offer(outcomes: &[Outcome], name: OutcomeName) -> Option<&Outcome> {
    let even = 500_000_000_u32;
    outcomes
        .iter()
        .filter(|outcome| outcome.name == name)
        .min_by_key(|outcome| chance(outcome.quote.price).get().abs_diff(even))
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
        let mut path = Path::open(&offer("2"), 0);
        for at_s in 1..10 {
            path.push(at_s, Some(chance(offer("2").quote.price)), None);
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
            last.chance.map(NonZeroU32::get),
            Some(9 + 2 * u32::try_from(POINTS_MAX).unwrap())
        );
    }

    #[test]
    fn what_was_before_comes_in_front() {
        let mut before = Path::open(&offer("2"), 0);
        for (at_s, price) in [(10, "2.1"), (20, "2.2"), (90, "9")] {
            before.push(at_s, Some(chance(offer(price).quote.price)), None);
        }
        let mut path = Path::open(&offer("2.2"), 50);
        path.push(60, Some(chance(offer("2.3").quote.price)), None);
        path.lead_in(before);
        let times: Vec<u32> = path.points.iter().map(|point| point.at_s).collect();
        assert_eq!(times, [0, 10, 20, 60], "the same price is not a change");
        assert_eq!(path.opened, offer("2").quote);
    }

    #[test]
    fn of_several_lines_the_one_nearest_to_even_money_is_followed() {
        let line = |price: &str, quarters| Outcome {
            point: Some(Line::from_quarters(quarters)),
            ..offer(price)
        };
        let outcomes = [line("1.3", -4), line("1.95", -14), line("3.4", -28)];
        let main = main_offer(&outcomes, OutcomeName::Home).unwrap();
        assert_eq!(main.point, Some(Line::from_quarters(-14)));
        assert!(main_offer(&outcomes, OutcomeName::Away).is_none());
    }
}
