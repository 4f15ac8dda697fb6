//! The points of an event's past that are held while it is read: at most a page of them, however many there are.

use std::cmp::Ordering;

use domain::{Market, RecordId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{EventPast, PathHead, Point, RecordPath};

/// Maximum number of outcomes held for an event. Half of them are more than an answer has room for.
pub(super) const HELD_MAX: usize = 250_000;

/// A selection of the points to hold.
#[derive(Clone, Copy, Debug)]
pub enum Hold<'a> {
    /// The first in the order of answers, or those after a place: one change more than `limit`, within the memory
    /// bound.
    First { after: Option<&'a PathPlace>, limit: usize },
    /// Those that determine the last prices of each record.
    Last,
}

impl Hold<'_> {
    /// As many as the memory bound allows.
    pub const MOST: Self = Self::First { after: None, limit: usize::MAX };
}

/// A place in the paths of an event, in the order of answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathPlace {
    bookmaker: Box<str>,
    market: Market,
    record: RecordId,
    published_at: Timestamp,
    lineage: u32,
    seq: u64,
}

impl PathPlace {
    /// The place of a point.
    pub fn of(head: &PathHead, point: &Point) -> Self {
        let (published_at, lineage, seq) = point.place();
        Self { published_at, lineage, seq, ..Self::end_of(head) }
    }

    /// The end of a record's path.
    pub fn end_of(head: &PathHead) -> Self {
        Self {
            bookmaker: head.bookmaker.clone(),
            market: head.market,
            record: head.record,
            published_at: Timestamp::from_millis(i64::MAX),
            lineage: u32::MAX,
            seq: u64::MAX,
        }
    }

    /// Compares the path of a record with its own.
    pub fn cmp_path(&self, head: &PathHead) -> Ordering {
        head.order().cmp(&(&*self.bookmaker, self.market.key(), self.record))
    }

    /// True if a point of its own record comes after it.
    pub fn is_before(&self, point: &Point) -> bool {
        (self.published_at, self.lineage, self.seq) < point.place()
    }
}

impl Point {
    /// Its place in the path of its record, in the order of publications. Timestamps decide even if a log was replaced
    /// by another.
    pub(super) fn place(&self) -> (Timestamp, u32, u64) {
        (self.published_at, u32::try_from(self.lineage).unwrap_or(u32::MAX), self.seq)
    }

    fn weight(&self) -> usize {
        self.outcomes.len() + 1
    }
}

impl EventPast {
    /// Holds a point, unless it is beyond the page.
    pub(super) fn hold(&mut self, record: RecordId, point: Point, hold: Hold<'_>) {
        let Some(path) = self.records.get_mut(&record) else { return };
        if self
            .end
            .as_ref()
            .is_some_and(|end| end.cmp_path(&path.head).is_eq() && end.is_before(&point))
        {
            return;
        }
        self.held += point.weight();
        path.points.push(point);
        if self.held > self.held_max {
            self.let_go(hold);
        }
    }

    /// Drops points that cannot be on the page, whatever is read later.
    fn let_go(&mut self, hold: Hold<'_>) {
        match hold {
            Hold::First { limit, .. } => {
                self.end = self.end_of_page(limit).or_else(|| self.end.take());
                let Some(end) = &self.end else { return };
                self.records.retain(|_, path| end.cmp_path(&path.head).is_le());
                for path in
                    self.records.values_mut().filter(|path| end.cmp_path(&path.head).is_eq())
                {
                    path.points.retain(|point| !end.is_before(point));
                }
            }
            Hold::Last => self.records.values_mut().for_each(RecordPath::hold_last),
        }
        let points = self.records.values().flat_map(|path| &path.points);
        self.held = points.map(Point::weight).sum();
        if matches!(hold, Hold::Last) {
            // The number of records requires it.
            self.held_max = self.held_max.max(2 * self.held);
        }
    }

