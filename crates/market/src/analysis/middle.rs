//! Pairs of bets on different points that both win if the result is between them (N18).

use std::cmp::Reverse;

use domain::market::PointRule;
use domain::{Line as Point, Market};

use crate::analysis::arbitrage::{Ages, Ranking};
use crate::analysis::best::best;
use crate::analysis::exact::{Billionths, Measure, Rounding, Sum};
use crate::analysis::filter::{Filter, Leg, Scope, Underround};
use crate::analysis::line::{Analysis, MarketLine};
use crate::snapshot::{EventRow, Snapshot};

/// A request for middles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MiddleSelection {
    pub filter: Filter,
    /// In billionths.
    pub max_cost: u32,
    pub limit: usize,
}

/// A middle.
#[derive(Debug)]
pub struct Middle<'a> {
    pub event: &'a EventRow,
    pub market: Market,
    /// Both bets win between these: the total, or the home side's margin.
    pub from: Point,
    pub to: Point,
    /// The landing numbers, if a result can only be a whole number.
    pub landing: Option<Landing>,
    pub booksum: Billionths,
    /// The landing probability at which the middle breaks even.
    pub break_even: Billionths,
    pub ages: Ages,
    pub legs: [Leg; 2],
}

/// Whole numbers in a middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landing {
    /// Strictly between: both bets win.
    pub within: Vec<i32>,
    /// On a bound: one bet wins, the other is returned.
    pub pushes: Vec<i32>,
}

/// Maximum distance of the points. A larger one means a mistake in one of the prices, and the numbers between them
/// would fill the response.
const GAP_QUARTERS_MAX: i32 = 4 * 100;

/// True if the market can have a middle.
pub fn can_middle(market: Market) -> bool {
    market.point_rule() != PointRule::None
}

/// The best prices of one line: for the bet that wins above a result and the one that wins below.
struct Pair<'a> {
    event: &'a EventRow,
    line: &'a MarketLine,
    /// In quarters: the first wins if the result is above this, the second if it is below.
    bound: i32,
    above: Leg,
    below: Leg,
}

impl MiddleSelection {
    pub fn select<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        analysis: &'a Analysis,
    ) -> Ranking<Middle<'a>> {
        let Some(scope) = Scope::new(&self.filter, snapshot, analysis, can_middle) else {
            return Ranking::default();
        };
        let mut ranking = Ranking { max_age_s: scope.max_age.as_secs(), ..Ranking::default() };
        scope.count_partial(scope.bookmakers(), &mut ranking.refused);
        let mut pairs: Vec<Pair<'a>> = Vec::new();
        for (event, line) in scope.lines() {
            let offers = scope.usable(line, Underround::Refuse, &mut ranking.refused);
            pairs.extend(Pair::new(event, line, &best(&scope, line, &offers)));
        }
        let mut found: Vec<(Sum, Middle<'a>)> = Vec::new();
        let same = |one: &Pair<'_>, other: &Pair<'_>| {
            (one.line.event, one.line.market) == (other.line.event, other.line.market)
        };
        for of_market in pairs.chunk_by(same) {
            for above in of_market {
                let middles = of_market.iter().filter_map(|below| self.middle(above, below));
                found.extend(middles);
            }
        }
        found.sort_by(|(one, middle), (other, wider)| {
            let gap = |own: &Middle<'_>| Reverse(own.to.quarters() - own.from.quarters());
            one.cmp(other).then_with(|| gap(middle).cmp(&gap(wider)))
        });
        ranking.fill(found, self.limit, |(_, middle)| middle);
        ranking
    }

    fn middle<'a>(&self, above: &Pair<'a>, below: &Pair<'a>) -> Option<(Sum, Middle<'a>)> {
        let gap = below.bound - above.bound;
        if !(1..=GAP_QUARTERS_MAX).contains(&gap) {
            return None;
        }
        let legs = [above.above, below.below];
        let sum = Sum::of(legs.map(|leg| leg.quote.price));
        let break_even = sum.measure(Measure::Excess, Rounding::Up);
        let market = above.line.market;
        let landing =
            (market != Market::TotalRounds).then(|| Landing::between(above.bound, below.bound));
        let empty = |own: &Landing| own.within.is_empty() && own.pushes.is_empty();
        if break_even > self.max_cost.into() || landing.as_ref().is_some_and(empty) {
            return None;
        }
        let middle = Middle {
            event: above.event,
            market,
            from: Point::from_quarters(above.bound),
            to: Point::from_quarters(below.bound),
            landing,
            booksum: sum.measure(Measure::Booksum, Rounding::HalfEven),
            break_even,
            ages: Ages::of(&legs),
            legs,
        };
        Some((sum, middle))
    }
}

impl<'a> Pair<'a> {
    /// The pair of a line; `None` for a line without prices, or with a draw.
    fn new(event: &'a EventRow, line: &'a MarketLine, best: &[super::best::Best]) -> Option<Self> {
        let [above, below] = best else { return None };
        let point = line.point?.quarters();
        // A home side with -3.5 wins above a margin of 3.5.
        let bound = match line.market.point_rule() {
            PointRule::Signed => -point,
            PointRule::Total | PointRule::None => point,
        };
        Some(Self { event, line, bound, above: above.leg, below: below.leg })
    }
}

impl Landing {
    /// The whole numbers between two bounds in quarters, and on them.
    fn between(from: i32, to: i32) -> Self {
        let first = from.div_euclid(4) + 1;
        let last = (to - 1).div_euclid(4);
        let bounds = [from, to].into_iter().filter(|bound| bound % 4 == 0);
        Self { within: (first..=last).collect(), pushes: bounds.map(|bound| bound / 4).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_land_between_the_bounds_or_push_on_them() {
        let between = |from, to| {
            let Landing { within, pushes } = Landing::between(from, to);
            (within, pushes)
        };
        assert_eq!(between(10, 14), (vec![3], vec![]), "2.5 to 3.5");
        assert_eq!(between(12, 14), (vec![], vec![3]), "3 to 3.5");
        assert_eq!(between(12, 28), (vec![4, 5, 6], vec![3, 7]), "3 to 7");
        assert_eq!(between(13, 15), (vec![], vec![]), "3.25 to 3.75");
        assert_eq!(between(-6, 2), (vec![-1, 0], vec![]), "-1.5 to 0.5");
        assert_eq!(between(-4, 0), (vec![], vec![-1, 0]), "-1 to 0");
    }
}
