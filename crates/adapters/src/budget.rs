//! The credits of an upstream with a monthly quota (The Odds API): how many may be spent, and how far intervals are
//! stretched so that they last. Pure.

use std::time::Duration;

use domain::Timestamp;
use feeds::adapter::the_odds_api::{affords, stretched};

use crate::report::BudgetReport;

/// The known state of the credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// As upstream last reported; `None` before its first report.
    remaining: Option<u64>,
    used: u64,
    reserve: u64,
}

impl Budget {
    pub fn new(reserve: u64) -> Self {
        Self { reserve, ..Self::default() }
    }

    pub fn note(&mut self, remaining: Option<u64>, used: Option<u64>) {
        self.remaining = remaining.or(self.remaining);
        self.used = used.unwrap_or(self.used);
    }

    /// True if a call may be made: it must leave the reserve. Before upstream has reported the remaining credits
    /// nothing is spent, since the call could use the last ones.
    pub fn may_spend(&self, cost: u64) -> bool {
        cost == 0 || self.remaining.is_some_and(|left| affords(cost, left, self.reserve))
    }

    pub fn report(&self) -> Option<BudgetReport> {
        let remaining = self.remaining?;
        Some(BudgetReport { remaining, used: self.used, reserve: self.reserve })
    }

    /// An interval such that the planned cost until the end of the month fits into the available credits.
    pub fn stretch(&self, every: Duration, planned: u64) -> Duration {
        let Some(remaining) = self.remaining else { return every };
        stretched(every, planned, remaining, self.reserve).unwrap_or(MONTH).min(MONTH)
    }
}

const MONTH: Duration = Duration::from_secs(31 * 86_400);

/// Cost until the end of the month of units with these costs per read and intervals.
pub fn planned(units: impl Iterator<Item = (u64, Duration)>, now: Timestamp) -> u64 {
    let left = until_month_ends(now);
    let cost = |(cost, every): (u64, Duration)| {
        let reads = left.as_secs() / every.as_secs().max(1) + 1;
        cost.saturating_mul(reads)
    };
    units.map(cost).fold(0, u64::saturating_add)
}

/// Time until the first of the next month, UTC.
fn until_month_ends(now: Timestamp) -> Duration {
    let end = || {
        let at = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?;
        let day = at.to_zoned(jiff::tz::TimeZone::UTC).date();
        let next = day.last_of_month().tomorrow().ok()?;
        let next = next.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Timestamp::from_millis(next.timestamp().as_millisecond()))
    };
    end().map_or(MONTH, |end| end.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_never_spent() {
        let mut budget = Budget::new(500);
        assert!(budget.may_spend(0) && !budget.may_spend(1), "first a free call says what is left");
        budget.note(Some(506), Some(494));
        assert!(budget.may_spend(6) && !budget.may_spend(7));
        budget.note(None, None);
        assert!(budget.may_spend(6), "an answer that does not say changes nothing");
        budget.note(Some(500), None);
        assert!(!budget.may_spend(1) && budget.may_spend(0));
        budget.note(Some(3), None);
        assert!(!budget.may_spend(1));
    }

    #[test]
    fn intervals_are_stretched_until_the_plan_fits() {
        let minute = Duration::from_secs(60);
        let mut budget = Budget::new(500);
        assert_eq!(budget.stretch(minute, 1_000_000), minute, "nothing is known yet");
        budget.note(Some(20_500), None);
        assert_eq!(budget.stretch(minute, 20_000), minute);
        assert_eq!(budget.stretch(minute, 60_000), 3 * minute);
        budget.note(Some(100), None);
        assert_eq!(budget.stretch(minute, u64::MAX), MONTH);
    }

    #[test]
    fn the_plan_goes_to_the_end_of_the_month() {
        let at = |text| Timestamp::parse(text).unwrap();
        let hour = Duration::from_secs(3600);
        let units = || [(6, hour), (1, 24 * hour)].into_iter();
        assert_eq!(planned(units(), at("2026-11-30T00:00:00Z")), 6 * 25 + 2);
        assert_eq!(planned(units(), at("2026-12-31T23:59:59Z")), 6 + 1);
        assert_eq!(until_month_ends(at("2028-02-28T00:00:00Z")).as_secs(), 2 * 86_400);
    }
}