    /// The last point of the page, if more is held. Points read later may precede it: they only add changes, so the
    /// page can only end earlier.
    fn end_of_page(&mut self, limit: usize) -> Option<PathPlace> {
        let mut paths: Vec<&mut RecordPath> = self.records.values_mut().collect();
        paths.sort_unstable_by(|one, other| one.head.order().cmp(&other.head.order()));
        let (mut changes, mut held) = (0, 0);
        for path in paths {
            path.points.sort_unstable_by_key(Point::place);
            let mut last = path.before.as_ref();
            for point in &path.points {
                changes += usize::from(point.changes(last));
                held += point.weight();
                last = Some(point);
                if changes > limit || held > self.held_max / 2 {
                    return Some(PathPlace::of(&path.head, point));
                }
            }
        }
        None
    }
}

impl RecordPath {
    /// Drops points before those with the last prices, which cannot be the last ones of any record, whatever is read
    /// later.
    fn hold_last(&mut self) {
        self.points.sort_unstable_by_key(Point::place);
        let Some(last) = self.points.iter().rposition(|point| !point.outcomes.is_empty()) else {
            return;
        };
        let shows_others =
            |point: &Point| self.points.get(last).is_some_and(|last| !last.shows_the_same(point));
        let others = self.points.iter().take(last).rposition(shows_others);
        self.points.drain(..others.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use domain::{EventId, Format, Quote};

    use super::super::{PointOutcome, Wanted};
    use super::*;

    /// A record's change to a price, or to none.
    fn change(bookmaker: &str, at: i64, price: u64) -> (PathHead, Point, Vec<PointOutcome>) {
        let (event, market, at) =
            (EventId::from_number(1), Market::Moneyline, Timestamp::from_millis(at));
        let record = RecordId::new(event, bookmaker, market, None);
        let head = PathHead { record, bookmaker: bookmaker.into(), market, pairing: None };
        let (lineage, seq, shown, outcomes) = (0, 1, true, [].into());
        let (ts, reason, last_update, published_at) = (at, None, None, at);
        let point =
            Point { published_at, lineage, seq, at, ts, shown, reason, last_update, outcomes };
        let quote = || Quote::parse(&(price + 1).to_string(), Format::Decimal).unwrap();
        let outcome = || PointOutcome { name: "".into(), side: None, quote: quote(), point: None };
        (head, point, (price > 0).then(outcome).into_iter().collect())
    }

    /// The last prices of each record, and the time of their withdrawal.
    fn last_of(past: EventPast) -> Vec<(Option<Point>, Option<Timestamp>)> {
        let last = |path: RecordPath| {
            let priced = path.points.iter().rposition(|point| !point.outcomes.is_empty());
            let point = |at: Option<usize>| at.and_then(|at| path.points.get(at));
            let after = point(priced.map(|at| at + 1)).map(|point| point.published_at);
            (point(priced).cloned(), after)
        };
        past.into_paths().into_iter().map(last).collect()
    }

    #[test]
    fn what_is_let_go_of_is_not_among_the_last_prices() {
        let mut random = 7_u64;
        let mut below = |max: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % max
        };
        let mut least = usize::MAX;
        for _ in 0..300 {
            let mut changes: Vec<(i64, u64, bool)> =
                (0..60).map(|at| (at, below(3), below(2) == 0)).collect();
            // Rows come in any order.
            for at in (1..changes.len()).rev() {
                changes.swap(at, usize::try_from(below(u64::try_from(at).unwrap() + 1)).unwrap());
            }
            let wanted = Wanted::last_before(EventId::from_number(1), Timestamp::from_millis(50));
            let [all, few] = [usize::MAX, 8].map(|held_max| {
                let mut past = EventPast::holding(held_max);
                for (at, price, one) in &changes {
                    let bookmaker = if *one { "fanduel" } else { "betmgm" };
                    past.put(Some(change(bookmaker, *at, *price)), &wanted);
                }
                past
            });
            least = least.min(few.held);
            assert_eq!(last_of(few), last_of(all));
        }
        assert!(least < 30, "{least}");
    }
}
