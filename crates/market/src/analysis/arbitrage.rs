//! Bets on every outcome that win whatever the result (N16).

use domain::market::OutcomeRule;
use domain::{Line as Point, Market};

use crate::analysis::best::best;
use crate::analysis::exact::{Billionths, Measure, Rounding, Sum, returns};
use crate::analysis::filter::{Filter, Leg, Refused, Scope, Underround};
use crate::analysis::line::{Analysis, MarketLine, is_field};
use crate::book::OutcomeName;
use crate::snapshot::{EventRow, Snapshot};

/// A request for arbitrages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArbitrageSelection {
    pub filter: Filter,
    /// In billionths.
    pub min_profit: u32,
    /// Whole units to divide among the bets.
    pub stake: u32,
    pub limit: usize,
}

/// The best results, best first.
#[derive(Debug)]
pub struct Ranking<T> {
    pub max_age_s: u64,
    pub refused: Refused,
    pub results: Vec<T>,
    /// Number of results beyond the limit.
    pub truncated: usize,
}

/// An arbitrage.
#[derive(Debug)]
pub struct Arbitrage<'a> {
    pub event: &'a EventRow,
    pub line: &'a MarketLine,
    pub booksum: Billionths,
    pub profit: Billionths,
    /// True if stakes may be returned.
    pub push: bool,
    /// True if it is more likely a mistake than an opportunity.
    pub suspect: bool,
    pub ages: Ages,
    /// Cents.
    pub returns_min: u128,
    pub legs: Vec<StakedLeg>,
}

/// A bet of an arbitrage.
#[derive(Debug)]
pub struct StakedLeg {
    pub leg: Leg,
    /// Cents.
    pub stake: u64,
    pub returns: u128,
}

/// The ages of several legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ages {
    pub oldest_s: u64,
    pub skew_s: u64,
}

/// A profit above this is suspect: 10%.
const SUSPECT_PROFIT: Billionths = 100_000_000;

/// True if the market can have an arbitrage: no field is guaranteed to be complete.
pub fn can_arbitrage(market: Market) -> bool {
    !is_field(market)
}

impl ArbitrageSelection {
    pub fn select<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        analysis: &'a Analysis,
    ) -> Ranking<Arbitrage<'a>> {
        let Some(scope) = Scope::new(&self.filter, snapshot, analysis, can_arbitrage) else {
            return Ranking::default();
        };
        let mut ranking = Ranking { max_age_s: scope.max_age.as_secs(), ..Ranking::default() };
        scope.count_partial(scope.bookmakers(), &mut ranking.refused);
        let mut found: Vec<(Sum, Billionths, &EventRow, &MarketLine, Vec<Leg>)> = Vec::new();
        for (event, line) in scope.lines() {
            let offers = scope.usable(line, Underround::Refuse, &mut ranking.refused);
            let legs: Vec<Leg> =
                best(&scope, line, &offers).into_iter().map(|best| best.leg).collect();
            let sum = Sum::of(legs.iter().map(|leg| leg.quote.price));
            if legs.is_empty() || sum.cmp_whole(1).is_ge() {
                continue;
            }
            let profit = sum.measure(Measure::Profit, Rounding::Down);
            if profit > self.min_profit.into() {
                found.push((sum, profit, event, line, legs));
            }
        }
        // Lines are in order, and the sort is stable.
        found.sort_by(|one, other| one.0.cmp(&other.0));
        ranking.fill(found, self.limit, |(sum, profit, event, line, legs)| {
            self.describe((&sum, profit), event, line, legs, &scope)
        });
        ranking
    }

    fn describe<'a>(
        &self,
        (sum, profit): (&Sum, Billionths),
        event: &'a EventRow,
        line: &'a MarketLine,
        legs: Vec<Leg>,
        scope: &Scope<'_>,
    ) -> Arbitrage<'a> {
        let stakes = sum.divide(u64::from(self.stake) * 100);
        let ages = Ages::of(&legs);
        let staked = |(leg, stake): (Leg, u64)| StakedLeg {
            leg,
            stake,
            returns: returns(stake, leg.quote.price),
        };
        let legs: Vec<StakedLeg> = legs.into_iter().zip(stakes).map(staked).collect();
        let has_draws = scope.snapshot.catalogue().sport(self.filter.sport).draw;
        Arbitrage {
            event,
            line,
            booksum: sum.measure(Measure::Booksum, Rounding::HalfEven),
            profit,
            push: may_push(line, has_draws),
            suspect: profit > SUSPECT_PROFIT,
            ages,
            returns_min: legs.iter().map(|leg| leg.returns).min().unwrap_or(0),
            legs,
        }
    }
}

impl<T> Default for Ranking<T> {
    fn default() -> Self {
        Self { max_age_s: 0, refused: Refused::default(), results: Vec::new(), truncated: 0 }
    }
}

impl<T> Ranking<T> {
    /// Takes the best of the results found.
    pub(crate) fn fill<F>(&mut self, found: Vec<F>, limit: usize, describe: impl FnMut(F) -> T) {
        self.truncated = found.len().saturating_sub(limit);
        self.results = found.into_iter().take(limit).map(describe).collect();
    }
}

impl Ages {
    pub(crate) fn of(legs: &[Leg]) -> Self {
        let ages = || legs.iter().map(|leg| leg.age_s);
        let oldest_s = ages().max().unwrap_or(0);
        Self { oldest_s, skew_s: oldest_s - ages().min().unwrap_or(oldest_s) }
    }
}

/// True if stakes may be returned: on a draw or tie that nobody can bet on, or when the result equals the point.
fn may_push(line: &MarketLine, has_draws: bool) -> bool {
    let drawn = line.names.contains(&OutcomeName::Draw);
    match line.market.outcome_rule() {
        OutcomeRule::Sides if line.point.is_none() => has_draws && !drawn,
        OutcomeRule::Pairing => line.market == Market::Matchup && !drawn,
        OutcomeRule::Sides | OutcomeRule::OverUnder | OutcomeRule::Entrants => line
            .point
            .is_some_and(|point: Point| point.quarters() % 4 != 2 && point.quarters() % 4 != -2),
    }
}
